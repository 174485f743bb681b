"""Log-likelihood of families on rows that their parameters were not fitted to."""

from __future__ import annotations

from typing import final

import numpy as np

from spbn.bandwidth import BandwidthRule
from spbn.cpds import LinearGaussian
from spbn.data import FloatArray
from spbn.errors import FitError
from spbn.scores.families import FamilyBatch
from spbn.scores.kernel_likelihood import KernelLikelihood
from spbn.scores.partition import Partition
from spbn.scores.regression import ILL_CONDITIONED, log_likelihoods
from spbn.structure import Family, NodeType


@final
class PredictiveLikelihood:
    """The log-likelihood of families of any type on a partition: prepared once, asked many times."""

    def __init__(self, partition: Partition, *, bandwidth: BandwidthRule, engine: str) -> None:
        self._partition = partition
        self._kernel_likelihood = KernelLikelihood(partition, bandwidth=bandwidth, engine=engine)

    def totals(self, batch: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where it cannot be fitted."""
        kernel = batch.of_type(NodeType.CKDE)
        out = np.empty(len(kernel))
        out[~kernel] = self._linear_totals(batch.only(~kernel))
        out[kernel] = self._kernel_likelihood.totals(batch.only(kernel).families)
        return out

    def rows(self, family: Family) -> FloatArray:
        """Log-density of every evaluated row, in the order of the data; -inf if it cannot be fitted."""
        linear = family.type == NodeType.LG
        rows = self._linear_rows(family) if linear else self._kernel_likelihood.rows(family)
        return self._partition.in_data_order(rows)

    def _linear_totals(self, batch: FamilyBatch) -> FloatArray:
        partition = self._partition
        totals, share = log_likelihoods(partition.train, partition.test, batch.members, batch.sizes)
        for f in np.flatnonzero((share < ILL_CONDITIONED) & (totals > -np.inf)):
            totals[f] = self._linear_rows(batch.families[f]).sum()
        return totals

    def _linear_rows(self, family: Family) -> FloatArray:
        table = self._partition.table
        parts = []
        for group in range(self._partition.groups):
            queries = table.take(self._partition.query_rows(group))
            try:
                train = table.take(self._partition.training_rows(group))
                parts.append(LinearGaussian.fit(train, family.node, family.parents).logpdf(queries))
            except FitError:
                parts.append(np.full(queries.rows, -np.inf))
        rows = np.concatenate(parts)
        return rows if np.isfinite(rows).all() else np.full(len(rows), -np.inf)
