"""Arguments and options that several commands have, and how their text is read.

The options of commands that learn are made from `LearnSettings`, field by field: a new argument of `learn` is
on the command line without a line here.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from spbn.cli.command import argument
from spbn.cli.inputs import Axis, names_with_lags, note_peculiar_columns, series_frame, training_frame
from spbn.cli.sources import Source, as_source
from spbn.errors import ArgumentError, quoted
from spbn.learning.settings import OPTIONS, Option

if TYPE_CHECKING:
    import pandas as pd

#: Whether workers of this machine are processes of their own; tests do with threads.
PROCESSES = True

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


class TableFile(click.Path):
    """A file with a table, or ``-`` for standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return where the table is."""
        return as_source(value)


class Words(click.types.StringParamType):
    """Text, for which a shell offers some words; others are refused by whoever reads it, with a reason."""

    def __init__(self, words: Collection[str]) -> None:
        self._words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the words that begin like this."""
        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


FILE, TABLE = click.Path(path_type=Path), TableFile()

A_TABLE = "A table: .csv, .tsv, .csv.gz, .parquet or .xlsx; or - for standard input."
model_argument = argument("model", metavar="MODEL", type=FILE, help="A model written by [bold]spbn learn[/].")
data_argument = argument("data", metavar="DATA", type=TABLE, help=A_TABLE)
seed_option = click.option("--seed", type=int, default=0, help=OPTIONS["seed"].flag_help)
report_option = click.option("--report", type=FILE, help="Write a report: report.html.")
screen_option = click.option("--out", type=FILE, help="Write to a file, not to the screen.")
#: What is different about --missing where nothing can be imputed.
MISSING_ROWS: dict[str, Any] = {
    "type": click.Choice(["error", "drop"]),
    "help": "Rows with missing values: refuse the table, or drop these rows.",
}
checkpoint_option = functools.partial(click.option, "--checkpoint", type=FILE)
workers_option = click.option(
    "--workers", type=int, help="Start this many worker processes on this machine. Needs Dask."
)
scheduler_option = click.option(
    "--scheduler", help="Use the workers of this Dask scheduler: tcp://10.0.0.1:8786."
)


def out_option(help: str, *, required: bool = False) -> Decorator:
    """Return the option for the file that a command is mainly about."""
    return click.option("--out", type=FILE, required=required, help=help)


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how text files are written: all tables that it reads."""

    @click.option(
        "--sep", help="Separator between the fields of a text file: one character, or tab. Default: detected."
    )
    @click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal point or comma in the numbers of a text file. Default: detected.",
    )
    @click.option("--encoding", help="Encoding of a text file, such as latin-1 or cp1252. Default: utf-8.")
    @functools.wraps(command)
    def called(*, sep: str | None, decimal: str | None, encoding: str | None, **options: Any) -> None:
        tables: list[Source] = []
        for name, value in options.items():
            if isinstance(value, Source):
                options[name] = replace(value, sep=sep, decimal=decimal, encoding=encoding)
                tables.append(value)
            elif isinstance(value, Lesson):
                files = [replace(f, sep=sep, decimal=decimal, encoding=encoding) for f in value.files]
                options[name] = replace(value, files=tuple(files))
                tables += files[:1]  # several cannot be, and are refused for that
        if sum(table.is_standard for table in tables) > 1:
            raise ArgumentError("only one table can come from standard input (-): give a file for the other.")
        command(**options)

    return called


def learning_option(known: Option, **changes: Any) -> Decorator:
    """Return the option for an argument of `learn`, as it is or with another default, help or name."""
    declared: dict[str, Any] = {"help": known.flag_help, "default": known.default}
    if known.kind in ("names", "arcs"):
        declared |= {"multiple": True}
    elif known.kind == "flag":
        declared |= {"is_flag": True}
    elif known.kind == "choice":
        # Where the help names them all, it is the library that refuses others.
        are_named = all(choice in known.flag_help for choice in known.choices)
        declared |= {"type": Words(known.choices) if are_named else click.Choice(known.choices)}
    else:
        declared |= {"type": {"int": int, "float": float}.get(known.kind, str)}
    flag = changes.pop("flag", known.flag)
    return click.option(flag, known.name, **(declared | changes))


def learning_options(
    *, but: Collection[str] = (), one_table: bool = False, **changes: Mapping[str, Any]
) -> Decorator:
    """Give a command a table, and the options that decide what is learned from it: they become a `Lesson`.

    Parameters
    ----------
    but
        Options that the command does not have, or has with another meaning.
    one_table
        Whether there can be one table only.
    changes
        What is different for this command: for the name of an argument of `learn`, a default, say.
    """
    shared = [known for known in OPTIONS.values() if known.is_shared and known.flag and known.name not in but]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(*, data: Source | tuple[Source, ...], columns: tuple[str, ...], **options: Any) -> None:
            files = (data,) if isinstance(data, Source) else data
            settings = {known.name: options.pop(known.name) for known in shared}
            lesson = Lesson(files, columns, settings, can_impute="missing" not in (*but, *changes))
            command(lesson=lesson, **options)

        wrapped: Callable[..., None] = called
        for known in reversed(shared):
            wrapped = learning_option(known, **changes.get(known.name, {}))(wrapped)
            if known.name == "drop":
                wrapped = click.option(
                    "--columns",
                    multiple=True,
                    help="Columns to use, separated by commas: a,b. May be repeated. Default: all.",
                )(wrapped)
        if one_table:
            return data_argument(wrapped)
        return argument("data", metavar="DATA", type=TABLE, nargs=-1, required=True, help=A_TABLE)(wrapped)

    return decorate


@dataclass(frozen=True, eq=False)
class Lesson:
    """What to learn from and how; tables are read only when asked for, after other options were checked.

    Attributes
    ----------
    files
        What was given as the table.
    only
        The columns to use, as they were given.
    chosen
        The options, as they were given.
    can_impute
        Whether the command can learn from a table with holes.
    """

    files: tuple[Source, ...]
    only: tuple[str, ...]
    chosen: Mapping[str, Any]
    can_impute: bool = True

    @property
    def data(self) -> Source:
        """The file, or the first of several."""
        return self.files[0]

    @property
    def table(self) -> Source:
        """The file, where there can be one only."""
        if len(self.files) > 1:
            raise ArgumentError(
                f"one table can be given. Got {len(self.files)}: {quoted(map(str, self.files))}."
            )
        return self.data

    @property
    def is_in_parts(self) -> bool:
        """Whether it is several Parquet files: a list, a folder, or a pattern that no shell has filled in."""
        is_pattern = has_magic(str(self.data)) and not self.data.path.exists()
        return len(self.files) > 1 or self.data.path.is_dir() or is_pattern

    @property
    def columns(self) -> list[str] | None:
        """The columns to use; None if all."""
        return names_in("--columns", self.only)

    @property
    def drop(self) -> list[str]:
        """The columns to leave out."""
        return names_in("--drop", self.chosen["drop"]) or []

    @property
    def discrete(self) -> list[str]:
        """The columns that hold categories, whatever they look like."""
        return names_in("--discrete", self.chosen["discrete"]) or []

    def settings(self, names: Collection[str]) -> dict[str, Any]:
        """Return the settings of `spbn.learn` for a table with columns of these names."""
        found = {name: _read(OPTIONS[name], value, names) for name, value in self.chosen.items()}
        del found["drop"]  # the table lacks them already
        return found

    def read(self, axis: Axis | None = None) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the table and the settings of `spbn.learn`; `axis` says how rows follow each other."""
        from spbn.cli.files import present, require_complete

        data, missing, choice = self.table, self.chosen["missing"], (self.columns, self.drop, self.discrete)
        if axis is not None:
            frame = series_frame(data, axis, *choice)
            if missing == "error":
                require_complete(
                    data,
                    frame.drop(columns=axis.keys),
                    "Fill what is missing, or pass --missing drop to leave out rows that look back on it.",
                )
        else:
            remedy = "With --missing impute, a network is learned from the values that are there."
            frame = training_frame(data, *choice, missing, remedy=remedy if self.can_impute else "")
        variables = frame if axis is None else frame.drop(columns=axis.keys)
        names = [str(name) for name in variables.columns]
        whole = present(variables).min(axis=1)
        if whole.any():
            note_peculiar_columns(variables.loc[whole], self.discrete)
        return frame, self.settings(names if axis is None else names_with_lags(names, axis.lags))

    def read_later(self) -> dict[str, Any]:
        """Return the settings of `spbn.distributed.learn` instead, and leave the rows to others."""
        from spbn.dask.sources import open_source

        chosen = self.chosen
        refused = {
            "--algorithm": chosen["algorithm"] != OPTIONS["algorithm"].default,
            "--test": chosen["test"] != OPTIONS["test"].default,
            "--alpha": chosen["alpha"] != OPTIONS["alpha"].default,
            "--missing impute": chosen["missing"] == "impute",
            "--bandwidth cv": chosen["bandwidth"] == "cv",
            "--sep": self.data.sep is not None,
            "--decimal": self.data.decimal is not None,
            "--encoding": self.data.encoding is not None,
        }
        unused = [option for option, is_given in refused.items() if is_given]
        if unused:
            raise ArgumentError(
                f"{' and '.join(unused)} cannot be used with several files, whose rows are read a part at a "
                f"time: put them into one file, or leave the option out."
            )
        paths = [source.path for source in self.files]
        source = open_source(paths, drop=self.drop, only=self.columns, discrete=self.discrete)
        settings = self.settings(source.names)
        for name in ("algorithm", "test", "alpha"):
            del settings[name]
        if settings["max_parents"] is None:
            del settings["max_parents"]
        return {**settings, "drop": self.drop, "columns": self.columns}


def _read(known: Option, value: Any, names: Collection[str]) -> Any:
    """Return the value of an argument of `learn`."""
    if known.kind == "arcs":
        return [arc_in(str(known.flag), text, names) for text in value]
    if known.kind == "names":
        return names_in(str(known.flag), value) or []
    return value


def names_in(option: str, texts: Collection[str]) -> list[str] | None:
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


@contextmanager
def client_of(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """Give the client of workers that are started, or of a scheduler; None if neither is asked for."""
    from spbn.dask.client import connected, local_workers

    if workers is not None and scheduler is not None:
        raise ArgumentError("give --workers or --scheduler, not both: a scheduler has workers of its own.")
    if workers is not None:
        if workers < 1:
            raise ArgumentError(f"--workers must be 1 or more. Got {workers}.")
        with local_workers(workers, processes=PROCESSES) as client:
            yield client
    elif scheduler is not None:
        with connected(scheduler) as client:
            yield client
    else:
        yield None
