"""PC-stable: a partially directed graph from tests of conditional independence.

Three steps (Colombo and Maathuis, 2014):

1. *Skeleton.* Start with every pair joined, and remove an edge once a
   condition is found that makes its ends independent. Conditions grow level by
   level, and within a level the adjacencies are frozen (`find_skeleton`).
2. *Colliders.* Decide for every unshielded triple whether it is x → z ← y.
3. *Meek's rules* orient what follows from those (`spbn.graphs.orientation`).

Internally, nodes are numbered alphabetically (``test.names``), so ties are broken
by name, and the order of the columns makes no difference.

Skeleton
--------
The edges of a level do not depend on each other, because adjacencies are
frozen. So all of them are asked about at once: every round puts the next
condition of each edge that is still open into one batch, and an edge leaves at
its first separating set. No test is run needlessly, unless the test gains from
larger batches than that gives (`IndependenceTest.batch_size` and `ask_ahead`);
the answers are the same.

The conditions under which a pair is tested are sets of neighbours of its ends. Questions are put to the test
in batches, counted, and with reports of progress.

Colliders
---------
In a triple x - z - y, z is a collider if it plays no part in separating x and y. There are three rules:

- ``"sepset"``: z is not in the set that separated x and y. It costs
  nothing, and is the most easily misled.
- ``"majority"``: of all separating sets among the neighbours of x and among those
  of y, fewer than half contain z. Any other triple is taken as a non-collider.
- ``"conservative"``: none of them contains z. A triple is a non-collider if all
  of them do; otherwise it is ambiguous, and Meek's first rule does not build on it.

Where there is no separating set to judge by, z is not called a collider.

With finite data, colliders may contradict each other. They are oriented from
the most to the least certain, and one that would reverse an existing arc, or
close a cycle, is skipped as a whole. The most certain is the one with the
greatest p-value of a separating set of x and y (Ramsey, 2016), then the one
with the smallest share of sets that contain z; names break ties. So the
outcome does not depend on the order of the columns.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import comb
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.checks import fraction, is_whole, refuse
from spbn._base.display import stage_progress
from spbn._base.jit import compiled
from spbn.errors import ArgumentError, argument
from spbn.graphs.dag import PDAG, Arc, Knowledge
from spbn.graphs.orientation import Triple, meek, reaches, unshielded_triples
from spbn.independence.base import IndependenceTest
from spbn.nodes.base import impossible_arcs, refuse_impossible

Pair = tuple[int, int]
#: For every pair (x, y), x < y, that a test separated: the condition that does, and its p-value.
Separations = dict[Pair, tuple[tuple[int, ...], float]]
#: More conditions than will ever be needed; larger counts would overflow.
ENDLESS = 1 << 48
#: Called with what is being done, how much of it is done, and how much there is.
Report = Callable[[str, int, int], None]

#: Questions are put to the test in parts that take about this long, so that there is something to report.
SECONDS_A_PART = 1.0
FIRST_PART = 64
#: How many questions are in memory at once: many, because different pairs share conditions.
MOST_QUESTIONS = 1 << 18


def find_skeleton(
    inquiry: Inquiry, *, adjacent: BoolArray, required: BoolArray
) -> tuple[BoolArray, Separations]:
    """Remove edges from `adjacent`, level by level, except for the required ones; also return why."""
    adjacent = adjacent.copy()
    separations: Separations = {}
    size = 0
    while inquiry.allows(size):
        edges = np.argwhere(np.triu(adjacent & ~required)).tolist()
        level = [of_edge for x, y in edges if (of_edge := Conditions(adjacent, x, y, size)).count]
        if not level:
            break
        found = _separate(inquiry, level)
        separations |= found
        for x, y in found:
            adjacent[x, y] = adjacent[y, x] = False
        size += 1
    return adjacent, separations


def _separate(inquiry: Inquiry, level: list[Conditions]) -> Separations:
    """Return the first separating set of each edge that has one, among the conditions of this level."""
    found: Separations = {}
    still_open, size, asked = level, level[0].size, 0
    while still_open:
        further = max(inquiry.test.batch_size // len(still_open), int(asked * inquiry.test.ask_ahead))
        ahead = asked + max(1, min(further, MOST_QUESTIONS // len(still_open)))
        batches = [conditions.take(asked, ahead) for conditions in still_open]
        counts = [len(batch) for batch in batches]
        pvalues = inquiry.ask(
            np.repeat(np.array([conditions.x for conditions in still_open]), counts),
            np.repeat(np.array([conditions.y for conditions in still_open]), counts),
            np.concatenate(batches),
            stage=f"conditions of {size}",
            done=len(level) - len(still_open),
            total=len(level),
        )
        next_open = []
        answers = np.split(pvalues, np.cumsum(counts)[:-1])
        for conditions, batch, of_edge in zip(still_open, batches, answers, strict=True):
            first = _first_above(of_edge, inquiry.alpha)
            inquiry.tests_run[size] += len(of_edge) if first is None else first + 1
            if first is not None:
                found[conditions.x, conditions.y] = tuple(batch[first].tolist()), float(of_edge[first])
            elif ahead < conditions.count:
                next_open.append(conditions)
        still_open, asked = next_open, ahead
    return found


def _first_above(values: np.ndarray, bound: float) -> int | None:
    above = values > bound
    return int(above.argmax()) if above.any() else None


@final
class Conditions:
    """Every set of neighbours of x, then every further one of y, that has a given size.

    There may be very many, and only a few are needed: they are numbered, and made
    on demand.
    """

    def __init__(self, adjacent: BoolArray, x: int, y: int, size: int) -> None:
        self.x, self.y, self.size = x, y, size
        of_x, of_y = adjacent[x].copy(), adjacent[y].copy()
        of_x[y] = of_y[x] = False
        (in_x,), (in_y_alone,), (common,) = of_x.nonzero(), (of_y & ~of_x).nonzero(), (of_x & of_y).nonzero()
        self._pools = in_x, np.concatenate([in_y_alone, common])
        # In lexicographic order, the sets of common neighbours alone are the last of y: all others are new.
        further = comb(len(self._pools[1]), size) - comb(len(common), size)
        self._counts = comb(len(in_x), size), further
        self.count = sum(self._counts)

    def take(self, start: int, stop: int) -> IntArray:
        """Return the conditions with these numbers, one per row, each in ascending order."""
        parts, before = [], 0
        for pool, count in zip(self._pools, self._counts, strict=True):
            ends = (min(max(end - before, 0), count) for end in (start, stop))
            parts.append(pool[_combinations(len(pool), self.size, *ends)])
            before += count
        return np.sort(np.concatenate(parts), axis=1)


@compiled()
def _choose(n: int, size: int) -> int:
    """Return how many combinations there are, at most `ENDLESS`."""
    size = min(size, n - size)
    if size < 0:
        return 0
    count = 1
    for i in range(size):
        count = count * (n - i) // (i + 1)
        if count > ENDLESS:
            return ENDLESS
    return count


@compiled()
def _combinations(n: int, size: int, start: int, stop: int) -> IntArray:
    """Return combinations of `size` of the numbers below n: from start to stop, in lexicographic order."""
    rows = np.empty((stop - start, size), dtype=np.int64)
    if stop == start or size == 0:
        return rows
    # Find the first one: the combinations that share a prefix are counted, not visited.
    skip, candidate = start, 0
    for k in range(size):
        while True:
            sharing = _choose(n - 1 - candidate, size - 1 - k)
            if skip < sharing:
                break
            skip -= sharing
            candidate += 1
        rows[0, k] = candidate
        candidate += 1
    for row in range(1, stop - start):
        k = size - 1
        while rows[row - 1, k] == n - size + k:
            k -= 1
        rows[row, :k] = rows[row - 1, :k]
        rows[row, k] = rows[row - 1, k] + 1
        for i in range(k + 1, size):
            rows[row, i] = rows[row, i - 1] + 1
    return rows


@dataclass(frozen=True)
class Inquiry:
    """A test, its significance level, and what has been asked so far."""

    test: IndependenceTest
    alpha: float
    #: Maximum number of variables in a condition; None for no limit.
    max_conditioning: int | None
    report: Report
    #: How many answers were used, by size of the condition.
    tests_run: Counter[int] = field(default_factory=Counter)

    def allows(self, size: int) -> bool:
        return self.max_conditioning is None or size <= self.max_conditioning

    def ask(
        self, x: IntArray, y: IntArray, sets: IntArray, *, stage: str, done: int, total: int
    ) -> FloatArray:
        """Return p-values as `IndependenceTest.answer` does, reporting progress along the way."""
        pvalues = np.empty(len(x))
        # Questions with the same condition share the slow work: keep them in the same part.
        order = np.arange(len(x)) if self.test.batch_size > 1 else np.lexsort((x, *sets.T[::-1]))
        start, step = 0, FIRST_PART
        while start < len(x):
            self.report(f"{stage}, {sum(self.tests_run.values()) + start:,} tests", done, total)
            part = order[start : start + step]
            began = time.perf_counter()
            pvalues[part] = self.test.answer(x[part], y[part], sets[part])
            start += step
            if time.perf_counter() - began < SECONDS_A_PART:
                step *= 2
        return pvalues


ColliderRule = Literal["majority", "conservative", "sepset"]


@dataclass(frozen=True)
class PCResult:
    """What PC found, and how.

    Examples
    --------
    >>> import spbn
    >>> true = spbn.datasets.synthetic_structure()
    >>> found = spbn.search.pc(spbn.independence.Oracle(true))
    >>> sorted(found.separating_sets[frozenset("AD")])
    ['C']
    """

    #: The graph: arcs where the direction is known, edges where it is not.
    pdag: PDAG
    #: For every pair that a test separated, the condition that makes it independent.
    separating_sets: Mapping[frozenset[str], frozenset[str]]
    #: ``tests_run[k]``: how many tests with k variables in the condition were run.
    tests_run: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "separating_sets", MappingProxyType(dict(self.separating_sets)))

    def __reduce__(self) -> tuple[Any, ...]:
        return PCResult, (self.pdag, dict(self.separating_sets), self.tests_run)


def pc(
    test: IndependenceTest,
    *,
    alpha: float = 0.05,
    max_conditioning: int | None = None,
    orientation: ColliderRule = "majority",
    required_edges: Iterable[Arc] = (),
    forbidden_edges: Iterable[Arc] = (),
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    progress: bool = False,
) -> PCResult:
    """Learn the graph of the variables of a test by PC-stable.

    If the tests are right and the true graph is a DAG without hidden common
    causes, this is its equivalence class. The number of tests grows
    exponentially with the number of neighbours of a node: `max_conditioning`
    limits it, and so does ``orientation="sepset"``, which needs none beyond
    those of the skeleton.

    Parameters
    ----------
    test
        An independence test on the data, such as ``RCoT(data)``.
    alpha
        A pair is independent if its p-value is greater than this.
    max_conditioning
        Maximum number of variables in a condition; no limit by default.
    orientation
        Rule for recognising colliders: see `spbn.search.pc_stable`.
    required_edges, forbidden_edges
        Pairs that must, or must not, be joined, whatever the tests say.
    required_arcs, forbidden_arcs
        Pairs (parent, child). A forbidden arc still allows the opposite direction.
        No arc goes from a continuous to a discrete variable.
    progress
        Show a progress bar.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> found = spbn.search.pc(spbn.independence.PartialCorrelation(data), alpha=0.01)
    >>> print(found.pdag)
    5 nodes: A, B, C, D, E
    B — C
    C — D
    """
    _check(test, alpha, max_conditioning, orientation)
    impossible, required = impossible_arcs(test.variables), list(required_arcs)
    refuse_impossible(impossible, required)
    knowledge = Knowledge.of(
        test.names,
        required_edges=required_edges,
        forbidden_edges=forbidden_edges,
        required_arcs=required,
        forbidden_arcs=[*forbidden_arcs, *impossible],
    )
    with stage_progress(progress, "PC") as report:
        inquiry = Inquiry(test, alpha, max_conditioning, report)
        allowed = ~(knowledge.forbidden_edges | np.eye(len(test.names), dtype=bool))
        adjacent, separations = find_skeleton(inquiry, adjacent=allowed, required=knowledge.required_edges)
        known = knowledge.arcs_among(adjacent)
        colliders, ambiguous = judge_triples(inquiry, adjacent, separations, orientation)
    directed = orient_colliders(known, colliders)
    directed, undirected = meek(directed, adjacent & ~(directed | directed.T), ambiguous=ambiguous)
    # Replace numbers by names, and put the nodes in the order of the columns.
    nodes, names, tests_run = test.nodes, test.names, inquiry.tests_run
    columns = [names.index(node) for node in nodes]
    shuffle = np.ix_(columns, columns)
    separating_sets = {
        frozenset((names[x], names[y])): frozenset(names[i] for i in given)
        for (x, y), (given, _) in separations.items()
    }
    return PCResult(
        PDAG.from_matrices(nodes, directed[shuffle], undirected[shuffle]),
        separating_sets,
        tuple(tests_run[size] for size in range(max(tests_run, default=-1) + 1)),
    )


def _check(test: IndependenceTest, alpha: float, max_conditioning: int | None, orientation: str) -> None:
    if not isinstance(test, IndependenceTest):
        raise ArgumentError(
            f"{argument('test')} must be an independence test on the data, for example RCoT(data). "
            f"Got {type(test).__name__} instead."
        )
    fraction("alpha", alpha)
    if max_conditioning is not None and not is_whole(max_conditioning, 0):
        refuse("max_conditioning", "None or a whole number, 0 or more", max_conditioning)
    if orientation not in ("majority", "conservative", "sepset"):
        refuse("orientation", "'majority', 'conservative' or 'sepset'", orientation)


@final
class Evidence:
    """What the separating sets of some pairs say; none at first."""

    def __init__(self, pairs: list[Pair], nodes: int) -> None:
        self.pairs = pairs
        #: How many separating sets each pair has.
        self.count = np.zeros(len(pairs), np.int64)
        #: ``containing[i, z]``: how many of pair i contain z.
        self.containing = np.zeros((len(pairs), nodes), np.int64)
        #: The greatest p-value of each pair.
        self.pvalue = np.zeros(len(pairs))

    def add(self, numbers: IntArray, sets: IntArray, pvalues: FloatArray) -> None:
        """Count separating sets: of pair ``numbers[i]``, the set ``sets[i]``."""
        np.add.at(self.count, numbers, 1)
        np.add.at(self.containing, (numbers[:, None], sets), 1)
        np.maximum.at(self.pvalue, numbers, pvalues)


def judge_triples(
    inquiry: Inquiry, adjacent: BoolArray, separations: Separations, rule: ColliderRule
) -> tuple[tuple[Triple, ...], frozenset[Triple]]:
    """Return the unshielded triples that are colliders, the most certain first, and those left open."""
    triples = list(unshielded_triples(adjacent))
    evidence = Evidence(sorted({(x, y) for x, _, y in triples}), len(adjacent))
    if rule == "sepset":
        for i, known in enumerate(evidence.pairs):
            if known in separations:
                given, pvalue = separations[known]
                evidence.add(np.array([i]), np.array([given], dtype=np.int64), np.array([pvalue]))
    else:
        _search(inquiry, adjacent, evidence)
    number = {pair: i for i, pair in enumerate(evidence.pairs)}
    sure: list[tuple[float, float, Triple]] = []
    ambiguous: set[Triple] = set()
    for x, z, y in triples:
        pair = number[x, y]
        count, containing = int(evidence.count[pair]), int(evidence.containing[pair, z])
        if count and (containing == 0 or (rule == "majority" and 2 * containing < count)):
            sure.append((-float(evidence.pvalue[pair]), containing / count, (x, z, y)))
        elif rule == "conservative" and (count == 0 or containing < count):
            ambiguous.add((x, z, y))
    return tuple(triple for *_, triple in sorted(sure)), frozenset(ambiguous)


def orient_colliders(known: BoolArray, colliders: tuple[Triple, ...]) -> BoolArray:
    """Return the known arcs and those of the colliders, without contradictions."""
    directed = known.copy()
    for x, z, y in colliders:
        if not reaches(directed, z, x) and not reaches(directed, z, y):
            directed[x, z] = directed[y, z] = True
    return directed


def _search(inquiry: Inquiry, adjacent: BoolArray, evidence: Evidence) -> None:
    """Find every separating set of each pair among the neighbours of its ends."""
    ends = np.array(evidence.pairs, dtype=np.int64).reshape(-1, 2)
    size = 0
    while inquiry.allows(size):
        conditions = [Conditions(adjacent, x, y, size) for x, y in evidence.pairs]
        offsets = list(accumulate((of_pair.count for of_pair in conditions), initial=0))
        if offsets[-1] == 0:
            break
        for start in range(0, offsets[-1], MOST_QUESTIONS):
            numbers, sets = _slice(conditions, offsets, start, min(start + MOST_QUESTIONS, offsets[-1]))
            stage = f"colliders, conditions of {size}"
            pvalues = inquiry.ask(
                ends[numbers, 0], ends[numbers, 1], sets, stage=stage, done=start, total=offsets[-1]
            )
            inquiry.tests_run[size] += len(numbers)
            independent = pvalues > inquiry.alpha
            evidence.add(numbers[independent], sets[independent], pvalues[independent])
        size += 1


def _slice(
    conditions: list[Conditions], offsets: list[int], start: int, stop: int
) -> tuple[IntArray, IntArray]:
    """Return the conditions from `start` to `stop`, counted over all pairs, and their pairs."""
    parts = []
    number = bisect_right(offsets, start) - 1
    while offsets[number] < stop:
        first, last = max(start - offsets[number], 0), min(stop, offsets[number + 1]) - offsets[number]
        parts.append((number, conditions[number].take(first, last)))
        number += 1
    numbers = np.repeat([number for number, _ in parts], [len(part) for _, part in parts])
    return numbers, np.concatenate([part for _, part in parts])
