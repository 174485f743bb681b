"""Search over orders of the nodes: the best order score search of Andrews et al. (2023).

Given an order, every node takes its parents from the nodes before it, by growing and then shrinking a set: as
long as one of them raises the score, the best is added, and then the least useful is removed as long as that
does not lower the score. The score of the order is that of the graph that this gives. A sweep moves every
node to the place in the order where the score is greatest, as long as that helps.

Where only a block of nodes could be moved, single moves get stuck. So the order is drawn anew between sweeps,
among all that agree with the graph, and the search begins again from random orders. The best graph is kept.

What a node grows from the same set is always the same, whatever the order, so it is remembered
(`GrowShrinkTrees`): sweeps soon cost little, and restarts less than the first search. Where a node has
few candidates, all sets of them are scored instead, and it takes the best.

Most nodes that might be added to a set do not help. Where scores take time, that is found out first, by the
leads of the score (`Score.leads`): they say what is left for others to explain. Nodes without a lead are not
tried, and the others two at a time, the most promising first, until one of two helps.

In a random order, most nodes have many parents that others would make superfluous. If there are quicker
scores (`Score.draft`), they improve such orders before the score itself sees them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, IntArray, Seed, generator
from spbn._base.checks import seconds, whole
from spbn.errors import ArgumentError, argument
from spbn.graphs.dag import DAG, Arc
from spbn.nodes.base import place_of
from spbn.rows.families import FamilyBatch
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
from spbn.search.operators import LARGEST_BATCH, AddArc, Constraints, Operator, RemoveArc, constrain
from spbn.structure import Structure

NO_BETTER_ORDER = "no better order was found"
UNFIT = -1e12  # stands for the score of a family that cannot be fitted: it must not hide the other families
#: Scores that differ by less, in nats or as a share of the score, are the same.
ROUNDING = 1e-9
#: Searches that are worth their time: of networks with few nodes, of others, and of those with many nodes.
RESTARTS_OF_SMALL, RESTARTS, RESTARTS_OF_LARGE = 25, 5, 2
LARGE = 200  # nodes
FEWEST_TO_DRAFT = 7  # nodes; if there are fewer, nearly all families are scored anyway
LEAST_LEAD = 4.0  # of a node that is worth a try as a further parent, in nats
NO_LEAD = 0.5  # of a node without which a set of parents is certainly better
AT_A_TIME = 2  # leads that are scored together, the best of which is taken if it helps
FEW_CANDIDATES = 5  # of a node, of which all sets are scored: 32, about as many as trees would need
ROUNDING_OF_UNFIT = 1e-3  # the same, if a family that cannot be fitted is among them


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


class Parents(NamedTuple):
    """The parents that a node takes from those before it, and its score with them."""

    score: float
    members: int  # bit i: node i is one of them


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
        The first order is one of this graph, or a random one if it has no arcs. If no graph is found that is
        better, it is the result.
    restarts
        How many searches to make, all but the first from random orders: by default 5, 25 if there are so few
        nodes that further ones cost nothing, and 2 if there are hundreds.
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

    def draft(order: list[int], restart: int) -> list[int]:
        for quick in drafts:
            order = quick.improve(order, (root, restart))
        return order

    try:
        done = list(taken)
        for restart in range(1, (trees.usual_restarts if restarts is None else restarts) + 1):
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
                    names = tuple(structure.nodes[place] for place in search.current.order)
                    on_sweep(Sweep(restart, number, names, search.current.score, misses))
        return search.result(NO_BETTER_ORDER)
    except _OutOfTime:
        return search.result(OUT_OF_TIME)
    except KeyboardInterrupt:
        raise SearchInterrupted(search.result(INTERRUPTED)) from None


class _OutOfTime(Exception):  # noqa: N818 -- nothing is wrong
    """Raised where a search has had all of its time."""


def _places(structure: Structure, order: Sequence[str]) -> list[int]:
    """Return the numbers of nodes that are given by name; refuse anything but an order of all nodes."""
    if sorted(order) != sorted(structure.nodes):
        raise ArgumentError(f"{argument('taken')} has a sweep with other nodes than start.")
    return [structure.dag.index(node) for node in order]


def _first_order(structure: Structure, trees: GrowShrinkTrees, restart: int, root: int) -> list[int]:
    """Return where a search begins: from an order that agrees with the start, or else at random."""
    rng = np.random.default_rng((root, restart, 0))
    return linear_extension(_parents_in(structure) if restart == 1 else trees.required, rng, early=True)


def _parents_in(structure: Structure) -> list[int]:
    """Return the parents of every node of a structure, as bits of a number."""
    index = structure.dag.index
    return [sum(1 << index(parent) for parent in structure.parents(node)) for node in structure.nodes]


def linear_extension(parents: Sequence[int], rng: np.random.Generator, *, early: bool) -> list[int]:
    """Draw an order in which the parents of every node come before it.

    `parents`: for every node, a bit for each parent; others than the nodes themselves do not count.
    `early`: from the first node on, each being drawn among those whose parents are there; otherwise from the
    last node on, among those whose children are there. Both reach all orders, with different probabilities.
    """
    n = len(parents)
    after = [0] * n
    for node, of_node in enumerate(parents):
        for parent in _members(of_node):
            if parent < n:
                after[parent] |= 1 << node
    waits_for = list(parents) if early else after
    left, out = (1 << n) - 1, []
    while left:
        free = [node for node in _members(left) if not waits_for[node] & left]
        node = free[int(rng.integers(len(free)))]
        out.append(node)
        left &= ~(1 << node)
    return out if early else out[::-1]


def _members(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a number."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class _State(NamedTuple):
    """An order, what its nodes take as parents, and the score of that."""

    order: list[int]
    parents: list[Parents]  # by node
    score: float
    noise: float  # by how much rounding may change the score

    @classmethod
    def of(cls, order: list[int], parents: list[Parents]) -> _State:
        fitted = [found.score for found in parents if found.score > UNFIT]
        noise = _noise(math.fsum(map(abs, fitted)))
        if len(fitted) < len(parents):
            noise += ROUNDING_OF_UNFIT
        return cls(order, parents, math.fsum(found.score for found in parents), noise)


@final
class _Search:
    """The state of an order search: where it is, and the best graph so far."""

    def __init__(
        self, trees: GrowShrinkTrees, start: Structure, began: float, max_seconds: float | None
    ) -> None:
        self._trees = trees
        self._start = start
        self._deadline = math.inf if max_seconds is None else began + max_seconds
        self._inputs = trees.inputs
        self._of_start = _parents_in(start)
        #: The best graph so far: the parents of every node, and the score.
        self._best = self._of_start, trees.total(self._of_start)
        self.current = _State([], [], -math.inf, 0.0)

    def move_to(self, order: Sequence[int]) -> None:
        """Go to an order, and take it for the best graph if it is."""
        self.current = self._at(order)
        self._compare()

    def _at(self, order: Sequence[int]) -> _State:
        before, queries = self._inputs, []
        for node in order:
            queries.append((node, before))
            before |= 1 << node
        parents = [Parents(UNFIT, 0)] * len(order)
        for node, found in zip(order, self._trees.best(queries), strict=True):
            parents[node] = found
        return _State.of(list(order), parents)

    def sweep(self, rng: np.random.Generator, *, early: bool) -> bool:
        """Draw another order of the graph, and move every node once; tell whether the score has risen."""
        before = self.current.score
        drawn = self._at(linear_extension([p.members for p in self.current.parents], rng, early=early))
        if drawn.score >= before - self.current.noise:
            self.current = drawn
        for node in rng.permutation(len(self.current.order)).tolist():
            if time.monotonic() >= self._deadline:
                self._compare()
                raise _OutOfTime
            self._move(node)
        self._compare()
        return self.current.score > before + self.current.noise

    def improve(self, order: Sequence[int], seed: tuple[int, ...]) -> list[int]:
        """Return an order that sweeps lead to from another one, as long as they help and there is time."""
        self.move_to(order)
        try:
            for number in count():
                if not self.sweep(np.random.default_rng((*seed, 0, number)), early=number % 2 == 1):
                    break
        except _OutOfTime:
            pass  # the order so far is still a good one
        return self.current.order

    def result(self, stop_reason: str) -> SearchResult:
        """Return the best graph, and the steps that lead there from the start: the greatest gains first."""
        self._compare()
        names, scores = self._start.dag.nodes, self._trees.scores
        local = scores(list(enumerate(self._of_start)))
        trail, steps = Trail(self._start), list[Step]()

        def take(operator: Operator, node: int, value: float) -> None:
            delta, local[node] = value - local[node], value
            total = math.fsum(local)
            trail.append(operator)
            steps.append(Step(operator, delta, total, total, 0, len(steps) + 1, trail))

        graph, _ = self._best
        present = list(self._of_start)
        for node, wanted in enumerate(graph):  # before others are added, so that no cycle comes up
            for other in _members(present[node] & ~wanted):
                present[node] ^= 1 << other
                (value,) = scores([(node, present[node])])
                take(RemoveArc(names[other], names[node]), node, value)
        # For every node with parents to come, which is next and to what score that leads.
        following = self._next_parents(range(len(graph)), graph, present)
        while following:
            node = max(following, key=lambda node: following[node][0] - local[node])
            value, other = following.pop(node)
            present[node] |= 1 << other
            take(AddArc(names[other], names[node]), node, value)
            if graph[node] != present[node]:
                following |= self._next_parents([node], graph, present)
        total = math.fsum(local)
        found = SearchResult(trail.after(len(steps)), total, total, tuple(steps), stop_reason, len(steps))
        return with_best_types(found, self._trees.score)

    def _next_parents(
        self, nodes: Sequence[int], graph: Sequence[int], present: Sequence[int]
    ) -> dict[int, tuple[float, int]]:
        """Return the best parent that each of some nodes does not have yet, and the score with it."""
        options = [(node, other) for node in nodes for other in _members(graph[node] & ~present[node])]
        values = self._trees.scores([(node, present[node] | 1 << other) for node, other in options])
        best: dict[int, tuple[float, int]] = {}
        for (node, other), value in zip(options, values, strict=True):
            best[node] = max(best.get(node, (-math.inf, 0)), (value, other))
        return best

    def _compare(self) -> None:
        if self.current.score > self._best[1] + self.current.noise:
            self._best = [parents.members for parents in self.current.parents], self.current.score

    def _move(self, node: int) -> None:
        """Move a node to where the score is greatest."""
        order, parents = self.current.order, self.current.parents
        here = order.index(node)
        rest = order[:here] + order[here + 1 :]
        first, last = self._trees.room(node, rest)
        bit, before = 1 << node, self._inputs
        for other in rest[:first]:
            before |= 1 << other
        own, others = [(node, before)], []
        for place in range(first, last):
            other = rest[place]
            others.append((other, before if place >= here else before | bit))
            before |= 1 << other
            own.append((node, before))
        found = self._trees.best([*own, *others])
        of_node, of_others = found[: len(own)], found[len(own) :]
        # By how much the score changes when the node goes from before to after each of the others.
        passing = np.array(
            [
                (new.score - parents[rest[place]].score) * (1.0 if place >= here else -1.0)
                for place, new in zip(range(first, last), of_others, strict=True)
            ]
        )
        totals = np.concatenate([[0.0], np.cumsum(passing)]) + [p.score for p in of_node]
        best = int(totals.argmax())
        if not totals[best] > totals[here - first] + self.current.noise:
            return
        there, moved = first + best, list(parents)
        moved[node] = of_node[best]
        for place in range(min(here, there), max(here, there)):
            moved[rest[place]] = of_others[place - first]
        self.current = _State.of([*rest[:there], node, *rest[there:]], moved)


class _Set:
    """What is known of a set of parents of a node: its score, how it grows, and what it shrinks to."""

    __slots__ = ("branches", "further", "score", "shrunk", "useless")

    def __init__(self, score: float) -> None:
        self.score = score
        #: Groups of nodes that might raise the score, the most promising first, as bits of a number for each.
        self.further: list[int] | None = None
        self.useless = 0  # nodes that certainly do not, as bits
        #: Of each group that has been scored the nodes that do raise it, the best first, as bits.
        self.branches: dict[int, list[int]] = {}
        self.shrunk: Parents | None = None

    def next(self, allowed: int) -> int:
        """Return the node that is added to the set, as a bit; 0 if none is.

        If a group has to be scored before that is known, it is returned, with a negative sign.
        """
        for group in self.further or ():
            if group & allowed:
                if group not in self.branches:
                    return -group
                for branch in self.branches[group]:
                    if branch & allowed:
                        return branch
        return 0


@final
class GrowShrinkTrees:
    """The parents that nodes take from those before them, whichever these are.

    Questions are answered many at a time, and all families that they need next are scored in one batch. A
    family is a node and its parents as bits of a number.
    """

    def __init__(self, score: Score, constraints: Constraints, structure: Structure) -> None:
        names, knowledge = structure.dag.nodes, constraints.knowledge
        self.score = score
        self._columns = np.array([score.nodes.index(name) for name in names])
        self._types = np.array([place_of(structure.type(node)) for node in structure.nodes], dtype=np.int8)
        self._most = constraints.max_parents
        n = len(structure.nodes)
        self.inputs = ((1 << len(names)) - 1) ^ ((1 << n) - 1)
        candidates = ~knowledge.forbidden_arcs & ~np.eye(len(names), dtype=bool)
        self._candidates = [np.flatnonzero(candidates[:, node]) for node in range(n)]
        #: The required parents of every node.
        self.required = [_mask(knowledge.required_arcs[:, node]) for node in range(n)]
        reach = DAG.from_matrix(names, knowledge.required_arcs).reachability
        self._before = [_mask(reach[:, node]) & ~(1 << node) for node in range(n)]
        self._after = [_mask(reach[node]) & ~(1 << node) for node in range(n)]
        self._sets: list[dict[int, _Set]] = [{} for _ in range(n)]
        #: All sets of parents of nodes with few candidates, the best first, as soon as they are needed.
        self._ranked: dict[int, list[Parents]] = {}

    @property
    def usual_restarts(self) -> int:
        """How many searches are worth their time: more if all families are known after the first."""
        if all(len(others) <= FEW_CANDIDATES for others in self._candidates):
            return RESTARTS_OF_SMALL
        return RESTARTS if len(self._candidates) < LARGE else RESTARTS_OF_LARGE

    def room(self, node: int, order: Sequence[int]) -> tuple[int, int]:
        """Return the first and the last place among others where required arcs allow a node to be."""
        before, after = self._before[node], self._after[node]
        first = max((place + 1 for place, other in enumerate(order) if before >> other & 1), default=0)
        last = min((place for place, other in enumerate(order) if after >> other & 1), default=len(order))
        return first, last

    def total(self, parents: Sequence[int]) -> float:
        """Return the score of a graph: the parents of every node."""
        return math.fsum(self.scores(list(enumerate(parents))))

    def best(self, queries: Sequence[tuple[int, int]]) -> list[Parents]:
        """Return what nodes take as parents, of those that are allowed in each query: bits of a number."""
        has_few = [len(self._candidates[node]) <= FEW_CANDIDATES for node, _ in queries]
        self._rank({node for (node, _), few in zip(queries, has_few, strict=True) if few})
        many = [query for query, few in zip(queries, has_few, strict=True) if not few]
        grown = self._grow(many)
        self._shrink({(node, members) for (node, _), members in zip(many, grown, strict=True)})
        found = iter(grown)
        return [
            next(parents for parents in self._ranked[node] if not parents.members & ~allowed)
            if few
            else self._sets[node][next(found)].shrunk  # type: ignore[misc]  # they are all known now
            for (node, allowed), few in zip(queries, has_few, strict=True)
        ]

    def _rank(self, nodes: Iterable[int]) -> None:
        """Score the sets of parents of nodes with few candidates; of equal ones, the smaller comes first.

        A set is left out if one of its members is no lead, given the others: they alone are better.
        """
        new = sorted(set(nodes) - set(self._ranked))
        self._ranked |= {node: [] for node in new}
        sets = [(node, self.required[node]) for node in new]
        while sets:
            self._find_leads(sets)
            larger = dict[tuple[int, int], None]()
            for node, members in sets:
                self._ranked[node].append(Parents(self._sets[node][members].score, members))
                larger |= {(node, members | bit): None for bit in self._bits(node, ~members)}
            sets = [(node, members) for node, members in larger if self._may_be_best(node, members)]
        for node in new:
            self._ranked[node].sort(key=lambda parents: -parents.score)

    def _may_be_best(self, node: int, members: int) -> bool:
        """Tell whether every member of a set is a lead, given the others, as far as that is known."""
        if members.bit_count() > self._most:
            return False
        known = self._sets[node]
        for bit in self._bits(node, members & ~self.required[node]):
            others = known.get(members ^ bit)
            if others is not None and others.useless & bit:
                return False
        return True

    def _bits(self, node: int, mask: int) -> list[int]:
        """Return the candidates of a node that are in a mask, as bits."""
        return [1 << other for other in self._candidates[node].tolist() if mask >> other & 1]

    def _grow(self, queries: Sequence[tuple[int, int]]) -> list[int]:
        at = [self.required[node] for node, _ in queries]
        under_way: Iterable[int] = range(len(queries))
        while True:
            waiting, new = [], dict[tuple[int, int], None]()
            groups = dict[tuple[int, int, int], None]()
            for number in under_way:
                node, allowed = queries[number]
                members, sets = at[number], self._sets[node]
                while True:
                    known = sets.get(members)
                    if known is None or known.further is None:
                        new[node, members] = None
                        waiting.append(number)
                        break
                    branch = known.next(allowed)
                    if branch < 0:
                        groups[node, members, -branch] = None
                        waiting.append(number)
                    if branch <= 0:
                        break
                    members |= branch
                at[number] = members
            if not waiting:
                return at
            self._find_leads(list(new))
            self._find_branches(list(groups))
            under_way = waiting

    def _find_leads(self, sets: Sequence[tuple[int, int]]) -> None:
        """Find out which further parents of sets are worth a try."""
        new = [(node, members) for node, members in sets if members not in self._sets[node]]
        for (node, members), value in zip(new, self.scores(new), strict=True):
            self._sets[node][members] = _Set(value)
        growing = [(node, members) for node, members in sets if members.bit_count() < self._most]
        leads = self.score.leads(self._batch(growing)) if growing else None
        for node, members in sets:
            self._sets[node][members].further = []
        for number, (node, members) in enumerate(growing):
            others = [other for other in self._candidates[node].tolist() if not members >> other & 1]
            known = self._sets[node][members]
            of_others = (
                np.full(len(others), math.inf) if leads is None else leads[number, self._columns[others]]
            )
            ranked = np.argsort(-of_others, kind="stable")
            unknown, judged = (
                np.count_nonzero(of_others == math.inf),
                np.count_nonzero(of_others > LEAST_LEAD),
            )
            starts = [0, *range(unknown, judged, AT_A_TIME), judged]
            bits = [1 << others[place] for place in ranked.tolist()]
            known.further = [sum(bits[first:end]) for first, end in pairwise(starts) if end > first]
            known.useless = sum(bits[np.count_nonzero(of_others > NO_LEAD) :])

    def _find_branches(self, groups: Sequence[tuple[int, int, int]]) -> None:
        """Find out which nodes of groups raise the scores of sets."""
        at_a_time = max(1, LARGEST_BATCH // (len(self._columns) * len(self.score.nodes)))
        for start in range(0, len(groups), at_a_time):
            some = groups[start : start + at_a_time]
            added = [np.array(list(_members(group)), dtype=np.int64) for _, _, group in some]
            counts = [len(others) for others in added]
            nodes = np.repeat(np.array([node for node, _, _ in some], dtype=np.int64), counts)
            parents = np.repeat(self._unpacked([members for _, members, _ in some]), counts, axis=0)
            parents[np.arange(len(parents)), np.concatenate(added)] = True
            values = np.split(
                np.maximum(self.score.local_batch(self._batch_of(nodes, parents)), UNFIT),
                np.cumsum(counts)[:-1],
            )
            for (node, members, group), others, found in zip(some, added, values, strict=True):
                known = self._sets[node][members]
                useful = np.flatnonzero(found > known.score + _noise(known.score))
                ranked = useful[np.argsort(-found[useful], kind="stable")]
                known.branches[group] = [1 << other for other in others[ranked].tolist()]
                for place in ranked.tolist():
                    self._sets[node].setdefault(members | 1 << int(others[place]), _Set(float(found[place])))

    def _shrink(self, sets: Iterable[tuple[int, int]]) -> None:
        """Find out what sets shrink to."""
        at = {(node, members): members for node, members in sets if not self._sets[node][members].shrunk}
        shrinking = list(at)
        while shrinking:
            options = [
                (node, at[node, members] & ~(1 << other))
                for node, members in shrinking
                for other in _members(at[node, members] & ~self.required[node])
            ]
            values = iter(self.scores(options))
            still = []
            smaller = iter(options)
            for node, members in shrinking:
                now = at[node, members]
                value = self._sets[node][now].score
                count = (now & ~self.required[node]).bit_count()
                found = [(next(values), next(smaller)[1]) for _ in range(count)]
                best = max(found, default=(-math.inf, 0), key=lambda option: option[0])
                if count and best[0] >= value - _noise(value):
                    self._sets[node].setdefault(best[1], _Set(best[0]))
                    at[node, members] = best[1]
                    still.append((node, members))
            shrinking = still
        for (node, members), least in at.items():
            self._sets[node][members].shrunk = Parents(self._sets[node][least].score, least)

    def scores(self, families: Sequence[tuple[int, int]]) -> list[float]:
        """Return the scores of families; `UNFIT` for those that cannot be fitted."""
        unknown = [
            (node, members) for node, members in dict.fromkeys(families) if members not in self._sets[node]
        ]
        found = dict[tuple[int, int], float]()
        if unknown:
            values = np.maximum(self.score.local_batch(self._batch(unknown)), UNFIT)
            found = dict(zip(unknown, values.tolist(), strict=True))
        return [
            self._sets[node][members].score if members in self._sets[node] else found[node, members]
            for node, members in families
        ]

    def _unpacked(self, sets: Sequence[int]) -> BoolArray:
        """Return sets × nodes."""
        size = -(-len(self._columns) // 8)
        packed = np.frombuffer(b"".join(members.to_bytes(size, "little") for members in sets), dtype=np.uint8)
        bits = np.unpackbits(packed.reshape(len(sets), size), axis=1, bitorder="little")
        return bits[:, : len(self._columns)].astype(np.bool_)

    def _batch(self, families: Sequence[tuple[int, int]]) -> FamilyBatch:
        nodes = np.array([node for node, _ in families], dtype=np.int64)
        return self._batch_of(nodes, self._unpacked([members for _, members in families]))

    def _batch_of(self, nodes: IntArray, parents: BoolArray) -> FamilyBatch:
        of_columns = np.zeros((len(nodes), len(self.score.nodes)), dtype=np.bool_)
        of_columns[:, self._columns] = parents
        return FamilyBatch(self.score.nodes, self._columns[nodes], of_columns, self._types[nodes])


def _noise(score: float) -> float:
    """Return by how much rounding may change a score."""
    return ROUNDING * max(1.0, abs(score)) if score > UNFIT else ROUNDING_OF_UNFIT


def _mask(members: BoolArray) -> int:
    """Return a number with a bit for each of the members."""
    return sum(1 << int(place) for place in np.flatnonzero(members))
