"""The likelihood of rows that fall into classes, each of which has parameters of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn.nodes.base import registered
from spbn.nodes.families import Family, FamilyScorer
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.scores.base import Score
from spbn.scores.likelihood import Auto, arc_penalty
from spbn.tables.table import Table


@final
class ByClass(Score):
    """The cross-validated log-likelihood of rows whose classes are known, less a penalty for every arc.

    It is that of networks in which the class is a parent of every node, which families do not name. Where a
    family cannot be fitted to the rows of a class, its parameters are fitted to all rows.

    Parameters
    ----------
    table
        The rows, without a column for the class.
    codes
        The class of every row, 0 to k - 1; each has at least as many rows as there are folds.
    folds, seed
        How many folds, and what decides which row goes into which. Every class has rows in each.
    settings
        What fits depend on.
    penalty
        What every arc but those from the class costs, as in `CVLikelihood`.
    units
        The unit of every row, 0 to n - 1: rows of a unit share class and fold. By default, each is its own.
    """

    def __init__(
        self,
        table: Table,
        codes: IntArray,
        *,
        folds: int = 10,
        seed: Seed = 0,
        settings: FitSettings | None = None,
        penalty: float | Auto = "auto",
        units: IntArray | None = None,
    ) -> None:
        units = np.arange(table.rows) if units is None else units
        self.codes, self._table = codes, table
        #: Makes the same score of the same rows elsewhere.
        self.recipe = partial(
            ByClass,
            codes=codes,
            folds=folds,
            seed=deepcopy(seed),
            settings=settings,
            penalty=penalty,
            units=units,
        )
        self.number = int(codes.max()) + 1
        self._rows = [np.flatnonzero(codes == k) for k in range(self.number)]
        self._of_units = np.empty(int(units.max()) + 1, dtype=np.int64)  # their classes
        self._of_units[units] = codes
        #: The fold of every unit: always the same, but for classes that would not be in every fold.
        self._folds: IntArray = generator(seed).permutation(len(self._of_units)) % folds
        for k in range(self.number):
            mine = np.flatnonzero(self._of_units == k)
            if np.bincount(self._folds[mine], minlength=folds).min() == 0:
                self._folds[mine[np.argsort(self._folds[mine], kind="stable")]] = np.arange(len(mine)) % folds
        self.labels: IntArray = self._folds[units]
        self._every = FamilyScorer(MemoryRows(Partition.folds(table, self.labels), settings))
        self._parts = [self._every]
        if len(self._rows) > 1:
            self._parts = [
                FamilyScorer(MemoryRows(Partition.folds(table.take(rows), self.labels[rows]), settings))
                for rows in self._rows
            ]
        self.size = table.rows
        self.penalty = arc_penalty(penalty, self.size, len(table.names))
        super().__init__(table.variables, registered())

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        totals = [part.totals(batch) for part in self._parts]
        return self._sum(batch, totals) - self.penalty * (batch.sizes - 1)

    def judge(self, batch: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        totals, misfits = zip(*(part.totals_and_misfits(batch) for part in self._parts), strict=True)
        return self._sum(batch, totals) - self.penalty * (batch.sizes - 1), np.sum(misfits, axis=0)

    def leads(self, batch: FamilyBatch) -> FloatArray:
        """Combine what the residuals of all classes say, each -log p: by Fisher's method, or the clearest."""
        if len(self._parts) == 1:
            return self._every.leads(batch)
        from scipy.special import gammaincc

        found = np.stack([part.leads(batch) for part in self._parts])
        together = -np.log(np.maximum(gammaincc(len(found), found.sum(axis=0)), 1e-300))
        return np.maximum(together, found.max(axis=0) - math.log(len(found)))

    def _sum(self, batch: FamilyBatch, totals: Sequence[FloatArray]) -> FloatArray:
        """Add up the totals of all classes; where a class has none, of its rows under the fit to all rows."""
        found = np.stack(totals)
        unfit = np.flatnonzero(~np.isfinite(found).all(axis=0))
        if len(unfit) and len(self._parts) > 1:
            by_row = self._every.rows(batch.only(unfit))
            for k, rows in enumerate(self._rows):
                found[k, unfit] = np.where(
                    np.isfinite(found[k, unfit]), found[k, unfit], by_row[:, rows].sum(axis=1)
                )
        return found.sum(axis=0)

    def by_class(self, families: Sequence[Family]) -> FloatArray:
        """Return the log-density of every row under each class, whichever its own: classes × families × rows.

        Rows are under parameters that were fitted without their folds.
        """
        scorers = self._parts
        if len(scorers) > 1:
            scorers = [FamilyScorer(part.store.evaluating(self._table, self.labels)) for part in scorers]  # type: ignore[attr-defined]
        return _by_scorer(self._checked(families), scorers, self._every)

    def of_others(self, families: Sequence[Family], queries: Table) -> FloatArray:
        """Return the log-density of other rows under each class: classes × families × rows."""
        tables = [*(self._table.take(rows) for rows in self._rows), self._table]
        *parts, every = (
            FamilyScorer(MemoryRows(Partition.holdout(table, queries), self._every.store.settings))
            for table in tables
        )
        return _by_scorer(self._checked(families), parts, every)

    def whole(self, families: Sequence[Family]) -> FloatArray:
        """Return the same under parameters that were fitted to all classes together: families × rows."""
        return self._every.rows(self._checked(families))

    def log_prior(self, smoothing: float = 1.0) -> FloatArray:
        """Return the log-probability of every class by the units outside a unit's fold: classes × units."""
        counts = np.zeros((self.number, int(self._folds.max()) + 1))
        np.add.at(counts, (self._of_units, self._folds), 1.0)
        others = counts.sum(axis=1, keepdims=True) - counts + smoothing / self.number
        logs: FloatArray = np.log(others / others.sum(axis=0))
        return logs[:, self._folds]


def _by_scorer(batch: FamilyBatch, scorers: Sequence[FamilyScorer], otherwise: FamilyScorer) -> FloatArray:
    """Return what every scorer says, or another one of families that it cannot fit: × families × rows."""
    out, every = np.stack([scorer.rows(batch) for scorer in scorers]), None
    for found in out:
        unfit = ~np.isfinite(found).all(axis=1)
        if unfit.any():
            every = otherwise.rows(batch) if every is None else every
            found[unfit] = every[unfit]
    return out
