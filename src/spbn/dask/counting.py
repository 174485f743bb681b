"""Discrete nodes, over rows that workers hold: counts of the levels of families, in every fold.

The counterpart of `nodes.discrete.CountingScorer`. One pass over the rows counts for any number of families.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.lru import Columns, Remembered, fitting_into_memory
from spbn.dask.mapreduce import Block, Plan, blocks
from spbn.dask.rowstore import Holdings
from spbn.nodes.discrete import ProbabilityTable
from spbn.nodes.scorers import smoothed
from spbn.rows.configurations import Configurations, number_possible


class Counted(NamedTuple):
    """How many rows have the configurations of some columns: their numbers, and configurations × labels."""

    numbers: IntArray
    counts: IntArray


def count(plan: Plan, parts: Sequence[int], asked: Sequence[Columns]) -> list[Counted]:
    """Count the configurations of sets of discrete columns in some parts."""
    labels = plan.deal.folds + 1
    out = [_counted(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), labels) for _ in asked]
    for block in blocks(plan, parts, asked):
        of_rows = np.repeat(np.arange(labels), np.diff(block.starts))
        for place, columns in enumerate(asked):
            found = _counted(numbered(plan, block, columns), of_rows, labels)
            out[place] = joined([out[place], found])
    return out


def _counted(numbers: IntArray, of_rows: IntArray, labels: int) -> Counted:
    distinct, places = np.unique(numbers, return_inverse=True)
    counts = np.bincount(places * labels + of_rows, minlength=len(distinct) * labels)
    return Counted(distinct, counts.reshape(-1, labels))


def joined(parts: Sequence[Counted]) -> Counted:
    """Add up the counts of different rows."""
    numbers = np.unique(np.concatenate([part.numbers for part in parts]))
    counts = np.zeros((len(numbers), parts[0].counts.shape[1]), dtype=np.int64)
    for part in parts:
        counts[np.searchsorted(numbers, part.numbers)] += part.counts
    return Counted(numbers, counts)


def numbered(plan: Plan, block: Block, columns: Columns) -> IntArray:
    """Return the configuration of every row of a block, the first column being the most significant."""
    numbers = np.zeros(int(block.starts[-1]), dtype=np.int64)
    for column in columns:
        levels = len(plan.levels[plan.names[column]])
        numbers = numbers * levels + block.columns[block.places[column]].astype(np.int64)
    return numbers


@final
class HeldCounts:
    """The counts of discrete families, and what follows from them: prepared once, asked many times."""

    def __init__(self, holdings: Holdings, smoothing: float) -> None:
        self._holdings = holdings
        self._smoothing = smoothing
        self._known = Remembered(holdings, self._bytes, self._counted)

    def totals(self, families: Sequence[Columns], train: IntArray, test: IntArray) -> FloatArray:
        """Return the log-likelihoods of families; -inf where an impossible level occurs.

        Parameters
        ----------
        train, test
            Groups × labels: which labels the rows have that a group is fitted to, and evaluated at.
        """
        found: dict[Columns, float] = {}
        possible = fitting_into_memory(self._holdings, families, self._known.fits)
        for columns, counted in self._known.each(possible):
            _, counts = self._table(columns, counted)
            fitted = np.einsum("gl,lcv->gcv", train, counts)
            asked = np.einsum("gl,lcv->gcv", test, counts)
            with np.errstate(divide="ignore"):
                logs = np.log(smoothed(fitted, self._smoothing)[0])
            found[columns] = float(np.sum(logs[asked > 0] * asked[asked > 0]))
        return np.array([found.get(columns, -np.inf) for columns in families])

    def fitted(self, columns: Columns) -> ProbabilityTable:
        """Fit a family to all rows."""
        *parents, node = (self._holdings.variables[column] for column in columns)
        numbers, counts = self._table(columns, self._known.of(columns))
        found, otherwise = smoothed(counts.sum(axis=0), self._smoothing)
        names = tuple(parent.name for parent in parents)
        configurations = Configurations(tuple(parents), numbers)
        return ProbabilityTable(node.name, names, node.levels, configurations, found, otherwise)

    def _table(self, columns: Columns, counted: Counted) -> tuple[IntArray, IntArray]:
        """Return the parents' configurations that occur, and labels × configurations × levels."""
        levels = len(self._holdings.variables[columns[-1]].levels)
        numbers, places = np.unique(counted.numbers // levels, return_inverse=True)
        counts = np.zeros((counted.counts.shape[1], len(numbers), levels), dtype=np.int64)
        counts[:, places, counted.numbers % levels] = counted.counts.T
        return numbers, counts

    def _bytes(self, columns: Columns) -> int:
        """Return what the counts of a family take, at most."""
        *parents, node = (self._holdings.variables[column] for column in columns)
        occurring = min(number_possible(parents), self._holdings.every.count)
        return 8 * (self._holdings.folds + 1) * occurring * len(node.levels)

    def _counted(self, families: Sequence[Columns]) -> Iterable[Counted]:
        return map(joined, zip(*self._holdings.go_over(count, families), strict=True))
