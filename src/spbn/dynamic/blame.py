"""Which variables make rows unusual: as few as possible that, if they were different, would explain it.

The deficit of a node is how far its log-density lies below what is usual of it. There are two ways in which a
variable can explain deficits:

- Its own mechanism has changed. Then its own node has a deficit, and those of its children, which
  follow it, have none.
- Its value is wrong, as that of a sensor that has come loose. Then its children do not follow, and both
  they and it have deficits, all of which vanish under some other value.

The variable that explains most is to blame. Then it is as if it were in order, and whatever deficits are left
are explained in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spbn.dynamic.scoring import LOWEST
from spbn.explain.unusual import LEAST_SHARE, SHOWN_NODES
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import BoolArray, FloatArray
from spbn.tables.table import Table

#: Shifts of a variable that are tried, in its own standard deviations.
SHIFTS = np.array(
    [-4.0, -3.0, -2.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]
)

#: The values that a variable, by its number, could have instead: candidates × rows.
Candidates = Callable[[int], FloatArray]


class Culprit(NamedTuple):
    """A variable to blame, by its number, and the nats that it explains, as a mean over rows."""

    variable: int
    drop: float


def culprits(
    network: BayesianNetwork,
    table: Table,
    contributions: FloatArray,
    usual: FloatArray,
    candidates: Candidates | None,
    *,
    least: float,
    most: int = SHOWN_NODES,
) -> tuple[Culprit, ...]:
    """Return the variables to blame for some rows, the worst first.

    Parameters
    ----------
    contributions
        What every node adds to the log-density of every row: nodes × rows.
    usual
        What every node usually adds.
    candidates
        Values that a variable could have instead; None if no others are tried.
    least
        Nats that a variable must explain to be blamed.
    """
    columns, means = table.columns.copy(), contributions.mean(axis=1)
    excused = np.zeros(len(means), dtype=np.bool_)
    found: list[Culprit] = []
    for _ in range(most):
        deficits = np.where(excused, 0.0, np.maximum(usual - means, 0.0))
        gains, best = deficits.copy(), {}
        if candidates is not None:
            # A value explains no more than all deficits that depend on it: mostly there is nothing to try.
            bounds = _bounds(network, deficits, excused)
            for k in np.argsort(-bounds).tolist():
                if bounds[k] <= gains.max() + 0.5 * least:
                    break
                rows = table.with_columns(columns.copy())
                repair = _repaired(network, rows, k, deficits, usual, candidates(k), excused)
                if repair.gain > gains[k]:
                    gains[k], best[k] = repair.gain, repair
        worst = int(gains.argmax())
        needed = max(least, LEAST_SHARE * found[0].drop if found else 0.0)
        if gains[worst] < needed:
            break
        found.append(Culprit(worst, float(gains[worst])))
        excused[worst] = True
        if worst in best:
            _, values, changed = best[worst]
            columns[table.index(network.nodes[worst])] = values
            for place, mean in changed.items():
                means[place] = mean
    return tuple(found)


def _bounds(network: BayesianNetwork, deficits: FloatArray, excused: BoolArray) -> FloatArray:
    """Return the deficits of every variable that has children, and of these; 0 if there is nothing to try."""
    bounds = np.zeros(len(deficits))
    for k, node in enumerate(network.nodes):
        children = network.structure.dag.children(node)
        if children and not excused[k]:
            bounds[k] = deficits[k] + sum(deficits[network.nodes.index(child)] for child in children)
    return bounds


class _Repair(NamedTuple):
    gain: float
    values: FloatArray
    means: dict[int, float]


def _repaired(
    network: BayesianNetwork,
    table: Table,
    k: int,
    deficits: FloatArray,
    usual: FloatArray,
    values: FloatArray,
    excused: BoolArray,
) -> _Repair:
    """Replace a variable's values by the candidates that leave the least deficit to it and its children."""
    node = network.nodes[k]
    children = [network.nodes.index(child) for child in network.structure.dag.children(node)]
    family = [k, *(child for child in children if not excused[child])]
    count, rows = values.shape
    repeated = np.tile(table.columns, count)
    repeated[table.index(node)] = values.ravel()
    tried = table.with_columns(repeated)
    with np.errstate(over="ignore"):
        found = {
            j: np.maximum(network.node_logpdf(network.nodes[j], tried), LOWEST)
            .reshape(count, rows)
            .mean(axis=1)
            for j in family
        }
    left: FloatArray = np.sum([np.maximum(usual[j] - found[j], 0.0) for j in family], axis=0)
    best = int(np.argmin(left))
    gain = float(sum(deficits[j] for j in family) - left[best])
    return _Repair(gain, values[best], {j: float(found[j][best]) for j in family})
