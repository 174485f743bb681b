"""The command ``spbn sample``: rows drawn from a network."""

from __future__ import annotations

from typing import Annotated

import typer

from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Model, Seed, ToFile
from spbn.cli.inputs import busy, load_any_model
from spbn.cli.tables import in_file, write_or_print, writing_rows
from spbn.cli.targets import require_targets


@answering
@writing_rows
def sample(
    model: Model,
    answer: Answer,
    n: Annotated[int, typer.Option("-n", help="How many rows; for a model over time, in one series.")] = 1000,
    seed: Seed = 0,
    out_: ToFile = None,
) -> None:
    """Draw rows from a network.

    [dim]spbn sample wine.spbn -n 1000 --out samples.csv[/]
    """
    require_targets(in_file(out_), inputs=[model])
    network = load_any_model(model)
    with busy("drawing rows"):
        rows = network.sample(n, seed=seed)  # of a model over time: one series
    write_or_print(answer, rows, out_)
