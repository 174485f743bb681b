"""Shares: how many reference rows are as unusual as a new one, also where none of them is.

Among n reference rows and one more like them, every order is equally likely. So the share

    (1 + number of reference rows with a log-density as low) / (n + 1)

is at most p with probability p at most. It cannot be smaller than 1 / (n + 1), though, and close to that it
depends on one or two rows. So the lowest tenth of the reference rows is described by a generalised Pareto
distribution of how far below the tenth they lie, which says what share lies farther below. Its two
parameters are not chosen but integrated over: a plug-in estimate raises too many alarms, because it takes
the parameters for known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from spbn.numerics.arrays import FloatArray

SHARE_OF_TAIL, FEWEST, MOST = 0.1, 20, 500  # of the reference rows, that the tail is fitted to
FEWEST_DISTINCT = 10  # log-densities of the tail: those of discrete variables are steps, and have no tail
LOWEST = -1e299  # log-densities below this are those of impossible rows

# The prior of the shape: log-densities have tails that are about exponential, and heavier ones if
# rows have outliers that the network does not expect. The scale has no prior but that of a scale.
SHAPES = np.linspace(-0.95, 1.5, 50)
LIKELY_SHAPE, SPREAD_OF_SHAPE = 0.15, 0.4
LOG_SCALES = np.linspace(-2.5, 2.5, 81)  # relative to the mean
NEGLIGIBLE = 1e-12  # weight of a pair of parameters
LOG_DISTANCES = np.linspace(-6.0, 16.0, 300)  # relative to the mean, at which shares are tabulated


@final
@dataclass(frozen=True, eq=False)
class Tail:
    """The shares that log-densities have among those of reference rows.

    Attributes
    ----------
    ordered
        The log-densities of the reference rows, ascending.
    edge
        Below this the tail is used; -inf if there is none.
    log_distances, log_shares
        Distances below the edge, and which share of the rows lies as far below, in logs.
    """

    ordered: FloatArray
    edge: float
    log_distances: FloatArray
    log_shares: FloatArray

    @classmethod
    def of(cls, scores: FloatArray) -> Tail:
        """Describe the log-densities of reference rows."""
        ordered = np.sort(scores)
        n = len(ordered)
        k = min(max(int(SHARE_OF_TAIL * n), FEWEST), MOST, n - 1)
        lowest, edge = ordered[:k], float(ordered[min(k, n - 1)])
        if k < FEWEST or lowest[0] < LOWEST or len(np.unique(lowest)) < FEWEST_DISTINCT or lowest[-1] >= edge:
            return cls(ordered, -np.inf, np.zeros(1), np.zeros(1))
        excesses = edge - lowest
        log_distances = LOG_DISTANCES + np.log(excesses.mean())
        log_shares = np.log((k + 1) / (n + 1)) + _log_survival(excesses, np.exp(log_distances))
        return cls(ordered, edge, log_distances, log_shares)

    @property
    def rows(self) -> int:
        """Number of reference rows."""
        return len(self.ordered)

    @property
    def is_extrapolated(self) -> bool:
        """Whether shares may be smaller than one row."""
        return self.edge > -np.inf

    def shares(self, scores: FloatArray) -> FloatArray:
        """Return which share of rows like the reference rows is as unusual, for every log-density."""
        as_low = np.searchsorted(self.ordered, scores, side="right").astype(np.float64)
        out: FloatArray = (1.0 + as_low) / (self.rows + 1.0)
        low = np.flatnonzero(scores < self.edge)
        if len(low):
            distances = np.log(np.minimum(self.edge - scores[low], 1e300))
            out[low] = np.exp(np.interp(distances, self.log_distances, self.log_shares))
        return out

    def scores(self, shares: FloatArray) -> FloatArray:
        """Return the log-densities that have these shares: what `shares` does, backwards."""
        places = np.clip(np.ceil(shares * (self.rows + 1.0)).astype(np.int64) - 2, 0, self.rows - 1)
        out: FloatArray = self.ordered[places].copy()
        low = np.flatnonzero(np.log(shares) < self.log_shares[0])
        if self.is_extrapolated and len(low):
            # Ascending, for interpolation.
            distances = np.interp(np.log(shares[low]), self.log_shares[::-1], self.log_distances[::-1])
            out[low] = self.edge - np.exp(distances)
        return out


def _log_survival(excesses: FloatArray, distances: FloatArray) -> FloatArray:
    """Return the log-probability that one more excess is greater than each of some distances.

    That is the mean over the posterior of the parameters, on a grid.
    """
    scales = excesses.mean() * np.exp(LOG_SCALES)
    log_posterior = np.empty((len(SHAPES), len(scales)))
    for i, shape in enumerate(SHAPES):
        hazards = _cumulative_hazard(excesses / scales[:, None], shape).sum(axis=1)
        log_posterior[i] = -len(excesses) * np.log(scales) - (1.0 + shape) * hazards
        log_posterior[i] -= 0.5 * ((shape - LIKELY_SHAPE) / SPREAD_OF_SHAPE) ** 2
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()
    survival = np.zeros(len(distances))
    for i, shape in enumerate(SHAPES):
        likely = weights[i] > NEGLIGIBLE
        hazards = _cumulative_hazard(distances / scales[likely, None], shape)
        survival += weights[i, likely] @ np.exp(-hazards)
    log_survival: FloatArray = np.log(np.maximum(survival, 1e-300))
    return log_survival


def _cumulative_hazard(values: FloatArray, shape: float) -> FloatArray:
    """Return minus the log-probability of greater values under a generalised Pareto distribution of scale 1.

    It is infinite from where on there are none.
    """
    if abs(shape) < 1e-12:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard: FloatArray = np.log1p(np.maximum(shape * values, -1.0)) / shape
    return hazard
