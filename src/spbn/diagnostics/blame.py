"""Which cells make a row unusual: as few as possible that, if they were repaired, would make it plausible.

To repair a cell is to replace its value by the one that the rest of the row makes most plausible. The deficit
of a node is how far its log-density lies below what is typical of it: its median over training rows. So a row
is explained alike in whatever table it comes, by `unusual_rows`, a `RowScorer` and a `Monitor`. A wrong value
puts its own node and its children into deficit, and all of that vanishes under the right one. A value that is
only far from what its parents say, and that its children follow, has a deficit of its own.

The cell whose repair undoes most is to blame. It is then as if it were in order, and whatever is left is
explained in the same way, until no repair undoes as much as `LEAST_DROP` or a tenth of the first.

In a row with holes, what is missing is drawn; it is never to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray, finite_log_density
from spbn.errors import ArgumentError, quoted
from spbn.inference.batch import impute_table, without_themselves
from spbn.network import BayesianNetwork
from spbn.tables.table import Table, Variable

SHOWN_NODES = 3
LEAST_DROP = 1.0  # nats: a value e times less likely than a typical one
LEAST_SHARE = 0.1  # of the greatest drop: a cell that adds less explains nothing
SAMPLED_ROWS = 1_000  # that tell what is typical of a network without a record
DRAWS = 20  # of what is missing in a row
CANDIDATES = 31  # values of a variable that are tried at a time: quantiles of rows drawn from the network
ZOOMS = 2  # how often as many are tried again, between those beside the best

#: The values that a variable, by its number, could have instead: candidates × rows, or × 1.
Candidates = Callable[[int], FloatArray]


@dataclass(frozen=True)
class Reason:
    """A cell that makes a row unusual: its node and value, and how many nats of deficit its repair undoes."""

    node: str
    value: float | str  # that of a discrete node is its level
    drop: float


def value_of(variable: Variable, number: float) -> float | str:
    """Return a value as it is in data."""
    return variable.levels[int(number)] if variable.is_discrete else float(number)


def typical(network: BayesianNetwork) -> dict[str, float]:
    """Return what every node adds to the log-density of a typical row.

    That is the median over training rows that the node was not fitted to, from the network's record. Where
    there is none, it is the median over rows drawn from the network, always the same ones.
    """
    known = network.record.typical
    absent = [node for node in network.nodes if node not in known]
    if absent and network.inputs:
        raise ArgumentError(
            f"what is typical of {quoted(absent)} is not recorded, and rows cannot be drawn without values "
            f"of the inputs: learn the network from data."
        )
    drawn = {}
    if absent:
        rows = _drawn(network)
        medians = {node: np.asarray(np.median(network.node_logpdf(node, rows))) for node in absent}
        drawn = {node: float(finite_log_density(median)) for node, median in medians.items()}
    return {node: drawn[node] if node in drawn else float(known[node]) for node in network.nodes}


def _drawn(network: BayesianNetwork, inputs: Table | None = None) -> Table:
    """Draw rows, always the same ones, in the units of the data; given the inputs of a row, if any."""
    given = {}
    if inputs is not None:
        moved = network.transformed(inputs)
        given = {name: np.full(SAMPLED_ROWS, moved.column(name)[0]) for name in network.inputs}
    columns = network.draw(SAMPLED_ROWS, seed=0, given=given)
    in_units = [network.in_data_units(v.name, columns[v.name]) for v in network.variables]
    return Table.of(network.variables, np.stack(in_units))


@final
class Blame:
    """A network, and what is usual of its nodes: prepared to say which cells make rows unusual."""

    def __init__(self, network: BayesianNetwork, usual: Mapping[str, float] | None = None) -> None:
        self.network = network
        self.typical = typical(network) if usual is None else usual

    def reasons(
        self, row: Table, contributions: FloatArray | None = None, *, left_out: bool = False
    ) -> tuple[Reason, ...]:
        """Return the cells to blame for a row, the worst first.

        Contributions, one for each node, are what the row was found to have; NaN says nothing. None: they
        are computed, and the row may have holes. `left_out`: the network was fitted to the row.
        """
        network, usual = self.network, np.array([self.typical[node] for node in self.network.nodes])
        missing, rows = np.isnan(row.columns[:, 0]), row
        unknown = [name for name, is_missing in zip(row.names, missing, strict=True) if is_missing]
        if missing.all():
            return ()
        if contributions is not None:
            found = finite_log_density(np.asarray(contributions, dtype=np.float64))[:, None]
        else:
            if missing.any():
                draws = impute_table(network, row, draws=DRAWS, seed=0)
                rows = row.with_columns(np.concatenate([draw.columns for draw in draws], axis=1))
            found = finite_log_density(network.contributions(rows)).T
            marks = network.marks
            found[[k for k, node in enumerate(network.nodes) if marks.get(node, node) in unknown]] = np.nan
        if left_out:  # or values close to its own would look likely
            network = next(without_themselves(network, row))[0]  # type: ignore[assignment]

        def candidates(k: int) -> FloatArray:
            variable = row.variables[k]
            if variable.is_discrete:
                return np.arange(len(variable.levels), dtype=np.float64)[:, None]
            column = (self._sample if not network.inputs else drawn()).columns[k]
            return np.quantile(column, (np.arange(CANDIDATES) + 0.5) / CANDIDATES)[:, None]

        drawn = cache(lambda: _drawn(network, row))
        culprits = find_culprits(network, rows, found, usual, candidates, least=LEAST_DROP)
        return tuple(
            Reason(row.names[k], value_of(row.variables[k], row.columns[k, 0]), drop) for k, drop in culprits
        )

    @cached_property
    def _sample(self) -> Table:
        return _drawn(self.network)


def find_culprits(
    network: BayesianNetwork,
    table: Table,
    contributions: FloatArray,
    usual: FloatArray,
    candidates: Candidates,
    *,
    least: float,
) -> list[tuple[int, float]]:
    """Return the variables to blame for some rows, the worst first, by number, and the nats each explains.

    Contributions are what every node adds to the log-density of every row, nodes × rows, and `usual` is what
    it usually adds. A node that is NaN in some row says nothing, and is not blamed. A variable must explain
    as many nats as `least` to be blamed.
    """
    columns, means = table.columns.copy(), contributions.mean(axis=1)
    dag, nodes = network.structure.dag, network.nodes
    unknown = np.isnan(means) | [node == network.hidden for node in nodes]  # no column holds a hidden class
    means, excused = np.where(unknown, usual, means), unknown.copy()
    children = [[nodes.index(child) for child in dag.children(node)] for node in nodes]
    is_mark = np.array([node in network.marks for node in nodes])
    for mark, name in network.marks.items():  # it follows from its column, and is repaired with that
        column, own = nodes.index(name), nodes.index(mark)
        children[column] = list(dict.fromkeys([*children[column], own, *children[own]]))
        children[column].remove(column)
    if network.hidden is not None:  # whichever class a value suggests, all other nodes depend on it
        others = [k for k, node in enumerate(nodes) if node != network.hidden]
        children = [[other for other in others if other != k] for k in range(len(nodes))]
    found: list[tuple[int, float]] = []
    for _ in range(SHOWN_NODES):
        deficits = np.where(excused, 0.0, np.maximum(usual - means, 0.0))
        gains, best = np.where(is_mark, 0.0, deficits), {}
        # A value explains no more than all deficits that depend on it: mostly there is nothing to try.
        bounds = np.zeros(len(deficits))
        for k, below in enumerate(children):
            if below and not excused[k] and not is_mark[k]:
                bounds[k] = deficits[k] + sum(deficits[child] for child in below)
        for k in np.argsort(-bounds).tolist():
            if bounds[k] <= gains.max() + 0.5 * least:
                break
            rows = table.with_columns(columns.copy())
            family = [k, *(child for child in children[k] if not excused[child])]
            repair = _best_repair(network, rows, family, deficits, usual, candidates(k))
            if repair.gain > gains[k]:
                gains[k], best[k] = repair.gain, repair
        worst = int(gains.argmax())
        needed = max(least, LEAST_SHARE * found[0][1] if found else 0.0)
        if gains[worst] < needed:
            break
        found.append((worst, float(gains[worst])))
        excused[worst] = True
        if worst in best:
            _, values, changed = best[worst]
            columns[table.index(network.nodes[worst])] = values
            for place, mean in changed.items():
                means[place] = mean
    return found


class _Repair(NamedTuple):
    gain: float
    values: FloatArray
    means: dict[int, float]


def _best_repair(
    network: BayesianNetwork,
    table: Table,
    family: Sequence[int],
    deficits: FloatArray,
    usual: FloatArray,
    values: FloatArray,
) -> _Repair:
    """Replace the values of a variable, the first of its family, by the candidates that leave the least
    deficit to it and its children; look between them, too, if it is continuous.
    """
    zooms = 0 if table.variables[family[0]].is_discrete else ZOOMS
    tried = values
    for zoom in range(zooms + 1):
        found = _means_with(network, table, family, tried)
        left: FloatArray = np.sum([np.maximum(usual[j] - found[j], 0.0) for j in family], axis=0)
        best = int(np.argmin(left))
        if zoom == zooms or left[best] == 0.0:
            break
        ends = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
        tried = np.linspace(*ends, CANDIDATES)
    gain = float(sum(deficits[j] for j in family) - left[best])
    return _Repair(gain, tried[best] + np.zeros(table.rows), {j: float(found[j][best]) for j in family})


def _means_with(
    network: BayesianNetwork, table: Table, family: Sequence[int], values: FloatArray
) -> dict[int, FloatArray]:
    """Return the mean log-density of nodes for each of some values of a variable, the first of its family."""
    count = len(values)
    repeated = np.tile(table.columns, count)
    repeated[table.index(network.nodes[family[0]])] = (values + np.zeros(table.rows)).ravel()
    tried = table.with_columns(repeated)
    with np.errstate(over="ignore"):
        if network.hidden is not None:
            every = finite_log_density(network.contributions(tried))
            logpdf = {j: every[:, j] for j in family}
        else:
            logpdf = {j: finite_log_density(network.node_logpdf(network.nodes[j], tried)) for j in family}
    return {j: found.reshape(count, table.rows).mean(axis=1) for j, found in logpdf.items()}
