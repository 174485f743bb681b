"""Cholesky factors of small covariance matrices, in compiled code, with a rule for when one is singular.

A matrix counts as singular if a variable is determined by those before it
up to `SINGULAR` of its own variance. Below that, rounding decides.
"""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.jit import compiled

#: Smallest share of a variable's variance that the variables before it must leave unexplained.
SINGULAR = 1e-12


@compiled()
def factorise(matrix: FloatArray, d: int, out: FloatArray) -> bool:
    """Write the lower Cholesky factor of the leading d × d block into that of `out`.

    False if the block is singular or not finite.
    """
    for i in range(d):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            if i > j:
                out[i, j] = total / out[j, j]
            elif total > SINGULAR * matrix[i, i] and total < np.inf:
                out[i, i] = math.sqrt(total)
            else:
                return False
        for j in range(i + 1, d):
            out[i, j] = 0.0
    return True


@compiled()
def invert(lower: FloatArray, out: FloatArray) -> None:
    """Write the inverse of a lower triangular matrix into `out`."""
    d = len(lower)
    for i in range(d):
        out[i, i] = 1.0 / lower[i, i]
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total -= lower[i, k] * out[k, j]
            out[i, j] = total / lower[i, i]
        for j in range(i + 1, d):
            out[i, j] = 0.0


def whitener(matrix: FloatArray) -> FloatArray | None:
    """Return the W with W matrix Wᵀ = 1, lower triangular; None if the matrix is singular.

    The leading block of W whitens the leading block of the matrix.
    """
    square = np.array(matrix, dtype=np.float64)  # writable, like the matrices of all other callers
    lower, inverse = np.empty_like(square), np.empty_like(square)
    if not factorise(square, len(square), lower):
        return None
    invert(lower, inverse)
    return inverse
