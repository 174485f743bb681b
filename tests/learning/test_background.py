"""Tiers and patterns hold in every graph that is learned, whatever learns it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spbn
from spbn.errors import KnowledgeError
from spbn.learning.learn import learn_structure
from spbn.learning.settings import LearnSettings
from spbn.sklearn import SPBNClassifier, SPBNDensity
from spbn.tables.reader import as_table
from time_series import autoregression

from strategies import mixed_frame, nonlinear_frame

FRAME = nonlinear_frame(80, 6, seed=3)
QUICK = {"folds": 3, "patience": 1}


def points_back(arcs, tiers):
    place = {name: number for number, tier in enumerate(tiers) for name in tier}
    return [(a, b) for a, b in arcs if a in place and b in place and place[a] > place[b]]


def in_memory(**options):
    return [spbn.learn(FRAME, **options).structure]


def replicates(**options):
    found = spbn.confidence(FRAME, replicates=3, **options)
    return [*found.structures, found.structure()]


def from_holes(**options):
    holes = np.add.outer(np.arange(len(FRAME)), 3 * np.arange(6)) % 11 == 0
    return [spbn.learn(FRAME.mask(holes), **options).structure]


def density(**options):
    return [SPBNDensity(**options).fit(FRAME).network_.structure]


def classifier(structure):
    def learn(**options):
        model = SPBNClassifier(**options, structure=structure, calibrate=False)
        return [n.structure for n in model.fit(FRAME, FRAME["c"] > 0).networks_.values()]

    return learn


def from_rows_elsewhere(**options):
    dd = pytest.importorskip("dask.dataframe")
    return [spbn.learn(dd.from_pandas(FRAME, npartitions=2), **options).structure]


WAYS = {
    "auto": (in_memory, {}),
    "auto, hill climbing": (in_memory, {"algorithm": "hc"}),
    "order search": (in_memory, {"model": "gbn", "algorithm": "boss"}),
    "gbn": (in_memory, {"model": "gbn"}),
    "spbn": (in_memory, QUICK),
    "blend": (in_memory, {"model": "blend", **QUICK}),
    "margins": (in_memory, {"margins": "yeo-johnson", **QUICK}),
    "plc": (in_memory, {"algorithm": "pc", "test": "plc", "model": "gbn"}),
    "rcot": (in_memory, {"algorithm": "pc", "test": "rcot", **QUICK}),
    "confidence": (replicates, {"model": "gbn"}),
    "confidence by tests": (replicates, {"algorithm": "pc", "test": "plc", "model": "gbn"}),
    "imputed": (from_holes, {"model": "gbn", "missing": "impute"}),
    "density": (density, {"model": "gbn"}),
    "multinet": (classifier("multinet"), {"model": "gbn", "margins": "none"}),
    "augmented": (classifier("augmented"), {"model": "gbn", "margins": "none"}),
    "rows": (from_rows_elsewhere, {"model": "gbn"}),
    "order search over rows": (from_rows_elsewhere, {"model": "gbn", "algorithm": "boss"}),
    "confidence of order searches": (replicates, {"model": "gbn", "algorithm": "boss"}),
}


@pytest.mark.filterwarnings("ignore:the partially directed graph has no consistent extension")
@pytest.mark.parametrize(("learn", "options"), WAYS.values(), ids=WAYS)
def test_no_arc_points_back(learn, options):
    free = learn(**options)
    *order, last = (name for name in reversed(free[0].dag.topological_order()) if name != "class")
    tiers = [order[:2], order[2:], [last]]
    assert any(points_back(structure.arcs, tiers) for structure in free)  # or they would not matter
    found = learn(**options, tiers=tiers)
    assert any(structure.arcs for structure in found)
    for structure in [*found, *learn(**options, tiers=[order[:2], ["*"], [last]])]:
        assert points_back(structure.arcs, tiers) == []
    for structure in learn(**options, forbidden_arcs=[("*", "f"), ("?", "b")]):
        assert structure.dag.parents("f") in ((), ("class",))
        assert structure.dag.parents("b") in ((), ("class",))
    for structure in learn(**options, required_arcs=[("a", "*")]):
        assert {("a", name) for name in "bcdef"} <= set(structure.arcs)


@pytest.mark.filterwarnings("ignore:the partially directed graph has no consistent extension")
@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize(
    "options",
    [
        {"model": "gbn"},
        {"model": "gbn", "algorithm": "boss"},
        {"model": "gbn", "algorithm": "pc", "test": "plc", "alpha": 0.3},
    ],
    ids=["hc", "boss", "pc"],
)
def test_no_arc_points_back_whatever_the_tiers(options, data):
    numbers = data.draw(st.lists(st.integers(-1, 3), min_size=6, max_size=6))
    tiers = [[name for name, number in zip("abcdef", numbers, strict=True) if number == k] for k in range(4)]
    frame = nonlinear_frame(60, 6, seed=data.draw(st.integers(0, 20)))
    structure = learn_structure(frame, LearnSettings(tiers=tiers, **options))
    assert points_back(structure.arcs, tiers) == []
    back = [(a, b) for a in "abcdef" for b in "abcdef" if points_back([(a, b)], tiers)]
    assert learn_structure(frame, LearnSettings(forbidden_arcs=back, **options)) == structure


@pytest.mark.parametrize("options", [{}, {"model": "gbn"}, {"algorithm": "pc", "test": "rcot", **QUICK}])
def test_tiers_of_mixed_tables(options):
    tiers = [["u", "a"], ["v", "w"], ["b", "c"]]
    arcs = spbn.learn(mixed_frame(150), tiers=tiers, **options).structure.arcs
    assert arcs
    assert points_back(arcs, tiers) == []


def test_tiers_over_time():
    """Tiers order the columns of a row; rows before it come before all of them."""
    frame = autoregression(120, series=1)[["a", "b"]]
    frame["c"] = 0.8 * frame["a"] + 0.5 * frame["b"].shift(fill_value=0.0) + np.sin(np.arange(120.0) ** 2)
    free = spbn.learn_dynamic(frame, lags=2, model="gbn")
    for tiers in ([["c"], ["a", "b"]], [["b"], ["c"], ["a"]], [["c"], ["*"]]):
        dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn", tiers=tiers)
        named = [list("ab") if tier == ["*"] else tier for tier in tiers]
        assert points_back(dynamic.transition.structure.arcs, named) == []
        earlier = [[f"{name}[t-1]" for name in tier] for tier in named]
        for order in (named, earlier):
            assert points_back(dynamic.static.structure.arcs, order) == []
        for network in (dynamic.static, dynamic.transition):
            assert network.record.settings["tiers"] == tiers
            assert network.record.settings["forbidden_arcs"] == []
    assert points_back(free.transition.structure.arcs, [["c"], ["a", "b"]])
    lagged = spbn.learn_dynamic(
        frame, lags=1, model="gbn", tiers=[["a"], ["c"]], required_arcs=[(("c", 1), "a")]
    )
    assert ("c[t-1]", "a") in lagged.transition.structure.arcs


def test_patterns_over_time():
    frame = autoregression(120, series=1)[["a", "b"]]
    dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn", forbidden_arcs=[(("*", 1), "a"), ("b*", "a")])
    assert set(dynamic.transition.structure.dag.parents("a")) <= {"a[t-2]"}
    assert dynamic.transition.record.settings["forbidden_arcs"] == [["*[t-1]", "a"], ["b*", "a"]]
    with pytest.raises(KnowledgeError, match="tiers names an unknown column: 'a\\[t-1\\]'"):
        spbn.learn_dynamic(frame, model="gbn", tiers=[["a[t-1]"], ["b"]])
    with pytest.raises(KnowledgeError, match="required_arcs has b → a, which points back"):
        spbn.learn_dynamic(frame, model="gbn", tiers=[["a"], ["b"]], required_arcs=[("b", "a")])
    with pytest.raises(KnowledgeError, match="no arc points into the past"):
        spbn.learn_dynamic(frame, model="gbn", required_arcs=[("b", "a*")])


def test_the_record_has_what_was_given():
    given = {"tiers": [["f"], ["*"], ["a"]], "forbidden_arcs": [("*", "e")], "required_arcs": [("d", "?")]}
    network = spbn.learn(FRAME, model="gbn", tiers=[["f", "d"], "*", ("a",)], forbidden_arcs=[("e", "*")])
    assert network.record.settings["tiers"] == [["f", "d"], ["*"], ["a"]]
    assert network.record.settings["forbidden_arcs"] == [["e", "*"]]
    with pytest.raises(KnowledgeError, match="required_arcs has d → f, which points back"):
        spbn.learn(FRAME, model="gbn", **given)
    columns = pd.Index(["f"]), FRAME.columns[:2]
    assert LearnSettings(tiers=iter(columns)).plain()["tiers"] == [["f"], ["a", "b"]]


@pytest.mark.parametrize("tiers", ["a;b", 3, {"a": 1}, [["a"], 3], [["a", 1]], None])
def test_tiers_must_be_groups_of_names(tiers):
    with pytest.raises(spbn.errors.ArgumentError, match="tiers must be groups of columns, in the") as caught:
        LearnSettings(tiers=tiers)
    assert caught.value.argument == "tiers"


def test_knowledge_is_refused_before_the_first_replicate(monkeypatch):
    monkeypatch.setattr("spbn.learning.stability.learn_replicates", None)
    with pytest.raises(KnowledgeError, match=r"names an unknown column: 'z'\. .* and 'f'\.$"):
        spbn.confidence(FRAME, model="gbn", tiers=[["a"], ["z"]])


def test_classes_with_few_columns_keep_the_order_of_those_that_they_have():
    """A column that does not vary within a class is not in its network, and in its tier nevertheless."""
    labels = np.arange(80) % 2
    frame = FRAME.assign(f=np.where(labels, 1.0, FRAME["f"]))
    model = SPBNClassifier(model="gbn", margins="none", calibrate=False, tiers=[["f"], ["d"], ["*"]])
    model.fit(frame, labels)
    for network in model.networks_.values():
        assert points_back(network.structure.arcs, [["f"], ["d"], list("abce")]) == []
    assert model.networks_[0].record.settings["tiers"] == [["f"], ["d"], list("abce")]
    with pytest.raises(KnowledgeError, match="tiers names an unknown column: 'z'"):
        SPBNClassifier(model="gbn", tiers=[["z"]]).fit(frame, labels)


def test_patterns_in_searches_themselves():
    score = spbn.scores.BIC(FRAME)
    start = spbn.Structure(FRAME.columns, types="lg")
    for found in (
        spbn.search.hill_climb(score, start, types=["lg"], forbidden_arcs=[("*", "b")]),
        spbn.search.order_search(score, start, forbidden_arcs=[("*", "b")]),
    ):
        assert found.structure.dag.parents("b") == ()
        assert found.structure.arcs
    test = spbn.independence.PartialCorrelation(as_table(FRAME))
    assert not spbn.search.pc(test, forbidden_edges=[("a", "*")]).pdag.directed[0].any()
