"""The command line: ``spbn learn data.csv --report report.html`` and so on."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spbn.app.arguments import Columns, Data, Discrete, Drop, MissingRows, Model, Seed, names_in
from spbn.app.asking import impute, predict, query
from spbn.app.believe import confidence
from spbn.app.classify import classify
from spbn.app.compacting import compact
from spbn.app.explore import explore
from spbn.app.forecasting import forecast
from spbn.app.inputs import busy, frame_with_holes, load_any_model, training_frame
from spbn.app.learning import Lesson, with_learning_options
from spbn.app.scoring import score
from spbn.app.series import Axis, axis_of, series_of
from spbn.app.tables import in_file, reading_tables, writing_rows
from spbn.app.targets import require_targets
from spbn.app.terminal import (
    complain,
    print_comparison,
    say,
    show_network,
    warn,
    write_or_print,
)
from spbn.app.watching import watch
from spbn.app.wording import in_options
from spbn.app.workers import Scheduler, Workers, client_of
from spbn.drawing.packages import require_plot_packages
from spbn.dynamic.network import DynamicNetwork
from spbn.errors import ArgumentError, SpbnError
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import BoolArray
from spbn.tables.files import place, present
from spbn.tables.sources import Source, as_source

if TYPE_CHECKING:
    import pandas as pd

    from spbn.learn import LearningInterrupted

app = typer.Typer(
    name="spbn",
    help="Semiparametric Bayesian networks: learn them from a table, look at them, use them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(asked: bool) -> None:
    if asked:
        import spbn

        say(f"spbn {spbn.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version)] = False,
) -> None:
    """Semiparametric Bayesian networks: learn them from a table, look at them, use them."""


@app.command()
@reading_tables
@with_learning_options
def learn(
    lesson: Lesson,
    lags: Annotated[
        int | None,
        typer.Option(
            help="Rows follow each other in time: learn how each depends on this many rows before it.",
            show_default=False,
        ),
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(help="With --lags: the column that tells several series apart.", show_default=False),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="With --lags: the column with the times of rows. Gaps in them begin a new series.",
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
            help="Stop hc with the first step that ends after this many seconds; the best network is kept.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Note every step of hc in this file, and go on from what it has: run.jsonl.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write the model: model.spbn.", show_default=False)
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report: report.html.", show_default=False)
    ] = None,
) -> None:
    """Learn a network from a table. Ctrl-C offers to save the best one so far.

    Of several Parquet files the rows are read a part at a time, so they need not fit into memory.

    [dim]spbn learn wine.csv --out wine.spbn --report wine.html[/]

    [dim]spbn learn data/*.parquet --workers 2 --out model.spbn[/]
    """
    from spbn.distributed import learn as learn_from_parts
    from spbn.learn import LearningInterrupted
    from spbn.learn import learn as learn_network

    data = lesson.data
    require_targets(out_, report, checkpoint, inputs=lesson.files)
    if report is not None:
        require_plot_packages()
    frame: pd.DataFrame | None = None
    axis = axis_of(lags, series, time, every)
    if lesson.is_in_parts:
        if checkpoint is not None:
            raise ArgumentError("--checkpoint cannot be used with several files: leave it out.")
        if axis is not None:
            raise ArgumentError("--lags cannot be used with several files: put them into one table.")
        settings = lesson.read_later()
    else:
        frame, settings = lesson.read(axis)
        settings["checkpoint"] = checkpoint
    common = {"max_seconds": max_seconds, "progress": sys.stderr.isatty(), **settings}
    network: BayesianNetwork | DynamicNetwork
    with client_of(workers, scheduler) as client:
        try:
            if frame is None:
                network = learn_from_parts([source.path for source in lesson.files], client=client, **common)
            elif axis is not None:
                network = _learn_over_time(axis, frame, common | {"client": client})
            else:
                network = learn_network(frame, client=client, **common)
        except LearningInterrupted as stop:
            if out_ is None or not _wants_to_save(stop, out_):
                raise
            stop.network().save(out_)
            say(f"best network after {len(stop.search.steps)} steps written to {out_}")
            raise typer.Exit(130) from None
    show_network(network)
    if frame is not None:
        whole: BoolArray = present(frame).min(axis=1)
        if isinstance(network, DynamicNetwork):
            frame = frame if whole.all() else None  # leaving some out would join others
        elif whole.all():
            _warn_of_far_rows(network, frame, data)
    if out_ is not None or report is not None:
        say()
    if out_ is not None:
        network.save(out_)
        say(f"model written to {out_}")
    if report is not None:
        _write_report(network, report, frame, data.stem)


@app.command()
def show(model: Model) -> None:
    """Print a network: nodes, types, parents, equations, bandwidths.

    [dim]spbn show wine.spbn[/]
    """
    show_network(load_any_model(model), details=True)


app.command()(score)


@app.command()
@writing_rows
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="How many rows; of a model over time, of one series.")] = 1000,
    seed: Seed = 0,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write to a file, not to the screen.", show_default=False)
    ] = None,
) -> None:
    """Draw rows from a network.

    [dim]spbn sample wine.spbn -n 1000 --out samples.csv[/]
    """
    require_targets(in_file(out_), inputs=[model])
    network = load_any_model(model)
    with busy("drawing rows"):
        rows = network.sample(n, seed=seed)  # of a model over time: one series
    write_or_print(rows, out_)


app.command()(explore)
app.command()(query)
app.command()(forecast)
app.command()(impute)
app.command()(predict)
app.command()(watch)


@app.command()
@reading_tables
def compare(
    data: Data,
    folds: Annotated[int, typer.Option(help="Outer folds.")] = 10,
    margins: Annotated[
        Literal["none", "yeo-johnson"] | None,
        typer.Option(
            help="Transform of every column, for all models. "
            "By default none, and blend also with 'yeo-johnson'.",
            show_default=False,
        ),
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    discrete: Discrete = None,
    missing: MissingRows = "error",
    seed: Seed = 0,
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Compare Gaussian, KDE, semiparametric and blend networks on rows that they have not seen.

    [dim]spbn compare wine.csv --folds 5[/]
    """
    from spbn.app.comparison import compare_models

    categories = names_in("--discrete", discrete) or []
    frame = training_frame(data, columns, drop, categories, missing)
    with client_of(workers, scheduler) as client:
        found = compare_models(
            frame,
            folds=folds,
            margins=margins,
            seed=seed,
            missing=missing,
            discrete=categories,
            progress=sys.stderr.isatty(),
            client=client,
        )
    print_comparison(found)


app.command()(classify)
app.command()(confidence)
app.command()(compact)


@app.command()
def plot(
    model: Model,
    out_: Annotated[Path, typer.Option("--out", help="graph.svg, .png, .pdf or .dot.", show_default=False)],
    slices: Annotated[
        int | None,
        typer.Option(
            help="Of a model over time: how many rows to draw. Default: one more than it has lags.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw the graph of a network.

    [dim]spbn plot wine.spbn --out graph.svg[/]
    """
    from spbn.drawing.pictures import save_structure
    from spbn.drawing.slices import save_slices

    require_targets(out_, inputs=[model])
    network = load_any_model(model)
    if slices is not None and not isinstance(network, DynamicNetwork):
        raise ArgumentError(f"--slices is for models over time, and {model} is not one.")
    with busy("drawing the graph"):
        if not isinstance(network, DynamicNetwork):
            save_structure(network.structure, out_)
        elif out_.suffix.lower() == ".dot":
            save_structure(network.transition.structure, out_)
        else:
            save_slices(network, out_, slices=slices)
    say(f"graph written to {out_}")


@app.command()
@reading_tables
def report(
    model: Model,
    out_: Annotated[Path, typer.Option("--out", help="Write the report: report.html.", show_default=False)],
    data: Annotated[
        Source | None,
        typer.Option(
            parser=as_source,
            metavar="TABLE",
            help="A table with rows to check the model on.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a report that opens in a browser.

    [dim]spbn report wine.spbn --data wine.csv --out wine.html[/]
    """
    require_targets(out_, inputs=[model, data])
    require_plot_packages()
    network = load_any_model(model)
    frame = None
    if data is not None:
        frame = (
            series_of(network, data)
            if isinstance(network, DynamicNetwork)
            else frame_with_holes(network, data)
        )
    _write_report(network, out_, frame, model.stem)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the model and the report.")] = Path("."),
) -> None:
    """Learn the paper's synthetic network and compare its figures with the published ones.

    [dim]spbn demo[/]
    """
    from spbn.app.demo import files_in, run

    require_targets(*files_in(folder))
    require_plot_packages()
    run(folder, progress=sys.stderr.isatty())


def main() -> None:
    """Run the command line. What spbn refuses is one line on the error stream, and exit code 2."""
    warnings.showwarning = warn
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that cannot show every letter
    if threading.current_thread() is threading.main_thread():
        # As with Ctrl-C, files that are being written are removed.
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _stop)
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except SpbnError as error:
        _fail(in_options(str(error)))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except MemoryError:
        _fail("there is not enough memory for that: ask for fewer rows.")
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(130) from None
    except Exception as error:
        usage = getattr(error, "format_message", None)  # what the parser of the command line refuses
        if usage is None:
            raise
        _fail(usage().replace("Value error, ", ""))
    else:
        if code:  # an interrupt comes back as a number
            raise SystemExit(code)


def _fail(message: str) -> None:
    if message:  # there is none where the help was shown instead
        complain(message)
    raise SystemExit(2)


def _stop(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


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
    from spbn.explain import early_stop
    from spbn.tables.frames import as_table

    settings = network.record.settings
    labels = [str(row) for row in frame.index]
    rows = network.transformed(as_table(frame, variables=network.variables))
    found = early_stop(network.search, rows, settings=settings, labels=labels)
    if found is not None:
        places = "; ".join(f"{place(data, int(far.label))}, column {far.node!r}" for far in found.rows)
        look = f" A few rows far from all others can cause this. Look at {places}." if places else ""
        warn(f"{found.what}{look} {found.remedy}")


def _learn_over_time(axis: Axis, frame: pd.DataFrame, settings: dict[str, Any]) -> DynamicNetwork:
    from spbn.dynamic.learning import learn_dynamic

    return learn_dynamic(frame, lags=axis.lags, series=axis.series, time=axis.time, **settings)


def _write_report(network: BayesianNetwork | DynamicNetwork, path: Path, data: Any, title: str) -> None:
    from spbn.report import write_report

    with busy("writing the report"):
        write_report(network, path, data=data, title=title)
    say(f"report written to {path}")
