"""The first step of PC-stable: which pairs of variables are adjacent.

The edges of a level do not depend on each other, because adjacencies are
frozen. So all of them are asked about at once: every round puts the next
condition of each edge that is still open into one batch, and an edge leaves at
its first separating set. No test is run needlessly, unless the test gains from
larger batches than that gives (`IndependenceTest.batch_size` and `ask_ahead`);
the answers are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spbn.numerics.arrays import BoolArray
from spbn.pc.conditions import Conditions
from spbn.pc.inquiry import MOST_QUESTIONS, Inquiry

Pair = tuple[int, int]


@dataclass(frozen=True)
class Separation:
    """A condition that makes a pair independent, and its p-value."""

    given: tuple[int, ...]
    pvalue: float


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Adjacencies, and why the other pairs are not adjacent."""

    adjacent: BoolArray
    #: The separation of every pair (x, y), x < y, that a test separated.
    separations: dict[Pair, Separation]


def find_skeleton(inquiry: Inquiry, *, adjacent: BoolArray, required: BoolArray) -> Skeleton:
    """Remove edges from `adjacent`, level by level, except for the required ones."""
    adjacent = adjacent.copy()
    separations: dict[Pair, Separation] = {}
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
    return Skeleton(adjacent, separations)


def _separate(inquiry: Inquiry, level: list[Conditions]) -> dict[Pair, Separation]:
    """Return the first separating set of each edge that has one, among the conditions of this level."""
    found: dict[Pair, Separation] = {}
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
                given = tuple(batch[first].tolist())
                found[conditions.x, conditions.y] = Separation(given, float(of_edge[first]))
            elif ahead < conditions.count:
                next_open.append(conditions)
        still_open, asked = next_open, ahead
    return found


def _first_above(values: np.ndarray, bound: float) -> int | None:
    above = values > bound
    return int(above.argmax()) if above.any() else None
