"""The command ``spbn compact``: a model without its training rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Model
from spbn.cli.inputs import busy, load_any_model
from spbn.cli.targets import require_targets
from spbn.cli.terminal import say


@answering
def compact(
    model: Model,
    answer: Answer,
    out_: Annotated[
        Path, typer.Option("--out", help="Write the compact model: small.spbn.", show_default=False)
    ],
    tolerance: Annotated[
        float, typer.Option(help="Largest error of the log-density of a node in any row.")
    ] = 1e-6,
    others: Annotated[
        Literal["error", "keep"],
        typer.Option(
            help="Nodes too large for a table, such as those with three parents: refuse, or keep rows."
        ),
    ] = "error",
) -> None:
    """Replace the training rows in a model with small tables.

    Scoring is then faster, and most training rows are no longer in the file.

    [dim]spbn compact wine.spbn --out small.spbn[/]
    """
    require_targets(out_, inputs=[model])
    network = load_any_model(model)
    with busy("making tables"):
        small = network.compact(tolerance, others=others)
    small.save(out_)
    answer.add(tolerance=tolerance, bytes=out_.stat().st_size, bytes_before=model.stat().st_size)
    answer.wrote("out", out_, f"compact model written to {out_}: {_size(out_)} instead of {_size(model)}")
    if out_.stat().st_size > model.stat().st_size:
        say(
            "It is larger than the model with its rows: tables only save space for many rows. A larger "
            "--tolerance makes them smaller."
        )


def _size(path: Path) -> str:
    """Return the size of a file in words."""
    kilobytes = path.stat().st_size / 1000
    return f"{kilobytes:.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.1f} MB"
