"""The sums over rows of RCoT, compiled, and the products and factors of small matrices that they take.

Features are made in blocks of rows that stay in the cache of the processor, and made again where they are
needed again: that costs less than fetching them from memory, and no array grows with the rows. Every step has
the same shape whatever else is asked in the same call, and every sum is made by one thread in a fixed order,
so not even the last bit of an answer depends on its batch or on the number of threads. A matrix library would
start threads of its own inside parallel loops, which wait for each other, and its result may depend on the
shape of a batch. These products are made at some 40 billion operations per second on one core.

The features are cosines of random projections, whose inner products approximate a Gaussian kernel. For
weights w ~ N(0, 1/width²) and phases b uniform on a circle, the average of 2 cos(w·x + b) cos(w·y + b) is
exp(-|x - y|² / (2 width²)) (Rahimi and Recht, 2007). The width is the median distance between rows. Weights
and phases are kept in turns, not radians, because whole turns can then be removed exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.jit import CONTRACT, REORDER, compiled
from spbn.numerics.smooth import solve

BLOCK = 128

#: Added to the correlation matrix of a condition's features, which is nearly singular.
RIDGE = 1e-10
#: A feature with less variance than this is constant.
CONSTANT = 1e-30
#: Rows from which the median distance is taken.
WIDTH_ROWS = 500

_TURN = 2.0 * math.pi
# Taylor series of the sine, which is exact to 3e-16 up to a quarter turn.
_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17, _S19 = (
    (-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 10)
)


@compiled(fastmath=REORDER)
def add_products(a: FloatArray, b: FloatArray, width: int, lower: bool, out: FloatArray) -> None:
    """Add a bᵀ to out, over the first `width` columns; if `lower`, only what is on or below the diagonal.

    Tiles of 4 × 4 dot products, so that every number that is loaded is used four times.
    """
    for i in range(0, len(a) - 3, 4):
        for j in range(0, min(len(b), i + 4) - 3 if lower else len(b) - 3, 4):
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
            for n in range(width):
                a0, a1, a2, a3 = a[i, n], a[i + 1, n], a[i + 2, n], a[i + 3, n]
                b0, b1, b2, b3 = b[j, n], b[j + 1, n], b[j + 2, n], b[j + 3, n]
                s00 += a0 * b0
                s01 += a0 * b1
                s02 += a0 * b2
                s03 += a0 * b3
                s10 += a1 * b0
                s11 += a1 * b1
                s12 += a1 * b2
                s13 += a1 * b3
                s20 += a2 * b0
                s21 += a2 * b1
                s22 += a2 * b2
                s23 += a2 * b3
                s30 += a3 * b0
                s31 += a3 * b1
                s32 += a3 * b2
                s33 += a3 * b3
            out[i, j] += s00
            out[i, j + 1] += s01
            out[i, j + 2] += s02
            out[i, j + 3] += s03
            out[i + 1, j] += s10
            out[i + 1, j + 1] += s11
            out[i + 1, j + 2] += s12
            out[i + 1, j + 3] += s13
            out[i + 2, j] += s20
            out[i + 2, j + 1] += s21
            out[i + 2, j + 2] += s22
            out[i + 2, j + 3] += s23
            out[i + 3, j] += s30
            out[i + 3, j + 1] += s31
            out[i + 3, j + 2] += s32
            out[i + 3, j + 3] += s33
    tiled_a, tiled_b = len(a) // 4 * 4, len(b) // 4 * 4
    for i in range(len(a)):
        for j in range(0 if i >= tiled_a else tiled_b, i + 1 if lower else len(b)):
            total = 0.0
            for n in range(width):
                total += a[i, n] * b[j, n]
            out[i, j] += total


@compiled(fastmath=CONTRACT)
def subtract_combinations(coefficients: FloatArray, rows: FloatArray, width: int, out: FloatArray) -> None:
    """Subtract coefficients · rows from out, over the first `width` columns."""
    for k in range(0, len(rows) - 3, 4):
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for f in range(len(out)):
            left = out[f]
            c0, c1 = coefficients[f, k], coefficients[f, k + 1]
            c2, c3 = coefficients[f, k + 2], coefficients[f, k + 3]
            for j in range(width):
                left[j] -= c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j]
    for k in range(len(rows) // 4 * 4, len(rows)):
        r0 = rows[k]
        for f in range(len(out)):
            left, c0 = out[f], coefficients[f, k]
            for j in range(width):
                left[j] -= c0 * r0[j]


@compiled(fastmath=REORDER)
def factorise(matrix: FloatArray, ridge: float) -> None:
    """Replace the lower triangle of a matrix by the Cholesky factor of the matrix plus ridge · identity."""
    for i in range(len(matrix)):
        row = matrix[i]
        for j in range(i + 1):
            other, total = matrix[j], 0.0
            for k in range(j):
                total += row[k] * other[k]
            if j < i:
                row[j] = (row[j] - total) / other[j]
            else:  # what rounding leaves may be less than the ridge
                row[i] = np.sqrt(max(row[i] + ridge - total, 0.5 * ridge))


@compiled()
def sum_powers(matrix: FloatArray, out: FloatArray) -> None:
    """Write the traces of the first 8 powers of a symmetric matrix, given by its lower triangle.

    They are the power sums of its eigenvalues, at the cost of three products.
    """
    size = len(matrix)
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    second, third, fourth = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    add_products(matrix, matrix, size, False, second)
    add_products(second, matrix, size, False, third)
    add_products(second, second, size, False, fourth)
    out[0] = np.trace(matrix)
    out[1] = (matrix * matrix).sum()
    out[2] = (second * matrix).sum()
    out[3] = (second * second).sum()
    out[4] = (third * second).sum()
    out[5] = (third * third).sum()
    out[6] = (fourth * third).sum()
    out[7] = (fourth * fourth).sum()


@compiled()
def standardise(columns: FloatArray, sets: Features, number: int, factor: FloatArray) -> None:
    """Write centres and scales of the features of one set, and the factor of their correlations.

    It is the Cholesky factor of the correlation matrix with the ridge, and must be all zeros beforehand.
    """
    centre, scale = sets.centres[number], sets.scales[number]
    features, rows = len(centre), columns.shape[1]
    block = np.empty((features, BLOCK))
    sums = np.zeros(features)
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        fill_features(columns, sets, number, first, width, block)
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

    `variables`: the features of every variable.
    `condition`, `factor`: the features of the condition, the only set there, and the factor of their
    correlations.
    """
    asked = np.unique(np.concatenate((x, y)))
    place = np.empty(len(columns), dtype=np.int64)
    place[asked] = np.arange(len(asked))
    coefficients = _regress(columns, variables, asked, condition, factor)
    rows, features = columns.shape[1], variables.centres.shape[1]
    given = np.empty((condition.centres.shape[1], BLOCK))
    residuals = np.empty((len(asked), features, BLOCK))
    products = np.empty((features * features, BLOCK))
    # Sums and second moments of the products of residual features, for every question.
    sums = np.zeros((len(x), features * features))
    squares = np.zeros((len(x), features * features, features * features))
    for first in range(0, rows, BLOCK):
        width = min(BLOCK, rows - first)
        _fill(columns, condition, 0, first, width, given)
        for v in range(len(asked)):
            _fill(columns, variables, asked[v], first, width, residuals[v])
            subtract_combinations(coefficients[v], given, width, residuals[v])
        for q in range(len(x)):
            _multiply(residuals[place[x[q]]], residuals[place[y[q]]], width, products, sums[q])
            add_products(products, products, width, True, squares[q])
    for q in range(len(x)):
        values[q] = (sums[q] * sums[q]).sum() * (rows / (rows - 1.0) ** 2)
        sum_powers(squares[q] / rows, power_sums[q])


@compiled()
def _regress(
    columns: FloatArray, variables: Features, asked: IntArray, condition: Features, factor: FloatArray
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


class Features(NamedTuple):
    """Random projections of sets of variables, and what gives their cosines mean 0 and variance 1."""

    members: IntArray  # sets × variables: the columns that a set consists of
    weights: FloatArray  # sets × features × variables
    phases: FloatArray  # this and the rest: sets × features
    centres: FloatArray
    scales: FloatArray


def project_set(
    columns: FloatArray, members: IntArray, features: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw weights and phases for some columns, as wide as those columns are spread."""
    width = median_distance(columns[members])
    weights = rng.normal(size=(features, len(members)))
    return weights / (width * _TURN), rng.random(features)


def project_one(column: FloatArray, features: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw weights and phases for one column, spread evenly over frequencies and phases.

    A few features drawn without care may all be blind to the same thing. So the distribution is cut into as
    many parts of equal probability as there are features, and each part gives one. A feature and its negative
    are equivalent, so positive weights and phases up to half a turn are enough.
    """
    width = median_distance(column[None, :])
    from scipy.special import ndtri  # not at the top: it takes a third of a second

    weights = ndtri(0.5 + 0.5 * _one_of_each_part(features, rng))
    return weights[:, None] / (width * _TURN), 0.5 * _one_of_each_part(features, rng)


def median_distance(columns: FloatArray) -> float:
    """Return the median distance between up to 500 rows that are evenly spread over the data.

    If most rows are equal the median is 0, which is not a width: then 1 is used, the
    standard deviation of the standardised columns.
    """
    rows = columns.shape[1]
    chosen = np.linspace(0, rows - 1, min(rows, WIDTH_ROWS)).astype(np.int64)
    return _median_distance(np.ascontiguousarray(columns[:, chosen], dtype=np.float32)) or 1.0


@compiled(fastmath=CONTRACT)
def cosine_of_turns(turns: float) -> float:
    """Return cos(2π turns), in a form that the compiler turns into vector instructions."""
    rest = turns - np.floor(turns + 0.5)  # in [-1/2, 1/2]
    x = _TURN * (0.25 - abs(rest))  # cos(2π r) = sin(2π (1/4 - |r|))
    s = x * x
    p = _S19
    p = p * s + _S17
    p = p * s + _S15
    p = p * s + _S13
    p = p * s + _S11
    p = p * s + _S9
    p = p * s + _S7
    p = p * s + _S5
    p = p * s + _S3
    return p * s * x + x


@compiled(fastmath=CONTRACT)
def fill_features(
    columns: FloatArray, sets: Features, number: int, first: int, width: int, out: FloatArray
) -> None:
    """Write the cosines of one set: ``out[f, j]`` is feature f of row first + j, for j below `width`."""
    members, weights, phases = sets.members[number], sets.weights[number], sets.phases[number]
    for f in range(len(phases)):
        turns, phase = out[f], phases[f]
        for j in range(width):
            turns[j] = phase
        for m in range(len(members)):
            weight = weights[f, m]
            column = columns[members[m], first : first + width]  # no index is negative: this is vectorised
            for j in range(width):
                turns[j] += weight * column[j]
        for j in range(width):
            turns[j] = cosine_of_turns(turns[j])


@compiled(fastmath=CONTRACT)
def _median_distance(columns: FloatArray) -> float:
    """Halve an interval until it is as narrow as single precision: counting is faster than sorting."""
    variables, rows = columns.shape
    squares = np.zeros(rows * (rows - 1) // 2, dtype=np.float32)
    start = 0
    for i in range(rows):
        for m in range(variables):
            for j in range(i):
                difference = columns[m, i] - columns[m, j]
                squares[start + j] += difference * difference
        start += i
    low, high = np.float32(0.0), squares.max()
    for _ in range(30):
        middle = np.float32(0.5) * (low + high)
        below = 0
        for k in range(len(squares)):
            below += squares[k] <= middle
        if 2 * below < len(squares):
            low = middle
        else:
            high = middle
    return math.sqrt(high) if low > 0.0 else 0.0


def _one_of_each_part(parts: int, rng: np.random.Generator) -> FloatArray:
    """Return a random number from each of the equal parts of [0, 1), in random order."""
    return (rng.permutation(parts) + rng.random(parts)) / parts
