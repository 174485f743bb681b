import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn import NodeType, Structure
from spbn.errors import ArgumentError
from spbn.nodes import Family
from spbn.tables.splits import fold_labels
from spbn.tables.table import Variable

from naive import ckde_logpdf, cv_rows, logpdf
from strategies import nonlinear_frame

CONTINUOUS = [node_type for node_type in NodeType if node_type.admits(Variable("x"), ())]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    node_type=st.sampled_from(CONTINUOUS),
    parents=st.integers(0, 5),
    rows=st.integers(25, 70),
    folds=st.integers(2, 6),
    seed=st.integers(0, 99),
)
def test_cross_validation_agrees_with_the_definition(node_type, parents, rows, folds, seed):
    frame = nonlinear_frame(rows, 6, seed)
    names = list("abcdef")
    np.random.default_rng(seed).shuffle(names)
    node, *rest = names[: parents + 1]
    labels = fold_labels(rows, folds, seed)
    expected = cv_rows(frame, labels, node, rest, node_type)
    score = spbn.scores.CVLikelihood(frame, folds=labels)
    np.testing.assert_allclose(
        score.rows(Family(node, tuple(rest), node_type)), expected, rtol=1e-8, atol=1e-8
    )
    assert score.local(node, rest, node_type) == pytest.approx(expected.sum(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("node_type", CONTINUOUS)
def test_holdout_agrees_with_the_definition(node_type):
    frame = nonlinear_frame(100, 3)
    train, test = frame[:70], frame[70:]
    expected = logpdf(test, train, "b", ["a", "c"], node_type)
    score = spbn.scores.HoldoutLikelihood(train, validation=test)
    assert score.local("b", ["a", "c"], node_type) == pytest.approx(expected.sum(), rel=1e-11)
    np.testing.assert_allclose(score.rows(Family("b", ("a", "c"), node_type)), expected, rtol=1e-10)


@pytest.mark.parametrize(
    "node_type", ["lg", "ckde"]
)  # a blend validates with the weights of its training rows
def test_validated_is_cross_validation_and_holdout_together(node_type):
    frame = nonlinear_frame(100, 3)
    train, test = frame[:70], frame[70:]
    labels = fold_labels(70, 4, 1)
    both = spbn.scores.ValidatedLikelihood(train, folds=labels, validation=test)
    family = ("b", ("a", "c"), node_type)
    assert both.local(*family) == spbn.scores.CVLikelihood(train, folds=labels).local(*family)
    assert both.validation_local(*family) == spbn.scores.HoldoutLikelihood(train, validation=test).local(
        *family
    )
    structure = Structure("abc", [("a", "b"), ("c", "b")], node_type)
    assert both.validation_total(structure) == pytest.approx(
        sum(both.validation_local(*f) for f in structure.families()), rel=1e-13
    )
    np.testing.assert_allclose(both.rows(Family(*family)).sum(), both.local(*family), rtol=1e-12)
    np.testing.assert_allclose(
        both.validation_rows(Family(*family)).sum(), both.validation_local(*family), rtol=1e-12
    )


def test_a_function_as_bandwidth():
    frame = nonlinear_frame(60, 3)
    labels = fold_labels(60, 3, 0)

    def rule(data):
        scales = np.linspace(0.2, 0.4, data.shape[1])  # so that child and parents differ
        return np.diag(scales) + 0.05 * np.cov(data.T)

    expected = np.empty(60)
    for label in range(3):
        test = labels == label
        expected[test] = ckde_logpdf(frame[test], frame[~test], "c", ["a", "b"], rule)
    score = spbn.scores.CVLikelihood(frame, folds=labels, bandwidth=rule)
    np.testing.assert_allclose(score.rows(Family("c", ("a", "b"), NodeType.CKDE)), expected, rtol=1e-10)
    assert score.local("c", ["a", "b"], "ckde") == pytest.approx(expected.sum(), rel=1e-11)
    assert score.local("c", [], "ckde") == pytest.approx(
        score.rows(Family("c", (), NodeType.CKDE)).sum(), rel=1e-12
    )


def test_silverman():
    frame = nonlinear_frame(100, 3)

    def silverman(data):
        rows, d = data.shape
        return (4 / (rows * (d + 2))) ** (2 / (d + 4)) * np.cov(data.T)

    expected = ckde_logpdf(frame[70:], frame[:70], "a", ["b", "c"], silverman).sum()
    score = spbn.scores.HoldoutLikelihood(frame[:70], validation=frame[70:], bandwidth="silverman")
    assert score.local("a", ["b", "c"], "ckde") == pytest.approx(expected, rel=1e-11)


def test_offsets_and_units_change_nothing_that_matters():
    frame = nonlinear_frame(80, 3)
    moved = frame.round(5) * [1.0, 1e3, 1e-3] + [1e8, 0, -5.0]
    plain, other = spbn.scores.CVLikelihood(frame.round(5), seed=1), spbn.scores.CVLikelihood(moved, seed=1)
    for node_type in CONTINUOUS:
        difference = other.local("b", ["a", "c"], node_type) - plain.local("b", ["a", "c"], node_type)
        assert difference == pytest.approx(-80 * np.log(1e3), rel=1e-6)


@pytest.mark.slow
def test_an_outlier_in_a_fold_is_survived():
    frame = nonlinear_frame(80, 3)
    frame.loc[17, "a"] = 1e9
    score = spbn.scores.CVLikelihood(frame, folds=4)
    labels = score.folds
    for node_type in CONTINUOUS:
        expected = cv_rows(frame, labels, "b", ["a"], node_type).sum()
        assert score.local("b", ["a"], node_type) == pytest.approx(expected, rel=1e-7)


def test_parents_that_are_absurdly_far_away_leave_the_density_right():
    """The density there is that of the nearest kernel, not the difference of two huge numbers."""
    train, test = nonlinear_frame(60, 2), nonlinear_frame(20, 2, 1)
    test.loc[3, "a"] = 1e9
    cpd = spbn.nodes.CKDE.fit(train, "b", ["a"])
    (h_aa, h_ab), (_, h_bb) = cpd.bandwidth
    nearest = train["a"].argmax()
    test.loc[3, "b"] = train["b"][nearest] + h_ab / h_aa * (1e9 - train["a"][nearest])
    expected = ckde_logpdf(test.drop(index=3), train, "b", ["a"]).sum()
    expected -= 0.5 * np.log(2 * np.pi * (h_bb - h_ab**2 / h_aa))
    score = spbn.scores.HoldoutLikelihood(train, validation=test)
    assert score.local("b", ["a"], "ckde") == pytest.approx(expected, rel=1e-6)
    assert score.rows(Family("b", ("a",), NodeType.CKDE)).sum() == pytest.approx(expected, rel=1e-6)


def test_validation_rows_that_spread_far_more_than_training_rows(rng):
    """Sums of squares of such rows cancel; the rows themselves do not."""
    x = rng.normal(size=50)
    train = pd.DataFrame({"x": x, "y": 2 * x + 0.01 * rng.normal(size=50)})
    cpd = spbn.nodes.LinearGaussian.fit(train, "y", ["x"])
    far = rng.normal(size=30) * 1e6
    test = pd.DataFrame({"x": far, "y": cpd.intercept + cpd.coefficients[0] * far})
    score = spbn.scores.HoldoutLikelihood(train, validation=test)
    expected = -15 * np.log(2 * np.pi * cpd.variance)
    assert score.local("y", ["x"]) == pytest.approx(expected, rel=1e-4)


def test_rows_are_checked_and_ordered_like_local():
    frame = nonlinear_frame(60, 3)

    def lopsided(data):
        return np.diag(np.linspace(0.1, 0.5, data.shape[1]))

    score = spbn.scores.CVLikelihood(frame, folds=3, bandwidth=lopsided)
    family = Family("a", ("c", "b"), NodeType.CKDE)
    assert score.rows(family).sum() == pytest.approx(score.local("a", ["c", "b"], "ckde"), rel=1e-12)
    assert score.rows(("a", ["b", "c"], "ckde")).sum() == pytest.approx(score.rows(family).sum(), rel=1e-12)
    with pytest.raises(spbn.errors.GraphError, match="no column 'z'"):
        score.rows(Family("z"))
    with pytest.raises(ArgumentError, match="a node type must be"):
        score.rows(Family("a", (), "normal"))


def test_a_bandwidth_function_that_finds_none_scores_minus_infinity():
    frame = nonlinear_frame(60, 2)
    for useless in (np.nan, -1.0, 0.0):
        score = spbn.scores.CVLikelihood(
            frame, folds=3, bandwidth=lambda data, h=useless: h * np.eye(data.shape[1])
        )
        assert score.local("a", ["b"], "ckde") == -np.inf


@pytest.mark.slow
def test_leaving_one_out():
    frame = nonlinear_frame(25, 2)
    score = spbn.scores.CVLikelihood(frame, folds=25)
    for node_type in CONTINUOUS:
        expected = cv_rows(frame, score.folds, "b", ["a"], node_type).sum()
        assert score.local("b", ["a"], node_type) == pytest.approx(expected, rel=1e-10)


def test_a_column_that_is_constant_outside_of_a_fold_scores_minus_infinity():
    frame = nonlinear_frame(40, 2).assign(rare=0.0)
    frame.loc[3, "rare"] = 1.0
    score = spbn.scores.CVLikelihood(frame, folds=4)
    for node_type in CONTINUOUS:
        assert score.local("rare", [], node_type) == -np.inf
        if node_type not in ("curve", "blend"):  # a curve of such a parent is flat
            assert score.local("a", ["rare"], node_type) == -np.inf
        assert np.isinf(score.rows(Family("rare", (), node_type))).all()
        assert np.isfinite(score.local("a", ["b"], node_type))


def test_too_few_rows_score_minus_infinity():
    score = spbn.scores.CVLikelihood(nonlinear_frame(8, 7), folds=2)
    for node_type in CONTINUOUS:
        assert score.local("a", list("bcdefg"), node_type) == -np.inf


def test_seeds_decide_the_folds_and_the_split():
    frame = nonlinear_frame(60, 2)
    for make in (spbn.scores.CVLikelihood, spbn.scores.HoldoutLikelihood, spbn.scores.ValidatedLikelihood):
        values = [make(frame, seed=seed).local("a", ["b"], "ckde") for seed in (0, 0, 1)]
        assert values[0] == values[1]
        assert values[0] != values[2]


@pytest.mark.parametrize("folds", [1, 61, 0])
def test_folds_that_make_no_sense_are_refused(folds):
    with pytest.raises(ArgumentError, match="folds must be between 2 and the number of rows"):
        spbn.scores.CVLikelihood(nonlinear_frame(60, 2), folds=folds)


def test_options_are_checked_before_any_work():
    frame = nonlinear_frame(60, 2)
    with pytest.raises(ArgumentError, match="validation must be a fraction"):
        spbn.scores.ValidatedLikelihood(frame, validation=1.2)
    with pytest.raises(ArgumentError, match="bandwidth must be"):
        spbn.scores.CVLikelihood(frame, bandwidth="wide")
    with pytest.raises(ArgumentError, match="engine must be"):
        spbn.scores.CVLikelihood(frame, engine="gpu")
    with pytest.raises(spbn.errors.DataError, match="lacks column 'b'"):
        spbn.scores.ValidatedLikelihood(frame, validation=frame[["a"]])


def test_work_is_shared_between_families(monkeypatch):
    """i → j and j → i share a joint density, and children of the same parents a marginal one."""
    from spbn import kernels

    sets = []
    original = kernels.log_density

    def counting(points, columns, *rest, **options):
        sets.extend(map(tuple, columns.tolist()))
        return original(points, columns, *rest, **options)

    monkeypatch.setattr(kernels, "log_density", counting)
    score = spbn.scores.CVLikelihood(nonlinear_frame(60, 3), folds=3)
    score.local_many(
        [
            Family("a", ("b",), NodeType.CKDE),
            Family("b", ("a",), NodeType.CKDE),
            Family("c", ("b",), NodeType.CKDE),
        ]
    )
    assert sorted(sets) == [(0,), (0, 1), (1,), (1, 2)]
