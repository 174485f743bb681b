"""How hot loops are compiled: one decorator, so that every kernel is cached and runs the same way.

Most of the first minute with the package is spent compiling, so there are some rules:

- A function is compiled again for every combination of types, and to numba a read-only array, one in
  another memory order and a constant in the code all have different types. What enters compiled code from
  outside goes through `arrays.frozen`.
- Arrays are allocated outside, where that costs nothing, and parallel loops are run by `threads`.
- A function called by another is optimised twice, alone and again where it is called.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core import event as untyped_events

from spbn._base.arrays import IntArray

event: Any = untyped_events  # mypy would complain about every call

#: Fused multiply-add, and no NaN or infinity inside kernels. Sums keep their order.
CONTRACT = frozenset({"contract", "nnan", "ninf", "nsz"})
#: Also lets a sum be split over vector lanes.
REORDER = CONTRACT | {"reassoc"}


def compiled(*, fastmath: frozenset[str] = frozenset()) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, and keep the machine code on disk.

    numba looks for a folder that it can write to: ``NUMBA_CACHE_DIR``, next to
    the source, then the user's cache. Where it finds none, the code is compiled
    again in every process.

    Division by zero gives an infinity or NaN, as in NumPy but without a warning.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {
            "nogil": True,
            "fastmath": set(fastmath) or False,
            "error_model": "numpy",
        }
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder to cache in
            return numba.njit(**options)(function)

    return decorate


def compiled_address(
    signature: Any, function: Callable[..., Any], *, fastmath: frozenset[str] = frozenset()
) -> int:
    """Compile a function for one signature now, and return its address: compiled code may call it there.

    The machine code is kept on disk like that of `compiled`, and in memory as long as the process lives.
    """
    options: dict[str, Any] = {"fastmath": set(fastmath) or False, "error_model": "numpy"}
    with _announced({"dispatcher": function, "args": signature.args}):
        try:
            callback: Any = numba.cfunc(signature, cache=True, **options)(function)
        except RuntimeError:  # no folder to cache in
            callback = numba.cfunc(signature, **options)(function)
    _kept.append(callback)
    address: int = callback.address
    return address


_kept: list[Any] = []


@contextmanager
def _announced(details: dict[str, Any]) -> Iterator[None]:
    """Notify numba's listeners of a compilation, as numba itself does for all but callbacks.

    But not if the function is found on disk: then no compiler pass is run.
    """
    passes = _Passes(details)
    with event.install_listener("numba:run_pass", passes):
        try:
            yield
        finally:
            if passes.begun:
                event.end_event("numba:compile", data=details)


class _Passes(event.Listener):  # type: ignore[misc]  # numba is untyped
    def __init__(self, details: dict[str, Any]) -> None:
        self._details = details
        self.begun = False

    def on_start(self, run_pass: Any) -> None:
        """Announce the compilation when its first pass begins."""
        if not self.begun:
            self.begun = True
            event.start_event("numba:compile", data=self._details)

    def on_end(self, run_pass: Any) -> None:
        """There may be another one."""


@contextmanager
def watching_compilation(on_change: Callable[[bool], None]) -> Iterator[None]:
    """Call a function with True whenever compiling begins, and with False when it is over.

    The first run on a machine spends most of its time compiling, and progress lines should say so.
    Functions found in the cache on disk are not compiled.
    """
    with event.install_listener("numba:compile", _Watcher(on_change)):
        yield


class _Watcher(event.Listener):  # type: ignore[misc]  # numba is untyped
    """Tells when the first of several nested compilations begins, and when the last has ended."""

    def __init__(self, on_change: Callable[[bool], None]) -> None:
        self._on_change = on_change
        self._under_way = 0
        self._lock = threading.Lock()

    def on_start(self, compilation: Any) -> None:
        """Count one more."""
        self._count(1)

    def on_end(self, compilation: Any) -> None:
        """Count one less."""
        self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            before, self._under_way = self._under_way, self._under_way + change
            if (before > 0) != (self._under_way > 0):
                self._on_change(self._under_way > 0)


# ----------------------------------------------------------------------------------------------------
# Threads for loops that release the interpreter's lock.
#
# numba's own parallel loops end with a barrier at which threads wait busily: on a
# machine that is shared with other work, each barrier costs a slice of the scheduler's time, some
# 10 ms. They also take several times as long to compile. The threads here sleep while there
# is nothing to do, and start within 0.1 ms.
#
# A caller takes part in its own work, and other threads take what is left: so work gets done
# however busy the other threads are, any number of callers may come at the same time, and a task may
# itself have work to share. The threads are started when they are first needed, and live until the
# process ends. After a fork the child starts its own.


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
