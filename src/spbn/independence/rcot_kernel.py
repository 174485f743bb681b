"""The sums over rows of RCoT, compiled.

Features are made in blocks of rows that stay in the cache of the processor, and
made again where they are needed again: that costs less than fetching them from
memory, and no array grows with the rows. Every step has the same shape
whatever else is asked in the same call, and every sum is made by one thread in a
fixed order, so not even the last bit of an answer depends on its batch or
on the number of threads. The lock of the interpreter is released meanwhile.
"""

from __future__ import annotations

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.jit import CONTRACT, REORDER, compiled
from spbn.independence.fourier import Features, Projections, fill_features
from spbn.independence.small_matrices import add_products, factorise, solve, subtract_combinations, sum_powers

BLOCK = 128

#: Added to the correlation matrix of a condition's features, which is nearly singular.
RIDGE = 1e-10
#: A feature with less variance than this is constant.
CONSTANT = 1e-30


@compiled()
def standardise(
    columns: FloatArray,
    projections: Projections,
    number: int,
    centre: FloatArray,
    scale: FloatArray,
    factor: FloatArray,
) -> None:
    """Write centre and scale of the features of one set, and the factor of their correlations.

    It is the Cholesky factor of the correlation matrix with the ridge, and must be
    all zeros beforehand.
    """
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
        add_products(block, block, width, True, factor)
    for f in range(features):
        sums[f] /= rows
        centre[f] += sums[f]
        for g in range(f + 1):
            factor[f, g] = (factor[f, g] - rows * sums[f] * sums[g]) / (rows - 1)
        scale[f] = 1.0 / np.sqrt(factor[f, f]) if factor[f, f] > CONSTANT else 0.0
    for f in range(features):
        for g in range(f + 1):
            factor[f, g] *= scale[f] * scale[g]
    factorise(factor, RIDGE)


@compiled()
def answer_questions(
    columns: FloatArray,
    variables: Features,
    condition: Features,
    factor: FloatArray,
    x: IntArray,
    y: IntArray,
    values: FloatArray,
    power_sums: FloatArray,
) -> None:
    """Write the statistics of questions that share a condition, and the power sums of their weights.

    The statistic is N |C|², C the covariance of the residual features of x and
    y. If these are independent it is a weighted sum of chi-square variables, and
    the weights are the eigenvalues of the second moments of products of residuals.

    Parameters
    ----------
    variables
        The features of every variable.
    condition, factor
        The features of the condition, the only set there, and the factor of their correlations.
    """
    asked = np.unique(np.concatenate((x, y)))
    place = np.empty(len(columns), dtype=np.int64)
    place[asked] = np.arange(len(asked))
    coefficients = _regress(columns, variables, asked, condition, factor)
    sums, squares = _multiply_residuals(
        columns, variables, asked, condition, coefficients, place[x], place[y]
    )
    rows = columns.shape[1]
    for q in range(len(x)):
        values[q] = (sums[q] * sums[q]).sum() * (rows / (rows - 1.0) ** 2)
        sum_powers(squares[q] / rows, power_sums[q])


@compiled()
def _regress(
    columns: FloatArray,
    variables: Features,
    asked: IntArray,
    condition: Features,
    factor: FloatArray,
) -> FloatArray:
    """Return the coefficients of the ridge regression of variables' features on those of a condition."""
    rows, features, size = columns.shape[1], variables.centres.shape[1], condition.centres.shape[1]
    coefficients = np.zeros((len(asked), features, size))
    if size == 0:
        return coefficients
    given = np.empty((size, BLOCK))
    block = np.empty((features, BLOCK))
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        _fill(columns, condition, 0, first, width, given)
        for v in range(len(asked)):
            _fill(columns, variables, asked[v], first, width, block)
            add_products(block, given, width, False, coefficients[v])
    coefficients /= rows - 1.0
    for v in range(len(asked)):
        for f in range(features):
            solve(factor, coefficients[v, f])
    return coefficients


@compiled()
def _multiply_residuals(
    columns: FloatArray,
    variables: Features,
    asked: IntArray,
    condition: Features,
    coefficients: FloatArray,
    x: IntArray,
    y: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Return sums and second moments of the products of residual features, for every question.

    x and y are places in `asked`.
    """
    features = variables.centres.shape[1]
    given = np.empty((condition.centres.shape[1], BLOCK))
    residuals = np.empty((len(asked), features, BLOCK))
    products = np.empty((features * features, BLOCK))
    sums = np.zeros((len(x), features * features))
    squares = np.zeros((len(x), features * features, features * features))
    for first in range(0, columns.shape[1], BLOCK):
        width = min(BLOCK, columns.shape[1] - first)
        _fill(columns, condition, 0, first, width, given)
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
