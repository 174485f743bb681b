"""Rows at equal steps of time, interpolated between those of a table: `--every`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError, DataError, argument
from spbn.tables.columns import columns_of
from spbn.tables.lags import GAP, read_times, require_there, runs_of


def resample(frame: pd.DataFrame, *, time: str, every: float, series: str | None = None) -> pd.DataFrame:
    """Return rows at equal time steps; `every` is in seconds if times are dates.

    Numbers are interpolated linearly; anything else takes the value of the last row before. Gaps are not
    filled: rows that are missing in the data are missing in the result as well.
    """
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
    grid = at[0] + every * np.arange(int(np.floor((at[-1] - at[0]) / every + 1e-9)) + 1)
    right = np.clip(np.searchsorted(at, grid - 1e-9 * every), 0, len(at) - 1)
    left = np.clip(np.searchsorted(at, grid + 1e-9 * every, side="right") - 1, 0, len(at) - 1)
    usual = float(np.median(np.diff(at))) if len(at) > 1 else every
    bridged = at[right] - at[left] <= GAP * max(every, usual)
    grid, left = grid[bridged], left[bridged]
    out: dict[str, Any] = {}
    for name, column in rows.items():
        if name == time:
            is_number = pd.api.types.is_numeric_dtype(column)
            out[time] = grid if is_number else _dates(column, grid - at[0])
        elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            out[str(name)] = np.interp(grid, at, column.to_numpy(dtype=np.float64))
        else:
            out[str(name)] = column.iloc[left].to_numpy()
    return pd.DataFrame(out)


def _dates(column: pd.Series[Any], seconds: FloatArray) -> Any:
    """Return dates that are so many seconds after the first of a column."""
    return pd.to_datetime(column.iloc[0]) + pd.to_timedelta(seconds, unit="s")
