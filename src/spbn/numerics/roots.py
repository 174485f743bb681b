"""Quantiles of distribution functions that can only be evaluated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spbn._base.arrays import FloatArray, IntArray

MOST_STEPS = 180
CLOSE = 1e-13  # difference of normal scores at which a quantile is found


def invert(
    cdf: Callable[[FloatArray, IntArray], FloatArray], wanted: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return where distribution functions, one for every row, have the values wanted.

    `cdf` is asked about values of some rows, and `low` and `high` are on either side of the result. Normal
    scores of a distribution function are nearly a line, so false position finds the result in a few steps
    (the Illinois algorithm). Every third step halves the interval, whatever they look like.
    """
    from scipy.special import ndtri

    target, out = ndtri(wanted), 0.5 * (low + high)
    left, last = np.arange(len(wanted)), np.full(len(wanted), -1)
    ends, scores = np.stack([low, high]), np.stack([np.full(len(low), -np.inf), np.full(len(low), np.inf)])
    for step in range(MOST_STEPS):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            x = (ends[0] * scores[1] - ends[1] * scores[0]) / (scores[1] - scores[0])
        is_inside = (x > ends[0]) & (x < ends[1]) & (step % 3 != 2)
        out[left] = x = np.where(is_inside, x, 0.5 * (ends[0] + ends[1]))
        found = ndtri(np.clip(cdf(x, left), 0.0, 1.0)) - target[left]
        end = (found >= 0.0).astype(np.int64)  # the one that moves; the other counts half if it stays again
        scores[1 - end, np.arange(len(x))] *= np.where(last == end, 0.5, 1.0)
        ends[end, np.arange(len(x))], scores[end, np.arange(len(x))] = x, found
        is_open = np.abs(found) > CLOSE
        is_open &= ends[1] - ends[0] > 4e-16 * np.abs(ends).max(axis=0)
        if not is_open.any():
            break
        left, last, ends, scores = left[is_open], end[is_open], ends[:, is_open], scores[:, is_open]
    return out
