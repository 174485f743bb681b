"""Gaussian mixtures of a few columns, fitted to all rows and without each of some groups of them.

The density of the columns is

    g(z) = Σ_k w_k N(z; μ_k, Σ_k),

and that of one of them given the others, g(z) / g(others), is a mixture of lines, each of which counts where
the others are near its mean. One fit serves every choice of that one column.

Rows are cut into cells: always the cell that is longest in two, at its mean and across its longest axis. From
there a few steps of EM are taken with all rows, and as many without the rows of each group, so that nothing
but the cells of a group is known to the mixture that it is evaluated under. Going on from the mixture of all
rows instead would take several times as many steps until it has forgotten a group.

The logarithm of a Gaussian is a linear function of the products 1, z_i and z_i z_j, and the sums that EM
needs are those of the same products: a step is two small matrix products for every block of rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import LOG_2, LOG_2PI, FloatArray, IntArray, frozen
from spbn._base.jit import REORDER, by_name, compiled
from spbn.kernels.inner_loop import exp2_negative

MOST_COMPONENTS = 16
ROWS_EACH = 12  # for every component and column
FEWEST_COMPONENTS = 2
STEPS = 6  # of EM
#: Squared scales that are added to the scatter of a component, and to its variances: no component is narrower
#: than 1 % of the scale of a column, and one of 100 rows hardly narrower than 1.4 %. Columns of rounded
#: numbers have a greater floor.
PRIOR, FLOOR = 0.01, 1e-4
TO_CUT = 4  # rows of a cell for every parameter of a line, for it to be cut
BLOCK = 256  # rows at a time, whose products stay in the cache
TURNS = 30  # of the power method, for the longest axis of a cell
SAME = 1e-9  # relative differences that may be due to rounding, and must not decide how rows are cut
ABSENT = -1e9  # the logarithm of the weight of a component without rows
FARTHEST = 1e150  # standard deviations; squares of greater ones overflow
_HALF = 0.5 / LOG_2  # exp(-z²/2) = 2^(-z²·_HALF)


class LocalMixtures(NamedTuple):
    """Mixtures of the same columns, fitted without each of some groups of rows and, last, to all."""

    logs: FloatArray  # log-weights: groups and, last, all × components
    means: FloatArray  # × columns
    covariances: FloatArray  # × columns × columns


class LineArrays(NamedTuple):
    """What is needed of mixtures for the density of the last of their columns given the others."""

    logs: FloatArray  # logarithms of weights times the greatest densities of the others: groups × components
    means: FloatArray  # × columns
    whiteners: FloatArray  # inverse Cholesky factors of the covariances: × columns × columns


def component_count(rows: int, columns: int) -> int:
    """Return how many components so many rows are enough for; 0 if they are not."""
    count = min(MOST_COMPONENTS, rows // (ROWS_EACH * columns))
    return count if count >= FEWEST_COMPONENTS else 0


def rounding_error(column: FloatArray) -> float:
    """Return the standard deviation that rounding adds to a column, if half of its rows share their values.

    Rounding is to the step that lies between most values that follow each other. A component that is narrower
    says nothing of what was measured, but would gain more from every tie than from any relation.
    """
    values, counts = np.unique(column, return_counts=True)
    if counts[counts > 1].sum() < 0.5 * len(column) or len(values) < 2:
        return 0.0
    return float(np.median(np.diff(values))) / math.sqrt(12.0)


def fit_mixtures(rows: FloatArray, starts: IntArray, floors: FloatArray) -> LocalMixtures | None:
    """Fit mixtures to standardised columns × rows, the rows in groups; None if there are too few.

    `starts`: where groups begin and, last, where they end.
    `floors`: the least variance of each column within a component, if it is more than `FLOOR`.
    """
    d, n = rows.shape
    count = component_count(n, d)
    if not count:
        return None
    cells = np.zeros(n, dtype=np.int64)
    cut_rows(frozen(rows), count, cells)
    products, floors = _products(frozen(rows)), np.maximum(floors, FLOOR)
    weights, means, covariances = _fit(products, frozen(starts), cells, count, floors)
    used = weights[-1] > 0.0
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(weights[:, used]), ABSENT)
    return LocalMixtures(logs, means[:, used], covariances[:, used])


def lines_of(mixtures: LocalMixtures, order: IntArray, centre: FloatArray, scale: FloatArray) -> LineArrays:
    """Return the lines of the last of some columns, in units of the data.

    `order`: which column of the mixtures each of these columns is.
    `centre`, `scale`: those by which they were standardised.
    """
    means = mixtures.means[:, :, order]
    whiteners = _whiten_all(frozen(mixtures.covariances[:, :, order[:, None], order])) / scale
    peaks = np.log(np.diagonal(whiteners[:, :, :-1, :-1], axis1=2, axis2=3)).sum(axis=2)
    return LineArrays(mixtures.logs + peaks, centre + scale * means, whiteners)


@compiled()
def _products(rows: FloatArray) -> FloatArray:
    d, n = rows.shape
    out = np.empty(((d + 1) * (d + 2) // 2, n))
    out[0] = 1.0
    place = 1 + d
    for i in range(d):
        for r in range(n):
            out[1 + i, r] = rows[i, r]
        for j in range(i + 1):
            for r in range(n):
                out[place, r] = rows[i, r] * rows[j, r]
            place += 1
    return out


@compiled()
def cut_rows(rows: FloatArray, count: int, cells: IntArray) -> None:
    """Put the number of the cell that every row belongs to; all are 0 before."""
    d, n = rows.shape
    lengths, means, axes = np.zeros(count), np.zeros((count, d)), np.zeros((count, d))
    work = np.empty((d + 1, d))
    lengths[0] = _measure(rows, cells, 0, means[0], axes[0], work)
    for new in range(1, count):
        old = 0
        for c in range(new):
            if lengths[c] > lengths[old] * (1.0 + SAME):
                old = c
        if not lengths[old] > 0.0:
            return
        axis, mean = axes[old], means[old]
        least = SAME * math.sqrt(lengths[old])
        for r in range(n):
            if cells[r] == old:
                along = 0.0
                for i in range(d):
                    along += (rows[i, r] - mean[i]) * axis[i]
                if along > least:
                    cells[r] = new
        lengths[old] = _measure(rows, cells, old, means[old], axes[old], work)
        lengths[new] = _measure(rows, cells, new, means[new], axes[new], work)


@compiled()
def _measure(
    rows: FloatArray, cells: IntArray, cell: int, mean: FloatArray, axis: FloatArray, work: FloatArray
) -> float:
    """Put the mean and the longest axis of a cell; return Σ of squares along it, 0 if it is not to be cut."""
    d, n = rows.shape
    scatter, turned = work[:d], work[d]
    scatter[:] = 0.0
    mean[:] = 0.0
    count = 0
    for r in range(n):
        if cells[r] == cell:
            count += 1
            for i in range(d):
                mean[i] += rows[i, r]
                for j in range(i + 1):
                    scatter[i, j] += rows[i, r] * rows[j, r]
    if count < TO_CUT * (d + 2):
        return 0.0
    for i in range(d):
        mean[i] /= count
    longest = 0
    for i in range(d):
        for j in range(i + 1):
            scatter[i, j] -= count * mean[i] * mean[j]
            scatter[j, i] = scatter[i, j]
        if scatter[i, i] > scatter[longest, longest] * (1.0 + SAME):
            longest = i
    if not scatter[longest, longest] > SAME * count:  # all rows are the same
        return 0.0
    axis[:] = scatter[longest]
    length = 0.0
    for _ in range(TURNS):
        length = 0.0
        for i in range(d):
            turned[i] = 0.0
            for j in range(d):
                turned[i] += scatter[i, j] * axis[j]
            length += turned[i] * turned[i]
        length = math.sqrt(length)
        for i in range(d):
            axis[i] = turned[i] / length
    return length


@compiled()
def _fit(
    products: FloatArray, starts: IntArray, cells: IntArray, size: int, floors: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mixtures of a size, fitted without each of the groups and, last, to all rows."""
    groups, d = len(starts) - 1, len(floors)
    weights = np.zeros((groups + 1, size))
    means, covariances = np.zeros((groups + 1, size, d)), np.zeros((groups + 1, size, d, d))
    functions, rows = products.shape
    sums, coefficients = np.empty((functions, size)), np.empty((functions, size))
    work = np.empty((3, d, d))
    for g in range(groups, -1, -1):
        begin, end = rows, rows  # of what is left out
        if g < groups:
            begin, end = starts[g], starts[g + 1]
            means[g], covariances[g] = means[groups], covariances[groups]
        sums[:] = 0.0
        for r in range(rows):
            if not begin <= r < end:
                for f in range(functions):
                    sums[f, cells[r]] += products[f, r]
        for step in range(STEPS + 1):
            # A component that has fewer rows than a line has parameters is given up, in all groups.
            for k in range(size):
                if weights[groups, k] == 0.0 if g < groups else sums[0, k] < d + 1.0:
                    sums[0, k] = 0.0
            _maximise(sums, floors, weights[g], means[g], covariances[g])
            if step < STEPS:
                _linear(weights[g], means[g], covariances[g], coefficients, work)
                sums[:] = 0.0
                _expect(products, 0, begin, coefficients, sums)
                _expect(products, end, rows, coefficients, sums)
    return weights, means, covariances


@compiled()
def _maximise(
    sums: FloatArray, floors: FloatArray, weights: FloatArray, means: FloatArray, covariances: FloatArray
) -> None:
    """Put the parameters that follow from sums; those of a component without rows stay."""
    size, d = means.shape
    total = 0.0
    for k in range(size):
        total += sums[0, k]
    for k in range(size):
        count = sums[0, k]
        weights[k] = count / total
        if count > 1e-9:
            for i in range(d):
                means[k, i] = sums[1 + i, k] / count
            place = 1 + d
            for i in range(d):
                for j in range(i + 1):
                    scatter = sums[place, k] - count * means[k, i] * means[k, j]
                    if i == j:
                        covariances[k, i, i] = (max(scatter, 0.0) + PRIOR) / count + floors[i]
                    else:
                        covariances[k, i, j] = covariances[k, j, i] = scatter / count
                    place += 1


@compiled()
def _linear(
    weights: FloatArray, means: FloatArray, covariances: FloatArray, out: FloatArray, work: FloatArray
) -> None:
    """Put the logarithms to base 2 of weighted Gaussians as linear functions of products."""
    size, d = means.shape
    whitener, precision = work[1], work[2]
    for k in range(size):
        for f in range(len(out)):
            out[f, k] = 0.0
        if not weights[k] > 0.0:
            out[0, k] = ABSENT
            continue
        _whiten(covariances[k], work[0], whitener)
        log = math.log(weights[k]) - 0.5 * d * LOG_2PI
        for i in range(d):
            log += math.log(whitener[i, i])
            for j in range(i + 1):
                precision[i, j] = 0.0
                for m in range(i, d):
                    precision[i, j] += whitener[m, i] * whitener[m, j]
                precision[j, i] = precision[i, j]
        out[0, k] = log / LOG_2
        place = 1 + d
        for i in range(d):
            turned = 0.0
            for j in range(d):
                turned += precision[i, j] * means[k, j]
            out[1 + i, k] = 2.0 * _HALF * turned
            out[0, k] -= _HALF * turned * means[k, i]
            for j in range(i + 1):
                out[place, k] = -_HALF * precision[i, j] * (1.0 if i == j else 2.0)
                place += 1


@compiled()
def _whiten(covariance: FloatArray, lower: FloatArray, whitener: FloatArray) -> None:
    """Put the Cholesky factor of a covariance matrix, and its inverse."""
    d = len(covariance)
    for i in range(d):
        for j in range(i + 1):
            total = covariance[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i == j:  # what others leave of a column is at least the floor, but for rounding
                lower[i, i] = math.sqrt(max(total, 0.5 * FLOOR))
            else:
                lower[i, j] = total / lower[j, j]
    for i in range(d):
        for j in range(d):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= lower[i, k] * whitener[k, j]
            whitener[i, j] = total / lower[i, i] if j <= i else 0.0


@compiled()
def _whiten_all(covariances: FloatArray) -> FloatArray:
    groups, size, d, _ = covariances.shape
    lower, out = np.empty((d, d)), np.empty((groups, size, d, d))
    for g in range(groups):
        for k in range(size):
            _whiten(covariances[g, k], lower, out[g, k])
    return out


@compiled(fastmath=REORDER)
def _expect(products: FloatArray, begin: int, end: int, coefficients: FloatArray, sums: FloatArray) -> None:
    """Add the products of some rows, shared among components by how likely each of these made a row."""
    functions, size = coefficients.shape
    values, block = np.empty((size + 1, BLOCK)), np.empty((functions, BLOCK))
    totals = values[size]
    for first in range(begin, end, BLOCK):
        width = min(BLOCK, end - first)
        for f in range(functions):
            for r in range(width):
                block[f, r] = products[f, first + r]
        _put_logs(block, width, coefficients, values)
        _put_peaks(values, size, width, totals)
        for k in range(size):
            for r in range(width):
                values[k, r] = exp2_negative(totals[r] - values[k, r])
        for r in range(width):
            totals[r] = values[0, r]
        for k in range(1, size):
            for r in range(width):
                totals[r] += values[k, r]
        for r in range(width):
            totals[r] = 1.0 / totals[r]
        for k in range(size):
            for r in range(width):
                values[k, r] *= totals[r]
        _add_sums(block, width, values, sums)


@compiled()
def _put_peaks(values: FloatArray, size: int, width: int, peaks: FloatArray) -> None:
    for r in range(width):
        peaks[r] = values[0, r]
    for k in range(1, size):
        for r in range(width):
            peaks[r] = values[k, r] if values[k, r] > peaks[r] else peaks[r]


@compiled(fastmath=REORDER)
def _put_logs(block: FloatArray, width: int, coefficients: FloatArray, out: FloatArray) -> None:
    """Put linear functions of products, of which there are 3, 6, 10, 15, ...: three at a time."""
    functions, size = coefficients.shape
    left = functions % 3  # 0, or 1: the first product, which is always 1
    for k in range(size):
        a = coefficients[0, k] if left else 0.0
        for r in range(width):
            out[k, r] = a
        for f in range(left, functions, 3):
            a, b, c = coefficients[f, k], coefficients[f + 1, k], coefficients[f + 2, k]
            for r in range(width):
                out[k, r] += a * block[f, r] + b * block[f + 1, r] + c * block[f + 2, r]


@compiled(fastmath=REORDER)
def _add_sums(block: FloatArray, width: int, values: FloatArray, sums: FloatArray) -> None:
    """Add the sums of products, each times the values of every component: two by two."""
    functions, size = sums.shape
    for k in range(0, size - 1, 2):
        for f in range(0, functions - 1, 2):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for r in range(width):
                a += block[f, r] * values[k, r]
                b += block[f, r] * values[k + 1, r]
                c += block[f + 1, r] * values[k, r]
                d += block[f + 1, r] * values[k + 1, r]
            sums[f, k] += a
            sums[f, k + 1] += b
            sums[f + 1, k] += c
            sums[f + 1, k + 1] += d
        if functions % 2:
            a, b = 0.0, 0.0
            for r in range(width):
                a += block[functions - 1, r] * values[k, r]
                b += block[functions - 1, r] * values[k + 1, r]
            sums[functions - 1, k] += a
            sums[functions - 1, k + 1] += b
    if size % 2:
        for f in range(functions):
            a = 0.0
            for r in range(width):
                a += block[f, r] * values[size - 1, r]
            sums[f, size - 1] += a


@by_name
@compiled()
def local_log_densities(
    rows: FloatArray,
    starts: IntArray,
    logs: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    bounds: FloatArray,
) -> FloatArray:
    """Return the log-density of the last column given the others in every row.

    `logs`, `means`, `whiteners`: the `LineArrays` of every group.
    `bounds`: the least and the greatest values of the other columns, within which they are held.
    """
    out = np.empty(rows.shape[1])
    size, d = means.shape[1:]
    node, most = d - 1, min(BLOCK, max(1, rows.shape[1]))
    near, given, lines = np.empty((d, most)), np.empty((size, most)), np.empty((size, most))
    white, peaks, others = np.empty(most), np.empty(most), np.empty(most)
    for g in range(len(logs)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            for i in range(node):
                for r in range(width):
                    near[i, r] = min(max(rows[i, first + r], bounds[0, i]), bounds[1, i])
            for r in range(width):
                near[node, r] = rows[node, first + r]
            for k in range(size):
                # The logarithms, to base 2, of how likely the others are and of the density given these.
                for r in range(width):
                    given[k, r] = logs[g, k] / LOG_2
                for i in range(d):
                    _put_white(near, width, i, means[g, k], whiteners[g, k, i], white)
                    if i < node:
                        for r in range(width):
                            given[k, r] -= _HALF * white[r] * white[r]
                log = math.log(whiteners[g, k, node, node]) - 0.5 * LOG_2PI
                for r in range(width):
                    held = min(max(white[r], -FARTHEST), FARTHEST)
                    lines[k, r] = log / LOG_2 - _HALF * held * held
            _put_peaks(given, size, width, peaks)
            for k in range(size):
                for r in range(width):
                    given[k, r] -= peaks[r]
                    lines[k, r] += given[k, r]
            _put_exponentials(given, size, width, others)
            _put_peaks(lines, size, width, peaks)
            for k in range(size):
                for r in range(width):
                    lines[k, r] -= peaks[r]
            _put_exponentials(lines, size, width, white)
            for r in range(width):
                out[first + r] = LOG_2 * peaks[r] + math.log(white[r] / others[r])
    return out


@compiled()  # values far out may overflow
def _put_white(
    near: FloatArray, width: int, i: int, mean: FloatArray, whitener: FloatArray, out: FloatArray
) -> None:
    for r in range(width):
        out[r] = 0.0
    for j in range(i + 1):
        m, w = mean[j], whitener[j]
        for r in range(width):
            out[r] += w * (near[j, r] - m)


@compiled(fastmath=REORDER)
def _put_exponentials(values: FloatArray, size: int, width: int, out: FloatArray) -> None:
    """Put Σ_k 2^value, for values of at most 0."""
    for r in range(width):
        out[r] = 0.0
    for k in range(size):
        for r in range(width):
            out[r] += exp2_negative(-values[k, r])
