"""Which columns to adjust for, so that rows tell what one variable does to another.

A set satisfies the back-door criterion (Pearl, 1993) if none of its nodes is a descendant of the cause, and
it blocks every path between cause and outcome that begins with an arc into the cause. The sets from which no
node can be left out are the minimal separators of the two nodes in a moral graph: that of their ancestors,
without the arcs out of the cause. Nodes that no set may have are eliminated from it first, which joins their
neighbours.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from spbn._base.arrays import BoolArray
from spbn.errors import GraphError
from spbn.graphs import orientation
from spbn.graphs.dag import DAG

MOST_FOUND = 500  # sets, from which the smallest are returned


def adjustment_sets(
    dag: DAG, cause: str, outcome: str, *, unseen: Iterable[str] = (), most: int = 5
) -> tuple[tuple[str, ...], ...]:
    """Return sets that satisfy the back-door criterion, and from which no node can be left out.

    The smallest come first. There is one empty set if nothing has to be adjusted for, and no set at all if
    none would do.

    Parameters
    ----------
    dag
        The graph.
    cause, outcome
        Two different nodes.
    unseen
        Nodes that no set may have, since no column holds them.
    most
        How many sets to return, at most.

    Examples
    --------
    >>> import spbn
    >>> dag = spbn.DAG("xyab", [("a", "b"), ("a", "x"), ("b", "y"), ("x", "y")])
    >>> spbn.graphs.adjustment_sets(dag, "x", "y")
    (('a',), ('b',))
    """
    i, j = dag.index(cause), dag.index(outcome)
    if i == j:
        raise GraphError(f"the cause and the outcome must be different nodes. Got {cause!r} twice.")
    barred = dag.reachability[i].copy()
    barred[[dag.index(node) for node in unseen]] = True
    barred[[i, j]] = False
    arcs = dag.matrix.copy()
    arcs[i] = False
    joined = orientation.moral(arcs, [i, j])
    for k in np.flatnonzero(barred & joined.any(axis=0)).tolist():
        neighbours = joined[k].copy()
        joined[k] = joined[:, k] = False
        joined |= np.outer(neighbours, neighbours)
    np.fill_diagonal(joined, False)
    found = [] if joined[i, j] else _minimal_separators(joined, i, j)
    return tuple(tuple(dag.nodes[k] for k in chosen) for chosen in found[:most])


def _minimal_separators(joined: BoolArray, i: int, j: int) -> list[tuple[int, ...]]:
    """Return the minimal sets that separate two nodes of an undirected graph, the smallest first.

    From a set, others follow that are farther from the first node: some node of the set joins the side of the
    first node, and the part of its new boundary that the second node reaches is such a set (Shen and Liang,
    1997).
    """
    seen = set[tuple[int, ...]]()
    waiting: list[tuple[int, tuple[int, ...]]] = []

    def add(side: BoolArray) -> None:
        other = _component(joined, j, without=side | joined[side].any(axis=0))
        separator = tuple(np.flatnonzero(joined[other].any(axis=0) & ~other).tolist())
        if separator not in seen:
            seen.add(separator)
            heapq.heappush(waiting, (len(separator), separator))

    alone = np.zeros(len(joined), dtype=bool)
    alone[i] = True
    add(alone)
    while waiting and len(seen) < MOST_FOUND:
        _, separator = heapq.heappop(waiting)
        barrier = np.zeros(len(joined), dtype=bool)
        barrier[list(separator)] = True
        side = _component(joined, i, without=barrier)
        for node in separator:
            if not joined[node, j]:
                larger = side.copy()
                larger[node] = True
                add(larger)
    return sorted(seen, key=lambda separator: (len(separator), separator))


def _component(joined: BoolArray, node: int, *, without: BoolArray) -> BoolArray:
    """Return which nodes can be reached from one by way of those that are left."""
    reached = np.zeros(len(joined), dtype=bool)
    reached[node] = True
    frontier = reached
    while frontier.any():
        frontier = joined[frontier].any(axis=0) & ~reached & ~without
        reached = reached | frontier
    return reached
