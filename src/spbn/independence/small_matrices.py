"""Products and factors of small matrices, compiled.

Inside parallel loops a matrix library would start threads of its own, which
wait for each other; and its result may depend on the shape of a batch. These
make every number in one thread and in a fixed order, at some 40 billion
operations per second on one core.
"""

from __future__ import annotations

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.jit import CONTRACT, REORDER, compiled


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


@compiled(fastmath=REORDER)
def solve(factor: FloatArray, right: FloatArray) -> None:
    """Replace the right side by the solution z of factor factorᵀ z = right."""
    for i in range(len(right)):
        row, total = factor[i, :i], 0.0
        for k in range(i):
            total += row[k] * right[k]
        right[i] = (right[i] - total) / factor[i, i]
    for i in range(len(right) - 1, -1, -1):
        row, solved = factor[i, :i], right[i] / factor[i, i]
        right[i] = solved
        for k in range(i):
            right[k] -= row[k] * solved


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
