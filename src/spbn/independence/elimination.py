"""Linear regression on a condition, by Gaussian elimination in the correlation matrix.

It costs O(k³) for k variables in the condition, whatever the number of rows.
"""

from __future__ import annotations

import numpy as np

from spbn.numerics.arrays import BoolArray, FloatArray, IntArray
from spbn.numerics.compiling import compiled
from spbn.numerics.moments import Moments

#: If the condition leaves a smaller share than this of a variable's variance, the variable is a
#: linear function of the condition: what is left is rounding.
REDUNDANT = 1e-12


def correlations_of(columns: FloatArray) -> FloatArray:
    """Return the correlation matrix of variables × rows."""
    scatter = Moments.of(columns).scatter
    deviation = np.sqrt(np.diag(scatter))
    return np.ascontiguousarray(scatter / np.outer(deviation, deviation))


@compiled()
def unexplained_shares(
    correlations: FloatArray, x: IntArray, y: IntArray, given: IntArray
) -> tuple[FloatArray, IntArray, BoolArray]:
    """Return what a linear regression of x and y on the condition leaves, for every question.

    Returns
    -------
    1 - r² for the partial correlation r, which is 1 where nothing is left to be correlated; the rank of the
    condition; and whether x or y is a linear function of it.
    """
    questions, size = given.shape
    shares = np.empty(questions)
    ranks = np.empty(questions, dtype=np.int64)
    determined = np.empty(questions, dtype=np.bool_)
    order = np.empty(size + 2, dtype=np.int64)
    rest = np.empty((size + 2, size + 2))
    for q in range(questions):
        order[:size] = given[q]
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
