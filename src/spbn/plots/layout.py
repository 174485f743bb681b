"""Where the nodes and arcs of a graph are drawn, and what all pictures share: colours, labels, new axes.

Graphs are drawn in layers, from parents down to children. igraph's Sugiyama layout decides the layers, the
order in each, and where a long arc passes the layers between. Places within a layer are then chosen so that
arcs run as straight as the widths of the nodes allow: layer by layer, every item is drawn towards its
neighbours above and below, in its order and at its distance from the next, which is an isotonic regression.

Coordinates are in characters of the labels along x, and in layers along y, which grows downwards.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import require_plot_packages
from spbn.graphs.dag import DAG, Arc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

INK, FILL = "#22262b", "#c9ccd1"
COMMON, MISSING, ADDED, REVERSED = "#22262b", "#c0392b", "#1f6fb2", "#d68910"
LINES = ("#1f6fb2", "#d68910", "#2e8b57", "#8e44ad", "#c0392b")
LONGEST_LABEL, LONGEST_TITLE = 32, 48  # letters of a node in a graph, and of the label of an axis
GAP = 2.0  # characters between neighbours
BEND = 1.0  # width of an arc that passes a layer
SWEEPS = 24


@dataclass(frozen=True)
class Layout:
    """Centres of nodes, and the points that an arc passes on its way from parent to child."""

    centres: dict[str, Point]
    routes: dict[Arc, tuple[Point, ...]]

    @property
    def corners(self) -> tuple[Point, Point]:
        """Least and greatest coordinates of anything that is drawn, nodes with their widths."""
        points = [point for route in self.routes.values() for point in route]
        points += [(x - 0.5 * node_width(n), y) for n, (x, y) in self.centres.items()]
        points += [(x + 0.5 * node_width(n), y) for n, (x, y) in self.centres.items()]
        low, high = np.min(points, axis=0), np.max(points, axis=0)
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def node_width(label: str) -> float:
    """Return the width of a node's ellipse, in characters."""
    columns = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in label)
    return max(5.0, 1.2 * columns + 2.5)


def short_labels(names: Sequence[str], limit: int) -> dict[str, str]:
    """Return a label for every name: one line, about `limit` letters at most, and different for each."""
    labels: dict[str, str] = {}
    for i, name in enumerate(names):
        label = shortened(one_line(name), limit)
        while label in labels.values() or (label != name and label in names):
            label = f"{shortened(label, limit - 6)} #{i + 1}"
            i += len(names)
        labels[name] = label
    return labels


def one_line(text: str) -> str:
    """Replace every tab, line break and other character that cannot be drawn by a space."""
    return "".join(" " if _cannot_be_drawn(sign) else sign for sign in text)


def _cannot_be_drawn(sign: str) -> bool:
    # Control characters, surrogates, line breaks; and two characters that XML does not allow.
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in "\ufffe\uffff"


def shortened(text: str, limit: int) -> str:
    """Cut long text, and show that something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def layered(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    """Place nodes in layers so that arcs point downwards and cross little.

    Parts of the graph that are not connected are placed side by side, and nodes without
    arcs in rows of their own below.
    """
    centres: dict[str, Point] = {}
    routes: dict[Arc, tuple[Point, ...]] = {}
    right = bottom = -1.0
    alone = []
    for part in _components(nodes, arcs):
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


def _components(nodes: Sequence[str], arcs: Sequence[Arc]) -> list[list[str]]:
    """Return the connected parts of a graph, the largest first."""
    import igraph

    number = {node: i for i, node in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(number[a], number[b]) for a, b in arcs])
    parts = [[nodes[i] for i in part] for part in graph.connected_components()]
    return sorted(parts, key=len, reverse=True)


def _sugiyama(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    """Place the nodes of a connected graph."""
    import igraph

    number = {node: i for i, node in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(number[a], number[b]) for a, b in arcs], directed=True)
    placed = graph.layout_sugiyama(layers=_layers(nodes, arcs), maxiter=1000)
    # Items are the nodes, then the bends of long arcs; chains run along every arc.
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
    dag = DAG(nodes)
    for source, target in arcs:
        i, j = dag.index(source), dag.index(target)
        if not dag.reachability[j, i]:
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
    for sweep in range(SWEEPS):
        order = range(len(layers)) if sweep % 2 == 0 else reversed(range(len(layers)))
        for k in order:
            layer = layers[k]
            wanted = np.array([np.mean(xs[neighbours[i]]) for i in layer])
            # Bends pull more, so that long arcs are straight.
            weights = np.where(widths[layer] == BEND, 2.0, 1.0)
            xs[layer] = isotonic_regression(wanted - offsets[k], weights=weights).x + offsets[k]
    return xs


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure."""
    require_plot_packages()
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def short_title(text: str, limit: int = LONGEST_TITLE) -> str:
    """Return a text on one line, shortened to some letters."""
    return shortened(one_line(text), limit)


def line_colours(count: int) -> list[str]:
    """Return the colours of some lines, from the start again if they are many."""
    return [LINES[k % len(LINES)] for k in range(count)]
