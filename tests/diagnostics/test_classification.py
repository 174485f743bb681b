import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss

from spbn.diagnostics.classification import LEAST_PROBABILITY, Predictions, assess


@pytest.mark.slow
@given(st.integers(2, 4), st.integers(1, 40), st.integers(0, 1000))
def test_measures_are_those_of_scikit_learn(classes, rows, seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(classes, 0.5), size=rows)
    truth = rng.integers(classes, size=rows)
    found = assess(probabilities, truth)
    labels = list(range(classes))
    predicted = probabilities.argmax(axis=1)
    assert found.accuracy == pytest.approx(accuracy_score(truth, predicted))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(truth, predicted, labels=labels))
    assert found.log_loss == pytest.approx(log_loss(truth, probabilities, labels=labels))
    brier = sum((probabilities[row, c] - (truth[row] == c)) ** 2 for row in range(rows) for c in labels)
    assert found.brier == pytest.approx(brier / rows)
    assert sum(b.rows for b in found.reliability if b) == rows


def test_an_impossible_truth_costs_what_the_least_probability_does():
    found = assess(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1, 0]))
    assert found.log_loss == pytest.approx(-np.log(LEAST_PROBABILITY) / 2)


def test_calibration_error_by_hand():
    probabilities = np.array([[0.92, 0.08], [0.98, 0.02], [0.6, 0.4], [0.6, 0.4]])
    found = assess(probabilities, np.array([0, 1, 0, 0]))
    assert [b.rows if b else 0 for b in found.reliability] == [0, 0, 0, 0, 0, 0, 2, 0, 0, 2]
    assert (found.reliability[9].probability, found.reliability[9].correct) == pytest.approx((0.95, 0.5))
    assert found.calibration_error == pytest.approx((2 * 0.45 + 2 * 0.4) / 4)


@pytest.fixture
def predictions():
    explanation = pd.DataFrame(
        {
            "predicted": ["a", "b", "a", "b"],
            "probability": [0.9, 0.6, 0.7, 0.8],
            "runner_up": ["b", "a", "b", "a"],
            "(prior)": 0.5,
            "x": [1.0, -4.0, 2.0, 0.0],
            "y": [-3.0, 1.0, 0.1, 0.2],
        },
        index=[1, 2, 3, 4],
    )
    probabilities = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8]])
    truth = np.array(["b", "b", "b", "z"], dtype=object)
    return Predictions(np.array(["a", "b"], dtype=object), probabilities, explanation, truth)


def test_rows_to_look_at_and_their_reasons(predictions):
    assert predictions.wrong_rows().tolist() == [0, 3, 2]
    assert predictions.uncertain_rows().tolist() == [1, 2, 3, 0]
    assert predictions.reasons(0, most=2) == [("y", -3.0), ("x", 1.0)]
    assert list(predictions.frame.columns) == ["truth", "predicted", "probability", "P(a)", "P(b)"]


def test_classes_that_are_unknown_are_not_assessed(predictions):
    assert predictions.known.tolist() == [True, True, True, False]
    assert predictions.assessment.accuracy == pytest.approx(1 / 3)
    without = Predictions(predictions.classes, predictions.probabilities, predictions.explanation, None)
    assert without.assessment is None
    assert len(without.wrong_rows()) == 0
    assert "truth" not in without.frame
