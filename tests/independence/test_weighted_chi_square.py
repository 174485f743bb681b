"""The tail of weighted sums of chi-square variables, against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spbn.independence.rcot import upper_tail


def tail(weights, at):
    powers = np.array([[np.sum(np.asarray(weights) ** r) for r in range(1, 9)]])
    return upper_tail(np.array([at], dtype=float), powers)[0]


@given(
    degrees=st.integers(1, 100),
    scale=st.floats(1e-6, 1e6),
    quantile=st.floats(0.01, 0.9999),
)
def test_equal_weights_give_chi_square(degrees, scale, quantile):
    at = stats.chi2.ppf(quantile, degrees)
    assert tail(np.full(degrees, scale), at * scale) == pytest.approx(1 - quantile, rel=1e-8)


@given(
    weights=st.lists(st.integers(1, 30), min_size=2, max_size=6, unique=True),
    ratio=st.floats(0.3, 4.0),
)
def test_pairs_of_weights_give_sums_of_exponentials(weights, ratio):
    """Two equal weights make an exponential variable; a sum of those has a closed form."""
    scales = np.array(weights, dtype=float)
    at = ratio * 2 * scales.sum()
    factors = [np.prod([a / (a - b) for b in scales if b != a]) for a in scales]
    exact = np.sum(factors * np.exp(-at / (2 * scales)))
    assert tail(np.repeat(scales, 2), at) == pytest.approx(exact, abs=2e-3, rel=0.02)


@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=40), st.floats(0, 1e4))
def test_always_a_probability_that_falls(weights, at):
    here, further = tail(weights, at), tail(weights, at + 1.0)
    assert 0 <= further <= here <= 1
    assert tail(weights, 0.0) == pytest.approx(1.0)


def test_agrees_with_simulation(rng):
    weights = rng.exponential(size=25) ** 3
    drawn = rng.chisquare(1, size=(200_000, 25)) @ weights
    for quantile in (0.5, 0.9, 0.95, 0.99):
        assert tail(weights, np.quantile(drawn, quantile)) == pytest.approx(1 - quantile, abs=0.004)


def test_far_tails_underflow_to_zero():
    assert tail([1.0, 0.5, 0.1, 0.1], 1e6) == 0.0
    assert tail([1.0, 1e-9], 3.841458820694124) == pytest.approx(0.05, rel=1e-4)
