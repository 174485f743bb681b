"""How commands behave, whatever they do: what they print and write, their help, and their errors.

Results are lines for people, or one JSON document for programs. Names come from files, and files from
anywhere: every line goes through `say` or `complain`, which write control characters as escapes instead of
sending them to the terminal.

The library names its own arguments: ``max_parents=2``, ``drop=['id']``. Whoever uses the command line has
options instead, so what is printed there says ``--max-parents 2`` and ``--drop id``.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from inspect import cleandoc
from numbers import Integral, Real
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, final

import click

from spbn._base.display import printable
from spbn._base.lazy import pd
from spbn.cli.sources import STANDARD, Source, as_source
from spbn.errors import ArgumentError, SpbnError
from spbn.learning.settings import OPTIONS

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Arguments of other functions than `learn` that have another name here, or that not every command has.
ARGUMENTS = {
    **{known.name: known.flag for known in OPTIONS.values() if known.flag is not None},
    **{name: f"--{name}" for name in ("columns", "sep", "decimal", "encoding", "sheet")},  # of `read_table`
    "skip_rows": "--skip-rows",
    **{name: f"--{name}" for name in ("lags", "series", "time", "every")},  # of `learn_dynamic`, `resample`
    **{name: f"--{name}" for name in ("alarm", "drift")},  # of `Monitor`
    **{name: f"--{name}" for name in ("do", "event", "others", "replicates", "tolerance")},
    **dict.fromkeys(("n", "steps", "samples"), "-n"),
    "evidence": "--given",
}


@functools.cache
def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Printer(Console):
        def on_broken_pipe(self) -> None:
            silence(self.file)

    return Printer(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def silence(stream: IO[str]) -> None:
    """Drop what is still to be printed: whoever reads it has seen enough, but there may be files to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(*lines: str, style: str | None = None, stderr: bool = False) -> None:
    """Print lines; one that is empty if there are none."""
    for line in lines or ("",):
        _console(stderr=stderr).print(printable(line), style=style)


def _put(text: str, stream: TextIO | None = None) -> None:
    """Print text as it is, all of it."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)


def say_lines(text: str, *, stderr: bool = False) -> None:
    """Print text of several lines."""
    say(*text.split("\n"), stderr=stderr)


def complain(message: str) -> None:
    """Print one line to the error stream."""
    _console(stderr=True).print(printable(f"spbn: {message}"))


def note(message: str) -> None:
    """Print a note to the error stream."""
    complain(f"note: {message}")


def as_option_value(names: Iterable[str]) -> str:
    """Write names as the value of an option that takes several: separated by commas, and fit for a shell."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(names)
    return shlex.quote(stream.getvalue())


@final
class Answer:
    """What a command has found and which files it has written, for people or for programs."""

    def __init__(self, *, as_json: bool = False, table_stream: TextIO | None = None) -> None:
        self._as_json = as_json
        self._table_stream = table_stream
        self._content: dict[str, Any] = {}
        self._files: dict[str, str | list[str]] = {}
        self._is_shown = False

    def give(
        self, document: Callable[[], Mapping[str, Any]], show: Callable[[], object] | None = None
    ) -> None:
        """Answer with a result: what goes into the JSON document, or what prints it in words."""
        if self._as_json:
            self._content.update(document())
        elif show is not None:
            show()
            self._is_shown = True

    def give_rows(self, rows: pd.DataFrame, path: Path | None) -> None:
        """Answer with the rows of a table: in a file, or else as CSV or a list of objects."""
        if path is None:
            # What goes into a pipe or a file stays as it is.
            names = printable if sys.stdout.isatty() else str
            text = rows.rename(columns=names)
            self.give(lambda: {"rows": objects(rows)}, lambda: _put(text.to_csv(index=False)))
        self.write_rows("out", path, rows)

    def wrote(self, option: str, path: Path | Sequence[Path], line: str, *, apart: bool = True) -> None:
        """Say that a file was written, apart from what was printed before; of several files, name all."""
        self._files[option] = str(path) if isinstance(path, Path) else [str(one) for one in path]
        if self._as_json:
            return
        if apart and self._is_shown and len(self._files) == 1:
            say()
        say(line)

    def write(self, option: str, path: Path | None, what: str, write: Callable[[Path], object]) -> None:
        """Write a file if an option asks for it, and say so."""
        if path is not None:
            write(path)
            self.wrote(option, path, f"{what} written to {shown(path)}")

    def write_rows(self, option: str, path: Path | None, rows: pd.DataFrame, what: str | None = None) -> None:
        """Write a table if an option asks for it, and say so."""
        self.write(option, path, what or f"{len(rows)} rows", functools.partial(self.save_rows, rows))

    def save_rows(self, rows: pd.DataFrame, path: Path) -> None:
        """Write a table to a file, or as CSV to standard output."""
        if path == STANDARD:
            _put(rows.to_csv(index=False), self._table_stream)
        else:
            from spbn.cli.files import write_table

            write_table(rows, path)

    @property
    def document(self) -> dict[str, Any]:
        return plain({**self._content, "files": self._files})


def shown(path: Path) -> str:
    """Say where a table was written to."""
    return "standard output" if path == STANDARD else str(path)


def plain(value: Any) -> Any:
    """Return a value as JSON has it; what is missing or infinite is null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if hasattr(value, "tolist"):  # an array, or one of its values
        return plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)


def objects(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one object per row of a table; what is missing is None."""
    found: Any = rows.astype(object).where(rows.notna(), None)
    return found.rename(columns=str).to_dict("records")


def count(things: Collection[Any], word: str, words: str | None = None) -> str:
    """Say how many there are, in words."""
    return f"{len(things)} {word if len(things) == 1 else words or f'{word}s'}"


class Flags:
    """Names arguments of Python as the options of a command; those that it lacks, as those of others."""

    def __init__(self, command: click.Command | None = None) -> None:
        own = [] if command is None else [p for p in command.params if isinstance(p, click.Option)]
        self._flags = ARGUMENTS | {str(parameter.name): parameter.opts[0] for parameter in own}

    def name(self, argument: str, /) -> str:
        return self._flags.get(argument, argument)

    def setting(self, argument: str, value: object, /) -> str:
        """Return an option with its value, fit for a shell."""
        flag = self._flags.get(argument)
        if flag is None:
            return f"{argument}={'...' if value is ... else repr(value)}"
        if value is ...:
            return flag
        shown = (
            as_option_value(map(str, value)) if isinstance(value, list | tuple) else shlex.quote(str(value))
        )
        return f"{flag} {shown}"


def in_flags(error: Exception | str) -> str:
    """Return the message of an error or a warning in the words of the command that is running."""
    context = click.get_current_context(silent=True)
    flags = Flags(None if context is None else context.command)
    return error.render(flags) if hasattr(error, "render") else str(error)


def warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning of the library; this can take the place of `warnings.showwarning`."""
    complain(f"warning: {in_flags(message)}")


class Argument(click.Argument):
    """An argument with a line of help."""

    def __init__(self, declarations: Sequence[str], *, help: str = "", **attributes: Any) -> None:
        super().__init__(declarations, metavar=declarations[0].upper(), **attributes)
        self.help = help

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        name = f"{self.metavar}{'...' if self.nargs == -1 else ''}"
        return [name if self.required else f"[{name}]"]


class Command(click.Command):
    """A command with help in panels."""

    def __init__(self, name: str | None, *, help: str | None = None, **attributes: Any) -> None:
        super().__init__(name, help=_unwrapped(help or ""), **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what the library refuses becomes a usage error, and Ctrl-C an exit code."""
        try:
            return super().invoke(ctx)
        except SpbnError as error:
            raise click.UsageError(in_flags(error)) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None

    def get_help(self, ctx: click.Context) -> str:
        return _help(self, ctx)


class Group(click.Group):
    """The overview of all commands, under headings."""

    def __init__(self, name: str, *, headings: Mapping[str, Collection[click.Command]], **attributes: Any):
        commands = [command for below in headings.values() for command in below]
        super().__init__(name, commands=commands, no_args_is_help=True, **attributes)
        self._headings = headings

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_help(self, ctx: click.Context) -> str:
        width = max(map(len, self.commands))
        panels = [
            _panel(
                heading, [(f"[bold cyan]{c.name!s:{width}}[/]", str(c.help).split("\n\n")[0]) for c in below]
            )
            for heading, below in self._headings.items()
        ]
        return _help(self, ctx, *panels, _text(self.epilog or ""))


class TableFile(click.Path):
    """A file with a table, or ``-`` for standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Source:
        return as_source(value)


FILE, TABLE = click.Path(path_type=Path), TableFile()
argument = functools.partial(click.argument, cls=Argument)
#: Options of all commands that read tables, and of those that have an answer.
_WRITTEN = (
    click.Option(
        ["--sep"],
        help="Separator between the fields of a text file: one character, or tab. Default: detected.",
    ),
    click.Option(
        ["--decimal"],
        type=click.Choice([".", ","]),
        help="Decimal point or comma in the numbers of a text file. Default: detected.",
    ),
    click.Option(["--encoding"], help="Encoding of a text file, such as latin-1. Default: utf-8 or cp1252."),
    click.Option(
        ["--skip-rows"], type=int, help="Lines above the names of the columns: titles, comments and the like."
    ),
    click.Option(
        ["--sheet"], help="Sheet of an Excel file: its name or number. Default: the first with a table."
    ),
)
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print a JSON document instead of text.")


def command(function: Callable[..., None]) -> Command:
    """Make a command of a function, with its name and its docstring.

    If it reads tables, it also has the options that say how these are written. Unless it has an option --json
    of its own, it has the usual one, and is passed its `answer`, which knows who is to read it.
    """
    made = click.command(cls=Command)(function)
    run, parameters = function, tuple(made.params)
    if all(parameter.name != _JSON.name for parameter in parameters):
        run = functools.partial(_answer, run)
        made.params.append(_JSON)
    if any(parameter.type is TABLE for parameter in parameters):
        run = functools.partial(_read_tables, run)
        made.params[len(parameters) : len(parameters)] = _WRITTEN
    made.callback = run
    return made


def _answer(run: Callable[..., None], *, as_json: bool, **given: Any) -> None:
    """Run a command; with --json, print the document when all is done.

    Whatever else it prints then goes to the error stream: standard output has one document, or nothing if the
    command fails. Likewise, where a table goes to standard output, nothing else does.
    """
    takes_output = any(isinstance(value, Path) and value == STANDARD for value in given.values())
    if as_json and takes_output:
        raise ArgumentError("--json and a table cannot both go to standard output (-): give a file.")
    if not as_json and not takes_output:
        run(answer=Answer(), **given)
        return
    answer = Answer(as_json=as_json, table_stream=sys.stdout)
    with redirect_stdout(sys.stderr):
        run(answer=answer, **given)
    if as_json:
        _put(json.dumps(answer.document, indent=2, allow_nan=False) + "\n")


def _read_tables(run: Callable[..., None], **chosen: Any) -> None:
    """Run a command with tables that are written as the options say."""
    written = {str(option.name): chosen.pop(str(option.name)) for option in _WRITTEN}
    standard = 0
    for name, value in chosen.items():
        tables = value if isinstance(value, tuple) else (value,)
        if tables and isinstance(tables[0], Source):
            standard += tables[0].is_standard  # several cannot be standard input, and are refused for that
            changed = tuple(replace(table, **written) for table in tables)
            chosen[name] = changed if isinstance(value, tuple) else changed[0]
    if standard > 1:
        raise ArgumentError("only one table can come from standard input (-): give a file for the other.")
    run(**chosen)


def _unwrapped(text: str) -> str:
    """Join the lines of every paragraph: the help is as wide as the terminal, wherever lines end here."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


def _help(command: click.Command, ctx: click.Context, *below: RenderableType) -> str:
    """Return the help as it is printed, in colours where a terminal shows it."""
    from rich.console import Console
    from rich.markup import escape

    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    parts = [_text(f"[yellow]Usage:[/] [bold]{escape(usage)}[/]"), _text(command.help or ""), ""]
    for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
        rows = [(_named(p), _kind(p), _explained(p)) for p in command.get_params(ctx) if isinstance(p, kind)]
        if rows:
            parts.append(_panel(title, rows))
    console = Console(highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(*parts, *below, sep="\n")
    return capture.get()


def _text(markup: str) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text.from_markup(markup), (1, 1, 0, 1))


def _named(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return f"[red]{'*' if parameter.required else ' '}[/] [bold cyan]{parameter.metavar}[/]"
    names = sorted(parameter.opts, key=lambda name: name[:2] != "--")
    return f"[bold cyan]{' '.join([*names, *parameter.secondary_opts])}[/]"


def _kind(parameter: click.Parameter) -> str:
    """Say what kind of value a parameter takes; nothing of one that takes none."""
    if getattr(parameter, "is_flag", False):
        return ""
    if isinstance(parameter, click.Option) and parameter.metavar:
        return f"[bold yellow]{parameter.metavar}[/]"
    choices = getattr(parameter.type, "choices", None)
    short = {"integer": "int", "text": "str"}.get(parameter.type.name, parameter.type.name)
    return f"[bold yellow]<{'|'.join(map(str, choices)) if choices else short}>[/]"


def _explained(parameter: Any) -> str:
    """Return the help, the default, and whether there must be a value."""
    parts = [parameter.help or ""]
    default = shown_default(parameter)
    if default:
        parts.append(f"[dim]\\[default: {default}][/]")
    if parameter.required:
        parts.append("[dim red]\\[required][/]")
    return " ".join(parts)


def shown_default(parameter: Any) -> str:
    """Return the default of a parameter as the help says it; nothing if there is none to mention."""
    default = parameter.to_info_dict()["default"]
    if default is None or default == () or callable(default) or parameter.required:
        return ""
    if isinstance(default, bool):
        names = parameter.opts if default else parameter.secondary_opts
        return names[0].lstrip("-") if parameter.secondary_opts else ""
    return "standard input" if default == "-" else str(default)


def _panel(title: str, rows: Sequence[Sequence[str]]) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table

    table = Table.grid(padding=(0, 2), expand=True)
    for _ in rows[0][1:]:
        table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for row in rows:
        table.add_row(*row)
    return Panel(table, title=title, title_align="left", border_style="dim")
