import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import spbn
from learning_options import CASES, FRAME
from mixed import mixed_frame
from spbn.sklearn.estimators import SPBNDensity

from strategies import nonlinear_frame


@parametrize_with_checks(
    [SPBNDensity(patience=0), SPBNDensity(model="gbn"), SPBNDensity(model="gbn", missing="integrate")]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_it_is_reached_from_the_package_without_being_imported_before():
    assert spbn.sklearn.SPBNDensity is SPBNDensity
    with pytest.raises(AttributeError, match="nonsense"):
        _ = spbn.nonsense


def test_it_is_learn_in_other_words():
    frame = nonlinear_frame(120, 3)
    estimator = SPBNDensity(patience=1, seed=3).fit(frame)
    network = spbn.learn(frame, patience=1, seed=3)
    assert estimator.network_ == network
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(estimator.score_samples(frame), network.logpdf(frame))
    assert estimator.score(frame) == pytest.approx(network.loglik(frame))
    pd.testing.assert_frame_equal(estimator.sample(5, random_state=0), network.sample(5, seed=0))


def test_names_of_features_in_and_out():
    frame = nonlinear_frame(60, 2).set_axis(["length", "width"], axis=1)
    assert list(SPBNDensity(model="gbn").fit(frame).sample(3).columns) == ["length", "width"]
    assert list(SPBNDensity(model="gbn").fit(frame.to_numpy()).sample(3).columns) == ["x0", "x1"]


def test_pipeline_grid_search_and_clone():
    frame = nonlinear_frame(120, 2)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), SPBNDensity(patience=0))
    grid = {"spbndensity__model": ["gbn", "spbn"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(frame)
    # The same by hand: learned from two thirds, scored on the other.
    totals = dict.fromkeys(grid["spbndensity__model"], 0.0)
    for train, test in KFold(3).split(frame):
        scaler = StandardScaler().set_output(transform="pandas").fit(frame.iloc[train])
        learned_from, scored_on = scaler.transform(frame.iloc[train]), scaler.transform(frame.iloc[test])
        for model in totals:
            totals[model] += spbn.learn(learned_from, model=model, patience=0).loglik(scored_on) / 3
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], list(totals.values()))
    best = max(totals, key=totals.get)
    assert search.best_params_ == {"spbndensity__model": best}
    fresh = clone(search.best_estimator_[-1])
    assert not hasattr(fresh, "network_")
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(frame)
    assert search.best_estimator_[-1].network_ == spbn.learn(scaled, model=best, patience=0)


def test_every_parameter_has_a_case():
    names = {"score_function" if name == "score" else name for name in CASES} | {"engine", "missing"}
    assert set(inspect.signature(SPBNDensity).parameters) == names


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_reaches_learn(name):
    value, others = CASES[name]
    expected = spbn.learn(FRAME, **others, **{name: value})
    assert expected != spbn.learn(FRAME, **others), "the rows do not show whether it arrives: choose others"
    own_name = "score_function" if name == "score" else name
    network = SPBNDensity(**others, **{own_name: value}).fit(FRAME).network_
    assert network == expected
    assert network.record.settings == expected.record.settings


def test_the_engine_reaches_learn():
    """It decides how fast sums are computed, and not what they are."""
    assert SPBNDensity(engine="exact").fit(FRAME).network_.record.settings["engine"] == "exact"
    with pytest.raises(spbn.errors.ArgumentError, match="engine must be one of"):
        SPBNDensity(engine="steam").fit(FRAME)


def test_few_rows_have_fewer_folds_and_other_kinds_of_folds_are_passed_on():
    few = FRAME[:8]
    assert SPBNDensity().fit(few).network_.record.settings["folds"] == 8
    assert SPBNDensity(model="spbn").fit(few).network_.record.settings["folds"] == 6
    estimator = SPBNDensity(validation=FRAME[20:30], folds=[0, 1] * 10, patience=0).fit(FRAME[:20])
    assert estimator.network_ == spbn.learn(
        FRAME[:20], validation=FRAME[20:30], folds=[0, 1] * 10, patience=0
    )


@pytest.mark.parametrize("estimator", [SPBNDensity(), spbn.sklearn.SPBNMixture()])
def test_holes_are_refused_without_advice_that_cannot_be_followed(estimator):
    """Of `learn`, ``missing="drop"`` would leave rows out."""
    rows = FRAME.assign(d=np.where(FRAME["a"] > 0, "x", "y"), b=FRAME["b"].where(FRAME.index != 3))
    with pytest.raises(spbn.errors.DataError, match="column 'b' has 1 missing value") as caught:
        estimator.fit(rows)
    assert str(caught.value).endswith(": drop or fill those rows.")


def test_holes_are_refused_or_integrated_out():
    rows = FRAME.copy()
    rows.loc[3, "a"] = rows.loc[5, "c"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SPBNDensity(patience=0).fit(FRAME).score_samples(rows)
    estimator = SPBNDensity(patience=0, missing="integrate", seed=3).fit(FRAME)
    expected = estimator.network_.logpdf(rows, missing="integrate", seed=3)
    np.testing.assert_array_equal(estimator.score_samples(rows), expected)
    assert estimator.score(rows) == pytest.approx(expected.sum())
    assert not np.array_equal(expected, estimator.network_.logpdf(rows, missing="integrate"))
    with pytest.raises(ValueError, match="infinity"):
        estimator.score_samples(FRAME.replace(FRAME.iloc[0, 0], np.inf))
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(rows)
    with pytest.raises(spbn.errors.ArgumentError, match="missing must be 'error' or 'integrate'"):
        SPBNDensity(missing="drop").fit(FRAME)


def test_columns_in_another_order_are_refused():
    frame = nonlinear_frame(60, 2)
    estimator = SPBNDensity(model="gbn").fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        estimator.score_samples(frame[["b", "a"]])
    assert isinstance(estimator.network_.sample(1), pd.DataFrame)


def test_samples_depend_on_the_random_state():
    model = SPBNDensity(model="gbn").fit(FRAME)
    first, again, other = (model.sample(20, random_state=state) for state in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, model.network_.sample(20, seed=5))
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("dtype", ["str", "category"])
def test_frames_with_categories(dtype):
    frame = mixed_frame()
    frame["town"] = frame["town"].astype(dtype)
    estimator = SPBNDensity(model="gbn", smoothing=2.0).fit(frame)
    network = spbn.learn(frame, model="gbn", smoothing=2.0)
    assert estimator.network_ == network
    assert list(estimator.feature_names_in_) == list(frame)
    np.testing.assert_array_equal(estimator.score_samples(frame), network.logpdf(frame))
    with pytest.raises(ValueError, match="feature names"):
        estimator.score_samples(frame.drop(columns="x"))
    with pytest.raises(ValueError, match="level 'Cramond' in row 1"):
        estimator.score_samples(frame.assign(town="Cramond"))


def test_categories_in_a_grid_search():
    search = GridSearchCV(SPBNDensity(model="gbn"), {"smoothing": [0.5, 5.0]}, cv=2).fit(mixed_frame())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
