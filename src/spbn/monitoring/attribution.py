"""Which mechanisms have changed: a drift alarm is explained by the rows in the window before it.

The node whose own conditional distribution, given its parents, has changed is to blame, and not those that
follow it as before. A variable whose values are wrong throughout, as those of a sensor that has come loose,
is found as the wrong cell of a row is (`spbn.diagnostics.blame`): put right, its children are in order, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import FloatArray, finite_log_density
from spbn.diagnostics.blame import find_culprits
from spbn.monitoring.drift import Change
from spbn.monitoring.reference import Reference
from spbn.network import BayesianNetwork
from spbn.tables.table import Table

WINDOW = 100  # rows before a drift alarm that tell which variable is to blame
MIN_DRIFT = 0.05  # nats per row that a variable must explain to be blamed for a drift

#: Shifts of a variable that are tried, in its own standard deviations.
SHIFTS = np.array(
    [-4.0, -3.0, -2.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]
)


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
