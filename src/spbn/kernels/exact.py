"""Direct Gaussian sums: every pair of a query row and a training row, at the speed of the machine.

A tile of query rows meets the training rows in blocks that stay in the L1 cache. Each block is whitened on
the fly with the tile's own bandwidth, so nothing of the size of the data is ever stored and every fold may
have a bandwidth of its own. The loop over pairs is that of `inner_loop`.

A row's sum is made by one thread in a fixed order: results do not depend on
the number of threads. A sum that underflows is computed again with its
smallest distance factored out, so far outliers get correct finite values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np

from spbn._base.arrays import LOG_2, LOG_2PI, FloatArray, IntArray, frozen
from spbn._base.jit import CONTRACT, compiled, run_tasks, thread_count
from spbn.kernels.estimates import Estimate, Spans
from spbn.kernels.inner_loop import BLOCK, TILE, TO_BASE_2, add_block, adder, workspace

UNDERFLOW = 2.0**-900  # below this a sum may consist of clipped terms
NEGLIGIBLE = 90.0  # powers of two, below the greatest term of a sum: it has no digits for what is smaller
PAIRS_A_CALL = 2e7  # some 0.01 s: how long an interrupt may have to wait
FEWEST_PAIRS = 2e5  # some 0.1 ms: waking up a thread for less does not pay
CALLS_A_THREAD = 4  # so that the others do not wait long for one that is held up
QUERIES_A_TASK = 32  # rows of `exact_rows` that share a span

#: What sums are made of: training rows and queries, both variables × rows; the whiteners of the estimates,
#: scaled so that a kernel is 2 to the power of minus a squared distance; estimates × scales, to be added to
#: the logarithms of sums; what a sum has to exceed, by estimate; and tiles of work (`tiles_of`).
Job = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray]


def log_density(points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: Spans) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows.

    Parameters
    ----------
    points
        Variables × rows, centred so that large offsets lose no digits.
    columns
        Sets × d: the variables of every set.
    whiteners
        Sets × spans × d × d: the inverse Cholesky factor of the bandwidth matrix of every set on every span.
    spans
        The query rows and the training rows of every estimate.

    Returns
    -------
    Sets × rows. Rows that no span queries are NaN.
    """
    out = np.full((len(columns), 1, points.shape[1]), np.nan)
    d = columns.shape[1]
    peaks = np.log(np.diagonal(whiteners, axis1=2, axis2=3)).sum(axis=2) - 0.5 * d * LOG_2PI
    offsets = (peaks - np.log(np.maximum(spans.training_counts, 1))).reshape(-1, 1)
    rows, scaled = frozen(points), frozen(whiteners.reshape(-1, d, d) * TO_BASE_2)
    least = np.full(len(offsets), UNDERFLOW)
    write_sums((rows, rows, scaled, offsets, least, tiles_of(columns, spans)), out)
    return out[:, 0]


def log_density_of_whitened(train: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the log-density of queries (d × rows) under standard normal kernels on training rows (d × rows).

    Neither is copied, and little is done beyond the sums: queries of a single row are frequent.
    """
    d, rows = train.shape
    asked = queries.shape[1]
    out = np.empty((1, 1, asked))
    if asked <= TILE:
        tiles = np.array([[0, 0, 0, asked, 0, rows, 0, 0, *range(d)]])
    else:
        tiles = tiles_of(np.arange(d)[None], Spans(np.array([[0, asked, 0, rows, 0, 0]])))
    offset, least = np.array([[-0.5 * d * LOG_2PI - math.log(rows)]]), np.array([UNDERFLOW])
    write_sums((frozen(train), frozen(queries), _identity(d), offset, least, tiles), out)
    return out[0, 0]


def exact_rows(
    rows: FloatArray, spans: Spans, estimates: list[Estimate], wanted: list[IntArray]
) -> list[FloatArray]:
    """Return the exact log-densities of the rows with these numbers, for every estimate.

    `rows` are the variables of the estimates × rows.
    """
    first = rows.shape[1]
    points = np.concatenate([rows, *(rows[:, numbers] for numbers in wanted)], axis=1)
    tasks, whiteners = [], []
    for estimate, numbers in zip(estimates, wanted, strict=True):
        end = first + len(numbers)
        for start in range(first, end, QUERIES_A_TASK):
            tasks.append([start, min(start + QUERIES_A_TASK, end), *spans.training[estimate.span]])
            whiteners.append(estimate.whitener)
        first = end
    if not tasks:
        return [np.empty(0) for _ in wanted]
    columns = np.arange(len(rows))[None]
    values = log_density(points, columns, np.array(whiteners)[None], Spans(np.array(tasks)))[0]
    return np.split(values[rows.shape[1] :], np.cumsum([len(numbers) for numbers in wanted])[:-1])


@cache
def _identity(d: int) -> FloatArray:
    return frozen(TO_BASE_2 * np.eye(d)[None])


def tiles_of(columns: IntArray, spans: Spans) -> IntArray:
    """Cut the work into tiles, with a row for each.

    That is: set, estimate (a set on a span), (first, end) of the query rows, (first, end) twice of the
    training rows, and the variables.
    """
    tiles = [
        (span, start, min(start + TILE, stop))
        for span, (first, stop) in enumerate(spans.queries.tolist())
        for start in range(first, stop, TILE)
    ]
    one_set = np.array(tiles, dtype=np.int64).reshape(-1, 3)
    out = np.empty((len(columns), len(one_set), 8 + columns.shape[1]), dtype=np.int64)
    sets = np.arange(len(columns))[:, None]
    out[:, :, 0] = sets
    out[:, :, 1] = sets * len(spans) + one_set[:, 0]
    out[:, :, 2:4] = one_set[:, 1:]
    out[:, :, 4:8] = spans.training[one_set[:, 0]]
    out[:, :, 8:] = columns[:, None]
    return out.reshape(-1, out.shape[2])


def write_sums(
    job: Job, out: FloatArray, *, checked: int = 0, add_far: Callable[..., None] | None = None
) -> None:
    """Put log-densities into sets × scales × rows.

    `checked`: the scale whose sums must be large enough.
    `add_far`: the loop for those that are not, instead of `_add_up_far`.
    """
    (d, scales), tiles = (job[2].shape[1], out.shape[1]), job[-1]

    def add_up(first: int, end: int) -> None:
        work = workspace(d, sums=scales)
        if _add_up(adder(d, scales), job, checked, first, end, work, out):
            (add_far or _add_up_far)(job, first, end, work, out)

    pairs = (tiles[:, 3] - tiles[:, 2]) * (tiles[:, 5] - tiles[:, 4] + tiles[:, 7] - tiles[:, 6])
    total = float(pairs.sum())
    if total < 2.0 * FEWEST_PAIRS:
        add_up(0, len(tiles))
        return
    at_a_time = max(FEWEST_PAIRS, min(PAIRS_A_CALL, total / (CALLS_A_THREAD * thread_count())))
    share = (np.cumsum(pairs) - pairs) // at_a_time
    cuts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), len(tiles)]
    run_tasks(add_up, list(pairwise(cuts)))


@compiled()
def _add_up(
    adder: int, job: Job, checked: int, first: int, end: int, work: FloatArray, out: FloatArray
) -> bool:
    """Write log-densities, and say whether some sum was too small: its row is then infinite."""
    train, queries, whiteners, offsets, least, tiles = job
    d, scales = whiteners.shape[1], out.shape[1]
    has_small = False
    for t in range(first, end):
        estimate, start = tiles[t, 1], tiles[t, 2]
        count = tiles[t, 3] - start
        for s in range(scales):
            for i in range(count):
                work[2 * d + s, i] = 0.0
        whiten(queries, tiles[t], whiteners[estimate], start, count, work)  # they fit into one block
        for part in range(4, 8, 2):
            stop = tiles[t, part + 1]
            for begin in range(tiles[t, part], stop, BLOCK):
                width = min(BLOCK, stop - begin)
                whiten(train, tiles[t], whiteners[estimate], begin, width, work[d:])
                add_block(adder, work, d, width, count)  # type: ignore[call-arg]
        for i in range(count):
            is_large = work[2 * d + checked, i] > least[estimate]
            for s in range(scales):
                value = math.log(work[2 * d + s, i]) + offsets[estimate, s] if is_large else np.inf
                out[tiles[t, 0], s, start + i] = value
            has_small |= not is_large
    return has_small


@compiled(fastmath=CONTRACT)
def whiten(
    points: FloatArray, tile: IntArray, whitener: FloatArray, first: int, width: int, out: FloatArray
) -> None:
    """Put some rows of the variables of a tile into a workspace, whitened."""
    for k in range(len(whitener)):
        for j in range(width):
            out[k, j] = 0.0
        for m in range(k + 1):
            w, variable = whitener[k, m], tile[8 + m]
            for j in range(width):
                out[k, j] += w * points[variable, first + j]


@compiled()
def _add_up_far(job: Job, first: int, end: int, work: FloatArray, out: FloatArray) -> None:
    """Replace infinite values: all terms of the sum underflow, so factor out the greatest one first."""
    train, queries, whiteners, offsets, _, tiles = job
    squares = np.empty(train.shape[1])
    for t in range(first, end):
        tile, whitener = tiles[t], whiteners[tiles[t, 1]]
        for i in range(tile[2], tile[3]):
            if out[tile[0], 0, i] < np.inf:
                continue
            nearest = np.inf
            for part in range(4, 8, 2):
                for j in range(tile[part], tile[part + 1]):
                    squares[j] = _squared_distance(train, queries, tile, whitener, i, j)
                    nearest = min(nearest, squares[j])
            if nearest == np.inf:
                out[tile[0], 0, i] = -np.inf
                continue
            total = 0.0
            for part in range(4, 8, 2):
                for j in range(tile[part], tile[part + 1]):
                    if squares[j] - nearest < NEGLIGIBLE:
                        total += math.exp(LOG_2 * (nearest - squares[j]))
            out[tile[0], 0, i] = math.log(total) - LOG_2 * nearest + offsets[tile[1], 0]


@compiled()
def _squared_distance(
    train: FloatArray, queries: FloatArray, tile: IntArray, whitener: FloatArray, i: int, j: int
) -> float:
    square = 0.0
    for k in range(len(whitener)):
        z = 0.0
        for m in range(k + 1):
            z += whitener[k, m] * (queries[tile[8 + m], i] - train[tile[8 + m], j])
        square += z * z
    return square
