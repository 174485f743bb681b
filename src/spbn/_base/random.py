"""Random generators, and checks of how much to draw from them."""

from __future__ import annotations

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError

Seed = int | np.random.Generator | None


def generator(seed: Seed) -> np.random.Generator:
    """Return the random generator for a seed."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(seed)
    raise ArgumentError(f"seed must be an int, 0 or more, or a numpy.random.Generator. Got {seed!r} instead.")


def same_uniforms(shape: int | tuple[int, ...]) -> FloatArray:
    """Return uniform random numbers, always the same ones, but not those of any seed that a user may give.

    Data that were simulated with the same numbers would not be independent of these.
    """
    return np.random.default_rng((0, 1963)).random(shape)


def require_count(n: object) -> None:
    """Refuse anything that is not a number of rows to draw."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ArgumentError(f"the number of samples must be a whole number, 0 or more. Got {n!r} instead.")
