"""Scores of continuous nodes with discrete parents, whatever the type of their densities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.nodes.base import NodeType

if TYPE_CHECKING:
    from spbn.nodes.families import FamilyBatch
    from spbn.nodes.workbench import Part, Workbench


@final
class ConfigurationScorer:
    """Scores families of one type whose nodes are continuous and have discrete parents.

    Every configuration has a workbench of its own, which families share. Where one cannot be fitted to a
    group's training rows of a configuration, it is fitted to all of the group's training rows.
    """

    def __init__(self, node_type: NodeType, bench: Workbench) -> None:
        self._type = node_type
        self._bench = bench

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted even to all rows."""
        return self._collected(families, by_row=False)[:, 0]

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × queried rows; a family that cannot be fitted is -inf throughout."""
        return self._collected(families, by_row=True)

    def _collected(self, families: FamilyBatch, *, by_row: bool) -> FloatArray:
        discrete = self._bench.partition.table.discrete
        width = self._bench.partition.queries if by_row else 1
        out = np.zeros((len(families), width))
        for columns, chosen in _alike(families.parents & discrete):
            batch = families.only(chosen).without_parents(discrete)
            out[chosen] = self._of_set(tuple(np.flatnonzero(columns).tolist()), batch, by_row=by_row)
        out[~np.isfinite(out).all(axis=1)] = -np.inf
        return out

    def _of_set(self, columns: tuple[int, ...], batch: FamilyBatch, *, by_row: bool) -> FloatArray:
        """Score families with the same discrete parents, which have been left out of the batch."""
        parts = self._bench.parts(columns)
        narrow = batch.among(~self._bench.partition.table.discrete)
        queries = self._bench.partition.queries
        out = np.zeros((len(batch), queries if by_row else 1))
        lacking = np.tile(parts.starved, (len(batch), 1))  # families × queries that all rows have to answer
        for part in parts.by_configuration.values():
            scorer = part.bench.scorer(self._type)
            found = scorer.rows(narrow) if by_row else scorer.totals(narrow)[:, None]
            unfit = np.flatnonzero(~np.isfinite(found).all(axis=1))
            found[unfit] = 0.0
            if by_row:
                out[:, part.places] = found
            else:
                out += found
            if len(unfit):
                rows = self._group_by_group(part, narrow.only(unfit))
                there = np.isfinite(rows)
                lacking[np.ix_(unfit, part.places)] = ~there
                if by_row:
                    out[np.ix_(unfit, part.places)] = np.where(there, rows, 0.0)
                else:
                    out[unfit, 0] += np.where(there, rows, 0.0).sum(axis=1)
        self._add_rest(out, lacking, batch, by_row=by_row)
        return out

    def _group_by_group(self, part: Part, batch: FamilyBatch) -> FloatArray:
        """Families × queries of a configuration; -inf in groups to which a family cannot be fitted."""
        if part.bench.partition.groups == 1:
            return np.full((len(batch), len(part.places)), -np.inf)
        found = [bench.scorer(self._type).rows(batch) for bench in part.bench.singles]
        return np.concatenate(found, axis=1)

    def _add_rest(self, out: FloatArray, lacking: BoolArray, batch: FamilyBatch, *, by_row: bool) -> None:
        """Put in the queries that have to be answered by what is fitted to all training rows."""
        for asked, chosen in _alike(lacking):
            if not asked.any():
                continue
            rows = self._bench.asking(asked).scorer(self._type).rows(batch.only(chosen))
            if by_row:
                out[np.ix_(chosen, np.flatnonzero(asked))] = rows
            else:
                out[chosen, 0] += rows.sum(axis=1)


def _alike(rows: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield every different row of a matrix, and the numbers of the rows that are like it."""
    found: dict[bytes, list[int]] = {}
    for number, packed in enumerate(np.packbits(rows, axis=1)):
        found.setdefault(packed.tobytes(), []).append(number)
    for numbers in found.values():
        yield rows[numbers[0]], np.array(numbers)
