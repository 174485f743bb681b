import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from spbn.errors import ArgumentError, DataError
from spbn.independence import PartialCorrelation

import reference
from strategies import nonlinear_frame


def by_regression(frame, x, y, given_names):
    """The definition: correlate what regressions leave, with the degrees of freedom that they leave."""
    design = np.column_stack([np.ones(len(frame)), frame[list(given_names)]])
    left = [frame[v] - design @ np.linalg.lstsq(design, frame[v], rcond=None)[0] for v in (x, y)]
    r = left[0] @ left[1] / np.sqrt((left[0] @ left[0]) * (left[1] @ left[1]))
    degrees = len(frame) - 2 - len(given_names)
    return 2 * stats.t.sf(abs(r) * np.sqrt(degrees / (1 - r * r)), degrees)


@settings(max_examples=50)
@given(
    rows=st.integers(9, 60), size=st.integers(0, 5), seed=st.integers(0, 99), offset=st.sampled_from([0, 1e6])
)
def test_agrees_with_regression(rows, size, seed, offset):
    frame = nonlinear_frame(rows, 7, seed)
    x, y, *rest = np.random.default_rng(seed).permutation(list(frame))
    expected = by_regression(frame, x, y, rest[:size])
    found = PartialCorrelation(frame + offset).pvalue(x, y, rest[:size])
    assert found == pytest.approx(expected, rel=1e-5 if offset else 1e-9)


def test_agrees_with_pearson(rng):
    x, y = rng.normal(size=(2, 50))
    expected = stats.pearsonr(x, y).pvalue
    assert PartialCorrelation({"x": x, "y": y}).pvalue("x", "y") == pytest.approx(expected, rel=1e-12)


@pytest.mark.shared
@pytest.mark.parametrize("table", reference.TABLES)
def test_agrees_with_the_reference(shared, table):
    """PyBNesian takes two degrees of freedom too few where there is a condition; without one it is exact."""
    frame, numbers = reference.load(shared, table)
    questions = numbers["partial_correlation"]
    asked = [(q["x"], q["y"], q["given"]) for q in questions]
    published = np.array([q["pvalue"] for q in questions])
    same = PartialCorrelation(frame, degrees="pybnesian").pvalues(asked)
    np.testing.assert_allclose(same, published, rtol=1e-9)
    marginal = np.array([not q["given"] for q in questions])
    exact = PartialCorrelation(frame).pvalues(asked)
    np.testing.assert_allclose(exact[marginal], published[marginal], rtol=1e-9)
    expected = [by_regression(frame, *question) for question in asked]
    np.testing.assert_allclose(exact, expected, rtol=1e-7)


def test_tiny_pvalues_keep_their_digits():
    """For two degrees of freedom the tail of t has a closed form, 1 - r if r > 0."""
    near = 1e-9
    x = np.array([1.0, -1.0, 1.0, -1.0])
    y = x + np.sqrt(2 * near) * np.array([1.0, 1.0, -1.0, -1.0])  # 1 - r² is 2e-9, nearly
    r2 = 1 / (1 + 2 * near)
    found = PartialCorrelation({"x": x, "y": y}).pvalue("x", "y")
    assert found == pytest.approx((1 - r2) / (1 + np.sqrt(r2)), rel=1e-6)


def test_redundant_conditions_change_nothing(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("xyzw"))
    frame["x"] += frame["z"]
    frame["sum"] = frame["z"] - 2 * frame["w"]
    test = PartialCorrelation(frame)
    alone = test.pvalue("x", "y", ["z", "w"])
    assert test.pvalue("x", "y", ["z", "w", "sum"]) == pytest.approx(alone, rel=1e-9)
    assert test.pvalue("x", "y", ["z", "sum"]) == pytest.approx(alone, rel=1e-9)


def test_what_the_condition_determines_is_independent_of_all(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("xyz"))
    frame["x"] = 3 * frame["z"] + 1
    test = PartialCorrelation(frame)
    assert test.pvalue("x", "y", ["z"]) == 1.0
    assert test.pvalue("x", "z") == pytest.approx(0.0, abs=1e-200)
    assert test.pvalue("x", "z", ["y"]) == pytest.approx(0.0, abs=1e-200)


def test_too_few_rows_for_the_condition(rng):
    test = PartialCorrelation(pd.DataFrame(rng.normal(size=(6, 6)), columns=list("abcdef")))
    assert 0 <= test.pvalue("a", "b", list("cde")) <= 1
    with pytest.raises(DataError, match=r"condition of 4 variables needs at least 7 rows. Got 6: add rows"):
        test.pvalue("a", "b", list("cdef"))


def test_degrees_must_be_known(rng):
    with pytest.raises(ArgumentError, match=r"'exact' or 'pybnesian'. Got 'other'"):
        PartialCorrelation(nonlinear_frame(10, 2), degrees="other")
