"""Counts, means and scatter of rows, fold by fold: one pass over the data.

Every linear Gaussian score, BIC, BGe, partial correlation and bandwidth matrix
is a function of these alone, and costs the same for a thousand rows as for a
million.

The moments of "all folds but one" are pooled from the others. Subtracting the
fold from the total would be shorter, but loses every digit when that fold
holds an outlier that outweighs the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spbn.numerics.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, means and scatter of some rows; add two of them to pool their rows."""

    count: int
    mean: FloatArray
    #: Sum over the rows of (x - mean)(x - mean)ᵀ.
    scatter: FloatArray

    @classmethod
    def of(cls, columns: FloatArray) -> Moments:
        """Compute the moments of variables × rows."""
        count = columns.shape[1]
        if count == 0:
            return cls(0, np.zeros(len(columns)), np.zeros((len(columns), len(columns))))
        mean = columns.mean(axis=1)
        centred = columns - mean[:, None]
        # The mean is rounded: take out what it missed, so that a large offset costs no digits. And equal
        # numbers then have no spread at all: what was missed is a few units in the last place, the same for
        # each of them, and the mean of that is exact.
        missed = centred.mean(axis=1)
        centred -= missed[:, None]
        mean += missed
        return cls(count, mean, centred @ centred.T)

    @cached_property
    def covariance(self) -> FloatArray:
        """The unbiased covariance matrix."""
        return self.scatter / (self.count - 1)

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        if count == 0:
            return self
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.count / count)
        between = np.outer(shift, shift) * (self.count * other.count / count)
        return Moments(count, mean, self.scatter + other.scatter + between)


def leave_one_out(folds: Sequence[Moments]) -> list[Moments]:
    """Return, for every fold, the moments of all other folds together."""
    before = [folds[0]]  # before[m]: folds 0 to m
    for fold in folds[1:]:
        before.append(before[-1] + fold)
    behind = [folds[-1]]  # reversed at the end, behind[m]: folds m to the last
    for fold in folds[-2::-1]:
        behind.append(behind[-1] + fold)
    behind.reverse()
    last = len(folds) - 1
    return [
        behind[1] if m == 0 else before[last - 1] if m == last else before[m - 1] + behind[m + 1]
        for m in range(len(folds))
    ]


def centre_of(columns: FloatArray) -> FloatArray:
    """Return what to subtract from columns (variables × rows) so that large offsets cost no digits.

    The medians, because an outlier can carry a mean far away from all other rows.
    """
    return np.median(columns, axis=1)[:, None]
