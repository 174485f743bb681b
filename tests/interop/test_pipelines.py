"""What people put around estimators: pipelines, column transformers, grid searches, kinds of frames."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import spbn
from spbn.sklearn import SPBNClassifier, SPBNDensity, SPBNMixture


@pytest.fixture(scope="module")
def table():
    """Two numbers and a town, which all tell about the class."""
    rng = np.random.default_rng(0)
    y = rng.random(150) < 0.5
    frame = pd.DataFrame(
        {
            "x": rng.normal(np.where(y, 2.0, 0.0), 1.0) * 100.0,
            "town": np.where(rng.random(150) < 0.8, np.where(y, "north", "south"), "east"),
            "z": rng.normal(size=150),
        }
    )
    return frame, np.where(y, "ill", "well")


def prepared(kind):
    """Numbers scaled, text as it is; the result is a frame of some kind."""
    chosen = make_column_selector(dtype_include=np.number)
    transformer = make_column_transformer((StandardScaler(), chosen), remainder="passthrough")
    return transformer.set_output(transform=kind)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_column_transformer_before_each_estimator(kind, table):
    pytest.importorskip("polars")
    frame, y = table
    by_hand = frame.copy()
    by_hand[["x", "z"]] = StandardScaler().fit_transform(frame[["x", "z"]])
    by_hand = by_hand[["x", "z", "town"]]
    density = make_pipeline(prepared(kind), SPBNDensity(model="gbn")).fit(frame)
    network = spbn.learn(by_hand, model="gbn")
    np.testing.assert_allclose(density.score_samples(frame), network.logpdf(by_hand), rtol=1e-12)
    classifier = make_pipeline(prepared(kind), SPBNClassifier(model="gbn")).fit(frame, y)
    expected = SPBNClassifier(model="gbn").fit(by_hand, y).predict_proba(by_hand)
    np.testing.assert_allclose(classifier.predict_proba(frame), expected, rtol=1e-9)
    assert classifier.score(frame, y) > 0.8


def test_a_grid_search_over_a_pipeline_of_a_classifier(table):
    frame, y = table
    pipeline = make_pipeline(prepared("pandas"), SPBNClassifier(model="gbn"))
    grid = {"spbnclassifier__smoothing": [0.5, 5.0], "columntransformer__remainder": ["passthrough", "drop"]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss", error_score="raise").fit(frame, y)
    assert search.best_params_["columntransformer__remainder"] == "passthrough"  # the town says much
    for place, parameters in enumerate(search.cv_results_["params"]):
        scores = cross_val_score(pipeline.set_params(**parameters), frame, y, cv=3, scoring="neg_log_loss")
        assert search.cv_results_["mean_test_score"][place] == pytest.approx(scores.mean(), rel=1e-9)


def test_text_as_numbers_by_an_encoder(table):
    frame, y = table
    encoder = make_column_transformer((OrdinalEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, SPBNClassifier(model="gbn", discrete=["x0"])).fit(frame, y)
    assert model.score(frame, y) > 0.8


def test_a_mixture_in_a_pipeline_and_a_grid_search():
    rng = np.random.default_rng(1)
    group = rng.random(200) < 0.4
    frame = pd.DataFrame(rng.normal(np.where(group, 500.0, 0.0), 90.0, (2, 200)).T, columns=["x", "y"])
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, SPBNMixture(model="gbn"))
    search = GridSearchCV(pipeline, {"spbnmixture__hidden": [None, 2]}, cv=3, error_score="raise").fit(frame)
    assert search.best_params_ == {"spbnmixture__hidden": 2}
    labels = search.predict(frame)
    assert max(np.mean(labels == group), np.mean(labels != group)) > 0.95
