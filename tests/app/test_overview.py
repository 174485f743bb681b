"""What someone sees first: the overview, the help of every command, and completion in the shell."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import click
import pytest

from command_line import GROUP
from spbn.cli.main import GROUPS
from spbn.learning.settings import OPTIONS

EXAMPLE = re.compile(r"^\s*\[dim\](.*)\[/\]$", re.MULTILINE)


def test_the_overview_names_every_command_on_one_line(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, err = run()
    lines = (out + err).splitlines()
    assert max(map(len, lines)) <= 80
    for heading, commands in GROUPS.items():
        (start,) = [i for i, line in enumerate(lines) if line.startswith(f"╭─ {heading} ─")]
        for place, command in enumerate(commands, start + 1):
            assert lines[place].split()[1] == command.name
        assert lines[start + len(commands) + 1].startswith("╰")


def test_no_command_is_without_a_heading():
    assert [c.name for group in GROUPS.values() for c in group] == list(GROUP.commands)


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
        assert parameter.help, parameter.name


def test_lines_of_help_end_where_the_terminal_does():
    for name, command in GROUP.commands.items():
        assert not re.search(r"[^\n]\n[^\n]", command.help), name


def kind_of(parameter):
    """The kind of value that a parameter takes; one of several choices is a kind."""
    if isinstance(parameter.type, click.Choice):
        return "choice"
    return "flag" if getattr(parameter, "is_flag", False) else parameter.type.name


def test_options_of_the_same_name_take_the_same_kind_of_value():
    kinds = {}
    for command in GROUP.commands.values():
        for parameter in command.params:
            kinds.setdefault(parameter.name, set()).add(kind_of(parameter))
    # What is learned is named by --model, and a file with what was learned is the argument MODEL.
    assert {name for name, found in kinds.items() if len(found) > 1} <= {"model"}
    assert "choice" in kinds["margins"]
    assert kinds["seed"] == {"integer"}


def completed(shell, *words):
    """Return what a shell offers for the last word, and the packages that were imported for that."""
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        "sys.argv = ['spbn']; from spbn.cli.main import main; main()"
    )
    line = " ".join(["spbn", *words])
    environment = {
        **os.environ,
        "_SPBN_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options_without_heavy_packages(shell):
    offered, imported = completed(shell, "learn", "--va")
    assert "--validation" in offered
    assert "--model" not in offered
    heavy = {"numba", "pandas", "scipy", "sklearn", "matplotlib", "networkx", "dask", "llvmlite", "pyarrow"}
    assert "spbn.cli.main" in imported
    assert not heavy & imported


@pytest.mark.slow
def test_a_shell_completes_names_of_commands_and_values():
    offered, _ = completed("bash", "co")
    names = ("compare", "confidence", "compact", "counterfactual")
    assert set(offered.split()) == {f"plain,{name}" for name in names}
    offered, _ = completed("bash", "learn", "x.csv", "--margins", "y")
    assert offered.split() == ["plain,yeo-johnson"]
    offered, _ = completed("bash", "learn", "x.csv", "--model", "k")
    assert offered.split() == ["plain,kdebn"]
    offered, _ = completed("bash", "learn", "x")
    assert offered.split() == ["file,x"]


def completion(option, shell, **environment):
    """Run one of the options that teach a shell, for a shell that need not be there."""
    program = (
        f"import sys; sys.argv = ['spbn', {option!r}, {shell!r}]; from spbn.cli.main import main; main()"
    )
    environment = {**os.environ, **environment}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(shell):
    assert f"_SPBN_COMPLETE={shell}_complete" in completion("--show-completion", shell)


@pytest.mark.slow
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
    assert f"_SPBN_COMPLETE={shell}_complete" in (tmp_path / script).read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_new_bash_knows_the_completion_that_was_installed(tmp_path):
    completion("--install-completion", "bash", HOME=str(tmp_path))
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = ["bash", "--norc", "-c", "source ~/.bashrc; complete -p spbn"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("spbn")


@pytest.mark.slow
def test_without_its_package_the_command_says_which_extra_it_needs():
    program = (
        "import importlib.util as util, sys; found = util.find_spec;"
        "util.find_spec = lambda name, *rest: None if name == 'click' else found(name, *rest);"
        "sys.argv = ['spbn', 'learn']; from spbn.cli import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'spbn: the command line needs click: install it with pip install "spbn[cli]".\n'


def test_every_argument_of_learn_is_an_option_of_the_commands_that_learn():
    for known in OPTIONS.values():
        if known.flag and known.is_shared:
            (option,) = [p for p in GROUP.commands["learn"].params if p.name == known.name]
            assert option.opts == [known.flag]
            assert option.help == known.flag_help
            shared = any(p.name == known.name for p in GROUP.commands["confidence"].params)
            assert shared == (known.name != "atoms")  # of which halves of the rows may have others
