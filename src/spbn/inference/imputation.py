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
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, relative_weights
from spbn.inference import importance
from spbn.inference.problem import EvidenceRows
from spbn.joint import Joint
from spbn.nodes.base import CPD
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
    lines = [_line(cases, k) for k in range(len(order))]
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
    lines: list[_Line | None],
    k: int,
    children: list[int],
    values: FloatArray,
    candidates: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return new values of a node for nodes × rows: chosen among the present ones and some candidates."""
    tried = np.repeat(values, candidates, axis=1)
    drawn = importance.draw(cases, k, tried, rng)
    by_lines = _by_lines(lines, k, children, tried)
    if by_lines is not None:
        mean, deviation = by_lines
        chosen = rng.random(len(drawn)) < 0.5
        drawn = np.where(chosen, mean + deviation * rng.standard_normal(len(drawn)), drawn)
    drawn[::candidates] = values[k]
    tried[k] = drawn
    log_weights = np.zeros(len(drawn))
    for child in children:
        log_weights += importance.log_density(cases, child, tried)
    if by_lines is not None:
        # Half of the candidates come from the lines: divided by the mixture of both densities, they weigh as
        # much as if all had been drawn given the parents.
        z = (drawn - mean) / deviation
        own = importance.log_density(cases, k, tried)
        log_weights -= np.logaddexp(0.0, -0.5 * z * z - math.log(deviation * ROOT) - own)
    return drawn[_choose(log_weights.reshape(-1, candidates), rng)]


@dataclass(frozen=True)
class _Line:
    """A node as a linear function of its parents, by their places."""

    intercept: float
    slopes: dict[int, float]
    variance: float

    def residual(self, k: int, values: FloatArray) -> FloatArray:
        """Return how far a node is from its line, for nodes × rows."""
        out: FloatArray = values[k] - self.intercept
        for parent, slope in self.slopes.items():
            out = out - slope * values[parent]
        return out


def _line(cases: EvidenceRows, k: int) -> _Line | None:
    """Return the line through the rows that a node was fitted to; None if it is not known."""
    line = cases.cpd(cases.nodes[k]).nearest_line()
    if line is None:
        return None
    places = [cases.place[parent] for parent in line.parents]
    return _Line(line.intercept, dict(zip(places, line.coefficients, strict=True)), line.variance)


def _by_lines(
    lines: list[_Line | None], k: int, children: list[int], values: FloatArray
) -> tuple[FloatArray, float] | None:
    """Return mean and standard deviation of a node given everything else, if all were lines.

    None if the node has no children, so that nothing but its parents matters, or if it is not near a line.
    """
    line, said = lines[k], [(c, found) for c in children if (found := lines[c]) is not None]
    if line is None or not said:
        return None
    precision = 1.0 / line.variance
    shift = -line.residual(k, values) * precision
    for child, other in said:
        slope = other.slopes[k]
        precision += slope * slope / other.variance
        shift = shift + slope * other.residual(child, values) / other.variance
    return values[k] + shift / precision, math.sqrt(1.0 / precision)


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

#: For every row, the kernels that may be its own, by node.
OwnKernels = Mapping[str, list[IntArray | None]]


def without_themselves(network: Joint, table: Table) -> Iterator[tuple[Joint, IntArray]]:
    """Yield networks, and the rows to ask them about: each network lacks the kernels of its rows.

    Parameters
    ----------
    table
        Rows in the units of the data; NaN is unknown.
    """
    kernels = _kernels_on(network, network.transformed(table))
    recognised = _recognised(kernels, table.rows)
    others = np.setdiff1d(np.arange(table.rows), recognised)
    copies = _copies(network)
    if len(others):
        yield network, others
    for number in range(min(GROUPS, len(recognised))):
        rows = recognised[number::GROUPS]
        cpds = dict(network.cpds) | {
            node: _without(network.cpds[node], [found[row] for row in rows], MOST_ALIKE * copies)
            for node, found in kernels.items()
        }
        yield network.with_cpds(cpds), rows


def _kernels_on(network: Joint, table: Table) -> OwnKernels:
    return {
        node: cpd.kernels_on(table.select((*cpd.parents, node)).columns) for node, cpd in network.cpds.items()
    }


def _recognised(kernels: OwnKernels, rows: int) -> IntArray:
    """Return the rows that agree with a kernel of every node of which they have a value."""
    known = np.zeros(rows, dtype=bool)
    strange = np.zeros(rows, dtype=bool)
    for found in kernels.values():
        for row, mine in enumerate(found):
            known[row] |= mine is not None
            strange[row] |= mine is not None and not len(mine)
    return np.flatnonzero(known & ~strange)


def _copies(network: Joint) -> int:
    """Return how many kernels of a node a row has at most: one for every filling of its table."""
    most = max((cpd.kernel_rows for cpd in network.cpds.values()), default=0)
    return max(1, most // (network.record.rows or max(most, 1)))


def _without(cpd: CPD, kernels: list[IntArray | None], most: int) -> CPD:
    """Leave kernels out that may be those of the rows themselves, unless they are more than these."""
    own = [mine for mine in kernels if mine is not None and len(mine) <= most]
    return cpd.without(np.unique(np.concatenate([np.empty(0, dtype=np.int64), *own])))
