"""Dask clients, and work for their workers, of whom some may die."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any, final

import numba

from spbn._base.checks import is_whole
from spbn._base.interrupts import interrupts_postponed
from spbn.errors import ArgumentError, ClusterError, PackageError, SpbnError, argument

SECONDS_TO_CONNECT = 10.0
SECONDS_FOR_WORKERS = 60.0
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_BETWEEN_CHECKS = 5.0  # of whether there are workers at all, while they work
SECONDS_TO_RECOVER = 1.0  # until the scheduler knows that a worker died
ATTEMPTS = 4  # to get a task done, if workers die meanwhile or what they share is lost
MOST_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
#: Work on rows keeps to the memory of a worker by itself. Dask would rather have one that uses most of it sit
#: idle, although nothing would ever free that memory, and write what it holds to disk.
MEMORY_MANAGEMENT = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}


def require_dask() -> None:
    """Refuse to go on if Dask is not installed, and say how to install it."""
    if find_spec("distributed") is None:
        raise PackageError('workers need Dask: install it with pip install "spbn[dask]".')


def is_dask_client(client: object) -> bool:
    """Tell whether something is a Dask client; Dask is not imported for that."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(client, distributed.Client)


def require_client(client: object) -> None:
    """Refuse anything but a Dask client."""
    require_dask()
    if not is_dask_client(client):
        raise ArgumentError(
            f"{argument('client')} must be a dask.distributed.Client. Got {client!r:.100} instead."
        )


@contextmanager
def local_workers(count: int, *, memory: str | int | float = "auto", processes: bool = True) -> Iterator[Any]:
    """Start workers on this machine, one thread each, and give their client; they end with the block.

    Parameters
    ----------
    memory
        What each of them may use: ``"700MB"``, for example. By default its share of the machine's.
    processes
        Whether every worker is a process of its own.

    Examples
    --------
    >>> with spbn.distributed.local_workers(2) as client:  # doctest: +SKIP
    ...     network = spbn.learn(df, client=client)
    """
    if not is_whole(count, 1):
        raise ArgumentError(f"the number of workers must be a whole number, 1 or more. Got {count!r}.")
    require_dask()
    distributed: Any = import_module("distributed")
    config: Any = import_module("dask.config")

    with ExitStack() as started:
        with interrupts_postponed():
            started.enter_context(config.set(MEMORY_MANAGEMENT))
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=processes,
                memory_limit=memory,
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
                preload=["spbn.dask.client"] if processes else [],
            )
            started.enter_context(cluster)
            client = started.enter_context(distributed.Client(cluster))
        yield client


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the process that waits for the results, which then ends the workers: on Windows."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def connected(address: str, *, timeout: float = SECONDS_TO_CONNECT) -> Iterator[Any]:
    """Give a client of the scheduler at an address; the scheduler and its workers outlive the block.

    Parameters
    ----------
    address
        Such as ``"tcp://10.0.0.1:8786"``.
    timeout
        How many seconds it may take until the scheduler answers.

    Examples
    --------
    >>> import spbn
    >>> with spbn.distributed.connected("tcp://10.0.0.1:8786") as client:  # doctest: +SKIP
    ...     network = spbn.learn(data, client=client)
    """
    require_dask()
    with _started(address, timeout) as client:
        yield client


def _started(address: str, timeout: float) -> Any:
    """Return a client, in bounded time: Dask itself may wait on if what listens is not a scheduler.

    One that could not be started is closed. Dask would close it when it is collected as garbage: at any
    moment, also while another client or cluster is being started, and then both wait for each other for ever.
    """
    distributed: Any = import_module("distributed")
    found: list[Any] = []
    given_up = Event()

    def start() -> None:
        client = distributed.Client.__new__(distributed.Client)  # in hand even if it cannot be started
        try:
            client.__init__(address, timeout=timeout)
        except Exception as error:
            _close(client)
            found.append(error)
            return
        found.append(client)
        if given_up.is_set():
            _close(client)

    thread = Thread(target=start, name="spbn-connecting", daemon=True)
    thread.start()
    thread.join(2.0 * timeout)
    given_up.set()
    if found and isinstance(found[0], ValueError):
        raise ClusterError(
            f"{address!r} is not the address of a scheduler ({_reason(found[0])}): it looks like "
            f"'tcp://10.0.0.1:8786', as the scheduler prints it."
        )
    if not found or isinstance(found[0], Exception):
        why = f": {_reason(found[0])}" if found else ""
        raise ClusterError(
            f"the scheduler at {address} did not answer within {timeout:g} seconds{why}. "
            f"Check that it is running (dask scheduler) and that the address is the one it prints."
        )
    return found[0]


def _close(client: Any) -> None:
    with suppress(Exception):  # of what was never begun, for example
        client.close()


def require_workers(client: Any, *, timeout: float = SECONDS_FOR_WORKERS) -> dict[str, int]:
    """Return the addresses of the workers and their numbers of threads; wait for the first that takes work.

    Those that Dask has paused take none.

    Dask's own `wait_for_workers` overwrites what a cluster of this process knows about its workers. If one
    has just died, the news of that comes too late then, and the cluster cannot be closed.
    """
    deadline, why = time.monotonic() + timeout, ""
    while True:
        try:
            there = client.nthreads()
        except (OSError, RuntimeError) as error:
            there, why = {}, f" ({_reason(error)})"
        working = sorted(set(there) - set(_paused(client))) if there else []
        if working:
            return {address: there[address] for address in working}
        if time.monotonic() >= deadline:
            address = getattr(client.scheduler, "address", "?")
            if there:
                raise ClusterError(
                    f"Dask has paused all {len(there)} workers of the scheduler at {address} for {timeout:g} "
                    f"seconds: they use most of their memory. Give them more of it (dask worker "
                    f"--memory-limit), or restart them if other work has left it occupied."
                )
            raise ClusterError(
                f"the scheduler at {address} had no workers for {timeout:g} seconds{why}. "
                f"Start some: dask worker {address} --nthreads 1."
            )
        time.sleep(min(SECONDS_BETWEEN_LOOKS, timeout))


def _paused(client: Any) -> dict[str, bool]:
    """Return the workers that Dask has paused: whether they are still at something that they had begun."""
    return {
        address: bool(info["metrics"].get("task_counts", {}).get("executing"))
        for address, info in client.scheduler_info(n_workers=-1)["workers"].items()
        if info["status"] == "paused"
    }


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).rstrip(".").replace(os.linesep, " ")[:200]


@final
class Executor:
    """Calls functions of something shared and of their own arguments: on the workers of a client, or here.

    What is shared is sent once, not with every task: to one worker, of whom the others get it when they
    need it. Dask can also send to all of them, but goes on for ever, and lets nobody else send, if one dies
    meanwhile. A task whose worker died is done by another; if all that had what is shared died, it is sent
    again.
    """

    def __init__(self, client: Any, shared: Any) -> None:
        self._client = client
        self._shared = shared
        self._future: Any = None  # of what is shared
        if client is not None:
            require_workers(client)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where work can be done, in a fixed order; a task may prefer one of these."""
        return ("here",) if self._client is None else tuple(require_workers(self._client))

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        addresses: Sequence[str] = (),
        common: tuple[Any, ...] = (),
        pinned: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Call the function with what is shared and with every task; yield numbers and results as they come.

        Arguments that all tasks have in `common` follow. Each is done at its address if possible, because
        that worker has done similar ones; if it is `pinned`, only there, as long as the worker is there.
        """
        if self._client is None:
            yield from ((n, function(self._shared, *task, *common)) for n, task in enumerate(tasks))
            return
        left, why = dict(enumerate(tasks)), ""
        for attempt in range(ATTEMPTS):
            futures: dict[Any, int] = {}
            only: dict[Any, str] = {}  # where a task can be done, if it is pinned
            try:
                shared, more = self._shared_once(), [self._sent(one) for one in common]
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
                        known = addresses[number] in here
                        address = addresses[number] if known else here[number % len(here)]
                        options = {"workers": [address], "allow_other_workers": not pinned}
                    future = self._client.submit(
                        _at_work, function, shared, *task, *more, pure=False, **options
                    )
                    futures[future] = number
                    if pinned and addresses:
                        only[future] = address
                for future in self._finished(futures, only):
                    if not _is_lost(future):
                        result, number = future.result(), futures.pop(future)
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

    def _finished(self, futures: Iterable[Any], only: Mapping[Any, str]) -> Iterator[Any]:
        """Yield futures as they are done, or lost; give up if no worker takes work for a while.

        Tasks whose only worker has gone would wait for ever, and so would those of a worker that Dask has
        paused before it began with them: they are cancelled, to be done elsewhere.
        """
        wait: Any = import_module("distributed").wait
        waiting, idle = set(futures), 0.0
        while waiting:
            try:
                done = wait(list(waiting), timeout=SECONDS_BETWEEN_CHECKS, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                there = self._client.nthreads()
                stuck = {address for address, is_busy in _paused(self._client).items() if not is_busy}
                if there:
                    self._client.cancel([one for one in waiting if only.get(one, "") not in ("", *there)])
                idle = idle + SECONDS_BETWEEN_CHECKS if stuck or not there else 0.0
                if idle >= SECONDS_FOR_WORKERS:
                    require_workers(self._client, timeout=SECONDS_BETWEEN_CHECKS)
                    held = {key for address in stuck for key in self._client.processing().get(address, ())}
                    self._client.cancel([one for one in waiting if one.key in held or only.get(one) in stuck])
                continue
            except Exception:  # of a future that was cancelled, which `wait` raises instead of returning it
                done = {future for future in waiting if future.done()}
            waiting -= done
            idle = 0.0
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
