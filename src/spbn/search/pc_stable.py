"""PC-stable: a partially directed graph from tests of conditional independence.

Three steps (Colombo and Maathuis, 2014):

1. *Skeleton.* Start with every pair joined, and remove an edge once a
   condition is found that makes its ends independent. Conditions grow level by
   level, and within a level the adjacencies are frozen (`pc_skeleton`).
2. *Colliders.* Decide for every unshielded triple whether it is x → z ← y.
3. *Meek's rules* orient what follows from those (`spbn.graphs.orientation`).

Internally, nodes are numbered alphabetically (``test.names``), so ties are broken
by name, and the order of the columns makes no difference.

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

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.checks import fraction, is_whole, refuse
from spbn._base.progress import stage_progress
from spbn.errors import ArgumentError, argument
from spbn.graphs.dag import PDAG, Arc
from spbn.graphs.knowledge import Knowledge
from spbn.graphs.orientation import Triple, meek, reaches, unshielded_triples
from spbn.independence.base import IndependenceTest
from spbn.nodes.base import impossible_arcs, refuse_impossible
from spbn.search.pc_skeleton import MOST_QUESTIONS, Conditions, Inquiry, Pair, Skeleton, find_skeleton

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
        skeleton = find_skeleton(inquiry, adjacent=allowed, required=knowledge.required_edges)
        known = knowledge.arcs_among(skeleton.adjacent)
        verdicts = judge_triples(inquiry, skeleton, orientation)
    directed = orient_colliders(known, verdicts.colliders)
    undirected = skeleton.adjacent & ~(directed | directed.T)
    directed, undirected = meek(directed, undirected, ambiguous=verdicts.ambiguous)
    return _result(inquiry, skeleton, directed, undirected)


def _result(inquiry: Inquiry, skeleton: Skeleton, directed: BoolArray, undirected: BoolArray) -> PCResult:
    """Replace numbers by names, and put the nodes in the order of the columns."""
    nodes, names, tests_run = inquiry.test.nodes, inquiry.test.names, inquiry.tests_run
    columns = [names.index(node) for node in nodes]
    shuffle = np.ix_(columns, columns)
    separating_sets = {
        frozenset((names[x], names[y])): frozenset(names[i] for i in separation.given)
        for (x, y), separation in skeleton.separations.items()
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


@dataclass(frozen=True)
class Verdicts:
    """What was found about the unshielded triples (x, z, y), x < y."""

    #: The colliders, the most certain first.
    colliders: tuple[Triple, ...]
    #: The triples that the rule leaves open.
    ambiguous: frozenset[Triple]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the separating sets of some pairs say."""

    pairs: list[Pair]
    #: How many separating sets each pair has.
    count: IntArray
    #: ``containing[i, z]``: how many of pair i contain z.
    containing: IntArray
    #: The greatest p-value of each pair.
    pvalue: FloatArray

    @classmethod
    def about(cls, pairs: list[Pair], nodes: int) -> Evidence:
        """Start without any separating sets."""
        n = len(pairs)
        return cls(pairs, np.zeros(n, np.int64), np.zeros((n, nodes), np.int64), np.zeros(n))

    def add(self, numbers: IntArray, sets: IntArray, pvalues: FloatArray) -> None:
        """Count separating sets: of pair ``numbers[i]``, the set ``sets[i]``."""
        np.add.at(self.count, numbers, 1)
        np.add.at(self.containing, (numbers[:, None], sets), 1)
        np.maximum.at(self.pvalue, numbers, pvalues)


def judge_triples(inquiry: Inquiry, skeleton: Skeleton, rule: ColliderRule) -> Verdicts:
    """Decide for every unshielded triple whether it is a collider."""
    triples = list(unshielded_triples(skeleton.adjacent))
    evidence = Evidence.about(sorted({(x, y) for x, _, y in triples}), len(skeleton.adjacent))
    if rule == "sepset":
        _recall(skeleton, evidence)
    else:
        _search(inquiry, skeleton.adjacent, evidence)
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
    return Verdicts(tuple(triple for *_, triple in sorted(sure)), frozenset(ambiguous))


def orient_colliders(known: BoolArray, colliders: tuple[Triple, ...]) -> BoolArray:
    """Return the known arcs and those of the colliders, without contradictions."""
    directed = known.copy()
    for x, z, y in colliders:
        if not reaches(directed, z, x) and not reaches(directed, z, y):
            directed[x, z] = directed[y, z] = True
    return directed


def _recall(skeleton: Skeleton, evidence: Evidence) -> None:
    """Take the separating sets that the skeleton was found with."""
    for number, pair in enumerate(evidence.pairs):
        if (separation := skeleton.separations.get(pair)) is not None:
            given = np.array([separation.given], dtype=np.int64)
            evidence.add(np.array([number]), given, np.array([separation.pvalue]))


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
