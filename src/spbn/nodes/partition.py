"""Rows in groups, each to be evaluated under parameters that are fitted to other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

import numpy as np

from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.moments import Moments, centre_of, leave_one_out
from spbn.numerics.regression import MomentStack
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

INNER_FOLDS = 10


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
    uncentred
        Returns the rows of `table` as they were given.
    """

    table: Table
    spans: IntArray
    evaluated: IntArray
    train: MomentStack
    test: MomentStack
    uncentred: Callable[[], Table]

    @classmethod
    def folds(cls, table: Table, labels: IntArray) -> Partition:
        """Evaluate every fold under parameters fitted to the others."""
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels))
        starts = np.concatenate([[0], ends[:-1]])
        rows = np.full(len(ends), table.rows)
        zeros = np.zeros(len(ends), dtype=np.int64)
        columns = np.take(table.columns, order, axis=1) - centre_of(table.columns)
        parts = [Moments.of(columns[:, a:b]) for a, b in zip(starts, ends, strict=True)]
        spans = np.stack([starts, ends, zeros, starts, ends, rows], axis=1)
        train = MomentStack.of(leave_one_out(parts))
        return cls(
            Table(table.names, columns), spans, order, train, MomentStack.of(parts), lambda: table.take(order)
        )

    @classmethod
    def holdout(cls, train: Table, test: Table) -> Partition:
        """Evaluate one table under parameters fitted to another."""
        columns = np.concatenate([train.columns, test.columns], axis=1) - centre_of(train.columns)
        moments = [Moments.of(columns[:, : train.rows]), Moments.of(columns[:, train.rows :])]
        spans = np.array([[train.rows, columns.shape[1], 0, train.rows, 0, 0]])
        both, place = Table(train.names, columns), np.arange(test.rows)
        return cls(
            both,
            spans,
            place,
            MomentStack.of(moments[:1]),
            MomentStack.of(moments[1:]),
            lambda: Table(train.names, np.concatenate([train.columns, test.columns], axis=1)),
        )

    @classmethod
    def leave_one_out(cls, table: Table, rows: IntArray) -> Partition:
        """Evaluate each of some rows, given in ascending order, under parameters fitted to all others."""
        columns = table.columns - centre_of(table.columns)
        ends = np.append(rows, table.rows)
        starts = np.concatenate([[0], rows + 1])
        between = [Moments.of(columns[:, a:b]) for a, b in zip(starts, ends, strict=True)]
        alone = [Moments.of(columns[:, row : row + 1]) for row in rows]
        before = list(accumulate(chain.from_iterable(zip(between, alone, strict=False))))[::2]
        pieces = chain.from_iterable(zip(between[:0:-1], alone[::-1], strict=True))
        behind = list(accumulate(pieces))[::2][::-1]
        zeros = np.zeros_like(rows)
        spans = np.stack([rows, rows + 1, zeros, rows, rows + 1, np.full_like(rows, table.rows)], axis=1)
        train = MomentStack.of([a + b for a, b in zip(before, behind, strict=True)])
        place, test = np.arange(len(rows)), MomentStack.of(alone)
        return cls(Table(table.names, columns), spans, place, train, test, lambda: table)

    @cached_property
    def original(self) -> Table:
        """The rows of `table` as they were given, for types whose density depends on where zero is."""
        return self.uncentred()

    @cached_property
    def inner(self) -> Partition:
        """A cross-validation of the training rows; the partition itself if it is one."""
        if self.queries == self.table.rows:
            return self
        table = self.table.take(self.training_rows(0)) if self.groups == 1 else self.table
        return Partition.folds(table, fold_labels(table.rows, min(INNER_FOLDS, table.rows), 0))

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

    @property
    def queries(self) -> int:
        """How many rows are evaluated."""
        return len(self.evaluated)

    def queried(self, by_row: FloatArray) -> FloatArray:
        """Cut numbers for all rows of the table down to the queried ones."""
        first, end = self.spans[0, 0], self.spans[-1, 1]
        if end - first == self.queries:
            return by_row[..., first:end]
        return by_row[..., self.spans[:, 0]]  # every group queries one row

    def in_data_order(self, queried: FloatArray) -> FloatArray:
        """Put results for the queried rows, last axis, into the order of the data."""
        out = np.empty_like(queried)
        out[..., self.evaluated] = queried
        return out
