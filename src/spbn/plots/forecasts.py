"""Pictures of forecasts: fan charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spbn._base import display
from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError, quoted, require_plot_packages
from spbn.plots.layout import shortened
from spbn.plots.pictures import save_figure
from spbn.plots.style import INK, LINES, line_colours
from spbn.timeseries.forecast import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAN = "#1f6fb2"
BANDS = (0.9, 0.5)  # shares of the paths, the widest first
SHOWN_PATHS = 3
MOST_LEVELS = 8
LONGEST_TITLE = 48


@display.plot.register(Forecast)
def plot_forecast(
    forecast: Forecast, variables: Sequence[str] | None = None, *, series: str | None = None
) -> Figure:
    """Draw a panel for every variable: the history, then the median, 50 % and 90 % of the paths.

    Some paths are drawn as thin lines: unlike the median, they are as rough as what is to be expected. A
    discrete variable has the probabilities of its levels, stacked.
    """
    require_plot_packages()
    from matplotlib import pyplot as plt

    known = {variable.name: variable for variable in forecast.variables}
    chosen = list(known) if variables is None else list(variables)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise ArgumentError(
            f"variables must name variables of the forecast, {quoted(known)}. "
            f"Got {quoted(unknown) or 'none'}."
        )
    size = (7.2, 2.1 * len(chosen) + 0.5)
    figure, axes = plt.subplots(
        len(chosen), 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )
    history = forecast.history(series)
    first_fan = next((name for name in chosen if not known[name].is_discrete), None)
    for ax, name in zip(axes[:, 0], chosen, strict=True):
        place = list(known).index(name)
        before = history[place, -max(2 * forecast.steps, 20) :]
        paths = forecast.of(name, series=series)
        if known[name].is_discrete:
            _draw_levels(ax, before, paths, known[name].levels)
        else:
            _draw_fan(ax, before, paths, explained=name == first_fan)
        ax.axvline(0, color=INK, linewidth=0.6, linestyle=(0, (3, 3)))
        ax.set_title(shortened(name, LONGEST_TITLE), fontsize=9, loc="left", parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    axes[-1, 0].set_xlabel("steps after the last row of the history", fontsize=8)
    return figure


def save_forecast(forecast: Forecast, path: Path, *, series: str | None = None) -> None:
    """Write a picture of all variables; the ending of the file name says which kind."""
    save_figure(lambda: plot_forecast(forecast, series=series), path)


def _draw_fan(ax: Axes, before: FloatArray, paths: FloatArray, *, explained: bool) -> None:
    last = before[-1]
    steps = np.arange(paths.shape[1] + 1)
    for share in BANDS:
        low, high = np.quantile(paths, [0.5 - share / 2, 0.5 + share / 2], axis=0)
        label = f"{100 * share:.0f} % of the paths"
        lower, upper = np.append(last, low), np.append(last, high)
        ax.fill_between(steps, lower, upper, color=FAN, alpha=0.22, linewidth=0, label=label)
    for path in paths[:SHOWN_PATHS]:
        ax.plot(steps, np.concatenate([[last], path]), color=FAN, linewidth=0.5, alpha=0.8)
    median = np.concatenate([[last], np.median(paths, axis=0)])
    ax.plot(steps, median, color=FAN, linewidth=1.6, label="median")
    ax.plot(np.arange(1 - len(before), 1), before, color=INK, linewidth=1.0, label="history")
    if explained:  # once is enough
        ax.legend(
            loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=8, frameon=False, handlelength=1.4
        )


def _draw_levels(ax: Axes, before: FloatArray, paths: FloatArray, levels: Sequence[str]) -> None:
    counts = np.stack([(paths == code).mean(axis=0) for code in range(len(levels))])
    past = np.stack([before == code for code in range(len(levels))]).astype(np.float64)
    shares = np.concatenate([past, counts], axis=1)
    shown = shares[:MOST_LEVELS]
    if len(levels) > MOST_LEVELS:
        shown = np.concatenate([shown[:-1], shares[MOST_LEVELS - 1 :].sum(axis=0)[None]])
    names = [*levels[: MOST_LEVELS - 1], "others"] if len(levels) > MOST_LEVELS else list(levels)
    steps = np.arange(1 - len(before), paths.shape[1] + 1)
    colours = line_colours(len(shown))
    alphas = [0.75 if k < len(LINES) else 0.4 for k in range(len(shown))]
    bottom = np.zeros(shown.shape[1])
    for share, name, colour, alpha in zip(shown, names, colours, alphas, strict=True):
        ax.bar(
            steps,
            share,
            1.0,
            bottom=bottom,
            color=colour,
            alpha=alpha,
            linewidth=0,
            label=shortened(name, 18),
        )
        bottom += share
    ax.set_ylim(0, 1)
    ax.set_ylabel("probability", fontsize=8)
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=MOST_LEVELS,
        fontsize=8,
        frameon=False,
        handlelength=1,
    )
