"""Graphs of an equivalence class, told apart by the parents of some nodes.

What follows from setting variables depends on the joint distribution, which the graphs of a class share, and
on the parents of these variables alone: the joint density after it is the density before, divided by those of
the variables given their parents. So one graph is enough for every choice of parents, and how many choices
there are does not depend on the rest of the graph.

In a graph that is closed under Meek's rules, every edge can have either direction (Meek, 1995). So edges are
oriented one by one, both ways, and each time what follows from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, Seed, generator
from spbn.graphs import orientation
from spbn.graphs.dag import DAG, Arc, arc_matrix

MOST_COUNTED = 10_000  # graphs of a group of nodes
TRIES = 20  # for each graph that is drawn


class Equivalent(NamedTuple):
    """A graph of an equivalence class, and how many of the class give some nodes the same parents.

    The number is None if it is large.
    """

    dag: DAG
    number: int | None


def equivalent_graphs(
    dag: DAG, open_arcs: Iterable[Arc], nodes: Collection[str], *, most: int = 50, seed: Seed = 0
) -> list[Equivalent]:
    """Return a graph for every choice of parents that nodes have in the graphs of a class.

    Parameters
    ----------
    dag
        A graph of the class. It comes first, and the others differ from it as little as they can.
    open_arcs
        Its arcs that other graphs may reverse; all others are as in this one.
    nodes
        Those whose parents count.
    most
        How many graphs to return, at most. If there are more, they are drawn at random.
    seed
        For that.
    """
    known = dag.matrix & ~arc_matrix(dag.nodes, open_arcs, "open_arcs")
    start = orientation.cpdag(dag.matrix, known)
    chosen, everywhere = np.isin(dag.nodes, list(nodes)), np.ones(len(dag.nodes), dtype=bool)
    found = list(islice(_oriented(*start, dag.matrix, chosen), most + 1))
    if len(found) > most:
        found = [found[0], *_drawn(*start, chosen, most - 1, found[0][0], seed)]
    graphs = []
    for directed, undirected in found:
        matrix, _ = next(_oriented(directed, undirected, dag.matrix, everywhere))
        graphs.append(Equivalent(DAG.from_matrix(dag.nodes, matrix), _number(directed, undirected)))
    return graphs


def _oriented(
    directed: BoolArray, undirected: BoolArray, own: BoolArray, chosen: BoolArray
) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Yield all graphs that give a direction to the edges of chosen nodes; arcs of `own` come first."""
    edges = np.argwhere(undirected & own & (chosen[:, None] | chosen))
    if not len(edges):
        yield directed, undirected
        return
    a, b = edges[0].tolist()
    for arc in ((a, b), (b, a)):
        yield from _oriented(*_with_arc(directed, undirected, arc), own, chosen)


def _drawn(
    directed: BoolArray, undirected: BoolArray, chosen: BoolArray, most: int, first: BoolArray, seed: Seed
) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Yield graphs in which directions of edges were drawn; none twice, and not the first one."""
    rng, seen = generator(seed), {first[:, chosen].tobytes()}
    for _ in range(TRIES * most):
        arcs, edges = directed, undirected
        while len(left := np.argwhere(edges & (chosen[:, None] | chosen))):
            arcs, edges = _with_arc(arcs, edges, tuple(rng.choice(left).tolist()))
        if arcs[:, chosen].tobytes() not in seen:
            seen.add(arcs[:, chosen].tobytes())
            yield arcs, edges
        if len(seen) > most:
            return


def _with_arc(
    directed: BoolArray, undirected: BoolArray, arc: tuple[int, int]
) -> tuple[BoolArray, BoolArray]:
    """Give an edge a direction, and all others whose direction follows from it."""
    directed, undirected = directed.copy(), undirected.copy()
    directed[arc] = True
    undirected[arc] = undirected[arc[::-1]] = False
    return orientation.meek(directed, undirected)


def _number(directed: BoolArray, undirected: BoolArray) -> int | None:
    """Count the graphs in which all edges have a direction: groups that edges join are independent."""
    total = 1
    for group in orientation.groups(undirected):
        mine = np.zeros(len(directed), dtype=bool)
        mine[group] = True
        every = _oriented(directed, undirected, np.triu(undirected), mine)
        count = sum(1 for _ in islice(every, MOST_COUNTED + 1))
        if count > MOST_COUNTED:
            return None
        total *= count
    return total
