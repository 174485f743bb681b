import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn.data import as_table, fold_labels, generator, holdout_rows, require_variation
from spbn.errors import ArgumentError, DataError

COLUMNS = {"x": [1.5, 2.0, -3.0], "n": [1, 2, 3], "flag": [True, False, True]}


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda c: pl.DataFrame(c).lazy()]
)
def test_every_kind_of_frame_gives_the_same_table(make):
    table = as_table(make(COLUMNS))
    assert table.names == ("x", "n", "flag")
    assert table.columns.dtype == np.float64
    assert table.columns.flags.c_contiguous
    np.testing.assert_array_equal(table.columns, [[1.5, 2, -3], [1, 2, 3], [1, 0, 1]])


def test_tables_cannot_be_changed_and_do_not_change_the_input():
    column = np.array([1.0, 2.0])
    table = as_table({"x": column})
    with pytest.raises(ValueError, match="read-only"):
        table.columns[0, 0] = 5.0
    column[0] = 7.0
    assert table.columns[0, 0] == 1.0


def test_nullable_columns_count_as_missing():
    frame = pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")})
    with pytest.raises(DataError, match=r"column 'x' has 1 missing value \(row 1\)"):
        as_table(frame)


def test_missing_values_are_named_with_their_rows():
    x = np.arange(20.0)
    x[[3, 9, 11, 14]] = np.nan
    with pytest.raises(
        DataError,
        match=r"'rpm' has 4 missing values \(rows 3, 9, 11, \.\.\.\): drop them or pass missing='drop'",
    ):
        as_table({"t": np.arange(20.0), "rpm": x}, missing="error")
    with pytest.raises(DataError, match="infinite"):
        as_table({"x": [1.0, np.inf]})


def test_drop_keeps_the_whole_rows():
    table = as_table({"x": [1.0, np.nan, 3.0, 4.0], "y": [1.0, 2.0, np.inf, 4.0]}, missing="drop")
    np.testing.assert_array_equal(table.columns, [[1, 4], [1, 4]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": ["a", "b"]}, "column 'x' holds <U1, not numbers"),
        (pd.DataFrame({"x": ["a", "b"]}), "column 'x' holds String, not numbers"),
        (
            pl.DataFrame({"when": ["2020", "2021"]}).select(pl.col("when").str.to_date("%Y")),
            "'when' holds Date",
        ),
        ({"x": [1.0, 2.0], "y": [1.0]}, "same length"),
        ({}, "no columns"),
        (pd.DataFrame(np.ones((3, 2))), "names must be text"),
        (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "'a' stand more than once"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "'a' stand more than once"),
        (np.ones((3, 2)), "wrap it"),
        ([1, 2, 3], "wrap it"),
        (pd.Series([1.0, 2.0], name="x"), "one column|wrap it"),
        ({"x": np.ones((2, 2))}, "one dimension"),
    ],
)
def test_what_cannot_be_read_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        as_table(data)


def test_chosen_columns_come_in_the_given_order_and_others_may_hold_anything():
    table = as_table({"a": [1.0], "text": ["?"], "b": [2.0]}, names=["b", "a"])
    assert table.names == ("b", "a")
    with pytest.raises(DataError, match="lacks column 'c'"):
        as_table({"a": [1.0]}, names=["a", "c"])


def test_constant_columns_are_refused_by_name():
    with pytest.raises(DataError, match="columns 'a' and 'c' are constant"):
        require_variation(as_table({"a": [1, 1], "b": [1, 2], "c": [0.0, 0.0]}))


@given(rows=st.integers(2, 200), seed=st.integers(0, 5), share=st.floats(0, 1))
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


@pytest.mark.parametrize("folds", [1, 0, 11, [0] * 10, [0, 1]])
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


def test_seeds():
    assert generator(3).random() == generator(3).random()
    rng = np.random.default_rng(0)
    assert generator(rng) is rng
    with pytest.raises(ArgumentError, match="seed must be"):
        generator("zero")
