"""Scores of rows that workers hold: the numbers of `spbn.scores`, from sums over rows alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.dask.blends import HeldBlends
from spbn.dask.by_configuration import HeldByConfiguration
from spbn.dask.counting import HeldCounts
from spbn.dask.groupby import Divisions
from spbn.dask.rowstore import Holdings
from spbn.dask.tables import SetTotals, differences
from spbn.nodes.base import NodeType
from spbn.nodes.blend import NODE_TYPE as BLEND
from spbn.nodes.families import of_type
from spbn.numerics.regression import MomentStack, log_likelihoods
from spbn.rows.configurations import MOST_BITS
from spbn.rows.families import FamilyBatch
from spbn.scores.base import Score
from spbn.scores.gaussian import parameters
from spbn.tables.table import Variable


@final
class HeldBIC(Score):
    """`spbn.scores.BIC` of linear Gaussian and discrete nodes; all rows are in one fold."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._moments = MomentStack.of([holdings.every])
        self._counts = HeldCounts(holdings, smoothing=0.0)
        self._divided = HeldByConfiguration(Divisions(holdings))
        super().__init__(holdings.variables, [NodeType.LG, NodeType.DISCRETE])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        out = np.full(len(batch), -np.inf)
        sorts = Sorts.of(batch, self.variables)
        if sorts.plain.any():
            plain = batch.only(sorts.plain)
            out[sorts.plain] = log_likelihoods(self._moments, self._moments, plain.members, plain.sizes)[0]
        if sorts.divided.any():
            out[sorts.divided] = self._divided.totals(batch.only(sorts.divided), [0])
        if sorts.discrete.any():
            every = np.ones((1, self._holdings.folds + 1), dtype=np.int64)
            out[sorts.discrete] = self._counts.totals(columns_of(batch.only(sorts.discrete)), every, every)
        return out - 0.5 * math.log(self._holdings.every.count) * parameters(batch, self.variables)


@final
class HeldLikelihood(Score):
    """`spbn.scores.ValidatedLikelihood`, or the likelihood of its validation rows."""

    def __init__(
        self,
        holdings: Holdings,
        totals: SetTotals,
        *,
        smoothing: float = 1.0,
        validates: HeldLikelihood | None = None,
    ) -> None:
        self._holdings = holdings
        self._sets = totals
        self._is_validation = validates is not None
        if validates is None:
            self._blends = HeldBlends(totals.densities)
            self._counts = HeldCounts(holdings, smoothing)
            self._divided = HeldByConfiguration(Divisions(holdings), totals.densities.rule, self._blends)
            self.validation = HeldLikelihood(holdings, totals, validates=self)
        else:
            self._blends, self._counts = validates._blends, validates._counts
            self._divided = validates._divided
        super().__init__(holdings.variables, [NodeType.LG, NodeType.CKDE, BLEND, NodeType.DISCRETE])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        out = np.full(len(batch), -np.inf)
        sorts = Sorts.of(batch, self.variables)
        for node_type, compute in (
            (NodeType.LG, self._lines),
            (NodeType.CKDE, self._kernels),
            (BLEND, self._mixtures),
        ):
            plain = sorts.plain & of_type(batch, node_type)
            if plain.any():
                out[plain] = compute(batch.only(plain))
            divided = sorts.divided & of_type(batch, node_type)
            if divided.any():
                out[divided] = self._divided.totals(batch.only(divided), self._labels)
        if sorts.discrete.any():
            out[sorts.discrete] = self._tables(batch.only(sorts.discrete))
        return out

    @property
    def _labels(self) -> list[int]:
        return self._holdings.labels(self._is_validation)

    def _lines(self, batch: FamilyBatch) -> FloatArray:
        groups = np.array(self._labels)
        train, test = self._holdings.training.only(groups), self._holdings.queried.only(groups)
        return log_likelihoods(train, test, batch.members, batch.sizes)[0]

    def _kernels(self, batch: FamilyBatch) -> FloatArray:
        joints, parents = batch.sets
        found = self._sets.totals([*joints, *parents], validation=self._is_validation)
        return differences(*np.split(found, 2))

    def _mixtures(self, batch: FamilyBatch) -> FloatArray:
        return self._blends.validation_totals(batch) if self._is_validation else self._blends.totals(batch)

    def _tables(self, batch: FamilyBatch) -> FloatArray:
        labels = np.arange(self._holdings.folds + 1)
        test = labels == np.array(self._labels)[:, None]
        train = ~test & (labels < self._holdings.folds)  # the other folds, or all
        return self._counts.totals(columns_of(batch), train.astype(np.int64), test.astype(np.int64))


class Sorts(NamedTuple):
    """Families by how they are scored: those that no type admits are of none of these sorts.

    Attributes
    ----------
    plain, divided
        Continuous nodes without and with discrete parents.
    discrete
        Discrete nodes.
    """

    plain: BoolArray
    divided: BoolArray
    discrete: BoolArray

    @classmethod
    def of(cls, batch: FamilyBatch, variables: Sequence[Variable]) -> Sorts:
        """Sort families of some variables."""
        is_discrete = np.array([variable.is_discrete for variable in variables])
        bits = batch.parents @ np.log2([max(len(variable.levels), 1) for variable in variables])
        node, table = is_discrete[batch.nodes], of_type(batch, NodeType.DISCRETE)
        numbers, categories = batch.parents & ~is_discrete, batch.parents & is_discrete
        line = ~node & ~table & (bits < MOST_BITS)
        divided = categories.any(axis=1)
        discrete = node & table & ~numbers.any(axis=1) & (bits < MOST_BITS)
        return cls(line & ~divided, line & divided, discrete)


def columns_of(batch: FamilyBatch) -> list[tuple[int, ...]]:
    """Return the column numbers of every family, parents in order and the node last."""
    return [tuple(members.tolist()) for members in batch.each]
