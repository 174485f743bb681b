"""The commands ``spbn learn`` and ``spbn demo``: a network from a table."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Report
from spbn.cli.learning import Lesson, with_learning_options
from spbn.cli.series import Axis, axis_of
from spbn.cli.show import write_report_to
from spbn.cli.sources import Source
from spbn.cli.tables import reading_tables
from spbn.cli.targets import require_targets
from spbn.cli.terminal import say, show_network, warn
from spbn.cli.workers import Scheduler, Workers, client_of
from spbn.errors import ArgumentError, require_plot_packages

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import BoolArray
    from spbn.learning.learn import LearningInterrupted
    from spbn.network import BayesianNetwork
    from spbn.timeseries.network import DynamicNetwork


@answering
@reading_tables
@with_learning_options
def learn(
    lesson: Lesson,
    answer: Answer,
    lags: Annotated[
        int | None,
        typer.Option(
            help="For time series: learn how each row depends on this many rows before it.",
            show_default=False,
        ),
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(help="With --lags: the column that tells series apart.", show_default=False),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="With --lags: the column with the times of the rows. A new series begins after a gap.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            help="With --time: resample the rows to this step, in seconds if times are dates.",
            show_default=False,
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop hc after the first step that ends later than this; the best network so far is kept.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Record every step of hc in this file, and resume from what it has: run.jsonl.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write the model: model.spbn.", show_default=False)
    ] = None,
    report: Report = None,
) -> None:
    """Learn a network from a table.

    Ctrl-C offers to save the best network so far. Several Parquet files are read a part at a time, so they
    need not fit into memory.

    [dim]spbn learn wine.csv --out wine.spbn --report wine.html[/]

    [dim]spbn learn data/*.parquet --workers 2 --out model.spbn[/]
    """
    from spbn.cli.files import present
    from spbn.learning.learn import LearningInterrupted
    from spbn.timeseries.network import DynamicNetwork

    require_targets(out_, report, checkpoint, inputs=lesson.files)
    if report is not None:
        require_plot_packages()
    axis = axis_of(lags, series, time, every)
    frame, settings = _read(lesson, axis, checkpoint)
    settings |= {"max_seconds": max_seconds, "progress": sys.stderr.isatty()}
    with client_of(workers, scheduler) as client:
        try:
            network = _learned(lesson, frame, axis, settings | {"client": client})
        except LearningInterrupted as stop:
            if out_ is None or not _wants_to_save(stop, out_):
                raise
            stop.network().save(out_)
            say(f"best network after {len(stop.search.steps)} steps written to {out_}")
            raise typer.Exit(130) from None
    answer.give(partial(show_network, network), partial(documents.of_network, network))
    if frame is not None:
        whole: BoolArray = present(frame).min(axis=1)
        if isinstance(network, DynamicNetwork):
            frame = frame if whole.all() else None  # leaving some out would join others
        elif whole.all():
            _warn_of_far_rows(network, frame, lesson.data)
    if out_ is not None:
        network.save(out_)
        answer.wrote("out", out_, f"model written to {out_}")
    if report is not None:
        write_report_to(report, network, frame, lesson.data.stem)
        answer.wrote("report", report, f"report written to {report}")


@answering
def demo(
    answer: Answer,
    folder: Annotated[Path, typer.Option(help="Where to write the model and the report.")] = Path("."),
) -> None:
    """Learn the paper's network, and compare with its figures.

    [dim]spbn demo[/]
    """
    from spbn.cli.demo import files_in, run

    require_targets(*files_in(folder))
    require_plot_packages()
    run(folder, answer, progress=sys.stderr.isatty())


def _read(
    lesson: Lesson, axis: Axis | None, checkpoint: Path | None
) -> tuple[pd.DataFrame | None, dict[str, Any]]:
    """Return the table and the settings of what learns from it; no table if it is in parts."""
    if not lesson.is_in_parts:
        frame, settings = lesson.read(axis)
        return frame, settings | {"checkpoint": checkpoint}
    if checkpoint is not None:
        raise ArgumentError("--checkpoint cannot be used with several files: leave it out.")
    if axis is not None:
        raise ArgumentError("--lags cannot be used with several files: put them into one table.")
    return None, lesson.read_later()


def _learned(
    lesson: Lesson, frame: pd.DataFrame | None, axis: Axis | None, settings: dict[str, Any]
) -> BayesianNetwork | DynamicNetwork:
    """Learn from a table, from rows that follow each other, or from parts of a table."""
    if frame is None:
        from spbn.dask import learn as learn_from_parts

        return learn_from_parts([source.path for source in lesson.files], **settings)
    if axis is not None:
        from spbn.timeseries.learn import learn_dynamic

        return learn_dynamic(frame, lags=axis.lags, series=axis.series, time=axis.time, **settings)
    from spbn.learning.learn import learn as learn_network

    return learn_network(frame, **settings)


def _wants_to_save(stop: LearningInterrupted, path: Path) -> bool:
    """Ask whether to save what was found; without a terminal nobody can be asked, and nothing is lost."""
    if not _is_terminal():
        return True
    return typer.confirm(
        f"\nInterrupted after {len(stop.search.steps)} steps. Save the best network so far to {path}?",
        default=True,
        err=True,
    )


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _warn_of_far_rows(network: BayesianNetwork, frame: pd.DataFrame, data: Source) -> None:
    from spbn.cli.sources import place
    from spbn.diagnostics import early_stop
    from spbn.tables.reader import as_table

    settings = network.record.settings
    labels = [str(row) for row in frame.index]
    rows = network.transformed(as_table(frame, variables=network.variables))
    found = early_stop(network.search, rows, settings=settings, labels=labels)
    if found is not None:
        places = "; ".join(f"{place(data, int(far.label))}, column {far.node!r}" for far in found.rows)
        look = f" A few rows far from all others can cause this. Look at {places}." if places else ""
        warn(f"{found.what}{look} {found.remedy}")
