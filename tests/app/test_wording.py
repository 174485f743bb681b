import inspect
import shlex

import pytest

import spbn
from command_line import options_of
from spbn.cli.arguments import names_in
from spbn.cli.wording import OPTIONS, in_options, joined


@pytest.mark.parametrize(
    ("python", "command_line"),
    [
        ("pass missing='drop'.", "pass --missing drop."),
        ("leave it out (drop=['a'] in learn).", "leave it out (--drop a)."),
        ("leave them out with drop=['a', 'b c'].", "leave them out with --drop 'a,b c'."),
        (
            "folds must be between 2 and 4. Got 10 instead.",
            "--folds must be between 2 and 4. Got 10 instead.",
        ),
        (
            "score and max_parents can be given with algorithm='hc' only.",
            "--score and --max-parents can be given with --algorithm hc only.",
        ),
        ("required_arcs must join two nodes.", "--require must join two nodes."),
        ("'a' is in evidence and in do: it is set.", "'a' is in --given and in --do: it is set."),
        ("evidence: the interval of 'do' is empty.", "--given: the interval of 'do' is empty."),
        ("do: 'a' has no level 'x'.", "--do: 'a' has no level 'x'."),
        ("the event: 'a' has no level 'x'.", "--event: 'a' has no level 'x'."),
        (
            "it was made with folds=3, and not with folds=4. Give",
            "it was made with --folds 3, and not with --folds 4. Give",
        ),
        (
            "Resample the rows: spbn.resample(data, time='t', every=1.5).",
            "Resample the rows: --every 1.5 of learn and forecast, or spbn.resample.",
        ),
        ("steps must be a whole number, 1 or more.", "-n must be a whole number, 1 or more."),
        ("alarm=1e-09 is far less than one of 250", "--alarm 1e-09 is far less than one of 250"),
        ("it is, or pass trained=True to leave rows out of the fit.", "it is."),
        ("Ask for more draws (n), or check.", "Ask for more draws (-n), or check."),
        # What only looks like an argument stays.
        ("column 'max_parents' is constant", "column 'max_parents' is constant"),
        ("the score's data lacks 'seed must be'.", "the score's data lacks 'seed must be'."),
        ("the arc seed → folds is both required", "the arc seed → folds is both required"),
        ("model=x.csv does not exist.", "model=x.csv does not exist."),
        ("seed=3.csv does not exist.", "seed=3.csv does not exist."),
        ("a/seed=3 does not exist.", "a/seed=3 does not exist."),
    ],
)
def test_arguments_become_options(python, command_line):
    assert in_options(python) == command_line


@pytest.mark.parametrize(
    "names", [["a"], ["a", "b c"], ["x, y", 'say "b"'], [""], ["it's", "$HOME"], ["a]", "[b"]]
)
def test_names_can_be_copied_from_a_message_to_a_shell(names):
    """Quoted for the shell, and then for the option."""
    assert names_in("--drop", shlex.split(joined(names))) == names
    (option, value) = shlex.split(
        in_options(f"leave it out with drop={names!r}."[:-1]).removeprefix("leave it out with ")
    )
    assert option == "--drop"
    assert names_in("--drop", [value]) == names


def test_every_option_is_one_of_the_command_line():
    known = set().union(*map(options_of, ("learn", "confidence", "compact", "explore", "watch")))
    only_python = {"--types", "--engine"}
    assert set(OPTIONS.values()) - only_python <= known
    assert set(inspect.signature(spbn.learn).parameters) - {"data", "progress"} <= set(OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--folds 1", "--folds must be between 2 and the number of training rows: 120"),
        ("--seed -1", "--seed must be a whole number, 0 or more. Got -1 instead."),
        ("--patience -1", "--patience must be a whole number, 0 or more. Got -1 instead."),
        ("--max-parents -1", "--max-parents must be a whole number, 0 or more. Got -1 instead."),
        ("--epsilon -1", "--epsilon must be 0 or more. Got -1.0 instead."),
        ("--alpha 1 --algorithm pc", "--alpha must be between 0 and 1. Got 1.0 instead."),
        ("--validation 1.5", "--validation must be a fraction between 0 and 1. Got 1.5 instead."),
        ("--model bn", "--model must be one of 'spbn', 'gbn', 'kdebn', 'blend'. Got 'bn' instead."),
        ("--algorithm up", "--algorithm must be one of 'hc', 'pc'. Got 'up' instead."),
        ("--test t", "--test must be one of 'plc', 'rcot', 'cmiknn'. Got 't' instead."),
        ("--start up", "--start must be 'lg', 'ckde', 'blend' or 'discrete'. Got 'up' instead."),
        ("--score aic", "--score must be one of 'cv', 'bic', 'bge'. Got 'aic' instead."),
        ("--score bic", "--score bic is for --model gbn only. Got --model spbn: use --score cv."),
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
