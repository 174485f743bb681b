"""The data check, against tables made to have each fault."""

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.diagnostics.data_check import check_data
from spbn.tables.table import Variable


def faulty():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    frame = pd.DataFrame(
        {
            "a": a,
            "number": np.arange(200.0),
            "flag": rng.integers(0, 2, 200).astype(float),
            "copy": a,
            "scaled": 3.0 - 2.0 * a,
            "spike": np.where(np.arange(200) < 80, 0.0, a),
            "constant": 7.0,
            "coded": np.where(np.arange(200) % 50 == 3, -999.0, rng.normal(20.0, 5.0, 200)),
            "town": ["Leith"] * 150 + ["Stockbridge"] * 48 + ["Portobello"] * 2,
            "comment": "not used",
        }
    )
    levels = ("Leith", "Portobello", "Stockbridge")
    variables = [Variable(n, levels if n == "town" else ()) for n in frame.columns if n != "comment"]
    return frame, variables


def test_every_fault_is_noted():
    frame, variables = faulty()
    found = check_data(frame, variables)
    notes = {column.name: column.notes for column in found.columns}
    assert notes == {
        "a": (),
        "number": ("a different whole number in every row: does it only number the rows?",),
        "flag": ("few different numbers: are they categories?",),
        "copy": ("a copy of a",),
        "scaled": ("a rescaled copy of a", "a rescaled copy of copy"),
        "spike": ("40 % of the rows are exactly 0",),
        "constant": ("always the same value",),
        "coded": ("-999 is far from all other values: does it stand for a missing one?",),
        "town": ("1 level with fewer than 5 rows",),
    }
    assert found.unused == ("comment",)
    assert (found.rows, found.missing, found.incomplete, found.repeated) == (200, 0, 0, 0)
    by_name = {column.name: column for column in found.columns}
    assert by_name["a"].read_as == "numbers"
    assert by_name["number"].read_as == "whole numbers"
    assert by_name["town"].read_as == "levels"
    assert by_name["town"].commonest == ("Leith", 0.75)
    assert by_name["a"].extent == (frame["a"].min(), frame["a"].median(), frame["a"].max())
    assert by_name["spike"].distinct == frame["spike"].nunique()


def test_holes_and_repeated_rows_are_counted():
    frame, variables = faulty()
    frame = pd.concat([frame, frame.iloc[[3, 3, 5]]], ignore_index=True)
    frame.loc[10:119, "a"] = np.nan
    frame.loc[119, "town"] = None
    found = check_data(frame, variables)
    assert found.repeated == 3
    assert found.incomplete == 110
    assert found.missing == 111
    by_name = {column.name: column for column in found.columns}
    assert by_name["a"].missing == 110
    assert by_name["a"].notes == ("more than half of it is missing",)
    assert by_name["town"].missing == 1


@pytest.mark.parametrize("rows", [1, 2])
def test_tiny_tables(rows):
    frame, variables = faulty()
    assert check_data(frame[:rows], variables).rows == rows


def test_an_alarm_is_raised_no_more_often_than_stated():
    """By simulation: new rows from where the reference came from, scored by a network that is given."""
    rng = np.random.default_rng(0)
    network = spbn.BayesianNetwork.fit(spbn.Structure("a"), {"a": rng.normal(size=500)})
    alarms = []
    for _ in range(400):
        found = spbn.explain.unusual_rows(network, {"a": rng.normal(size=59)})
        level = found.alarm(0.1)  # the 6th of 60
        alarms.append((network.logpdf({"a": rng.normal(size=50)}) <= level).mean())
    assert np.mean(alarms) == pytest.approx(0.1, abs=0.012)
    assert found.alarm(0.01) is None
    assert found.alarm(1 / 60) == found.logpdf.min()
    assert found.alarm(2 / 60) == np.sort(found.logpdf)[1]


def test_many_rows_may_be_as_unusual_as_the_threshold():
    rng = np.random.default_rng(0)
    network = spbn.BayesianNetwork.fit(
        spbn.Structure("a", types={"a": "discrete"}),
        {"a": rng.choice(["x", "y", "z"], 300, p=[0.5, 0.3, 0.2])},
    )
    found = spbn.explain.unusual_rows(network, {"a": rng.choice(["x", "y", "z"], 300, p=[0.5, 0.3, 0.2])})
    level = found.alarm(0.01)
    new = network.logpdf({"a": rng.choice(["x", "y", "z"], 2000, p=[0.5, 0.3, 0.2])})
    assert (new <= level).mean() == pytest.approx(0.2, abs=0.05)
    assert (new < level).mean() <= 0.01


def test_numbers_that_cannot_be_squared_are_checked_without_a_word():
    """Warnings are errors in tests."""
    frame = pd.DataFrame({"a": [1.0, 2.0, 1e200], "b": [2.0, 1.0, -1e300]})
    assert check_data(frame, [Variable("a"), Variable("b")]).rows == 3
