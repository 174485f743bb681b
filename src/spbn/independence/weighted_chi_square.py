"""The upper tail of a weighted sum of chi-square variables, from the power sums of its weights.

Lindsay, Pilla and Basak (2000) take a mixture of four gamma distributions with
a common shape that has the first eight moments of the sum. A gamma variable
of mean μ and shape 1/s has the moments μ^r (1 + s)(1 + 2s)···(1 + (r-1)s). So,
divided by those products, the moments of the sum must be the moments of the
*means* of the mixture, and a distribution on four points is given by its
moments: its points and weights are those of Gauss quadrature. That fixes all
but s, the inverse of the shape: it is the one for which four points suffice,
that is, for which the matrix of moments becomes singular.

Where rounding leaves no room for four points, the mixture has three, two, or
one. One is the approximation of Satterthwaite and Welch.
"""

from __future__ import annotations

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.jit import compiled

#: Number of gamma distributions, and of power sums that it takes.
POINTS = 4
POWERS = 2 * POINTS

_BISECTIONS = 50


def upper_tail(statistics: FloatArray, power_sums: FloatArray) -> FloatArray:
    """Return P(Σ λ_i χ²_1 > statistic).

    Parameters
    ----------
    statistics
        One for each question.
    power_sums
        Questions × 8: Σ λ_i, Σ λ_i², ..., of non-negative weights λ_i, not all 0.
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
    total: FloatArray = np.clip((weights * tails).sum(axis=1), 0.0, 1.0)
    return total


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
