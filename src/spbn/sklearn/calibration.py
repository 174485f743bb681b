"""What makes the probabilities of a classifier as confident as they deserve to be.

Densities of many features multiply errors that are not independent, so that the odds between classes come
out too great. Two numbers, fitted to rows that the densities have not seen, set that right:

    P(class | row) = (1 - doubt) · softmax(log(P(class) f(row | class)) / temperature) + doubt · P(class).

All log-odds are divided by the temperature (Guo et al., "On calibration of modern neural networks", 2017).
The doubt is the share of rows that are unlike anything in training: their features say nothing, and the
frequency of the classes is all that is left. Without it a single such row, wrong by hundreds of nats, would
decide the temperature of all others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import FloatArray, IntArray

LOG_TEMPERATURES = (math.log(0.05), math.log(1000.0))
LOG_ODDS_OF_DOUBT = (math.log(1e-9), 0.0)
#: What is assumed before any row is seen, so that a few rows that are all classified correctly do not call
#: for boundless confidence: the spread of the temperature's logarithm, and how many rows are in doubt.
PRIOR_SPREAD, ROWS_IN_DOUBT = 1.0, 1.0
STARTS = ((0.0, -3.0), (1.5, -3.0))


@dataclass(frozen=True)
class Calibration:
    """How far the odds that follow from the densities are to be believed."""

    temperature: float = 1.0
    doubt: float = 0.0

    @classmethod
    def fitted(cls, joint: FloatArray, log_priors: FloatArray, labels: IntArray) -> Calibration:
        """Return the calibration under which the classes of some rows are most likely.

        Parameters
        ----------
        joint
            log P(class) f(row | class), from densities that have not seen the row: classes × rows.
        log_priors
            log P(class), in the same shape.
        labels
            The class of every row, by number.
        """
        from scipy.optimize import minimize

        rows = np.arange(len(labels))

        def loss(parameters: FloatArray) -> float:
            log_temperature, log_odds = parameters.tolist()
            found = cls._at(log_temperature, log_odds)
            likelihood = found.log_probabilities(joint, log_priors)[labels, rows].sum()
            prior = ROWS_IN_DOUBT * math.log(found.doubt) - 0.5 * (log_temperature / PRIOR_SPREAD) ** 2
            return -float(likelihood) - prior

        bounds = (LOG_TEMPERATURES, LOG_ODDS_OF_DOUBT)
        # The loss may have two valleys: great doubt, or a high temperature.
        found = [minimize(loss, np.array(start), method="L-BFGS-B", bounds=bounds) for start in STARTS]
        best = min(found, key=lambda result: float(result.fun))
        return cls._at(*best.x.tolist())

    @classmethod
    def _at(cls, log_temperature: float, log_odds_of_doubt: float) -> Calibration:
        return cls(math.exp(log_temperature), 1.0 / (1.0 + math.exp(-log_odds_of_doubt)))

    def log_probabilities(self, joint: FloatArray, log_priors: FloatArray) -> FloatArray:
        """Return log P(class | row) for log P(class) f(row | class): classes × rows."""
        from scipy.special import logsumexp

        # A row that is impossible in every class says nothing about its class.
        joint = np.where(np.isfinite(joint.max(axis=0)), joint, log_priors)
        tempered = (joint - joint.max(axis=0)) / self.temperature
        found = tempered - logsumexp(tempered, axis=0)
        if self.doubt == 0.0:
            return np.asarray(found)
        return np.logaddexp(math.log1p(-self.doubt) + found, math.log(self.doubt) + log_priors)
