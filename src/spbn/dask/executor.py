"""Work for Dask workers, of whom some may die: what they share is sent once, and lost work is done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, final

import numba

from spbn.dask.client import SECONDS_FOR_WORKERS, require_workers
from spbn.errors import ClusterError, SpbnError

ATTEMPTS = 4  # to get a task done, if workers die meanwhile or what they share is lost
MOST_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
SECONDS_TO_RECOVER = 1.0  # until the scheduler knows that a worker died
SECONDS_BETWEEN_LOOKS = 5.0  # at whether there are workers at all


class Executor(Protocol):
    """Whoever does the work: functions of something shared and of their own arguments."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where work can be done, in a fixed order; a task may prefer one of these."""

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        addresses: Sequence[str] = (),
        common: tuple[Any, ...] = (),
        pinned: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Call the function with what is shared and with every task; yield numbers and results as they come.

        Parameters
        ----------
        addresses
            Where every task is done, if possible, because that worker has done similar ones.
        common
            Further arguments, the same for all tasks.
        pinned
            Whether tasks are done at their addresses only, as long as these are there.
        """


@final
class LocalExecutor:
    """The work is done by the process itself that asks for it."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared
        self.addresses = ("here",)

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        addresses: Sequence[str] = (),
        common: tuple[Any, ...] = (),
        pinned: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Call the function for one task after the other."""
        for number, task in enumerate(tasks):
            yield number, function(self._shared, *task, *common)


@final
class DaskExecutor:
    """The workers of a Dask client.

    What is shared is sent once, not with every task: to one worker, of whom the others get it when they
    need it. Dask can also send to all of them, but goes on for ever, and lets nobody else send, if one dies
    meanwhile. A task whose worker died is done by another; if all that had what is shared died, it is sent
    again.
    """

    def __init__(self, client: Any, shared: Any) -> None:
        self._client = client
        self._shared = shared
        self._future: Any = None  # of what is shared
        require_workers(client)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the workers."""
        return tuple(require_workers(self._client))

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        addresses: Sequence[str] = (),
        common: tuple[Any, ...] = (),
        pinned: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Have the workers call the function."""
        left = dict(enumerate(tasks))
        why = ""
        for attempt in range(ATTEMPTS):
            futures: dict[Any, int] = {}
            only: dict[Any, str] = {}  # where a task can be done, if it is pinned
            try:
                shared = self._shared_once()
                more = [self._sent(one) for one in common]
            except SpbnError:
                raise
            except Exception as error:  # of many kinds, if a worker dies while it is sent something
                self._future, why = None, f" ({error!r:.200})"
                time.sleep(SECONDS_TO_RECOVER * (attempt + 1))
                continue
            try:
                here = self.addresses
                for number, task in left.items():
                    options = {}
                    if addresses:
                        address = addresses[number]
                        if address not in here:
                            address = here[number % len(here)]
                        options = {"workers": [address], "allow_other_workers": not pinned}
                    future = self._client.submit(
                        _at_work, function, shared, *task, *more, pure=False, **options
                    )
                    futures[future] = number
                    if pinned and addresses:
                        only[future] = address
                for future in self._finished(futures, only):
                    if not _is_lost(future):
                        result = future.result()
                        number = futures.pop(future)
                        del left[number]
                        future.release()
                        yield number, result
            finally:
                if futures:
                    self._client.cancel(list(futures))
            if not left:
                return
            self._future = None
        raise ClusterError(
            f"{len(left)} of {len(tasks)} tasks could not be done in {ATTEMPTS} attempts, because workers "
            f"died{why}: look at their logs. They may need more memory."
        )

    def _shared_once(self) -> Any:
        """Send what is shared, unless it was sent."""
        if self._future is None:
            require_workers(self._client)
            self._future = self._sent(self._shared)
        return self._future

    def _sent(self, value: Any) -> Any:
        # As it is: of a collection, Dask would send every member, and not put a frozenset together again.
        return self._client.scatter([value], hash=False)[0]

    def _finished(self, futures: Sequence[Any] | dict[Any, int], only: dict[Any, str]) -> Iterator[Any]:
        """Yield futures as they are done, or lost; give up if there are no workers for a while.

        Tasks whose only worker has gone would wait for ever: they are cancelled, to be done elsewhere.
        """
        wait: Any = import_module("distributed").wait
        waiting = set(futures)
        idle = 0.0
        while waiting:
            try:
                done = wait(list(waiting), timeout=SECONDS_BETWEEN_LOOKS, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                there = self._client.nthreads()
                stranded = [
                    future for future in waiting if only.get(future, next(iter(there), "")) not in there
                ]
                if there and stranded:
                    self._client.cancel(stranded)
                idle = 0.0 if there else idle + SECONDS_BETWEEN_LOOKS
                if idle >= SECONDS_FOR_WORKERS:
                    require_workers(self._client, timeout=SECONDS_BETWEEN_LOOKS)
                continue
            except Exception:  # of a future that was cancelled, which `wait` raises instead of returning it
                done = {future for future in waiting if future.done()}
            waiting -= done
            yield from done


def _is_lost(future: Any) -> bool:
    """Tell whether a task has to be done again: its worker died, or its arguments did with theirs."""
    from distributed import KilledWorker

    if future.status in ("cancelled", "lost"):
        return True
    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def _at_work(function: Callable[..., Any], shared: Any, *task: Any) -> Any:
    """Do a task on a worker: with one thread, because other tasks have the other cores."""
    with using_threads(1):
        return function(shared, *task)


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let the compiled loops of this thread use some threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(count, MOST_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def executor_for(client: Any, shared: Any) -> Executor:
    """Return the workers of a client; this process if there is none."""
    return LocalExecutor(shared) if client is None else DaskExecutor(client, shared)
