"""Filling the holes of rows that a network was learned from: Gibbs sweeps, and networks without own kernels.

A sweep draws holes that have been filled before anew, one node after the other, given everything else.

A hole's new value is chosen among its present one and some candidates, weighted by what the node's density
and its children say to them (iterated sampling importance resampling). That leaves the posterior of the holes
as it is, whatever the number of candidates, and costs little: no row needs more than a few densities.

Half of the candidates are drawn given the parents. That is hopeless if a child is nearly a function of the
node, so the other half comes from what the node and its children would say together if they were lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, relative_weights
from spbn.inference.problem import EvidenceRows
from spbn.joint import Joint
from spbn.nodes.base import CPD, Linear
from spbn.tables.table import Table

CANDIDATES = 16
SWEEPS = 5
ROOT = math.sqrt(2.0 * math.pi)


def gibbs_sweeps(
    network: Joint,
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
    cases = EvidenceRows(network, values.T)
    children = [[c for c in range(len(order)) if k in cases.parents[c]] for k in range(len(order))]
    lines = [cases.cpd(node).nearest_line() for node in order]
    missing = {k: np.flatnonzero(holes[filled.index(node)]) for k, node in enumerate(order)}
    for _ in range(sweeps):
        for k, rows in missing.items():
            if len(rows):
                values[k, rows] = _redraw(cases, lines, k, children[k], values[:, rows], candidates, rng)
    columns = filled.columns.copy()
    for k, rows in missing.items():
        columns[filled.index(order[k]), rows] = network.in_data_units(order[k], values[k, rows])
    return filled.with_columns(columns)


def _redraw(
    cases: EvidenceRows,
    lines: list[Linear | None],
    k: int,
    children: list[int],
    values: FloatArray,
    candidates: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return new values of a node for nodes × rows: chosen among the present ones and some candidates."""
    tried = np.repeat(values, candidates, axis=1)
    drawn = cases.draw(k, tried, rng)
    by_lines = _by_lines(cases, lines, k, children, tried)
    if by_lines is not None:
        mean, deviation = by_lines
        chosen = rng.random(len(drawn)) < 0.5
        drawn = np.where(chosen, mean + deviation * rng.standard_normal(len(drawn)), drawn)
    drawn[::candidates] = values[k]
    tried[k] = drawn
    log_weights = np.zeros(len(drawn))
    for child in children:
        log_weights += cases.log_density(child, tried)
    if by_lines is not None:
        # Half of the candidates come from the lines: divided by the mixture of both densities, they weigh as
        # much as if all had been drawn given the parents.
        z = (drawn - mean) / deviation
        own = cases.log_density(k, tried)
        log_weights -= np.logaddexp(0.0, -0.5 * z * z - math.log(deviation * ROOT) - own)
    return drawn[_choose(log_weights.reshape(-1, candidates), rng)]


def _by_lines(
    cases: EvidenceRows, lines: list[Linear | None], k: int, children: list[int], values: FloatArray
) -> tuple[FloatArray, float] | None:
    """Return mean and standard deviation of a node given everything else, if all were lines.

    None if the node has no children, so that nothing but its parents matters, or if it is not near a line.
    """
    line, said = lines[k], [found for c in children if (found := lines[c]) is not None]
    if line is None or not said:
        return None
    precision = 1.0 / line.variance
    shift = -_residual(cases, line, values) * precision
    for other in said:
        slope = other.coefficients[other.parents.index(line.node)]
        precision += slope * slope / other.variance
        shift = shift + slope * _residual(cases, other, values) / other.variance
    return values[k] + shift / precision, math.sqrt(1.0 / precision)


def _residual(cases: EvidenceRows, line: Linear, values: FloatArray) -> FloatArray:
    """Return how far a node is from its line, for nodes × rows."""
    out: FloatArray = values[cases.place[line.node]] - line.intercept
    for parent, slope in zip(line.parents, line.coefficients, strict=True):
        out = out - slope * values[cases.place[parent]]
    return out


def _choose(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one of every row's candidates by its weight; its place among the candidates of all rows."""
    rows, candidates = log_weights.shape
    bounds = np.cumsum(relative_weights(log_weights), axis=1)
    places = (rng.random((rows, 1)) * bounds[:, -1:] >= bounds).sum(axis=1)
    places[bounds[:, -1] == 0.0] = 0  # nothing is possible: the present value stays
    return np.arange(rows) * candidates + np.minimum(places, candidates - 1)


# ----------------------------------------------------------------------------------------------------
# Networks that do not know the rows they are asked about.
#
# A network of kernels has a kernel on every row that it was learned from. If such a row had holes, they were
# filled before, and the kernel sits on what they were filled with: asked about the row again, a narrow kernel
# would only repeat that. So rows are recognised by their values, and answered by a network without the
# kernels that may be their own.


GROUPS = 10  # rows that are left out together are a tenth of those that are recognised
#: A kernel that shares what is known of a row with more others than these says little about the row alone;
#: times the number of fillings, if the network was fitted to several.
MOST_ALIKE = 3


def without_themselves(network: Joint, table: Table) -> Iterator[tuple[Joint, IntArray]]:
    """Yield networks, and the rows to ask them about: each network lacks the kernels of its rows.

    Parameters
    ----------
    table
        Rows in the units of the data; NaN is unknown.
    """
    rows = network.transformed(table)
    kernels = {
        node: cpd.kernels_on(rows.select((*cpd.parents, node)).columns) for node, cpd in network.cpds.items()
    }
    recognised = _recognised(kernels, table.rows)
    others = np.setdiff1d(np.arange(table.rows), recognised)
    # A row has one kernel of a node for every filling of its table, at most.
    most = max((cpd.kernel_rows for cpd in network.cpds.values()), default=0)
    copies = max(1, most // (network.record.rows or max(most, 1)))
    if len(others):
        yield network, others
    for number in range(min(GROUPS, len(recognised))):
        mine = recognised[number::GROUPS]
        cpds = dict(network.cpds) | {
            node: _without(network.cpds[node], [found[row] for row in mine], MOST_ALIKE * copies)
            for node, found in kernels.items()
        }
        yield network.with_cpds(cpds), mine


def _recognised(kernels: Mapping[str, list[IntArray | None]], rows: int) -> IntArray:
    """Return the rows that agree with a kernel of every node of which they have a value."""
    known = np.zeros(rows, dtype=bool)
    strange = np.zeros(rows, dtype=bool)
    for found in kernels.values():
        for row, mine in enumerate(found):
            known[row] |= mine is not None
            strange[row] |= mine is not None and not len(mine)
    return np.flatnonzero(known & ~strange)


def _without(cpd: CPD, kernels: list[IntArray | None], most: int) -> CPD:
    """Leave kernels out that may be those of the rows themselves, unless they are more than these."""
    own = [mine for mine in kernels if mine is not None and len(mine) <= most]
    return cpd.without(np.unique(np.concatenate([np.empty(0, dtype=np.int64), *own])))
