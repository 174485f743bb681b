"""The loops of `CompactKernels`: reading tables for a few queries, and adding up tails beside a table."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, frozen
from spbn._base.checks import is_number, refuse
from spbn._base.jit import compiled
from spbn.kernels.spectral import boxes, engine
from spbn.kernels.spectral.boxes import Grid
from spbn.kernels.spectral.gridding import interpolate_at
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.kernels.spectral.truncation import Extent, Outskirts
from spbn.numerics.gaussian import mass as mass_of

_ROOT_2PI = math.sqrt(2.0 * math.pi)


@compiled()
def read_tables(
    first: int,
    end: int,
    queries: FloatArray,
    frame: FloatArray,
    limits: FloatArray,
    pieces: FloatArray,
    joint: FloatArray,
    parents: FloatArray,
    points: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> bool:
    """Put whitened queries, the sums of all variables and of the parents, and log-densities.

    A log-density is infinite where the tables have no answer; tells whether they have all answers.

    Parameters
    ----------
    frame
        Variables × (centre, low and high end of the box, offset in cells, and a row of the whitener).
    limits
        The least sums that are precise enough, of all variables and of the parents; how many rows there are,
        which is the sum of no parents; and the spacing of the grids.
    """
    d = len(queries)
    places, below = np.zeros((3, end - first)), np.zeros((3, end - first))
    inside = np.zeros((2, end - first), dtype=np.bool_)
    for i in range(first, end):
        within = True
        for k in range(d):
            z = 0.0
            for m in range(k + 1):
                z += frame[k, 4 + m] * (queries[m, i] - frame[m, 0])
            points[k, i] = z
            inside[1, i - first] = within  # all that come before the last
            if not (frame[k, 1] <= z <= frame[k, 2]):
                within = False
                z = frame[k, 1]
            # The axes of a grid: the first, the last, and then the one between.
            place = z / limits[3] + frame[k, 3]
            places[_axis(k, d), i - first] = place
            if k < d - 1:
                below[_axis(k, d - 1), i - first] = place
        inside[0, i - first] = within
    interpolate_at(places, 0, end - first, pieces, joint, sums[0, first:end])
    if d > 1:
        interpolate_at(below, 0, end - first, pieces, parents, sums[1, first:end])
    scale = math.log(frame[d - 1, 3 + d] / _ROOT_2PI)
    all_answered = True
    for i in range(first, end):
        if d == 1:
            sums[1, i] = limits[2]
        elif not inside[1, i - first]:
            sums[1, i] = 0.0
        answered = inside[0, i - first] and sums[0, i] >= limits[0] and (d == 1 or sums[1, i] >= limits[1])
        out[i] = math.log(sums[0, i] / sums[1, i]) + scale if answered else np.inf
        all_answered &= answered
    return all_answered


@compiled()
def _axis(k: int, d: int) -> int:
    """Return the axis of a grid that a variable lies along; see `Grid.axes`."""
    return 2 if d == 2 and k == 1 else k


@compiled()
def tail_masses(
    first: int,
    end: int,
    train: FloatArray,
    queries: FloatArray,
    lows: FloatArray,
    highs: FloatArray,
    tails: FloatArray,
    out: FloatArray,
) -> None:
    """Put what rows have of intervals below the lower tail's end, and above the upper one's."""
    child = len(train) - 1
    for i in range(first, end):
        if lows[i] >= tails[0] and highs[i] <= tails[1]:
            continue
        for j in range(train.shape[1]):
            square = 0.0
            for k in range(child):
                square += (queries[k, i] - train[k, j]) ** 2
            if square > 80.0:
                continue
            weight = math.exp(-0.5 * square)
            if lows[i] < tails[0]:
                z = train[child, j]
                out[0, i] += weight * mass_of(lows[i] - z, min(highs[i], tails[0]) - z)
            if highs[i] > tails[1]:
                z = train[child, j]
                out[2, i] += weight * mass_of(max(lows[i], tails[1]) - z, highs[i] - z)


# ----------------------------------------------------------------------------------------------------
# What compact kernels keep of their rows: tables with their boxes, and outposts; and how exactly.


LEAST_TOLERANCE, GREATEST_TOLERANCE = 1e-6, 1e-2
COEFFICIENTS_SHARE, ROWS_SHARE = 0.4, 0.5  # of the tolerance: for coefficients and for rows that are left out

# A box that leaves out rows in long tails has fewer cells, but more outposts. What both cost, in bytes.
COMFORTABLE_CELLS = 10_000_000  # up to this, no row is left out
BYTES_A_CELL, BYTES_A_ROW = 5.0, 1000.0


def require_tolerance(tolerance: object) -> None:
    """Refuse tolerances that cannot be kept, or that nobody wants."""
    if not is_number(tolerance) or not LEAST_TOLERANCE <= tolerance <= GREATEST_TOLERANCE:
        refuse("tolerance", f"between {LEAST_TOLERANCE:g} and {GREATEST_TOLERANCE:g}", tolerance)


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
