"""Kernels without their rows: coefficient tables where rows are dense, and the few that decide elsewhere.

`CompactKernels` answers what `PreparedKernels` answers, at a cost that does not depend on the number of rows:

- where the sum of the kernels is large enough, from `spectral.Coefficients` of parents and child together and
  of the parents alone;
- elsewhere, in the outskirts, from the `outposts`: the rows within reach of them (`spectral.outskirts`).

If there are so few rows that most of them are outposts, no table is made and all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from spbn.errors import ArgumentError
from spbn.kernels.conditional import choose_rows_between, in_parts
from spbn.kernels.exact import log_density_of_whitened
from spbn.kernels.prepared import PreparedKernels
from spbn.kernels.spectral import boxes, engine, lines, window
from spbn.kernels.spectral.boxes import Grid
from spbn.kernels.spectral.coefficients import Coefficients
from spbn.kernels.spectral.extents import Extent
from spbn.kernels.spectral.gridding import WIDTH, interpolate_at
from spbn.kernels.spectral.outskirts import Outskirts
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.numerics.arrays import BoolArray, FloatArray, frozen
from spbn.numerics.compiling import compiled
from spbn.numerics.normal import draw_between
from spbn.numerics.normal import mass as mass_of
from spbn.numerics.threads import started_threads

LEAST_TOLERANCE, GREATEST_TOLERANCE = 1e-6, 1e-2
COEFFICIENTS_SHARE, ROWS_SHARE = 0.4, 0.5  # of the tolerance: for coefficients and for rows that are left out
FEW_QUERIES = 4_096  # which are read in the order that they come in
FEWEST_CELLS = 1e5  # some 0.05 ms: waking up a thread for less does not pay
FEW_ROWS = 5_000  # which cost no more than a table to add up one by one
MOST_OUTPOSTS = 0.8  # share of few rows; with more of them, a table is of no use

# A box that leaves out rows in long tails has fewer cells, but more outposts. What both cost, in bytes.
COMFORTABLE_CELLS = 10_000_000  # up to this, no row is left out
BYTES_A_CELL, BYTES_A_ROW = 5.0, 1000.0
_ROOT_2PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class CompactKernels:
    """A sum of Gaussians with one bandwidth matrix, as tables and outposts.

    Queries are variables × rows in the coordinates of the data, parents first and the child last.

    Attributes
    ----------
    centre, whitener
        They put queries into coordinates in which every kernel is a standard normal.
    rows
        How many kernels there are.
    joint, parents
        The sums of all variables and of the parents; None without a table, or without parents.
    outposts
        The rows that decide about the outskirts, in these coordinates; without a table, all rows.
    grain
        What the coordinates of outposts are multiples of.
    """

    centre: FloatArray
    whitener: FloatArray
    rows: int
    joint: Coefficients | None
    parents: Coefficients | None
    outposts: FloatArray
    grain: float

    @classmethod
    def of(cls, kernels: PreparedKernels, tolerance: float) -> CompactKernels | None:
        """Make tables of kernels; None if they do not fit and the rows are too many to be kept."""
        return compact_scales(kernels, [1.0], tolerance)[0]

    @classmethod
    def of_rows(
        cls, centre: FloatArray, whitener: FloatArray, rows: FloatArray, tolerance: float
    ) -> CompactKernels:
        """Keep all rows and no table; they are in coordinates in which every kernel is a standard normal."""
        grain = grain_of(tolerance)
        return cls(centre, whitener, rows.shape[1], None, None, rounded_outposts(rows, grain), grain)

    @classmethod
    def assembled(
        cls,
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
        return cls(centre, whitener, joint.rows, whole, part, outposts, grain)

    @cached_property
    def far(self) -> PreparedKernels:
        """The kernels of the outposts."""
        return PreparedKernels(self.centre, self.whitener, self.outposts, "auto")

    def conditional_log_density(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of the last variable given those before it."""
        if self.joint is None:
            return self.far.conditional_log_density(queries)
        if queries.shape[1] <= FEW_QUERIES:
            return self._few_log_densities(queries)
        points = self.far.whitened(queries)
        below, known = self._known(points[:-1])
        sums = self.joint.sums(points)
        out = np.empty(len(sums))
        answered = known & (sums >= self.joint.threshold)
        out[answered] = np.log(sums[answered] / below[answered])
        sparse = known & ~answered
        if sparse.any():
            out[sparse] = self._log_sums(points[:, sparse]) - np.log(below[sparse])
        out += math.log(self.whitener[-1, -1] / _ROOT_2PI)
        if not known.all():
            out[~known] = self.far.conditional_log_density(queries[:, ~known])
        return out

    def _few_log_densities(self, queries: FloatArray) -> FloatArray:
        """Do the same for so few queries that sorting them, or one array operation more, takes too long."""
        d, asked = queries.shape
        points, sums, out = np.empty((d, asked)), np.empty((2, asked)), np.empty(asked)
        arrays = (frozen(queries), *self._tables, points, sums, out)
        if asked * WIDTH**d < FEWEST_CELLS:
            answered = _read_tables(0, asked, *arrays)
        else:
            with started_threads() as threads:
                cuts = threads.shares(asked)
                threads.run(_read_tables, [(first, end, *arrays) for first, end in pairwise(cuts)])
            answered = out.max() < np.inf
        if answered:
            return out
        far = out == np.inf
        rest = np.flatnonzero(far)
        known = far if self.parents is None else far & (sums[1] >= self.parents.threshold)
        if known.any():
            scale = math.log(self.whitener[-1, -1] / _ROOT_2PI)
            out[known] = self._log_sums(points[:, known]) - np.log(sums[1, known]) + scale
        unknown = rest[~known[rest]]
        if len(unknown):
            out[unknown] = self.far.conditional_log_density(queries[:, unknown])
        return out

    @cached_property
    def _tables(self) -> tuple[FloatArray, ...]:
        """What `_read_tables` needs to know: the coordinates, the least sums, and the tables."""
        assert self.joint is not None  # or there would be nothing to read
        grid, d = self.joint.lattice.grid, len(self.centre)
        frame = np.empty((d, 4 + d))
        frame[:, 0], frame[:, 1], frame[:, 2] = self.centre[:, 0], self.joint.low, self.joint.high
        frame[:, 3] = (grid.reach - grid.low) / window.SPACING - WIDTH / 2
        frame[:, 4:] = self.whitener
        below = self.joint if self.parents is None else self.parents
        limits = np.array([self.joint.threshold, below.threshold, float(self.rows), window.SPACING])
        fields = (self.joint.density.field, below.density.field)
        return tuple(map(frozen, (frame, limits, window.coefficients(), *fields)))

    def conditional_cdf(self, queries: FloatArray) -> FloatArray:
        """Return P(last variable ≤ x | those before it)."""
        points = self.far.whitened(queries)
        below, known = self._known(points[:-1])
        out = np.empty(points.shape[1])
        if known.any():
            asked = points[:, known]
            lows = np.full(asked.shape[1], -np.inf)
            out[known] = self._masses(asked[:-1], lows, asked[-1]).sum(axis=0) / below[known]
        if not known.all():
            out[~known] = self.far.conditional_cdf(queries[:, ~known])
        return np.clip(out, 0.0, 1.0)

    def log_mass(self, parents: FloatArray, low: float, high: float) -> FloatArray:
        """Return the log-probability of an interval of the last variable, for every column of parents."""
        points = self.far.whitened(parents)
        lows, highs = self.far.whitened_ends(parents, low, high)
        below, known = self._known(points)
        out, far = np.empty(parents.shape[1]), ~known
        if known.any():
            masses = self._masses(points[:, known], lows[known], highs[known]).sum(axis=0)
            far[known] = masses < self._least_mass(highs[known] - lows[known])
            out[known] = np.log(np.maximum(masses, np.finfo(float).tiny) / below[known])
        if far.any():
            nothing = np.zeros(np.count_nonzero(far))
            _, log_mass = choose_rows_between(
                self.outposts, np.vstack([points[:, far], lows[far]]), highs[far], nothing
            )
            sums = np.where(known, below, 1.0)[far]
            shares = np.where(known[far], self._log_sums(points[:, far]) - np.log(sums), 0.0)
            out[far] = log_mass + shares
        return np.minimum(out, 0.0)

    def draw_between(
        self, parents: FloatArray, low: float, high: float, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value of the last variable in an interval, for every column of parents."""
        points = self.far.whitened(parents)
        lows, highs = self.far.whitened_ends(parents, low, high)
        uniforms, others = rng.random(len(lows)), rng.random(len(lows))
        _, known = self._known(points)
        z, from_table = np.empty(len(lows)), np.zeros(len(lows), dtype=bool)
        if known.any():
            from_table, z = self._draw_from_table(points, lows, highs, uniforms, known)
        rest = ~from_table
        if rest.any():
            asked = np.vstack([points[:, rest], lows[rest]])
            chosen, _ = choose_rows_between(self.outposts, asked, highs[rest], uniforms[rest])
            mean = self.outposts[-1, chosen]
            z[rest] = mean + draw_between(lows[rest] - mean, highs[rest] - mean, others[rest])
        *slopes, precision = self.whitener[-1]
        shift = np.asarray(slopes) @ (parents - self.centre[:-1])
        return np.clip((z - shift) / precision + self.centre[-1], low, high)

    def _draw_from_table(
        self, points: FloatArray, lows: FloatArray, highs: FloatArray, uniforms: FloatArray, known: BoolArray
    ) -> tuple[BoolArray, FloatArray]:
        """Draw where the interval's probability lies in the box of the table; elsewhere narrow the interval.

        Changes `lows`, `highs` and `uniforms` where a draw falls beside the box: the outposts make it.
        """
        assert self.joint is not None  # or nothing would be known
        bottom, top = self.joint.low[-1], self.joint.high[-1]
        mine = np.flatnonzero(known)
        masses = self._masses(points[:, mine], lows[mine], highs[mine])
        bounds = np.cumsum(masses, axis=0)
        targets = uniforms[mine] * bounds[-1]
        part = (targets >= bounds[:-1]).sum(axis=0)
        part[bounds[-1] < self._least_mass(highs[mine] - lows[mine])] = -1  # too little to be precise
        z, inside = np.empty(len(lows)), np.zeros(len(lows), dtype=bool)
        drawn = mine[part == 1]
        inside[drawn] = True
        if len(drawn):
            start, end = np.maximum(lows[drawn], bottom), np.minimum(highs[drawn], top)
            wanted = (targets - bounds[0])[part == 1] * _ROOT_2PI
            z[drawn] = lines.inverses(self.joint.density, points[:, drawn], start, end, wanted)
        for number in (0, 2):
            beside = part == number
            before = bounds[number - 1][beside] if number else 0.0
            uniforms[mine[beside]] = np.clip((targets[beside] - before) / masses[number][beside], 0.0, 1.0)
        highs[mine[part == 0]] = np.minimum(highs[mine[part == 0]], bottom)
        lows[mine[part == 2]] = np.maximum(lows[mine[part == 2]], top)
        return inside, z

    def _masses(self, points: FloatArray, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """Return what kernels have between two values of the last variable: below, in and above the box.

        Times the height of their parents' kernel: for an infinite interval they add up to the parents' sum.
        """
        assert self.joint is not None
        bottom, top = self.joint.low[-1], self.joint.high[-1]
        out = np.zeros((3, len(lows)))
        # Rows that reach beyond the box are within reach of the outskirts, so the outposts are enough.
        tails = np.array([bottom, top])
        in_parts(_tail_masses, self.outposts, points, frozen(lows), frozen(highs), tails, out)
        crossing = np.flatnonzero((lows < top) & (highs > bottom))
        if len(crossing):
            start, end = np.maximum(lows[crossing], bottom), np.minimum(highs[crossing], top)
            found = lines.integrals(self.joint.density, points[:, crossing], start, end)
            out[1, crossing] = np.maximum(found, 0.0) / _ROOT_2PI
        return out

    def _least_mass(self, widths: FloatArray) -> FloatArray:
        """Return the least mass of intervals that the table is precise enough for."""
        assert self.joint is not None
        return 0.1 * self.joint.threshold * np.minimum(widths, 10.0)

    def _known(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the sums of the parents, and where they are precise enough."""
        queries = points.shape[1]
        if self.joint is None:
            return np.ones(queries), np.zeros(queries, dtype=bool)
        if self.parents is None:
            return np.full(queries, float(self.rows)), np.ones(queries, dtype=bool)
        sums = self.parents.sums(points)
        return sums, sums >= self.parents.threshold

    def _log_sums(self, points: FloatArray) -> FloatArray:
        """Return the logarithm of the sums of the outposts' kernels, for some or all variables."""
        d = len(points)
        if d == 0:
            return np.full(points.shape[1], math.log(self.outposts.shape[1]))
        log_peak = math.log(self.outposts.shape[1]) + 0.5 * d * math.log(2.0 * math.pi)
        return log_density_of_whitened(self.outposts[:d], np.ascontiguousarray(points)) + log_peak

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CompactKernels)
            and (self.rows, self.grain) == (other.rows, other.grain)
            and self.joint == other.joint
            and self.parents == other.parents
            and np.array_equal(self.centre, other.centre)
            and np.array_equal(self.whitener, other.whitener)
            and np.array_equal(self.outposts, other.outposts)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def require_tolerance(tolerance: object) -> None:
    """Refuse tolerances that cannot be kept, or that nobody wants."""
    is_number = isinstance(tolerance, int | float | np.floating) and not isinstance(tolerance, bool)
    if not is_number or not LEAST_TOLERANCE <= tolerance <= GREATEST_TOLERANCE:  # type: ignore[operator]
        raise ArgumentError(
            f"tolerance must be between {LEAST_TOLERANCE:g} and {GREATEST_TOLERANCE:g}. "
            f"Got {tolerance!r} instead."
        )


def compact_scales(
    kernels: PreparedKernels, widths: Sequence[float], tolerance: float
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
    points = kernels.rows + kernels.whitener @ (kernels.centre - centre)
    rows = points.shape[1]
    found: dict[float, Extent | None] = {}
    kept = np.zeros(rows, dtype=bool)
    for width in sorted(widths, reverse=True):  # wide kernels reach farthest
        extent = _extent(points / width, kept, tolerance)
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
            joint, parents = _tables(points / width, extent)
            rest = (far, extent.threshold, tolerance, fine)
            made.append(CompactKernels.assembled(centre, whitener, joint, parents, *rest))
        elif rows <= FEW_ROWS:
            made.append(CompactKernels(centre, whitener, rows, None, None, far, fine))
        else:
            made.append(None)
    return made


def _extent(points: FloatArray, kept: BoolArray, tolerance: float) -> Extent | None:
    """Choose what of a table is kept, given the outposts that there are anyway; None if it does not fit."""
    d, rows = points.shape
    if d > engine.DIMENSIONS:
        return None
    box = box_around(points, engine.THRESHOLD * rows)
    if box.cells > boxes.MAX_CELLS:
        return None
    table = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), box.low, box.high))
    return extent_of(table, tolerance, lambda found: float(np.count_nonzero(found.holds(points) | kept)))


def _tables(points: FloatArray, extent: Extent) -> tuple[RowTable, RowTable | None]:
    """Return tables of all variables and of the parents."""
    d, box = len(points), extent.box
    joint = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), box.low, box.high))
    return joint, None if d == 1 else RowTable.of(points[:-1], joint.lattice.without_last)


def extent_of(
    table: RowTable, tolerance: float, outposts: Callable[[Outskirts], float] | None = None
) -> Extent:
    """Choose what of a table of all rows is kept, in coordinates in which kernels are standard normals."""
    return Extent.of(table, COEFFICIENTS_SHARE * tolerance, ROWS_SHARE * tolerance, outposts)


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


def rounded_outposts(points: FloatArray, grain: float) -> FloatArray:
    """Round coordinates, and put rows into an order that does not tell which came first."""
    rounded: FloatArray = np.round(points / grain) * grain
    return frozen(rounded[:, np.lexsort(rounded[::-1])])


@compiled()
def _read_tables(
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
def _tail_masses(
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
