"""Learning over time: what is found, which settings reach the search, and what is refused."""

import sys

import numpy as np
import pandas as pd
import pytest

import spbn
from learning_options import CASES
from spbn.record import plain_settings
from spbn.search import SearchInterrupted
from spbn.timeseries import learn
from time_series import autoregression, mixed, threshold


def test_no_arc_points_into_the_past():
    dynamic = spbn.learn_dynamic(autoregression(200, series=2), lags=2, series="machine", model="gbn")
    present = {"a", "b"}
    assert all(target in present for _, target in dynamic.transition.structure.arcs)
    assert dynamic.transition.nodes == ("a", "b")
    assert set(dynamic.transition.structure.inputs) == {"a[t-1]", "b[t-1]", "a[t-2]", "b[t-2]"}
    for source, target in dynamic.static.structure.arcs:
        assert not (source in present and target not in present)


@pytest.mark.parametrize(
    "settings", [{"model": "gbn"}, {"algorithm": "pc", "test": "plc"}, {"model": "kdebn"}]
)
def test_lags_are_found(settings):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(600), np.zeros(600)
    for t in range(2, 600):
        x[t] += 0.8 * x[t - 1]
        y[t] = x[t - 2] + 0.5 * rng.standard_normal()
    dynamic = spbn.learn_dynamic(pd.DataFrame({"x": x, "y": y}), lags=2, **settings)
    assert set(dynamic.transition.structure.arcs) == {("x[t-1]", "x"), ("x[t-2]", "y")}


def test_folds_are_blocks_of_time(monkeypatch):
    """The search gets blocks; the networks are fitted to all rows."""
    seen = []
    original = learn.learn_network

    def learn_network(rows, settings, extras):
        seen.append(extras.split)
        return original(rows, settings, extras)

    monkeypatch.setattr(learn, "learn_network", learn_network)
    dynamic = spbn.learn_dynamic(autoregression(200), lags=2, folds=4, validation=0.25, seed=5)
    assert dynamic.transition.record.rows == 198
    assert dynamic.static.record.rows == 199
    for split, lags in zip(seen, (2, 1), strict=True):
        assert len(np.unique(split.folds)) == 4
        for fold in range(4):
            rows = split.training[split.folds == fold]
            assert (np.diff(rows) == 1).all()
        assert len(split.training) + len(split.validation) == 200 - lags - 4 * lags  # 5 blocks, 4 borders


def test_the_score_is_that_of_the_blocks():
    """The search's own scores, from the blocks that the split says."""
    from spbn.scores import CVLikelihood, HoldoutLikelihood
    from spbn.tables.lags import blocked_split, runs_of
    from spbn.tables.reader import as_table

    frame = threshold(200)
    dynamic = spbn.learn_dynamic(frame, model="spbn", lags=1, folds=4, seed=2)
    search = dynamic.transition.search
    windows = runs_of(frame, series=None, time=None).windows(2)
    split = blocked_split(windows, folds=4, validation=0.2, seed=2)
    rows = as_table(dynamic.lagged(frame))
    score = CVLikelihood(rows.take(split.training), folds=split.folds)
    assert search.score == pytest.approx(score.total(search.structure), abs=1e-8)
    held_out = HoldoutLikelihood(rows.take(split.training), validation=rows.take(split.validation))
    assert search.validation_score == pytest.approx(held_out.total(search.structure), abs=1e-8)


def test_all_blocks_are_scored_where_no_rows_are_held_out():
    from spbn.scores import BestType, CVLikelihood
    from spbn.tables.lags import blocked_split, runs_of
    from spbn.tables.reader import as_table

    frame = threshold(200)
    dynamic = spbn.learn_dynamic(frame, lags=1, folds=4, seed=2, margins="none")
    windows = runs_of(frame, series=None, time=None).windows(2)
    split = blocked_split(windows, folds=4, validation=None, seed=2)
    assert len(split.validation) == 0
    rows = as_table(dynamic.lagged(frame)).take(split.training)
    likelihood = CVLikelihood(rows, folds=split.folds, penalty="auto")
    score = BestType(likelihood, cost=likelihood.penalty)
    search = dynamic.transition.search
    structure = spbn.Structure(search.structure.nodes, search.structure.arcs, inputs=search.structure.inputs)
    assert search.score == pytest.approx(score.total(structure), abs=1e-8)
    assert score.best_types(structure) == search.structure


FRAME = autoregression(90).assign(c=lambda f: np.sin(f["a"]) + 0.3 * f["b"].shift(1, fill_value=0.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        (name, value, others)
        for name, (value, others) in CASES.items()
        if name
        not in (
            "discrete",
            "smoothing",
            "required_arcs",
            "forbidden_arcs",
            "tiers",
            "alpha",
            "hidden",
            "atoms",
        )
    ]
    + [("alpha", 0.9, {"algorithm": "pc", "test": "plc"})],
)
def test_every_setting_reaches_both_networks(name, value, others):
    dynamic = spbn.learn_dynamic(FRAME, **others, **{name: value})
    plain = plain_settings({name: value})[name]
    for network in (dynamic.static, dynamic.transition):
        assert network.record.settings[name] == plain or name == "max_seconds"
        for other, given in others.items():
            assert network.record.settings[other] == given
    if name == "max_seconds":
        assert dynamic.transition.search.stop_reason == "max_seconds"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "others"),
    [
        ({"model": "gbn"}, {}),
        ({"margins": "yeo-johnson"}, {}),
        ({"max_parents": 0}, {}),
        ({"drop": ["c"]}, {}),
        ({"bandwidth": "silverman"}, {"model": "kdebn"}),
        ({"lags": 2}, {"model": "gbn"}),
        ({"validation": 0.5, "folds": 2}, {}),
    ],
)
def test_settings_change_what_is_learned(settings, others):
    assert spbn.learn_dynamic(FRAME, **others) != spbn.learn_dynamic(FRAME, **others, **settings)


def test_knowledge_by_variable_and_lag():
    frame = autoregression(300)
    free = spbn.learn_dynamic(frame, lags=2, model="gbn")
    assert ("a[t-1]", "a") in free.transition.structure.arcs
    forbidden = spbn.learn_dynamic(
        frame, lags=2, model="gbn", forbidden_arcs=[(("a", 1), "a"), ("b[t-1]", "b")]
    )
    assert not {("a[t-1]", "a"), ("b[t-1]", "b")} & set(forbidden.transition.structure.arcs)
    assert not {("a[t-1]", "a"), ("b[t-1]", "b")} & set(forbidden.static.structure.arcs)
    required = spbn.learn_dynamic(frame, lags=2, model="gbn", required_arcs=[(("b", 2), "a"), ("a", "b")])
    assert {("b[t-2]", "a"), ("a", "b")} <= set(required.transition.structure.arcs)
    assert {("a", "b"), ("a[t-1]", "b[t-1]")} <= set(required.static.structure.arcs)
    wide = spbn.learn_dynamic(frame, lags=3, model="gbn", required_arcs=[(("b", 2), "a")])
    assert ("b[t-2]", "a") in wide.static.structure.arcs


@pytest.mark.parametrize(
    ("arcs", "message"),
    [
        ({"required_arcs": [("a", "b[t-1]")]}, "no arc points into the past"),
        ({"required_arcs": [(("a", -1), "b")]}, r"must hold pairs .* or \(name, lag\)"),
        ({"forbidden_arcs": ["ab", "b"]}, r"must hold pairs .* or \(name, lag\)"),
        ({"required_arcs": [(("a", 2), "b")]}, r"a\[t-2\]"),
        ({"required_arcs": [("z", "b")]}, "z"),
        ({"required_arcs": [("a", "b")], "forbidden_arcs": [(("a", 0), "b")]}, "required and forbidden"),
    ],
)
def test_knowledge_that_makes_no_sense(arcs, message):
    with pytest.raises(spbn.errors.KnowledgeError, match=message):
        spbn.learn_dynamic(autoregression(60), model="gbn", **arcs)


def test_discrete_variables():
    frame = mixed(400)
    dynamic = spbn.learn_dynamic(frame)
    assert {("mode[t-1]", "mode"), ("mode", "x"), ("x[t-1]", "x")} <= set(dynamic.transition.structure.arcs)
    assert dynamic.transition.cpds["mode"].type == "discrete"
    numbered = frame.assign(mode=(frame["mode"] == "on").astype(int))
    alike = spbn.learn_dynamic(numbered, discrete=["mode"])
    assert alike.transition.structure == dynamic.transition.structure
    assert alike.variables[0].levels == ("0", "1")


def test_holes():
    """A row with a hole, and those that look back on it, are left out."""
    frame = autoregression(100)
    frame.loc[50, "a"] = np.nan
    with pytest.raises(spbn.errors.DataError, match="missing"):
        spbn.learn_dynamic(frame, model="gbn")
    dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn", missing="drop")
    assert dynamic.transition.record.rows == 98 - 3
    assert dynamic.static.record.rows == 99 - 2
    rows = pd.concat([frame.shift(k).add_suffix(f"[t-{k}]" if k else "") for k in range(3)], axis=1).dropna()
    expected = spbn.BayesianNetwork.fit(dynamic.transition.structure, rows)
    assert dynamic.transition.cpds == expected.cpds
    assert dynamic.transition.record.settings["missing"] == "drop"
    with pytest.raises(spbn.errors.ArgumentError, match="missing='impute' is for rows that do not depend"):
        spbn.learn_dynamic(frame, missing="impute")


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (autoregression(30), {"lags": 0}, "lags must be a whole number, 1 or more"),
        (autoregression(30), {"lags": 2.0}, "lags must be a whole number, 1 or more"),
        (autoregression(3), {"lags": 3}, "the data has no more than 3 rows in a row"),
        (autoregression(30), {"series": "m"}, "lacks the column 'm'"),
        (
            autoregression(30),
            {"checkpoint": "x", "algorithm": "pc"},
            "checkpoint can be given with algorithm",
        ),
        (
            autoregression(30),
            {"checkpoint": "x", "seed": None},
            "checkpoint needs a seed that is a whole number",
        ),
        (autoregression(30), {"start": spbn.Structure(["a", "b"])}, "start must be a node type"),
        (autoregression(30), {"max_seconds": -1}, "max_seconds"),
        (autoregression(30), {"folds": 30, "model": "spbn"}, "30 folds"),
        (
            autoregression(30),
            {"validation": autoregression(9), "model": "spbn"},
            "validation must be a fraction",
        ),
        (autoregression(30).assign(n=range(30)), {}, "column 'n' always changes by the same"),
        (
            autoregression(30, series=2).assign(size=lambda f: (f["machine"] == "m1") * 2.0),
            {"series": "machine"},
            "column 'size' never changes within a series",
        ),
        (
            autoregression(30).assign(late=lambda f: f["a"].shift(1, fill_value=3.0)),
            {},
            r"column 'a\[t-1\]' is a copy of column 'late'.*drop=\['a'\]",
        ),
        ({"m": ["a"] * 9}, {"series": "m"}, "no columns besides 'm'"),
    ],
)
def test_bad_input(data, settings, message):
    with pytest.raises(spbn.SpbnError, match=message):
        spbn.learn_dynamic(data, **({"model": "gbn"} | settings))


def test_unknown_arguments_are_refused_as_python_does():
    with pytest.raises(TypeError, match=r"learn_dynamic\(\) got .* 'colour'\.$"):
        spbn.learn_dynamic(autoregression(30), colour="red")


def test_a_series_shorter_than_the_lags_is_named():
    frame = pd.concat([autoregression(30, series=2), autoregression(2).assign(machine="new")])
    with pytest.raises(spbn.errors.DataError, match="series 'new' has no more than 2 rows"):
        spbn.learn_dynamic(frame, lags=2, series="machine", model="gbn")


def test_short_runs_between_gaps_are_mentioned():
    frame = autoregression(60).assign(t=lambda f: f.index + 9 * (f.index >= 50) + 9 * (f.index >= 51))
    with pytest.warns(UserWarning, match="1 of 3 stretches between gaps in time have no more than 1 rows"):
        dynamic = spbn.learn_dynamic(frame, time="t", model="gbn")
    assert dynamic.transition.record.rows == 57


@pytest.mark.parametrize("when", [0, 1])
@pytest.mark.parametrize(("name", "model"), [("hill_climb", "spbn"), ("order_search", "auto")])
def test_interrupts_leave_a_network(monkeypatch, name, model, when):
    """Ctrl-C in either search: what was found so far can be had."""
    original, calls = getattr(spbn.search, name), []

    def search(*arguments, **options):
        found = original(*arguments, **options)
        calls.append(found)
        if len(calls) - 1 == when:
            raise SearchInterrupted(found)
        return found

    monkeypatch.setattr(sys.modules["spbn.learning.learn"], name, search)
    frame = threshold(120)
    with pytest.raises(spbn.learning.LearningInterrupted) as caught:
        spbn.learn_dynamic(frame, model=model, folds=3)
    dynamic = caught.value.network()
    assert isinstance(dynamic, spbn.DynamicNetwork)
    assert dynamic.transition.structure == calls[0].structure
    assert np.isfinite(dynamic.logpdf(frame)).all()


def test_training_rows_are_recognised():
    """They are judged by what was fitted without them, although the table has columns that no node needs."""
    frame = threshold(150)
    dynamic = spbn.learn_dynamic(frame, lags=3, folds=3)
    rows = dynamic.lagged(frame)
    found = spbn.explain.unusual_rows(dynamic.transition, rows)
    assert found.left_out
    np.testing.assert_allclose(found.contributions, spbn.explain.leave_one_out(dynamic.transition, rows))
    assert not spbn.explain.unusual_rows(dynamic.transition, rows.iloc[1:]).left_out


def test_the_same_seed_gives_the_same_network():
    frame = threshold(120)
    assert spbn.learn_dynamic(frame, folds=3, seed=4) == spbn.learn_dynamic(frame, folds=3, seed=4)
