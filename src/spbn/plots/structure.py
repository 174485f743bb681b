"""Pictures of graphs: of a structure in layers, and of a dynamic network as rows of time side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spbn._base import display
from spbn._base.checks import is_whole
from spbn.errors import ArgumentError, GraphError, argument, require_plot_packages
from spbn.graphs.dag import DAG, Arc
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.plots.layout import (
    ADDED,
    COMMON,
    INK,
    LONGEST_LABEL,
    MISSING,
    REVERSED,
    Layout,
    Point,
    layered,
    new_axes,
    node_width,
    short_labels,
)
from spbn.structure import Structure
from spbn.tables.lags import lag_name
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How a line is drawn, in the words of matplotlib.
Line = Literal["-", "--"] | tuple[float, tuple[float, float]]

THIN, THICK = 0.6, 2.4  # widths of arcs, by their strength
BESIDE = 2.4  # characters between an arc and its strength
OPEN: Line = (0, (2.2, 1.6))  # dashes of arcs whose direction is open
NARROWEST, NARROWEST_WITH_LEGEND = 27.0, 42.0  # least width of a graph, in characters
SLICE_GAP = 9.0  # characters between slices of time
ROW = 1.25  # layers between variables of a slice
FADED = "#8a9099"


@display.plot.register(Structure, BayesianNetwork)
def plot_structure(
    structure: Structure | BayesianNetwork,
    ax: Axes | None = None,
    *,
    compare_to: Structure | None = None,
    strengths: Mapping[Arc, float] | None = None,
    open_directions: Collection[Arc] = (),
) -> Axes:
    """Draw the graph in layers, with nodes in the colours of their types.

    Parameters
    ----------
    compare_to
        Another structure on the same nodes. The colour of an arc then says which of the two
        has it, and nodes whose types differ have a coloured outline.
    strengths
        How strong arcs are, from 0 to 1: stronger ones are wider, and the strength is written on each.
    open_directions
        Arcs whose direction is open: they are dashed.

    Examples
    --------
    >>> import spbn
    >>> ax = spbn.plots.plot_structure(spbn.datasets.synthetic_structure())
    >>> ax.figure.savefig("graph.svg")
    """
    if compare_to is not None and (strengths is not None or open_directions):
        raise ArgumentError("strengths and open_directions cannot be drawn together with compare_to.")
    found = structure.structure if isinstance(structure, BayesianNetwork) else structure
    styles = (
        {arc: (COMMON, OPEN if arc in open_directions else "-") for arc in found.arcs}
        if compare_to is None
        else arc_styles(found, compare_to)
    )
    labels = short_labels((*found.nodes, *found.used_inputs), LONGEST_LABEL)
    # Arcs of the structure itself come first: they decide the layers.
    arcs = sorted(styles, key=lambda arc: arc not in found.arcs)
    require_plot_packages()
    layout = layered(list(labels.values()), [(labels[a], labels[b]) for a, b in arcs])
    made = ax is None
    if ax is None:
        ax = new_axes(4.0, 3.0)
    for (a, b), (colour, line) in styles.items():
        strength = None if strengths is None else strengths.get((a, b))
        draw_arc(ax, layout, (labels[a], labels[b]), colour, line, strength)
    for node, label in labels.items():
        if node in found.inputs:
            draw_input(ax, label, *layout.centres[label])
            continue
        other = compare_to is not None and compare_to.type(node) is not found.type(node)
        draw_node(ax, label, *layout.centres[label], found.type(node), MISSING if other else INK)
    legend_styles = legend_lines(compare_to, strengths, open_directions)
    set_frame(ax, layout, NARROWEST_WITH_LEGEND if legend_styles else NARROWEST)
    if legend_styles:
        draw_legend(ax, legend_styles)
    if made:
        width, height = graph_inches(ax)
        legend = 0.3 if legend_styles else 0.0
        ax.figure.set_size_inches(width, height + legend)  # type: ignore[union-attr]
    return ax


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

    fill = node_type.appearance.colour
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


@display.plot.register(DynamicNetwork)
def plot_slices(network: DynamicNetwork, ax: Axes | None = None, *, slices: int | None = None) -> Axes:
    """Draw slices of time from left to right, with a line for every variable.

    Parameters
    ----------
    slices
        How many: by default one more than the network has lags, so that every arc is drawn once. With more
        of them the network is unrolled: every slice with a past has the arcs into it.
    """
    number = network.lags + 1 if slices is None else slices
    if not is_whole(number, network.lags + 1):
        before = "row" if network.lags == 1 else f"{network.lags} rows"
        raise ArgumentError(
            f"{argument('slices')} must be a whole number, {network.lags + 1} or more: the present and the "
            f"{before} before it. Got {slices!r} instead."
        )
    made = ax is None
    if ax is None:
        ax = new_axes(4.0, 3.0)
    lines = _lines(network)
    labels = short_labels(network.nodes, LONGEST_LABEL)
    width = max(node_width(label) for label in labels.values())
    places = {
        (node, k): (k * (width + SLICE_GAP), ROW * line)
        for line, node in enumerate(lines)
        for k in range(number)
    }
    for (node, k), place in places.items():
        if k < network.lags:
            draw_input(ax, labels[node], *place)
        else:
            draw_node(ax, labels[node], *place, network.transition.structure.type(node), INK)
    for k in range(network.lags, number):
        for source, lag, target in _arcs(network):
            ends = (labels[source], labels[target])
            _draw_arc_in_time(ax, places[source, k - lag], places[target, k], ends, lag, width)
    for k in range(number):
        away = k - network.lags
        heading = "t" if away == 0 else f"t {'+' if away > 0 else '−'} {abs(away)}"
        ax.text(k * (width + SLICE_GAP), -0.75, heading, ha="center", va="center", fontsize=9, color=FADED)
    ax.set_xlim(-0.5 * width - 2.0, (number - 1) * (width + SLICE_GAP) + 0.5 * width + 6.0)
    ax.set_ylim(ROW * (len(lines) - 1) + 0.6, -1.1)
    ax.set_axis_off()
    if made:
        ax.figure.set_size_inches(*graph_inches(ax))  # type: ignore[union-attr]
    return ax


def _lines(network: DynamicNetwork) -> tuple[str, ...]:
    """Return the variables, parents above their children of the same slice."""
    inside = [arc for arc in network.transition.structure.arcs if set(arc) <= set(network.nodes)]
    return DAG(network.nodes, inside).topological_order()


def _arcs(network: DynamicNetwork) -> list[tuple[str, int, str]]:
    """Return the arcs into a slice: from which variable, how many slices before, and to which."""
    parts = {lag_name(node, lag): (node, lag) for node in network.nodes for lag in range(network.lags + 1)}
    return [(*parts[source], target) for source, target in network.transition.structure.arcs]


def _draw_arc_in_time(
    ax: Axes, source: Point, target: Point, labels: tuple[str, str], slices: int, width: float
) -> None:
    """Draw an arc over so many slices, around the nodes that it would cross."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    (x, y), (end_x, end_y) = source, target
    middle = (0.5 * (x + end_x), 0.5 * (y + end_y))
    if slices == 0 and abs(end_y - y) > 1.5 * ROW:
        middle = (x + width + 5.0, middle[1])
    elif slices > 1 and any(_is_on_line(y + (end_y - y) * k / slices) for k in range(1, slices)):
        middle = (middle[0], middle[1] + 0.9)
    start, end = on_ellipse(source, middle, labels[0]), on_ellipse(target, middle, labels[1])
    curve = Curve([start, middle, end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "color": INK, "linewidth": 1.0}
    ax.add_patch(FancyArrowPatch(path=curve, zorder=2, **style))


def _is_on_line(y: float) -> bool:
    """Tell whether a height is that of the nodes of some variable."""
    return abs(y / ROW - round(y / ROW)) * ROW < 0.35
