"""Dask clients: whether something is one, and how to get one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any

from spbn._base.checks import is_whole
from spbn.errors import ArgumentError, ClusterError, PackageError, argument

SECONDS_TO_CONNECT = 10.0
SECONDS_FOR_WORKERS = 60.0
SECONDS_BETWEEN_LOOKS = 0.1
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

    with (
        config.set(MEMORY_MANAGEMENT),
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=processes,
            memory_limit=memory,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            preload=["spbn.dask.client"] if processes else [],
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the process that waits for the results, which then ends the workers."""
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
    """Return the addresses of the workers and their numbers of threads; wait for the first to come.

    Dask's own `wait_for_workers` overwrites what a cluster of this process knows about its workers. If one
    has just died, the news of that comes too late then, and the cluster cannot be closed.
    """
    deadline, why = time.monotonic() + timeout, ""
    while True:
        try:
            there = client.nthreads()
        except (OSError, RuntimeError) as error:
            there, why = {}, f" ({_reason(error)})"
        if there:
            return dict(sorted(there.items()))
        if time.monotonic() >= deadline:
            raise ClusterError(
                f"the scheduler at {_address(client)} had no workers for {timeout:g} seconds{why}. "
                f"Start some: dask worker {_address(client)} --nthreads 1."
            )
        time.sleep(min(SECONDS_BETWEEN_LOOKS, timeout))


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", "?")) if client.scheduler is not None else "?"


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).rstrip(".").replace(os.linesep, " ")[:200]
