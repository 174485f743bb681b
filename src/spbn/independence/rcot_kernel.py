"""The sums over rows of RCoT, compiled.

Features are made in blocks of rows that stay in the cache of the processor, and
made again where they are needed again: that costs less than to fetch them from
memory, and no array grows with the rows. Every step has the same shape
whatever else is asked in the same call, and every sum is made by one thread in a
fixed order, so that an answer does not depend, to the last bit, on its batch or
on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from spbn.compiling import CONTRACT, REORDER, compiled
from spbn.data import FloatArray, IntArray
from spbn.independence.fourier import Features, Projections, fill_features
from spbn.independence.small_matrices import (
    add_products,
    factorise,
    solve,
    subtract_combinations,
    sum_powers,
)
from spbn.independence.weighted_chi_square import POWERS

BLOCK = 256

#: Added to the correlation matrix of a condition's features, which is all but singular.
RIDGE = 1e-10
#: A feature of less variance than this is constant.
CONSTANT = 1e-30


@compiled(parallel=True)
def standardise(columns: FloatArray, projections: Projections) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centres and scales of the features of every set, and the factor of their correlations.

    The factor is that of Cholesky, of the correlation matrix with the ridge.
    """
    sets, features = projections.phases.shape
    centres = np.empty((sets, features))
    scales = np.empty((sets, features))
    factors = np.zeros((sets, features, features))
    for s in prange(sets):
        _standardise_set(columns, projections, s, centres[s], scales[s], factors[s])
        factorise(factors[s], RIDGE)
    return centres, scales, factors


@compiled(parallel=True)
def statistics(
    columns: FloatArray,
    variables: Features,
    conditions: Features,
    factors: FloatArray,
    tasks: IntArray,
    x: IntArray,
    y: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the statistic of every question, and the power sums of the weights of its null distribution.

    The statistic is N |C|², C the covariance of the residual features of x and
    y. If these are independent it is a weighted sum of chi-square variables, and
    the weights are the eigenvalues of the second moments of products of residuals.

    Parameters
    ----------
    variables
        The features of every variable.
    conditions, factors
        The features of every condition, and the factor of their correlations.
    tasks
        Rows of (condition, first question, end of questions).
    """
    values = np.empty(len(x))
    power_sums = np.empty((len(x), POWERS))
    for task in prange(len(tasks)):
        s, first, end = tasks[task]
        of_x, of_y = x[first:end], y[first:end]
        asked = np.unique(np.concatenate((of_x, of_y)))
        coefficients = _regress(columns, variables, asked, conditions, factors, s)
        place = np.empty(len(columns), dtype=np.int64)
        place[asked] = np.arange(len(asked))
        sums, squares = _multiply_residuals(
            columns, variables, asked, conditions, s, coefficients, place[of_x], place[of_y]
        )
        rows = columns.shape[1]
        for q in range(len(of_x)):
            values[first + q] = (sums[q] * sums[q]).sum() * (rows / (rows - 1.0) ** 2)
            sum_powers(squares[q] / rows, power_sums[first + q])
    return values, power_sums


@compiled()
def _standardise_set(
    columns: FloatArray,
    projections: Projections,
    number: int,
    centre: FloatArray,
    scale: FloatArray,
    correlations: FloatArray,
) -> None:
    features, rows = len(centre), columns.shape[1]
    block = np.empty((features, BLOCK))
    sums = np.zeros(features)
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        fill_features(columns, projections, number, first, width, block)
        if first == 0:
            # Products of deviations from about the mean cancel less than products of the values.
            for f in range(features):
                centre[f] = block[f, :width].mean()
        for f in range(features):
            sums[f] += _shift(block[f], centre[f], width)
        add_products(block, block, width, True, correlations)
    for f in range(features):
        sums[f] /= rows
        centre[f] += sums[f]
        for g in range(f + 1):
            correlations[f, g] = (correlations[f, g] - rows * sums[f] * sums[g]) / (rows - 1)
        scale[f] = 1.0 / np.sqrt(correlations[f, f]) if correlations[f, f] > CONSTANT else 0.0
    for f in range(features):
        for g in range(f + 1):
            correlations[f, g] *= scale[f] * scale[g]


@compiled()
def _regress(
    columns: FloatArray,
    variables: Features,
    asked: IntArray,
    conditions: Features,
    factors: FloatArray,
    number: int,
) -> FloatArray:
    """Return the coefficients of the ridge regression of variables' features on those of a condition."""
    rows, features, size = columns.shape[1], variables.centres.shape[1], conditions.centres.shape[1]
    coefficients = np.zeros((len(asked), features, size))
    if size == 0:
        return coefficients
    given = np.empty((size, BLOCK))
    block = np.empty((features, BLOCK))
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        _fill(columns, conditions, number, first, width, given)
        for v in range(len(asked)):
            _fill(columns, variables, asked[v], first, width, block)
            add_products(block, given, width, False, coefficients[v])
    coefficients /= rows - 1.0
    for v in range(len(asked)):
        for f in range(features):
            solve(factors[number], coefficients[v, f])
    return coefficients


@compiled()
def _multiply_residuals(
    columns: FloatArray,
    variables: Features,
    asked: IntArray,
    conditions: Features,
    number: int,
    coefficients: FloatArray,
    x: IntArray,
    y: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Return sums and second moments of the products of residual features, for every question.

    x and y are places in `asked`.
    """
    features = variables.centres.shape[1]
    given = np.empty((conditions.centres.shape[1], BLOCK))
    residuals = np.empty((len(asked), features, BLOCK))
    products = np.empty((features * features, BLOCK))
    sums = np.zeros((len(x), features * features))
    squares = np.zeros((len(x), features * features, features * features))
    for first in range(0, columns.shape[1], BLOCK):
        width = min(BLOCK, columns.shape[1] - first)
        _fill(columns, conditions, number, first, width, given)
        for v in range(len(asked)):
            _fill(columns, variables, asked[v], first, width, residuals[v])
            subtract_combinations(coefficients[v], given, width, residuals[v])
        for q in range(len(x)):
            _multiply(residuals[x[q]], residuals[y[q]], width, products, sums[q])
            add_products(products, products, width, True, squares[q])
    return sums, squares


@compiled(fastmath=CONTRACT)
def _fill(
    columns: FloatArray, features: Features, number: int, first: int, width: int, out: FloatArray
) -> None:
    """Write the standardised features of a set, for some rows."""
    fill_features(columns, features, number, first, width, out)
    for f in range(features.centres.shape[1]):
        row, centre, scale = out[f], features.centres[number, f], features.scales[number, f]
        for j in range(width):
            row[j] = (row[j] - centre) * scale


@compiled(fastmath=REORDER)
def _shift(row: FloatArray, centre: float, width: int) -> float:
    """Subtract a number from a row, and return the sum of what is left."""
    total = 0.0
    for j in range(width):
        row[j] -= centre
        total += row[j]
    return total


@compiled(fastmath=REORDER)
def _multiply(a: FloatArray, b: FloatArray, width: int, products: FloatArray, sums: FloatArray) -> None:
    """Write the product of every feature of a with every one of b, and add up each."""
    for f in range(len(a)):
        of_a = a[f]
        for g in range(len(b)):
            of_b, row, total = b[g], products[f * len(b) + g], 0.0
            for j in range(width):
                row[j] = of_a[j] * of_b[j]
                total += row[j]
            sums[f * len(b) + g] += total
