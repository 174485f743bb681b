"""Rows as they come in production, one by one or in batches, with as many before them as they depend on.

Dicts and arrays are read without data frames.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from numbers import Real
from typing import Any, Literal, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import DataError, quoted
from spbn.tables.columns import as_array, as_text, columns_of, level_of
from spbn.tables.lags import GAP, is_dated, read_times, runs_of
from spbn.tables.reader import as_table, missing_message, require_equal_lengths
from spbn.tables.readings import read_columns, source_of
from spbn.tables.table import Table, Variable

HOLES = (
    "complete the rows, or score them by what is there: network.logpdf(rows, missing='integrate') of a "
    "BayesianNetwork"
)
MOST_SERIES = 10_000  # whose last rows are remembered
LATE = 0.5  # steps that must lie between rows


@final
class RowParser:
    """Reads rows of some variables, again and again.

    Rows are a dict with a value for every variable; a list of such dicts; a dict with a column for every
    variable; an array of rows × variables, or of one row, in which discrete variables are the positions of
    their levels; a row of a data frame (a Series); or a data frame. Other values and columns are ignored.
    They must be complete, or values that are None or NaN are missing, if ``missing="keep"``.
    """

    def __init__(self, variables: Sequence[Variable], *, missing: Literal["error", "keep"] = "error") -> None:
        self._variables = tuple(variables)
        self._names = tuple(variable.name for variable in variables)
        self._keeps = missing == "keep"
        self._readings = {v.name: v.reading for v in variables if v.reading is not None}
        codes = [{level: float(code) for code, level in enumerate(v.levels)} or None for v in variables]
        #: Every variable with its name and the codes of its levels; None if it is continuous.
        self._each = list(zip(self._names, codes, variables, strict=True))

    def columns(self, rows: Any) -> FloatArray:
        """Return variables × rows, discrete variables as the positions of their levels."""
        rows = self._read(as_dict(rows)) if self._readings else as_dict(rows)
        if isinstance(rows, Mapping) and not any(is_column(rows.get(name)) for name in self._names):
            found = self._row(rows)[:, None]
        elif are_dicts(rows):
            found = self._listed(rows)
        elif isinstance(rows, np.ndarray) and (rows.dtype.names is None or self._keeps):
            found = columns_of_array(rows, self._variables)
        elif self._keeps:
            return as_table(rows, variables=self._variables, missing="keep").columns
        elif isinstance(rows, Mapping):
            self._require_names(rows)
            columns = {v.name: self._column(v, rows[v.name]) for v in self._variables}
            require_equal_lengths({name: len(column) for name, column in columns.items()})
            found = np.stack(list(columns.values()))
        elif isinstance(rows, np.ndarray):
            return self.columns({name: np.atleast_1d(rows[name]) for name in rows.dtype.names or ()})
        elif isinstance(rows, list | tuple):
            try:
                found = np.asarray(rows)
            except ValueError:  # not all of the same length
                raise DataError(
                    f"a list must hold dicts, or rows of {len(self._names)} numbers each."
                ) from None
            found = columns_of_array(found, self._variables)
        else:
            return as_table(rows, variables=self._variables, min_rows=0).columns
        if not self._keeps:
            finite = np.isfinite(found)
            if not finite.all():
                raise DataError(f"{missing_message(Table(self._names, found), finite)}: {HOLES}.")
        return found

    def _read(self, rows: Any) -> Any:
        """Read rows that are dicts, or a dict of columns, as the variables say."""
        if are_dicts(rows):
            return [self._read(row) for row in rows]
        if not isinstance(rows, Mapping):
            return rows  # numbers, or a frame, which `as_table` reads
        sources = {name: source_of(reading, name, rows) for name, reading in self._readings.items()}
        if any(is_column(rows.get(source)) for source in sources.values()):
            return read_columns(rows, self._readings, as_array)
        found = dict(rows)
        for name, source in sources.items():
            if source is not None:
                found[name] = self._readings[name].value(rows[source])
        return found

    def _row(self, row: Mapping[Any, Any]) -> FloatArray:
        values = []
        try:
            for name, codes, variable in self._each:
                value = row[name]
                if codes is None:
                    values.append(value if isinstance(value, float) else number_of(variable, value))
                else:
                    code = codes.get(value) if isinstance(value, str) else None
                    values.append(number_of(variable, value) if code is None else code)
        except KeyError:
            self._require_names(row)
            raise
        found = np.array(values, dtype=np.float64)
        if self._keeps and np.isinf(found).any():
            for variable, value in zip(self._variables, values, strict=True):
                if not variable.levels:
                    number_of(variable, value)  # refuses what is infinite
        return found

    def _listed(self, rows: Sequence[Mapping[Any, Any]]) -> FloatArray:
        out = np.empty((len(rows), len(self._names)))
        for place, row in enumerate(rows):
            try:
                out[place] = self._row(row)
            except DataError as error:
                if self._keeps:
                    raise
                raise DataError(f"row {place + 1}, counted from 1: {error}") from None
        return np.ascontiguousarray(out.T)

    def _column(self, variable: Variable, values: Any) -> FloatArray:
        # Among text, NumPy would make text of NaN.
        array = np.asarray(values, dtype=object if variable.levels else None)
        if array.ndim != 1:
            raise DataError(
                f"{variable.name!r} must be a column, as others are: a list or an array of one dimension. "
                f"Got {values!r:.60}."
            )
        if not variable.levels and array.dtype.kind in "biuf":
            return array.astype(np.float64)
        return np.array([number_of(variable, value) for value in array.tolist()])

    def _require_names(self, data: Mapping[Any, Any]) -> None:
        absent = [name for name in self._names if name not in data]
        if absent and self._keeps:
            raise DataError(f"the row has no value for {quoted(absent)}: give None where a value is unknown.")
        if absent:
            raise DataError(
                f"there is no value for {quoted(absent)}. The variables are {quoted(self._names)}."
            )


def as_dict(rows: Any) -> Any:
    """Return a row of a data frame, which pandas gives as a Series, as a dict; other rows as they are."""
    is_row = hasattr(rows, "to_dict") and hasattr(rows, "index") and not hasattr(rows, "columns")
    return rows.to_dict() if is_row else rows


def number_of(variable: Variable, value: Any) -> float:
    """Return a value as a number, or as the place of a level; NaN if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return float("nan")
    if variable.levels:
        level = level_of(value, variable.levels)
        try:
            return float(variable.levels.index(level))
        except ValueError:
            raise DataError(
                f"{variable.name!r} has the level {level!r:.60}, which is unknown. Its levels are "
                f"{quoted(variable.levels)}."
            ) from None
    if not isinstance(value, Real):
        raise DataError(f"{variable.name!r} must be a number. Got {value!r:.60}.")
    number = float(value)
    if number in (np.inf, -np.inf):
        raise DataError(f"{variable.name!r} is infinite: give None if its value is unknown.")
    return number


def columns_of_array(rows: Any, variables: Sequence[Variable]) -> FloatArray:
    """Return variables × rows of an array of rows, or of one; NaN is missing."""
    if rows.dtype.kind not in "biuf":
        raise DataError(f"an array of rows must hold numbers. Got {rows.dtype}: pass a dict or a data frame.")
    values = np.atleast_2d(rows.astype(np.float64))
    if values.ndim != 2 or values.shape[1] != len(variables):
        names = quoted(variable.name for variable in variables)
        raise DataError(
            f"an array must have one value for each of {names}, or rows of these. Got shape {rows.shape}."
        )
    if np.isinf(values).any():
        raise DataError("an array of rows must not hold infinite values: NaN is a missing one.")
    for variable, column in zip(variables, values.T, strict=True):
        if variable.levels:
            there = column[~np.isnan(column)]
            if not ((there >= 0) & (there < len(variable.levels)) & (there == np.floor(there))).all():
                raise DataError(
                    f"in an array, {variable.name!r} is the place of a level, from 0 to "
                    f"{len(variable.levels) - 1}. Got {there.min():g} to {there.max():g}."
                )
    return np.ascontiguousarray(values.T)


def is_column(value: Any) -> bool:
    """Tell columns from single values."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def are_dicts(rows: Any) -> bool:
    """Tell whether rows are a list of dicts."""
    return isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows)


@final
class RowBuffer:
    """Reads new rows, and remembers the last ones of every series, as many as rows depend on.

    `variables`: the variables that rows have.
    `lags`: how many earlier rows a row may depend on. 0: rows do not depend on each other, and nothing is
    remembered.
    `series`, `time`, `step`: the columns that say which series a row belongs to and when it was, if there are
    any, and the interval between times.
    `join`: puts rows together with those before them: a function of a table, of the numbers of rows,
    windows × (lags + 1), the last row first, and of the times of all rows, if they have any.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        lags: int = 0,
        *,
        series: str | None = None,
        time: str | None = None,
        step: float | None = None,
        join: Callable[[Table, IntArray, FloatArray | None], Table] = lambda table, windows, times: table,
    ) -> None:
        self._variables, self._lags = tuple(variables), lags
        self._series, self._time, self._step = series, time, step
        self._join = join
        self._parser = RowParser(variables, missing="keep")
        #: By series: variables × rows, the last row last, and its time.
        self._last: OrderedDict[str, tuple[FloatArray, float | None]] = OrderedDict()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say which series a row belongs to, and when it was."""
        return tuple(name for name in (self._series, self._time) if name is not None)

    def copy(self) -> RowBuffer:
        """Return a copy, to try rows on."""
        other = copy(self)
        other._last = self._last.copy()
        return other

    def history(self, data: Any) -> Any:
        """Return the rows of a whole table that have a past, with it; they are not remembered."""
        if not self._lags:
            return data
        table = Table.of(self._variables, self._parser.columns(data))
        runs = runs_of(data, series=self._series, time=self._time, step=self._step)
        times = None
        if self._time is not None:
            times = read_times(self._time, columns_of(data)[self._time], in_parts=True)
        return self._join(table, runs.windows(self._lags + 1), times)

    def table(self, rows: Any) -> Table:
        """Return new rows with their past, NaN where there is none; they are the past of rows to come."""
        return self.append(self._parser.columns(rows), self._read_keys(rows))

    def append(self, columns: FloatArray, keys: Mapping[str, Any]) -> Table:
        """Do what `table` does with variables × rows and the columns of the `keys`."""
        count, width = columns.shape[1], self._lags + 1
        if not count or not self._lags:
            return self._join(
                Table.of(self._variables, columns), np.empty((0, width), dtype=np.int64), np.empty(0)
            )
        series = [""] * count if self._series is None else [as_text(key) for key in keys[self._series]]
        times: list[float | None] = [None] * count
        dated = False
        if self._time is not None:
            times = read_times(self._time, keys[self._time], in_parts=True).tolist()
            dated = is_dated(keys[self._time])
        before = self._last.copy()
        try:
            steps = [self._append_row(series[k], times[k], columns[:, k], dated=dated) for k in range(count)]
        except DataError:  # as if these rows had never come
            self._last = before
            raise
        flat = np.stack(steps, axis=1).reshape(len(columns), -1)  # every row after those before it
        windows = np.arange(count)[:, None] * width + np.arange(width)[::-1]
        of_rows = None if self._time is None else np.repeat(np.array(times, dtype=np.float64), width)
        return self._join(Table.of(self._variables, flat), windows, of_rows)

    def _append_row(self, series: str, time: float | None, values: FloatArray, *, dated: bool) -> FloatArray:
        """Take one row; return it and those before it, variables × (lags + 1), the last one last."""
        lags = self._lags
        known, last = self._last.get(series, (np.empty((len(values), 0)), None))
        if time is not None and last is not None:
            step = self._step or 0.0
            if time - last < LATE * step or time <= last:
                where = f" of series {series!r}" if self._series else ""
                unit = " seconds" if dated else ""
                raise DataError(
                    f"the times{where} must ascend in steps of {step:g}{unit}: a row at "
                    f"{_shown(last, dated=dated)} is followed by one at {_shown(time, dated=dated)}."
                )
            if time - last >= GAP * step > 0.0:
                known = known[:, :0]
        rows = np.concatenate([known, values[:, None]], axis=1)[:, -(lags + 1) :]
        self._last[series] = (rows[:, -lags:], time)
        self._last.move_to_end(series)
        if len(self._last) > MOST_SERIES:
            self._last.popitem(last=False)
        missing = np.full((len(values), lags + 1 - rows.shape[1]), np.nan)
        return np.concatenate([missing, rows], axis=1)

    def _read_keys(self, rows: Any) -> Mapping[str, Any]:
        if not self.keys:
            return {}
        if isinstance(rows, np.ndarray):
            raise DataError(f"rows must be dicts or a data frame, with {' and '.join(map(repr, self.keys))}.")
        if isinstance(rows, Mapping):
            columns: dict[str, Any] = {
                key: value if is_column(value) else [value] for key, value in rows.items() if key in self.keys
            }
        elif are_dicts(rows):
            columns = {
                key: [row[key] for row in rows] for key in self.keys if all(key in row for row in rows)
            }
        else:
            columns = columns_of(rows)
        absent = [key for key in self.keys if key not in columns]
        if absent:
            raise DataError(f"the rows have no {' and no '.join(map(repr, absent))}.")
        return columns

    def to_record(self) -> list[Any] | None:
        if not self._lags:
            return None
        return [[name, with_nulls(rows.T), time] for name, (rows, time) in self._last.items()]

    def restore(self, record: Any) -> None:
        """Read what `to_record` wrote; anything else is a ValueError."""
        width = len(self._variables)
        if not isinstance(record, list) or len(record) > MOST_SERIES:
            raise ValueError("its last rows make no sense.")
        for name, rows, time in record:
            columns = np.array(rows, dtype=np.float64).reshape(-1, width).T
            is_time = time is None or (isinstance(time, int | float) and np.isfinite(time))
            if not isinstance(name, str) or np.isinf(columns).any() or not is_time:
                raise ValueError("its last rows make no sense.")
            self._last[name] = (np.ascontiguousarray(columns), None if time is None else float(time))


def with_nulls(array: FloatArray) -> list[Any]:
    """Return nested lists in which a missing number is None."""
    return [[None if x != x else x for x in row] for row in array.tolist()]


def _shown(time: float, *, dated: bool) -> str:
    """Write a time; dates are seconds since 1970."""
    return str(np.datetime64(round(time), "s")).replace("T", " ") if dated else f"{time:.15g}"
