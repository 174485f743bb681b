"""Models over time on the command line: what commands do with them, and what they refuse."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.report import render_explorer
from time_series import autoregression, mixed, threshold


@pytest.fixture
def over_time(folder):
    """A model over time and its table."""
    frame = threshold(100)
    frame.to_csv("rows.csv", index=False)
    dynamic = spbn.learn_dynamic(frame, lags=2, folds=3)
    dynamic.save("time.spbn")
    return dynamic


def test_show(over_time, run):
    code, out, _ = run("show", "time.spbn")
    assert code == 0
    assert out.startswith(f"{over_time.static.record.model}\na row given the 2 rows before it:\n2 nodes (")
    assert ", 4 inputs, " in out
    assert "the first 2 rows of a series:\n4 nodes" in out
    for cpd in over_time.transition.cpds.values():
        assert repr(cpd) in out


def test_score(over_time, run):
    frame = pd.read_csv("rows.csv")
    new = frame.assign(y=frame["y"].where(frame.index != 30, 40.0))
    new.to_csv("new.csv", index=False)
    code, out, _ = run("score", "time.spbn", "new.csv", "--top", "2", "--by-node", "--out", "scores.csv")
    assert code == 0
    scores = pd.read_csv("scores.csv")
    np.testing.assert_allclose(scores[["x", "y"]], over_time.logpdf_by_node(new))
    np.testing.assert_allclose(scores["logpdf"], over_time.logpdf(new))
    code, out, _ = run("score", "time.spbn", "new.csv", "--top", "1")
    assert out.splitlines()[3].split()[0] == "31"
    assert out.splitlines()[3].split()[2] == "y"


def test_score_of_training_rows(over_time, run):
    """They are judged by what was fitted without them; the first rows by the static network as it is."""
    frame = pd.read_csv("rows.csv")
    _, out, _ = run("score", "time.spbn", "rows.csv", "--by-node", "--out", "scores.csv")
    assert "the network fitted to all other rows" in out
    found = pd.read_csv("scores.csv")[["x", "y"]].to_numpy().T
    np.testing.assert_allclose(found[:, :2], over_time.logpdf_by_node(frame).to_numpy().T[:, :2])
    expected = spbn.explain.leave_one_out(over_time.transition, over_time.lagged(frame))
    np.testing.assert_allclose(found[:, 2:], expected.T)


def test_sample(over_time, run):
    code, _, _ = run("sample", "time.spbn", "-n", "5", "--seed", "3", "--out", "s.csv")
    assert code == 0
    pd.testing.assert_frame_equal(pd.read_csv("s.csv"), over_time.sample(5, seed=3))


@pytest.mark.parametrize("kind", ["svg", "png", "dot"])
def test_plot(over_time, run, kind):
    assert run("plot", "time.spbn", "--out", f"g.{kind}")[0] == 0
    content = Path(f"g.{kind}").read_bytes()
    if kind == "dot":
        for source, target in over_time.transition.structure.arcs:
            assert f'"{source}" -> "{target}";'.encode() in content
        for name in over_time.transition.inputs:
            assert f'"{name}" [style=dashed];'.encode() in content


@pytest.mark.slow
def test_report(over_time, run):
    assert run("report", "time.spbn", "rows.csv", "--out", "r.html")[0] == 0
    page = Path("r.html").read_text()
    assert 'id="slices"' in page
    assert "How a row (t) depends on the 2 rows before it" in page
    assert 'class="input"' in page
    assert over_time.transition.inputs[0] in page
    assert run("report", "time.spbn", "--out", "r.html")[0] == 0  # without rows


@pytest.mark.slow
def test_a_report_with_discrete_variables_and_no_rows(folder, run):
    mixed(200).to_csv("rows.csv", index=False)
    code, _, err = run(
        "learn", "rows.csv", "--lags", "1", "--model", "gbn", "--out", "m.spbn", "--report", "r.html"
    )
    assert code == 0, err
    assert run("report", "m.spbn", "--out", "r.html")[0] == 0
    page = Path("r.html").read_text()
    assert "Give rows to see its density" in page
    assert "The first row of a series has no such past" in page
    (style,) = re.findall(r'aria-label="Graph of \d+ variables over time" style="([^"]*)"', page)
    least, most = (int(number) for number in re.findall(r"(?:min|max)-width: (\d+)px", style)[::-1])
    assert 100 < least < most < 1000  # neither too small to read nor as wide as any screen


def test_explore(over_time, run):
    assert run("explore", "time.spbn", "-n", "200", "--out", "page.html", "--no-open")[0] == 0
    assert Path("page.html").read_text() == render_explorer(over_time, n=200, title="time")


@pytest.mark.parametrize(
    "command",
    [
        ["query", "time.spbn"],
        ["impute", "time.spbn", "rows.csv", "--out", "x.csv"],
        ["predict", "time.spbn", "rows.csv", "--target", "x"],
    ],
)
def test_commands_for_single_rows_refuse(over_time, run, command):
    code, _, err = run(*command)
    assert code == 2
    assert "time.spbn is a model over time" in err
    assert "spbn forecast" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["forecast", "model.spbn", "rows.csv"],
            "model.spbn is not a model over time: learn one with spbn learn --lags",
        ),
        (["forecast", "time.spbn", "rows.csv", "--steps", "0"], "--steps must be 1 or more"),
        (["forecast", "time.spbn", "rows.csv", "-n", "0"], "-n must be 1 or more"),
        (["forecast", "time.spbn", "rows.csv", "--event", "x=3"], "exactly 3 has probability 0"),
        (["forecast", "time.spbn", "rows.csv", "--event", "5<x<3"], "the interval of 'x' is empty: 5 to 3."),
        (["sample", "time.spbn", "-n", "0"], "-n must be a whole number, 1 or more. Got 0"),
        (["forecast", "time.spbn", "rows.csv", "--event", "z>3"], "--event"),
        (
            ["forecast", "time.spbn", "rows.csv", "--only", "a"],
            "--only is for models that were learned with --series",
        ),
        (
            ["forecast", "time.spbn", "rows.csv", "--every", "2"],
            "--every is for models that were learned with --time",
        ),
        (["forecast", "time.spbn", "short.csv"], "must end with 2 rows without a gap"),
        (["forecast", "time.spbn", "holes.csv"], "column 'x' has a missing value in row 100, counted from 1"),
        (["forecast", "time.spbn", "rows.csv", "--out", "time.spbn"], "is an input"),
        (["forecast", "time.spbn", "rows.csv", "--plot", "fan.txt"], "the name of a picture must end in"),
        (
            ["score", "time.spbn", "rows.csv", "--missing", "integrate"],
            "--missing integrate is not for models over time",
        ),
        (["score", "time.spbn", "rows.csv", "--top", "-1"], "--top"),
        (["learn", "rows.csv", "--lags", "0"], "--lags must be 1 or more"),
        (["learn", "rows.csv", "--lags", "1", "--every", "3"], "--every needs the column"),
        (["learn", "rows.csv", "--lags", "1", "--series", "m"], "lacks the column 'm'"),
        (["learn", "rows.csv", "--lags", "1", "--forbid", "x[t-2]:x"], "unknown column"),
        (
            ["learn", "rows.csv", "--lags", "1", "--missing", "impute"],
            "--missing impute is for rows that do not depend",
        ),
        (["learn", "rows.csv", "--lags", "100"], "no more than 100 rows in a row"),
        (["learn", "holes.csv", "--lags", "1"], "--missing drop"),
    ],
)
def test_refusals(over_time, model, run, arguments, message):
    pd.read_csv("rows.csv").iloc[:1].to_csv("short.csv", index=False)
    holes = pd.read_csv("rows.csv")
    holes.loc[99, "x"] = np.nan
    holes.to_csv("holes.csv", index=False)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_compact(over_time, run):
    code, out, err = run(
        "compact", "time.spbn", "--out", "small.spbn", "--others", "keep", "--tolerance", 0.01
    )
    assert code == 0, err
    assert out.startswith("compact model written to small.spbn: ")
    small = spbn.DynamicNetwork.load("small.spbn")
    assert small == over_time.compact(0.01, others="keep")
    kernels = spbn.learn_dynamic(threshold(100), model="spbn", lags=2, folds=3)
    kernels.save("time.spbn")
    assert run("compact", "time.spbn", "--out", "small.spbn", "--others", "keep", "--tolerance", 0.01)[0] == 0
    small = spbn.DynamicNetwork.load("small.spbn")
    assert small == kernels.compact(0.01, others="keep") != kernels


def test_a_search_goes_on(over_time, run):
    frame = pd.read_csv("rows.csv")
    spbn.learn_dynamic(frame, lags=2, folds=3, max_seconds=0, checkpoint="c.jsonl")
    learn = ["learn", "rows.csv", "--lags", 2, "--folds", 3, "--checkpoint", "c.jsonl", "--out", "m.spbn"]
    assert run(*learn)[0] == 0
    assert spbn.DynamicNetwork.load("m.spbn") == over_time
    assert len(Path("c.jsonl").read_text().splitlines()) > 3


def test_times_as_people_write_them(folder, run):
    """Dates in text, with a gap, in two series whose names look like numbers."""
    frame = autoregression(40, series=2)
    times = pd.date_range("2024-03-30 22:00", periods=40, freq="10min")
    times = times.where(np.arange(40) < 25, times + pd.Timedelta("3h"))
    frame["machine"] = frame["machine"].str.removeprefix("m")
    frame.insert(1, "when", np.tile(times.strftime("%Y-%m-%d %H:%M:%S"), 2))
    frame.to_csv("rows.csv", index=False)
    command = ["learn", "rows.csv", "--lags", "1", "--model", "gbn", "--series", "machine", "--time", "when"]
    code, _, err = run(*command, "--out", "m.spbn")
    assert code == 0, err
    dynamic = spbn.DynamicNetwork.load("m.spbn")
    assert dynamic.step == 600
    assert dynamic.transition.record.rows == 2 * 38
    code, _, _ = run("forecast", "m.spbn", "rows.csv", "--only", "1", "--steps", "2")
    assert code == 0


def test_rows_with_holes_are_not_joined(folder, run):
    frame = autoregression(60)
    frame.loc[30, "a"] = np.nan
    frame.to_csv("rows.csv", index=False)
    code, _, err = run(
        "learn", "rows.csv", "--lags", "1", "--model", "gbn", "--missing", "drop", "--out", "m.spbn"
    )
    assert code == 0, err
    found = spbn.DynamicNetwork.load("m.spbn")
    assert found.transition.record.rows == 57
    assert found == spbn.learn_dynamic(frame, model="gbn", missing="drop")


def test_a_series_is_chosen_by_the_name_that_is_printed(folder, run):
    frame = autoregression(40, series=2).assign(machine=np.repeat([1.0, 2.0], 40))
    frame.to_parquet("rows.parquet")
    spbn.learn_dynamic(frame, series="machine", model="gbn").save("time.spbn")
    code, out, _ = run("forecast", "time.spbn", "rows.parquet", "--only", "2", "--steps", "1", "-n", "5")
    assert code == 0
    assert re.search(r"machine +step .*\n +2 +1 ", out)
