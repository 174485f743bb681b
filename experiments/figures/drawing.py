"""What all figures have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.critical_difference import plot_critical_difference
from experiments.statistics import bergmann_hommel, mean_ranks, pairwise_pvalues

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = {"svg.hashsalt": "spbn", "svg.fonttype": "none", "font.size": 9}
COLOURS = ("#1f6fb2", "#d68910", "#2e8b57", "#8e44ad", "#c0392b", "#7a8088", "#16a2b8", "#b8860b")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, on white so that it can be read on any background."""
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None}, facecolor="white", dpi=144)
    plt.close(figure)


def grouped_bars(
    ax: Axes, groups: Sequence[str], bars: Mapping[str, Sequence[float]], *, colours: Mapping[str, str]
) -> None:
    """Draw bars side by side, one colour each, for every group."""
    width = 0.8 / len(bars)
    for k, (name, heights) in enumerate(bars.items()):
        places = [g - 0.4 + (k + 0.5) * width for g in range(len(groups))]
        ax.bar(places, heights, width, label=name, color=colours[name], linewidth=0)
    ax.set_xticks(range(len(groups)), groups)
    ax.set_xlim(-0.6, len(groups) - 0.4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="x", length=0)


def save_critical_difference(results: pd.DataFrame, path: Path) -> None:
    """Draw the mean ranks, with bars over what Bergmann and Hommel's procedure cannot tell apart at 5 %.

    Parameters
    ----------
    results
        One row per data set, one column per algorithm; greater is better.
    """
    from matplotlib import pyplot as plt

    ranks = mean_ranks(results)
    adjusted = bergmann_hommel(pairwise_pvalues(ranks, len(results)))
    with plt.rc_context(STYLE):
        figure = plot_critical_difference(ranks, adjusted, alpha=0.05)
    save(figure, path)
