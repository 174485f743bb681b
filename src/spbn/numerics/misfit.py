"""How badly a regression fits, judged by its residuals: whether another density could gain much over it.

Residuals of the right regression, in units of their standard deviation, have the distribution that was
assumed, whatever the parents are. So they are counted by value, alone and with every parent, their means and
variances are taken in bins of every parent, and their means in bins of every pair of parents. Each of these
tables has a statistic that is distributed like χ² if nothing is wrong (likelihood ratios, and Bartlett's for
variances). The misfit is -log p of the most significant one, corrected for their number: roughly the nats
that a density without the assumption would gain, less what its further parameters cost. If it is small,
smooth functions, other noise and kernels have little to gain either, and to know that takes a hundredth of
the time that it takes to fit them.

In the same way, residuals and a column that is not among the parents tell whether it is a lead: whether the
column might help as a further parent. Its tables are those of a parent, the regression of residuals on it,
and means in bins of it and of every parent.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, frozen
from spbn._base.jit import by_name, compiled
from spbn.numerics.gaussian import factorise
from spbn.numerics.moments import solve_for_direction

#: Bounds of the bins of a parent, in widths from its median: a sixth of a normal distribution each.
PARENT_EDGES = frozen(np.array([-0.9674, -0.4307, 0.0, 0.4307, 0.9674]))
BINS = len(PARENT_EDGES) + 1
THIRDS = BINS // 2  # bins of each parent of a pair
#: Bounds of the bins of residuals, in standard deviations.
SHAPE_EDGES = frozen(np.array([-3.5, -2.6, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.6, 3.5]))
SHAPES = len(SHAPE_EDGES) + 1
LOW = 4  # of these bins, which are one where residuals are counted along with a parent; as many on the right
COARSE = SHAPES - 2 * LOW  # bins of residuals there
PER_PARENT = BINS * (3 + COARSE)  # sums: counts, sums and squares in its bins, and counts with the residuals
PER_PAIR = 2 * THIRDS * THIRDS  # sums: counts and sums of residuals
PER_LEAD = PER_PARENT + 5  # sums, to which those of pairs come: means, squares and the product with residuals
FARTHEST = 4.0  # standard deviations, within which residuals are held where their means are taken
MOST_EXPONENT = 300.0  # from which on the tail of a normal distribution is its first term
SQRT_PI = math.sqrt(math.pi)
FEWEST = 5.0  # rows of a bin, for its mean and variance to count
#: The probabilities of residuals' bins under a normal distribution.
NORMAL_SHAPE = frozen(
    np.diff([0.0, *(0.5 * (1.0 + math.erf(edge / math.sqrt(2.0))) for edge in SHAPE_EDGES), 1.0])
)


@compiled()
def size_of(parents: int) -> int:
    """Return how many sums there are: of residuals' bins, of those of parents, and of those of pairs."""
    return SHAPES + PER_PARENT * parents + PER_PAIR * (parents * (parents - 1) // 2)


def column_sums(rows: FloatArray, starts: IntArray, centres: FloatArray) -> FloatArray:
    """Return the sums of columns, from their centres."""
    deviations = rows - centres[:, None]
    return np.stack([deviations[:, first:end].sum(axis=1) for first, end in pairwise(starts)])


@compiled()
def line_directions(count: int, scatter: FloatArray, members: IntArray, sizes: IntArray) -> FloatArray:
    """Regress the node of every family on its parents; NaN where that is not possible."""
    most = members.shape[1]
    block, lower, out = np.empty((most, most)), np.empty((most, most)), np.zeros(members.shape)
    for f in range(len(members)):
        d = sizes[f]
        for i in range(d):
            for j in range(i + 1):
                block[i, j] = scatter[members[f, i], members[f, j]]
        if count <= d or not factorise(block, d, lower):
            out[f] = np.nan
            continue
        solve_for_direction(lower, d, out[f])
        out[f] /= lower[d - 1, d - 1] / math.sqrt(count)
    return out


@by_name
@compiled()
def line_sums(
    rows: FloatArray,
    starts: IntArray,
    members: IntArray,
    sizes: IntArray,
    directions: FloatArray,
    means: FloatArray,
    spreads: FloatArray,
) -> FloatArray:
    """Return the sums over residuals of lines: families × sums.

    `members`, `sizes`: the columns of every family, parents and then the node, and how many they are.
    `directions`: the product with a row's deviations from the means is its residual, in standard deviations.
    `spreads`: medians and widths of the columns.
    """
    most = 0
    for size in sizes:
        most = max(most, size - 1)
    out = np.zeros((len(starts) - 1, len(members), size_of(most)))
    bins = np.empty((len(rows), rows.shape[1]), dtype=np.int64)
    for column in range(len(rows)):
        for r in range(rows.shape[1]):
            bins[column, r] = parent_bin((rows[column, r] - spreads[0, column]) / spreads[1, column])
    z = np.empty(rows.shape[1])
    for f in range(len(members)):
        d = sizes[f] - 1
        z[:] = 0.0
        for j in range(d + 1):
            column = members[f, j]
            for r in range(len(z)):
                z[r] += directions[f, j] * (rows[column, r] - means[column])
        for g in range(len(out)):
            add_residuals(z[starts[g] : starts[g + 1]], bins, starts[g], members[f, :d], out[g, f])
    return out


@compiled()
def parent_bin(value: float) -> int:
    """Return the bin of a parent's value, in widths from its median."""
    place = 0
    for edge in PARENT_EDGES:
        place += value > edge
    return place


@compiled()
def add_residuals(z: FloatArray, bins: IntArray, first: int, parents: IntArray, out: FloatArray) -> None:
    """Add residuals, in standard deviations, to the sums of their own bins and of those of the parents.

    `bins`: columns × rows, the bins of values; the residuals are those of rows from `first` on.
    `parents`: the columns of the parents. Every parent's sums are one loop over rows.
    """
    held, places = np.empty(len(z)), np.zeros(len(z), dtype=np.int64)
    for edge in SHAPE_EDGES:
        for r in range(len(z)):
            places[r] += z[r] > edge
    for r in range(len(z)):
        out[places[r]] += 1.0
        held[r] = min(max(z[r], -FARTHEST), FARTHEST)
        places[r] = min(max(places[r] - LOW, 0), COARSE - 1)
    at = SHAPES
    for parent in parents:
        counts = at + 3 * BINS
        for r in range(len(z)):
            b = bins[parent, first + r]
            out[at + 3 * b + 1] += held[r]
            out[at + 3 * b + 2] += held[r] * held[r]
            out[counts + COARSE * b + places[r]] += 1.0
        for b in range(BINS):
            out[at + 3 * b] = out[counts + COARSE * b : counts + COARSE * (b + 1)].sum()
        at += PER_PARENT
    for j in range(len(parents)):
        for k in range(j):
            for r in range(len(z)):
                b = THIRDS * (bins[parents[j], first + r] // 2) + bins[parents[k], first + r] // 2
                out[at + 2 * b] += 1.0
                out[at + 2 * b + 1] += held[r]
            at += PER_PAIR


@compiled()
def add_lead(z: float, value: float, bins: IntArray, parents: int, out: FloatArray) -> None:
    """Add a residual, in standard deviations, to the sums of a column that is not among the parents.

    `value`: that of the column, in widths from its median. `bins`: those of the parents.
    """
    place = 0
    for edge in SHAPE_EDGES:
        place += z > edge
    held, x = min(max(z, -FARTHEST), FARTHEST), min(max(value, -FARTHEST), FARTHEST)
    b = parent_bin(value)
    out[3 * b] += 1.0
    out[3 * b + 1] += held
    out[3 * b + 2] += held * held
    out[3 * BINS + COARSE * b + min(max(place - LOW, 0), COARSE - 1)] += 1.0
    out[PER_PARENT] += x
    out[PER_PARENT + 1] += x * x
    out[PER_PARENT + 2] += held
    out[PER_PARENT + 3] += held * held
    out[PER_PARENT + 4] += held * x
    for j in range(parents):
        at = PER_LEAD + PER_PAIR * j + 2 * (THIRDS * (b // 2) + bins[j] // 2)
        out[at] += 1.0
        out[at + 1] += held


@compiled()
def misfit(sums: FloatArray, parents: int, expected: FloatArray) -> float:
    """Return -log p of the most significant table, as Bonferroni corrects it for the number of tables.

    `expected`: the probabilities of the residuals' bins.
    """
    n = 0.0
    for b in range(SHAPES):
        n += sums[b]
    statistic = 0.0
    for b in range(SHAPES):
        if sums[b] > 0.0:
            statistic += 2.0 * sums[b] * math.log(sums[b] / (n * expected[b]))
    most = _significance(statistic, SHAPES - 1)
    at, first, second = SHAPES, 0.0, 0.0
    for b in range(BINS if parents else 0):
        first, second = first + sums[at + 3 * b + 1], second + sums[at + 3 * b + 2]
    variance = second / n - (first / n) ** 2
    for _ in range(parents):
        most = max(most, _of_means(sums, at, BINS, 3, first / n, variance), _of_variances(sums, at))
        most = max(most, _of_counts(sums, at))
        at += PER_PARENT
    for _ in range(parents * (parents - 1) // 2):
        most = max(most, _of_means(sums, at, THIRDS * THIRDS, 2, first / n, variance))
        at += PER_PAIR
    return max(most - math.log(1.0 + 3.0 * parents + 0.5 * parents * (parents - 1.0)), 0.0)


@compiled()
def lead(sums: FloatArray, parents: int) -> float:
    """Return -log p of the most significant table of a column, as Bonferroni corrects it for their number."""
    n = 0.0
    for b in range(BINS):
        n += sums[3 * b]
    x, x2, z, z2, xz = sums[PER_PARENT:PER_LEAD] / n
    mean, variance, width = z, z2 - z * z, x2 - x * x
    if not variance > 0.0 or not width > 0.0:
        return 0.0
    left = 1.0 - (xz - x * z) ** 2 / (variance * width)
    most = _significance(-n * math.log(max(left, 1e-300)), 1)
    most = max(most, _of_means(sums, 0, BINS, 3, mean, variance), _of_variances(sums, 0), _of_counts(sums, 0))
    for j in range(parents):
        at = PER_LEAD + PER_PAIR * j
        most = max(most, _of_means(sums, at, THIRDS * THIRDS, 2, mean, variance))
    return max(most - math.log(4.0 + parents), 0.0)


@compiled()
def _of_means(sums: FloatArray, at: int, bins: int, width: int, mean: float, variance: float) -> float:
    statistic, used = 0.0, 0
    for b in range(bins):
        count = sums[at + width * b]
        if count >= FEWEST:
            used += 1
            statistic += count * (sums[at + width * b + 1] / count - mean) ** 2 / variance
    return _significance(statistic, used - 1)


@compiled()
def _of_variances(sums: FloatArray, at: int) -> float:
    """Bartlett's test: whether the variances of all bins are the same."""
    used, freedom, total, logs, inverse = 0, 0.0, 0.0, 0.0, 0.0
    for b in range(BINS):
        count, first, second = sums[at + 3 * b], sums[at + 3 * b + 1], sums[at + 3 * b + 2]
        if count >= FEWEST:
            squares = max(second - first * first / count, 1e-6 * count)
            used += 1
            freedom += count - 1.0
            total += squares
            logs += (count - 1.0) * math.log(squares / (count - 1.0))
            inverse += 1.0 / (count - 1.0)
    if used < 2:
        return 0.0
    correction = 1.0 + (inverse - 1.0 / freedom) / (3.0 * (used - 1.0))
    return _significance((freedom * math.log(total / freedom) - logs) / correction, used - 1)


@compiled()
def _of_counts(sums: FloatArray, at: int) -> float:
    """Test whether residuals are independent of a parent, by their counts in the bins of both."""
    n = 0.0
    for b in range(BINS):
        n += sums[at + 3 * b]
    statistic, rows, columns = 0.0, 0, 0
    for c in range(COARSE):
        total = 0.0
        for b in range(BINS):
            total += sums[at + 3 * BINS + COARSE * b + c]
        columns += total > 0.0
        for b in range(BINS):
            count = sums[at + 3 * BINS + COARSE * b + c]
            if count > 0.0:
                statistic += 2.0 * count * math.log(count * n / (total * sums[at + 3 * b]))
    for b in range(BINS):
        rows += sums[at + 3 * b] > 0.0
    return _significance(statistic, (rows - 1) * (columns - 1))


@compiled()
def _significance(statistic: float, freedom: int) -> float:
    """Return -log p of a statistic that is distributed like χ²: by a finite sum, however far out."""
    if freedom < 1 or not statistic > 0.0:
        return 0.0
    half = 0.5 * statistic
    # p = exp(-half) · total, of which the terms are half^k / Γ(k + 1) for k below freedom / 2.
    if freedom % 2 == 0:
        term, k, total = 1.0, 0.0, 0.0
    else:
        root = math.sqrt(half)
        total = math.exp(half) * math.erfc(root) if half < MOST_EXPONENT else 1.0 / (SQRT_PI * root)
        term, k = 2.0 * root / SQRT_PI, 0.5
    while k < 0.5 * freedom - 0.5:
        total += term
        k += 1.0
        term *= half / k
    return half - math.log(total)
