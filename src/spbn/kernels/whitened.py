"""Sums of Gaussians with one bandwidth matrix, and what they say of the last variable given those before it.

`Kernels` is what a density asks of them, whether they keep their rows (`WhitenedKernels`, of which a kernel
density estimate is one) or tables instead (`compressed`). Queries are variables × rows in the coordinates of
the data, parents first and the child last.
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np

from spbn import kernels
from spbn._base.arrays import BoolArray, FloatArray, IntArray, frozen
from spbn._base.files import ArrayWriter
from spbn.kernels import single_query
from spbn.kernels.conditional import (
    choose_rows,
    choose_rows_between,
    conditional_cdf,
    conditional_density_and_cdf,
    conditional_log_density,
    quotient,
)
from spbn.kernels.estimates import Spans
from spbn.kernels.exact import log_density_of_whitened
from spbn.kernels.multiscale import SCALES
from spbn.numerics.moments import centre_of

PAIRS_TOGETHER = 1e7  # beyond which other engines make up for two passes over the kernels


class Kernels(Protocol):
    """The kernels of a conditional density, with their rows or without."""

    @property
    def rows(self) -> int:
        """Number of kernels."""

    @property
    def bandwidth(self) -> FloatArray:
        """The covariance matrix of a kernel."""

    def conditional_log_density(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of the last variable given those before it."""

    def conditional_cdf(self, queries: FloatArray) -> FloatArray:
        """Return P(last variable ≤ x | those before it)."""

    def conditional_density_and_cdf(self, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both."""

    def log_mass(self, parents: FloatArray, low: float, high: float) -> FloatArray:
        """Return the log-probability of an interval of the last variable, for every column of parents."""

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value of the last variable for every column of parents."""

    def draw_between(
        self, parents: FloatArray, low: float, high: float, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value of the last variable in an interval, for every column of parents."""

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        """Describe the kernels as plain data."""


class ScaledKernels(Protocol):
    """Kernels at several scales: with `SCALES` times one bandwidth matrix."""

    def conditional_log_density_by_scale(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of the last variable given those before it: scales × queries."""

    def at_scale(self, k: int) -> Kernels:
        """Return the kernels of one of the scales."""


class WhitenedKernels(ABC):
    """Kernels on rows, in coordinates in which each is a standard normal.

    The whitener is lower triangular, so the first few whitened coordinates belong to the first few
    variables: to the parents, where the child comes last.
    """

    #: What is subtracted, so that large offsets cost no digits.
    centre: FloatArray
    #: The inverse Cholesky factor of the bandwidth matrix.
    whitener: FloatArray
    #: The training rows, centred and whitened: variables × rows.
    coordinates: FloatArray
    #: How sums are computed (see `spbn.kernels`).
    engine: str

    def whitened(self, queries: FloatArray) -> FloatArray:
        """Put queries of the first few variables, or of all, into the coordinates of the rows."""
        d = len(queries)
        return np.ascontiguousarray(self.whitener[:d, :d] @ (queries - self.centre[:d]))

    def log_density(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of rows of the first few variables, or of all."""
        return self._log_density(self.whitened(queries))

    def conditional_log_density(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of the last variable given those before it."""
        if single_query.is_few(self.coordinates.shape, queries.shape[1], self.engine):
            found = single_query.conditional_log_density(self._frame, self._frozen_rows, queries)
            if found is not None:
                return found
        whitened = self.whitened(queries)
        joint = self._log_density(whitened)
        if len(queries) == 1:
            return joint

        def directly(far: BoolArray) -> FloatArray:
            rows = conditional_log_density(self.coordinates, np.ascontiguousarray(whitened[:, far]))
            return rows + math.log(self.whitener[-1, -1])

        return quotient(joint, self._log_density(whitened[:-1]), directly)

    def conditional_log_density_by_scale(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of the last variable given those before it: scales × queries."""
        if single_query.is_few(self.coordinates.shape, queries.shape[1], self.engine):
            found = single_query.conditional_log_density_by_scale(self._frame, self._frozen_rows, queries)
            if found is not None:
                return found
        whitened = self.whitened(queries)
        joint = self._log_density_by_scale(whitened)
        if len(queries) == 1:
            return joint
        parents = self._log_density_by_scale(whitened[:-1])
        out = np.empty_like(joint)
        for k, scale in enumerate(SCALES):
            width = math.sqrt(scale)

            def directly(far: BoolArray, width: float = width) -> FloatArray:
                asked = np.ascontiguousarray(whitened[:, far] / width)
                rows = conditional_log_density(self.coordinates / width, asked)
                return rows + math.log(self.whitener[-1, -1] / width)

            out[k] = quotient(joint[k], parents[k], directly)
        return out

    def _log_density_by_scale(self, whitened: FloatArray) -> FloatArray:
        d, rows = len(whitened), self.coordinates.shape[1]
        points = np.concatenate([self.coordinates[:d], whitened], axis=1)
        span = Spans(np.array([[rows, points.shape[1], 0, rows, 0, 0]]))
        columns, whiteners = np.arange(d)[None], np.eye(d)[None, None]
        density = kernels.log_density_by_scale(points, columns, whiteners, span, engine=self.engine)
        return density[0, :, rows:] + self._log_volumes[d - 1]

    def conditional_cdf(self, queries: FloatArray) -> FloatArray:
        """Return P(last variable ≤ x | those before it)."""
        return conditional_cdf(self.coordinates, self.whitened(queries))

    def conditional_density_and_cdf(self, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log-density of the last variable given those before it, and P(it ≤ x | those)."""
        whitened = self.whitened(queries)
        if self.coordinates.shape[1] * queries.shape[1] > PAIRS_TOGETHER:
            return self.conditional_log_density(queries), conditional_cdf(self.coordinates, whitened)
        density, below = conditional_density_and_cdf(self.coordinates, whitened)
        return density + math.log(self.whitener[-1, -1]), below

    def choose_rows(self, parents: FloatArray, uniforms: FloatArray) -> IntArray:
        """Draw a training row for every column of parents, weighted by its kernel there."""
        queries = np.vstack([self.whitened(parents), np.zeros(parents.shape[1])])
        return choose_rows(self.coordinates, queries, uniforms)

    def choose_rows_between(
        self, parents: FloatArray, low: float, high: float, uniforms: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Draw a training row for every column of parents, weighted by its kernel in an interval.

        Also returns the log-probability of the interval.
        """
        lows, highs = self.whitened_ends(parents, low, high)
        return choose_rows_between(
            self.coordinates, np.vstack([self.whitened(parents), lows]), highs, uniforms
        )

    def whitened_ends(self, parents: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Put the ends of an interval of the last variable into the coordinates of the rows."""
        *slopes, precision = self.whitener[-1]
        shift = np.asarray(slopes) @ (parents - self.centre[:-1])
        # Not by `whitened`: an infinite end times a zero of the whitener is not a number.
        return precision * (low - self.centre[-1]) + shift, precision * (high - self.centre[-1]) + shift

    def _log_density(self, whitened: FloatArray) -> FloatArray:
        d, rows = len(whitened), self.coordinates.shape[1]
        log_volume = self._log_volumes[d - 1]
        if kernels.is_exact(d, whitened.shape[1], rows, self.engine):
            return log_density_of_whitened(self.coordinates[:d], whitened) + log_volume
        points = np.concatenate([self.coordinates[:d], whitened], axis=1)
        spans = Spans(np.array([[rows, points.shape[1], 0, rows, 0, 0]]))
        density = kernels.log_density(
            points, np.arange(d)[None], np.eye(d)[None, None], spans, engine=self.engine
        )
        return density[0, rows:] + log_volume

    @cached_property
    def _frame(self) -> FloatArray:
        """Centre and whitener side by side."""
        return frozen(np.hstack([self.centre, self.whitener]))

    @cached_property
    def _frozen_rows(self) -> FloatArray:
        return frozen(self.coordinates)

    @cached_property
    def _log_volumes(self) -> list[float]:
        """Log-determinants of the leading blocks of the whitener."""
        return np.log(np.diagonal(self.whitener)).cumsum().tolist()


@final
@dataclass(frozen=True, eq=False)
class PreparedKernels(WhitenedKernels):
    """Kernels on rows that have been whitened before."""

    centre: FloatArray
    whitener: FloatArray
    coordinates: FloatArray
    engine: str = "auto"

    @classmethod
    def of(cls, points: FloatArray, whitener: FloatArray, engine: str) -> PreparedKernels:
        """Centre and whiten variables × rows."""
        centre = centre_of(points)
        return cls(centre, whitener, np.ascontiguousarray(whitener @ (points - centre)), engine)
