"""Tables of rows that follow each other: how commands read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spbn.cli.inputs import busy
from spbn.cli.sources import Source
from spbn.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from spbn.timeseries.network import DynamicNetwork


@dataclass(frozen=True)
class Axis:
    """How rows follow each other, by the options of the command line."""

    lags: int
    series: str | None = None
    time: str | None = None
    every: float | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that are no variables."""
        return [name for name in (self.series, self.time) if name is not None]


def axis_of(lags: int | None, series: str | None, time: str | None, every: float | None) -> Axis | None:
    """Read the options of time; None if there are none."""
    if lags is None:
        given = {"--series": series, "--time": time, "--every": every}
        unused = [option for option, value in given.items() if value is not None]
        if unused:
            raise ArgumentError(f"{' and '.join(unused)} can only be used together with --lags.")
        return None
    if lags < 1:
        raise ArgumentError(f"--lags must be 1 or more. Got {lags}.")
    if every is not None and time is None:
        raise ArgumentError("--every needs the column with the times of rows: --time.")
    return Axis(lags, series, time, every)


def series_frame(
    data: Source,
    axis: Axis,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
) -> pd.DataFrame:
    """Read the rows to learn from, with the columns of series and time as they are written."""
    from spbn.cli.files import read_table

    with busy("reading the table"):
        chosen = None if columns is None else [name for name in columns if name not in axis.keys]
        frame = read_table(data, chosen, drop=drop, discrete=discrete, keys=axis.keys)
        return _resampled(frame, axis.series, axis.time, axis.every)


def series_of(
    network: DynamicNetwork, data: Source, *, every: float | None = None, with_holes: bool = False
) -> pd.DataFrame:
    """Read the rows that a dynamic network needs, with the columns of series and time."""
    from spbn.cli.files import read_table, require_complete

    keys = [name for name in (network.series, network.time) if name is not None]
    if every is not None and network.time is None:
        raise ArgumentError("--every is for models that were learned with --time.")
    with busy("reading the table"):
        frame = read_table(data, variables=network.variables, keys=keys)
        if not with_holes:
            complete = frame.drop(columns=keys)
            require_complete(data, complete, "Fill what is missing, or leave such rows out.")
        return _resampled(frame, network.series, network.time, every)


def names_with_lags(names: Sequence[str], lags: int) -> list[str]:
    """Return the names of columns now and before."""
    from spbn.tables.lags import lag_name

    return [lag_name(name, lag) for lag in range(lags + 1) for name in names]


def _resampled(
    frame: pd.DataFrame, series: str | None, time: str | None, every: float | None
) -> pd.DataFrame:
    """Return rows at equal steps of time, if that is asked for."""
    import pandas as pd

    from spbn.cli.resample import resample

    if every is None or time is None:
        return frame
    if pd.to_numeric(frame[time], errors="coerce").notna().all():
        frame[time] = pd.to_numeric(frame[time])
    return resample(frame, time=time, every=every, series=series)
