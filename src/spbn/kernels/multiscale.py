"""Direct Gaussian sums at several scales at once: the bandwidths c·H for c = 1/16, 1/4, 1 and 4.

With q the squared distance of two rows under H and t = exp(-q/8), the kernels of the four scales are
t⁶⁴, t¹⁶, t⁴ and t: one exponential and six multiplications. Of every row the smallest q so far is
taken out, and sums are rescaled when a smaller one turns up, so that none of them underflows: each
has a term that is 1.

Beside a term that is 1, powers of a t below 2^-16 do not matter (2^-64 for t⁴, less for the others).
There t is cut off, because numbers too small to be normal would slow the processor down.
"""

from __future__ import annotations

import math

import numpy as np

from spbn.kernels.exp2 import exp2_negative
from spbn.numerics.arrays import FloatArray, IntArray, frozen
from spbn.numerics.compiling import CONTRACT, REORDER, compiled
from spbn.numerics.threads import started_threads

#: What the bandwidth matrix is multiplied by. The kernel below is made for just these.
SCALES = (1.0 / 16.0, 1.0 / 4.0, 1.0, 4.0)

TILE = 128  # query rows that share a whitened block
BLOCK = 256  # training rows of a block

_TO_BASE_2 = math.sqrt(0.125 / math.log(2.0))  # exp(-|z|²/8) = 2^-|z·_TO_BASE_2|²
_SMALLEST = 2.0**-15.9
_LOG_2PI = math.log(2.0 * math.pi)


def log_density(points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: IntArray) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows, at every scale.

    The arrays are those of `exact.log_density`.

    Returns
    -------
    Sets × scales × rows. Rows that no span queries are NaN.
    """
    out = np.full((len(columns), len(SCALES), points.shape[1]), np.nan)
    points, columns, whiteners, spans = map(frozen, (points, columns, whiteners, spans))
    tasks = [
        (points, columns[s], whiteners[s, span], spans[span], start, min(start + TILE, stop), out[s])
        for s in range(len(columns))
        for span, (first, stop) in enumerate(spans[:, :2].tolist())
        for start in range(first, stop, TILE)
    ]
    with started_threads() as threads:
        threads.run(_tile, tasks)
    return out


@compiled()
def _tile(
    points: FloatArray,
    columns: IntArray,
    whitener: FloatArray,
    span: IntArray,
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    d = len(columns)
    scaled = whitener * _TO_BASE_2
    queries = np.empty((d, stop - start))
    _whiten(points, columns, scaled, start, stop, queries)
    sums = np.zeros((4, stop - start))
    nearest = np.full(stop - start, np.inf)
    block, squares = np.empty((d, BLOCK)), np.empty(BLOCK)
    for part in range(2):
        end = span[3 + 2 * part]
        for first in range(span[2 + 2 * part], end, BLOCK):
            width = min(BLOCK, end - first)
            _whiten(points, columns, scaled, first, first + width, block)
            for i in range(stop - start):
                least = _squared_distances(queries, i, block, width, squares)
                if least < nearest[i]:
                    if nearest[i] < np.inf:
                        _rescale(sums, i, nearest[i] - least)
                    nearest[i] = least
                _add(squares, width, nearest[i], sums, i)
    train = span[3] - span[2] + span[5] - span[4]
    log_scale = -math.log(train) - 0.5 * d * _LOG_2PI if train > 0 else -np.inf
    for k in range(d):
        log_scale += math.log(whitener[k, k])
    for i in range(stop - start):
        factor = 64.0  # the power of t, and 16 over the scale
        for scale in range(4):
            out[scale, start + i] = (
                math.log(sums[scale, i])
                - nearest[i] * factor * math.log(2.0)
                + log_scale
                + 0.5 * d * math.log(factor / 4.0)
            )
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
def _squared_distances(
    queries: FloatArray, i: int, block: FloatArray, width: int, squares: FloatArray
) -> float:
    """Put the squared distances of a query from the rows of a block; return the least."""
    x = queries[0, i]
    for j in range(width):
        z = x - block[0, j]
        squares[j] = z * z
    for k in range(1, len(block)):
        x = queries[k, i]
        for j in range(width):
            z = x - block[k, j]
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
        t = t if t > _SMALLEST else _SMALLEST
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
