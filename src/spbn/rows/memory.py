"""A table in memory as a store of rows: a partition of it, the settings of fits, and what scorers share.

What all kernel families are made of is log-densities of sets of columns (`SetDensities`). Two set functions
are enough under a named bandwidth rule: J(S), the log-density of the variables S with the bandwidth of |S|
dimensions, and M(S), the same with the bandwidth factor of |S| + 1 dimensions. Neither depends on which
member of S is the child, so i → j and j → i share a J, and all children of the same parents share an M. Each
is computed once.

Both come at one scale, with the bandwidth matrix as it is, or at all of `multiscale.SCALES`, which multiply
it, for little more than the price of one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import final

import numpy as np

from spbn import kernels
from spbn._base.arrays import BoolArray, FloatArray, IntArray, forget_older_half, frozen, remembered
from spbn._base.jit import compiled, run_tasks, shares
from spbn.errors import FitError
from spbn.kernels import estimates as bandwidths
from spbn.kernels.conditional import FAR, conditional_log_density, quotient
from spbn.kernels.estimates import BandwidthRule
from spbn.kernels.multiscale import SCALES
from spbn.numerics import gaussian
from spbn.numerics.mixture_weights import log_mixture, mixing_weights
from spbn.numerics.moments import ILL_CONDITIONED, log_likelihoods, residual_directions
from spbn.numerics.spreads import Spreads, spreads_of
from spbn.rows.families import Configurations, FamilyBatch, VariableSet
from spbn.rows.partition import Partition
from spbn.rows.store import (
    Columns,
    Division,
    FamilyCounts,
    FitSettings,
    ParametricScorer,
    Part,
    RowStore,
    Scorer,
    SumRequest,
)
from spbn.tables.table import Table

LARGEST_OUTPUT = 1 << 23  # log-densities that are computed at a time: 64 MB
MOST_TOTALS = 1 << 20  # that are remembered
KEPT_BYTES = 1 << 28  # of rows, if they are asked for
MOST_SETS = 64  # of discrete columns whose configurations are remembered
MOST_BYTES = 1 << 29  # that the rows of these may take, if there are more than two
MOST_QUESTIONS = 16  # choices of rows that are remembered
SHARE = 16  # a configuration may remember this part of what its rows would be due
FEWEST_TO_CROSS = 4  # training rows, for a cross-validation of them
FEWEST_ROWS = 2  # of a configuration, for it to be worth a try
MANY_ROWS = 20_000  # of which threads share the sums
LARGEST_PART = 1 << 23  # log-densities of mixtures that are held at a time: 64 MB


@final
class MemoryRows(RowStore):
    """The rows of a table in memory.

    `inner`: returns the cross-validation of the training rows that chooses weights and scales, if there is
    one already.
    `kept_bytes`: how much the log-densities of rows may take that are kept for later.
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
        self.pieces = partition.queries
        self.train, self.test = partition.train, partition.test
        self._inner = inner
        self._kept_bytes = kept_bytes
        self._configurations: OrderedDict[Columns, tuple[Configurations, IntArray]] = OrderedDict()
        self._divisions: OrderedDict[Columns, Division] = OrderedDict()
        self._beside_atoms: OrderedDict[str, Part] = OrderedDict()
        self._asking: OrderedDict[bytes, MemoryRows] = OrderedDict()

    @cached_property
    def inner(self) -> MemoryRows:
        return self._inner() or (self if self.is_crossed else MemoryRows(self.partition.inner, self.settings))

    @cached_property
    def singles(self) -> tuple[MemoryRows, ...]:
        parts = map(self.partition.single, range(self.partition.groups))
        return tuple(MemoryRows(part, self.settings, kept_bytes=0) for part in parts)

    def asking(self, asked: BoolArray) -> MemoryRows:
        """Return a store in which only some of the rows are evaluated."""

        def found() -> MemoryRows:
            some, folds = self.partition.asking(asked), self.inner_folds
            kept = np.unique(self._group_of_row[asked])
            store = MemoryRows(some, self.settings, inner=lambda: self.inner, kept_bytes=0)
            store.inner_folds = None if folds is None else [folds[group] for group in kept]
            return store

        return remembered(self._asking, asked.tobytes(), found, limit=MOST_QUESTIONS)

    def evaluating(self, queries: Table, labels: IntArray) -> MemoryRows:
        """Return a store in which other rows are evaluated under what this cross-validation has fitted.

        `labels`: the fold of every one of them, to whose training rows it is compared.
        """
        partition = self.partition.evaluating(queries.select(self.partition.table.names), labels)
        store = MemoryRows(partition, self.settings, inner=lambda: self, kept_bytes=0)
        store.inner_folds = range(self.partition.groups)
        return store

    def previewing(self, asked: BoolArray, weighed_by: MemoryRows | None = None) -> MemoryRows:
        """Return such a store in which weights and scales are chosen by the few rows that are asked.

        `weighed_by`: another such store, by whose rows they are chosen instead.
        """
        some = self.partition.asking(asked)
        if weighed_by is None:
            some = replace(some, is_crossed=True)
        store = MemoryRows(some, self.settings, inner=lambda: weighed_by)
        store.fitted_by = self
        store.inner_folds = np.unique(self._group_of_row[asked]).tolist()
        return store

    @cached_property
    def fitted_by(self) -> MemoryRows:
        return self.inner

    @cached_property
    def densities(self) -> SetDensities:
        return self._densities((1.0,))

    @cached_property
    def scaled_densities(self) -> SetDensities:
        return self._densities(SCALES)

    @cached_property
    def held(self) -> MemoryRows:
        return MemoryRows(self.partition.held(), self.settings, kept_bytes=self._kept_bytes)

    def _densities(self, scales: Sequence[float]) -> SetDensities:
        rule, engine = self.settings.bandwidth, self.settings.engine
        partition = self.partition.thinned(self.settings.centres)
        return SetDensities(partition, rule, engine, scales=scales, kept_bytes=self._kept_bytes)

    def linear_totals(self, families: FamilyBatch) -> tuple[FloatArray, BoolArray]:
        totals, share = log_likelihoods(self.train, self.test, families.members, families.sizes)
        return totals, (share < ILL_CONDITIONED) & (totals > -np.inf)

    def linear_values(self, columns: IntArray) -> FloatArray | None:
        """Return the log-densities of rows under regressions on moments; None if these lack the digits."""
        directions, variances, share = residual_directions(self.train.counts, self.train.scatters, columns)
        if share < ILL_CONDITIONED:
            return None
        group, means = self._group_of_row, self.train.means[:, columns]
        residuals = np.zeros(self.pieces)
        for k, column in enumerate(columns):
            queried = self.partition.queried(self.partition.table.columns[column])
            residuals += directions[group, k] * (queried - means[group, k])
        variance = variances[group]
        return -0.5 * (residuals * residuals / variance + np.log(2.0 * math.pi * variance))

    @cached_property
    def _group_of_row(self) -> IntArray:
        return np.repeat(np.arange(self.partition.groups), self.partition.spans.query_counts)

    def counts(self, families: Sequence[Columns]) -> Iterator[tuple[Columns, FamilyCounts]]:
        partition = self.partition
        for columns in dict.fromkeys(families):
            levels = len(self.variables[columns[-1]].levels)
            found, places = self.configurations(columns[:-1])
            cells = places * levels + partition.table.columns[columns[-1]].astype(np.int64)
            train, test = partition.counted(cells, len(found) * levels)
            shape = (partition.groups, len(found), levels)
            queried = partition.queried(cells)
            yield columns, FamilyCounts(found, train.reshape(shape), test.reshape(shape), queried)

    def mixtures(
        self, families: FamilyBatch, line: Scorer, others: Sequence[ParametricScorer]
    ) -> Iterator[tuple[list[int], MemoryMixtures]]:
        """Yield families, some at a time, and their components.

        Families of the same variables follow one another, because the rows that they share are not
        kept for long if there are very many.
        """
        joints, _ = families.sets
        order = sorted(range(len(families)), key=joints.__getitem__)
        at_a_time = max(1, LARGEST_PART // ((len(SCALES) + 1 + len(others)) * self.pieces))
        for start in range(0, len(families), at_a_time):
            part = order[start : start + at_a_time]
            batch = families.only(np.array(part))
            by_scale = self.scaled_densities.conditional_values(batch)
            values = (scorer.rows(batch)[:, None] for scorer in (line, *others))
            yield part, MemoryMixtures(np.concatenate([by_scale, *values], axis=1))

    @cached_property
    def spreads(self) -> Spreads:
        """Order statistics of all columns."""
        return spreads_of(self.partition.original.columns)

    def sums(self, function: Callable[..., FloatArray], requests: Sequence[SumRequest]) -> list[FloatArray]:
        rows = self.partition.queried(self.partition.original.columns)
        starts = np.concatenate([[0], np.cumsum(self.partition.spans.query_counts)])
        # Threads share the groups if there are many rows: the sums of a group are one thread's.
        parts = list(pairwise(shares(len(starts) - 1) if rows.shape[1] > MANY_ROWS else (0, len(starts) - 1)))
        out: dict[tuple[int, int], FloatArray] = {}

        def add_up(number: int, first: int, end: int) -> None:
            asked, by_group, shared = requests[number]
            mine = frozen(rows[list(asked), starts[first] : starts[end]])
            arguments = [frozen(argument[first:end]) for argument in by_group]
            out[number, first] = function(mine, starts[first : end + 1] - starts[first], *arguments, *shared)

        run_tasks(add_up, [(number, *part) for number in range(len(requests)) for part in parts])
        if len(parts) == 1:
            return [out[number, 0] for number in range(len(requests))]
        return [np.concatenate([out[n, first] for first, _ in parts]) for n in range(len(requests))]

    values = sums

    def sample(self, most: int) -> tuple[FloatArray, IntArray]:
        rows = self.partition.queried(self.partition.original.columns)
        step = -(-rows.shape[1] // most)
        kept = np.arange(0, rows.shape[1], step)
        starts = np.concatenate([[0], np.cumsum(self.partition.spans.query_counts)])
        return rows[:, kept] if step > 1 else rows, np.searchsorted(kept, starts)

    @cached_property
    def inner_folds(self) -> Sequence[int] | None:
        if self.is_crossed:
            return range(self.partition.groups)
        if self.partition.groups > 1 or self.train.counts[0] < FEWEST_TO_CROSS:
            return None
        return (-1,) if self.inner.pieces == self.train.counts[0] else None

    def configurations(self, columns: Columns) -> tuple[Configurations, IntArray]:
        """Return the configurations of some discrete columns, and the place of every row among them."""

        def found() -> tuple[Configurations, IntArray]:
            variables = [self.variables[i] for i in columns]
            return Configurations.in_columns(variables, self.partition.table.columns[list(columns)])

        return remembered(self._configurations, columns, found, limit=self._most_sets)

    def split(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, Division]]:
        return ((columns, self.division(columns)) for columns in dict.fromkeys(sets))

    def division(self, columns: Columns) -> Division:
        """Return the rows by the configuration of some discrete columns."""
        return remembered(self._divisions, columns, lambda: self._divided(columns), limit=self._most_sets)

    @property
    def _most_sets(self) -> int:
        """How many sets of discrete columns are remembered: fewer of large tables."""
        return min(MOST_SETS, max(2, MOST_BYTES // self.partition.table.columns.nbytes))

    def _divided(self, columns: Columns) -> Division:
        configurations, places = self.configurations(columns)
        names = [variable.name for variable in self.variables if not variable.is_discrete]
        numbers = configurations.numbers.tolist()
        parts: dict[int, Part] = {}
        starved = np.ones(self.pieces, dtype=np.bool_)
        for place, below, queries in self.partition.divided(places, names, fewest=FEWEST_ROWS):
            number = numbers[place]
            due = self._kept_bytes * below.table.rows // (SHARE * self.partition.table.rows)
            inner = partial(self._inner_part, columns, number)
            parts[number] = Part(MemoryRows(below, self.settings, inner=inner, kept_bytes=due), queries)
            starved[queries] = False
        return Division(parts, starved, ~self.discrete, self.asking)

    @property
    def marked_by(self) -> Mapping[str, str]:
        return self.partition.table.marked_by

    def beside_atoms(self, mark: str) -> Part:
        return remembered(self._beside_atoms, mark, lambda: self._found_beside(mark), limit=MOST_SETS)

    def _found_beside(self, mark: str) -> Part:
        table = self.partition.table
        has_atom = (table.column(mark) > 0).astype(np.int64)
        for place, below, queries in self.partition.divided(has_atom, table.names, fewest=FEWEST_ROWS):
            if place == 0:
                due = self._kept_bytes * below.table.rows // table.rows
                inner = partial(self._inner_beside, mark)
                return Part(MemoryRows(below, self.settings, inner=inner, kept_bytes=due), queries)
        raise FitError(f"there are too few rows besides those that {mark!r} marks.")

    def _inner_beside(self, mark: str) -> MemoryRows | None:
        rows = None if self.inner is self else self.inner.beside_atoms(mark).rows
        return rows if isinstance(rows, MemoryRows) else None

    def _inner_part(self, columns: Columns, number: int) -> MemoryRows | None:
        """Return the cross-validation of a configuration's training rows, if this store is not one itself."""
        if self.inner is self:
            return None
        part = self.inner.division(columns).parts.get(number)
        return part.rows if part is not None and isinstance(part.rows, MemoryRows) else None

    def fold_tables(self, names: Sequence[str], *, centred: bool = False) -> Iterator[tuple[Table, Table]]:
        partition = self.partition
        table = (partition.table if centred else partition.original).select(names)
        for group in range(partition.groups):
            yield table.take(partition.training_rows(group)), table.take(partition.query_rows(group))

    def by_piece(self, by_group: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate(by_group)

    def in_data_order(self, pieces: FloatArray) -> FloatArray:
        return self.partition.in_data_order(pieces)


@dataclass(frozen=True, eq=False)
class MemoryMixtures:
    """Mixtures whose components are known in every row: families × components × rows."""

    components: FloatArray

    def best(self, usable: BoolArray | None = None) -> list[tuple[FloatArray, float]]:
        components = self.components
        if usable is not None:
            components = np.where(usable[:, None], components, -np.inf)
        return [mixing_weights(parts) for parts in components]

    def values(self, weights: FloatArray) -> FloatArray:
        out = np.full((len(self.components), self.components.shape[2]), -np.inf)
        for f, parts in enumerate(self.components):
            mixture = np.where(np.isfinite(parts).all(axis=1), weights[f], 0.0)
            if mixture.sum() > 0.0:
                out[f] = log_mixture(parts, mixture / mixture.sum())
        return out


@final
class SetDensities:
    """The log-densities of sets of columns: prepared once, asked many times."""

    def __init__(
        self,
        partition: Partition,
        bandwidth: BandwidthRule,
        engine: str,
        *,
        scales: Sequence[float] = (1.0,),
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.scales = tuple(scales)
        self._partition = partition
        self._rule = bandwidth
        self._engine = engine
        self._kept_bytes = kept_bytes
        self._totals: dict[VariableSet, tuple[FloatArray, BoolArray]] = {}
        self._rows: OrderedDict[VariableSet, FloatArray] = OrderedDict()

    def totals(self, sets: Sequence[VariableSet]) -> tuple[FloatArray, BoolArray]:
        """Return the log-density of all queried rows together, and whether one of them is far out.

        Both are sets × scales; -inf where the bandwidth is singular.
        """
        self._require_totals({variables for variables in sets if variables.columns})
        shape = (len(sets), len(self.scales))
        log_densities, far = np.zeros(shape), np.zeros(shape, dtype=bool)
        for number, variables in enumerate(sets):
            if variables.columns:  # the density of no variables is 1
                log_densities[number], far[number] = self._totals[variables]
        return log_densities, far

    def rows(self, sets: Sequence[VariableSet]) -> FloatArray:
        """Return sets × scales × queried rows; they are kept, as far as `kept_bytes` go."""
        wanted = dict.fromkeys(sets)
        found = {variables: self._rows[variables] for variables in wanted if variables in self._rows}
        for of_size in _by_size([variables for variables in wanted if variables not in found]):
            found.update(zip(of_size, self._computed(of_size), strict=True))
        nothing = np.zeros((len(self.scales), self._partition.queries))
        out = np.stack([found[s] if s.columns else nothing for s in sets])
        for variables, rows in found.items():
            self._rows[variables] = rows
            self._rows.move_to_end(variables)
        while len(self._rows) * nothing.nbytes > self._kept_bytes:
            self._rows.popitem(last=False)
        return out

    def conditional_totals(self, families: FamilyBatch) -> FloatArray:
        """Return the log-density of nodes given parents, of all rows together: families × scales.

        Under a named rule that is J of the members less M of the parents. A bandwidth function may treat the
        child differently from its parents, so nothing can be shared: such families are computed one by one.
        So are those with rows whose parents lie too far out to subtract M.
        """
        if callable(self._rule):
            return self.conditional_values(families).sum(axis=2)
        joints, parents = families.sets
        whole, (part, far) = self.totals(joints)[0], self.totals(parents)
        totals = np.where(np.isfinite(whole), whole - np.where(np.isfinite(part), part, 0.0), -np.inf)
        for f, members in enumerate(families.each):
            if far[f].any() and np.isfinite(whole[f]).any():
                totals[f] = self.family_rows(members).sum(axis=1)
        return totals

    def conditional_values(self, families: FamilyBatch) -> FloatArray:
        """Return the same by row, families × scales × queried rows; -inf throughout where it is in one."""
        if callable(self._rule):
            return np.stack([self.family_rows(members) for members in families.each])
        joints, parents = families.sets
        rows, below = self.rows(joints), self.rows(parents)
        for f, members in enumerate(families.each):
            if (below[f] < FAR).any():
                rows[f] = self.family_rows(members)
            else:
                rows[f] -= below[f]
        rows[~np.isfinite(rows).all(axis=2)] = -np.inf
        return rows

    def family_rows(self, members: IntArray) -> FloatArray:
        """Return the log-density of the last of some columns given the others: scales × queried rows.

        All -inf if it cannot be fitted.
        """
        whiteners = self._family_whiteners(members)
        if whiteners is None:
            return np.full((len(self.scales), self._partition.queries), -np.inf)
        rows = self._log_density(members[None], whiteners[None])[0]
        if len(members) > 1:
            block = np.ascontiguousarray(whiteners[:, :-1, :-1])
            parents = self._log_density(members[None, :-1], block[None])[0]
            for number, scale in enumerate(self.scales):
                narrowed = whiteners / math.sqrt(scale)
                rows[number] = quotient(
                    rows[number], parents[number], partial(self._far_rows, members, narrowed)
                )
        rows[~np.isfinite(rows).all(axis=1)] = -np.inf
        return rows

    def _require_totals(self, asked: set[VariableSet]) -> None:
        """Compute the totals that are not known yet, sets of one size at a time."""
        missing = sorted(asked - self._totals.keys())
        forget_older_half(self._totals, limit=MOST_TOTALS - len(missing), keep=asked)
        at_a_time = max(1, LARGEST_OUTPUT // (len(self.scales) * self._partition.table.rows))
        for of_size in _by_size(missing):
            for start in range(0, len(of_size), at_a_time):
                batch = of_size[start : start + at_a_time]
                for variables, density in zip(batch, self._computed(batch), strict=True):
                    self._totals[variables] = density.sum(axis=1), density.min(axis=1) < FAR

    def _computed(self, sets: Sequence[VariableSet]) -> FloatArray:
        """Log-densities under sets of one size, sets × scales × rows; -inf where a bandwidth is singular."""
        columns = np.array([variables.columns for variables in sets])
        whiteners, regular = self._named_whiteners(columns, [variables.dimension for variables in sets])
        out = np.full((len(sets), len(self.scales), self._partition.queries), -np.inf)
        if regular.any():
            out[regular] = self._log_density(columns[regular], whiteners[regular])
        return out

    def _named_whiteners(self, columns: IntArray, dimensions: Sequence[int]) -> tuple[FloatArray, BoolArray]:
        """Whiteners of sets under a named rule, for every group, and which sets have them."""
        train, rule = self._partition.train, str(self._rule)
        counts = train.counts.tolist()
        factors = {d: [bandwidths.factor(rule, n, d) for n in counts] for d in set(dimensions)}
        sets, d = columns.shape
        whiteners, regular = np.zeros((sets, len(counts), d, d)), np.ones(sets, dtype=np.bool_)
        by_set = np.array([factors[d] for d in dimensions])
        _whiteners(train.scatters, train.counts, columns, by_set, whiteners, regular)
        return whiteners, regular

    def _family_whiteners(self, members: IntArray) -> FloatArray | None:
        """Whiteners of a family, parents first, for every group; None if one is singular."""
        if not callable(self._rule):
            whiteners, regular = self._named_whiteners(members[None], [len(members)])
            return whiteners[0] if regular[0] else None
        found = []
        for group in range(self._partition.groups):
            train = self._partition.table.columns[members][:, self._partition.training_rows(group)]
            whitener = gaussian.whitener(bandwidths.family_matrix(self._rule, train))
            if whitener is None:
                return None
            found.append(whitener)
        return np.stack(found)

    def _far_rows(self, members: IntArray, whiteners: FloatArray, far: BoolArray) -> FloatArray:
        """Log-density of rows whose parents are far away, from the kernels directly."""
        partition = self._partition
        columns = partition.table.columns[members]
        parts, first = [], 0
        for group in range(partition.groups):
            queries = partition.query_rows(group)
            chosen = queries[far[first : first + len(queries)]]
            first += len(queries)
            if len(chosen):
                whitener = whiteners[group]
                train = whitener @ columns[:, partition.training_rows(group)]
                asked = whitener @ columns[:, chosen]
                parts.append(conditional_log_density(train, asked) + math.log(whitener[-1, -1]))
        return np.concatenate(parts)

    def _log_density(self, columns: IntArray, whiteners: FloatArray) -> FloatArray:
        points, spans = self._partition.table.columns, self._partition.spans
        if len(self.scales) == 1:
            density = kernels.log_density(points, columns, whiteners, spans, engine=self._engine)[:, None]
        else:
            density = kernels.log_density_by_scale(points, columns, whiteners, spans, engine=self._engine)
        return self._partition.queried(density)


def _by_size(sets: Sequence[VariableSet]) -> list[list[VariableSet]]:
    """Group sets by how many variables they have; the empty set has nothing to compute."""
    sizes = sorted({len(variables.columns) for variables in sets} - {0})
    return [[variables for variables in sets if len(variables.columns) == size] for size in sizes]


@compiled()
def _whiteners(
    scatters: FloatArray,
    counts: IntArray,
    columns: IntArray,
    factors: FloatArray,
    whiteners: FloatArray,
    regular: BoolArray,
) -> None:
    """Put in the whitener of every set and group, and False where a group of a set has none."""
    sets, d = columns.shape
    groups = len(counts)
    matrix = np.empty((d, d))
    lower = np.empty((d, d))
    for s in range(sets):
        for g in range(groups):
            factor = factors[s, g] / (counts[g] - 1.0)
            for i in range(d):
                for j in range(i + 1):
                    matrix[i, j] = factor * scatters[g, columns[s, i], columns[s, j]]
            if not gaussian.factorise(matrix, d, lower):
                regular[s] = False
                break
            gaussian.invert(lower, whiteners[s, g])
