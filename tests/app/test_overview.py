"""What someone sees first: the overview, the help of every command, and completion in the shell."""

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import Annotated, Literal, get_args, get_origin

import pytest

from command_line import GROUP
from spbn.cli.main import GROUPS

EXAMPLE = re.compile(r"^\s*\[dim\](.*)\[/\]$", re.MULTILINE)


def test_the_overview_names_every_command_on_one_line(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    _, out, err = run()
    lines = (out + err).splitlines()
    assert max(map(len, lines)) <= 80
    for heading, commands in GROUPS.items():
        (start,) = [i for i, line in enumerate(lines) if line.startswith(f"╭─ {heading} ─")]
        for place, command in enumerate(commands, start + 1):
            assert lines[place].split()[1] == command.__name__
        assert lines[start + len(commands) + 1].startswith("╰")


def test_no_command_is_without_a_heading():
    assert [c.__name__ for group in GROUPS.values() for c in group] == list(GROUP.commands)


@pytest.mark.parametrize("name", GROUP.commands)
def test_every_command_has_help_with_examples_that_parse(name, run):
    command = GROUP.commands[name]
    examples = EXAMPLE.findall(command.help)
    assert examples
    for example in examples:
        words = shlex.split(example)
        called, *arguments = words[words.index("spbn") + 1 :]  # rows may be piped to it
        assert called == name
        command.make_context(name, arguments)
    code, out, _ = run(name, "--help")
    assert code == 0
    assert examples[0].split(" --")[0] in out
    for parameter in command.params:
        assert parameter.name == "help" or parameter.hidden or parameter.help, parameter.name


def test_lines_of_help_end_where_the_terminal_does():
    for name, command in GROUP.commands.items():
        assert not re.search(r"[^\n]\n[^\n]", command.help), name


def kind_of(annotation):
    """The kind of value that a parameter takes; one of several choices is a kind."""
    inner = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    parts = [part for part in get_args(inner) if part is not type(None)] or [inner]
    if get_origin(inner) is Literal or any(get_origin(part) is Literal for part in parts):
        return "choice"
    return parts[0]


def test_options_of_the_same_name_take_the_same_kind_of_value():
    kinds = {}
    for command in (command for group in GROUPS.values() for command in group):
        for parameter in inspect.signature(command).parameters.values():
            kinds.setdefault(parameter.name, set()).add(kind_of(parameter.annotation))
    # What is learned is named by --model, and a file with what was learned is the argument MODEL.
    assert {name for name, found in kinds.items() if len(found) > 1} <= {"model"}
    assert "choice" in kinds["margins"]
    assert kinds["seed"] == {int}


def completed(shell, *words):
    """Return what a shell offers for the last word, and the packages that were imported for that."""
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        "sys.argv = ['spbn']; from spbn.cli.main import main; main()"
    )
    line = " ".join(["spbn", *words])
    environment = {
        **os.environ,
        "_SPBN_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options_without_heavy_packages(shell):
    offered, imported = completed(shell, "learn", "--va")
    assert "--validation" in offered
    assert "--model" not in offered
    heavy = {"numba", "pandas", "scipy", "sklearn", "matplotlib", "networkx", "dask", "llvmlite", "pyarrow"}
    assert "spbn.cli.main" in imported
    assert not heavy & imported


def test_a_shell_completes_names_of_commands_and_values():
    offered, _ = completed("bash", "co")
    assert set(offered.split()) == {"compare", "confidence", "compact"}
    offered, _ = completed("bash", "learn", "x.csv", "--margins", "y")
    assert offered.split() == ["yeo-johnson"]


def completion(option, shell, **environment):
    """Run one of the options that teach a shell, for a shell that need not be there."""
    program = (
        f"import sys; sys.argv = ['spbn', {option!r}, {shell!r}]; from spbn.cli.main import main; main()"
    )
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", **environment}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(shell):
    assert "_SPBN_COMPLETE=complete_" in completion("--show-completion", shell)


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("bash", ".bash_completions/spbn.sh"),
        ("zsh", ".zfunc/_spbn"),
        ("fish", ".config/fish/completions/spbn.fish"),
    ],
)
def test_completion_is_installed_where_a_shell_finds_it(shell, script, tmp_path):
    out = completion("--install-completion", shell, HOME=str(tmp_path))
    assert f"{shell} completion installed in {tmp_path / script}" in " ".join(out.split())
    assert "_SPBN_COMPLETE=complete_" in (tmp_path / script).read_text()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_new_bash_knows_the_completion_that_was_installed(tmp_path):
    completion("--install-completion", "bash", HOME=str(tmp_path))
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = ["bash", "--norc", "-c", "source ~/.bashrc; complete -p spbn"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("spbn")
