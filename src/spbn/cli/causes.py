"""The commands about causes: ``spbn effect`` and ``spbn counterfactual``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spbn.cli import inputs, options
from spbn.cli.command import Answer, command, note, objects, say_lines
from spbn.cli.query import arcs_in_words
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, quoted

if TYPE_CHECKING:
    from spbn.inference.equivalent import Over


@command
@options.model_argument
@click.option("--cause", required=True, help="The variable that is set.")
@click.option(
    "--outcome",
    required=True,
    help="The variable whose mean is compared, or an event whose probability is: 'sick=yes', 'y>3'.",
)
@click.option("--low", required=True, help="What the cause is set to first.")
@click.option("--high", required=True, help="What it is set to instead.")
@options.over_option
@options.rows_option
@click.option("-n", default=10_000, help="How many draws to make, where the answer is not exact.")
@options.seed_option
def effect(
    answer: Answer,
    model: Path,
    cause: str,
    outcome: str,
    low: str,
    high: str,
    over: Over,
    data: Source | None,
    n: int,
    seed: int,
) -> None:
    """Say what setting one variable does to another.

    Also which columns to adjust for to see it in rows, and which open directions it depends on.

    [dim]spbn effect trial.spbn --cause dose --outcome "recovered=yes" --low 0 --high 10[/]
    """
    inputs.require_least("-n", n)
    network = inputs.load_model(model)
    variables = network.all_variables
    names = [variable.name for variable in variables]
    if cause not in names:
        raise ArgumentError(
            f"--cause {cause!r} does not name a variable of the model. Its variables are {quoted(names)}."
        )
    values = [
        options.condition_in(flag, f"{cause}={text}", [v for v in variables if v.name == cause])[1]
        for flag, text in (("--low", low), ("--high", high))
    ]
    event: str | dict[str, Any] = outcome
    if outcome not in names:
        event = options.event_in([outcome], variables, "{low:.12g}<={name}<={high:.12g}", "--outcome")
    rows = None if data is None else inputs.frame_for(network, data)
    with inputs.busy("asking the network"):
        found = network.effect(
            cause, event, low=values[0], high=values[1], over=over, data=rows, n=n, seed=seed
        )
    document = {
        "cause": cause,
        "outcome": event,
        "low": values[0],
        "high": values[1],
        "effect": found.effect,
        "error": found.error,
        "interval": found.interval(),
        "adjustment_sets": found.adjustment_sets,
        "reason": found.reason,
        "open_directions": found.open_directions,
        "by_graph": objects(found.by_graph),
    }
    answer.give(lambda: document, lambda: say_lines(str(found)))


@command
@options.model_argument
@options.data_argument
@options.do_option(required=True)
@click.option("-n", default=100, help="How many times to draw what has to be drawn, for every row.")
@options.seed_option
@options.screen_option
def counterfactual(
    answer: Answer, model: Path, data: Source, do: Sequence[str], n: int, seed: int, out: Path | None
) -> None:
    """Say what rows would have been, had variables been set.

    Everything that a row owes to noise stays as it is. Where something is open, because values are missing,
    for example, there are means, and columns with the ends of 90 % intervals.

    [dim]spbn counterfactual trial.spbn trial.csv --do "dose=0" --out without.csv[/]
    """
    inputs.require_targets(tables=[out], inputs=[model, data])
    inputs.require_least("-n", n)
    network = inputs.load_model(model)
    set_to = options.conditions_in("--do", do, network.all_variables)
    frame = inputs.frame_for(network, data)
    with inputs.busy("asking the network"):
        found = network.counterfactual(frame, set_to, n=n, seed=seed)
    if found.open_directions:
        note(f"this depends on directions that are open: {arcs_in_words(found.open_directions)}")
    answer.give_rows(found.to_frame(), out)
