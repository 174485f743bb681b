"""Partial correlation: the exact test for jointly Gaussian variables.

The regression on a condition is a Gaussian elimination in the correlation matrix. It costs O(k³) for k
variables in the condition, whatever the number of rows.
"""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.checks import either
from spbn._base.jit import compiled
from spbn.independence.base import IndependenceTest, require_rows
from spbn.numerics.moments import Moments
from spbn.tables.reader import Missing

#: If the condition leaves a smaller share than this of a variable's variance, the variable is a
#: linear function of the condition: what is left is rounding.
REDUNDANT = 1e-12


@final
class PartialCorrelation(IndependenceTest):
    """The t-test of the correlation of x and y after a linear regression of both on the condition.

    Exact if the variables are jointly Gaussian. Against dependence that is not linear it may have no power at
    all. The data are read once, for the correlation matrix; a question then costs O(k³) for k variables in
    the condition, whatever the number of rows: about a microsecond.

    A variable in the condition that is a linear function of the others changes nothing (this is what a
    pseudo-inverse gives). Where x or y itself is a linear function of the condition, no dependence can be
    left, and the p-value is 1. If x determines y, it is 0 up to rounding.

    Parameters
    ----------
    data
        A data frame or a dict of columns.
    degrees
        Degrees of freedom of t. ``"exact"``: N - 2 - k, which makes the test exact. ``"pybnesian"``: N - 4 -
        k if k > 0, as PyBNesian 0.5.1 takes them for a list of conditions, to compare results with it.
    missing
        Refuse rows with missing or infinite values ("error") or leave them out ("drop").

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> test = spbn.independence.PartialCorrelation(data)
    >>> bool(test.pvalue("C", "D") < 0.05)
    True
    >>> bool(test.pvalue("B", "D", ["C"]) < 0.05)
    False
    """

    batch_size = 8192

    def __init__(
        self, data: Any, *, degrees: Literal["exact", "pybnesian"] = "exact", missing: Missing = "error"
    ) -> None:
        either("degrees", degrees, ("exact", "pybnesian"))
        self._correlations = correlations_of(self._read(data, missing).columns)
        self.degrees = degrees

    def answer(self, x: IntArray, y: IntArray, sets: IntArray) -> FloatArray:
        """Return the probability of a greater absolute value of t = r √(degrees / (1 - r²)).

        That probability is the incomplete beta function of 1 - r², which keeps
        its relative precision down to the smallest representable number.
        """
        size = sets.shape[1]
        lost = 4 if self.degrees == "pybnesian" and size else 2
        require_rows(self.rows, size + lost + 1, size)
        unexplained, rank, _ = unexplained_shares(self._correlations, x, y, sets)
        from scipy.special import betainc  # not at the top: it takes a third of a second

        return betainc((self.rows - lost - rank) / 2, 0.5, unexplained)


def correlations_of(columns: FloatArray) -> FloatArray:
    """Return the correlation matrix of variables × rows."""
    scatter = Moments.of(columns).scatter
    deviation = np.sqrt(np.diag(scatter))
    return np.ascontiguousarray(scatter / np.outer(deviation, deviation))


@compiled()
def unexplained_shares(
    correlations: FloatArray, x: IntArray, y: IntArray, sets: IntArray
) -> tuple[FloatArray, IntArray, BoolArray]:
    """Return what a linear regression of x and y on the condition leaves, for every question.

    Returns
    -------
    1 - r² for the partial correlation r, which is 1 where nothing is left to be correlated; the rank of the
    condition; and whether x or y is a linear function of it.
    """
    questions, size = sets.shape
    shares = np.empty(questions)
    ranks = np.empty(questions, dtype=np.int64)
    determined = np.empty(questions, dtype=np.bool_)
    order = np.empty(size + 2, dtype=np.int64)
    rest = np.empty((size + 2, size + 2))
    for q in range(questions):
        order[:size] = sets[q]
        order[size], order[size + 1] = x[q], y[q]
        for i in range(size + 2):
            for j in range(i + 1):
                rest[i, j] = correlations[order[i], order[j]]
        ranks[q] = 0
        for k in range(size):
            if rest[k, k] > REDUNDANT:  # members that depend on earlier ones change nothing
                ranks[q] += 1
                for i in range(k + 1, size + 2):
                    factor = rest[i, k] / rest[k, k]
                    for j in range(k + 1, i + 1):
                        rest[i, j] -= factor * rest[j, k]
        left_x, left_y, shared = rest[size, size], rest[size + 1, size + 1], rest[size + 1, size]
        determined[q] = left_x <= REDUNDANT or left_y <= REDUNDANT
        shares[q] = 1.0 if determined[q] else max(0.0, 1.0 - shared * shared / (left_x * left_y))
    return shares, ranks, determined
