"""Direct Gaussian sums at several scales at once: the bandwidths c·H for c = 1/16, 1/4, 1 and 4.

With q the squared distance of two rows under H and t = exp(-q/8), the kernels of the four scales are
t⁶⁴, t¹⁶, t⁴ and t: one exponential and six multiplications (`inner_loop`). There t is raised to 2^-15.9
before its powers are taken, because numbers too small to be normal would slow the processor down. That
adds at most 2^-63.6 per training row at scale 1, and nothing in comparison at the narrower ones: too
little to matter if a row's sum at scale 1 exceeds 2^-20 per training row.

The sums of other rows, which are isolated, are made with the smallest q taken out, and rescaled when a
smaller one turns up, so that none of them underflows: each has a term that is 1.
"""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import LOG_2, LOG_2PI, FloatArray, IntArray, frozen
from spbn._base.jit import CONTRACT, REORDER, compiled, run_tasks
from spbn.kernels.estimates import Spans
from spbn.kernels.inner_loop import BLOCK, LEAST, TILE, add_block, exp2_negative, scales_adder, workspace

#: What the bandwidth matrix is multiplied by. The kernel below is made for just these.
SCALES = (1.0 / 16.0, 1.0 / 4.0, 1.0, 4.0)

SPARSE = 2.0**-20  # of a row's sum at scale 1 to the number of its training rows

_TO_BASE_2 = math.sqrt(0.125 / LOG_2)  # exp(-|z|²/8) = 2^-|z·_TO_BASE_2|²


def log_density(points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: Spans) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows, at every scale.

    The arrays are those of `exact.log_density`.

    Returns
    -------
    Sets × scales × rows. Rows that no span queries are NaN.
    """
    out = np.full((len(columns), len(SCALES), points.shape[1]), np.nan)
    points, columns, whiteners, bounds = map(frozen, (points, columns, whiteners, spans.array))
    adder = scales_adder(columns.shape[1])

    def add_up(s: int, span: int, start: int, stop: int) -> None:
        arguments = (points, columns[s], whiteners[s, span], bounds[span], start, stop)
        work = workspace(columns.shape[1], sums=len(SCALES))
        logarithms = np.empty((len(SCALES), stop - start))
        if _add_pairs(adder, *arguments, work, logarithms):
            _add_isolated(*arguments, work, logarithms)
        _normalise(whiteners[s, span], bounds[span], logarithms)
        out[s, :, start:stop] = logarithms

    tasks = [
        (s, span, start, min(start + TILE, stop))
        for s in range(len(columns))
        for span, (first, stop) in enumerate(spans.queries.tolist())
        for start in range(first, stop, TILE)
    ]
    run_tasks(add_up, tasks)
    return out


@compiled()
def _add_pairs(
    adder: int,
    points: FloatArray,
    columns: IntArray,
    whitener: FloatArray,
    span: IntArray,
    start: int,
    stop: int,
    work: FloatArray,
    out: FloatArray,
) -> bool:
    """Put the logarithms of sums, and say whether there are isolated rows: theirs are infinite."""
    d, count = len(columns), stop - start
    scaled = whitener * _TO_BASE_2
    _whiten(points, columns, scaled, start, stop, work[:d])
    for part in range(2):
        end = span[3 + 2 * part]
        for first in range(span[2 + 2 * part], end, BLOCK):
            width = min(BLOCK, end - first)
            _whiten(points, columns, scaled, first, first + width, work[d:])
            add_block(adder, work, d, width, count)  # type: ignore[call-arg]
    least = SPARSE * _training_count(span)
    isolated = False
    for i in range(count):
        dense = work[2 * d + 2, i] > least
        for scale in range(4):
            out[scale, i] = math.log(work[2 * d + scale, i]) if dense else np.inf
        isolated |= not dense
    return isolated


@compiled()
def _add_isolated(
    points: FloatArray,
    columns: IntArray,
    whitener: FloatArray,
    span: IntArray,
    start: int,
    stop: int,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """Put the logarithms of those sums that are infinite."""
    d, count = len(columns), stop - start
    scaled = whitener * _TO_BASE_2
    sums, squares = np.zeros((4, count)), np.empty(BLOCK)
    nearest = np.full(count, np.inf)
    _whiten(points, columns, scaled, start, stop, work[:d])
    for part in range(2):
        end = span[3 + 2 * part]
        for first in range(span[2 + 2 * part], end, BLOCK):
            width = min(BLOCK, end - first)
            _whiten(points, columns, scaled, first, first + width, work[d:])
            for i in range(count):
                if out[0, i] < np.inf:
                    continue
                least = _squared_distances(work, d, i, width, squares)
                if least < nearest[i]:
                    if nearest[i] < np.inf:
                        _rescale(sums, i, nearest[i] - least)
                    nearest[i] = least
                _add(squares, width, nearest[i], sums, i)
    for i in range(count):
        if out[0, i] == np.inf:
            factor = 64.0  # the power of t
            for scale in range(4):
                out[scale, i] = math.log(sums[scale, i]) - nearest[i] * factor * LOG_2
                factor *= 0.25


@compiled()
def _training_count(span: IntArray) -> int:
    count: int = span[3] - span[2] + span[5] - span[4]
    return count


@compiled()
def _normalise(whitener: FloatArray, span: IntArray, out: FloatArray) -> None:
    """Make log-densities of the logarithms of sums."""
    d, train = len(whitener), _training_count(span)
    log_scale = -math.log(train) - 0.5 * d * LOG_2PI if train > 0 else -np.inf
    for k in range(d):
        log_scale += math.log(whitener[k, k])
    factor = 16.0  # 1 over the scale
    for scale in range(4):
        for i in range(out.shape[1]):
            out[scale, i] += log_scale + 0.5 * d * math.log(factor)
        factor *= 0.25


@compiled(fastmath=CONTRACT)
def _whiten(
    points: FloatArray, columns: IntArray, whitener: FloatArray, first: int, end: int, out: FloatArray
) -> None:
    for k in range(len(columns)):
        for j in range(end - first):
            out[k, j] = whitener[k, 0] * points[columns[0], first + j]
        for m in range(1, k + 1):
            w = whitener[k, m]
            for j in range(end - first):
                out[k, j] += w * points[columns[m], first + j]


@compiled(fastmath=CONTRACT)
def _squared_distances(work: FloatArray, d: int, i: int, width: int, squares: FloatArray) -> float:
    """Put the squared distances of a query from the rows of a block; return the least."""
    x = work[0, i]
    for j in range(width):
        z = x - work[d, j]
        squares[j] = z * z
    for k in range(1, d):
        x = work[k, i]
        for j in range(width):
            z = x - work[d + k, j]
            squares[j] += z * z
    least = squares[0]
    for j in range(1, width):
        least = squares[j] if squares[j] < least else least
    return least


@compiled()
def _rescale(sums: FloatArray, i: int, drop: float) -> None:
    """Make sums that have a greater distance taken out those that have a smaller one taken out."""
    factor = 64.0
    for scale in range(4):
        sums[scale, i] *= 2.0 ** (-factor * drop)
        factor *= 0.25


@compiled(fastmath=REORDER)
def _add(squares: FloatArray, width: int, nearest: float, sums: FloatArray, i: int) -> None:
    s0 = s1 = s2 = s3 = 0.0
    for j in range(width):
        t = exp2_negative(squares[j] - nearest)
        s3 += t
        t = t if t > LEAST else LEAST
        t = t * t
        t = t * t
        s2 += t
        t = t * t
        t = t * t
        s1 += t
        t = t * t
        t = t * t
        s0 += t
    sums[0, i] += s0
    sums[1, i] += s1
    sums[2, i] += s2
    sums[3, i] += s3
