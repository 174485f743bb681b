"""Rows scored by a network: what every node adds to their log-density, and where their values lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD, HasBoth, HasSteps
from spbn.tables.table import Table

LOWEST = -1e300  # log-density of an impossible value, so that it can be added and compared

#: Log-densities and places of a node's values, from its family's columns and random points on steps.
Both = Callable[[Table, FloatArray], tuple[FloatArray, FloatArray]]


@final
class Scorer:
    """The nodes of a network, prepared to score single rows quickly."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network
        self._nodes: list[tuple[tuple[str, ...], list[int], dict[str, tuple[str, ...]], Both]] = []
        levels = {v.name: v.levels for v in network.variables if v.is_discrete}
        names = [variable.name for variable in network.variables]
        for node in network.nodes:
            cpd = network.cpds[node]
            family = (*cpd.parents, node)
            columns = [names.index(name) for name in family]
            self._nodes.append((family, columns, {n: levels[n] for n in family if n in levels}, both_of(cpd)))

    def scored(self, table: Table, uniforms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what nodes add to the log-densities of rows, and P(X ≤ x | parents), both nodes × rows.

        Parameters
        ----------
        table
            Complete rows, in the order of the network's variables.
        uniforms
            Nodes × rows: they choose points on the steps of discrete nodes.
        """
        rows = self._network.transformed(table).columns
        shape = (len(self._nodes), table.rows)
        contributions, places = np.empty(shape), np.empty(shape)
        with np.errstate(over="ignore"):  # the square of an absurd value
            for k, (names, columns, levels, both) in enumerate(self._nodes):
                contributions[k], places[k] = both(Table(names, rows[columns], levels), uniforms[k])
        contributions += self._network.log_slopes(table, self._network.nodes)
        return np.maximum(contributions, LOWEST), np.clip(places, 0.0, 1.0)


def contributions_of(network: BayesianNetwork, table: Table) -> FloatArray:
    """Return what every node adds to the log-density of every row; impossible values have a low number."""
    with np.errstate(over="ignore"):
        return np.maximum(network.contributions(table), LOWEST)


def both_of(cpd: CPD) -> Both:
    """Return a function for the log-densities and the places of a node's values."""
    if isinstance(cpd, HasSteps):
        steps = cpd.randomised_cdf
        return lambda table, uniforms: (cpd.logpdf(table), steps(table, uniforms))
    if isinstance(cpd, HasBoth):
        together = cpd.logpdf_and_cdf
        return lambda table, uniforms: together(table)
    return lambda table, uniforms: (cpd.logpdf(table), cpd.cdf(table))
