"""Smooth functions of several variables: a fixed basis, fitted from sums over rows.

    m(x) = b_0 + Σ_j b_j z_j + Σ_ij d_ij z_i z_j + Σ_k c_k Π_j √2 cos(k_j θ_j),

where cos θ_j = z_j / √(z_j² + L²), and z_j is the variable x_j less a centre, over a scale, and held within
bounds. The cosines are rational Chebyshev functions (Boyd, 1987): polynomials in the middle, constant far
out. Their multi-indices k are a fixed set, larger along the axes than between them, and the same for any
order of the variables.

The penalty λ Σ_k |k|⁴ c_k² is that of a smoothing spline. λ is also the length scale: the larger, the
smoother. Everything that a fit needs is a sum over rows, so folds are left out by subtraction, and rows may
be anywhere.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, frozen
from spbn._base.jit import REORDER, compiled

#: The greatest weight of a multi-index, by the number of variables: 20 to 100 functions ...
LARGEST = {1: 24.0, 2: 10.0, 3: 6.5, 4: 4.5, 5: 4.0, 6: 3.0}
LARGEST_OF_MANY = 2.0
FEW_ROWS, OF_FEW_ROWS = 600, 0.6  # ... and a share of it for fewer rows than this
MOST_CROSSED = 4  # variables that a function may depend on ...
MOST_CROSSED_OF_MANY = 2  # ... if there are more than that
MOST_PRODUCTS = 45  # of two variables; if there were more, only squares are in the basis
HALF_WIDTH = 1.5  # L: half of the cosines' wavelength is within this many scales of the centre
PENALTIES = (1e-5, 3e-4, 1e-2, 0.3, 10.0, 300.0)  # λ, of which the best is chosen
FREE = (1e-9, 1e-5)  # the penalties of the constant and of linear terms, whatever λ is
OF_PRODUCTS = 0.1  # of λ
BasisArrays = tuple[FloatArray, IntArray, IntArray]  # a transform, pairs of variables, multi-indices
BLOCK = 512  # rows at a time, whose features stay in the cache
LEAST_SHARE = 1e-14  # of the squares, that is left of them after subtractions


@cache
def multi_indices(d: int, is_rich: bool) -> IntArray:
    """Return the multi-indices of the cosines of d variables: functions × variables."""
    largest = max(LARGEST.get(d, LARGEST_OF_MANY) * (1.0 if is_rich else OF_FEW_ROWS), LARGEST_OF_MANY)
    crossed = min(d, MOST_CROSSED if d <= MOST_CROSSED else MOST_CROSSED_OF_MANY)
    found = []
    for active in range(1, crossed + 1):
        weight = 1.0 + 0.25 * (active - 1)
        for values in product(range(1, int(largest) + 1), repeat=active):
            if weight * math.hypot(*values) <= largest:
                for axes in combinations(range(d), active):
                    index = np.zeros(d, dtype=np.int64)
                    index[list(axes)] = values
                    found.append(index)
    return frozen(np.array(found, dtype=np.int64).reshape(len(found), d))


@cache
def products(d: int) -> IntArray:
    """Return the pairs of variables whose products are in the basis, squares among them: products × 2."""
    pairs = [(i, j) for i in range(d) for j in range(i + 1)]
    if len(pairs) > MOST_PRODUCTS:
        pairs = [(i, i) for i in range(d)]
    return frozen(np.array(pairs, dtype=np.int64).reshape(-1, 2))


@final
@dataclass(frozen=True, eq=False)
class Basis:
    """The functions of some variables that smooth functions are made of."""

    transform: FloatArray  # centre, scale, and least and greatest z of every variable: 4 × variables
    is_rich: bool  # whether it has all functions, or those that few rows can tell apart

    @cached_property
    def arrays(self) -> BasisArrays:
        """What compiled code needs of it."""
        d = self.transform.shape[1]
        return frozen(self.transform), products(d), multi_indices(d, self.is_rich)

    @cached_property
    def size(self) -> int:
        """How many functions there are."""
        return 1 + sum(len(each) for each in (self.transform.T, *self.arrays[1:]))

    @property
    def penalties(self) -> FloatArray:
        """What the squares of all coefficients are multiplied by, for each of `PENALTIES`."""
        _, pairs, indices = self.arrays
        fixed = np.r_[FREE[0], np.full(self.transform.shape[1], FREE[1])]
        varying = np.r_[np.full(len(pairs), OF_PRODUCTS), (indices**2).sum(axis=1).astype(np.float64) ** 2]
        return frozen(np.stack([np.r_[fixed, weight * varying] for weight in PENALTIES]))

    def features(self, columns: FloatArray) -> FloatArray:
        """Return the functions of variables × rows: functions × rows."""
        out = np.empty((self.size, columns.shape[1]))
        write_features(frozen(columns), 0, columns.shape[1], self.arrays, out)
        return out


@compiled()
def write_features(columns: FloatArray, first: int, width: int, basis: BasisArrays, out: FloatArray) -> None:
    """Put the functions of some rows, functions × rows; only the first columns are used."""
    transform, pairs, indices = basis
    d = transform.shape[1]
    most = 0
    for k in range(len(indices)):
        for j in range(d):
            most = max(most, indices[k, j])
    cosines = np.empty((d, most + 1, width))
    for r in range(width):
        out[0, r] = 1.0
    for j in range(d):
        centre, scale, low, high = transform[0, j], transform[1, j], transform[2, j], transform[3, j]
        for r in range(width):
            z = min(max((columns[j, first + r] - centre) / scale, low), high)
            out[1 + j, r] = z
            cosines[j, 0, r] = 1.0
            cosines[j, 1, r] = z / math.sqrt(z * z + HALF_WIDTH * HALF_WIDTH)
        for k in range(2, most + 1):
            for r in range(width):
                cosines[j, k, r] = 2.0 * cosines[j, 1, r] * cosines[j, k - 1, r] - cosines[j, k - 2, r]
    place = 1 + d
    for p in range(len(pairs)):
        for r in range(width):
            out[place, r] = out[1 + pairs[p, 0], r] * out[1 + pairs[p, 1], r]
        place += 1
    for k in range(len(indices)):
        begun = False
        for j in range(d):
            index = indices[k, j]
            if index > 0 and begun:
                for r in range(width):
                    out[place, r] *= math.sqrt(2.0) * cosines[j, index, r]
            elif index > 0:
                begun = True
                for r in range(width):
                    out[place, r] = math.sqrt(2.0) * cosines[j, index, r]
        place += 1


@compiled(fastmath=REORDER)
def add_gram(features: FloatArray, width: int, gram: FloatArray) -> None:
    """Add the products of all functions, in the lower half, two by two."""
    size = len(features)
    for i in range(0, size - 1, 2):
        for j in range(0, i + 1, 2):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for r in range(width):
                a += features[i, r] * features[j, r]
                b += features[i, r] * features[j + 1, r]
                c += features[i + 1, r] * features[j, r]
                d += features[i + 1, r] * features[j + 1, r]
            gram[i, j] += a
            gram[i + 1, j] += c
            gram[i + 1, j + 1] += d
            if j < i:
                gram[i, j + 1] += b
    if size % 2:
        for j in range(size):
            a = 0.0
            for r in range(width):
                a += features[size - 1, r] * features[j, r]
            gram[size - 1, j] += a


@compiled(fastmath=REORDER)
def add_right(features: FloatArray, width: int, values: FloatArray, right: FloatArray) -> None:
    """Add the products of all functions with some values, functions × values."""
    for t in range(len(values)):
        for i in range(len(features)):
            total = 0.0
            for r in range(width):
                total += features[i, r] * values[t, r]
            right[i, t] += total


@compiled(fastmath=REORDER)
def write_means(features: FloatArray, width: int, coefficients: FloatArray, out: FloatArray) -> None:
    """Put smooth functions, given by coefficients × targets, of some rows: targets × rows."""
    for t in range(len(out)):
        for r in range(width):
            out[t, r] = 0.0
        for i in range(len(features)):
            b = coefficients[i, t]
            for r in range(width):
                out[t, r] += b * features[i, r]


@compiled()
def write_near_features(
    columns: FloatArray, first: int, width: int, basis: BasisArrays, out: FloatArray
) -> None:
    """Put the functions of some rows, but zeros where a variable is out of bounds: nothing is fitted."""
    transform = basis[0]
    write_features(columns, first, width, basis, out)
    for j in range(transform.shape[1]):
        for r in range(width):
            z = (columns[j, first + r] - transform[0, j]) / transform[1, j]
            if not transform[2, j] <= z <= transform[3, j]:
                for i in range(len(out)):
                    out[i, r] = 0.0


@final
class RidgeFolds:
    """Penalised least squares in a cross-validation: prepared for some variables, asked about many targets.

    Parameters
    ----------
    grams
        Products of all functions in every fold, the lower halves: folds × functions × functions.
    penalties
        What the squares of coefficients are multiplied by: penalties × functions.

    Attributes
    ----------
    counts
        How many rows of every fold are fitted.
    """

    def __init__(self, grams: FloatArray, penalties: FloatArray) -> None:
        self._grams = grams
        self.counts = grams[:, 0, 0].copy()
        self._lower = _factorise_all(grams, penalties)

    def fit(self, right: FloatArray, squares: FloatArray) -> RidgeFit:
        """Fit targets, each with the penalty that predicts its left-out folds best.

        The errors of folds count by their logarithms, so that one odd fold does not decide.

        Parameters
        ----------
        right
            Products of functions and targets in every fold: folds × functions × targets.
        squares
            Sums of the targets' squares: folds × targets.
        """
        coefficients, errors = _solve_all(self._lower, self._grams, right, squares)
        least = LEAST_SHARE * np.maximum(squares, 1e-300)
        some = np.maximum(self.counts, 1.0)
        logs = np.log(np.maximum(errors, least) / some[:, None])
        chosen = np.argmin(add_folds(self.counts[:, None, None] * logs.swapaxes(0, 1)), axis=0)
        every = np.arange(right.shape[2])
        best = np.moveaxis(coefficients[chosen, :, :, every], 0, 2)
        return RidgeFit(best, np.maximum(errors, least)[chosen, :, every].T)


class RidgeFit(NamedTuple):
    """Smooth functions that were fitted in a cross-validation."""

    coefficients: (
        FloatArray  # fitted to all folds but each and, last, to all: folds + 1 × functions × targets
    )
    errors: FloatArray  # squared errors of the left-out folds: folds × targets


@compiled()
def _factorise_all(grams: FloatArray, penalties: FloatArray) -> FloatArray:
    """Return the factors of all folds but each and, last, of all, for every penalty."""
    folds, size = grams.shape[:2]
    lower, total = np.empty((len(penalties), folds + 1, size, size)), np.zeros((size, size))
    for fold in range(folds):
        for i in range(size):
            for j in range(i + 1):
                total[i, j] += grams[fold, i, j]
    for number in range(len(penalties)):
        for fold in range(folds + 1):
            matrix = lower[number, fold]
            for i in range(size):
                for j in range(i + 1):
                    matrix[i, j] = total[i, j] - (grams[fold, i, j] if fold < folds else 0.0)
                matrix[i, i] += penalties[number, i]
            _factorise(matrix)
    return lower


@compiled()
def _solve_all(
    lower: FloatArray, grams: FloatArray, right: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients fitted to all folds but each, and last to all, and the errors of left-out folds."""
    folds, size, targets = right.shape
    coefficients = np.empty((len(lower), folds + 1, size, targets))
    errors = np.empty((len(lower), folds, targets))
    total, own, found = np.empty(size), np.empty(size), np.empty(size)
    for t in range(targets):  # one after the other: what is added up is contiguous then
        total[:] = 0.0
        for fold in range(folds):
            for i in range(size):
                total[i] += right[fold, i, t]
        for number in range(len(lower)):
            for fold in range(folds + 1):
                for i in range(size):
                    own[i] = right[fold, i, t] if fold < folds else 0.0
                    found[i] = total[i] - own[i]
                solve(lower[number, fold], found)
                for i in range(size):
                    coefficients[number, fold, i, t] = found[i]
                if fold < folds:
                    errors[number, fold, t] = _squared_error(grams[fold], own, squares[fold, t], found)
    return coefficients, errors


@compiled(fastmath=REORDER)
def _factorise(matrix: FloatArray) -> None:
    """Replace the lower half of a positive definite matrix by its Cholesky factor.

    Column by column; four rows at a time share what they are multiplied by.
    """
    size = len(matrix)
    for j in range(size):
        total = 0.0
        for k in range(j):
            total += matrix[j, k] * matrix[j, k]
        # What rounding leaves of a function that others determine is not zero.
        matrix[j, j] = math.sqrt(max(matrix[j, j] - total, 1e-12 * abs(matrix[j, j]) + 1e-300))
        inverse = 1.0 / matrix[j, j]
        i = j + 1
        while i + 3 < size:
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                a += matrix[i, k] * matrix[j, k]
                b += matrix[i + 1, k] * matrix[j, k]
                c += matrix[i + 2, k] * matrix[j, k]
                d += matrix[i + 3, k] * matrix[j, k]
            matrix[i, j] = (matrix[i, j] - a) * inverse
            matrix[i + 1, j] = (matrix[i + 1, j] - b) * inverse
            matrix[i + 2, j] = (matrix[i + 2, j] - c) * inverse
            matrix[i + 3, j] = (matrix[i + 3, j] - d) * inverse
            i += 4
        while i < size:
            total = 0.0
            for k in range(j):
                total += matrix[i, k] * matrix[j, k]
            matrix[i, j] = (matrix[i, j] - total) * inverse
            i += 1


@compiled(fastmath=REORDER)
def solve(lower: FloatArray, right: FloatArray) -> None:
    """Replace the right side by the solution z of lower lowerᵀ z = right."""
    size = len(right)
    for i in range(size):
        total = 0.0
        for k in range(i):
            total += lower[i, k] * right[k]
        right[i] = (right[i] - total) / lower[i, i]
    for i in range(size - 1, -1, -1):
        right[i] /= lower[i, i]
        solved = right[i]
        for k in range(i):
            right[k] -= lower[i, k] * solved


@compiled(fastmath=REORDER)
def _squared_error(gram: FloatArray, right: FloatArray, squares: float, coefficients: FloatArray) -> float:
    """Return the squared error of a function in a fold."""
    total = squares
    for i in range(len(coefficients)):
        product = 0.0
        for j in range(i):
            product += gram[i, j] * coefficients[j]
        total += coefficients[i] * (2.0 * (product - right[i]) + gram[i, i] * coefficients[i])
    return total


def add_folds(by_fold: FloatArray) -> FloatArray:
    """Return the sum along the first axis, fold after fold: the same bits however many targets there are."""
    return np.asarray(functools.reduce(np.add, by_fold))


def leave_one_out_totals(by_fold: FloatArray) -> FloatArray:
    """Return the sums over all folds but each, along the first axis; over all if there is one fold."""
    total = add_folds(by_fold)
    return by_fold if len(by_fold) == 1 else total - by_fold
