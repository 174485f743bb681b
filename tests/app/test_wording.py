import shlex

import pytest

from command_line import GROUP
from spbn.cli.command import ARGUMENTS, Flags, as_option_value
from spbn.cli.options import names_in
from spbn.errors import ArgumentError, DataError, argument, in_python, setting
from spbn.learning.settings import OPTIONS


@pytest.mark.parametrize(
    ("message", "python", "command_line"),
    [
        (f"pass {setting('missing', 'drop')}.", "pass missing='drop'.", "pass --missing drop."),
        (
            f"leave it out ({setting('drop', ['a'])}{in_python(' in learn')}).",
            "leave it out (drop=['a'] in learn).",
            "leave it out (--drop a).",
        ),
        (
            f"leave them out with {setting('drop', ['a', 'b c'])}.",
            "leave them out with drop=['a', 'b c'].",
            "leave them out with --drop 'a,b c'.",
        ),
        (
            f"{argument('score')} and {argument('max_parents')} need {setting('algorithm', 'hc')}.",
            "score and max_parents need algorithm='hc'.",
            "--score and --max-parents need --algorithm hc.",
        ),
        (f"{argument('required_arcs')} must", "required_arcs must", "--require must"),
        (
            f"'a' is in {argument('evidence')} and in {argument('do')}: it is set.",
            "'a' is in evidence and in do: it is set.",
            "'a' is in --given and in --do: it is set.",
        ),
        (f"{setting('alarm', 1e-09)} is far less", "alarm=1e-09 is far less", "--alarm 1e-09 is far less"),
        (f"give {setting('series', ...)}.", "give series=....", "give --series."),
        (f"{argument('engine')} must", "engine must", "engine must"),
        # What only looks like an argument stays.
        ("column 'max_parents' is constant", *["column 'max_parents' is constant"] * 2),
        ("seed=3.csv does not exist.", *["seed=3.csv does not exist."] * 2),
    ],
)
def test_arguments_become_options(message, python, command_line):
    error = ArgumentError(message)
    assert str(error) == python
    assert error.render(Flags()) == command_line


def test_a_command_names_its_own_options():
    """Those that it has under another name than `learn`."""
    flags = Flags(GROUP.commands["classify"])
    assert (flags.name("test"), flags.name("folds")) == ("--independence-test", "--folds")
    assert Flags(GROUP.commands["forecast"]).name("steps") == "--steps"
    assert Flags(GROUP.commands["sample"]).name("steps") == "-n"


@pytest.mark.parametrize(
    "names", [["a"], ["a", "b c"], ["x, y", 'say "b"'], [""], ["it's", "$HOME"], ["a]", "[b"]]
)
def test_names_can_be_copied_from_a_message_to_a_shell(names):
    """Quoted for the shell, and then for the option."""
    assert names_in("--drop", shlex.split(as_option_value(names))) == names
    error = DataError(f"leave it out with {setting('drop', names)}")
    (option, value) = shlex.split(error.render(Flags()).removeprefix("leave it out with "))
    assert option == "--drop"
    assert names_in("--drop", [value]) == names


def test_every_option_is_one_of_the_command_line():
    known = {name for command in GROUP.commands.values() for p in command.params for name in p.opts}
    assert set(ARGUMENTS.values()) <= known
    assert {known.name for known in OPTIONS.values() if known.flag} <= set(ARGUMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--folds 1", "--folds must be between 2 and the number of rows, 150"),
        ("--folds 1 --model spbn", "--folds must be between 2 and the number of training rows: 120"),
        ("--seed -1", "--seed must be a whole number, 0 or more. Got -1 instead."),
        ("--patience -1", "--patience must be a whole number, 0 or more. Got -1 instead."),
        ("--max-parents -1", "--max-parents must be a whole number, 0 or more. Got -1 instead."),
        ("--epsilon -1", "--epsilon must be 0 or more. Got -1.0 instead."),
        ("--alpha 1 --algorithm pc", "--alpha must be between 0 and 1. Got 1.0 instead."),
        ("--validation 1.5", "--validation must be a fraction between 0 and 1. Got 1.5 instead."),
        ("--model bn", "--model must be one of 'spbn', 'gbn', 'kdebn', 'blend', 'auto'. Got 'bn' instead."),
        ("--algorithm up", "--algorithm must be one of 'hc', 'boss', 'pc'. Got 'up' instead."),
        ("--test t", "--test must be one of 'plc', 'rcot', 'cmiknn'. Got 't' instead."),
        ("--start up", "--start must be 'lg', 'ckde', 'blend', 'discrete' or 'curve'. Got 'up' instead."),
        ("--score aic", "--score must be one of 'cv', 'bic', 'bge'. Got 'aic' instead."),
        (
            "--score bic --model spbn",
            "--score bic is for --model gbn only. Got --model spbn: use --score cv.",
        ),
        ("--bandwidth wide", "'--bandwidth': 'wide' is not one of 'scott', 'silverman', 'cv'."),
        ("--missing fill", "'--missing': 'fill' is not one of 'error', 'drop', 'impute'."),
        ("--algorithm pc --max-parents 2", "--max-parents can be given with --algorithm hc only"),
        ("--require a:b --require b:a", "the required arcs (--require) form a cycle: a → b → a."),
        ("--require a:a", "--require takes an arc between two different columns. Got 'a:a'."),
        ("--require ab", "--require takes an arc written A:B, parent first. Got 'ab'."),
        ("--forbid a:z", "--forbid 'a:z' names an unknown column: 'z'. The columns are 'a', 'b' and 'c'."),
        ("--forbid y:z", "--forbid 'y:z' names unknown columns: 'y' and 'z'."),
        (
            "--require a:c --require b:c --max-parents 1",
            "--require gives more than --max-parents 1 parents to 'c'.",
        ),
    ],
)
def test_errors_name_options(folder, run, arguments, message):
    code, out, err = run("learn", "data.csv", *arguments.split())
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
