"""Densities to evaluate, grouped by similarity: what the engines for large data share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.kernels import exact

ALIKE = 2.0  # ratio of the widest to the narrowest bandwidth of a group
QUERIES_A_TASK = 32  # rows that a thread takes at a time


@dataclass(frozen=True, eq=False)
class Estimate:
    """A density to evaluate."""

    #: Number of the set and of the span.
    number: int
    span: int
    #: Inverse Cholesky factor of the bandwidth matrix.
    whitener: FloatArray

    @property
    def log_peak(self) -> float:
        """Log-density at the peak if all training rows lie at one place."""
        diagonal = np.diag(self.whitener)
        return float(np.log(diagonal).sum() - 0.5 * len(diagonal) * math.log(2.0 * math.pi))


@dataclass(frozen=True, eq=False)
class Group:
    """Estimates with similar bandwidths, and coordinates in which the narrowest has width 1."""

    estimates: list[Estimate]
    whitener: FloatArray
    #: The bandwidth matrix of every estimate in these coordinates.
    covariances: list[FloatArray]
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


def whitened(rows: FloatArray, whitener: FloatArray) -> FloatArray:
    """Multiply rows by a lower triangular matrix, always in this order, unlike a matrix library."""
    out = whitener[:, :1] * rows[:1]
    for k in range(1, len(rows)):
        for m in range(1, k + 1):
            out[k] += whitener[k, m] * rows[m]
    return out


def training_rows(spans: IntArray) -> IntArray:
    """Return the number of training rows of every span."""
    rows: IntArray = (spans[:, 3] - spans[:, 2]) + (spans[:, 5] - spans[:, 4])
    return rows


def exact_rows(
    rows: FloatArray, spans: IntArray, estimates: list[Estimate], wanted: list[IntArray]
) -> list[FloatArray]:
    """Return the exact log-densities of the rows with these numbers, for every estimate.

    Parameters
    ----------
    rows
        The variables of the estimates × rows.
    """
    first = rows.shape[1]
    points = np.concatenate([rows, *(rows[:, numbers] for numbers in wanted)], axis=1)
    tasks, whiteners = [], []
    for estimate, numbers in zip(estimates, wanted, strict=True):
        end = first + len(numbers)
        for start in range(first, end, QUERIES_A_TASK):
            tasks.append([start, min(start + QUERIES_A_TASK, end), *spans[estimate.span, 2:]])
            whiteners.append(estimate.whitener)
        first = end
    if not tasks:
        return [np.empty(0) for _ in wanted]
    columns = np.arange(len(rows))[None]
    values = exact.log_density(points, columns, np.array(whiteners)[None], np.array(tasks))[0]
    return np.split(values[rows.shape[1] :], np.cumsum([len(numbers) for numbers in wanted])[:-1])
