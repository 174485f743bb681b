"""The command ``spbn compare``: which model predicts rows best that it has not seen."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Literal

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import Data, MissingRows
from spbn.cli.learning import Lesson, with_learning_options
from spbn.cli.tables import reading_tables
from spbn.cli.terminal import print_comparison
from spbn.cli.workers import Scheduler, Workers, client_of


@answering
@reading_tables
@with_learning_options(but=("model",))
def compare(
    lesson: Lesson,
    answer: Answer,
    data: Data,
    folds: Annotated[int, typer.Option(help="Number of folds for the comparison.")] = 10,
    margins: Annotated[
        Literal["none", "yeo-johnson"] | None,
        typer.Option(
            help="Transform of every column, for all models. "
            "By default none, and blend also with 'yeo-johnson'.",
            show_default=False,
        ),
    ] = None,
    missing: MissingRows = "error",
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Compare kinds of networks on rows that they have not seen.

    The kinds are Gaussian, KDE, semiparametric and blend networks.

    [dim]spbn compare wine.csv --folds 5[/]
    """
    from spbn.learning.comparison import compare_models

    frame, settings = lesson.read()
    del settings["model"]  # all of them
    with client_of(workers, scheduler) as client:
        found = compare_models(frame, progress=sys.stderr.isatty(), client=client, **settings)
    answer.give(partial(print_comparison, found), partial(documents.of_comparison, found))
