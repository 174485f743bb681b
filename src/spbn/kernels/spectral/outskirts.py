"""Outposts: the rows that decide about places where a tabled sum is too small to be precise.

A table is right to some 1e-14 of its peak, so it cannot tell about places where the sum S of the kernels is
below a threshold T: the outskirts. There S is made of few kernels, and their rows, the outposts, are kept.
A row is one of them if it is within R = √(2 log(n / (error · T))) of the outskirts. All other rows together
make no more than the error, relative to S, anywhere in the outskirts:

Let p(x) = exp(-|x - r|²/2) / S(x) be the share of a row r at x. Along a line, log p is concave: it is
linear minus log Σ exp(linear). At r itself p is at least 1/n. On the way from there to a place in the
outskirts one crosses their border, where S = T. If that is farther than R from r, then p ≤ exp(-R²/2) / T =
error/n there. So it has fallen, and being concave it falls on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spbn.kernels.spectral import window
from spbn.kernels.spectral.tables import Lattice
from spbn.numerics.arrays import BoolArray, FloatArray

MARGIN = (
    4.0  # by how much a sum may be less than at the nearest node of the grid, where it is about the threshold
)
MOST_CELLS = 4_000_000  # of the grid of distances; a larger one is made coarser


def reach_of(rows: int, threshold: float, error: float) -> float:
    """Return the distance from the outskirts beyond which rows do not matter there."""
    return math.sqrt(2.0 * math.log(max(2.0, rows / (error * threshold))))


@dataclass(frozen=True, eq=False)
class Outskirts:
    """What is within reach of the outskirts, block by block: prepared once, for rows in different places.

    Attributes
    ----------
    corner, side
        Where the blocks begin, and how large they are.
    near
        Which of them are within reach.
    """

    lattice: Lattice
    corner: FloatArray
    side: float
    near: BoolArray

    @classmethod
    def of(cls, lattice: Lattice, sums: FloatArray, threshold: float, reach: float) -> Outskirts:
        """Find the outskirts from the sums at the nodes of the grid."""
        from scipy.ndimage import distance_transform_edt

        axes = lattice.grid.axes
        sparse = (sums < MARGIN * threshold).reshape([sums.shape[axis] for axis in axes])
        inside, starts = [], []
        for axis, low, high in zip(axes, lattice.low, lattice.high, strict=True):
            nodes = lattice.nodes[axis]
            first, end = np.searchsorted(nodes, [low, high])
            inside.append(slice(first, max(end, first + 1)))
            starts.append(nodes[first])
        # Everything outside the box belongs to the outskirts: a layer of it all around will do.
        near = np.pad(sparse[tuple(inside)], 1, constant_values=True)
        origin = np.array(starts) - window.SPACING
        step = 1
        while near.size / step**near.ndim > MOST_CELLS:
            step += 1
        side = step * window.SPACING
        distances = distance_transform_edt(~_any_in_blocks(near, step), sampling=side)
        # Nodes of a block stand for what is around them, and the row for its own block: a diagonal each, at
        # most.
        slack = side * math.sqrt(len(axes))
        return cls(lattice, origin - 0.5 * window.SPACING, side, distances <= reach + slack)

    def holds(self, points: FloatArray) -> BoolArray:
        """Tell which of variables × rows, in the coordinates of the lattice, are within reach."""
        blocks = np.floor((points - self.corner[:, None]) / self.side)
        limits = np.array(self.near.shape)[:, None] - 1
        blocks = np.clip(np.nan_to_num(blocks), 0, limits).astype(np.int64)
        found: BoolArray = self.near[tuple(blocks)]
        return found | ~self.lattice.grid.covers(points)


def near_outskirts(
    points: FloatArray, lattice: Lattice, sums: FloatArray, threshold: float, reach: float
) -> BoolArray:
    """Tell which rows are within reach of the outskirts.

    Parameters
    ----------
    points
        Variables × rows, in the coordinates of the lattice.
    sums
        The sums at the nodes of the grid.
    """
    return Outskirts.of(lattice, sums, threshold, reach).holds(points)


def _any_in_blocks(mask: BoolArray, step: int) -> BoolArray:
    """Tell which blocks of `step` cells along every axis have a cell that is true."""
    if step == 1:
        return mask
    padded = np.pad(mask, [(0, -size % step) for size in mask.shape], constant_values=True)
    shape = [part for size in padded.shape for part in (size // step, step)]
    blocks: BoolArray = np.any(padded.reshape(shape), axis=tuple(range(1, 2 * mask.ndim, 2)))
    return blocks
