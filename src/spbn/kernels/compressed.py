"""Kernels without their rows: coefficient tables where rows are dense, and the few that decide elsewhere.

`CompactKernels` answers what kernels on rows answer, at a cost that does not depend on the number of rows:

- where the sum of the kernels is large enough, from `Coefficients` of parents and child together and
  of the parents alone;
- elsewhere, in the outskirts, from the `outposts`: the rows within reach of them (`compression`).

If there are so few rows that most of them are outposts, no table is made and all of them are. `compression`
makes them from rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, equal_fields, frozen
from spbn._base.files import ArrayWriter
from spbn._base.jit import compiled, run_tasks, shares
from spbn.kernels.conditional import PreparedKernels, choose_rows_between, in_parts
from spbn.kernels.exact import log_density_of_whitened
from spbn.kernels.spectral import gridding, tables
from spbn.kernels.spectral.coefficients import Coefficients
from spbn.kernels.spectral.gridding import WIDTH, interpolate_at
from spbn.numerics.gaussian import draw_between
from spbn.numerics.gaussian import mass as mass_of

FEW_QUERIES = 4_096  # which are read in the order that they come in
FEWEST_CELLS = 1e5  # some 0.05 ms: waking up a thread for less does not pay
_ROOT_2PI = math.sqrt(2.0 * math.pi)

Ends = tuple[FloatArray, FloatArray]  # of intervals
Tails = tuple[float, float]  # where one ends, and the other begins
#: Variables × (centre, low and high end of the box, offset in cells, and a row of the whitener); the least
#: sums that are precise enough, of all variables and of the parents, how many rows there are, which is the
#: sum of no parents, and the spacing of the grids; the polynomials of the window; the fields of both tables.
Tables = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class CompactKernels:
    """A sum of Gaussians with one bandwidth matrix, as tables and outposts.

    Centre and whitener put queries into coordinates in which every kernel is a standard normal.
    """

    centre: FloatArray
    whitener: FloatArray
    rows: int  # how many kernels there are
    joint: Coefficients | None  # the sums of all variables; None without a table
    parents: Coefficients | None  # those of the parents; None without a table, or without parents
    outposts: FloatArray  # the rows that decide about the outskirts, whitened; without a table, all rows
    grain: float  # what the coordinates of outposts are multiples of

    @cached_property
    def far(self) -> PreparedKernels:
        return PreparedKernels(self.centre, self.whitener, self.outposts)

    @property
    def bandwidth(self) -> FloatArray:
        lower = np.linalg.inv(self.whitener)
        return lower @ lower.T

    def conditional_log_density(self, queries: FloatArray) -> FloatArray:
        if self.joint is None:
            return self.far.conditional_log_density(queries)
        is_few = queries.shape[1] <= FEW_QUERIES
        points, sums, out, is_complete = self._read_few(queries) if is_few else self._read_many(queries)
        if is_complete:
            return out
        far = out == np.inf
        known = far if self.parents is None else far & (sums[1] >= self.parents.threshold)
        if known.any():
            out[known] = self._log_sums(points[:, known]) - np.log(sums[1, known]) + self._log_scale
        unknown = far & ~known
        if unknown.any():
            out[unknown] = self.far.conditional_log_density(queries[:, unknown])
        return out

    def _read_many(self, queries: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Return whitened queries, sums of all variables and of the parents, and what `_read_tables` says."""
        assert self.joint is not None  # or there would be nothing to read
        points, out = self.far.whitened(queries), np.full(queries.shape[1], np.inf)
        below, known = self._known(points[:-1])
        sums = self.joint.sums(points)
        answered = known & (sums >= self.joint.threshold)
        out[answered] = np.log(sums[answered] / below[answered]) + self._log_scale
        return points, np.stack([sums, below]), out, bool(answered.all())

    def _read_few(self, queries: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Do the same for so few queries that sorting them, or one array operation more, takes too long."""
        d, asked = queries.shape
        points, sums, out = np.empty((d, asked)), np.empty((2, asked)), np.empty(asked)
        arrays = (frozen(queries), self._tables, points, sums, out)
        if asked * WIDTH**d < FEWEST_CELLS:
            return points, sums, out, _read_tables(0, asked, *arrays)
        run_tasks(_read_tables, [(*cut, *arrays) for cut in pairwise(shares(asked))])
        return points, sums, out, bool(out.max() < np.inf)

    @property
    def _log_scale(self) -> float:
        return math.log(self.whitener[-1, -1] / _ROOT_2PI)

    @cached_property
    def _tables(self) -> Tables:
        assert self.joint is not None  # or there would be nothing to read
        grid, d = self.joint.lattice.grid, len(self.centre)
        frame = np.empty((d, 4 + d))
        frame[:, 0], frame[:, 1], frame[:, 2] = self.centre[:, 0], self.joint.low, self.joint.high
        frame[:, 3] = (grid.reach - grid.low) / gridding.SPACING - WIDTH / 2
        frame[:, 4:] = self.whitener
        below = self.joint if self.parents is None else self.parents
        limits = np.array([self.joint.threshold, below.threshold, float(self.rows), gridding.SPACING])
        fields = (self.joint.density.field, below.density.field)
        return tuple(map(frozen, (frame, limits, gridding.coefficients(), *fields)))  # type: ignore[return-value]

    def conditional_cdf(self, queries: FloatArray) -> FloatArray:
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

    def conditional_density_and_cdf(self, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.conditional_log_density(queries), self.conditional_cdf(queries)

    def log_mass(self, parents: FloatArray, low: float, high: float) -> FloatArray:
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

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        return self.draw_between(parents, -np.inf, np.inf, rng)

    def draw_between(
        self, parents: FloatArray, low: float, high: float, rng: np.random.Generator
    ) -> FloatArray:
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
        in_parts(_tail_masses, self.outposts, points, (frozen(lows), frozen(highs)), (bottom, top), out)
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

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return {
            "compact": {
                "rows": self.rows,
                "centre": self.centre[:, 0].tolist(),
                "whitener": self.whitener.tolist(),
                "grain": self.grain,
                "outposts": [arrays.add(column / self.grain, integers=True) for column in self.outposts],
                "joint": _table_record(self.joint, arrays),
                "parents": _table_record(self.parents, arrays),
            }
        }

    __eq__ = equal_fields
    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


@dataclass(frozen=True)
class CompactScales:
    """Compact kernels at several scales: one for each of `SCALES`, None for those that are not needed."""

    by_scale: tuple[CompactKernels | None, ...]

    def conditional_log_density_by_scale(self, queries: FloatArray) -> FloatArray:
        queries, out = frozen(queries), np.full((len(self.by_scale), queries.shape[1]), -np.inf)
        for k, kernels in enumerate(self.by_scale):
            if kernels is not None:
                out[k] = kernels.conditional_log_density(queries)
        return out

    def at_scale(self, k: int) -> CompactKernels:
        """Return the kernels of one of the scales, which must be needed."""
        kernels = self.by_scale[k]
        assert kernels is not None
        return kernels


def _table_record(table: Coefficients | None, arrays: ArrayWriter) -> dict[str, Any] | None:
    if table is None:
        return None
    return {
        "low": table.low.tolist(),
        "high": table.high.tolist(),
        "cutoff": table.cutoff,
        "step": table.step,
        "threshold": table.threshold,
        "coefficients": [arrays.add(table.integers, integers=True)],
    }


@compiled()
def _read_tables(
    first: int,
    end: int,
    queries: FloatArray,
    tables: Tables,
    points: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> bool:
    """Put whitened queries, the sums of all variables and of the parents, and log-densities.

    A log-density is infinite where the tables have no answer; tells whether they have all answers.
    """
    d, (frame, limits, pieces, joint, parents) = len(queries), tables
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
    first: int, end: int, train: FloatArray, queries: FloatArray, ends: Ends, tails: Tails, out: FloatArray
) -> None:
    """Put what rows have of intervals below the lower tail's end, and above the upper one's."""
    child, (lows, highs) = len(train) - 1, ends
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
