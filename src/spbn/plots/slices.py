"""Pictures of dynamic networks: the rows of time side by side, and the arcs between and within them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn._base import display
from spbn._base.files import replacing
from spbn.errors import ArgumentError, require_plot_packages
from spbn.graphs.dag import DAG
from spbn.plots.graph_parts import OPEN, graph_inches, on_ellipse
from spbn.plots.layout import node_width, short_labels
from spbn.plots.pictures import DOTS_PER_INCH, DRAWN, SETTINGS, require_picture_name
from spbn.plots.style import INK, LONGEST_LABEL, new_axes
from spbn.tables.lags import lag_name
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

GAP = 9.0  # characters between slices
ROW = 1.25  # layers between variables
FADED = "#8a9099"


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
    if isinstance(number, bool) or not isinstance(number, int) or number <= network.lags:
        before = "row" if network.lags == 1 else f"{network.lags} rows"
        raise ArgumentError(
            f"slices must be a whole number, {network.lags + 1} or more: the present and the {before} before "
            f"it. Got {slices!r} instead."
        )
    made = ax is None
    if ax is None:
        ax = new_axes(4.0, 3.0)
    lines = _lines(network)
    labels = short_labels(network.nodes, LONGEST_LABEL)
    width = max(node_width(label) for label in labels.values())
    places = {
        (node, k): (k * (width + GAP), ROW * line) for line, node in enumerate(lines) for k in range(number)
    }
    for (node, k), place in places.items():
        _draw_node(ax, network, node, labels[node], place, is_past=k < network.lags)
    for k in range(network.lags, number):
        for source, lag, target in _arcs(network):
            ends = (labels[source], labels[target])
            _draw_arc(ax, places[source, k - lag], places[target, k], ends, lag, width)
    for k in range(number):
        away = k - network.lags
        heading = "t" if away == 0 else f"t {'+' if away > 0 else '−'} {abs(away)}"
        ax.text(k * (width + GAP), -0.75, heading, ha="center", va="center", fontsize=9, color=FADED)
    ax.set_xlim(-0.5 * width - 2.0, (number - 1) * (width + GAP) + 0.5 * width + 6.0)
    ax.set_ylim(ROW * (len(lines) - 1) + 0.6, -1.1)
    ax.set_axis_off()
    if made:
        ax.figure.set_size_inches(*graph_inches(ax))  # type: ignore[union-attr]
    return ax


def save_slices(network: DynamicNetwork, path: Path, *, slices: int | None = None) -> None:
    """Write a picture; the ending of the file name says which kind."""
    kind = require_picture_name(path)
    content = _drawn(network, kind, slices)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@display.svg.register(DynamicNetwork)
def slices_svg(network: DynamicNetwork) -> str:
    """Draw a dynamic network as SVG."""
    return _drawn(network, "svg", None).decode()


def _drawn(network: DynamicNetwork, kind: str, slices: int | None) -> bytes:
    require_plot_packages()
    import matplotlib
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(layout="constrained")
        ax = plot_slices(network, figure.subplots(), slices=slices)
        figure.set_size_inches(graph_inches(ax))
        figure.savefig(stream, format=kind, dpi=DOTS_PER_INCH, metadata=DRAWN[kind])
    return stream.getvalue()


def _lines(network: DynamicNetwork) -> tuple[str, ...]:
    """Return the variables, parents above their children of the same slice."""
    inside = [arc for arc in network.transition.structure.arcs if set(arc) <= set(network.nodes)]
    return DAG(network.nodes, inside).topological_order()


def _arcs(network: DynamicNetwork) -> list[tuple[str, int, str]]:
    """Return the arcs into a slice: from which variable, how many slices before, and to which."""
    parts = {lag_name(node, lag): (node, lag) for node in network.nodes for lag in range(network.lags + 1)}
    return [(*parts[source], target) for source, target in network.transition.structure.arcs]


def _draw_node(
    ax: Axes,
    network: DynamicNetwork,
    node: str,
    label: str,
    place: Point,
    *,
    is_past: bool,
) -> None:
    from matplotlib.patches import Ellipse

    fill = "none" if is_past else network.transition.structure.type(node).colour
    outline: dict[str, Any] = {"linestyle": OPEN if is_past else "-", "linewidth": 0.8 if is_past else 1.0}
    ax.add_patch(Ellipse(place, node_width(label), 0.5, facecolor=fill, edgecolor=INK, **outline, zorder=3))
    ax.text(*place, label, parse_math=False, ha="center", va="center", fontsize=9, color=INK, zorder=4)


def _draw_arc(
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
