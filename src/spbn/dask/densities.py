"""Kernel densities of sets of columns, made of rows that workers hold.

In one pass the workers put their rows on grids; the grids are added up, and those of the folds subtracted.
What comes of it can be read at any rows in another pass (`passes.read_tables`, `kept.keep`). Rows that a
table cannot answer, because they are isolated, are collected, and every worker adds up its kernels at them
one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.dask.mapreduce import (
    TAIL,
    Adding,
    Reading,
    Spreading,
    Tails,
    add_kernels,
    joined_tails,
    spread,
    tails,
)
from spbn.dask.rowstore import Holdings
from spbn.errors import ArgumentError
from spbn.kernels import estimates as bandwidths
from spbn.kernels.estimates import ALIKE, Estimate, grouped
from spbn.kernels.spectral import boxes
from spbn.kernels.spectral.engine import REACH, SECONDS_A_CELL, SECONDS_A_PAIR, THRESHOLD
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.numerics import gaussian
from spbn.rows.families import VariableSet

MIDDLE = 28  # times `TAIL`: so few rows that no face of a box is moved beyond the tails


class Job(NamedTuple):
    """Densities of the same columns that share a grid; None if it does not fit into memory.

    `estimates` have the number of a set, and a label as their span.
    """

    columns: tuple[int, ...]
    estimates: list[Estimate]
    lattice: Lattice | None


@dataclass(frozen=True, eq=False)
class Unit:
    """Some labels of a job, done at a time; with the table of all training rows if there is one already."""

    job: Job
    labels: tuple[int, ...]
    total: RowTable | None


@final
class HeldDensities:
    """How densities are made of rows over workers.

    Parameters
    ----------
    queries
        The rows that are going to be asked for, if not all: some of the same rows.
    """

    def __init__(self, holdings: Holdings, rule: str, queries: Holdings | None = None) -> None:
        self.holdings = holdings
        self.rule = rule
        self.queries = holdings if queries is None else queries

    def estimates(
        self, number: int, variables: VariableSet, labels: Sequence[int], scale: float = 1.0
    ) -> list[Estimate] | None:
        """Return the densities of a set at some labels; None if a bandwidth is singular.

        Parameters
        ----------
        scale
            Multiplies the bandwidth matrix.
        """
        found = self.possible_estimates(number, variables, labels, scale)
        return found if len(found) == len(labels) else None

    def possible_estimates(
        self, number: int, variables: VariableSet, labels: Sequence[int], scale: float = 1.0
    ) -> list[Estimate]:
        """Return the densities of a set at those of some labels where its bandwidth is not singular."""
        whiteners = [(label, self._whitener(variables, label)) for label in labels]
        return [
            Estimate(number, label, whitener / math.sqrt(scale))
            for label, whitener in whiteners
            if whitener is not None
        ]

    def jobs(
        self, by_columns: Mapping[tuple[int, ...], list[Estimate]], alike: Mapping[int, float] | None = None
    ) -> list[Job]:
        """Choose grids for densities, given by columns, by where the rows are.

        Parameters
        ----------
        alike
            By dimension, how much wider than the narrowest others on its grid may be.
        """
        return self._with_lattices(
            [
                (columns, group)
                for columns, found in by_columns.items()
                for group in grouped(found, (alike or {}).get(len(columns), ALIKE))
            ]
        )

    def _whitener(self, variables: VariableSet, label: int) -> FloatArray | None:
        """Return the whitener of a set by the rows that the density at a label is made of."""
        training, columns = self.holdings.training, list(variables.columns)
        count = int(training.counts[label])
        if count < 2:
            return None
        factor = bandwidths.factor(self.rule, count, variables.dimension)
        block = training.scatters[label][np.ix_(columns, columns)]
        return gaussian.whitener(factor * (block / (count - 1)))

    def _with_lattices(self, groups: Sequence[tuple[tuple[int, ...], object]]) -> list[Job]:
        """Choose a grid for each group of densities by where the rows are; None if none fits."""
        if not groups:
            return []
        centre = self.holdings.centre
        asked = [
            Tails(columns, centre[list(columns)], group.whitener, _labels(group.estimates))  # type: ignore[attr-defined]
            for columns, group in groups
        ]
        found = [joined_tails(parts) for parts in zip(*self.queries.go_over(tails, asked), strict=True)]
        jobs = []
        for (columns, group), one, both in zip(groups, asked, found, strict=True):
            estimates, widest = group.estimates, group.widest  # type: ignore[attr-defined]
            train = float(self.holdings.training.counts[[e.span for e in estimates]].mean())
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
            jobs.append(Job(columns, estimates, lattice))
        return jobs

    def units(self, jobs: Sequence[Job]) -> Iterator[list[Unit]]:
        """Put together what is done in one pass, so that its tables fit into the memory of a worker."""
        limit, room, together = self.holdings.table_bytes, 0, list[Unit]()
        for job in jobs:
            assert job.lattice is not None
            labels = _labels(job.estimates)
            sets = len(job.estimates) / len(labels)
            size = 8.0 * float(np.prod(job.lattice.grid.shape)) * max(1.0, sets)
            if size * len(labels) <= limit:
                if together and room + size * len(labels) > limit:
                    yield together
                    room, together = 0, []
                together.append(Unit(job, labels, None))
                room += int(size * len(labels))
                continue
            if together:
                yield together
                room, together = 0, []
            folds = tuple(range(self.holdings.folds))
            (total,) = self._tables([Spreading(job.columns, job.lattice, (folds,))])[0]
            step = max(1, int(limit / size))
            for start in range(0, len(labels), step):
                yield [Unit(job, labels[start : start + step], total)]
        if together:
            yield together

    def readings(self, units: Sequence[Unit]) -> tuple[list[Reading], list[Estimate]]:
        """Make the densities of some units: from tables of the rows with each label."""
        asked = [self._spreading(unit) for unit in units]
        readings, estimates = [], []
        for unit, one, found in zip(units, asked, self._tables(asked), strict=True):
            total = RowTable.total(found) if unit.total is None else unit.total
            by_label = dict(zip([slot[0] for slot in one.labels], found, strict=True))
            for estimate in unit.job.estimates:
                if estimate.span in unit.labels:
                    is_fold = estimate.span < self.holdings.folds
                    table = total - by_label[estimate.span] if is_fold else total
                    density = table.density(estimate.whitener)
                    readings.append(Reading(unit.job.columns, density, estimate.span, THRESHOLD))
                    estimates.append(estimate)
        return readings, estimates

    def exact(self, readings: Sequence[Reading], points: Sequence[FloatArray]) -> list[FloatArray]:
        """Have kernels added up one by one: return the log-densities of each at its points."""
        asked = [
            Adding(one.columns, one.density.lattice.centre, one.density.whitener, one.label, at)
            for one, at in zip(readings, points, strict=True)
        ]
        needed = [one for one in asked if one.points.shape[1]]
        sums: Iterator[FloatArray] = iter(())
        if needed:
            found = zip(*self.holdings.go_over(add_kernels, needed), strict=True)
            sums = iter([np.logaddexp.reduce(parts) for parts in found])
        return [
            next(sums) - math.log(one.density.rows) if at.shape[1] else np.empty(0)
            for one, at in zip(readings, points, strict=True)
        ]

    def _tables(self, asked: Sequence[Spreading]) -> list[list[RowTable]]:
        """Have tables made, and add up those of all groups."""
        found = self.holdings.go_over(spread, asked)
        return [
            [RowTable.total(parts) for parts in zip(*of_one, strict=True)]
            for of_one in zip(*found, strict=True)
        ]

    def _spreading(self, unit: Unit) -> Spreading:
        """Return the tables to make: of every fold of a unit, and of the others together if needed."""
        assert unit.job.lattice is not None
        folds = range(self.holdings.folds)
        slots = [(label,) for label in unit.labels if label in folds]
        others = tuple(label for label in folds if label not in unit.labels)
        if unit.total is None and others:
            slots.append(others)  # type: ignore[arg-type]
        return Spreading(unit.job.columns, unit.job.lattice, tuple(slots))


def _labels(estimates: Sequence[Estimate]) -> tuple[int, ...]:
    return tuple(sorted({estimate.span for estimate in estimates}))


def standing_for(both: FloatArray) -> FloatArray:
    """Return coordinates with the same tails as those of all rows, for the choice of a box."""
    low, high = np.sort(both[0], axis=1), np.sort(both[1], axis=1)
    if low.shape[1] < TAIL:
        return low  # that is all rows
    middle = np.repeat(0.5 * (low[:, -1:] + high[:, :1]), MIDDLE * TAIL, axis=1)
    return np.concatenate([low, middle, high], axis=1)
