"""What is learned if no model is named: the model "auto", unless other arguments are about another one."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import spbn
from command_line import run_line
from spbn import record
from spbn.errors import ArgumentError
from spbn.learning.settings import MODELS, OPTIONS, LearnSettings
from spbn.sklearn.estimators import SPBNClassifier, SPBNDensity
from time_series import autoregression

DATA = spbn.datasets.synthetic(300, seed=0)
SKEWED = pd.DataFrame({"x": np.exp(DATA["A"]), "y": np.exp(DATA["A"] + DATA["E"])})
TRUTH = {("A", "C"), ("B", "C"), ("C", "D"), ("D", "E")}


def described(settings):
    return {name: settings[name] for name in ("model", "margins", "algorithm", "validation")}


AUTO = {"model": "auto", "margins": "auto", "algorithm": "boss", "validation": None}
PAPER = {"model": "spbn", "margins": "none", "algorithm": "hc", "validation": 0.2}


@pytest.mark.parametrize("explicit", [{}, {"model": "auto"}, {"model": "auto", "margins": "auto"}])
def test_learn(explicit):
    network = spbn.learn(DATA, **explicit)
    assert network == spbn.learn(DATA)
    assert described(network.record.settings) == AUTO
    assert set(network.structure.arcs) == TRUTH
    assert {t.name for t in network.structure.types.values()} <= set(MODELS["auto"])


def test_skewed_columns_are_transformed_unless_the_model_is_the_papers():
    assert set(spbn.learn(SKEWED).margins.columns) == {"x", "y"}
    assert spbn.learn(SKEWED, margins="none").margins is None
    assert spbn.learn(SKEWED, model="spbn").margins is None


@pytest.mark.parametrize("model", MODELS)
def test_margins_follow_from_the_model(model):
    assert LearnSettings(model=model).margins_name == ("auto" if model == "auto" else "none")
    assert LearnSettings().replace(model=model).margins_name == ("auto" if model == "auto" else "none")
    for kind in OPTIONS["margins"].choices:
        assert LearnSettings(model=model, margins=kind).margins_name == kind


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ({"patience": 2}, "spbn"),
        ({"epsilon": 1.0}, "spbn"),
        ({"validation": 0.4}, "spbn"),
        ({"validation": DATA}, "spbn"),
        ({"start": "lg"}, "spbn"),
        ({"bandwidth": "cv"}, "spbn"),
        ({"bandwidth": "silverman"}, "spbn"),
        ({"bandwidth": np.cov}, "spbn"),
        ({"score": "bic"}, "gbn"),
        ({"score": "bge"}, "gbn"),
        ({"score": "cv"}, "auto"),
        ({"validation": 0.2, "patience": 5, "start": "ckde", "bandwidth": "scott"}, "auto"),
        ({"validation": None}, "auto"),
        ({"start": spbn.Structure(DATA.columns, [("A", "C")])}, "auto"),
        ({"penalty": 3.0}, "auto"),
        ({"types": ["lg", "ckde"]}, "auto"),
        ({"algorithm": "pc"}, "auto"),
        ({"algorithm": "hc"}, "auto"),
        ({"algorithm": "pc", "type_selection": "normality"}, "auto"),
    ],
)
def test_other_arguments_say_which_model_is_meant(given, model):
    assert LearnSettings(**given).model_name == model
    assert LearnSettings(**given).plain()["model"] == model
    named = {"model": "blend" if model == "auto" else "auto"}
    if not {"validation", "score", "bandwidth", "penalty", "types", "type_selection"} & set(given):
        assert LearnSettings(**given, **named).model_name == named["model"]


def test_the_model_stays_when_the_argument_that_stood_for_it_is_replaced():
    settings = LearnSettings(start="lg").replace(start="ckde")
    assert described(settings.plain()) == PAPER
    assert described(settings.replace(model="auto").plain()) == AUTO


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "hc"},
        {"algorithm": "pc"},
        {"algorithm": "pc", "test": "plc", "alpha": 0.1},
        {"algorithm": "pc", "patience": 1},
        {"types": ["lg", "ckde"]},
        {"types": ["lg", "ckde", "blend"]},
        {"types": "blend"},
        {"types": ["lg"], "start": "lg"},
        {"start": "lg"},
        {"start": spbn.Structure(DATA.columns, [("A", "B")], "ckde")},
        {"validation": 0.2},
        {"validation": 0.4},
        {"validation": DATA},
        {"patience": 0},
        {"epsilon": 2.0},
        {"score": "cv"},
        {"bandwidth": "cv", "folds": 3},
        {"folds": 3},
        {"engine": "exact", "folds": 2},
        {"margins": "yeo-johnson"},
        {"margins": "none"},
        {"missing": "drop"},
        {"missing": "impute"},
        {"discrete": ["A"]},
        {"max_parents": 1},
        {"max_seconds": 0.0},
        {"required_arcs": [("E", "A")], "forbidden_arcs": [("A", "C")]},
    ],
    ids=lambda given: ",".join(given),
)
def test_what_version_0_2_took_without_a_model_is_still_taken(given):
    data = DATA.round({"A": 0}) if "discrete" in given else DATA
    network = spbn.learn(data, **given)
    assert np.isfinite(network.logpdf(data)).all()
    settings = network.record.settings
    assert settings["model"] in MODELS
    assert settings["margins"] in OPTIONS["margins"].choices
    assert {t.name for t in network.structure.types.values()} <= {*MODELS["auto"], "ckde", "discrete"}


def test_arguments_of_the_papers_search_give_what_it_finds():
    assert spbn.learn(DATA, patience=0) == spbn.learn(DATA, model="spbn", patience=0)
    assert spbn.learn(DATA, start="lg") == spbn.learn(DATA, model="spbn", start="lg")
    assert spbn.learn(DATA, score="bge") == spbn.learn(DATA, model="gbn", score="bge")


@pytest.mark.parametrize(
    ("types", "tried"),
    [
        ("lg", ["lg"]),
        (["blend", "lg"], ["lg", "blend"]),
        (["blend", "curve", "ckde", "lg"], ["lg", "curve", "ckde", "blend"]),
    ],
)
def test_types_restrict_the_choice_and_simple_ones_come_first(types, tried):
    settings = LearnSettings(types=types)
    assert [t.name for t in settings.node_types] == tried
    network = spbn.learn(DATA, types=types)
    assert {t.name for t in network.structure.types.values()} <= set(tried)
    # The paper's search takes them as they are given.
    given = [types] if isinstance(types, str) else types
    assert [t.name for t in LearnSettings(model="spbn", types=types).node_types] == given


@pytest.mark.parametrize("model", ["gbn", "kdebn", "blend"])
def test_models_with_one_type_take_no_types(model):
    message = f"types can be given with model='auto' or model='spbn' only. Got model='{model}'."
    with pytest.raises(ArgumentError) as caught:
        LearnSettings(model=model, types=["lg"])
    assert str(caught.value) == message


def test_every_model_is_described_in_words():
    assert set(record.MODELS) == set(MODELS)
    assert {*record.MARGINS, "none"} == set(OPTIONS["margins"].choices)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {},
            "auto: continuous nodes have the simplest type that predicts them well: line, curve or blend; "
            "columns are transformed where that predicts better",
        ),
        ({"model": "spbn"}, "spbn: the paper's, whose continuous nodes are linear Gaussian or CKDE"),
        (
            {"model": "gbn", "margins": "yeo-johnson"},
            "gbn: all continuous nodes are linear Gaussian; all columns are transformed",
        ),
        (
            {"types": ["lg", "blend"], "margins": "none"},
            "auto: continuous nodes have the simplest type that predicts them well, of lg, blend",
        ),
        ({"model": "spbn", "types": "blend"}, "spbn: continuous nodes have one of the types blend"),
    ],
)
def test_a_record_says_what_the_model_is(settings, words, tmp_path):
    found = record.Record(settings=LearnSettings(**settings).plain())
    assert found.model == words


def test_what_is_printed_and_reported_begins_with_the_model(tmp_path):
    for options in ({}, {"model": "spbn"}):
        network = spbn.learn(DATA, **options)
        assert str(network).splitlines()[0] == network.record.model
        network.save(tmp_path / "model.spbn")
        again = spbn.BayesianNetwork.load(tmp_path / "model.spbn")
        assert again.record.model == network.record.model
        lead = re.search(r'<p class="lead">(.*?)</p>', spbn.report.render(again, data=DATA), re.DOTALL)
        assert unescape(lead[1]).startswith(f"Model {network.record.model}. 5 nodes")
        code, shown, _ = run_line(f"spbn show {tmp_path / 'model.spbn'}")
        assert code == 0
        assert " ".join(shown.split()).startswith(network.record.model)
    fitted = spbn.BayesianNetwork.fit(network.structure, DATA)
    assert fitted.record.model is None
    assert str(fitted).splitlines() == str(network).splitlines()[1:]


def test_the_command_line(tmp_path):
    DATA.to_csv(tmp_path / "data.csv", index=False)
    for options, expected in (("", AUTO), ("--model spbn", PAPER), ("--patience 2", PAPER)):
        line = f"spbn learn {tmp_path / 'data.csv'} --out {tmp_path / 'm.spbn'} {options}"
        code, shown, error = run_line(line)
        assert code == 0, (shown, error)
        network = spbn.BayesianNetwork.load(tmp_path / "m.spbn")
        assert described(network.record.settings) == expected
        assert " ".join(shown.split()).startswith(network.record.model)
    code, shown, _ = run_line("spbn learn --help")
    assert "Default: auto" in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize("structure", ["multinet", "augmented"])
def test_estimators(structure):
    classes = np.where(DATA["D"] > DATA["D"].median(), "high", "low")
    features = DATA.drop(columns="D")
    density = SPBNDensity().fit(DATA)
    assert density.network_ == spbn.learn(DATA)
    assert described(density.network_.record.settings) == AUTO
    classifier = SPBNClassifier(structure=structure).fit(features, classes)
    for network in classifier.networks_.values():
        assert described(network.record.settings) == AUTO
    assert classifier.score(features, classes) > 0.8
    assert density.get_params()["model"] is classifier.get_params()["margins"] is None
    assert SPBNDensity(model="spbn").fit(DATA).network_ == spbn.learn(DATA, model="spbn")


def test_confidence(tmp_path):
    found = spbn.confidence(DATA, replicates=2, checkpoint=tmp_path / "run.jsonl")
    assert (found.settings["model"], found.settings["margins"]) == ("auto", "auto")
    assert {t.name for s in found.structures for t in s.types.values()} <= set(MODELS["auto"])
    again = spbn.confidence(DATA, replicates=2, checkpoint=tmp_path / "run.jsonl", model="auto")
    assert again.structures == found.structures
    assert spbn.confidence(DATA, replicates=1, model="spbn").settings["margins"] == "none"


def test_networks_over_time(tmp_path):
    frame = autoregression(80)
    dynamic = spbn.learn_dynamic(frame, checkpoint=tmp_path / "run.jsonl")
    for network in dynamic.parts:
        assert described(network.record.settings) == AUTO
    assert dynamic.transition.structure.inputs
    assert np.isfinite(dynamic.logpdf(frame)[1:]).all()
    assert spbn.learn_dynamic(frame, checkpoint=tmp_path / "run.jsonl") == dynamic


def test_a_search_resumes(tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn(DATA, max_seconds=0.0, checkpoint=path)
    noted = len(path.read_text().splitlines())
    assert spbn.learn(DATA, checkpoint=path) == spbn.learn(DATA)
    assert len(path.read_text().splitlines()) > noted
    assert "auto" in path.read_text().splitlines()[0]


@pytest.mark.parametrize("given", [{}, {"penalty": 4.0}, {"types": ["lg", "curve"]}, {"margins": "none"}])
def test_values_that_are_missing_are_imputed(given):
    rng = np.random.default_rng(0)
    holes = DATA.mask(rng.random(DATA.shape) < 0.05)
    network = spbn.learn(holes, missing="impute", **given)
    assert network.record.settings["model"] == "auto"
    assert network.record.settings["margins"] == given.get("margins", "auto")
    assert set(network.structure.arcs) & TRUTH
    if "types" in given:
        assert {t.name for t in network.structure.types.values()} <= {"lg", "curve"}


def test_mixed_tables_with_questions_monitors_and_compact_files(tmp_path):
    rng = np.random.default_rng(1)
    town = rng.choice(["Leith", "Portobello"], len(DATA))
    frame = DATA.assign(town=town, A=DATA["A"] + 3.0 * (town == "Leith"))
    network = spbn.learn(frame)
    assert ("town", "A") in network.structure.arcs
    assert network.query({"A": 9.0}, seed=0).probability({"town": "Leith"}) > 0.9
    compact = network.compact(1e-3, others="keep")
    assert compact.record.settings["model"] == "auto"
    assert np.isfinite(compact.logpdf(frame)).all()
    verdicts = spbn.Monitor(network, frame, alarm=0.05).update(frame.head(5))
    assert len(verdicts) == 5


class TestCompare:
    def test_auto_and_the_papers_model_are_among_all(self):
        table = spbn.compare_models(DATA, folds=2)
        found = set(zip(table["model"], table["margins"], strict=True))
        others = {(model, "none") for model in MODELS if model != "auto"}
        assert found == others | {("auto", "auto"), ("blend", "yeo-johnson")}

    def test_margins_are_those_of_all_models_if_given(self):
        table = spbn.compare_models(DATA, folds=2, models=["auto", "gbn"], margins="none")
        assert sorted(zip(table["model"], table["margins"], strict=True)) == [
            ("auto", "none"),
            ("gbn", "none"),
        ]

    @pytest.mark.parametrize(
        ("given", "changed"),
        [
            ({"validation": 0.4}, {"spbn"}),
            ({"bandwidth": "cv"}, {"spbn"}),
            ({"penalty": 20.0}, {"auto"}),
            ({"max_parents": 0}, {"auto", "spbn"}),
        ],
    )
    def test_arguments_reach_the_models_that_have_a_use_for_them(self, given, changed):
        plain, other = (
            spbn.compare_models(DATA, folds=2, models=["auto", "spbn"], **options).set_index("model")
            for options in ({}, given)
        )
        differs = plain["log-density"] != other["log-density"].reindex(plain.index)
        assert set(differs.index[differs]) == changed

    def test_a_penalty_is_for_models_that_are_scored_by_cross_validation(self):
        table = spbn.compare_models(DATA, folds=2, models=["gbn", "auto"], algorithm="boss", penalty=3.0)
        assert set(table["model"]) == {"gbn", "auto"}

    @pytest.mark.parametrize(
        ("models", "message"),
        [
            ([], "models must name at least one of spbn, gbn, kdebn, blend, auto."),
            (["bn"], "models must be one of 'spbn', 'gbn', 'kdebn', 'blend', 'auto'. Got 'bn' instead."),
        ],
    )
    def test_other_models_are_refused(self, models, message):
        with pytest.raises(ArgumentError) as caught:
            spbn.compare_models(DATA, models=models)
        assert str(caught.value) == message
