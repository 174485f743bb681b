"""Direct Gaussian sums: every pair of a query row and a training row, at the speed of the machine.

A tile of query rows meets the training rows in blocks that stay in the L1
cache. Each block is whitened on the fly with the tile's own bandwidth, so
nothing of the size of the data is ever stored and every fold may have a
bandwidth of its own. Four queries share each load of a training row.

A row's sum is made by one thread in a fixed order: results do not depend on
the number of threads. A sum that underflows is computed again with its
smallest distance taken out, so far outliers have correct finite values.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from spbn.kernels.exp2 import exp2_negative
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.compiling import CONTRACT, REORDER, compiled, launching_for

TILE = 256  # query rows that share a whitened block
BLOCK = 256  # training rows of a block: 16 KB in 8 dimensions
LANES = 4  # query rows that share a load
UNDERFLOW = 2.0**-900  # below this a sum may consist of clipped terms
PAIRS_A_CALL = 4e8  # some 0.2 s: how long an interrupt may have to wait

_TO_BASE_2 = math.sqrt(0.5 / math.log(2.0))  # exp(-|z|²/2) = 2^-|z·_TO_BASE_2|²
_LOG_2PI = math.log(2.0 * math.pi)


def log_density(points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: IntArray) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows.

    Parameters
    ----------
    points
        Variables × rows, centred so that large offsets lose no digits.
    columns
        Sets × d: the variables of every set.
    whiteners
        Sets × spans × d × d: the inverse Cholesky factor of the bandwidth matrix of
        every set on every span.
    spans
        Spans × 6: (first, end) of the query rows, and (first, end) twice of the
        training rows. A fold is queried against the rows before and behind it.

    Returns
    -------
    Sets × rows. Rows that no span queries are NaN.
    """
    out = np.full((len(columns), points.shape[1]), np.nan)
    tasks = _tasks(len(columns), spans)
    train = (spans[:, 3] - spans[:, 2]) + (spans[:, 5] - spans[:, 4])
    pairs = np.cumsum((tasks[:, 3] - tasks[:, 2]) * train[tasks[:, 1]])
    cuts = np.searchsorted(pairs, np.arange(PAIRS_A_CALL, pairs[-1] if len(pairs) else 0.0, PAIRS_A_CALL))
    for part in np.split(tasks, np.unique(cuts)):
        if len(part):
            with launching_for(len(part)):
                _run(points, columns, whiteners, spans, part, out)
    return out


def _tasks(sets: int, spans: IntArray) -> IntArray:
    """Cut the work into tiles: rows of (set, span, first query, end of queries)."""
    tiles = [
        (span, start, min(start + TILE, stop))
        for span, (first, stop) in enumerate(spans[:, :2].tolist())
        for start in range(first, stop, TILE)
    ]
    one_set = np.array(tiles, dtype=np.int64).reshape(-1, 3)
    tasks = np.empty((sets, len(one_set), 4), dtype=np.int64)
    tasks[:, :, 0] = np.arange(sets)[:, None]
    tasks[:, :, 1:] = one_set
    return tasks.reshape(-1, 4)


@compiled(parallel=True)
def _run(
    points: FloatArray,
    columns: IntArray,
    whiteners: FloatArray,
    spans: IntArray,
    tasks: IntArray,
    out: FloatArray,
) -> None:
    for task in prange(len(tasks)):
        s, span, start, stop = tasks[task]
        _tile(points, columns[s], whiteners[s, span], spans[span], start, stop, out[s])


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
    train = span[3] - span[2] + span[5] - span[4]
    scaled = whitener * _TO_BASE_2
    queries = np.zeros((d, stop - start + LANES - 1))  # the surplus is computed and left unread
    _whiten(points, columns, scaled, start, stop, queries)
    sums = np.zeros(queries.shape[1])
    block = np.empty((d, BLOCK))
    for part in range(2):
        end = span[3 + 2 * part]
        for first in range(span[2 + 2 * part], end, BLOCK):
            width = min(BLOCK, end - first)
            _whiten(points, columns, scaled, first, first + width, block)
            # The dimension is the length of a tuple, so the compiler knows it and unrolls.
            if d == 1:
                _add_block((0,), queries, block, width, sums)
            elif d == 2:
                _add_block((0, 0), queries, block, width, sums)
            elif d == 3:
                _add_block((0, 0, 0), queries, block, width, sums)
            elif d == 4:
                _add_block((0, 0, 0, 0), queries, block, width, sums)
            elif d == 5:
                _add_block((0, 0, 0, 0, 0), queries, block, width, sums)
            else:
                _add_wide_block(queries, block, width, sums)
    log_scale = -math.log(train) - 0.5 * d * _LOG_2PI
    for k in range(d):
        log_scale += math.log(whitener[k, k])
    for i in range(stop - start):
        if sums[i] > UNDERFLOW:
            out[start + i] = math.log(sums[i]) + log_scale
        else:
            out[start + i] = _far_log_sum(points, columns, whitener, span, start + i) + log_scale


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


@compiled(fastmath=REORDER)
def _add_block(
    dimensions: tuple[int, ...], queries: FloatArray, block: FloatArray, width: int, sums: FloatArray
) -> None:
    for i in range(0, len(sums) - LANES + 1, LANES):
        s0 = s1 = s2 = s3 = 0.0
        for j in range(width):
            q0 = q1 = q2 = q3 = 0.0
            for k in range(len(dimensions)):
                y = block[k, j]
                z0 = queries[k, i] - y
                z1 = queries[k, i + 1] - y
                z2 = queries[k, i + 2] - y
                z3 = queries[k, i + 3] - y
                q0 += z0 * z0
                q1 += z1 * z1
                q2 += z2 * z2
                q3 += z3 * z3
            s0 += exp2_negative(q0)
            s1 += exp2_negative(q1)
            s2 += exp2_negative(q2)
            s3 += exp2_negative(q3)
        sums[i] += s0
        sums[i + 1] += s1
        sums[i + 2] += s2
        sums[i + 3] += s3


@compiled(fastmath=REORDER)
def _add_wide_block(queries: FloatArray, block: FloatArray, width: int, sums: FloatArray) -> None:
    """Do the same in any dimension, by way of a buffer of squared distances."""
    squares = np.empty(width)
    for i in range(len(sums)):
        squares[:] = 0.0
        for k in range(len(block)):
            x = queries[k, i]
            for j in range(width):
                z = x - block[k, j]
                squares[j] += z * z
        total = 0.0
        for j in range(width):
            total += exp2_negative(squares[j])
        sums[i] += total


@compiled()
def _far_log_sum(
    points: FloatArray, columns: IntArray, whitener: FloatArray, span: IntArray, row: int
) -> float:
    """Log of a sum whose terms all underflow: take the greatest term out first."""
    nearest = np.inf
    for part in range(2):
        for j in range(span[2 + 2 * part], span[3 + 2 * part]):
            nearest = min(nearest, _squared_distance(points, columns, whitener, row, j))
    if nearest == np.inf:
        return -np.inf
    total = 0.0
    for part in range(2):
        for j in range(span[2 + 2 * part], span[3 + 2 * part]):
            total += math.exp(0.5 * (nearest - _squared_distance(points, columns, whitener, row, j)))
    return math.log(total) - 0.5 * nearest


@compiled()
def _squared_distance(points: FloatArray, columns: IntArray, whitener: FloatArray, i: int, j: int) -> float:
    square = 0.0
    for k in range(len(columns)):
        z = 0.0
        for m in range(k + 1):
            z += whitener[k, m] * (points[columns[m], i] - points[columns[m], j])
        square += z * z
    return square
