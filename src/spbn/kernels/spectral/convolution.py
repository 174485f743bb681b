"""Sums of Gaussians over ranges of rows, by way of a grid: prepared once, asked for many ranges and widths.

Every row is spread once into the grid of all training rows. The grid of some of
them is that of all, minus the others: in cross-validation, minus one fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.threads import Threads
from spbn.kernels.batching import Spans
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.boxes import Grid
from spbn.kernels.spectral.gridding import Binned, ComplexArray

ROWS_A_SEGMENT = 1 << 18  # at most, so that no loop keeps an interrupt waiting for long


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows first to end, which every span uses as a whole or not at all."""

    first: int
    end: int
    binned: Binned

    def lies_in(self, ranges: IntArray) -> bool:
        """Tell whether one of the ranges (first, end, first, end, ...) holds the segment."""
        return bool(np.any((ranges[::2] <= self.first) & (self.end <= ranges[1::2])))


@dataclass(frozen=True, eq=False)
class Field:
    """Rows on a grid."""

    grid: Grid
    segments: list[Segment]
    #: Those that any span trains on, and their windows added up.
    training: list[Segment]
    total: FloatArray
    threads: Threads

    @classmethod
    def of(cls, coordinates: FloatArray, spans: Spans, grid: Grid, threads: Threads) -> Field:
        """Put rows on a grid that some spans train on or query."""
        pieces = [
            (start, min(start + ROWS_A_SEGMENT, end))
            for first, end in pairwise(np.unique(spans.array).tolist())
            for start in range(first, end, ROWS_A_SEGMENT)
        ]
        segments = [
            Segment(first, end, _binned(coordinates[:, first:end], first, grid)) for first, end in pieces
        ]
        training = [segment for segment in segments if segment.lies_in(spans.training.ravel())]
        total = np.zeros(grid.shape)
        for segment in training:
            gridding.spread(segment.binned, gridding.coefficients(), total, threads)
        return cls(grid, segments, training, total, threads)

    def spectrum(self, ranges: IntArray) -> ComplexArray:
        """Return the transform of the grid of the training rows in these ranges."""
        from scipy.fft import rfftn  # takes a while to import, and small data does without

        grid = self.total.copy()
        for segment in self.training:
            if not segment.lies_in(ranges):
                gridding.spread(segment.binned, gridding.coefficients(), grid, self.threads, weight=-1.0)
        spectrum: ComplexArray = rfftn(grid, workers=self.threads.count, overwrite_x=True)
        return spectrum

    def sums(self, queries: IntArray, spectrum: ComplexArray, covariance: FloatArray) -> FloatArray:
        """Return the sums of Gaussians of height 1 at the rows of a range; zero if a row is off the grid."""
        from scipy.fft import irfftn

        matrix = np.zeros((3, 3))
        matrix[np.ix_(self.grid.axes, self.grid.axes)] = covariance
        product = gridding.filtered(spectrum, self.grid.frequencies, self.grid.gains, matrix, self.threads)
        field = irfftn(product, self.grid.shape, workers=self.threads.count, overwrite_x=True)
        first, end = queries
        out = np.zeros(end - first)
        for segment in self.segments:
            if segment.lies_in(queries):
                values = gridding.interpolate(segment.binned, gridding.coefficients(), field, self.threads)
                out[segment.binned.rows - first] = values
        out *= math.sqrt(np.linalg.det(covariance))  # of the Gaussian's transform
        return out


def _binned(coordinates: FloatArray, first: int, grid: Grid) -> Binned:
    """Bin those rows that lie on the grid."""
    near = np.flatnonzero(grid.covers(coordinates, rim=True))
    return gridding.bin_rows(first + near, grid.positions(coordinates[:, near]), grid.shape)
