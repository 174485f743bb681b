"""The drift test: false alarms by simulation, and what it finds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.monitoring.drift import BINS, CELLS, FACTORS, SHIFTS, DriftTest, bets, bin_counts


def false_alarms(reference, rows, rate, runs, *, draw, variables=3, seed=0):
    """Return the share of runs with an alarm."""
    rng = np.random.default_rng(seed)
    alarms = 0
    for _ in range(runs):
        test = DriftTest(bin_counts(draw(rng, (variables, reference))), rate)
        _, found = test.update(draw(rng, (variables, rows)), rng.random((variables, rows)))
        alarms += bool(found)
    return alarms / runs


def uniform(rng, shape):
    return rng.random(shape)


def misfit(rng, shape):
    """Places of rows whose network is wrong: they gather at one end."""
    return rng.beta(0.4, 2.0, shape)


def test_bets_are_fair_and_those_of_a_normal_distribution():
    payments = bets()
    assert payments.shape == (len(SHIFTS) + len(FACTORS), CELLS)
    np.testing.assert_allclose(payments.mean(axis=1), 1.0, rtol=1e-12)
    middle = stats.norm.ppf((np.arange(CELLS) + 0.5) / CELLS)[10:-10]
    alternatives = [stats.norm(s) for s in SHIFTS] + [stats.norm(0.0, f) for f in FACTORS]
    for paid, alternative in zip(payments, alternatives, strict=True):
        np.testing.assert_allclose(paid[10:-10], alternative.pdf(middle) / stats.norm.pdf(middle), rtol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [uniform, misfit])
@pytest.mark.parametrize("reference", [20, 1000])
def test_false_alarms_are_at_most_as_frequent_as_stated(reference, draw):
    """Within m rows the probability is at most m times the rate, however few the reference rows are."""
    rate, rows, runs = 1e-3, 300, 300
    found = false_alarms(reference, rows, rate, runs, draw=draw)
    bound = rows * rate
    assert found <= bound + 3.0 * np.sqrt(bound * (1.0 - bound) / runs)
    assert found > 0.02  # the test is not idle either


def test_what_is_staked_grows_by_one_unit_per_row_in_the_mean():
    """R minus the number of rows is a martingale: its mean over runs is zero."""
    rng = np.random.default_rng(1)
    rows, final = 12, []
    for _ in range(4_000):
        test = DriftTest(bin_counts(rng.random((1, 8))), 1e-12)
        statistic, _ = test.update(rng.random((1, rows)), rng.random((1, rows)))
        final.append(statistic[-1] / 1e-12)
    assert np.mean(final) == pytest.approx(rows, abs=4.0 * np.std(final) / np.sqrt(len(final)))


def test_a_bet_comes_to_what_units_staked_before_every_row_have_grown_to():
    rng = np.random.default_rng(2)
    known, pit, uniforms = rng.random((2, 30)), rng.random((2, 15)), rng.random((2, 15))
    test = DriftTest(bin_counts(known), 1e-12)
    test.update(pit, uniforms)
    paid = []
    for row in range(15):  # by a test that has seen the rows before, but not bet on them
        alone = DriftTest(bin_counts(np.concatenate([known, pit[:, :row]], axis=1)), 1e-12)
        alone.update(pit[:, [row]], uniforms[:, [row]])
        paid.append(alone.stakes)
    np.testing.assert_allclose(test.stakes, sum(np.prod(paid[row:], axis=0) for row in range(15)), rtol=1e-9)


@pytest.mark.parametrize(("moved", "within"), [(1.0, 100), (-2.0, 25), (0.5, 600)])
def test_a_shift_is_found_in_the_variable_that_shifts(moved, within):
    rng = np.random.default_rng(2)
    z = rng.standard_normal((10, 1_000))
    z[4, 300:] += moved
    test = DriftTest(bin_counts(rng.random((10, 1_000))), 1e-5)
    _, found = test.update(stats.norm.cdf(z), rng.random(z.shape))
    first = min(found)
    assert 300 <= first < 300 + within
    assert found[first].variable == 4
    assert abs(found[first].since - 300) < 0.4 * within


@pytest.mark.parametrize("factor", [0.1, 2.5])
def test_a_variable_that_is_stuck_or_noisy_is_found(factor):
    rng = np.random.default_rng(3)
    z = rng.standard_normal((4, 500))
    z[2, 200:] *= factor
    test = DriftTest(bin_counts(rng.random((4, 1_000))), 1e-5)
    _, found = test.update(stats.norm.cdf(z), rng.random(z.shape))
    assert 200 <= min(found) < 260
    assert found[min(found)].variable == 2


def test_after_an_alarm_it_begins_again_against_the_reference():
    rng = np.random.default_rng(4)
    reference = bin_counts(rng.random((1, 500)))
    before = reference.copy()
    test = DriftTest(reference, 1e-3)
    statistic, found = test.update(np.full((1, 200), 0.999), rng.random((1, 200)))
    assert len(found) > 5
    # What it has got used to by then is forgotten, so the last alarm takes no longer than the first.
    assert np.diff(sorted(found)).max() <= min(found) + 3
    assert statistic[max(found)] >= 1.0
    assert (statistic[[k for k in range(200) if k not in found]] < 1.0).all()
    np.testing.assert_array_equal(reference, before)


def test_rows_come_one_by_one_or_together():
    rng = np.random.default_rng(5)
    places, uniforms = rng.random((2, 60)), rng.random((2, 60))
    places[:, 30:] **= 3
    places[1, 7] = np.nan
    reference = bin_counts(rng.random((2, 40)))
    together, single = DriftTest(reference, 1e-3), DriftTest(reference, 1e-3)
    statistic, found = together.update(places, uniforms)
    parts = [single.update(places[:, [k]], uniforms[:, [k]]) for k in range(60)]
    np.testing.assert_array_equal(np.concatenate([s for s, _ in parts]), statistic)
    assert {k: c for k, (_, f) in enumerate(parts) for c in f.values()} == found
    assert together.rows == single.rows == 60


def test_missing_places_say_nothing():
    test = DriftTest(bin_counts(np.random.default_rng(6).random((2, 100))), 1e-3)
    statistic, found = test.update(np.full((2, 5_000), np.nan), np.zeros((2, 5_000)))
    assert not found
    assert (statistic == 0.0).all()
    assert bin_counts(np.array([[0.0, 1.0, np.nan, 0.5]])).sum() == 3
    assert bin_counts(np.array([[0.0, 1.0]]))[0, [0, BINS - 1]].tolist() == [1, 1]


def wandering(rng, rows, inertia=0.9, shift=0.0):
    """A slow variable, one that follows it, and one of its own; all have a standard deviation of 1 or so."""
    x, noise = np.zeros(rows + 200), np.sqrt(1.0 - inertia**2) * rng.standard_normal(rows + 200)
    for t in range(1, rows + 200):
        x[t] = inertia * x[t - 1] + noise[t]
    y = 0.7 * x[200:] + 0.7 * rng.standard_normal(rows)
    return pd.DataFrame({"x": x[200:] + shift, "y": y, "z": rng.standard_normal(rows)})


def watching(reference, **options):
    network = spbn.BayesianNetwork.fit(spbn.Structure("xyz", [("x", "y")]), reference)
    return spbn.Monitor(network, reference, **options)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1_000, 10_000])
def test_rows_that_wander_raise_no_more_drift_alarms_than_stated(rows):
    """A first-order autoregression with 0.9: 20,000 rows, of which one in 1,000 may raise an alarm."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        monitor = watching(wandering(rng, rows), drift=1e-3)
        assert 15 <= monitor.reference.spacing[0] <= 60  # 1.5 times (1 + 0.9) / (1 - 0.9) = 28.5
        assert monitor.reference.spacing[1:].tolist() == [1, 1]  # given x, y does not wander
        found.append(monitor.update(wandering(rng, 20_000))["drift_alarm"].sum())
    assert np.mean(found) < 20
    rng = np.random.default_rng(9)
    assert not watching(wandering(rng, rows)).update(wandering(rng, 20_000))["drift_alarm"].any()


def test_a_drift_of_what_wanders_is_found_all_the_same(tmp_path):
    rng = np.random.default_rng(10)
    monitor = watching(wandering(rng, 2_000))
    monitor.save(tmp_path / "state.json")
    resumed = spbn.Monitor.load(tmp_path / "state.json", monitor.network)
    assert resumed.reference.spacing.tolist() == monitor.reference.spacing.tolist()
    found = monitor.update(wandering(rng, 3_000, shift=3.0))
    assert found["drift_alarm"].any()
    assert "x" in found.loc[found["drift_alarm"], "drift_blame"].iloc[0]
    assert resumed.update(wandering(np.random.default_rng(11), 500))["drift"].max() > 0.0


def test_rows_that_do_not_wander_are_all_compared():
    """The spacing is 1 whatever chance says of 20 tables, and the counts are those of all rows."""
    rng = np.random.default_rng(12)
    for rows in (100, 1_000):
        for _ in range(10):
            reference = watching(wandering(rng, rows, inertia=0.0)).reference
            assert (reference.spacing == 1).all()
            assert (reference.pit_counts.sum(axis=1) == rows).all()


def test_what_changes_too_slowly_is_not_tested_and_the_remedy_is_named():
    rng = np.random.default_rng(13)
    with pytest.warns(UserWarning, match="no drift of 'x' will be found.*Learn a network over time"):
        monitor = watching(wandering(rng, 200, inertia=0.98))
    assert monitor.reference.spacing.tolist() == [0, 1, 1]
    moved = wandering(rng, 400, inertia=0.98, shift=1.0)
    moved["y"] = 0.7 * moved["x"] + 0.7 * rng.standard_normal(400)
    found = monitor.update(moved)
    assert not found["drift_alarm"].any()
