"""The command line as tests see it. This module alone knows the package that parses it."""

import shlex

import click
from click.testing import CliRunner

from spbn.cli.main import app, main

__all__ = ["GROUP", "answer_questions", "main", "named_options", "options_of", "run_line"]

#: The commands, as the parser knows them: ``GROUP.commands["learn"].params`` and so on.
GROUP = app
#: These have tests of their own: see test_overview.py.
COMPLETION = ("--install-completion", "--show-completion")


def options_of(command):
    """Return the names of a command's options."""
    return {name for parameter in GROUP.commands[command].params for name in parameter.opts}


def named_options():
    """Return every option of every command as a command, "" for none, and the option's longest name."""
    return {
        (name, max(parameter.opts, key=len))
        for name, command in [("", GROUP), *GROUP.commands.items()]
        for parameter in command.params
        if parameter.param_type_name == "option" and not {"--help", *COMPLETION} & {*parameter.opts}
    }


def run_line(line):
    """Run a line of a page as a shell would; return the exit code, what is printed, and what went wrong."""
    result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    return result.exit_code, result.output, result.exception


def answer_questions(monkeypatch, answer):
    """Answer every question with yes or no; return the list to which the questions are added."""
    asked = []
    monkeypatch.setattr(click, "confirm", lambda text, **options: asked.append(text) or answer)
    return asked
