"""Arguments and options that several commands have, and how their text is read."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import typer

from spbn.cli.sources import Source, as_source
from spbn.errors import ArgumentError, quoted
from spbn.learning.settings import MODELS as MODELS
from spbn.learning.settings import SCORES as SCORES
from spbn.learning.settings import TESTS as TESTS

A_TABLE = "A table: .csv, .tsv, .csv.gz, .parquet or .xlsx; or - for standard input."
Data = Annotated[Source, typer.Argument(metavar="DATA", parser=as_source, help=A_TABLE, show_default=False)]
Tables = Annotated[
    list[Source],
    typer.Argument(metavar="DATA", parser=as_source, help=A_TABLE, show_default=False),
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model written by [bold]spbn learn[/].", show_default=False),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
ToFile = Annotated[
    Path | None, typer.Option("--out", help="Write to a file, not to the screen.", show_default=False)
]
Report = Annotated[Path | None, typer.Option(help="Write a report: report.html.", show_default=False)]
MissingRows = Annotated[
    Literal["error", "drop"],
    typer.Option(help="Rows with missing values: refuse the table, or drop these rows."),
]
MissingValues = Annotated[
    Literal["error", "drop", "impute"],
    typer.Option(help="Missing values: refuse the table, drop the rows that have them, or impute them."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to use, separated by commas: a,b. May be repeated. Default: all.", show_default=False
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Columns to leave out, separated by commas: a,b. May be repeated.", show_default=False),
]

Margins = Annotated[
    Literal["none", "yeo-johnson"],
    typer.Option(help="Transform every column, to reduce skew and heavy tails."),
]
Discrete = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to treat as categories even if they hold numbers or look like names or dates: a,b. "
        "May be repeated.",
        show_default=False,
    ),
]


def names_in(option: str, texts: list[str] | None) -> list[str] | None:
    """Split names at commas; a name with a comma in it is put in double quotes."""
    if not texts:
        return None
    names = [name.strip() for text in texts for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names:
        raise ArgumentError(f"{option} names no column: give one name or several, separated by commas.")
    return names


def arc_in(option: str, text: str, names: Collection[str]) -> tuple[str, str]:
    """Read an arc, A:B. A name may contain a colon: the one counts that has names on both sides."""
    parts = text.split(":")
    pairs = [(":".join(parts[:i]).strip(), ":".join(parts[i:]).strip()) for i in range(1, len(parts))]
    if not pairs:
        raise ArgumentError(f"{option} takes an arc written A:B, parent first. Got {text!r}.")
    known = [pair for pair in pairs if set(pair) <= set(names)]
    if not known:
        unknown = [name for name in dict.fromkeys(pairs[0]) if name not in names]
        raise ArgumentError(
            f"{option} {text!r} names {'an unknown column' if len(unknown) == 1 else 'unknown columns'}: "
            f"{quoted(unknown)}. The columns are {quoted(names)}."
        )
    if len(known) > 1:
        readings = " or ".join(f"{source} → {target}" for source, target in known)
        raise ArgumentError(f"{option} {text!r} can be read as {readings}: rename a column.")
    if known[0][0] == known[0][1]:
        raise ArgumentError(f"{option} takes an arc between two different columns. Got {text!r}.")
    return known[0]
