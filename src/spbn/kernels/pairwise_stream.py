"""Sums of narrow Gaussians over rows that come a part at a time: what one part gives is added to the others'.

Narrow kernels reach few rows. So the rows of a part are sorted into leaves of rows that lie close together,
and queries into groups. A group adds the leaves near by first. Then it is known how far it has to look: what
is below 2^-`BEYOND` of a sum is left out. Of n rows that is at most n · 3e-14 of the sum, and in practice
some 1e-13. Queries without any row near them are done one by one, relative to the kernel of the nearest row,
which is then 1: so sums are right however far from all rows a query is. How rows are divided into parts makes
no difference beyond rounding. A query's sum is made by one thread in a fixed order.

`pruned` takes all rows at once, and leaves lonely queries to the exact kernel. That would not do here: of a
part of the rows, many queries have none near them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import LOG_2, BoolArray, FloatArray, IntArray, frozen
from spbn._base.jit import REORDER, compiled, run_tasks
from spbn.kernels.estimates import whitened
from spbn.kernels.inner_loop import BLOCK, TO_BASE_2, add_block, adder, exp2_negative, workspace
from spbn.kernels.pruned import sorted_into_leaves

LEAF = 32  # rows
LEAVES = 32  # of a branch
QUERIES = 16  # of a group
GROUPS_A_TASK = 64
NEAR = 12.0  # squared distance, some 4 widths: leaves that are added first
LONELY = 2.0**-20  # queries with a smaller sum are done one by one
BEYOND = 45.0  # powers of two below a sum that are left out
_FAR_AWAY = 1e140  # where rows are put that do not count
_NOTHING = 1e300  # the squared distance of the nearest of no rows


class Leaves(NamedTuple):
    """The rows that kernels sit on, in coordinates in which a kernel is 2^-|distance|².

    All leaves are full, so that loops over them have no ends to be done one by one: what is lacking is far
    away.
    """

    rows: FloatArray  # leaves × variables × rows
    boxes: FloatArray  # around every leaf: (low, high) × variables × boxes
    branches: FloatArray  # around every `LEAVES` of them

    @classmethod
    def of(cls, points: FloatArray, kept: BoolArray, whitener: FloatArray) -> Leaves:
        """Make leaves of points in the order of `arranged`, leaving out all that are not kept."""
        (d, count), leaves = points.shape, -(-points.shape[1] // LEAF)
        rows = np.full((d, leaves * LEAF), _FAR_AWAY)
        rows[:, :count] = np.where(kept, whitened(points, whitener * TO_BASE_2), _FAR_AWAY)
        by_leaf = rows.reshape(d, leaves, LEAF)
        by_leaf = by_leaf[:, by_leaf[0].min(axis=1) < _FAR_AWAY]
        low, high = by_leaf.min(axis=2), np.where(by_leaf < _FAR_AWAY, by_leaf, -_FAR_AWAY).max(axis=2)
        firsts = np.arange(0, low.shape[1], LEAVES)
        branches = np.minimum.reduceat(low, firsts, axis=1), np.maximum.reduceat(high, firsts, axis=1)
        return cls(*map(frozen, (by_leaf.swapaxes(0, 1), np.stack([low, high]), np.stack(branches))))


class Sums(NamedTuple):
    """Sums at some queries, to be added to: 2^-nearest · total.

    Where there are rows near by, `nearest` is 0; elsewhere it is the squared distance of the nearest so far.
    """

    nearest: FloatArray
    totals: FloatArray

    @classmethod
    def none(cls, queries: int) -> Sums:
        return cls(np.full(queries, _NOTHING), np.zeros(queries))

    @property
    def logarithms(self) -> FloatArray:
        """The logarithms of the sums; -inf if no row was added."""
        with np.errstate(divide="ignore"):
            return np.log(self.totals) - np.where(self.totals > 0.0, self.nearest, 0.0) * LOG_2

    def add(self, leaves: Leaves, points: FloatArray, whitener: FloatArray) -> None:
        """Add the kernels of some rows to the sums of queries, which are in the order of `arranged`."""
        if not len(leaves.rows):
            return
        queries = frozen(whitened(points, whitener * TO_BASE_2))
        d, groups = len(queries), -(-queries.shape[1] // QUERIES)

        def add_groups(first: int) -> None:
            end = min(first + GROUPS_A_TASK, groups)
            _add_some_groups(adder(d), first, end, queries, leaves, workspace(d), self)

        run_tasks(add_groups, [(first,) for first in range(0, groups, GROUPS_A_TASK)])


def arranged(points: FloatArray, whitener: FloatArray, size: int) -> IntArray:
    """Return an order in which every `size` of some points lie close together."""
    return sorted_into_leaves(whitened(points, whitener), np.arange(points.shape[1]), size)


@compiled()
def _add_some_groups(
    adder: int, first: int, end: int, queries: FloatArray, leaves: Leaves, work: FloatArray, sums: Sums
) -> None:
    nearest, totals = sums
    d, found = len(queries), work[2 * len(queries)]
    around, point, squares = np.empty((2, d)), np.empty(d), np.empty(LEAF)
    for group in range(first, end):
        begin, stop = group * QUERIES, min((group + 1) * QUERIES, queries.shape[1])
        width = stop - begin
        for k in range(d):
            work[k, :width] = queries[k, begin:stop]
            around[0, k], around[1, k] = work[k, :width].min(), work[k, :width].max()
        for i in range(width):
            found[i] = totals[begin + i] * exp2_negative(nearest[begin + i])
        _add_between(adder, -1.0, NEAR, around, leaves, work, width)
        least = np.inf
        for i in range(width):
            if found[i] >= LONELY:
                least = min(least, found[i])
        if least < np.inf:
            upto = BEYOND - math.log2(least)
            _add_between(adder, NEAR, upto, around, leaves, work, width)
        for i in range(begin, stop):
            if found[i - begin] >= LONELY:
                nearest[i], totals[i] = 0.0, found[i - begin]
            else:
                point[:] = queries[:, i]
                _add_to_lonely(point, leaves, squares, i, sums)


@compiled()
def _add_between(
    adder: int, above: float, upto: float, around: FloatArray, leaves: Leaves, work: FloatArray, width: int
) -> None:
    """Add the leaves within a range of squared distances from a group, a block of them at a time."""
    rows, boxes, branches = leaves
    d, filled = around.shape[1], 0
    for branch in range(branches.shape[2]):
        if _gap(around[0], around[1], branches, branch) > upto:
            continue
        for leaf in range(branch * LEAVES, min((branch + 1) * LEAVES, boxes.shape[2])):
            gap = _gap(around[0], around[1], boxes, leaf)
            if above < gap <= upto:
                for k in range(d):
                    for j in range(LEAF):
                        work[d + k, filled + j] = rows[leaf, k, j]
                filled += LEAF
                if filled == BLOCK:
                    add_block(adder, work, d, filled, width)  # type: ignore[call-arg]
                    filled = 0
    if filled > 0:
        add_block(adder, work, d, filled, width)  # type: ignore[call-arg]


@compiled()
def _add_to_lonely(point: FloatArray, leaves: Leaves, squares: FloatArray, i: int, sums: Sums) -> None:
    """Add leaves to the sum of query i, which has no row near by."""
    rows, boxes, branches = leaves
    count, nearest = boxes.shape[2], sums.nearest
    # One leaf that is close tells how far it makes sense to look.
    branch = _closest(point, branches, 0, branches.shape[2])
    closest = _closest(point, boxes, branch * LEAVES, min((branch + 1) * LEAVES, count))
    if _gap(point, point, boxes, closest) <= nearest[i] + BEYOND:
        _add_leaf(point, rows[closest], squares, i, sums)
    for branch in range(branches.shape[2]):
        if _gap(point, point, branches, branch) <= nearest[i] + BEYOND:
            for leaf in range(branch * LEAVES, min((branch + 1) * LEAVES, count)):
                if leaf != closest and _gap(point, point, boxes, leaf) <= nearest[i] + BEYOND:
                    _add_leaf(point, rows[leaf], squares, i, sums)


@compiled()
def _closest(point: FloatArray, boxes: FloatArray, first: int, end: int) -> int:
    """Return the first of the boxes that are closest to a point."""
    closest, least = first, np.inf
    for box in range(first, end):
        gap = _gap(point, point, boxes, box)
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
def _add_leaf(point: FloatArray, rows: FloatArray, squares: FloatArray, i: int, sums: Sums) -> None:
    """Add the kernels of a leaf to the sum of query i."""
    nearest, totals = sums
    x = point[0]
    for j in range(LEAF):
        z = x - rows[0, j]
        squares[j] = z * z
    for k in range(1, len(point)):
        x = point[k]
        for j in range(LEAF):
            z = x - rows[k, j]
            squares[j] += z * z
    least = squares[0]
    for j in range(LEAF):
        least = squares[j] if squares[j] < least else least
    if least < nearest[i]:
        totals[i] *= exp2_negative(nearest[i] - least)
        nearest[i] = least
    total, far = 0.0, nearest[i]
    for j in range(LEAF):
        total += exp2_negative(squares[j] - far)
    totals[i] += total
