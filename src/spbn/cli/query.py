"""The commands that ask a network: ``spbn query``, ``predict``, ``sample``, ``impute``, ``classes`` ..."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import spbn
from spbn._base.display import printable
from spbn._base.lazy import pd
from spbn.cli import inputs, options
from spbn.cli.command import FILE, Answer, argument, command, count, note, objects, say, say_lines, shown
from spbn.cli.sources import STANDARD, Source, ending
from spbn.errors import ArgumentError, DataError, ModelFileError, quoted

if TYPE_CHECKING:
    from spbn.inference import Posterior
    from spbn.inference.equivalent import Over

SHARE = 0.9  # of the interval that is shown and written
HEADS = {"mean": "mean", "median": "median", "low": "5 %", "high": "95 %"}


@command
@options.model_argument
@click.option("--given", multiple=True, help=f"What is known, such as {options.EXAMPLES}. May be repeated.")
@options.do_option()
@options.over_option
@options.rows_option
@click.option(
    "--event",
    multiple=True,
    help="Also print the probability of this: 'C>0'. If repeated, the probability that all hold.",
)
@click.option("-n", default=2000, help="How many draws to make.")
@click.option("--max-seconds", type=float, help="Time limit in seconds; the answer may be less precise.")
@options.seed_option
@options.file_option("--out", "Write draws of the unknown variables: samples.csv.")
@options.file_option("--plot", "Draw every variable before and after: .png, .svg or .pdf.")
def query(
    answer: Answer,
    model: Path,
    given: Sequence[str],
    do: Sequence[str],
    over: Over,
    data: Source | None,
    event: Sequence[str],
    n: int,
    max_seconds: float | None,
    seed: int,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Ask what is likely, given what is known.

    [dim]spbn query wine.spbn --given "alcohol=13" --given "hue<0.8" --event "proline>1000"[/]
    """
    inputs.require_targets(plot=plot, tables=[out], inputs=[model, data])
    inputs.require_least("-n", n)
    network = inputs.load_model(model)
    rows = None if data is None else inputs.frame_for(network, data)
    known = options.conditions_in("--given", given, network.all_variables)
    set_to = options.conditions_in("--do", do, network.all_variables)
    asked = options.event_in(event, network.all_variables, "{low:.12g}<={name}<={high:.12g}")
    posterior = network.query(
        known,
        do=set_to,
        over=over,
        data=rows,
        n=n,
        seed=seed,
        max_seconds=max_seconds,
        progress=sys.stderr.isatty(),
    )
    probability = posterior.probability(asked) if asked else None
    found = _posterior_document(posterior, asked, probability)
    answer.give(lambda: found, lambda: _show_posterior(posterior, found, event))
    if out is not None:
        answer.write_rows("out", out, posterior.sample(n, seed=seed), f"{n} draws")
    if plot is not None:
        from spbn.plots.pictures import save_figure

        answer.write("plot", plot, "picture", lambda path: save_figure(posterior, path))


def _posterior_document(
    posterior: Posterior, asked: Mapping[str, Any], probability: float | None
) -> dict[str, Any]:
    """Describe what is likely of every unknown variable, and how far that can be trusted."""
    numbers = posterior.interval(SHARE)
    numbers.insert(0, "median", posterior.median())
    numbers.insert(0, "std", posterior.std())
    numbers.insert(0, "mean", posterior.mean())
    variables: dict[str, Any] = {}
    for variable in posterior.variables:
        name = variable.name
        if variable.is_discrete:
            shares = posterior.probabilities(name)
            variables[name] = {"probabilities": {str(level): share for level, share in shares.items()}}
        else:
            variables[name] = numbers.loc[name].to_dict()
    found = {
        "given": dict(posterior.evidence),
        "do": dict(posterior.do),
        "variables": variables,
        "share": SHARE,
        "method": posterior.method,
        "methods": dict(posterior.methods),
        "effective_size": posterior.effective_size,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
    }
    if posterior.open_directions:
        found["open_directions"] = posterior.open_directions
    if posterior.alternatives:
        found["range"] = objects(posterior.range().reset_index())
        found["by_graph"] = objects(posterior.by_graph(SHARE))
    if probability is not None:
        found["event"] = {
            "conditions": asked,
            "probability": probability,
            "standard_error": posterior.probability_error(asked),
        }
    return found


def _show_posterior(posterior: Posterior, found: Mapping[str, Any], event: Sequence[str]) -> None:
    """Print a line per variable, numbers first."""
    variables = found["variables"]
    width = max([len(printable(name)) for name in variables], default=0)
    numbers = [name for name, values in variables.items() if "mean" in values]
    if numbers:
        say(f"{'':{width}} {' '.join(f'{head:>12}' for head in HEADS.values())}", style="bold")
    for name in numbers:
        low, high = variables[name]["low"], variables[name]["high"]
        cells = " ".join(_with_digits_of(high - low, variables[name][key]) for key in HEADS)
        say(f"{printable(name):{width}} {cells}")
    for name in (name for name in variables if name not in numbers):
        shares = variables[name]["probabilities"].items()
        cells = ", ".join(f"{level} {share:.3f}" for level, share in shares)
        say(f"{printable(name):{width}}   {cells}")
    say()
    by_method: dict[str, list[str]] = {}
    for name, method in posterior.methods.items():
        by_method.setdefault(method, []).append(name)
    draws = f"{len(posterior.weights):,} draws (effective sample size {posterior.effective_size:,.0f})"
    say(f"method: {posterior.method}{'' if posterior.method == 'exact' else f', {draws}'}")
    if len(by_method) > 1:
        for method, names in by_method.items():
            say(f"  {method}: {', '.join(map(printable, names))}")
    if posterior.evidence:
        error = posterior.log_evidence_error
        say(f"log-evidence: {posterior.log_evidence:.3f}{f' ± {error:.3f}' if error else ''}")
    if event:
        error = found["event"]["standard_error"]
        plus_minus = f" ± {error:.2g}" if error else ""
        say(f"P({options.in_words(event)}) = {found['event']['probability']:.4g}{plus_minus}")
    if posterior.open_directions:
        say(f"it depends on directions that are open: {arcs_in_words(posterior.open_directions)}")
    if posterior.alternatives:
        _show_range(posterior)


def _show_range(posterior: Posterior) -> None:
    """Print what the answers of equivalent graphs are between: means, or probabilities of levels."""
    counts = [one.graphs for one in posterior.alternatives]
    graphs = "many" if None in counts else f"{sum(number or 0 for number in counts):,}"
    answers = count(counts, "answer")
    say(f"over equivalent graphs: {answers} of {graphs} graphs. Means and probabilities are between")
    found = posterior.range()
    width = max(len(printable(str(name))) for name in found.index)
    for name, low, high in found.itertuples():
        cells = " ".join(_with_digits_of(high - low or 1.0, value) for value in (low, high))
        say(f"{printable(str(name)):{width}} {cells}")


def arcs_in_words(arcs: Sequence[tuple[str, str]]) -> str:
    """Write arcs."""
    return ", ".join(f"{source} → {target}" for source, target in arcs)


def _standard_error(probability: float, draws: float) -> float:
    """Return the standard error of a probability that was counted among draws."""
    return math.sqrt(probability * (1.0 - probability) / max(draws, 1.0))


def _with_digits_of(width: float, value: float) -> str:
    """Write a value so that three digits of a width are seen, however far from zero it is."""
    if abs(value) < 1e9:
        decimals = 3 if not width > 0 else min(max(2 - math.floor(math.log10(width)), 0), 9)
        return f"{value:12.{decimals}f}"
    digits = 5 if not width > 0 else math.floor(math.log10(abs(value))) - math.floor(math.log10(width)) + 3
    return f"{value:12.{min(max(digits, 5), 17)}g}"


@command
@options.model_argument
@options.data_argument
@click.option("--target", multiple=True, required=True, help="A variable to predict. May be repeated.")
@click.option(
    "--statistic",
    type=click.Choice(["mean", "median", "mode"]),
    default="mean",
    help="What to predict for numbers; for categories, always the most probable level.",
)
@options.seed_option
@options.screen_option
def predict(
    answer: Answer,
    model: Path,
    data: Source,
    target: Sequence[str],
    statistic: Literal["mean", "median", "mode"],
    seed: int,
    out: Path | None,
) -> None:
    """Predict columns, row by row, from the others.

    Values that are missing are unknown, too.

    [dim]spbn predict wine.spbn new.csv --target proline --out predictions.csv[/]
    """
    from spbn.cli.files import column_names, read_table
    from spbn.tables.readings import source_of

    inputs.require_targets(tables=[out], inputs=[model, data])
    network = inputs.load_model(model)
    unknown = [name for name in target if name not in network.nodes]
    if unknown:
        raise ArgumentError(
            f"--target names unknown variables: {quoted(unknown)}. The model has {quoted(network.nodes)}."
        )
    targets = list(dict.fromkeys(target))
    data = inputs.as_learned(network, data)
    with inputs.busy("reading the table"):
        there = column_names(data)
        variables = [
            v
            for v in network.variables
            if v.name not in targets and source_of(v.reading, v.name, there) is not None
        ]
        if not variables:
            raise DataError(
                f"{data} has none of the columns to predict {quoted(targets)} from. Its columns are "
                f"{quoted(there)}."
            )
        frame = read_table(data, variables=variables)
    known = {variable.name for variable in variables}
    absent = [v.name for v in network.variables if v.name not in known and v.name not in targets]
    if absent:
        note(f"{data} has no column {quoted(absent)}: predicting without it.")
    with inputs.busy("predicting"):
        found = network.predict(frame, targets, statistic=statistic, seed=seed)
    answer.give_rows(found, out)


@command
@options.model_argument
@click.option("-n", default=1000, help="How many rows; for a model over time, in one series.")
@options.seed_option
@options.screen_option
def sample(answer: Answer, model: Path, n: int, seed: int, out: Path | None) -> None:
    """Draw rows from a network.

    [dim]spbn sample wine.spbn -n 1000 --out samples.csv[/]
    """
    inputs.require_targets(tables=[out], inputs=[model])
    network = inputs.load_any_model(model)
    with inputs.busy("drawing rows"):
        rows = network.sample(n, seed=seed)  # of a model over time: one series
    answer.give_rows(rows, out)


@command
@options.model_argument
@options.data_argument
@options.seed_option
@options.screen_option
def classes(answer: Answer, model: Path, data: Source, seed: int, out: Path | None) -> None:
    """Say which population each row, or each series, belongs to.

    For a network that was learned with --hidden: the probability of every class, and the most probable one.
    Values may be missing.

    [dim]spbn classes wine.spbn wine.csv --out classes.csv[/]
    """
    inputs.require_targets(tables=[out], inputs=[model, data])
    network = inputs.load_any_model(model)
    if network.row_network.hidden is None:
        raise ArgumentError(f"{shown(model)} has no hidden class: learn it with --hidden auto.")
    frame = inputs.frame_for(network, data)
    with inputs.busy("telling classes apart"):
        if isinstance(network, spbn.DynamicNetwork):
            found = network.classes(frame).reset_index()
        else:
            found = network.row_network.classes(frame, seed=seed)
    answer.give_rows(found, out)


@command
@options.model_argument
@options.data_argument
@options.file_option("--out", "Write the table without holes: full.csv.", required=True)
@click.option(
    "--draws",
    default=1,
    help="How many times to fill the holes, each time differently. Several tables are written to full-1.csv, "
    "full-2.csv and so on.",
)
@options.seed_option
def impute(answer: Answer, model: Path, data: Source, out: Path, draws: int, seed: int) -> None:
    """Fill holes in a table with likely values.

    Each hole is filled with a random draw given the rest of the row. All other values stay as they are, as do
    columns that the network does not know.

    [dim]spbn impute wine.spbn holes.csv --out full.csv[/]
    """
    inputs.require_least("--draws", draws)
    end = ending(out)
    stem = out.name.removesuffix(end)
    targets = [out] if draws == 1 else [out.with_name(f"{stem}-{k + 1}{end}") for k in range(draws)]
    if draws > 1 and out == STANDARD:
        raise ArgumentError("--draws gives several tables, and standard output (-) takes one: give a file.")
    inputs.require_targets(tables=targets, inputs=[model, data])
    network = inputs.load_model(model)
    frame = inputs.frame_for(network, data)
    # The holes of a messy table cannot be filled where they are: what is written is the table as it is read.
    is_prepared = network.preparation is not None and not network.preparation.keeps_columns
    holes = frame.isna()
    with inputs.busy("filling the holes"):
        filled = network.imputations(frame, n=draws, seed=seed)
    for table, target in zip(filled, targets, strict=True):
        answer.save_rows(table if is_prepared else _merged(data, table, holes), target)
    filled_in = {str(name): int(k) for name, k in holes.sum().items() if k}
    answer.give(
        lambda: {"rows": len(holes), "draws": draws, "filled": filled_in},
        lambda: _show_imputation(filled_in, rows=int(holes.any(axis=1).sum())),
    )
    through = f" ... {targets[-1].name}" if draws > 1 else ""
    answer.wrote(
        "out",
        out if draws == 1 else targets,
        f"{len(frame)} rows written to {shown(targets[0])}{through}",
        apart=False,
    )


def _show_imputation(filled_in: Mapping[str, int], rows: int) -> None:
    number = sum(filled_in.values())
    if not number:
        say("no value is missing: nothing was filled in")
        return
    values, of = ("value", "row") if number == 1 else ("values", "rows" if rows > 1 else "row")
    columns = ", ".join(f"{name} {k}" for name, k in filled_in.items())
    say(f"{number} missing {values} in {rows} {of} filled in: {columns}")


def _merged(data: Source, filled: pd.DataFrame, holes: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it is in its file, but without holes."""
    import numpy as np

    from spbn.cli.files import read_as_written

    written = read_as_written(data, discrete=filled.select_dtypes("category").columns)
    for name in holes.columns[holes.any()]:
        values = filled[name].to_numpy()
        if data.is_text:
            values = np.where(holes[name], values.astype(str), written[name])
        written[name] = values
    return written


@command
@argument("model", type=FILE, help="A model written by [bold]spbn learn --lags[/].")
@options.table_argument(
    "history", help="The rows so far: .csv, .tsv, .csv.gz, .parquet or .xlsx; or - for standard input."
)
@click.option("--steps", default=10, help="How many rows to look ahead.")
@click.option("-n", default=1000, help="How many paths to draw.")
@click.option(
    "--event",
    multiple=True,
    help="Also print the probability that this happens within the steps, such as "
    f"{options.EXAMPLES}. If repeated, the probability that all happen in the same row.",
)
@click.option("--only", help="The series to continue, if there are several. Default: all.")
@click.option(
    "--every", type=float, help="Resample the history to this time step first, in seconds if times are dates."
)
@options.seed_option
@options.file_option("--out", "Write means and quantiles of every step: ahead.csv.")
@options.file_option("--paths", "Write the paths themselves: paths.csv.")
@options.file_option("--plot", "Draw fan charts: .png, .svg or .pdf.")
def forecast(
    answer: Answer,
    model: Path,
    history: Source,
    steps: int,
    n: int,
    event: Sequence[str],
    only: str | None,
    every: float | None,
    seed: int,
    out: Path | None,
    paths: Path | None,
    plot: Path | None,
) -> None:
    """Forecast what may follow the last rows of a table.

    [dim]spbn forecast pump.spbn history.csv --steps 50 --event "vibration>4" --plot fan.png[/]
    """
    inputs.require_targets(plot=plot, tables=[out, paths], inputs=[model, history])
    inputs.require_least("--steps", steps)
    inputs.require_least("-n", n)
    network = inputs.load_any_model(model)
    if not isinstance(network, spbn.DynamicNetwork):
        raise ModelFileError(f"{model} is not a model over time: learn one with spbn learn --lags.")
    asked = options.event_in(event, network.variables, "{name}>{value:.12g}")
    rows = _only(network, inputs.frame_for(network, history, every=every), only)
    with inputs.busy("drawing paths"):
        ahead = network.forecast(rows, steps, n=n, seed=seed)
    if plot is not None and len(ahead.series) > 1:
        raise ArgumentError(f"--plot draws one series: say which (--only), of {quoted(ahead.series)}.")
    summary = _summary(ahead)
    chances = {str(name): ahead.probability(asked, series=name) for name in ahead.series if asked}
    answer.give(
        lambda: _forecast_document(ahead, summary, asked, chances),
        lambda: _show_forecast(ahead, summary, event, chances),
    )
    if out is not None:
        answer.write_rows("out", out, _forecast_table(ahead, summary))
    if paths is not None:
        answer.write_rows("paths", paths, ahead.paths)
    if plot is not None:
        from spbn.plots.pictures import save_figure

        answer.write("plot", plot, "picture", lambda path: save_figure(ahead, path))


def _only(network: spbn.DynamicNetwork, rows: pd.DataFrame, only: str | None) -> pd.DataFrame:
    if only is None:
        return rows
    if network.series is None:
        raise ArgumentError("--only is for models that were learned with --series.")
    from spbn.tables.columns import as_text

    names = rows[network.series].map(as_text)  # as a forecast has them
    chosen = rows[names == only]
    if not len(chosen):
        known = quoted(dict.fromkeys(names))
        raise ArgumentError(f"--only names an unknown series: {only!r}. There are {known}.")
    return chosen


def _summary(ahead: spbn.Forecast) -> dict[str, pd.DataFrame]:
    """Return mean and quantiles of every number at every step, and probabilities of levels."""
    ends = {"low": 0.5 - SHARE / 2, "median": 0.5, "high": 0.5 + SHARE / 2}
    means, quantiles = ahead.mean(), ahead.quantile(list(ends.values()))
    found: dict[str, pd.DataFrame] = {}
    for variable in ahead.variables:
        name = variable.name
        if variable.is_discrete:
            found[name] = ahead.probabilities(name)[list(variable.levels)]
        else:
            columns = {"mean": means[name], **{key: quantiles[name, end] for key, end in ends.items()}}
            found[name] = pd.DataFrame(columns)
    return found


def _show_forecast(
    ahead: spbn.Forecast,
    summary: Mapping[str, pd.DataFrame],
    event: Sequence[str],
    chances: Mapping[str, float],
) -> None:
    """Print some steps: the first ones, and then fewer and fewer."""
    from spbn.report.html import MINUS, number

    series = f", {count(ahead.series, 'series', 'series')}" if ahead.series_name else ""
    say(f"{count(range(ahead.steps), 'step')} ahead, {count(range(ahead.n), 'path')}{series}")
    steps = range(1, ahead.steps + 1)
    shown = [step for step in steps if step == ahead.steps or str(step).rstrip("0") in ("1", "2", "5")]
    for variable in ahead.variables:
        found = summary[variable.name].rename(columns=printable if variable.is_discrete else HEADS)
        found = found.rename(index=lambda value: printable(value) if isinstance(value, str) else value)
        rows = found.loc[found.index.get_level_values(-1).isin(shown), :].reset_index(allow_duplicates=True)
        say("", variable.name, style="bold")
        say_lines(rows.to_string(index=False, float_format=lambda value: number(value).replace(MINUS, "-")))
    if chances:
        say()
    for name, probability in chances.items():
        where = f"{name}: " if ahead.series_name else ""
        chance = f"P({options.in_words(event)} within {ahead.steps} steps)"
        say(f"{where}{chance} = {probability:.4g} ± {_standard_error(probability, ahead.n):.2g}")


def _forecast_document(
    ahead: spbn.Forecast,
    summary: Mapping[str, pd.DataFrame],
    asked: Mapping[str, Any],
    chances: Mapping[str, float],
) -> dict[str, Any]:
    rows = [row | {"variables": {}} for row in objects(ahead.mean().index.to_frame())]
    for variable in ahead.variables:
        for row, values in zip(rows, objects(summary[variable.name]), strict=True):
            found = {"probabilities": values} if variable.is_discrete else values
            row["variables"][variable.name] = found
    document: dict[str, Any] = {"steps": ahead.steps, "n": ahead.n, "share": SHARE, "rows": rows}
    if asked:
        errors = {name: _standard_error(chance, ahead.n) for name, chance in chances.items()}
        probability, error = (
            found if ahead.series_name else next(iter(found.values())) for found in (chances, errors)
        )
        document["event"] = {"conditions": asked, "probability": probability, "standard_error": error}
    return document


def _forecast_table(ahead: spbn.Forecast, summary: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    frame = ahead.mean()[[]].copy()
    for variable in ahead.variables:
        for key, values in summary[variable.name].items():
            is_level = variable.is_discrete
            frame[f"P({variable.name}={key})" if is_level else f"{variable.name} {HEADS[str(key)]}"] = values
    return frame.reset_index()
