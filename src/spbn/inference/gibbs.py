"""Fresh draws for holes that have been filled before: one node after the other, given everything else.

A hole's new value is chosen among its present one and some draws given its parents, weighted by what its
children say to them (iterated sampling importance resampling). That leaves the posterior of the holes as it
is, whatever the number of candidates, and costs little: no row needs more than a few densities.
"""

from __future__ import annotations

import numpy as np

from spbn.inference import factors
from spbn.inference.cases import Cases
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import BoolArray, FloatArray, IntArray
from spbn.tables.table import Table

CANDIDATES = 16
SWEEPS = 5


def refreshed(
    network: BayesianNetwork,
    filled: Table,
    holes: BoolArray,
    rng: np.random.Generator,
    *,
    sweeps: int = SWEEPS,
    candidates: int = CANDIDATES,
) -> Table:
    """Return a filled table with other draws in its holes.

    Parameters
    ----------
    filled
        The table, in the units of the data.
    holes
        Columns × rows: what was missing.
    """
    order = network.structure.dag.topological_order()
    values = network.transformed(filled).select(order).columns.copy()
    cases = Cases(network, values.T)
    children = [[c for c in range(len(order)) if k in cases.parents[c]] for k in range(len(order))]
    missing = {k: np.flatnonzero(holes[filled.index(node)]) for k, node in enumerate(order)}
    for _ in range(sweeps):
        for k, rows in missing.items():
            if not len(rows):
                continue
            tried = np.repeat(values[:, rows], candidates, axis=1)
            drawn = factors.draw(cases, k, tried, rng)
            drawn[::candidates] = values[k, rows]
            tried[k] = drawn
            log_weights = np.zeros(len(drawn))
            for child in children[k]:
                log_weights += factors.log_density(cases, child, tried)
            values[k, rows] = drawn[_chosen(log_weights.reshape(-1, candidates), rng)]
    columns = filled.columns.copy()
    for k, rows in missing.items():
        columns[filled.index(order[k]), rows] = network.in_data_units(order[k], values[k, rows])
    return filled.with_columns(columns)


def _chosen(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one of every row's candidates by its weight; its place among the candidates of all rows."""
    rows, candidates = log_weights.shape
    top = np.maximum(log_weights.max(axis=1, keepdims=True), -1e300)
    bounds = np.cumsum(np.exp(log_weights - top), axis=1)
    places = (rng.random((rows, 1)) * bounds[:, -1:] >= bounds).sum(axis=1)
    places[bounds[:, -1] == 0.0] = 0  # nothing is possible: the present value stays
    return np.arange(rows) * candidates + np.minimum(places, candidates - 1)
