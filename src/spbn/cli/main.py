"""The command line: ``spbn learn data.csv --report report.html`` and so on."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import click
from click.shell_completion import get_completion_class

from spbn.cli.causes import counterfactual, effect
from spbn.cli.command import Group, complain, say, silence, warn
from spbn.cli.learn import check, classify, compare, confidence, demo, learn
from spbn.cli.query import classes, forecast, impute, predict, query, sample
from spbn.cli.show import compact, explore, export, import_command, plot, report, score, show
from spbn.cli.watch import watch

#: All commands, under the headings of the overview.
GROUPS = {
    "Learn": (check, learn, classify, demo),
    "Look": (show, plot, report, explore),
    "Ask": (query, effect, counterfactual, predict, impute, classes, score, sample),
    "Trust": (confidence, compare),
    "Time series": (forecast, watch),
    "Files": (compact, export, import_command),
}
#: What to do about arcs over time.
STRETCHES = (
    "Halves drawn at random would tear apart rows that follow each other: to see which arcs to believe, "
    "learn from different stretches of time with spbn learn --lags, and see what the networks have in common."
)
#: Where shells look for completion, below the home folder; and the line of a file that makes them look there.
COMPLETIONS = {
    "bash": (".bash_completions/spbn.sh", ".bashrc", "source '{script}'"),
    "zsh": (".zfunc/_spbn", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/spbn.fish", None, ""),
}


def _version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        import spbn

        say(f"spbn {spbn.__version__}")
        context.exit()


def _complete(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    """Print or install what a shell needs to complete commands."""
    if shell is None or context.resilient_parsing:
        return
    name = Path(os.environ.get("SHELL", "")).name if shell == "this" else shell
    kind = get_completion_class(name)
    if kind is None or name not in COMPLETIONS:
        known = ", ".join(COMPLETIONS)
        raise click.UsageError(
            f"completion is for {known}, and the shell is {name!r}: say which, as in "
            f"{parameter.opts[0]} bash."
        )
    script = kind(context.command, {}, "spbn", "_SPBN_COMPLETE").source()
    if parameter.name == "show_completion":
        click.echo(script)
        context.exit()
    place, settings, line = COMPLETIONS[name]
    path = Path.home() / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    if settings is not None:
        line, file = line.format(script=path), Path.home() / settings
        content = file.read_text(encoding="utf-8") if file.is_file() else ""
        if line not in content:
            file.write_text(f"{content.rstrip()}\n{line}\n".lstrip(), encoding="utf-8")
    say(f"{name} completion installed in {path}")
    say("Open a new terminal to use it.")
    context.exit()


def _completion_option(flag: str, help: str) -> click.Option:
    return click.Option(
        [flag],
        is_flag=False,
        flag_value="this",
        metavar="[SHELL]",
        expose_value=False,
        callback=_complete,
        help=help,
    )


app = Group(
    "spbn",
    headings=GROUPS,
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, callback=_version, help="Print the version."
        ),
        _completion_option("--install-completion", "Install completion for the current shell."),
        _completion_option(
            "--show-completion",
            "Show completion for the current shell, to copy it or customize the installation.",
        ),
    ],
    help="Semiparametric Bayesian networks: learn them, look at them, use them.\n\n"
    "[dim]spbn learn data.csv --out model.spbn --report report.html[/]",
    epilog="[dim]spbn COMMAND --help[/] explains a command and shows an example.",
)


def main() -> None:
    """Run the command line. What spbn refuses ends in a line on the error stream, and exit code 2."""
    warnings.showwarning = warn
    if isinstance(sys.stdout, io.TextIOWrapper):
        # For terminals that cannot show every letter.
        encoding, odd_letters = sys.stdout.encoding, "backslashreplace"
        if isinstance(sys.stdout.buffer, io.RawIOBase):  # PYTHONUNBUFFERED, which writes what fits on a disk
            whole = io.BufferedWriter(sys.stdout.detach())
            sys.stdout = io.TextIOWrapper(whole, encoding, odd_letters, line_buffering=True)
        sys.stdout.reconfigure(errors=odd_letters)
    if threading.current_thread() is threading.main_thread():
        # As with Ctrl-C, files that are being written are removed.
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _stop)
    try:
        code = app(prog_name="spbn", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough
        silence(sys.stdout)
        raise SystemExit(141) from None
    except click.exceptions.NoArgsIsHelpError as overview:
        click.echo(overview.format_message())
        raise SystemExit(2) from None
    except click.ClickException as error:
        _fail(_known_elsewhere(error) or error.format_message())
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:  # it is that one which is full
            silence(sys.stdout)
        _fail(": ".join(str(one) for one in (error.filename, error.strerror) if one) or str(error))
    except MemoryError:
        _fail("there is not enough memory for that: ask for fewer rows.")
    except click.Abort:
        raise SystemExit(130) from None
    else:
        if code:  # an interrupt comes back as a number
            raise SystemExit(code)


def _fail(message: str) -> None:
    complain(message)
    raise SystemExit(2)


def _known_elsewhere(error: Any) -> str:
    """Say which commands have an option that this one lacks; nothing if none of them does."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if not isinstance(error, click.NoSuchOption) or context is None or context.parent is None:
        return ""
    having = [name for name, command in app.commands.items() if any(option in p.opts for p in command.params)]
    *others, last = having or [""]
    if not last:
        return ""
    names = f"{', '.join(others)} and {last}" if others else last
    advice = STRETCHES if (context.info_name, option) == ("confidence", "--lags") else ""
    return f"spbn {context.info_name} has no option {option}, which is for spbn {names}. {advice}".strip()


def _stop(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
