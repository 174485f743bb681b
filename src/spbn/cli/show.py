"""Commands about a model as a whole: ``spbn show``, ``plot``, ``report``, ``explore`` and ``compact``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spbn.cli.command import argument, command
from spbn.cli.inputs import busy, frame_for, load_any_model, require_targets
from spbn.cli.options import A_TABLE, TABLE, model_argument, out_option, seed_option, table_options
from spbn.cli.output import Answer, NetworkView, answer_options, say
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, DataError, require_plot_packages

if TYPE_CHECKING:
    from spbn.diagnostics.model import Strengths
    from spbn.network import Network


@command
@model_argument
@answer_options
def show(answer: Answer, model: Path) -> None:
    """Print a network: nodes, types, parents, equations, bandwidths.

    [dim]spbn show wine.spbn[/]
    """
    answer.give(NetworkView(load_any_model(model), details=True))


@command
@model_argument
@out_option("graph.svg, .png, .pdf or .dot.", required=True)
@click.option(
    "--slices",
    type=int,
    help="For a model over time: how many rows to draw. Default: one more than it has lags.",
)
@answer_options
def plot(answer: Answer, model: Path, out: Path, slices: int | None) -> None:
    """Draw the graph of a network.

    [dim]spbn plot wine.spbn --out graph.svg[/]
    """
    from spbn.plots.graphs import save_slices, save_structure
    from spbn.timeseries.network import DynamicNetwork

    require_targets(out, inputs=[model])
    network = load_any_model(model)
    if slices is not None and not network.is_dynamic:
        raise ArgumentError(f"--slices is for models over time, and {model} is not one.")
    with busy("drawing the graph"):
        if isinstance(network, DynamicNetwork) and out.suffix.lower() != ".dot":
            save_slices(network, out, slices=slices)
        else:
            save_structure(network.row_network.structure, out)
    answer.wrote("out", out, f"graph written to {out}")


@command
@model_argument
@argument("data", metavar="DATA", type=TABLE, required=False, help=f"Rows to check the model on. {A_TABLE}")
@out_option("Write the report: report.html.", required=True)
@click.option(
    "--confidence",
    type=TABLE,
    metavar="TABLE",
    help="Which arcs to believe: the table that spbn confidence --out wrote, arcs.csv.",
)
@table_options
@answer_options
def report(answer: Answer, model: Path, data: Source | None, out: Path, confidence: Source | None) -> None:
    """Write a report that opens in a browser.

    [dim]spbn report wine.spbn wine.csv --out wine.html[/]

    [dim]spbn report wine.spbn wine.csv --confidence arcs.csv --out wine.html[/]
    """
    require_targets(out, inputs=[model, data, confidence])
    require_plot_packages()
    network = load_any_model(model)
    strengths = None if confidence is None else _strengths(network, confidence)
    rows = None if data is None else frame_for(network, data, with_holes=not network.is_dynamic)
    write_report_to(out, network, rows, model.stem, strengths)
    answer.wrote("out", out, f"report written to {out}")


def write_report_to(
    path: Path, network: Network, data: Any, title: str, confidence: Strengths | None = None
) -> None:
    """Write a report, and show that this is being done."""
    from spbn.report import write_report

    with busy("writing the report"):
        write_report(network, path, data=data, title=title, confidence=confidence)


def _strengths(network: Network, source: Source) -> Strengths:
    from spbn.cli.files import read_as_written
    from spbn.diagnostics.model import Strengths

    if network.is_dynamic:
        raise ArgumentError("--confidence is for models of single rows: leave it out for one over time.")
    try:
        return Strengths.from_table(read_as_written(source), network.nodes)
    except DataError as error:
        raise DataError(f"{source}: {error.message}") from None


@command
@model_argument
@out_option("Write the page: explorer.html. Default: MODEL-explorer.html.")
@click.option(
    "-n",
    "--samples",
    "samples",
    type=int,
    help="Rows to draw from the network. Default: as many as fit a small page, up to 20,000.",
)
@seed_option
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
@answer_options
def explore(
    answer: Answer, model: Path, out: Path | None, samples: int | None, seed: int, opens: bool
) -> None:
    """Ask "what if" with the mouse, in a browser.

    Writes a page that works without an internet connection, and opens it.

    [dim]spbn explore wine.spbn[/]
    """
    from spbn.report import write_explorer

    target = Path(f"{model.stem}-explorer.html") if out is None else out
    require_targets(target, inputs=[model])
    network = load_any_model(model)
    with busy("drawing rows"):
        write_explorer(network, target, n=samples, seed=seed, title=model.stem)
    answer.wrote("out", target, f"explorer written to {target}")
    if opens and not webbrowser.open(target.resolve().as_uri()):
        say("No browser was found: open the file in one.")


@command
@model_argument
@out_option("Write the compact model: small.spbn.", required=True)
@click.option(
    "--tolerance", type=float, default=1e-6, help="Largest error of the log-density of a node in any row."
)
@click.option(
    "--others",
    type=click.Choice(["error", "keep"]),
    default="error",
    help="Nodes too large for a table, such as those with three parents: refuse, or keep rows.",
)
@answer_options
def compact(
    answer: Answer, model: Path, out: Path, tolerance: float, others: Literal["error", "keep"]
) -> None:
    """Replace the training rows in a model with small tables.

    Scoring is then faster, and most training rows are no longer in the file.

    [dim]spbn compact wine.spbn --out small.spbn[/]
    """
    require_targets(out, inputs=[model])
    network = load_any_model(model)
    with busy("making tables"):
        small = network.compact(tolerance, others=others)
    small.save(out)
    before, after = model.stat().st_size, out.stat().st_size
    answer.add(tolerance=tolerance, bytes=after, bytes_before=before)
    answer.wrote(
        "out", out, f"compact model written to {out}: {_in_words(after)} instead of {_in_words(before)}"
    )
    if after > before:
        say(
            "It is larger than the model with its rows: tables only save space for many rows. A larger "
            "--tolerance makes them smaller."
        )


def _in_words(size: int) -> str:
    """Return the size of a file in words."""
    kilobytes = size / 1000
    return f"{kilobytes:.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.1f} MB"
