"""Kernel densities of sets of columns, made of rows that workers hold.

In one pass the workers put their rows on grids; the grids are added up, and those of the folds subtracted.
What comes of it can be read at any rows in another pass (`kernel_passes.read_table`). Rows that a table
cannot answer, because they are isolated, are collected, and every worker adds up its kernels at them one by
one. Some rows that a table can answer are checked, to see that it keeps its promise of 1e-6.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.dask.kernel_passes import (
    TAIL,
    DensityRequest,
    KernelRequest,
    Key,
    OutpostRequest,
    Reading,
    TableRequest,
    TailRequest,
    add_kernels,
    join_tails,
    outposts,
    read_table,
    spread,
    tails,
)
from spbn.dask.mapreduce import Where
from spbn.dask.shards import Shards, batched
from spbn.errors import ArgumentError, quoted
from spbn.kernels import estimates as bandwidths
from spbn.kernels.compressed import CompactKernels
from spbn.kernels.compression import (
    FEW_ROWS,
    LEAST_TOLERANCE,
    Extent,
    box_around,
    grain_of,
    keep,
    rounded_centre,
    rounded_outposts,
)
from spbn.kernels.estimates import ALIKE, Estimate, grouped
from spbn.kernels.spectral import (
    ATTEMPTS,
    CHECKED,
    DIMENSIONS,
    REACH,
    SECONDS_A_CELL,
    SECONDS_A_PAIR,
    THRESHOLD,
    gridding,
)
from spbn.kernels.spectral.gridding import MAX_CELLS
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.numerics import gaussian
from spbn.rows.families import VariableSet
from spbn.rows.store import Columns, TooLargeError

#: In so many dimensions narrower kernels than CKDE's own would need grids of hundreds of millions of cells
#: for every fold, while few rows are within their reach: they are added up pair by pair.
PAIRWISE = DIMENSIONS
MIDDLE = 28  # times `TAIL`: so few rows that no face of a box is moved beyond the tails


class Groups(NamedTuple):
    """Groups of rows: those of `queries` with each of some labels, under densities of `training` rows."""

    training: Shards
    queries: Shards
    labels: tuple[int, ...]

    @property
    def within(self) -> tuple[Where, Where]:
        """The levels that the training rows have, and those of the queries."""
        return self.training.where, self.queries.where


class Job(NamedTuple):
    """Densities of the same columns that share a grid. They have the number of a set, and a label as span."""

    columns: Columns
    estimates: list[Estimate]
    lattice: Lattice

    @property
    def labels(self) -> tuple[int, ...]:
        """Those of the rows to read the densities at."""
        return _labels(self.estimates)

    @property
    def size(self) -> float:
        """How many bytes the tables take."""
        return 8.0 * float(np.prod(self.lattice.grid.shape)) * max(len(self.labels), len(self.estimates))


class Unit(NamedTuple):
    """Some labels of a job, done at a time; with the table of all training rows if there is one already."""

    job: Job
    labels: tuple[int, ...]
    total: RowTable | None


@final
class GridDensities:
    """How densities are made of rows over workers."""

    def __init__(self, groups: Groups, rule: str) -> None:
        self.groups = groups
        self.shards = groups.training
        self.rule = rule

    def estimates(self, number: int, variables: VariableSet, scale: float = 1.0) -> list[Estimate]:
        """Return the densities of a set at those of the labels where its bandwidth is not singular.

        The bandwidth matrix is multiplied by a scale.
        """
        training, columns, found = self.shards.training, list(variables.columns), []
        for label in self.groups.labels:
            count = int(training.counts[label])
            if count < 2:
                continue
            factor = bandwidths.factor(self.rule, count, variables.dimension)
            block = training.scatters[label][np.ix_(columns, columns)]
            whitener = gaussian.whitener(factor * (block / (count - 1)))
            if whitener is not None:
                found.append(Estimate(number, label, whitener / math.sqrt(scale)))
        return found

    def jobs(
        self, by_columns: Mapping[Columns, list[Estimate]], alike: Mapping[int, float] | None = None
    ) -> tuple[list[Job], list[tuple[Columns, list[Estimate]]]]:
        """Choose grids for densities, given by columns, by where the rows are.

        `alike` has, by dimension, how much wider than the narrowest others on its grid may be. Those whose
        grids do not fit into memory are returned, too.
        """
        jobs, refused = [], []
        groups = [
            (columns, group)
            for columns, found in by_columns.items()
            for group in grouped(found, (alike or {}).get(len(columns), ALIKE))
        ]
        centre = self.shards.centre
        asked = [
            TailRequest(columns, centre[list(columns)], group.whitener, _labels(group.estimates))
            for columns, group in groups
        ]
        ends = self.groups.queries.gather(tails, asked, join_tails) if asked else []
        for (columns, group), one, both in zip(groups, asked, ends, strict=True):
            estimates = group.estimates
            train = float(self.shards.training.counts[[e.span for e in estimates]].mean())
            grid, _ = gridding.cheapest_grid(
                standing_for(both),
                REACH * group.widest,
                cell_cost=(len(estimates) + len(one.labels)) * SECONDS_A_CELL,
                row_cost=train * len(estimates) / len(one.labels) * SECONDS_A_PAIR,
            )
            try:
                lattice = Lattice(one.centre, one.whitener, grid.low, grid.high, group.widest)
                jobs.append(Job(columns, estimates, lattice))
            except ArgumentError:
                refused.append((columns, estimates))
        return jobs, refused

    def units(self, jobs: Sequence[Job]) -> Iterator[list[Unit]]:
        """Put together what is done in one pass, so that its tables fit into the memory of a worker."""
        limit = self.shards.table_bytes
        for some in batched([job for job in jobs if job.size <= limit], lambda job: job.size, limit):
            yield [Unit(job, job.labels, None) for job in some]
        folds = tuple(range(self.shards.folds))
        for job in [job for job in jobs if job.size > limit]:
            ((total,),) = _tables(self.shards, [TableRequest(job.columns, job.lattice, (folds,))])
            step = max(1, int(limit / (job.size / len(job.labels))))
            for start in range(0, len(job.labels), step):
                yield [Unit(job, job.labels[start : start + step], total)]

    def read(
        self, units: Sequence[Unit], keys: Sequence[Key] = ()
    ) -> Iterator[tuple[Estimate, DensityRequest, Reading, FloatArray | None]]:
        """Have densities read at the rows of their labels, and kernels added up one by one at isolated rows.

        A table that was wrong at a row that was checked is asked again, for rows of greater density only. By
        the number of an estimate, `keys` has what workers cache its logarithms under, if they are to.

        Yields
        ------
        A density, how it was read, what was found, and the log-densities of the isolated rows; None if the
        table was wrong at whichever rows it was asked for.
        """
        readings, estimates = self._readings(units, keys)
        left = list(range(len(readings)))
        for attempt in range(ATTEMPTS + 1):
            asked, wrong = [readings[i] for i in left], []
            found = self.groups.queries.gather(read_table, asked, Reading.join, pinned=bool(keys))
            points = [np.concatenate([read.isolated, read.checks], axis=1) for read in found]
            for i, read, values in zip(left, found, self._exact(asked, points), strict=True):
                few = read.isolated.shape[1]
                errors = np.abs(np.log(read.heights) + readings[i].density.log_peak - values[few:])
                worst = float(read.heights[~(errors <= CHECKED)].max(initial=0.0))
                if worst > 0.0 and attempt < ATTEMPTS:
                    readings[i] = readings[i]._replace(threshold=2.0 * worst)
                    wrong.append(i)
                else:
                    yield estimates[i], readings[i], read, None if worst > 0.0 else values[:few]
            left = wrong
            if not left:
                return

    def _readings(
        self, units: Sequence[Unit], keys: Sequence[Key]
    ) -> tuple[list[DensityRequest], list[Estimate]]:
        """Make the densities of some units: from tables of the rows with each label."""
        asked = [self._spreading(unit) for unit in units]
        readings, estimates = [], []
        for unit, one, found in zip(units, asked, _tables(self.shards, asked), strict=True):
            total = RowTable.total(found) if unit.total is None else unit.total
            by_label = dict(zip([slot[0] for slot in one.labels], found, strict=True))
            for estimate in unit.job.estimates:
                if estimate.span in unit.labels:
                    is_fold = estimate.span < self.shards.folds
                    table = total - by_label[estimate.span] if is_fold else total
                    density = table.density(estimate.whitener)
                    key = keys[estimate.number] if keys else None
                    readings.append(DensityRequest(unit.job.columns, density, estimate.span, THRESHOLD, key))
                    estimates.append(estimate)
        return readings, estimates

    def _exact(self, readings: Sequence[DensityRequest], points: Sequence[FloatArray]) -> list[FloatArray]:
        """Have kernels added up one by one: return the log-densities of each at its points."""
        asked = [
            KernelRequest(one.columns, one.density.lattice.centre, one.density.whitener, one.label, at)
            for one, at in zip(readings, points, strict=True)
        ]
        sums = self.shards.gather(add_kernels, asked, np.logaddexp.reduce)
        return [total - math.log(one.density.rows) for total, one in zip(sums, readings, strict=True)]

    def _spreading(self, unit: Unit) -> TableRequest:
        """Return the tables to make: of every fold of a unit, and of the others together if needed."""
        folds = range(self.shards.folds)
        slots = [(label,) for label in unit.labels if label in folds]
        others = tuple(label for label in folds if label not in unit.labels)
        if unit.total is None and others:
            slots.append(others)  # type: ignore[arg-type]
        return TableRequest(unit.job.columns, unit.job.lattice, tuple(slots))


def _tables(shards: Shards, asked: Sequence[TableRequest]) -> list[list[RowTable]]:
    """Have tables made, and add up those of all rows."""
    return [
        [RowTable.total(tables) for tables in zip(*by_batch, strict=True)]
        for by_batch in zip(*shards.map(spread, asked), strict=True)
    ]


def _labels(estimates: Sequence[Estimate]) -> tuple[int, ...]:
    return tuple(sorted({estimate.span for estimate in estimates}))


def standing_for(both: FloatArray) -> FloatArray:
    """Return coordinates with the same tails as those of all rows, for the choice of a box."""
    low, high = np.sort(both[0], axis=1), np.sort(both[1], axis=1)
    if low.shape[1] < TAIL:
        return low  # that is all rows
    middle = np.repeat(0.5 * (low[:, -1:] + high[:, :1]), MIDDLE * TAIL, axis=1)
    return np.concatenate([low, middle, high], axis=1)


@final
class SetTotals:
    """The log-densities of sets of columns, summed over rows: prepared once, asked many times."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._known: dict[tuple[tuple[Where, Where], VariableSet, int], float] = {}

    def by_label(self, groups: Groups, sets: Sequence[VariableSet]) -> FloatArray:
        """Return the log-densities of the rows of each label together, sets × labels.

        Those of a fold are under kernels on the other folds; -inf where a bandwidth is singular.
        """
        known, within, labels = self._known, groups.within, groups.labels
        unknown = [
            s
            for s in dict.fromkeys(sets)
            if s.columns and any((within, s, label) not in known for label in labels)
        ]
        if unknown:
            for variables, found in zip(unknown, self._found(groups, unknown).tolist(), strict=True):
                known.update({(within, variables, m): v for m, v in zip(labels, found, strict=True)})
        return np.array([[known[within, s, m] if s.columns else 0.0 for m in labels] for s in sets])

    def _found(self, groups: Groups, sets: Sequence[VariableSet]) -> FloatArray:
        """Return sets × labels."""
        densities = GridDensities(groups, self._rule)
        place = {label: k for k, label in enumerate(groups.labels)}
        out = np.full((len(sets), len(groups.labels)), -np.inf)
        by_columns: dict[Columns, list[Estimate]] = {}
        for number, variables in enumerate(sets):
            estimates = densities.estimates(number, variables)
            if estimates:
                by_columns.setdefault(variables.columns, []).extend(estimates)
        jobs, refused = densities.jobs(by_columns)
        for columns, _ in refused:
            warnings.warn(
                f"the density of {quoted(groups.training.names[c] for c in columns)} needs a grid that does "
                f"not fit into memory: families with these columns are left out.",
                stacklevel=2,
            )
        for units in densities.units(jobs):
            for estimate, one, read, isolated in densities.read(units):
                if isolated is not None:
                    total = read.total + read.rows * one.density.log_peak + float(isolated.sum())
                    out[estimate.number, place[estimate.span]] = total
        return out


def compact_kernels(shards: Shards, columns: Columns, rule: str, scale: float) -> CompactKernels | None:
    """Make compact kernels of all rows: from tables that add up, and the few rows on the outskirts.

    See `RemoteRows.compact_kernels`.
    """
    moments, tolerance, grain = shards.every, LEAST_TOLERANCE, grain_of(LEAST_TOLERANCE)
    join_rows = partial(np.concatenate, axis=1)
    factor = scale * bandwidths.factor(rule, moments.count, len(columns))
    whitener = gaussian.whitener(factor * moments.covariance[np.ix_(columns, columns)])
    if whitener is None:
        return None
    centre = rounded_centre(shards.centre[list(columns)], whitener)
    everything = tuple(range(shards.folds + 1))
    if len(columns) >= PAIRWISE and scale < 1.0 and moments.count <= FEW_ROWS:
        # Nearly all of them would be outposts of a large table: see `CompactKernels`.
        everywhere = OutpostRequest(columns, None, centre, whitener)
        (rows,) = shards.gather(outposts, [everywhere], join_rows)
        kept = rounded_outposts(rows, grain)
        return CompactKernels(centre[:, None], whitener, rows.shape[1], None, None, kept, grain)
    (ends,) = shards.gather(tails, [TailRequest(columns, centre, whitener, everything)], join_tails)
    box = box_around(standing_for(ends), THRESHOLD * moments.count)
    if box.cells > MAX_CELLS:
        *parents, node = (shards.names[column] for column in columns)
        raise TooLargeError(
            f"the density of {node!r} given {quoted(parents)} needs a grid that does not fit "
            f"into memory: allow fewer parents."
        )
    whole = _table(shards, columns, Lattice(centre, whitener, box.low, box.high))
    extent = Extent.of(whole, tolerance)
    lattice = Lattice(centre, whitener, extent.box.low, extent.box.high)
    joint = keep(_table(shards, columns, lattice), extent, tolerance)
    below = None
    if len(columns) > 1:
        below = keep(_table(shards, columns[:-1], lattice.without_last), extent, tolerance)
    request = OutpostRequest(columns, extent.outskirts, centre, whitener)
    (outer,) = shards.gather(outposts, [request], join_rows)
    kept = rounded_outposts(outer, grain)
    return CompactKernels(centre[:, None], whitener, joint.rows, joint, below, kept, grain)


def _table(shards: Shards, columns: Columns, lattice: Lattice) -> RowTable:
    """Return the table of all rows, in coordinates in which kernels are standard normals."""
    asked = TableRequest(columns, lattice, (tuple(range(shards.folds + 1)),))
    ((table,),) = _tables(shards, [asked])
    d = len(columns)
    return RowTable(Lattice(np.zeros(d), np.eye(d), lattice.low, lattice.high), table.rows, table.windows)
