"""What a monitor said about rows: shares and alarms above, the statistic of the drift test below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spbn.errors import ArgumentError, require_plot_packages
from spbn.plots.style import INK, LINES, MISSING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("share", "alarm", "blame", "drift", "drift_alarm", "drift_blame")
LOWEST_SHARE, LOWEST_DRIFT = 1e-7, 1e-7  # that are drawn: all below look the same
NAMED = 8  # alarms whose variables are named


def plot_verdicts(
    found: pd.DataFrame, axes: tuple[Axes, Axes] | None = None, *, alarm: float | None = None
) -> tuple[Axes, Axes]:
    """Draw what `Monitor.update` returned: shares and alarms above, the drift statistic below.

    Parameters
    ----------
    found
        The frame; its index is the horizontal axis if it holds numbers or times.
    alarm
        The level of an alarm, to be drawn as a line.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> from spbn.plots.verdicts import plot_verdicts
    >>> monitor = spbn.Monitor(network, data)
    >>> above, below = plot_verdicts(monitor.update(data), alarm=monitor.alarm)
    """
    require_plot_packages()
    absent = [name for name in COLUMNS if name not in found]
    if absent:
        raise ArgumentError(f"plot_verdicts takes what Monitor.update returned. It lacks {absent[0]!r}.")
    if axes is None:
        from matplotlib import pyplot as plt

        _, pair = plt.subplots(2, figsize=(7.5, 4.2), layout="constrained", sharex=True, height_ratios=(3, 2))
        axes = (pair[0], pair[1])
    above, below = axes
    places = _places(found)
    shares = np.maximum(found["share"].to_numpy(), LOWEST_SHARE)
    unusual = found["alarm"].to_numpy(dtype=np.bool_)
    above.plot(places[~unusual], shares[~unusual], ".", color="#9aa0a8", markersize=2.5)
    above.plot(places[unusual], shares[unusual], "o", color=MISSING, markersize=4)
    if alarm is not None:
        above.axhline(alarm, color=MISSING, linewidth=0.8, linestyle="--")
    _name(above, places[unusual], shares[unusual], found.loc[unusual, "blame"])
    above.set_yscale("log")
    above.set_ylabel("share as unusual")
    below.plot(places, np.maximum(found["drift"].to_numpy(), LOWEST_DRIFT), color=LINES[0], linewidth=1.0)
    below.axhline(1.0, color=MISSING, linewidth=0.8, linestyle="--")
    drifting = found["drift_alarm"].to_numpy(dtype=np.bool_)
    heights = np.maximum(found["drift"].to_numpy()[drifting], LOWEST_DRIFT)
    below.plot(places[drifting], heights, "o", color=MISSING, markersize=4)
    _name(below, places[drifting], heights, found.loc[drifting, "drift_blame"])
    below.set_yscale("log")
    below.set_ylabel("drift statistic")
    below.set_xlabel("row")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(x=0.01, y=0.15)
    return axes


def _places(found: pd.DataFrame) -> Any:
    """Return where rows are on the horizontal axis."""
    import pandas as pd

    index = found.index
    if pd.api.types.is_numeric_dtype(index) or isinstance(index, pd.DatetimeIndex):
        return index.to_numpy()
    return np.arange(len(found))


def _name(ax: Axes, places: Any, heights: Any, names: pd.Series[Any]) -> None:
    """Write the variables to blame beside the first alarm that is blamed on them."""
    named: set[str] = set()
    for place, height, text in zip(places, heights, names, strict=True):
        name = text.split(", ")[0]
        if name in named or len(named) == NAMED:
            continue
        named.add(name)
        ax.annotate(
            name, (place, height), (5, 3), textcoords="offset points", fontsize=8, color=INK, parse_math=False
        )
