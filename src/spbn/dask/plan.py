"""What all workers know about the rows, and how they read them: part by part, some rows at a time."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.sources import Chunk
from spbn.dask.sources import blocks as read_blocks
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
