import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn.errors import ArgumentError, DataError
from spbn.tables.splits import fold_labels, holdout_rows


@given(rows=st.integers(4, 200), seed=st.integers(0, 5), share=st.floats(0, 1))
def test_folds_are_balanced_and_repeatable(rows, seed, share):
    folds = 2 + int(share * (rows - 2))
    labels = fold_labels(rows, folds, seed)
    sizes = np.bincount(labels, minlength=folds)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(labels, fold_labels(rows, folds, seed))


def test_folds_are_shuffled():
    assert not np.array_equal(fold_labels(100, 10, 0), fold_labels(100, 10, 1))


def test_labels_may_be_anything_that_can_be_told_apart():
    np.testing.assert_array_equal(fold_labels(4, ["b", "a", "b", "c"], None), [1, 0, 1, 2])


@pytest.mark.parametrize("folds", [1, 0, 11, True, [0] * 10, [0, 1], [0, "a", None], [[0], [1, 2]]])
def test_folds_that_make_no_sense_are_refused(folds):
    with pytest.raises(ArgumentError, match="folds must"):
        fold_labels(10, folds, 0)


@given(rows=st.integers(5, 300), fraction=st.floats(0.2, 0.8), seed=st.integers(0, 5))
def test_holdout_is_a_partition(rows, fraction, seed):
    train, test = holdout_rows(rows, fraction, seed)
    assert len(test) == round(rows * fraction)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(rows))
    assert (np.diff(train) > 0).all()


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1, 0.01, "half"])
def test_fractions_that_leave_nothing_are_refused(fraction):
    with pytest.raises(ArgumentError, match="validation"):
        holdout_rows(10, fraction, 0)


def test_folds_that_leave_too_little_to_fit_on_are_refused():
    with pytest.raises(DataError, match="leave 1 to fit on"):
        fold_labels(3, 2, 0)
    with pytest.raises(DataError, match="leave 1 to fit on"):
        fold_labels(5, [0, 0, 0, 0, 1], 0)


def trained_everywhere(labels, codes):
    """Tell for every level whether the rows outside of each fold have it."""
    return {
        level: all((codes[labels != fold] == level).any() for fold in set(labels)) for level in set(codes)
    }


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=8),
    folds=st.integers(2, 5),
    seed=st.integers(0, 50),
)
def test_levels_that_occur_twice_are_in_training_whatever_the_fold(sizes, folds, seed):
    codes = np.repeat(np.arange(float(len(sizes))), sizes)
    common = np.zeros(20)
    codes = np.concatenate([codes, common])
    labels = fold_labels(len(codes), folds, seed, discrete=codes[None])
    plain = fold_labels(len(codes), folds, seed)
    np.testing.assert_array_equal(np.bincount(labels), np.bincount(plain))
    for level, trained in trained_everywhere(labels, codes).items():
        assert trained or (codes == level).sum() == 1
    if all(trained_everywhere(plain, codes).values()):
        np.testing.assert_array_equal(labels, plain)


@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=8),
    seed=st.integers(0, 50),
    share=st.floats(0.1, 0.4),
)
def test_every_level_is_kept_when_rows_are_held_out(sizes, seed, share):
    codes = np.concatenate([np.zeros(40), np.repeat(np.arange(float(len(sizes))), sizes)])
    other = np.resize([0.0, 1.0], len(codes))
    kept, out = holdout_rows(len(codes), share, seed, discrete=np.stack([codes, other]))
    assert len(out) == round(len(codes) * share)
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, out])), np.arange(len(codes)))
    assert set(codes[kept]) == set(codes)
    plain = holdout_rows(len(codes), share, seed)
    if set(codes[plain[0]]) == set(codes):
        np.testing.assert_array_equal(kept, plain[0])


def test_one_column_is_not_mended_at_the_cost_of_another():
    rng = np.random.default_rng(0)
    for seed in range(30):
        discrete = np.zeros((3, 40))
        for column in discrete:
            column[rng.choice(40, 2, replace=False)] = 1.0
        labels = fold_labels(40, 2, seed, discrete=discrete)
        assert all(trained_everywhere(labels, column)[1.0] for column in discrete)


def test_scores_use_such_folds():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": ["x"] * 38 + ["y"] * 2})
    for seed in range(20):
        found = spbn.scores.CVLikelihood(frame, folds=2, seed=seed).folds
        assert found[38] != found[39]
