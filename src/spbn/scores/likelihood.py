"""Predictive log-likelihoods as scores: cross-validated, hold-out, and both together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn.kernels.estimates import BandwidthRule
from spbn.nodes.base import NodeType, registered
from spbn.nodes.families import Family
from spbn.nodes.family_scorer import FamilyScorer
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, RowStore
from spbn.scores.base import Score
from spbn.scores.preview import Preview
from spbn.structure import Structure
from spbn.tables.reader import Missing, as_table
from spbn.tables.splits import fold_labels, holdout_rows
from spbn.tables.table import Table


@final
class CVLikelihood(Score):
    """The cross-validated log-likelihood: every fold under parameters fitted to the others.

    Parameters
    ----------
    folds
        How many, or a label for every row.
    seed
        Decides which row goes into which fold.
    bandwidth
        "scott", "silverman", or a function (see `spbn.kernels.estimates`).
    engine
        How Gaussian sums are computed (see `spbn.kernels`).
    smoothing
        How many rows are added to every configuration of a discrete node's parents.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.CVLikelihood(data, folds=5, seed=0)
    >>> bool(score.local("B", [], "ckde") > score.local("B", [], "lg"))  # B has two modes
    True
    """

    #: Fold of every row.
    folds: IntArray

    def __init__(
        self,
        data: Any,
        *,
        folds: int | npt.ArrayLike = 10,
        seed: Seed = 0,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
    ) -> None:
        table = as_table(data, training=True, missing=missing)
        self.folds = fold_labels(table.rows, folds, seed, discrete=table.level_codes)
        settings = FitSettings(bandwidth, engine, smoothing)
        self._prepare(MemoryRows(Partition.folds(table, self.folds), settings))

    @classmethod
    def of_rows(cls, rows: RowStore) -> CVLikelihood:
        """Make the score of a cross-validation of rows that may be anywhere."""
        score = cls.__new__(cls)
        score._prepare(rows)
        return score

    def _prepare(self, rows: RowStore) -> None:
        self._scorer = FamilyScorer(rows)
        super().__init__(rows.variables, registered())

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        return self._scorer.totals(batch)

    @cached_property
    def preview(self) -> Preview | None:
        """Estimates from some of the rows; None if there are too few for that to be worthwhile."""
        return Preview.of(self._scorer.store)

    def rows(self, family: Family) -> FloatArray:
        """Log-density of every row under parameters fitted without its fold."""
        return self._scorer.rows(self._cache.checked([family]))[0]


@final
class HoldoutLikelihood(Score):
    """The log-likelihood of rows that were held out, under parameters fitted to the rest.

    Parameters
    ----------
    validation
        The fraction to hold out; or a table, in which case all of `data` is for training.
    seed
        Decides which rows are held out.
    bandwidth, engine, smoothing
        As for `CVLikelihood`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.HoldoutLikelihood(data, validation=0.25, seed=0)
    >>> bool(score.local("D", ["C"], "lg") > score.local("D", [], "lg"))
    True
    """

    def __init__(
        self,
        data: Any,
        *,
        validation: Any = 0.2,
        seed: Seed = 0,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
    ) -> None:
        train, test = _split(as_table(data, training=True, missing=missing), validation, seed, missing)
        settings = FitSettings(bandwidth, engine, smoothing)
        self._prepare(MemoryRows(Partition.holdout(train, test), settings))

    @classmethod
    def of_rows(cls, rows: RowStore) -> HoldoutLikelihood:
        """Make the score of held-out rows that may be anywhere."""
        score = cls.__new__(cls)
        score._prepare(rows)
        return score

    def _prepare(self, rows: RowStore) -> None:
        self._scorer = FamilyScorer(rows)
        super().__init__(rows.variables, registered())

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        return self._scorer.totals(batch)

    def rows(self, family: Family) -> FloatArray:
        """Log-density of every held-out row."""
        return self._scorer.rows(self._cache.checked([family]))[0]


@final
class ValidatedLikelihood(Score):
    """A cross-validated likelihood on training rows, along with the likelihood of validation rows.

    A search climbs the first and stops by the second.

    Parameters
    ----------
    folds
        How many, or a label for every training row.
    validation
        The fraction of validation rows; or a table, in which case all of `data` is for training.
    seed
        Decides which rows are for validation, and which go into which fold.
    bandwidth, engine, smoothing
        As for `CVLikelihood`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.ValidatedLikelihood(data, folds=5, validation=0.2, seed=0)
    >>> structure = spbn.datasets.synthetic_structure()
    >>> bool(score.total(structure) < score.validation_total(structure))  # of four times as many rows
    True
    """

    #: The likelihood of the validation rows.
    validation: HoldoutLikelihood

    def __init__(
        self,
        data: Any,
        *,
        folds: int | npt.ArrayLike = 10,
        validation: Any = 0.2,
        seed: Seed = 0,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
    ) -> None:
        split_seed, fold_seed = generator(seed).spawn(2)
        train, test = _split(as_table(data, training=True, missing=missing), validation, split_seed, missing)
        labels = fold_labels(train.rows, folds, fold_seed, held_out=test.rows, discrete=train.level_codes)
        settings = FitSettings(bandwidth, engine, smoothing)
        training = MemoryRows(Partition.folds(train, labels), settings)
        # The validation rows choose nothing that the training rows have not chosen.
        held_out = MemoryRows(Partition.holdout(train, test), settings, inner=lambda: training)
        self._prepare(training, held_out)

    @classmethod
    def of_rows(cls, training: RowStore, held_out: RowStore) -> ValidatedLikelihood:
        """Make the score of a cross-validation of rows that may be anywhere, and of validation rows."""
        score = cls.__new__(cls)
        score._prepare(training, held_out)
        return score

    def _prepare(self, training: RowStore, held_out: RowStore) -> None:
        self._training = CVLikelihood.of_rows(training)
        self.validation = HoldoutLikelihood.of_rows(held_out)
        super().__init__(training.variables, registered())

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        return self._training._compute(batch)  # bypasses its cache: this score has its own

    @cached_property
    def preview(self) -> Preview | None:
        """Estimates from some of the training rows; None if there are too few for that to be worthwhile."""
        return self._training.preview

    def rows(self, family: Family) -> FloatArray:
        """Log-density of every training row under parameters fitted without its fold."""
        return self._training.rows(family)

    def validation_rows(self, family: Family) -> FloatArray:
        """Log-density of every validation row under parameters fitted to the training rows."""
        return self.validation.rows(family)

    def validation_local(
        self, node: str, parents: Iterable[str] = (), type: NodeType | str = NodeType.LG
    ) -> float:
        """Validation log-likelihood of one node given its parents."""
        return self.validation.local(node, parents, type)

    def validation_local_many(
        self, families: Iterable[Family | tuple[str, Iterable[str], NodeType | str]]
    ) -> FloatArray:
        """Validation log-likelihoods of many families."""
        return self.validation.local_many(families)

    def validation_total(self, structure: Structure) -> float:
        """Validation log-likelihood of a structure."""
        return self.validation.total(structure)


def _split(table: Table, validation: Any, seed: Seed, missing: Missing) -> tuple[Table, Table]:
    if np.isscalar(validation):
        train, test = holdout_rows(table.rows, validation, seed, discrete=table.level_codes)  # type: ignore[arg-type]
        return table.take(train), table.take(test)
    return table, as_table(validation, variables=table.variables, missing=missing)
