"""Scores of new rows that can be compared with those of reference rows, also where values are missing.

The log-density of what is there in a row with holes says nothing beside that of complete rows: it is of other
units. What is returned instead is the log-density of a complete row that is as unusual.

- Rows that do not depend on each other: what is missing is integrated out, and the result is compared with
  those of rows drawn from the network in which the same values are missing. Reference rows then say how
  unusual that is: if the network is wrong about complete rows, it is put right in the same way.
- Rows of a dynamic network, where also the past may be missing: the nodes whose own value and whose parents
  are there are compared with the same nodes in the reference rows. So the p-value of such a row is right
  whatever the network gets wrong. What a node with a missing parent says is not used.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, finite_log_density, remembered
from spbn.inference.batch import log_density_of_observed
from spbn.monitoring.reference import Reference, Tail
from spbn.network import BayesianNetwork
from spbn.scorer import PreparedNodes
from spbn.tables.table import Table

DRAWS = 200  # rows that say how usual a log-density is
PARTICLES = 100  # for a row: their noise is the same on both sides of the comparison
CACHED_PATTERNS = 64  # of holes, each of which has taken a while


class Scores(NamedTuple):
    """Scores of rows, and of every node in them.

    Attributes
    ----------
    rows
        The log-density of every row as if it were complete; NaN if nothing can be said.
    pit
        The distribution function of every node at its value, P(X ≤ x | parents): nodes × rows.
    contributions
        What every node adds to the log-density. Both are NaN where they depend on what is missing.
    """

    rows: FloatArray
    pit: FloatArray
    contributions: FloatArray


@final
class MissingPatterns:
    """Rows with holes, compared with simulated rows that have the same holes."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network
        self._tails: OrderedDict[bytes, Tail] = OrderedDict()

    def score(self, row: Table) -> float:
        """Return the log-density of a complete row that is as unusual as a row with holes."""
        holes = np.isnan(row.columns[:, 0])
        if holes.all():
            return float(self._complete.ordered[-1])
        found = log_density_of_observed(self._network, row, n=PARTICLES, seed=0)
        p_value = self._tail(holes).p_values(finite_log_density(found))
        return float(self._complete.quantiles(p_value)[0])

    @cached_property
    def _drawn(self) -> Table:
        network = self._network
        columns = network.draw(DRAWS, seed=0)
        stacked = np.stack([network.in_data_units(node, columns[node]) for node in network.nodes])
        return Table.of(network.variables[: len(network.nodes)], stacked)

    @cached_property
    def _complete(self) -> Tail:
        return Tail.fit(self._network.contributions(self._drawn).sum(axis=1))

    def _tail(self, holes: BoolArray) -> Tail:
        """Return the distribution of the log-density of drawn rows in which these values are missing."""

        def fit() -> Tail:
            columns = self._drawn.columns.copy()
            columns[holes] = np.nan
            rows = self._drawn.with_columns(columns)
            return Tail.fit(log_density_of_observed(self._network, rows, n=PARTICLES, seed=0))

        return remembered(self._tails, holes.tobytes(), fit, limit=CACHED_PATTERNS)


@final
class ReferenceScorer:
    """Scores rows of a network in units that reference rows can be compared with."""

    def __init__(self, network: BayesianNetwork, reference: Reference) -> None:
        self.nodes = PreparedNodes(network)
        self._reference = reference
        self._patterns = MissingPatterns(network)
        self._tails: OrderedDict[bytes, Tail] = OrderedDict()
        names = [variable.name for variable in network.variables]
        self._families = [
            [names.index(name) for name in (node, *network.structure.parents(node))] for node in network.nodes
        ]

    def score(self, table: Table, uniforms: FloatArray) -> Scores:
        """Score rows, in which NaN is missing.

        Parameters
        ----------
        uniforms
            Nodes × rows: they choose points on the steps of discrete nodes.
        """
        has_holes = np.isnan(table.columns).any(axis=0)
        if not has_holes.any():
            contributions, pit = self.nodes.logpdf_and_cdf(table.columns, uniforms)
            return Scores(contributions.sum(axis=0), pit, contributions)
        shape = uniforms.shape
        found = Scores(*(np.full(size, np.nan) for size in (shape[1], shape, shape)))
        for chosen, score in ((~has_holes, self.score), (has_holes, self._score_incomplete)):
            rows = np.flatnonzero(chosen)
            if len(rows):
                part = score(table.take(rows), uniforms[:, rows])
                found.rows[rows], found.pit[:, rows], found.contributions[:, rows] = part
        return found

    def _score_incomplete(self, table: Table, uniforms: FloatArray) -> Scores:
        missing = np.isnan(table.columns)
        typical = self._reference.candidates[:, :1]  # values where any will do
        filled = np.where(missing, typical, table.columns)
        contributions, pit = self.nodes.logpdf_and_cdf(filled, uniforms)
        unknown = np.stack([missing[family].any(axis=0) for family in self._families])
        pit = np.where(unknown, np.nan, pit)
        if self._reference.by_node is None:
            # One by one: what is simulated must not depend on the rows before.
            scores = np.array([self._patterns.score(table.take([k])) for k in range(table.rows)])
            return Scores(scores, pit, np.full(pit.shape, np.nan))
        contributions = np.where(unknown, np.nan, contributions)
        return Scores(
            self._score_families(contributions, ~unknown, self._reference.by_node), pit, contributions
        )

    def _score_families(self, contributions: FloatArray, known: BoolArray, by_node: FloatArray) -> FloatArray:
        """Compare the nodes of every row whose families are known with the same nodes of reference rows."""
        scores = np.full(known.shape[1], np.nan)
        patterns, which = np.unique(known, axis=1, return_inverse=True)
        for number, nodes in enumerate(patterns.T):
            rows = np.flatnonzero(which.reshape(-1) == number)
            if nodes.any():
                found = contributions[np.ix_(np.flatnonzero(nodes), rows)].sum(axis=0)
                scores[rows] = self._reference.tail.quantiles(self._tail(nodes, by_node).p_values(found))
        return scores

    def _tail(self, nodes: BoolArray, by_node: FloatArray) -> Tail:
        """Return the distribution of what some nodes add, together, in reference rows."""

        def fit() -> Tail:
            return Tail.fit(by_node[nodes].sum(axis=0))

        return remembered(self._tails, nodes.tobytes(), fit, limit=CACHED_PATTERNS)
