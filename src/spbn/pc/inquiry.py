"""How PC puts its questions to a test: in batches, counted, and with reports of progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from spbn.independence.base import IndependenceTest
from spbn.numerics.arrays import FloatArray, IntArray

#: Called with what is being done, how much of it is done, and how much there is.
Report = Callable[[str, int, int], None]

#: Questions are put to the test in parts that take about this long, so that there is something to report.
SECONDS_A_PART = 1.0
FIRST_PART = 64
#: How many questions are in memory at once: many, because different pairs share conditions.
MOST_QUESTIONS = 1 << 18


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
        self, x: IntArray, y: IntArray, given: IntArray, *, stage: str, done: int, total: int
    ) -> FloatArray:
        """Return p-values as `IndependenceTest.answer` does, reporting progress along the way."""
        pvalues = np.empty(len(x))
        # Questions with the same condition share the slow work: keep them in the same part.
        order = np.arange(len(x)) if self.test.batch_size > 1 else np.lexsort((x, *given.T[::-1]))
        start, step = 0, FIRST_PART
        while start < len(x):
            self.report(f"{stage}, {sum(self.tests_run.values()) + start:,} tests", done, total)
            part = order[start : start + step]
            began = time.perf_counter()
            pvalues[part] = self.test.answer(x[part], y[part], given[part])
            start += step
            if time.perf_counter() - began < SECONDS_A_PART:
                step *= 2
        return pvalues
