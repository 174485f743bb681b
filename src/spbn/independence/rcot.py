"""RCoT: the randomised conditional correlation test, nonparametric and linear in the rows.

Under independence the statistic is a weighted sum of chi-square variables. Its upper tail is computed from
the power sums of its weights. Lindsay, Pilla and Basak (2000) take a mixture of four gamma distributions with
a common shape that has the first eight moments of the sum. A gamma variable of mean μ and shape 1/s has the
moments μ^r (1 + s)(1 + 2s)···(1 + (r-1)s). So, divided by those products, the moments of the sum must be the
moments of the *means* of the mixture, and a distribution on four points is given by its moments: its points
and weights are those of Gauss quadrature. That fixes all but s, the inverse of the shape: it is the one for
which four points suffice, that is, for which the matrix of moments becomes singular.

Where rounding leaves no room for four points, the mixture has three, two, or
one. One is the approximation of Satterthwaite and Welch.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed
from spbn._base.jit import compiled, run_tasks
from spbn.independence.base import IndependenceTest, require_positive, require_rows, root_seed, stream
from spbn.independence.partial_correlation import correlations_of, unexplained_shares
from spbn.independence.rcot_kernel import Features, answer_questions, project_one, project_set, standardise
from spbn.tables.reader import Missing
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

#: Number of gamma distributions, and of power sums that it takes.
POINTS = 4
POWERS = 2 * POINTS

_BISECTIONS = 50


@final
class RCoT(IndependenceTest):
    """Randomised conditional correlation test (Strobl, Zhang and Visweswaran, 2019).

    Random cosines of x, of y and of the condition represent their kernels. Those of x and y are regressed on
    those of the condition; if x and y are independent given it, the residuals of the two are not correlated.
    The sum of the squared correlations is compared with its null distribution, a weighted sum of chi-square
    variables (`spbn.independence.rcot`).

    A discrete variable is represented by cosines of its one-hot columns, which together vary as much as
    a column of numbers.

    It assumes independent rows and smooth dependence, of any form. It costs O(rows × condition_features²) for
    a condition, which is remembered, and O(rows × features × condition_features) for a question: on two cores
    about half a millisecond at 2,000 rows. Many variables in a condition, or a strongly curved dependence on
    several of them, are more than the features can follow: then it rejects too often.

    Where x or y is a linear function of the condition, such as a copy of one of its variables or a sum of
    several, no dependence can be left, and the p-value is 1. For other functions of the condition, whatever
    the features cannot follow is left, and nothing is promised.

    Parameters
    ----------
    data
        A data frame or a dict of columns. Text, categories and truth values are discrete.
    features
        Random features of x and of y; 5, as in the authors' R package.
    condition_features
        Random features of the condition; 100, as in PyBNesian, but never more than a fifth of the rows.
    seed
        Fixes the features: those of a variable, or of a condition, depend on the seed and on the names alone.
    missing
        Refuse rows with missing or infinite values ("error") or leave them out ("drop").

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> test = spbn.independence.RCoT(data, seed=0)
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
        self.features = require_positive("features", features)
        most = require_positive("condition_features", condition_features)
        table = self._read(data, missing, discrete=True)
        self.condition_features = min(most, max(1, table.rows // ROWS_A_FEATURE))
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

    def answer(self, x: IntArray, y: IntArray, sets: IntArray) -> FloatArray:
        size = sets.shape[1]
        require_rows(self.rows, ROWS_A_FEATURE * (size + 1), size)
        # Questions with the same condition come together, and within them those with the same x.
        order = np.lexsort((y, x, *sets.T[::-1]))
        x, y, sets = x[order], y[order], sets[order]
        determined = self._determined(x, y, sets)
        statistic, power_sums = np.empty(len(x)), np.empty((len(x), POWERS))
        tasks = list(_tasks(sets))
        for start in range(0, len(tasks), TASKS_AT_ONCE):
            batch = tasks[start : start + TASKS_AT_ONCE]
            conditions = self._conditions([key for key, _ in batch])
            arguments = [
                (*conditions[key], x[part], y[part], statistic[part], power_sums[part]) for key, part in batch
            ]
            run_tasks(answer_questions, [(self._columns, self._variables, *rest) for rest in arguments])
        left = (power_sums[:, 0] > NOTHING_LEFT) & ~determined
        pvalues = np.ones(len(x))
        pvalues[order[left]] = upper_tail(statistic[left], power_sums[left])
        return pvalues

    def _determined(self, x: IntArray, y: IntArray, sets: IntArray) -> BoolArray:
        """Tell in which questions x or y is a linear function of the condition."""
        if len(self._columns) == len(self.names):
            return unexplained_shares(self._correlations, x, y, sets)[2]
        out = np.empty(len(x), dtype=np.bool_)
        for number, (i, j, condition) in enumerate(zip(x, y, sets, strict=True)):
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
        return self._standardised(members, weights, phases)[0]

    def _conditions(self, keys: list[Key]) -> dict[Key, tuple[Features, FloatArray]]:
        """Return the features of conditions, and the factors of their correlations."""
        with _remembering:
            new = [key for key in dict.fromkeys(keys) if key not in self._remembered]
            run_tasks(self._remember, [(key,) for key in new])
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
        drawn, factors = self._standardised(members[None], weights[None], phases[None])
        self._remembered[key] = drawn, factors[0]

    def _standardised(
        self, members: IntArray, weights: FloatArray, phases: FloatArray
    ) -> tuple[Features, FloatArray]:
        """Make features of projections; return the factors of their correlations too."""
        drawn = Features(members, weights, phases, np.empty_like(phases), np.empty_like(phases))
        factors = np.zeros((*phases.shape, phases.shape[1]))
        for number, factor in enumerate(factors):
            standardise(self._columns, drawn, number, factor)
        return drawn, factors


def _standardised(column: FloatArray, variable: Variable) -> FloatArray:
    """Return a column of numbers with mean 0 and variance 1, or the one-hot columns of the levels that occur.

    The variances of those sum to 1: like numbers, they are as far apart from each other in total.
    """
    parts = column[None] == np.unique(column)[:, None] if variable.is_discrete else column[None]
    centred = parts - parts.mean(axis=1, keepdims=True)
    spread: FloatArray = np.sqrt(np.sum(centred.std(axis=1, ddof=1) ** 2))
    return np.ascontiguousarray(centred / spread)


def _tasks(sets: IntArray) -> Iterator[tuple[Key, slice]]:
    """Cut questions, sorted by condition, into parts of at most `QUESTIONS_A_TASK` that share one."""
    changes = np.flatnonzero((sets[1:] != sets[:-1]).any(axis=1)) + 1
    for start, end in pairwise([0, *changes.tolist(), len(sets)]):
        key = tuple(sets[start].tolist())
        for first in range(start, end, QUESTIONS_A_TASK):
            yield key, slice(first, min(first + QUESTIONS_A_TASK, end))


def upper_tail(statistics: FloatArray, power_sums: FloatArray) -> FloatArray:
    """Return P(Σ λ_i χ²_1 > statistic).

    `statistics`: one for each question.
    `power_sums`: questions × 8: Σ λ_i, Σ λ_i², ..., of non-negative weights λ_i, not all 0.
    """
    scale = power_sums[:, 0]
    relative = power_sums / scale[:, None] ** np.arange(1, POWERS + 1)
    inverse_shapes, diagonals, off_diagonals = _jacobi_matrices(relative)
    matrices = np.zeros((len(statistics), POINTS, POINTS))
    steps = np.arange(POINTS)
    matrices[:, steps, steps] = diagonals
    matrices[:, steps[1:], steps[:-1]] = off_diagonals
    failed = ~np.isfinite(matrices).all(axis=(1, 2))
    matrices[failed] = np.eye(POINTS)
    means, vectors = np.linalg.eigh(matrices)  # reads the lower triangle
    weights = vectors[:, 0, :] ** 2
    # Points without weight belong to mixtures of fewer than four; their place does not matter.
    failed |= ((means <= 0) & (weights > 0)).any(axis=1)
    means[failed], weights[failed], inverse_shapes[failed] = 1.0, 1.0 / POINTS, 2.0 * relative[failed, 1]
    means = np.where(weights > 0, means, 1.0)
    inverse_shapes = inverse_shapes[:, None]
    from scipy.special import gammaincc  # not at the top: it takes a third of a second

    tails = gammaincc(1 / inverse_shapes, (statistics / scale)[:, None] / (means * inverse_shapes))
    return np.clip((weights * tails).sum(axis=1), 0.0, 1.0)


@compiled()
def _jacobi_matrices(power_sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the inverse shape of each mixture, and a tridiagonal matrix with its means as eigenvalues."""
    questions = len(power_sums)
    inverse_shapes = np.empty(questions)
    diagonals = np.ones((questions, POINTS))
    off_diagonals = np.zeros((questions, POINTS - 1))
    lower = np.empty((POINTS + 1, POINTS + 1))
    for q in range(questions):
        moments = _moments(power_sums[q])
        inverse_shape = moments[2] - 1.0  # of one gamma distribution; the mean is 1
        points = 1
        while points < POINTS:
            smaller = _singular_at(moments, points + 1, inverse_shape, lower)
            if not 0.0 < smaller < inverse_shape:
                break
            inverse_shape, points = smaller, points + 1
        inverse_shapes[q] = inverse_shape
        _factorise(moments, points, inverse_shape, lower)
        for k in range(points):
            diagonals[q, k] = lower[k + 1, k] / lower[k, k]
            if k > 0:
                diagonals[q, k] -= lower[k, k - 1] / lower[k - 1, k - 1]
                off_diagonals[q, k - 1] = lower[k, k] / lower[k - 1, k - 1]
    return inverse_shapes, diagonals, off_diagonals


@compiled()
def _moments(power_sums: FloatArray) -> FloatArray:
    """Return the moments 0 to 8 of Σ λ_i χ²_1, by way of its cumulants 2^(r-1) (r-1)! Σ λ_i^r."""
    moments = np.zeros(POWERS + 1)
    cumulants = np.zeros(POWERS + 1)
    moments[0] = 1.0
    factor = 1.0
    for r in range(1, POWERS + 1):
        cumulants[r] = factor * power_sums[r - 1]
        factor *= 2.0 * r
        choose = 1.0  # (r - 1) over (j - 1)
        for j in range(1, r + 1):
            moments[r] += choose * cumulants[j] * moments[r - j]
            choose *= (r - j) / j
    return moments


@compiled()
def _singular_at(moments: FloatArray, points: int, limit: float, lower: FloatArray) -> float:
    """Return the inverse shape below `limit` up to which the matrix of moments is positive definite."""
    low, high = 0.0, limit
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if _factorise(moments, points, middle, lower):
            low = middle
        else:
            high = middle
    return low


@compiled()
def _factorise(moments: FloatArray, points: int, inverse_shape: float, lower: FloatArray) -> bool:
    """Cholesky factor of the matrix of the means' moments; tell whether it is positive definite.

    The last pivot is not needed for the points, and may be zero.
    """
    mixed = np.empty(2 * points + 1)
    divisor = 1.0
    for r in range(2 * points + 1):
        if r > 1:
            divisor *= 1.0 + (r - 1) * inverse_shape
        mixed[r] = moments[r] / divisor
    for i in range(points + 1):
        for j in range(i + 1):
            rest = mixed[i + j]
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = rest / lower[j, j]
            elif rest > 0.0:
                lower[i, i] = np.sqrt(rest)
            else:
                return False
    return True
