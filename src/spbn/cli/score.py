"""The command ``spbn score``: how unusual rows are."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Data, Model, Seed
from spbn.cli.inputs import busy, frame_for, frame_with_holes, load_any_model
from spbn.cli.series import series_of
from spbn.cli.sources import Source
from spbn.cli.tables import in_file, reading_tables, shown, write_rows, writing_rows
from spbn.cli.targets import require_targets
from spbn.cli.terminal import print_observed, print_unusual
from spbn.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import FloatArray
    from spbn.diagnostics.unusual import UnusualRows
    from spbn.network import BayesianNetwork
    from spbn.timeseries.network import DynamicNetwork


@answering
@reading_tables
@writing_rows
def score(
    model: Model,
    data: Data,
    answer: Answer,
    by_node: Annotated[
        bool, typer.Option("--by-node", help="Show the contribution of every node, on screen and in --out.")
    ] = False,
    top: Annotated[int, typer.Option(help="How many of the most unusual rows to print.")] = 20,
    missing: Annotated[
        Literal["error", "integrate"],
        typer.Option(help="Rows with missing values: refuse the table, or score what is known."),
    ] = "error",
    seed: Seed = 0,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Write the scores of all rows: scores.csv. Their sum is in the column logpdf, or in "
            "total_logpdf if there is a node of that name.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show how unusual rows are, and which nodes are to blame.

    [dim]spbn score wine.spbn new.csv --top 5 --out scores.csv[/]
    """
    require_targets(in_file(out_), inputs=[model, data])
    if top < 0:
        raise ArgumentError(f"--top must be 0 or more. Got {top}.")
    from spbn.timeseries.network import DynamicNetwork

    network = load_any_model(model)
    frame = _rows(network, data, missing)
    by_name: dict[str, FloatArray] = {}
    if not isinstance(network, DynamicNetwork) and frame.isna().to_numpy().any():
        if by_node:
            raise ArgumentError(
                "--by-node takes complete rows only: the contribution of a node depends on its parents."
            )
        with busy("scoring the rows"):
            logpdf = network.logpdf(frame, missing="integrate", seed=seed)
        answer.give(
            partial(print_observed, logpdf, frame, top=top),
            partial(documents.of_observed, logpdf, frame, top=top),
        )
    else:
        found = _unusual(network, frame, top)
        labels = frame.index.tolist()
        answer.give(
            partial(print_unusual, found, labels, by_node=by_node),
            partial(documents.of_unusual, found, labels, by_node=by_node),
        )
        logpdf = found.logpdf
        by_name = dict(zip(network.nodes, found.contributions, strict=True)) if by_node else {}
    if out_ is not None:
        import pandas as pd

        scores = pd.DataFrame({_name_of_total(network.nodes): logpdf, **by_name}, index=frame.index)
        write_rows(scores, out_)
        answer.wrote("out", out_, f"scores written to {shown(out_)}")


def _rows(network: BayesianNetwork | DynamicNetwork, data: Source, missing: str) -> pd.DataFrame:
    """Read the rows to score; with holes only if these are integrated out."""
    from spbn.timeseries.network import DynamicNetwork

    if isinstance(network, DynamicNetwork):
        if missing == "integrate":
            raise ArgumentError(
                "--missing integrate is not for models over time: what is missing in a row is missing in the "
                "past of the next. Fill what is missing."
            )
        return series_of(network, data)
    if missing == "integrate":
        return frame_with_holes(network, data)
    remedy = "Fill in the missing values, or pass --missing integrate to score rows by the others."
    return frame_for(network, data, remedy=remedy)


def _unusual(network: BayesianNetwork | DynamicNetwork, frame: pd.DataFrame, top: int) -> UnusualRows:
    from spbn.diagnostics import unusual_rows
    from spbn.diagnostics.unusual import unusual_in_time
    from spbn.timeseries.network import DynamicNetwork

    with busy("scoring the rows"):
        if isinstance(network, DynamicNetwork):
            return unusual_in_time(network, frame, top=top)
        return unusual_rows(network, frame, top=top)


def _name_of_total(nodes: Collection[str]) -> str:
    """Return a name that no node has."""
    name = "logpdf"
    while name in nodes:
        name = f"total_{name}"
    return name
