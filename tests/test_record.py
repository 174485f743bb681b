"""How a network came about, and the hash of the table that it came from."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn import Structure
from spbn.errors import ModelFileError
from spbn.record import Record, from_plain, plain_settings, to_plain
from spbn.tables.reader import as_table

from strategies import nonlinear_frame

FRAME = nonlinear_frame(30, 3)


def digest(frame):
    return as_table(frame).digest


def test_the_hash_of_a_table_is_that_of_its_numbers_and_names():
    expected = digest(FRAME)
    assert digest(FRAME[["c", "a", "b"]]) == expected
    assert digest(FRAME.to_dict("list")) == expected
    assert digest(FRAME.set_index(np.arange(30) + 7)) == expected
    assert digest(FRAME.rename(columns={"a": "z"})) != expected
    assert digest(FRAME.rename(columns={"c": "z"})) != expected  # which leaves their order
    assert digest(FRAME.rename(columns={"a": "b", "b": "a"})) != expected
    assert digest(FRAME[::-1]) != expected
    assert digest(FRAME[:-1]) != expected
    changed = FRAME.copy()
    changed.loc[3, "b"] = np.nextafter(changed.loc[3, "b"], 9.0)
    assert digest(changed) != expected
    # Names and numbers cannot be shifted against each other.
    assert digest(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})) != digest(
        pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    )


def test_the_hash_of_the_data_is_in_the_record():
    holes = FRAME.copy()
    holes.loc[4, "a"] = np.nan
    network = spbn.learn(holes, missing="drop", drop=["c"], folds=3)
    assert network.record.data_hash == digest(FRAME.drop(index=4)[["a", "b"]])
    assert network.record.rows == 29
    assert network.record.columns == ("a", "b")
    assert network.record.seed == 0


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.frozensets(st.integers()),
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), values))
def test_settings_are_plain_whatever_they_are(settings):
    plain = plain_settings(settings)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_settings_that_have_no_plain_form_are_described():
    def rule(data):
        return data

    structure = Structure("ab", [("a", "b")], {"a": "lg", "b": "ckde"})
    plain = plain_settings(
        {
            "bandwidth": rule,
            "start": structure,
            "types": ("lg", spbn.NodeType.CKDE),
            "limit": float("inf"),
            "folds": np.int64(3),
            "data": FRAME,
        }
    )
    assert plain == {
        "bandwidth": "<rule>",
        "start": {"arcs": [["a", "b"]], "types": {"a": "lg", "b": "ckde"}},
        "types": ["lg", "ckde"],
        "limit": "inf",
        "folds": 3,
        "data": "<DataFrame>",
    }


def test_a_record_comes_back():
    record = spbn.learn(FRAME, folds=3, bandwidth="silverman").record
    plain = json.loads(json.dumps(to_plain(record)))
    assert from_plain(plain, search=record.search, type_search=None) == record
    assert record.open_directions
    named = Record(title="houses")
    assert from_plain(to_plain(named), search=None, type_search=None) == named
    assert "open_directions" not in to_plain(Record())
    assert to_plain(Record()) == to_plain(from_plain(to_plain(Record()), search=None, type_search=None))


@pytest.mark.parametrize(
    "change",
    [
        {"rows": -1},
        {"rows": 1.5},
        {"rows": True},
        {"columns": "ab"},
        {"columns": [1]},
        {"settings": []},
        {"versions": {"numpy": 2}},
        {"data_hash": 5},
        {"seconds": "long"},
        {"typical": {"a": None}},
        {"typical": {"a": float("inf")}},
        {"open_directions": "ab"},
        {"open_directions": ["ab"]},
        {"open_directions": [["a", "b", "c"]]},
        {"open_directions": [["a", 1]]},
        {"title": 3},
        {"more": 1},
    ],
)
def test_a_record_that_makes_no_sense_is_refused(change):
    with pytest.raises(ModelFileError, match="record of learning"):
        from_plain(to_plain(Record()) | change, search=None, type_search=None)
    with pytest.raises(ModelFileError, match="record of learning"):
        from_plain(None, search=None, type_search=None)
