"""Scores of rows that workers hold: the numbers of `spbn.scores`, from sums over rows alone."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from spbn.distributed.blends import HeldBlends
from spbn.distributed.holdings import Holdings
from spbn.distributed.tables import SetTotals
from spbn.nodes.base import NodeType
from spbn.nodes.blend import NODE_TYPE as BLEND
from spbn.nodes.ckde import family_sets
from spbn.nodes.families import FamilyBatch
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.regression import MomentStack, log_likelihoods
from spbn.scores.base import Score


@final
class HeldBIC(Score):
    """`spbn.BIC` of linear Gaussian nodes."""

    def __init__(self, holdings: Holdings) -> None:
        self._moments = MomentStack.of([holdings.every])
        self._rows = holdings.every.count
        super().__init__(holdings.names, [NodeType.LG])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        totals, _ = log_likelihoods(self._moments, self._moments, batch.members, batch.sizes)
        return totals - 0.5 * math.log(self._rows) * (batch.sizes + 1)


@final
class HeldLikelihood(Score):
    """`spbn.ValidatedLikelihood`, or the likelihood of its validation rows."""

    def __init__(
        self, holdings: Holdings, totals: SetTotals, *, validates: HeldLikelihood | None = None
    ) -> None:
        self._holdings = holdings
        self._sets = totals
        self._is_validation = validates is not None
        self._blends: HeldBlends = HeldBlends(totals.densities) if validates is None else validates._blends
        if validates is None:
            self.validation = HeldLikelihood(holdings, totals, validates=self)
        super().__init__(holdings.names, [NodeType.LG, NodeType.CKDE, BLEND])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        out = np.full(len(batch), -np.inf)
        lines, kernels = batch.of_type(NodeType.LG), batch.of_type(NodeType.CKDE)
        if lines.any():
            out[lines] = self._lines(batch.only(lines))
        if kernels.any():
            joints, parents = family_sets(batch.only(kernels))
            found = self._sets.totals([*joints, *parents], validation=self._is_validation)
            whole, part = np.split(found, 2)
            with np.errstate(invalid="ignore"):
                out[kernels] = np.where(np.isfinite(whole) & np.isfinite(part), whole - part, -np.inf)
        blends = batch.of_type(BLEND)
        if blends.any():
            mixed = self._blends.validation_totals if self._is_validation else self._blends.totals
            out[blends] = mixed(batch.only(blends))
        return out

    def _lines(self, batch: FamilyBatch) -> FloatArray:
        folds = self._holdings.folds
        groups: IntArray = np.array([folds]) if self._is_validation else np.arange(folds)
        train, test = self._holdings.training.only(groups), self._holdings.queried.only(groups)
        return log_likelihoods(train, test, batch.members, batch.sizes)[0]
