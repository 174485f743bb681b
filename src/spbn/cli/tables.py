"""Tables that commands read and write: how they are written there, and standard input and output."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, get_type_hints

import typer

from spbn.cli import documents
from spbn.cli.answers import Answer
from spbn.cli.signatures import keyword_only, taking
from spbn.cli.sources import STANDARD, Source, kind_of
from spbn.cli.targets import is_same
from spbn.cli.terminal import print_rows
from spbn.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

#: Where rows go while everything else that is printed goes to the error stream.
_for_rows: ContextVar[TextIO | None] = ContextVar("_for_rows", default=None)


def _layout(
    sep: Annotated[
        str | None,
        typer.Option(
            help="Separator between the fields of a text file: one character, or tab. Default: detected.",
            show_default=False,
        ),
    ] = None,
    decimal: Annotated[
        Literal[".", ","] | None,
        typer.Option(
            help="Decimal point or comma in the numbers of a text file. Default: detected.",
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of a text file, such as latin-1 or cp1252. Default: utf-8.", show_default=False
        ),
    ] = None,
) -> dict[str, Any]:
    return {"sep": sep, "decimal": decimal, "encoding": encoding}


def reading_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above: they say how all tables are written that it reads."""
    ours, hints = signature(_layout).parameters, get_type_hints(_layout, include_extras=True)
    hints |= get_type_hints(command, include_extras=True)
    parameters = keyword_only((*signature(command).parameters.values(), *ours.values()), hints)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        layout = _layout(**{name: given.pop(name) for name in ours})
        laid_out = {name: _with_layout(value, layout) for name, value in given.items()}
        sources = [value for value in laid_out.values() if isinstance(value, Source)]
        if sum(source.is_standard for source in sources) > 1:
            raise ArgumentError("only one table can come from standard input (-): give a file for the other.")
        command(**laid_out)

    return taking(parameters, called)


def _with_layout(value: Any, layout: dict[str, Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_with_layout(item, layout) for item in value]
    return replace(value, **layout) if isinstance(value, Source) else value


def writing_rows(command: Callable[..., None]) -> Callable[..., None]:
    """Keep standard output for the rows of a command if they go there: all else that it prints goes aside."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        targets = [path for path in (given.get("out_"), given.get("paths")) if path is not None]
        read = [Path(value) for value in given.values() if isinstance(value, Path | Source)]
        for path in targets:
            is_read_too = sum(is_same(path, source) for source in read) > 1
            if not is_read_too:  # which the command refuses with better words
                kind_of(path)
        if targets.count(STANDARD) > 1:
            raise ArgumentError("only one table can go to standard output (-): give a file for the other.")
        if STANDARD not in targets:
            command(**given)
            return
        token = _for_rows.set(sys.stdout)
        try:
            with redirect_stdout(sys.stderr):
                command(**given)
        finally:
            _for_rows.reset(token)

    return called


def write_rows(rows: pd.DataFrame, path: Path) -> None:
    """Write a table to a file, or as CSV to standard output."""
    if path == STANDARD:
        (_for_rows.get() or sys.stdout).write(rows.to_csv(index=False))
    else:
        from spbn.cli.files import write_table

        write_table(rows, path)


def write_or_print(answer: Answer, rows: pd.DataFrame, path: Path | None) -> None:
    """Write rows to a file, or answer with them."""
    if path is None:
        answer.give(partial(print_rows, rows), partial(documents.of_rows, rows))
    else:
        write_rows(rows, path)
        answer.wrote("out", path, f"{len(rows)} rows written to {shown(path)}")


def shown(path: Path) -> str:
    """Say where a table was written to."""
    return "standard output" if path == STANDARD else str(path)


def in_file(path: Path | None) -> Path | None:
    """Return the file that a table is written to; none if it goes to standard output."""
    return None if path == STANDARD else path
