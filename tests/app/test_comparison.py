import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.errors import ArgumentError, DataError
from spbn.learning.comparison import compare_models
from spbn.learning.learn import learn_network
from spbn.tables.splits import fold_labels

from strategies import nonlinear_frame

FRAME = nonlinear_frame(60, 3, seed=2)


CANDIDATES = [
    *((model, "none") for model in ("spbn", "gbn", "kdebn", "blend")),
    ("blend", "yeo-johnson"),
    ("auto", "auto"),
]


def by_hand(frame, folds, seed, candidates=CANDIDATES, **options):
    """Learn from all rows but those of a fold, and score those of the fold: log-densities and structures."""
    labels = fold_labels(len(frame), folds, np.random.default_rng(seed))
    assert set(labels) == set(range(folds))
    found = {}
    for model, margins in candidates:
        logpdf, structures = pd.Series(0.0, index=frame.index), []
        for fold in range(folds):
            network = spbn.learn(frame[labels != fold], model=model, margins=margins, seed=seed, **options)
            logpdf[labels == fold] = network.logpdf(frame[labels == fold])
            structures.append(network.structure)
        found[model, margins] = (logpdf, structures)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "options"), [(0, {}), (5, {}), (0, {"patience": 0, "max_parents": 1})])
def test_models_are_scored_on_rows_that_they_were_not_learned_from(seed, options):
    rows = FRAME.iloc[:59]  # not the same number in every fold
    table = compare_models(rows, folds=3, seed=seed, **options).set_index(["model", "margins"])
    expected = by_hand(rows, 3, seed, **options)
    assert set(table.index) == set(expected)
    best = max((logpdf for logpdf, _ in expected.values()), key=np.mean)
    for candidate, (logpdf, structures) in expected.items():
        row = table.loc[candidate]
        assert row["log-density"] == pytest.approx(logpdf.mean(), rel=1e-12)
        assert row["standard error"] == pytest.approx(stats.sem(logpdf), rel=1e-12)
        assert row["arcs"] == np.mean([len(structure.arcs) for structure in structures])
        types = [str(t) for structure in structures for t in structure.types.values()]
        for name, label in (("lg", "LG"), ("ckde", "CKDE"), ("blend", "Blend"), ("curve", "Curve")):
            assert row.get(f"{label} share", 0.0) == pytest.approx(types.count(name) / len(types))
        # A paired test looks at the mean of differences over its standard error.
        paired = stats.ttest_rel(logpdf, best)
        low, high = paired.confidence_interval(0.9)
        assert row["difference"] == pytest.approx((low + high) / 2, rel=1e-9, abs=1e-12)
        width = stats.t.ppf(0.95, len(rows) - 1) * row["difference error"]
        assert width == pytest.approx((high - low) / 2, rel=1e-9, abs=1e-12)
    assert (table["seconds"] > 0).all()
    assert table["log-density"].is_monotonic_decreasing
    assert table["difference"].iloc[0] == table["difference error"].iloc[0] == 0.0


def test_differences_are_more_certain_than_what_they_are_taken_from():
    """A row that is unlikely under one model is unlikely under the other."""
    table = compare_models(FRAME, folds=3).set_index(["model", "margins"])
    blend = table.loc["blend"].sort_values("difference").iloc[0]
    assert blend["difference error"] < 0.5 * blend["standard error"]


@pytest.mark.slow
@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
def test_margins_are_those_of_all_models(margins):
    skewed = np.exp(FRAME[["a", "b"]])
    table = compare_models(skewed, folds=2, margins=margins).set_index(["model", "margins"])
    models = ("spbn", "gbn", "kdebn", "blend", "auto")
    expected = by_hand(skewed, 2, 0, [(model, margins) for model in models])
    assert set(table.index) == set(expected)
    for candidate, (logpdf, _) in expected.items():
        assert table.loc[candidate, "log-density"] == pytest.approx(logpdf.mean(), rel=1e-12)


def test_the_scale_of_ckde_nodes_is_chosen_where_there_are_some():
    lumps = 50 * np.sign(FRAME[["a", "b"]]) + 0.1 * FRAME[["a", "b"]]
    table, plain = (
        compare_models(lumps, folds=2, bandwidth=rule).set_index(["model", "margins"])
        for rule in ("cv", "scott")
    )
    same = (table["log-density"] == plain["log-density"].reindex(table.index)).groupby("model").all()
    assert same.to_dict() == {"auto": True, "blend": True, "gbn": True, "kdebn": False, "spbn": False}


def test_types_that_occur_have_a_share():
    table = compare_models(FRAME[["a", "b"]], folds=2)
    assert [name for name in table.columns if name.endswith("share")] == [
        "LG share",
        "CKDE share",
        "Blend share",
    ]
    np.testing.assert_allclose(table.filter(like="share").sum(axis=1), 1.0)


def test_rows_that_were_learned_from_would_flatter():
    """A kernel on every row makes the rows themselves likely, above all where dimensions are many."""
    noise = nonlinear_frame(40, 3, seed=1).apply(lambda column: np.random.default_rng(0).permutation(column))
    network = spbn.learn(noise, model="kdebn", required_arcs=[("a", "c"), ("b", "c"), ("a", "b")])
    table = compare_models(
        noise, folds=4, required_arcs=iter([("a", "c"), ("b", "c"), ("a", "b")])
    ).set_index("model")
    assert table.loc["kdebn", "log-density"] < network.logpdf(noise).mean() - 0.5
    assert table.loc["kdebn", "arcs"] == 3  # in every fold, though an iterator is read only once


def test_the_seed_reaches_learn(monkeypatch):
    seeds = []

    def learn(data, settings):
        seeds.append(settings.seed)
        return learn_network(data, settings)

    monkeypatch.setattr("spbn.learning.comparison.learn_network", learn)
    compare_models(FRAME[["a", "b"]], folds=2, seed=7)
    assert seeds == [7] * 12  # five models, one of them also with other margins, two folds


def test_rows_and_columns_to_leave_out():
    holes = FRAME.assign(name="Bob")
    holes.loc[4, "b"] = np.nan
    table = compare_models(holes, folds=2, missing="drop", drop=["name", "c"])
    expected = compare_models(FRAME[["a", "b"]].drop(index=4), folds=2)
    columns = ["model", "margins", "log-density", "difference error", "arcs"]
    assert table[columns].equals(expected[columns])


def test_columns_that_are_named_as_discrete():
    counts = FRAME[["a"]].assign(n=np.arange(60) % 3)
    table = compare_models(counts, folds=2, discrete=["n"])
    assert (table["Discrete share"] == 0.5).all()
    named = compare_models(counts.assign(n=counts["n"].map({0: "x", 1: "y", 2: "z"})), folds=2)
    np.testing.assert_allclose(table["log-density"], named["log-density"])


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ArgumentError, match="compare_models learns several models"):
        compare_models(FRAME, model="gbn")
    with pytest.raises(ArgumentError, match="margins must be one of 'none', 'yeo-johnson', 'auto'"):
        compare_models(FRAME, margins="box-cox")
    with pytest.raises(DataError, match="'d' is a copy of column 'a'"):
        compare_models(FRAME.assign(d=FRAME["a"]))
    with pytest.raises(ArgumentError, match="folds must be between 2 and the number of rows, 60"):
        compare_models(FRAME, folds=61)


@pytest.mark.slow
def test_rows_that_are_impossible_without_smoothing_are_warned_of():
    frame = FRAME.assign(town=["Leith", "Kelso"] * 30)
    frame.loc[7, "town"] = "Ayr"
    options = {"folds": 2, "patience": 0, "max_parents": 1}
    with pytest.warns(UserWarning, match=r"^impossible rows: 1\. .* if smoothing is more than 0") as caught:
        compare_models(frame, smoothing=0.0, **options)
    assert len(caught) == 1
    assert np.isfinite(compare_models(frame, **options)["log-density"]).all()
