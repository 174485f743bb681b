"""Gaussian vectors: Cholesky factors, mass between two bounds, and estimates from columns with holes.

Cholesky factors are for small covariance matrices, in compiled code. A matrix counts as singular if a
variable is determined by those before it up to `SINGULAR` of its own variance. Below that, rounding decides.

Bounds of a normal distribution may be however far out.

A normal distribution of columns with holes is estimated by EM. Given the observed values of a row, its holes
are normal too. EM replaces them by their means, adds their covariance
to that of the rows, and estimates anew, until the likelihood settles. No row has to be complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, IntArray, frozen
from spbn._base.jit import compiled

#: Smallest share of a variable's variance that the variables before it must leave unexplained.
SINGULAR = 1e-12
FARTHEST = 38.0  # standard deviations, beyond which there is nothing left
ASYMPTOTIC = 8.0  # from here on the tail is a series, since erfc would lose its digits
MOST_ROUNDS = 200
SETTLED = 1e-3  # nats that a round changes the log-volume of the distribution by, per column
#: Rows of uncorrelated columns that are added, so that no direction is without variance.
ADDED_ROWS = 0.1


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


def log_mass_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return log P(low ≤ Z ≤ high) of a standard normal Z; -inf where there is nothing between."""
    from scipy.special import log_ndtr

    turned = low > 0.0  # a tail on the right is one on the left, seen in a mirror
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = log_ndtr(b), log_ndtr(a)
        mass = upper + np.log(-np.expm1(lower - upper))
    return np.where(b > a, mass, -np.inf)


def draw_between(low: FloatArray, high: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return draws of a standard normal between bounds, by inversion."""
    from scipy.special import log_ndtr, ndtri_exp

    turned = low > 0.0
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = log_ndtr(b), log_ndtr(a)
        # log(Φ(a) + u (Φ(b) - Φ(a)))
        drawn = ndtri_exp(upper + np.log1p((uniforms - 1.0) * -np.expm1(lower - upper)))
    drawn = np.clip(drawn, a, b)
    return np.where(turned, -drawn, drawn)


@compiled()
def mass(low: float, high: float) -> float:
    """Return P(low ≤ Z ≤ high) of a standard normal Z; 0 where it is less than can be written."""
    if low > 0.0:
        low, high = -high, -low
    if not high > -FARTHEST:
        return 0.0
    return 0.5 * (math.erfc(-high * math.sqrt(0.5)) - math.erfc(-low * math.sqrt(0.5)))


STEPS, REACH = 64, 9.0  # of the tables below: a 1 has so many, and they go so far to the left
_KNOTS = np.arange(-REACH * STEPS, 1.0) / STEPS
_BELOW = frozen(np.array([0.5 * math.erfc(-z * math.sqrt(0.5)) for z in _KNOTS]))
_DENSITY = frozen(np.exp(-0.5 * _KNOTS**2) / math.sqrt(2.0 * math.pi))


@compiled()
def quick_mass(low: float, high: float) -> float:
    """Return P(low ≤ Z ≤ high) of a standard normal Z by tables, to nine digits; 0 beyond `REACH`."""
    if low > 0.0:
        low, high = -high, -low
    if high <= 0.0:
        return _left(high) - _left(low)
    return 1.0 - _left(low) - _left(-high)


@compiled()
def _left(z: float) -> float:
    """Return P(Z ≤ z) for z ≤ 0, by Taylor's series around the nearest knot."""
    if z <= -REACH:
        return 0.0
    place = int((z + REACH) * STEPS + 0.5)
    knot = place / STEPS - REACH
    d, square = z - knot, knot * knot
    series = d * (square * (square - 6.0) + 3.0) / 120.0 - knot * (square - 3.0) / 24.0
    series = ((series * d + (square - 1.0) / 6.0) * d - 0.5 * knot) * d + 1.0
    return float(_BELOW[place] + _DENSITY[place] * d * series)


@compiled()
def log_mass(low: float, high: float) -> float:
    """Return log P(low ≤ Z ≤ high) of a standard normal Z, for compiled code."""
    if not high > low:
        return -np.inf
    if low > 0.0:
        low, high = -high, -low
    upper = log_left_tail(high)
    lower = log_left_tail(low)
    if upper == lower:
        return -np.inf
    return upper + math.log(-math.expm1(lower - upper))


@compiled()
def log_left_tail(z: float) -> float:
    """Return log P(Z ≤ z) of a standard normal Z."""
    if z == -np.inf:
        return -np.inf
    if z > -ASYMPTOTIC:
        return math.log(0.5 * math.erfc(-z * math.sqrt(0.5)))
    square = 1.0 / (z * z)
    series = 1.0 - square * (1.0 - square * (3.0 - square * (15.0 - square * (105.0 - 945.0 * square))))
    return -0.5 * z * z - 0.5 * LOG_2PI - math.log(-z) + math.log(series)


@dataclass(frozen=True)
class Normal:
    """A normal distribution of some columns."""

    mean: FloatArray
    covariance: FloatArray

    def draw(self, columns: FloatArray, draws: int, rng: np.random.Generator) -> list[FloatArray]:
        """Fill the holes of columns × rows with draws given the rest of a row, several times."""
        out = [columns.copy() for _ in range(draws)]
        for hole, rows in _patterns(np.isnan(columns)):
            means, rest = self._given(columns[:, rows], hole)
            values, vectors = np.linalg.eigh(rest)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            for filled in out:
                filled[np.ix_(hole, rows)] = means + root @ rng.standard_normal(means.shape)
        return out

    def _given(self, columns: FloatArray, hole: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the means of the missing columns of rows with one pattern of holes, and their covariance."""
        there = ~hole
        within = self.covariance[np.ix_(hole, hole)]
        if not there.any():
            return np.tile(self.mean[:, None], columns.shape[1]), within
        across = self.covariance[np.ix_(there, hole)]
        slopes = np.linalg.solve(self.covariance[np.ix_(there, there)], across).T
        means = self.mean[hole, None] + slopes @ (columns[there] - self.mean[there, None])
        return means, within - slopes @ across

    def _improved(self, columns: FloatArray, patterns: list[tuple[BoolArray, IntArray]]) -> Normal:
        """Return what one round of EM makes of it; the columns are in standard deviations."""
        filled, spread = columns.copy(), np.zeros_like(self.covariance)
        for hole, rows in patterns:
            means, rest = self._given(columns[:, rows], hole)
            filled[np.ix_(hole, rows)] = means
            spread[np.ix_(hole, hole)] += len(rows) * rest
        mean = filled.mean(axis=1)
        deviations = filled - mean[:, None]
        scatter = deviations @ deviations.T + spread + ADDED_ROWS * np.eye(len(columns))
        return Normal(mean, scatter / (columns.shape[1] + ADDED_ROWS))


def normal_of(columns: FloatArray) -> Normal:
    """Estimate the normal distribution of columns × rows in which NaN is missing.

    Every column must have different values.
    """
    centre, scale = np.nanmean(columns, axis=1), np.nanstd(columns, axis=1)
    z = (columns - centre[:, None]) / scale[:, None]
    patterns = list(_patterns(np.isnan(z)))
    found, volume = Normal(np.zeros(len(z)), np.eye(len(z))), 0.0
    for _ in range(MOST_ROUNDS):
        found = found._improved(z, patterns)
        before, volume = volume, float(np.linalg.slogdet(found.covariance)[1])
        if abs(volume - before) < SETTLED * len(z):
            break
    return Normal(centre + scale * found.mean, found.covariance * np.outer(scale, scale))


def _patterns(holes: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield every pattern of holes of columns × rows, and the rows that have it; none for whole rows."""
    patterns, which = np.unique(holes, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if pattern.any():
            yield pattern, np.flatnonzero(which.ravel() == number)
