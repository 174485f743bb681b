"""Gaussian sums that leave out pairs of rows too far apart to matter: four and five dimensions, many rows.

Rows are sorted into leaves of rows that lie close together, by splitting them at the median again and again.
Queries go in groups that lie close together too. Of a leaf at least a distance r away from a group, in widths
of the Gaussian, no row contributes more than exp(-r²/2) to any sum of the group. The nearest leaves are added
up first; then it is known which others need not be, because all their rows together contribute less than
`TOLERANCE` of the least sum of the group. Their rows are taken to be at the centre of the leaf, which cannot
be more wrong than that.

So every log-density is within 5e-7 of the exact one, and in practice within 1e-9. Queries with no row near
them are left to the exact kernel: they would make their group search far and wide.

A row's sum is made by one thread in a fixed order: results do not depend on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.jit import CONTRACT, REORDER, compiled, run_tasks
from spbn.kernels.estimates import Estimate, Group, Spans, grouped, whitened
from spbn.kernels.exact import exact_rows
from spbn.kernels.inner_loop import BLOCK, TO_BASE_2, add_block, adder, exp2_negative, workspace

TOLERANCE = 5e-7  # of a sum, that need not be precise
NEAR = 4.0  # widths: leaves that are added up first
SPARSE = 1e-3  # sums below this after that are left to the exact kernel
LEAF = 64  # rows
QUERIES = 16  # rows of a group
GROUPS_A_TASK = 8
_BINS = 128  # of squared distance, the last of them open: 2^-92 is nothing
_BINS_A_SQUARE = 1.0
_BEYOND = 30.0  # of squared distance, added to the cutoff: what is farther away is left out
_FAR_AWAY = 1e8  # where the rows that a span does not train on are put

Boxes = tuple[FloatArray, FloatArray]
Centres = tuple[FloatArray, FloatArray]


def log_density(points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: Spans) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows.

    The arrays are those of `exact.log_density`, with at most five variables to a set.
    """
    out = np.full((len(columns), points.shape[1]), np.nan)
    for number, variables in enumerate(columns):
        rows = np.ascontiguousarray(points[variables])
        estimates = [Estimate(number, span, whiteners[number, span]) for span in spans.queried]
        for group in grouped(estimates):
            _evaluate(rows, spans, group, out[number])
    return out


def _evaluate(rows: FloatArray, spans: Spans, group: Group, out: FloatArray) -> None:
    """Put the log-densities of a group's estimates into `out`."""
    coordinates = whitened(rows, group.whitener)
    used = np.zeros(rows.shape[1], dtype=bool)
    for estimate in group.estimates:
        used |= _trains_on(spans.training[estimate.span], np.arange(len(used)))
    train = sorted_into_leaves(coordinates, np.flatnonzero(used), LEAF)
    leaves = _boxes(coordinates[:, train], LEAF)
    isolated = []
    for estimate, covariance in zip(group.estimates, group.covariances, strict=True):
        queries = sorted_into_leaves(coordinates, np.arange(*spans.queries[estimate.span]), QUERIES)
        sources = whitened(rows[:, train], estimate.whitener * TO_BASE_2)
        trained = _trains_on(spans.training[estimate.span], train)
        centres = _centres(sources, trained)
        sources[0, ~trained] = _FAR_AWAY
        targets = whitened(rows[:, queries], estimate.whitener * TO_BASE_2)
        nearness = 1.0 / float(np.linalg.eigvalsh(covariance).max())
        boxes = _boxes(coordinates[:, queries], QUERIES)
        sums = _sums(targets, boxes, sources, leaves, centres, nearness)
        alone = sums < SPARSE
        isolated.append(queries[alone])
        heights = sums[~alone] / spans.training_counts[estimate.span]
        out[queries[~alone]] = np.log(heights) + estimate.log_peak
    for numbers, values in zip(isolated, exact_rows(rows, spans, group.estimates, isolated), strict=True):
        out[numbers] = values


def _sums(
    targets: FloatArray, boxes: Boxes, sources: FloatArray, leaves: Boxes, centres: Centres, nearness: float
) -> FloatArray:
    """Return the sums of Gaussians at all queries."""
    d, queries = targets.shape
    groups, sums = -(-queries // QUERIES), np.empty(queries)

    def add_groups(first: int) -> None:
        end = min(first + GROUPS_A_TASK, groups)
        arrays = (targets, boxes, sources, leaves, centres, nearness, workspace(d), sums)
        _add_some_groups(adder(d), first, end, *arrays)

    run_tasks(add_groups, [(first,) for first in range(0, groups, GROUPS_A_TASK)])
    return sums


def _trains_on(training: IntArray, rows: IntArray) -> BoolArray:
    first, end, second, last = training
    trained: BoolArray = ((first <= rows) & (rows < end)) | ((second <= rows) & (rows < last))
    return trained


def sorted_into_leaves(coordinates: FloatArray, rows: IntArray, size: int) -> IntArray:
    """Order rows so that every `size` of them lie close together."""
    done = []
    pending = [rows]
    while pending:
        part = pending.pop()
        if len(part) <= size:
            done.append(part)
            continue
        extent = coordinates[:, part]
        axis = int(np.argmax(extent.max(axis=1) - extent.min(axis=1)))
        # Halves that are multiples of the leaf size, so that only the last leaf is not full.
        half = -(-len(part) // (2 * size)) * size
        order = np.argpartition(extent[axis], half)
        pending += [part[order[half:]], part[order[:half]]]
    return np.concatenate(done)


def _boxes(coordinates: FloatArray, size: int) -> Boxes:
    """Return the lower and the upper corners of the boxes around every `size` points: dimensions × boxes."""
    starts = np.arange(0, coordinates.shape[1], size)
    low = np.minimum.reduceat(coordinates, starts, axis=1)
    return low, np.maximum.reduceat(coordinates, starts, axis=1)


def _centres(sources: FloatArray, trained: BoolArray) -> Centres:
    """Return the mean of the training rows of every leaf, and their number."""
    starts = np.arange(0, len(trained), LEAF)
    counts = np.add.reduceat(trained.astype(np.float64), starts)
    return np.add.reduceat(sources * trained, starts, axis=1) / np.maximum(counts, 1.0), counts


@compiled()
def _add_some_groups(
    adder: int,
    first: int,
    end: int,
    targets: FloatArray,
    groups: Boxes,
    sources: FloatArray,
    leaves: Boxes,
    centres: Centres,
    nearness: float,
    work: FloatArray,
    sums: FloatArray,
) -> None:
    d, squares = len(targets), np.empty(leaves[0].shape[1])
    found = work[2 * d]
    for group in range(first, end):
        start = group * QUERIES
        width = min(QUERIES, targets.shape[1] - start)
        work[:d, :width] = targets[:, start : start + width]
        found[:width] = 0.0
        _square_distances(groups, group, leaves, nearness, squares)
        _add_leaves(adder, -1.0, NEAR * NEAR, squares, sources, work, width)
        least = np.inf
        for i in range(width):
            if found[i] >= SPARSE:
                least = min(least, found[i])
            else:
                found[i] = -1e300  # isolated, whatever is added to it
        if least < np.inf:
            cutoff = max(NEAR * NEAR, _cutoff(squares, TOLERANCE * least))
            _add_leaves(adder, NEAR * NEAR, cutoff, squares, sources, work, width)
            _add_centres(cutoff, cutoff + _BEYOND, squares, centres, work, width)
        sums[start : start + width] = found[:width]


@compiled(fastmath=CONTRACT)
def _square_distances(groups: Boxes, group: int, leaves: Boxes, nearness: float, out: FloatArray) -> None:
    """Write the squared distances of leaves from a group, in widths: a lower bound for all their rows."""
    out[:] = 0.0
    for k in range(len(leaves[0])):
        low, high = groups[0][k, group], groups[1][k, group]
        for leaf in range(len(out)):
            gap = max(0.0, max(leaves[0][k, leaf] - high, low - leaves[1][k, leaf]))
            out[leaf] += nearness * gap * gap


@compiled()
def _cutoff(squares: FloatArray, allowed: float) -> float:
    """Return the squared distance beyond which all leaves together contribute less than allowed."""
    rows = np.zeros(_BINS + 1)
    for leaf in range(len(squares)):
        rows[min(_BINS, int(squares[leaf] * _BINS_A_SQUARE))] += LEAF
    left_out = 0.0
    for number in range(_BINS, -1, -1):
        left_out += rows[number] * math.exp(-0.5 * number / _BINS_A_SQUARE)
        if left_out > allowed:
            return (number + 1) / _BINS_A_SQUARE
    return 0.0


@compiled()
def _add_leaves(
    adder: int,
    above: float,
    upto: float,
    squares: FloatArray,
    sources: FloatArray,
    work: FloatArray,
    asked: int,
) -> None:
    """Add the leaves within a range of squared distances, a block of them at a time."""
    d = len(sources)
    filled = 0
    for leaf in range(len(squares)):
        if above < squares[leaf] <= upto:
            start = leaf * LEAF
            width = min(LEAF, sources.shape[1] - start)
            for k in range(d):
                for j in range(width):
                    work[d + k, filled + j] = sources[k, start + j]
            filled += width
            if filled > BLOCK - LEAF:
                add_block(adder, work, d, filled, asked)  # type: ignore[call-arg]
                filled = 0
    if filled > 0:
        add_block(adder, work, d, filled, asked)  # type: ignore[call-arg]


@compiled(fastmath=REORDER)
def _add_centres(
    above: float, upto: float, squares: FloatArray, centres: Centres, work: FloatArray, queries: int
) -> None:
    """Add leaves as if all their rows were at their centres."""
    places, counts = centres
    d = len(places)
    for leaf in range(len(squares)):
        if above < squares[leaf] <= upto:
            for i in range(queries):
                q = 0.0
                for k in range(d):
                    q += (work[k, i] - places[k, leaf]) ** 2
                work[2 * d, i] += counts[leaf] * exp2_negative(q)
