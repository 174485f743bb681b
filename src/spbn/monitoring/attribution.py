"""Which variables make rows unusual: as few as possible that, if they were different, would explain it.

The deficit of a node is how far its log-density lies below what is usual of it. There are two ways in which a
variable can explain deficits:

- Its own mechanism has changed. Then its own node has a deficit, and those of its children, which
  follow it, have none.
- Its value is wrong, as that of a sensor that has come loose. Then its children do not follow, and both
  they and it have deficits, all of which vanish under some other value.

The variable that explains most is to blame. Then it is as if it were in order, and whatever deficits are left
are explained in the same way. A row with an alarm is compared with what is usual in reference rows
(`explain_row`), and a drift alarm is explained by the rows in the window before it (`explain_drift`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, finite_log_density
from spbn.diagnostics.rows import LEAST_DROP, LEAST_SHARE, SHOWN_NODES, Reason, value_of
from spbn.inference.batch import impute_table
from spbn.monitoring.drift import Change
from spbn.monitoring.reference import Reference
from spbn.network import BayesianNetwork
from spbn.tables.table import Table

WINDOW = 100  # rows before a drift alarm that tell which variable is to blame
MIN_DRIFT = 0.05  # nats per row that a variable must explain to be blamed for a drift
DRAWS = 20  # of what is missing in a row, to tell what is to blame

#: Shifts of a variable that are tried, in its own standard deviations.
SHIFTS = np.array(
    [-4.0, -3.0, -2.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]
)

#: The values that a variable, by its number, could have instead: candidates × rows.
Candidates = Callable[[int], FloatArray]


@dataclass(frozen=True)
class Drift:
    """A drift alarm.

    Attributes
    ----------
    row
        The number of the row that raised it, counted from 0.
    since
        The number of the row where the drift seems to have begun.
    blame
        The variables to blame, the worst first.
    shifts
        How far each of them has moved, in standard deviations given its parents; NaN if it is discrete.

    Examples
    --------
    >>> import spbn
    >>> from spbn.tables import as_table
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> monitor = spbn.Monitor(network, data)
    >>> moved = as_table(data.assign(A=data["A"] + 3.0), training=True, missing="error")
    >>> first = next(iter(monitor.check(moved).drifts.values()))
    >>> print(first.blame)
    ('A',)
    """

    row: int
    since: int
    blame: tuple[str, ...]
    shifts: tuple[float, ...]


def find_culprits(
    network: BayesianNetwork,
    table: Table,
    contributions: FloatArray,
    usual: FloatArray,
    candidates: Candidates | None,
    *,
    least: float,
) -> list[tuple[int, float]]:
    """Return the variables to blame for some rows, the worst first, by number, and the nats each explains.

    Contributions are what every node adds to the log-density of every row, nodes × rows, and `usual` is what
    it usually adds. Candidates are values that a variable could have instead; None if no others are tried.
    A variable must explain as many nats as `least` to be blamed.
    """
    columns, means = table.columns.copy(), contributions.mean(axis=1)
    dag, nodes = network.structure.dag, network.nodes
    excused = np.array([node == network.hidden for node in nodes])  # a class that no column holds is no cause
    children = [[nodes.index(child) for child in dag.children(node)] for node in nodes]
    if network.hidden is not None:  # whichever class a value suggests, all other nodes depend on it
        others = [k for k, node in enumerate(nodes) if node != network.hidden]
        children = [[other for other in others if other != k] for k in range(len(nodes))]
    found: list[tuple[int, float]] = []
    for _ in range(SHOWN_NODES):
        deficits = np.where(excused, 0.0, np.maximum(usual - means, 0.0))
        gains, best = deficits.copy(), {}
        if candidates is not None:
            # A value explains no more than all deficits that depend on it: mostly there is nothing to try.
            bounds = np.zeros(len(deficits))
            for k, below in enumerate(children):
                if below and not excused[k]:
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
    deficit to it and its children.
    """
    count, rows = values.shape
    repeated = np.tile(table.columns, count)
    repeated[table.index(network.nodes[family[0]])] = values.ravel()
    tried = table.with_columns(repeated)
    with np.errstate(over="ignore"):
        if network.hidden is not None:
            every = finite_log_density(network.contributions(tried))
            logpdf = {j: every[:, j] for j in family}
        else:
            logpdf = {j: finite_log_density(network.node_logpdf(network.nodes[j], tried)) for j in family}
    found = {j: values.reshape(count, rows).mean(axis=1) for j, values in logpdf.items()}
    left: FloatArray = np.sum([np.maximum(usual[j] - found[j], 0.0) for j in family], axis=0)
    best = int(np.argmin(left))
    gain = float(sum(deficits[j] for j in family) - left[best])
    return _Repair(gain, values[best], {j: float(found[j][best]) for j in family})


def explain_row(
    network: BayesianNetwork, reference: Reference, row: Table, contributions: FloatArray
) -> tuple[Reason, ...]:
    """Return the variables to blame for a row, the worst first.

    Contributions, nodes × 1, are NaN where they depend on what is missing; if they are NaN everywhere, what
    is missing is drawn.
    """
    missing = np.isnan(row.columns[:, 0])
    usual = reference.medians
    if missing.all():
        return ()
    if missing.any():
        if np.isnan(contributions).all():
            draws = impute_table(network, row, draws=DRAWS, seed=0)
            contributions = np.stack([network.contributions(draw)[0] for draw in draws], axis=1)
            contributions = finite_log_density(contributions)
            unknown = np.flatnonzero(missing)  # nothing to blame there
            contributions[unknown] = usual[unknown, None]
        contributions = np.where(np.isnan(contributions), usual[:, None], contributions)
    others = None if missing.any() else reference.values_of
    found = find_culprits(network, row, contributions, usual, others, least=LEAST_DROP)
    return tuple(
        Reason(row.names[k], value_of(row.variables[k], row.columns[k, 0]), drop) for k, drop in found
    )


def explain_drift(
    network: BayesianNetwork, reference: Reference, change: Change, recent: Table, row: int
) -> Drift:
    """Attribute the drift alarm of a row, by its number, to variables, using the rows up to it, `recent`."""
    since = max(change.since, row + 1 - min(WINDOW, recent.rows))
    rows = recent.columns[:, recent.rows - (row + 1 - since) :]
    window = recent.with_columns(np.ascontiguousarray(rows[:, ~np.isnan(rows).any(axis=0)]))
    if not window.rows:
        return Drift(row, change.since, (network.nodes[change.variable],), (float("nan"),))
    # Two standard deviations of a normal one.
    spreads = reference.candidates[:, -6] - reference.candidates[:, 5]

    def candidates(k: int) -> FloatArray:
        if window.variables[k].is_discrete:
            return reference.values_of(k) + np.zeros(window.rows)
        return window.columns[k] - SHIFTS[:, None] * 0.5 * spreads[k]

    contributions = finite_log_density(network.contributions(window).T)
    found = find_culprits(network, window, contributions, reference.means, candidates, least=MIN_DRIFT)
    # The first explains most, whatever the evidence of its own; others must not be there by chance.
    blamed = [k for place, (k, _) in enumerate(found) if place == 0 or k in change.certain]
    blamed = blamed or [change.variable]
    shifts = _shifts(network, window)[blamed].tolist()
    return Drift(row, change.since, tuple(network.nodes[k] for k in blamed), tuple(shifts))


def _shifts(network: BayesianNetwork, window: Table) -> FloatArray:
    """Return the mean normal score of every variable given its parents; NaN if it is discrete."""
    from scipy.special import ndtri

    uniforms = np.full((len(network.nodes), window.rows), 0.5)
    _, pit = network.logpdf_and_cdf_of_columns(window.columns, uniforms)
    scores: FloatArray = ndtri(np.clip(pit, 1e-4, 1.0 - 1e-4)).mean(axis=1)
    continuous = [not v.is_discrete for v in network.variables[: len(scores)]]
    return np.where(np.append(continuous, False)[: len(scores)], scores, np.nan)  # no shift of a hidden class
