"""The options that all commands which learn have in common: written once, and read here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from glob import has_magic
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from spbn.app.arguments import Columns, Discrete, Drop, MissingValues, Seed, Tables, arc_in, names_in
from spbn.app.inputs import note_peculiar_columns, training_frame, training_frame_with_holes
from spbn.app.series import Axis, names_with_lags, series_frame
from spbn.errors import ArgumentError, quoted
from spbn.learn import MODELS, SCORES, TESTS
from spbn.numerics.arrays import BoolArray
from spbn.tables.files import present, require_complete
from spbn.tables.sources import Source

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Lesson:
    """What to learn from and how: read only when it is asked for, after other options were checked.

    Attributes
    ----------
    files
        What was given as the table.
    read
        Takes how rows follow each other, or None if they do not; returns the table, and the settings of
        `spbn.learn`.
    read_later
        Returns the settings of `spbn.distributed.learn` instead, and leaves the rows to others.
    """

    files: tuple[Source, ...]
    read: Callable[[Axis | None], tuple[pd.DataFrame, dict[str, Any]]]
    read_later: Callable[[], dict[str, Any]]

    @property
    def data(self) -> Source:
        """The file, or the first of several."""
        return self.files[0]

    @property
    def is_in_parts(self) -> bool:
        """Whether it is several Parquet files: a list, a folder, or a pattern that no shell has filled in."""
        is_pattern = has_magic(str(self.data)) and not self.data.path.exists()
        return len(self.files) > 1 or self.data.path.is_dir() or is_pattern


def _lesson(
    data: Tables,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "spbn",
    algorithm: Annotated[str, typer.Option(help="hc (hill climbing) or pc.")] = "hc",
    score: Annotated[
        str | None,
        typer.Option(
            help=f"What hc climbs: one of {', '.join(SCORES)}. Default: bic for a gbn, otherwise cv.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[str, typer.Option(help="Type of all nodes at the start: ckde or lg.")] = "ckde",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validated likelihood.")] = 10,
    validation: Annotated[float, typer.Option(help="Fraction of the rows to validate with.")] = 0.2,
    patience: Annotated[
        int, typer.Option(help="Steps to go on without progress on the validation rows.")
    ] = 5,
    epsilon: Annotated[float, typer.Option(help="Gain that a step must exceed.")] = 0.0,
    max_parents: Annotated[
        int | None,
        typer.Option(help="Maximum number of parents of a node; no limit by default.", show_default=False),
    ] = None,
    test: Annotated[str, typer.Option(help=f"Independence test for pc: one of {', '.join(TESTS)}.")] = "rcot",
    alpha: Annotated[float, typer.Option(help="Level of the tests of pc.")] = 0.05,
    require: Annotated[
        list[str] | None,
        typer.Option(help="An arc that must be there, A:B. May be repeated.", show_default=False),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(help="An arc that must not be there, A:B. May be repeated.", show_default=False),
    ] = None,
    bandwidth: Annotated[
        Literal["scott", "silverman", "cv"], typer.Option(help="Rule for the bandwidths of CKDE nodes.")
    ] = "scott",
    margins: Annotated[
        Literal["none", "yeo-johnson"],
        typer.Option(help="Transform of every column, against skew and heavy tails."),
    ] = "none",
    columns: Columns = None,
    drop: Drop = None,
    discrete: Discrete = None,
    smoothing: Annotated[
        float,
        typer.Option(help="Rows added to every configuration of a discrete node's parents; 0 for none."),
    ] = 1.0,
    missing: MissingValues = "error",
    seed: Seed = 0,
) -> Lesson:
    """Return the table to learn from, and the settings of `spbn.learn`."""

    def common(names: Collection[str]) -> dict[str, Any]:
        return {
            "model": model,
            "score": score,
            "start": start,
            "folds": folds,
            "validation": validation,
            "patience": patience,
            "epsilon": epsilon,
            "required_arcs": [arc_in("--require", text, names) for text in require or ()],
            "forbidden_arcs": [arc_in("--forbid", text, names) for text in forbid or ()],
            "bandwidth": bandwidth,
            "missing": missing,
            "seed": seed,
        }

    def read(axis: Axis | None) -> tuple[pd.DataFrame, dict[str, Any]]:
        if len(data) > 1:
            raise ArgumentError(f"one table can be given. Got {len(data)}: {quoted(map(str, data))}.")
        categories = names_in("--discrete", discrete) or []
        if axis is not None:
            chosen, dropped = names_in("--columns", columns), names_in("--drop", drop) or []
            frame = series_frame(data[0], axis, columns=chosen, drop=dropped, discrete=categories)
            if missing == "error":
                require_complete(
                    data[0],
                    frame.drop(columns=axis.keys),
                    "Fill what is missing, or pass --missing drop to leave out rows that look back on it.",
                )
        elif missing == "impute":
            frame = training_frame_with_holes(data[0], columns, drop, categories)
        else:
            remedy = "With --missing impute, a network is learned from the values that are there."
            frame = training_frame(data[0], columns, drop, categories, missing, remedy=remedy)
        variables = frame if axis is None else frame.drop(columns=axis.keys)
        names = [str(name) for name in variables.columns]
        whole: BoolArray = present(variables).min(axis=1)
        if whole.any():
            note_peculiar_columns(variables.loc[whole], categories)
        return frame, {
            **common(names if axis is None else names_with_lags(names, axis.lags)),
            "algorithm": algorithm,
            "max_parents": max_parents,
            "test": test,
            "alpha": alpha,
            "margins": margins,
            "discrete": categories,
            "smoothing": smoothing,
        }

    def read_later() -> dict[str, Any]:
        _refuse_for_parts(
            {
                "--algorithm": algorithm != "hc",
                "--test": test != "rcot",
                "--alpha": alpha != 0.05,
                "--discrete": discrete is not None,
                "--smoothing": smoothing != 1.0,
                "--missing impute": missing == "impute",
                "--bandwidth cv": bandwidth == "cv",
                "--sep": data[0].sep is not None,
                "--decimal": data[0].decimal is not None,
                "--encoding": data[0].encoding is not None,
            }
        )
        from spbn.distributed.sources import opened

        left_out = names_in("--drop", drop) or []
        names = opened(
            [source.path for source in data], drop=left_out, only=names_in("--columns", columns)
        ).names
        return {
            **common(names),
            **({} if max_parents is None else {"max_parents": max_parents}),
            "margins": margins,
            "drop": left_out,
            "columns": names_in("--columns", columns),
        }

    return Lesson(tuple(data), read, read_later)


def _refuse_for_parts(given: dict[str, bool]) -> None:
    """Refuse options that make no difference where rows are in several files, or are not possible there."""
    unused = [option for option, is_given in given.items() if is_given]
    if unused:
        raise ArgumentError(
            f"{' and '.join(unused)} cannot be used with several files, whose rows are read a part at a "
            f"time: put them into one file, or leave the option out."
        )


def with_learning_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above: they reach it as its first argument, a `Lesson`."""
    ours = signature(_lesson).parameters
    (first, *own) = signature(command).parameters.values()
    hints = get_type_hints(_lesson, include_extras=True) | get_type_hints(command, include_extras=True)
    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
        for parameter in (*ours.values(), *own)
    ]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        lesson = _lesson(**{name: given.pop(name) for name in ours})
        command(**{first.name: lesson}, **given)

    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called
