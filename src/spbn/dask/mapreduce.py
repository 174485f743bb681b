"""What all workers know about the rows, how they read them, and passes over some parts of them.

Most passes are a function of one block of rows and a request, and another one that joins the answers of
several blocks (`fold_blocks`). What goes back is sums over rows, whatever their number. Only `collect` sends
all rows, for node types that need them.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from operator import add
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, frozen
from spbn.dask.sources import Chunk
from spbn.dask.sources import blocks as read_blocks
from spbn.errors import DataError, setting
from spbn.numerics.moments import Moments
from spbn.numerics.spreads import Spreads, without_far_values
from spbn.rows.store import Columns
from spbn.transforms import YeoJohnson

#: Discrete columns and their level codes, which rows must have.
Where = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class FoldAssignment:
    """Which rows are for validation, and which of the others are in which fold.

    The labels of a part of the rows depend on its number, the seed and its size, and on nothing else: not on
    who reads it, or when. Folds are 0, 1, ..., and `folds` is the label of validation rows.
    """

    seed: int
    folds: int
    validation: float

    def labels(self, number: int, rows: int) -> IntArray:
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        # Where it begins is random too: parts may be so small that no row would be held out of any.
        fraction, first = rng.random(), int(rng.integers(self.folds))
        order = rng.permutation(rows)
        held_out = math.floor(rows * self.validation + fraction)
        return np.where(order < held_out, self.folds, (order + first) % self.folds)


@dataclass(frozen=True, eq=False)
class Plan:
    """What all workers know."""

    number: str  # tells plans apart
    names: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    assignment: FoldAssignment
    dropped: Mapping[int, IntArray]  # by part, the rows that are left out because a value is missing in them
    cache_bytes: int  # how much of the columns a worker may keep in memory
    #: By column, the transforms that all that is computed goes through.
    margins: Mapping[str, YeoJohnson] = field(default_factory=dict)
    #: Those of the discrete columns, which are read as level codes.
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: Where = ()  # only rows that have all of these levels count

    def transformed(self, block: FloatArray, columns: Sequence[int]) -> FloatArray:
        """Return columns in the units that everything is computed in."""
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values are refused
            for column, values in zip(columns, block, strict=True):
                if self.names[column] in self.margins:
                    values[:] = self.margins[self.names[column]].forward(values)
        return block

    def rows(
        self, part: int, columns: Sequence[int], *, cached: bool = True
    ) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield columns of some rows of a part at a time, and the labels of these rows.

        If they are to be `cached`, they are kept in memory for the next time, instead of others.
        """
        first, labels = 0, np.empty(0, dtype=np.int64)
        needed = list(dict.fromkeys([*columns, *(column for column, _ in self.where)]))
        for block in _CACHE.blocks(self, part, needed, cached):
            if not first:
                rows = self.chunks[part].rows
                labels = self.assignment.labels(part, block.shape[1] if rows is None else rows)
            mine = labels[first : first + block.shape[1]]
            dropped = self.dropped.get(part)
            kept = np.ones(block.shape[1], dtype=np.bool_)
            if dropped is not None and len(dropped):
                kept = ~np.isin(np.arange(first, first + block.shape[1]), dropped)
            for column, code in self.where:
                kept &= block[needed.index(column)] == code
            wanted = block[: len(columns)]
            yield (wanted, mine) if kept.all() else (wanted[:, kept], mine[kept])
            first += block.shape[1]


class _Cache:
    """Columns that a process keeps, the latest ones, as far as a plan allows."""

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[str, int, int], FloatArray] = OrderedDict()
        self._cuts: dict[tuple[str, int], IntArray] = {}  # of parts, where blocks begin when they are read
        self._lock = Lock()

    def blocks(self, plan: Plan, part: int, columns: Sequence[int], cached: bool) -> Iterator[FloatArray]:
        """Yield columns of a part, some rows at a time: always the same, because some are counted on."""
        keys = [(plan.number, part, column) for column in columns]
        with self._lock:
            found = [self._columns.get(key) for key in keys]
            cuts = self._cuts.get((plan.number, part))
        if columns and cuts is not None and all(column is not None for column in found):
            yield from np.split(np.stack(found), cuts, axis=1)  # type: ignore[arg-type]
            return
        blocks, size = [], 0
        for read in read_blocks(plan.chunks[part], [plan.names[column] for column in columns], plan.levels):
            block = plan.transformed(read, columns)
            size += block.nbytes
            if cached and size <= plan.cache_bytes // 2:
                blocks.append(block)
            yield block
        if blocks and size <= plan.cache_bytes // 2:
            self._keep(plan, keys, blocks)

    def _keep(self, plan: Plan, keys: Sequence[tuple[str, int, int]], blocks: Sequence[FloatArray]) -> None:
        with self._lock:
            for key in [key for key in self._columns if key[0] != plan.number]:
                del self._columns[key]  # of work that is done
            for part in [part for part in self._cuts if part[0] != plan.number]:
                del self._cuts[part]
            self._cuts[keys[0][:2]] = np.cumsum([block.shape[1] for block in blocks[:-1]], dtype=np.int64)
            for key, column in zip(keys, np.concatenate(blocks, axis=1), strict=True):
                self._columns[key] = column.copy()
                self._columns.move_to_end(key)
            total = sum(column.nbytes for column in self._columns.values())
            while total > plan.cache_bytes:
                total -= self._columns.popitem(last=False)[1].nbytes


_CACHE = _Cache()


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a part in the order of their labels: those with label m begin at `starts[m]`.

    `number` counts the blocks of the part, which are the same in all passes.
    """

    part: int
    number: int
    columns: FloatArray
    places: Mapping[int, int]
    starts: IntArray

    def rows(self, columns: Sequence[int], labels: Sequence[int]) -> FloatArray:
        """Return columns of the rows with some labels, in order: variables × rows."""
        span = self.span(labels)
        return np.stack([self.columns[self.places[column]][span] for column in columns])

    def span(self, labels: Sequence[int], first: int = 0) -> slice | IntArray:
        """Return where the rows with some labels are, as seen from row `first`."""
        if labels[-1] - labels[0] + 1 == len(labels):
            return slice(int(self.starts[labels[0]]) - first, int(self.starts[labels[-1] + 1]) - first)
        return np.concatenate([np.arange(self.starts[m], self.starts[m + 1]) for m in labels]) - first

    def cached(self, labels: Sequence[int]) -> range:
        """Return the rows of which densities are cached: validation rows if they are asked for, or others."""
        folds = len(self.starts) - 2
        first, end = (folds, folds + 1) if labels[0] == folds else (0, folds)
        return range(int(self.starts[first]), int(self.starts[end]))


def blocks(plan: Plan, parts: Sequence[int], needed: Sequence[Sequence[int]]) -> Iterator[Block]:
    """Yield the columns that are needed, of some rows at a time."""
    columns = sorted({column for some in needed for column in some})
    places = {column: place for place, column in enumerate(columns)}
    for part in parts:
        for number, (block, labels) in enumerate(plan.rows(part, columns)):
            order = np.argsort(labels, kind="stable")
            starts = np.searchsorted(labels[order], np.arange(plan.assignment.folds + 2))
            yield Block(part, number, np.ascontiguousarray(block[:, order]), places, starts)


def fold_blocks(
    answer: Callable[[Plan, Block, Any], Any],
    join: Callable[[Sequence[Any]], Any],
    needed: Sequence[Columns],
    plan: Plan,
    parts: Sequence[int],
    asked: Sequence[Any],
) -> list[Any]:
    """Have every block of some parts answer requests, and return the joined answers to each."""
    found: list[Any] = []
    for block in blocks(plan, parts, needed):
        answers = [answer(plan, block, one) for one in asked]
        found = [join(both) for both in zip(found, answers, strict=True)] if found else answers
    return found


def only_where(where: Where, function: Callable[..., Any], plan: Plan, *arguments: Any) -> Any:
    """Call a function for only those rows that have certain levels."""
    return function(replace(plan, where=where), *arguments)


class Survey(NamedTuple):
    """What one look at a part of the rows tells."""

    rows: int
    moments: list[Moments]  # of the rows with each label
    low: FloatArray
    high: FloatArray
    median: FloatArray  # of the first rows
    bad: IntArray  # how many values of every column are missing or infinite
    dropped: IntArray  # the rows with such values


def survey(plan: Plan, part: int) -> Survey | None:
    """Look at all columns of a part; None if it is empty."""
    columns = list(range(len(plan.names)))
    labels_ = range(plan.assignment.folds + 1)
    moments = [Moments.of(np.empty((len(columns), 0))) for _ in labels_]
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    median = np.full(len(columns), np.nan)
    bad, dropped, first = np.zeros(len(columns), dtype=np.int64), [], 0
    for block, labels in plan.rows(part, columns):
        finite = np.isfinite(block)
        bad += (~finite).sum(axis=1)
        whole: BoolArray = finite.min(axis=0)
        dropped.append(first + np.flatnonzero(~whole))
        first += block.shape[1]
        kept, mine = (block, labels) if whole.all() else (block[:, whole], labels[whole])
        if not kept.shape[1]:
            continue
        low, high = np.minimum(low, kept.min(axis=1)), np.maximum(high, kept.max(axis=1))
        if np.isnan(median).all():
            median = np.median(kept[:, :1001], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that cannot be squared are refused later
            for label in labels_:
                moments[label] = moments[label] + Moments.of(kept[:, mine == label])
    if not first:
        return None
    rows = sum(found.count for found in moments)
    return Survey(rows, moments, low, high, median, bad, np.concatenate(dropped))


def require_finite(plan: Plan, found: Mapping[int, Survey]) -> None:
    """Refuse missing and infinite values, and say where the first are."""
    for part, seen in found.items():
        for name, bad in zip(plan.names, seen.bad.tolist(), strict=True):
            if bad:
                values = "value is" if bad == 1 else "values are"
                raise DataError(
                    f"{plan.chunks[part]}: {bad} {values} missing or infinite in column {name!r}. "
                    f"Fill them, or pass {setting('missing', 'drop')} to leave such rows out."
                )


class Counted(NamedTuple):
    """How many rows have the configurations of some columns: their numbers, and configurations × labels."""

    numbers: IntArray
    counts: IntArray


def count(plan: Plan, block: Block, columns: Columns) -> Counted:
    """Count the configurations of a set of discrete columns in a block."""
    labels = plan.assignment.folds + 1
    of_rows = np.repeat(np.arange(labels), np.diff(block.starts))
    return count_labels(configuration_numbers(plan, block, columns), of_rows, labels)


def count_labels(numbers: IntArray, of_rows: IntArray, labels: int) -> Counted:
    """Count the labels of rows that have each of some numbers."""
    distinct, places = np.unique(numbers, return_inverse=True)
    counts = np.bincount(places * labels + of_rows, minlength=len(distinct) * labels)
    return Counted(distinct, counts.reshape(-1, labels))


def add_counts(parts: Sequence[Counted]) -> Counted:
    """Add up the counts of different rows."""
    numbers = np.unique(np.concatenate([part.numbers for part in parts]))
    counts = np.zeros((len(numbers), parts[0].counts.shape[1]), dtype=np.int64)
    for part in parts:
        counts[np.searchsorted(numbers, part.numbers)] += part.counts
    return Counted(numbers, counts)


def configuration_numbers(plan: Plan, block: Block, columns: Columns) -> IntArray:
    """Return the configuration of every row of a block, the first column being the most significant."""
    numbers = np.zeros(int(block.starts[-1]), dtype=np.int64)
    for column in columns:
        levels = len(plan.levels[plan.names[column]])
        numbers = numbers * levels + block.columns[block.places[column]].astype(np.int64)
    return numbers


class GroupRequest(NamedTuple):
    """A function of columns in the rows with some labels, and its other arguments (see `RowStore.sums`)."""

    columns: Columns
    labels: tuple[int, ...]
    function: Callable[..., FloatArray]
    by_label: tuple[FloatArray, ...]  # arguments, along the first axis
    shared: tuple[object, ...]

    def only(self, places: Sequence[int]) -> GroupRequest:
        """Return the same for some of the labels, by their places."""
        labels = tuple(self.labels[place] for place in places)
        return self._replace(labels=labels, by_label=tuple(values[list(places)] for values in self.by_label))


def group_values(plan: Plan, block: Block, asked: GroupRequest) -> FloatArray:
    """Return what the function returns for the rows of a block that have the labels."""
    counts = np.diff(block.starts)[list(asked.labels)]
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = frozen(block.rows(asked.columns, asked.labels))
    return asked.function(rows, starts, *map(frozen, asked.by_label), *asked.shared)


def group_totals(plan: Plan, block: Block, asked: GroupRequest) -> FloatArray:
    """Return the sums of what the function returns for each of these rows, by label."""
    values = group_values(plan, block, asked)
    counts = np.diff(block.starts)[list(asked.labels)]
    return np.array([part.sum() for part in np.split(values, np.cumsum(counts)[:-1])])


def add_arrays(parts: Sequence[FloatArray]) -> FloatArray:
    """Add up the sums of different rows."""
    return np.sum(parts, axis=0)


def held_moments(plan: Plan, block: Block, spreads: Spreads) -> list[Moments]:
    """Return the moments of the rows with each label, in which values far out count as the median."""
    every, labels = tuple(range(len(plan.names))), range(plan.assignment.folds + 1)
    rows = [block.rows(every, (label,)) for label in labels]
    continuous = np.array([name not in plan.levels for name in plan.names])[:, None]
    return [Moments.of(np.where(continuous, without_far_values(some, spreads), some)) for some in rows]


def add_by_label(parts: Sequence[list[Moments]]) -> list[Moments]:
    """Add up the moments of different rows."""
    return [reduce(add, some) for some in zip(*parts, strict=True)]


#: By the number of a configuration, the moments of its rows with each label.
MomentsByConfiguration = Mapping[int, Sequence[Moments]]


def moments_by_configuration(plan: Plan, block: Block, columns: Columns) -> MomentsByConfiguration:
    """Return the moments of all columns, for every configuration of a set of discrete columns."""
    none = Moments.of(np.empty((len(plan.names), 0)))
    found: dict[int, list[Moments]] = {}
    numbers = configuration_numbers(plan, block, columns)
    for label, (start, end) in enumerate(pairwise(block.starts.tolist())):
        order = start + np.argsort(numbers[start:end], kind="stable")
        distinct, first = np.unique(numbers[order], return_index=True)
        for number, mine in zip(distinct.tolist(), np.split(order, first[1:]), strict=False):
            moments = found.setdefault(number, [none] * (plan.assignment.folds + 1))
            moments[label] = Moments.of(block.columns[:, mine])
    return found


def add_moments(parts: Sequence[MomentsByConfiguration]) -> MomentsByConfiguration:
    """Add up the moments of different rows."""
    out: dict[int, Sequence[Moments]] = {}
    for part in parts:
        for number, found in part.items():
            before = out.get(number)
            out[number] = found if before is None else [a + b for a, b in zip(before, found, strict=True)]
    return out


def collect(
    plan: Plan, parts: Sequence[int], columns: Columns, step: int
) -> list[tuple[int, FloatArray, IntArray]]:
    """Return the number of every part, columns of one row in `step` of it, and the labels of these."""
    found = []
    for part in parts:
        found_rows = ((rows[:, ::step], labels[::step]) for rows, labels in plan.rows(part, columns))
        pieces = [(np.empty((len(columns), 0)), np.empty(0, dtype=np.int64)), *found_rows]
        found.append(
            (part, np.concatenate([p for p, _ in pieces], axis=1), np.concatenate([m for _, m in pieces]))
        )
    return found
