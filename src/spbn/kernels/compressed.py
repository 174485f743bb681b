"""Kernels without their rows: coefficient tables where rows are dense, and the few that decide elsewhere.

`CompactKernels` answers what `PreparedKernels` answers, at a cost that does not depend on the number of rows:

- where the sum of the kernels is large enough, from `spectral.Coefficients` of parents and child together and
  of the parents alone;
- elsewhere, in the outskirts, from the `outposts`: the rows within reach of them (`spectral.outskirts`).

If there are so few rows that most of them are outposts, no table is made and all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, frozen
from spbn._base.threads import available_threads
from spbn.kernels.compression import (
    COEFFICIENTS_SHARE,
    extent_beside,
    grain_of,
    read_tables,
    require_tolerance,
    rounded_centre,
    rounded_outposts,
    tables_of,
    tail_masses,
)
from spbn.kernels.conditional import choose_rows_between, in_parts
from spbn.kernels.exact import log_density_of_whitened
from spbn.kernels.spectral import gridding, tables
from spbn.kernels.spectral.coefficients import Coefficients
from spbn.kernels.spectral.gridding import WIDTH
from spbn.kernels.spectral.tables import RowTable
from spbn.kernels.spectral.truncation import Extent
from spbn.kernels.whitened import PreparedKernels
from spbn.numerics.gaussian import draw_between

FEW_QUERIES = 4_096  # which are read in the order that they come in
FEWEST_CELLS = 1e5  # some 0.05 ms: waking up a thread for less does not pay
FEW_ROWS = 5_000  # which cost no more than a table to add up one by one
MOST_OUTPOSTS = 0.8  # share of few rows; with more of them, a table is of no use
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
            answered = read_tables(0, asked, *arrays)
        else:
            threads = available_threads()
            cuts = threads.shares(asked)
            threads.run(read_tables, [(first, end, *arrays) for first, end in pairwise(cuts)])
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
        """What `read_tables` needs to know: the coordinates, the least sums, and the tables."""
        assert self.joint is not None  # or there would be nothing to read
        grid, d = self.joint.lattice.grid, len(self.centre)
        frame = np.empty((d, 4 + d))
        frame[:, 0], frame[:, 1], frame[:, 2] = self.centre[:, 0], self.joint.low, self.joint.high
        frame[:, 3] = (grid.reach - grid.low) / gridding.SPACING - WIDTH / 2
        frame[:, 4:] = self.whitener
        below = self.joint if self.parents is None else self.parents
        limits = np.array([self.joint.threshold, below.threshold, float(self.rows), gridding.SPACING])
        fields = (self.joint.density.field, below.density.field)
        return tuple(map(frozen, (frame, limits, gridding.coefficients(), *fields)))

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
            z[drawn] = tables.inverses(self.joint.density, points[:, drawn], start, end, wanted)
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
        in_parts(tail_masses, self.outposts, points, frozen(lows), frozen(highs), tails, out)
        crossing = np.flatnonzero((lows < top) & (highs > bottom))
        if len(crossing):
            start, end = np.maximum(lows[crossing], bottom), np.minimum(highs[crossing], top)
            found = tables.integrals(self.joint.density, points[:, crossing], start, end)
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
        log_peak = math.log(self.outposts.shape[1]) + 0.5 * d * LOG_2PI
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
            made.append(CompactKernels.assembled(centre, whitener, joint, parents, *rest))
        elif rows <= FEW_ROWS:
            made.append(CompactKernels(centre, whitener, rows, None, None, far, fine))
        else:
            made.append(None)
    return made
