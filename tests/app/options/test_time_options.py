"""Options of the commands for rows over time: forecast and watch."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from command_options import (
    SERIES,
    learned_over_time,
    many_rows,
    option,
)
from learning_options import FRAME
from spbn.cli.inputs import resample
from spbn.plots.pictures import save_figure

pytestmark = pytest.mark.usefixtures("tables")


def forecast(run, *arguments):
    code, out, err = run("forecast", "time.spbn", "series.csv", *arguments)
    assert code == 0, err
    return out


@option("forecast", "--steps", "-n", "--seed", "--out", "--paths")
def test_forecast_steps_n_seed_out_and_paths(run):
    network = learned_over_time(run)
    options = ["--steps", "7", "-n", "50", "--seed", "3", "--out", "ahead.csv", "--paths", "paths.csv"]
    out = forecast(run, *options)
    expected = network.forecast(SERIES, 7, n=50, seed=3)
    pd.testing.assert_frame_equal(pd.read_csv("paths.csv"), expected.paths)
    written = pd.read_csv("ahead.csv").set_index(["machine", "step"])
    np.testing.assert_allclose(written["a mean"], expected.mean()["a"])
    np.testing.assert_allclose(written["b 95 %"], expected.quantile(0.95)["b"].iloc[:, 0])
    assert out.startswith("7 steps ahead, 50 paths, 3 series")


def test_large_numbers_of_forecasts_are_written_out(run):
    large = SERIES.assign(a=12_190 + 3 * SERIES["a"]).drop(columns="t")
    large.to_csv("large.csv", index=False)
    keys = ("--series", "machine", "--lags", "1")
    assert run("learn", "large.csv", *keys, "--model", "gbn", "--out", "large.spbn")[0] == 0
    code, out, _ = run("forecast", "large.spbn", "large.csv", "--steps", "2")
    assert code == 0
    mean = spbn.DynamicNetwork.load("large.spbn").forecast(large, 2).mean()["a"].iloc[0]
    assert f"{mean:,.0f}" in out
    assert "12,1" in out or "12,2" in out
    assert "e+0" not in out


@option("forecast", "--event")
def test_forecast_event(run):
    network = learned_over_time(run)
    out = forecast(run, "--steps", "3", "--event", "a>3", "--event", "b<2")
    ahead = network.forecast(SERIES, 3)
    for name in ahead.series:
        probability = ahead.probability({"a": (3, None), "b": (None, 2)}, series=name)
        assert f"{name}: P(a>3 and b<2 within 3 steps) = {probability:.4g} ±" in out


@pytest.mark.slow
@option("forecast", "--only", "--plot")
def test_forecast_only_and_plot(run):
    network = learned_over_time(run)
    code, _, err = run("forecast", "time.spbn", "series.csv", "--plot", "fan.svg")
    assert (code, "--only" in err) == (2, True)
    forecast(run, "--only", "m1", "--plot", "fan.svg", "--paths", "paths.csv")
    expected = network.forecast(SERIES[SERIES["machine"] == "m1"], 10)
    pd.testing.assert_frame_equal(pd.read_csv("paths.csv"), expected.paths)
    save_figure(expected, Path("expected.svg"))
    assert Path("fan.svg").read_bytes() == Path("expected.svg").read_bytes()
    assert "'m9'" in run("forecast", "time.spbn", "series.csv", "--only", "m9")[2]


@option("forecast", "--every")
def test_forecast_every(run):
    network = learned_over_time(run)
    uneven = SERIES[SERIES["machine"] == "m0"].assign(t=lambda f: f["t"] + 0.5 * (f.index % 2))
    uneven.to_csv("uneven.csv", index=False)
    code, _, err = run("forecast", "time.spbn", "uneven.csv")
    assert code == 2
    assert "not equally spaced" in err
    assert "--every 2" in err
    assert run("forecast", "time.spbn", "uneven.csv", "--every", "2", "--paths", "paths.csv")[0] == 0
    expected = network.forecast(resample(uneven, time="t", every=2, series="machine"), 10)
    pd.testing.assert_frame_equal(pd.read_csv("paths.csv"), expected.paths)


def watch(run, *arguments):
    """Watch the frame, compared with 300 other rows; return what is printed."""
    many_rows(300)
    code, out, err = run("watch", "m.spbn", "frame.csv", "--reference", "many.csv", *arguments)
    assert code == 0, err
    return out, err


def judged(run, *arguments):
    """Return what `spbn watch` says about every row of the frame."""
    out, _ = watch(run, "--all", "--json", *arguments)
    return pd.DataFrame([json.loads(line) for line in out.splitlines()])


def expected_verdicts(**settings):
    return spbn.Monitor(spbn.BayesianNetwork.load("m.spbn"), many_rows(300), **settings).update(FRAME)


@option("watch", "--reference")
def test_watch_reference(run):
    np.testing.assert_allclose(judged(run)["share"], expected_verdicts()["p_value"])
    other = many_rows(200, seed=2)
    other.to_csv("other.csv", index=False)
    expected = spbn.Monitor(spbn.BayesianNetwork.load("m.spbn"), other).update(FRAME)
    np.testing.assert_allclose(judged(run, "--reference", "other.csv")["share"], expected["p_value"])
    assert (expected["p_value"] != expected_verdicts()["p_value"]).any()


@option("watch", "--alarm")
def test_watch_alarm(run):
    found = judged(run, "--alarm", 0.2)
    assert found["alarm"].tolist() == expected_verdicts(alarm=0.2)["alarm"].tolist()
    assert found["alarm"].sum() > expected_verdicts()["alarm"].sum()


@option("watch", "--drift")
def test_watch_drift(run):
    np.testing.assert_allclose(judged(run, "--drift", 0.01)["drift"], expected_verdicts(drift=0.01)["drift"])


@option("watch", "--seed")
def test_watch_seed(run):
    found = judged(run, "--seed", 7)["drift"]
    np.testing.assert_allclose(found, expected_verdicts(seed=7)["drift"])
    assert (found != expected_verdicts()["drift"]).any()


@option("watch", "--state")
def test_watch_state(run):
    watch(run, "--state", "s.json")
    _, err = watch(run, "--state", "s.json", "--alarm", 0.3)
    assert f"after {len(FRAME)} rows" in err
    monitor = spbn.Monitor.load("s.json", spbn.BayesianNetwork.load("m.spbn"))
    assert (monitor.rows, monitor.alarm) == (2 * len(FRAME), 0.3)


@option("watch", "--label")
def test_watch_label(run):
    Path("rows.csv").write_text(FRAME.assign(when="noon").to_csv(index=False))
    many_rows(300)
    command = ("watch", "m.spbn", "rows.csv", "--reference", "many.csv", "--all")
    assert "row 1 (line 2) [noon]: share" in run(*command, "--label", "when")[1]
    assert json.loads(run(*command, "--label", "when", "--json")[1].splitlines()[0])["label"] == "noon"
    code, _, err = run(*command, "--label", "where")
    assert (code, "--label: the first line has no 'where'" in err) == (2, True)


@option("watch", "--all")
def test_watch_all(run):
    out, _ = watch(run, "--all")
    assert len(out.splitlines()) == len(FRAME)
    assert len(watch(run)[0].splitlines()) == expected_verdicts()["alarm"].sum()


@option("watch", "--json")
def test_watch_json(run):
    out, _ = watch(run, "--alarm", 0.1, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == expected_verdicts(alarm=0.1)["alarm"].sum()
    assert all(line["alarm"] for line in found)
