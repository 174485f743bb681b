"""How hot loops are compiled: one decorator, so that every kernel is cached and runs the same way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def launching_for(tasks: int) -> Iterator[None]:
    """Hold `launching` for a call that has so many tasks, and start no thread that would have none.

    On a busy machine, waiting for an idle thread takes longer than a small task.
    """
    with launching:
        threads = numba.get_num_threads()
        numba.set_num_threads(max(1, min(tasks, threads)))
        try:
            yield
        finally:
            numba.set_num_threads(threads)
