"""Every argument of a predictive likelihood reaches the numbers, in both of its halves."""

import inspect

import numpy as np
import pytest

import spbn
from spbn import NodeType, kernels
from spbn.nodes import Family
from spbn.tables.splits import fold_labels, holdout_rows

from naive import ckde_logpdf, cv_rows, silverman
from strategies import nonlinear_frame

FRAME = nonlinear_frame(90, 3)
FAMILY = Family("b", ("a", "c"), NodeType.CKDE)
OTHER = nonlinear_frame(25, 3, seed=5)
LABELS = np.arange(90) % 3


def cross_validated(frame, labels, bandwidth=None):
    options = {} if bandwidth is None else {"bandwidth": bandwidth}
    return cv_rows(frame.reset_index(drop=True), np.asarray(labels), "b", ["a", "c"], "ckde", **options)


def held_out(train, test, bandwidth=None):
    options = {} if bandwidth is None else {"bandwidth": bandwidth}
    return ckde_logpdf(test, train, "b", ["a", "c"], **options)


def split(frame, fraction, seed):
    kept, out = holdout_rows(len(frame), fraction, seed)
    return frame.iloc[kept], frame.iloc[out]


def validated_split(frame, *, folds=10, validation=0.2, seed=0):
    """The rows of a ValidatedLikelihood: the first stream of the seed splits, the second makes folds."""
    of_split, of_folds = np.random.default_rng(seed).spawn(2)
    train, test = split(frame, validation, of_split)
    return train, test, fold_labels(len(train), folds, of_folds)


def rule(data):
    return np.diag(np.linspace(0.2, 0.4, data.shape[1])) + 0.05 * np.cov(data.T)


CV = {
    "data": ({"data": OTHER}, lambda: cross_validated(OTHER, fold_labels(25, 10, 0))),
    "folds": ({"folds": LABELS}, lambda: cross_validated(FRAME, LABELS)),
    "seed": ({"seed": 7}, lambda: cross_validated(FRAME, fold_labels(90, 10, 7))),
    "bandwidth": (
        {"bandwidth": "silverman", "folds": LABELS},
        lambda: cross_validated(FRAME, LABELS, silverman),
    ),
}
HOLDOUT = {
    "data": ({"data": OTHER}, lambda: held_out(*split(OTHER, 0.2, 0))),
    "validation": ({"validation": OTHER}, lambda: held_out(FRAME, OTHER)),
    "seed": ({"seed": 7}, lambda: held_out(*split(FRAME, 0.2, 7))),
    "bandwidth": (
        {"bandwidth": "silverman", "validation": OTHER},
        lambda: held_out(FRAME, OTHER, silverman),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CV)
def test_cross_validation(name):
    options, expected = CV[name]
    score = spbn.scores.CVLikelihood(**{"data": FRAME, **options})
    np.testing.assert_allclose(score.rows(FAMILY), expected(), rtol=1e-9)
    assert abs(score.local(*FAMILY) - spbn.scores.CVLikelihood(FRAME).local(*FAMILY)) > 0.01


@pytest.mark.parametrize("name", HOLDOUT)
def test_holdout(name):
    options, expected = HOLDOUT[name]
    score = spbn.scores.HoldoutLikelihood(**{"data": FRAME, **options})
    np.testing.assert_allclose(score.rows(FAMILY), expected(), rtol=1e-9)
    assert abs(score.local(*FAMILY) - spbn.scores.HoldoutLikelihood(FRAME).local(*FAMILY)) > 0.01


@pytest.mark.parametrize("options", [{"folds": 4}, {"seed": 7}, {"validation": 0.4}])
def test_the_rows_of_the_validated_likelihood(options):
    train, test, labels = validated_split(FRAME, **options)
    score = spbn.scores.ValidatedLikelihood(FRAME, **options)
    np.testing.assert_allclose(score.rows(FAMILY), cross_validated(train, labels), rtol=1e-9)
    np.testing.assert_allclose(score.validation_rows(FAMILY), held_out(train, test), rtol=1e-9)


@pytest.mark.parametrize(("bandwidth", "naive_rule"), [("silverman", silverman), (rule, rule)])
def test_the_bandwidth_of_both_halves(bandwidth, naive_rule):
    score = spbn.scores.ValidatedLikelihood(FRAME, folds=LABELS, validation=OTHER, bandwidth=bandwidth)
    np.testing.assert_allclose(score.rows(FAMILY), cross_validated(FRAME, LABELS, naive_rule), rtol=1e-9)
    np.testing.assert_allclose(score.validation_rows(FAMILY), held_out(FRAME, OTHER, naive_rule), rtol=1e-9)
    assert score.local(*FAMILY) == pytest.approx(score.rows(FAMILY).sum(), rel=1e-11)
    assert score.validation_local(*FAMILY) == pytest.approx(score.validation_rows(FAMILY).sum(), rel=1e-11)


@pytest.mark.parametrize(
    "make", [spbn.scores.CVLikelihood, spbn.scores.HoldoutLikelihood, spbn.scores.ValidatedLikelihood]
)
def test_the_engine(make, monkeypatch):
    engines = []
    original = kernels.log_density

    def recording(*arguments, engine, **options):
        engines.append(engine)
        return original(*arguments, engine=engine, **options)

    monkeypatch.setattr(kernels, "log_density", recording)
    score = make(FRAME, engine="exact")
    score.local(*FAMILY)
    score.rows(FAMILY)
    if score.validation is not None:
        score.validation.local(*FAMILY)
    assert set(engines) == {"exact"}
    assert len(engines) >= 4


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (spbn.scores.BIC, {}),
        (spbn.scores.BGe, {}),
        (spbn.scores.CVLikelihood, {}),
        (spbn.scores.HoldoutLikelihood, {"validation": OTHER.replace({"a": {OTHER["a"][3]: np.nan}})}),
        (spbn.scores.ValidatedLikelihood, {"validation": OTHER.replace({"a": {OTHER["a"][3]: np.nan}})}),
    ],
)
def test_missing_rows(make, options):
    holes = FRAME.copy()
    holes.loc[[2, 60], "c"] = np.nan
    whole = {key: frame.dropna() for key, frame in options.items()}
    for part in ("data", "validation"):
        if part in options or part == "data":
            data = holes if part == "data" else FRAME
            with pytest.raises(spbn.errors.DataError, match="missing='drop'"):
                make(data, **(options if part == "validation" else whole))
    score, expected = make(holes, missing="drop", **options), make(holes.dropna(), **whole)
    assert score.local("b", ["a", "c"]) == expected.local("b", ["a", "c"])
    if score.validation is not None:
        assert score.validation.local("b", ["a", "c"]) == expected.validation.local("b", ["a", "c"])


def test_every_argument_is_tested_here():
    elsewhere = {"missing", "engine", "smoothing"}
    only_crossed = {"penalty", "centres"}  # in `test_best_type` and `test_centres`
    assert set(inspect.signature(spbn.scores.CVLikelihood).parameters) == set(CV) | elsewhere | only_crossed
    assert set(inspect.signature(spbn.scores.HoldoutLikelihood).parameters) == set(HOLDOUT) | elsewhere
    assert (
        set(inspect.signature(spbn.scores.ValidatedLikelihood).parameters)
        == set(CV) | set(HOLDOUT) | elsewhere
    )
