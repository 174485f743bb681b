"""Log-densities of sets of columns over rows that workers hold: two passes for every batch of sets.

As in `rows.densities`, J(S) and M(S), summed over all rows of every fold under kernels on the
rows of the others, or over the validation rows. In the first pass the workers put their rows on grids
(`densities`); in the second they read the densities at their rows, and add up the logarithms. Some rows that
a table can answer are checked, to see that it keeps its promise of 1e-6.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.dask.densities import HeldDensities, Unit
from spbn.dask.mapreduce import Read, Reading, joined_readings, read_tables
from spbn.dask.rowstore import Holdings
from spbn.errors import quoted
from spbn.kernels.estimates import Estimate
from spbn.kernels.spectral.engine import ATTEMPTS, CHECKED
from spbn.rows.families import VariableSet


@final
class SetTotals:
    """The log-densities of sets of columns, summed over rows: prepared once, asked many times."""

    def __init__(self, holdings: Holdings, rule: str, queries: Holdings | None = None) -> None:
        self.densities = HeldDensities(holdings, rule, queries)
        self._holdings = holdings
        self._known: dict[tuple[VariableSet, int], float] = {}

    def totals(self, sets: Sequence[VariableSet], *, validation: bool = False) -> FloatArray:
        """Return the log-density of all training rows together, or of all validation rows.

        Those of a fold are under kernels on the other folds; -inf where a bandwidth is singular.
        """
        return self.by_label(sets, self._holdings.labels(validation)).sum(axis=1)

    def by_label(self, sets: Sequence[VariableSet], labels: Sequence[int]) -> FloatArray:
        """Return the same for the rows of each label, sets × labels; -inf where a bandwidth is singular."""
        unknown = [
            s for s in dict.fromkeys(sets) if s.columns and any((s, m) not in self._known for m in labels)
        ]
        if unknown:
            for variables, found in zip(unknown, self._found(unknown, labels), strict=True):
                self._known.update({(variables, m): v for m, v in zip(labels, found.tolist(), strict=True)})
        return np.array([[self._known[s, m] if s.columns else 0.0 for m in labels] for s in sets])

    def _found(self, sets: Sequence[VariableSet], labels: Sequence[int]) -> FloatArray:
        """Return sets × labels."""
        place = {label: k for k, label in enumerate(labels)}
        out = np.full((len(sets), len(labels)), -np.inf)
        by_columns: dict[tuple[int, ...], list[Estimate]] = {}
        for number, variables in enumerate(sets):
            estimates = self.densities.possible_estimates(number, variables, labels)
            if estimates:
                by_columns.setdefault(variables.columns, []).extend(estimates)
        jobs = self.densities.jobs(by_columns)
        for job in jobs:
            if job.lattice is None:
                names = quoted(self._holdings.names[c] for c in job.columns)
                warnings.warn(
                    f"the density of {names} needs a grid that does not fit into memory: families with these "
                    f"columns are left out.",
                    stacklevel=2,
                )
        for units in self.densities.units([job for job in jobs if job.lattice is not None]):
            for estimate, total in self._summed(units):
                out[estimate.number, place[estimate.span]] = total
        return out

    def _summed(self, units: Sequence[Unit]) -> Iterator[tuple[Estimate, float]]:
        """Yield densities, and their logarithms summed over the rows of their labels."""
        readings, estimates = self.densities.readings(units)
        left = list(range(len(readings)))
        exact: dict[int, float] = {}
        for attempt in range(ATTEMPTS + 1):
            found = self.densities.queries.go_over(read_tables, [readings[i] for i in left])
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
            yield estimate, exact[i]

    def _completed(self, readings: Sequence[Reading], joined: Sequence[Read]) -> list[tuple[float, float]]:
        """Have kernels added up one by one where tables cannot answer, and at some rows to check.

        Returns
        -------
        For every reading the log-density of its isolated rows together, and the greatest height of a row that
        was found to be wrong.
        """
        points = [np.concatenate([read.isolated, read.checks], axis=1) for read in joined]
        out = []
        for one, read, values in zip(readings, joined, self.densities.exact(readings, points), strict=True):
            few = read.isolated.shape[1]
            worst = worst_height(one, read.heights, values[few:])
            out.append((float(values[:few].sum()), worst))
        return out


def worst_height(reading: Reading, heights: FloatArray, values: FloatArray) -> float:
    """Return the greatest height of a row that was checked and found wrong; 0 if none was."""
    errors = np.abs(np.log(heights) + reading.density.log_peak - values)
    return float(heights[~(errors <= CHECKED)].max(initial=0.0))


def differences(whole: FloatArray, below: FloatArray) -> FloatArray:
    """Return the log-densities of nodes given parents, from those of both and of the parents alone."""
    possible = np.isfinite(whole) & np.isfinite(below)
    return np.where(possible, whole - np.where(possible, below, 0.0), -np.inf)
