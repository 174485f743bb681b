"""Arrays: their types, caches of them, log-weights, and random generators."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Set
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from spbn._base.checks import is_whole
from spbn.errors import ArgumentError, argument, in_python

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

LOG_2 = math.log(2.0)
LOG_2PI = math.log(2.0 * math.pi)

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
LOG_ZERO = -1e300  # stands for -inf, which can be neither subtracted from itself nor averaged
Seed = int | np.random.Generator | None


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array if it is read-only and in C order, else a view or a copy that is.

    Compiled code has a version for every kind of array, and each takes a second to compile. What
    is only read goes through here first, so one version is enough.
    """
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def equal_fields(self: Any, other: object) -> bool:
    """Compare two values field by field: the `__eq__` of dataclasses that hold arrays."""
    pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
    return type(other) is type(self) and all(
        np.array_equal(mine, others) if isinstance(mine, np.ndarray) else mine == others
        for mine, others in pairs
    )


def forget_older_half(cache: dict[Key, Any], *, limit: int, keep: Set[Key]) -> None:
    """Make room in a cache that has grown beyond its limit."""
    if len(cache) > limit:
        for key in list(cache)[: (len(cache) + 1) // 2]:
            if key not in keep:
                del cache[key]


def remembered(cache: OrderedDict[Key, Value], key: Key, found: Callable[[], Value], *, limit: int) -> Value:
    """Return the value of a key, found now if it is new; of the others, those used last are kept."""
    if key not in cache:
        cache[key] = found()
        if len(cache) > limit:
            cache.popitem(last=False)
    cache.move_to_end(key)
    return cache[key]


def finite_log_density(values: FloatArray) -> FloatArray:
    """Return log-densities that can be added and compared: `LOG_ZERO` where they are -inf."""
    return np.clip(values, LOG_ZERO, -LOG_ZERO)


def relative_weights(log_weights: FloatArray, *, axis: int = -1) -> FloatArray:
    """Return weights relative to the greatest along an axis; all are 0 where all logarithms are -inf."""
    return np.exp(log_weights - greatest(log_weights, axis=axis))


def greatest(log_weights: FloatArray, *, axis: int = -1) -> FloatArray:
    """Return the greatest logarithm along an axis, which is kept; a finite number, even if all are -inf."""
    return np.maximum(log_weights.max(axis=axis, keepdims=True), LOG_ZERO)


def generator(seed: Seed) -> np.random.Generator:
    """Return the random generator for a seed."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if is_whole(seed, 0):
        return np.random.default_rng(seed)
    requirement = in_python(
        "an int, 0 or more, or a numpy.random.Generator", elsewhere="a whole number, 0 or more"
    )
    raise ArgumentError(f"{argument('seed')} must be {requirement}. Got {seed!r} instead.")


def same_uniforms(shape: int | tuple[int, ...]) -> FloatArray:
    """Return uniform random numbers, always the same ones, but not those of any seed that a user may give.

    Data that were simulated with the same numbers would not be independent of these.
    """
    return np.random.default_rng((0, 1963)).random(shape)


def require_count(n: object) -> None:
    """Refuse anything that is not a number of rows to draw."""
    if not is_whole(n, 0):
        raise ArgumentError(
            f"the number of samples must be a whole number, 0 or more. Got {n!r} instead.", argument="n"
        )
