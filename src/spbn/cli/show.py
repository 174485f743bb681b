"""The commands that show a network: ``spbn show``, ``spbn plot`` and ``spbn report``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import A_TABLE, Model
from spbn.cli.inputs import busy, frame_with_holes, load_any_model
from spbn.cli.series import series_of
from spbn.cli.sources import Source, as_source
from spbn.cli.tables import reading_tables
from spbn.cli.targets import require_targets
from spbn.cli.terminal import show_network
from spbn.errors import ArgumentError, require_plot_packages

if TYPE_CHECKING:
    from spbn.diagnostics.importance import Strengths
    from spbn.network import BayesianNetwork
    from spbn.timeseries.network import DynamicNetwork


@answering
def show(model: Model, answer: Answer) -> None:
    """Print a network: nodes, types, parents, equations, bandwidths.

    [dim]spbn show wine.spbn[/]
    """
    network = load_any_model(model)
    answer.give(
        partial(show_network, network, details=True), partial(documents.of_network, network, details=True)
    )


@answering
def plot(
    model: Model,
    answer: Answer,
    out_: Annotated[Path, typer.Option("--out", help="graph.svg, .png, .pdf or .dot.", show_default=False)],
    slices: Annotated[
        int | None,
        typer.Option(
            help="For a model over time: how many rows to draw. Default: one more than it has lags.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw the graph of a network.

    [dim]spbn plot wine.spbn --out graph.svg[/]
    """
    from spbn.plots.pictures import save_slices, save_structure
    from spbn.timeseries.network import DynamicNetwork

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
    answer.wrote("out", out_, f"graph written to {out_}")


@answering
@reading_tables
def report(
    model: Model,
    answer: Answer,
    out_: Annotated[Path, typer.Option("--out", help="Write the report: report.html.", show_default=False)],
    data: Annotated[
        Source | None,
        typer.Argument(
            metavar="DATA",
            parser=as_source,
            help=f"Rows to check the model on. {A_TABLE}",
            show_default=False,
        ),
    ] = None,
    data_: Annotated[  # what version 0.1 calls it
        Source | None, typer.Option("--data", metavar="TABLE", parser=as_source, hidden=True)
    ] = None,
    confidence: Annotated[
        Source | None,
        typer.Option(
            metavar="TABLE",
            parser=as_source,
            help="Which arcs to believe: the table that spbn confidence --out wrote, arcs.csv.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a report that opens in a browser.

    [dim]spbn report wine.spbn wine.csv --out wine.html[/]

    [dim]spbn report wine.spbn wine.csv --confidence arcs.csv --out wine.html[/]
    """
    if data is not None and data_ is not None:
        raise ArgumentError(f"one table can be given. Got {data} and --data {data_}.")
    rows = data if data is not None else data_
    require_targets(out_, inputs=[model, rows, confidence])
    require_plot_packages()
    network = load_any_model(model)
    strengths = None if confidence is None else _strengths(network, confidence)
    write_report_to(out_, network, _rows(network, rows), model.stem, strengths)
    answer.wrote("out", out_, f"report written to {out_}")


def write_report_to(
    path: Path,
    network: BayesianNetwork | DynamicNetwork,
    data: Any,
    title: str,
    confidence: Strengths | None = None,
) -> None:
    """Write a report, and show that this is being done."""
    from spbn.report import write_report

    with busy("writing the report"):
        write_report(network, path, data=data, title=title, confidence=confidence)


def _rows(network: BayesianNetwork | DynamicNetwork, data: Source | None) -> Any:
    from spbn.timeseries.network import DynamicNetwork

    if data is None:
        return None
    if isinstance(network, DynamicNetwork):
        return series_of(network, data)
    return frame_with_holes(network, data)


def _strengths(network: BayesianNetwork | DynamicNetwork, source: Source) -> Strengths:
    from spbn.cli.files import read_as_written
    from spbn.diagnostics.importance import Strengths
    from spbn.errors import DataError
    from spbn.timeseries.network import DynamicNetwork

    if isinstance(network, DynamicNetwork):
        raise ArgumentError("--confidence is for models of single rows: leave it out for one over time.")
    try:
        return Strengths.from_table(read_as_written(source), network.nodes)
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
