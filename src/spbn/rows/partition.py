"""Rows in groups, each to be evaluated under parameters that are fitted to other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.kernels.estimates import Spans
from spbn.numerics.moments import Moments, MomentStack, centre_of, leave_one_out, moments_of_spans
from spbn.numerics.spreads import spreads_of, without_far_values
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

INNER_FOLDS = 10

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of rows: the folds of a cross-validation, or one group that is held out."""

    table: Table  # the rows, reordered so that a group is contiguous, and centred
    spans: Spans  # query rows and training rows of every group
    evaluated: IntArray  # for every queried row of `table`, in their order there, its place in results by row
    #: Moments of the training rows and of the evaluated rows of every group.
    train: MomentStack
    test: MomentStack
    uncentred: Callable[[], Table]  # returns the rows of `table` as they were given
    #: Whether it is a cross-validation, so that what predicts its rows best is chosen fairly.
    is_crossed: bool = False

    @classmethod
    def folds(cls, table: Table, labels: IntArray) -> Partition:
        """Evaluate every fold under parameters fitted to the others."""
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels))
        starts = np.concatenate([[0], ends[:-1]])
        rows = np.full(len(ends), table.rows)
        zeros = np.zeros(len(ends), dtype=np.int64)
        columns = np.take(table.columns, order, axis=1) - _centre(table)
        parts = [Moments.of(columns[:, a:b]) for a, b in zip(starts, ends, strict=True)]
        spans = Spans(np.stack([starts, ends, zeros, starts, ends, rows], axis=1))
        train, test = MomentStack.of(leave_one_out(parts)), MomentStack.of(parts)
        return cls(
            table.with_columns(columns), spans, order, train, test, lambda: table.take(order), is_crossed=True
        )

    @classmethod
    def holdout(cls, train: Table, test: Table) -> Partition:
        """Evaluate one table under parameters fitted to another."""

        def both() -> Table:
            return train.with_columns(np.concatenate([train.columns, test.columns], axis=1))

        columns = both().columns - _centre(train)
        fitted, tested = (
            MomentStack.of([Moments.of(some)]) for some in np.split(columns, [train.rows], axis=1)
        )
        spans = Spans(np.array([[train.rows, columns.shape[1], 0, train.rows, 0, 0]]))
        return cls(train.with_columns(columns), spans, np.arange(test.rows), fitted, tested, both)

    @classmethod
    def leave_one_out(cls, table: Table, rows: IntArray) -> Partition:
        """Evaluate each of some rows, given in ascending order, under parameters fitted to all others."""
        columns = table.columns - _centre(table)
        zeros, last = np.zeros_like(rows), np.full_like(rows, table.rows)
        spans = Spans(np.stack([rows, rows + 1, zeros, rows, rows + 1, last], axis=1))
        train, test = _moments(columns, spans)
        place = np.arange(len(rows))
        return cls(
            table.with_columns(columns), spans, place, train, test, lambda: table, len(rows) == table.rows
        )

    @classmethod
    def whole(cls, table: Table) -> Partition:
        """Evaluate all rows under parameters fitted to the same rows."""
        columns = table.columns - _centre(table)
        moments = MomentStack.of([Moments.of(columns)])
        spans = Spans(np.array([[0, table.rows, 0, table.rows, 0, 0]]))
        place = np.arange(table.rows)
        return cls(table.with_columns(columns), spans, place, moments, moments, lambda: table)

    def divided(
        self, places: IntArray, names: Sequence[str], *, fewest: int
    ) -> Iterator[tuple[int, Partition, IntArray]]:
        """Yield the partition of the rows with each place, and where its queries are among all.

        `places`: the place of every row of the table, from 0 on.
        `names`: the columns to keep.
        `fewest`: groups with fewer training rows than this are left out. If none is left, so is the place.
        """
        kept_columns = self.table.select(names)
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places))
        number_of_query = np.full(self.table.rows, -1)
        number_of_query[self.queried(np.arange(self.table.rows))] = np.arange(self.queries)
        for place, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            rows = order[start:end]
            spans = Spans(np.searchsorted(rows, self.spans.array))
            spans = spans.only((spans.query_counts > 0) & (spans.training_counts >= fewest))
            if not len(spans):
                continue
            table = kept_columns.take(rows)
            columns = table.columns - _centre(table)
            asked = number_of_query[np.concatenate([rows[a:b] for a, b in spans.queries.tolist()])]
            part = Partition(
                table.with_columns(columns),
                spans,
                np.arange(len(asked)),
                *_moments(columns, spans),
                lambda rows=rows: self.original.take(rows).select(names),  # type: ignore[misc]
                self.is_crossed,
            )
            yield place, part, asked

    def asking(self, asked: BoolArray) -> Partition:
        """Return the partition with the same training rows that has only some of the queries.

        Within a group they come first, so that they are contiguous.
        """
        order, bounds, first = np.arange(self.table.rows), self.spans.array.copy(), 0
        for group, (start, end) in enumerate(self.spans.queries.tolist()):
            mine = asked[first : first + end - start]
            first += end - start
            order[start:end] = start + np.argsort(~mine, kind="stable")
            bounds[group, 1] = start + int(mine.sum())
        kept = np.array(Spans(bounds).queried, dtype=np.int64)
        spans = Spans(bounds[kept])
        table = self.table.take(order)
        return Partition(
            table,
            spans,
            np.arange(int(asked.sum())),
            self.train.only(kept),
            _moments(table.columns, spans)[1],
            lambda: self.original.take(order),
        )

    def evaluating(self, queries: Table, labels: IntArray) -> Partition:
        """Return the partition with the same training rows that evaluates other rows, each in a group.

        `queries`: the rows, with the columns of the table.
        `labels`: the group of every one of them.
        """
        order, rows = np.argsort(labels, kind="stable"), self.table.rows
        ends = rows + np.cumsum(np.bincount(labels, minlength=self.groups))
        bounds = self.spans.array.copy()
        bounds[:, 0], bounds[:, 1] = np.append(rows, ends[:-1]), ends
        spans, asked = Spans(bounds), queries.columns[:, order]
        centre = self.original.columns[:, :1] - self.table.columns[:, :1]
        columns = np.concatenate([self.table.columns, asked - centre], axis=1)
        both = self.table.with_columns(np.concatenate([self.original.columns, asked], axis=1))
        test = _moments(columns, spans)[1]
        return Partition(self.table.with_columns(columns), spans, order, self.train, test, lambda: both)

    def held(self) -> Partition:
        """Return the partition with moments that no odd row decides: values far out count as the median."""
        columns = self.table.columns
        trained = self.training_rows(0) if self.groups == 1 else slice(int(self.spans.training.max()))
        held = without_far_values(columns, spreads_of(columns[:, trained]))
        return self if held is columns else replace(self, train=_moments(held, self.spans)[0])

    def thinned(self, most: int | None) -> Partition:
        """Return the partition with so many training rows at most, chosen at random.

        Their moments are those of all training rows, but for the counts.
        """
        last = int(self.spans.training.max())
        if most is None or last <= most:
            return self
        kept = np.sort(np.random.default_rng(0).permutation(last)[:most])
        bounds = np.concatenate(
            [most + self.spans.queries, np.searchsorted(kept, self.spans.training)], axis=1
        )
        spans, every = Spans(bounds), np.concatenate([kept, np.arange(self.table.rows)])
        counts, before = spans.training_counts, self.train.counts
        scatters = self.train.scatters * ((counts - 1.0) / (before - 1.0))[:, None, None]
        return replace(
            self,
            table=self.table.take(every),
            spans=spans,
            train=MomentStack(counts, self.train.means, scatters),
            uncentred=lambda: self.original.take(every),
        )

    def single(self, group: int) -> Partition:
        """Return the partition of one group alone."""
        one = np.array([group])
        return replace(
            self,
            spans=self.spans.only(one),
            evaluated=np.arange(self.spans.query_counts[group]),
            train=self.train.only(one),
            test=self.test.only(one),
            is_crossed=False,
        )

    @cached_property
    def original(self) -> Table:
        """The rows of `table` as they were given, for types whose density depends on where zero is."""
        return self.uncentred()

    @cached_property
    def inner(self) -> Partition:
        """A cross-validation of the training rows; the partition itself if it is one."""
        if self.is_crossed:
            return self
        table = self.original.take(self.training_rows(0)) if self.groups == 1 else self.original
        return Partition.folds(table, fold_labels(table.rows, min(INNER_FOLDS, table.rows), 0))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.spans)

    def query_rows(self, group: int) -> IntArray:
        """Rows of the table that a group evaluates."""
        return np.arange(*self.spans.queries[group])

    def training_rows(self, group: int) -> IntArray:
        """Rows of the table that a group's parameters are fitted to."""
        a, b, c, d = self.spans.training[group].tolist()
        return np.r_[a:b, c:d]

    @property
    def queries(self) -> int:
        """How many rows are evaluated."""
        return len(self.evaluated)

    def queried(self, by_row: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Cut numbers for all rows of the table down to the queried ones."""
        first, end = self.spans.queries[0, 0], self.spans.queries[-1, 1]
        return by_row[..., first:end] if end - first == self.queries else by_row[..., self._query_rows]

    @cached_property
    def _query_rows(self) -> IntArray:
        return np.concatenate([self.query_rows(group) for group in range(self.groups)])

    def counted(self, kinds: IntArray, number: int) -> tuple[IntArray, IntArray]:
        """Return how many training rows and queries of every group are of each of some kinds.

        `kinds`: the kind of every row of the table, from 0 on.
        `number`: how many kinds there are.
        """
        edges = np.unique(np.concatenate([[0, len(kinds)], self.spans.array.ravel()]))
        pieces = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        counts = np.bincount(pieces * number + kinds, minlength=(len(edges) - 1) * number)
        upto = np.zeros((len(edges), number), dtype=np.int64)
        np.cumsum(counts.reshape(-1, number), axis=0, out=upto[1:])
        a, b, c, d, e, f = upto[np.searchsorted(edges, self.spans.array)].swapaxes(0, 1)
        return d - c + f - e, b - a

    def in_data_order(self, queried: FloatArray) -> FloatArray:
        """Put results for the queried rows, last axis, into the order of the data."""
        out = np.empty_like(queried)
        out[..., self.evaluated] = queried
        return out


def _centre(table: Table) -> FloatArray:
    """Return what to subtract from the columns of a table; nothing from level codes."""
    return np.where(table.discrete[:, None], 0.0, centre_of(table.columns))


def _moments(columns: FloatArray, spans: Spans) -> tuple[MomentStack, MomentStack]:
    """Return the moments of the training rows and of the queries.

    Training rows are a beginning and an end of the table, but for rows that follow and are queries alone.
    """
    bounds, last = spans.array, int(spans.training.max())
    edges = np.unique(np.concatenate([[0, columns.shape[1]], bounds.ravel()]))
    found = moments_of_spans(np.ascontiguousarray(columns), edges, np.searchsorted(edges, bounds))
    train, test = MomentStack(spans.training_counts, *found[:2]), MomentStack(spans.query_counts, *found[2:])
    if len(spans) > 1 and last < columns.shape[1]:
        alone = np.concatenate([np.zeros_like(spans.queries), spans.training], axis=1)
        return _moments(columns[:, :last], Spans(alone))[0], test
    return train, test
