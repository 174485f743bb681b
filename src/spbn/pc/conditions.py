"""The conditions under which PC tests a pair: sets of neighbours of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from spbn.numerics.arrays import BoolArray, IntArray
from spbn.numerics.compiling import compiled

#: More conditions than will ever be needed; larger counts would overflow.
ENDLESS = 1 << 48


@dataclass(frozen=True, eq=False)
class Conditions:
    """Every set of neighbours of x, then every further one of y, that has a given size.

    There may be very many, and only a few are needed: they are numbered, and made
    on demand.
    """

    adjacent: BoolArray
    x: int
    y: int
    size: int

    @cached_property
    def _pools(self) -> tuple[IntArray, IntArray, int]:
        """The neighbours of x, those of y with the common ones last, and how many are common."""
        of_x, of_y = self.adjacent[self.x].copy(), self.adjacent[self.y].copy()
        of_x[self.y] = of_y[self.x] = False
        (in_x,), (in_y_alone,), (common,) = of_x.nonzero(), (of_y & ~of_x).nonzero(), (of_x & of_y).nonzero()
        return in_x, np.concatenate([in_y_alone, common]), len(common)

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """How many conditions come from x, and how many more from y.

        In lexicographic order, the sets of common neighbours alone are the last
        of y: all those before them are new.
        """
        of_x, of_y, common = self._pools
        return comb(len(of_x), self.size), comb(len(of_y), self.size) - comb(common, self.size)

    @cached_property
    def count(self) -> int:
        """How many conditions there are."""
        return sum(self._counts)

    def take(self, start: int, stop: int) -> IntArray:
        """Return the conditions with these numbers, one per row, each in ascending order."""
        of_x, of_y, _ = self._pools
        first, further = self._counts
        parts = [
            of_x[_combinations(len(of_x), self.size, min(start, first), min(stop, first))],
            of_y[
                _combinations(
                    len(of_y),
                    self.size,
                    min(max(start - first, 0), further),
                    min(max(stop - first, 0), further),
                )
            ],
        ]
        return np.sort(np.concatenate(parts), axis=1)


@compiled()
def _choose(n: int, size: int) -> int:
    """Return how many combinations there are, at most `ENDLESS`."""
    size = min(size, n - size)
    if size < 0:
        return 0
    count = 1
    for i in range(size):
        count = count * (n - i) // (i + 1)
        if count > ENDLESS:
            return ENDLESS
    return count


@compiled()
def _combinations(n: int, size: int, start: int, stop: int) -> IntArray:
    """Return combinations of `size` of the numbers below n: from start to stop, in lexicographic order."""
    rows = np.empty((stop - start, size), dtype=np.int64)
    if stop == start or size == 0:
        return rows
    # Find the first one: the combinations that share a prefix are counted, not visited.
    skip, candidate = start, 0
    for k in range(size):
        while True:
            sharing = _choose(n - 1 - candidate, size - 1 - k)
            if skip < sharing:
                break
            skip -= sharing
            candidate += 1
        rows[0, k] = candidate
        candidate += 1
    for row in range(1, stop - start):
        k = size - 1
        while rows[row - 1, k] == n - size + k:
            k -= 1
        rows[row, :k] = rows[row - 1, :k]
        rows[row, k] = rows[row - 1, k] + 1
        for i in range(k + 1, size):
            rows[row, i] = rows[row, i - 1] + 1
    return rows
