"""Rows that workers hold as a store of rows: the answers of a table in memory, from passes over the rows."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.dask.densities import Groups, SetTotals, compact_kernels
from spbn.dask.mapreduce import (
    Counted,
    FoldAssignment,
    GroupRequest,
    MomentsByConfiguration,
    Where,
    add_arrays,
    add_counts,
    add_moments,
    count,
    group_totals,
    group_values,
    moments_by_configuration,
)
from spbn.dask.mixtures import CachedDensities, DaskMixtures, lines
from spbn.dask.shards import Shards, batched
from spbn.errors import quoted
from spbn.kernels.compressed import CompactKernels
from spbn.numerics.moments import Moments, MomentStack, log_likelihoods
from spbn.numerics.spreads import Spreads
from spbn.rows.families import Configurations, FamilyBatch, number_possible
from spbn.rows.store import (
    Columns,
    Division,
    FamilyCounts,
    FitSettings,
    KernelDensities,
    ParametricScorer,
    Part,
    RemoteRows,
    Scorer,
    SumRequest,
)
from spbn.tables.table import Table

Value = TypeVar("Value")


@final
class PassCache(Generic[Value]):
    """Values that belong to sets of columns, found many in one pass; those found last are remembered.

    `size` returns how many bytes the value of a set takes, at most, and `find` the values of some sets.
    """

    def __init__(
        self,
        shards: Shards,
        size: Callable[[Columns], int],
        find: Callable[[Sequence[Columns]], Iterable[Value]],
    ) -> None:
        self._shards = shards
        self._size = size
        self._find = find
        self._known: OrderedDict[Columns, Value] = OrderedDict()

    def of(self, columns: Columns) -> Value:
        ((_, value),) = self._each([columns])
        return value

    def each(self, sets: Iterable[Columns]) -> Iterator[tuple[Columns, Value]]:
        """Yield different sets and their values, in any order: a pass for as many as fit into memory.

        Those that do not fit by themselves are left out with a warning.
        """
        possible = []
        for columns in dict.fromkeys(sets):
            if self._size(columns) <= self._shards.table_bytes:
                possible.append(columns)
                continue
            warnings.warn(
                f"{quoted(self._shards.names[column] for column in columns)} have so many combinations of "
                f"levels that what is needed of each does not fit into memory: families with these are left "
                f"out.",
                stacklevel=2,
            )
        return self._each(possible)

    def _each(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, Value]]:
        known = [(columns, self._known[columns]) for columns in sets if columns in self._known]
        yield from known
        unknown = [columns for columns in sets if columns not in self._known]
        for together in batched(unknown, self._size, self._shards.table_bytes):
            found = list(zip(together, self._find(together), strict=True))
            self._known.update(found)
            total = sum(map(self._size, self._known))
            while total > self._shards.table_bytes and len(self._known) > 1:
                total -= self._size(self._known.popitem(last=False)[0])
            yield from found


@final
class Session:
    """What all stores of the same rows share: what passes over these have found."""

    def __init__(self, shards: Shards, rule: str) -> None:
        self.shards = shards
        self.rule = rule
        self.totals = SetTotals(rule)
        self.cached = CachedDensities(rule)
        self.counts = PassCache(shards, self._bytes_of_counts, self._counted)
        self.divisions = PassCache(shards, self._bytes_of_moments, self._divided)
        self._refolded: dict[int, Session] = {}

    @cached_property
    def held(self) -> Session:
        """The same rows, in whose moments values far out count as the median."""
        return Session(self.shards.held, self.rule)

    def refolded(self, folds: int) -> Session:
        """Return the same rows, all of them in one of so many folds."""
        if folds not in self._refolded:
            assignment = FoldAssignment(self.shards.plan.assignment.seed, folds, 0.0)
            self._refolded[folds] = Session(self.shards.again(assignment), self.rule)
        return self._refolded[folds]

    def _bytes_of_counts(self, columns: Columns) -> int:
        *parents, node = (self.shards.variables[column] for column in columns)
        occurring = min(number_possible(parents), self.shards.every.count)
        return 8 * (self.shards.folds + 1) * occurring * len(node.levels)

    def _counted(self, families: Sequence[Columns]) -> Iterable[Counted]:
        return self.shards.gather(count, families, add_counts, families)

    def _bytes_of_moments(self, columns: Columns) -> int:
        possible = number_possible([self.shards.variables[column] for column in columns])
        labels, width = self.shards.folds + 1, len(self.shards.names)
        return 8 * min(possible, self.shards.every.count) * labels * width * (width + 1)

    def _divided(self, sets: Sequence[Columns]) -> Iterable[dict[int, Shards]]:
        every = tuple(range(len(self.shards.names)))
        found = self.shards.gather(moments_by_configuration, sets, add_moments, [every])
        return [self._parts(columns, moments) for columns, moments in zip(sets, found, strict=True)]

    def _parts(self, columns: Columns, found: MomentsByConfiguration) -> dict[int, Shards]:
        """Return the rows of every configuration that occurs, in order."""
        variables = tuple(self.shards.variables[column] for column in columns)
        occurring = Configurations(variables, np.array(sorted(found), dtype=np.int64))
        return {
            number: self.shards.within(tuple(zip(columns, codes, strict=True)), found[number])
            for number, codes in zip(occurring.numbers.tolist(), occurring.codes.tolist(), strict=True)
        }


@final
class DaskRows(RemoteRows):
    """Rows that workers hold, in groups; `parts` has those of each choice of training rows and queries."""

    def __init__(
        self,
        session: Session,
        parts: Sequence[Groups],
        settings: FitSettings,
        *,
        is_crossed: bool = False,
        inner: DaskRows | None = None,
    ) -> None:
        super().__init__(settings)
        self.session = session
        self.parts = tuple(parts)
        self.variables = session.shards.variables
        self.is_crossed = is_crossed
        self.pieces = sum(len(groups.labels) for groups in parts)
        self.train = _stack([(groups.training.training, groups.labels) for groups in parts])
        self.test = _stack([(groups.queries.queried, groups.labels) for groups in parts])
        self._inner = inner
        self._stores: dict[tuple[Where, tuple[int, ...]], DaskRows] = {}

    @classmethod
    def folds(cls, shards: Shards, settings: FitSettings) -> DaskRows:
        """Evaluate every fold under parameters fitted to the others; a single one under its own."""
        session = Session(shards, str(settings.bandwidth))
        labels = tuple(range(shards.folds))
        return cls(session, [Groups(shards, shards, labels)], settings, is_crossed=True)

    @cached_property
    def validation(self) -> DaskRows:
        shards = self.shards
        groups = Groups(shards, shards, (shards.folds,))
        return DaskRows(self.session, [groups], self.settings, inner=self)

    @property
    def shards(self) -> Shards:
        """The rows that parameters are fitted to."""
        return self.parts[0].training

    @property
    def inner(self) -> DaskRows | None:
        return self if self.is_crossed else self._inner

    @cached_property
    def singles(self) -> tuple[DaskRows, ...]:
        """A store for each of the groups alone; without a cross-validation of its training rows."""
        alone = [groups._replace(labels=(label,)) for groups in self.parts for label in groups.labels]
        return tuple(DaskRows(self.session, [groups], self.settings) for groups in alone)

    @property
    def densities(self) -> DaskDensities:
        return DaskDensities(self.session.totals, self.parts)

    @property
    def scaled_densities(self) -> KernelDensities:
        """Kernels at several scales are for mixtures only, which workers compute."""
        raise NotImplementedError("the scale of a bandwidth is not chosen where rows are over workers")

    def linear_totals(self, families: FamilyBatch) -> tuple[FloatArray, BoolArray]:
        """Return log-likelihoods from moments, which have to do."""
        totals = log_likelihoods(self.train, self.test, families.members, families.sizes)[0]
        return totals, np.zeros(len(totals), dtype=np.bool_)

    def linear_values(self, columns: IntArray) -> FloatArray:
        size, values = np.array([len(columns)]), np.empty(self.pieces)
        for number in range(self.pieces):
            group = np.array([number])
            train, test = self.train.only(group), self.test.only(group)
            values[number] = log_likelihoods(train, test, columns[None], size)[0][0]
        return values

    def counts(self, families: Sequence[Columns]) -> Iterator[tuple[Columns, FamilyCounts]]:
        (groups,), labels = self.parts, np.arange(self.shards.folds + 1)
        test = (labels == np.array(groups.labels)[:, None]).astype(np.int64)
        train = np.array(
            [np.isin(labels, self.shards.training_labels(m)) for m in groups.labels], dtype=np.int64
        )
        for columns, counted in self.session.counts.each(families):
            found, counts = self._table(columns, counted)
            trained, tested = (np.einsum("gl,lcv->gcv", mine, counts) for mine in (train, test))
            yield columns, FamilyCounts(found, trained, tested, None)

    def _table(self, columns: Columns, counted: Counted) -> tuple[Configurations, IntArray]:
        """Return the parents' configurations that occur, and labels × configurations × levels."""
        *parents, node = (self.variables[column] for column in columns)
        levels = len(node.levels)
        numbers, places = np.unique(counted.numbers // levels, return_inverse=True)
        counts = np.zeros((counted.counts.shape[1], len(numbers), levels), dtype=np.int64)
        counts[:, places, counted.numbers % levels] = counted.counts.T
        return Configurations(tuple(parents), numbers), counts

    def mixtures(
        self, families: FamilyBatch, line: Scorer, others: Sequence[ParametricScorer]
    ) -> Iterator[tuple[list[int], DaskMixtures]]:
        """Yield families whose densities fit into the memory of workers together, and their mixtures."""
        cached, members = self.session.cached, families.column_tuples
        largest = max(self.parts, key=lambda groups: groups.queries.most_rows)
        for numbers in cached.batches(largest, members):
            some = tuple(members[number] for number in numbers)
            densities: list[list[Sequence[GroupRequest] | None]]
            densities = [[lines(self.parts, columns) for columns in some]]
            for scorer in others:
                found = {n: self._by_part(scorer.function, one) for n, one in scorer.parameters(some)}
                densities.append([found.get(number) for number in range(len(some))])
            yield numbers, DaskMixtures(cached, self.parts, some, tuple(zip(*densities, strict=True)))

    def _by_part(self, function: Callable[..., FloatArray], request: SumRequest) -> list[GroupRequest]:
        """Return what is asked of each of the parts."""
        ends = np.cumsum([0, *(len(groups.labels) for groups in self.parts)]).tolist()
        return [
            GroupRequest(
                request.columns,
                groups.labels,
                function,
                tuple(values[first:end] for values in request.by_group),
                request.shared,
            )
            for groups, (first, end) in zip(self.parts, pairwise(ends), strict=True)
        ]

    @cached_property
    def spreads(self) -> Spreads:
        return self.shards.spreads

    @cached_property
    def held(self) -> DaskRows:
        parts = [groups._replace(training=groups.training.held) for groups in self.parts]
        return DaskRows(self.session.held, parts, self.settings, is_crossed=self.is_crossed)

    def sums(self, function: Callable[..., FloatArray], requests: Sequence[SumRequest]) -> list[FloatArray]:
        return self._gathered(group_values, function, requests)

    def values(self, function: Callable[..., FloatArray], requests: Sequence[SumRequest]) -> list[FloatArray]:
        return self._gathered(group_totals, function, requests)

    def _gathered(
        self,
        answer: Callable[..., FloatArray],
        function: Callable[..., FloatArray],
        requests: Sequence[SumRequest],
    ) -> list[FloatArray]:
        asked = [self._by_part(function, request) for request in requests]
        found = [
            groups.queries.gather(answer, [one[part] for one in asked], add_arrays)
            for part, groups in enumerate(self.parts)
        ]
        return [np.concatenate(by_part) for by_part in zip(*found, strict=True)]

    def sample(self, most: int) -> tuple[FloatArray, IntArray]:
        (groups,) = self.parts
        every = tuple(range(len(self.variables)))
        step = -(-int(self.test.counts.sum()) // most)
        rows, labels = groups.queries.collect(every, step=step)
        order = np.flatnonzero(np.isin(labels, groups.labels))
        order = order[np.argsort(labels[order], kind="stable")]
        starts = np.searchsorted(labels[order], [*groups.labels, groups.labels[-1] + 1])
        return rows[:, order], starts

    @property
    def inner_folds(self) -> Sequence[int] | None:
        if self.inner is None:
            return None
        (known,) = self.inner.parts
        labels = [label for groups in self.parts for label in groups.labels]
        return [known.labels.index(label) if label in known.labels else -1 for label in labels]

    def split(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, Division]]:
        for columns, parts in self.session.divisions.each(sets):
            yield columns, self._division(columns, parts)

    def _division(self, columns: Columns, parts: Mapping[int, Shards]) -> Division:
        (groups,) = self.parts
        cells: list[tuple[Shards, int]] = []
        stores: dict[int, Part] = {}
        starved: list[bool] = []
        for number, part in parts.items():
            asked = [label for label in groups.labels if part.queried.counts[label]]
            fed = part.answerable(asked)
            places = len(cells) + np.flatnonzero(np.isin(asked, fed))
            cells += [(part, label) for label in asked]
            starved += [label not in fed for label in asked]
            if fed:
                stores[number] = Part(self._store_of(part, tuple(fed)), places)
        every = np.ones(len(self.variables), dtype=np.bool_)
        return Division(stores, np.array(starved, dtype=np.bool_), every, partial(self._rest, cells))

    def _rest(self, cells: Sequence[tuple[Shards, int]], asked: BoolArray) -> DaskRows:
        """Return a store in which some cells, rows of a label, are evaluated under what is fitted to all."""
        by_part: dict[Where, tuple[Shards, list[int]]] = {}
        for number in np.flatnonzero(asked).tolist():
            part, label = cells[number]
            by_part.setdefault(part.where, (part, []))[1].append(label)
        parts = [Groups(self.shards, part, tuple(labels)) for part, labels in by_part.values()]
        return DaskRows(self.session, parts, self.settings, inner=self.inner)

    def _store_of(self, part: Shards, labels: tuple[int, ...]) -> DaskRows:
        """Return the rows of a configuration, always the same: scorers remember something of them."""
        key = (part.where, labels)
        if key not in self._stores:
            inner = None
            if not self.is_crossed and self._inner is not None:
                folds = tuple(part.answerable(range(part.folds)))
                inner = self._inner._store_of(part, folds) if folds else None
            groups = Groups(part, part, labels)
            self._stores[key] = DaskRows(
                self.session, [groups], self.settings, is_crossed=self.is_crossed, inner=inner
            )
        return self._stores[key]

    def fold_tables(self, names: Sequence[str], *, centred: bool = False) -> Iterator[tuple[Table, Table]]:
        for groups in self.parts:
            table, labels = self._collected(groups.training, names, centred=centred)
            asked, their_labels = table, labels
            if groups.queries.where != groups.training.where:
                asked, their_labels = self._collected(groups.queries, names, centred=centred)
            for label in groups.labels:
                training = np.isin(labels, groups.training.training_labels(label))
                queries = np.flatnonzero(their_labels == label)
                yield table.take(np.flatnonzero(training)), asked.take(queries)

    def by_piece(self, by_group: Sequence[FloatArray]) -> FloatArray:
        return np.array([values.sum() for values in by_group])

    def in_data_order(self, pieces: FloatArray) -> FloatArray:
        return pieces

    @cached_property
    def moments(self) -> Moments:
        every = self.shards.every
        return replace(every, mean=every.mean + self.shards.centre)

    def total_counts(self, columns: Columns) -> tuple[Configurations, IntArray]:
        found, counts = self._table(columns, self.session.counts.of(columns))
        return found, counts.sum(axis=0)

    def table(self, names: Sequence[str]) -> Table:
        return self._collected(self.shards, names)[0]

    def compact_kernels(self, columns: Columns, scale: float) -> CompactKernels | None:
        return compact_kernels(self.shards, columns, self.session.rule, scale)

    def by_configuration(self, columns: Columns) -> tuple[Configurations, list[DaskRows]]:
        parts = self.session.divisions.of(columns)
        variables = tuple(self.variables[column] for column in columns)
        stores = [self._store_of(part, tuple(part.answerable(range(part.folds)))) for part in parts.values()]
        return Configurations(variables, np.array(list(parts), dtype=np.int64)), stores

    def refolded(self, folds: int) -> DaskRows:
        session, where = self.session.refolded(folds), self.shards.where
        shards = session.shards
        if where:
            parts = session.divisions.of(tuple(column for column, _ in where))
            shards = next(part for part in parts.values() if part.where == where)
        groups = Groups(shards, shards, tuple(shards.answerable(range(shards.folds))))
        return DaskRows(session, [groups], self.settings, is_crossed=True)

    def _collected(
        self, shards: Shards, names: Sequence[str], *, centred: bool = False
    ) -> tuple[Table, IntArray]:
        columns = tuple(shards.names.index(name) for name in names)
        rows, labels = shards.collect(columns)
        if centred:
            rows = rows - shards.centre[list(columns), None]
        levels = {name: shards.plan.levels[name] for name in names if name in shards.plan.levels}
        return Table(tuple(names), np.ascontiguousarray(rows), levels), labels


class DaskDensities(NamedTuple):
    """Log-densities of nodes given their parents under kernels, from sums over rows that workers hold."""

    totals: SetTotals
    parts: Sequence[Groups]

    def conditional_totals(self, families: FamilyBatch) -> FloatArray:
        found = sum(whole_and_below.sum(axis=2) for whole_and_below in self._by_group(families))
        return _differences(*found)[:, None]

    def conditional_values(self, families: FamilyBatch) -> FloatArray:
        return _differences(*np.concatenate(list(self._by_group(families)), axis=2))[:, None]

    def _by_group(self, families: FamilyBatch) -> Iterator[FloatArray]:
        """Yield log-densities of all members and of parents alone, 2 × families × groups."""
        joints, parents = families.sets
        for groups in self.parts:
            found = self.totals.by_label(groups, [*joints, *parents])
            yield found.reshape(2, len(families), len(groups.labels))


def _differences(whole: FloatArray, below: FloatArray) -> FloatArray:
    """Return the log-densities of nodes given parents, from those of both and of the parents alone."""
    possible = np.isfinite(whole) & np.isfinite(below)
    return np.where(possible, whole - np.where(possible, below, 0.0), -np.inf)


def _stack(groups: Sequence[tuple[MomentStack, Sequence[int]]]) -> MomentStack:
    """Return the moments of all labels that are chosen of several stacks."""
    parts = [moments.only(np.array(labels, dtype=np.int64)) for moments, labels in groups]
    return MomentStack(
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.scatters for part in parts]),
    )
