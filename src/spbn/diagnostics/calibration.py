"""Does a node's density fit? The probability integral transform of its values must be uniform.

The distribution function of a discrete node has steps. A random point on the step of every row is uniform
again, if the probabilities are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from spbn._base.arrays import FloatArray, same_uniforms
from spbn.diagnostics.evidence import Evidence
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD, HasSteps
from spbn.tables.table import Table

CHECKED_ROWS = 2_000
GOOD = 0.05  # distance up to which a fit is good, whatever the number of rows; up to twice that it is fair


@dataclass(frozen=True)
class FitCheck:
    """The histogram of P(X ≤ x | parents) over rows, and how far it is from uniform.

    `distance` is that of Kolmogorov and Smirnov: the greatest difference of the
    two distribution functions.
    """

    counts: tuple[int, ...]
    distance: float
    rows: int

    @property
    def chance(self) -> float:
        """The distance that 1 in 20 samples of a correct model would exceed."""
        return 1.358 / sqrt(self.rows)

    @property
    def limits(self) -> tuple[float, float]:
        """Up to which distance a fit is good, and up to which it is fair, to three decimals.

        Few rows allow for more: a distance that is likely by chance says nothing against a model.
        """
        good = round(max(GOOD, self.chance), 3)
        return good, 2.0 * good

    @property
    def verdict(self) -> str:
        """One word for the distance: it agrees with the limits as they are written."""
        good, fair = self.limits
        distance = round(self.distance, 3)
        return "good" if distance <= good else "fair" if distance <= fair else "poor"

    @property
    def band(self) -> tuple[float, float]:
        """The counts between which 19 of 20 bars of a correct model lie."""
        share = 1.0 / len(self.counts)
        spread = 1.96 * sqrt(self.rows * share * (1.0 - share))
        return max(0.0, self.rows * share - spread), self.rows * share + spread


def check(network: BayesianNetwork, evidence: Evidence) -> dict[str, FitCheck]:
    """Check every node that has values, for itself and for its parents."""
    table = evidence.thinned(CHECKED_ROWS)
    if table is None:
        return {}
    checks = {}
    for node, cpd in network.cpds.items():
        if evidence.covers((node, *cpd.parents)):
            uniform = np.sort(np.clip(_transform(cpd, network.transformed(table)), 0.0, 1.0))
            rows = len(uniform)
            steps = np.arange(rows + 1) / rows
            distance = max(np.max(steps[1:] - uniform), np.max(uniform - steps[:-1]))
            counts = np.histogram(uniform, bins=20 if rows >= 400 else 10, range=(0.0, 1.0))[0]
            checks[node] = FitCheck(tuple(counts.tolist()), float(distance), rows)
    return checks


def _transform(cpd: CPD, table: Table) -> FloatArray:
    """Return P(X ≤ x | parents) of every row; a point on its step, always the same one, if X has steps."""
    if isinstance(cpd, HasSteps):
        return cpd.randomised_cdf(table, same_uniforms(table.rows))
    return cpd.cdf(table)
