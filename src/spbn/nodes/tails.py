"""Tails: what a blend says about rows that are far from everything.

Student's t with 2 degrees of freedom at the median of the node, as wide as most of its rows are. It ignores
the parents, so that no row is impossible, and no single one decides what is learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.files import ArrayReader, ArrayWriter, numbers, refuse
from spbn.nodes.base import ComponentMixture
from spbn.numerics.curves import held_squares, tail_log_densities
from spbn.numerics.smooth import leave_one_out_totals
from spbn.numerics.spreads import FAR, spreads_of
from spbn.numerics.student import Component
from spbn.rows.families import FamilyBatch
from spbn.rows.store import Columns, RowStore, SumRequest
from spbn.tables.table import Table


@final
@dataclass(frozen=True)
class Tails(ComponentMixture):
    """A t distribution with 2 degrees of freedom, whatever the parents are."""

    parents = ()
    centre: float
    width: float

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        return tail_log_densities(
            columns, np.array([0, columns.shape[1]]), np.array([self.width]), self.centre
        )

    def pool(self, others: Sequence[Tails]) -> Tails:
        """Return their mean."""
        every = (self, *others)
        centre, width = np.mean([(tails.centre, tails.width) for tails in every], axis=0)
        return Tails(float(centre), float(width))

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return {"centre": self.centre, "width": self.width}

    @staticmethod
    def from_record(record: Mapping[str, Any], arrays: ArrayReader) -> Tails:
        centre, width = numbers(record, "centre", ()), numbers(record, "width", ())
        if not width > 0.0:
            refuse(f"the tails of {record['node']!r} must have a positive width. Got {width}.")
        return Tails(float(centre), float(width))

    def _components(self, parents: FloatArray) -> list[Component]:
        rows = parents.shape[1]
        return [Component(1.0, 2.0, np.full(rows, self.centre), np.full(rows, self.width))]


@final
class TailScorer:
    """Scores families by the tails of their nodes, which the parents have nothing to do with."""

    function = staticmethod(tail_log_densities)

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._known: dict[int, FloatArray] = {}

    def totals(self, families: FamilyBatch) -> FloatArray:
        return self.rows(families).sum(axis=1)

    def rows(self, families: FamilyBatch) -> FloatArray:
        return np.stack([self._of_node(node) for node in families.nodes.tolist()])

    def parameters(self, families: Sequence[Columns]) -> Iterator[tuple[int, SumRequest]]:
        """Yield the numbers of families, and what `tail_log_densities` needs for them."""
        fitted_by, folds = self._rows.fitted_by, self._rows.inner_folds
        assert fitted_by is not None
        assert folds is not None
        chooser = self if fitted_by is self._rows else TailScorer(fitted_by)
        for number, columns in enumerate(families):
            centre, widths = chooser._by_fold(columns[-1])
            yield number, SumRequest(columns, (widths[list(folds)],), (centre,))

    def fit(self, node: int) -> Tails:
        """Return the tails of a node in all rows."""
        centre, widths = self._by_fold(node)
        return Tails(centre, float(widths[-1]))

    def _of_node(self, node: int) -> FloatArray:
        if node not in self._known:
            if self._rows.inner_folds is None:
                tables = self._rows.fold_tables((self._rows.variables[node].name,))
                by_group = [_tails_of(train).logpdf_of_columns(test.columns) for train, test in tables]
                self._known[node] = self._rows.by_piece(by_group)
            else:
                ((_, request),) = self.parameters([(node,)])
                (self._known[node],) = self._rows.values(tail_log_densities, [request])
        return self._known[node]

    def _by_fold(self, node: int) -> tuple[float, FloatArray]:
        """Return the centre, and the widths in all folds but each and, last, in all."""
        spreads = self._rows.spreads
        centre, low, high = (float(values[node]) for values in (spreads.centre, *spreads.bounds(FAR)))
        (squares,) = self._rows.sums(held_squares, [SumRequest((node,), (), (centre, low, high))])
        counts = self._rows.test.counts.astype(np.float64)
        others = leave_one_out_totals(squares) / leave_one_out_totals(counts)
        widths = np.sqrt(np.append(others, squares.sum() / counts.sum()))
        return centre, np.where(widths > 0.0, widths, spreads.scale[node])


def _tails_of(table: Table) -> Tails:
    spreads = spreads_of(table.columns)
    centre, low, high = (values[0] for values in (spreads.centre, *spreads.bounds(FAR)))
    starts = np.array([0, table.rows])
    width = math.sqrt(held_squares(table.columns, starts, centre, low, high)[0] / table.rows)
    return Tails(float(centre), float(width or spreads.scale[0]))
