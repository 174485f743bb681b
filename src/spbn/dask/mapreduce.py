"""What all workers know about the rows, and how they read them: part by part, some rows at a time."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.dask.sources import Chunk
from spbn.dask.sources import blocks as read_blocks
from spbn.errors import DataError, setting
from spbn.kernels import exact
from spbn.kernels.compression import Outskirts
from spbn.kernels.estimates import Spans, whitened
from spbn.kernels.spectral.tables import Lattice, RowTable, TabledDensity
from spbn.numerics.moments import Moments
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
        """Return the labels of the rows of a part."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        # Where it begins is random too: parts may be so small that no row would be held out of any.
        fraction, first = rng.random(), int(rng.integers(self.folds))
        order = rng.permutation(rows)
        held_out = math.floor(rows * self.validation + fraction)
        labels: IntArray = np.where(order < held_out, self.folds, (order + first) % self.folds)
        return labels


@dataclass(frozen=True, eq=False)
class Plan:
    """What all workers know.

    Attributes
    ----------
    number
        Tells plans apart.
    dropped
        By part, the rows that are left out because a value is missing in them.
    cache_bytes
        How much of the columns a worker may keep in memory.
    margins
        By column, the transforms that all that is computed goes through.
    levels
        Those of the discrete columns, which are read as level codes.
    where
        Columns and level codes: only rows that have all of these count; all rows if there are none.
    """

    number: str
    names: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    assignment: FoldAssignment
    dropped: Mapping[int, IntArray]
    cache_bytes: int
    margins: Mapping[str, YeoJohnson] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: Where = ()

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

        Parameters
        ----------
        cached
            Whether they are to be kept in memory for the next time, instead of others.
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
    """Some rows in the order of their labels: those with label m begin at `starts[m]`."""

    columns: FloatArray
    places: Mapping[int, int]
    starts: IntArray

    def rows(self, columns: Sequence[int], labels: Sequence[int]) -> FloatArray:
        """Return columns of the rows with some labels, in order: variables × rows."""
        chosen = [self.places[column] for column in columns]
        first, last = labels[0], labels[-1]
        if last - first + 1 == len(labels):
            return np.stack([self.columns[c, self.starts[first] : self.starts[last + 1]] for c in chosen])
        places = np.concatenate([np.arange(self.starts[m], self.starts[m + 1]) for m in labels])
        return self.columns[np.ix_(np.array(chosen), places)]


def blocks(plan: Plan, parts: Sequence[int], needed: Sequence[Sequence[int]]) -> Iterator[Block]:
    """Yield the columns that are needed, of some rows at a time."""
    columns = sorted({column for some in needed for column in some})
    places = {column: place for place, column in enumerate(columns)}
    for part in parts:
        for block, labels in plan.rows(part, columns):
            order = np.argsort(labels, kind="stable")
            starts = np.searchsorted(labels[order], np.arange(plan.assignment.folds + 2))
            yield Block(np.ascontiguousarray(block[:, order]), places, starts)


def only_where(
    where: Where,
    function: Callable[..., Any],
    plan: Plan,
    parts: Sequence[int],
    *arguments: Any,
) -> Any:
    """Call a function for only those rows of some parts that have certain levels."""
    return function(replace(plan, where=where), parts, *arguments)


# ----------------------------------------------------------------------------------------------------
# What workers do with their rows: every function here makes one pass over some parts of the rows.
#
# What goes back is sums over rows, whatever their number, with three exceptions, each a handful of rows that
# lie far from others: those that a table of kernels cannot answer (`read_tables`), the ends of whitened
# coordinates (`tails`), and those that a compact density has to keep (`outposts`). Only `collect` sends all
# rows, for node types that need them.


TAIL = 2048  # of the least and greatest coordinates that are reported
CHECKS = 2  # of the least dense rows that a table answers, and as many others, are checked


class Survey(NamedTuple):
    """What one look at a part of the rows tells.

    Attributes
    ----------
    moments
        Of the rows with each label.
    low, high, median
        Of every column; the medians are those of the first rows.
    bad
        How many values of every column are missing or infinite.
    dropped
        The rows with such values.
    """

    rows: int
    moments: list[Moments]
    low: FloatArray
    high: FloatArray
    median: FloatArray
    bad: IntArray
    dropped: IntArray


def survey(plan: Plan, parts: Sequence[int]) -> dict[int, Survey]:
    """Look at all columns of some parts; what is empty is left out."""
    return {part: found for part in parts if (found := _surveyed(plan, part)) is not None}


def _surveyed(plan: Plan, part: int) -> Survey | None:
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
    for part, seen in sorted(found.items()):
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


def count(plan: Plan, parts: Sequence[int], asked: Sequence[Columns]) -> list[Counted]:
    """Count the configurations of sets of discrete columns in some parts."""
    labels = plan.assignment.folds + 1
    out = [count_labels(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), labels) for _ in asked]
    for block in blocks(plan, parts, asked):
        of_rows = np.repeat(np.arange(labels), np.diff(block.starts))
        for place, columns in enumerate(asked):
            found = count_labels(configuration_numbers(plan, block, columns), of_rows, labels)
            out[place] = add_counts([out[place], found])
    return out


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


#: By the number of a configuration, the moments of its rows with each label.
MomentsByConfiguration = Mapping[int, Sequence[Moments]]


def moments_by_configuration(
    plan: Plan, parts: Sequence[int], asked: Sequence[Columns]
) -> list[MomentsByConfiguration]:
    """Return the moments of all columns, for every configuration of sets of discrete columns."""
    every = list(range(len(plan.names)))
    none = Moments.of(np.empty((len(every), 0)))
    out: list[dict[int, list[Moments]]] = [{} for _ in asked]
    for block in blocks(plan, parts, [every]):
        for found, columns in zip(out, asked, strict=True):
            numbers = configuration_numbers(plan, block, columns)
            for label, (start, end) in enumerate(pairwise(block.starts.tolist())):
                order = start + np.argsort(numbers[start:end], kind="stable")
                distinct, first = np.unique(numbers[order], return_index=True)
                for number, mine in zip(distinct.tolist(), np.split(order, first[1:]), strict=False):
                    moments = found.setdefault(number, [none] * (plan.assignment.folds + 1))
                    moments[label] = moments[label] + Moments.of(block.columns[:, mine])
    return list(out)


def add_moments(parts: Sequence[MomentsByConfiguration]) -> MomentsByConfiguration:
    """Add up the moments of different rows."""
    out: dict[int, Sequence[Moments]] = {}
    for part in parts:
        for number, found in part.items():
            before = out.get(number)
            out[number] = found if before is None else [a + b for a, b in zip(before, found, strict=True)]
    return out


def collect(plan: Plan, parts: Sequence[int], columns: Columns) -> list[tuple[int, FloatArray, IntArray]]:
    """Return the number of every part, columns of all its rows, and their labels."""
    found = []
    for part in parts:
        pieces = [(np.empty((len(columns), 0)), np.empty(0, dtype=np.int64)), *plan.rows(part, columns)]
        found.append(
            (part, np.concatenate([p for p, _ in pieces], axis=1), np.concatenate([m for _, m in pieces]))
        )
    return found


class TailRequest(NamedTuple):
    """Coordinates of which the tails are asked for: of the rows with some labels."""

    columns: tuple[int, ...]
    centre: FloatArray
    whitener: FloatArray
    labels: tuple[int, ...]


def tails(plan: Plan, parts: Sequence[int], asked: Sequence[TailRequest]) -> list[FloatArray]:
    """Return, for everything asked, its least and greatest coordinates: 2 × variables × at most `TAIL`."""
    found: list[list[FloatArray]] = [[] for _ in asked]
    for block in blocks(plan, parts, [one.columns for one in asked]):
        for number, one in enumerate(asked):
            rows = block.rows(one.columns, one.labels)
            if rows.shape[1]:
                coordinates = whitened(rows - one.centre[:, None], one.whitener)
                found[number] = [join_tails([*found[number], _tails(coordinates)])]
    return [one[0] if one else np.empty((2, len(a.columns), 0)) for one, a in zip(found, asked, strict=True)]


def _tails(coordinates: FloatArray) -> FloatArray:
    if coordinates.shape[1] > TAIL:
        low = np.partition(coordinates, TAIL, axis=1)[:, :TAIL]
        high = np.partition(coordinates, -TAIL, axis=1)[:, -TAIL:]
        return np.stack([low, high])
    return np.stack([coordinates, coordinates])


def join_tails(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the tails of all rows from those of parts."""
    every = np.concatenate(parts, axis=2)
    if every.shape[2] <= TAIL:
        return every
    return np.stack(
        [np.partition(every[0], TAIL, axis=1)[:, :TAIL], np.partition(every[1], -TAIL, axis=1)[:, -TAIL:]]
    )


class TableRequest(NamedTuple):
    """Tables to make: of the rows with each of some sets of labels."""

    columns: tuple[int, ...]
    lattice: Lattice
    labels: tuple[tuple[int, ...], ...]


def spread(plan: Plan, parts: Sequence[int], asked: Sequence[TableRequest]) -> list[list[RowTable]]:
    """Return, for everything asked, the tables of the rows with each of its sets of labels."""
    windows = [[np.zeros(one.lattice.grid.shape) for _ in one.labels] for one in asked]
    counts = [[0 for _ in one.labels] for one in asked]
    for block in blocks(plan, parts, [one.columns for one in asked]):
        for number, one in enumerate(asked):
            for slot, mine in enumerate(one.labels):
                rows = block.rows(one.columns, mine)
                counts[number][slot] += rows.shape[1]
                one.lattice.spread(rows, windows[number][slot])  # in place: it may be much larger
    return [
        [RowTable(one.lattice, *both) for both in zip(rows, tables, strict=True)]
        for one, rows, tables in zip(asked, counts, windows, strict=True)
    ]


class DensityRequest(NamedTuple):
    """Densities to read at the rows with a label."""

    columns: tuple[int, ...]
    density: TabledDensity
    label: int
    threshold: float


class Reading(NamedTuple):
    """What a table answers: the sum of the log-heights of rows, how many they are, and what is left.

    Attributes
    ----------
    isolated
        The rows that it cannot answer, variables × rows: a handful, and the only rows that leave a worker.
    checks, heights
        Some rows that it can answer, to check them, and what it answers.
    """

    total: float
    rows: int
    isolated: FloatArray
    checks: FloatArray
    heights: FloatArray


def read_tables(plan: Plan, parts: Sequence[int], asked: Sequence[DensityRequest]) -> list[Reading]:
    """Return what tables answer at the rows of some parts."""
    out: list[list[Reading]] = [[] for _ in asked]
    for block in blocks(plan, parts, [one.columns for one in asked]):
        for number, one in enumerate(asked):
            points = block.rows(one.columns, (one.label,))
            heights = one.density.heights(points)
            good = heights >= one.threshold
            chosen = rows_to_check(heights, good)
            read = Reading(
                float(np.log(heights[good]).sum()),
                int(good.sum()),
                points[:, ~good],
                points[:, chosen],
                heights[chosen],
            )
            out[number] = [join_readings([*out[number], read])]
    empty = [np.empty((len(one.columns), 0)) for one in asked]
    return [
        found[0] if found else Reading(0.0, 0, none, none, np.empty(0))
        for found, none in zip(out, empty, strict=True)
    ]


def rows_to_check(heights: FloatArray, good: BoolArray) -> IntArray:
    """Choose rows to check: the least dense ones that are answered, and some others."""
    answered = np.flatnonzero(good)
    if len(answered) <= 2 * CHECKS:
        return answered
    least = answered[np.argpartition(heights[answered], CHECKS)[:CHECKS]]
    evenly = answered[np.linspace(0, len(answered) - 1, CHECKS).astype(int)]
    return np.union1d(least, evenly)


def join_readings(parts: Sequence[Reading]) -> Reading:
    """Add up readings of the same densities at different rows; of the checks, as many are kept as of one."""
    checks = np.concatenate([part.checks for part in parts], axis=1)
    heights = np.concatenate([part.heights for part in parts])
    chosen = rows_to_check(heights, np.ones(len(heights), dtype=np.bool_))
    return Reading(
        math.fsum(part.total for part in parts),
        sum(part.rows for part in parts),
        np.concatenate([part.isolated for part in parts], axis=1),
        checks[:, chosen],
        heights[chosen],
    )


class KernelRequest(NamedTuple):
    """Kernels to add up at some points, variables × points: those of training rows without a label."""

    columns: tuple[int, ...]
    centre: FloatArray
    whitener: FloatArray
    label: int
    points: FloatArray


def add_kernels(plan: Plan, parts: Sequence[int], asked: Sequence[KernelRequest]) -> list[FloatArray]:
    """Return, for everything asked, the log of the sum of the kernels at its points."""
    out = [np.full(one.points.shape[1], -np.inf) for one in asked]
    folds = tuple(range(plan.assignment.folds))
    for block in blocks(plan, parts, [one.columns for one in asked]):
        starts, training = block.starts, int(block.starts[plan.assignment.folds])
        for number, one in enumerate(asked):
            first, end = starts[one.label], min(starts[one.label + 1], training)
            count = training - max(0, int(end - first))
            if not count or not one.points.shape[1]:
                continue
            rows = block.rows(one.columns, folds)
            points = np.concatenate([rows, one.points], axis=1) - one.centre[:, None]
            span = [
                training,
                points.shape[1],
                0,
                min(first, training),
                max(end, min(first, training)),
                training,
            ]
            values = exact.log_density(
                np.ascontiguousarray(points),
                np.arange(len(rows))[None],
                one.whitener[None, None],
                Spans(np.array([span])),
            )[0, training:]
            out[number] = np.logaddexp(out[number], values + math.log(count))
    return out


class OutpostRequest(NamedTuple):
    """Rows to keep with a compact density: those near the outskirts of all rows; all if there are none."""

    columns: tuple[int, ...]
    outskirts: Outskirts | None
    centre: FloatArray
    whitener: FloatArray


def outposts(plan: Plan, parts: Sequence[int], asked: OutpostRequest) -> FloatArray:
    """Return the rows to keep, variables × rows, in coordinates in which kernels are standard normals."""
    found = [np.empty((len(asked.columns), 0))]
    everything = tuple(range(plan.assignment.folds + 1))
    for block in blocks(plan, parts, [asked.columns]):
        points = block.rows(asked.columns, everything)
        coordinates = whitened(points - asked.centre[:, None], asked.whitener)
        chosen = slice(None) if asked.outskirts is None else asked.outskirts.holds(coordinates)
        found.append(coordinates[:, chosen])
    return np.concatenate(found, axis=1)
