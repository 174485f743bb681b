"""Ctrl-C, where it must not interrupt what has begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_postponed() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; processes and threads that it starts never get it.

    A terminal sends Ctrl-C to all processes at once: those that work for another one leave it to that one,
    which then ends them. They inherit what is blocked here, so not even their imports are interrupted.
    """
    if not _is_main_thread() or not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # the first process would start it, which lifts the block
    caught: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Blocked or not, threads that were there before may get it, and Python then tells the main thread.
    handler = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if caught and callable(handler):
        handler(caught[0], None)


def end_process() -> None:
    """Have Ctrl-C end the process at once, until it is told to `raise_errors`."""
    if _is_ours(signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_errors() -> None:
    """Have Ctrl-C raise a `KeyboardInterrupt`, as usual."""
    if _is_ours(signal.SIG_DFL):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_ours(handler: object) -> bool:
    """Tell whether Ctrl-C is handled like this, and whether this thread may change that."""
    return _is_main_thread() and signal.getsignal(signal.SIGINT) == handler


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
