"""Weighted sums over the kernels of a conditional density: its distribution function, and draws from it.

Rows are given as variables × rows in coordinates whitened together, parents
first and the child last. In them the kernel centred at training row j gives
the child a standard normal distribution around the child's coordinate of j,
and its weight is exp(-|p - p_j|²/2) with p the parents' coordinates.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from spbn.compiling import compiled
from spbn.data import FloatArray, IntArray


@compiled(parallel=True)
def conditional_cdf(train: FloatArray, queries: FloatArray) -> FloatArray:
    """Return P(X ≤ x | parents) for every query."""
    child = len(train) - 1
    out = np.empty(queries.shape[1])
    for i in prange(queries.shape[1]):
        nearest = _nearest(train, queries, i)
        total = 0.0
        below = 0.0
        for j in range(train.shape[1]):
            weight = math.exp(0.5 * (nearest - _parents_distance(train, queries, i, j)))
            total += weight
            below += weight * 0.5 * math.erfc((train[child, j] - queries[child, i]) * math.sqrt(0.5))
        out[i] = below / total
    return out


@compiled(parallel=True)
def choose_rows(train: FloatArray, queries: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw a training row for every query, with its weight; one uniform number decides."""
    out = np.empty(queries.shape[1], dtype=np.int64)
    for i in prange(queries.shape[1]):
        nearest = _nearest(train, queries, i)
        total = 0.0
        for j in range(train.shape[1]):
            total += math.exp(0.5 * (nearest - _parents_distance(train, queries, i, j)))
        target = uniforms[i] * total
        reached = 0.0
        chosen = 0
        for j in range(train.shape[1]):
            weight = math.exp(0.5 * (nearest - _parents_distance(train, queries, i, j)))
            if weight > 0.0:
                chosen = j
            reached += weight
            if reached > target:
                break
        out[i] = chosen
    return out


@compiled()
def _nearest(train: FloatArray, queries: FloatArray, i: int) -> float:
    nearest = np.inf
    for j in range(train.shape[1]):
        nearest = min(nearest, _parents_distance(train, queries, i, j))
    return nearest


@compiled()
def _parents_distance(train: FloatArray, queries: FloatArray, i: int, j: int) -> float:
    square = 0.0
    for k in range(len(train) - 1):
        z = queries[k, i] - train[k, j]
        square += z * z
    return square
