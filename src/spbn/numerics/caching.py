"""Caches that know their limits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Set
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


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
