import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.explain.early_stops import early_stop
from spbn.tables.frames import as_table


def curve(rows, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.1 * rng.normal(size=rows)})


@pytest.mark.parametrize("seed", range(5))
def test_a_search_on_sound_rows_is_not_blamed_on_any(seed):
    frame = curve(200, seed)
    assert early_stop(spbn.learn(frame, seed=seed, patience=0).search, as_table(frame)) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_reading_among_the_validation_rows_is_found(seed):
    frame = curve(200, seed)
    row = spbn.tables.splits.holdout_rows(200, 0.2, np.random.default_rng(seed))[1][3]
    frame.loc[row, "b"] = 25.0
    network = spbn.learn(frame, seed=seed, patience=0)
    assert network.structure.arcs == ()  # for the sake of one row
    found = early_stop(network.search, as_table(frame))
    assert [(far.row, far.node) for far in found.rows] == [(row, "b")]
    assert found.gain > 50


def test_other_searches_have_no_such_rows():
    frame = curve(100, 0)
    assert early_stop(None, as_table(frame)) is None
    assert early_stop(spbn.learn(frame, algorithm="pc", test="plc").search, as_table(frame)) is None
    assert early_stop(spbn.learn(frame, model="gbn").search, as_table(frame)) is None
