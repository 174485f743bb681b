"""Regions: what is known of a variable if its value is not: an interval, or some of its levels.

Any density can be asked for the probability of a region given the parents, and for draws within it: in a
way of its own, or by its distribution function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.errors import ArgumentError
from spbn.tables.table import Table

BISECTIONS = 60


@dataclass(frozen=True)
class Interval:
    """Values from `low` to `high`, either of which may be infinite."""

    low: float
    high: float

    def contains(self, values: FloatArray) -> BoolArray:
        """Tell which values are inside."""
        return (values >= self.low) & (values <= self.high)


@dataclass(frozen=True)
class Levels:
    """Some levels, by their places."""

    places: tuple[int, ...]

    def contains(self, values: FloatArray) -> BoolArray:
        """Tell which level codes are among them."""
        return np.isin(values, self.places)


Region = Interval | Levels


def require_interval(region: Region) -> Interval:
    """Refuse levels where the variable is continuous."""
    if not isinstance(region, Interval):
        raise ArgumentError(f"a continuous variable lies in an interval (low, high). Got {region!r}.")
    return region


def mass_by_cdf(cpd: Any, region: Interval, parents: Table) -> tuple[FloatArray, FloatArray]:
    """Return the distribution function of a node at both ends of an interval."""
    low = _cdf_at(cpd, np.full(parents.rows, region.low), parents)
    return low, _cdf_at(cpd, np.full(parents.rows, region.high), parents)


def invert_cdf(cpd: Any, region: Interval, parents: Table, wanted: FloatArray) -> FloatArray:
    """Return where the distribution function has wanted values, by bisection within an interval."""
    low = _finite_end(lambda x: _cdf_at(cpd, x, parents) > wanted, np.full(parents.rows, region.low), -1.0)
    high = _finite_end(lambda x: _cdf_at(cpd, x, parents) < wanted, np.full(parents.rows, region.high), 1.0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = _cdf_at(cpd, middle, parents) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _finite_end(beyond: Callable[[FloatArray], BoolArray], ends: FloatArray, sign: float) -> FloatArray:
    """Replace an infinite end by a number that is far enough out."""
    if np.isfinite(ends).all():
        return ends
    out = np.full(len(ends), sign)
    while (short := beyond(out)).any() and np.abs(out).max() < 1e300:
        out = np.where(short, 4.0 * out, out)
    return out


def _cdf_at(cpd: Any, values: FloatArray, parents: Table) -> FloatArray:
    if np.isinf(values).all():
        return np.where(values > 0, 1.0, 0.0)
    table = Table((*parents.names, cpd.node), np.vstack([parents.columns, values]), parents.levels)
    return np.asarray(cpd.cdf(table))
