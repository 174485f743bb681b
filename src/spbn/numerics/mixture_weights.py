"""Weights of a mixture of known densities: those under which given rows are most likely.

Given the densities p_ik of rows i under components k, the weights w maximise

    Σ_i log Σ_k w_k p_ik + Σ_k log(w_k) / K,    Σ_k w_k = 1.

The second term is a Dirichlet prior: one pseudo-row spread evenly over the K components, so that no
weight is zero. EM gets to the maximum, slowly where components are alike. The same maximum is that of

    Σ_i log Σ_k w_k p_ik + Σ_k log(w_k) / K - (N + 1) Σ_k w_k

without any constraint: multiply its derivatives by w_k and add them up to see that the weights then
sum to one. It is concave, so Newton's method with a line search finds it in about ten steps.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, frozen
from spbn._base.jit import REORDER, compiled

#: Newton's method stops when a step would gain less than this share of a row's log-density.
CONVERGED = 1e-24
MOST_STEPS = 200
#: A step of a search in parts that would gain less than this share of a row's log-density is the last, and
#: is not checked.
NEARLY_THERE = 1e-10
LEAST = -1.7976931348623157e308  # so that the difference of two infinite logarithms is not needed
BLOCK = 256  # rows at a time, which stay in the L1 cache


def mixing_weights(log_densities: FloatArray) -> tuple[FloatArray, float]:
    """Return the weights of components × rows, and the log-likelihood of all rows under the mixture.

    A component that is -inf or NaN in any row drops out: its weight is 0. If none is left, the log-likelihood
    is -inf.
    """
    usable = np.isfinite(log_densities).all(axis=1)
    weights = np.zeros(len(log_densities))
    if not usable.any():
        return weights, -math.inf
    kept = np.ascontiguousarray(log_densities[usable])
    peaks = kept.max(axis=0)
    found = np.empty(len(kept))
    total = _maximise(np.exp(kept - peaks), found)
    weights[usable] = found
    return weights, float(total + peaks.sum())


class MixtureSums(NamedTuple):
    """Sums over rows at some weights of a mixture: its log-likelihood, and what Newton's method needs."""

    total: float
    gradient: FloatArray
    curvature: FloatArray  # minus the second derivatives
    usable: BoolArray  # the components that are finite in all rows; if not all are, the sums mean nothing

    @classmethod
    def none(cls, components: int) -> MixtureSums:
        square = np.zeros((components, components))
        return cls(0.0, np.zeros(components), square, np.ones(components, dtype=np.bool_))

    @classmethod
    def of(cls, log_densities: FloatArray, weights: FloatArray) -> MixtureSums:
        """Return the sums over components × rows; all weights are positive."""
        components, rows = log_densities.shape
        usable: BoolArray = np.isfinite(log_densities).min(axis=1, initial=True)
        if not usable.all() or not rows:
            return cls.none(len(weights))._replace(usable=usable)
        peaks = log_densities.max(axis=0)
        densities = np.exp(log_densities - peaks)
        gradient, curvature = np.empty(components), np.empty((components, components))
        total = _log_likelihood(densities, weights) + float(peaks.sum())
        _derivatives(densities, weights, 0.0, gradient, curvature)
        symmetric = np.tril(curvature) + np.tril(curvature, -1).T
        return cls(total, gradient + (rows + 1.0), symmetric, usable)

    @classmethod
    def add(cls, parts: Sequence[MixtureSums]) -> MixtureSums:
        return cls(
            math.fsum(part.total for part in parts),
            np.sum([part.gradient for part in parts], axis=0),
            np.sum([part.curvature for part in parts], axis=0),
            np.logical_and.reduce([part.usable for part in parts], axis=0),
        )


class WeightSearch:
    """Newton's method for those who get the sums in parts: `trial` says where the next ones are needed.

    Attributes
    ----------
    trial
        The weights to try, and in the end the best.
    total
        The log-likelihood of all rows under the best weights, once `is_done`.
    """

    def __init__(self, components: int, rows: int) -> None:
        self._steps = _newton_steps(components, rows)
        self.trial = next(self._steps)
        self.total = math.nan
        self.is_done = False

    def update(self, found: MixtureSums) -> None:
        """Take note of the sums at the trial, and choose the next one."""
        try:
            self.trial = self._steps.send(found)
        except StopIteration as end:
            self.trial, self.total = end.value
            self.is_done = True


def _newton_steps(components: int, rows: int) -> Generator[FloatArray, MixtureSums, tuple[FloatArray, float]]:
    """Yield weights to try, from equal ones on, and take the sums there; return the best, and their total."""
    prior = 1.0 / components

    def objective(found: MixtureSums, weights: FloatArray) -> float:
        return float(found.total + prior * float(np.log(weights).sum()) - (rows + 1.0) * weights.sum())

    at = np.full(components, 1.0 / components)
    found = yield at
    value = objective(found, at)
    while True:
        gradient = found.gradient + prior / at - (rows + 1.0)
        bent = found.curvature + np.diag(prior / at**2)
        step = np.linalg.solve(bent, gradient).astype(np.float64)
        decrement = float(step @ gradient)
        if components == 1 or decrement < NEARLY_THERE * rows:
            break
        shrinking = step < 0.0
        room = -0.99 * at[shrinking] / step[shrinking]
        size = float(min(1.0, room.min(initial=1.0)))
        while True:
            trial = at + size * step
            found = yield trial
            candidate = objective(found, trial)
            if candidate >= value + 1e-4 * size * decrement or size <= 1e-10:
                break
            size *= 0.5
        at, value = trial, candidate
    # The last step, of which the sums are known well enough from those before it.
    last = np.maximum(at + step, 0.01 * at) - at
    total = found.total + found.gradient @ last - 0.5 * last @ found.curvature @ last
    weights = at + last
    return weights / weights.sum(), float(total - rows * math.log(weights.sum()))


def log_mixture(log_densities: FloatArray, weights: FloatArray) -> FloatArray:
    """Return log Σ_k w_k f_k for components × rows."""
    out = np.empty(log_densities.shape[1])
    mix_logs(np.ascontiguousarray(log_densities), frozen(weights), out)
    return out


@compiled()
def mix_logs(log_densities: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Put log Σ_k w_k f_k of components × rows."""
    components, rows = log_densities.shape
    logs = np.log(weights)
    for i in range(rows):
        peak = LEAST
        for k in range(components):
            if weights[k] > 0.0:
                peak = max(peak, log_densities[k, i] + logs[k])
        total = 0.0
        for k in range(components):
            if weights[k] > 0.0:
                total += math.exp(log_densities[k, i] + logs[k] - peak)
        out[i] = peak + math.log(total)


@compiled()
def _maximise(densities: FloatArray, weights: FloatArray) -> float:
    """Put the best weights of components × rows; return Σ log Σ w p."""
    components, rows = densities.shape
    prior = 1.0 / components
    weights[:] = prior
    if components == 1:
        weights[0] = 1.0
        return _log_likelihood(densities, weights)
    gradient, step, trial = np.empty(components), np.empty(components), np.empty(components)
    hessian, lower = np.empty((components, components)), np.empty((components, components))
    value = _objective(densities, weights, prior)
    for _ in range(MOST_STEPS):
        _derivatives(densities, weights, prior, gradient, hessian)
        _solve(hessian, lower, gradient, step)
        decrement = 0.0
        for k in range(components):
            decrement += step[k] * gradient[k]
        if decrement < CONVERGED * rows:
            break
        size = 1.0
        for k in range(components):  # stay inside
            if step[k] < 0.0:
                size = min(size, -0.99 * weights[k] / step[k])
        while True:
            for k in range(components):
                trial[k] = weights[k] + size * step[k]
            candidate = _objective(densities, trial, prior)
            if candidate >= value + 1e-4 * size * decrement or size < 1e-10:
                break
            size *= 0.5
        if candidate <= value and decrement < 1e-12 * rows:
            # Rounding hides what is left to gain: a full step is still right to second order.
            for k in range(components):
                weights[k] = max(weights[k] + step[k], 0.01 * weights[k])
            value = _objective(densities, weights, prior)
            break
        weights[:] = trial
        value = candidate
    total = 0.0
    for k in range(components):
        total += weights[k]
    for k in range(components):
        weights[k] /= total
    return _log_likelihood(densities, weights)


@compiled(fastmath=REORDER)
def _log_likelihood(densities: FloatArray, weights: FloatArray) -> float:
    rows = densities.shape[1]
    total = 0.0
    sums = np.empty(BLOCK)
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        _mix(densities, weights, first, width, sums)
        # A row's sum is at most 1 and hardly below 1e-9: the logarithm of sixteen at a time is taken.
        for start in range(0, width, 16):
            product = 1.0
            for i in range(start, min(start + 16, width)):
                product *= sums[i]
            total += math.log(product)
    return total


@compiled(fastmath=REORDER)
def _mix(densities: FloatArray, weights: FloatArray, first: int, width: int, sums: FloatArray) -> None:
    """Put Σ_k w_k p_ik for a block of rows."""
    for i in range(width):
        sums[i] = weights[0] * densities[0, first + i]
    for k in range(1, len(weights)):
        w = weights[k]
        for i in range(width):
            sums[i] += w * densities[k, first + i]


@compiled()
def _objective(densities: FloatArray, weights: FloatArray, prior: float) -> float:
    value = _log_likelihood(densities, weights)
    for k in range(len(weights)):
        value += prior * math.log(weights[k]) - (densities.shape[1] + 1.0) * weights[k]
    return value


@compiled(fastmath=REORDER)
def _derivatives(
    densities: FloatArray, weights: FloatArray, prior: float, gradient: FloatArray, hessian: FloatArray
) -> None:
    """Put the gradient, and minus the second derivatives."""
    components, rows = densities.shape
    gradient[:] = 0.0
    hessian[:] = 0.0
    sums, ratios = np.empty(BLOCK), np.empty((components, BLOCK))
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        _mix(densities, weights, first, width, sums)
        for i in range(width):
            sums[i] = 1.0 / sums[i]
        for k in range(components):
            # A loop that writes has no sum in it: whether it is vectorised depends on where the arrays lie.
            for i in range(width):
                ratios[k, i] = densities[k, first + i] * sums[i]
            of_gradient = 0.0
            for i in range(width):
                of_gradient += ratios[k, i]
            gradient[k] += of_gradient
            for m in range(k + 1):
                product = 0.0
                for i in range(width):
                    product += ratios[k, i] * ratios[m, i]
                hessian[k, m] += product
    for k in range(components):
        gradient[k] += prior / weights[k] - (rows + 1.0)
        hessian[k, k] += prior / weights[k] ** 2


@compiled()
def _solve(matrix: FloatArray, lower: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """Solve for a positive definite matrix, of which the lower half is given."""
    n = len(right)
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(max(total, 1e-300)) if i == j else total / lower[j, j]
    for i in range(n):
        total = right[i]
        for k in range(i):
            total -= lower[i, k] * out[k]
        out[i] = total / lower[i, i]
    for i in range(n - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, n):
            total -= lower[k, i] * out[k]
        out[i] = total / lower[i, i]
