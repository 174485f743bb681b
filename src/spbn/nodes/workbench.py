"""A partition of rows, the settings of a fit, and what all scorers on it share."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np

from spbn.kernels.multiscale import SCALES
from spbn.nodes.base import FitSettings, NodeType, Scorer, registered
from spbn.nodes.densities import SetDensities
from spbn.nodes.families import FamilyBatch
from spbn.nodes.partition import Partition
from spbn.numerics.arrays import FloatArray
from spbn.numerics.regression import MomentStack


@final
class Workbench:
    """The place where families are scored: on rows that their parameters were not fitted to.

    A batch is grouped by type, and each type's scorer is asked once.
    """

    def __init__(
        self, partition: Partition, settings: FitSettings | None = None, *, inner: Workbench | None = None
    ) -> None:
        self.partition = partition
        self.settings = FitSettings() if settings is None else settings
        self._inner = inner
        self._scorers: dict[str, Scorer] = {}

    @cached_property
    def inner(self) -> Workbench:
        """A cross-validation of the training rows, for what is chosen by one: weights, scales.

        That is the bench itself if it is a cross-validation.
        """
        if self._inner is not None:
            return self._inner
        partition = self.partition.inner
        return self if partition is self.partition else Workbench(partition, self.settings)

    @property
    def moments(self) -> MomentStack:
        """Moments of the training rows of every group."""
        return self.partition.train

    @cached_property
    def densities(self) -> SetDensities:
        """Log-densities of sets of columns."""
        return SetDensities(self.partition, self.settings.bandwidth, self.settings.engine)

    @cached_property
    def scaled_densities(self) -> SetDensities:
        """The same at several scales."""
        bandwidth, engine = self.settings.bandwidth, self.settings.engine
        return SetDensities(self.partition, bandwidth, engine, scales=SCALES)

    def scorer(self, node_type: NodeType) -> Scorer:
        """Return the scorer of a type."""
        if node_type.name not in self._scorers:
            self._scorers[node_type.name] = node_type.scorer(self)
        return self._scorers[node_type.name]

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        out = np.empty(len(families))
        for number in np.unique(families.types):
            chosen = families.types == number
            out[chosen] = self.scorer(registered()[number]).totals(families.only(chosen))
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × evaluated rows, in the order of the data; -inf throughout where one cannot be fitted."""
        out = np.empty((len(families), self.partition.queries))
        for number in np.unique(families.types):
            chosen = families.types == number
            out[chosen] = self.scorer(registered()[number]).rows(families.only(chosen))
        return self.partition.in_data_order(out)
