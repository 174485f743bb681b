"""Models and tables that commands read."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from spbn._base.progress import working
from spbn.cli.sources import Source
from spbn.cli.terminal import note, say
from spbn.errors import DataError, ModelFileError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import BoolArray
    from spbn.network import BayesianNetwork
    from spbn.tables.reader import Missing
    from spbn.timeseries.network import DynamicNetwork


def busy(title: str) -> AbstractContextManager[None]:
    """Show on a terminal that something is being done."""
    return working(sys.stderr.isatty(), title)


def load_model(path: Path) -> BayesianNetwork:
    """Read a network of single rows."""
    from spbn.timeseries.network import DynamicNetwork

    network = load_any_model(path)
    if isinstance(network, DynamicNetwork):
        raise ModelFileError(
            f"{path} is a model over time, and this command takes models of single rows. Models over time "
            f"are for spbn forecast, watch, show, score, sample, plot, report, explore and compact."
        )
    return network


def load_any_model(path: Path) -> BayesianNetwork | DynamicNetwork:
    """Read a network, of single rows or over time."""
    from spbn.io.model import load

    if not path.exists():
        raise ModelFileError(f"{path} does not exist.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model.")
    with busy("reading the model"):
        network: BayesianNetwork | DynamicNetwork = load(path)
    return network


def training_frame(
    data: Source,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    discrete: Sequence[str],
    missing: Missing,
    *,
    remedy: str = "",
) -> pd.DataFrame:
    """Read the rows to learn from, without those that have missing values if that is asked for."""
    frame = _training_frame(data, columns, drop, discrete)
    return complete_rows(data, frame, missing, discrete=discrete, remedy=remedy)


def training_frame_with_holes(
    data: Source, columns: Sequence[str] | None, drop: Sequence[str], discrete: Sequence[str]
) -> pd.DataFrame:
    """Read the rows to learn from, and say how many values are missing."""
    from spbn.cli.files import present

    frame = _training_frame(data, columns, drop, discrete)
    there = present(frame)
    if not there.all():
        number = int((~there).sum())
        values = "value is" if number == 1 else "values are"
        say(f"{number} {values} missing, in {(~there.all(axis=1)).sum()} of {len(frame)} rows")
        say()
    return frame


def _training_frame(
    data: Source, columns: Sequence[str] | None, drop: Sequence[str], discrete: Sequence[str]
) -> pd.DataFrame:
    from spbn.cli.files import read_table

    with busy("reading the table"):
        return read_table(data, columns, drop=drop, discrete=discrete)


def complete_rows(
    data: Source,
    frame: pd.DataFrame,
    missing: Missing,
    *,
    discrete: Collection[str] = (),
    remedy: str = "",
) -> pd.DataFrame:
    """Leave out rows with missing values if that is asked for; otherwise refuse them, with a remedy.

    Columns of categories, among them those that are named `discrete`, keep the levels of rows left out.
    """
    from spbn.cli.files import present, require_complete

    there = present(frame)
    empty = [str(name) for place, name in enumerate(frame) if not there[:, place].any()]
    if empty:
        have = "has no value at all: leave it" if len(empty) == 1 else "have no value at all: leave them"
        raise DataError(f"{data}: {_columns(empty)} {have} out with drop={empty!r}.")
    if missing == "drop":
        whole: BoolArray = there.min(axis=1)
        if not whole.all():
            say(f"{(~whole).sum()} of {len(whole)} rows left out because of missing values")
            say()
            frame = with_all_levels(frame, discrete).loc[whole]
    advice = "Fill what is missing, or pass --missing drop to leave such rows out."
    require_complete(data, frame, f"{advice} {remedy}".strip())
    return frame


def with_all_levels(frame: pd.DataFrame, discrete: Collection[str] = ()) -> pd.DataFrame:
    """Make columns of categories categorical, so that any part of the rows knows the levels of all."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    levelled = [
        name
        for name, column in frame.items()
        if name in discrete or is_bool_dtype(column) or not is_numeric_dtype(column)
    ]
    return frame.astype(dict.fromkeys(levelled, "category"))


def frame_for(
    network: BayesianNetwork, data: Source, *, remedy: str = "Fill what is missing, or leave such rows out."
) -> pd.DataFrame:
    """Read the columns that a network needs; the remedy says what to do if values are missing."""
    from spbn.cli.files import read_table, require_complete

    with busy("reading the table"):
        frame = read_table(data, variables=network.variables)
    require_complete(data, frame, remedy)
    return frame


def frame_with_holes(
    network: BayesianNetwork, data: Source, *, without: Collection[str] | None = None
) -> pd.DataFrame:
    """Read the columns of a network, in which values may be missing.

    All must be there; or, if some are left out, as many of the others as there are.
    """
    from spbn.cli.files import column_names, read_table

    with busy("reading the table"):
        variables = list(network.variables)
        if without is not None:
            there = column_names(data)
            variables = [v for v in variables if v.name in there and v.name not in without]
            if not variables:
                raise DataError(
                    f"{data} has none of the columns to predict {quoted(without)} from. Its columns are "
                    f"{quoted(there)}."
                )
        return read_table(data, variables=variables)


def note_peculiar_columns(frame: pd.DataFrame, discrete: Sequence[str]) -> None:
    """Mention columns that can be learned from, but may not be what they seem."""
    from spbn.diagnostics.data_check import few_valued, identifiers, missing_codes
    from spbn.tables.reader import as_table

    table = as_table(frame, levels="infer", discrete=discrete)
    numbering, categories = identifiers(table), few_valued(table)
    if numbering:
        has, it, numbers = ("has", "it", "numbers") if len(numbering) == 1 else ("have", "they", "number")
        note(
            f"{_columns(numbering)} {has} a different whole number in every row. If {it} only {numbers} "
            f"the rows, use {_option('--drop', numbering)}."
        )
    if categories:
        has, are = (
            ("has", "is treated as a number") if len(categories) == 1 else ("have", "are treated as numbers")
        )
        note(
            f"{_columns(categories)} {has} only two or three different values and {are}. If the values stand "
            f"for categories, use {_option('--discrete', categories)}."
        )
    codes = missing_codes(table)
    for code in sorted(set(codes.values())):
        coded = [name for name, found in codes.items() if found == code]
        have, their = ("has", "its") if len(coded) == 1 else ("have", "their")
        note(
            f"{_columns(coded)} {have} the number {code:g}, far from all {their} other values. If it stands "
            f"for a missing value, leave such fields empty; --missing says what to do about them."
        )


def _columns(names: list[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {quoted(names)}"


def _option(option: str, names: list[str]) -> str:
    from spbn.cli.wording import joined

    return f"{option} {joined(names)}" if len(names) <= 12 else option
