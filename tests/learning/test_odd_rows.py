import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn.numerics.spreads import odd_values

from strategies import nonlinear_frame

FRAME = nonlinear_frame(120, 4, seed=5)
TEST = nonlinear_frame(50, 4, seed=6)


def with_odd_row(frame, column, times=1e6, place=40):
    """Insert a copy of a row, of which one cell is very far out."""
    row = frame.iloc[[7]].copy()
    row[column] = row[column].astype(float) + times * frame[column].std()
    return pd.concat([frame.iloc[:place], row, frame.iloc[place:]], ignore_index=True)


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("times", [1e6, -1e6, 1e12])
def test_one_odd_row_makes_no_difference(margins, times):
    options = {"model": "blend", "margins": margins, "patience": 1}
    clean = spbn.learn(FRAME, **options)
    with pytest.warns(UserWarning, match=r"1 row is left out.*b = .* in row 41"):
        odd = spbn.learn(with_odd_row(FRAME, "b", times), **options)
    assert odd.structure == clean.structure
    np.testing.assert_array_equal(odd.logpdf(TEST), clean.logpdf(TEST))
    assert (clean.record.left_out, odd.record.left_out) == (0, 1)
    assert odd.record.rows == clean.record.rows
    assert odd.record.typical == clean.record.typical


@pytest.mark.parametrize("options", [{"model": "gbn"}, {"model": "kdebn"}, {}])
def test_the_models_of_the_paper_learn_from_all_rows(options):
    network = spbn.learn(with_odd_row(FRAME, "b"), patience=0, max_parents=1, **options)
    assert network.record.left_out == 0
    assert network.record.rows == len(FRAME) + 1


def test_other_types_and_margins_of_these_do_not():
    for options in ({"types": ("lg", "curve")}, {"model": "gbn", "margins": "yeo-johnson"}):
        with pytest.warns(UserWarning, match="1 row is left out"):
            assert spbn.learn(with_odd_row(FRAME, "b"), patience=0, **options).record.left_out == 1


def test_labels_of_folds_are_those_of_the_other_rows():
    labels = np.arange(len(FRAME)) % 5
    options = {"model": "blend", "validation": TEST, "patience": 0}
    clean = spbn.learn(FRAME, folds=labels, **options)
    with pytest.warns(UserWarning, match="left out"):
        odd = spbn.learn(with_odd_row(FRAME, "c"), folds=np.insert(labels, 40, 3), **options)
    assert odd.search.score == clean.search.score


@pytest.mark.slow
def test_rows_with_holes_are_left_out_before_these_are_filled():
    holes = FRAME.mask(np.random.default_rng(0).random(FRAME.shape) < 0.05)
    options = {"model": "blend", "missing": "impute", "max_parents": 1, "patience": 0}
    clean = spbn.learn(holes, **options)
    with pytest.warns(UserWarning, match="1 row is left out"):
        odd = spbn.learn(with_odd_row(holes, "d"), **options)
    np.testing.assert_array_equal(odd.logpdf(TEST), clean.logpdf(TEST))
    assert odd.record.left_out == 1


def test_windows_of_time_with_an_odd_cell_are_left_out():
    rng = np.random.default_rng(0)
    walk = np.empty(150)
    walk[0] = 0.0
    for t in range(1, 150):
        walk[t] = 0.8 * walk[t - 1] + rng.standard_normal()
    walk[70] = 1e7
    left_out = (pytest.warns(UserWarning, match=f"{rows} left out") for rows in ("1 row is", "2 rows are"))
    with next(left_out), next(left_out):
        network = spbn.learn_dynamic(pd.DataFrame({"x": walk}), lags=1, model="blend", patience=0)
    assert network.transition.record.left_out == 2  # once as the present, once as the past
    assert np.isfinite(network.logpdf(pd.DataFrame({"x": walk}))).all()


def test_files_remember_how_many_rows_were_left_out(tmp_path):
    with pytest.warns(UserWarning, match="left out"):
        network = spbn.learn(with_odd_row(FRAME, "b"), model="blend", patience=0)
    network.save(tmp_path / "m.spbn")
    assert spbn.BayesianNetwork.load(tmp_path / "m.spbn").record.left_out == 1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), rows=st.integers(12, 400), power=st.floats(3.5, 250.0), holes=st.booleans())
def test_single_values_far_out_are_odd_and_no_others(seed, rows, power, holes):
    rng = np.random.default_rng(seed)
    column = rng.normal(rng.normal(0.0, 10.0), rng.exponential() + 0.01, rows)
    if holes:
        column[rng.integers(rows)] = np.nan
    place = int(rng.integers(rows))
    width = np.nanstd(np.delete(column, place))
    column[place] = np.nanmean(np.delete(column, place)) + rng.choice([-1, 1]) * 10.0**power * width
    expected = np.arange(rows) == place
    np.testing.assert_array_equal(odd_values(column), expected)


@pytest.mark.parametrize("draw", ["lognormal", "standard_cauchy", "zeros", "constant but one", "empty"])
def test_columns_with_heavy_tails_or_few_values_have_no_odd_values(draw):
    rng = np.random.default_rng(0)
    column = {
        "lognormal": lambda: rng.lognormal(0.0, 4.0, 5000),
        "standard_cauchy": lambda: rng.standard_cauchy(300),
        "zeros": lambda: np.where(rng.random(1000) < 0.85, 0.0, rng.exponential(1.0, 1000)),
        "constant but one": lambda: np.append(np.ones(99), 1e9),
        "empty": lambda: np.full(5, np.nan),
    }[draw]()
    assert not odd_values(column).any()
