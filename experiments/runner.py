"""Run the cells of an experiment that are not in its results yet, and add them one by one."""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.results_file import ResultsFile

#: Environment variables that tell numerical libraries to use one thread.
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Outcome(NamedTuple):
    """What became of a cell: its measured values, or why there are none."""

    cell: Any
    measured: dict[str, Any] | None
    error: str = ""


def run_experiment(module: str, data: Path, results: Path, *, quick: bool = False, jobs: int = 1) -> int:
    """Run what is missing in a results file.

    Parameters
    ----------
    module
        Name of the module of the experiment.
    jobs
        How many processes; with more than one, each uses one thread.

    Returns
    -------
    How many cells failed. They are reported on the terminal and left out of the results, so the
    next run tries them again.
    """
    experiment = import_module(module)
    file = ResultsFile(results, [field.name for field in dataclasses.fields(experiment.Cell)])
    cells = experiment.cells(data, quick)
    done = file.done()
    missing = [cell for cell in cells if file.key(cell) not in done]
    failed = 0
    with _progress() as progress:
        task = progress.add_task(
            module.rpartition(".")[2], total=len(cells), completed=len(cells) - len(missing)
        )
        outcomes = _outcomes(module, _batches(experiment, missing), data, jobs)
        for outcome in outcomes:
            if outcome.measured is None:
                failed += 1
                progress.console.print(
                    f"{outcome.cell} failed:\n{outcome.error}", markup=False, highlight=False
                )
            else:
                file.append(outcome.cell, outcome.measured)
                if not progress.console.is_terminal:
                    print(outcome.cell, f"{outcome.measured['seconds']:.2f} s", file=sys.stderr, flush=True)
            progress.advance(task)
    return failed


def _batches(experiment: ModuleType, cells: Sequence[Any]) -> list[list[Any]]:
    key: Callable[[Any], Hashable] = getattr(experiment, "batch", lambda cell: cell)
    return [list(group) for _, group in itertools.groupby(cells, key)]


def _outcomes(module: str, batches: list[list[Any]], data: Path, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        for batch in batches:
            for cell in batch:
                yield _outcome(module, cell, data)
        return
    with _one_thread_each(), _workers(jobs) as pool:
        futures: dict[Future[list[Outcome]], list[Any]] = {
            pool.submit(_run_batch, module, batch, data): batch for batch in batches
        }
        for future in as_completed(futures):
            try:
                yield from future.result()
            except BrokenProcessPool:
                raise SystemExit(
                    "A worker process was killed, perhaps because memory ran out. What was finished is kept: "
                    "run the same command again, with fewer --jobs."
                ) from None


def _run_batch(module: str, batch: list[Any], data: Path) -> list[Outcome]:
    return [_outcome(module, cell, data) for cell in batch]


def _outcome(module: str, cell: Any, data: Path) -> Outcome:
    start = time.perf_counter()
    try:
        measured = import_module(module).run(cell, data)
    except Exception:
        return Outcome(cell, None, traceback.format_exc())
    return Outcome(cell, {**measured, "seconds": round(time.perf_counter() - start, 3)})


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of fresh processes that stops at once if it is left early."""
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
