import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spbn._base.arrays import generator
from spbn.errors import ArgumentError, DataError
from spbn.tables.reader import as_table
from spbn.tables.table import Variable, require_distinct, require_variation

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
    with pytest.raises(DataError, match=r"column 'x' has 1 missing value \(row 2, counted from 1\)"):
        as_table(frame)


def test_missing_values_are_named_with_their_rows():
    x = np.arange(20.0)
    x[[3, 9, 11, 14]] = np.nan
    with pytest.raises(
        DataError,
        match=r"'rpm' has 4 missing values \(rows 4, 10, 12, \.\.\., counted from 1\): .* missing='drop'",
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
        ({"x": ["a", "b"]}, r"column 'x' holds text \(<U1\), not numbers"),
        (pd.DataFrame({"x": ["a", "b"]}), r"column 'x' holds text \(String\), not numbers"),
        (pd.DataFrame({"x": pd.Categorical(["a", "b"])}), "column 'x' holds text"),
        ({"x": [[1], [2, 3]]}, "'x' is not a list of numbers"),
        ({"x": np.array([{}, {}])}, r"'x' holds objects \(dict\)"),
        ({"x": [1.0, 2.0], "y": [1.0]}, "same length"),
        ({}, "no columns"),
        (pd.DataFrame(np.ones((3, 2)), columns=[1.5, 2.5]), "names must be text"),
        (pd.DataFrame(np.ones((3, 2)), columns=[0, "0"]), "'0' appear more than once"),
        ({0: [1.0], "0": [2.0]}, "'0' appear more than once"),
        (np.ones(3), r"two dimensions, rows × columns. Got the shape \(3,\): .*reshape\(-1, 1\)"),
        (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "'a' appear more than once"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "'a' appear more than once"),
        ([1, 2, 3], "wrap it"),
        (pd.Series([1.0, 2.0], name="x"), "one column|wrap it"),
        ({"x": np.ones((2, 2))}, "one dimension"),
    ],
)
def test_what_cannot_be_read_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        as_table(data)


def test_columns_without_names_are_called_by_their_numbers():
    rows = np.arange(6.0).reshape(3, 2)
    fields = np.array([(0.0, 1), (2.0, 3), (4.0, 5)], dtype=[("0", float), ("1", int)])
    for data in (rows, pd.DataFrame(rows), {0: rows[:, 0], np.int64(1): rows[:, 1]}, fields):
        table = as_table(data)
        assert table.names == ("0", "1")
        np.testing.assert_array_equal(table.columns, rows.T)
    assert as_table(rows**2, training=True, missing="error", drop=["0"]).names == ("1",)


DAYS = pd.date_range("2020-01-30", periods=3)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (DAYS, "dates or times"),
        (DAYS.tz_localize("Europe/Madrid"), "dates or times"),
        (DAYS.date, "dates or times"),
        (DAYS - DAYS[0], "lengths of time"),
        (DAYS.to_period("D"), "(?:dates or times|objects)"),
        (DAYS.to_pydatetime(), "dates or times"),
        ((DAYS - DAYS[0]).to_pytimedelta(), "lengths of time"),
    ],
)
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_dates_are_not_numbers(values, kind, make):
    """They would be counted in nanoseconds."""
    if isinstance(values, pd.PeriodIndex) and make in (pl.DataFrame, pa.table):
        pytest.skip("only pandas has periods")
    data = make({"x": [1.0, 2.0, 4.0], "when": values})
    with pytest.raises(DataError, match=rf"column 'when' holds {kind} \(.*\), not numbers: convert it\."):
        as_table(data)
    with pytest.raises(DataError, match=r"convert it, or leave it out \(drop=\['when'\] in learn\)"):
        as_table(data, training=True, missing="error")
    assert as_table(data, training=True, missing="error", drop=["when"]).names == ("x",)


def test_numbers_that_cannot_be_squared_are_refused_without_a_warning():
    for huge in (1e300, 1e308):
        with pytest.raises(DataError, match="'x' varies too much"):
            require_variation(as_table({"x": [huge, -huge, huge / 2]}))
    with pytest.raises(DataError, match="'x' varies too little"):
        require_variation(as_table({"x": [1e-200, 2e-200]}))


def test_copies_are_refused_with_the_remedy_in_python():
    with pytest.raises(DataError, match=r"'b' is a rescaled copy of column 'a': .* \(drop=\['b'\] in"):
        require_distinct(as_table({"a": [1.0, 2.0, 5.0], "b": [2.0, 4.0, 10.0]}))


def test_drop():
    columns = {"a": [1.0, 2.0], "b": [2.0, 1.0], "text": ["x", "y"]}
    for drop in (["text"], "text", ("text",)):
        assert as_table(columns, training=True, missing="error", drop=drop).names == ("a", "b")
    with pytest.raises(DataError, match=r"drop names unknown columns: 'z'\. The data has 'a', 'b' and"):
        as_table(columns, training=True, missing="error", drop=["z"])
    with pytest.raises(DataError, match="drop names all columns"):
        as_table(columns, training=True, missing="error", drop=list(columns))


def test_chosen_columns_come_in_the_given_order_and_others_may_hold_anything():
    table = as_table({"a": [1.0], "text": ["?"], "b": [2.0]}, names=["b", "a"])
    assert table.names == ("b", "a")
    with pytest.raises(DataError, match="lacks column 'c'"):
        as_table({"a": [1.0]}, names=["a", "c"])


def test_none_and_masks_are_missing_numbers():
    holes = {"x": [1.0, None, 3.0], "y": np.ma.array([1.0, 3e9, 5.0], mask=[False, True, False])}
    with pytest.raises(DataError, match=r"column 'x' has 1 missing value \(row 2, .*\); column 'y' has 1"):
        as_table(holes)
    np.testing.assert_array_equal(as_table(holes, missing="drop").columns, [[1, 3], [1, 5]])


def test_constant_columns_are_refused_by_name():
    with pytest.raises(DataError, match="columns 'a' and 'c' are constant"):
        require_variation(as_table({"a": [1, 1], "b": [1, 2], "c": [0.0, 0.0]}))


def test_seeds():
    assert generator(3).random() == generator(3).random()
    rng = np.random.default_rng(0)
    assert generator(rng) is rng
    for wrong in ("zero", -1, True, 0.5):
        with pytest.raises(ArgumentError, match="seed must be"):
            generator(wrong)


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda columns: pa.table({"x": columns["x"], "y": pa.nulls(3)}),
        lambda columns: pd.DataFrame(columns).astype({"y": "string"}),
        dict,
    ],
)
def test_a_column_without_any_value_is_unknown_whatever_its_kind(make):
    """Columns of None were text, and so refused where numbers are expected."""
    data = make({"x": [1.0, 2.0, 4.0], "y": [None, None, None]})
    table = as_table(data, variables=[Variable("x"), Variable("y")], missing="keep")
    np.testing.assert_array_equal(table.columns, [[1.0, 2.0, 4.0], [np.nan] * 3])
    for missing in ("error", "drop"):
        with pytest.raises(DataError, match=r"column 'y' has no value in any of the 3 rows.*drop=\['y'\]"):
            as_table(data, levels="infer", missing=missing)
