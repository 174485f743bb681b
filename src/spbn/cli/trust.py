"""How far to trust what is learned: ``spbn confidence`` and ``spbn compare``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spbn._base.display import printable
from spbn.cli.command import command
from spbn.cli.inputs import require_targets
from spbn.cli.options import (
    MISSING_ROWS,
    Lesson,
    checkpoint_option,
    client_of,
    learning_options,
    out_option,
    report_option,
    scheduler_option,
    table_options,
    workers_option,
)
from spbn.cli.output import SHOWN_CASES, Answer, answer_options, count, objects, say, say_lines
from spbn.errors import ArgumentError, require_plot_packages

if TYPE_CHECKING:
    import pandas as pd

    from spbn.learning.stability import Confidence


@command
@learning_options()
@click.option("--replicates", type=int, default=100, help="How many searches, each on half of the rows.")
@click.option("--workers", type=int, default=1, help="Number of processes that search at the same time.")
@scheduler_option
@checkpoint_option(help="Record every replicate in this file, and resume from what it has: run.jsonl.")
@out_option("Write the strengths of all arcs: arcs.csv.")
@report_option
@table_options
@answer_options
def confidence(
    answer: Answer,
    lesson: Lesson,
    replicates: int,
    workers: int,
    scheduler: str | None,
    checkpoint: Path | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Find out which arcs of a learned network to believe.

    [dim]spbn confidence wine.csv --replicates 100 --out arcs.csv --report arcs.html[/]
    """
    from spbn.learning.stability import confidence as find_confidence

    require_targets(report, checkpoint, tables=[out], inputs=lesson.files)
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
    answer.give(ConfidenceView(found))
    answer.write_rows("out", found.arcs, out, "arcs")
    if report is not None:
        from spbn.report.pages import write_confidence_report

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


@command
@learning_options(
    but=("model",),
    one_table=True,
    folds={"help": "Number of folds for the comparison."},
    margins={
        "default": None,
        "help": "Transform of every column, for all models. By default none, and blend also with "
        "'yeo-johnson'.",
    },
    missing=MISSING_ROWS,
)
@workers_option
@scheduler_option
@table_options
@answer_options
def compare(answer: Answer, lesson: Lesson, workers: int | None, scheduler: str | None) -> None:
    """Compare kinds of networks on rows that they have not seen.

    The kinds are Gaussian, KDE, semiparametric and blend networks.

    [dim]spbn compare wine.csv --folds 5[/]
    """
    from spbn.learning.comparison import compare_models

    frame, settings = lesson.read()
    with client_of(workers, scheduler) as client:
        found = compare_models(frame, progress=sys.stderr.isatty(), client=client, **settings)
    answer.give(ComparisonView(found))


@dataclass(frozen=True)
class ComparisonView:
    """Models on rows that they have not seen, the best first."""

    table: pd.DataFrame

    def show(self) -> None:
        """Print models side by side."""
        import pandas as pd

        table = self.table
        shares = [name for name in table.columns if name.endswith(" share")]
        shown = pd.DataFrame(
            {
                "model": table["model"],
                "margins": table["margins"],
                "log-density": _with_error(table["log-density"], table["standard error"]),
                "difference": _with_error(table["difference"], table["difference error"]),
                "arcs": table["arcs"].map("{:.1f}".format),
                "nodes": [_in_words(row) for _, row in table[shares].iterrows()],
                "seconds": table["seconds"].map("{:.1f}".format),
            }
        )
        shown.loc[shown.index[0], "difference"] = ""
        say_lines(shown.to_string(index=False))
        say()
        say(
            "Mean log-density of an unseen row, and its difference from that of the best model, each ± its "
            "standard error. Higher is better.",
            style="dim",
        )

    def document(self) -> dict[str, Any]:
        """Give the models, with names that programs like."""
        named = self.table.rename(columns=lambda name: str(name).replace("-", "_").replace(" ", "_"))
        return {"models": objects(named)}


def _with_error(values: pd.Series[Any], errors: pd.Series[Any]) -> list[str]:
    return [f"{value:.4f} ± {error:.4f}" for value, error in zip(values, errors, strict=True)]


def _in_words(shares: pd.Series[Any]) -> str:
    """Say which part of the nodes is of which type, the largest part first."""
    found = shares[shares > 0].sort_values(ascending=False, kind="stable")
    return ", ".join(f"{share:.0%} {str(name).removesuffix(' share')}" for name, share in found.items())


@dataclass(frozen=True)
class ConfidenceView:
    """The arcs that are believed, with the reasons why a direction is open, and those that are not."""

    found: Confidence

    def show(self) -> None:
        """Print believed arcs first."""
        arcs = self._arcs()
        say(
            f"{count(self.found.structures, 'replicate')}, {count(self.found.nodes, 'node')}; "
            f"arcs stronger than {self.found.threshold:.2f} are believed"
        )
        for is_believed, title in ((True, "believed"), (False, "not believed")):
            chosen = [arc for arc in arcs if arc["believed"] == is_believed]
            if not chosen:
                continue
            names = [printable(f"{arc['source']} → {arc['target']}") for arc in chosen]
            width = max(len(title), *map(len, names))
            say()
            say(f"{title:{width}}  strength  direction", style="bold")
            for name, arc in list(zip(names, chosen, strict=True))[: None if is_believed else SHOWN_CASES]:
                line = f"{name:{width}}  {arc['strength']:8.2f}  {arc['direction']:9.2f}"
                why = f"open: {arc['open']}" if arc["open"] else ""
                say(f"{line}  {why}".rstrip())
        say()
        say(
            "Strength: the share of replicates that join the two nodes. Direction: the share of these in "
            "which the arc points this way.",
            style="dim",
        )

    def document(self) -> dict[str, Any]:
        """Give all arcs that some replicate has, and the types of nodes."""
        return {
            "replicates": len(self.found.structures),
            "rows": self.found.rows,
            "nodes": list(self.found.nodes),
            "threshold": self.found.threshold,
            "arcs": self._arcs(),
            "types": objects(self.found.types),
        }

    def _arcs(self) -> list[dict[str, Any]]:
        believed, notes = set(self.found.structure().arcs), self.found.open_directions()
        arcs = objects(self.found.arcs)
        for arc in arcs:
            pair = (arc["source"], arc["target"])
            arc |= {"believed": pair in believed, "open": notes.get(pair)}
        return arcs
