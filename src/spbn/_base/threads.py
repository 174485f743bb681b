"""Threads for loops that release the interpreter's lock.

numba's own parallel loops end with a barrier at which threads wait busily: on a
machine that is shared with other work, each barrier costs a slice of the scheduler's time, some
10 ms. They also take several times as long to compile. The threads here sleep while there
is nothing to do, and start within 0.1 ms.

A caller takes part in its own work, and other threads take what is left: so work gets done
however busy the other threads are, any number of callers may come at the same time, and a task may
itself have work to share. The threads are started when they are first needed, and live until the
process ends. After a fork the child starts its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np

from spbn._base.arrays import IntArray

SHARES_A_THREAD = 2  # so that the others do not wait long for one that is held up


@dataclass(frozen=True)
class Threads:
    """How many threads may work at the same time, including the caller's own."""

    count: int

    def shares(self, items: int) -> IntArray:
        """Cut 0 to `items` into shares of about the same size."""
        shares = SHARES_A_THREAD * self.count if self.count > 1 else 1
        return np.unique(np.linspace(0, items, shares + 1).astype(np.int64))

    def run(self, function: Callable[..., object], tasks: Sequence[tuple[Any, ...]]) -> None:
        """Call the function with every tuple of arguments, and wait for all calls to end."""
        waiting = deque(tasks)

        def work() -> None:
            try:
                while True:
                    try:
                        task = waiting.popleft()
                    except IndexError:
                        return
                    function(*task)
            finally:  # after an error or an interrupt, no thread starts anything new
                waiting.clear()

        helpers = _helpers(work, min(self.count, len(tasks)) - 1)
        try:
            work()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            for helper in begun:
                helper.exception()  # wait: what the tasks write to is the caller's again when this returns
        for helper in begun:
            helper.result()


def available_threads(count: int | None = None) -> Threads:
    """Return some threads: as many as numba is set to use, unless a number is given."""
    return Threads(count or numba.get_num_threads())


def _helpers(work: Callable[[], None], count: int) -> list[Future[None]]:
    """Have this many threads take part in some work, as soon as they are free."""
    helpers: list[Future[None]] = []
    try:
        for _ in range(count):
            helpers.append(_pool(count).submit(work))
    except RuntimeError:
        pass  # the interpreter is shutting down, or no thread can be started: the caller does it all
    return helpers


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="spbn")


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_pool.cache_clear)
