"""How hot loops are compiled, and run in threads: one way for all, so that every kernel is cached.

Most of the first minute with the package is spent compiling, so there are some rules:

- A function is compiled again for every combination of types, and to numba a read-only array, one in
  another memory order and a constant in the code all have different types. What enters compiled code from
  outside goes through `arrays.frozen`.
- Arrays are allocated outside, where that costs nothing, and parallel loops are run by `run_tasks`.
- A function called by another is optimised twice, alone and again where it is called.

Compiled loops release the interpreter's lock, and threads share them. numba's own parallel loops end with a
barrier at which threads wait busily: on a machine that is shared with other work, each barrier costs a slice
of the scheduler's time, some 10 ms. They also take several times as long to compile. The threads here sleep
while there is nothing to do, and start within 0.1 ms.

A caller takes part in its own work, and other threads take what is left: so work gets done
however busy the other threads are, any number of callers may come at the same time, and a task may
itself have work to share. The threads are started when they are first needed, and live until the
process ends. After a fork the child starts its own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial, wraps
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
SHARES_A_THREAD = 2  # so that the others do not wait long for one that is held up


def compiled(*, fastmath: frozenset[str] = frozenset()) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, and keep the machine code on disk.

    numba looks for a folder that it can write to: ``NUMBA_CACHE_DIR``, next to the source, then the user's
    cache. Where it finds none, the code is compiled again in every process.

    Division by zero gives an infinity or NaN, as in NumPy but without a warning.
    """
    return partial(_cached, partial(numba.njit, nogil=True), fastmath)


def by_name(function: Any) -> Callable[..., Any]:
    """Make a Python function of a compiled one, for work that is sent to other processes.

    What is sent of it is its name, and they find its machine code on disk. A compiled function would be sent
    as it is, and compiled again by each of them.
    """

    @wraps(function.py_func)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


def compiled_address(
    signature: Any, function: Callable[..., Any], *, fastmath: frozenset[str] = frozenset()
) -> int:
    """Compile a function for one signature now, and return its address: compiled code may call it there.

    The machine code is kept on disk like that of `compiled`, and in memory as long as the process lives.
    """
    with _announced({"dispatcher": function, "args": signature.args}):
        callback = _cached(partial(numba.cfunc, signature), fastmath, function)
    _kept.append(callback)
    return callback.address


_kept: list[Any] = []


def _cached(decorator: Callable[..., Any], fastmath: frozenset[str], function: Callable[..., Any]) -> Any:
    options: dict[str, Any] = {"fastmath": set(fastmath) or False, "error_model": "numpy"}
    try:
        return decorator(cache=True, **options)(function)
    except RuntimeError:  # no folder to cache in
        return decorator(**options)(function)


class _Listener(event.Listener):  # type: ignore[misc]  # numba is untyped
    def __init__(self, started: Callable[[], None], ended: Callable[[], None] = lambda: None) -> None:
        self._started, self._ended = started, ended

    def on_start(self, happening: Any) -> None:
        self._started()

    def on_end(self, happening: Any) -> None:
        self._ended()


@contextmanager
def _announced(details: dict[str, Any]) -> Iterator[None]:
    """Notify numba's listeners of a compilation, as numba itself does for all but callbacks.

    But not if the function is found on disk: then no compiler pass is run.
    """
    begun = False

    def announce() -> None:
        nonlocal begun
        if not begun:
            begun = True
            event.start_event("numba:compile", data=details)

    with event.install_listener("numba:run_pass", _Listener(announce)):
        try:
            yield
        finally:
            if begun:
                event.end_event("numba:compile", data=details)


@contextmanager
def watching_compilation(on_change: Callable[[bool], None]) -> Iterator[None]:
    """Call a function with True whenever compiling begins, and with False when it is over.

    The first run on a machine spends most of its time compiling, and progress lines should say so.
    Functions found in the cache on disk are not compiled. Of several nested compilations, the first begins
    and the last ends.
    """
    under_way, lock = 0, threading.Lock()

    def count(change: int) -> None:
        nonlocal under_way
        with lock:
            before, under_way = under_way, under_way + change
            if (before > 0) != (under_way > 0):
                on_change(under_way > 0)

    with event.install_listener("numba:compile", _Listener(partial(count, 1), partial(count, -1))):
        yield


def thread_count() -> int:
    """Return how many threads may work at the same time, including the caller's own: as many as numba's."""
    return numba.get_num_threads()


def shares(items: int) -> IntArray:
    """Cut 0 to `items` into shares of about the same size."""
    threads = thread_count()
    count = SHARES_A_THREAD * threads if threads > 1 else 1
    return np.unique(np.linspace(0, items, count + 1).astype(np.int64))


def run_tasks(function: Callable[..., object], tasks: Sequence[tuple[Any, ...]]) -> None:
    """Call the function with every tuple of arguments, in several threads, and wait for all calls to end."""
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

    helpers = _helpers(work, min(thread_count(), len(tasks)) - 1)
    try:
        work()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        for helper in begun:
            helper.exception()  # wait: what the tasks write to is the caller's again when this returns
    for helper in begun:
        helper.result()


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
