"""Where particles begin in an interval: a normal distribution that is cut off at its ends.

Forward samples draw a node in its interval given its parents, and are weighed by the probability of the
interval. That takes some twenty times as long to compute as a density of kernels. Led from a reference
distribution instead, which does not depend on the parents, particles need densities alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import LOG_2PI, FloatArray
from spbn.nodes.regions import Interval
from spbn.numerics.gaussian import draw_between, log_mass_between

WIDER = 2.0  # than what forward samples show: weights must not grow in the tails
FEWEST = 10  # forward samples to learn from

_LOG_SQRT_2PI = 0.5 * LOG_2PI


@dataclass(frozen=True)
class Reference:
    """A normal distribution between the ends of an interval."""

    mean: float
    deviation: float
    interval: Interval

    @classmethod
    def of(cls, interval: Interval, draws: FloatArray) -> Reference | None:
        """Return one that covers draws within the interval; None if these are too few or all the same."""
        there = draws[np.isfinite(draws) & interval.contains(draws)]
        if len(there) < FEWEST or not there.std() > 0.0:
            return None
        return cls(float(there.mean()), WIDER * float(there.std()), interval)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n values."""
        low, high = (np.full(n, end) for end in self._ends)
        drawn = self.mean + self.deviation * draw_between(low, high, rng.random(n))
        return np.clip(drawn, self.interval.low, self.interval.high)

    def log_density(self, values: FloatArray) -> FloatArray:
        """Return the log-density of values within the interval."""
        low, high = (np.array([end]) for end in self._ends)
        scale = math.log(self.deviation) + _LOG_SQRT_2PI + log_mass_between(low, high)[0]
        density: FloatArray = -0.5 * ((values - self.mean) / self.deviation) ** 2 - scale
        return density

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends of the interval in deviations from the mean."""
        return (
            (self.interval.low - self.mean) / self.deviation,
            (self.interval.high - self.mean) / self.deviation,
        )
