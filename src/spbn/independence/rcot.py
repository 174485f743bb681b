"""RCoT: the randomised conditional correlation test, nonparametric and linear in the rows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.random import Seed
from spbn._base.threads import Threads, available_threads
from spbn.errors import ArgumentError
from spbn.independence.base import IndependenceTest, require_rows, root_seed, sorted_table, stream
from spbn.independence.fourier import Features, Projections, project_one, project_set
from spbn.independence.partial_correlation import correlations_of, unexplained_shares
from spbn.independence.rcot_kernel import answer_questions, standardise
from spbn.independence.weighted_chi_square import POWERS, upper_tail
from spbn.tables.frames import Missing
from spbn.tables.table import Variable

#: The features of a condition are at most this share of the rows; more would explain anything.
ROWS_A_FEATURE = 5
#: Conditions whose factorisation is kept: 80 MB, with 100 features each.
REMEMBERED = 1024
#: Tasks whose conditions are in memory together.
TASKS_AT_ONCE = 64
#: Questions that one thread answers together; they share the features of their condition.
QUESTIONS_A_TASK = 32
#: If products of residuals are smaller than this, on average, then they are rounding.
NOTHING_LEFT = 1e-18

Key = tuple[int, ...]
_remembering = threading.Lock()  # a test may be asked by several threads


@final
class RCoT(IndependenceTest):
    """Randomised conditional correlation test (Strobl, Zhang and Visweswaran, 2019).

    Random cosines of x, of y and of the condition represent their kernels. Those
    of x and y are regressed on those of the condition; if x and y are
    independent given it, the residuals of the two are not correlated. The sum of
    the squared correlations is compared with its null distribution, a weighted
    sum of chi-square variables (`spbn.independence.weighted_chi_square`).

    A discrete variable is represented by cosines of its one-hot columns, which together vary as much as
    a column of numbers.

    It assumes independent rows and smooth dependence, of any form. It costs
    O(rows × condition_features²) for a condition, which is remembered, and
    O(rows × features × condition_features) for a question: on two cores
    about half a millisecond at 2,000 rows. Many variables in a condition, or
    a strongly curved dependence on several of them, are more than the features can
    follow: then it rejects too often.

    Where x or y is a linear function of the condition, such as a copy of one of
    its variables or a sum of several, no dependence can be left, and the p-value
    is 1. For other functions of the condition, whatever the features cannot
    follow is left, and nothing is promised.

    Parameters
    ----------
    data
        A data frame or a dict of columns. Text, categories and truth values are discrete.
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

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> test = spbn.RCoT(data, seed=0)
    >>> bool(test.pvalue("B", "C") < 0.05)
    True
    """

    # In a dense graph a condition comes up for a dozen pairs, but not in the same round.
    ask_ahead = 3.0

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
        variables, table = sorted_table(data, missing)
        super().__init__(variables)
        self.rows = table.rows
        self.features = features
        self.condition_features = min(condition_features, max(1, table.rows // ROWS_A_FEATURE))
        self._seed = root_seed(seed)
        parts = [_standardised(column, of) for column, of in zip(table.columns, table.variables, strict=True)]
        self._columns = np.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])
        #: The columns of every variable.
        self._members = np.split(np.arange(ends[-1]), ends[:-1])
        self._correlations = correlations_of(self._columns)
        self._variables = self._draw_variables()
        #: Features and factors of the most recent conditions.
        self._remembered: OrderedDict[Key, tuple[Features, FloatArray]] = OrderedDict()

    def answer(self, x: IntArray, y: IntArray, given: IntArray) -> FloatArray:
        """Return the p-values, condition by condition."""
        size = given.shape[1]
        require_rows(self.rows, ROWS_A_FEATURE * (size + 1), size)
        # Questions with the same condition come together, and within them those with the same x.
        order = np.lexsort((y, x, *given.T[::-1]))
        x, y, given = x[order], y[order], given[order]
        determined = self._determined(x, y, given)
        statistic, power_sums = np.empty(len(x)), np.empty((len(x), POWERS))
        tasks = list(_tasks(given))
        threads = available_threads()
        for start in range(0, len(tasks), TASKS_AT_ONCE):
            batch = tasks[start : start + TASKS_AT_ONCE]
            conditions = self._conditions([key for key, _ in batch], threads)
            arguments = [
                (*conditions[key], x[part], y[part], statistic[part], power_sums[part]) for key, part in batch
            ]
            threads.run(answer_questions, [(self._columns, self._variables, *rest) for rest in arguments])
        left = (power_sums[:, 0] > NOTHING_LEFT) & ~determined
        pvalues = np.ones(len(x))
        pvalues[order[left]] = upper_tail(statistic[left], power_sums[left])
        return pvalues

    def _determined(self, x: IntArray, y: IntArray, given: IntArray) -> BoolArray:
        """Tell in which questions x or y is a linear function of the condition."""
        if len(self._columns) == len(self.names):
            return unexplained_shares(self._correlations, x, y, given)[2]
        out = np.empty(len(x), dtype=np.bool_)
        for number, (i, j, condition) in enumerate(zip(x, y, given, strict=True)):
            out[number] = self._is_function(i, condition) or self._is_function(j, condition)
        return out

    def _is_function(self, variable: int, condition: IntArray) -> bool:
        """Tell whether all columns of a variable are linear functions of those of a condition."""
        columns = self._members[variable]
        given = np.tile(self._columns_of(condition), (len(columns), 1))
        return bool(unexplained_shares(self._correlations, columns, columns, given)[2].all())

    def _columns_of(self, variables: IntArray) -> IntArray:
        nothing = np.empty(0, dtype=np.int64)
        return np.concatenate([nothing, *(self._members[variable] for variable in variables)])

    def _draw_variables(self) -> Features:
        """Draw the features of every variable."""
        count, widest = len(self.names), max(map(len, self._members))
        members = np.zeros((count, widest), dtype=np.int64)
        weights, phases = np.zeros((count, self.features, widest)), np.empty((count, self.features))
        for number, (name, mine) in enumerate(zip(self.names, self._members, strict=True)):
            rng, size = stream(self._seed, "variable", name), len(mine)
            members[number, :size] = mine  # what follows has no weight
            weights[number, :, :size], phases[number] = (
                project_one(self._columns[mine[0]], self.features, rng)
                if size == 1
                else project_set(self._columns, mine, self.features, rng)
            )
        return self._standardised(Projections(members, weights, phases))[0]

    def _conditions(self, keys: list[Key], threads: Threads) -> dict[Key, tuple[Features, FloatArray]]:
        """Return the features of conditions, and the factors of their correlations."""
        with _remembering:
            new = [key for key in dict.fromkeys(keys) if key not in self._remembered]
            threads.run(self._remember, [(key,) for key in new])
            found = {key: self._remembered[key] for key in keys}
            for key in found:
                self._remembered.move_to_end(key)
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        return found

    def _remember(self, key: Key) -> None:
        """Draw the features of a condition, and factorise their correlations."""
        members = self._columns_of(np.array(key, dtype=np.int64))
        rng = stream(self._seed, "condition", *(self.names[i] for i in key))
        features = self.condition_features if key else 0
        weights, phases = project_set(self._columns, members, features, rng)
        drawn, factors = self._standardised(Projections(members[None], weights[None], phases[None]))
        self._remembered[key] = drawn, factors[0]

    def _standardised(self, projections: Projections) -> tuple[Features, FloatArray]:
        """Make features of projections; return the factors of their correlations too."""
        sets, features = projections.phases.shape
        centres, scales = np.empty((sets, features)), np.empty((sets, features))
        factors = np.zeros((sets, features, features))
        for number in range(sets):
            standardise(self._columns, projections, number, centres[number], scales[number], factors[number])
        return Features(*projections, centres, scales), factors


def _standardised(column: FloatArray, variable: Variable) -> FloatArray:
    """Return a column of numbers with mean 0 and variance 1, or the one-hot columns of the levels that occur.

    The variances of those sum to 1: like numbers, they are as far apart from each other in total.
    """
    parts = column[None] == np.unique(column)[:, None] if variable.is_discrete else column[None]
    centred = parts - parts.mean(axis=1, keepdims=True)
    spread: FloatArray = np.sqrt(np.sum(centred.std(axis=1, ddof=1) ** 2))
    return np.ascontiguousarray(centred / spread)


def _tasks(given: IntArray) -> Iterator[tuple[Key, slice]]:
    """Cut questions, sorted by condition, into parts of at most `QUESTIONS_A_TASK` that share one."""
    changes = np.flatnonzero((given[1:] != given[:-1]).any(axis=1)) + 1
    for start, end in pairwise([0, *changes.tolist(), len(given)]):
        key = tuple(given[start].tolist())
        for first in range(start, end, QUESTIONS_A_TASK):
            yield key, slice(first, min(first + QUESTIONS_A_TASK, end))
