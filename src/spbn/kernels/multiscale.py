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
from spbn._base.jit import CONTRACT, REORDER, compiled
from spbn.kernels.estimates import Spans
from spbn.kernels.exact import Job, tiles_of, whiten, write_sums
from spbn.kernels.inner_loop import BLOCK, LEAST, TILE, TO_BASE_2, exp2_negative

#: What the bandwidth matrix is multiplied by. The kernel below is made for just these.
SCALES = (1.0 / 16.0, 1.0 / 4.0, 1.0, 4.0)

SPARSE = 2.0**-20  # of a row's sum at scale 1 to the number of its training rows

WIDE_TO_BASE_2 = 0.5 * TO_BASE_2  # exp(-|z|²/8) = 2^-|z·WIDE_TO_BASE_2|²


def log_density(points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: Spans) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows, at every scale.

    The arrays are those of `exact.log_density`.

    Returns
    -------
    Sets × scales × rows. Rows that no span queries are NaN.
    """
    out = np.full((len(columns), len(SCALES), points.shape[1]), np.nan)
    d, rows = columns.shape[1], frozen(points)
    plain = frozen(whiteners.reshape(-1, d, d))
    train = np.tile(spans.training_counts, len(columns))
    least = np.float64(SPARSE) * train
    scaled, offsets = frozen(plain * WIDE_TO_BASE_2), _offsets(plain, train)
    job = (rows, rows, scaled, offsets, least, tiles_of(columns, spans))
    write_sums(job, out, checked=SCALES.index(1.0), add_far=_add_isolated)
    return out


@compiled()
def _offsets(whiteners: FloatArray, train: IntArray) -> FloatArray:
    """Return what makes log-densities of the logarithms of sums: estimates × scales."""
    d, out = whiteners.shape[1], np.empty((len(whiteners), 4))
    for estimate in range(len(whiteners)):
        count = train[estimate]
        offset = -math.log(count) - 0.5 * d * LOG_2PI if count > 0 else -np.inf
        for k in range(d):
            offset += math.log(whiteners[estimate, k, k])
        factor = 16.0  # 1 over the scale
        for scale in range(4):
            out[estimate, scale] = offset + 0.5 * d * math.log(factor)
            factor *= 0.25
    return out


@compiled()
def _add_isolated(job: Job, first: int, end: int, work: FloatArray, out: FloatArray) -> None:
    train, queries, whiteners, offsets, _, tiles = job
    d, sums, squares, nearest = whiteners.shape[1], np.empty((4, TILE)), np.empty(BLOCK), np.empty(TILE)
    for t in range(first, end):
        start, count, whitener = tiles[t, 2], tiles[t, 3] - tiles[t, 2], whiteners[tiles[t, 1]]
        found = out[tiles[t, 0], :, start : start + count]
        if not (found[0] == np.inf).any():
            continue
        sums[:], nearest[:] = 0.0, np.inf
        whiten(queries, tiles[t], whitener, start, count, work)
        for part in range(4, 8, 2):
            stop = tiles[t, part + 1]
            for begin in range(tiles[t, part], stop, BLOCK):
                width = min(BLOCK, stop - begin)
                whiten(train, tiles[t], whitener, begin, width, work[d:])
                for i in range(count):
                    if found[0, i] < np.inf:
                        continue
                    least = _squared_distances(work, d, i, width, squares)
                    if least < nearest[i]:
                        if nearest[i] < np.inf:
                            _rescale(sums, i, nearest[i] - least)
                        nearest[i] = least
                    _add(squares, width, nearest[i], sums, i)
        for i in range(count):
            if found[0, i] == np.inf:
                factor = 64.0  # the power of t
                for scale in range(4):
                    log_sum = math.log(sums[scale, i]) - nearest[i] * factor * LOG_2
                    found[scale, i] = log_sum + offsets[tiles[t, 1], scale]
                    factor *= 0.25


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
    """Rescale the sums to a new, smaller reference distance."""
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
