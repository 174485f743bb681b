"""Files of commands: models and tables that they read, and where they may write."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spbn._base.display import working
from spbn._base.lazy import pd
from spbn.cli.command import as_option_value, note, say
from spbn.cli.sources import EXCEL, STANDARD, Source, kind_of
from spbn.errors import ArgumentError, DataError, ModelFileError, argument, require_plot_packages, setting

if TYPE_CHECKING:
    from spbn._base.arrays import FloatArray
    from spbn.network import BayesianNetwork, Network

FILL = "Fill what is missing, or leave such rows out."


def busy(title: str) -> AbstractContextManager[object]:
    """Show on a terminal that something is being done."""
    return working(sys.stderr.isatty(), title)


def require_least(option: str, value: int, least: int = 1) -> None:
    """Refuse the value of an option that is too small."""
    if value < least:
        raise ArgumentError(f"{option} must be {least} or more. Got {value}.")


def require_targets(
    *files: Path | None,
    tables: Sequence[Path | None] = (),
    report: Path | None = None,
    plot: Path | None = None,
    inputs: Iterable[Path | Source | None] = (),
) -> None:
    """Refuse files that cannot be written, that the command also reads, or that it would write twice.

    `tables`: files that are tables: their names say of which kind, and one may go to standard output.
    `report`, `plot`: files with pictures: the packages that draw have to be there.
    """
    if list(tables).count(STANDARD) > 1:
        raise ArgumentError("only one table can go to standard output (-): give a file for the other.")
    written = [path for path in (*tables, *files, report, plot) if path is not None]
    read = [Path(path) for path in inputs if path is not None]
    for i, path in enumerate(written):
        if path == STANDARD and path in tables:
            continue
        if path == STANDARD:
            raise ArgumentError("only tables can be written to standard output (-): give the name of a file.")
        for source in read:
            if _is_same(path, source):
                which = "an input" if path == source else f"the same file as the input {source}"
                raise ArgumentError(
                    f"{path} is {which}, and writing would destroy it: choose another name for the output."
                )
        if path in tables:
            kind_of(path)
        if any(_is_same(path, other) for other in written[:i]):
            raise ArgumentError(f"{path} would be written twice: choose two different names.")
        _require_writable(path)
    if plot is not None:
        from spbn.plots.pictures import require_picture_name

        require_picture_name(plot)
    if plot is not None or report is not None:
        require_plot_packages()


def _is_same(first: Path, second: Path) -> bool:
    """Tell whether two names stand for one file, be it through links; the files need not exist."""
    try:
        return first.samefile(second)
    except OSError:
        return os.path.normcase(os.path.realpath(first)) == os.path.normcase(os.path.realpath(second))


def _require_writable(path: Path) -> None:
    from spbn._base.files import is_read_only  # needs numpy, and completion does without

    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ArgumentError(f"the folder {folder} does not exist: create it first.")
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder: give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise ArgumentError(f"{path} is not a regular file: choose another name for the output.")
    if is_read_only(path):
        raise ArgumentError(f"no permission to write to {path}: it is read-only. Choose another name.")


def load_model(path: Path) -> BayesianNetwork:
    """Read a network of single rows."""
    network = load_any_model(path)
    if network.is_dynamic:
        raise ModelFileError(
            f"{path} is a model over time, and this command takes models of single rows. Models over time "
            f"are for spbn forecast, watch, show, score, sample, plot, report, explore and compact."
        )
    return network.row_network


def load_any_model(path: Path) -> Network:
    """Read a network, of single rows or over time."""
    from spbn.io import load

    if not path.exists():
        raise ModelFileError(f"{path} does not exist.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model.")
    with busy("reading the model"):
        network: Network = load(path)
    return network


def training_frame(
    data: Source,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    discrete: Sequence[str],
    missing: str,
    *,
    na: Sequence[str] = (),
    can_impute: bool = False,
) -> pd.DataFrame:
    """Read the rows to learn from: complete ones, or all if what is missing is to be imputed.

    Columns of categories, among them those that are named `discrete`, keep the levels of rows left out.
    `na`: what stands for missing values. `can_impute`: whether these can be imputed.
    """
    from spbn.cli.files import present, read_table, require_complete
    from spbn.tables.columns import named

    with busy("reading the table"):
        frame = read_table(data, columns, drop=drop, discrete=discrete, na=na)
    there = present(frame)
    whole = there.min(axis=1)
    if missing == "impute":
        if not whole.all():
            number = int((~there).sum())
            values = "value is" if number == 1 else "values are"
            say(f"{number} {values} missing, in {(~whole).sum()} of {len(frame)} rows", "")
        return frame
    empty = [str(name) for place, name in enumerate(frame) if not there[:, place].any()]
    if empty:
        have = "has no value at all: leave it" if len(empty) == 1 else "have no value at all: leave them"
        raise DataError(f"{data}: {named(empty, verb=False)} {have} out with {setting('drop', empty)}.")
    if missing == "drop" and not whole.all():
        say(f"{(~whole).sum()} of {len(whole)} rows left out because of missing values", "")
        return with_all_levels(frame, discrete).loc[whole]
    lost = f"{(~whole).sum():,} of {len(whole):,} rows"
    advice = "Fill what is missing, or pass --missing drop to leave such rows out."
    if can_impute:
        advice = (
            f"With --missing impute, a network is learned from the values that are present. Otherwise fill "
            f"what is missing, or pass --missing drop, which leaves out {lost}."
        )
    require_complete(data, frame, advice)
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
    network: Network, data: Source, *, every: float | None = None, remedy: str | None = None
) -> pd.DataFrame:
    """Read the columns that a network needs, and those of series and time if it has them.

    Rows are resampled if `every` is a time between them. The remedy is for missing values, which are refused;
    if there is none, values may be missing.
    """
    from spbn.cli.files import read_table, require_complete

    data = as_learned(network, data)
    axis = Axis(network.lags, network.series, network.time, every)
    if every is not None and axis.time is None:
        raise ArgumentError("--every is for models that were learned with --time.")
    with busy("reading the table"):
        frame = read_table(data, variables=network.variables, keys=axis.keys)
        if remedy is not None:
            require_complete(data, frame.drop(columns=axis.keys), remedy)
        return axis.resampled(frame)


def as_learned(network: Network, data: Source) -> Source:
    """Return a table with what is above its names, if the network was learned from a messy one."""
    from spbn.cli.files import title_rows_of

    preparation = network.row_network.preparation
    if preparation is None or preparation.is_plain:
        return data
    data.require_readable()
    data = data.skipping(None, preparation.sheet if data.kind == EXCEL else None)
    return data.skipping(title_rows_of(data))


class Axis(NamedTuple):
    """How rows follow each other, by the options of the command line."""

    lags: int
    series: str | None = None
    time: str | None = None
    every: float | None = None
    season: str | float | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that are no variables."""
        return [name for name in (self.series, self.time) if name is not None]

    def resampled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows at equal steps of time, if that is asked for."""
        if self.every is None or self.time is None:
            return frame
        if pd.to_numeric(frame[self.time], errors="coerce").notna().all():
            frame[self.time] = pd.to_numeric(frame[self.time])
        return resample(frame, time=self.time, every=self.every, series=self.series)


def axis_of(
    lags: int | None, series: str | None, time: str | None, every: float | None, season: str | None
) -> Axis | None:
    """Read the options of time; None if there are none."""
    if lags is None:
        given = {"--series": series, "--time": time, "--every": every, "--season": season}
        unused = [option for option, value in given.items() if value is not None]
        if unused:
            raise ArgumentError(f"{' and '.join(unused)} can only be used together with --lags.")
        return None
    require_least("--lags", lags)
    if every is not None and time is None:
        raise ArgumentError("--every needs the column with the times of rows: --time.")
    rows: str | float | None = season
    if season is not None:
        with suppress(ValueError):
            rows = float(season)
    return Axis(lags, series, time, every, rows)


def resample(frame: pd.DataFrame, *, time: str, every: float, series: str | None = None) -> pd.DataFrame:
    """Return rows at equal time steps; `every` is in seconds if times are dates.

    Numbers are interpolated linearly; anything else takes the value of the last row before. Gaps are not
    filled: rows that are missing in the data are missing in the result as well.
    """
    import numpy as np

    from spbn.tables.columns import columns_of
    from spbn.tables.lags import read_times, require_there, runs_of

    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < np.inf:
        raise ArgumentError(
            f"{argument('every')} must be a step of time, greater than 0. Got {every!r} instead."
        )
    require_there(frame.columns, frame, series=series, time=time)
    runs, times = runs_of(frame, series=series, time=None), read_times(time, columns_of(frame)[time])
    parts = []
    for start, end, name in zip(runs.starts, runs.ends, runs.series, strict=True):
        rows = runs.order[start:end]
        at = times[rows]
        if (np.diff(at) <= 0).any():
            where = f" of series {name!r}" if name else ""
            raise DataError(f"the times{where} in column {time!r} do not ascend: sort the rows by time.")
        parts.append(_resample_series(frame.iloc[rows], at, time, every))
    return pd.concat(parts, ignore_index=True)


def _resample_series(rows: pd.DataFrame, at: FloatArray, time: str, every: float) -> pd.DataFrame:
    import numpy as np

    from spbn.tables.lags import GAP

    grid = at[0] + every * np.arange(int(np.floor((at[-1] - at[0]) / every + 1e-9)) + 1)
    right = np.clip(np.searchsorted(at, grid - 1e-9 * every), 0, len(at) - 1)
    left = np.clip(np.searchsorted(at, grid + 1e-9 * every, side="right") - 1, 0, len(at) - 1)
    usual = float(np.median(np.diff(at))) if len(at) > 1 else every
    bridged = at[right] - at[left] <= GAP * max(every, usual)
    grid, left = grid[bridged], left[bridged]
    out: dict[str, Any] = {}
    for name, column in rows.items():
        is_number = pd.api.types.is_numeric_dtype(column)
        if name == time:
            dates = None if is_number else pd.to_datetime(column.iloc[0])
            out[time] = grid if dates is None else dates + pd.to_timedelta(grid - at[0], unit="s")
        elif is_number and not pd.api.types.is_bool_dtype(column):
            out[str(name)] = np.interp(grid, at, column.to_numpy(dtype=np.float64))
        else:
            out[str(name)] = column.iloc[left].to_numpy()
    return pd.DataFrame(out)


def note_peculiar_columns(frame: pd.DataFrame, discrete: Sequence[str]) -> None:
    """Mention columns that can be learned from, but may not be what they seem."""
    from spbn.diagnostics.data_check import few_valued, identifiers, missing_codes
    from spbn.tables.columns import named
    from spbn.tables.reader import as_table

    table = as_table(frame, levels="infer", discrete=discrete)
    numbering, categories = identifiers(table), few_valued(table)
    if numbering:
        has, it, numbers = ("has", "it", "numbers") if len(numbering) == 1 else ("have", "they", "number")
        note(
            f"{named(numbering, verb=False)} {has} a different whole number in every row. If {it} only "
            f"{numbers} the rows, use {_option('--drop', numbering)}."
        )
    if categories:
        one = len(categories) == 1
        has, are = ("has", "is treated as a number") if one else ("have", "are treated as numbers")
        note(
            f"{named(categories, verb=False)} {has} only two or three different values and {are}. If the "
            f"values stand for categories, use {_option('--discrete', categories)}."
        )
    codes = missing_codes(table)
    for code in sorted(set(codes.values())):
        coded = [name for name, found in codes.items() if found == code]
        have, their = ("has", "its") if len(coded) == 1 else ("have", "their")
        note(
            f"{named(coded, verb=False)} {have} the number {code:g}, far from all {their} other values. If "
            f"it stands for a missing value, use --na {code:g}; --missing says what to do about such values."
        )


def _option(option: str, names: list[str]) -> str:
    return f"{option} {as_option_value(names)}" if len(names) <= 12 else option
