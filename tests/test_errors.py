"""Messages that every caller can write in its own words, and checks that name what they refuse."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn._base import checks
from spbn.errors import (
    ArgumentError,
    ClusterError,
    DataError,
    KnowledgeError,
    PackageError,
    SpbnError,
    SpbnWarning,
    argument,
    in_python,
    render,
    setting,
)


class Shell:
    """Arguments as options."""

    def name(self, argument):
        return f"--{argument.replace('_', '-')}"

    def setting(self, argument, value):
        return self.name(argument) if value is ... else f"{self.name(argument)} {value}"


@pytest.mark.parametrize(
    ("message", "python", "shell"),
    [
        (f"{argument('max_parents')} is wrong.", "max_parents is wrong.", "--max-parents is wrong."),
        (f"pass {setting('missing', 'drop')}.", "pass missing='drop'.", "pass --missing drop."),
        (f"({setting('drop', ['a'])}{in_python(' in learn')})", "(drop=['a'] in learn)", "(--drop ['a'])"),
        (f"apart ({setting('series', ...)}).", "apart (series=...).", "apart (--series)."),
        (f"{setting('every', 1.0, shown='1')}", "every=1", "--every 1"),
        (
            in_python("resample()", "use " + setting("every", 2) + " or " + argument("lags")) + ".",
            "resample().",
            "use --every 2 or --lags.",
        ),
        ("{max_parents} stays, and so does seed=3.", *["{max_parents} stays, and so does seed=3."] * 2),
    ],
)
def test_messages_in_the_words_of_python_and_of_others(message, python, shell):
    for error in (ArgumentError(message), DataError(message), SpbnWarning(message)):
        assert str(error) == python
        assert error.render(Shell()) == shell
        assert repr(error) == f"{type(error).__name__}({python!r})"


@given(st.text(), st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text())))
def test_settings_reach_a_naming_as_they_are(text, value):
    """Whatever names and values are, they can neither hide a mark nor look like one."""

    class Names:
        def name(self, argument):
            return f"<{argument}>"

        def setting(self, argument, value):
            found.append((argument, value))
            return ""

    found = []
    message = f"{text!r} {setting('drop', value)}"
    assert render(message) == f"{text!r} drop={value!r}"
    assert render(message, Names()) == f"{text!r} "
    assert found == [("drop", value)]


def test_an_error_knows_its_argument():
    assert ArgumentError(f"{setting('score', 'bic')} needs {argument('model')}.").argument == "score"
    assert ArgumentError("the number is wrong.", argument="n").argument == "n"
    assert ArgumentError("it is wrong.").argument is None


@pytest.mark.parametrize("kind", [ArgumentError, KnowledgeError, PackageError, ClusterError])
def test_errors_survive_the_way_from_another_process(kind):
    error = kind(f"{argument('seed')} is wrong.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.argument, again.render(Shell())) == (
        "seed is wrong.",
        "seed",
        "--seed is wrong.",
    )


def test_an_error_that_quotes_another_keeps_its_marks():
    inner = DataError(f"leave it out ({setting('drop', ['a'])}).")
    assert (
        SpbnError(f"{inner.message} (Replicate 3.)").render(Shell())
        == "leave it out (--drop ['a']). (Replicate 3.)"
    )


@pytest.mark.parametrize(
    ("check", "right", "wrong", "message"),
    [
        (checks.whole, [0, 3, np.int64(2)], [-1, 1.0, True, "3", None], "a whole number, 0 or more"),
        (checks.at_least_0, [0, 1.5, np.float64(2)], [-1, np.nan, np.inf, True, "1"], "0 or more"),
        (checks.fraction, [0.5, np.float32(0.25)], [0, 1, np.nan, True, "0.5"], "between 0 and 1"),
        (checks.seconds, [None, 0, 1.5, np.inf], [-1, np.nan, True, "1"], "a number, 0 or more, or None"),
        (lambda n, v: checks.choice(n, v, ("a", "b")), ["a"], ["c", None, ["a"]], "one of 'a', 'b'"),
        (lambda n, v: checks.either(n, v, ("a", "b")), ["b"], ["c", 1], "'a' or 'b'"),
    ],
)
def test_checks_return_what_is_right_and_name_what_is_wrong(check, right, wrong, message):
    for value in right:
        assert check("x", value) == value
    for value in wrong:
        with pytest.raises(ArgumentError) as caught:
            check("x", value)
        assert str(caught.value) == f"x must be {message}. Got {value!r} instead."
        assert caught.value.argument == "x"


def test_no_message_names_an_argument_without_a_mark():
    """Wherever a message begins with the name of an argument of `learn`, others can read its own name."""
    names = set(spbn.learn.__signature__.parameters) - {"data", "model", "test", "score", "start"}
    plain = []
    for path in Path(spbn.__file__).parent.rglob("*.py"):
        if path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (
                isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ArgumentError" and node.args
            ):
                continue
            first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            text = first.value if isinstance(first, ast.Constant) else ""
            if isinstance(text, str) and text.split(" ")[0].split("=")[0] in names:
                plain.append(f"{path.name}:{node.lineno}: {text}")
    assert not plain
