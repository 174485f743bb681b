"""How compact kernels are made of rows: which tables and outposts are kept, and how exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, frozen
from spbn._base.checks import is_number, refuse
from spbn.kernels.compressed import CompactKernels
from spbn.kernels.spectral import boxes, engine
from spbn.kernels.spectral.boxes import Grid
from spbn.kernels.spectral.coefficients import Coefficients
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.kernels.spectral.truncation import Extent, Outskirts
from spbn.kernels.whitened import WhitenedKernels

FEW_ROWS = 5_000  # which cost no more than a table to add up one by one
MOST_OUTPOSTS = 0.8  # share of few rows; with more of them, a table is of no use
LEAST_TOLERANCE, GREATEST_TOLERANCE = 1e-6, 1e-2
COEFFICIENTS_SHARE, ROWS_SHARE = 0.4, 0.5  # of the tolerance: for coefficients and for rows that are left out

# A box that leaves out rows in long tails has fewer cells, but more outposts. What both cost, in bytes.
COMFORTABLE_CELLS = 10_000_000  # up to this, no row is left out
BYTES_A_CELL, BYTES_A_ROW = 5.0, 1000.0


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

    Parameters
    ----------
    widths
        What the kernels' widths are multiplied by; powers of two.

    Returns
    -------
    None for tables that do not fit if rows are too many to be kept.
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
        whitener, extent = kernels.whitener / width, found[width]
        far, fine = frozen(outposts / width), grain / width
        if extent is not None:
            joint, parents = tables_of(points / width, extent)
            rest = (far, extent.threshold, tolerance, fine)
            made.append(assemble(centre, whitener, joint, parents, *rest))
        elif rows <= FEW_ROWS:
            made.append(CompactKernels(centre, whitener, rows, None, None, far, fine))
        else:
            made.append(None)
    return made


def compact_rows(
    centre: FloatArray, whitener: FloatArray, rows: FloatArray, tolerance: float
) -> CompactKernels:
    """Keep all rows and no table; they are in coordinates in which every kernel is a standard normal."""
    grain = grain_of(tolerance)
    return CompactKernels(centre, whitener, rows.shape[1], None, None, rounded_outposts(rows, grain), grain)


def assemble(
    centre: FloatArray,
    whitener: FloatArray,
    joint: RowTable,
    parents: RowTable | None,
    outposts: FloatArray,
    threshold: float,
    tolerance: float,
    grain: float,
) -> CompactKernels:
    """Put together what may come from several places: tables of all rows, and the outposts among them.

    Parameters
    ----------
    centre, whitener
        Of the coordinates of the tables, in which every kernel is a standard normal.
    joint, parents
        Tables of all variables and of the parents, with the same box (`Lattice.without_last`).
    outposts, grain
        From `rounded_outposts`, in the coordinates of the tables, and what these are rounded to.
    threshold
        The least sum that is read from tables. Where the sum of all variables is as large, that of the
        parents is: each of its kernels is.
    """
    error = COEFFICIENTS_SHARE * tolerance
    whole = Coefficients.of(joint, threshold, error)
    part = None if parents is None else Coefficients.of(parents, threshold, error)
    return CompactKernels(centre, whitener, joint.rows, whole, part, outposts, grain)


def extent_beside(points: FloatArray, kept: BoolArray, tolerance: float) -> Extent | None:
    """Choose what of a table is kept, given the outposts that there are anyway; None if it does not fit."""
    d, rows = points.shape
    if d > engine.DIMENSIONS:
        return None
    box = box_around(points, engine.THRESHOLD * rows)
    if box.cells > boxes.MAX_CELLS:
        return None
    table = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), box.low, box.high))
    return extent_of(table, tolerance, lambda found: float(np.count_nonzero(found.holds(points) | kept)))


def tables_of(points: FloatArray, extent: Extent) -> tuple[RowTable, RowTable | None]:
    """Return tables of all variables and of the parents."""
    d, box = len(points), extent.box
    joint = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), box.low, box.high))
    return joint, None if d == 1 else RowTable.of(points[:-1], joint.lattice.without_last)


def extent_of(
    table: RowTable, tolerance: float, outposts: Callable[[Outskirts], float] | None = None
) -> Extent:
    """Choose what of a table of all rows is kept, in coordinates in which kernels are standard normals."""
    return Extent.of(table, COEFFICIENTS_SHARE * tolerance, ROWS_SHARE * tolerance, outposts)


def box_around(points: FloatArray, threshold: float) -> Grid:
    """Choose the box of a table: where the outskirts of all rows begin, or smaller if there are long tails.

    Beyond a box that ends earlier everything counts as outskirts, which makes for more outposts.
    """
    beyond = math.sqrt(2.0 * math.log(max(1.0, 1.0 / threshold)))
    whole = boxes.rounded(points.min(axis=1) - beyond, points.max(axis=1) + beyond, engine.REACH)
    if whole.cells <= COMFORTABLE_CELLS:
        return whole
    # The unit does not matter, only that a rank costs next to nothing.
    cut, _ = boxes.cheapest_grid(points, engine.REACH, cell_cost=BYTES_A_CELL, row_cost=BYTES_A_ROW)
    wider = boxes.rounded(cut.low - beyond, cut.high + beyond, engine.REACH)
    return wider if wider.cells <= boxes.MAX_CELLS else boxes.rounded(cut.low, cut.high, engine.REACH)


def grain_of(tolerance: float) -> float:
    """Return what coordinates of outposts are rounded to: a power of two, a thousandth of the tolerance.

    A row that is off by so much changes the logarithm of its kernel by as much times the distance. That
    matters where a density is made up of several rows far away.
    """
    return float(2.0 ** (math.floor(math.log2(tolerance)) - 10))


def rounded_centre(centre: FloatArray, whitener: FloatArray) -> FloatArray:
    """Return a round number near what is subtracted from every variable, which may be the value of a row.

    Parameters
    ----------
    centre
        One for every variable.
    whitener
        The inverse Cholesky factor of the bandwidth matrix.
    """
    lower = np.linalg.inv(whitener)
    widths = np.sqrt((lower**2).sum(axis=1)).reshape(centre.shape)
    steps = 2.0 ** np.floor(np.log2(widths))
    rounded: FloatArray = np.round(centre / steps) * steps + 0.0  # not -0.0
    return rounded


def rounded_outposts(points: FloatArray, grain: float) -> FloatArray:
    """Round coordinates, and put rows into an order that does not tell which came first."""
    rounded: FloatArray = np.round(points / grain) * grain
    return frozen(rounded[:, np.lexsort(rounded[::-1])])
