"""From data to the bandwidth matrix of a kernel density estimate.

A rule is a name or a function. The named rules multiply the unbiased sample
covariance Σ̂ by a factor that depends only on the number of rows N and the dimension d:

=============  ========================================
``scott``      N^(-2/(d+4))
``silverman``  (4/(d+2))^(2/(d+4)) · N^(-2/(d+4))
=============  ========================================

The rule ``cv`` multiplies Scott's matrix by the one of `multiscale.SCALES` that predicts rows best which the
kernels are not made of, for each family.

A function takes an array, rows × d, with the child in the first column and
its parents after it, and returns a d × d matrix. Scores pass it centred rows, with
the parents in the order of the data's columns. A matrix that is not positive
definite means that there is no bandwidth for these rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError
from spbn.numerics.moments import Moments

BandwidthRule = str | Callable[[FloatArray], FloatArray]
RULES = ("scott", "silverman", "cv")


def require_rule(rule: BandwidthRule) -> None:
    """Refuse anything that is not a bandwidth rule."""
    if not callable(rule) and not (isinstance(rule, str) and rule in RULES):
        known = ", ".join(map(repr, RULES))
        raise ArgumentError(f"bandwidth must be {known} or a function. Got {rule!r} instead.")


def factor(rule: str, rows: int, dimensions: int) -> float:
    """Return what a named rule multiplies the covariance matrix by."""
    scott = rows ** (-2.0 / (dimensions + 4))
    if rule in ("scott", "cv"):
        return scott
    return float((4.0 / (dimensions + 2)) ** (2.0 / (dimensions + 4)) * scott)


def matrix(rule: BandwidthRule, columns: FloatArray) -> FloatArray:
    """Return the bandwidth matrix of variables × rows; a function gets them in this order."""
    if not callable(rule):
        return factor(rule, columns.shape[1], len(columns)) * Moments.of(columns).covariance
    bandwidth = np.atleast_2d(np.asarray(rule(np.ascontiguousarray(columns.T)), dtype=np.float64))
    shape = (len(columns), len(columns))
    if bandwidth.shape != shape or not np.allclose(bandwidth, bandwidth.T, atol=0.0, equal_nan=True):
        raise ArgumentError(
            f"a bandwidth function must return a symmetric matrix of shape {shape}. Got {bandwidth!r}."
        )
    return bandwidth


def family_matrix(rule: BandwidthRule, columns: FloatArray) -> FloatArray:
    """Return the bandwidth matrix of parents and child, parents first, as everywhere but in functions."""
    if not callable(rule):
        return matrix(rule, columns)
    return np.roll(matrix(rule, np.roll(columns, 1, axis=0)), -1, axis=(0, 1))
