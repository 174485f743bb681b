"""How messy tables are read: every decision, single values, and records in files."""

import datetime
import json
import math
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from messy import write_all
from spbn.errors import ArgumentError, DataError, ModelFileError
from spbn.tables.preparation import Prepared, missing_codes_of, number_format, prepare
from spbn.tables.readings import Preparation, Reading, moment

RNG = np.random.default_rng(0)
X = RNG.normal(50, 9, 60).round(1)


def kinds(found: Prepared):
    """The kinds of what was found, by column."""
    by_column = {}
    for finding in found.findings:
        by_column.setdefault(finding.column, []).append(finding.kind)
    return by_column


def look(**columns):
    """Prepare columns, beside one of numbers."""
    size = len(next(iter(columns.values())))
    return prepare(pd.DataFrame({**columns, "x": np.resize(X, size) + np.arange(size) % 7}))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    return folder, {table.file: table for table in write_all(folder)}


FILES = [
    "index.csv", "codes.csv", "units.csv", "currencies.csv", "german.csv", "spaces.csv",
    "spellings.csv", "truth.csv", "dates.csv", "hours.csv", "names.csv", "copies.csv", "holes.csv",
    "words.csv", "orders.csv", "titles.csv", "sheets.xlsx", "lines.jsonl", "kinds.parquet",
    "zeros.csv", "everything.csv", "survey.csv", "export.csv", "levels.csv", "twice.csv",
]  # fmt: skip


def test_all_tables_are_tried(tables):
    assert list(tables[1]) == FILES


@pytest.mark.parametrize("file", FILES)
def test_a_person_agrees_with_every_decision(file, tables):
    folder, made = tables
    table = made[file]
    found = prepare(table.read(folder), decimal="," if table.options.get("sep") == ";" else None)
    assert {name: tuple(each) for name, each in kinds(found).items()} == table.findings
    assert tuple(found.frame) == table.nodes
    for name, reading in found.preparation.readings.items():
        assert isinstance(found.frame[name].dtype, pd.CategoricalDtype) == reading.is_level
    again = Preparation.from_plain(json.loads(json.dumps(found.preparation.to_plain())))
    pd.testing.assert_frame_equal(again.frame(table.read(folder)).loc[found.frame.index], found.frame)
    pd.testing.assert_frame_equal(again.frame(found.frame), found.frame)  # what is read already stays


@pytest.mark.parametrize(
    ("written", "how", "number"),
    [
        ("1,234.5", {"thousands": ","}, 1234.5),
        ("1.234,5", {"thousands": ".", "decimal": ","}, 1234.5),
        ("1\u00a0234,5", {"thousands": " ", "decimal": ","}, 1234.5),
        ("1'234.5", {"thousands": "'"}, 1234.5),
        ("12 kg", {"after": "kg"}, 12.0),
        ("12KG", {"after": "kg"}, 12.0),
        ("-$5", {"before": "$"}, -5.0),
        ("$-5", {"before": "$"}, -5.0),
        ("($1,200)", {"before": "$", "thousands": ","}, -1200.0),
        ("\u22125.5 %", {"after": "%"}, -5.5),
        ("+1e-3", {}, 0.001),
        (" 7 ", {}, 7.0),
        ("7.5", {"decimal": ","}, None),
        ("1_000", {}, None),
        ("nan", {}, None),
        ("inf", {}, None),
        ("12 kg", {}, None),
        ("~12 m2", {"after": "m2"}, 12.0),
        ("--5", {}, None),
        ("", {}, None),
    ],
)
def test_numbers_as_people_write_them(written, how, number):
    assert Reading(source="x", **how).parse(written) == number


@given(
    st.floats(-1e9, 1e9), st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", ".")]), st.integers(0, 6)
)
def test_numbers_are_read_as_they_were_written(number, marks, digits):
    thousands, decimal = marks
    text = f"{number:,.{digits}f}"
    written = text.translate({ord(","): thousands, ord("."): decimal})
    assert Reading(source="x", thousands=thousands, decimal=decimal).parse(written) == float(
        text.replace(",", "")
    )


@pytest.mark.parametrize(
    ("texts", "decimal", "how"),
    [
        (["1,234", "567", "12,000"], None, {"thousands": ","}),
        (["1,5", "2,25"], None, {"decimal": ","}),
        (["1,234", "5,678"], ",", {"decimal": ","}),
        (["1.234.567", "12.000"], None, {"decimal": ",", "thousands": "."}),
        (["1.5", "2.25"], None, {}),
        (["1 kg", "2"], None, {"after": "kg"}),
        (["1 kg", "2 lb"], None, None),
        (["A12", "B7"], None, None),
        (["81 m2", "75 m2"], None, {"after": "m2"}),
        (["1.5e+03 Pa", "2e4 Pa"], None, {"after": "Pa"}),
        (["1.234", "987", "2.000"], ",", {"decimal": ",", "thousands": "."}),
        ([f"5'{k}\"" for k in range(1, 9)], None, None),  # feet and inches
        (["1.5", "2,5", "3,5", "4,5", "5,5"], None, None),
    ],
)
def test_the_marks_of_numbers(texts, decimal, how):
    found = number_format(dict.fromkeys(texts, 1), 3, decimal)
    assert (None if found is None else found[0]) == how


@given(st.datetimes(datetime.datetime(1930, 1, 1), datetime.datetime(2068, 12, 31)))
def test_dates_as_people_write_them(when):
    """Against the calendar of Python."""
    day = when.toordinal() - datetime.date(1970, 1, 1).toordinal()
    for form, order in (
        ("%Y-%m-%d", "ymd"),
        ("%Y/%m/%d", "ymd"),
        ("%d.%m.%Y", "dmy"),
        ("%m/%d/%Y", "mdy"),
        ("%d %b %Y", "ymd"),
        ("%B %d, %Y", "ymd"),
        ("%d-%b-%Y", "ymd"),
        ("%a, %d %b %Y", "ymd"),
        ("%Y%m%d", "digits"),
    ):
        assert moment(when.strftime(form), order) == (day, 0), form
    seconds = (when.hour * 60 + when.minute) * 60 + when.second
    assert moment(when.strftime("%Y-%m-%dT%H:%M:%SZ"), "ymd") == (day, seconds * 1_000_000)
    minutes = (when.hour * 60 + when.minute) * 60_000_000
    assert moment(when.strftime("%d/%m/%Y %I:%M %p"), "dmy") == (day, minutes)
    exact = seconds * 1_000_000 + when.microsecond
    assert (
        moment(when, "ymd")
        == moment(np.datetime64(when), "ymd")
        == moment(when.isoformat(" "), "ymd")
        == (day, exact)
    )


def test_what_is_not_a_date():
    first = (datetime.date(2024, 4, 1) - datetime.date(1970, 1, 1)).days
    for text in ("2024Q2", "2024-Q2", "Q2 2024", "Apr 2024", "April 2024", "Apr-24"):
        assert moment(text, "ymd") == (first, 0), text
    assert moment("20240230", "digits") is None
    for text in ("2024-13-01", "31/31/2024", "30 Foo 2024", "2024", "12.5", "yesterday", ""):
        assert moment(text, "dmy") is None


def test_elapsed_days_and_parts_of_dates():
    days = Reading(source="t", kind="days", origin=19_000)
    assert days.value("2022-01-08 12:00") == 0.5
    assert days.value(pd.Timestamp("2022-01-08 12:00")) == 0.5
    assert days.value(0.5) == 0.5
    assert Reading(source="t", kind="days", order="digits", origin=19_000).value(20220108) == 0.0
    months = pd.date_range("2000-01-01", periods=240, freq="MS").strftime("%Y-%m")
    found = prepare({"t": months, "x": np.resize(X, 240), "y": (np.arange(240) % 12 + np.resize(X, 240))})
    assert list(found.frame) == ["t_days", "t_month", "x", "y"]  # no weekday of a whole month
    assert days.value(pd.Timedelta(hours=36)) == 1.5
    assert math.isnan(days.value(pd.NaT))
    assert Reading(source="t", kind="month").value("2022-01-08") == "Jan"
    assert Reading(source="t", kind="weekday").value(datetime.date(2022, 1, 8)) == "Sat"
    assert Reading(source="t", kind="hour").value("2022-01-08 23:59") == "23"
    assert Reading(source="t", kind="hours").value("6:45 PM") == 18.75
    assert Reading(source="t", kind="hours").value(datetime.time(6, 45)) == 6.75
    for kind in ("days", "hours", "month"):
        with pytest.raises(DataError, match=r"column 't' must be a (date|time)"):
            Reading(source="t", kind=kind).value("soon")


def test_names_are_left_out_and_categories_are_not():
    states = [f"state {k}" for k in range(56)]
    assert "state" not in kinds(look(state=np.resize(states, 3364)))
    assert "sex" not in kinds(prepare({"sex": ["f", "m", "f", "f", "m"], "x": X[:5]}))
    assert kinds(look(name=[f"n{k}" for k in range(60)]))["name"] == ["name"]
    assert kinds(look(name=np.resize([f"n{k}" for k in range(51)], 500)))["name"] == ["name"]


def test_numbers_that_count_or_tell_rows_apart():
    rows = np.arange(60)
    assert kinds(prepare({"": rows, "x": X}))[""] == ["index"]
    assert kinds(prepare({"Unnamed: 0": rows + 1, "x": X}))["Unnamed: 0"] == ["index"]
    assert kinds(prepare({"x": X, "PassengerId": rows * 3}))["PassengerId"] == ["id"]
    assert kinds(prepare({"x": X, "price": RNG.permutation(60) * 3 + 5}))["price"] == ["numbers"]
    assert "year" not in kinds(prepare({"year": rows + 1950, "x": X}))
    assert "Unnamed: 0" not in kinds(prepare({"Unnamed: 0": X, "x": X[::-1]}))


def test_codes_for_missing_values_stand_apart():
    assert missing_codes_of(np.r_[np.linspace(0, 10, 20), -999, 9999, 999]) == [-999, 999, 9999]
    assert missing_codes_of(np.r_[np.linspace(0, 990, 20), 999]) == []
    assert missing_codes_of(np.r_[np.linspace(300, 1700, 20), -999, -99]) == [-999, -99]
    assert missing_codes_of(np.r_[np.linspace(1, 3, 20), -9, -9]) == [-9]
    assert missing_codes_of(np.r_[np.linspace(1, 3, 20), -9]) == []
    assert missing_codes_of(np.r_[np.linspace(-300, 1700, 20), -99]) == []
    found = look(a=np.r_[X[:-2], -999, 9999])
    assert found.preparation.readings["a"].missing == ("-999", "9999")
    assert found.frame["a"].isna().sum() == 2
    assert found.missing == "impute"


def test_codes_that_are_given():
    frame = pd.DataFrame({"a": np.r_[X[:-1], -1.0], "b": [*("uv" * 29), "unknown", "u"], "x": X[::-1]})
    found = prepare(frame, na=[-1, "unknown"])
    assert found.frame.isna().sum().tolist() == [1, 1, 0]
    assert math.isnan(found.preparation.readings["a"].value(-1))
    assert found.preparation.readings["b"].value(" unknown") is None


def test_words_among_numbers():
    found = look(a=["n.d.", *map(str, X[1:])])
    assert kinds(found)["a"] == ["word"]
    words = ["red", "green", "blue", "grey", "black"]
    assert "word" not in kinds(look(a=np.resize([*words, "1"], 60))).get("a", ())


def test_levels_that_mean_the_same():
    found = look(sex=np.resize(["Male", " Male", "male", "Female", "female "], 60))
    assert found.frame["sex"].cat.categories.tolist() == ["Female", "Male"]
    reading = found.preparation.readings["sex"]
    assert reading.value("  MALE") == "Male"
    assert reading.value("other") == "other"  # which the network refuses, by its levels
    assert look(a=np.resize(["yes", "No", "Y", "no", "TRUE"], 60)).frame["a"].cat.categories.tolist() == [
        "no",
        "yes",
    ]
    assert look(a=np.resize([True, False, None], 60)).frame["a"].cat.categories.tolist() == ["False", "True"]


def test_ticks_and_dashes():
    found = look(paid=np.resize(["x", None, None], 60), sign=np.resize(["+", "-"], 60))
    assert found.frame["paid"].value_counts().to_dict() == {"no": 40, "x": 20}
    assert sorted(set(found.frame["sign"])) == ["+", "-"]
    reading = found.preparation.readings["paid"]
    assert [reading.value(value) for value in ("x", " X", "", None, math.nan)] == ["x", "x", "no", "no", "no"]
    found = look(a=np.resize(["u", "v", "-", "n/a"], 60), b=np.resize(["none", "low", "high"], 60))
    assert found.frame["a"].cat.categories.tolist() == ["u", "v"]
    assert found.frame["b"].cat.categories.tolist() == ["none", "low", "high"]


def test_points_between_thousands_that_were_read_as_decimal_points():
    reading = Reading(source="sold", thousands=".", decimal=",")
    assert reading.column(np.array(["1.234", "987"], object)).tolist() == [1234.0, 987.0]
    assert reading.column(np.array([1234.5, 987.25])).tolist() == [1234.5, 987.25]
    with pytest.raises(DataError, match=r"'sold' has points between thousands, and numbers such as 1\.234"):
        reading.column(np.array([1.234, 987.0]))


def test_what_holds_lists_is_left_out_and_ignored():
    rows = [{"x": x, "y": 2 * x + k % 3, "tags": ["a"]} for k, x in enumerate(X.tolist())]
    found = prepare(pd.DataFrame(rows))
    assert kinds(found) == {"tags": ["objects"]}
    network = spbn.learn(pd.DataFrame(rows), prepare="auto", model="gbn")
    scorer = spbn.RowScorer(network)
    np.testing.assert_allclose(
        [scorer.score(row).logpdf for row in rows], network.logpdf(pd.DataFrame(rows)), rtol=1e-12
    )
    assert scorer.logpdf([{" x ": 20.5, "y": 41.0, "tags": []}]).shape == (1,)


def test_levels_with_an_order():
    for levels in (
        ("low", "medium", "high"),
        ("18-24", "25-34", "35 or more"),
        ("S", "M", "XL"),
        ("5 kg", "10 kg"),
    ):
        found = look(a=np.resize(levels[::-1], 60))
        assert tuple(found.frame["a"].cat.categories) == levels
    ordered = pd.Categorical(np.resize(["b", "a", "c"], 60), ["c", "a", "b"], ordered=True)
    assert look(a=ordered).frame["a"].cat.categories.tolist() == ["c", "a", "b"]


def test_columns_that_say_nothing_are_left_out_at_once():
    found = prepare(
        {"x": X, "empty": [None] * 60, "few": [1.5, 2.5] + [None] * 58, "k": [7] * 60, "y": 3 - 2 * X, "z": X}
    )
    assert kinds(found) == {
        "empty": ["empty"],
        "few": ["sparse"],
        "k": ["constant"],
        "y": ["copy"],
        "z": ["copy"],
    }
    assert list(found.frame) == ["x"]
    with pytest.raises(DataError, match=r"no column is left to learn from: 'k' \(always 7\)"):
        prepare({"k": [7, 7]})


def test_categories_by_other_names():
    found = look(target=np.resize([0, 1, 2], 60), species=np.resize(["a", "b", "c"], 60))
    assert kinds(found) == {"target": ["category"], "species": ["same"]}


def test_wrong_values_are_flagged_and_stay():
    wide = np.r_[RNG.normal(5.7, 1.0, 998).clip(3.7), 0.0, 58.9]
    found = prepare({"y": wide, "x": RNG.normal(size=1000)})
    assert kinds(found) == {"y": ["zeros", "far"]}
    assert found.frame["y"].tolist() == wide.tolist()
    assert "zeros" not in kinds(look(a=RNG.poisson(2.0, 60) + 0.0)).get("a", ())  # counts
    assert kinds(look(a=np.where(np.arange(60) % 9, 70.5 + X, 0.0)))["a"] == ["zeros"]
    assert kinds(prepare({"y": RNG.standard_t(3, 1000), "x": RNG.lognormal(0, 1, 1000)})) == {}


def test_rows_without_any_value_are_left_out():
    found = prepare(pd.DataFrame({"a": [*X[:10], None], "b": [*X[10:20], None]}, index=range(5, 16)))
    assert found.frame.index.tolist() == list(range(5, 15))
    assert found.missing == "error"


def test_columns_of_several_levels():
    frame = pd.DataFrame(
        np.c_[X, X[::-1]], columns=pd.MultiIndex.from_tuples([("size", "mean"), ("size", "")])
    )
    assert list(prepare(frame).frame) == ["size_mean", "size"]
    network = spbn.learn(frame, model="gbn")
    assert network.nodes == ("size_mean", "size")
    assert network.logpdf(frame).index.equals(frame.index)


def test_what_drop_and_discrete_say_comes_first():
    frame = pd.DataFrame({"a": np.arange(60), "b": [f"n{k}" for k in range(60)], "x": X})
    found = prepare(frame, drop=["a"], discrete=["b"])
    assert list(found.frame) == ["b", "x"]
    with pytest.raises(DataError, match="drop names unknown columns: 'q'"):
        prepare(frame, drop="q")


MESSY = pd.DataFrame(
    {
        "Unnamed: 0": np.arange(60),
        "weight": [f"{x} kg" for x in X],
        "sex": np.resize(["Male", " Male", "female"], 60),
        "when": [f"{k % 28 + 1}/{k // 28 + 1}/2024" for k in range(60)],
        "pulse": np.r_[X[::-1][:-1] + 20, -999],
    }
)


@pytest.fixture(scope="module")
def network():
    return spbn.learn(MESSY, prepare="auto", model="gbn")


def test_a_network_reads_rows_as_it_was_learned(network, tmp_path):
    network.save(tmp_path / "m.spbn")
    for known in (network, spbn.BayesianNetwork.load(tmp_path / "m.spbn"), network.compact()):
        whole = MESSY.iloc[:-1]
        expected = network.logpdf(network.preparation.frame(whole))
        for rows in (whole, pl.DataFrame(whole), whole.to_dict("list")):
            np.testing.assert_array_equal(known.logpdf(rows), expected)
    scorer = spbn.load_scorer(tmp_path / "m.spbn")
    for rows in (whole, whole.to_dict("records"), whole.to_dict("list")):
        np.testing.assert_array_equal(scorer.logpdf(rows), expected)
    assert [scorer.score(row).logpdf for row in whole.to_dict("records")] == pytest.approx(
        expected, abs=1e-12
    )
    assert np.isfinite(network.logpdf(network.sample(20, seed=0))).all()
    filled = network.impute(MESSY)
    assert filled.notna().all(axis=None)
    assert filled["weight"].tolist() == X.tolist()
    predicted = network.predict(MESSY.drop(columns="weight"), ["weight"])
    assert predicted["weight"].between(0, 150).all()
    with pytest.raises(DataError, match="column 'sex' has the level 'other'"):
        network.logpdf(whole.assign(sex="other"))
    with pytest.raises(
        DataError, match=r"column 'weight' must be a number, such as 1234\.5 kg\. Got '12 stone'"
    ):
        network.logpdf(whole.assign(weight="12 stone"))


def test_a_monitor_reads_rows_alike(network):
    monitor = spbn.Monitor(network, MESSY.iloc[:-1].sample(frac=1, random_state=0), alarm=0.01)
    assert monitor.update(MESSY.iloc[:5].to_dict("records"))["p_value"].notna().all()


def test_a_preparation_can_be_given(network):
    again = spbn.learn(MESSY, prepare=network.preparation, model="gbn")
    assert again == network
    assert again.preparation == network.preparation


def test_where_a_preparation_cannot_be_given():
    for work in (spbn.confidence, spbn.compare_models, spbn.learn_dynamic):
        with pytest.raises(
            ArgumentError, match=r"prepare is for spbn.learn: pass spbn.prepare\(data\).frame"
        ):
            work(MESSY, prepare="auto")
    with pytest.raises(ArgumentError, match="prepare must be one of 'none', 'auto'"):
        spbn.learn(MESSY, prepare="yes")
    with pytest.raises(ArgumentError, match="prepare can be given for tables in memory only"):
        spbn.learn("rows.parquet", prepare="auto")


def damaged(network, path, change):
    """Write a network whose preparation is something else."""
    network.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["network.json"])
    document["preparation"] = change(document["preparation"])
    parts["network.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def changed(column, **record):
    return lambda known: known | {"columns": known["columns"] | {column: known["columns"][column] | record}}


@pytest.mark.parametrize(
    "change",
    [
        lambda known: [],
        lambda known: {**known, "code": "print(1)"},
        lambda known: {**known, "columns": {}},
        lambda known: {**known, "columns": []},
        lambda known: {**known, "columns": {f"c{k}": {"source": "c"} for k in range(5000)}},
        lambda known: {**known, "columns": known["columns"] | {"nobody": {"source": "nobody"}}},
        lambda known: {**known, "skip_rows": -1},
        lambda known: {**known, "skip_rows": True},
        lambda known: {**known, "sheet": 3},
        lambda known: {**known, "findings": [["a", "b"]]},
        lambda known: {**known, "findings": [["a"] * 5] * 40_000},
        lambda known: {**known, "findings": [["a" * 5000] * 5]},
        changed("weight", kind="eval"),
        changed("weight", kind="level"),
        changed("weight", kind=["number"]),
        changed("weight", source=None),
        changed("weight", formula="x + 1"),
        changed("weight", decimal=";"),
        changed("weight", thousands="."),
        changed("weight", after=["kg"]),
        changed("weight", after="k" * 5000),
        changed("weight", missing="abc"),
        changed("weight", missing=[1]),
        changed("sex", aliases=[["a", "b"]]),
        changed("sex", aliases={"a": 1}),
        changed("sex", levels=["a"] * 70_000),
        changed("when_days", order="dym"),
        changed("when_days", origin=1e9),
        changed("when_days", origin=1 << 40),
    ],
)
def test_records_that_make_no_sense_are_refused(change, network, tmp_path):
    damaged(network, tmp_path / "bad.spbn", change)
    with pytest.raises(ModelFileError, match="preparation"):
        spbn.BayesianNetwork.load(tmp_path / "bad.spbn")
