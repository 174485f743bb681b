"""What notebooks show of networks over time, forecasts, monitors and what monitors found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray
from spbn.monitoring.monitor import AlarmFrame, Monitor
from spbn.plots.svg import Html, safe, tag
from spbn.plots.timelines import BANDS, LOWEST_DRIFT, LOWEST_SHARE
from spbn.report.format import count, number, plural
from spbn.report.html import densities_of, drawn, levels_of, numeral, size_of, table, view
from spbn.timeseries.forecast import Forecast
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    import pandas as pd

FAN_WIDTH, FAN_HEIGHT = 240.0, 44.0
STRIP_WIDTH, SHARES_HEIGHT, DRIFT_HEIGHT = 640.0, 74.0, 34.0
GAP = 8.0  # between the shares and the drift statistic
MOST_ALARMS = 12  # that are listed


@display.html.register(DynamicNetwork)
def dynamic_html(network: DynamicNetwork) -> str:
    """Show how a row depends on those before it, and the density of every variable."""
    structure = network.transition.structure
    rows = network.transition.record.rows
    learned = f", from {plural(rows, 'row')}" if rows is not None else ""
    lags = "the row" if network.lags == 1 else f"the {network.lags} rows"
    title = tag(
        "p",
        tag("b", "Dynamic network"),
        f": {size_of(structure)}; a row given {lags} before it (dashed){learned}",
    )
    graph = drawn(structure)
    return view(structure, title, graph, densities_of(network.transition, unfolded=not graph))


@display.html.register(Forecast)
def forecast_html(forecast: Forecast) -> str:
    """Show what may come next: the first and the last step in numbers, and a small fan chart."""
    steps = forecast.steps
    series = f", {count(len(forecast.series))} series" if len(forecast.series) > 1 else ""
    title = tag(
        "p",
        tag("b", "Forecast"),
        f": {plural(steps, 'step')}, {plural(forecast.n, 'path')}{series}. Median and 90 % interval, or "
        "probabilities",
    )
    many = forecast.series_name is not None
    lines = []
    for name in forecast.series:
        for place, variable in enumerate(forecast.variables):
            paths = forecast.of(variable.name, series=name)
            before = forecast.history(name)[place]
            levels = variable.levels if variable.is_discrete else ()
            ends = [_outlook(paths[:, step], levels) for step in ((0, -1) if steps > 1 else (0,))]
            now = safe(levels[int(before[-1])]) if levels else numeral(before[-1])
            picture = Html("") if levels else _fan(before[-max(2 * steps, 20) :], paths, variable.name)
            lines.append((*([safe(name)] if many else []), safe(variable.name), now, *ends, picture))
    heads = [*([forecast.series_name or ""] if many else []), "Variable", "Last row", "Step 1"]
    return view(None, title, table([*heads, *([f"Step {count(steps)}"] if steps > 1 else []), ""], lines))


@display.html.register(Monitor)
def monitor_html(monitor: Monitor) -> str:
    """Show what a monitor has seen, and what it promises."""
    title = tag(
        "p",
        tag("b", "Monitor"),
        f" of {plural(len(monitor.variables), 'variable')}, with {plural(monitor.reference_rows, 'row')} in "
        "normal operation to compare with",
    )
    lines = [
        ("Alarms", count(monitor.alarms), f"in normal operation: {_rate(monitor.alarm)} rows"),
        (
            "Drift alarms",
            count(monitor.drift_alarms),
            f"without a drift: at most {_rate(monitor.drift)} rows",
        ),
    ]
    heads = (f"In {plural(monitor.rows, 'row')}", "", "To be expected")
    return view(None, title, table(heads, [tuple(map(safe, line)) for line in lines]))


@display.html.register(AlarmFrame)
def verdicts_html(found: pd.DataFrame) -> str:
    """Show what a monitor said about rows: a picture of all, and a list of the alarms."""
    unusual, drifting = (found[name].to_numpy(dtype=np.bool_) for name in ("alarm", "drift_alarm"))
    title = tag(
        "p",
        tag("b", plural(len(found), "row")),
        f": {plural(int(unusual.sum()), 'alarm')}, {plural(int(drifting.sum()), 'drift alarm')}",
    )
    lines = []
    for place in np.flatnonzero(unusual | drifting).tolist():
        row = found.iloc[place]
        said = [f"alarm: {row['blame'] or 'no single variable'}"] if unusual[place] else []
        said += [f"drift: {row['drift_blame']}"] if drifting[place] else []
        lines.append((safe(str(found.index[place])), numeral(row["share"], 2), safe("; ".join(said))))
    more = len(lines) - MOST_ALARMS
    note = tag("p", f"And {count(more)} more.", class_="dim") if more > 0 else Html("")
    listed = table(("Row", "Share as unusual", "Because of"), lines[:MOST_ALARMS])
    return view(None, title, _strip(found, unusual, drifting), listed, note)


def _outlook(values: FloatArray, levels: tuple[str, ...]) -> Html:
    """Write what is likely at one step."""
    if levels:
        return levels_of({level: float((values == code).mean()) for code, level in enumerate(levels)})
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return tag("span", f"{number(middle, 3)} ({number(low, 3)} to {number(high, 3)})", class_="num")


def _fan(before: FloatArray, paths: FloatArray, name: str) -> Html:
    """Draw the history, and the bands that the paths stay in."""
    steps = paths.shape[1]
    bands = [np.quantile(paths, [0.5 - share / 2, 0.5 + share / 2], axis=0) for share in BANDS]
    seen = np.concatenate([before[np.isfinite(before)], *bands[0]])
    low, high = float(seen.min()), float(seen.max())
    if not low < high:
        return Html("")
    total = len(before) - 1 + steps

    def points(first: int, values: FloatArray) -> list[str]:
        xs = FAN_WIDTH * (first + np.arange(len(values))) / total
        ys = 1.0 + (FAN_HEIGHT - 2.0) * (high - values) / (high - low)
        return [f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True) if np.isfinite(y)]

    now = len(before) - 1
    last = before[-1:]
    fans = []
    for lower, upper in bands:
        edge = points(now, np.append(last, lower)) + points(now, np.append(last, upper))[::-1]
        fans.append(tag("path", d=f"M{'L'.join(edge)}z", class_="fan"))
    middle = points(now, np.append(last, np.median(paths, axis=0)))
    return tag(
        "svg",
        *fans,
        tag("path", d=f"M{'L'.join(middle)}", class_="median"),
        tag("path", d=f"M{'L'.join(points(0, before))}", class_="history"),
        viewBox=f"0 0 {FAN_WIDTH:.0f} {FAN_HEIGHT:.0f}",
        width=FAN_WIDTH,
        height=FAN_HEIGHT,
        role="img",
        aria_label=f"Fan chart of {name}: the history, then what 50 % and 90 % of the paths stay in",
    )


def _strip(found: pd.DataFrame, unusual: BoolArray, drifting: BoolArray) -> Html:
    """Draw shares, on a logarithmic axis, over the drift statistic."""
    if len(found) < 2:
        return Html("")
    shares = _depth(found["share"], LOWEST_SHARE) * SHARES_HEIGHT
    base = SHARES_HEIGHT + GAP
    drift = base + _depth(found["drift"], LOWEST_DRIFT) * DRIFT_HEIGHT
    xs = 4.0 + (STRIP_WIDTH - 8.0) * np.arange(len(found)) / (len(found) - 1)
    known = np.isfinite(shares) & ~unusual
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in _distinct(xs[known], shares[known]))
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in _distinct(xs, drift))
    marks = [(x, y) for x, y in zip(xs[unusual].tolist(), shares[unusual].tolist(), strict=True)]
    marks += [(x, base) for x in xs[drifting].tolist()]
    height = base + DRIFT_HEIGHT
    return tag(
        "svg",
        tag("path", d=dots, class_="dots"),
        tag("path", d=f"M{line}" if line else "", class_="median"),
        *(tag("circle", cx=float(x), cy=float(y), r=3.0, class_="alarm") for x, y in marks),
        tag("text", "share as unusual", x=4, y=SHARES_HEIGHT - 3.0),
        tag("text", "drift statistic", x=4, y=base + 9.0),
        class_="strip",
        viewBox=f"0 -4 {STRIP_WIDTH:.0f} {height + 8:.0f}",
        role="img",
        aria_label=f"Shares and drift statistic of {len(found)} rows",
    )


def _depth(values: Any, lowest: float) -> FloatArray:
    """Return how far values are below 1 on a logarithmic axis that ends at the lowest: from 0 to 1."""
    numbers: FloatArray = np.asarray(values, dtype=np.float64)
    depth: FloatArray = np.log(np.clip(numbers, lowest, 1.0)) / np.log(lowest)
    return depth


def _distinct(xs: FloatArray, ys: FloatArray) -> list[tuple[float, float]]:
    """Return points without those that would be drawn over one another."""
    finite = np.isfinite(ys)
    return list(dict.fromkeys(zip(xs[finite].round(0).tolist(), ys[finite].round(0).tolist(), strict=True)))


def _rate(share: float) -> str:
    return f"1 in {count(round(1.0 / share))}" if share < 0.5 else f"{100 * share:.0f} % of"
