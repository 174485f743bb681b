"""Weights of which the logarithms are known."""

from __future__ import annotations

import numpy as np

from spbn.numerics.arrays import FloatArray

LEAST = -1e300  # stands for -inf, which cannot be subtracted from itself


def relative_weights(log_weights: FloatArray, *, axis: int = -1) -> FloatArray:
    """Return weights relative to the greatest along an axis; all are 0 where all logarithms are -inf."""
    weights: FloatArray = np.exp(log_weights - greatest(log_weights, axis=axis))
    return weights


def greatest(log_weights: FloatArray, *, axis: int = -1) -> FloatArray:
    """Return the greatest logarithm along an axis, which is kept; a finite number, even if all are -inf."""
    top: FloatArray = np.maximum(log_weights.max(axis=axis, keepdims=True), LEAST)
    return top
