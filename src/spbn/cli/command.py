"""How commands behave, whatever they do: help in panels, and errors in the words of the command line.

The library names its own arguments: ``max_parents=2``, ``drop=['id']``. Whoever uses the command line has
options instead, so what is printed there says ``--max-parents 2`` and ``--drop id``.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import click

from spbn.cli.output import as_option_value, complain
from spbn.errors import SpbnError
from spbn.learning.settings import OPTIONS

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Arguments of other functions than `learn` that have another name here, or that not every command has.
ARGUMENTS = {
    **{known.name: known.flag for known in OPTIONS.values() if known.flag is not None},
    **{name: f"--{name}" for name in ("columns", "sep", "decimal", "encoding")},  # of `read_table`
    **{name: f"--{name}" for name in ("lags", "series", "time", "every")},  # of `learn_dynamic`, `resample`
    **{name: f"--{name}" for name in ("alarm", "drift")},  # of `Monitor`
    **dict.fromkeys(("n", "steps", "samples"), "-n"),
    "evidence": "--given",
    "do": "--do",
    "event": "--event",
    "others": "--others",
    "replicates": "--replicates",
    "tolerance": "--tolerance",
}
#: What to do about arcs over time.
STRETCHES = (
    "Halves drawn at random would tear apart rows that follow each other: to see which arcs to believe, "
    "learn from different stretches of time with spbn learn --lags, and see what the networks have in common."
)


class Flags:
    """Names arguments of Python as the options of a command; those that it lacks, as those of others."""

    def __init__(self, command: click.Command | None = None) -> None:
        own = [] if command is None else [p for p in command.params if isinstance(p, click.Option)]
        self._flags = ARGUMENTS | {str(parameter.name): parameter.opts[0] for parameter in own}

    def name(self, argument: str, /) -> str:
        """Return the option that an argument is."""
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


class Refused(click.ClickException):
    """What the library has refused, in the words of the command line."""

    exit_code = 2


class Argument(click.Argument):
    """An argument with a line of help."""

    def __init__(self, declarations: Sequence[str], *, help: str = "", **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.help = help

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what stands in the line about usage."""
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
            raise Refused(in_flags(error)) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None

    def get_help(self, ctx: click.Context) -> str:
        """Return the help as it is printed."""
        return _printed([*_introduction(self, ctx), *_parameters(self, ctx)])


class Group(click.Group):
    """The overview of all commands, under headings."""

    def __init__(self, name: str, *, headings: Mapping[str, Collection[click.Command]], **attributes: Any):
        commands = [command for below in headings.values() for command in below]
        super().__init__(name, commands=commands, no_args_is_help=True, **attributes)
        self._headings = headings

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the overview."""
        return list(self.commands)

    def get_help(self, ctx: click.Context) -> str:
        """Return the overview as it is printed."""
        width = max(map(len, self.commands))
        panels = [
            _panel(heading, [(f"[bold cyan]{c.name!s:{width}}[/]", _first_line(c)) for c in below])
            for heading, below in self._headings.items()
        ]
        return _printed(
            [*_introduction(self, ctx), *_parameters(self, ctx), *panels, _text(self.epilog or "")]
        )


argument = functools.partial(click.argument, cls=Argument)


def command(function: Callable[..., None]) -> Command:
    """Make a command of a function, with its name and its docstring."""
    return click.command(cls=Command)(function)


def _unwrapped(text: str) -> str:
    """Join the lines of every paragraph: the help is as wide as the terminal, wherever lines end here."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


def _first_line(command: click.Command) -> str:
    return (command.help or "").split("\n\n")[0]


def _introduction(command: click.Command, ctx: click.Context) -> list[RenderableType]:
    from rich.markup import escape

    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    return [_text(f"[yellow]Usage:[/] [bold]{escape(usage)}[/]"), _text(command.help or ""), ""]


def _text(markup: str) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text.from_markup(markup), (1, 1, 0, 1))


def _parameters(command: click.Command, ctx: click.Context) -> list[RenderableType]:
    """Return the panels of arguments and options."""
    panels = []
    for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
        shown = [p for p in command.get_params(ctx) if isinstance(p, kind)]
        if shown:
            panels.append(_panel(title, [(_named(p), _kind(p), _explained(p)) for p in shown]))
    return panels


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


def _panel(title: str, rows: Iterable[Sequence[str]]) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table

    table = Table.grid(padding=(0, 2), expand=True)
    for row in rows:
        if not table.columns:
            for _ in row[:-1]:
                table.add_column(no_wrap=True)
            table.add_column(ratio=1)
        table.add_row(*row)
    return Panel(table, title=title, title_align="left", border_style="dim")


def _printed(parts: Sequence[RenderableType]) -> str:
    """Return what is printed, in colours where a terminal shows it."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(*parts, sep="\n")
    return capture.get()
