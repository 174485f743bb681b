"""Counts, means and scatter of rows, fold by fold, in one pass over the data; and regressions from them.

Every linear Gaussian score, BIC, BGe, partial correlation and bandwidth matrix is a function of moments, and
costs the same for a thousand rows as for a million: parameters are fitted to the moments of training rows,
and of the rows whose log-likelihood is wanted only the moments are used as well.

The moments of "all folds but one" are pooled from the others. Subtracting the fold from the total would be
shorter, but loses every digit when that fold holds an outlier that outweighs the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.jit import compiled
from spbn.numerics import gaussian

#: If less than this share of a variable's variance is left unexplained, sums of squares have
#: lost too many digits, and the rows themselves have to be used.
ILL_CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, means and scatter of some rows; add two of them to pool their rows."""

    count: int
    mean: FloatArray
    #: Sum over the rows of (x - mean)(x - mean)ᵀ.
    scatter: FloatArray

    @classmethod
    def of(cls, columns: FloatArray) -> Moments:
        """Compute the moments of variables × rows."""
        count = columns.shape[1]
        if count == 0:
            return cls(0, np.zeros(len(columns)), np.zeros((len(columns), len(columns))))
        mean = columns.mean(axis=1)
        centred = columns - mean[:, None]
        # The mean is rounded: take out what it missed, so that a large offset costs no digits. And equal
        # numbers then have no spread at all: what was missed is a few units in the last place, the same for
        # each of them, and the mean of that is exact.
        missed = centred.mean(axis=1)
        centred -= missed[:, None]
        mean += missed
        return cls(count, mean, centred @ centred.T)

    @cached_property
    def covariance(self) -> FloatArray:
        """The unbiased covariance matrix."""
        return self.scatter / (self.count - 1)

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        if count == 0:
            return self
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.count / count)
        between = np.outer(shift, shift) * (self.count * other.count / count)
        return Moments(count, mean, self.scatter + other.scatter + between)


def leave_one_out(folds: Sequence[Moments]) -> list[Moments]:
    """Return, for every fold, the moments of all other folds together."""
    before = list(accumulate(folds))  # before[m]: folds 0 to m
    behind = list(accumulate(reversed(folds)))[::-1]  # behind[m]: folds m to the last
    last = len(folds) - 1
    return [
        behind[1] if m == 0 else before[last - 1] if m == last else before[m - 1] + behind[m + 1]
        for m in range(len(folds))
    ]


@compiled()
def moments_of_spans(
    columns: FloatArray, edges: IntArray, spans: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Compute means and scatters of the training rows, and of the queries, of groups of variables × rows.

    `edges`: all bounds of spans, ascending, the first being 0.
    `spans`: groups × 6, as places among the edges: query rows and twice training rows, first and end.
    Training rows are a beginning of the table and, if there is a second span, an end of it.
    """
    d, pieces, groups = len(columns), len(edges) - 1, len(spans)
    # Moments are the mean and, below it, the scatter: those of a piece, of all before it, and from it on.
    alone = np.zeros((pieces, 1 + d, d))
    before, behind = np.zeros((pieces + 1, 1 + d, d)), np.zeros((pieces + 1, 1 + d, d))
    for p in range(pieces):
        _moments(columns, edges[p], edges[p + 1], alone[p])
    for p in range(pieces):
        _pool(edges[p], before[p], edges[p + 1] - edges[p], alone[p], before[p + 1])
    for p in range(pieces - 1, -1, -1):
        _pool(edges[pieces] - edges[p + 1], behind[p + 1], edges[p + 1] - edges[p], alone[p], behind[p])
    train, test = np.empty((groups, 1 + d, d)), np.zeros((groups, 1 + d, d))
    for g in range(groups):
        end, start = spans[g, 3], spans[g, 4]
        if spans[g, 5] == start:
            start = pieces
        _pool(edges[end], before[end], edges[pieces] - edges[start], behind[start], train[g])
        _moments(columns, edges[spans[g, 0]], edges[spans[g, 1]], test[g])
    return train[:, 0].copy(), train[:, 1:].copy(), test[:, 0].copy(), test[:, 1:].copy()


@compiled()
def _moments(columns: FloatArray, first: int, end: int, out: FloatArray) -> None:
    """Put in the moments of some rows, computed as `Moments.of` does."""
    d, n, mean = len(columns), end - first, out[0]
    if n == 0:
        return
    centred = np.empty((d, n))
    for i in range(d):
        total = 0.0
        for r in range(n):
            total += columns[i, first + r]
        mean[i] = total / n
        missed = 0.0
        for r in range(n):
            missed += columns[i, first + r] - mean[i]
        missed /= n
        for r in range(n):
            centred[i, r] = columns[i, first + r] - mean[i] - missed
        mean[i] += missed
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for r in range(n):
                total += centred[i, r] * centred[j, r]
            out[1 + i, j] = out[1 + j, i] = total


@compiled()
def _pool(count: int, one: FloatArray, other_count: int, other: FloatArray, out: FloatArray) -> None:
    """Put in the moments of two groups of rows together."""
    total = max(count + other_count, 1)
    share, weight = other_count / total, count * (other_count / total)
    for i in range(one.shape[1]):
        out[0, i] = one[0, i] + (other[0, i] - one[0, i]) * share
        for j in range(one.shape[1]):
            between = (other[0, i] - one[0, i]) * (other[0, j] - one[0, j])
            out[1 + i, j] = one[1 + i, j] + other[1 + i, j] + weight * between


def centre_of(columns: FloatArray) -> FloatArray:
    """Return what to subtract from columns (variables × rows) so that large offsets cost no digits.

    The medians, because an outlier can carry a mean far away from all other rows.
    """
    return np.median(columns, axis=1)[:, None]


class MomentStack(NamedTuple):
    """The moments of several groups of rows, as arrays."""

    counts: IntArray
    means: FloatArray
    scatters: FloatArray

    @classmethod
    def of(cls, groups: Sequence[Moments]) -> MomentStack:
        return cls(
            np.array([group.count for group in groups]),
            np.stack([group.mean for group in groups]),
            np.stack([group.scatter for group in groups]),
        )

    def only(self, groups: IntArray) -> MomentStack:
        return MomentStack(self.counts[groups], self.means[groups], self.scatters[groups])


@compiled()
def log_likelihoods(
    train: MomentStack, test: MomentStack, members: IntArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood of linear Gaussian families on `test`, fitted group by group on `train`.

    Returns
    -------
    The log-likelihoods, -inf where a regression is singular or has too few rows; and
    the least share of variance that any regression left unexplained, in training or test rows.
    """
    widest = members.shape[1]
    scatter, lower, direction = np.empty((widest, widest)), np.empty((widest, widest)), np.empty(widest)
    out, shares = np.empty(len(members)), np.empty(len(members))
    for f in range(len(members)):
        out[f], shares[f] = _log_likelihood(train, test, members[f], sizes[f], scatter, lower, direction)
    return out, shares


@compiled()
def log_likelihoods_with(
    train: MomentStack, test: MomentStack, members: IntArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the same of families with every further column as one more parent: families × columns.

    It is -inf at their own members.
    """
    out = np.full((len(members), train.means.shape[1]), -np.inf)
    shares = np.ones_like(out)
    widest = members.shape[1] + 1
    scatter, lower, direction = np.empty((widest, widest)), np.empty((widest, widest)), np.empty(widest)
    columns = np.empty(widest, dtype=np.int64)
    for f in range(len(members)):
        d = sizes[f]
        place = 0  # of the further parent among the others: they are in order
        columns[1 : d + 1] = members[f, :d]
        for column in range(out.shape[1]):
            columns[place] = column
            if place < d - 1 and column == columns[place + 1]:
                place += 1
            elif column != columns[d]:
                out[f, column], shares[f, column] = _log_likelihood(
                    train, test, columns, d + 1, scatter, lower, direction
                )
    return out, shares


@compiled()
def _log_likelihood(
    train: MomentStack,
    test: MomentStack,
    columns: IntArray,
    d: int,
    scatter: FloatArray,
    lower: FloatArray,
    direction: FloatArray,
) -> tuple[float, float]:
    """Return the log-likelihood of the last of d columns, and the least share of variance left unexplained.

    The other arrays are room to work in.
    """
    (train_counts, train_means, train_scatters), (test_counts, test_means, test_scatters) = train, test
    total, share = 0.0, 1.0
    for g in range(len(train_counts)):
        freedom = train_counts[g] - d
        for i in range(d):
            for j in range(i + 1):
                scatter[i, j] = train_scatters[g, columns[i], columns[j]]
        if freedom <= 0 or not gaussian.factorise(scatter, d, lower):
            return -np.inf, share
        for i in range(d):
            share = min(share, lower[i, i] ** 2 / scatter[i, i])
        solve_for_direction(lower, d, direction)
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
        if squares < share * magnitude:
            share = max(0.0, squares / magnitude)
        squares += test_counts[g] * shift * shift
        variance = lower[d - 1, d - 1] ** 2 / freedom
        total -= 0.5 * (test_counts[g] * math.log(2.0 * math.pi * variance) + squares / variance)
    return (total if total == total else -np.inf), share  # NaN: numbers too large to be squared


@compiled()
def solve_for_direction(lower: FloatArray, d: int, direction: FloatArray) -> None:
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
        solve_for_direction(lower, d, directions[g])
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
