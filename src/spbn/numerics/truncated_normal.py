"""The normal distribution between two bounds, however far out they are."""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import LOG_2PI, FloatArray
from spbn._base.jit import compiled

FARTHEST = 38.0  # standard deviations, beyond which there is nothing left
ASYMPTOTIC = 8.0  # from here on the tail is a series, since erfc would lose its digits


def log_mass_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return log P(low ≤ Z ≤ high) of a standard normal Z; -inf where there is nothing between."""
    from scipy.special import log_ndtr

    turned = low > 0.0  # a tail on the right is one on the left, seen in a mirror
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = log_ndtr(b), log_ndtr(a)
        mass = upper + np.log(-np.expm1(lower - upper))
    return np.where(b > a, mass, -np.inf)


def draw_between(low: FloatArray, high: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return draws of a standard normal between bounds, by inversion."""
    from scipy.special import log_ndtr, ndtri_exp

    turned = low > 0.0
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = log_ndtr(b), log_ndtr(a)
        # log(Φ(a) + u (Φ(b) - Φ(a)))
        drawn = ndtri_exp(upper + np.log1p((uniforms - 1.0) * -np.expm1(lower - upper)))
    drawn = np.clip(drawn, a, b)
    return np.where(turned, -drawn, drawn)


@compiled()
def mass(low: float, high: float) -> float:
    """Return P(low ≤ Z ≤ high) of a standard normal Z; 0 where it is less than can be written."""
    if low > 0.0:
        low, high = -high, -low
    if not high > -FARTHEST:
        return 0.0
    return 0.5 * (math.erfc(-high * math.sqrt(0.5)) - math.erfc(-low * math.sqrt(0.5)))


@compiled()
def log_mass(low: float, high: float) -> float:
    """Return log P(low ≤ Z ≤ high) of a standard normal Z, for compiled code."""
    if not high > low:
        return -np.inf
    if low > 0.0:
        low, high = -high, -low
    upper = log_left_tail(high)
    lower = log_left_tail(low)
    if upper == lower:
        return -np.inf
    return upper + math.log(-math.expm1(lower - upper))


@compiled()
def log_left_tail(z: float) -> float:
    """Return log P(Z ≤ z) of a standard normal Z."""
    if z == -np.inf:
        return -np.inf
    if z > -ASYMPTOTIC:
        return math.log(0.5 * math.erfc(-z * math.sqrt(0.5)))
    square = 1.0 / (z * z)
    series = 1.0 - square * (1.0 - square * (3.0 - square * (15.0 - square * (105.0 - 945.0 * square))))
    return -0.5 * z * z - 0.5 * LOG_2PI - math.log(-z) + math.log(series)
