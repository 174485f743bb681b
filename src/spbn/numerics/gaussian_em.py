"""A normal distribution of columns with holes: estimated by EM, and asked for what is missing.

Given what is there of a row, its holes are normal too. EM replaces them by their means, adds their covariance
to that of the rows, and estimates anew, until the likelihood settles. No row has to be complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray

MOST_ROUNDS = 200
SETTLED = 1e-3  # nats that a round changes the log-volume of the distribution by, per column
#: Rows of uncorrelated columns that are added, so that no direction is without variance.
ADDED_ROWS = 0.1


@dataclass(frozen=True)
class Normal:
    """A normal distribution of some columns."""

    mean: FloatArray
    covariance: FloatArray

    def draw(self, columns: FloatArray, draws: int, rng: np.random.Generator) -> list[FloatArray]:
        """Fill the holes of columns × rows with draws given the rest of a row, several times."""
        out = [columns.copy() for _ in range(draws)]
        for hole, rows in _patterns(np.isnan(columns)):
            means, rest = self._given(columns[:, rows], hole)
            values, vectors = np.linalg.eigh(rest)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            for filled in out:
                filled[np.ix_(hole, rows)] = means + root @ rng.standard_normal(means.shape)
        return out

    def _given(self, columns: FloatArray, hole: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the means of the missing columns of rows with one pattern of holes, and their covariance."""
        there = ~hole
        within = self.covariance[np.ix_(hole, hole)]
        if not there.any():
            return np.tile(self.mean[:, None], columns.shape[1]), within
        across = self.covariance[np.ix_(there, hole)]
        slopes = np.linalg.solve(self.covariance[np.ix_(there, there)], across).T
        means = self.mean[hole, None] + slopes @ (columns[there] - self.mean[there, None])
        return means, within - slopes @ across

    def _improved(self, columns: FloatArray, patterns: list[tuple[BoolArray, IntArray]]) -> Normal:
        """Return what one round of EM makes of it; the columns are in standard deviations."""
        filled, spread = columns.copy(), np.zeros_like(self.covariance)
        for hole, rows in patterns:
            means, rest = self._given(columns[:, rows], hole)
            filled[np.ix_(hole, rows)] = means
            spread[np.ix_(hole, hole)] += len(rows) * rest
        mean = filled.mean(axis=1)
        deviations = filled - mean[:, None]
        scatter = deviations @ deviations.T + spread + ADDED_ROWS * np.eye(len(columns))
        return Normal(mean, scatter / (columns.shape[1] + ADDED_ROWS))


def normal_of(columns: FloatArray) -> Normal:
    """Estimate the normal distribution of columns × rows in which NaN is missing.

    Every column must have different values.
    """
    centre, scale = np.nanmean(columns, axis=1), np.nanstd(columns, axis=1)
    z = (columns - centre[:, None]) / scale[:, None]
    patterns = list(_patterns(np.isnan(z)))
    found, volume = Normal(np.zeros(len(z)), np.eye(len(z))), 0.0
    for _ in range(MOST_ROUNDS):
        found = found._improved(z, patterns)
        before, volume = volume, float(np.linalg.slogdet(found.covariance)[1])
        if abs(volume - before) < SETTLED * len(z):
            break
    return Normal(centre + scale * found.mean, found.covariance * np.outer(scale, scale))


def _patterns(holes: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield every pattern of holes of columns × rows, and the rows that have it; none for whole rows."""
    patterns, which = np.unique(holes, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if pattern.any():
            yield pattern, np.flatnonzero(which.ravel() == number)
