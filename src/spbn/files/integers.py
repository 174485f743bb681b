"""Columns of whole numbers, most of them small, in few bytes.

A number is written as 8 bytes, with its sign in the lowest bit, and the highest bytes of all numbers come
first, then the next ones, and so on. What is small has zeros in all but the last of these, and deflate makes
them vanish; floating-point numbers have no such bytes.

>>> import zlib
>>> import numpy as np
>>> from spbn.files.integers import from_bytes, to_bytes
>>> numbers = np.round(100 * np.random.default_rng(0).normal(size=1000))
>>> bool((from_bytes(to_bytes(numbers)) == numbers).all())
True
>>> len(zlib.compress(to_bytes(numbers))) < 1400
True
"""

from __future__ import annotations

import numpy as np

from spbn.numerics.arrays import FloatArray


def to_bytes(numbers: FloatArray) -> bytes:
    """Return the bytes of whole numbers between -2**62 and 2**62."""
    whole = numbers.astype(np.int64)
    signed = ((whole << 1) ^ (whole >> 63)).astype(">u8")
    return signed.view(np.uint8).reshape(-1, 8).T.tobytes()


def from_bytes(content: bytes) -> FloatArray:
    """Return the numbers that `to_bytes` wrote."""
    planes = np.frombuffer(content, dtype=np.uint8).reshape(8, -1)
    signed = np.ascontiguousarray(planes.T).view(">u8")[:, 0].astype(np.uint64)
    half = (signed >> np.uint64(1)).astype(np.int64)
    whole = np.where(signed & np.uint64(1), ~half, half)
    return whole.astype(np.float64)
