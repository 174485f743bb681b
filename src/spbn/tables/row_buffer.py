"""New rows as they come: read one by one or in batches, with as many rows before them as they depend on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol, Self, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import DataError
from spbn.tables.columns import columns_of
from spbn.tables.lags import is_dated, read_times, runs_of
from spbn.tables.levels import as_text
from spbn.tables.rows import RowParser, are_dicts
from spbn.tables.table import Table, Variable

MOST_SERIES = 10_000  # whose last rows are remembered
GAP = 1.5  # steps of time after which a series begins again
LATE = 0.5  # steps that must lie between rows


class RowBuffer(Protocol):
    """Reads new rows, and remembers of them what it takes to read the next."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns besides the variables that rows must have: those of the series and of the time."""

    def history(self, data: Any) -> Any:
        """Return the rows of a whole table that can be scored; they are not remembered."""

    def table(self, rows: Any) -> Table:
        """Return new rows, in which NaN is missing, together with all that they depend on."""

    def append(self, columns: FloatArray, keys: Mapping[str, Any]) -> Table:
        """Do what `table` does with variables × rows and the columns of the `keys`."""

    def copy(self) -> Self:
        """Return a copy, to try rows on."""

    def to_record(self) -> list[Any] | None:
        """Describe what is remembered in plain data."""

    def restore(self, record: Any) -> None:
        """Read what `to_record` wrote; anything else is a ValueError."""


@final
class IndependentRows:
    """Reads new rows that do not depend on those before them: there is nothing to remember."""

    keys: tuple[str, ...] = ()

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self._parser = RowParser(variables, missing="keep")

    def history(self, data: Any) -> Any:
        """Return the rows as they are."""
        return data

    def table(self, rows: Any) -> Table:
        """Return new rows, in whatever form a `RowParser` takes, with NaN where a value is missing."""
        return self._parser.table(rows)

    def append(self, columns: FloatArray, keys: Mapping[str, Any]) -> Table:
        """Return variables × rows as a table."""
        return Table.of(self._variables, columns)

    def copy(self) -> IndependentRows:
        """Return itself, because it does not change."""
        return self

    def to_record(self) -> None:
        """Return nothing."""

    def restore(self, record: Any) -> None:
        """Do nothing."""


@final
class LagBuffer:
    """The last rows of every series, as many as rows depend on.

    Parameters
    ----------
    variables
        The variables that rows have.
    lags
        How many earlier rows a row may depend on.
    series, time, step
        The columns that say which series a row belongs to and when it was, if there are any, and the interval
        between times.
    join
        Puts rows together with those before them: a function of a table and of the numbers of rows, windows
        × (lags + 1), the last row first.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        lags: int,
        *,
        series: str | None,
        time: str | None,
        step: float | None,
        join: Callable[[Table, IntArray], Table],
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

    def copy(self) -> LagBuffer:
        """Return a copy, to try rows on."""
        other = copy(self)
        other._last = self._last.copy()
        return other

    def history(self, data: Any) -> Table:
        """Return the rows of a whole table that have a past, with it; they are not remembered."""
        table = self._parser.table(data)
        runs = runs_of(data, series=self._series, time=self._time, step=self._step)
        return self._join(table, runs.windows(self._lags + 1))

    def table(self, rows: Any) -> Table:
        """Return new rows with their past, NaN where there is none; they are the past of rows to come."""
        values = self._parser.table(rows)
        return self.append(values.columns, self._read_keys(rows))

    def append(self, columns: FloatArray, keys: Mapping[str, Any]) -> Table:
        """Do what `table` does with variables × rows and the columns of the `keys`."""
        count = columns.shape[1]
        if not count:
            nothing = np.empty((0, self._lags + 1), dtype=np.int64)
            return self._join(Table.of(self._variables, columns), nothing)
        series = [""] * count if self._series is None else [as_text(key) for key in keys[self._series]]
        times: list[float] | None = None
        dated = False
        if self._time is not None:
            times = read_times(self._time, keys[self._time], in_parts=True).tolist()
            dated = is_dated(keys[self._time])
        steps: list[FloatArray] = []
        before = self._last.copy()
        try:
            for k in range(count):
                time = None if times is None else times[k]
                steps.append(self._append_row(series[k], time, columns[:, k], dated=dated))
        except DataError:  # as if these rows had never come
            self._last = before
            raise
        width = self._lags + 1
        flat = np.stack(steps, axis=1).reshape(len(columns), -1)  # every row after those before it
        windows = np.arange(count)[:, None] * width + np.arange(width)[::-1]
        return self._join(Table.of(self._variables, flat), windows)

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
        """Return the columns of the series and of the time."""
        if not self.keys:
            return {}
        if isinstance(rows, np.ndarray):
            raise DataError(f"rows must be dicts or a data frame, with {' and '.join(map(repr, self.keys))}.")
        if isinstance(rows, Mapping):
            columns: dict[str, Any] = {
                key: value if hasattr(value, "__len__") and not isinstance(value, str) else [value]
                for key, value in rows.items()
                if key in self.keys
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

    def to_record(self) -> list[Any]:
        """Describe the last rows in plain data."""
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
