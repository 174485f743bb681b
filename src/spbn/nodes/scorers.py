"""How families are scored, one scorer for every node type, on rows that may be anywhere (`rows.store`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import FitError
from spbn.kernels.multiscale import SCALES
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FamilyCounts, FitSettings, RowStore, ScoredType
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

SCALE_FOLDS = 10  # of the cross-validation that chooses a scale
FEWEST_TO_SCALE = 4  # rows, for that
FEWEST_TO_BLEND = 4  # rows, for the weights of a blend
AS_IT_IS = SCALES.index(1.0)  # the bandwidth of the rule
MOST_WEIGHTS = 1 << 18  # families whose weights are remembered


class FittedType(Protocol):
    """A node type, as far as fits are concerned."""

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> Any:
        """Fit the density of a node given its parents; raise a `FitError` if these rows do not allow it."""


@final
class FoldByFold:
    """Scores families of any type: they are fitted to the training rows of every group.

    Nothing is shared among them.

    Parameters
    ----------
    centred
        Subtract the medians from the rows, which saves digits if it makes no difference to the type.
    """

    def __init__(self, node_type: FittedType, rows: RowStore, *, centred: bool = False) -> None:
        self._type = node_type
        self._rows = rows
        self._centred = centred

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        return self.rows(families).sum(axis=1)

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces; a family that cannot be fitted is -inf throughout."""
        rows = np.empty((len(families), self._rows.pieces))
        for number, members in enumerate(families.column_tuples):
            *parents, node = (families.columns[column] for column in members)
            rows[number] = self._family_rows(node, tuple(parents))
        return rows

    def _family_rows(self, node: str, parents: tuple[str, ...]) -> FloatArray:
        parts = []
        for train, test in self._rows.fold_tables((node, *parents), centred=self._centred):
            try:
                cpd = self._type.fit(train, node, parents, self._rows.settings)
            except FitError:
                return np.full(self._rows.pieces, -np.inf)
            parts.append(cpd.logpdf(test))
        rows = self._rows.by_piece(parts)
        return rows if np.isfinite(rows).all() else np.full(len(rows), -np.inf)


@final
class LinearScorer:
    """Scores linear Gaussian families from moments, or from the rows where moments lack digits."""

    def __init__(self, node_type: FittedType, rows: RowStore) -> None:
        self._rows = rows
        self._from_rows = FoldByFold(node_type, rows, centred=True)

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        totals, inexact = self._rows.linear_totals(families)
        if inexact.any():
            totals[inexact] = self._from_rows.totals(families.only(inexact))
        return totals

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces; a family that cannot be fitted is -inf throughout."""
        out = np.empty((len(families), self._rows.pieces))
        for f, columns in enumerate(families.each):
            values = self._rows.linear_values(columns)
            out[f] = self._from_rows.rows(families.only(np.array([f])))[0] if values is None else values
        return out


@final
class CountingScorer:
    """Scores discrete families from the counts of every group."""

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._smoothing = rows.settings.smoothing

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where an impossible level occurs."""
        found: dict[tuple[int, ...], float] = {}
        for columns, counts in self._rows.counts(families.column_tuples):
            logs, occur = self._log_probabilities(counts), counts.test > 0
            found[columns] = float(np.sum(logs[occur] * counts.test[occur]))
        return np.array([found.get(columns, -np.inf) for columns in families.column_tuples])

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces."""
        found: dict[tuple[int, ...], FloatArray] = {}
        for columns, counts in self._rows.counts(families.column_tuples):
            logs = self._log_probabilities(counts)
            if counts.cells is None:
                logs = np.where(counts.test > 0, logs, 0.0)  # 0 times -inf is nothing
                found[columns] = (logs * counts.test).sum(axis=(1, 2))
            else:
                group = np.repeat(np.arange(len(logs)), counts.test.sum(axis=(1, 2)))
                found[columns] = logs.reshape(len(logs), -1)[group, counts.cells]
        nothing = np.full(self._rows.pieces, -np.inf)
        return np.stack([found.get(columns, nothing) for columns in families.column_tuples])

    def _log_probabilities(self, counts: FamilyCounts) -> FloatArray:
        """Groups × configurations × levels."""
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(smoothed(counts.train, self._smoothing)[0])
        return logs


def smoothed(counts: IntArray, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of levels, last axis, under the configurations that occur, and any other."""
    levels = counts.shape[-1]
    rows = counts.sum(axis=-1, keepdims=True)
    overall = counts.sum(axis=-2, keepdims=True)
    if smoothing > 0.0:
        return (counts + smoothing / levels) / (rows + smoothing), np.full(levels, 1.0 / levels)
    total = overall.sum(axis=-1, keepdims=True)
    marginal = np.where(total > 0, overall / np.maximum(total, 1), 1.0 / levels)
    return np.where(rows > 0, counts / np.maximum(rows, 1), marginal), marginal.reshape(-1, levels)[0]


@final
class KernelScorer:
    """Scores CKDE families from densities of sets of columns that families share.

    Under a named bandwidth rule a CKDE needs two set functions (`rows.memory`): J(S), the
    log-density of the variables S with the bandwidth of |S| dimensions, and M(S), the same with
    that of |S| + 1 dimensions:

        score(i | Pa) = J(Pa ∪ {i}) - M(Pa).
    """

    def __init__(self, rows: RowStore) -> None:
        self._densities = rows.densities

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        return self._densities.conditional_totals(families)[:, 0]

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces; a family that cannot be fitted is -inf throughout."""
        return self._densities.conditional_values(families)[:, 0]


@final
class ScaledKernelScorer:
    """Scores CKDE families, each at the scale of its bandwidth that predicts best.

    In a cross-validation that is the scale with the best score; elsewhere, the one that a
    cross-validation of the training rows chooses (`RowStore.inner`).
    """

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        totals = self._rows.scaled_densities.conditional_totals(families)
        chosen = _best_scales(totals) if self._rows.is_crossed else self._chosen(families)
        return totals[np.arange(len(families)), chosen]

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces; a family that cannot be fitted is -inf throughout."""
        rows = self._rows.scaled_densities.conditional_values(families)
        return rows[np.arange(len(families)), self._chosen(families)]

    def _chosen(self, families: FamilyBatch) -> IntArray:
        """Return which scale every family has; that of the rule if there are too few rows to choose."""
        few = not self._rows.is_crossed and self._rows.train.counts.min() < FEWEST_TO_SCALE
        inner = None if few else self._rows.inner
        if inner is None:
            return np.full(len(families), AS_IT_IS)
        return _best_scales(inner.scaled_densities.conditional_totals(families))


def best_scale(table: Table, settings: FitSettings) -> float:
    """Return the scale of a family's bandwidth that predicts best; of parents and, last, the node."""
    if table.rows < FEWEST_TO_SCALE:
        return 1.0
    partition = Partition.folds(table, fold_labels(table.rows, min(SCALE_FOLDS, table.rows), 0))
    densities = MemoryRows(partition, settings).scaled_densities
    return SCALES[_best_scales(densities.conditional_totals(FamilyBatch.single(table.names)))[0]]


def _best_scales(totals: FloatArray) -> IntArray:
    """Return the scale with the greatest of families × scales; that of the rule where none can be fitted."""
    return np.where(np.isfinite(totals).any(axis=1), totals.argmax(axis=1), AS_IT_IS)


@final
class BlendScorer:
    """Scores blend families: their components are shared with other families, and their weights remembered.

    In a cross-validation, the weights of a family are fitted to the same rows that are scored, each under
    components that were not fitted to it: four numbers, beside which the rows are many. Elsewhere they
    come from a cross-validation of the training rows (`RowStore.inner`).
    """

    def __init__(self, node_type: ScoredType, line_type: ScoredType, rows: RowStore) -> None:
        self._type = node_type
        self._line = rows.scorer(line_type)
        self._rows = rows
        self._weights: dict[bytes, FloatArray] = {}

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        if not self._rows.is_crossed:
            return self.rows(families).sum(axis=1)
        out = np.empty(len(families))
        for numbers, mixtures in self._rows.mixtures(families, self._line):
            for f, (weights, total) in zip(numbers, mixtures.best(), strict=True):
                out[f] = total
                self._remember(families.keys[f], weights)
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces; a family that cannot be fitted is -inf throughout."""
        out = np.full((len(families), self._rows.pieces), -np.inf)
        few = not self._rows.is_crossed and self._rows.train.counts.min() < FEWEST_TO_BLEND
        inner = None if few else self._rows.inner
        if inner is None:
            return out
        chooser = inner.scorer(self._type)
        assert isinstance(chooser, BlendScorer)
        weights = chooser.weights(families)
        for numbers, mixtures in self._rows.mixtures(families, self._line):
            out[numbers] = mixtures.values(weights[numbers])
        return out

    def weights(self, families: FamilyBatch) -> FloatArray:
        """Families × components: the weights that predict evaluated rows best; 0 if none can be fitted."""
        unknown = np.array([key not in self._weights for key in families.keys])
        if unknown.any():
            self.totals(families.only(unknown))
        return np.stack([self._weights[key] for key in families.keys])

    def _remember(self, key: bytes, weights: FloatArray) -> None:
        self._weights[key] = weights
        if len(self._weights) > MOST_WEIGHTS:
            self._weights.pop(next(iter(self._weights)))
