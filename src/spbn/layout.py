"""Where the nodes and arcs of a graph are drawn: layers from parents down to children.

igraph's Sugiyama layout decides the layers, the order in each, and where a long
arc passes the layers between. Places within a layer are then chosen so that
arcs run as straight as the widths of the nodes allow: layer by layer, every
item is drawn towards its neighbours above and below, in its order and at its
distance from the next, which is an isotonic regression.

Coordinates are in characters of the labels along x, and in layers along y,
which grows downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spbn.data import FloatArray
from spbn.graph import Arc

Point = tuple[float, float]
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


def node_width(name: str) -> float:
    """Return the width of a node's ellipse, in characters."""
    return max(5.0, 1.2 * len(name) + 2.5)


def layered(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    """Place nodes in layers so that arcs point downwards and cross little.

    Nodes without arcs go to rows of their own below.
    """
    joined = [node for node in nodes if any(node in arc for arc in arcs)]
    layout = _sugiyama(joined, arcs) if joined else Layout({}, {})
    alone = [node for node in nodes if node not in joined]
    if not alone:
        return layout
    (left, _), (right, bottom) = layout.corners if joined else ((0.0, 0.0), (60.0, -1.0))
    centres = dict(layout.centres)
    x, y = left, bottom + 1.0
    for node in alone:
        width = node_width(node)
        if x > left and x + width > max(right, left + 40.0):
            x, y = left, y + 1.0
        centres[node] = (x + 0.5 * width, y)
        x += width + GAP
    return Layout(centres, layout.routes)


def _sugiyama(nodes: Sequence[str], arcs: Sequence[Arc]) -> Layout:
    import igraph

    number = {node: i for i, node in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(number[a], number[b]) for a, b in arcs], directed=True)
    placed = graph.layout_sugiyama(maxiter=1000)
    # Items are the nodes, then the bends of long arcs; chains run along every arc.
    points = [tuple(point) for point in placed.coords]
    widths = [node_width(node) for node in nodes]
    chains = []
    for (a, b), bends in zip(arcs, placed.edge_routing, strict=True):
        down = sorted(
            map(tuple, bends), key=lambda point: point[1], reverse=points[number[a]][1] > points[number[b]][1]
        )
        chains.append([number[a], *range(len(points), len(points) + len(down)), number[b]])
        points += down
        widths += [BEND] * len(down)
    xs = _straightened(np.array(points), np.array(widths), chains)
    centres = {node: (float(xs[i]), float(points[i][1])) for node, i in number.items()}
    routes = {
        arc: tuple((float(xs[i]), float(points[i][1])) for i in chain)
        for arc, chain in zip(arcs, chains, strict=True)
    }
    return Layout(centres, routes)


def _straightened(points: FloatArray, widths: FloatArray, chains: list[list[int]]) -> FloatArray:
    """Choose places within the layers, keeping their order."""
    from scipy.optimize import isotonic_regression

    neighbours: list[list[int]] = [[] for _ in points]
    for chain in chains:
        for upper, lower in zip(chain[:-1], chain[1:], strict=True):
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
