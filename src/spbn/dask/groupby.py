"""Rows that workers hold by the configuration of discrete columns: the moments of each.

They are all that linear Gaussian nodes with discrete parents need, and where kernels begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np

from spbn.dask.counting import numbered
from spbn.dask.lru import Columns, Remembered
from spbn.dask.mapreduce import Plan, blocks
from spbn.dask.rowstore import Holdings
from spbn.numerics.moments import Moments
from spbn.rows.configurations import Configurations, number_possible

#: By the number of a configuration, the moments of its rows with each label.
ByConfiguration = Mapping[int, Sequence[Moments]]


def divide(plan: Plan, parts: Sequence[int], asked: Sequence[Columns]) -> list[ByConfiguration]:
    """Return the moments of all columns, for every configuration of sets of discrete columns."""
    every = list(range(len(plan.names)))
    none = Moments.of(np.empty((len(every), 0)))
    out: list[dict[int, list[Moments]]] = [{} for _ in asked]
    for block in blocks(plan, parts, [every]):
        for found, columns in zip(out, asked, strict=True):
            numbers = numbered(plan, block, columns)
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


class Division(NamedTuple):
    """The rows of holdings by the configuration of some discrete columns."""

    configurations: Configurations
    parts: tuple[Holdings, ...]


@final
class Divisions:
    """Holdings by the configurations of discrete columns: prepared once, asked many times."""

    def __init__(self, holdings: Holdings) -> None:
        self.holdings = holdings
        self._known = Remembered(holdings, self._bytes, self._divided)

    def fits(self, columns: Columns) -> bool:
        """Tell whether the moments of all configurations of some columns fit into memory."""
        return self._known.fits(columns)

    def of(self, columns: Columns) -> Division:
        """Return the rows by the configuration of some columns."""
        return self._known.of(columns)

    def each(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, Division]]:
        """Yield different sets of columns and the rows by their configurations, in any order."""
        return self._known.each(sets)

    def _bytes(self, columns: Columns) -> int:
        """Return what the moments of all configurations of some columns take, at most."""
        possible = number_possible([self.holdings.variables[column] for column in columns])
        labels, width = self.holdings.folds + 1, len(self.holdings.names)
        return 8 * min(possible, self.holdings.every.count) * labels * width * (width + 1)

    def _divided(self, sets: Sequence[Columns]) -> Iterable[Division]:
        found = zip(*self.holdings.go_over(divide, sets), strict=True)
        return [self._division(columns, added(parts)) for columns, parts in zip(sets, found, strict=True)]

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
