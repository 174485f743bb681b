import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from spbn.cli.files import present, read_table, require_complete, write_table
from spbn.cli.sources import place
from spbn.errors import DataError
from spbn.tables.reader import as_table

FRAME = pd.DataFrame({"a": [1.5, -2.0, 3.25], "b": [1.0, 5.0, 4.0]})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "CSV"])
def test_what_is_written_is_read_again_with_rows_counted_from_1(kind):
    write_table(FRAME, f"t.{kind}")
    frame = read_table(f"t.{kind}")
    assert frame.index.tolist() == [1, 2, 3]
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), FRAME)


def test_columns_and_drop():
    write_table(FRAME.assign(text="x"), "t.csv")
    assert list(read_table("t.csv", ["b"])) == ["b"]
    assert list(read_table("t.csv", drop=["text"])) == ["a", "b"]
    assert list(read_table("t.csv", ["text", "b", "a"], drop=["text", "a"])) == ["b"]


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2020-01-01", periods=3),
        pd.Index([7, 7, 7]),
        pd.Index(["x", "y", "x"], name="key"),
        pd.MultiIndex.from_tuples([(1, 2), (1, 2), (3, 4)]),
    ],
)
def test_the_index_of_a_parquet_file_is_left_out(index):
    FRAME.set_axis(index, axis=0).to_parquet("t.parquet")
    frame = read_table("t.parquet")
    assert frame.index.tolist() == [1, 2, 3]
    assert list(frame.columns) == ["a", "b"]


DAYS = pd.date_range("2020-01-30", periods=3)


@pytest.mark.parametrize(
    "values",
    [
        DAYS,
        DAYS.tz_localize("Europe/Madrid"),
        DAYS - DAYS[0],
        DAYS.to_period("D"),
        DAYS.date,
        [None, *DAYS[:2].date],
        [datetime.time(1), datetime.time(2), None],
    ],
)
def test_dates_in_parquet_are_refused(values):
    FRAME.assign(when=values).to_parquet("t.parquet")
    with pytest.raises(DataError, match=r"'when' holds dates or times: .* in row [12]\. .* drop=\['when'\]"):
        read_table("t.parquet")
    assert list(read_table("t.parquet", drop=["when"])) == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["x", "y", "z"], "text with 3 different values in 3 rows, which looks like names, not categories"),
        (["x", "1", "2"], "text among numbers"),
        ([[1], [2], [3]], "values of type ndarray"),
        ([b"1\xff", b"x", b"y"], "values of type bytes"),
    ],
)
def test_other_things_in_parquet_are_refused(values, kind):
    FRAME.assign(c=values).to_parquet("t.parquet")
    with pytest.raises(DataError, match=rf"'c' holds {kind}: .* in row 1\."):
        read_table("t.parquet")


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), Decimal("2"), Decimal("4")],
        pd.array([1, 2, 4], dtype="Int64"),
        [True, False, True],
        pd.array([True, False, True], dtype="boolean"),
        ["1", "2", "4"],
        pd.Categorical([1.0, 2.0, 4.0]),
    ],
)
def test_numbers_of_every_kind_in_parquet_are_read(values):
    FRAME.assign(c=values).to_parquet("t.parquet")
    frame = read_table("t.parquet")
    np.testing.assert_array_equal(frame["c"].to_numpy(dtype=float), np.array(list(values), dtype=float))
    require_complete("t.parquet", frame, "")


def test_categories_in_parquet_keep_their_order():
    FRAME.assign(c=pd.Categorical(["x", "y", "z"], categories=["z", "y", "x"])).to_parquet("t.parquet")
    assert as_table(read_table("t.parquet"), training=True, missing="error").levels == {"c": ("z", "y", "x")}


def test_question_marks_are_missing_values_in_every_kind_of_file():
    for kind in ("csv", "parquet"):
        write_table(FRAME.assign(c=["x", "?", "x"], d=["1", " ?", "2"]), f"t.{kind}")
        frame = read_table(f"t.{kind}", discrete=["c"])
        assert present(frame).tolist() == [[True] * 4, [True, True, False, False], [True] * 4]
        assert frame["d"].tolist()[::2] == [1.0, 2.0]


def test_all_columns_that_cannot_be_used_are_named_at_once():
    FRAME.assign(name=["Al", "Bob", "Cy"], when=DAYS).to_csv("t.csv", index=False)
    with pytest.raises(DataError) as caught:
        read_table("t.csv")
    assert str(caught.value) == (
        "t.csv: column 'name' holds text with 3 different values in 3 rows, which looks like names, not "
        "categories: 'Al' in row 1 (line 2); column 'when' holds dates or times: '2020-01-30' in row 1 "
        "(line 2). Convert them to numbers, leave them out with drop=['name', 'when'], or treat them as "
        "categories with discrete=['name', 'when']."
    )


@pytest.mark.parametrize(
    ("header", "suspicious"),
    [("1.5,2", True), ("-3,1e5", True), ("7", True), ("0,1", False), ("a,1", False), ("1,", False)],
)
def test_a_header_of_numbers_is_suspicious(folder, header, suspicious, recwarn):
    commas = header.count(",")
    (folder / "t.csv").write_text("\n".join([header, *(f"{i}.5{',2' * commas}" for i in range(3))]))
    read_table("t.csv", drop=[""] if header.endswith(",") else ())
    assert [
        str(warning.message).startswith("all column names of t.csv are numbers") for warning in recwarn
    ] == ([True] if suspicious else [])


def test_places_in_files(folder):
    (folder / "t.csv").write_text('a,b\n\n1,"x\ny"\n\n2,z\n')
    assert [place("t.csv", row) for row in (1, 2)] == ["row 1 (line 4)", "row 2 (line 6)"]
    assert place("t.parquet", 2) == "row 2"


def test_the_place_of_a_hole_survives_the_loss_of_other_rows():
    FRAME.assign(c=[1.0, 2.0, np.nan]).to_csv("t.csv", index=False)
    with pytest.raises(DataError, match=r"column 'c', in row 3 \(line 4\)\. Mend it\."):
        require_complete("t.csv", read_table("t.csv").iloc[1:], "Mend it.")
