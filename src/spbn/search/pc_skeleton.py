"""The first step of PC-stable: which pairs of variables are adjacent.

The edges of a level do not depend on each other, because adjacencies are
frozen. So all of them are asked about at once: every round puts the next
condition of each edge that is still open into one batch, and an edge leaves at
its first separating set. No test is run needlessly, unless the test gains from
larger batches than that gives (`IndependenceTest.batch_size` and `ask_ahead`);
the answers are the same.

The conditions under which a pair is tested are sets of neighbours of its ends. Questions are put to the test
in batches, counted, and with reports of progress.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.jit import compiled
from spbn.independence.base import IndependenceTest

Pair = tuple[int, int]
#: More conditions than will ever be needed; larger counts would overflow.
ENDLESS = 1 << 48
#: Called with what is being done, how much of it is done, and how much there is.
Report = Callable[[str, int, int], None]

#: Questions are put to the test in parts that take about this long, so that there is something to report.
SECONDS_A_PART = 1.0
FIRST_PART = 64
#: How many questions are in memory at once: many, because different pairs share conditions.
MOST_QUESTIONS = 1 << 18


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


@dataclass(frozen=True, eq=False)
class Conditions:
    """Every set of neighbours of x, then every further one of y, that has a given size.

    There may be very many, and only a few are needed: they are numbered, and made
    on demand.
    """

    adjacent: BoolArray
    x: int
    y: int
    size: int

    @cached_property
    def _pools(self) -> tuple[IntArray, IntArray, int]:
        """The neighbours of x, those of y with the common ones last, and how many are common."""
        of_x, of_y = self.adjacent[self.x].copy(), self.adjacent[self.y].copy()
        of_x[self.y] = of_y[self.x] = False
        (in_x,), (in_y_alone,), (common,) = of_x.nonzero(), (of_y & ~of_x).nonzero(), (of_x & of_y).nonzero()
        return in_x, np.concatenate([in_y_alone, common]), len(common)

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """How many conditions come from x, and how many more from y.

        In lexicographic order, the sets of common neighbours alone are the last
        of y: all those before them are new.
        """
        of_x, of_y, common = self._pools
        return comb(len(of_x), self.size), comb(len(of_y), self.size) - comb(common, self.size)

    @cached_property
    def count(self) -> int:
        """How many conditions there are."""
        return sum(self._counts)

    def take(self, start: int, stop: int) -> IntArray:
        """Return the conditions with these numbers, one per row, each in ascending order."""
        of_x, of_y, _ = self._pools
        first, further = self._counts
        parts = [
            of_x[_combinations(len(of_x), self.size, min(start, first), min(stop, first))],
            of_y[
                _combinations(
                    len(of_y),
                    self.size,
                    min(max(start - first, 0), further),
                    min(max(stop - first, 0), further),
                )
            ],
        ]
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
        """Tell whether conditions may be this large."""
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
