"""The commands that ask a network something: ``spbn query``, ``spbn impute`` and ``spbn predict``."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from spbn.app.arguments import Data, Model, Seed
from spbn.app.conditions import EXAMPLES, conditions_in, in_words
from spbn.app.inputs import busy, frame_with_holes, load_model
from spbn.app.tables import in_file, reading_tables, shown, write_rows, writing_rows
from spbn.app.targets import require_targets
from spbn.app.terminal import note, print_posterior, say, write_or_print
from spbn.drawing.packages import require_plot_packages
from spbn.errors import ArgumentError, quoted
from spbn.network import BayesianNetwork
from spbn.tables.files import read_as_written
from spbn.tables.sources import STANDARD, Source, ending

if TYPE_CHECKING:
    import pandas as pd

    from spbn.inference import Posterior

SHARE = 0.9  # of the interval that is shown


@writing_rows
def query(
    model: Model,
    given: Annotated[
        list[str] | None,
        typer.Option(help=f"What is known, such as {EXAMPLES}. May be repeated.", show_default=False),
    ] = None,
    do: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable that is set from outside, which says nothing about its causes: 'A=2'. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            help="Also print how probable this is: 'C>0'. If repeated, how probable all are together.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", help="How many draws to make.")] = 2000,
    seed: Seed = 0,
    out_: Annotated[
        Path | None,
        typer.Option("--out", help="Write draws of the unknown variables: samples.csv.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw every variable before and after: .png, .svg or .pdf.", show_default=False),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Ask what is likely, given what is known.

    [dim]spbn query wine.spbn --given "alcohol=13" --given "hue<0.8" --event "proline>1000"[/]
    """
    require_targets(in_file(out_), plot, inputs=[model])
    if plot is not None:
        from spbn.drawing.pictures import require_picture_name

        require_picture_name(plot)
        require_plot_packages()
    if n < 1:
        raise ArgumentError(f"-n must be 1 or more. Got {n}.")
    network = load_model(model)
    known = conditions_in("--given", given or (), network.variables)
    set_to = conditions_in("--do", do or (), network.variables)
    asked = conditions_in("--event", event or (), network.variables)
    _require_event(network, asked)
    with busy("asking the network"):
        posterior = network.query(known, do=set_to, n=n, seed=seed)
        probability = posterior.probability(asked) if asked else None
    if json_:
        sys.stdout.write(json.dumps(_as_json(posterior, asked, probability), indent=2) + "\n")
    else:
        print_posterior(posterior, SHARE)
        if probability is not None:
            say(f"P({in_words(asked)}) = {probability:.4g}{_plus_minus(posterior, asked, probability)}")
    if out_ is not None:
        write_rows(posterior.sample(n, seed=seed), out_)
        note_written(f"{n} draws written to {shown(out_)}", aside=json_)
    if plot is not None:
        from spbn.drawing.posteriors import save_posterior

        save_posterior(posterior, plot)
        note_written(f"picture written to {plot}", aside=json_)


@reading_tables
@writing_rows
def impute(
    model: Model,
    data: Data,
    out_: Annotated[
        Path, typer.Option("--out", help="Write the table without holes: full.csv.", show_default=False)
    ],
    draws: Annotated[
        int,
        typer.Option(
            help="How often to fill the holes, each time differently. Several tables are written to "
            "full-1.csv, full-2.csv and so on."
        ),
    ] = 1,
    seed: Seed = 0,
) -> None:
    """Fill holes in a table with what is likely given the rest of the row.

    Columns that the network does not know stay as they are, as do all values that are there.

    [dim]spbn impute wine.spbn holes.csv --out full.csv[/]
    """
    if draws < 1:
        raise ArgumentError(f"--draws must be 1 or more. Got {draws}.")
    targets = [out_] if draws == 1 else [_numbered(out_, number + 1) for number in range(draws)]
    if draws > 1 and out_ == STANDARD:
        raise ArgumentError("--draws gives several tables, and standard output (-) takes one: give a file.")
    require_targets(*map(in_file, targets), inputs=[model, data])
    network = load_model(model)
    frame = frame_with_holes(network, data)
    holes = frame.isna()
    with busy("filling the holes"):
        filled = network.impute(frame, draws=draws, seed=seed)
    for table, target in zip([filled] if draws == 1 else filled, targets, strict=True):
        write_rows(_merged(data, table, holes), target)
    count, rows = int(holes.to_numpy().sum()), int(holes.any(axis=1).sum())
    if count:
        by_column = ", ".join(f"{name} {k}" for name, k in holes.sum().items() if k)
        values, of = ("value", "row") if count == 1 else ("values", "rows" if rows > 1 else "row")
        say(f"{count} missing {values} in {rows} {of} filled in: {by_column}")
    else:
        say("no value is missing: nothing was filled in")
    say(f"{len(frame)} rows written to {shown(targets[0])}{f' ... {targets[-1].name}' if draws > 1 else ''}")


@reading_tables
@writing_rows
def predict(
    model: Model,
    data: Data,
    target: Annotated[
        list[str], typer.Option(help="A variable to predict. May be repeated.", show_default=False)
    ],
    statistic: Annotated[
        Literal["mean", "median", "mode"],
        typer.Option(help="What to predict of a number. Of a category it is always the most probable level."),
    ] = "mean",
    seed: Seed = 0,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write to a file, not to the screen.", show_default=False)
    ] = None,
) -> None:
    """Predict columns, row by row, from the others. Values that are missing are unknown, too.

    [dim]spbn predict wine.spbn new.csv --target proline --out predictions.csv[/]
    """
    require_targets(in_file(out_), inputs=[model, data])
    network = load_model(model)
    unknown = [name for name in target if name not in network.nodes]
    if unknown:
        raise ArgumentError(
            f"--target names no variable of the model: {quoted(unknown)}. They are {quoted(network.nodes)}."
        )
    targets = list(dict.fromkeys(target))
    frame = frame_with_holes(network, data, without=targets)
    absent = [name for name in network.nodes if name not in frame.columns and name not in targets]
    if absent:
        note(f"{data} has no column {quoted(absent)}: the predictions do without.")
    with busy("predicting"):
        found = network.predict(frame, targets, statistic=statistic, seed=seed)
    write_or_print(found, out_)


def note_written(line: str, *, aside: bool) -> None:
    """Say that a file was written, on the error stream if what is printed is for a program."""
    if aside:
        note(line)
    else:
        say(line)


def _require_event(network: BayesianNetwork, event: dict[str, Any]) -> None:
    """Refuse a single value of a continuous variable, which has no probability."""
    levels = {variable.name: variable.levels for variable in network.variables}
    for name, value in event.items():
        if not levels[name] and not isinstance(value, tuple):
            raise ArgumentError(
                f"--event: {name!r} is continuous, so exactly {value:g} has probability 0. Ask for "
                f"an interval, such as '{value - 0.5:g}<={name}<={value + 0.5:g}'."
            )


def _plus_minus(posterior: Posterior, event: dict[str, Any], probability: float) -> str:
    error = _error(posterior, event, probability)
    return f" ± {error:.2g}" if error else ""


def _error(posterior: Posterior, event: dict[str, Any], probability: float) -> float:
    """Return the standard error of a probability; 0 if it was computed exactly."""
    if len(event) == 1 and all(map(posterior.is_exact, event)):
        return 0.0
    return math.sqrt(probability * (1.0 - probability) / max(posterior.effective_size, 1.0))


def _as_json(posterior: Posterior, event: dict[str, Any], probability: float | None) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    means, deviations, medians = posterior.mean(), posterior.std(), posterior.median()
    intervals = posterior.interval(SHARE)
    for variable in posterior.variables:
        name = variable.name
        if variable.is_discrete:
            shares = posterior.probabilities(name)
            variables[name] = {"probabilities": {str(level): float(p) for level, p in shares.items()}}
        else:
            low, high = intervals.T[name]
            numbers = {"mean": means[name], "std": deviations[name], "median": medians[name]}
            variables[name] = {key: float(x) for key, x in {**numbers, "low": low, "high": high}.items()}
    answer: dict[str, Any] = {
        "given": dict(posterior.evidence),
        "do": dict(posterior.do),
        "variables": variables,
        "share": SHARE,
        "method": posterior.method,
        "effective_size": posterior.effective_size,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
    }
    if probability is not None:
        error = _error(posterior, event, probability)
        answer["event"] = {"conditions": event, "probability": probability, "standard_error": error}
    return answer


def _numbered(path: Path, number: int) -> Path:
    end = ending(path)
    return path.with_name(f"{path.name.removesuffix(end)}-{number}{end}")


def _merged(data: Source, filled: pd.DataFrame, holes: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it is in its file, but without holes."""
    written = read_as_written(data, discrete=filled.select_dtypes("category").columns)
    for name in holes.columns[holes.any()]:
        values = filled[name].to_numpy()
        if data.is_text:
            values = np.where(holes[name], values.astype(str), written[name])
        written[name] = values
    return written
