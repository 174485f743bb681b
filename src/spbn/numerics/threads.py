"""Threads for loops that release the interpreter's lock.

The loops of the spectral engine are many and short. numba's own parallel loops
would end each with a barrier at which threads wait busily: on a machine that is
shared with other work, that costs a slice of the scheduler's time, some 10 ms, every
time. Threads of Python's pool sleep instead, and start within 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from spbn.numerics.arrays import IntArray

SHARES_A_THREAD = 2  # so that a thread that is held up is not all that the others wait for


@dataclass(frozen=True)
class Threads:
    """A pool of threads and their number."""

    count: int
    pool: Executor

    def shares(self, items: int) -> IntArray:
        """Cut 0 to `items` into shares of about the same size."""
        shares = SHARES_A_THREAD * self.count if self.count > 1 else 1
        return np.unique(np.linspace(0, items, shares + 1).astype(np.int64))

    def run(self, function: Callable[..., None], tasks: Sequence[tuple[Any, ...]]) -> None:
        """Call the function with every tuple of arguments, and wait for all calls to end."""
        if self.count == 1 or len(tasks) == 1:
            for task in tasks:
                function(*task)
            return
        futures = [self.pool.submit(function, *task) for task in tasks]
        try:
            for future in futures:
                future.result()
        finally:  # after an interrupt, nothing new is begun
            for future in futures:
                future.cancel()


@contextmanager
def started_threads(count: int | None = None) -> Iterator[Threads]:
    """Start threads; as many as numba is set to use, if no number is given."""
    number = count or numba.get_num_threads()
    with ThreadPoolExecutor(number) as pool:
        yield Threads(number, pool)
