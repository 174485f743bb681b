"""Rows with holes, compared with rows that have the same holes.

The log-density of what is there in a row with holes says nothing beside that of complete rows: it is of other
units. So it is compared with those of rows drawn from the network in which the same values are missing, and
what is returned is the log-density of a complete row that is as unusual. Reference rows then say how
unusual that is: if the network is wrong about complete rows, it is put right in the same way.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from typing import final

import numpy as np

from spbn.dynamic.tails import Tail
from spbn.inference.holes import log_density_of_observed
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import BoolArray, FloatArray
from spbn.tables.table import Table

DRAWS = 200  # rows that say how usual a log-density is
PARTICLES = 100  # for a row: their noise is the same on both sides of the comparison
REMEMBERED = 64  # patterns of holes, each of which has taken a while


@final
class Patterns:
    """What is remembered of patterns of holes: the last of them, so that memory is bounded."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network
        self._tails: OrderedDict[bytes, Tail] = OrderedDict()

    def score(self, row: Table) -> float:
        """Return the log-density of a complete row that is as unusual as a row with holes."""
        holes = np.isnan(row.columns[:, 0])
        if holes.all():
            return float(self._complete.ordered[-1])
        found = log_density_of_observed(self._network, row, n=PARTICLES, seed=0)
        share = self._tail(holes).shares(np.maximum(found, -1e300))
        return float(self._complete.scores(share)[0])

    @cached_property
    def _drawn(self) -> Table:
        network = self._network
        columns = network.draw(DRAWS, seed=0)
        levels = {v.name: v.levels for v in network.variables if v.is_discrete}
        stacked = np.stack([network.in_data_units(node, columns[node]) for node in network.nodes])
        return Table(network.nodes, stacked, levels)

    @cached_property
    def _complete(self) -> Tail:
        return Tail.of(self._network.contributions(self._drawn).sum(axis=0))

    def _tail(self, holes: BoolArray) -> Tail:
        key = holes.tobytes()
        if key not in self._tails:
            self._tails[key] = Tail.of(self._scores(holes))
            if len(self._tails) > REMEMBERED:
                self._tails.popitem(last=False)
        self._tails.move_to_end(key)
        return self._tails[key]

    def _scores(self, holes: BoolArray) -> FloatArray:
        columns = self._drawn.columns.copy()
        columns[holes] = np.nan
        return log_density_of_observed(self._network, self._drawn.with_columns(columns), n=PARTICLES, seed=0)
