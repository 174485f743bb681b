"""Scores of CKDE families, from densities of sets of columns that families share."""

from __future__ import annotations

from typing import final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.kernels.conditional import FAR
from spbn.kernels.multiscale import SCALES
from spbn.nodes.base import FitSettings, NodeType
from spbn.nodes.densities import SetDensities, VariableSet
from spbn.nodes.families import FamilyBatch
from spbn.nodes.partition import Partition
from spbn.nodes.workbench import Workbench
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

FOLDS, FEWEST_ROWS = 10, 4  # of the cross-validation that chooses a scale
AS_IT_IS = SCALES.index(1.0)  # the bandwidth of the rule


@final
class KernelScorer:
    """Scores CKDE families.

    Under a named bandwidth rule a CKDE needs two set functions (`SetDensities`): J(S), the
    log-density of the variables S with the bandwidth of |S| dimensions, and M(S), the same with
    that of |S| + 1 dimensions:

        score(i | Pa) = J(Pa ∪ {i}) - M(Pa).

    A bandwidth function may treat the child differently from its parents, so nothing can be shared:
    such families are computed one by one. So are those with rows whose parents lie too far out
    to subtract M.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._densities = bench.densities

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        if callable(self._bench.settings.bandwidth):
            return self.rows(families).sum(axis=1)
        joints, parents = family_sets(families)
        whole = self._densities.totals(joints)[0][:, 0]
        part, far = (found[:, 0] for found in self._densities.totals(parents))
        fitted = np.isfinite(whole)
        out = np.full(len(families), -np.inf)
        out[fitted] = whole[fitted] - part[fitted]
        directly = fitted & far
        if directly.any():
            out[directly] = self.rows(families.only(directly)).sum(axis=1)
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × queried rows; a family that cannot be fitted is -inf throughout."""
        return kernel_rows(self._bench, self._densities, families)[:, 0]


@final
class ScaledKernelScorer:
    """Scores CKDE families, each at the scale of its bandwidth that predicts best.

    In a cross-validation that is the scale with the best score; elsewhere, the one that a
    cross-validation of the training rows chooses (`Workbench.inner`).
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        totals = self.by_scale(families)
        chosen = _best_scales(totals) if self._bench.partition.is_crossed else self._chosen(families)
        return totals[np.arange(len(families)), chosen]

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × queried rows; a family that cannot be fitted is -inf throughout."""
        rows = kernel_rows(self._bench, self._bench.scaled_densities, families)
        return rows[np.arange(len(families)), self._chosen(families)]

    def by_scale(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihoods, families × scales."""
        densities = self._bench.scaled_densities
        joints, parents = family_sets(families)
        whole, (part, far) = densities.totals(joints)[0], densities.totals(parents)
        totals = np.where(np.isfinite(whole), whole - np.where(np.isfinite(part), part, 0.0), -np.inf)
        for f, members in enumerate(families.each):
            if far[f].any() and np.isfinite(whole[f]).any():
                totals[f] = densities.family_rows(members).sum(axis=1)
        return totals

    def _chosen(self, families: FamilyBatch) -> IntArray:
        """Return which scale every family has; that of the rule if there are too few rows to choose."""
        partition = self._bench.partition
        if not partition.is_crossed and partition.train.counts.min() < FEWEST_ROWS:
            return np.full(len(families), AS_IT_IS)
        scorer = self._bench.inner.scorer(NodeType.CKDE)
        assert isinstance(scorer, ScaledKernelScorer)  # it has the same settings
        return _best_scales(scorer.by_scale(families))


def best_scale(table: Table, settings: FitSettings) -> float:
    """Return the scale of a family's bandwidth that predicts best; of parents and, last, the node."""
    if table.rows < FEWEST_ROWS:
        return 1.0
    partition = Partition.folds(table, fold_labels(table.rows, min(FOLDS, table.rows), 0))
    *parents, node = table.names
    family = FamilyBatch.named(table.names, [(node, parents, NodeType.CKDE)])
    totals = ScaledKernelScorer(Workbench(partition, settings)).by_scale(family)
    return SCALES[_best_scales(totals)[0]]


def _best_scales(totals: FloatArray) -> IntArray:
    """Return the scale with the greatest of families × scales; that of the rule where none can be fitted."""
    return np.where(np.isfinite(totals).any(axis=1), totals.argmax(axis=1), AS_IT_IS)


def kernel_rows(bench: Workbench, densities: SetDensities, families: FamilyBatch) -> FloatArray:
    """Families × scales × queried rows; -inf throughout where a scale cannot be fitted."""
    if callable(bench.settings.bandwidth):
        return np.stack([densities.family_rows(members) for members in families.each])
    joints, parents = family_sets(families)
    rows, below = densities.rows(joints), densities.rows(parents)
    for f, members in enumerate(families.each):
        if (below[f] < FAR).any():
            rows[f] = densities.family_rows(members)
        else:
            rows[f] -= below[f]
    rows[~np.isfinite(rows).all(axis=2)] = -np.inf
    return rows


def family_sets(families: FamilyBatch) -> tuple[list[VariableSet], list[VariableSet]]:
    """Return the sets of J and M of every family."""
    joints, parents = [], []
    for members, size in zip(families.members.tolist(), families.sizes.tolist(), strict=True):
        joints.append(VariableSet(tuple(sorted(members[:size])), size))
        parents.append(VariableSet(tuple(members[: size - 1]), size))
    return joints, parents
