"""Monitors of dynamic networks: rows are judged by those before them, within their series."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.monitoring.monitor import Monitor


def autoregression(rng, rows, *, shift=0.0, inertia=0.95):
    """Two variables that wander slowly; y follows x a row later. The noise of y may shift."""
    x, y = np.zeros(rows), np.zeros(rows)
    for t in range(1, rows):
        x[t] = inertia * x[t - 1] + rng.standard_normal()
        y[t] = 0.5 * x[t - 1] + shift + rng.standard_normal()
    return pd.DataFrame({"x": x, "y": y})


@pytest.fixture(scope="module")
def rows():
    return autoregression(np.random.default_rng(0), 1_500)


@pytest.fixture(scope="module")
def dynamic(rows):
    return spbn.learn_dynamic(rows, lags=1, model="gbn")


def test_shares_are_uniform_where_rows_depend_on_those_before(rows, dynamic):
    rng = np.random.default_rng(1)
    monitor = Monitor(dynamic, rows, alarm=0.01)
    new = autoregression(rng, 4_000)
    found = monitor.update(new)
    assert np.isnan(found["p_value"].iloc[0])  # nothing is known of the row before
    assert not found["alarm"].iloc[0]
    assert stats.kstest(found["p_value"].iloc[1:], "uniform").statistic < 0.05
    assert found["alarm"].mean() == pytest.approx(0.01, abs=0.008)
    assert not found["drift_alarm"].any()
    assert (monitor.reference.spacing == 1).all()
    # To a network of single rows, wandering would look like drift; but the reference rows wander, too.
    static = Monitor(spbn.learn(rows, model="gbn"), rows, alarm=0.01)
    assert static.reference.spacing[0] > 20
    assert not static.update(new)["drift_alarm"].any()
    blind = replace(static.reference, spacing=np.ones(2, dtype=np.int64))
    assert Monitor(static.network, blind).update(new)["drift_alarm"].sum() > 3


def test_a_shift_is_found_and_blamed(rows, dynamic):
    rng = np.random.default_rng(2)
    monitor = Monitor(dynamic, rows)
    monitor.update(autoregression(rng, 300))
    found = monitor.update(autoregression(rng, 200, shift=1.0))
    first = found[found["drift_alarm"]].iloc[0]
    assert first.name < 300 + 60
    assert first["drift_blame"] == "y"


def test_the_training_rows_are_recognised(rows, dynamic):
    trained, untrained = Monitor(dynamic, rows), Monitor(dynamic, rows, trained=False)
    assert trained.reference_rows == untrained.reference_rows == 1_499
    assert trained.reference.means.sum() < untrained.reference.means.sum() - 1e-4


@pytest.mark.slow
def test_training_rows_with_holes_are_recognised(rows):
    """Rows that look back on a hole were left out of the fit, and are left out of the reference too."""
    holes = rows.copy()
    holes.loc[[50, 700], "x"] = np.nan
    dynamic = spbn.learn_dynamic(holes, model="kdebn", max_parents=1, missing="drop", folds=3)
    found = Monitor(dynamic, holes)
    whole = dynamic.lagged(rows).drop(index=[50, 51, 700, 701])
    assert found.reference_rows == len(whole)
    names = [variable.name for variable in dynamic.transition.variables]
    expected = spbn.explain.unusual_rows(dynamic.transition, whole[names]).logpdf
    np.testing.assert_allclose(found.reference.tail.ordered, np.sort(expected))


def test_one_by_one_together_and_resumed(rows, dynamic, tmp_path):
    new = autoregression(np.random.default_rng(3), 60)
    new.loc[20, "x"], new.loc[40, "y"] = np.nan, 30.0
    together = Monitor(dynamic, rows).update(new)
    assert together.loc[40, "blame"] == "y"
    # In a row without x, y is judged by the row before. The next row has no past, as the first has none.
    assert np.flatnonzero(together["p_value"].isna()).tolist() == [0, 21]
    single = Monitor(dynamic, rows)
    parts = [single.update(row) for row in new.to_dict("records")]
    pd.testing.assert_frame_equal(pd.concat(parts), pd.DataFrame(together), check_index_type=False, rtol=1e-9)
    listed = Monitor(dynamic, rows).update(new.to_dict("records"))
    pd.testing.assert_frame_equal(pd.DataFrame(listed), pd.DataFrame(together), check_index_type=False)
    first = Monitor(dynamic, rows)
    before = first.update(new.to_numpy()[:33])
    first.save(tmp_path / "state.json")
    after = Monitor.load(tmp_path / "state.json", dynamic).update(new.to_numpy()[33:])
    pd.testing.assert_frame_equal(pd.concat([before, after]), pd.DataFrame(together), check_index_type=False)


@pytest.mark.slow
def test_series_and_gaps_are_kept_apart():
    rng = np.random.default_rng(4)
    train = pd.concat(
        [autoregression(rng, 300).assign(machine=name, t=np.arange(300.0)) for name in "ab"],
        ignore_index=True,
    )
    dynamic = spbn.learn_dynamic(train, lags=2, series="machine", time="t", model="gbn")
    monitor = Monitor(dynamic, train, alarm=0.01)
    assert monitor.keys == ("machine", "t")
    new = {name: autoregression(rng, 30).assign(machine=name, t=np.arange(30.0)) for name in "ab"}
    apart = pd.concat(Monitor(dynamic, train).update(new[name]) for name in "ab")["p_value"]
    mixed = pd.concat(new.values()).sort_values(["t", "machine"], kind="stable").reset_index(drop=True)
    woven = monitor.update(mixed)["p_value"]
    for place in (0, 1):
        np.testing.assert_allclose(woven[place::2], apart.iloc[30 * place : 30 * place + 30], rtol=1e-9)
    assert len(monitor.update(mixed[:0])) == len(monitor.update([])) == 0  # batches without rows
    listed = Monitor(dynamic, train).update(mixed.to_dict("records"))["p_value"]
    np.testing.assert_allclose(listed, woven, rtol=1e-9)
    series = Monitor(dynamic, train)
    single = pd.concat([series.update(row) for _, row in mixed[:9].iterrows()])["p_value"]
    np.testing.assert_allclose(single, woven[:9], rtol=1e-9)
    assert monitor.update({"x": 0.0, "y": 0.0, "machine": "a", "t": 30.0})["p_value"].notna().all()
    assert monitor.update({"x": 0.0, "y": 0.0, "machine": "a", "t": 33.0})["p_value"].isna().all()
    rows = monitor.rows
    with pytest.raises(spbn.errors.DataError, match="the times of series 'a' must ascend in steps of 1"):
        monitor.update({"x": 0.0, "y": 0.0, "machine": "a", "t": 33.0})
    with pytest.raises(spbn.errors.DataError, match="the rows have no 't'"):
        monitor.update({"x": 0.0, "y": 0.0, "machine": "a"})
    with pytest.raises(spbn.errors.DataError, match="the rows have no 't'"):
        monitor.update([{"x": 0.0, "y": 0.0, "machine": "a"}])
    with pytest.raises(spbn.errors.DataError, match="rows must be dicts or a data frame"):
        monitor.update(np.zeros(2))
    assert monitor.rows == rows


@pytest.mark.parametrize("as_text", [False, True])
def test_dates_of_rows_that_come_one_by_one(rows, as_text):
    """A date is the same time whether it stands in a column, in a dict or as text."""
    new = autoregression(np.random.default_rng(8), 12)
    train = rows.assign(t=pd.date_range("2024-01-01", periods=len(rows), freq="h", tz="Europe/Berlin"))
    new = new.assign(t=pd.date_range("2024-03-30 20:00", periods=12, freq="h", tz="Europe/Berlin"))
    dynamic = spbn.learn_dynamic(train, time="t", model="gbn")
    expected = Monitor(dynamic, train).update(new)["p_value"]
    assert expected.notna().sum() >= 11
    single = Monitor(dynamic, train)
    records = (new.assign(t=new["t"].astype(str)) if as_text else new).to_dict("records")
    np.testing.assert_allclose([single.update(row)["p_value"].item() for row in records], expected)
    with pytest.raises(
        spbn.errors.DataError, match=r"in steps of 3600 seconds: a row at 2024-03-31 06:00:00 is"
    ):
        single.update(records[3])


def test_a_series_has_one_name_however_its_number_is_written(rows):
    train = rows.assign(machine=np.repeat([1.0, 2.0], 750))
    monitor = Monitor(spbn.learn_dynamic(train, series="machine", model="gbn"), train)
    row = {"x": 0.0, "y": 0.0}
    assert monitor.update(row | {"machine": 7.0})["p_value"].isna().all()
    for number in (7, np.int64(7), "7"):  # which now has a past
        assert monitor.update(row | {"machine": number})["p_value"].notna().all()


def test_explaining_a_row_is_not_counting_it(rows, dynamic):
    monitor = Monitor(dynamic, rows)
    assert monitor.explain({"x": 0.0, "y": 40.0}) == ()  # it has no past
    monitor.update(rows[:5])
    (reason,) = monitor.explain({"x": 0.0, "y": 40.0})
    assert (reason.node, reason.value) == ("y", 40.0)
    assert monitor.explain({"x": 0.0, "y": 40.0}) == (reason,)
    assert monitor.rows == 5


def test_what_is_there_is_compared_with_the_same_of_reference_rows(rows):
    """Where z is missing it is as if the network were without it, and what follows it is not judged."""
    rng = np.random.default_rng(5)

    def with_more(frame):
        z = np.zeros(len(frame))
        for t in range(1, len(z)):
            z[t] = 0.6 * z[t - 1] + rng.standard_normal()
        w = np.roll(z, 1) + 0.5 * rng.standard_normal(len(z))
        return frame.assign(z=z, w=w)

    train, new = with_more(rows), with_more(autoregression(rng, 2_000))
    names = ["x", "y", "z", "w"]
    arcs = [("x[t-1]", "x"), ("x[t-1]", "y"), ("z[t-1]", "z"), ("z[t-1]", "w")]
    pasts = [f"{name}[t-1]" for name in names]
    lagged = pd.concat([train, train.shift(1).set_axis(pasts, axis=1)], axis=1).dropna()
    transition = spbn.BayesianNetwork.fit(spbn.Structure(names, arcs, inputs=pasts), lagged)
    static = spbn.BayesianNetwork.fit(spbn.Structure(names), train)
    monitor = Monitor(spbn.DynamicNetwork(static, transition, 1), train, alarm=0.01)
    found = monitor.update(new.assign(z=np.nan))
    # The same variables, judged by a network of their own.
    inputs = ["x[t-1]", "y[t-1]"]
    part = spbn.BayesianNetwork.fit(spbn.Structure(["x", "y"], arcs[:2], inputs=inputs), lagged)
    first = spbn.BayesianNetwork.fit(spbn.Structure(["x", "y"]), train)
    own = Monitor(spbn.DynamicNetwork(first, part, 1), train[["x", "y"]], alarm=0.01).update(new[["x", "y"]])
    assert found["p_value"].isna().sum() == 1
    assert not found["drift_alarm"].any()
    # The tail is fitted to fewer reference rows, and ranks are those of a thousand of them.
    np.testing.assert_allclose(found["p_value"], own["p_value"], atol=0.06)
    assert stats.kstest(found["p_value"].iloc[1:], "uniform").statistic < 0.06
    assert found["alarm"].mean() == pytest.approx(0.01, abs=0.01)
    wrong = {"x": 0.0, "y": 60.0, "z": None, "w": 70.0}
    verdict = monitor.update(wrong)
    assert verdict["blame"].tolist() == ["y"]  # nothing can be said of w
    assert monitor.explain(wrong)[0].node == "y"
    # Drifts of what is there are found, too.
    drifting = autoregression(rng, 200, shift=1.0).assign(z=np.nan, w=0.0)
    drifted = monitor.update(drifting)
    assert drifted.loc[drifted["drift_alarm"], "drift_blame"].iloc[0] == "y"
