"""Weighted sums over the kernels of a conditional density: density, distribution function, draws.

Rows are given as variables × rows in coordinates whitened together, parents
first and the child last. In them the kernel centred at training row j gives
the child a standard normal distribution around the child's coordinate of j,
and its weight is exp(-|p - p_j|²/2) with p the parents' coordinates.

Weights are taken relative to that of the nearest row, and the difference of two
squared distances is never computed from the squares, so results are accurate
however far the parents are from the training rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, IntArray, frozen
from spbn._base.jit import compiled
from spbn._base.threads import available_threads
from spbn.numerics.gaussian import log_mass as log_mass_of
from spbn.numerics.gaussian import mass as mass_of

#: Below this log-density of the parents, the difference of two log-densities loses
#: digits that matter, and `conditional_log_density` has to be used.
FAR = -1e6
PAIRS_A_CALL = 4e6  # some 0.1 s: how long an interrupt may have to wait
FEWEST_PAIRS = 1e4  # some 0.2 ms: waking up a thread for less does not pay
#: Kernels are left out if their squared distance exceeds that of the nearest by so much that their weight is
#: below 1e-18; and, of the probability of an interval, those that lie so many standard deviations outside,
#: unless that probability is small itself.
TOO_FAR, OUTSIDE, LEAST_SHARE = 83.0, 8.5, 1e-4
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


def conditional_cdf(train: FloatArray, queries: FloatArray) -> FloatArray:
    """Return P(X ≤ x | parents) for every query."""
    out = np.empty(queries.shape[1])
    in_parts(_cdf, train, queries, out)
    return out


def conditional_density_and_cdf(train: FloatArray, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what `conditional_log_density` and `conditional_cdf` do, from one pass over the kernels.

    Kernels without any say are left out, which is most of them where there are parents. So this is the
    quickest way to both for single queries, up to some thousand kernels.
    """
    density, below = np.empty(queries.shape[1]), np.empty(queries.shape[1])
    if train.shape[1] * queries.shape[1] < FEWEST_PAIRS:
        _density_and_cdf(0, queries.shape[1], frozen(train), frozen(queries), density, below)
    else:
        in_parts(_density_and_cdf, train, queries, density, below)
    return density, below


def choose_rows(train: FloatArray, queries: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw a training row for every query, with its weight; one uniform number decides."""
    out = np.empty(queries.shape[1], dtype=np.int64)
    in_parts(_choose, train, queries, frozen(uniforms), out)
    return out


def choose_rows_between(
    train: FloatArray, queries: FloatArray, highs: FloatArray, uniforms: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Draw a training row for every query, with the weight that its kernel has in an interval.

    Parameters
    ----------
    queries
        The parents' coordinates and, last, the child's at the lower end.
    highs
        The child's coordinate at the upper end.

    Returns
    -------
    The rows, and the log-probability that the child is in the interval.
    """
    rows, log_mass = np.empty(queries.shape[1], dtype=np.int64), np.empty(queries.shape[1])
    in_parts(_choose_between, train, queries, frozen(highs), frozen(uniforms), rows, log_mass)
    return rows, log_mass


def in_parts(function: Callable[..., None], train: FloatArray, queries: FloatArray, *others: Any) -> None:
    """Call a compiled loop for some queries at a time, so that threads share it and it can be interrupted."""
    arrays = (frozen(train), frozen(queries), *others)
    rows, asked = train.shape[1], queries.shape[1]
    threads = available_threads()
    share = min(PAIRS_A_CALL / max(1, rows), asked / (CALLS_A_THREAD * threads.count))
    step = math.ceil(max(FEWEST_PAIRS / max(1, rows), share, 1.0))
    threads.run(function, [(first, min(first + step, asked), *arrays) for first in range(0, asked, step)])


@compiled()
def _log_density(first: int, end: int, train: FloatArray, queries: FloatArray, out: FloatArray) -> None:
    child = len(train) - 1
    for i in range(first, end):
        nearest = _nearest(train, queries, i)
        weights = 0.0
        least = np.inf
        for j in range(train.shape[1]):
            excess = _excess(train, queries, i, j, nearest)
            weights += math.exp(-0.5 * excess)
            least = min(least, excess + (queries[child, i] - train[child, j]) ** 2)
        if least == np.inf:
            out[i] = -np.inf
            continue
        total = 0.0
        for j in range(train.shape[1]):
            square = _excess(train, queries, i, j, nearest) + (queries[child, i] - train[child, j]) ** 2
            total += math.exp(0.5 * (least - square))
        out[i] = math.log(total / weights) - 0.5 * (least + LOG_2PI)


@compiled()
def _cdf(first: int, end: int, train: FloatArray, queries: FloatArray, out: FloatArray) -> None:
    child = len(train) - 1
    for i in range(first, end):
        nearest = _nearest(train, queries, i)
        total = 0.0
        below = 0.0
        for j in range(train.shape[1]):
            weight = math.exp(-0.5 * _excess(train, queries, i, j, nearest))
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
        _excesses(train, queries, i, 0, excesses)
        nearest = int(excesses.argmin())
        _excesses(train, queries, i, nearest, excesses)
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
        _excesses(train, queries, i, 0, weights)
        nearest = int(weights.argmin())
        _excesses(train, queries, i, nearest, weights)
        total = 0.0
        for j in range(n):
            weights[j] = math.exp(-0.5 * weights[j]) if weights[j] < TOO_FAR else 0.0
            total += weights[j]
        target = uniforms[i] * total
        reached = 0.0
        chosen = nearest
        for j in range(n):
            reached += weights[j]
            if weights[j] > 0.0:
                chosen = j
            if reached > target:
                break
        out[i] = chosen


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
        _excesses(train, queries, i, 0, excesses)
        nearest = int(excesses.argmin())
        _excesses(train, queries, i, nearest, excesses)
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
                shares[j] = weight * mass_of(low, high)
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
        rows[i] = nearest
        if total == 0.0:
            log_mass[i] = -np.inf
            continue
        log_mass[i] = greatest + math.log(total / weights)
        target = uniforms[i] * total
        reached = 0.0
        for j in range(n):
            reached += shares[j]
            if shares[j] > 0.0:
                rows[i] = j
            if reached > target:
                break


@compiled()
def _nearest(train: FloatArray, queries: FloatArray, i: int) -> int:
    """Return the training row whose parents are nearest."""
    nearest = 0
    least = 0.0
    for j in range(1, train.shape[1]):
        excess = _excess(train, queries, i, j, 0)
        if excess < least:
            nearest, least = j, excess
    return nearest


@compiled()
def _excesses(train: FloatArray, queries: FloatArray, i: int, base: int, out: FloatArray) -> None:
    """Write the squared distances of the parents from all rows, minus that from row `base`."""
    out[:] = 0.0
    for k in range(len(train) - 1):
        b, x = train[k, base], queries[k, i]
        for j in range(train.shape[1]):
            a = train[k, j]
            out[j] += (b - a) * ((x - a) + (x - b))


@compiled()
def _excess(train: FloatArray, queries: FloatArray, i: int, j: int, base: int) -> float:
    """Squared distance of the parents from row j, minus that from row `base`."""
    excess = 0.0
    for k in range(len(train) - 1):
        a, b, x = train[k, j], train[k, base], queries[k, i]
        excess += (b - a) * ((x - a) + (x - b))
    return excess
