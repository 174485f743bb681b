"""Tables of probabilities, against counting."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import spbn
from spbn import NodeType
from spbn.errors import DataError
from spbn.nodes import Family
from spbn.nodes.discrete import ProbabilityTable

from naive import table_logpdf
from strategies import mixed_frame

LEVELS = {"u": 3, "v": 2, "w": 4}


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(20, 40),
    folds=st.integers(2, 5),
    smoothing=st.sampled_from([0.0, 1.0, 2.5]),
    parents=st.sampled_from([[], ["v"], ["w", "v"]]),
)
def test_the_score_counts_fold_by_fold(seed, rows, folds, smoothing, parents):
    frame = mixed_frame(rows, seed)
    frame.loc[:2, "u"] = list("xyz")  # so that there are three levels
    frame.loc[:1, "v"] = ["no", "yes"]
    labels = np.arange(rows) % folds
    score = spbn.scores.CVLikelihood(frame, folds=labels, smoothing=smoothing)
    expected = np.empty(rows)
    for fold in range(folds):
        test = labels == fold
        expected[test] = table_logpdf(frame[test], frame[~test], "u", parents, 3, smoothing)
    found = score.rows(Family("u", tuple(parents), NodeType.DISCRETE))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert score.local("u", parents, "discrete") == pytest.approx(expected.sum(), rel=1e-12)
    assert (smoothing == 0) or np.isfinite(expected).all()


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("parents", [[], ["v"], ["w", "v"]])
def test_the_fit_counts_and_sums_to_one(parents, smoothing):
    train, test = mixed_frame(25, 4), mixed_frame(40, 5)
    cpd = ProbabilityTable.fit(train, "u", parents, smoothing=smoothing)
    np.testing.assert_allclose(cpd.logpdf(test), table_logpdf(test, train, "u", parents, 3, smoothing))
    total = sum(np.exp(cpd.logpdf(test.assign(u=level))) for level in "xyz")
    np.testing.assert_allclose(total, 1.0)


def test_without_smoothing_a_configuration_that_no_training_row_has_is_like_all_rows():
    labels = np.arange(30) % 3
    frame = mixed_frame(30)[["u"]].assign(v=np.array(list("klm"))[labels])  # each fold has its own level
    score = spbn.scores.CVLikelihood(frame, folds=labels, smoothing=0.0)
    shares = [frame["u"][labels != fold].value_counts(normalize=True) for fold in labels]
    expected = np.log([share[level] for share, level in zip(shares, frame["u"], strict=True)])
    assert np.ptp(expected) > 0.3
    np.testing.assert_allclose(score.rows(Family("u", ("v",), NodeType.DISCRETE)), expected, rtol=1e-12)


def test_cdf_adds_up_the_levels_in_their_order():
    frame = mixed_frame(50)
    cpd = ProbabilityTable.fit(frame, "u", ["v"])
    below = np.cumsum([np.exp(cpd.logpdf(frame.assign(u=level))) for level in "xyz"], axis=0)
    for place, level in enumerate("xyz"):
        np.testing.assert_allclose(cpd.cdf(frame.assign(u=level)), below[place])
    uniforms = np.random.default_rng(0).random(50)
    between = cpd.randomised_cdf(frame.assign(u="y"), uniforms)
    np.testing.assert_allclose(between, below[0] + uniforms * (below[1] - below[0]))


def test_samples_have_the_probabilities():
    cpd = ProbabilityTable.fit(mixed_frame(200), "u", ["v"])
    codes = cpd.sample(6000, given={"v": ["yes"] * 6000}, seed=0)
    counts = np.bincount(codes.astype(int), minlength=3)
    expected = 6000 * np.exp(cpd.logpdf({"u": list("xyz"), "v": ["yes"] * 3}))
    assert stats.chisquare(counts, expected).pvalue > 0.001
    np.testing.assert_array_equal(codes, cpd.sample(6000, given={"v": ["yes"] * 6000}, seed=0))


def test_unknown_levels_are_named_with_their_row():
    frame = mixed_frame(30)
    cpd = ProbabilityTable.fit(frame, "u", ["v"])
    with pytest.raises(DataError, match=r"column 'u' has the level 'q' in row 2.*Its levels are 'x'"):
        cpd.logpdf(pd.DataFrame({"u": ["x", "q"], "v": ["no", "no"]}))


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", None])
def test_smoothing_that_makes_no_sense(wrong):
    with pytest.raises(spbn.errors.ArgumentError, match="smoothing"):
        ProbabilityTable.fit(mixed_frame(30), "u", smoothing=wrong)


@pytest.mark.parametrize(
    "make", [spbn.scores.CVLikelihood, spbn.scores.HoldoutLikelihood, spbn.scores.ValidatedLikelihood]
)
def test_smoothing_reaches_every_score(make):
    frame = mixed_frame(60)
    values = {make(frame, smoothing=smoothing).local("u", ["v"], "discrete") for smoothing in (0.5, 1, 5)}
    assert len(values) == 3
