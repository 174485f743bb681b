"""Rows in groups, each to be evaluated under parameters that are fitted to other rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spbn.data import FloatArray, IntArray, Table, centre_of
from spbn.moments import Moments, leave_one_out
from spbn.scores.regression import MomentStack


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of rows: the folds of a cross-validation, or one group that is held out.

    Attributes
    ----------
    table
        The rows, reordered so that a group is contiguous, and centred.
    spans
        Groups × 6: query rows and twice training rows, see `kernels.exact.log_density`.
    evaluated
        For every queried row of `table`, in their order there, its place in results by row.
    train, test
        Moments of the training rows and of the evaluated rows of every group.
    """

    table: Table
    spans: IntArray
    evaluated: IntArray
    train: MomentStack
    test: MomentStack

    @classmethod
    def folds(cls, table: Table, labels: IntArray) -> Partition:
        """Evaluate every fold under parameters fitted to the others."""
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels))
        starts = np.concatenate([[0], ends[:-1]])
        rows = np.full(len(ends), table.rows)
        zeros = np.zeros(len(ends), dtype=np.int64)
        columns = table.columns[:, order] - centre_of(table.columns)
        parts = [Moments.of(columns[:, a:b]) for a, b in zip(starts, ends, strict=True)]
        spans = np.stack([starts, ends, zeros, starts, ends, rows], axis=1)
        train = MomentStack.of(leave_one_out(parts))
        return cls(Table(table.names, columns), spans, order, train, MomentStack.of(parts))

    @classmethod
    def holdout(cls, train: Table, test: Table) -> Partition:
        """Evaluate one table under parameters fitted to another."""
        columns = np.concatenate([train.columns, test.columns], axis=1) - centre_of(train.columns)
        moments = [Moments.of(columns[:, : train.rows]), Moments.of(columns[:, train.rows :])]
        spans = np.array([[train.rows, columns.shape[1], 0, train.rows, 0, 0]])
        both, place = Table(train.names, columns), np.arange(test.rows)
        return cls(both, spans, place, MomentStack.of(moments[:1]), MomentStack.of(moments[1:]))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.spans)

    def query_rows(self, group: int) -> IntArray:
        """Rows of the table that a group evaluates."""
        return np.arange(*self.spans[group, :2])

    def training_rows(self, group: int) -> IntArray:
        """Rows of the table that a group's parameters are fitted to."""
        a, b, c, d = self.spans[group, 2:].tolist()
        return np.r_[a:b, c:d]

    def queried(self, by_row: FloatArray) -> FloatArray:
        """Cut results for all rows of the table down to the queried ones."""
        return by_row[..., self.spans[0, 0] : self.spans[-1, 1]]

    def in_data_order(self, queried: FloatArray) -> FloatArray:
        """Put results for the queried rows into the order of the data."""
        out = np.empty_like(queried)
        out[self.evaluated] = queried
        return out
