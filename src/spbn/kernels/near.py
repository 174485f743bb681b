"""Sums of narrow Gaussians over rows that come a part at a time: what one part gives is added to the others'.

Narrow kernels reach few rows. So the rows of a part are sorted into leaves of rows that lie close together,
and a query visits only the leaves that can matter to it: relative to the nearest row seen so far, in any
part, those beyond 2^-`BEYOND` are left out. Of n rows that is at most n · 1e-15 of the sum, and in practice
nothing.

Sums are kept relative to the kernel of the nearest row, which is 1. So they are right however far a query is
from all rows, and it makes no difference, beyond rounding, how rows are divided into parts. A query's sum is
made by one thread in a fixed order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spbn.kernels.estimates import whitened
from spbn.kernels.exp2 import exp2_negative
from spbn.kernels.pruned import sorted_into_leaves
from spbn.numerics.arrays import BoolArray, FloatArray, IntArray, frozen
from spbn.numerics.compiling import REORDER, compiled
from spbn.numerics.threads import started_threads

LEAF = 32  # rows
LEAVES = 32  # of a branch
QUERIES = 16  # of a group, which looks for leaves together
GROUPS_A_TASK = 64
BEYOND = 50.0  # powers of two below the greatest kernel
_NOTHING = 1e300  # the squared distance of the nearest of no rows
_LOG_2 = math.log(2.0)
_TO_BASE_2 = math.sqrt(0.5 / _LOG_2)  # as in `exact`


@dataclass(frozen=True, eq=False)
class Leaves:
    """The rows that kernels sit on, in coordinates in which a kernel is 2^-|distance|².

    Attributes
    ----------
    rows
        Variables × rows, those of a leaf next to each other.
    starts
        Where leaves begin, and where the last one ends.
    boxes, branches
        Around every leaf and every `LEAVES` of them: (low, high) × variables × boxes.
    """

    rows: FloatArray
    starts: IntArray
    boxes: FloatArray
    branches: FloatArray

    @classmethod
    def of(cls, points: FloatArray, kept: BoolArray, whitener: FloatArray) -> Leaves:
        """Make leaves of points in the order of `arranged`, leaving out all that are not kept."""
        counts = np.add.reduceat(kept, np.arange(0, len(kept), LEAF), dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts[counts > 0])])
        rows = whitened(points[:, kept], whitener * _TO_BASE_2)
        low = np.minimum.reduceat(rows, starts[:-1], axis=1)
        high = np.maximum.reduceat(rows, starts[:-1], axis=1)
        firsts = np.arange(0, low.shape[1], LEAVES)
        branches = np.minimum.reduceat(low, firsts, axis=1), np.maximum.reduceat(high, firsts, axis=1)
        return cls(*map(frozen, (rows, starts, np.stack([low, high]), np.stack(branches))))


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums at some queries, to be added to: relative to the kernel of the nearest row, and its distance."""

    nearest: FloatArray
    totals: FloatArray

    @classmethod
    def none(cls, queries: int) -> Sums:
        """Begin without any rows."""
        return cls(np.full(queries, _NOTHING), np.zeros(queries))

    @property
    def logarithms(self) -> FloatArray:
        """The logarithms of the sums; -inf if no row was added."""
        with np.errstate(divide="ignore"):
            return np.log(self.totals) - np.where(self.totals > 0.0, self.nearest, 0.0) * _LOG_2

    def add(self, leaves: Leaves, points: FloatArray, whitener: FloatArray) -> None:
        """Add the kernels of some rows to the sums of queries, which are in the order of `arranged`."""
        if not leaves.rows.shape[1]:
            return
        queries = frozen(whitened(points, whitener * _TO_BASE_2))
        groups = -(-queries.shape[1] // QUERIES)
        arrays = (queries, leaves.rows, leaves.starts, leaves.boxes, leaves.branches)
        cuts = range(0, groups, GROUPS_A_TASK)
        with started_threads() as threads:
            threads.run(
                _add_groups,
                [(g, min(g + GROUPS_A_TASK, groups), *arrays, self.nearest, self.totals) for g in cuts],
            )


def arranged(points: FloatArray, whitener: FloatArray, size: int) -> IntArray:
    """Return an order in which every `size` of some points lie close together."""
    return sorted_into_leaves(whitened(points, whitener), np.arange(points.shape[1]), size)


@compiled()
def _add_groups(
    first: int,
    end: int,
    queries: FloatArray,
    rows: FloatArray,
    starts: IntArray,
    boxes: FloatArray,
    branches: FloatArray,
    nearest: FloatArray,
    totals: FloatArray,
) -> None:
    d, leaves = len(queries), boxes.shape[2]
    squares, found = np.empty(LEAF), np.empty(leaves, dtype=np.int64)
    around, point = np.empty((2, d)), np.empty(d)
    for group in range(first, end):
        begin, stop = group * QUERIES, min((group + 1) * QUERIES, queries.shape[1])
        for k in range(d):
            around[0, k], around[1, k] = queries[k, begin:stop].min(), queries[k, begin:stop].max()
        # One leaf that is close by tells how far it makes sense to look.
        branch = _closest(around, branches, 0, branches.shape[2])
        closest = _closest(around, boxes, branch * LEAVES, min((branch + 1) * LEAVES, leaves))
        farthest = 0.0
        for i in range(begin, stop):
            point[:] = queries[:, i]
            if _gap(point, point, boxes, closest) <= nearest[i] + BEYOND:
                _add_leaf(queries, i, rows, starts[closest], starts[closest + 1], squares, nearest, totals)
            farthest = max(farthest, nearest[i])
        count = 0
        for branch in range(branches.shape[2]):
            if _gap(around[0], around[1], branches, branch) <= farthest + BEYOND:
                for leaf in range(branch * LEAVES, min((branch + 1) * LEAVES, leaves)):
                    if leaf != closest and _gap(around[0], around[1], boxes, leaf) <= farthest + BEYOND:
                        found[count] = leaf
                        count += 1
        for i in range(begin, stop):
            point[:] = queries[:, i]
            for leaf in found[:count]:
                if _gap(point, point, boxes, leaf) <= nearest[i] + BEYOND:
                    _add_leaf(queries, i, rows, starts[leaf], starts[leaf + 1], squares, nearest, totals)


@compiled()
def _closest(around: FloatArray, boxes: FloatArray, first: int, end: int) -> int:
    """Return the first of the boxes that are closest to another."""
    closest, least = first, np.inf
    for box in range(first, end):
        gap = _gap(around[0], around[1], boxes, box)
        if gap < least:
            closest, least = box, gap
    return closest


@compiled()
def _gap(low: FloatArray, high: FloatArray, boxes: FloatArray, box: int) -> float:
    """Return the squared distance between two boxes: nothing in them is closer."""
    gap = 0.0
    for k in range(len(low)):
        apart = max(0.0, max(boxes[0, k, box] - high[k], low[k] - boxes[1, k, box]))
        gap += apart * apart
    return gap


@compiled(fastmath=REORDER)
def _add_leaf(
    queries: FloatArray,
    i: int,
    rows: FloatArray,
    start: int,
    end: int,
    squares: FloatArray,
    nearest: FloatArray,
    totals: FloatArray,
) -> None:
    """Add the kernels of a leaf to the sum of a query."""
    x, width = queries[0, i], end - start
    for j in range(width):
        z = x - rows[0, start + j]
        squares[j] = z * z
    for k in range(1, len(queries)):
        x = queries[k, i]
        for j in range(width):
            z = x - rows[k, start + j]
            squares[j] += z * z
    least = squares[0]
    for j in range(1, width):
        least = squares[j] if squares[j] < least else least
    if least < nearest[i]:
        totals[i] *= exp2_negative(nearest[i] - least)
        nearest[i] = least
    total, far = 0.0, nearest[i]
    for j in range(width):
        total += exp2_negative(squares[j] - far)
    totals[i] += total
