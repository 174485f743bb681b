"""Caches that know their limits."""

from __future__ import annotations

from collections.abc import Hashable, Set
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)


def forget_older_half(cache: dict[Key, Any], *, limit: int, keep: Set[Key]) -> None:
    """Make room in a cache that has grown beyond its limit."""
    if len(cache) > limit:
        for key in list(cache)[: (len(cache) + 1) // 2]:
            if key not in keep:
                del cache[key]
