"""Series, gaps, lagged tables, and folds that are blocks of time."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn.tables.lags import blocked_split, lagged_table, runs_of
from spbn.tables.reader import as_table


def naive_windows(runs, width):
    """Every window of successive rows, the last row first, one by one."""
    found = []
    start = 0
    for end in runs.ends.tolist():
        rows = runs.order[start:end].tolist()
        found += [rows[last - width + 1 : last + 1][::-1] for last in range(width - 1, len(rows))]
        start = end
    return found


def test_rows_of_a_series_are_joined_wherever_they_are():
    data = {"machine": ["a", "b", "a", "a", "b"], "x": [1.0, 10.0, 2.0, 3.0, 20.0]}
    runs = runs_of(data, series="machine", time=None)
    assert runs.series == ("a", "b")
    assert runs.windows(2).tolist() == [[2, 0], [3, 2], [4, 1]]
    table = lagged_table(as_table({"x": data["x"]}), runs.windows(2), range(2))
    assert table.names == ("x", "x[t-1]")
    np.testing.assert_array_equal(table.columns, [[2, 3, 20], [1, 2, 10]])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 4))
def test_windows_never_cross_the_borders_of_series(series, width):
    runs = runs_of({"s": series, "x": [0.0] * len(series)}, series="s", time=None)
    windows = runs.windows(width)
    assert windows.tolist() == naive_windows(runs, width)
    assert sorted(runs.order.tolist()) == list(range(len(series)))
    for window in windows:
        assert len({series[row] for row in window}) == 1
        assert (np.diff(window) < 0).all()
        between = [series[row] for row in range(window[-1], window[0])].count(series[window[0]])
        assert between == width - 1  # no row of the series is passed over


def test_a_gap_in_time_begins_a_new_run():
    runs = runs_of({"t": [0, 1, 2, 5, 6, 9], "x": range(6)}, series=None, time="t")
    assert runs.ends.tolist() == [3, 5, 6]
    assert runs.step == 1
    assert runs.windows(2).tolist() == [[1, 0], [2, 1], [4, 3]]


def test_small_differences_of_times_are_no_gaps():
    runs = runs_of({"t": [0.0, 1.05, 1.98, 3.0], "x": range(4)}, series=None, time="t")
    assert runs.ends.tolist() == [4]


@pytest.mark.parametrize("kind", ["dates", "text", "polars", "zoned", "objects", "lists", "periods"])
def test_dates_are_times(kind):
    dates = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 10:10", "2024-01-01 10:20", "2024-01-01 11:10"])
    frame = pd.DataFrame({"t": dates, "x": range(4)})
    if kind == "text":
        frame["t"] = frame["t"].astype(str)
    elif kind == "zoned":
        frame["t"] = frame["t"].dt.tz_localize("Europe/Madrid")
    elif kind == "objects":
        frame["t"] = frame["t"].astype(object)
    elif kind == "lists":
        frame = {"t": [date.to_pydatetime() for date in dates], "x": [0, 1, 2, 3]}
    elif kind == "periods":
        frame["t"] = frame["t"].dt.to_period("min")
    runs = runs_of(pl.from_pandas(frame) if kind == "polars" else frame, series=None, time="t")
    assert runs.step == 600
    assert runs.ends.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, 1, 1, 2], r"the time 1 in column 't' appears twice, in rows 2 and 3"),
        ([0, 2, 1, 3], r"not sorted: 1 in row 3, counted from 1, comes after 2 in row 2"),
        (
            [0, 1, 2.3, 3.3, 4.3],
            r"not equally spaced: 1.3 before row 3.*Resample the rows, for example with pandas",
        ),
        ([0, 1, 1.5, 2.5], r"not equally spaced: 0.5 before row 3"),
        ([0, 1, np.nan, 3], r"column 't' has no time in row 3"),
        (["a", "b", "c"], r"column 't' has no time in row 1"),
    ],
)
def test_times_that_make_no_sense(times, message):
    with pytest.raises(spbn.errors.DataError, match=message):
        runs_of({"t": times, "x": range(len(times))}, series=None, time="t")


def test_times_may_repeat_in_different_series():
    data = {"s": ["a", "b", "a", "b"], "t": [0, 0, 1, 1], "x": range(4)}
    assert runs_of(data, series="s", time="t").windows(2).tolist() == [[2, 0], [3, 1]]
    with pytest.raises(spbn.errors.DataError, match="name the column that tells series apart"):
        runs_of(data, series=None, time="t")


def test_the_step_that_is_expected_counts():
    """Rows twice as far apart as those that were learned from do not follow each other."""
    data = {"t": [0, 2, 4], "x": range(3)}
    assert runs_of(data, series=None, time="t").ends.tolist() == [3]
    assert runs_of(data, series=None, time="t", step=1.0).ends.tolist() == [1, 2, 3]


def test_missing_columns_and_series():
    with pytest.raises(spbn.errors.DataError, match=r"lacks the column 'm' \(series='m'\)"):
        runs_of({"x": [1.0]}, series="m", time=None)
    with pytest.raises(spbn.errors.DataError, match="does not say which series row 2"):
        runs_of({"m": ["a", None], "x": [1.0, 2.0]}, series="m", time=None)


def test_times_in_the_index_are_pointed_out():
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([0, 1], name="t"))
    with pytest.raises(spbn.errors.DataError, match=r"It is in the index: pass data.reset_index\(\)"):
        runs_of(frame, series=None, time="t")


def test_a_column_that_is_called_like_a_lagged_one():
    table = as_table({"x": [1.0, 2.0], "x[t-1]": [1.0, 2.0]})
    with pytest.raises(spbn.errors.DataError, match=r"called 'x\[t-1\]'"):
        lagged_table(table, np.array([[1, 0]]), range(2))


@given(st.integers(60, 200), st.integers(1, 4), st.integers(2, 6), st.integers(0, 99), st.integers(1, 3))
def test_no_value_is_in_two_folds(rows, lags, folds, seed, series):
    data = {"s": np.arange(rows) * series // rows, "x": np.zeros(rows)}
    windows = runs_of(data, series="s", time=None).windows(lags + 1)
    split = blocked_split(windows, folds=folds, validation=0.25, seed=seed)
    held_out = set(windows[split.validation].ravel().tolist())
    parts = [set(windows[split.training[split.folds == fold]].ravel().tolist()) for fold in range(folds)]
    parts.append(held_out)
    for i, part in enumerate(parts):
        assert part
        assert not any(part & other for other in parts[:i])
    for fold in range(folds):  # a block of time
        assert np.ptp(split.training[split.folds == fold]) < rows / folds + 1
    used = len(split.training) + len(split.validation)
    assert len(windows) - lags * (folds + len(windows)) <= used <= len(windows)
    assert len(windows) - used <= lags * (folds + max(1, round(folds / 3)) - 1)


def test_shares_of_blocks():
    windows = runs_of({"x": np.zeros(10_000)}, series=None, time=None).windows(2)
    split = blocked_split(windows, folds=10, validation=0.2, seed=0)
    assert len(split.validation) == pytest.approx(2000, abs=5)
    np.testing.assert_allclose(np.bincount(split.folds), 800, atol=2)
    other = blocked_split(windows, folds=10, validation=0.2, seed=1)
    assert not np.array_equal(split.validation, other.validation)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds must be a whole number, 2 or more"),
        ({"validation": 1.0}, "validation must be a fraction"),
        ({"validation": pd.DataFrame()}, "validation must be a fraction"),
        ({"folds": 20}, "too few for 20 folds and 5 blocks"),
    ],
)
def test_splits_that_make_no_sense(options, message):
    windows = runs_of({"x": np.zeros(40)}, series=None, time=None).windows(3)
    with pytest.raises(spbn.errors.ArgumentError, match=message):
        blocked_split(windows, **({"folds": 3, "validation": 0.2, "seed": 0} | options))
