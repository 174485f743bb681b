"""What notebooks show of networks over time, forecasts, monitors and what monitors found."""

import re

import numpy as np
import pandas as pd
import pytest

import spbn
from reading import Page
from spbn.report.html import number
from time_series import autoregression, mixed

pytest.importorskip("igraph")


@pytest.fixture(scope="module")
def dynamic():
    return spbn.learn_dynamic(autoregression(300, seed=0), model="gbn")


def cells(html):
    """The texts of a table's cells, line by line."""
    lines = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    found = [re.findall(r"<td>(.*?)</td>", line, flags=re.DOTALL) for line in lines]
    return [[re.sub(r"<[^>]+>", "", cell) for cell in line] for line in found if line]


def points(path):
    """The points of an SVG path."""
    return np.array([[float(x) for x in pair.split()] for pair in path.strip("Mz").split("L")])


def paths(html, name):
    return [a["d"] for _, a in Page(html).with_class(name)]


def test_a_dynamic_network_shows_its_past_dashed_and_its_densities(dynamic):
    page = Page(dynamic._repr_html_())
    used = dynamic.transition.structure.used_inputs
    assert used
    assert len(page.with_class("input")) == len(used)
    assert len(page.with_class("node")) == 2
    text = page.text()
    assert "2 nodes (2 linear Gaussian)" in text
    assert "the row before it (dashed), from 299 rows" in text
    for node in dynamic.nodes:
        assert dynamic.transition.cpds[node].describe().formula in text
    assert len(cells(dynamic._repr_html_())) == 2  # inputs have no density


def test_a_forecast_shows_its_first_and_last_step(dynamic):
    history = autoregression(60, seed=1)
    forecast = dynamic.forecast(history, 12, n=400, seed=0)
    lines = cells(forecast._repr_html_())
    assert [line[0] for line in lines] == ["a", "b"]
    quantiles = forecast.quantile([0.05, 0.5, 0.95])
    for name, now, first, last, _ in lines:
        assert now == number(float(history[name].iloc[-1]))
        for step, shown in ((1, first), (12, last)):
            low, middle, high = (number(float(q), 3) for q in quantiles[name].loc[step])
            assert shown == f"{middle} ({low} to {high})"
    assert "12 steps, 400 paths" in Page(forecast._repr_html_()).text()


def test_the_fan_chart_has_the_bands_of_the_paths(dynamic):
    history = autoregression(60, seed=1)
    forecast = dynamic.forecast(history, 12, n=400, seed=0)
    html = forecast._repr_html_()
    before = points(paths(html, "history")[0])
    assert len(before) == 24  # twice as many as steps
    wide, narrow = (points(path) for path in paths(html, "fan")[:2])
    assert wide.shape == narrow.shape == (26, 2)  # there and back, from the last row on
    # The history tells how values are drawn; the bands must be drawn alike.
    scale, start = np.polyfit(history["a"].to_numpy()[-24:], before[:, 1], 1)
    for share, band in ((0.9, wide), (0.5, narrow)):
        ends = forecast.interval(share)["a"].to_numpy()
        drawn = np.stack([band[1:13, 1], band[::-1][1:13, 1]], axis=1)
        assert drawn == pytest.approx(start + scale * ends, abs=0.15)
    median = points(paths(html, "median")[0])
    assert median[1:, 1] == pytest.approx(
        start + scale * forecast.quantile(0.5)["a"].to_numpy().ravel(), abs=0.15
    )
    assert np.all(np.diff(before[:, 0]) > 0)
    assert median[0] == pytest.approx(before[-1])


def test_a_forecast_of_levels_shows_their_probabilities():
    dynamic = spbn.learn_dynamic(mixed(300), model="gbn")
    forecast = dynamic.forecast(mixed(30, seed=1), 4, n=200, seed=0)
    line = next(line for line in cells(forecast._repr_html_()) if line[0] == "mode")
    assert line[1] == str(mixed(30, seed=1)["mode"].iloc[-1])
    for step, shown in ((1, line[2]), (4, line[3])):
        shares = forecast.probabilities("mode").loc[step].sort_values(ascending=False)
        assert shown == ", ".join(f"{level} {100 * share:.0f} %" for level, share in shares.items())


def test_every_series_has_its_line():
    data = autoregression(80, series=2)
    forecast = spbn.learn_dynamic(data, model="gbn", series="machine").forecast(data, 1, n=50)
    html = forecast._repr_html_()
    assert [line[:2] for line in cells(html)] == [["m0", "a"], ["m0", "b"], ["m1", "a"], ["m1", "b"]]
    assert "machine" in Page(html).text("th")
    assert "Step 1" in Page(html).text("th")
    assert len(cells(html)[0]) == 5  # one step is shown once


def test_a_monitor_shows_what_it_has_seen(dynamic):
    monitor = spbn.Monitor(dynamic, autoregression(300, seed=0), alarm=0.01, drift=1e-4)
    rows = autoregression(100, seed=2)
    rows.loc[50, "a"] += 30.0
    found = monitor.update(rows)
    text = Page(monitor._repr_html_()).text()
    assert "2 variables, with 299 rows in normal operation" in text
    assert "In 100 rows" in text
    lines = cells(monitor._repr_html_())
    assert [line[1] for line in lines] == [str(found["alarm"].sum()), str(found["drift_alarm"].sum())]
    assert "1 in 100 rows" in lines[0][2]
    assert "1 in 10,000 rows" in lines[1][2]


def test_verdicts_are_a_frame_that_lists_its_alarms(dynamic):
    monitor = spbn.Monitor(dynamic, autoregression(300, seed=0), alarm=0.001)
    rows = autoregression(100, seed=2)
    rows.loc[50, "a"] += 30.0
    rows.loc[70:, "b"] += 4.0
    found = monitor.update(rows)
    assert isinstance(found, pd.DataFrame)
    assert type(found[found["alarm"]]) is type(found.head()) is pd.DataFrame
    html = found._repr_html_()
    alarms, drifts = int(found["alarm"].sum()), int(found["drift_alarm"].sum())
    assert alarms > 0
    assert drifts > 0
    assert f"{alarms} alarms, {drifts} drift alarm" in Page(html).text()
    assert len(Page(html).with_class("alarm")) == alarms + drifts
    listed = {line[0]: line[2] for line in cells(html)}
    expected = found[found["alarm"] | found["drift_alarm"]]
    assert list(listed) == [str(row) for row in expected.index[:12]]
    assert listed["50"].startswith(f"alarm: {found.loc[50, 'blame']}")
    first = next(row for row in expected.index if found.loc[row, "drift_alarm"])
    if str(first) in listed:
        assert f"drift: {found.loc[first, 'drift_blame']}" in listed[str(first)]


def test_lower_shares_are_drawn_lower(dynamic):
    monitor = spbn.Monitor(dynamic, autoregression(300, seed=0), alarm=0.02)
    rows = autoregression(60, seed=2)
    rows.loc[[30, 45], "a"] += [3.5, 30.0]
    found = monitor.update(rows)
    marks = [float(a["cy"]) for _, a in Page(found._repr_html_()).with_class("alarm")][: found["alarm"].sum()]
    shares = found.loc[found["alarm"], "p_value"].to_numpy()
    assert len(marks) >= 2
    assert np.argsort(marks).tolist() == np.argsort(-shares, kind="stable").tolist()


def test_one_row_needs_no_picture(dynamic):
    monitor = spbn.Monitor(dynamic, autoregression(300, seed=0))
    found = monitor.update({"a": 1.0, "b": 1.0})
    assert "<svg" not in found._repr_html_()
    assert "1 row" in Page(found._repr_html_()).text()


def test_unusual_rows_say_why():
    rows = spbn.datasets.synthetic(80, seed=0)
    network = spbn.learn(rows, model="gbn")
    rows.loc[7, "D"] += 20.0
    found = spbn.explain.unusual_rows(network, rows, top=3)
    lines = cells(found._repr_html_())
    assert [line[0] for line in lines] == [row.label for row in found.rows]
    assert lines[0][0] == "7"
    assert f"D = {number(rows.loc[7, 'D'])}" in lines[0][2]
    assert lines[0][1] == number(found.rows[0].logpdf)
