"""Rows that follow each other in time: series, gaps in them, and tables with the past beside the present.

Rows are joined within a series only. A series is what a column says, or the whole table; where a column of
times shows that rows are missing in between, a new run begins, as if it were another series. What is
lagged is therefore always the row before, and never a row from somewhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from spbn._base.checks import is_number, whole
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, DataError, argument, in_python, quoted, setting
from spbn.tables.columns import as_text, columns_of, is_series
from spbn.tables.splits import Split
from spbn.tables.table import Table, Variable

EQUAL = 0.1  # of a step, by which times may be off
GAP = 1.5  # steps from which on rows are missing in between


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows in runs: within one, every row follows the one before it."""

    order: IntArray  # row numbers, run after run
    ends: IntArray  # where each run ends in `order`
    series: tuple[str, ...]  # of every run, as text; all "" if there is no column that tells them apart
    step: float | None = None  # between the times of rows; None without times, or if no row follows another
    times: FloatArray | None = None  # of rows, since 1970 if they are dates; None if nobody needs them

    @property
    def starts(self) -> IntArray:
        return np.concatenate([[0], self.ends[:-1]]).astype(np.int64)

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.ends, prepend=0)

    @cached_property
    def _codes(self) -> IntArray:
        """The number of the series of every run."""
        numbers = {name: number for number, name in enumerate(self.names)}
        return np.array([numbers[name] for name in self.series], dtype=np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """The series, each once."""
        return tuple(dict.fromkeys(self.series))

    @property
    def number(self) -> int:
        """How many series there are."""
        return len(self.names)

    @property
    def series_of_rows(self) -> IntArray:
        """The number of the series of every row."""
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.repeat(self._codes, self.lengths)
        return found

    def windows(self, width: int) -> IntArray:
        """Return the rows of every window of successive rows: windows × width, the last row first."""
        last = [np.arange(start + width - 1, end) for start, end in zip(self.starts, self.ends, strict=True)]
        places = np.concatenate([np.empty(0, dtype=np.int64), *last])
        return self.order[places[:, None] - np.arange(width)]

    def beginnings(self, width: int) -> IntArray:
        """Return the first rows of every run that has as many: runs × width, the last row first."""
        starts = self.starts[self.lengths >= width]
        return self.order[starts[:, None] + np.arange(width)[::-1]]


#: Seasons that have a name, in seconds; a year is a mean one of the Gregorian calendar.
LEAST_SEASON = 2  # rows
SEASONS = {"hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}
#: What tells the phase of a season: two inputs of every row.
SEASON_INPUTS = (Variable("sin(season)"), Variable("cos(season)"))


def is_season(value: object) -> bool:
    """Tell whether something is a season: a name, or a number of rows."""
    if isinstance(value, str):
        return value in SEASONS
    return is_number(value) and value >= LEAST_SEASON


def period_of(season: str | float, step: float | None) -> float:
    """Return the length of a season in units of time; a number is that of its rows."""
    if isinstance(season, str):
        return SEASONS[season]
    return season * (step or 1.0)


def season_columns(times: FloatArray, period: float) -> FloatArray:
    """Return the inputs that tell the phase of a season: 2 × times."""
    angles = 2.0 * np.pi * np.mod(times / period, 1.0)
    return np.stack([np.sin(angles), np.cos(angles)])


def with_season(rows: Table, times: FloatArray, period: float) -> Table:
    """Return rows with two further columns, the phase of a season at the times of the rows."""
    columns = np.concatenate([rows.columns, season_columns(times, period)])
    return Table.of((*rows.variables, *SEASON_INPUTS), columns)


def lag_name(name: str, lag: int) -> str:
    """Return what a column is called a number of rows before: x, x[t-1], x[t-2] and so on."""
    return name if lag == 0 else f"{name}[t-{lag}]"


def lagged_table(table: Table, windows: IntArray, lags: Sequence[int]) -> Table:
    """Return a table whose columns are those of another at several lags, lag after lag.

    Windows, rows × lags, say which row of the table is meant.
    """
    variables = {lag: [Variable(lag_name(v.name, lag), v.levels) for v in table.variables] for lag in lags}
    taken = [v.name for lag in lags if lag for v in variables[lag] if v.name in table.names]
    if taken:
        raise DataError(f"a column is called {taken[0]!r}, which is what a lagged one is called: rename it.")
    columns = np.concatenate([table.columns[:, rows] for rows in windows.T])
    return Table.of([v for lag in lags for v in variables[lag]], np.ascontiguousarray(columns))


def runs_of(data: Any, *, series: str | None, time: str | None, step: float | None = None) -> Runs:
    """Find the runs of some data.

    `series`: the column that tells series apart; None: all rows are one series.
    `time`: the column with times: numbers, dates, or text that can be read as dates. Within a series they
    ascend, in equal steps. A longer step starts a new run. None: rows follow each other.
    `step`: the step to expect; by default the median of those that there are.
    """
    columns = columns_of(data)
    require_there(columns, data, series=series, time=time)
    codes, names = _series(series, columns)
    order = np.argsort(codes, kind="stable")
    is_new = np.diff(codes[order], prepend=-1) != 0
    if time is not None:
        times = read_times(time, columns[time])
        if len(times) != len(codes) and series is not None:
            raise DataError(f"columns {series!r} and {time!r} must have the same length.")
        steps, follows = np.diff(times[order]), ~is_new[1:]
        wrong = np.flatnonzero((steps <= 0) & follows)
        if len(wrong):
            before, after = order[wrong[0] : wrong[0] + 2].tolist()
            raise _not_ascending(columns[time], steps[wrong[0]], time, before, after, names[codes[after]])
        if step is None:
            step = float(np.median(steps[follows])) if follows.any() else None
        if step is not None:
            _require_equal_steps(steps, follows, step, order, time, is_dated(columns[time]))
            is_new[1:] |= steps >= GAP * step
    ends = np.append(np.flatnonzero(is_new)[1:], len(order)).astype(np.int64)
    firsts = order[np.flatnonzero(is_new)]
    return Runs(order, ends, tuple(names[codes[row]] for row in firsts), step)


def require_there(columns: Collection[str], data: Any, **names: str | None) -> None:
    """Refuse data without the columns that arguments name."""
    for what, name in names.items():
        if name is not None and name not in columns:
            in_index = name in getattr(getattr(data, "index", None), "names", ())
            remedy = " It is in the index: pass data.reset_index()." if in_index else ""
            raise DataError(
                f"the data lacks the column {name!r} ({setting(what, name)}). Its columns are "
                f"{quoted(columns)}.{remedy}"
            )


def read_times(name: str, values: Any, *, in_parts: bool = False) -> FloatArray:
    """Return times as numbers: as they are, or in seconds if they are dates.

    Dates are counted from the first of them, so that no digits are lost; or from 1970 if they are read
    `in_parts`, and compared with others that are read later.
    """
    array = values.to_numpy() if is_series(values) else np.asarray(values)
    times = array.astype(np.float64) if array.dtype.kind in "iuf" else _dates(array, in_parts)
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        value = array[bad[0]]
        shown = "" if value is None or not str(value) else f" ({value!s:.40})"
        where = "" if len(times) == 1 else f" in row {bad[0] + 1}, counted from 1"
        raise DataError(
            f"column {name!r} has no time{where}{shown}: times are numbers or dates, and every row has one."
        )
    return times


def _dates(array: Any, in_parts: bool) -> FloatArray:
    """Return numbers or dates that are written as text, or dates, as numbers."""
    if array.dtype.kind != "M":
        # Dates among objects are not numbers, though pandas would count them in its own units.
        if not any(isinstance(value, np.datetime64) or hasattr(value, "year") for value in array):
            numbers = pd.to_numeric(pd.Series(array), errors="coerce").to_numpy(dtype=np.float64)
            if np.isfinite(numbers).any():
                return numbers
        array = np.array([v.to_timestamp() if isinstance(v, pd.Period) else v for v in array], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the format is guessed
        found = pd.to_datetime(pd.Series(array), errors="coerce", utc=True)
    first = pd.Timestamp(0, tz="UTC") if in_parts else found.min()
    return (found - first).dt.total_seconds().to_numpy(dtype=np.float64).astype(np.float64)


def is_dated(values: Any) -> bool:
    """Tell whether times are dates, which are counted in seconds."""
    array = values.to_numpy() if is_series(values) else np.asarray(values)
    return array.dtype.kind == "M" or (
        array.dtype.kind in "OUS" and not str(array[0]).replace(".", "", 1).lstrip("-").isdigit()
    )


def _series(name: str | None, columns: dict[str, Any]) -> tuple[IntArray, list[str]]:
    """Return the series of every row as a number, in the order in which they appear, and their names."""
    if name is None:
        first: Any = next(iter(columns.values()), ())
        return np.zeros(len(first), dtype=np.int64), [""]
    values = columns[name]
    array = np.asarray(values.to_list(), dtype=object) if is_series(values) else np.asarray(values)
    codes, distinct = pd.factorize(array, use_na_sentinel=True)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0)) + 1
        raise DataError(f"column {name!r} does not say which series row {row}, counted from 1, belongs to.")
    return codes.astype(np.int64), [as_text(value) for value in distinct]


def _not_ascending(values: Any, step: float, time: str, before: int, after: int, series: str) -> DataError:
    """Return the error for a row whose time is that of the row before it in its series, or earlier."""
    array = values.to_list() if is_series(values) else list(values)
    where = f" of series {series!r}" if series else ""
    apart = "" if series else f", or name the column that tells series apart ({setting('series', ...)})"
    if step == 0:
        return DataError(
            f"the time {array[after]!s}{where} in column {time!r} appears twice, in rows {before + 1} and "
            f"{after + 1}, counted from 1: keep one of them{apart}."
        )
    return DataError(
        f"the times{where} in column {time!r} are not sorted: {array[after]!s} in row {after + 1}, counted "
        f"from 1, comes after {array[before]!s} in row {before + 1}. Sort the rows by time{apart}."
    )


def _require_equal_steps(
    steps: FloatArray, follows: BoolArray, step: float, order: IntArray, time: str, is_dated: bool
) -> None:
    share = steps / step
    odd = np.flatnonzero(follows & (np.abs(share - 1.0) > EQUAL) & (share < GAP))
    if not len(odd):
        return
    row, unit = order[odd[0] + 1] + 1, " seconds" if is_dated else ""
    more = f", and {len(odd) - 1} more such steps" if len(odd) > 1 else ""
    raise DataError(
        f"the times in column {time!r} are not equally spaced: {steps[odd[0]]:.6g}{unit} before row {row}, "
        f"counted from 1, instead of {step:.6g}{unit}{more}. Resample the rows"
        f"{in_python(', for example with pandas', f': --every {step:.6g} of learn and forecast')}."
    )


def blocked_split(windows: IntArray, *, folds: object, validation: object, seed: Seed) -> Split:
    """Cut windows into blocks of time: one for every fold, and some to validate with.

    Which blocks are for validation is drawn; none is if `validation` is None. Windows at the beginning of a
    block that reach into the block before are in neither: no value of the data is then in two folds, nor in
    training and validation rows. Windows are given by their rows, windows × width, the last row first, in the
    order of time.
    """
    rows, width = windows.shape
    folds = whole("folds", folds, 2)
    if validation is None:
        validation = 0.0
    elif not is_number(validation) or not 0 < validation < 1:
        raise ArgumentError(
            f"{argument('validation')} must be a fraction between 0 and 1: rows that follow each other are "
            f"validated in blocks. Got {validation!r:.60} instead."
        )
    held_out = max(1, round(folds * validation / (1.0 - validation))) if validation else 0
    is_held_out = np.zeros(folds + held_out, dtype=np.bool_)
    is_held_out[generator(seed).permutation(folds + held_out)[:held_out]] = True
    shares = np.where(is_held_out, validation / max(held_out, 1), (1.0 - validation) / folds)
    cuts = np.rint(np.cumsum(shares) * rows).astype(np.int64)
    block = np.searchsorted(cuts[:-1], np.arange(rows), side="right")
    # The block of every row that is the last one of a window: no other row of the window may have another.
    owner = np.full(int(windows.max(initial=-1)) + 1, -1, dtype=np.int64)
    owner[windows[:, 0]] = block
    of_rows = owner[windows]
    kept = ((of_rows == block[:, None]) | (of_rows < 0)).all(axis=1)
    labels = np.where(is_held_out, -1, np.cumsum(~is_held_out) - 1)[block]
    training = np.flatnonzero(kept & (labels >= 0))
    test = np.flatnonzero(kept & (labels < 0))
    found = np.bincount(labels[training], minlength=folds)
    if len(test) < min(held_out, 1) or found.min() < 1:
        raise ArgumentError(
            f"{rows} rows are too few for {folds} folds and {held_out} blocks to validate with, each of "
            f"which loses its first {width - 1} rows: use fewer folds "
            f"({setting('folds', max(2, folds // 2))}), fewer lags, or more rows."
        )
    return Split(training, labels[training], test)
