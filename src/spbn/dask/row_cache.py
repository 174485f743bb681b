"""Log-densities that workers cache, row by row: what mixtures of densities are fitted to.

The sum of the logarithms of one density needs nothing but sums. A mixture needs the densities of all its
components at the same row, again and again until its weights are found. So the workers cache them, beside the
rows that they are of: `cache_densities` reads them from tables, `fill_gaps` adds those that tables cannot
answer, and `mixture_sums` makes passes over them. Whoever asks says what to cache and what to evict. A worker
that has taken over from one that died has nothing yet, and says so.

In three dimensions no grid is fine enough for kernels much narrower than CKDE's own. But few rows are within
their reach. So every worker reads the columns in question of all rows, as many at a time as fit into its
memory, and adds their kernels at its own rows (`cache_pairwise`, `kernels.pairwise_stream`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.mapreduce import Block, DensityRequest, Plan, Where, blocks, rows_to_check
from spbn.kernels.pairwise_stream import LEAF, QUERIES, Leaves, Sums, arranged
from spbn.numerics.mixture_weights import MixtureSums

BYTES_A_ROW = 176  # of three columns, with all that comes with it while they are added
FEWEST_AT_A_TIME = 500  # at a time, however little memory there is


class Key(NamedTuple):
    """What is cached: the log-density of a set of columns.

    Attributes
    ----------
    columns, dimension
        The set, as a `VariableSet`.
    scale
        What its bandwidth matrix is multiplied by.
    labels
        Those of the rows that it is read at: the one of the validation rows, or some of the folds.
    within
        The levels that the rows have which it is made of, and those of the rows that it is read at.
    """

    columns: tuple[int, ...]
    dimension: int
    scale: float
    labels: tuple[int, ...]
    within: tuple[Where, Where] = ((), ())


class _DensityCache:
    """What this process has cached, by plan, part and key: an array for every block of rows."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, int, Key], dict[int, FloatArray]] = {}
        self._lock = Lock()

    def evict(self, plan: Plan, parts: Sequence[int], keys: frozenset[Key]) -> None:
        """Evict what other plans had, and of these parts everything but some keys."""
        with self._lock:
            for entry in list(self._arrays):
                number, part, key = entry
                if number != plan.number or (part in parts and key not in keys):
                    del self._arrays[entry]

    def array(self, plan: Plan, part: int, key: Key, block: int, rows: int) -> FloatArray:
        """Return the array of a block, to be written to."""
        with self._lock:
            found = self._arrays.setdefault((plan.number, part, key), {})
            if block not in found or len(found[block]) != rows:
                found[block] = np.full(rows, np.nan)
            return found[block]

    def known(self, plan: Plan, part: int, key: Key, block: int) -> FloatArray | None:
        """Return the array of a block, if there is one."""
        with self._lock:
            return self._arrays.get((plan.number, part, key), {}).get(block)


CACHE = _DensityCache()


class CacheRequest(NamedTuple):
    """A density to read at the rows with a label, and the key under which to cache it."""

    reading: DensityRequest
    key: Key


class Unanswered(NamedTuple):
    """What a table leaves to others.

    Attributes
    ----------
    isolated
        The rows that it cannot answer, variables × rows.
    places
        Where they are: part, block, and place among the rows cached of that block, 3 × rows.
    checks, heights
        Some rows that it can answer, to check them, and what it answers.
    """

    isolated: FloatArray
    places: IntArray
    checks: FloatArray
    heights: FloatArray


def cache_densities(
    plan: Plan, parts: Sequence[int], asked: Sequence[CacheRequest], current: frozenset[Key]
) -> list[Unanswered]:
    """Read densities at the rows of some parts and cache their logarithms; evict all but current ones."""
    CACHE.evict(plan, parts, current)
    found: list[list[Unanswered]] = [[] for _ in asked]
    for part, number, block in numbered_blocks(plan, parts, [one.reading.columns for one in asked]):
        for place, one in enumerate(asked):
            reading = one.reading
            points = block.rows(reading.columns, (reading.label,))
            first, rows = span_of(plan, block, one.key.labels)
            mine = slice(block.starts[reading.label] - first, block.starts[reading.label + 1] - first)
            heights = reading.density.heights(points)
            good = heights >= reading.threshold
            values = np.full(len(heights), np.nan)
            values[good] = np.log(heights[good]) + reading.density.log_peak
            CACHE.array(plan, part, one.key, number, rows)[mine] = values
            apart = np.flatnonzero(~good)
            places = np.stack([np.full(len(apart), part), np.full(len(apart), number), mine.start + apart])
            chosen = rows_to_check(heights, good)
            left = Unanswered(points[:, apart], places, points[:, chosen], heights[chosen])
            found[place] = [join_unanswered([*found[place], left])]
    return [one[0] if one else _nothing(len(asked[place].reading.columns)) for place, one in enumerate(found)]


def join_unanswered(parts: Sequence[Unanswered]) -> Unanswered:
    """Put together what is left of different rows; of the checks, as many are kept as of one."""
    checks = np.concatenate([part.checks for part in parts], axis=1)
    heights = np.concatenate([part.heights for part in parts])
    chosen = rows_to_check(heights, np.ones(len(heights), dtype=np.bool_))
    return Unanswered(
        np.concatenate([part.isolated for part in parts], axis=1),
        np.concatenate([part.places for part in parts], axis=1),
        checks[:, chosen],
        heights[chosen],
    )


def _nothing(d: int) -> Unanswered:
    return Unanswered(np.empty((d, 0)), np.empty((3, 0), dtype=np.int64), np.empty((d, 0)), np.empty(0))


class Gaps(NamedTuple):
    """Log-densities that no table has, and their places (see `Unanswered`)."""

    key: Key
    places: IntArray
    values: FloatArray


def fill_gaps(plan: Plan, parts: Sequence[int], asked: Sequence[Gaps]) -> bool:
    """Put log-densities into their places; return False if this worker has not cached them."""
    for one in asked:
        for part, number in sorted(set(zip(*one.places[:2].tolist(), strict=True))):
            if part in parts:
                array = CACHE.known(plan, part, one.key, number)
                if array is None:
                    return False
                mine = (one.places[0] == part) & (one.places[1] == number)
                array[one.places[2, mine]] = one.values[mine]
    return True


class Line(NamedTuple):
    """A linear Gaussian for the rows of every label: directions × (row - means) are its residuals."""

    directions: FloatArray
    means: FloatArray
    variances: FloatArray

    def log_density(self, points: FloatArray, label: int) -> FloatArray:
        """Return the log-density of variables × rows, parents first and the node last."""
        residuals = self.directions[label] @ (points - self.means[label][:, None])
        variance = self.variances[label]
        return -0.5 * (residuals * residuals / variance + math.log(2.0 * math.pi * variance))


class MixtureRequest(NamedTuple):
    """A mixture of densities of a node given its parents.

    Attributes
    ----------
    columns
        The parents and, last, the node.
    kernels
        For every kernel component, the keys of all columns and of the parents: None without parents, and
        in place of both if there is no such component.
    line
        The last component; None if there is none.
    weights
        Of the components that there are, in order.
    labels
        Those of the rows that count: the one of the validation rows, or some of the others.
    """

    columns: tuple[int, ...]
    kernels: tuple[tuple[Key, Key | None] | None, ...]
    line: Line | None
    weights: FloatArray
    labels: tuple[int, ...]


def mixture_sums(
    plan: Plan, parts: Sequence[int], asked: Sequence[MixtureRequest]
) -> list[MixtureSums] | None:
    """Return the log-likelihoods of mixtures and their derivatives; None if densities are not cached here."""
    out = [MixtureSums.none(len(one.weights)) for one in asked]
    for part, number, block in numbered_blocks(plan, parts, [one.columns for one in asked]):
        for place, one in enumerate(asked):
            components = _components(plan, part, number, block, one)
            if components is None:
                return None
            out[place] = MixtureSums.add([out[place], MixtureSums.of(components, one.weights)])
    return out


def _components(plan: Plan, part: int, number: int, block: Block, asked: MixtureRequest) -> FloatArray | None:
    """Return components × rows of a block."""
    first, _ = span_of(plan, block, asked.labels)
    mine = _rows_of(block, asked.labels, first)
    found = []
    for pair in asked.kernels:
        if pair is None:
            continue
        whole = CACHE.known(plan, part, pair[0], number)
        below = None if pair[1] is None else CACHE.known(plan, part, pair[1], number)
        if whole is None or (pair[1] is not None and below is None):
            return None
        found.append(whole[mine] if below is None else whole[mine] - below[mine])
    if asked.line is not None:
        values = [
            asked.line.log_density(block.rows(asked.columns, (label,)), label) for label in asked.labels
        ]
        found.append(np.concatenate(values))
    return np.stack(found)


def _rows_of(block: Block, labels: Sequence[int], first: int) -> slice | IntArray:
    """Return the places of the rows with some labels among those that are cached of a block."""
    if labels[-1] - labels[0] + 1 == len(labels):
        return slice(int(block.starts[labels[0]]) - first, int(block.starts[labels[-1] + 1]) - first)
    return np.concatenate([np.arange(block.starts[m], block.starts[m + 1]) for m in labels]) - first


def span_of(plan: Plan, block: Block, labels: Sequence[int]) -> tuple[int, int]:
    """Return where the rows that are cached begin in a block, and how many there are.

    They are the validation rows if that is what the labels stand for, else those of all folds.
    """
    folds = plan.assignment.folds
    first, end = (folds, folds + 1) if labels[0] == folds else (0, folds)
    return int(block.starts[first]), int(block.starts[end] - block.starts[first])


def numbered_blocks(
    plan: Plan, parts: Sequence[int], needed: Sequence[Sequence[int]]
) -> Iterator[tuple[int, int, Block]]:
    """Yield parts, the numbers of their blocks, and the blocks."""
    for part in parts:
        for number, block in enumerate(blocks(plan, [part], needed)):
            yield part, number, block


class PairwiseRequest(NamedTuple):
    """Densities of one set of columns, to be added up pair by pair.

    Attributes
    ----------
    centre
        What is subtracted from the columns.
    keys
        The keys under which the densities are cached.
    whiteners, offsets
        Keys × labels: the inverse Cholesky factor of the bandwidth matrix, and what makes a log-density of
        the logarithm of a sum.
    rows
        How many training rows are read at a time.
    cached
        Whether the rows of others may take the place of a worker's own in memory: if there is room for all.
    labels
        Those of the rows that densities are asked for.
    within
        The levels that training rows have, if not all rows are.
    """

    columns: tuple[int, ...]
    centre: FloatArray
    keys: tuple[Key, ...]
    whiteners: FloatArray
    offsets: FloatArray
    rows: int
    cached: bool
    labels: tuple[int, ...]
    within: Where


class _Queries(NamedTuple):
    """The rows with a label, in an order in which neighbours follow each other."""

    order: IntArray
    points: FloatArray


def rows_at_a_time(table_bytes: int) -> int:
    """Return how many training rows fit into memory together."""
    return max(FEWEST_AT_A_TIME, table_bytes // BYTES_A_ROW)


def cache_pairwise(plan: Plan, parts: Sequence[int], asked: PairwiseRequest, current: frozenset[Key]) -> None:
    """Add kernels up at the rows of some parts and cache the logarithms; evict all but current ones."""
    CACHE.evict(plan, parts, current)
    labels = asked.labels
    mine = list(numbered_blocks(plan, parts, [asked.columns]))
    centre = asked.centre[:, None]
    queries = []
    for place, label in enumerate(labels):
        points = np.concatenate([block.rows(asked.columns, (label,)) for *_, block in mine], axis=1) - centre
        order = arranged(points, asked.whiteners[0, place], QUERIES)
        queries.append(_Queries(order, points[:, order]))
    sums = [[Sums.none(len(one.order)) for one in queries] for _ in asked.keys]
    for rows, of_rows in _training(replace(plan, where=asked.within), asked):
        order = arranged(rows - centre, asked.whiteners[0, 0], LEAF)
        rows, of_rows = rows[:, order] - centre, of_rows[order]
        for place, label in enumerate(labels):
            kept = of_rows != label
            for whiteners, found in zip(asked.whiteners, sums, strict=True):
                leaves = Leaves.of(rows, kept, whiteners[place])
                found[place].add(leaves, queries[place].points, whiteners[place])
    for key, found, offsets in zip(asked.keys, sums, asked.offsets, strict=True):
        for place, label in enumerate(labels):
            values = np.empty(len(queries[place].order))
            values[queries[place].order] = found[place].logarithms + offsets[place]
            sizes = [int(block.starts[label + 1] - block.starts[label]) for *_, block in mine]
            cuts = pairwise(np.cumsum([0, *sizes]).tolist())
            for (part, number, block), (start, end) in zip(mine, cuts, strict=True):
                first, count = span_of(plan, block, labels)
                begin = int(block.starts[label]) - first
                CACHE.array(plan, part, key, number, count)[begin : begin + end - start] = values[start:end]


def _training(plan: Plan, asked: PairwiseRequest) -> Iterator[tuple[FloatArray, IntArray]]:
    """Yield the rows of all folds and their labels, as many at a time as fit into memory."""
    pending: list[tuple[FloatArray, IntArray]] = []
    count = 0
    for part in range(len(plan.chunks)):
        for block, labels in plan.rows(part, asked.columns, cached=asked.cached):
            trained = labels < plan.assignment.folds
            rows, of_rows = block[:, trained], labels[trained]
            while len(of_rows):
                room = asked.rows - count
                pending.append((rows[:, :room], of_rows[:room]))
                count += len(pending[-1][1])
                rows, of_rows = rows[:, room:], of_rows[room:]
                if count == asked.rows:
                    yield _together(pending)
                    pending, count = [], 0
    if pending:
        yield _together(pending)


def _together(blocks: list[tuple[FloatArray, IntArray]]) -> tuple[FloatArray, IntArray]:
    """Put blocks of rows together, and release them: they would take as much memory again."""
    both = np.concatenate([rows for rows, _ in blocks], axis=1), np.concatenate([mine for _, mine in blocks])
    blocks.clear()
    return both
