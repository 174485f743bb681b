"""Order statistics of columns: where most of the rows are, whatever the others may be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray

LEVELS = (0.0, 0.02, 0.1, 0.5, 0.9, 0.98, 1.0)
WIDTHS = (2.563, 4.107, 6.0)  # of the middle 80 %, 96 % and all rows, in standard deviations
DIGITS = 11  # binary ones that are left of widths, and the unit of which others are multiples
FAR = 1.5  # times the distance of all but 2 % of the rows from the median: a curve ends there
FAR_OUT = 3.0  # the same, beyond which values do not count for moments
ODD = 1_000.0  # widths from the median, beyond which nothing is learned from a row ...
FEW, FEW_SHARE = 3, 0.001  # ... unless there are more such rows than both: then the column is like that


class Spreads(NamedTuple):
    """Order statistics of columns, which no single row decides, and which tell no value of a single row.

    All are whole multiples of a unit, less than a thousandth of the scale, that is a power of 2: they become
    parameters of networks, whose files must not hold values of training rows.

    Attributes
    ----------
    centre
        The medians.
    scale
        Widths of the middle 80 % of the rows, as standard deviations if these were normal; of more rows where
        these have one value only, and 0 where all have.
    low, high
        Values that 2 % of the rows are below and above; the least and the greatest where these are the same.
    least, greatest
        The least and the greatest values.
    """

    centre: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    least: FloatArray
    greatest: FloatArray

    def bounds(self, times: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds at a multiple of the distances of low and high from the centre, within all values."""
        low, high = (self.centre + times * (values - self.centre) for values in (self.low, self.high))
        return np.maximum(low, self.least), np.minimum(high, self.greatest)


def spreads_of(columns: FloatArray) -> Spreads:
    """Return the order statistics of variables × rows."""
    return spreads_from_quantiles(np.quantile(columns, LEVELS, axis=1, method="inverted_cdf"))


def centre_and_scale(quantiles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return medians and widths, as `Spreads` has them but to the last digit, from `LEVELS` × variables."""
    least, low, first, centre, last, high, greatest = quantiles
    scale = np.zeros(len(centre))
    between = (last - first, high - low, greatest - least)
    for width, difference in reversed(list(zip(WIDTHS, between, strict=True))):
        scale = np.where(difference > 0.0, difference / width, scale)
    return centre, scale


def spreads_from_quantiles(quantiles: FloatArray) -> Spreads:
    """Return the order statistics that follow from `LEVELS` × variables."""
    least, low, _, _, _, high, greatest = quantiles
    centre, scale = centre_and_scale(quantiles)
    same = low == high
    low, high = np.where(same, least, low), np.where(same, greatest, high)
    unit = np.where(scale > 0.0, np.ldexp(1.0, np.frexp(scale)[1] - DIGITS), 0.0)
    low, least = (_multiples(np.floor, values, unit) for values in (low, least))
    high, greatest = (_multiples(np.ceil, values, unit) for values in (high, greatest))
    return Spreads(
        _multiples(np.rint, centre, unit), _multiples(np.rint, scale, unit), low, high, least, greatest
    )


def _multiples(rounding: np.ufunc, values: FloatArray, unit: FloatArray) -> FloatArray:
    """Round to multiples of a unit, which are exact; those that have no smaller digits stay as they are."""
    step = np.maximum(unit, np.spacing(np.abs(values)))
    return np.asarray(rounding(values / step) * step)


def odd_values(column: FloatArray) -> BoolArray:
    """Tell which values of a column, if any, are too far from all others to be anything but mistakes."""
    is_odd = np.zeros(len(column), dtype=np.bool_)
    present = column[np.isfinite(column)]
    if not len(present):
        return is_odd
    spreads = spreads_of(present[None])
    distances = np.abs(np.where(np.isfinite(column), column, spreads.centre[0]) / 2 - spreads.centre[0] / 2)
    is_odd = distances > ODD / 2 * spreads.scale[0]  # halves, as the greatest numbers have no difference
    few = max(FEW, FEW_SHARE * len(present))
    return is_odd if np.count_nonzero(is_odd) <= few else np.zeros_like(is_odd)


def without_far_values(columns: FloatArray, spreads: Spreads) -> FloatArray:
    """Replace values far out by the medians, for parameters that one of them would decide."""
    low, high = (bound[:, None] for bound in spreads.bounds(FAR_OUT))
    is_near = (columns >= low) & (columns <= high)
    return columns if is_near.all() else np.where(is_near, columns, spreads.centre[:, None])
