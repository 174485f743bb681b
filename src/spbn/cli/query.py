"""The commands that ask a network something: ``spbn query``, ``spbn impute`` and ``spbn predict``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Data, Model, Seed, ToFile
from spbn.cli.conditions import EXAMPLES, conditions_in, in_words, require_intervals
from spbn.cli.inputs import busy, frame_with_holes, load_model
from spbn.cli.sources import STANDARD, Source, ending
from spbn.cli.tables import in_file, reading_tables, shown, write_or_print, write_rows, writing_rows
from spbn.cli.targets import require_picture, require_targets
from spbn.cli.terminal import note, print_posterior, say
from spbn.errors import ArgumentError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn.inference import Posterior

SHARE = 0.9  # of the interval that is shown


@answering
@writing_rows
def query(
    model: Model,
    answer: Answer,
    given: Annotated[
        list[str] | None,
        typer.Option(help=f"What is known, such as {EXAMPLES}. May be repeated.", show_default=False),
    ] = None,
    do: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable that is set by intervention, which says nothing about its causes: 'A=2'. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            help="Also print the probability of this: 'C>0'. If repeated, the probability of all together.",
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
) -> None:
    """Ask what is likely, given what is known.

    [dim]spbn query wine.spbn --given "alcohol=13" --given "hue<0.8" --event "proline>1000"[/]
    """
    require_targets(in_file(out_), plot, inputs=[model])
    require_picture(plot)
    if n < 1:
        raise ArgumentError(f"-n must be 1 or more. Got {n}.")
    network = load_model(model)
    known = conditions_in("--given", given or (), network.variables)
    set_to = conditions_in("--do", do or (), network.variables)
    asked = conditions_in("--event", event or (), network.variables)
    require_intervals(asked, network.variables, "{low:.12g}<={name}<={high:.12g}")
    with busy("asking the network"):
        posterior = network.query(known, do=set_to, n=n, seed=seed)
        probability = posterior.probability(asked) if asked else None
    error = 0.0 if probability is None else _error(posterior, asked, probability)

    def show() -> None:
        print_posterior(posterior, SHARE)
        if probability is not None:
            plus_minus = f" ± {error:.2g}" if error else ""
            say(f"P({in_words(event or ())}) = {probability:.4g}{plus_minus}")

    answer.give(show, partial(documents.of_posterior, posterior, SHARE, asked, probability, error))
    if out_ is not None:
        write_rows(posterior.sample(n, seed=seed), out_)
        answer.wrote("out", out_, f"{n} draws written to {shown(out_)}")
    if plot is not None:
        from spbn.plots.densities import save_posterior

        save_posterior(posterior, plot)
        answer.wrote("plot", plot, f"picture written to {plot}")


@answering
@reading_tables
@writing_rows
def impute(
    model: Model,
    data: Data,
    answer: Answer,
    out_: Annotated[
        Path, typer.Option("--out", help="Write the table without holes: full.csv.", show_default=False)
    ],
    draws: Annotated[
        int,
        typer.Option(
            help="How many times to fill the holes, each time differently. Several tables are written to "
            "full-1.csv, full-2.csv and so on."
        ),
    ] = 1,
    seed: Seed = 0,
) -> None:
    """Fill holes in a table with likely values.

    Each hole is filled with a random draw given the rest of the row. All other values stay as they are, as do
    columns that the network does not know.

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
    by_column = {str(name): int(k) for name, k in holes.sum().items() if k}

    def show() -> None:
        count, rows = sum(by_column.values()), int(holes.any(axis=1).sum())
        if not count:
            say("no value is missing: nothing was filled in")
            return
        values, of = ("value", "row") if count == 1 else ("values", "rows" if rows > 1 else "row")
        columns = ", ".join(f"{name} {k}" for name, k in by_column.items())
        say(f"{count} missing {values} in {rows} {of} filled in: {columns}")

    answer.give(show, lambda: {"rows": len(frame), "draws": draws, "filled": by_column})
    through = f" ... {targets[-1].name}" if draws > 1 else ""
    answer.wrote(
        "out",
        out_ if draws == 1 else targets,
        f"{len(frame)} rows written to {shown(targets[0])}{through}",
        apart=False,
    )


@answering
@reading_tables
@writing_rows
def predict(
    model: Model,
    data: Data,
    answer: Answer,
    target: Annotated[
        list[str], typer.Option(help="A variable to predict. May be repeated.", show_default=False)
    ],
    statistic: Annotated[
        Literal["mean", "median", "mode"],
        typer.Option(help="What to predict for numbers; for categories, always the most probable level."),
    ] = "mean",
    seed: Seed = 0,
    out_: ToFile = None,
) -> None:
    """Predict columns, row by row, from the others.

    Values that are missing are unknown, too.

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
    write_or_print(answer, found, out_)


def _error(posterior: Posterior, event: dict[str, Any], probability: float) -> float:
    """Return the standard error of a probability; 0 if it was computed exactly."""
    if len(event) == 1 and all(map(posterior.is_exact, event)):
        return 0.0
    return documents.chance_error(probability, posterior.effective_size)


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
