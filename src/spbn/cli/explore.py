"""``spbn explore``: the "what if" explorer, in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Model, Seed
from spbn.cli.inputs import busy, load_any_model
from spbn.cli.targets import require_targets
from spbn.cli.terminal import say


@answering
def explore(
    model: Model,
    answer: Answer,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write the page: explorer.html. Default: MODEL-explorer.html.", show_default=False
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--samples",
            help="Rows to draw from the network. Default: as many as fit a small page, up to 20,000.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Ask "what if" with the mouse, in a browser.

    Writes a page that works without an internet connection, and opens it.

    [dim]spbn explore wine.spbn[/]
    """
    from spbn.report import write_explorer

    target = Path(f"{model.stem}-explorer.html") if out_ is None else out_
    require_targets(target, inputs=[model])
    network = load_any_model(model)
    with busy("drawing rows"):
        write_explorer(network, target, samples=samples, seed=seed, title=model.stem)
    answer.wrote("out", target, f"explorer written to {target}")
    if open_ and not webbrowser.open(target.resolve().as_uri()):
        say("No browser was found: open the file in one.")
