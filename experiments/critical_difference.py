"""Critical difference diagrams (Demšar, 2006): mean ranks on a line, with bars over what does not differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.statistics import Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, BAR = "#22262b", "#7a8088", "#c0392b"
FONT_SIZE = 9
AXIS_INCHES, LINE_INCHES = 4.2, 0.23
# Heights, in lines of text.
ABOVE, FIRST_BAR, BAR_GAP = 1.6, 0.6, 0.55


def plot_critical_difference(
    ranks: Mapping[str, float], adjusted: Mapping[Pair, float], alpha: float = 0.05
) -> Figure:
    """Draw the mean ranks, best on the left; a bar joins algorithms that do not differ.

    Parameters
    ----------
    ranks
        Mean rank of every algorithm, 1 the best.
    adjusted
        Adjusted p-value of every pair, in either order.
    """
    from matplotlib import pyplot as plt

    ordered = sorted(ranks, key=lambda name: ranks[name])
    groups = alike(ranks, adjusted, alpha)
    left = ordered[: math.ceil(len(ordered) / 2)]
    right = ordered[len(left) :][::-1]
    first_label = FIRST_BAR + BAR_GAP * len(groups) + 0.5
    depth = first_label + len(left)

    margins = [0.3 + max(map(_label_inches, names), default=0.0) for names in (left, right)]
    width, height = AXIS_INCHES + sum(margins), LINE_INCHES * (depth + ABOVE)
    figure = plt.figure(figsize=(width, height))
    ax = figure.add_axes((margins[0] / width, 0.0, AXIS_INCHES / width, 1.0))
    low, high = _axis_range(ranks)
    _draw_axis(ax, low, high)
    margin = 0.05 * (high - low)
    for names, edge, side in [(left, low - margin, "right"), (right, high + margin, "left")]:
        for k, name in enumerate(names):
            _draw_label(ax, name, ranks[name], edge, first_label + k, side)
    for k, group in enumerate(groups):
        level = FIRST_BAR + BAR_GAP * k
        reach = 0.006 * (high - low)
        ends = [min(ranks[name] for name in group) - reach, max(ranks[name] for name in group) + reach]
        ax.plot(ends, [level, level], color=BAR, linewidth=3, solid_capstyle="butt", zorder=3, clip_on=False)
    ax.set_ylim(depth, -ABOVE)
    ax.set_xlim(low, high)
    ax.set_axis_off()
    return figure


def alike(
    ranks: Mapping[str, float], adjusted: Mapping[Pair, float], alpha: float = 0.05
) -> list[tuple[str, ...]]:
    """Return the largest runs of neighbours in rank in which no two differ."""
    ordered = sorted(ranks, key=lambda name: ranks[name])

    def differ(a: str, b: str) -> bool:
        return (adjusted[a, b] if (a, b) in adjusted else adjusted[b, a]) < alpha

    groups: list[tuple[str, ...]] = []
    covered = 0
    for start in range(len(ordered)):
        end = start + 1
        while end < len(ordered) and not any(differ(ordered[end], other) for other in ordered[start:end]):
            end += 1
        if end > max(covered, start + 1):
            groups.append(tuple(ordered[start:end]))
            covered = end
    return groups


def _axis_range(ranks: Mapping[str, float]) -> tuple[int, int]:
    low, high = math.floor(min(ranks.values())), math.ceil(max(ranks.values()))
    return low, max(high, low + 1)


def _draw_axis(ax: Axes, low: int, high: int) -> None:
    ax.plot([low, high], [0, 0], color=INK, linewidth=1.0, clip_on=False)
    for rank in range(low, high + 1):
        ax.plot([rank, rank], [0, -0.3], color=INK, linewidth=1.0, clip_on=False)
        ax.text(rank, -0.45, str(rank), ha="center", va="bottom", fontsize=FONT_SIZE, color=INK)
    for rank in range(low, high):
        ax.plot([rank + 0.5, rank + 0.5], [0, -0.18], color=INK, linewidth=0.7)


def _draw_label(ax: Axes, name: str, rank: float, edge: float, height: float, side: str) -> None:
    ax.plot([rank, rank, edge], [0, height, height], color=FAINT, linewidth=0.8, zorder=1, clip_on=False)
    text = f" {rank:.2f}  {name}" if side == "left" else f"{name}  {rank:.2f} "
    ax.text(edge, height, text, ha=side, va="center", fontsize=FONT_SIZE, color=INK, parse_math=False)


def _label_inches(name: str) -> float:
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), f" 10.00  {name}", size=FONT_SIZE).get_extents().width) / 72
