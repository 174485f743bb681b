"""Discrete columns of rows that workers hold: counts of their levels, and moments by configuration.

The counts of the rows of every fold are all that discrete nodes need, and moments all that linear Gaussian
nodes with discrete parents need: one pass over the rows gives them for any number of sets of columns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np

from spbn.distributed.holdings import Holdings
from spbn.distributed.passes import Block, Plan, blocks
from spbn.nodes.configurations import Configurations, number_possible
from spbn.nodes.discrete import ProbabilityTable, smoothed
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.moments import Moments

#: Discrete columns, by number; of a family they are the parents and, last, the node.
Columns = tuple[int, ...]
#: By the number of a configuration, the moments of its rows with each label.
ByConfiguration = Mapping[int, Sequence[Moments]]


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
            found = _counted(_numbered(plan, block, columns), of_rows, labels)
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


def divide(plan: Plan, parts: Sequence[int], asked: Sequence[Columns]) -> list[ByConfiguration]:
    """Return the moments of all columns, for every configuration of sets of discrete columns."""
    every = list(range(len(plan.names)))
    none = Moments.of(np.empty((len(every), 0)))
    out: list[dict[int, list[Moments]]] = [{} for _ in asked]
    for block in blocks(plan, parts, [every]):
        for found, columns in zip(out, asked, strict=True):
            numbers = _numbered(plan, block, columns)
            for label, (start, end) in enumerate(pairwise(block.starts.tolist())):
                order = start + np.argsort(numbers[start:end], kind="stable")
                distinct, first = np.unique(numbers[order], return_index=True)
                for number, mine in zip(distinct.tolist(), np.split(order, first[1:]), strict=False):
                    moments = found.setdefault(number, [none] * (plan.deal.folds + 1))
                    moments[label] = moments[label] + Moments.of(block.columns[:, mine])
    return list(out)


def added(parts: Sequence[ByConfiguration]) -> ByConfiguration:
    """Add up the moments of different rows."""
    out: dict[int, Sequence[Moments]] = {}
    for part in parts:
        for number, found in part.items():
            before = out.get(number)
            out[number] = found if before is None else [a + b for a, b in zip(before, found, strict=True)]
    return out


def _numbered(plan: Plan, block: Block, columns: Columns) -> IntArray:
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
        self._known: dict[Columns, Counted] = {}

    def totals(self, families: Sequence[Columns], train: IntArray, test: IntArray) -> FloatArray:
        """Return the log-likelihoods of families; -inf where an impossible level occurs.

        Parameters
        ----------
        train, test
            Groups × labels: which labels the rows have that a group is fitted to, and evaluated at.
        """
        self._require(families)
        out = np.empty(len(families))
        for number, columns in enumerate(families):
            _, counts = self._table(columns)
            fitted = np.einsum("gl,lcv->gcv", train, counts)
            asked = np.einsum("gl,lcv->gcv", test, counts)
            with np.errstate(divide="ignore"):
                logs = np.log(smoothed(fitted, self._smoothing)[0])
            out[number] = np.sum(logs[asked > 0] * asked[asked > 0])
        return out

    def fitted(self, columns: Columns) -> ProbabilityTable:
        """Fit a family to all rows."""
        self._require([columns])
        *parents, node = (self._holdings.variables[column] for column in columns)
        numbers, counts = self._table(columns)
        found, otherwise = smoothed(counts.sum(axis=0), self._smoothing)
        names = tuple(parent.name for parent in parents)
        configurations = Configurations(tuple(parents), numbers)
        return ProbabilityTable(node.name, names, node.levels, configurations, found, otherwise)

    def _table(self, columns: Columns) -> tuple[IntArray, IntArray]:
        """Return the parents' configurations that occur, and labels × configurations × levels."""
        known, levels = self._known[columns], len(self._holdings.variables[columns[-1]].levels)
        numbers, places = np.unique(known.numbers // levels, return_inverse=True)
        counts = np.zeros((known.counts.shape[1], len(numbers), levels), dtype=np.int64)
        counts[:, places, known.numbers % levels] = known.counts.T
        return numbers, counts

    def _require(self, families: Sequence[Columns]) -> None:
        """Count what has not been counted yet, in one pass."""
        missing = [columns for columns in dict.fromkeys(families) if columns not in self._known]
        if missing:
            found = zip(*self._holdings.go_over(count, missing), strict=True)
            self._known.update(zip(missing, map(joined, found), strict=True))


class Division(NamedTuple):
    """The rows of holdings by the configuration of some discrete columns."""

    configurations: Configurations
    parts: tuple[Holdings, ...]


@final
class Divisions:
    """Holdings by the configurations of discrete columns: prepared once, asked many times."""

    def __init__(self, holdings: Holdings) -> None:
        self.holdings = holdings
        self._known: OrderedDict[Columns, Division] = OrderedDict()

    def require(self, sets: Sequence[Columns]) -> None:
        """Divide the rows by sets of columns, in one pass for all that are new and fit into memory."""
        missing = [columns for columns in dict.fromkeys(sets) if columns not in self._known]
        for together in self._batches(missing):
            found = zip(*self.holdings.go_over(divide, together), strict=True)
            for columns, parts in zip(together, map(added, found), strict=True):
                self._known[columns] = self._division(columns, parts)

    def of(self, columns: Columns) -> Division:
        """Return the rows by the configuration of some columns."""
        self.require([columns])
        return self._known[columns]

    def is_possible(self, columns: Columns) -> bool:
        """Tell whether the moments of all configurations of some columns fit into memory."""
        return self._bytes(columns) <= self.holdings.table_bytes

    def _bytes(self, columns: Columns) -> int:
        """Return what the moments of all configurations of some columns take, at most."""
        possible = number_possible([self.holdings.variables[column] for column in columns])
        labels, width = self.holdings.folds + 1, len(self.holdings.names)
        return 8 * min(possible, self.holdings.every.count) * labels * width * (width + 1)

    def _batches(self, sets: Sequence[Columns]) -> Iterator[list[Columns]]:
        """Yield sets that fit into memory together, and forget others for them, the oldest first."""
        limit = self.holdings.table_bytes
        together: list[Columns] = []
        for columns in sets:
            if together and sum(map(self._bytes, [*together, columns])) > limit:
                yield together
                together = []
            together.append(columns)
            while self._known and sum(map(self._bytes, [*self._known, *together])) > limit:
                self._known.popitem(last=False)
        if together:
            yield together

    def _division(self, columns: Columns, found: ByConfiguration) -> Division:
        variables = tuple(self.holdings.variables[column] for column in columns)
        configurations = Configurations(variables, np.array(sorted(found), dtype=np.int64))
        parts = tuple(
            self.holdings.within(tuple(zip(columns, codes, strict=True)), found[number])
            for number, codes in zip(
                configurations.numbers.tolist(), configurations.codes.tolist(), strict=True
            )
        )
        return Division(configurations, parts)
