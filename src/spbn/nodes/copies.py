"""Kernels that sit on given rows: found by value, so that rows can be judged without themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from spbn._base.arrays import FloatArray, IntArray

NONE: IntArray = np.empty(0, dtype=np.int64)


@runtime_checkable
class KeepsRows(Protocol):
    """A density with a kernel on every training row."""

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        """Return, for every row of parents and node (NaN is unknown), the kernels that agree with it.

        None for a row of which nothing is known.
        """

    def without(self, kernels: IntArray) -> KeepsRows:
        """Return the density without some of its kernels; with all of them if none would be left."""


def agreeing(points: FloatArray, rows: FloatArray) -> list[IntArray | None]:
    """Return, for every row, the points that have the same values wherever the row has one.

    Both are variables × rows. None for a row that has no values.
    """
    known = ~np.isnan(rows)
    out: list[IntArray | None] = [None] * rows.shape[1]
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if not pattern.any():
            continue
        places: dict[bytes, list[int]] = {}
        for place, point in enumerate(_keys(points[pattern])):
            places.setdefault(point, []).append(place)
        chosen = np.flatnonzero(which.ravel() == number)
        for row, key in zip(chosen.tolist(), _keys(rows[np.ix_(pattern, chosen)]), strict=True):
            out[row] = np.array(places.get(key, NONE), dtype=np.int64)
    return out


def joined(parts: Sequence[list[IntArray | None]], sizes: Sequence[int]) -> list[IntArray | None]:
    """Number the kernels of several densities one after the other."""
    firsts = np.cumsum([0, *sizes[:-1]]).tolist()
    out: list[IntArray | None] = []
    for found in zip(*parts, strict=True):
        there = [first + kernels for first, kernels in zip(firsts, found, strict=True) if kernels is not None]
        out.append(np.concatenate(there) if there else None)
    return out


def _keys(columns: FloatArray) -> list[bytes]:
    rows = np.ascontiguousarray(columns.T) + 0.0  # -0.0 and 0.0 are the same number
    return [row.tobytes() for row in rows]
