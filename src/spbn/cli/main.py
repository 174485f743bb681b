"""The command line: ``spbn learn data.csv --report report.html`` and so on."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from inspect import cleandoc
from types import FrameType
from typing import Annotated, Any

import typer

from spbn.cli.classify import classify
from spbn.cli.compacting import compact
from spbn.cli.compare import compare
from spbn.cli.confidence import confidence
from spbn.cli.explore import explore
from spbn.cli.forecast import forecast
from spbn.cli.learn import demo, learn
from spbn.cli.query import impute, predict, query
from spbn.cli.sampling import sample
from spbn.cli.score import score
from spbn.cli.show import plot, report, show
from spbn.cli.terminal import complain, say, warn
from spbn.cli.watch import watch
from spbn.errors import SpbnError

#: All commands, under the headings of the overview.
GROUPS = {
    "Learn": (learn, classify, demo),
    "Look": (show, plot, report, explore),
    "Ask": (query, predict, impute, score, sample),
    "Trust": (confidence, compare),
    "Time": (forecast, watch),
    "Files": (compact,),
}
#: What to do about arcs over time.
STRETCHES = (
    "Halves drawn at random would tear apart rows that follow each other: to see which arcs to believe, "
    "learn from different stretches of time with spbn learn --lags, and see what the networks have in common."
)
ABOUT = """Semiparametric Bayesian networks: learn them, look at them, use them.

[dim]spbn learn data.csv --out model.spbn --report report.html[/]
"""


def unwrapped(text: str) -> str:
    """Join the lines of every paragraph: the help is as wide as the terminal, wherever lines end here."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


app = typer.Typer(
    name="spbn",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="[dim]spbn COMMAND --help[/] explains a command and shows an example.",
)
for heading, commands in GROUPS.items():
    for command in commands:
        app.command(rich_help_panel=heading, help=unwrapped(command.__doc__ or ""))(command)


def _version(asked: bool) -> None:
    if asked:
        import spbn

        say(f"spbn {spbn.__version__}")
        raise typer.Exit


@app.callback(help=ABOUT)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version)] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. What spbn refuses is one line on the error stream, and exit code 2."""
    warnings.showwarning = warn
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that cannot show every letter
    if threading.current_thread() is threading.main_thread():
        # As with Ctrl-C, files that are being written are removed.
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _stop)
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except SpbnError as error:
        from spbn.cli.wording import in_options

        _fail(in_options(str(error)))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except MemoryError:
        _fail("there is not enough memory for that: ask for fewer rows.")
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(130) from None
    except Exception as error:
        usage = getattr(error, "format_message", None)  # what the parser of the command line refuses
        if usage is None:
            raise
        _fail(_known_elsewhere(error) or usage().replace("Value error, ", ""))
    else:
        if code:  # an interrupt comes back as a number
            raise SystemExit(code)


def _fail(message: str) -> None:
    if message:  # there is none where the help was shown instead
        complain(message)
    raise SystemExit(2)


def _known_elsewhere(error: Any) -> str:
    """Say which commands have an option that this one lacks; nothing if none of them does."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or context is None or context.parent is None:
        return ""
    commands = context.parent.command.commands
    *others, last = [name for name, command in commands.items() if _has(command, option)] or [""]
    if not last:
        return ""
    having = f"{', '.join(others)} and {last}" if others else last
    advice = STRETCHES if (context.info_name, option) == ("confidence", "--lags") else ""
    return f"spbn {context.info_name} has no option {option}, which is for spbn {having}. {advice}".strip()


def _has(command: Any, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def _stop(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
