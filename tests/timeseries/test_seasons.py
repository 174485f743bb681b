"""Seasons: the phase as an input of every row, in forecasts, samples, monitors and files."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn._base.files import ArrayWriter
from spbn.errors import ArgumentError, DataError, GraphError, ModelFileError
from spbn.plots import plot_slices

AMPLITUDE, NOISE, INERTIA = 3.0, 0.5, 0.5


def mean_of(days):
    return AMPLITUDE * np.sin(2 * np.pi * days / 365.2425)


def yearly(days, seed=0, first=0):
    """Days of a year round: half of yesterday's distance from the season is left. Day 0 is in 1970."""
    rng = np.random.default_rng(seed)
    distance, x = 0.0, []
    for day in range(first, first + days):
        distance = INERTIA * distance + NOISE * rng.standard_normal()
        x.append(mean_of(day) + distance)
    return pd.DataFrame(
        {"x": x, "day": pd.Timestamp(0, unit="D") + pd.to_timedelta(np.arange(days) + first, "D")}
    )


def counted(rows, seed=0, first=0, period=12):
    """The same with rows that are counted, and twelve to a season; two series."""
    rng = np.random.default_rng(seed)
    parts = []
    for name in "ab":
        t = np.arange(first, first + rows)
        x = 2.0 * np.cos(2 * np.pi * t / period) + 0.3 * rng.standard_normal(rows)
        parts.append(pd.DataFrame({"machine": name, "t": t, "x": x}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def dynamic():
    return spbn.learn_dynamic(yearly(1_500), time="day", season="year", model="gbn", margins="none")


def test_the_log_density_is_that_of_the_law(dynamic):
    """x is linear in its last value and in the sine and the cosine of today."""
    rows = yearly(400, seed=1, first=5_000)
    assert dynamic.season == "year"
    assert set(dynamic.transition.inputs) >= {"x[t-1]", "sin(season)", "cos(season)"}
    days = np.arange(5_000, 5_400)
    expected = mean_of(days[1:]) + INERTIA * (rows["x"].to_numpy()[:-1] - mean_of(days[:-1]))
    law = stats.norm(expected, NOISE).logpdf(rows["x"][1:])
    found = dynamic.logpdf(rows).to_numpy()[1:]
    assert np.mean(law - found) < 0.02
    lagged = dynamic.lagged(rows)
    angles = 2 * np.pi * days[1:] / 365.2425
    np.testing.assert_allclose(lagged["sin(season)"], np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(lagged["cos(season)"], np.cos(angles), atol=1e-6)


def test_a_forecast_knows_the_season_to_come(dynamic):
    history = yearly(30, seed=2, first=7_000)
    paths = dynamic.forecast(history, 250, n=400).of("x")
    ahead = mean_of(np.arange(7_030, 7_280))[20:]
    assert np.abs(paths.mean(axis=0)[20:] - ahead).max() < 0.4
    spread = NOISE / np.sqrt(1 - INERTIA**2)
    assert paths.std(axis=0)[20:].mean() == pytest.approx(spread, rel=0.15)


def test_samples_begin_anywhere_in_the_season_and_say_when(dynamic):
    rows = dynamic.sample(200, n=20, seed=0)
    days = rows["day"].to_numpy().reshape(20, 200)[:, 20:] / 86_400
    assert days[:, 0].std() > 50
    distance = rows["x"].to_numpy().reshape(20, 200)[:, 20:] - mean_of(days)
    assert abs(distance.mean()) < 0.1
    assert distance.std() == pytest.approx(NOISE / np.sqrt(1 - INERTIA**2), rel=0.1)


def test_a_monitor_and_files_know_the_season(dynamic, tmp_path):
    dynamic.save(tmp_path / "m.spbn")
    loaded = spbn.DynamicNetwork.load(tmp_path / "m.spbn")
    rows = yearly(300, seed=3, first=9_000)
    np.testing.assert_array_equal(loaded.logpdf(rows), dynamic.logpdf(rows))
    assert loaded.season == "year"
    together = spbn.Monitor(loaded, yearly(1_500), alarm=0.01).update(rows)
    assert together["alarm"].mean() < 0.05
    single = spbn.Monitor(loaded, yearly(1_500), alarm=0.01)
    parts = [single.update(row) for row in rows[:40].to_dict("records")]
    np.testing.assert_allclose(pd.concat(parts)["p_value"], together["p_value"][:40], rtol=1e-6)
    # Half a year late, the same values are wrong.
    late = rows.assign(day=rows["day"] + pd.Timedelta(days=183))
    assert spbn.Monitor(loaded, yearly(1_500), alarm=0.01).update(late)["drift_alarm"].any()
    found = spbn.explain.unusual_rows(dynamic.transition, dynamic.lagged(rows)).rows
    assert len(found) == 10
    assert plot_slices(loaded) is not None
    assert "sin(season)" in spbn.report.render(loaded, data=rows)


def test_a_season_of_rows_is_counted_by_their_times():
    options = {"series": "machine", "time": "t", "season": 12, "model": "gbn", "margins": "none"}
    dynamic = spbn.learn_dynamic(counted(150), lags=2, **options)
    assert set(dynamic.transition.structure.parents("x")) == {"cos(season)"}
    mean = dynamic.forecast(counted(5, seed=1, first=7), 12, n=300).mean()["x"].to_numpy().reshape(2, 12)
    np.testing.assert_allclose(mean, [2.0 * np.cos(2 * np.pi * np.arange(12, 24) / 12)] * 2, atol=0.15)
    # Rows two apart have half as many to a season.
    sparse = counted(300)[lambda frame: frame["t"] % 2 == 0]
    other = spbn.learn_dynamic(sparse, **options | {"season": 6})
    assert other.step == 2.0
    assert set(other.transition.structure.parents("x")) == {"cos(season)"}


def test_a_default_network_has_seasons_too():
    dynamic = spbn.learn_dynamic(yearly(800), time="day", season="year")
    paths = dynamic.forecast(yearly(10, seed=2, first=700), 200, n=50).of("x")
    assert np.abs(paths.mean(axis=0)[20:] - mean_of(np.arange(710, 910))[20:]).mean() < 0.4


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"season": "moon"}, ArgumentError, "season must be one of 'hour', 'day', 'week' and 'year', or"),
        ({"season": 1}, ArgumentError, "2 or more. Got 1"),
        ({"season": True}, ArgumentError, "Got True"),
        ({"season": 12, "time": None, "drop": "t"}, ArgumentError, "season=12 needs the times of rows"),
        ({"season": "year"}, ArgumentError, "needs dates, and column 't' holds numbers"),
    ],
)
def test_seasons_that_make_no_sense_are_refused(change, error, message):
    options = {"series": "machine", "time": "t", "model": "gbn"} | change
    with pytest.raises(error, match=message):
        spbn.learn_dynamic(counted(30), **options)


def test_rows_that_are_too_far_apart_and_taken_names_are_refused():
    with pytest.raises(ArgumentError, match="season='day' has no phase"):
        spbn.learn_dynamic(yearly(50), time="day", season="day", model="gbn")
    frame = counted(30).rename(columns={"x": "sin(season)"})
    with pytest.raises(DataError, match=r"a column is called 'sin\(season\)'"):
        spbn.learn_dynamic(frame, series="machine", time="t", season=12, model="gbn")


def test_a_file_with_a_season_that_makes_no_sense_is_refused(dynamic, monkeypatch):
    with pytest.raises(GraphError, match=r"a season, .* needs the column of the times"):
        spbn.DynamicNetwork(dynamic.static, dynamic.transition, 1, season="year")
    record = dynamic.to_record(ArrayWriter())["dynamic"]
    monkeypatch.setattr(spbn.BayesianNetwork, "from_record", lambda *_: dynamic.static)
    for wrong in ("moon", 0, [1]):
        with pytest.raises(ModelFileError, match="its season must be one of"):
            spbn.DynamicNetwork.from_record(record | {"season": wrong}, 1, None)
