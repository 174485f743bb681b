"""Rows with holes, compared with rows that have the same holes.

The log-density of what is there in a row with holes says nothing beside that of complete rows: it is of other
units. So it is compared with those of rows drawn from the network in which the same values are missing, and
what is returned is the log-density of a complete row that is as unusual. Reference rows then say how
unusual that is: if the network is wrong about complete rows, it is put right in the same way.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.inference.batch import log_density_of_observed
from spbn.monitoring.reference import Reference, Tail
from spbn.monitoring.row_scores import Scorer
from spbn.network import BayesianNetwork
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


# ----------------------------------------------------------------------------------------------------
# Scores of new rows that can be compared with those of reference rows, also where values are missing.
#
# The log-density of what is there in a row with holes says nothing beside that of complete rows: it is of
# other units. What is returned instead is the log-density of a complete row that is as unusual.
#
# - Rows that do not depend on each other: what is missing is integrated out (`spbn.monitoring.scorer`).
# - Rows of a dynamic network, where also the past may be missing: the nodes whose own value and whose parents
#   are there are compared with the same nodes in the reference rows. So the share of such a row is right
#   whatever the network gets wrong. What a node with a missing parent says is not used.


class Scores(NamedTuple):
    """Scores of rows, and of every node in them.

    Attributes
    ----------
    rows
        The log-density of every row as if it were complete; NaN if nothing can be said.
    places
        Where the value of every node lies in its distribution: nodes × rows.
    contributions
        What every node adds to the log-density. Both are NaN where they depend on what is missing.
    """

    rows: FloatArray
    places: FloatArray
    contributions: FloatArray


@final
class Judge:
    """Scores rows of a network."""

    def __init__(self, network: BayesianNetwork, reference: Reference) -> None:
        self.scorer = Scorer(network)
        self._network, self._reference = network, reference
        self._patterns = Patterns(network)
        self._tails: OrderedDict[bytes, Tail] = OrderedDict()
        names = [variable.name for variable in network.variables]
        self._families = [
            [names.index(name) for name in (node, *network.structure.parents(node))] for node in network.nodes
        ]

    def scores(self, table: Table, uniforms: FloatArray) -> Scores:
        """Score rows, in which NaN is missing.

        Parameters
        ----------
        uniforms
            Nodes × rows: they choose points on the steps of discrete nodes.
        """
        has_holes = np.isnan(table.columns).any(axis=0)
        if not has_holes.any():
            contributions, places = self.scorer.scored(table, uniforms)
            return Scores(contributions.sum(axis=0), places, contributions)
        shape = uniforms.shape
        found = Scores(*(np.full(size, np.nan) for size in (shape[1], shape, shape)))
        for chosen, score in ((~has_holes, self.scores), (has_holes, self._scores_of_observed)):
            rows = np.flatnonzero(chosen)
            if len(rows):
                part = score(table.take(rows), uniforms[:, rows])
                found.rows[rows], found.places[:, rows], found.contributions[:, rows] = part
        return found

    def _scores_of_observed(self, table: Table, uniforms: FloatArray) -> Scores:
        """Score rows that have holes."""
        missing = np.isnan(table.columns)
        typical = self._reference.candidates[:, :1]  # values where any will do
        filled = table.with_columns(np.where(missing, typical, table.columns))
        contributions, places = self.scorer.scored(filled, uniforms)
        unknown = np.stack([missing[family].any(axis=0) for family in self._families])
        places = np.where(unknown, np.nan, places)
        if self._reference.by_node is None:
            # One by one: what is simulated must not depend on the rows before.
            scores = np.array([self._patterns.score(table.take([k])) for k in range(table.rows)])
            return Scores(scores, places, np.full(places.shape, np.nan))
        contributions = np.where(unknown, np.nan, contributions)
        return Scores(self._by_families(contributions, ~unknown), places, contributions)

    def _by_families(self, contributions: FloatArray, known: BoolArray) -> FloatArray:
        """Compare the nodes of every row whose families are known with the same nodes of reference rows."""
        scores = np.full(known.shape[1], np.nan)
        patterns, which = np.unique(known, axis=1, return_inverse=True)
        for number, nodes in enumerate(patterns.T):
            rows = np.flatnonzero(which.reshape(-1) == number)
            if nodes.any():
                found = contributions[np.ix_(np.flatnonzero(nodes), rows)].sum(axis=0)
                scores[rows] = self._reference.tail.scores(self._tail(nodes).shares(found))
        return scores

    def _tail(self, nodes: BoolArray) -> Tail:
        """Return the distribution of what some nodes add, together, in reference rows."""
        key = nodes.tobytes()
        if key not in self._tails:
            assert self._reference.by_node is not None
            self._tails[key] = Tail.of(self._reference.by_node[nodes].sum(axis=0))
            if len(self._tails) > REMEMBERED:
                self._tails.popitem(last=False)
        self._tails.move_to_end(key)
        return self._tails[key]
