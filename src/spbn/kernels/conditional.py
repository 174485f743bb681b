"""Gaussian kernels on rows, and what they say of the last variable given those before it.

Density, distribution function and draws of the child given its parents are weighted sums over kernels.
`WhitenedKernels` keep their rows; `compressed` has tables instead. Queries are variables × rows, parents
first and the child last.

In coordinates whitened together, the kernel centred at training row j gives the child a standard normal
distribution around the child's coordinate of j, and its weight is exp(-|p - p_j|²/2) with p the parents'
coordinates. Weights are taken relative to that of the nearest row, and the difference of two squared
distances is never computed from the squares, so results are accurate however far the parents are from the
training rows.

Where rows are scored one by one, the sums are the least of the work: most of it would be calls and small
arrays. So for a few queries whitening, the sums of all variables, those of the parents and their quotient are
one compiled call. The loop over pairs is that of `inner_loop`, so the sums are those of `exact` and
`multiscale`.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn import kernels
from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, IntArray, frozen
from spbn._base.jit import compiled, run_tasks, thread_count
from spbn.kernels.estimates import Spans
from spbn.kernels.exact import FEWEST_PAIRS, UNDERFLOW, log_density_of_whitened
from spbn.kernels.inner_loop import BLOCK, TILE, TO_BASE_2, add_block, adder, workspace
from spbn.kernels.multiscale import SCALES, SPARSE, WIDE_TO_BASE_2
from spbn.kernels.spectral import DIMENSIONS
from spbn.numerics.gaussian import log_mass as log_mass_of
from spbn.numerics.gaussian import quick_mass
from spbn.numerics.moments import centre_of

#: Below this log-density of the parents, the difference of two log-densities loses
#: digits that matter, and `conditional_log_density` has to be used.
FAR = -1e6
PAIRS_A_CALL = 4e6  # some 0.1 s: how long an interrupt may have to wait
LEAST_PAIRS = 1e4  # some 0.2 ms: waking up a thread for less does not pay
PAIRS_TOGETHER = 1e7  # beyond which other engines make up for two passes over the kernels
#: Kernels are left out if their squared distance exceeds that of the nearest by so much that their weight is
#: below 1e-18; and, of the probability of an interval, those that lie so many standard deviations outside,
#: unless that probability is small itself.
TOO_FAR, OUTSIDE, LEAST_SHARE = 83.0, 8.5, 1e-8
CALLS_A_THREAD = 4  # so that the others do not wait long for one that is held up


def quotient(
    joint: FloatArray, parents: FloatArray, directly: Callable[[BoolArray], FloatArray]
) -> FloatArray:
    """Return the log-density of the child given its parents, from those of both and of the parents.

    Where the parents lie absurdly far from all training rows, the difference of the two has no digits left:
    those rows are computed by `directly`, which is told which ones they are.
    """
    far = parents < FAR
    conditional: FloatArray = np.where(far, 0.0, joint) - np.where(far, 0.0, parents)
    if far.any():
        conditional[far] = directly(far)
    return conditional


def conditional_log_density(train: FloatArray, queries: FloatArray) -> FloatArray:
    """Return the log-density of the child's whitened coordinate given the parents', for every query."""
    out = np.empty(queries.shape[1])
    in_parts(_log_density, train, queries, out)
    return out


def choose_rows_between(
    train: FloatArray, queries: FloatArray, highs: FloatArray, uniforms: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Draw a training row for every query, with the weight that its kernel has in an interval of the child.

    Returns the rows, and the log-probability of the interval. Queries are the parents' coordinates and, last,
    the child's at the lower end; `highs` are those at the upper end.
    """
    rows, log_mass = np.empty(queries.shape[1], dtype=np.int64), np.empty(queries.shape[1])
    in_parts(_choose_between, train, queries, frozen(highs), frozen(uniforms), rows, log_mass)
    return rows, log_mass


def in_parts(function: Callable[..., None], train: FloatArray, queries: FloatArray, *others: Any) -> None:
    """Call a compiled loop for some queries at a time, so that threads share it and it can be interrupted."""
    arrays = (frozen(train), frozen(queries), *others)
    rows, asked = train.shape[1], queries.shape[1]
    share = min(PAIRS_A_CALL / max(1, rows), asked / (CALLS_A_THREAD * thread_count()))
    step = math.ceil(max(LEAST_PAIRS / max(1, rows), share, 1.0))
    run_tasks(function, [(first, min(first + step, asked), *arrays) for first in range(0, asked, step)])


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
        few = self._few_log_densities(queries)
        if few is not None:
            return few[0]
        whitened = self.whitened(queries)
        joint = self._log_density(whitened)
        if len(queries) == 1:
            return joint
        return self._quotient(whitened, joint, self._log_density(whitened[:-1]))

    def conditional_log_density_by_scale(self, queries: FloatArray) -> FloatArray:
        """Return the log-density of the last variable given those before it: scales × queries."""
        few = self._few_log_densities(queries, by_scale=True)
        if few is not None:
            return few
        whitened = self.whitened(queries)
        joint = self._sums(kernels.log_density_by_scale, whitened)
        if len(queries) == 1:
            return joint
        parents = self._sums(kernels.log_density_by_scale, whitened[:-1])
        by_scale = zip(joint, parents, np.sqrt(SCALES).tolist(), strict=True)
        return np.stack([self._quotient(whitened, *one) for one in by_scale])

    def conditional_cdf(self, queries: FloatArray) -> FloatArray:
        """Return P(last variable ≤ x | those before it)."""
        out = np.empty(queries.shape[1])
        in_parts(_cdf, self.coordinates, self.whitened(queries), out)
        return out

    def conditional_density_and_cdf(self, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log-density of the last variable given those before it, and P(it ≤ x | those).

        Up to some thousand kernels both come from one pass over them. Kernels without any say are left out,
        which is most of them where there are parents: so this is the quickest way for single queries.
        """
        asked, pairs = queries.shape[1], self.coordinates.shape[1] * queries.shape[1]
        if pairs > PAIRS_TOGETHER:
            return self.conditional_log_density(queries), self.conditional_cdf(queries)
        whitened, density, below = self.whitened(queries), np.empty(asked), np.empty(asked)
        if pairs < LEAST_PAIRS:
            _density_and_cdf(0, asked, frozen(self.coordinates), frozen(whitened), density, below)
        else:
            in_parts(_density_and_cdf, self.coordinates, whitened, density, below)
        return density + math.log(self.whitener[-1, -1]), below

    def choose_rows(self, parents: FloatArray, uniforms: FloatArray) -> IntArray:
        """Draw a training row for every column of parents, weighted by its kernel there."""
        queries = np.vstack([self.whitened(parents), np.zeros(parents.shape[1])])
        out = np.empty(queries.shape[1], dtype=np.int64)
        in_parts(_choose, self.coordinates, queries, frozen(uniforms), out)
        return out

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

    def _few_log_densities(self, queries: FloatArray, *, by_scale: bool = False) -> FloatArray | None:
        """Return conditional log-densities, scales × queries, if the queries are few and none is far out."""
        (d, rows), asked = self.coordinates.shape, queries.shape[1]
        few = asked <= TILE and asked * rows < FEWEST_PAIRS
        if not few or (self.engine == "spectral" and d <= DIMENSIONS):
            return None
        # What to add to the logarithm of a quotient of sums, or of a sum if there are no parents.
        offset = math.log(self.whitener[-1, -1]) - 0.5 * LOG_2PI - (math.log(rows) if d == 1 else 0.0)
        if by_scale:
            unit, offsets = WIDE_TO_BASE_2, offset - 0.5 * np.log(SCALES)
            least, checked = SPARSE * rows, SCALES.index(1.0)
        else:
            unit, offsets = TO_BASE_2, np.array([offset])
            least, checked = UNDERFLOW, 0
        out = np.empty((len(offsets), asked))
        below = max(1, d - 1)
        work = (workspace(d, sums=len(out)), workspace(below, sums=len(out)))
        rest = (frozen(queries), self._frame, self._frozen_rows, unit, least, checked, offsets, *work, out)
        return out if _quotients(adder(d, len(out)), adder(below, len(out)), *rest) else None

    def _quotient(
        self, whitened: FloatArray, joint: FloatArray, parents: FloatArray, width: float = 1.0
    ) -> FloatArray:
        """Return the conditional log-density of kernels whose width is multiplied by some factor."""

        def directly(far: BoolArray) -> FloatArray:
            asked = np.ascontiguousarray(whitened[:, far] / width)
            rows = conditional_log_density(self.coordinates / width, asked)
            return rows + math.log(self.whitener[-1, -1] / width)

        return quotient(joint, parents, directly)

    def _log_density(self, whitened: FloatArray) -> FloatArray:
        d = len(whitened)
        if kernels.is_exact(d, whitened.shape[1], self.coordinates.shape[1], self.engine):
            return log_density_of_whitened(self.coordinates[:d], whitened) + self._log_volumes[d - 1]
        return self._sums(kernels.log_density, whitened)

    def _sums(self, log_density: Callable[..., FloatArray], whitened: FloatArray) -> FloatArray:
        """Return log-densities by the engine, for each scale or for one."""
        d, rows = len(whitened), self.coordinates.shape[1]
        points = np.concatenate([self.coordinates[:d], whitened], axis=1)
        spans = Spans(np.array([[rows, points.shape[1], 0, rows, 0, 0]]))
        found = log_density(points, np.arange(d)[None], np.eye(d)[None, None], spans, engine=self.engine)
        return found[0, ..., rows:] + self._log_volumes[d - 1]

    @cached_property
    def _frame(self) -> FloatArray:
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
        centre = centre_of(points)
        return cls(centre, whitener, np.ascontiguousarray(whitener @ (points - centre)), engine)


@compiled()
def _log_density(first: int, end: int, train: FloatArray, queries: FloatArray, out: FloatArray) -> None:
    child, excesses = len(train) - 1, np.empty(train.shape[1])
    for i in range(first, end):
        _put_excesses(train, queries, i, excesses)
        weights = 0.0
        least = np.inf
        for j in range(train.shape[1]):
            weights += math.exp(-0.5 * excesses[j])
            least = min(least, excesses[j] + (queries[child, i] - train[child, j]) ** 2)
        if least == np.inf:
            out[i] = -np.inf
            continue
        total = 0.0
        for j in range(train.shape[1]):
            square = excesses[j] + (queries[child, i] - train[child, j]) ** 2
            total += math.exp(0.5 * (least - square))
        out[i] = math.log(total / weights) - 0.5 * (least + LOG_2PI)


@compiled()
def _cdf(first: int, end: int, train: FloatArray, queries: FloatArray, out: FloatArray) -> None:
    child, excesses = len(train) - 1, np.empty(train.shape[1])
    for i in range(first, end):
        _put_excesses(train, queries, i, excesses)
        total = 0.0
        below = 0.0
        for j in range(train.shape[1]):
            weight = math.exp(-0.5 * excesses[j])
            total += weight
            below += weight * 0.5 * math.erfc((train[child, j] - queries[child, i]) * math.sqrt(0.5))
        out[i] = below / total


@compiled()
def _density_and_cdf(
    first: int, end: int, train: FloatArray, queries: FloatArray, density: FloatArray, below: FloatArray
) -> None:
    child, n = len(train) - 1, train.shape[1]
    excesses = np.empty(n)
    for i in range(first, end):
        _put_excesses(train, queries, i, excesses)
        least = np.inf
        for j in range(n):
            least = min(least, excesses[j] + (queries[child, i] - train[child, j]) ** 2)
        total = 0.0
        weights = 0.0
        left = 0.0
        for j in range(n):
            z = queries[child, i] - train[child, j]
            square = excesses[j] + z * z
            if square - least < TOO_FAR:
                total += math.exp(0.5 * (least - square))
            if excesses[j] < TOO_FAR:
                weight = math.exp(-0.5 * excesses[j])
                weights += weight
                if z > OUTSIDE:
                    left += weight
                elif z > -OUTSIDE:
                    left += weight * 0.5 * math.erfc(-z * math.sqrt(0.5))
        below[i] = left / weights
        if least == np.inf:
            density[i] = -np.inf
        else:
            density[i] = math.log(total / weights) - 0.5 * (least + LOG_2PI)


@compiled()
def _choose(
    first: int, end: int, train: FloatArray, queries: FloatArray, uniforms: FloatArray, out: IntArray
) -> None:
    n = train.shape[1]
    weights = np.empty(n)
    for i in range(first, end):
        nearest = _put_excesses(train, queries, i, weights)
        total = 0.0
        for j in range(n):
            weights[j] = math.exp(-0.5 * weights[j]) if weights[j] < TOO_FAR else 0.0
            total += weights[j]
        out[i] = _pick(weights, uniforms[i] * total, nearest)


@compiled()
def _choose_between(
    first: int,
    end: int,
    train: FloatArray,
    queries: FloatArray,
    highs: FloatArray,
    uniforms: FloatArray,
    rows: IntArray,
    log_mass: FloatArray,
) -> None:
    child, n = len(train) - 1, train.shape[1]
    shares, excesses = np.empty(n), np.empty(n)
    for i in range(first, end):
        nearest = _put_excesses(train, queries, i, excesses)
        weights = 0.0
        total = 0.0
        for j in range(n):
            shares[j] = 0.0
            if excesses[j] >= TOO_FAR:
                continue
            weight = math.exp(-0.5 * excesses[j])
            low, high = queries[child, i] - train[child, j], highs[i] - train[child, j]
            weights += weight
            if low < OUTSIDE and high > -OUTSIDE:
                shares[j] = weight * quick_mass(low, high)
                total += shares[j]
        greatest = 0.0
        if total < LEAST_SHARE * weights:  # far out, where what was left out counts
            for j in range(n):  # at most this
                low, high = queries[child, i] - train[child, j], highs[i] - train[child, j]
                gap = max(low, -high, 0.0)
                shares[j] = -0.5 * (excesses[j] + gap * gap)
            best = int(shares.argmax())
            low, high = queries[child, i] - train[child, best], highs[i] - train[child, best]
            greatest = log_mass_of(low, high) - 0.5 * excesses[best]
            for j in range(n):
                if shares[j] < greatest - 0.5 * TOO_FAR:
                    shares[j] = -np.inf
                    continue
                low, high = queries[child, i] - train[child, j], highs[i] - train[child, j]
                shares[j] = log_mass_of(low, high) - 0.5 * excesses[j]
                greatest = max(greatest, shares[j])
            total = 0.0
            for j in range(n):
                shares[j] = math.exp(shares[j] - greatest) if greatest > -np.inf else 0.0
                total += shares[j]
        if total == 0.0:
            rows[i], log_mass[i] = nearest, -np.inf
            continue
        rows[i] = _pick(shares, uniforms[i] * total, nearest)
        log_mass[i] = greatest + math.log(total / weights)


@compiled()
def _pick(weights: FloatArray, target: float, nearest: int) -> int:
    """Return the row at which the sum of weights exceeds a target; the nearest if none has any weight."""
    reached = 0.0
    chosen = nearest
    for j in range(len(weights)):
        reached += weights[j]
        if weights[j] > 0.0:
            chosen = j
        if reached > target:
            break
    return chosen


@compiled()
def _put_excesses(train: FloatArray, queries: FloatArray, i: int, out: FloatArray) -> int:
    """Put by how much the parents' squared distances exceed that from the nearest row; return that row."""
    _put_differences(train, queries, i, 0, out)
    nearest = int(out.argmin())
    _put_differences(train, queries, i, nearest, out)
    return nearest


@compiled()
def _put_differences(train: FloatArray, queries: FloatArray, i: int, base: int, out: FloatArray) -> None:
    """Put the squared distances of the parents from all rows, minus that from row `base`."""
    out[:] = 0.0
    for k in range(len(train) - 1):
        b, x = train[k, base], queries[k, i]
        for j in range(train.shape[1]):
            a = train[k, j]
            out[j] += (b - a) * ((x - a) + (x - b))


@compiled()
def _quotients(
    adder: int,
    below_adder: int,
    queries: FloatArray,
    frame: FloatArray,
    train: FloatArray,
    unit: float,
    least: float,
    checked: int,
    offsets: FloatArray,
    work: FloatArray,
    below: FloatArray,
    out: FloatArray,
) -> bool:
    """Put the logarithms of quotients, scales × queries; or stop and say so if a sum is too small.

    `unit`: what coordinates are multiplied by.
    `least`, `checked`: what a sum must exceed, and at which of the scales.
    `work`, `below`: workspaces of all variables and of the parents, with zeros.
    """
    d, asked = queries.shape
    for i in range(asked):
        for k in range(d):
            z = 0.0
            for m in range(k + 1):
                z += frame[k, 1 + m] * (queries[m, i] - frame[m, 0])
            work[k, i] = z * unit
            if k < d - 1:
                below[k, i] = z * unit
    for first in range(0, train.shape[1], BLOCK):
        width = min(BLOCK, train.shape[1] - first)
        for k in range(d):
            for j in range(width):
                work[d + k, j] = train[k, first + j] * unit
            if k < d - 1:
                for j in range(width):
                    below[d - 1 + k, j] = work[d + k, j]
        add_block(adder, work, d, width, asked)  # type: ignore[call-arg]
        if d > 1:
            add_block(below_adder, below, d - 1, width, asked)
    for i in range(asked):
        if not work[2 * d + checked, i] > least or (d > 1 and not below[2 * d - 2 + checked, i] > least):
            return False
        for s in range(len(out)):
            log_sum = math.log(work[2 * d + s, i])
            if d > 1:
                log_sum -= math.log(below[2 * d - 2 + s, i])
            out[s, i] = log_sum + offsets[s]
    return True
