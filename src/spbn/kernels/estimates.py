"""Kernel density estimates: their bandwidths, the spans of rows they are made of, and groups of similar ones.

A bandwidth rule is a name or a function. The named rules multiply the unbiased sample
covariance Σ̂ by a factor that depends only on the number of rows N and the dimension d:

=============  ========================================
``scott``      N^(-2/(d+4))
``silverman``  (4/(d+2))^(2/(d+4)) · N^(-2/(d+4))
=============  ========================================

The rule ``cv`` multiplies Scott's matrix by the one of `multiscale.SCALES` that predicts rows best which the
kernels are not made of, for each family.

A function takes an array, rows × d, with the child in the first column and its parents after it, and returns
a d × d matrix. Scores pass it centred rows, with the parents in the order of the data's columns. A matrix
that is not positive definite means that there is no bandwidth for these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, IntArray
from spbn._base.checks import refuse
from spbn.errors import ArgumentError
from spbn.numerics.moments import Moments

BandwidthRule = str | Callable[[FloatArray], FloatArray]
RULES = ("scott", "silverman", "cv")
ALIKE = 2.0  # ratio of the widest to the narrowest bandwidth of a group


def require_rule(rule: BandwidthRule) -> None:
    """Refuse anything that is not a bandwidth rule."""
    if not callable(rule) and not (isinstance(rule, str) and rule in RULES):
        known = ", ".join(map(repr, RULES))
        refuse("bandwidth", f"{known} or a function", rule)


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


@final
class Spans:
    """Ranges of rows to query, each with the two ranges of rows that its estimate is made of.

    A fold is queried against the rows before and after it. Compiled code takes the array, spans × 6: (first,
    end) of the query rows, and (first, end) twice of the training rows.
    """

    def __init__(self, array: IntArray) -> None:
        self.array = array
        self.queries, self.training = array[:, :2], array[:, 2:]
        self.query_counts: IntArray = array[:, 1] - array[:, 0]
        self.training_counts: IntArray = (array[:, 3] - array[:, 2]) + (array[:, 5] - array[:, 4])

    def __len__(self) -> int:
        return len(self.array)

    def only(self, numbers: IntArray | BoolArray | list[int]) -> Spans:
        return Spans(self.array[numbers])

    @property
    def queried(self) -> list[int]:
        """The spans that have query rows."""
        return np.flatnonzero(self.query_counts > 0).tolist()


@dataclass(frozen=True, eq=False)
class Estimate:
    """A density to evaluate."""

    number: int  # of the set
    span: int
    whitener: FloatArray  # the inverse Cholesky factor of the bandwidth matrix

    @property
    def log_peak(self) -> float:
        """Log-density at the peak if all training rows lie at one place."""
        return log_peak(self.whitener)


@dataclass(frozen=True, eq=False)
class Group:
    """Estimates with similar bandwidths, and coordinates in which the narrowest has width 1."""

    estimates: list[Estimate]
    whitener: FloatArray
    covariances: list[FloatArray]  # the bandwidth matrices in these coordinates
    widest: float


def grouped(estimates: list[Estimate], alike: float = ALIKE) -> list[Group]:
    """Put estimates together whose bandwidths differ by less than the factor `alike` in every direction."""
    members: list[list[tuple[Estimate, FloatArray]]] = []
    ranges: list[tuple[float, float]] = []  # of the widths of a group, relative to its first member
    for estimate in estimates:
        for number, group in enumerate(members):
            relative = group[0][0].whitener @ np.linalg.inv(estimate.whitener)
            widths = np.linalg.svd(relative, compute_uv=False)
            narrow, wide = min(ranges[number][0], widths.min()), max(ranges[number][1], widths.max())
            if wide < alike * narrow:
                group.append((estimate, relative))
                ranges[number] = narrow, wide
                break
        else:
            members.append([(estimate, np.eye(len(estimate.whitener)))])
            ranges.append((1.0, 1.0))
    return [
        Group(
            [estimate for estimate, _ in group],
            group[0][0].whitener / narrow,
            [relative @ relative.T / narrow**2 for _, relative in group],
            wide / narrow,
        )
        for group, (narrow, wide) in zip(members, ranges, strict=True)
    ]


def log_peak(whitener: FloatArray) -> float:
    """Return the greatest log-density of a kernel, given the inverse Cholesky factor of its bandwidth."""
    diagonal = np.diag(whitener)
    return float(np.log(diagonal).sum() - 0.5 * len(diagonal) * LOG_2PI)


def whitened(rows: FloatArray, whitener: FloatArray) -> FloatArray:
    """Multiply rows by a lower triangular matrix, always in this order, unlike a matrix library."""
    out = whitener[:, :1] * rows[:1]
    for k in range(1, len(rows)):
        for m in range(1, k + 1):
            out[k] += whitener[k, m] * rows[m]
    return out
