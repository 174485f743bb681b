"""How compact kernels are made of rows: how far tables reach, how exactly, and which rows are outposts.

A table is right to some 1e-14 of its peak, so it cannot tell about places where the sum S of the kernels is
below a threshold T: the outskirts. There S is made of few kernels, and their rows, the outposts, are kept.
A row is one of them if it is within R = √(2 log(n / (error · T))) of the outskirts. All other rows together
make no more than the error, relative to S, anywhere in the outskirts:

Let p(x) = exp(-|x - r|²/2) / S(x) be the share of a row r at x. Along a line, log p is concave: it is
linear minus log Σ exp(linear). At r itself p is at least 1/n. On the way from there to a place in the
outskirts one crosses their border, where S = T. If that is farther than R from r, then p ≤ exp(-R²/2) / T =
error/n there. So it has fallen, and being concave it falls on.

The least threshold that a table is precise enough for is `spectral.THRESHOLD` of the number of rows. A
greater one makes for a smaller table: its numbers may be rounded to larger steps, fewer frequencies matter,
and the box in which it is needed at all is smaller. But it makes for more outposts, and these are rows, and
for more rows that are scored by adding up outposts. So it is raised only as long as that saves many bytes for
each outpost, makes for few more of them, and takes next to no time. Beyond the box there is nothing but
outskirts, so that a smaller box costs no outposts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, frozen
from spbn._base.checks import is_number, refuse
from spbn.kernels import spectral
from spbn.kernels.compressed import CompactKernels
from spbn.kernels.conditional import WhitenedKernels
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.coefficients import Coefficients, Rings
from spbn.kernels.spectral.gridding import Grid
from spbn.kernels.spectral.tables import Lattice, RowTable

FEW_ROWS = 5_000  # which cost no more than a table to add up one by one
MOST_OUTPOSTS = 0.8  # share of few rows; with more of them, a table is of no use
LEAST_TOLERANCE, GREATEST_TOLERANCE = 1e-6, 1e-2
COEFFICIENTS_SHARE, ROWS_SHARE = 0.4, 0.5  # of the tolerance: for coefficients and for rows that are left out

# A box that leaves out rows in long tails has fewer cells, but more outposts. What both cost, in bytes.
COMFORTABLE_CELLS = 10_000_000  # up to this, no row is left out
BYTES_A_CELL, BYTES_A_ROW = 5.0, 1000.0

MARGIN = 1.01  # for rounding: sums that are less than this above the threshold count as below it
MOST_CELLS = 4_000_000  # of the grid of distances; a larger one is made coarser
RAISE = 4.0  # what a threshold is multiplied by if that pays
BYTES_AN_OUTPOST = 150.0  # that a row within reach of the outskirts is deemed to cost
MORE_OUTPOSTS = 1.1  # times as many as there have to be, at most
MOST_PAIRS = 300.0  # mean outpost evaluations per query: about 0.1 µs
SMALL = 20_000.0  # bytes of a table that need not be saved
COARSE_CELLS = 500_000  # of the grid of distances, to estimate how many outposts there are


def least_around(sums: FloatArray, lattice: Lattice, threshold: float) -> FloatArray:
    """Return what sums are at least in the cell around every node of the grid, from those at the nodes.

    With S the sum, log S(x) + |x - node|²/2 is convex: the logarithm of a sum of exponentials of linear
    functions. So it lies above its tangent at the node, whose slope along an axis is between those of the
    chords to the two neighbours.

    `threshold`: sums that are much smaller do not matter, and are only said to be small.
    """
    logs = np.log(np.maximum(sums, 1e-3 * threshold)).astype(np.float32)
    bend = np.float32(0.5 * gridding.SPACING**2)
    least = logs - np.float32(0.25 * len(lattice.low)) * bend
    for axis in lattice.grid.axes:
        before, after = (np.abs(np.roll(logs, by, axis) - logs + bend) for by in (1, -1))
        least -= np.float32(0.5) * np.maximum(before, after)
    around: FloatArray = np.exp(least)
    return around


@dataclass(frozen=True, eq=False)
class Outskirts:
    """What is within reach of the outskirts, block by block: prepared once, for rows in different places."""

    lattice: Lattice
    corner: FloatArray  # where the blocks begin
    side: float  # of a block
    near: BoolArray  # which of them are within reach

    @classmethod
    def of(
        cls, lattice: Lattice, least: FloatArray, threshold: float, reach: float, *, cells: int = MOST_CELLS
    ) -> Outskirts:
        """Find the outskirts from the least sums around the nodes of the grid (`least_around`)."""
        from scipy.ndimage import distance_transform_edt

        # Everything outside the box belongs to the outskirts: a layer of it all around will do.
        near = np.pad(_in_box(least, lattice) < MARGIN * threshold, 1, constant_values=True)
        starts = [nodes[part.start] for nodes, part in zip(lattice.nodes, _box(lattice), strict=True)]
        origin = np.array(starts) - gridding.SPACING
        step = 1
        while near.size / step**near.ndim > cells:
            step += 1
        side = step * gridding.SPACING
        distances = distance_transform_edt(~_by_blocks(near, step, np.any), sampling=side)
        # Nodes of a block stand for what is around them, and the row for its own block: a diagonal each, at
        # most.
        slack = side * math.sqrt(near.ndim)
        return cls(lattice, origin - 0.5 * gridding.SPACING, side, distances <= reach + slack)

    def holds(self, points: FloatArray) -> BoolArray:
        """Tell which of variables × rows, in the coordinates of the lattice, are within reach."""
        blocks = np.floor((points - self.corner[:, None]) / self.side)
        limits = np.array(self.near.shape)[:, None] - 1
        blocks = np.clip(np.nan_to_num(blocks), 0, limits).astype(np.int64)
        found: BoolArray = self.near[tuple(blocks)]
        return found | ~self.lattice.grid.covers(points)

    def estimated_rows(self, table: RowTable) -> float:
        """Return about how many rows are within reach, from what they left on the lattice."""
        there = _in_box(table.windows, self.lattice)
        step = round(self.side / gridding.SPACING)
        blocks = _by_blocks(np.pad(there, 1), step, np.sum)
        return table.rows - _rows_of(float(blocks[~self.near].sum()), there.ndim)


def _rows_of(windows: float, d: int) -> float:
    """Return how many rows have windows that add up to this."""
    return windows / float(gridding.transform(np.zeros(1))[0]) ** d


def _box(lattice: Lattice) -> list[slice]:
    """Return which nodes lie in the box, at least one along every variable."""
    parts = []
    for nodes, low, high in zip(lattice.nodes, lattice.low, lattice.high, strict=True):
        first, end = np.searchsorted(nodes, [low, high])
        parts.append(slice(first, max(end, first + 1)))
    return parts


def _in_box(values: FloatArray, lattice: Lattice) -> FloatArray:
    """Return what an array of the grid holds in the box, with as many axes as there are variables."""
    return values.reshape([values.shape[axis] for axis in lattice.grid.axes])[tuple(_box(lattice))]


def _by_blocks(values: Any, step: int, reduction: Any) -> Any:
    """Reduce blocks of `step` cells along every axis to one value each."""
    if step == 1:
        return values
    padded = np.pad(values, [(0, -size % step) for size in values.shape], mode="edge")
    shape = [part for size in padded.shape for part in (size // step, step)]
    return reduction(padded.reshape(shape), axis=tuple(range(1, 2 * values.ndim, 2)))


@dataclass(frozen=True, eq=False)
class Extent:
    """What of a table is kept."""

    threshold: float  # the least sum that is read from the table
    box: Grid  # where there are such sums
    outskirts: Outskirts  # tell which rows are outposts

    @classmethod
    def of(
        cls, table: RowTable, tolerance: float, outposts: Callable[[Outskirts], float] | None = None
    ) -> Extent:
        """Choose how far a table reaches.

        `table`: of all rows, in coordinates in which kernels are standard normals.
        `tolerance`: how far sums may be off, because coefficients are rounded and because rows are no
        outposts.
        `outposts`: says how many outposts there would be in all; if it is None, that is estimated from the
        table.
        """
        lattice, rows = table.lattice, table.rows
        sums, threshold = table.sums(lattice.whitener), spectral.THRESHOLD * rows
        least_sums = least_around(sums, lattice, threshold)
        rings = Rings.of(table.spectrum(lattice.whitener), lattice.grid)

        def bytes_at(threshold: float) -> float:
            share = box_of(sums, lattice, threshold).cells / lattice.grid.cells
            return rings.bytes(COEFFICIENTS_SHARE * tolerance * threshold, share)

        def outskirts_at(threshold: float, **settings: int) -> Outskirts:
            reach = math.sqrt(2.0 * math.log(max(2.0, rows / (ROWS_SHARE * tolerance * threshold))))
            return Outskirts.of(lattice, least_sums, threshold, reach, **settings)

        def outposts_at(threshold: float) -> tuple[float, bool]:
            """Return how many there would be, and whether adding them up would take long."""
            outskirts = outskirts_at(threshold, cells=COARSE_CELLS)
            estimated = outskirts.estimated_rows(table)
            beyond = _rows_of(float(table.windows[sums < threshold].sum()), len(lattice.low))
            slow = beyond / rows * estimated > MOST_PAIRS
            return (estimated if outposts is None else outposts(outskirts)), slow

        size = bytes_at(threshold)
        if size > SMALL:
            fewest, _ = outposts_at(threshold)
            cost = size + BYTES_AN_OUTPOST * fewest
            while size > SMALL:
                size = bytes_at(RAISE * threshold)
                count, slow = outposts_at(RAISE * threshold)
                raised = size + BYTES_AN_OUTPOST * count
                if slow or raised >= cost or count > MORE_OUTPOSTS * fewest:
                    break
                threshold, cost = RAISE * threshold, raised
        return cls(threshold, box_of(sums, lattice, threshold), outskirts_at(threshold))


def box_of(sums: FloatArray, lattice: Lattice, threshold: float) -> Grid:
    """Return the box of the nodes at which sums are large enough; of the greatest one if none are."""
    found = sums >= min(threshold, float(sums.max()))
    low, high = np.empty(len(lattice.low)), np.empty(len(lattice.low))
    for k, axis in enumerate(lattice.grid.axes):
        others = tuple(other for other in range(found.ndim) if other != axis)
        there = lattice.nodes[k][found.any(axis=others)]
        low[k], high[k] = max(there[0], lattice.low[k]), min(there[-1], lattice.high[k])
    return gridding.rounded(low, high, lattice.grid.reach)


def require_tolerance(tolerance: object) -> None:
    """Refuse tolerances that cannot be kept, or that nobody wants."""
    if not is_number(tolerance) or not LEAST_TOLERANCE <= tolerance <= GREATEST_TOLERANCE:
        refuse("tolerance", f"between {LEAST_TOLERANCE:g} and {GREATEST_TOLERANCE:g}", tolerance)


def compact_kernels(kernels: WhitenedKernels, tolerance: float) -> CompactKernels | None:
    """Make tables of kernels; None if they do not fit and the rows are too many to be kept."""
    return compact_scales(kernels, [1.0], tolerance)[0]


def compact_scales(
    kernels: WhitenedKernels, widths: Sequence[float], tolerance: float
) -> list[CompactKernels | None]:
    """Make tables of kernels of several widths on the same rows.

    They have the same outposts: what is kept for one of them is there for all, and is written to a file once.
    `widths` are what the kernels' widths are multiplied by: powers of two. None stands for tables that do not
    fit, if rows are too many to be kept.
    """
    require_tolerance(tolerance)
    centre = rounded_centre(kernels.centre, kernels.whitener / max(widths))
    points = kernels.coordinates + kernels.whitener @ (kernels.centre - centre)
    rows = points.shape[1]
    found: dict[float, Extent | None] = {}
    kept = np.zeros(rows, dtype=bool)
    for width in sorted(widths, reverse=True):  # wide kernels reach farthest
        extent = extent_beside(points / width, kept, tolerance)
        near = np.ones(rows, dtype=bool) if extent is None else extent.outskirts.holds(points / width)
        tabled = extent is not None and (rows > FEW_ROWS or near.mean() <= MOST_OUTPOSTS)
        found[width] = extent if tabled else None
        if tabled or rows <= FEW_ROWS:
            kept |= near | (not tabled)
    # Far away, where a grain matters most, the widest kernels are all that matters.
    grain = max(widths) * grain_of(tolerance)
    outposts = rounded_outposts(points[:, kept], grain)
    made: list[CompactKernels | None] = []
    for width in widths:
        extent, joint, parents = found[width], None, None
        if extent is not None:
            lattice = Lattice.whitened(extent.box.low, extent.box.high)
            joint = keep(RowTable.of(points / width, lattice), extent, tolerance)
            if len(points) > 1:
                parents = keep(RowTable.of(points[:-1] / width, lattice.without_last), extent, tolerance)
        whitener, far, fine = kernels.whitener / width, frozen(outposts / width), grain / width
        fits = joint is not None or rows <= FEW_ROWS
        made.append(CompactKernels(centre, whitener, rows, joint, parents, far, fine) if fits else None)
    return made


def keep(table: RowTable, extent: Extent, tolerance: float) -> Coefficients:
    """Return what is kept of a table of all variables, or of one of the parents with the same box.

    Where the sum of all variables is as large as the threshold, that of the parents is: each of its kernels
    is.
    """
    return Coefficients.of(table, extent.threshold, COEFFICIENTS_SHARE * tolerance)


def extent_beside(points: FloatArray, kept: BoolArray, tolerance: float) -> Extent | None:
    """Choose what of a table is kept, given the outposts that there are anyway; None if it does not fit."""
    d, rows = points.shape
    if d > spectral.DIMENSIONS:
        return None
    box = box_around(points, spectral.THRESHOLD * rows)
    if box.cells > gridding.MAX_CELLS:
        return None
    table = RowTable.of(points, Lattice.whitened(box.low, box.high))
    return Extent.of(table, tolerance, lambda found: float(np.count_nonzero(found.holds(points) | kept)))


def box_around(points: FloatArray, threshold: float) -> Grid:
    """Choose the box of a table: where the outskirts of all rows begin, or smaller if there are long tails.

    Beyond a box that ends earlier everything counts as outskirts, which makes for more outposts.
    """
    beyond = math.sqrt(2.0 * math.log(max(1.0, 1.0 / threshold)))
    whole = gridding.rounded(points.min(axis=1) - beyond, points.max(axis=1) + beyond, spectral.REACH)
    if whole.cells <= COMFORTABLE_CELLS:
        return whole
    # The unit does not matter, only that a rank costs next to nothing.
    cut, _ = gridding.cheapest_grid(points, spectral.REACH, cell_cost=BYTES_A_CELL, row_cost=BYTES_A_ROW)
    wider = gridding.rounded(cut.low - beyond, cut.high + beyond, spectral.REACH)
    return wider if wider.cells <= gridding.MAX_CELLS else gridding.rounded(cut.low, cut.high, spectral.REACH)


def grain_of(tolerance: float) -> float:
    """Return what coordinates of outposts are rounded to: a power of two, a thousandth of the tolerance.

    A row that is off by so much changes the logarithm of its kernel by as much times the distance. That
    matters where a density is made up of several rows far away.
    """
    return float(2.0 ** (math.floor(math.log2(tolerance)) - 10))


def rounded_centre(centre: FloatArray, whitener: FloatArray) -> FloatArray:
    """Return a round number near what is subtracted from every variable, which may be the value of a row."""
    lower = np.linalg.inv(whitener)
    widths = np.sqrt((lower**2).sum(axis=1)).reshape(centre.shape)
    steps = 2.0 ** np.floor(np.log2(widths))
    rounded: FloatArray = np.round(centre / steps) * steps + 0.0  # not -0.0
    return rounded


def rounded_outposts(points: FloatArray, grain: float) -> FloatArray:
    """Round coordinates, and put rows into an order that does not tell which came first."""
    rounded: FloatArray = np.round(points / grain) * grain
    return frozen(rounded[:, np.lexsort(rounded[::-1])])
