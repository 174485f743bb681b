"""The command ``spbn forecast``: what may follow the last rows of a table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Seed
from spbn.cli.conditions import EXAMPLES, conditions_in, in_words, require_intervals
from spbn.cli.inputs import busy, load_any_model
from spbn.cli.series import series_of
from spbn.cli.sources import Source, as_source
from spbn.cli.tables import in_file, reading_tables, shown, write_rows, writing_rows
from spbn.cli.targets import require_picture, require_targets
from spbn.cli.terminal import print_forecast, say
from spbn.errors import ArgumentError, ModelFileError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn.timeseries.forecast import Forecast
    from spbn.timeseries.network import DynamicNetwork

SHARE = 0.9  # of the interval that is shown and written


@answering
@reading_tables
@writing_rows
def forecast(
    answer: Answer,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model written by [bold]spbn learn --lags[/].", show_default=False
        ),
    ],
    history: Annotated[
        Source,
        typer.Argument(
            metavar="HISTORY",
            parser=as_source,
            help="The rows so far: .csv, .tsv, .csv.gz, .parquet or .xlsx; or - for standard input.",
            show_default=False,
        ),
    ],
    steps: Annotated[int, typer.Option(help="How many rows to look ahead.")] = 10,
    n: Annotated[int, typer.Option("-n", help="How many paths to draw.")] = 1000,
    event: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Also print the probability that this happens within the steps, such as {EXAMPLES}. "
            "If repeated, how probable it is that all happen in the same row.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="The series to continue, if there are several. Default: all.", show_default=False),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            help="Resample the history to this time step first, in seconds if times are dates.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    out_: Annotated[
        Path | None,
        typer.Option("--out", help="Write means and quantiles of every step: ahead.csv.", show_default=False),
    ] = None,
    paths: Annotated[
        Path | None, typer.Option(help="Write the paths themselves: paths.csv.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw fan charts: .png, .svg or .pdf.", show_default=False)
    ] = None,
) -> None:
    """Forecast what may follow the last rows of a table.

    [dim]spbn forecast pump.spbn history.csv --steps 50 --event "vibration>4" --plot fan.png[/]
    """
    from spbn.timeseries.network import DynamicNetwork

    require_targets(in_file(out_), in_file(paths), plot, inputs=[model, history])
    require_picture(plot)
    for option, value in (("--steps", steps), ("-n", n)):
        if value < 1:
            raise ArgumentError(f"{option} must be 1 or more. Got {value}.")
    network = load_any_model(model)
    if not isinstance(network, DynamicNetwork):
        raise ModelFileError(f"{model} is not a model over time: learn one with spbn learn --lags.")
    asked = conditions_in("--event", event or (), network.variables)
    require_intervals(asked, network.variables, "{name}>{value:.12g}")
    rows = _only(network, series_of(network, history, every=every, with_holes=True), only)
    with busy("drawing paths"):
        ahead = network.forecast(rows, steps, n=n, seed=seed)
    if plot is not None and len(ahead.series) > 1:
        raise ArgumentError(f"--plot draws one series: say which (--only), of {quoted(ahead.series)}.")

    def show() -> None:
        print_forecast(ahead, SHARE)
        if asked:
            say()
            for name in ahead.series:
                probability = ahead.probability(asked, series=name)
                error = documents.chance_error(probability, n)
                where = f"{name}: " if ahead.series_name else ""
                chance = f"P({in_words(event or ())} within {steps} steps)"
                say(f"{where}{chance} = {probability:.4g} ± {error:.2g}")

    answer.give(show, partial(documents.of_forecast, ahead, SHARE, asked))
    if out_ is not None:
        summary = summarised(ahead)
        write_rows(summary, out_)
        answer.wrote("out", out_, f"{len(summary)} rows written to {shown(out_)}")
    if paths is not None:
        write_rows(ahead.paths, paths)
        answer.wrote("paths", paths, f"{len(ahead.paths)} rows written to {shown(paths)}")
    if plot is not None:
        from spbn.plots.timelines import save_forecast

        save_forecast(ahead, plot)
        answer.wrote("plot", plot, f"picture written to {plot}")


def summarised(ahead: Forecast) -> pd.DataFrame:
    """Return mean, median and an interval of every number, and the probability of every level, by step."""
    low, high = 0.5 - SHARE / 2, 0.5 + SHARE / 2
    means, quantiles_of_all = ahead.mean(), ahead.quantile([low, 0.5, high])
    frame = means[[]].copy()
    for variable in ahead.variables:
        name = variable.name
        if variable.is_discrete:
            shares = ahead.probabilities(name)
            for level in variable.levels:
                frame[f"P({name}={level})"] = shares[level]
            continue
        quantiles = quantiles_of_all[name]
        frame[f"{name} mean"] = means[name]
        frame[f"{name} {100 * low:.0f} %"] = quantiles[low]
        frame[f"{name} median"] = quantiles[0.5]
        frame[f"{name} {100 * high:.0f} %"] = quantiles[high]
    return frame.reset_index()


def _only(network: DynamicNetwork, rows: pd.DataFrame, only: str | None) -> pd.DataFrame:
    """Return the rows of one series."""
    if only is None:
        return rows
    if network.series is None:
        raise ArgumentError("--only is for models that were learned with --series.")
    from spbn.tables.levels import as_text

    names = rows[network.series].map(as_text)  # as a forecast has them
    chosen = rows[names == only]
    if not len(chosen):
        known = quoted(dict.fromkeys(names))
        raise ArgumentError(f"--only names an unknown series: {only!r}. There are {known}.")
    return chosen
