"""Densities of narrow kernels over rows that workers hold: of all pairs of rows, those that matter.

In three dimensions no grid is fine enough for kernels much narrower than CKDE's own. But few rows are within
their reach. So every worker reads the columns in question of all rows, as many at a time as fit into its
memory, and adds their kernels at its own rows (`kernels.near`). What comes out is kept there, like what
`kept.keep` reads from tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.mapreduce import Plan, Where
from spbn.dask.row_cache import STORE, Key, numbered, span_of
from spbn.kernels.pairwise_stream import LEAF, QUERIES, Leaves, Sums, arranged

BYTES_A_ROW = 176  # of three columns, with all that comes with it while they are added
FEWEST_ROWS = 500  # at a time, however little memory there is


class Near(NamedTuple):
    """Densities of one set of columns, to be added up pair by pair.

    Attributes
    ----------
    centre
        What is subtracted from the columns.
    keys
        What to keep the densities as; all of them of the validation rows, or all of the others.
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
    return max(FEWEST_ROWS, table_bytes // BYTES_A_ROW)


def add_near(plan: Plan, parts: Sequence[int], asked: Near, current: frozenset[Key]) -> None:
    """Add kernels up at the rows of some parts and keep the logarithms; forget all but current ones."""
    STORE.forget(plan, parts, current)
    labels, validation = asked.labels, asked.keys[0].validation
    mine = list(numbered(plan, parts, [asked.columns]))
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
                first, count = span_of(plan, block, validation)
                begin = int(block.starts[label]) - first
                STORE.array(plan, part, key, number, count)[begin : begin + end - start] = values[start:end]


def _training(plan: Plan, asked: Near) -> Iterator[tuple[FloatArray, IntArray]]:
    """Yield the rows of all folds and their labels, as many at a time as fit into memory."""
    pending: list[tuple[FloatArray, IntArray]] = []
    count = 0
    for part in range(len(plan.chunks)):
        for block, labels in plan.rows(part, asked.columns, cached=asked.cached):
            trained = labels < plan.deal.folds
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
    """Put blocks of rows together, and let go of them: they would take as much memory again."""
    both = np.concatenate([rows for rows, _ in blocks], axis=1), np.concatenate([mine for _, mine in blocks])
    blocks.clear()
    return both
