import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
