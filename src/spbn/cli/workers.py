"""Options of commands whose work can be done by others, and the client of whoever does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from spbn.errors import ArgumentError

#: Whether workers of this machine are processes of their own; tests do with threads.
PROCESSES = True

Workers = Annotated[
    int | None,
    typer.Option(help="Start this many worker processes on this machine. Needs Dask.", show_default=False),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Use the workers of this Dask scheduler: tcp://10.0.0.1:8786.", show_default=False),
]


@contextmanager
def client_of(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """Give the client of workers that are started, or of a scheduler; None if neither is asked for."""
    from spbn.dask.client import connected, local_workers

    if workers is not None and scheduler is not None:
        raise ArgumentError("give --workers or --scheduler, not both: a scheduler has workers of its own.")
    if workers is not None:
        if workers < 1:
            raise ArgumentError(f"--workers must be 1 or more. Got {workers}.")
        with local_workers(workers, processes=PROCESSES) as client:
            yield client
    elif scheduler is not None:
        with connected(scheduler) as client:
            yield client
    else:
        yield None
