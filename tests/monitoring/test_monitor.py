"""Monitors: alarm rates and blame by simulation, whatever kind of network and of rows there is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from mixed import STRUCTURE, mixed_frame
from spbn.monitoring.attribution import WINDOW
from spbn.monitoring.monitor import Monitor
from spbn.transforms import Margins

NODES = [f"x{k}" for k in range(10)]
ARCS = [
    ("x0", "x2"),
    ("x1", "x2"),
    ("x2", "x3"),
    ("x2", "x4"),
    ("x3", "x5"),
    ("x4", "x5"),
    ("x6", "x7"),
    ("x7", "x8"),
]


def chain(rng, rows, *, mechanism=None, sensor=None):
    """Ten variables with standard deviation 1, of which one may be shifted by that much.

    A mechanism that has changed is followed by what depends on it, and a sensor is not.
    """
    columns = {}
    for node in NODES:
        parents = [source for source, target in ARCS if target == node]
        signal = sum(columns[p] for p in parents) / max(np.sqrt(len(parents)), 1.0) if parents else 0.0
        share = 0.8 if parents else 0.0
        columns[node] = share * signal + np.sqrt(1.0 - share**2) * rng.standard_normal(rows)
        if node == mechanism:
            columns[node] = columns[node] + 1.0
    frame = pd.DataFrame(columns)
    if sensor is not None:
        frame[sensor] += 1.0
    return frame


@pytest.fixture(scope="module")
def lines():
    """A Gaussian network of ten variables, fitted to so many rows that its densities are the true ones."""
    return spbn.BayesianNetwork.fit(spbn.Structure(NODES, ARCS), chain(np.random.default_rng(0), 20_000))


@pytest.fixture(scope="module")
def curves():
    """A network with kernels, and its 300 training rows."""
    rows = spbn.datasets.synthetic(300, seed=0)
    return spbn.BayesianNetwork.fit(spbn.datasets.synthetic_structure(), rows), rows


@pytest.fixture(scope="module")
def narrow():
    """A network whose kernels have four dimensions, and its 150 training rows."""
    rows = spbn.datasets.synthetic(150, seed=0)
    arcs = [("A", "C"), ("B", "C"), ("A", "D"), ("B", "D"), ("C", "D"), ("B", "E"), ("C", "E"), ("D", "E")]
    return spbn.BayesianNetwork.fit(spbn.Structure("ABCDE", arcs, "ckde"), rows), rows


@pytest.mark.slow
def test_the_alarm_rate_is_the_stated_one(lines):
    """50,000 rows, compared with 50,000: both have a binomial error."""
    rng = np.random.default_rng(1)
    monitor = Monitor(lines, chain(rng, 50_000), alarm=0.001, drift=1e-6)
    found = monitor.update(chain(rng, 50_000))
    for alarm in (0.001, 0.01, 0.1):
        expected = 50_000 * alarm
        assert abs((found["p_value"] <= alarm).sum() - expected) < 3.0 * np.sqrt(2.0 * expected)
    assert monitor.alarms == found["alarm"].sum() == (found["p_value"] <= 0.001).sum()
    # Uniform, so the bulk is right as well.
    assert stats.kstest(found["p_value"], "uniform").statistic < 0.015
    # The rate of drift alarms is at most 5 % here.
    assert monitor.drift_alarms == 0


@pytest.mark.slow
def test_training_rows_are_left_out_of_the_fit(narrow):
    """Kernels sit on the training rows: scored as they are, these look likely and new rows unusual."""
    network, rows = narrow
    new = spbn.datasets.synthetic(800, seed=5)
    found = Monitor(network, rows, alarm=0.05).update(new)["alarm"].mean()
    assert found == pytest.approx(0.05, abs=0.03)
    with pytest.warns(UserWarning, match="150 of the 150 reference rows are among the rows"):
        careless = Monitor(network, rows, alarm=0.05, trained=False).update(new)["alarm"].mean()
    assert careless > 0.09
    # Part of the training table is not recognised, but can be said to be one.
    with pytest.warns(UserWarning, match="pass trained=True"):
        Monitor(network, rows[:100])
    part = Monitor(network, rows[:100], alarm=0.05, trained=True).update(new)["alarm"].mean()
    assert part < careless


def test_levels_are_those_that_it_was_made_with(narrow):
    monitor = Monitor(*narrow, alarm=0.02, drift=1e-4)
    assert (monitor.alarm, monitor.drift) == (0.02, 1e-4)
    for name in ("alarm", "drift"):
        with pytest.raises(AttributeError):
            setattr(monitor, name, 0.5)


def test_other_rows_are_scored_as_they_are(curves):
    network, _ = curves
    other = spbn.datasets.synthetic(2_000, seed=6)
    monitor = Monitor(network, other, alarm=0.02)
    # A row of the reference has its own rank among them.
    logpdf = network.logpdf(other)
    place = int(np.argsort(logpdf)[1_000])
    share = monitor.update(other.iloc[[place]])["p_value"].iloc[0]
    assert share == pytest.approx((1 + 1_001) / 2_001, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mechanism", "sensor"])
def test_a_shift_of_one_deviation_in_one_of_ten_is_found_and_blamed(lines, kind):
    rng = np.random.default_rng(2)
    reference = chain(rng, 1_000)
    delays, right = [], 0
    for node in NODES:
        monitor = Monitor(lines, reference)
        before = monitor.update(chain(rng, 200))
        found = monitor.update(chain(rng, 200, **{kind: node}))
        alarms = np.flatnonzero(found["drift_alarm"])
        assert not before["drift_alarm"].any()
        assert len(alarms)
        delays.append(alarms[0])
        right += found["drift_blame"].iloc[alarms[0]].split(", ")[0] == node
    assert np.mean(delays) < 60
    assert right >= 9  # of ten, at the first alarm


def test_a_drift_says_since_when_and_by_how_much(lines):
    rng = np.random.default_rng(3)
    monitor = Monitor(lines, chain(rng, 1_000))
    monitor.update(chain(rng, 500))
    verdicts = monitor.check(monitor.read(chain(rng, 200, mechanism="x6")))
    (first, *_) = sorted(verdicts.drifts)
    drift = verdicts.drifts[first]
    assert drift.row == 500 + first
    assert abs(drift.since - 500) < 20
    assert drift.blame[0] == "x6"
    assert drift.shifts[0] == pytest.approx(1.0, abs=0.5)


def test_blame_finds_the_variable_that_explains_most(lines):
    """A wrong value of x2 leaves its parents and children as they are; x5 follows a true x4."""
    rng = np.random.default_rng(4)
    monitor = Monitor(lines, chain(rng, 1_000))
    row = dict(chain(rng, 1).iloc[0])
    wrong = row | {"x2": row["x2"] + 5.0}
    drops = lines.logpdf_by_node(pd.DataFrame([row])) - lines.logpdf_by_node(pd.DataFrame([wrong]))
    assert drops[["x3", "x4"]].to_numpy().max() > 5  # more nodes than x2 look bad
    assert [reason.node for reason in monitor.explain(wrong)] == ["x2"]
    (reason,) = monitor.explain(wrong)
    assert reason.value == wrong["x2"]
    assert reason.drop > 10
    # A mechanism that fails, and everything below it follows.
    followed = row | {"x4": row["x4"] + 5.0, "x5": row["x5"] + 5.0 * 0.8 / np.sqrt(2)}
    assert [reason.node for reason in monitor.explain(followed)] == ["x4"]
    # Two at once.
    both = row | {"x9": row["x9"] - 6.0, "x0": row["x0"] + 7.0}
    assert {reason.node for reason in monitor.explain(both)[:2]} == {"x9", "x0"}
    found = monitor.update(pd.DataFrame([wrong, row, both]))
    assert found["alarm"].tolist() == [True, False, True]
    assert found["blame"].iloc[:2].tolist() == ["x2", ""]


@pytest.mark.slow
def test_a_row_has_the_same_verdict_in_every_table(curves):
    """One by one or together, as dict, array or frame, beside whichever other rows."""
    network, rows = curves
    new = spbn.datasets.synthetic(40, seed=7)
    new.loc[5, "E"], new.loc[9, "A"] = 9.0, 14.0
    together = Monitor(network, rows).update(new)
    assert together.loc[[5, 9], "alarm"].all()
    assert together.loc[[5, 9], "blame"].tolist() == ["E", "A"]
    dicts, arrays = Monitor(network, rows), Monitor(network, rows)
    by_dict = pd.concat([dicts.update(row) for row in new.to_dict("records")])
    by_array = pd.concat(
        [arrays.update(row) for row in new.to_numpy()[:20]] + [arrays.update(new.to_numpy()[20:])]
    )
    for other in (by_dict, by_array):
        pd.testing.assert_frame_equal(other, pd.DataFrame(together), check_index_type=False, rtol=1e-9)
    assert len(arrays.update(new[:0])) == len(arrays.update([])) == 0
    again = Monitor(network, rows).update(new[::-1])[::-1]
    np.testing.assert_allclose(again["p_value"], together["p_value"])
    assert again["blame"].tolist() == together["blame"].tolist()


def test_frames_keep_their_index_and_rows_are_counted(curves):
    network, rows = curves
    monitor = Monitor(network, rows)
    new = spbn.datasets.synthetic(3, seed=8).set_axis(["p", "q", "r"])
    assert monitor.update(new).index.tolist() == ["p", "q", "r"]
    assert monitor.update(new.to_numpy()).index.tolist() == [3, 4, 5]
    assert monitor.rows == 6
    assert repr(monitor).startswith(
        "Monitor(5 variables, 300 reference rows, alarm=0.001, drift=1e-05; 6 rows"
    )


def test_memory_is_bounded(lines):
    rng = np.random.default_rng(5)
    monitor = Monitor(lines, chain(rng, 100), alarm=0.01)
    for _ in range(3):
        monitor.update(chain(rng, 3 * WINDOW))
        assert monitor._recent.shape == (10, WINDOW)


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", ["lg", "ckde", "blend"])
def test_every_kind_of_network_can_be_watched(kind, margins):
    rng = np.random.default_rng(6)

    def draw(rows):
        a = rng.lognormal(size=rows)
        return pd.DataFrame(
            {"a": a, "b": np.sqrt(a) + 0.3 * rng.standard_normal(rows), "c": rng.standard_normal(rows)}
        )

    rows = draw(250)
    network = spbn.BayesianNetwork.fit(spbn.Structure("abc", [("a", "b")], kind), rows, margins=margins)
    monitor = Monitor(network, rows, alarm=0.02)
    found = monitor.update(draw(800))
    assert found["alarm"].mean() == pytest.approx(0.02, abs=0.018)
    assert not found["drift_alarm"].any()
    assert monitor.update({"a": 1.0, "b": 1.0, "c": 40.0})["blame"].tolist() == ["c"]


@pytest.mark.slow
def test_mixed_tables_can_be_watched():
    rows, new = mixed_frame(600, seed=1), mixed_frame(800, seed=2)
    network = spbn.BayesianNetwork.fit(STRUCTURE, rows)
    monitor = Monitor(network, rows, alarm=0.02)
    found = monitor.update(new)
    assert found["alarm"].mean() == pytest.approx(0.02, abs=0.016)
    assert not found["drift_alarm"].any()
    # A level that becomes frequent is a drift.
    moved = mixed_frame(1_000, seed=3)
    drifted = monitor.update(moved[moved["town"] == "Stockbridge"])
    assert drifted["drift_alarm"].any()
    assert drifted.loc[drifted["drift_alarm"], "drift_blame"].iloc[0].startswith("town")
    row = new.iloc[0].to_dict()
    assert monitor.update(row)["p_value"].iloc[0] == pytest.approx(found["p_value"].iloc[0])
    with pytest.raises(spbn.errors.DataError, match="has the level 'purple', which is unknown"):
        monitor.update(row | {"town": "purple"})


@pytest.mark.slow
@pytest.mark.parametrize("holes", [["x2"], NODES[:7]], ids=len)
def test_rows_with_holes_are_compared_with_rows_that_have_the_same(lines, holes):
    rng = np.random.default_rng(7)
    monitor = Monitor(lines, chain(rng, 1_000), alarm=0.01)
    rows = chain(rng, 250)
    rows[holes] = np.nan
    found = monitor.update(rows)
    assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-3
    assert found["alarm"].mean() < 0.05
    # The truth: what is there is normal, and unusual as far as its Mahalanobis distance says.
    kept = [node for node in NODES if node not in holes]
    covariance = chain(np.random.default_rng(8), 200_000)[kept].cov().to_numpy()
    squares = np.einsum("ri,ij,rj->r", rows[kept], np.linalg.inv(covariance), rows[kept])
    truth = stats.chi2(len(kept)).sf(squares)
    assert np.abs(found["p_value"] - truth).mean() < 0.06
    wrong = dict(rows.iloc[0]) | {"x9": 9.0}
    verdict = monitor.update(wrong)
    assert verdict["blame"].tolist() == ["x9"]
    assert verdict["p_value"].iloc[0] < 1e-4
    # Nothing at all is nothing unusual.
    empty = monitor.update(dict.fromkeys(NODES))
    assert empty["p_value"].iloc[0] > 0.9
    assert monitor.explain(dict.fromkeys(NODES)) == ()


@pytest.mark.slow
def test_holes_among_kernels_give_the_same_every_time():
    rows = spbn.datasets.synthetic(120, seed=0)  # few, because rows to compare with are simulated
    network = spbn.BayesianNetwork.fit(spbn.datasets.synthetic_structure(), rows)
    row = dict(spbn.datasets.synthetic(1, seed=9).iloc[0])
    shares = [Monitor(network, rows).update(row | {"C": hole})["p_value"].iloc[0] for hole in (None, np.nan)]
    assert shares[0] == shares[1]
    far = Monitor(network, rows).update(row | {"C": None, "A": 30.0})
    assert far["alarm"].iloc[0]
    assert far["blame"].iloc[0].startswith("A")


def test_reference_rows_with_holes_do_not_count(curves):
    network, _ = curves
    other = spbn.datasets.synthetic(200, seed=10)
    other.loc[:9, "B"] = np.nan
    assert Monitor(network, other).reference_rows == 190


def test_a_table_with_holes_that_was_learned_from_is_recognised():
    rows = spbn.datasets.synthetic(250, seed=11)
    rows.loc[:20, "D"] = np.nan
    network = spbn.learn(rows, missing="impute", model="gbn")
    recognised = Monitor(network, rows, alarm=0.05)
    assert recognised.reference_rows == 229
    # Left out of the fit, rows are less likely.
    as_given = Monitor(network, rows, trained=False).reference.means.sum()
    assert recognised.reference.means.sum() < as_given - 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alarm": 0.0}, "alarm must be between 0 and 1"),
        ({"alarm": True}, "alarm must be between 0 and 1"),
        ({"drift": 1.5}, "drift must be between 0 and 1"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_arguments_are_checked(curves, change, message):
    with pytest.raises(spbn.errors.ArgumentError, match=message):
        Monitor(*curves, **change)


@pytest.mark.slow
def test_bad_rows_are_refused_and_leave_no_trace(curves):
    network, rows = curves
    monitor, other = Monitor(network, rows), Monitor(network, rows)
    good = dict(rows.iloc[0])
    for bad, message in [
        ({"A": 1.0}, "the row has no value for 'B', 'C', 'D' and 'E': give None"),
        (good | {"A": "x"}, r"'A' must be a number\. Got 'x'"),
        (good | {"A": np.inf}, "'A' is infinite"),
        (np.zeros(4), r"an array must have one value for each of 'A', 'B', 'C', 'D' and 'E'.*shape"),
        (np.array(["a"] * 5), "an array of rows must hold numbers"),
        (np.full(5, -np.inf), "must not hold infinite values"),
        (pd.DataFrame({"A": [1.0]}), "lacks columns 'B', 'C', 'D' and 'E'"),
    ]:
        with pytest.raises(spbn.errors.DataError, match=message):
            monitor.update(bad)
    assert monitor.rows == 0
    pd.testing.assert_frame_equal(monitor.update(good), other.update(good))
    with pytest.raises(spbn.errors.DataError, match="explain takes one row"):
        monitor.explain(rows[:2])
    with pytest.raises(spbn.errors.DataError, match="at least 50 complete reference rows"):
        Monitor(network, rows[:49], trained=True)
    with pytest.raises(spbn.errors.ArgumentError, match="network must be a BayesianNetwork"):
        Monitor("m.spbn", rows)


def test_a_row_that_margins_cannot_transform_leaves_no_trace():
    rng = np.random.default_rng(12)
    rows = pd.DataFrame({"a": -np.exp(rng.standard_normal(200)), "b": rng.standard_normal(200)})
    network = spbn.BayesianNetwork.fit(spbn.Structure("ab"), rows, margins="yeo-johnson")
    bent = Margins({k: replace(m, high=np.inf) for k, m in network.margins.columns.items()})  # as in 0.2
    network = spbn.BayesianNetwork(network.structure, network.cpds, margins=bent)
    monitor, other = Monitor(network, rows), Monitor(network, rows)
    with pytest.raises(spbn.errors.DataError, match="cannot transform"):
        monitor.update({"a": 1e300, "b": 1.0})
    good = {"a": -1.0, "b": 0.1}
    pd.testing.assert_frame_equal(monitor.update(good), other.update(good), check_exact=True)


def test_too_few_reference_rows_for_an_alarm_are_mentioned(curves):
    network, _ = curves
    other = spbn.datasets.synthetic(60, seed=13)
    with pytest.warns(UserWarning, match="far less than one of 60 reference rows"):
        Monitor(network, other, alarm=1e-4)
    rng = np.random.default_rng(14)
    coins = pd.DataFrame({"a": rng.choice(["x", "y"], 100), "b": rng.choice(["x", "y"], 100)})
    with pytest.warns(UserWarning, match="no row can raise an alarm: alarm=0.001"):
        Monitor(spbn.learn(coins), coins)


@pytest.mark.slow
def test_the_seed_decides_ties_alone(curves):
    network, rows = curves
    new = spbn.datasets.synthetic(30, seed=15)
    one, two = (Monitor(network, rows, seed=seed).update(new) for seed in (0, 1))
    np.testing.assert_array_equal(one["p_value"], two["p_value"])
    assert (one["drift"] != two["drift"]).any()
