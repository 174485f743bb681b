"""P-values against closed forms, and alarm rates by simulation."""

import numpy as np
import pytest
from scipy import stats

from spbn.monitoring.reference import Tail


def chi_square(rng, rows, variables=10):
    """Log-densities of normal rows, but for a constant."""
    return -0.5 * (rng.standard_normal((rows, variables)) ** 2).sum(axis=1)


def true_p_value(scores, variables=10):
    return stats.chi2(variables).sf(-2.0 * scores)


def test_p_values_are_those_of_the_distribution_also_beyond_all_rows():
    rng = np.random.default_rng(0)
    tail = Tail.fit(chi_square(rng, 20_000))
    scores = -0.5 * stats.chi2(10).isf(np.array([0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5]))
    ratio = tail.p_values(scores) / true_p_value(scores)
    # 20,000 rows have 200 beyond the third and 20 beyond the fourth, more or less.
    assert (np.abs(ratio - 1.0) < [0.03, 0.08, 0.15, 0.5, 0.7, 0.9]).all()


def test_among_the_bulk_a_p_value_is_a_rank():
    scores = np.arange(1000.0)
    tail = Tail.fit(scores)
    np.testing.assert_allclose(tail.p_values(np.array([499.0, 499.5, 2000.0])), [501 / 1001, 501 / 1001, 1.0])


@pytest.mark.parametrize("rows", [60, 1_000, 30_000])
def test_p_values_rise_with_the_log_density_and_are_never_zero(rows):
    rng = np.random.default_rng(1)
    tail = Tail.fit(chi_square(rng, rows))
    scores = np.concatenate([[-np.inf, -1e300, -1e9], np.linspace(-60, 0, 5_000)])
    p_values = tail.p_values(scores)
    assert (np.diff(p_values) >= 0).all()
    assert p_values[0] > 0
    assert p_values[-1] <= 1
    # No step where the tail begins.
    beyond = scores[3:] < tail.edge + 1.0
    assert np.diff(np.log(p_values[3:][beyond])).max() < 0.6


def test_quantiles_are_p_values_backwards():
    tail = Tail.fit(chi_square(np.random.default_rng(2), 3_000))
    p_values = np.array([1e-7, 1e-4, 0.003, 0.02, 0.3, 0.8])
    np.testing.assert_allclose(tail.p_values(tail.quantiles(p_values)), p_values, rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("alarm", "deviations"), [(0.01, 3.0), (0.001, 3.5)])
def test_the_alarm_rate_is_the_stated_one_over_many_references(alarm, deviations):
    """50,000 rows, in 50 lots with 1,000 reference rows each."""
    rng = np.random.default_rng(3)
    p_values = [Tail.fit(chi_square(rng, 1_000)).p_values(chi_square(rng, 1_000)) for _ in range(50)]
    alarms = int((np.array(p_values) <= alarm).sum())
    expected = 50_000 * alarm
    assert abs(alarms - expected) < deviations * np.sqrt(expected)


def test_the_alarm_rate_of_one_large_reference():
    """50,000 rows again; the reference has its own binomial error, as large as theirs."""
    rng = np.random.default_rng(4)
    tail = Tail.fit(chi_square(rng, 50_000))
    for alarm in (0.001, 0.01, 0.1):
        alarms = int((tail.p_values(chi_square(rng, 50_000)) <= alarm).sum())
        expected = 50_000 * alarm
        assert abs(alarms - expected) < 3.0 * np.sqrt(2.0 * expected)


@pytest.mark.slow
def test_parameters_are_not_taken_for_known():
    """A tail of few rows raises no more alarms than stated: a plug-in estimate would."""
    rng = np.random.default_rng(5)
    rates = []
    for _ in range(100):
        tail = Tail.fit(-rng.exponential(size=250))
        # Known in closed form, so few reference rows are enough to see the mean rate.
        rates.append(np.exp(tail.quantiles(np.array([0.002]))[0]))
    assert 0.5 * 0.002 < np.mean(rates) < 1.25 * 0.002


@pytest.mark.slow
@pytest.mark.parametrize("freedom", [1, 2, 3])
def test_heavy_tails_raise_no_more_alarms_than_stated(freedom):
    """Log-densities that a normal network gives to rows with outliers, 800 at a time: means over tables."""
    rng, law = np.random.default_rng(6), stats.t(freedom)
    rates = []
    for _ in range(150):
        tail = Tail.fit(-0.5 * law.rvs(800, random_state=rng) ** 2)
        (limit,) = tail.quantiles(np.array([0.001]))
        rates.append(2.0 * law.sf(np.sqrt(-2.0 * limit)))
    assert 0.5 * 0.001 < np.mean(rates) < 1.4 * 0.001


@pytest.mark.slow
def test_a_few_outliers_beyond_an_ordinary_tail_are_expected_again():
    """One row in 200 has 15 times the spread: a tenth of the rows hardly shows it, a few rows do."""
    rng = np.random.default_rng(7)
    rates = []
    for _ in range(150):
        tail = Tail.fit(-0.5 * (rng.standard_normal(800) * np.where(rng.random(800) < 0.005, 15, 1)) ** 2)
        distance = np.sqrt(-2.0 * tail.quantiles(np.array([0.001]))[0])
        rates.append(2.0 * (0.995 * stats.norm.sf(distance) + 0.005 * stats.norm.sf(distance / 15)))
    assert np.mean(rates) < 2.5 * 0.001


def test_steps_have_no_tail():
    """The log-densities of discrete rows are a few numbers: their p-values are ranks."""
    scores = np.repeat([-9.0, -5.0, -1.0], [2, 100, 898])
    tail = Tail.fit(scores)
    assert not tail.is_extrapolated
    np.testing.assert_allclose(
        tail.p_values(np.array([-20.0, -9.0, -5.0, 0.0])), np.array([1, 3, 103, 1001]) / 1001
    )
