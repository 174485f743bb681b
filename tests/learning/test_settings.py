"""The arguments of `learn`: declared once, checked at once, and the same for everybody who offers them."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import spbn
from spbn.errors import ArgumentError
from spbn.learning import settings as module
from spbn.learning.settings import MODELS, OPTIONS, LearnSettings
from spbn.nodes.base import NodeType
from spbn.sklearn.estimators import SPBNClassifier, SPBNDensity

DATA = spbn.datasets.synthetic(60, seed=0)
HOW_IT_RUNS = {"progress", "checkpoint", "client", "prepare"}
UNSAID = {"bounds", "atoms"}  # unless they are given

#: Valid values of arguments that do not depend on each other.
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from([model for model in MODELS if model != "auto"]),  # holds out no rows
        "folds": st.integers(2, 20),
        "validation": st.floats(0.01, 0.99),
        "patience": st.integers(0, 100),
        "epsilon": st.floats(0, 1e6),
        "alpha": st.floats(0.001, 0.999),
        "max_parents": st.none() | st.integers(0, 9),
        "max_seconds": st.none() | st.floats(0, 1e6),
        "required_arcs": st.lists(st.tuples(st.text(), st.text()), max_size=3),
        "margins": st.sampled_from(["none", "yeo-johnson", "auto"]),
        "seed": st.none() | st.integers(0, 2**40),
        "drop": st.lists(st.text(), max_size=3),
        "smoothing": st.floats(0, 1e6),
        "engine": st.sampled_from(["auto", "exact", "spectral"]),
    },
)


@pytest.mark.slow
@given(VALUES)
def test_settings_survive_as_plain_data(options):
    settings = LearnSettings(**options)
    plain = settings.plain()
    assert set(plain) == set(OPTIONS) - HOW_IT_RUNS - UNSAID
    assert json.loads(json.dumps(plain)) == plain
    assert LearnSettings(**plain).plain() == plain
    for name, value in options.items():
        assert plain[name] == (
            [list(v) if isinstance(v, tuple) else v for v in value] if isinstance(value, list) else value
        )


@pytest.mark.slow
@given(VALUES, VALUES)
def test_what_is_replaced_and_what_is_not(options, changes):
    options = {"model": "spbn", **options}
    settings = LearnSettings(**options)
    changed = settings.replace(**changes)
    assert changed == LearnSettings(**{**options, **changes})
    assert changed.replace(**{name: getattr(settings, name) for name in changes}) == settings
    assert settings == LearnSettings(**options)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_argument_is_described(name):
    option = OPTIONS[name]
    assert option.help.endswith(".")
    assert option.flag_help.endswith(".")
    assert option.help.split()[0] in spbn.learn.__doc__
    assert f"    {name}\n" in spbn.learn.__doc__
    assert f"    {name}\n" in LearnSettings.__doc__
    for estimator in (SPBNClassifier, SPBNDensity):
        own_name = "score_function" if name == "score" else name
        taken = own_name in inspect.signature(estimator).parameters
        assert taken == (f"    {own_name}\n" in estimator.__doc__)
        assert taken or not option.in_estimators or name in ("max_seconds", "hidden", "atoms")


def test_choices_are_those_of_the_types():
    literals = [value for value in vars(module).values() if get_origin(value) is Literal]
    choices = {option.choices for option in OPTIONS.values() if option.kind == "choice"}
    assert choices <= {get_args(literal) for literal in literals}
    assert OPTIONS["model"].choices == tuple(MODELS)
    for types in MODELS.values():
        assert [NodeType.parse(name).name for name in types] == list(types)


def test_iterators_are_read_once_and_kept():
    settings = LearnSettings(required_arcs=iter([("A", "C")]), types=(name for name in ("lg", "ckde")))
    assert settings.required_arcs == (("A", "C"),)
    assert settings.node_types == settings.node_types == (NodeType.LG, NodeType.CKDE)


@pytest.mark.parametrize(
    ("wrong", "argument", "message"),
    [
        (
            {"model": "bn"},
            "model",
            "model must be one of 'spbn', 'gbn', 'kdebn', 'blend', 'auto'. Got 'bn' instead.",
        ),
        (
            {"algorithm": ["hc"]},
            "algorithm",
            "algorithm must be one of 'hc', 'boss', 'pc'. Got ['hc'] instead.",
        ),
        (
            {"start": "up"},
            "start",
            "a node type must be 'lg', 'ckde', 'blend', 'discrete' or 'curve'. Got 'up' instead.",
        ),
        ({"patience": 1.5}, "patience", "patience must be a whole number, 0 or more. Got 1.5 instead."),
        ({"alpha": 1}, "alpha", "alpha must be between 0 and 1. Got 1 instead."),
        ({"types": []}, "types", "types must name at least one node type."),
        (
            {"seed": -1},
            "seed",
            "seed must be an int, 0 or more, or a numpy.random.Generator. Got -1 instead.",
        ),
        (
            {"model": "spbn", "score": "bic"},
            "score",
            "score='bic' is for model='gbn' only. Got model='spbn': use score='cv'.",
        ),
        (
            {"algorithm": "pc", "max_parents": 2, "checkpoint": "x"},
            "max_parents",
            "max_parents and checkpoint can be given with algorithm='hc' only, not with 'pc'.",
        ),
        (
            {"model": "spbn", "algorithm": "boss", "validation": 0.3},
            "validation",
            "validation cannot be given with algorithm='boss', which holds out no rows: leave it out.",
        ),
        (
            {"model": "auto", "validation": 0.3},
            "validation",
            "validation cannot be given with model='auto', which holds out no rows: leave it out.",
        ),
        (
            {"model": "spbn", "penalty": 2.0},
            "penalty",
            "penalty is for score='cv' without validation rows (validation=None).",
        ),
        (
            {"model": "gbn", "algorithm": "boss", "penalty": 2.0},
            "penalty",
            "penalty is for score='cv' without validation rows (validation=None).",
        ),
        (
            {"penalty": -1.0, "validation": None},
            "penalty",
            "penalty must be 'auto', or a number that is 0 or more. Got -1.0 instead.",
        ),
        (
            {"missing": "impute", "max_seconds": 1, "checkpoint": "x"},
            "max_seconds",
            "max_seconds and checkpoint cannot be given with missing='impute'.",
        ),
    ],
)
def test_wrong_values_are_refused_at_once(wrong, argument, message):
    for make in (LearnSettings, LearnSettings().replace):
        with pytest.raises(ArgumentError) as caught:
            make(**wrong)
        assert str(caught.value) == message
        assert caught.value.argument == argument


@pytest.mark.parametrize(
    "function",
    [spbn.learn, spbn.confidence, spbn.learn_dynamic, spbn.compare_models],
    ids=lambda f: f.__name__,
)
def test_unknown_arguments_are_refused_in_the_same_way_everywhere(function):
    message = (
        rf"{function.__name__}\(\) got an unexpected keyword argument 'patiense': did you mean 'patience'\?"
    )
    with pytest.raises(TypeError, match=message):
        function(DATA, patiense=3)
    for name in OPTIONS:
        assert name in inspect.signature(function).parameters


@pytest.mark.parametrize("estimator", [SPBNClassifier, SPBNDensity])
def test_estimators_store_their_parameters_and_do_nothing_else(estimator):
    made = estimator(max_parents=2, folds="no number")
    assert made.get_params()["folds"] == "no number"
    assert clone(made).set_params(patience=7).get_params() == made.get_params() | {"patience": 7}
    assert "max_parents=2" in repr(made)
    with pytest.raises(TypeError, match="did you mean 'max_parents'"):
        estimator(max_parent=2)


def test_the_same_settings_have_the_same_effect():
    results = [
        LearnSettings(**run).affecting_result() for run in ({}, {"progress": True}, {"max_seconds": 9.0})
    ]
    assert results[0] == results[1] == results[2]
    assert LearnSettings(seed=1).affecting_result() != results[0]


#: Runs with one more line in the file that declares the arguments, and tells what became of it.
ONE_LINE_MORE = """
import sys
from importlib.util import spec_from_file_location

edited = sys.argv.pop(1)

class Edited:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "spbn.learning.settings":
            return spec_from_file_location(name, edited)

sys.meta_path.insert(0, Edited)
"""
IN_PYTHON = """
import inspect, json
import spbn
from sklearn.base import clone

data = spbn.datasets.synthetic(60, seed=0)
learned = spbn.learn(data, model="gbn", depth=5)
classes = (data["A"] > data["A"].mean()).to_numpy()
density = spbn.sklearn.SPBNDensity(model="gbn", depth=5).fit(data)
classifier = spbn.sklearn.SPBNClassifier(model="gbn", depth=5, calibrate=False).fit(data, classes)
print(json.dumps({
    "default": inspect.signature(spbn.learn).parameters["depth"].default,
    "described": [
        "How deep to look." in thing.__doc__
        for thing in (spbn.learn, spbn.sklearn.SPBNDensity, spbn.sklearn.SPBNClassifier)
    ],
    "recorded": [
        network.record.settings["depth"]
        for network in (learned, density.network_, *classifier.networks_.values())
    ],
    "cloned": [clone(model).get_params()["depth"] for model in (density, classifier)],
    "elsewhere": [
        spbn.confidence(data, model="gbn", replicates=2, depth=5).settings["depth"],
        spbn.learn_dynamic(data, model="gbn", depth=5).transition.record.settings["depth"],
    ],
}))
"""
ON_THE_COMMAND_LINE = """
sys.argv[0] = "spbn"
from spbn.cli.main import main
main()
"""


@pytest.fixture
def one_line_more(tmp_path):
    """Run a program with an argument that `learn` does not have."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    before = "    smoothing: float = option("
    assert source.count(before) == 1
    edited = tmp_path / "settings.py"
    line = '    depth: int = option(3, "How deep to look.")\n'
    edited.write_text(source.replace(before, line + before), encoding="utf-8")

    def run(program, *arguments):
        done = subprocess.run(
            [sys.executable, "-c", ONE_LINE_MORE + program, str(edited), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_an_argument_is_one_line_in_python(one_line_more):
    found = json.loads(one_line_more(IN_PYTHON))
    assert found["default"] == 3
    assert found["described"] == [True] * 3
    assert found["recorded"] == [5] * 4
    assert found["cloned"] == [5] * 2
    assert found["elsewhere"] == [5] * 2


@pytest.mark.slow
def test_an_argument_is_one_line_on_the_command_line(one_line_more, tmp_path):
    DATA.to_csv(tmp_path / "data.csv", index=False)
    shown = one_line_more(ON_THE_COMMAND_LINE, "learn", "--help")
    assert "--depth" in shown
    assert "How deep to look." in shown
    one_line_more(
        ON_THE_COMMAND_LINE, "learn", "data.csv", "--model", "gbn", "--depth", "5", "--out", "m.spbn"
    )
    assert spbn.BayesianNetwork.load(tmp_path / "m.spbn").record.settings["depth"] == 5


def test_generators_and_structures_are_plain_in_words():
    plain = LearnSettings(seed=np.random.default_rng(0), start=spbn.Structure("AB", [("A", "B")])).plain()
    assert plain["seed"] == "<Generator>"
    assert plain["start"]["arcs"] == [["A", "B"]]
