"""Linear regressions of many families at once, from moments alone.

Parameters are fitted to the moments of training rows, and the log-likelihood
is that of other rows, of which only the moments are used as well: the cost
does not depend on the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.jit import compiled
from spbn.numerics import gaussian
from spbn.numerics.moments import Moments

#: If less than this share of a variable's variance is left unexplained, sums of squares have
#: lost too many digits, and the rows themselves have to be used.
ILL_CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class MomentStack:
    """The moments of several groups of rows, as arrays."""

    counts: IntArray
    means: FloatArray
    scatters: FloatArray

    @classmethod
    def of(cls, groups: Sequence[Moments]) -> MomentStack:
        """Stack moments."""
        return cls(
            np.array([group.count for group in groups]),
            np.stack([group.mean for group in groups]),
            np.stack([group.scatter for group in groups]),
        )

    def only(self, groups: IntArray) -> MomentStack:
        """Return some of the groups."""
        return MomentStack(self.counts[groups], self.means[groups], self.scatters[groups])


def log_likelihoods(
    train: MomentStack, test: MomentStack, members: IntArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood of linear Gaussian families on `test`, fitted group by group on `train`.

    Returns
    -------
    The log-likelihoods, -inf where a regression is singular or has too few rows; and
    the least share of variance that any regression left unexplained, in training or test rows.
    """
    out, shares = np.empty(len(members)), np.empty(len(members))
    _log_likelihoods(
        train.counts,
        train.means,
        train.scatters,
        test.counts,
        test.means,
        test.scatters,
        members,
        sizes,
        out,
        shares,
    )
    return out, shares


@compiled()
def _log_likelihoods(
    train_counts: IntArray,
    train_means: FloatArray,
    train_scatters: FloatArray,
    test_counts: IntArray,
    test_means: FloatArray,
    test_scatters: FloatArray,
    members: IntArray,
    sizes: IntArray,
    out: FloatArray,
    shares: FloatArray,
) -> None:
    widest = members.shape[1]
    scatter = np.empty((widest, widest))
    lower = np.empty((widest, widest))
    direction = np.empty(widest)
    for f in range(len(members)):
        d = sizes[f]
        columns = members[f, :d]
        total = 0.0
        shares[f] = 1.0
        for g in range(len(train_counts)):
            freedom = train_counts[g] - d
            for i in range(d):
                for j in range(i + 1):
                    scatter[i, j] = train_scatters[g, columns[i], columns[j]]
            if freedom <= 0 or not gaussian.factorise(scatter, d, lower):
                total = -np.inf
                break
            for i in range(d):
                shares[f] = min(shares[f], lower[i, i] ** 2 / scatter[i, i])
            _solve_for_direction(lower, d, direction)
            squares = 0.0
            magnitude = 0.0  # of the terms that squares is the sum of
            shift = 0.0
            for i in range(d):
                a = columns[i]
                shift += direction[i] * (test_means[g, a] - train_means[g, a])
                for j in range(d):
                    # In this order: the product of two directions may overflow or vanish.
                    term = direction[i] * test_scatters[g, a, columns[j]] * direction[j]
                    squares += term
                    magnitude += abs(term)
            if squares < shares[f] * magnitude:
                shares[f] = max(0.0, squares / magnitude)
            squares += test_counts[g] * shift * shift
            variance = lower[d - 1, d - 1] ** 2 / freedom
            total -= 0.5 * (test_counts[g] * math.log(2.0 * math.pi * variance) + squares / variance)
        out[f] = total if total == total else -np.inf  # NaN: numbers too large to be squared


@compiled()
def _solve_for_direction(lower: FloatArray, d: int, direction: FloatArray) -> None:
    """Residual = direction · (x - mean): 1 for the node, minus the coefficients for its parents."""
    direction[d - 1] = 1.0
    for i in range(d - 2, -1, -1):
        value = -lower[d - 1, i]
        for k in range(i + 1, d - 1):
            value -= lower[k, i] * direction[k]
        direction[i] = value / lower[i, i]


@compiled()
def residual_directions(
    counts: IntArray, scatters: FloatArray, columns: IntArray
) -> tuple[FloatArray, FloatArray, float]:
    """Regress the last of some columns on the others, in every group.

    Returns
    -------
    Groups × columns, the direction whose product with a row's deviations from the means is its residual; the
    variance of the residuals in every group; and the least share of variance that was left unexplained,
    0 where a regression is singular or has too few rows.
    """
    d, groups = len(columns), len(counts)
    directions, variances = np.empty((groups, d)), np.empty(groups)
    block, lower = np.empty((d, d)), np.empty((d, d))
    share = 1.0
    for g in range(groups):
        for i in range(d):
            for j in range(i + 1):
                block[i, j] = scatters[g, columns[i], columns[j]]
        if counts[g] <= d or not gaussian.factorise(block, d, lower):
            return directions, variances, 0.0
        for i in range(d):
            share = min(share, lower[i, i] ** 2 / block[i, i])
        _solve_for_direction(lower, d, directions[g])
        variances[g] = lower[d - 1, d - 1] ** 2 / (counts[g] - d)
    return directions, variances, share


@compiled()
def log_pivots(matrix: FloatArray, members: IntArray, sizes: IntArray) -> FloatArray:
    """Log-determinants of the block of the parents, and what the node adds to it; -inf if singular."""
    widest = members.shape[1]
    block = np.empty((widest, widest))
    lower = np.empty((widest, widest))
    out = np.zeros((len(members), 2))
    for f in range(len(members)):
        d = sizes[f]
        for i in range(d):
            for j in range(i + 1):
                block[i, j] = matrix[members[f, i], members[f, j]]
        if not gaussian.factorise(block, d, lower):
            out[f] = -np.inf
            continue
        for i in range(d):
            out[f, int(i == d - 1)] += 2.0 * math.log(lower[i, i])
    return out
