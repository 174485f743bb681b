"""2 to the power of a negative number, in a form that the compiler turns into vector instructions.

``math.exp`` is a call, and a loop with a call in it is not vectorised. This is
a dozen multiplications and additions and no branch:

    2^-q = 2^n · 2^r,    n = round(-q),    r = -q - n in [-1/2, 1/2].

Adding 1.5 · 2^52 rounds to an integer, which is then in the lowest bits of
the sum; shifted by 52 it is added to the exponent of the polynomial for 2^r.
In base 2 the reduction is exact, and the kernels get there at no cost because
they scale their coordinates by √(log2(e)/2) when they whiten them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spbn.numerics.compiling import CONTRACT, compiled

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
    """Return 2^-q for q ≥ 0, to 4e-16 relative; 2^-LIMIT beyond the limit."""
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
