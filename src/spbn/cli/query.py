"""The commands that ask a network something: ``spbn query``, ``predict``, ``impute`` and ``sample``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spbn._base.display import printable
from spbn.cli.command import command
from spbn.cli.conditions import EXAMPLES, conditions_in, in_words, require_intervals
from spbn.cli.inputs import (
    busy,
    frame_for,
    frame_without,
    load_any_model,
    load_model,
    require_picture,
    require_targets,
)
from spbn.cli.options import (
    FILE,
    data_argument,
    model_argument,
    out_option,
    screen_option,
    seed_option,
    table_options,
)
from spbn.cli.output import Answer, RowsView, answer_options, note, say, shown, standard_error
from spbn.cli.sources import STANDARD, Source, ending
from spbn.errors import ArgumentError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn.inference import Posterior

SHARE = 0.9  # of the interval that is shown


@command
@model_argument
@click.option("--given", multiple=True, help=f"What is known, such as {EXAMPLES}. May be repeated.")
@click.option(
    "--do",
    multiple=True,
    help="A variable that is set by intervention, which says nothing about its causes: 'A=2'. May be "
    "repeated.",
)
@click.option(
    "--event",
    multiple=True,
    help="Also print the probability of this: 'C>0'. If repeated, the probability of all together.",
)
@click.option("-n", type=int, default=2000, help="How many draws to make.")
@seed_option
@out_option("Write draws of the unknown variables: samples.csv.")
@click.option("--plot", type=FILE, help="Draw every variable before and after: .png, .svg or .pdf.")
@answer_options
def query(
    answer: Answer,
    model: Path,
    given: Sequence[str],
    do: Sequence[str],
    event: Sequence[str],
    n: int,
    seed: int,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Ask what is likely, given what is known.

    [dim]spbn query wine.spbn --given "alcohol=13" --given "hue<0.8" --event "proline>1000"[/]
    """
    require_targets(plot, tables=[out], inputs=[model])
    require_picture(plot)
    if n < 1:
        raise ArgumentError(f"-n must be 1 or more. Got {n}.")
    network = load_model(model)
    known = conditions_in("--given", given, network.variables)
    set_to = conditions_in("--do", do, network.variables)
    asked = conditions_in("--event", event, network.variables)
    require_intervals(asked, network.variables, "{low:.12g}<={name}<={high:.12g}")
    with busy("asking the network"):
        posterior = network.query(known, do=set_to, n=n, seed=seed)
        probability = posterior.probability(asked) if asked else None
    answer.give(PosteriorView(posterior, SHARE, event, asked, probability))
    if out is not None:
        answer.write_rows("out", posterior.sample(n, seed=seed), out, f"{n} draws")
    if plot is not None:
        from spbn.plots.densities import save_posterior

        save_posterior(posterior, plot)
        answer.wrote("plot", plot, f"picture written to {plot}")


@dataclass(frozen=True)
class PosteriorView:
    """What is likely of every unknown variable, and how far that can be trusted.

    Attributes
    ----------
    share
        Of the interval that is shown.
    event, conditions, probability
        What else was asked, as it was written and as it was read; and the answer, None if nothing was asked.
    """

    posterior: Posterior
    share: float
    event: Sequence[str]
    conditions: Mapping[str, Any]
    probability: float | None

    def show(self) -> None:
        """Print a line per variable."""
        posterior = self.posterior
        numbers = posterior.interval(self.share)
        names = [variable.name for variable in posterior.variables]
        width = max([len(printable(name)) for name in names], default=0)
        if len(numbers):
            numbers.insert(0, "median", posterior.median())
            numbers.insert(0, "mean", posterior.mean())
            heads = ["mean", "median", f"{50 * (1 - self.share):.0f} %", f"{50 * (1 + self.share):.0f} %"]
            say(f"{'':{width}} {' '.join(f'{head:>12}' for head in heads)}", style="bold")
        for name, row in numbers.iterrows():
            cells = " ".join(_with_digits_of(row["high"] - row["low"], value) for value in row)
            say(f"{printable(str(name)):{width}} {cells}")
        for variable in posterior.variables:
            if variable.is_discrete:
                shares = posterior.probabilities(variable.name)
                cells = ", ".join(f"{level} {share:.3f}" for level, share in shares.items())
                say(f"{printable(variable.name):{width}}   {cells}")
        say()
        draws, worth = len(posterior.weights), f"{posterior.effective_size:.0f}"
        is_exact = all(map(posterior.is_exact, names))
        drawn = "" if is_exact else f", {draws} draws worth {worth} independent ones"
        say(f"method: {posterior.method}{drawn}")
        if posterior.evidence:
            error = posterior.log_evidence_error
            say(f"log-evidence: {posterior.log_evidence:.3f}{f' ± {error:.3f}' if error else ''}")
        if self.probability is not None:
            error = self._error(self.probability)
            plus_minus = f" ± {error:.2g}" if error else ""
            say(f"P({in_words(self.event)}) = {self.probability:.4g}{plus_minus}")

    def document(self) -> dict[str, Any]:
        """Give mean, deviation, median and interval of numbers, and the probabilities of levels."""
        posterior = self.posterior
        means, deviations, medians = posterior.mean(), posterior.std(), posterior.median()
        intervals = posterior.interval(self.share)
        variables: dict[str, Any] = {}
        for variable in posterior.variables:
            name = variable.name
            if variable.is_discrete:
                shares = posterior.probabilities(name)
                variables[name] = {"probabilities": {str(level): p for level, p in shares.items()}}
            else:
                low, high = intervals.T[name]
                variables[name] = {
                    "mean": means[name],
                    "std": deviations[name],
                    "median": medians[name],
                    "low": low,
                    "high": high,
                }
        answer: dict[str, Any] = {
            "given": dict(posterior.evidence),
            "do": dict(posterior.do),
            "variables": variables,
            "share": self.share,
            "method": posterior.method,
            "effective_size": posterior.effective_size,
            "log_evidence": posterior.log_evidence,
            "log_evidence_error": posterior.log_evidence_error,
        }
        if self.probability is not None:
            answer["event"] = {
                "conditions": self.conditions,
                "probability": self.probability,
                "standard_error": self._error(self.probability),
            }
        return answer

    def _error(self, probability: float) -> float:
        """Return the standard error of the probability; 0 if it was computed exactly."""
        if len(self.conditions) == 1 and all(map(self.posterior.is_exact, self.conditions)):
            return 0.0
        return standard_error(probability, self.posterior.effective_size)


def _with_digits_of(width: float, value: float) -> str:
    """Write a value so that three digits of a width are seen, however far from zero it is."""
    if abs(value) < 1e9:
        decimals = 3 if not width > 0 else min(max(2 - math.floor(math.log10(width)), 0), 9)
        return f"{value:12.{decimals}f}"
    digits = 5 if not width > 0 else math.floor(math.log10(abs(value))) - math.floor(math.log10(width)) + 3
    return f"{value:12.{min(max(digits, 5), 17)}g}"


@command
@model_argument
@data_argument
@click.option("--target", multiple=True, required=True, help="A variable to predict. May be repeated.")
@click.option(
    "--statistic",
    type=click.Choice(["mean", "median", "mode"]),
    default="mean",
    help="What to predict for numbers; for categories, always the most probable level.",
)
@seed_option
@screen_option
@table_options
@answer_options
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
    require_targets(tables=[out], inputs=[model, data])
    network = load_model(model)
    unknown = [name for name in target if name not in network.nodes]
    if unknown:
        raise ArgumentError(
            f"--target names no variable of the model: {quoted(unknown)}. They are {quoted(network.nodes)}."
        )
    targets = list(dict.fromkeys(target))
    frame = frame_without(network, data, targets)
    absent = [name for name in network.nodes if name not in frame.columns and name not in targets]
    if absent:
        note(f"{data} has no column {quoted(absent)}: the predictions do without.")
    with busy("predicting"):
        found = network.predict(frame, targets, statistic=statistic, seed=seed)
    _write_or_print(answer, found, out)


@command
@model_argument
@click.option("-n", type=int, default=1000, help="How many rows; for a model over time, in one series.")
@seed_option
@screen_option
@answer_options
def sample(answer: Answer, model: Path, n: int, seed: int, out: Path | None) -> None:
    """Draw rows from a network.

    [dim]spbn sample wine.spbn -n 1000 --out samples.csv[/]
    """
    require_targets(tables=[out], inputs=[model])
    network = load_any_model(model)
    with busy("drawing rows"):
        rows = network.sample(n, seed=seed)  # of a model over time: one series
    _write_or_print(answer, rows, out)


def _write_or_print(answer: Answer, rows: pd.DataFrame, path: Path | None) -> None:
    if path is None:
        answer.give(RowsView(rows))
    answer.write_rows("out", rows, path)


@command
@model_argument
@data_argument
@out_option("Write the table without holes: full.csv.", required=True)
@click.option(
    "--draws",
    type=int,
    default=1,
    help="How many times to fill the holes, each time differently. Several tables are written to full-1.csv, "
    "full-2.csv and so on.",
)
@seed_option
@table_options
@answer_options
def impute(answer: Answer, model: Path, data: Source, out: Path, draws: int, seed: int) -> None:
    """Fill holes in a table with likely values.

    Each hole is filled with a random draw given the rest of the row. All other values stay as they are, as do
    columns that the network does not know.

    [dim]spbn impute wine.spbn holes.csv --out full.csv[/]
    """
    if draws < 1:
        raise ArgumentError(f"--draws must be 1 or more. Got {draws}.")
    targets = [out] if draws == 1 else [_numbered(out, number + 1) for number in range(draws)]
    if draws > 1 and out == STANDARD:
        raise ArgumentError("--draws gives several tables, and standard output (-) takes one: give a file.")
    require_targets(tables=targets, inputs=[model, data])
    network = load_model(model)
    frame = frame_for(network, data, with_holes=True)
    holes = frame.isna()
    with busy("filling the holes"):
        filled = network.imputations(frame, n=draws, seed=seed)
    for table, target in zip(filled, targets, strict=True):
        answer.save_rows(_merged(data, table, holes), target)
    answer.give(ImputationView(holes, draws))
    through = f" ... {targets[-1].name}" if draws > 1 else ""
    answer.wrote(
        "out",
        out if draws == 1 else targets,
        f"{len(frame)} rows written to {shown(targets[0])}{through}",
        apart=False,
    )


@dataclass(frozen=True)
class ImputationView:
    """Where values were missing in a table, and how often they were filled in."""

    holes: pd.DataFrame
    draws: int

    def show(self) -> None:
        """Say how many values were filled in, and in which columns."""
        by_column = self._by_column()
        count, rows = sum(by_column.values()), int(self.holes.any(axis=1).sum())
        if not count:
            say("no value is missing: nothing was filled in")
            return
        values, of = ("value", "row") if count == 1 else ("values", "rows" if rows > 1 else "row")
        columns = ", ".join(f"{name} {k}" for name, k in by_column.items())
        say(f"{count} missing {values} in {rows} {of} filled in: {columns}")

    def document(self) -> dict[str, Any]:
        """Give the number of values by column."""
        return {"rows": len(self.holes), "draws": self.draws, "filled": self._by_column()}

    def _by_column(self) -> dict[str, int]:
        return {str(name): int(k) for name, k in self.holes.sum().items() if k}


def _numbered(path: Path, number: int) -> Path:
    end = ending(path)
    return path.with_name(f"{path.name.removesuffix(end)}-{number}{end}")


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
