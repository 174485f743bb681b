"""The parts of a drawn graph: nodes, arcs, the frame around them, and a legend of the lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spbn.errors import GraphError
from spbn.graphs.dag import Arc
from spbn.nodes.base import NodeType
from spbn.plots.layout import Layout, node_width
from spbn.plots.style import ADDED, COMMON, INK, MISSING, REVERSED
from spbn.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How a line is drawn, in the words of matplotlib.
Line = Literal["-", "--"] | tuple[float, tuple[float, float]]

THIN, THICK = 0.6, 2.4  # widths of arcs, by their strength
BESIDE = 2.4  # characters between an arc and its strength
OPEN: Line = (0, (2.2, 1.6))  # dashes of arcs whose direction is open
NARROWEST, NARROWEST_WITH_LEGEND = 27.0, 42.0  # least width of a graph, in characters


def graph_inches(ax: Axes) -> tuple[float, float]:
    """Return the size that a figure needs for the graph in `ax` to be readable."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return 0.085 * (right - left) + 0.2, 0.8 * (bottom - top) + 0.2


def arc_styles(found: Structure, other: Structure) -> dict[Arc, tuple[str, Line]]:
    """Return the colour and line of every arc of two structures, which say which of the two has it."""
    if set(found.nodes) != set(other.nodes) or set(found.inputs) != set(other.inputs):
        raise GraphError("structures can be compared only if they have the same nodes.")
    styles: dict[Arc, tuple[str, Line]] = {}
    for a, b in found.arcs:
        styles[a, b] = (COMMON if (a, b) in other.arcs else REVERSED if (b, a) in other.arcs else ADDED, "-")
    for a, b in other.arcs:
        if (a, b) not in found.arcs and (b, a) not in found.arcs:
            styles[a, b] = (MISSING, "--")
    return styles


def draw_node(ax: Axes, label: str, x: float, y: float, node_type: NodeType, outline: str) -> None:
    """Draw a node as an ellipse in the colour of its type."""
    from matplotlib.patches import Ellipse

    fill = node_type.colour
    width = 2.0 if outline != INK else 1.0
    ax.add_patch(
        Ellipse((x, y), node_width(label), 0.5, facecolor=fill, edgecolor=outline, linewidth=width, zorder=3)
    )
    ax.text(x, y, label, parse_math=False, ha="center", va="center", fontsize=9, color=INK, zorder=4)


def draw_input(ax: Axes, label: str, x: float, y: float) -> None:
    """Draw an input, which has no density, as an empty ellipse with a dashed outline."""
    from matplotlib.patches import Ellipse

    outline: dict[str, Any] = {"edgecolor": INK, "linestyle": OPEN, "linewidth": 0.8}
    ax.add_patch(Ellipse((x, y), node_width(label), 0.5, facecolor="none", **outline, zorder=3))
    ax.text(x, y, label, parse_math=False, ha="center", va="center", fontsize=9, color=INK, zorder=4)


def draw_arc(
    ax: Axes, layout: Layout, arc: Arc, colour: str, line: Line, strength: float | None = None
) -> None:
    """Draw an arc along its route; the stronger, the wider, with the strength written beside it."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    route = layout.routes[arc]
    start = on_ellipse(route[0], route[1], arc[0])
    end = on_ellipse(route[-1], route[-2], arc[1])
    points = [start, *route[1:-1], end]
    path = Path(points) if len(points) == 2 else _smooth(points)
    ax.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=9 if strength is None else 9 + 4 * strength,
            color=colour,
            linestyle=line,
            linewidth=1.0 if strength is None else THIN + (THICK - THIN) * strength,
            zorder=2,
        )
    )
    if strength is not None:
        x, y = np.mean([start, end] if len(points) == 2 else points[len(points) // 2 :][:1], axis=0).tolist()
        box = {"boxstyle": "round,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        ax.text(
            x + BESIDE,
            y,
            f"{strength:.2f}",
            fontsize=7,
            ha="center",
            va="center",
            color=INK,
            bbox=box,
            zorder=2.5,
        )


def on_ellipse(centre: tuple[float, float], towards: tuple[float, float], node: str) -> tuple[float, float]:
    """Return where the line from the centre of a node leaves its ellipse."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    a, b = 0.5 * node_width(node), 0.26
    scale = 1.0 / max(1e-9, float(np.hypot(dx / a, dy / b)))
    return centre[0] + dx * scale, centre[1] + dy * scale


def _smooth(points: list[tuple[float, float]]) -> Any:
    """Return a curve through points that never swings beyond them: x is a monotone cubic in y."""
    from matplotlib.path import Path
    from scipy.interpolate import PchipInterpolator

    xs, ys = np.array(points).T
    down = 1.0 if ys[-1] > ys[0] else -1.0
    fine = np.linspace(ys[0], ys[-1], 16 * (len(points) - 1) + 1)
    return Path(np.stack([PchipInterpolator(down * ys, xs)(down * fine), fine], axis=1))


def set_frame(ax: Axes, layout: Layout, narrowest: float) -> None:
    """Fit the axes around a graph, with room for a legend if it is narrow."""
    (left, top), (right, bottom) = layout.corners
    aside = max(1.0, 0.5 * (narrowest - (right - left)))
    ax.set_xlim(left - aside, right + aside)
    ax.set_ylim(bottom + 0.5, top - 0.5)
    ax.set_axis_off()


def legend_lines(
    compare_to: Structure | None, strengths: Mapping[Arc, float] | None, open_directions: Collection[Arc]
) -> dict[str, tuple[str, Line, float]]:
    """Return what lines mean: the colour, style and width of each."""
    if compare_to is not None:
        colours = {"both": COMMON, "missing": MISSING, "added": ADDED, "reversed": REVERSED}
        return {name: (colour, "--" if name == "missing" else "-", 1.5) for name, colour in colours.items()}
    styles: dict[str, tuple[str, Line, float]] = {"wider: stronger": (INK, "-", THICK)} if strengths else {}
    return styles | ({"dashed: direction open": (INK, OPEN, 1.5)} if open_directions else {})


def draw_legend(ax: Axes, styles: dict[str, tuple[str, Line, float]]) -> None:
    """Draw what `legend_lines` returned below the graph."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linestyle=line, linewidth=width, label=name)
        for name, (colour, line, width) in styles.items()
    ]
    ax.legend(
        handles=handles, frameon=False, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 0.0)
    )
