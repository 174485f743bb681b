"""Log-densities that workers keep, row by row: what mixtures of densities are fitted to.

The sum of the logarithms of one density needs nothing but sums. A mixture needs the densities of all its
components at the same row, again and again until its weights are found. So the workers keep them, beside the
rows that they are of: `keep` reads them from tables, `fill` adds those that tables cannot answer, and `mix`
goes over them. Whoever asks says what to keep and what to forget. A worker that has taken over from one that
died has nothing yet, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.dask.mapreduce import Block, Plan, Reading, Where, blocks, rows_to_check
from spbn.numerics.mixture_weights import mixing_sums


class Key(NamedTuple):
    """What is kept: the log-density of a set of columns.

    Attributes
    ----------
    columns, dimension
        The set, as a `VariableSet`.
    scale
        What its bandwidth matrix is multiplied by.
    validation
        Whether it is that of the validation rows, or of the others.
    within
        The levels that the rows have which it is made of, and those of the rows that it is read at.
    """

    columns: tuple[int, ...]
    dimension: int
    scale: float
    validation: bool
    within: tuple[Where, Where] = ((), ())


class _Store:
    """What this process keeps, by plan, part and key: an array for every block of rows."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, Key], dict[int, FloatArray]] = {}
        self._lock = Lock()

    def forget(self, plan: Plan, parts: Sequence[int], keys: frozenset[Key]) -> None:
        """Forget what other plans had, and of these parts everything but some keys."""
        with self._lock:
            for entry in list(self._kept):
                number, part, key = entry
                if number != plan.number or (part in parts and key not in keys):
                    del self._kept[entry]

    def array(self, plan: Plan, part: int, key: Key, block: int, rows: int) -> FloatArray:
        """Return the array of a block, to be written to."""
        with self._lock:
            found = self._kept.setdefault((plan.number, part, key), {})
            if block not in found or len(found[block]) != rows:
                found[block] = np.full(rows, np.nan)
            return found[block]

    def known(self, plan: Plan, part: int, key: Key, block: int) -> FloatArray | None:
        """Return the array of a block, if there is one."""
        with self._lock:
            return self._kept.get((plan.number, part, key), {}).get(block)


STORE = _Store()


class Keeping(NamedTuple):
    """A density to read at the rows with a label, and what to keep it as."""

    reading: Reading
    key: Key


class Left(NamedTuple):
    """What a table leaves to others.

    Attributes
    ----------
    isolated
        The rows that it cannot answer, variables × rows.
    places
        Where they are: part, block, and place among the rows kept of that block, 3 × rows.
    checks, heights
        Some rows that it can answer, to check them, and what it answers.
    """

    isolated: FloatArray
    places: IntArray
    checks: FloatArray
    heights: FloatArray


def keep(plan: Plan, parts: Sequence[int], asked: Sequence[Keeping], current: frozenset[Key]) -> list[Left]:
    """Read densities at the rows of some parts and keep their logarithms; forget all but current ones."""
    STORE.forget(plan, parts, current)
    found: list[list[Left]] = [[] for _ in asked]
    for part, number, block in numbered(plan, parts, [one.reading.columns for one in asked]):
        for place, one in enumerate(asked):
            reading = one.reading
            points = block.rows(reading.columns, (reading.label,))
            first, rows = span_of(plan, block, one.key.validation)
            mine = slice(block.starts[reading.label] - first, block.starts[reading.label + 1] - first)
            heights = reading.density.heights(points)
            good = heights >= reading.threshold
            values = np.full(len(heights), np.nan)
            values[good] = np.log(heights[good]) + reading.density.log_peak
            STORE.array(plan, part, one.key, number, rows)[mine] = values
            apart = np.flatnonzero(~good)
            places = np.stack([np.full(len(apart), part), np.full(len(apart), number), mine.start + apart])
            chosen = rows_to_check(heights, good)
            left = Left(points[:, apart], places, points[:, chosen], heights[chosen])
            found[place] = [joined([*found[place], left])]
    return [one[0] if one else _nothing(len(asked[place].reading.columns)) for place, one in enumerate(found)]


def joined(parts: Sequence[Left]) -> Left:
    """Put together what is left of different rows; of the checks, as many are kept as of one."""
    checks = np.concatenate([part.checks for part in parts], axis=1)
    heights = np.concatenate([part.heights for part in parts])
    chosen = rows_to_check(heights, np.ones(len(heights), dtype=np.bool_))
    return Left(
        np.concatenate([part.isolated for part in parts], axis=1),
        np.concatenate([part.places for part in parts], axis=1),
        checks[:, chosen],
        heights[chosen],
    )


def _nothing(d: int) -> Left:
    return Left(np.empty((d, 0)), np.empty((3, 0), dtype=np.int64), np.empty((d, 0)), np.empty(0))


class Filling(NamedTuple):
    """Log-densities that no table has, and their places (see `Left`)."""

    key: Key
    places: IntArray
    values: FloatArray


def fill(plan: Plan, parts: Sequence[int], asked: Sequence[Filling]) -> bool:
    """Put log-densities into their places; return False if this worker does not keep them."""
    for one in asked:
        for part, number in sorted(set(zip(*one.places[:2].tolist(), strict=True))):
            if part in parts:
                array = STORE.known(plan, part, one.key, number)
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


class Mixing(NamedTuple):
    """A mixture of densities of a node given its parents.

    Attributes
    ----------
    columns
        The parents and, last, the node.
    kernels
        For every kernel component, what is kept of all columns and of the parents: None without parents, and
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
    validation: bool
    labels: tuple[int, ...]


class Mixed(NamedTuple):
    """Sums over rows.

    Attributes
    ----------
    usable
        Which components are finite in all rows; if not all are, the sums mean nothing.
    """

    total: float
    gradient: FloatArray
    curvature: FloatArray
    usable: BoolArray


def mix(plan: Plan, parts: Sequence[int], asked: Sequence[Mixing]) -> list[Mixed] | None:
    """Return the log-likelihoods of mixtures and their derivatives; None if densities are not kept here."""
    out = [_no_rows(len(one.weights)) for one in asked]
    for part, number, block in numbered(plan, parts, [one.columns for one in asked]):
        for place, one in enumerate(asked):
            components = _components(plan, part, number, block, one)
            if components is None:
                return None
            usable: BoolArray = np.isfinite(components).min(axis=1, initial=True)
            if not usable.all() or not components.shape[1]:
                sums = out[place]
            else:
                sums = Mixed(*mixing_sums(components, one.weights), usable)
                sums = added([out[place], sums])
            out[place] = sums._replace(usable=out[place].usable & usable)
    return out


def _no_rows(components: int) -> Mixed:
    square = np.zeros((components, components))
    return Mixed(0.0, np.zeros(components), square, np.ones(components, dtype=np.bool_))


def added(parts: Sequence[Mixed]) -> Mixed:
    """Add up sums over different rows."""
    return Mixed(
        math.fsum(part.total for part in parts),
        np.sum([part.gradient for part in parts], axis=0),
        np.sum([part.curvature for part in parts], axis=0),
        np.logical_and.reduce([part.usable for part in parts], axis=0),
    )


def _components(plan: Plan, part: int, number: int, block: Block, asked: Mixing) -> FloatArray | None:
    """Return components × rows of a block."""
    first, _ = span_of(plan, block, asked.validation)
    mine = _rows_of(block, asked.labels, first)
    found = []
    for pair in asked.kernels:
        if pair is None:
            continue
        whole = STORE.known(plan, part, pair[0], number)
        below = None if pair[1] is None else STORE.known(plan, part, pair[1], number)
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
    """Return the places of the rows with some labels among those that are kept of a block."""
    if labels[-1] - labels[0] + 1 == len(labels):
        return slice(int(block.starts[labels[0]]) - first, int(block.starts[labels[-1] + 1]) - first)
    return np.concatenate([np.arange(block.starts[m], block.starts[m + 1]) for m in labels]) - first


def span_of(plan: Plan, block: Block, validation: bool) -> tuple[int, int]:
    """Return where the rows that are kept begin in a block, and how many there are."""
    folds = plan.deal.folds
    first, end = (block.starts[folds], block.starts[folds + 1]) if validation else (0, block.starts[folds])
    return int(first), int(end - first)


def numbered(
    plan: Plan, parts: Sequence[int], needed: Sequence[Sequence[int]]
) -> Iterator[tuple[int, int, Block]]:
    """Yield parts, the numbers of their blocks, and the blocks."""
    for part in parts:
        for number, block in enumerate(blocks(plan, [part], needed)):
            yield part, number, block
