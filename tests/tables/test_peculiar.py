import numpy as np

from spbn.tables.frames import as_table
from spbn.tables.peculiar import few_valued, identifiers

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
