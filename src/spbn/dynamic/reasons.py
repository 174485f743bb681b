"""Reasons: which variables are to blame for an alarm, or for a drift, against reference rows."""

from __future__ import annotations

import numpy as np

from spbn.dynamic.blame import SHIFTS, culprits
from spbn.dynamic.drift import Change
from spbn.dynamic.reference import Reference
from spbn.dynamic.scoring import Scorer, contributions_of
from spbn.dynamic.verdicts import Drift
from spbn.explain.unusual import LEAST_DROP, Reason
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import FloatArray
from spbn.tables.table import Table

WINDOW = 100  # rows before a drift alarm that tell which variable is to blame
LEAST_DRIFT = 0.05  # nats per row that a variable must explain to be blamed for a drift
DRAWS = 20  # of what is missing in a row, to tell what is to blame


def reasons_for(
    network: BayesianNetwork, reference: Reference, row: Table, contributions: FloatArray
) -> tuple[Reason, ...]:
    """Return the variables to blame for a row, the worst first.

    Parameters
    ----------
    contributions
        What its nodes add to the log-density: nodes × 1. NaN where that depends on what is missing; if it is
        NaN everywhere, what is missing is drawn.
    """
    missing = np.isnan(row.columns[:, 0])
    usual, values = reference.medians, reference.candidates
    if missing.all():
        return ()
    if missing.any():
        if np.isnan(contributions).all():
            from spbn.inference.holes import imputed

            draws = imputed(network, row, draws=DRAWS, seed=0)
            contributions = np.stack([contributions_of(network, draw)[:, 0] for draw in draws], axis=1)
            contributions[missing] = usual[missing, None]  # nothing to blame there
        contributions = np.where(np.isnan(contributions), usual[:, None], contributions)

    def candidates(k: int) -> FloatArray:
        return values[k, ~np.isnan(values[k]), None]

    others = None if missing.any() else candidates
    found = culprits(network, row, contributions, usual, others, least=LEAST_DROP)
    reasons = []
    for culprit in found:
        variable, value = row.variables[culprit.variable], float(row.columns[culprit.variable, 0])
        shown = variable.levels[int(value)] if variable.is_discrete else value
        reasons.append(Reason(variable.name, shown, culprit.drop))
    return tuple(reasons)


def drift_of(
    network: BayesianNetwork, reference: Reference, scorer: Scorer, change: Change, recent: Table, row: int
) -> Drift:
    """Say what has changed, by the last rows up to one that raised a drift alarm.

    Parameters
    ----------
    recent
        The last rows; the one that raised the alarm is the last of them.
    row
        The number of that row.
    """
    since = max(change.since, row + 1 - min(WINDOW, recent.rows))
    rows = recent.columns[:, recent.rows - (row + 1 - since) :]
    window = recent.with_columns(np.ascontiguousarray(rows[:, ~np.isnan(rows).any(axis=0)]))
    if not window.rows:
        return Drift(row, change.since, (network.nodes[change.variable],), (float("nan"),))
    # Two standard deviations of a normal one.
    spreads = reference.candidates[:, -6] - reference.candidates[:, 5]

    def candidates(k: int) -> FloatArray:
        if window.variables[k].is_discrete:
            levels = reference.candidates[k, ~np.isnan(reference.candidates[k]), None]
            return levels + np.zeros(window.rows)
        return window.columns[k] - SHIFTS[:, None] * 0.5 * spreads[k]

    contributions = contributions_of(network, window)
    found = culprits(network, window, contributions, reference.means, candidates, least=LEAST_DRIFT)
    # The first explains most, whatever the evidence of its own; others must not be there by chance.
    blamed = [c.variable for k, c in enumerate(found) if k == 0 or c.variable in change.certain]
    blamed = blamed or [change.variable]
    shifts = _shifts(network, scorer, window)
    return Drift(
        row,
        change.since,
        tuple(network.nodes[k] for k in blamed),
        tuple(float(shifts[k]) for k in blamed),
    )


def _shifts(network: BayesianNetwork, scorer: Scorer, window: Table) -> FloatArray:
    """Return the mean normal score of every variable given its parents; NaN if it is discrete."""
    from scipy.special import ndtri

    _, places = scorer.scored(window, np.full((len(network.nodes), window.rows), 0.5))
    scores: FloatArray = ndtri(np.clip(places, 1e-4, 1.0 - 1e-4)).mean(axis=1)
    return np.where(window.discrete[: len(scores)], np.nan, scores)
