"""A table in memory as a store of rows: a partition of it, the settings of fits, and what scorers share."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, remembered
from spbn.kernels.multiscale import SCALES
from spbn.numerics.mixture_weights import log_mixture, mixing_weights
from spbn.numerics.regression import ILL_CONDITIONED, MomentStack, log_likelihoods, residual_directions
from spbn.rows.densities import KEPT_BYTES, SetDensities
from spbn.rows.families import Configurations, FamilyBatch
from spbn.rows.partition import Partition
from spbn.rows.store import Columns, FamilyCounts, FitSettings, Part, RowStore, Scorer
from spbn.tables.table import Table

MOST_SETS = 64  # of discrete columns whose configurations are remembered
MOST_BYTES = 1 << 29  # that the rows of these may take, if there are more than two
MOST_QUESTIONS = 16  # choices of rows that are remembered
SHARE = 16  # a configuration may remember this part of what its rows would be due
FEWEST_ROWS = 2  # of a configuration, for it to be worth a try
LARGEST_PART = 1 << 23  # log-densities of mixtures that are held at a time: 64 MB


@final
class MemoryRows(RowStore):
    """The rows of a table in memory.

    Parameters
    ----------
    inner
        Returns the cross-validation of the training rows that chooses weights and scales, if there is one
        already.
    kept_bytes
        How much the log-densities of rows may take that are kept for later.
    """

    def __init__(
        self,
        partition: Partition,
        settings: FitSettings | None = None,
        *,
        inner: Callable[[], MemoryRows | None] = lambda: None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        super().__init__(settings)
        self.partition = partition
        self.variables = partition.table.variables
        self.is_crossed = partition.is_crossed
        self._inner = inner
        self._kept_bytes = kept_bytes
        self._configurations: OrderedDict[Columns, tuple[Configurations, IntArray]] = OrderedDict()
        self._divisions: OrderedDict[Columns, MemoryDivision] = OrderedDict()
        self._asking: OrderedDict[bytes, MemoryRows] = OrderedDict()

    @property
    def pieces(self) -> int:
        """How many rows are evaluated."""
        return self.partition.queries

    @property
    def train(self) -> MomentStack:
        """Moments of the training rows of every group."""
        return self.partition.train

    @property
    def test(self) -> MomentStack:
        """Moments of the evaluated rows of every group."""
        return self.partition.test

    @cached_property
    def inner(self) -> MemoryRows:
        """A cross-validation of the training rows; the store itself if it is one."""
        given = self._inner()
        if given is not None:
            return given
        partition = self.partition.inner
        return self if partition is self.partition else MemoryRows(partition, self.settings)

    @cached_property
    def singles(self) -> tuple[MemoryRows, ...]:
        """A store for each of the groups alone."""
        groups = range(self.partition.groups)
        return tuple(
            MemoryRows(self.partition.single(group), self.settings, kept_bytes=0) for group in groups
        )

    def asking(self, asked: BoolArray) -> MemoryRows:
        """Return a store in which only some of the rows are evaluated."""

        def found() -> MemoryRows:
            return MemoryRows(
                self.partition.asking(asked), self.settings, inner=lambda: self.inner, kept_bytes=0
            )

        return remembered(self._asking, asked.tobytes(), found, limit=MOST_QUESTIONS)

    @cached_property
    def densities(self) -> SetDensities:
        """Log-densities of sets of columns."""
        bandwidth, engine = self.settings.bandwidth, self.settings.engine
        return SetDensities(self.partition, bandwidth, engine, kept_bytes=self._kept_bytes)

    @cached_property
    def scaled_densities(self) -> SetDensities:
        """The same at several scales."""
        bandwidth, engine = self.settings.bandwidth, self.settings.engine
        return SetDensities(self.partition, bandwidth, engine, scales=SCALES, kept_bytes=self._kept_bytes)

    def linear_totals(self, families: FamilyBatch) -> tuple[FloatArray, BoolArray]:
        """Return log-likelihoods from moments, and where these lack the digits."""
        totals, share = log_likelihoods(self.train, self.test, families.members, families.sizes)
        return totals, (share < ILL_CONDITIONED) & (totals > -np.inf)

    def linear_values(self, columns: IntArray) -> FloatArray | None:
        """Return the log-densities of rows under regressions on moments; None if these lack the digits."""
        directions, variances, share = residual_directions(self.train.counts, self.train.scatters, columns)
        if share < ILL_CONDITIONED:
            return None
        group, means = self._groups, self.train.means[:, columns]
        residuals = np.zeros(self.pieces)
        for k, column in enumerate(columns):
            queried = self.partition.queried(self.partition.table.columns[column])
            residuals += directions[group, k] * (queried - means[group, k])
        variance = variances[group]
        return -0.5 * (residuals * residuals / variance + np.log(2.0 * math.pi * variance))

    @cached_property
    def _groups(self) -> IntArray:
        """The group of every evaluated row."""
        return np.repeat(np.arange(self.partition.groups), self.partition.sizes)

    def counts(self, families: Sequence[Columns]) -> Iterator[tuple[Columns, FamilyCounts]]:
        """Yield families of discrete columns, the node last, and their counts."""
        partition = self.partition
        for columns in dict.fromkeys(families):
            levels = len(self.variables[columns[-1]].levels)
            found, places = self.configurations(columns[:-1])
            cells = places * levels + partition.table.columns[columns[-1]].astype(np.int64)
            train, test = partition.counted(cells, len(found) * levels)
            shape = (partition.groups, len(found), levels)
            queried = partition.queried(cells)
            yield columns, FamilyCounts(found, train.reshape(shape), test.reshape(shape), queried)

    def mixtures(self, families: FamilyBatch, line: Scorer) -> Iterator[tuple[list[int], MemoryMixtures]]:
        """Yield families, some at a time, and their components.

        Families of the same variables follow one another, because the rows that they share are not
        kept for long if there are very many.
        """
        joints, _ = families.sets
        order = sorted(range(len(families)), key=joints.__getitem__)
        at_a_time = max(1, LARGEST_PART // ((len(SCALES) + 1) * self.pieces))
        for start in range(0, len(families), at_a_time):
            part = order[start : start + at_a_time]
            batch = families.only(np.array(part))
            kernels = self.scaled_densities.conditional_values(batch)
            yield part, MemoryMixtures(np.concatenate([kernels, line.rows(batch)[:, None]], axis=1))

    def configurations(self, columns: Columns) -> tuple[Configurations, IntArray]:
        """Return the configurations of some discrete columns, and the place of every row among them."""

        def found() -> tuple[Configurations, IntArray]:
            table = self.partition.table
            return Configurations.in_columns(
                [table.variables[i] for i in columns], table.columns[list(columns)]
            )

        return remembered(self._configurations, columns, found, limit=self._most_sets)

    def split(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, MemoryDivision]]:
        """Yield sets of discrete columns, and the rows by their configurations."""
        for columns in dict.fromkeys(sets):
            yield columns, self.division(columns)

    def division(self, columns: Columns) -> MemoryDivision:
        """Return the rows by the configuration of some discrete columns."""
        return remembered(self._divisions, columns, lambda: self._divided(columns), limit=self._most_sets)

    @property
    def _most_sets(self) -> int:
        """How many sets of discrete columns are remembered: fewer of large tables."""
        return min(MOST_SETS, max(2, MOST_BYTES // self.partition.table.columns.nbytes))

    def _divided(self, columns: Columns) -> MemoryDivision:
        table = self.partition.table
        configurations, places = self.configurations(columns)
        names = [variable.name for variable in table.variables if not variable.is_discrete]
        numbers = configurations.numbers.tolist()
        parts: dict[int, Part] = {}
        starved = np.ones(self.partition.queries, dtype=np.bool_)
        for place, below, queries in self.partition.divided(places, names, fewest=FEWEST_ROWS):
            number = numbers[place]
            due = self._kept_bytes * below.table.rows // (SHARE * table.rows)
            inner = partial(self._inner_part, columns, number)
            parts[number] = Part(MemoryRows(below, self.settings, inner=inner, kept_bytes=due), queries)
            starved[queries] = False
        return MemoryDivision(self, parts, starved)

    def _inner_part(self, columns: Columns, number: int) -> MemoryRows | None:
        """Return the cross-validation of a configuration's training rows, if this store is not one itself."""
        if self.inner is self:
            return None
        part = self.inner.division(columns).parts.get(number)
        return part.rows if part is not None and isinstance(part.rows, MemoryRows) else None

    def fold_tables(self, names: Sequence[str], *, centred: bool = False) -> Iterator[tuple[Table, Table]]:
        """Yield the training rows and the evaluated rows of every group, with some of the columns."""
        partition = self.partition
        table = (partition.table if centred else partition.original).select(names)
        for group in range(partition.groups):
            yield table.take(partition.training_rows(group)), table.take(partition.query_rows(group))

    def by_piece(self, by_group: Sequence[FloatArray]) -> FloatArray:
        """Return the values of all evaluated rows."""
        return np.concatenate(by_group)

    def in_data_order(self, pieces: FloatArray) -> FloatArray:
        """Put values of evaluated rows, last axis, into the order of the data."""
        return self.partition.in_data_order(pieces)


@dataclass(frozen=True, eq=False)
class MemoryDivision:
    """The rows of a table by configuration; its pieces are the evaluated rows of the table."""

    whole: MemoryRows
    parts: Mapping[int, Part]
    starved: BoolArray

    def families(self, batch: FamilyBatch) -> FamilyBatch:
        """Return families by the columns of the parts, which have the continuous ones alone."""
        return batch.among(~self.whole.discrete)

    def rest(self, asked: BoolArray) -> MemoryRows:
        """Return a store in which some of the rows are evaluated, fitted to all training rows."""
        return self.whole.asking(asked)


@dataclass(frozen=True, eq=False)
class MemoryMixtures:
    """Mixtures whose components are known in every row: families × components × rows."""

    components: FloatArray

    def best(self, usable: BoolArray | None = None) -> list[tuple[FloatArray, float]]:
        """Return the weights that make the rows most likely, and their log-likelihood."""
        components = self.components
        if usable is not None:
            components = np.where(usable[:, None], components, -np.inf)
        return [mixing_weights(parts) for parts in components]

    def values(self, weights: FloatArray) -> FloatArray:
        """Return the log-densities of all rows under known weights."""
        out = np.full((len(self.components), self.components.shape[2]), -np.inf)
        for f, parts in enumerate(self.components):
            mixture = np.where(np.isfinite(parts).all(axis=1), weights[f], 0.0)
            if mixture.sum() > 0.0:
                out[f] = log_mixture(parts, mixture / mixture.sum())
        return out
