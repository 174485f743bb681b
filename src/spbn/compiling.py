"""How hot loops are compiled: one decorator, so that every kernel is cached and runs the same way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numba

#: Fused multiply-add, and no NaN or infinity inside of kernels. Sums keep their order.
CONTRACT = frozenset({"contract", "nnan", "ninf", "nsz"})
#: Also lets a sum be split over vector lanes.
REORDER = CONTRACT | {"reassoc"}


def compiled(
    *, parallel: bool = False, fastmath: frozenset[str] = frozenset()
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, and keep the machine code on disk.

    numba looks for a folder that it can write to: ``NUMBA_CACHE_DIR``, beside
    the source, then the user's cache. Where it finds none, the code is compiled
    again in every process.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {"parallel": parallel, "nogil": True, "fastmath": set(fastmath) or False}
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder to cache in
            return numba.njit(**options)(function)

    return decorate


#: Held around every call of a parallel function: numba's simplest thread pool takes one caller at a time.
launching = threading.Lock()
