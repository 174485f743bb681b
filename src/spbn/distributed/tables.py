"""Log-densities of sets of columns over rows that workers hold: two passes for every batch of sets.

The counterpart of `nodes.densities`: J(S) and M(S), summed over all rows of every fold under kernels on the
rows of the others, or over the validation rows. In the first pass the workers put their rows on grids; the
grids are added up, and those of the folds subtracted; in the second pass they read the densities at their
rows, and add up the logarithms. Rows that a table cannot answer, because they are isolated, are a few in a
million: they are collected, and every worker adds up its kernels at them one by one. So are some rows that
a table can answer, to check that it keeps its promise of 1e-6.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from spbn.distributed.holdings import Holdings
from spbn.distributed.passes import (
    TAIL,
    Adding,
    Read,
    Reading,
    Spreading,
    Tails,
    add_kernels,
    joined_readings,
    joined_tails,
    read_tables,
    spread,
    tails,
)
from spbn.errors import ArgumentError, quoted
from spbn.kernels import bandwidth as bandwidths
from spbn.kernels.estimates import ALIKE, Estimate, grouped
from spbn.kernels.spectral import boxes
from spbn.kernels.spectral.completing import ATTEMPTS, CHECKED
from spbn.kernels.spectral.engine import REACH, SECONDS_A_CELL, SECONDS_A_PAIR, THRESHOLD
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.nodes.densities import VariableSet
from spbn.numerics import cholesky
from spbn.numerics.arrays import FloatArray

MIDDLE = 28  # times `TAIL`: so few rows that no face of a box is moved beyond the tails


class _Job(NamedTuple):
    """Densities of the same columns that share a grid.

    `estimates` have the number of a set, and a label as their span.
    """

    columns: tuple[int, ...]
    estimates: list[Estimate]
    lattice: Lattice | None


@dataclass(frozen=True, eq=False)
class _Unit:
    """Some labels of a job, done at a time; with the table of all training rows if there is one already."""

    job: _Job
    labels: tuple[int, ...]
    total: RowTable | None


@final
class SetTotals:
    """The log-densities of sets of columns, summed over rows: prepared once, asked many times."""

    def __init__(self, holdings: Holdings, rule: str) -> None:
        self._holdings = holdings
        self._rule = rule
        self._known: dict[tuple[VariableSet, bool], float] = {}

    def totals(self, sets: Sequence[VariableSet], *, validation: bool = False) -> FloatArray:
        """Return the log-density of all training rows together, or of all validation rows.

        Those of a fold are under kernels on the other folds; -inf where a bandwidth is singular.
        """
        asked = [s for s in dict.fromkeys(sets) if s.columns and (s, validation) not in self._known]
        if asked:
            self._known.update(
                {
                    (s, validation): total
                    for s, total in zip(asked, self._found(asked, validation), strict=True)
                }
            )
        return np.array([self._known[s, validation] if s.columns else 0.0 for s in sets])

    def _found(self, sets: Sequence[VariableSet], validation: bool) -> FloatArray:
        labels = [self._holdings.folds] if validation else list(range(self._holdings.folds))
        out = np.zeros(len(sets))
        by_columns: dict[tuple[int, ...], list[Estimate]] = {}
        for number, variables in enumerate(sets):
            whiteners = [self._whitener(variables, label) for label in labels]
            if any(whitener is None for whitener in whiteners):
                out[number] = -np.inf
                continue
            by_columns.setdefault(variables.columns, []).extend(
                Estimate(number, label, whitener)  # type: ignore[arg-type]
                for label, whitener in zip(labels, whiteners, strict=True)
            )
        jobs = self._with_lattices(
            [(columns, group) for columns, found in by_columns.items() for group in grouped(found, ALIKE)]
        )
        for job in jobs:
            if job.lattice is None:
                names = quoted(self._holdings.names[c] for c in job.columns)
                warnings.warn(
                    f"the density of {names} needs a grid that does not fit into memory: families with these "
                    f"columns are left out.",
                    stacklevel=2,
                )
                out[[estimate.number for estimate in job.estimates]] = -np.inf
        for units in self._units([job for job in jobs if job.lattice is not None]):
            for number, total in self._summed(units):
                out[number] += total
        return out

    def _whitener(self, variables: VariableSet, label: int) -> FloatArray | None:
        """Return the whitener of a set by the rows that the density at a label is made of."""
        training, columns = self._holdings.training, list(variables.columns)
        count = int(training.counts[label])
        if count < 2:
            return None
        factor = bandwidths.factor(self._rule, count, variables.dimension)
        block = training.scatters[label][np.ix_(columns, columns)]
        return cholesky.whitener(factor * (block / (count - 1)))

    def _with_lattices(self, groups: Sequence[tuple[tuple[int, ...], object]]) -> list[_Job]:
        """Choose a grid for each group of densities by where the rows are; None if none fits."""
        if not groups:
            return []
        centre = self._holdings.centre
        asked = [
            Tails(columns, centre[list(columns)], group.whitener, _labels(group.estimates))  # type: ignore[attr-defined]
            for columns, group in groups
        ]
        found = [joined_tails(parts) for parts in zip(*self._holdings.go_over(tails, asked), strict=True)]
        jobs = []
        for (columns, group), one, both in zip(groups, asked, found, strict=True):
            estimates, widest = group.estimates, group.widest  # type: ignore[attr-defined]
            train = float(self._holdings.training.counts[[e.span for e in estimates]].mean())
            grid, _ = boxes.cheapest_grid(
                standing_for(both),
                REACH * widest,
                cell_cost=(len(estimates) + len(one.labels)) * SECONDS_A_CELL,
                row_cost=train * len(estimates) / len(one.labels) * SECONDS_A_PAIR,
            )
            try:
                lattice = Lattice(one.centre, one.whitener, grid.low, grid.high, widest)
            except ArgumentError:
                lattice = None
            jobs.append(_Job(columns, estimates, lattice))
        return jobs

    def _units(self, jobs: Sequence[_Job]) -> Iterator[list[_Unit]]:
        """Put together what is done in one pass, so that its tables fit into the memory of a worker."""
        limit, room, together = self._holdings.table_bytes, 0, list[_Unit]()
        for job in jobs:
            assert job.lattice is not None
            labels = _labels(job.estimates)
            sets = len(job.estimates) / len(labels)
            size = 8.0 * float(np.prod(job.lattice.grid.shape)) * max(1.0, sets)
            if size * len(labels) <= limit:
                if together and room + size * len(labels) > limit:
                    yield together
                    room, together = 0, []
                together.append(_Unit(job, labels, None))
                room += int(size * len(labels))
                continue
            if together:
                yield together
                room, together = 0, []
            folds = tuple(range(self._holdings.folds))
            (total,) = self._tables([Spreading(job.columns, job.lattice, (folds,))])[0]
            step = max(1, int(limit / size))
            for start in range(0, len(labels), step):
                yield [_Unit(job, labels[start : start + step], total)]
        if together:
            yield together

    def _tables(self, asked: Sequence[Spreading]) -> list[list[RowTable]]:
        """Have tables made, and add up those of all groups."""
        found = self._holdings.go_over(spread, asked)
        return [
            [RowTable.total(parts) for parts in zip(*of_one, strict=True)]
            for of_one in zip(*found, strict=True)
        ]

    def _summed(self, units: Sequence[_Unit]) -> Iterator[tuple[int, float]]:
        """Yield numbers of sets, and what is to be added to their totals."""
        readings, estimates = self._readings(units)
        left = list(range(len(readings)))
        exact: dict[int, float] = {}
        for attempt in range(ATTEMPTS + 1):
            found = self._holdings.go_over(read_tables, [readings[i] for i in left])
            joined = [joined_readings(parts) for parts in zip(*found, strict=True)]
            wrong = []
            for i, read, (isolated, worst) in zip(
                left, joined, self._completed([readings[i] for i in left], joined), strict=True
            ):
                if worst > 0.0 and attempt < ATTEMPTS:
                    readings[i] = readings[i]._replace(threshold=2.0 * worst)
                    wrong.append(i)
                    continue
                exact[i] = read.total + read.rows * readings[i].density.log_peak + isolated
                if worst > 0.0:
                    exact[i] = -math.inf
            left = wrong
            if not left:
                break
        for i, estimate in enumerate(estimates):
            yield estimate.number, exact[i]

    def _readings(self, units: Sequence[_Unit]) -> tuple[list[Reading], list[Estimate]]:
        """Make the densities of some units: from tables of the rows with each label."""
        asked = [self._spreading(unit) for unit in units]
        readings, estimates = [], []
        for unit, one, found in zip(units, asked, self._tables(asked), strict=True):
            total = RowTable.total(found) if unit.total is None else unit.total
            by_label = dict(zip([slot[0] for slot in one.labels], found, strict=True))
            for estimate in unit.job.estimates:
                if estimate.span in unit.labels:
                    is_fold = estimate.span < self._holdings.folds
                    table = total - by_label[estimate.span] if is_fold else total
                    density = table.density(estimate.whitener)
                    readings.append(Reading(unit.job.columns, density, estimate.span, THRESHOLD))
                    estimates.append(estimate)
        return readings, estimates

    def _spreading(self, unit: _Unit) -> Spreading:
        """Return the tables to make: of every fold of a unit, and of the others together if needed."""
        assert unit.job.lattice is not None
        folds = range(self._holdings.folds)
        slots = [(label,) for label in unit.labels if label in folds]
        others = tuple(label for label in folds if label not in unit.labels)
        if unit.total is None and others:
            slots.append(others)  # type: ignore[arg-type]
        return Spreading(unit.job.columns, unit.job.lattice, tuple(slots))

    def _completed(self, readings: Sequence[Reading], joined: Sequence[Read]) -> list[tuple[float, float]]:
        """Have kernels added up one by one where tables cannot answer, and at some rows to check.

        Returns
        -------
        For every reading the log-density of its isolated rows together, and the greatest height of a row that
        was found to be wrong.
        """
        asked = [
            Adding(
                one.columns,
                one.density.lattice.centre,
                one.density.whitener,
                one.label,
                np.concatenate([read.isolated, read.checks], axis=1),
            )
            for one, read in zip(readings, joined, strict=True)
        ]
        needed = [one for one in asked if one.points.shape[1]]
        sums = (
            iter(
                np.logaddexp.reduce(parts)
                for parts in zip(*self._holdings.go_over(add_kernels, needed), strict=True)
            )
            if needed
            else iter(())
        )
        out = []
        for one, read, adding in zip(readings, joined, asked, strict=True):
            if not adding.points.shape[1]:
                out.append((0.0, 0.0))
                continue
            values = next(sums) - math.log(one.density.rows)
            few = read.isolated.shape[1]
            errors = np.abs(np.log(read.heights) + one.density.log_peak - values[few:])
            worst = float(read.heights[~(errors <= CHECKED)].max(initial=0.0))
            out.append((float(values[:few].sum()), worst))
        return out


def _labels(estimates: Sequence[Estimate]) -> tuple[int, ...]:
    return tuple(sorted({estimate.span for estimate in estimates}))


def standing_for(both: FloatArray) -> FloatArray:
    """Return coordinates with the same tails as those of all rows, for the choice of a box."""
    low, high = np.sort(both[0], axis=1), np.sort(both[1], axis=1)
    if low.shape[1] < TAIL:
        return low  # that is all rows
    middle = np.repeat(0.5 * (low[:, -1:] + high[:, :1]), MIDDLE * TAIL, axis=1)
    return np.concatenate([low, middle, high], axis=1)
