"""Which directions of a graph a score leaves open.

Graphs with the same adjacencies and colliders imply the same independences, but a score may still tell them
apart: the noise around a curve is simple in one direction, and not in the other. So a direction is open if
some equivalent graph has the arc reversed and scores nearly as well as the best of them.

Equivalent graphs lead to each other by reversals of covered arcs, a → b where the parents of b are a and
those of a (Chickering, 1995). For every arc the walk begins with a graph in which as little as possible but
this arc is reversed; where the edges of undecided direction form trees, these are all graphs. From there it
goes on to neighbours, from the best graph on. Groups of nodes that such edges join are independent of each
other, so each has a walk of its own, and the families of all next steps are scored in one batch.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import final

import numpy as np

from spbn._base.arrays import BoolArray
from spbn._base.checks import at_least_0
from spbn.graphs import orientation
from spbn.graphs.dag import Arc, arc_matrix
from spbn.nodes.base import NodeType
from spbn.scores.base import Score
from spbn.search.hill_climbing import require_fitting
from spbn.search.trees import UNFIT
from spbn.structure import Structure

FAMILIES_PER_ARC = 8  # that are scored at most, besides those of the first graphs
MOST_GRAPHS = 200  # of a group, besides the first ones

#: The parents of every node, by number.
Parents = tuple[frozenset[int], ...]
Pair = tuple[int, int]


def open_directions(
    score: Score,
    structure: Structure,
    cost: float,
    *,
    types: Iterable[NodeType | str] = (),
    forbidden_arcs: Iterable[Arc] = (),
) -> tuple[Arc, ...]:
    """Return the arcs whose direction a score leaves open, by column order.

    An arc is one of them if some graph reverses it that implies the same independences, has no forbidden arc,
    and scores less than `cost` below the best of all such graphs. If there are very many such graphs, not all
    are considered.

    Parameters
    ----------
    score
        The score that found the structure.
    cost
        In nats; what an arc costs, for example (`spbn.scores.CVLikelihood.penalty`).
    types
        Types of which continuous nodes take the best, given their parents; by default those that they have.
    forbidden_arcs
        Arcs that no graph can have: forbidden ones, the opposites of required ones, and those that no node
        type admits.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(2000, seed=0)
    >>> structure = spbn.Structure(data.columns, [("C", "D"), ("D", "E")], "ckde")
    >>> structure.undecided_arcs()
    (('C', 'D'), ('D', 'E'))
    >>> score = spbn.scores.CVLikelihood(data)
    >>> spbn.search.open_directions(score, structure, 5.0, types=["lg", "ckde"])
    ()
    """
    require_fitting("open_directions", score, structure)
    at_least_0("cost", cost)
    dag, names = structure.dag, structure.dag.nodes
    free = set(structure.undecided_arcs(forbidden_arcs))
    # What follows from background knowledge is as good as known.
    banned = (dag.matrix & ~arc_matrix(names, free, "free")).T
    from_inputs = np.zeros_like(banned)
    from_inputs[len(structure.nodes) :] = True
    start = tuple(frozenset(np.flatnonzero(dag.matrix[:, node]).tolist()) for node in range(len(names)))
    walks = [
        _Walk(start, group, arcs, banned)
        for group in orientation.groups(orientation.cpdag(dag.matrix, from_inputs)[1])
        if (arcs := [(a, b) for b in group for a in sorted(start[b]) if (names[a], names[b]) in free])
    ]
    families = _Families(score, structure, map(NodeType.parse, types))
    left, most = walks, None
    while left:
        families.add(changed for walk in left for changed in walk.unscored())
        if most is None:
            most = len(families) + FAMILIES_PER_ARC * len(free)
        for walk in left:
            walk.step(families)
        left = [walk for walk in left if walk.new] if len(families) < most else []
    found = {(names[a], names[b]) for walk in walks for a, b in walk.open_arcs(cost)}
    return tuple(arc for arc in structure.arcs if arc in found)


@final
class _Families:
    """The scores of families, each with the best of its types."""

    def __init__(self, score: Score, structure: Structure, types: Iterable[NodeType]) -> None:
        self._score = score
        self._names = structure.dag.nodes
        choices = [node_type for node_type in types if node_type in score.node_types]
        variables = {variable.name: variable for variable in score.variables}
        self._types = [
            [choice for choice in choices if choice.admits(variables[node], ())] or [structure.type(node)]
            for node in structure.nodes
        ]
        self._known: dict[tuple[int, frozenset[int]], float] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, family: tuple[int, frozenset[int]]) -> float:
        return self._known[family]

    def add(self, families: Iterable[tuple[int, frozenset[int]]]) -> None:
        """Score those families that are new, all in one batch."""
        new = [family for family in dict.fromkeys(families) if family not in self._known]
        typed = [
            (self._names[node], [self._names[parent] for parent in sorted(parents)], node_type)
            for node, parents in new
            for node_type in self._types[node]
        ]
        scores = iter(np.maximum(self._score.local_many(typed), UNFIT).tolist() if typed else [])
        for node, parents in new:
            self._known[node, parents] = max(next(scores) for _ in self._types[node])


@final
class _Walk:
    """A walk through equivalent graphs that differ in one group of nodes, the best first."""

    def __init__(self, start: Parents, group: Sequence[int], arcs: Sequence[Pair], banned: BoolArray) -> None:
        self._start = start
        self._group = group
        self._arcs = arcs
        self._banned = banned
        turned = (_turned(start, arc, banned) for arc in arcs)
        #: Graphs that have not been scored yet.
        self.new = list(dict.fromkeys([start, *(graph for graph in turned if graph is not None)]))
        self._seen = set(self.new)
        self._most = len(self.new) + MOST_GRAPHS
        self._queue: list[tuple[float, int, Parents]] = []
        self._numbers = count()  # of graphs, which tell those apart that score the same
        self._best = -np.inf
        #: By arc: the score of the best graph that reverses it.
        self._reversed = dict.fromkeys(arcs, -np.inf)

    def unscored(self) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the families of the new graphs, as far as they may differ from each other."""
        for graph in self.new:
            yield from ((node, graph[node]) for node in self._group)

    def step(self, families: _Families) -> None:
        """Take up the new graphs, and find neighbours of the best graph that has new ones."""
        for graph in self.new:
            score = float(sum(families[node, graph[node]] for node in self._group))
            self._best = max(self._best, score)
            for a, b in self._arcs:
                if b in graph[a]:
                    self._reversed[a, b] = max(self._reversed[a, b], score)
            heapq.heappush(self._queue, (-score, next(self._numbers), graph))
        self.new = []
        while self._queue and not self.new and len(self._seen) < self._most:
            *_, graph = heapq.heappop(self._queue)
            covered = ((a, b) for b in self._group for a in sorted(graph[b]) if graph[b] - {a} == graph[a])
            neighbours = (_reverse(graph, arc) for arc in covered if not self._banned[arc[::-1]])
            self.new = [neighbour for neighbour in neighbours if neighbour not in self._seen]
            self._seen.update(self.new)

    def open_arcs(self, cost: float) -> list[Pair]:
        """Return the arcs that a graph reverses which scores nearly as well as the best."""
        return [arc for arc, score in self._reversed.items() if self._best - score < cost]


def _turned(graph: Parents, arc: Pair, banned: BoolArray) -> Parents | None:
    """Return an equivalent graph that reverses an arc, and little else; None if none is found.

    An arc a → b can be reversed once it is covered. What is in the way is reversed first: p → b, or else
    a → p, if there are a → p → b, and q → a if q is not joined to b.
    """
    waiting = [arc]
    for _ in range(len(graph) ** 2):
        a, b = waiting[-1]
        between = min((p for p in graph[b] if a in graph[p]), default=None)
        above = min(graph[a] - graph[b], default=None)
        if a not in graph[b]:
            waiting.pop()
        elif between is not None:
            waiting.append((a, between) if banned[b, between] else (between, b))
        elif above is not None:
            waiting.append((above, a))
        else:
            graph = _reverse(graph, (a, b))
            waiting.pop()
        if not waiting:
            return graph
    return None


def _reverse(graph: Parents, arc: Pair) -> Parents:
    """Return the graph with a covered arc a → b reversed."""
    a, b = arc
    parents = list(graph)
    parents[a], parents[b] = graph[a] | {b}, graph[a]
    return tuple(parents)
