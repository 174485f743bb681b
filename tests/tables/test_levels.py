"""Which columns are discrete, and the order of their levels, whatever kind of column they come from."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spbn
from spbn.errors import DataError
from spbn.tables.reader import as_table
from spbn.tables.table import Variable

WORDS = ["low", "high", "mid", "low", "high"] * 4


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (WORDS, ("high", "low", "mid")),
        (pd.Series(WORDS, dtype="string"), ("high", "low", "mid")),
        (pd.Categorical(WORDS, categories=["low", "mid", "high", "never"]), ("low", "mid", "high", "never")),
        (pd.Categorical(WORDS, categories=["mid", "low", "high"], ordered=True), ("mid", "low", "high")),
        (np.array(WORDS, dtype=object), ("high", "low", "mid")),
        (np.array([True, False] * 10), ("False", "True")),
        (pd.array([True, False] * 10, dtype="boolean"), ("False", "True")),
        (pd.Categorical([3, 1] * 10), ("1", "3")),
    ],
)
def test_pandas_columns(column, levels):
    table = as_table(pd.DataFrame({"s": column, "x": np.arange(20.0)}), levels="infer")
    assert table.levels == {"s": levels}
    texts = [str(value) for value in column]
    assert [table.levels["s"][int(code)] for code in table.column("s")] == texts


def test_polars_and_arrow_columns():
    enum = pl.Enum(["low", "mid", "high", "never"])
    frames = [
        (pl.DataFrame({"s": pl.Series(WORDS, dtype=enum)}), ("low", "mid", "high", "never")),
        (pl.DataFrame({"s": WORDS}), ("high", "low", "mid")),
        (pl.DataFrame({"s": [value == "low" for value in WORDS]}), ("False", "True")),
        (pa.table({"s": pa.array(WORDS).dictionary_encode()}), ("low", "high", "mid")),
    ]
    for frame, levels in frames:
        table = as_table(frame, levels="infer")
        assert table.levels == {"s": levels}
    categorical = as_table(pl.DataFrame({"s": pl.Series(WORDS, dtype=pl.Categorical)}), levels="infer")
    assert set(categorical.levels["s"]) >= {"high", "low", "mid"}
    assert [categorical.levels["s"][int(code)] for code in categorical.column("s")] == WORDS


def test_numbers_that_stand_for_categories():
    frame = pd.DataFrame({"k": [10, 2, 10, 2], "x": [1.5, 2.5, 0.5, 4.0]})
    assert as_table(frame, levels="infer").levels == {}
    assert as_table(frame, levels="infer", discrete=["k"]).levels == {
        "k": ("2", "10")
    }  # as numbers, not as text
    assert as_table(frame.astype(float), levels="infer", discrete=["k"]).levels == {"k": ("2", "10")}
    with pytest.raises(DataError, match="discrete names unknown columns: 'q'"):
        as_table(frame, levels="infer", discrete=["q"])


def test_columns_that_look_like_names_of_the_rows():
    names = [f"row {i}" for i in range(20)]
    with pytest.raises(DataError, match=r"'id' holds text with 20 different values.*drop=\['id'\]"):
        as_table({"id": names, "x": np.arange(20.0)}, levels="infer")
    assert len(as_table({"id": names}, levels="infer", discrete=["id"]).levels["id"]) == 20
    assert (
        len(as_table(pd.DataFrame({"id": pd.Categorical(names)}), levels="infer").levels["id"]) == 20
    )  # said to be some
    many = [f"level {i % 51}" for i in range(1000)]
    with pytest.raises(DataError, match="51 different values in 1000 rows"):
        as_table({"id": many}, levels="infer")
    assert len(as_table({"id": [f"level {i % 50}" for i in range(1000)]}, levels="infer").levels["id"]) == 50


def test_the_same_levels_at_prediction():
    variables = [Variable("s", ("low", "mid", "high"))]
    table = as_table(pd.DataFrame({"s": ["high", "low"]}), variables=variables)
    np.testing.assert_array_equal(table.columns, [[2.0, 0.0]])
    with pytest.raises(DataError, match=r"column 's' has the level 'tall' in row 2, counted from 1"):
        as_table({"s": ["low", "tall"]}, variables=variables)
    numbers = [Variable("k", ("1", "3"))]
    np.testing.assert_array_equal(as_table({"k": [3.0, 1.0]}, variables=numbers).columns, [[1.0, 0.0]])


def test_missing_levels_are_missing_values():
    frame = pd.DataFrame({"s": [*WORDS[:-1], None], "x": np.arange(20.0)})
    with pytest.raises(DataError, match=r"'s' has 1 missing value \(row 20"):
        as_table(frame, levels="infer", missing="error")
    assert as_table(frame, levels="infer", missing="drop").rows == 19


def test_levels_that_do_not_occur_have_a_probability():
    frame = pd.DataFrame({"s": pd.Categorical(WORDS, categories=["low", "mid", "high", "never"])})
    frame["x"] = np.arange(20.0) % 7
    network = spbn.learn(frame, model="gbn")
    assert np.isfinite(network.logpdf(pd.DataFrame({"s": ["never"], "x": [1.0]}))).all()


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_lists_of_levels_with_holes_are_like_columns_of_a_frame(hole):
    """NumPy makes the text "nan" of NaN among text, and numbers of truth values with NaN."""
    lists = {"c": ["a", hole, "b"] * 10, "b": [True, False, hole] * 10}
    table = as_table(lists, training=True, missing="keep")
    assert table.levels == {"c": ("a", "b"), "b": ("False", "True")}
    frame = as_table(pd.DataFrame(lists), training=True, missing="keep")
    np.testing.assert_array_equal(table.columns, frame.columns)
    variables = [Variable("c", ("a", "b")), Variable("b", ("False", "True"))]
    np.testing.assert_array_equal(as_table(lists, variables=variables, missing="keep").columns, frame.columns)


def test_objects_that_are_numbers_are_numbers():
    expected = np.array([[1.0, 2.5, np.nan, 3.0]])
    for values in ([1, 2.5, None, np.float32(3)], [1, 2.5, pd.NA, 3], [1, 2.5, np.nan, 3]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        np.testing.assert_array_equal(as_table(frame, training=True, missing="keep").columns, expected)


def test_levels_do_not_depend_on_the_precision_of_numbers():
    values = np.array([0.1, 0.2, 0.3, 2.0] * 5)
    single = as_table({"k": values.astype(np.float32)}, levels="infer", discrete=["k"])
    assert (
        single.levels
        == as_table({"k": values}, levels="infer", discrete=["k"]).levels
        == {"k": ("0.1", "0.2", "0.3", "2")}
    )


def test_measured_columns_are_not_levels():
    """6,000 levels were learned from for minutes, and to no end."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=6000), "y": rng.normal(size=6000)})
    message = r"column 'x' has 6000 different values in 6000 rows, .*drop=\['x'\].*do not name it in discrete"
    for data in (frame, frame.assign(x=pd.Categorical(frame["x"])), pl.from_pandas(frame)):
        with pytest.raises(DataError, match=message):
            spbn.learn(data, discrete=["x"], model="gbn")
    column = np.minimum(np.arange(1000), 500)
    with pytest.raises(DataError, match="column 'x' has 501 different values in 1000 rows"):
        as_table({"x": column}, levels="infer", discrete=["x"])


@pytest.mark.parametrize(("rows", "levels"), [(1000, 500), (501, 500), (500, 500), (1200, 600)])
def test_columns_may_have_many_levels(rows, levels):
    table = as_table({"x": np.arange(rows) % levels}, levels="infer", discrete=["x"])
    assert len(table.levels["x"]) == levels


def test_levels_that_do_not_occur_do_not_count():
    column = pd.Categorical(["a", "b"] * 30, categories=["a", "b", *map(str, range(1000))])
    assert len(as_table(pd.DataFrame({"x": column}), levels="infer").levels["x"]) == 1002
