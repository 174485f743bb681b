"""The second step of PC: which unshielded triples x - z - y are colliders x → z ← y.

z is a collider if it plays no part in separating x and y. There are three rules:

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
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.graphs.orientation import Triple, reaches, unshielded_triples
from spbn.search.pc_skeleton import MOST_QUESTIONS, Conditions, Inquiry, Pair, Skeleton

ColliderRule = Literal["majority", "conservative", "sepset"]


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

    def add(self, numbers: IntArray, given: IntArray, pvalues: FloatArray) -> None:
        """Count separating sets: of pair ``numbers[i]``, the set ``given[i]``."""
        np.add.at(self.count, numbers, 1)
        np.add.at(self.containing, (numbers[:, None], given), 1)
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
            numbers, given = _slice(conditions, offsets, start, min(start + MOST_QUESTIONS, offsets[-1]))
            stage = f"colliders, conditions of {size}"
            pvalues = inquiry.ask(
                ends[numbers, 0], ends[numbers, 1], given, stage=stage, done=start, total=offsets[-1]
            )
            inquiry.tests_run[size] += len(numbers)
            independent = pvalues > inquiry.alpha
            evidence.add(numbers[independent], given[independent], pvalues[independent])
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
