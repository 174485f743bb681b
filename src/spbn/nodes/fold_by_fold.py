"""The plain way to score families: fit them to the training rows of every group, evaluate the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import FitError

if TYPE_CHECKING:
    from spbn.nodes.base import NodeType
    from spbn.nodes.families import Family, FamilyBatch
    from spbn.nodes.workbench import Workbench


@final
class FoldByFold:
    """Scores families of any type; nothing is shared among them.

    Parameters
    ----------
    centred
        Subtract the medians from the rows, which saves digits if it makes no difference to the type.
    """

    def __init__(self, node_type: NodeType, bench: Workbench, *, centred: bool = False) -> None:
        self._type = node_type
        self._bench = bench
        self._centred = centred

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        return self.rows(families).sum(axis=1)

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × queried rows; a family that cannot be fitted is -inf throughout."""
        rows = np.empty((len(families), self._bench.partition.queries))
        for number, family in enumerate(families.families):
            rows[number] = self._family_rows(family)
        return rows

    def _family_rows(self, family: Family) -> FloatArray:
        partition = self._bench.partition
        rows_of = partition.table if self._centred else partition.original
        table = rows_of.select((family.node, *family.parents))
        parts = []
        for group in range(partition.groups):
            train = table.take(partition.training_rows(group))
            try:
                cpd = self._type.fit(train, family.node, family.parents, self._bench.settings)
            except FitError:
                return np.full(partition.queries, -np.inf)
            parts.append(cpd.logpdf(table.take(partition.query_rows(group))))
        rows = np.concatenate(parts)
        return rows if np.isfinite(rows).all() else np.full(len(rows), -np.inf)
