"""Networks from tables, and how far to trust them: ``spbn learn``, ``classify``, ``confidence`` and so on."""

from __future__ import annotations

import os
import shlex
import sys
import time as clock
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import spbn
from spbn._base.display import counting_progress, printable
from spbn._base.interrupts import interrupts_postponed
from spbn._base.lazy import pd
from spbn.cli import inputs, options
from spbn.cli.command import (
    Answer,
    Flags,
    command,
    count,
    note,
    objects,
    say,
    say_lines,
    warn,
)
from spbn.cli.show import SHOWN_CASES, give_network, write_report_to
from spbn.cli.sources import Source, place
from spbn.errors import ArgumentError, DataError, argument, quoted
from spbn.learning.settings import MODELS, OPTIONS

if TYPE_CHECKING:
    import numpy.typing as npt

    from spbn.diagnostics.classification import Predictions
    from spbn.learning.learn import LearningInterrupted
    from spbn.learning.stability import Confidence
    from spbn.network import BayesianNetwork, Network
    from spbn.sklearn.estimators import SPBNClassifier

#: Log-likelihoods of the test rows in the paper: of the true density, of the true structure fitted to 10,000
#: rows, and of the network that hill climbing finds in 2,000.
PUBLISHED_TRUTH, PUBLISHED_FIT, PUBLISHED_SEARCH = -6982.23, -7134.90, -7217.31
MOST_CLASSES = 0.5  # as a share of the rows
DEMO_SEED = 2  # decides which rows validate; with this one A and D come out linear Gaussian


@command
@options.learning_options()
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
@click.option(
    "--season",
    help="With --time: a season that rows depend on: year, week, day or hour, or the number of its rows.",
)
@options.learning_option(OPTIONS["prepare"])
@options.na_option
@options.learning_option(OPTIONS["max_seconds"])
@options.file_option("--checkpoint", OPTIONS["checkpoint"].flag_help)
@options.workers_option
@options.scheduler_option
@options.file_option("--out", "Write the model: model.spbn.")
@options.report_option
def learn(
    answer: Answer,
    lesson: options.Lesson,
    lags: int | None,
    series: str | None,
    time: str | None,
    every: float | None,
    season: str | None,
    prepare: str,
    na: tuple[str, ...],
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

    [dim]spbn learn messy.csv --fix auto --out model.spbn --report report.html[/]

    [dim]spbn learn data/*.parquet --workers 2 --out model.spbn[/]
    """
    from spbn.cli.files import present
    from spbn.learning.learn import LearningInterrupted

    inputs.require_targets(out, checkpoint, report=report, inputs=lesson.files)
    axis = inputs.axis_of(lags, series, time, every, season)
    lesson = replace(lesson, fixes=prepare == "auto", na=na)
    if (lesson.fixes or na) and (lesson.is_in_parts or axis is not None):
        option, where = "--fix" if lesson.fixes else "--na", "several files" if axis is None else "--lags"
        raise ArgumentError(f"{option} cannot be used with {where}: leave it out.")
    frame: pd.DataFrame | None = None
    if lesson.is_in_parts:
        if checkpoint is not None:
            raise ArgumentError("--checkpoint cannot be used with several files: leave it out.")
        if axis is not None:
            raise ArgumentError("--lags cannot be used with several files: put them into one table.")
        settings = lesson.read_later()
    else:
        with lesson.explaining() if axis is None else nullcontext():
            frame, settings = lesson.read(axis)
        if axis is None and not lesson.fixes:
            settings["prepare"] = options.as_read(frame, lesson)
        settings["checkpoint"] = checkpoint
    settings |= {"max_seconds": max_seconds, "progress": sys.stderr.isatty()}
    with options.client_of(workers, scheduler) as client:
        try:
            with lesson.explaining() if axis is None else nullcontext():
                network = _learned(lesson, frame, axis, settings | {"client": client})
        except LearningInterrupted as stop:
            if out is None or not _wants_to_save(stop, out):
                raise
            stop.network().save(out)
            say(f"best network after {len(stop.search.steps)} steps written to {out}")
            raise click.exceptions.Exit(130) from None
    if not network.is_dynamic:
        record = replace(network.row_network.record, title=lesson.data.stem)
        network = network.row_network.replace(record=record)
    give_network(answer, network)
    if frame is not None:
        is_complete = present(frame).all()
        if network.is_dynamic:
            frame = frame if is_complete else None  # leaving some out would join others
        elif is_complete:
            _warn_of_far_rows(network.row_network, frame, lesson.data)
    answer.write("out", out, "model", network.save)
    write_report_to(answer, "report", report, network, frame, lesson.data.stem)


@command
@options.data_argument
@click.option("--drop", multiple=True, help=OPTIONS["drop"].flag_help)
@click.option("--discrete", multiple=True, help=OPTIONS["discrete"].flag_help)
@options.na_option
def check(
    answer: Answer, data: Source, drop: tuple[str, ...], discrete: tuple[str, ...], na: tuple[str, ...]
) -> None:
    """List everything that stands in the way of learning.

    For every column: what it looks like, what spbn learn --fix auto does about it, and why.

    [dim]spbn check messy.csv --na -999[/]
    """
    dropped, chosen = (options.names_in(o, v) or [] for o, v in (("--drop", drop), ("--discrete", discrete)))
    lesson = options.Lesson((data,), None, dropped, {"discrete": chosen}, can_impute=True, na=na)
    where, found = lesson.prepared()
    said = {
        "--sep": [data.sep],
        "--decimal": [data.decimal],
        "--encoding": [data.encoding],
        "--sheet": [data.sheet],
        "--skip-rows": [str(where.skip_rows) if where.skip_rows else None],
        "--drop": drop,
        "--discrete": discrete,
        "--na": na,
    }
    words = [word for name, values in said.items() for value in values if value for word in (name, value)]
    stem = "table" if data.is_standard else data.stem
    outputs = ["--out", f"{stem}.spbn", "--report", f"{stem}.html"]
    line = shlex.join(["spbn", "learn", str(data.path), *words, "--fix", "auto", *outputs])
    document = {
        "rows": len(found.frame),
        "columns": list(found.frame),
        "findings": [asdict(finding) for finding in found.findings],
        "command": line,
    }
    answer.give(lambda: document, lambda: say_lines(f"{found}\n\n{line}"))


def _learned(
    lesson: options.Lesson, frame: pd.DataFrame | None, axis: inputs.Axis | None, settings: dict[str, Any]
) -> Network:
    """Learn from a table, from rows that follow each other, or from parts of a table."""
    if frame is None:
        from spbn.learning.distributed import learn as learn_from_parts

        return learn_from_parts([source.path for source in lesson.files], **settings)
    if axis is not None:
        keys = {"series": axis.series, "time": axis.time}
        return spbn.learn_dynamic(frame, lags=axis.lags, **keys, season=axis.season, **settings)
    return spbn.learn(frame, **settings)


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
    from spbn.diagnostics.model import explain_early_stop
    from spbn.diagnostics.rows import gather_rows

    found = explain_early_stop(network, gather_rows(network, frame))
    if found is not None:
        places = "; ".join(f"{place(data, int(far.label))}, column {far.node!r}" for far in found.rows)
        look = f" A few rows far from all others can cause this. Look at {places}." if places else ""
        warn(f"{found.what}{look} {found.remedy_for(Flags(learn))}")


@command
@options.file_option("--folder", "Where to write the model and the report.", default=Path("."))
def demo(answer: Answer, folder: Path) -> None:
    """Learn the paper's network, and compare with its figures.

    [dim]spbn demo[/]
    """
    model, report = folder / "spbn-demo.spbn", folder / "spbn-demo.html"
    inputs.require_targets(model, report=report)
    train, test = spbn.datasets.paper_synthetic("10000"), spbn.datasets.paper_synthetic("test")
    truth = spbn.datasets.synthetic_structure()
    fitted = spbn.BayesianNetwork.fit(truth, train)
    start = clock.perf_counter()
    learned = spbn.learn(train, model="spbn", seed=DEMO_SEED, progress=sys.stderr.isatty())
    seconds = clock.perf_counter() - start
    few = spbn.datasets.paper_synthetic("2000")
    default = spbn.learn(few, progress=sys.stderr.isatty())
    found = {
        "true_density": float(spbn.datasets.synthetic_logpdf(test).sum()),
        "fitted_network": fitted.loglik(test),
        "published": {
            "true_density": PUBLISHED_TRUTH,
            "fitted_network": PUBLISHED_FIT,
            "learned_from_2000_rows": PUBLISHED_SEARCH,
        },
        "is_true_structure": learned.structure == truth,
        "seconds": seconds,
        "from_2000_rows": {
            "spbn": spbn.learn(few, model="spbn", seed=DEMO_SEED).loglik(test),
            "auto": default.loglik(test),
            "auto_has_true_arcs": set(default.structure.arcs) == set(truth.arcs),
        },
    }
    answer.give(lambda: found, lambda: _show_demo(fitted, learned, default, found))
    answer.write("model", model, "model", learned.save)
    write_report_to(answer, "report", report, learned, train, "The paper's synthetic network")


def _show_demo(
    fitted: BayesianNetwork, learned: BayesianNetwork, default: BayesianNetwork, found: Mapping[str, Any]
) -> None:
    say("The paper's synthetic network, fitted to 10,000 rows:", style="bold")
    say()
    say_lines(str(fitted))
    say("", f"{'log-likelihood of the 1,000 test rows':40}{'here':>12}{'published':>12}", style="bold")
    say(f"{'  true density':40}{found['true_density']:12.2f}{PUBLISHED_TRUTH:12.2f}")
    say(f"{'  fitted network':40}{found['fitted_network']:12.2f}{PUBLISHED_FIT:12.2f}")
    say("", "Structure and node types learned from the same rows:", style="bold")
    say()
    say_lines(str(learned.search))
    verdict = "the true one" if found["is_true_structure"] else "not the true one"
    say("", f"This is {verdict}; found in {found['seconds']:.1f} s.")
    few = found["from_2000_rows"]
    say("", f"{'the same, learned from 2,000 rows':40}{'here':>12}{'published':>12}", style="bold")
    say(f"{'  paper: lines and kernels':40}{few['spbn']:12.2f}{PUBLISHED_SEARCH:12.2f}")
    say(f"{'  default: lines, curves and blends':40}{few['auto']:12.2f}")
    verdict = "the true ones" if few["auto_has_true_arcs"] else "not the true ones"
    say("", f"The default model, whose arcs are {verdict}:", style="bold")
    say()
    say_lines(str(default))


@command
@options.learning_options(but=("atoms",))
@click.option("--replicates", default=100, help="How many searches, each on half of the rows.")
@click.option("--workers", default=1, help="Number of processes that search at the same time.")
@options.scheduler_option
@options.file_option("--checkpoint", "Record every replicate in this file, and resume from it: run.jsonl.")
@options.file_option("--out", "Write the strengths of all arcs: arcs.csv.")
@options.report_option
def confidence(
    answer: Answer,
    lesson: options.Lesson,
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
    inputs.require_targets(checkpoint, report=report, tables=[out], inputs=lesson.files)
    if workers > 1 and scheduler is not None:
        raise ArgumentError("give --workers or --scheduler, not both: a scheduler has workers of its own.")
    inputs.require_least("--workers", workers)
    frame, settings = lesson.read()
    settings |= {"replicates": replicates, "checkpoint": checkpoint, "progress": sys.stderr.isatty()}
    with options.client_of(None, scheduler) if scheduler else _processes(workers) as client:
        found = spbn.confidence(frame, client=client, **settings)
    document = _confidence_document(found)
    answer.give(lambda: document, lambda: _show_confidence(document))
    answer.write_rows("out", out, found.arcs, "arcs")
    if report is not None:
        from spbn.report.pages import write_confidence_report

        write_confidence_report(found, report, title=f"Which arcs of {lesson.data.stem} to believe")
        answer.wrote("report", report, f"report written to {report}")


def _confidence_document(found: Confidence) -> dict[str, Any]:
    """Describe the arcs that some replicate has: whether they are believed, and why a direction is open."""
    believed, notes = set(found.structure().arcs), found.open_directions()
    arcs = objects(found.arcs)
    for arc in arcs:
        pair = (arc["source"], arc["target"])
        arc |= {"believed": pair in believed, "open": notes.get(pair)}
    return {
        "replicates": len(found.structures),
        "rows": found.rows,
        "nodes": list(found.nodes),
        "threshold": found.threshold,
        "arcs": arcs,
        "types": objects(found.types),
    }


def _show_confidence(found: Mapping[str, Any]) -> None:
    say(
        f"{count(range(found['replicates']), 'replicate')}, {count(found['nodes'], 'node')}; "
        f"arcs stronger than {found['threshold']:.2f} are believed"
    )
    for is_believed, title in ((True, "believed"), (False, "not believed")):
        chosen = [arc for arc in found["arcs"] if arc["believed"] == is_believed]
        if not chosen:
            continue
        names = [printable(f"{arc['source']} → {arc['target']}") for arc in chosen]
        width = max(len(title), *map(len, names))
        say("", f"{title:{width}}  strength  direction", style="bold")
        for name, arc in list(zip(names, chosen, strict=True))[: None if is_believed else SHOWN_CASES]:
            line = f"{name:{width}}  {arc['strength']:8.2f}  {arc['direction']:9.2f}"
            why = f"open: {arc['open']}" if arc["open"] else ""
            say(f"{line}  {why}".rstrip())
    say(
        "",
        "Strength: the share of replicates that join the two nodes. Direction: the share of these in "
        "which the arc points this way.",
        style="dim",
    )


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
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_to_work, initargs=(threads,))
    try:
        with interrupts_postponed():
            for _ in range(workers):
                pool.submit(int)  # which starts one, as long as none is idle
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():  # what they are at would take its time
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_to_work(threads: int) -> None:
    """Use some threads; end when the process that waits for the results does, however it ends."""
    import signal
    from multiprocessing import parent_process
    from threading import Thread

    import numba

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows; elsewhere it is blocked
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    parent = parent_process()

    def end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=end, daemon=True).start()


@command
@options.learning_options(
    but=("model", "atoms"),
    one_table=True,
    folds={"help": "Number of folds for the comparison."},
    margins={
        "help": "Transform of every column, for all models. By default auto for auto and none for the "
        "others, and blend also with 'yeo-johnson'.",
    },
    missing=options.MISSING_ROWS,
)
@click.option(
    "--models",
    multiple=True,
    help=f"Models to compare, separated by commas: auto,gbn. May be repeated. Default: {', '.join(MODELS)}.",
)
@options.workers_option
@options.scheduler_option
def compare(
    answer: Answer,
    lesson: options.Lesson,
    models: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
) -> None:
    """Compare models on rows that they have not seen.

    [dim]spbn compare wine.csv --folds 5[/]
    """
    from spbn.learning.comparison import compare_models

    frame, settings = lesson.read()
    settings["models"] = options.names_in("--models", models) or list(MODELS)
    with options.client_of(workers, scheduler) as client:
        found = compare_models(frame, progress=sys.stderr.isatty(), client=client, **settings)
    named = found.rename(columns=lambda name: str(name).replace("-", "_").replace(" ", "_"))
    answer.give(lambda: {"models": objects(named)}, lambda: _show_comparison(found))


def _show_comparison(table: pd.DataFrame) -> None:
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
    say(
        "",
        "Mean log-density of an unseen row, and its difference from that of the best model, each ± its "
        "standard error. Higher is better.",
        style="dim",
    )


def _with_error(values: pd.Series[Any], errors: pd.Series[Any]) -> list[str]:
    return [f"{value:.4f} ± {error:.4f}" for value, error in zip(values, errors, strict=True)]


def _in_words(shares: pd.Series[Any]) -> str:
    """Say which part of the nodes is of which type, the largest part first."""
    found = shares[shares > 0].sort_values(ascending=False, kind="stable")
    return ", ".join(f"{share:.0%} {str(name).removesuffix(' share')}" for name, share in found.items())


@command
@options.learning_options(
    but=("folds", "missing", "hidden", "atoms"),
    one_table=True,
    test={"flag": "--independence-test"},
)
@click.option("--target", required=True, help="The column with the classes.")
@options.table_option(
    "--test",
    "new",
    help="A table with rows to classify. If it has the classes, the predictions are assessed. Without it the "
    "rows of DATA are predicted by cross-validation.",
)
@click.option(
    "--structure",
    type=click.Choice(["multinet", "augmented"]),
    default="multinet",
    help="One network per class, or one in which the class is a parent of all columns.",
)
@click.option(
    "--calibrate/--no-calibrate", default=True, help="Calibrate the probabilities by cross-validation."
)
@click.option("--folds", default=5, help="Number of folds for cross-validation, without --test.")
@click.option("--missing", default="error", **options.MISSING_ROWS)
@options.file_option("--out", "Write the predictions: predictions.csv.")
@options.report_option
def classify(
    answer: Answer,
    lesson: options.Lesson,
    target: str,
    new: Source | None,
    structure: str,
    calibrate: bool,
    folds: int,
    missing: str,
    out: Path | None,
    report: Path | None,
) -> None:
    """Predict a class from the other columns, with probabilities.

    [dim]spbn classify train.csv --target class --test new.csv --out predictions.csv[/]
    """
    from spbn.sklearn.estimators import SPBNClassifier

    data = lesson.data
    inputs.require_targets(report, tables=[out], inputs=[data, new])
    if target in lesson.discrete:
        raise ArgumentError(f"--discrete names the column of the classes, {target!r}: leave it out.")
    chosen = lesson.columns
    if chosen is not None and target not in chosen:
        chosen = [*chosen, target]
    _require_target(data, target, lesson.drop)
    frame = inputs.training_frame(data, chosen, lesson.drop, [target, *lesson.discrete], missing)
    features, classes = frame.drop(columns=target), _classes(frame[target])
    different = len(set(classes.tolist()))
    if different > MOST_CLASSES * len(classes):  # measurements, dates, or names of the rows
        raise DataError(
            f"{data}: column {target!r} has {different} different values in {len(classes)} rows, so these "
            f"are not classes. Choose another --target; for numbers, use spbn learn and spbn predict."
        )
    if features.shape[1] == 0:
        raise DataError(f"{data} has no column besides {target!r} to predict it from.")
    settings = lesson.settings(list(map(str, features.columns)))
    classifier = SPBNClassifier(
        structure=structure, calibrate=calibrate, score_function=settings.pop("score"), **settings
    )
    if new is None:
        found = cross_validated(classifier, features, classes, folds, lesson.chosen["seed"])
        how = f"Rows of {data.name}, predicted in a cross-validation with {folds} folds."
    else:
        with inputs.busy("learning"):
            classifier.fit(features, classes)
        found = predicted(classifier, *_test_rows(new, features, target, lesson.discrete, missing))
        if found.truth is not None and not found.known.all():
            names = sorted({str(name) for name in found.truth[~found.known]})
            note(
                f"{(~found.known).sum()} rows have a class that no training row has ({quoted(names)}): they "
                f"are predicted, but not assessed."
            )
        how = f"Rows of {new.name}, predicted by a model learned from {len(frame)} rows of {data.name}."
    answer.give(lambda: _predictions_document(found), lambda: _show_predictions(found))
    answer.write_rows("out", out, found.frame, "predictions")
    if report is not None:
        from spbn.report.html import write_page
        from spbn.report.pages import render_classification

        write_page(render_classification(found, title=f"{target} of {data.stem}", how=how), report)
        answer.wrote("report", report, f"report written to {report}")


def predicted(
    classifier: SPBNClassifier, features: pd.DataFrame, truth: npt.NDArray[Any] | None
) -> Predictions:
    """Predict rows, and say which features speak for the predictions; `truth` may be unknown."""
    from spbn.diagnostics.classification import Predictions

    return Predictions(
        classifier.classes_, classifier.predict_proba(features), classifier.explain(features), truth
    )


def cross_validated(
    classifier: SPBNClassifier, features: pd.DataFrame, classes: npt.NDArray[Any], folds: int, seed: int
) -> Predictions:
    """Predict every row by a model that was learned without its fold."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from spbn.diagnostics.classification import Predictions

    names, counts = np.unique(classes, return_counts=True)
    if not 2 <= folds <= counts.max():
        raise ArgumentError(
            f"{argument('folds')} must be between 2 and the rows of the largest class, {counts.max()}. "
            f"Got {folds}."
        )
    features = inputs.with_all_levels(features, classifier.discrete)
    probabilities = np.zeros((len(classes), len(names)))
    explanations = []
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    with (
        warnings.catch_warnings(),
        counting_progress(sys.stderr.isatty(), "learning", total=folds) as advance,
    ):
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        for train, test in splitter.split(features, classes):
            fitted = clone(classifier).fit(features.iloc[train], classes[train])
            part = predicted(fitted, features.iloc[test], None)
            probabilities[np.ix_(test, np.searchsorted(names, part.classes))] = part.probabilities
            explanations.append(part.explanation)
            advance()
    return Predictions(names, probabilities, pd.concat(explanations).loc[features.index], classes)


def _require_target(source: Source, target: str, drop: list[str]) -> None:
    """Refuse a target that is not there: reading its column as classes would name another option."""
    from spbn.cli.files import column_names

    names = [name for name in column_names(source) if name not in drop]
    if target not in names:
        raise DataError(f"{source} has no column {target!r} to use. Its columns are {quoted(names)}.")


def _classes(column: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return classes as whole numbers or truth values if they are some, and as text otherwise."""
    array = column.to_numpy()
    return array if array.dtype.kind in "iub" else column.astype(str).to_numpy(dtype=object)


def _test_rows(
    source: Source, features: pd.DataFrame, target: str, discrete: list[str], missing: str
) -> tuple[pd.DataFrame, npt.NDArray[Any] | None]:
    """Read the columns to predict from, and the classes if they are there."""
    from spbn.cli.files import column_names

    names = list(features.columns)
    has_classes = target in column_names(source)
    columns, categories = ([*names, target], [*discrete, target]) if has_classes else (names, discrete)
    frame = inputs.training_frame(source, columns, [], categories, missing)
    return frame[names], _classes(frame[target]) if has_classes else None


def _show_predictions(found: Predictions) -> None:
    """Print how good predictions are; if the truth is unknown, how many rows each class gets."""
    assessment = found.assessment
    names = [printable(str(name)) for name in found.classes]
    say(f"{count(found.probabilities, 'row')}, {count(names, 'class', 'classes')}", "")
    if assessment is None:
        counts = found.explanation["predicted"].value_counts().reindex(found.classes, fill_value=0)
        say_lines(pd.DataFrame({"predicted": counts.to_numpy()}, index=names).to_string())
        return
    say(f"accuracy           {assessment.accuracy:.1%}")
    say(f"log loss           {assessment.log_loss:.4f}")
    say(f"Brier score        {assessment.brier:.4f}")
    say(f"calibration error  {assessment.calibration_error:.4f}", "")
    table = pd.DataFrame(assessment.confusion, index=names, columns=names)
    say_lines(table.rename_axis(columns="class").to_string())
    say("", "Confusion: one line per true class, one column per prediction.", style="dim")


def _predictions_document(found: Predictions) -> dict[str, Any]:
    names = ("accuracy", "log_loss", "brier", "calibration_error", "confusion")
    assessment = found.assessment
    return {
        "classes": list(found.classes),
        "rows": len(found.probabilities),
        "predictions": objects(found.frame),
        **({} if assessment is None else {name: getattr(assessment, name) for name in names}),
    }
