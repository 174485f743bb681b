"""Pictures of graphs: of a structure in layers, and of a dynamic network as rows of time side by side.

Layers go from parents down to children. igraph's Sugiyama layout decides the layers, the order in each, and
where a long arc passes the layers between. Places within a layer are then chosen so that arcs run as straight
as the widths of the nodes allow: layer by layer, every item is drawn towards its neighbours above and below,
in its order and at its distance from the next, which is an isotonic regression.

A graph of many nodes is drawn by clusters of nodes that depend on each other most: each is placed in a box of
its own, and arcs between boxes are faint.

Coordinates are in characters of the labels along x, and in layers along y, which grows downwards.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from spbn._base import display
from spbn._base.arrays import FloatArray
from spbn._base.checks import is_whole
from spbn._base.files import replacing
from spbn.errors import ArgumentError, GraphError, argument, require_plot_packages
from spbn.graphs.dag import DAG, Arc
from spbn.io.exchange import to_dot
from spbn.network import BayesianNetwork, Network
from spbn.nodes.base import NodeType
from spbn.plots.pictures import (
    ADDED,
    COMMON,
    INK,
    LONGEST_LABEL,
    MISSING,
    REVERSED,
    draw_graph,
    draw_legend,
    graph_inches,
    new_axes,
    require_picture_name,
    short_labels,
)
from spbn.structure import Structure
from spbn.tables.lags import lag_name
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Point = tuple[float, float]
#: How a line is drawn, in the words of matplotlib.
Line = Literal["-", "--"] | tuple[float, tuple[float, float]]

GAP = 2.0  # characters between neighbours
BEND = 1.0  # width of an arc that passes a layer
SWEEPS = 24
THIN, THICK = 0.6, 2.4  # widths of arcs, by their strength
BESIDE = 2.4  # characters between an arc and its strength
OPEN: Line = (0, (2.2, 1.6))  # dashes of arcs whose direction is open
NARROWEST, NARROWEST_WITH_LEGEND = 27.0, 42.0  # least width of a graph, in characters
SLICE_GAP = 9.0  # characters between slices of time
ROW = 1.25  # layers between variables of a slice
FADED, FAINT, BOX = "#8a9099", "#d3d7dc", "#f3f4f6"
MANY = 60  # nodes beyond which a graph is drawn by clusters
CHARACTERS_PER_LAYER, SHAPE = 11.4, 1.6  # what looks as wide as a layer is high; width of the whole by height
ROOM, HEAD = 0.65, 0.5  # layers between a box and the centres of its nodes, and for what is written in it


@dataclass(frozen=True)
class Layout:
    """Centres of nodes, and the points that an arc passes on its way from parent to child."""

    centres: dict[str, Point]
    routes: dict[Arc, tuple[Point, ...]]
    #: Left, top, right and bottom of the box of every cluster, by what is written in it.
    boxes: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)

    between: frozenset[Arc] = frozenset()  # arcs from one box to another

    @property
    def corners(self) -> tuple[Point, Point]:
        """Least and greatest coordinates of anything that is drawn, nodes with their widths."""
        points = [point for route in self.routes.values() for point in route]
        points += [(x - 0.5 * node_width(n), y) for n, (x, y) in self.centres.items()]
        points += [(x + 0.5 * node_width(n), y) for n, (x, y) in self.centres.items()]
        points += [point for a, b, c, d in self.boxes.values() for point in ((a, b), (c, d))]
        low, high = np.min(points, axis=0), np.max(points, axis=0)
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def node_width(label: str) -> float:
    """Return the width of a node's ellipse, in characters."""
    columns = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in label)
    return max(5.0, 1.2 * columns + 2.5)


def layered(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    """Place nodes in layers so that arcs point downwards and cross little; many nodes, by clusters.

    Parts of the graph that are not connected are placed side by side, and nodes without
    arcs in rows of their own below.
    """
    if len(nodes) > MANY and len(groups := clusters(nodes, arcs)) > 1:
        return _boxed(nodes, arcs, groups)
    return _layered(nodes, arcs)


def _layered(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    centres: dict[str, Point] = {}
    routes: dict[Arc, tuple[Point, ...]] = {}
    right = bottom = -1.0
    alone = []
    components = [[nodes[i] for i in part] for part in _graph_of(nodes, arcs).connected_components("weak")]
    for part in sorted(components, key=len, reverse=True):
        if len(part) == 1:
            alone += part
            continue
        layout = _sugiyama(part, [arc for arc in arcs if arc[0] in part])
        (left, _), (end, low) = layout.corners
        shift = right + 2.0 * GAP - left if centres else 0.0
        centres |= {node: (x + shift, y) for node, (x, y) in layout.centres.items()}
        routes |= {arc: tuple((x + shift, y) for x, y in route) for arc, route in layout.routes.items()}
        right, bottom = end + shift, max(bottom, low)
    left = Layout(centres, routes).corners[0][0] if centres else 0.0
    x, y = left, bottom + 1.0
    for node in alone:
        width = node_width(node)
        if x > left and x + width > max(right, left + 60.0):
            x, y = left, y + 1.0
        centres[node] = (x + 0.5 * width, y)
        x += width + GAP
    return Layout(centres, routes)


def clusters(nodes: Sequence[str], arcs: Sequence[Arc]) -> list[list[str]]:
    """Divide nodes into clusters with many arcs within and few between, those of parents first.

    Nodes without arcs are a cluster, the last. They are found by greedy maximisation of the modularity.
    """
    joined = [node for node in nodes if any(node in arc for arc in arcs)]
    graph = _graph_of(joined, arcs).as_undirected().simplify()
    found = []
    for part in graph.connected_components():
        members = graph.induced_subgraph(part).community_fastgreedy().as_clustering()
        found += [[joined[part[i]] for i in sorted(group)] for group in members]
    layer = dict(zip(joined, _layers(joined, arcs), strict=True))
    found.sort(key=lambda group: float(np.mean([layer[node] for node in group])))
    alone = [node for node in nodes if node not in layer]
    return [*found, alone] if alone else found


def _boxed(nodes: Sequence[str], arcs: Sequence[Arc], groups: Sequence[Sequence[str]]) -> Layout:
    """Place every cluster in a box, and the boxes in lines like words."""
    neighbours = dict.fromkeys(nodes, 0)
    for arc in arcs:
        for node in arc:
            neighbours[node] += 1
    cluster = {node: i for i, group in enumerate(groups) for node in group}
    parts = [
        _layered(group, [(a, b) for a, b in arcs if cluster[a] == cluster[b] == i])
        for i, group in enumerate(groups)
    ]
    sizes = [
        (right - left + 2.0 * GAP, low - high + 2.0 * ROOM + HEAD)
        for (left, high), (right, low) in (part.corners for part in parts)
    ]
    area = sum((width + 2.0 * GAP) * (height + ROOM) for width, height in sizes)
    widest = max(np.sqrt(area * SHAPE * CHARACTERS_PER_LAYER), *(width for width, _ in sizes))
    centres: dict[str, Point] = {}
    routes: dict[Arc, tuple[Point, ...]] = {}
    boxes: dict[str, tuple[float, float, float, float]] = {}
    left = top = below = 0.0
    for group, part, (width, height) in zip(groups, parts, sizes, strict=True):
        if left > 0.0 and left + width > widest:
            left, top = 0.0, below + ROOM
        (a, b), _ = part.corners
        x, y = left + GAP - a, top + HEAD + ROOM - b
        centres |= {node: (u + x, v + y) for node, (u, v) in part.centres.items()}
        routes |= {arc: tuple((u + x, v + y) for u, v in route) for arc, route in part.routes.items()}
        hub = max(group, key=neighbours.__getitem__)
        name = f"{hub} and {len(group) - 1} more" if neighbours[hub] else "without arcs"
        boxes[name] = (left, top, left + width, top + height)
        left, below = left + width + 2.0 * GAP, max(below, top + height)
    between = {(a, b): (centres[a], centres[b]) for a, b in arcs if cluster[a] != cluster[b]}
    return Layout(centres, routes | between, boxes, frozenset(between))


def _graph_of(nodes: Sequence[str], arcs: Sequence[Arc]) -> Any:
    import igraph

    number = {node: i for i, node in enumerate(nodes)}
    return igraph.Graph(len(nodes), [(number[a], number[b]) for a, b in arcs], directed=True)


def _sugiyama(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    """Place the nodes of a connected graph."""
    placed = _graph_of(nodes, arcs).layout_sugiyama(layers=_layers(nodes, arcs), maxiter=1000)
    # Items are the nodes, then the bends of long arcs; chains run along every arc.
    number = {node: i for i, node in enumerate(nodes)}
    points = [(x, y) for x, y in placed.coords]
    widths = [node_width(node) for node in nodes]
    chains = []
    for (a, b), bends in zip(arcs, placed.edge_routing, strict=True):
        upwards = points[number[a]][1] > points[number[b]][1]
        ordered = sorted(((x, y) for x, y in bends), key=lambda point: point[1], reverse=upwards)
        chains.append([number[a], *range(len(points), len(points) + len(ordered)), number[b]])
        points += ordered
        widths += [BEND] * len(ordered)
    xs = _straightened(np.array(points), np.array(widths), chains)
    centres = {node: (float(xs[i]), float(points[i][1])) for node, i in number.items()}
    routes = {
        arc: tuple((float(xs[i]), float(points[i][1])) for i in chain)
        for arc, chain in zip(arcs, chains, strict=True)
    }
    return Layout(centres, routes)


def _layers(nodes: Sequence[str], arcs: Sequence[Arc]) -> list[int]:
    """Put every node below its parents, and roots right above their first child.

    Arcs that would make a cycle with those before them are ignored.
    """
    try:
        dag = DAG(nodes, arcs)
    except GraphError:
        dag = DAG(nodes)
        for source, target in arcs:
            if not dag.reachability[dag.index(target), dag.index(source)]:
                dag = dag.with_arc(source, target)
    layer: dict[str, int] = {}
    for node in dag.topological_order():
        layer[node] = max((layer[parent] + 1 for parent in dag.parents(node)), default=0)
    for node in nodes:
        if not dag.parents(node) and dag.children(node):
            layer[node] = min(layer[child] for child in dag.children(node)) - 1
    return [layer[node] for node in nodes]


def _straightened(points: FloatArray, widths: FloatArray, chains: list[list[int]]) -> FloatArray:
    """Choose places within the layers, keeping their order."""
    from scipy.optimize import isotonic_regression

    neighbours: list[list[int]] = [[] for _ in points]
    for chain in chains:
        for upper, lower in pairwise(chain):
            neighbours[upper].append(lower)
            neighbours[lower].append(upper)
    layers = [np.flatnonzero(points[:, 1] == y) for y in np.unique(points[:, 1])]
    layers = [layer[np.argsort(points[layer, 0], kind="stable")] for layer in layers]
    xs = np.empty(len(points))
    offsets = []
    for layer in layers:
        room = 0.5 * (widths[layer][1:] + widths[layer][:-1]) + GAP
        offsets.append(np.concatenate([[0.0], np.cumsum(room)]))
        xs[layer] = offsets[-1] - offsets[-1][-1] / 2.0
    counts = np.array([len(one) for one in neighbours])
    # Of every layer: the neighbours of its items, one item after the other, and where those of each begin.
    near = [np.concatenate([neighbours[i] for i in layer]).astype(np.int64) for layer in layers]
    begins = [np.concatenate([[0], np.cumsum(counts[layer])[:-1]]) for layer in layers]
    # Bends pull more, so that long arcs are straight.
    pulls = [np.where(widths[layer] == BEND, 2.0, 1.0) for layer in layers]
    for sweep in range(SWEEPS):
        order = range(len(layers)) if sweep % 2 == 0 else reversed(range(len(layers)))
        for k in order:
            layer = layers[k]
            wanted = np.add.reduceat(xs[near[k]], begins[k]) / counts[layer]
            xs[layer] = isotonic_regression(wanted - offsets[k], weights=pulls[k]).x + offsets[k]
    return xs


@display.plot.register(Structure, BayesianNetwork)
def plot_structure(
    structure: Structure | BayesianNetwork,
    ax: Axes | None = None,
    *,
    compare_to: Structure | None = None,
    strengths: Mapping[Arc, float] | None = None,
    open_directions: Collection[Arc] | None = None,
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
        Arcs whose direction is open: they are dashed. By default, those of a network.

    Examples
    --------
    >>> import spbn
    >>> ax = spbn.plots.plot_structure(spbn.datasets.synthetic_structure())
    >>> ax.figure.savefig("graph.svg")
    """
    if compare_to is not None and (strengths is not None or open_directions):
        raise ArgumentError("strengths and open_directions cannot be drawn together with compare_to.")
    found = structure.structure if isinstance(structure, BayesianNetwork) else structure
    if open_directions is None and compare_to is None and isinstance(structure, BayesianNetwork):
        open_directions = structure.open_directions()
    dashed = open_directions or ()
    if compare_to is None:
        styles = {arc: (COMMON, OPEN if arc in dashed else "-") for arc in found.arcs}
    else:
        styles = _compared(found, compare_to)
    labels = short_labels((*found.nodes, *found.used_inputs), LONGEST_LABEL)
    # Arcs of the structure itself come first: they decide the layers.
    arcs = sorted(styles, key=lambda arc: arc not in found.arcs)
    require_plot_packages()
    layout = layered(list(labels.values()), [(labels[a], labels[b]) for a, b in arcs])
    made = ax is None
    if ax is None:
        ax = new_axes(4.0, 3.0)
    for name, corners in layout.boxes.items():
        _draw_box(ax, name, *corners)
    for (a, b), (colour, line) in styles.items():
        strength = None if strengths is None else strengths.get((a, b))
        ends = (labels[a], labels[b])
        _draw_arc(ax, layout, ends, FAINT if ends in layout.between else colour, line, strength)
    for node, label in labels.items():
        node_type = None if node in found.inputs else found.type(node)
        other = node_type and compare_to is not None and compare_to.type(node) is not node_type
        _draw_node(ax, label, layout.centres[label], node_type, marked=bool(other))
    legend = _legend_lines(compare_to, strengths, dashed)
    if compare_to is None:
        legend += _legend_types(found)
    # Room for a legend if the graph is narrow.
    (left, top), (right, bottom) = layout.corners
    aside = max(1.0, 0.5 * ((NARROWEST_WITH_LEGEND if legend else NARROWEST) - (right - left)))
    ax.set_xlim(left - aside, right + aside)
    ax.set_ylim(bottom + 0.5, top - 0.5)
    return _finished(ax, legend, made=made)


def _finished(ax: Axes, legend: Sequence[Line2D], *, made: bool) -> Axes:
    """Draw the legend, and make a figure of our own as large as the graph."""
    ax.set_axis_off()
    if legend:
        draw_legend(ax, "upper center", (0.5, 0.0), 4, handles=legend)
    if made:
        width, height = graph_inches(ax)
        ax.figure.set_size_inches(width, height + (0.3 if legend else 0.0))  # type: ignore[union-attr]
    return ax


def _compared(found: Structure, other: Structure) -> dict[Arc, tuple[str, Line]]:
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


def _draw_box(ax: Axes, name: str, left: float, top: float, right: float, bottom: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    style: dict[str, Any] = {
        "boxstyle": "round,pad=0,rounding_size=0.2",
        "facecolor": BOX,
        "edgecolor": "none",
    }
    ax.add_patch(FancyBboxPatch((left, top), right - left, bottom - top, **style, zorder=1))
    ax.text(left + GAP, top + HEAD, name, parse_math=False, va="center", fontsize=11, color=FADED, zorder=2)


def _draw_node(
    ax: Axes, label: str, centre: Point, node_type: NodeType | None, *, marked: bool = False
) -> None:
    """Draw a node as an ellipse in the colour of its type; an input, without a type, empty and dashed."""
    from matplotlib.patches import Ellipse

    style: dict[str, Any] = {"facecolor": "none", "edgecolor": INK, "linestyle": OPEN, "linewidth": 0.8}
    if node_type is not None:
        style = {"facecolor": node_type.appearance.colour, "edgecolor": MISSING if marked else INK}
        style["linewidth"] = 2.0 if marked else 1.0
    ax.add_patch(Ellipse(centre, node_width(label), 0.5, **style, zorder=3))
    ax.text(*centre, label, parse_math=False, ha="center", va="center", fontsize=9, color=INK, zorder=4)


def _draw_arc(
    ax: Axes, layout: Layout, arc: Arc, colour: str, line: Line, strength: float | None = None
) -> None:
    """Draw an arc along its route; the stronger, the wider, with the strength written beside it."""
    from matplotlib.path import Path

    points = np.array(layout.routes[arc])
    points[0] = on_ellipse(points[0], points[1], _radii(arc[0]))
    points[-1] = on_ellipse(points[-1], layout.routes[arc][-2], _radii(arc[1]))
    path = Path(points) if len(points) == 2 else _smooth(points)
    if strength is None:
        _draw_arrow(ax, path, color=colour, linestyle=line)
        return
    width, head = THIN + (THICK - THIN) * strength, 9 + 4 * strength
    _draw_arrow(ax, path, color=colour, linestyle=line, linewidth=width, mutation_scale=head)
    x, y = points.mean(axis=0).tolist() if len(points) == 2 else points[len(points) // 2].tolist()
    box = {"boxstyle": "round,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": INK, "bbox": box}
    ax.text(x + BESIDE, y, f"{strength:.2f}", **style, zorder=2.5)


def _draw_arrow(ax: Axes, path: Any, **style: Any) -> None:
    from matplotlib.patches import FancyArrowPatch

    usual: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "color": INK, "linewidth": 1.0}
    ax.add_patch(FancyArrowPatch(path=path, zorder=2, **(usual | style)))


def on_ellipse(centre: npt.ArrayLike, towards: npt.ArrayLike, radii: npt.ArrayLike) -> FloatArray:
    """Return where the line from the centre of an ellipse leaves it."""
    start = np.asarray(centre, dtype=np.float64)
    step = np.asarray(towards, dtype=np.float64) - start
    return start + step / max(1e-9, float(np.hypot(*(step / np.asarray(radii)))))


def _radii(label: str) -> Point:
    return 0.5 * node_width(label), 0.26


def _smooth(points: FloatArray) -> Any:
    """Return a curve through points that never swings beyond them: x is a monotone cubic in y."""
    from matplotlib.path import Path
    from scipy.interpolate import PchipInterpolator

    xs, ys = points.T
    down = 1.0 if ys[-1] > ys[0] else -1.0
    fine = np.linspace(ys[0], ys[-1], 16 * (len(points) - 1) + 1)
    return Path(np.stack([PchipInterpolator(down * ys, xs)(down * fine), fine], axis=1))


def _legend_lines(
    compare_to: Structure | None, strengths: Mapping[Arc, float] | None, open_directions: Collection[Arc]
) -> list[Line2D]:
    """Return lines, each with what it means."""
    from matplotlib.lines import Line2D

    lines: list[tuple[str, str, Line, float]] = []
    if compare_to is not None:
        colours = {"both": COMMON, "missing": MISSING, "added": ADDED, "reversed": REVERSED}
        lines = [(name, c, "--" if name == "missing" else "-", 1.5) for name, c in colours.items()]
    if strengths:
        lines.append(("wider: stronger", INK, "-", THICK))
    if open_directions:
        lines.append(("dashed: direction open", INK, OPEN, 1.5))
    return [Line2D([], [], color=c, linestyle=line, linewidth=w, label=name) for name, c, line, w in lines]


def _legend_types(structure: Structure) -> list[Line2D]:
    """Return a node of every type, if there are several."""
    from matplotlib.lines import Line2D

    kinds = {kind.name: kind.appearance for kind in structure.types.values()}
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 8, "markeredgecolor": INK}
    return [
        Line2D([], [], **style, markerfacecolor=one.colour, label=one.label)
        for one in kinds.values()
        if len(kinds) > 1
    ]


@display.plot.register(DynamicNetwork)
def plot_slices(network: DynamicNetwork, ax: Axes | None = None, *, slices: int | None = None) -> Axes:
    """Draw slices of time from left to right, with a line for every variable.

    `slices`: how many: by default one more than the network has lags, so that every arc is drawn once. With
    more of them the network is unrolled: every slice with a past has the arcs into it.
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
    # Variables from above, parents before their children of the same slice.
    arcs, dashed = network.transition.structure.arcs, network.transition.open_directions()
    lines = DAG(network.nodes, [arc for arc in arcs if set(arc) <= set(network.nodes)]).topological_order()
    labels = short_labels(network.nodes, LONGEST_LABEL)
    width = max(node_width(label) for label in labels.values())
    places = {
        (node, k): (k * (width + SLICE_GAP), ROW * line)
        for line, node in enumerate(lines)
        for k in range(number)
    }
    types = network.transition.structure.types
    for (node, k), place in places.items():
        _draw_node(ax, labels[node], place, None if k < network.lags else types[node])
    lagged = {lag_name(node, lag): (node, lag) for node in network.nodes for lag in range(network.lags + 1)}
    for k in range(network.lags, number):
        for name, target in (arc for arc in arcs if arc[0] in lagged):  # a season is no row
            source, lag = lagged[name]
            ends = (labels[source], labels[target])
            line = OPEN if (name, target) in dashed else "-"
            _draw_arc_in_time(ax, places[source, k - lag], places[target, k], ends, lag, width, line)
    for k in range(number):
        away = k - network.lags
        heading = "t" if away == 0 else f"t {'+' if away > 0 else '−'} {abs(away)}"
        ax.text(k * (width + SLICE_GAP), -0.75, heading, ha="center", va="center", fontsize=9, color=FADED)
    ax.set_xlim(-0.5 * width - 2.0, (number - 1) * (width + SLICE_GAP) + 0.5 * width + 6.0)
    ax.set_ylim(ROW * (len(lines) - 1) + 0.6, -1.1)
    legend = [*_legend_lines(None, None, dashed), *_legend_types(network.transition.structure)]
    return _finished(ax, legend, made=made)


def _draw_arc_in_time(
    ax: Axes,
    source: Point,
    target: Point,
    labels: tuple[str, str],
    slices: int,
    width: float,
    line: Line,
) -> None:
    """Draw an arc over so many slices, around the nodes that it would cross."""
    from matplotlib.path import Path as Curve

    (x, y), (end_x, end_y) = source, target
    middle = (0.5 * (x + end_x), 0.5 * (y + end_y))
    if slices == 0 and abs(end_y - y) > 1.5 * ROW:
        middle = (x + width + 5.0, middle[1])
    elif slices > 1:
        # Where it passes the slices between, in variables from above: near a whole number is a node.
        passed = (y + (end_y - y) * np.arange(1, slices) / slices) / ROW
        if (np.abs(passed - np.round(passed)) * ROW < 0.35).any():
            middle = (middle[0], middle[1] + 0.9)
    start, end = on_ellipse(source, middle, _radii(labels[0])), on_ellipse(target, middle, _radii(labels[1]))
    curve = Curve(np.stack([start, middle, end]), [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
    _draw_arrow(ax, curve, linestyle=line)


def save_graph(graph: Structure | Network, path: Path, **options: Any) -> None:
    """Write a picture of what is plotted with these options; the ending of the file name says which kind."""
    kind = require_picture_name(path, *([] if isinstance(graph, DynamicNetwork) else ["dot"]))
    if kind == "dot" and isinstance(graph, Structure | BayesianNetwork):
        content = to_dot(graph).encode()
    else:
        content = draw_graph(partial(display.plot, graph, **options), kind, len(graph.nodes))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@display.svg.register(BayesianNetwork, DynamicNetwork)
def to_svg(graph: Structure | Network) -> str:
    """Draw a graph as SVG."""
    return draw_graph(partial(display.plot, graph), "svg", len(graph.nodes)).decode()
