"""Noise around smooth functions, and the sums over rows that both are fitted from.

Values of a target are y = (x - centre) / scale. Its noise e = y - m is a mixture: normal with the standard
deviation s, Student's t with 3 degrees of freedom that is somewhat narrower, and, around the centre of the
target instead of the function, tails: Student's t with 2 degrees of freedom, as wide as the target. Where the
noise depends on the variables, s is multiplied by exp(v / 2), v a second smooth function of them.

All functions take variables and targets × rows, the rows in groups, of which `starts` says where they begin,
and last where they end. Next come arguments by group, then those that all groups share. They return sums over
the rows of each group. What parameters are fitted to leaves out rows that have a variable out of its bounds:
what the curve would have to be there, one such row would decide.
"""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.jit import by_name, compiled
from spbn.numerics import misfit
from spbn.numerics.misfit import add_lead, add_residuals, parent_bin
from spbn.numerics.smooth import (
    BLOCK,
    BasisArrays,
    add_gram,
    add_right,
    write_features,
    write_means,
    write_near_features,
)

FENCE = 5.0  # scales from the centre, within which targets are held before anything is known of their noise
T_SCALE = 0.6  # of the t distribution, in units of s
FLOOR = 1e-4  # of the reference variance, added to squared residuals before their logarithm is taken
MOST_LOG_RATIO = 6.0  # by which the logarithm of the variance may differ from its mean
_NORMAL = 1.0 / math.sqrt(2.0 * math.pi)
_T3 = 6.0 * math.sqrt(3.0) / math.pi
_TINY = 1e-280  # densities that are computed by their logarithms


def noise_shape(weights: FloatArray) -> FloatArray:
    """Return the probabilities of residuals in the bins of `misfit`, under weights of the three parts.

    Tails are taken to be around the curve, and as wide as noise: they hardly weigh anything.
    """
    edges = misfit.SHAPE_EDGES
    t = edges / (T_SCALE * math.sqrt(3.0))
    parts = [
        np.cumsum(misfit.NORMAL_SHAPE)[:-1],
        0.5 + (t / (1.0 + t * t) + np.arctan(t)) / math.pi,
        0.5 + 0.5 * edges / np.sqrt(2.0 + edges * edges),
    ]
    return np.diff(np.concatenate([[0.0], weights @ np.array(parts), [1.0]]))


def held_squares(rows: FloatArray, starts: IntArray, centre: float, low: float, high: float) -> FloatArray:
    """Return the sum of squared distances of a column, held within bounds, from its centre."""
    squares = np.append((np.clip(rows[-1], low, high) - centre) ** 2, 0.0)
    return np.add.reduceat(squares, starts[:-1]) * (np.diff(starts) > 0)


def tail_log_densities(rows: FloatArray, starts: IntArray, widths: FloatArray, centre: float) -> FloatArray:
    """Return the log-density of the last column under tails in every row; -inf if they have no width."""
    width = np.repeat(widths, np.diff(starts))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        z = np.abs(rows[-1] - centre) / width
        logs = np.where(z < 1e100, -1.5 * np.log(2.0 + z * z), -3.0 * np.log(z))
        return np.where(width > 0.0, logs - np.log(width), -np.inf)


@compiled()
def _held(value: float, most: float) -> float:
    return min(max(value, -most), most)


@by_name
@compiled()
def gram_sums(rows: FloatArray, starts: IntArray, basis: BasisArrays, size: int) -> FloatArray:
    """Return the products of all functions of the variables, in the lower half."""
    out = np.zeros((len(starts) - 1, size, size))
    features = np.empty((out.shape[1], BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_near_features(rows, first, width, basis, features)
            add_gram(features, width, out[g])
    return out


@by_name
@compiled()
def right_sums(
    rows: FloatArray, starts: IntArray, basis: BasisArrays, size: int, targets: FloatArray
) -> FloatArray:
    """Return the products of functions and targets, within `FENCE`, and last the targets' squares."""
    out = np.zeros((len(starts) - 1, size + 1, targets.shape[1]))
    d, size, count = basis[0].shape[1], out.shape[1] - 1, targets.shape[1]
    features, values = np.empty((size, BLOCK)), np.empty((count, BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_near_features(rows, first, width, basis, features)
            for t in range(count):
                for r in range(width):
                    y = _held((rows[d + t, first + r] - targets[0, t]) / targets[1, t], FENCE)
                    values[t, r] = y
                    out[g, size, t] += features[0, r] * y * y
            add_right(features, width, values, out[g, :size])
    return out


@by_name
@compiled()
def pulled_sums(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
    cuts: FloatArray,
) -> FloatArray:
    """Return the same for targets that are pulled to within a distance of smooth functions."""
    out = np.zeros((len(coefficients), coefficients.shape[1] + 1, targets.shape[1]))
    d, size, count = basis[0].shape[1], coefficients.shape[1], targets.shape[1]
    features, values = np.empty((size, BLOCK)), np.empty((count, BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_near_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            for t in range(count):
                for r in range(width):
                    y = (rows[d + t, first + r] - targets[0, t]) / targets[1, t]
                    values[t, r] += _held(y - values[t, r], cuts[t])
                    out[g, size, t] += features[0, r] * values[t, r] * values[t, r]
            add_right(features, width, values, out[g, :size])
    return out


@by_name
@compiled()
def residual_sums(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
    cuts: FloatArray,
    references: FloatArray,
) -> FloatArray:
    """Return sums over residuals e, held within cuts, and the logarithms t of their squares over a reference.

    These are the products of functions and t, Σ t², and Σ e².
    """
    out = np.zeros((len(coefficients), coefficients.shape[1] + 2, targets.shape[1]))
    d, size, count = basis[0].shape[1], coefficients.shape[1], targets.shape[1]
    features, values = np.empty((size, BLOCK)), np.empty((count, BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_near_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            for t in range(count):
                for r in range(width):
                    e = (rows[d + t, first + r] - targets[0, t]) / targets[1, t] - values[t, r]
                    held = _held(e, cuts[t])
                    values[t, r] = math.log(held * held / references[t] + FLOOR)
                    out[g, size, t] += features[0, r] * values[t, r] * values[t, r]
                    out[g, size + 1, t] += features[0, r] * held * held
            add_right(features, width, values, out[g, :size])
    return out


@by_name
@compiled()
def scaled_sums(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    variances: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
    cuts: FloatArray,
    means: FloatArray,
) -> FloatArray:
    """Return Σ e² exp(-v), where e is held within the cut."""
    out = np.zeros((len(coefficients), targets.shape[1]))
    d, count = basis[0].shape[1], targets.shape[1]
    features = np.empty((coefficients.shape[1], BLOCK))
    values, logs = np.empty((count, BLOCK)), np.empty((count, BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_near_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            write_means(features, width, variances[g], logs)
            for t in range(count):
                for r in range(width):
                    e = (rows[d + t, first + r] - targets[0, t]) / targets[1, t] - values[t, r]
                    held = _held(e, cuts[t])
                    ratio = math.exp(_held(logs[t, r] - means[t], MOST_LOG_RATIO))
                    out[g, t] += features[0, r] * held * held / ratio
    return out


@by_name
@compiled()
def misfit_sums(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    variances: FloatArray,
    noise: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
) -> FloatArray:
    """Return the sums over residuals that tell how well noise around curves fits: targets × sums."""
    out = np.zeros((len(coefficients), targets.shape[1], misfit.size_of(basis[0].shape[1])))
    transform = basis[0]
    d, count = transform.shape[1], targets.shape[1]
    features, bins = np.empty((coefficients.shape[1], BLOCK)), np.empty((d, BLOCK), dtype=np.int64)
    values, logs, parents = np.empty((count, BLOCK)), np.empty((count, BLOCK)), np.arange(d)
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            write_means(features, width, variances[g], logs)
            for j in range(d):
                for r in range(width):
                    bins[j, r] = parent_bin((rows[j, first + r] - transform[0, j]) / transform[1, j])
            for t in range(count):
                for r in range(width):
                    e = (rows[d + t, first + r] - targets[0, t]) / targets[1, t] - values[t, r]
                    ratio = math.exp(0.5 * _held(logs[t, r] - noise[g, 0, t], MOST_LOG_RATIO))
                    values[t, r] = e / (noise[g, 1, t] * ratio)
                add_residuals(values[t, :width], bins, 0, parents, out[g, t])
    return out


@by_name
@compiled()
def lead_sums(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    variances: FloatArray,
    noise: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
    spreads: FloatArray,
) -> FloatArray:
    """Return the sums over residuals that tell which further columns might help: targets × columns × sums.

    `spreads`: medians and widths of the further columns, which come after the targets.
    """
    size = misfit.PER_LEAD + misfit.PER_PAIR * basis[0].shape[1]
    out = np.zeros((len(coefficients), targets.shape[1], spreads.shape[1], size))
    transform = basis[0]
    d, count = transform.shape[1], targets.shape[1]
    features, bins = np.empty((coefficients.shape[1], BLOCK)), np.empty((BLOCK, d), dtype=np.int64)
    values, logs = np.empty((count, BLOCK)), np.empty((count, BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            write_means(features, width, variances[g], logs)
            for j in range(d):
                for r in range(width):
                    bins[r, j] = parent_bin((rows[j, first + r] - transform[0, j]) / transform[1, j])
            for t in range(count):
                for r in range(width):
                    e = (rows[d + t, first + r] - targets[0, t]) / targets[1, t] - values[t, r]
                    ratio = math.exp(0.5 * _held(logs[t, r] - noise[g, 0, t], MOST_LOG_RATIO))
                    values[t, r] = e / (noise[g, 1, t] * ratio)
                for k in range(spreads.shape[1]):
                    column = d + count + k
                    for r in range(width):
                        value = (rows[column, first + r] - spreads[0, k]) / spreads[1, k]
                        add_lead(values[t, r], value, bins[r], d, out[g, t, k])
    return out


@compiled()
def _noise_densities(y: float, e: float, s: float, tails: float) -> tuple[float, float, float]:
    """Return the densities of the normal distribution, of the t distribution and of tails."""
    z = e / s
    t = z / T_SCALE
    wide = y / tails
    t_density = _T3 / (3.0 + t * t) ** 2 / (T_SCALE * s)
    return _NORMAL * math.exp(-0.5 * z * z) / s, t_density, (2.0 + wide * wide) ** -1.5 / tails


@compiled()
def _log(density: float, weight: float, y: float, tails: float) -> float:
    """Return the logarithm of a density, of which only tails are left far out."""
    if density > _TINY:
        return math.log(density)
    return math.log(weight) + 2.0 * math.log(tails) - 3.0 * math.log(abs(y))


@by_name
@compiled()
def likelihood_sums(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    variances: FloatArray,
    noise: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
    shapes: FloatArray,
) -> FloatArray:
    """Return log-likelihoods under several mixtures: shapes × targets.

    `variances`: coefficients of v: functions × targets.
    `noise`: the mean of v, s and the width of tails: 3 × targets.
    `shapes`: weights of the normal distribution, of the t distribution and of tails: shapes × 3.
    """
    out = np.zeros((len(coefficients), len(shapes), targets.shape[1]))
    d, count = basis[0].shape[1], targets.shape[1]
    features = np.empty((coefficients.shape[1], BLOCK))
    values, logs = np.empty((count, BLOCK)), np.empty((count, BLOCK))
    for g in range(len(out)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            write_means(features, width, variances[g], logs)
            for t in range(count):
                level, deviation, tails = noise[g, 0, t], noise[g, 1, t], noise[g, 2, t]
                for r in range(width):
                    y = (rows[d + t, first + r] - targets[0, t]) / targets[1, t]
                    s = deviation * math.exp(0.5 * _held(logs[t, r] - level, MOST_LOG_RATIO))
                    normal, student, tail = _noise_densities(y, y - values[t, r], s, tails)
                    for k in range(len(shapes)):
                        density = shapes[k, 0] * normal + shapes[k, 1] * student + shapes[k, 2] * tail
                        out[g, k, t] += _log(density, shapes[k, 2], y, tails)
    return out


@by_name
@compiled()
def log_densities(
    rows: FloatArray,
    starts: IntArray,
    coefficients: FloatArray,
    variances: FloatArray,
    noise: FloatArray,
    basis: BasisArrays,
    targets: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Return the log-density of one target in every row."""
    out = np.empty(rows.shape[1])
    d, most = basis[0].shape[1], min(BLOCK, rows.shape[1])
    features, values, logs = np.empty((coefficients.shape[1], most)), np.empty((1, most)), np.empty((1, most))
    for g in range(len(coefficients)):
        for first in range(starts[g], starts[g + 1], BLOCK):
            width = min(BLOCK, starts[g + 1] - first)
            write_features(rows, first, width, basis, features)
            write_means(features, width, coefficients[g], values)
            write_means(features, width, variances[g], logs)
            for r in range(width):
                y = (rows[d, first + r] - targets[0, 0]) / targets[1, 0]
                s = noise[g, 1, 0] * math.exp(0.5 * _held(logs[0, r] - noise[g, 0, 0], MOST_LOG_RATIO))
                normal, student, tail = _noise_densities(y, y - values[0, r], s, noise[g, 2, 0])
                density = weights[0] * normal + weights[1] * student + weights[2] * tail
                log_density = _log(density, weights[2], y, noise[g, 2, 0])
                out[first + r] = log_density - math.log(targets[1, 0])
    return out
