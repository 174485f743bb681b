import numpy as np
import pytest

from spbn.diagnostics.data_check import few_valued, identifiers, missing_codes
from spbn.tables.reader import as_table

ROWS = 20
rng = np.random.default_rng(0)
COLUMNS = {
    "measured": rng.normal(size=ROWS),
    "id": np.arange(1, ROWS + 1),
    "shuffled": rng.permutation(ROWS) * 7,
    "repeated": np.arange(ROWS) // 2,
    "huge": np.arange(1, ROWS + 1) * 1e20,  # whole because there are no digits left
    "flag": np.arange(ROWS) % 2,
    "level": np.arange(ROWS) % 3 / 2,
    "rating": np.arange(ROWS) % 4,
}


def test_identifiers():
    assert identifiers(as_table(COLUMNS)) == ["id", "shuffled"]


def test_few_valued():
    assert few_valued(as_table(COLUMNS)) == ["flag", "level"]


def test_a_few_rows_say_nothing():
    table = as_table({name: column[:5] for name, column in COLUMNS.items()})
    assert identifiers(table) == few_valued(table) == []
    assert missing_codes(as_table({"a": with_ends(0.0, 1.0, [-999.0])[:5]})) == {}


def with_ends(low, high, coded=()):
    """Numbers between two, after some others."""
    return np.r_[np.array(coded, dtype=float), np.linspace(low, high, ROWS - len(coded))]


@pytest.mark.parametrize("code", [-999.0, -9999.0, 999.0, -99.0, 99.9, -99999.0])
def test_nines_far_from_all_others_may_mean_missing(code):
    table = as_table({"coded": with_ends(10.0, 20.0, [code, code]), "measured": with_ends(0.0, 1.0)})
    assert missing_codes(table) == {"coded": code}


@pytest.mark.parametrize(
    "column",
    [
        with_ends(0.0, 99.0),  # a greatest number like any other
        with_ends(-999.0, 999.0),
        with_ends(0.0, 60.0, [99.0, 99.0]),  # not that far
        with_ends(10.0, 20.0, [-998.0]),  # far, but any number
        with_ends(0.1, 0.2, [9.0]),
        np.full(ROWS, 999.0),
        with_ends(5.0, 5.0, [999.0, 999.0]),  # two values: categories, rather
    ],
)
def test_other_numbers_are_not_taken_for_codes(column):
    assert missing_codes(as_table({"a": column})) == {}
