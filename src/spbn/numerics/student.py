"""Mixtures of normal and Student's t distributions, one for every row: masses and draws, however far out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray


class Component(NamedTuple):
    """Part of a mixture: its weight, degrees of freedom (None: it is normal), centres and widths by row.

    Weights may differ from row to row; in each they sum to 1.
    """

    weight: float | FloatArray
    df: float | None
    centre: FloatArray
    width: FloatArray


def mixture_cdf(parts: Sequence[Component], values: FloatArray) -> FloatArray:
    """Return P(X ≤ value) in every row."""
    total = np.zeros(len(values))
    for weight, df, centre, width in parts:
        total += weight * _cdf((values - centre) / width, df)
    return total


def component_log_densities(parts: Sequence[Component], values: FloatArray) -> FloatArray:
    """Return the logarithm of every component's weight times its density: components × rows."""
    out = np.empty((len(parts), len(values)))
    for k, (weight, df, centre, width) in enumerate(parts):
        z = (values - centre) / width
        if df is None:
            logs = -0.5 * (z * z + math.log(2.0 * math.pi))
        else:
            constant = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
            logs = constant - 0.5 * (df + 1.0) * np.log1p(z * z / df)
        with np.errstate(divide="ignore"):
            out[k] = np.log(weight) + logs - np.log(width)
    return out


def draw_mixture(parts: Sequence[Component], rng: np.random.Generator) -> FloatArray:
    """Draw a component by its weight, then a value from it, in every row."""
    rows = len(parts[0].centre)
    bounds = np.cumsum([np.broadcast_to(part.weight, rows) for part in parts], axis=0)
    chosen = (rng.random(rows) >= bounds / bounds[-1]).sum(axis=0)
    uniforms, out = rng.random(rows), np.empty(rows)
    for k, (_, df, centre, width) in enumerate(parts):
        mine = chosen == k
        out[mine] = centre[mine] + width[mine] * _quantile(uniforms[mine], df)
    return out


def log_mass_of_mixture(parts: Sequence[Component], low: float, high: float) -> FloatArray:
    """Return log P(low ≤ X ≤ high) in every row."""
    masses = [part.weight * (above - below) for part, below, above, _ in _between(parts, low, high)]
    with np.errstate(divide="ignore"):
        return np.log(np.sum(masses, axis=0))


def draw_mixture_between(
    parts: Sequence[Component], low: float, high: float, rng: np.random.Generator
) -> FloatArray:
    """Draw a value between two bounds in every row."""
    found = list(_between(parts, low, high))
    bounds = np.cumsum([part.weight * (above - below) for part, below, above, _ in found], axis=0)
    rows = len(parts[0].centre)
    chosen = (rng.random(rows) * bounds[-1] >= bounds).sum(axis=0).clip(max=len(parts) - 1)
    uniforms, out = rng.random(rows), np.empty(rows)
    for k, (part, below, above, turned) in enumerate(found):
        mine = chosen == k
        drawn = _quantile(below[mine] + uniforms[mine] * (above - below)[mine], part.df)
        out[mine] = part.centre[mine] + part.width[mine] * np.where(turned[mine], -drawn, drawn)
    return np.clip(out, low, high)


def _between(
    parts: Sequence[Component], low: float, high: float
) -> Iterator[tuple[Component, FloatArray, FloatArray, BoolArray]]:
    """Yield components and where bounds are in them; a tail on the right is one on the left, in a mirror."""
    for part in parts:
        a, b = (low - part.centre) / part.width, (high - part.centre) / part.width
        turned = a > 0.0
        yield part, _cdf(np.where(turned, -b, a), part.df), _cdf(np.where(turned, -a, b), part.df), turned


def _cdf(z: FloatArray, df: float | None) -> FloatArray:
    from scipy.special import ndtr, stdtr

    return np.asarray(ndtr(z) if df is None else stdtr(df, z), dtype=np.float64)


def _quantile(p: FloatArray, df: float | None) -> FloatArray:
    from scipy.special import ndtri, stdtrit

    return np.asarray(ndtri(p) if df is None else stdtrit(df, p), dtype=np.float64)
