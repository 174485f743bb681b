"""RCoT: the randomised conditional correlation test, nonparametric and linear in the rows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, final

import numpy as np

from spbn.compiling import launching_for
from spbn.data import FloatArray, IntArray, Missing, Seed
from spbn.errors import ArgumentError
from spbn.independence.base import IndependenceTest, require_rows, root_seed, sorted_table, stream
from spbn.independence.fourier import Features, Projections, project_one, project_set
from spbn.independence.rcot_kernel import standardise, statistics
from spbn.independence.weighted_chi_square import POWERS, upper_tail

#: The features of a condition are at most this share of the rows, or they would explain anything.
ROWS_A_FEATURE = 5
#: Conditions whose factorisation is kept.
REMEMBERED = 512
#: Conditions, and rows of all of them, in one compiled call: an interrupt has not long to wait.
CONDITIONS_A_CALL = 64
ROWS_A_CALL = 1 << 18
#: Questions that one thread answers together; they share the features of their condition.
QUESTIONS_A_TASK = 32
#: If products of residuals are smaller than this, on average, then they are rounding.
NOTHING_LEFT = 1e-18

_remembering = threading.Lock()  # a test may be asked by several threads


@final
class RCoT(IndependenceTest):
    """Randomised conditional correlation test (Strobl, Zhang and Visweswaran, 2019).

    Random cosines of x, of y and of the condition stand for their kernels. Those
    of x and y are regressed on those of the condition; if x and y are
    independent given it, what is left of the two is not correlated. The sum of
    the squared correlations is compared with its null distribution, a weighted
    sum of chi-square variables (`spbn.independence.weighted_chi_square`).

    It assumes independent rows and smooth dependence, of any form. It costs
    O(rows × condition_features²) for a condition, which is remembered, and
    O(rows × features × condition_features) for a question: on two cores
    about half a millisecond at 2,000 rows. Many variables in a condition, or
    a strongly bent dependence on several of them, are more than the features can
    follow: then it rejects too often.

    Where nothing is left of x or y because the condition determines it, the
    p-value is 1.

    Parameters
    ----------
    data
        A data frame or a dict of columns.
    features
        Random features of x and of y; 5, as in the authors' R package.
    condition_features
        Random features of the condition; 100, as in PyBNesian, but never more than
        a fifth of the rows.
    seed
        Fixes the features: those of a variable, or of a condition, depend on the
        seed and on the names alone.
    missing
        Refuse rows with missing or infinite values ("error") or leave them out ("drop").
    """

    def __init__(
        self,
        data: Any,
        *,
        features: int = 5,
        condition_features: int = 100,
        seed: Seed = 0,
        missing: Missing = "error",
    ) -> None:
        for name, count in (("features", features), ("condition_features", condition_features)):
            if not isinstance(count, int) or count < 1:
                raise ArgumentError(f"{name} must be a count, 1 or more. Got {count!r} instead.")
        nodes, table = sorted_table(data, missing)
        super().__init__(nodes)
        self.rows = table.rows
        self.features = features
        self.condition_features = min(condition_features, max(1, table.rows // ROWS_A_FEATURE))
        self._seed = root_seed(seed)
        centred = table.columns - table.columns.mean(axis=1, keepdims=True)
        self._columns = np.ascontiguousarray(centred / centred.std(axis=1, ddof=1, keepdims=True))
        self._variables = self._draw_variables()
        #: Weights, phases, centre, scale and factor of conditions, the last ones that were asked about.
        self._remembered: OrderedDict[tuple[int, ...], tuple[FloatArray, ...]] = OrderedDict()

    def answer(self, x: IntArray, y: IntArray, given: IntArray) -> FloatArray:
        """Return the p-values, condition by condition."""
        size = given.shape[1]
        require_rows(self.rows, ROWS_A_FEATURE * (size + 1), size)
        # Questions with the same condition stand together, and within it those with the same x.
        order = np.lexsort((y, x, *given.T[::-1]))
        statistic, power_sums = np.empty(len(x)), np.empty((len(x), POWERS))
        conditions_a_call = min(CONDITIONS_A_CALL, max(2, ROWS_A_CALL // self.rows))
        for questions, tasks, members in _calls(given[order], conditions_a_call):
            chosen = order[questions]
            conditions, factors = self._conditions(members)
            with launching_for(len(tasks)):
                statistic[chosen], power_sums[chosen] = statistics(
                    self._columns, self._variables, conditions, factors, tasks, x[chosen], y[chosen]
                )
        pvalues = np.ones(len(x))
        left = power_sums[:, 0] > NOTHING_LEFT
        pvalues[left] = upper_tail(statistic[left], power_sums[left])
        return pvalues

    def _draw_variables(self) -> Features:
        """Draw the features of every variable."""
        drawn = [
            project_one(column, self.features, stream(self._seed, "variable", name))
            for name, column in zip(self.names, self._columns, strict=True)
        ]
        projections = Projections(np.arange(len(drawn))[:, None], *map(np.stack, zip(*drawn, strict=True)))
        with launching_for(len(drawn)):
            centres, scales, _ = standardise(self._columns, projections)
        return Features(*projections, centres, scales)

    def _conditions(self, members: IntArray) -> tuple[Features, FloatArray]:
        """Return the features of the conditions, and the factors of their correlations."""
        keys = [tuple(row) for row in members.tolist()]
        with _remembering:
            self._remember([key for key in keys if key not in self._remembered])
            for key in keys:
                self._remembered.move_to_end(key)
            found = [self._remembered[key] for key in keys]
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        weights, phases, centres, scales, factors = map(np.stack, zip(*found, strict=True))
        return Features(members, weights, phases, centres, scales), factors

    def _remember(self, keys: list[tuple[int, ...]]) -> None:
        """Draw the features of new conditions, all of the same size, and factorise their correlations."""
        if not keys:
            return
        members = np.array(keys, dtype=np.int64).reshape(len(keys), -1)
        features = self.condition_features if members.shape[1] else 0
        drawn = [
            project_set(
                self._columns,
                row,
                features,
                stream(self._seed, "condition", *(self.names[i] for i in row)),
            )
            for row in members
        ]
        weights, phases = map(np.stack, zip(*drawn, strict=True))
        with launching_for(len(keys)):
            fitted = standardise(self._columns, Projections(members, weights, phases))
        for key, *arrays in zip(keys, weights, phases, *fitted, strict=True):
            self._remembered[key] = tuple(arrays)


def _calls(given: IntArray, conditions: int) -> Iterator[tuple[slice, IntArray, IntArray]]:
    """Cut questions, sorted by condition, into calls: their questions, tasks and distinct conditions.

    A call has `conditions` at most. A task is (number of the condition, first
    question, end), counted within the call.
    """
    changes = np.flatnonzero((given[1:] != given[:-1]).any(axis=1)) + 1
    starts = [0, *changes.tolist(), len(given)]
    for i in range(0, len(starts) - 1, conditions):
        ends = starts[i : i + conditions + 1]
        tasks = [
            (number, first - ends[0], min(first + QUESTIONS_A_TASK, end) - ends[0])
            for number, (start, end) in enumerate(pairwise(ends))
            for first in range(start, end, QUESTIONS_A_TASK)
        ]
        yield slice(ends[0], ends[-1]), np.array(tasks), given[ends[:-1]]
