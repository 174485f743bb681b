"""Columns that say nothing new are refused by name; those that only look alike are not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn.errors import DataError
from spbn.tables.reader import as_table
from spbn.tables.table import require_distinct, require_variation


def columns(rows=60, seed=0):
    return dict(zip("abc", np.random.default_rng(seed).normal(size=(3, rows)), strict=True))


def test_copies_are_refused_by_name():
    data = columns()
    with pytest.raises(
        DataError, match=r"column 'twin' is a copy of column 'b': leave it out \(drop=\['twin'\]"
    ):
        require_distinct(as_table(data | {"twin": data["b"]}))


@pytest.mark.parametrize("factor", [2.0, -1.0, 1e-9, 1e12, 9 / 5])
@pytest.mark.parametrize("offset", [0.0, 32.0, -1e9])
def test_rescaled_copies_are_refused_by_name(factor, offset):
    data = columns()
    if abs(factor) < 1e-6 and offset:
        offset *= factor  # or the copy would be rounded away
    other = factor * data["a"] + offset
    with pytest.raises(DataError, match=r"column 'other' is a rescaled copy of column 'a'"):
        require_distinct(as_table(data | {"other": other}))


@given(st.integers(0, 500), st.floats(1e-4, 1.0))
def test_near_copies_are_not_refused(seed, noise):
    data = columns(seed=seed)
    near = data["a"] + noise * np.random.default_rng(seed + 1).normal(size=60)
    require_distinct(as_table(data | {"near": near}))
    require_distinct(as_table(data | {"near": 1e6 * near - 1e9}))


def test_a_thousandth_of_noise_is_enough():
    for seed in range(20):
        data = columns(seed=seed)
        noise = 1e-3 * np.std(data["a"]) * np.random.default_rng(seed + 1).normal(size=60)
        require_distinct(as_table(data | {"near": data["a"] + noise}))


def test_columns_that_share_an_outlier_are_not_refused():
    """One row alone makes the correlation 1, but the others say that the columns have nothing in common."""
    for outlier in (1e6, 1e9, 1e12):
        data = columns()
        data["a"][7] = data["b"][7] = outlier
        assert np.corrcoef(data["a"], data["b"])[0, 1] > 1 - 1e-9
        require_distinct(as_table(data))
    data = columns(300)
    data["a"][7] = data["b"][7] = 1e9
    assert np.isfinite(spbn.learn(data, model="gbn").logpdf(data)).all()


def test_a_copy_with_an_outlier_is_still_a_copy():
    data = columns()
    data["a"][7] = 1e9
    with pytest.raises(DataError, match="'d' is a rescaled copy of column 'a'"):
        require_distinct(as_table(data | {"d": 3 * data["a"]}))


def test_columns_of_few_values():
    """Most rows alike leaves no spread between the quartiles."""
    rare = np.zeros(60)
    rare[[4, 40]] = 1.0
    other = np.zeros(60)
    other[[4, 41]] = 1.0
    require_distinct(as_table({"rare": rare, "other": other}))
    with pytest.raises(DataError, match="'other' is a rescaled copy of column 'rare'"):
        require_distinct(as_table({"rare": rare, "other": 1 - rare}))


def test_learning_refuses_copies_and_drops_them_on_request():
    data = columns()
    data["copy"] = 9 / 5 * data["a"] + 32
    with pytest.raises(DataError, match="'copy' is a rescaled copy of column 'a'"):
        spbn.learn(data)
    assert spbn.learn(data, drop=["copy"]).nodes == ("a", "b", "c")


@pytest.mark.parametrize(
    ("scale", "extent", "possible"), [(1e160, "much", 1e145), (1e-170, "little", 1e-145)]
)
def test_columns_whose_numbers_cannot_be_squared_are_refused_by_name(scale, extent, possible):
    data = columns()
    with pytest.raises(DataError, match=rf"column 'b' varies too {extent} \(by .*\).*: rescale it"):
        require_variation(as_table(data | {"b": scale * data["b"]}))
    require_variation(as_table(data | {"b": possible * data["b"]}))
