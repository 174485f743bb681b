"""The innermost loop: a block of training rows is added to the sums of some queries.

To be fast, it has to know the dimension when it is compiled; the code around it does not. So this loop alone
is compiled for every dimension that is needed, on plain memory, and the rest is compiled once and calls it
by its address. That cuts compiling to a quarter.

There are two such loops: for kernels of one scale, and for those of several, all from one exponential
(`multiscale`).

Workspace
---------
Everything that a loop works on is in one array of rows of `WIDTH` numbers: d rows of whitened queries, d rows
of whitened training rows, the sums of the queries (one row, or one for every scale), and scratch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spbn._base.arrays import LOG_2, FloatArray
from spbn._base.jit import CONTRACT, REORDER, compiled, compiled_address

BLOCK = 256  # training rows of a block: with the queries, 32 KB in 8 dimensions
TILE = 256  # queries at most
LANES = 4  # queries that share a load of a training row; up to that many extra ones are computed
UNROLLED = 5  # dimensions up to which the loop is compiled for each
WIDTH = BLOCK + LANES
TO_BASE_2 = math.sqrt(0.5 / LOG_2)  # exp(-|z|²/2) = 2^-|z·TO_BASE_2|²
LEAST = 2.0**-15.9  # what the widest kernel is raised to, before its powers: t⁶⁴ is then a normal number

#: Results below 2^-LIMIT come out as 2^-LIMIT: callers must treat sums that small as underflow.
LIMIT = 1020.0
_ROUND = 1.5 * 2.0**52

# Minimax polynomial of 2^r on [-1/2, 1/2], relative error 2.2e-16 (Remez, computed with 50 digits).
_C0 = 1.0
_C1 = 0.6931471805599497
_C2 = 0.24022650695908768
_C3 = 0.05550410866445883
_C4 = 0.00961812910803459
_C5 = 0.0013333558228561476
_C6 = 0.00015403529961135955
_C7 = 1.5252658116561384e-05
_C8 = 1.3215662831846104e-06
_C9 = 1.0208537904552164e-07
_C10 = 7.037279530582804e-09

_NUMBERS: Any = types.CPointer(types.float64)  # type: ignore[no-untyped-call]
_SIGNATURE = types.void(_NUMBERS, types.int64, types.int64, types.int64)


def workspace(d: int, *, sums: int = 1) -> FloatArray:
    """Return an empty workspace."""
    return np.zeros((2 * d + sums + 1, WIDTH))


@cache
def adder(d: int, sums: int = 1) -> int:
    """Return the address of the loop for a dimension, to pass to `add_block`.

    The loop with four sums adds t⁶⁴, t¹⁶, t⁴ and t to them, with t = 2^-|distance|².
    """
    loops = (_unrolled, _any_dimension) if sums == 1 else (_unrolled_scales, _any_dimension_scales)
    loop = loops[0]((0,) * d) if d <= UNROLLED else loops[1]
    return compiled_address(_SIGNATURE, loop, fastmath=REORDER)


@intrinsic
def add_block(typing_context: Any, address: Any, work: Any, d: Any, width: Any, count: Any) -> Any:
    """Add the first `width` training rows of a workspace to the sums of the first `count` queries."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        location, array, *numbers = arguments
        data = context.make_array(signature.args[1])(context, builder, array).data
        word = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [ir.DoubleType().as_pointer(), word, word, word])
        builder.call(builder.inttoptr(location, function.as_pointer()), [data, *numbers])
        return context.get_dummy_value()

    whole = types.int64
    return types.none(whole, work, whole, whole, whole), generate


def _unrolled(dimensions: tuple[int, ...]) -> Callable[..., None]:
    # The dimension is the length of a tuple, so the compiler knows it.
    def add(work: Any, d: int, width: int, count: int) -> None:
        block, sums = len(dimensions) * WIDTH, 2 * len(dimensions) * WIDTH
        for i in range(0, count, LANES):
            s0 = s1 = s2 = s3 = 0.0
            for j in range(width):
                q0 = q1 = q2 = q3 = 0.0
                for k in range(len(dimensions)):
                    y = work[block + k * WIDTH + j]
                    z0 = work[k * WIDTH + i] - y
                    z1 = work[k * WIDTH + i + 1] - y
                    z2 = work[k * WIDTH + i + 2] - y
                    z3 = work[k * WIDTH + i + 3] - y
                    q0 += z0 * z0
                    q1 += z1 * z1
                    q2 += z2 * z2
                    q3 += z3 * z3
                s0 += exp2_negative(q0)
                s1 += exp2_negative(q1)
                s2 += exp2_negative(q2)
                s3 += exp2_negative(q3)
            work[sums + i] += s0
            work[sums + i + 1] += s1
            work[sums + i + 2] += s2
            work[sums + i + 3] += s3

    return add


def _any_dimension(work: Any, d: int, width: int, count: int) -> None:
    sums, squares = 2 * d * WIDTH, (2 * d + 1) * WIDTH
    for i in range(count):
        _square_distances(work, d, width, i, squares)
        total = 0.0
        for j in range(width):
            total += exp2_negative(work[squares + j])
        work[sums + i] += total


def _unrolled_scales(dimensions: tuple[int, ...]) -> Callable[..., None]:
    # Two queries at a time: one chain of operations runs while the other waits.
    def add(work: Any, d: int, width: int, count: int) -> None:
        block, sums = len(dimensions) * WIDTH, 2 * len(dimensions) * WIDTH
        for i in range(0, count, 2):
            s0 = s1 = s2 = s3 = 0.0
            r0 = r1 = r2 = r3 = 0.0
            for j in range(width):
                p = q = 0.0
                for k in range(len(dimensions)):
                    y = work[block + k * WIDTH + j]
                    x = work[k * WIDTH + i] - y
                    z = work[k * WIDTH + i + 1] - y
                    p += x * x
                    q += z * z
                t, u = exp2_negative(p), exp2_negative(q)
                s3 += t
                r3 += u
                t = t if t > LEAST else LEAST
                u = u if u > LEAST else LEAST
                t, u = t * t, u * u
                t, u = t * t, u * u
                s2 += t
                r2 += u
                t, u = t * t, u * u
                t, u = t * t, u * u
                s1 += t
                r1 += u
                t, u = t * t, u * u
                s0 += t * t
                r0 += u * u
            work[sums + i] += s0
            work[sums + WIDTH + i] += s1
            work[sums + 2 * WIDTH + i] += s2
            work[sums + 3 * WIDTH + i] += s3
            work[sums + i + 1] += r0
            work[sums + WIDTH + i + 1] += r1
            work[sums + 2 * WIDTH + i + 1] += r2
            work[sums + 3 * WIDTH + i + 1] += r3

    return add


def _any_dimension_scales(work: Any, d: int, width: int, count: int) -> None:
    sums, squares = 2 * d * WIDTH, (2 * d + 4) * WIDTH
    for i in range(count):
        _square_distances(work, d, width, i, squares)
        s0 = s1 = s2 = s3 = 0.0
        for j in range(width):
            t = exp2_negative(work[squares + j])
            s3 += t
            t = t if t > LEAST else LEAST
            t = t * t
            t = t * t
            s2 += t
            t = t * t
            t = t * t
            s1 += t
            t = t * t
            s0 += t * t
        work[sums + i] += s0
        work[sums + WIDTH + i] += s1
        work[sums + 2 * WIDTH + i] += s2
        work[sums + 3 * WIDTH + i] += s3


@compiled(fastmath=REORDER)
def _square_distances(work: Any, d: int, width: int, i: int, squares: int) -> None:
    """Put the squared distances of query i from all training rows into scratch, from `squares` on."""
    for j in range(width):
        work[squares + j] = 0.0
    for k in range(d):
        x, block = work[k * WIDTH + i], (d + k) * WIDTH
        for j in range(width):
            z = x - work[block + j]
            work[squares + j] += z * z


@intrinsic
def _bits_of(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@compiled(fastmath=CONTRACT)  # not REORDER: it would simplify the rounding away
def exp2_negative(q: float) -> float:
    """Return 2^-q for q ≥ 0, to 4e-16 relative; 2^-LIMIT beyond the limit.

    ``math.exp`` is a call, and a loop with a call in it is not vectorised. This is a dozen multiplications
    and additions and no branch, which the compiler turns into vector instructions:

        2^-q = 2^n · 2^r,    n = round(-q),    r = -q - n in [-1/2, 1/2].

    Adding 1.5 · 2^52 rounds to an integer, which is then in the lowest bits of the sum; shifted by 52 it is
    added to the exponent of the polynomial for 2^r. In base 2 the reduction is exact, and the kernels get
    there at no cost because they scale their coordinates by √(log2(e)/2) when they whiten them.
    """
    q = q if q < LIMIT else LIMIT
    rounded = _ROUND - q
    r = (_ROUND - rounded) - q
    p = _C10
    p = p * r + _C9
    p = p * r + _C8
    p = p * r + _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * r + _C1
    p = p * r + _C0
    return _float_of(_bits_of(p) + (_bits_of(rounded) << 52))  # type: ignore[call-arg]
