import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import spbn
from spbn.interop.scikit_learn import SPBNDensity

from strategies import nonlinear_frame


@parametrize_with_checks([SPBNDensity(patience=0), SPBNDensity(model="gbn")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_it_is_reached_from_the_package_without_being_imported_before():
    assert spbn.SPBNDensity is SPBNDensity
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
    search = GridSearchCV(pipeline, {"spbndensity__model": ["gbn", "spbn"]}, cv=3).fit(frame)
    assert search.best_params_["spbndensity__model"] in ("gbn", "spbn")
    fresh = clone(search.best_estimator_[-1])
    assert not hasattr(fresh, "network_")
    assert search.best_estimator_[-1].network_.nodes == ("a", "b")


def test_columns_in_another_order_are_refused():
    frame = nonlinear_frame(60, 2)
    estimator = SPBNDensity(model="gbn").fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        estimator.score_samples(frame[["b", "a"]])
    assert isinstance(estimator.network_.sample(1), pd.DataFrame)
