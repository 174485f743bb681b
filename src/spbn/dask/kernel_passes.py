"""Kernel densities on workers: what blocks of rows answer to requests (see `mapreduce.fold_blocks`).

`spread` puts rows on grids, which add up, and `read_table` reads the densities that come of them at rows.
Few rows leave a worker, and these lie far from others: those that a table cannot answer (`read_table`), the
ends of whitened coordinates (`tails`), and those that a compact density has to keep (`outposts`).

A single density only needs sums of logarithms. A mixture needs the densities of all its components at the
same row, again and again until its weights are found. So the workers cache them, beside the rows that they
are of: `read_table` does if it is given a key, `fill_gaps` adds those that tables cannot answer, and
`mixture_sums` makes passes over them. Whoever asks says what to cache and what to evict. A worker that has
taken over from one that died has nothing yet, and says so.

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

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.dask.mapreduce import Block, GroupRequest, Plan, Where, blocks, group_values
from spbn.kernels import exact
from spbn.kernels.compression import Outskirts
from spbn.kernels.estimates import Spans, whitened
from spbn.kernels.pairwise_stream import LEAF, QUERIES, Leaves, Sums, arranged
from spbn.kernels.spectral.tables import Lattice, RowTable, TabledDensity
from spbn.numerics.mixture_weights import MixtureSums
from spbn.rows.store import Columns

TAIL = 2048  # of the least and greatest coordinates that are reported
CHECKS = 2  # of the least dense rows that a table answers, and as many others, are checked
BYTES_A_ROW = 176  # of three columns, with all that comes with it while they are added
FEWEST_AT_A_TIME = 500  # at a time, however little memory there is


class TailRequest(NamedTuple):
    """Coordinates of which the tails are asked for: of the rows with some labels."""

    columns: Columns
    centre: FloatArray
    whitener: FloatArray
    labels: tuple[int, ...]


def tails(plan: Plan, block: Block, asked: TailRequest) -> FloatArray:
    """Return the least and the greatest coordinates: 2 × variables × at most `TAIL`."""
    rows = block.rows(asked.columns, asked.labels)
    coordinates = whitened(rows - asked.centre[:, None], asked.whitener)
    return join_tails([np.stack([coordinates, coordinates])])


def join_tails(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the tails of all rows from those of parts: 2 × variables × at most `TAIL`."""
    low, high = every = np.concatenate(parts, axis=2)
    if every.shape[2] <= TAIL:
        return every
    return np.stack([np.partition(low, TAIL, axis=1)[:, :TAIL], np.partition(high, -TAIL, axis=1)[:, -TAIL:]])


class TableRequest(NamedTuple):
    """Tables to make: of the rows with each of some sets of labels."""

    columns: Columns
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


class Key(NamedTuple):
    """What is cached: the log-density of a set of columns, as a `VariableSet` has them."""

    columns: Columns
    dimension: int
    scale: float  # what its bandwidth matrix is multiplied by
    labels: tuple[int, ...]  # of the rows that it is read at: that of the validation rows, or some folds
    #: The levels that the rows have which it is made of, and those of the rows that it is read at.
    within: tuple[Where, Where] = ((), ())


#: What this process has cached, by plan, part and key: an array for every block of rows.
_ARRAYS: dict[tuple[str, int, Key], dict[int, FloatArray]] = {}
_LOCK = Lock()


class LostError(Exception):
    """A worker does not have what it should have cached."""


def evict(plan: Plan, parts: Sequence[int], keys: frozenset[Key]) -> None:
    """Evict what other plans had, and of these parts everything but some keys."""
    with _LOCK:
        for entry in list(_ARRAYS):
            number, part, key = entry
            if number != plan.number or (part in parts and key not in keys):
                del _ARRAYS[entry]


def _writable(plan: Plan, block: Block, key: Key) -> FloatArray:
    """Return the array of a block, to be written to."""
    with _LOCK:
        found = _ARRAYS.setdefault((plan.number, block.part, key), {})
        rows = len(block.cached(key.labels))
        if block.number not in found or len(found[block.number]) != rows:
            found[block.number] = np.full(rows, np.nan)
        return found[block.number]


def _cached(plan: Plan, part: int, block: int, key: Key) -> FloatArray:
    """Return the array of a block, which should be there."""
    with _LOCK:
        found = _ARRAYS.get((plan.number, part, key), {}).get(block)
    if found is None:
        raise LostError
    return found


class DensityRequest(NamedTuple):
    """A density to read at the rows with a label, and the key to cache its logarithms under, if any."""

    columns: Columns
    density: TabledDensity
    label: int
    threshold: float
    key: Key | None = None


class Reading(NamedTuple):
    """What a table answers: the sum of the log-heights of rows, how many they are, and what is left."""

    total: float
    rows: int
    #: The rows that it cannot answer, variables × rows: a handful, and the only rows that leave a worker.
    isolated: FloatArray
    #: Where they are: part, block, and place among the rows that are cached of that block, 3 × rows.
    places: IntArray
    checks: FloatArray  # some rows that it can answer, to check them
    heights: FloatArray  # what it answers there

    @classmethod
    def join(cls, parts: Sequence[Reading]) -> Reading:
        """Add up readings of one density at different rows; of the checks, as many are kept as of one."""
        totals, rows, isolated, places, checks, heights = zip(*parts, strict=True)
        every, their_heights = np.concatenate(checks, axis=1), np.concatenate(heights)
        chosen = _rows_to_check(their_heights, np.ones(len(their_heights), dtype=np.bool_))
        return cls(
            math.fsum(totals),
            sum(rows),
            np.concatenate(isolated, axis=1),
            np.concatenate(places, axis=1),
            every[:, chosen],
            their_heights[chosen],
        )


def read_table(plan: Plan, block: Block, asked: DensityRequest) -> Reading:
    """Return what a table answers at the rows of a block, and cache that if it has a key."""
    points = block.rows(asked.columns, (asked.label,))
    heights = asked.density.heights(points)
    good = heights >= asked.threshold
    logarithms, isolated, first = np.log(heights[good]), np.flatnonzero(~good), 0
    if asked.key is not None:
        values = np.full(len(heights), np.nan)
        values[good] = logarithms + asked.density.log_peak
        first = int(block.starts[asked.label]) - block.cached(asked.key.labels).start
        _writable(plan, block, asked.key)[first : first + len(values)] = values
    places = np.stack([np.full_like(isolated, where) for where in (block.part, block.number)])
    chosen = _rows_to_check(heights, good)
    return Reading(
        float(logarithms.sum()),
        len(logarithms),
        points[:, isolated],
        np.concatenate([places, first + isolated[None]]),
        points[:, chosen],
        heights[chosen],
    )


def _rows_to_check(heights: FloatArray, good: BoolArray) -> IntArray:
    """Choose rows to check: the least dense ones that are answered, and some others."""
    answered = np.flatnonzero(good)
    if len(answered) <= 2 * CHECKS:
        return answered
    least = answered[np.argpartition(heights[answered], CHECKS)[:CHECKS]]
    evenly = answered[np.linspace(0, len(answered) - 1, CHECKS).astype(int)]
    return np.union1d(least, evenly)


class KernelRequest(NamedTuple):
    """Kernels to add up at some points, variables × points: those of training rows without a label."""

    columns: Columns
    centre: FloatArray
    whitener: FloatArray
    label: int
    points: FloatArray


def add_kernels(plan: Plan, block: Block, asked: KernelRequest) -> FloatArray:
    """Return the log of the sum of the kernels at the points."""
    folds = plan.assignment.folds
    starts, training = block.starts, int(block.starts[folds])
    first, end = starts[asked.label], min(starts[asked.label + 1], training)
    count = training - max(0, int(end - first))
    if not count or not asked.points.shape[1]:
        return np.full(asked.points.shape[1], -np.inf)
    rows = block.rows(asked.columns, tuple(range(folds)))
    points = np.concatenate([rows, asked.points], axis=1) - asked.centre[:, None]
    before = min(first, training)
    span = [training, points.shape[1], 0, before, max(end, before), training]
    values = exact.log_density(
        np.ascontiguousarray(points),
        np.arange(len(rows))[None],
        asked.whitener[None, None],
        Spans(np.array([span])),
    )[0, training:]
    return values + math.log(count)


class OutpostRequest(NamedTuple):
    """Rows to keep with a compact density: those near the outskirts of all rows; all if there are none."""

    columns: Columns
    outskirts: Outskirts | None
    centre: FloatArray
    whitener: FloatArray


def outposts(plan: Plan, block: Block, asked: OutpostRequest) -> FloatArray:
    """Return the rows to keep, variables × rows, in coordinates in which kernels are standard normals."""
    points = block.rows(asked.columns, tuple(range(plan.assignment.folds + 1)))
    coordinates = whitened(points - asked.centre[:, None], asked.whitener)
    return coordinates if asked.outskirts is None else coordinates[:, asked.outskirts.holds(coordinates)]


class Gaps(NamedTuple):
    """Log-densities that no table has, and their places (see `Reading`)."""

    key: Key
    places: IntArray
    values: FloatArray


def fill_gaps(plan: Plan, parts: Sequence[int], asked: Sequence[Gaps]) -> None:
    """Put log-densities into their places."""
    for one in asked:
        for part, number in sorted(set(zip(*one.places[:2].tolist(), strict=True))):
            if part in parts:
                mine = (one.places[0] == part) & (one.places[1] == number)
                _cached(plan, part, number, one.key)[one.places[2, mine]] = one.values[mine]


def line_log_densities(
    points: FloatArray, starts: IntArray, directions: FloatArray, means: FloatArray, variances: FloatArray
) -> FloatArray:
    """Return the log-density of every row under a line; its residual is direction × (row - means)."""
    groups = np.repeat(np.arange(len(variances)), np.diff(starts))
    residuals = np.einsum("rc,cr->r", directions[groups], points - means[groups].T)
    variance = variances[groups]
    return -0.5 * (residuals * residuals / variance + np.log(2.0 * math.pi * variance))


class MixtureRequest(NamedTuple):
    """A mixture of densities of a node given its parents."""

    columns: Columns  # the parents and, last, the node
    #: For every kernel component that there is, the keys of all columns and of the parents, if any.
    kernels: Sequence[tuple[Key, ...]]
    others: Sequence[GroupRequest]  # the other components that there are
    weights: FloatArray  # of the components that there are, in order
    labels: tuple[int, ...]  # of the rows that count: that of the validation rows, or some of the others


def mixture_sums(plan: Plan, block: Block, asked: MixtureRequest) -> MixtureSums:
    """Return the log-likelihood of a mixture and its derivatives."""
    mine = block.span(asked.labels, block.cached(asked.labels).start)
    found = []
    for keys in asked.kernels:
        whole, *below = [_cached(plan, block.part, block.number, key)[mine] for key in keys]
        found.append(whole - below[0] if below else whole)
    found += [group_values(plan, block, other) for other in asked.others]
    return MixtureSums.of(np.stack(found), asked.weights)


class PairwiseRequest(NamedTuple):
    """Densities of one set of columns, to be added up pair by pair."""

    columns: Columns
    centre: FloatArray  # what is subtracted from the columns
    keys: tuple[Key, ...]  # under which the densities are cached
    whiteners: FloatArray  # keys × labels: the inverse Cholesky factors of bandwidth matrices
    offsets: FloatArray  # keys × labels: what makes a log-density of the logarithm of a sum
    rows: int  # how many training rows are read at a time
    #: Whether the rows of others may take the place of a worker's own in memory: if there is room for all.
    cached: bool
    labels: tuple[int, ...]  # of the rows that densities are asked for
    within: Where  # the levels that training rows have, if not all rows are


def rows_at_a_time(table_bytes: int) -> int:
    """Return how many training rows fit into memory together."""
    return max(FEWEST_AT_A_TIME, table_bytes // BYTES_A_ROW)


def cache_pairwise(plan: Plan, parts: Sequence[int], asked: PairwiseRequest) -> None:
    """Add kernels up at the rows of some parts and cache the logarithms."""
    labels, centre = asked.labels, asked.centre[:, None]
    mine = list(blocks(plan, parts, [asked.columns]))
    queries = []  # the rows with each label, in an order in which neighbours follow each other
    for place, label in enumerate(labels):
        points = np.concatenate([block.rows(asked.columns, (label,)) for block in mine], axis=1) - centre
        order = arranged(points, asked.whiteners[0, place], QUERIES)
        queries.append((order, points[:, order]))
    sums = [[Sums.none(len(order)) for order, _ in queries] for _ in asked.keys]
    for rows, of_rows in _training(replace(plan, where=asked.within), asked):
        order = arranged(rows - centre, asked.whiteners[0, 0], LEAF)
        rows, of_rows = rows[:, order] - centre, of_rows[order]
        for place, label in enumerate(labels):
            kept = of_rows != label
            for whiteners, found in zip(asked.whiteners, sums, strict=True):
                leaves = Leaves.of(rows, kept, whiteners[place])
                found[place].add(leaves, queries[place][1], whiteners[place])
    for key, found, offsets in zip(asked.keys, sums, asked.offsets, strict=True):
        for place, label in enumerate(labels):
            order = queries[place][0]
            values = np.empty(len(order))
            values[order] = found[place].logarithms + offsets[place]
            sizes = [int(block.starts[label + 1] - block.starts[label]) for block in mine]
            for block, (start, end) in zip(mine, pairwise(np.cumsum([0, *sizes]).tolist()), strict=True):
                first = int(block.starts[label]) - block.cached(labels).start
                _writable(plan, block, key)[first : first + end - start] = values[start:end]


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
