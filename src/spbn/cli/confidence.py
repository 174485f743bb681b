"""``spbn confidence``: which arcs to believe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Report
from spbn.cli.learning import Lesson, with_learning_options
from spbn.cli.tables import in_file, reading_tables, shown, write_rows, writing_rows
from spbn.cli.targets import require_targets
from spbn.cli.terminal import print_confidence
from spbn.cli.workers import Scheduler, client_of
from spbn.errors import ArgumentError, require_plot_packages


@answering
@reading_tables
@writing_rows
@with_learning_options
def confidence(
    lesson: Lesson,
    answer: Answer,
    replicates: Annotated[int, typer.Option(help="How many searches, each on half of the rows.")] = 100,
    workers: Annotated[int, typer.Option(help="Number of processes that search at the same time.")] = 1,
    scheduler: Scheduler = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Record every replicate in this file, and resume from what it has: run.jsonl.",
            show_default=False,
        ),
    ] = None,
    out_: Annotated[
        Path | None,
        typer.Option("--out", help="Write the strengths of all arcs: arcs.csv.", show_default=False),
    ] = None,
    report: Report = None,
) -> None:
    """Find out which arcs of a learned network to believe.

    [dim]spbn confidence wine.csv --replicates 100 --out arcs.csv --report arcs.html[/]
    """
    from spbn.learning.stability import confidence as find_confidence

    require_targets(in_file(out_), report, checkpoint, inputs=lesson.files)
    if report is not None:
        require_plot_packages()
    if workers > 1 and scheduler is not None:
        raise ArgumentError("give --workers or --scheduler, not both: a scheduler has workers of its own.")
    if workers < 1:
        raise ArgumentError(f"--workers must be 1 or more. Got {workers}.")
    frame, settings = lesson.read()
    with client_of(None, scheduler) if scheduler else _processes(workers) as client:
        found = find_confidence(
            frame,
            replicates=replicates,
            client=client,
            checkpoint=checkpoint,
            progress=sys.stderr.isatty(),
            **settings,
        )
    answer.give(partial(print_confidence, found), partial(documents.of_confidence, found))
    if out_ is not None:
        write_rows(found.arcs, out_)
        answer.wrote("out", out_, f"arcs written to {shown(out_)}")
    if report is not None:
        from spbn.report.confidence import write_confidence_report

        write_confidence_report(found, report, title=f"Which arcs of {lesson.data.stem} to believe")
        answer.wrote("report", report, f"report written to {report}")


@contextmanager
def _processes(workers: int) -> Iterator[Any]:
    """Give processes that share the cores; None if this one is enough."""
    if workers == 1:
        yield None
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    threads = max(1, (os.cpu_count() or 1) // workers)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_use_threads, initargs=(threads,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _use_threads(count: int) -> None:
    import signal

    import numba

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the process that waits for the results
    numba.set_num_threads(min(count, numba.get_num_threads()))
