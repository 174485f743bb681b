"""Search over orders of the nodes: the best order score search of Andrews et al. (2023).

Given an order, every node takes its parents from the nodes before it, by growing and then shrinking a set: as
long as one of them raises the score, the best is added, and then the least useful is removed as long as that
does not lower the score. The score of the order is that of the graph that this gives. A sweep moves every
node to the place in the order where the score is greatest, as long as that helps.

Where only a block of nodes could be moved, single moves get stuck. So the order is drawn anew between sweeps,
among all that agree with the graph, and the search begins again from random orders. The best graph is kept.

What a node grows from the same set is always the same, whatever the order, so it is remembered
(`search.trees`): sweeps soon cost little, and restarts less than the first search. Where a node has
few candidates, all sets of them are scored instead, and it takes the best. If there are so few nodes that
this holds for all, the best order is computed, by dynamic programming over the set of its first nodes
(Silander and Myllymäki, 2006).

Most nodes that might be added to a set do not help. Where scores take time, that is found out first, by the
leads of the score (`Score.leads`): they say what is left for others to explain. Nodes without a lead are not
tried, and the others two at a time, the most promising first, until one of two helps.

In a random order, most nodes have many parents that others would make superfluous. If there are quicker
scores (`Score.draft`), they improve such orders before the score itself sees them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from spbn._base.checks import seconds, whole
from spbn.errors import ArgumentError, argument
from spbn.graphs.dag import Arc
from spbn.scores.base import Score
from spbn.search.hill_climbing import (
    INTERRUPTED,
    OUT_OF_TIME,
    SearchInterrupted,
    SearchResult,
    Step,
    Trail,
    require_fitting,
    require_types,
    with_best_types,
)
from spbn.search.operators import AddArc, Operator, RemoveArc, constrain
from spbn.search.trees import ROUNDING_OF_UNFIT, UNFIT, GrowShrinkTrees, noise_of
from spbn.structure import Structure

NO_BETTER_ORDER = "no better order was found"
FEWEST_TO_DRAFT = 7  # nodes; if there are fewer, nearly all families are scored anyway
#: Rows × nodes × those of a type that is not quick to score: where there are more, one search takes minutes.
MOST_WORK_TO_RESTART = 1_500_000


@dataclass(frozen=True)
class Sweep:
    """What one sweep of an order search led to.

    `restart` and `number` count from 1; `misses` are the sweeps since the last one that raised the score.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(500, seed=0)
    >>> score, sweeps = spbn.scores.BIC(data), []
    >>> found = spbn.search.order_search(score, spbn.Structure(data.columns), on_sweep=sweeps.append)
    >>> print(sweeps[0].restart, sweeps[0].number, len(sweeps[0].order))
    1 1 5
    """

    restart: int
    number: int
    order: tuple[str, ...]
    score: float
    misses: int

    def __str__(self) -> str:
        return f"restart {self.restart}, sweep {self.number}: score {self.score:.1f}"


def order_search(
    score: Score,
    start: Structure,
    *,
    restarts: int | None = None,
    patience: int = 2,
    max_parents: int | None = None,
    max_seconds: float | None = None,
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    seed: Seed = 0,
    on_sweep: Callable[[Sweep], object] | None = None,
    taken: Sequence[Sweep] = (),
) -> SearchResult:
    """Search for the graph with the greatest score, by orders of its nodes.

    This finds better graphs than `hill_climb` where arcs would have to be reversed together. The score should
    have no validation part: it alone decides. Node types stay as they are in `start`, unless the
    score chooses them (`spbn.scores.BestType`).

    Parameters
    ----------
    score
        The score to maximise.
    start
        The first order is one of this graph, or a random one if it has no arcs. If there are at most six
        columns, it is the best order. If no graph is found that is better, the start is the result.
    restarts
        How many searches to make, all but the first from random orders: by default 5, but 1 if that begins
        from the best order, or takes minutes since most nodes are not simple and there are many rows, and 2
        if there are hundreds of nodes.
    patience
        How many sweeps in a row, each from another order of the same graph, may fail to raise the score
        before such a search ends.
    max_seconds
        Stop after the first move that ends later than this many seconds.
    seed
        Decides where searches begin, and the order of moves.
    on_sweep
        Called with every `Sweep`.
    taken
        Sweeps of an earlier search with the same score, start and settings, which was cut short. The search
        continues after them as the earlier one would have.

    Returns
    -------
    A `SearchResult`. Its steps lead from the start to the graph that was found, one arc at a time and the
    greatest gains first.

    Raises
    ------
    SearchInterrupted
        A `KeyboardInterrupt` that carries what was found before it.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(500, seed=0)
    >>> score = spbn.scores.CVLikelihood(data, penalty="auto")
    >>> found = spbn.search.order_search(score, spbn.Structure(data.columns))
    >>> print(len(found.structure.arcs), "arcs;", found.stop_reason)
    3 arcs; no better order was found
    """
    began = time.monotonic()
    require_fitting("order_search", score, start)
    if restarts is not None:
        whole("restarts", restarts, 1, or_none=True)
    whole("patience", patience)
    seconds("max_seconds", max_seconds)
    structure, constraints = constrain(
        start,
        {variable.name: variable for variable in score.variables},
        operators=("arcs",),
        types=(),
        max_parents=max_parents,
        required_arcs=required_arcs,
        forbidden_arcs=forbidden_arcs,
        fixed_types=(),
    )
    require_types(score, structure)
    root = int(generator(seed).integers(1 << 62))
    trees = GrowShrinkTrees(score, constraints, structure)
    search = _Search(trees, structure, began, max_seconds)
    drafts, quicker = list[_Search](), score.draft
    while quicker is not None and len(structure.nodes) >= FEWEST_TO_DRAFT:
        of_draft = GrowShrinkTrees(quicker, constraints, structure)
        drafts.insert(0, _Search(of_draft, structure, began, max_seconds))
        quicker = quicker.draft

    def draft(order: IntArray, restart: int) -> IntArray:
        for quick in drafts:
            order = quick.improve(order, (root, restart))
        return order

    try:
        done = list(taken)
        for restart in range(1, (trees.usual_restarts if restarts is None else restarts) + 1):
            if restart == 2 and restarts is None and search.work > MOST_WORK_TO_RESTART:
                break
            number, misses = 0, 0
            while done and done[0].restart == restart:
                sweep = done.pop(0)
                number, misses = sweep.number, sweep.misses
                search.move_to(_places(structure, sweep.order))
            if number == 0:
                search.move_to(draft(_first_order(structure, trees, restart, root), restart))
            while misses <= patience:
                number += 1
                rng = np.random.default_rng((root, restart, number))
                has_risen = search.sweep(rng, early=number % 2 == 1)
                misses = 0 if has_risen else misses + 1
                if on_sweep is not None:
                    names = tuple(structure.nodes[place] for place in search.current.order.tolist())
                    on_sweep(Sweep(restart, number, names, search.current.score, misses))
        return search.result(NO_BETTER_ORDER)
    except _OutOfTime:
        return search.result(OUT_OF_TIME)
    except KeyboardInterrupt:
        raise SearchInterrupted(search.result(INTERRUPTED)) from None


class _OutOfTime(Exception):  # noqa: N818 -- nothing is wrong
    """Raised where a search has had all of its time."""


def _places(structure: Structure, order: Sequence[str]) -> IntArray:
    """Return the numbers of nodes that are given by name; refuse anything but an order of all nodes."""
    if sorted(order) != sorted(structure.nodes):
        raise ArgumentError(f"{argument('taken')} has a sweep with other nodes than start.")
    return np.array([structure.dag.index(node) for node in order])


def _first_order(structure: Structure, trees: GrowShrinkTrees, restart: int, root: int) -> IntArray:
    """Return where a search begins: from the best order, one that agrees with the start, or at random."""
    if restart == 1 and trees.is_small:
        return _best_order(trees, len(structure.dag.nodes))
    rng = np.random.default_rng((root, restart, 0))
    return linear_extension(_parents_in(structure) if restart == 1 else trees.required, rng, early=True)


def _best_order(trees: GrowShrinkTrees, columns: int) -> IntArray:
    """Return the order with the greatest score, by dynamic programming over the set of its first nodes."""
    n = len(trees.required)
    sets = np.arange(1 << n)
    is_first = (sets[:, None] >> np.arange(n)) & 1 == 1
    may_follow = ~is_first & ~(trees.required[:, :n] & ~is_first[:, None]).any(axis=2)
    layouts, nodes = np.nonzero(may_follow)
    places = np.full((len(sets), columns), -1)  # inputs come before all others
    places[:, :n] = ~is_first
    scores = np.full(may_follow.shape, -np.inf)
    scores[layouts, nodes] = trees.scores_of(trees.best(nodes, np.ones_like(nodes), layouts, places))
    totals, last = np.zeros(len(sets)), np.zeros(len(sets), dtype=np.int64)
    for number in sets[1:].tolist():
        members = np.flatnonzero(is_first[number])
        before = number ^ (1 << members)
        values = totals[before] + scores[before, members]
        totals[number], last[number] = values.max(), members[values.argmax()]
    order, number = np.empty(n, dtype=np.int64), len(sets) - 1
    for place in reversed(range(n)):
        order[place] = last[number]
        number ^= 1 << int(order[place])
    return order


def _parents_in(structure: Structure) -> BoolArray:
    """Return nodes × parents of a structure."""
    return np.ascontiguousarray(structure.dag.matrix[:, : len(structure.nodes)].T)


def linear_extension(parents: BoolArray, rng: np.random.Generator, *, early: bool) -> IntArray:
    """Draw an order in which the parents of every node come before it.

    `parents`: nodes × parents; others than the nodes themselves do not count.
    `early`: from the first node on, each being drawn among those whose parents are there; otherwise from the
    last node on, among those whose children are there. Both reach all orders, with different probabilities.
    """
    n = len(parents)
    waits_for = parents[:, :n] if early else parents[:, :n].T
    left, waits, out = np.ones(n, dtype=np.bool_), waits_for.sum(axis=1), np.empty(n, dtype=np.int64)
    for place in range(n):
        free = np.flatnonzero(left & (waits == 0))
        out[place] = node = free[rng.integers(len(free))]
        left[node] = False
        waits -= waits_for[:, node]
    return out if early else out[::-1].copy()


class _State(NamedTuple):
    """An order, what its nodes take as parents, and the score of that."""

    order: IntArray
    sets: IntArray  # of parents, by node
    scores: FloatArray  # by node
    score: float
    noise: float  # by how much rounding may change the score

    @classmethod
    def of(cls, order: IntArray, sets: IntArray, scores: FloatArray) -> _State:
        fitted = scores[scores > UNFIT]
        noise = noise_of(math.fsum(np.abs(fitted)))
        if len(fitted) < len(scores):
            noise += ROUNDING_OF_UNFIT
        return cls(order, sets, scores, math.fsum(scores), noise)


@final
class _Search:
    """The state of an order search: where it is, and the best graph so far."""

    def __init__(
        self, trees: GrowShrinkTrees, start: Structure, began: float, max_seconds: float | None
    ) -> None:
        self._trees = trees
        self._start = start
        self._deadline = math.inf if max_seconds is None else began + max_seconds
        self._of_start = _parents_in(start)
        #: The best graph so far: the parents of every node, and the score.
        self._best = self._of_start, trees.total(self._of_start)
        none = np.empty(0, dtype=np.int64)
        self.current = _State(none, none, np.empty(0), -math.inf, 0.0)

    def move_to(self, order: IntArray) -> None:
        """Go to an order, and take it for the best graph if it is."""
        self.current = self._at(order)
        self._compare()

    def _at(self, order: IntArray) -> _State:
        nodes = np.arange(len(order))
        places = np.full((1, len(self._start.dag.nodes)), -1)  # inputs come before all others
        places[0, order] = nodes
        sets = self._trees.best(nodes, places[0, nodes], np.zeros_like(nodes), places)
        return _State.of(order, sets, self._trees.scores_of(sets))

    def sweep(self, rng: np.random.Generator, *, early: bool) -> bool:
        """Draw another order of the graph, and move every node once; tell whether the score has risen."""
        before = self.current.score
        drawn = self._at(linear_extension(self._trees.parents_of(self.current.sets), rng, early=early))
        if drawn.score >= before - self.current.noise:
            self.current = drawn
        for node in rng.permutation(len(self.current.order)).tolist():
            if time.monotonic() >= self._deadline:
                self._compare()
                raise _OutOfTime
            self._move(node)
        self._compare()
        return self.current.score > before + self.current.noise

    def improve(self, order: IntArray, seed: tuple[int, ...]) -> IntArray:
        """Return an order that sweeps lead to from another one, as long as they help and there is time."""
        self.move_to(order)
        try:
            for number in count():
                if not self.sweep(np.random.default_rng((*seed, 0, number)), early=number % 2 == 1):
                    break
        except _OutOfTime:
            pass  # the order so far is still a good one
        return self.current.order

    @property
    def work(self) -> int:
        """How much is to be computed for the best graph, roughly: see `MOST_WORK_TO_RESTART`."""
        found = self.result(NO_BETTER_ORDER).structure
        slow = sum(not found.type(node).is_quick for node in found.nodes)
        return self._trees.score.size * len(found.nodes) * slow

    def result(self, stop_reason: str) -> SearchResult:
        """Return the best graph, and the steps that lead there from the start: the greatest gains first."""
        self._compare()
        names, graph = self._start.dag.nodes, self._best[0]
        present = self._of_start.copy()
        local = self._trees.scores(np.arange(len(present)), present).tolist()
        trail, steps = Trail(self._start), list[Step]()

        def take(operator: Operator, node: int, value: float) -> None:
            delta, local[node] = value - local[node], value
            total = math.fsum(local)
            trail.append(operator)
            steps.append(Step(operator, delta, total, total, 0, len(steps) + 1, trail))

        for node, other in np.argwhere(present & ~graph).tolist():  # first, so that no cycle comes up
            present[node, other] = False
            value = float(self._trees.scores(np.array([node]), present[[node]])[0])
            take(RemoveArc(names[other], names[node]), node, value)
        # For every node with parents to come, which is next and to what score that leads.
        following = self._next_parents(graph, present)
        while following:
            node = max(following, key=lambda node: following[node][0] - local[node])
            value, other = following.pop(node)
            present[node, other] = True
            take(AddArc(names[other], names[node]), node, value)
            following |= self._next_parents(graph, present, node)
        total = math.fsum(local)
        found = SearchResult(trail.after(len(steps)), total, total, tuple(steps), stop_reason, len(steps))
        return with_best_types(found, self._trees.score)

    def _next_parents(
        self, graph: BoolArray, present: BoolArray, only: int | None = None
    ) -> dict[int, tuple[float, int]]:
        """Return the best parent that nodes, or one of them, do not have yet, and the score with it."""
        nodes, others = np.nonzero(graph & ~present)
        if only is not None:
            nodes, others = nodes[nodes == only], others[nodes == only]
        with_others = present[nodes]
        with_others[np.arange(len(nodes)), others] = True
        values = self._trees.scores(nodes, with_others)
        best: dict[int, tuple[float, int]] = {}
        for node, other, value in zip(nodes.tolist(), others.tolist(), values.tolist(), strict=True):
            best[node] = max(best.get(node, (-math.inf, 0)), (value, other))
        return best

    def _compare(self) -> None:
        if self.current.score > self._best[1] + self.current.noise:
            self._best = self._trees.parents_of(self.current.sets), self.current.score

    def _move(self, node: int) -> None:
        """Move a node to where the score is greatest."""
        order, current = self.current.order, self.current
        here = int(np.flatnonzero(order == node)[0])
        rest = np.delete(order, here)
        first, last = self._trees.room(node, rest)
        passed = rest[first:last]
        # Of the others, those that the node comes before may have it as a parent. So there are two layouts.
        places = np.full((2, len(self._start.dag.nodes)), -1)
        places[:, rest] = np.arange(len(rest))
        places[1, node] = len(order)
        at = np.arange(first, last + 1)
        found = self._trees.best(
            np.concatenate([np.full(len(at), node), passed]),
            np.concatenate([at, at[:-1]]),
            np.concatenate([np.ones_like(at), at[:-1] >= here]).astype(np.int64),
            places,
        )
        scores = self._trees.scores_of(found)
        of_node, of_passed = scores[: len(at)], scores[len(at) :]
        # By how much the score changes when the node goes from before to after each of the others.
        passing = (of_passed - current.scores[passed]) * np.where(at[:-1] >= here, 1.0, -1.0)
        totals = np.concatenate([[0.0], np.cumsum(passing)]) + of_node
        best = int(totals.argmax())
        if not totals[best] > totals[here - first] + current.noise:
            return
        there = first + best
        sets, values = current.sets.copy(), current.scores.copy()
        sets[node], values[node] = found[best], of_node[best]
        changed = np.arange(min(here, there), max(here, there))
        sets[rest[changed]] = found[len(at) + changed - first]
        values[rest[changed]] = of_passed[changed - first]
        self.current = _State.of(np.insert(rest, there, node), sets, values)
