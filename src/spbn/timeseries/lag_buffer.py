"""The rows before: what a dynamic network needs beside a new row, kept series by series."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError, DataError
from spbn.network import BayesianNetwork
from spbn.tables.columns import columns_of
from spbn.tables.lags import Runs, is_dated, read_times, runs_of
from spbn.tables.levels import as_text
from spbn.tables.reader import are_dicts, table_of, table_of_columns
from spbn.tables.table import Table
from spbn.timeseries.network import DynamicNetwork

MOST_SERIES = 10_000  # whose last rows are remembered
GAP = 1.5  # steps of time after which a series begins again
LATE = 0.5  # steps that must lie between rows


def networks_of(network: Any) -> tuple[DynamicNetwork | None, BayesianNetwork]:
    """Return a dynamic network, if it is one, and the network that judges rows."""
    if isinstance(network, DynamicNetwork):
        return network, network.transition
    if not isinstance(network, BayesianNetwork):
        raise ArgumentError(
            f"network must be a BayesianNetwork or a DynamicNetwork. Got {type(network).__name__}."
        )
    return None, network


def _shown(time: float, *, dated: bool) -> str:
    """Write a time; dates are seconds since 1970."""
    return str(np.datetime64(round(time), "s")).replace("T", " ") if dated else f"{time:.15g}"


def with_nulls(array: FloatArray) -> list[Any]:
    """Return nested lists in which a missing number is None."""
    return [[None if x != x else x for x in row] for row in array.tolist()]


@final
class Past:
    """The last rows of every series, as many as a dynamic network looks back on."""

    def __init__(self, network: DynamicNetwork) -> None:
        self._network = network
        #: By series: variables × rows, the last row last, and its time.
        self._last: OrderedDict[str, tuple[FloatArray, float | None]] = OrderedDict()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say which series a row belongs to, and when it was."""
        return tuple(name for name in (self._network.series, self._network.time) if name is not None)

    def copy(self) -> Past:
        """Return a copy, to try rows on."""
        other = Past(self._network)
        other._last = self._last.copy()
        return other

    def lagged(self, data: Any) -> Table:
        """Return the rows of a whole table that have a past, with it."""
        network = self._network
        table = table_of(data, network.variables)
        runs = runs_of(data, series=network.series, time=network.time, step=network.step)
        return self._beside(table, runs)

    def table(self, rows: Any) -> Table:
        """Return new rows with their past, NaN where there is none; they are the past of rows to come."""
        values = table_of(rows, self._network.variables)
        return self.follow(values.columns, self._read_keys(rows))

    def follow(self, columns: FloatArray, keys: Mapping[str, Any]) -> Table:
        """Do what `table` does with variables × rows and the columns of the `keys`."""
        network, count = self._network, columns.shape[1]
        if not count:
            nothing = np.empty((0, network.lags + 1), dtype=np.int64)
            return network._inputs_and_nodes(table_of_columns(network.variables, columns), nothing)
        series = [""] * count if network.series is None else [as_text(key) for key in keys[network.series]]
        times: list[float] | None = None
        dated = False
        if network.time is not None:
            times = read_times(network.time, keys[network.time], in_parts=True).tolist()
            dated = is_dated(keys[network.time])
        steps: list[FloatArray] = []
        before = self._last.copy()
        try:
            for k in range(count):
                time = None if times is None else times[k]
                steps.append(self._step(series[k], time, columns[:, k], dated=dated))
        except DataError:  # as if these rows had never come
            self._last = before
            raise
        window = np.stack(steps, axis=2)  # variables × (lags + 1) × rows
        return self._inputs(window)

    def _step(self, series: str, time: float | None, values: FloatArray, *, dated: bool) -> FloatArray:
        """Take one row; return it and those before it, variables × (lags + 1), the last one last."""
        lags = self._network.lags
        known, last = self._last.get(series, (np.empty((len(values), 0)), None))
        if time is not None and last is not None:
            step = self._network.step or 0.0
            if time - last < LATE * step or time <= last:
                where = f" of series {series!r}" if self._network.series else ""
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

    def _inputs(self, window: FloatArray) -> Table:
        """Return the columns of the transition network, from variables × (lags + 1) × rows."""
        count = window.shape[2]
        flat = np.ascontiguousarray(window.transpose(0, 2, 1)).reshape(len(window), -1)
        width = self._network.lags + 1
        ends = np.arange(1, count + 1) * width
        runs = Runs(np.arange(count * width), ends, tuple(map(str, range(count))))
        return self._beside(table_of_columns(self._network.variables, flat), runs)

    def _beside(self, table: Table, runs: Runs) -> Table:
        return self._network._inputs_and_nodes(table, runs.windows(self._network.lags + 1))

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

    def to_plain(self) -> list[Any]:
        """Describe the last rows in plain data."""
        return [[name, with_nulls(rows.T), time] for name, (rows, time) in self._last.items()]

    def restore(self, document: Any) -> None:
        """Read what `to_plain` wrote."""
        width = len(self._network.variables)
        if not isinstance(document, list) or len(document) > MOST_SERIES:
            raise ValueError("its last rows make no sense.")
        for name, rows, time in document:
            columns = np.array(rows, dtype=np.float64).reshape(-1, width).T
            is_time = time is None or (isinstance(time, int | float) and np.isfinite(time))
            if not isinstance(name, str) or np.isinf(columns).any() or not is_time:
                raise ValueError("its last rows make no sense.")
            self._last[name] = (np.ascontiguousarray(columns), None if time is None else float(time))
