"""What notebooks show of networks, posteriors, forecasts, monitors and other results.

Every view is small, complete in itself, without scripts, and drawn in the colour of the text around it, so
that it follows the theme of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import FloatArray
from spbn.diagnostics.rows import Reason, UnusualRows
from spbn.errors import can_place_graphs
from spbn.graphs.dag import Arc
from spbn.inference.posterior import Posterior
from spbn.learning.comparison import Comparison
from spbn.learning.stability import Confidence
from spbn.monitoring.monitor import AlarmFrame, Monitor
from spbn.network import BayesianNetwork
from spbn.nodes.base import registered
from spbn.report.charts import NO_NOTES, fan_chart, graph_svg, small_histogram, verdict_strip
from spbn.report.html import (
    MINUS,
    Html,
    count,
    model_name,
    number,
    percentage,
    plural,
    read_resource,
    safe,
    tag,
    track,
    type_class,
)
from spbn.structure import Structure
from spbn.timeseries.forecast import Forecast
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    import pandas as pd


MOST_NODES = 80  # of a graph that is drawn
MOST_ROWS = 60  # of a table
MOST_LEVELS = 6
MOST_ALARMS = 12  # that are listed


def view(structure: Structure | None, *parts: str) -> str:
    """Put pieces together, with the style that they need."""
    types = () if structure is None else set(structure.types.values())
    # The type's light colour in any theme: the names on it are dark.
    colours = "".join(
        f".spbn-view .{type_class(t)} {{ --type: {t.appearance.colour}; }}\n"
        for t in registered()
        if t in types
    )
    return tag("div", tag("style", Html(read_resource("notebook.css") + colours)), *parts, class_="spbn-view")


def size_of(structure: Structure) -> str:
    """Count nodes, by type, and arcs."""
    types = list(structure.types.values())
    kinds = [f"{types.count(t)} {t.appearance.label}" for t in registered() if t in types]
    return f"{plural(len(types), 'node')} ({', '.join(kinds)}), {plural(len(structure.arcs), 'arc')}"


def draw_graph(
    structure: Structure, weights: Mapping[Arc, float] | None = None, notes: Mapping[Arc, str] = NO_NOTES
) -> Html:
    """Draw the graph, if it is not too large and the packages for that are installed."""
    if len(structure.nodes) > MOST_NODES or not can_place_graphs():
        return Html("")
    return graph_svg(structure, weights or {}, notes=notes, linked=False)


def densities_of(network: BayesianNetwork, *, unfolded: bool) -> Html:
    """Write the density of every node, to be opened unless it is unfolded."""
    structure = network.structure
    lines = [
        (node, structure.type(node).appearance.label, network.cpds[node].describe().formula)
        for node in structure.dag.topological_order()
        if node not in structure.inputs
    ]
    densities = table(("Node", "Type", "Density"), [tuple(map(safe, line)) for line in lines])
    return tag("details", tag("summary", "Densities"), densities, open=unfolded)


def table(heads: Sequence[str], lines: Sequence[Sequence[Html]]) -> Html:
    """Write a table, or its first lines; nothing if it has none."""
    if not lines:
        return Html("")
    body: Iterable[Html] = (tag("tr", *(tag("td", cell) for cell in line)) for line in lines[:MOST_ROWS])
    more = len(lines) - MOST_ROWS
    note = tag("p", f"And {count(more)} more.", class_="dim") if more > 0 else Html("")
    return Html(
        tag("table", tag("thead", tag("tr", *(tag("th", head) for head in heads))), tag("tbody", *body))
        + note
    )


def numeral(value: float, digits: int = 4) -> Html:
    """Write a number."""
    return tag("span", number(float(value), digits), class_="num")


def levels_of(shares: Mapping[Any, float]) -> Html:
    """Write levels and their probabilities, the most probable first."""
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    shown = [f"{level} {100 * share:.0f} %" for level, share in ordered[:MOST_LEVELS]]
    return safe(", ".join(shown) + (", ..." if len(ordered) > MOST_LEVELS else ""))


@display.html.register(BayesianNetwork)
def network_html(network: BayesianNetwork) -> str:
    """Show the graph of a network, and the density of every node."""
    structure = network.structure
    rows = network.record.rows
    learned = f", from {plural(rows, 'row')}" if rows is not None else ""
    title = tag("p", tag("b", model_name(network)), f": {size_of(structure)}{learned}")
    graph = draw_graph(structure)
    return view(structure, title, graph, densities_of(network, unfolded=not graph))


@display.html.register(Structure)
def structure_html(structure: Structure) -> str:
    """Show the graph of a structure."""
    arcs = [tuple(map(safe, arc)) for arc in structure.arcs]
    graph = draw_graph(structure) or table(("Parent", "Child"), arcs)
    return view(structure, tag("p", tag("b", "Structure"), f": {size_of(structure)}"), graph)


@display.html.register(Posterior)
def posterior_html(posterior: Posterior) -> str:
    """Show what is likely for every unknown variable."""
    known = [_known(name, value, "is") for name, value in posterior.evidence.items()]
    known += [_known(name, value, "is set to") for name, value in posterior.do.items()]
    title = tag(
        "p",
        tag("b", "Posterior"),
        f" given that {' and '.join(known)}" if known else " given nothing",
        tag(
            "span",
            f" ({posterior.method}, effective size {count(round(posterior.effective_size))})",
            class_="dim",
        ),
    )
    means, deviations, intervals = posterior.mean(), posterior.std(), posterior.interval(0.9)
    lines = []
    for variable in posterior.variables:
        name = variable.name
        if variable.is_discrete:
            shares = levels_of(posterior.probabilities(name).to_dict())
            lines.append((safe(name), Html(""), Html(""), shares, Html("")))
        else:
            low, high = (float(end) for end in intervals.loc[name].to_numpy(dtype=np.float64))
            bars = small_histogram(posterior.draws[name].to_numpy(dtype=np.float64), posterior.weights, name)
            within = safe(f"{number(low)} to {number(high)}")
            lines.append((safe(name), numeral(means[name]), numeral(deviations[name]), within, bars))
    heads = ("Variable", "Mean", "Standard deviation", "90 % interval, or probabilities", "")
    return view(posterior.network.structure, title, table(heads, lines))


@display.html.register(Confidence)
def confidence_html(found: Confidence) -> str:
    """Show the averaged network, and how often replicates agree on its arcs."""
    structure, strengths, notes = found.structure(), found.strengths(), found.open_directions()
    shares = {(a, b): direction for a, b, _, direction in found.arcs.itertuples(index=False)}
    title = tag(
        "p",
        tag("b", "Confidence"),
        f": {plural(len(found.structures), 'replicate')}; arcs in more than {100 * found.threshold:.0f} % of "
        f"them are believed, {count(len(strengths))} of {count(len(found.arcs))}",
    )
    lines = [
        (
            safe(f"{a} → {b}"),
            track(strength, "span"),
            tag("span", percentage(strength), class_="num"),
            tag("span", percentage(shares[a, b]), class_="num"),
            safe(notes.get((a, b), "")),
        )
        for (a, b), strength in strengths.items()
    ]
    heads = ("Arc", "", "Strength", "Direction", "Open because")
    return view(structure, title, draw_graph(structure, strengths, notes), table(heads, lines))


@display.html.register(Comparison)
def comparison_html(rows: Comparison) -> str:
    """Show models with bars of how likely rows are under them that they have not seen."""
    density = rows["log-density"].to_numpy(dtype=np.float64)
    lines = []
    for place, (_, row) in enumerate(rows.iterrows()):
        behind = (
            "best" if place == 0 else f"{number(row['difference'], 3)} ± {number(row['difference error'], 2)}"
        )
        share = float(np.exp(np.clip(density[place] - density.max(), -700.0, 0.0)))
        lines.append(
            (
                safe(str(row["model"])),
                safe(str(row["margins"])),
                numeral(row["log-density"]),
                safe(behind),
                track(share, "span"),
                numeral(row["arcs"], 3),
                numeral(row["seconds"], 3),
            )
        )
    words = (
        ": log-density of a row by networks that were learned without it. Bar: its density, relative to the "
        "best model."
    )
    title = tag("p", tag("b", "Comparison"), words)
    heads = ("Model", "Margins", "Log-density", "Behind the best", "", "Arcs", "Seconds")
    return view(None, title, table(heads, lines))


@display.html.register(UnusualRows)
def unusual_html(found: UnusualRows) -> str:
    """Show the least likely rows, and the nodes that make them so."""
    title = tag(
        "p",
        tag("b", "Unusual rows"),
        f": the {count(len(found.rows))} least likely of {count(len(found.logpdf))}, scored "
        f"{found.scoring.value}; the median log-density is {number(found.median)}",
    )
    lines = [
        (safe(row.label), numeral(row.logpdf), safe("; ".join(map(_reason, row.reasons)) or "no single node"))
        for row in found.rows
    ]
    heads = ("Row", "Log-density", "Because of (below what is typical)")
    return view(None, title, table(heads, lines))


def _reason(reason: Reason) -> str:
    value = reason.value if isinstance(reason.value, str) else number(reason.value)
    return f"{reason.node} = {value} ({MINUS}{number(reason.drop, 3)})"


def _known(name: str, value: Any, verb: str) -> str:
    if isinstance(value, tuple):
        low, high = value
        if low is None or high is None:
            return f"{name} is at {'most' if low is None else 'least'} {high if low is None else low}"
        return f"{name} is between {low} and {high}"
    if isinstance(value, set | frozenset | list):
        return f"{name} {verb} {' or '.join(sorted(map(str, value)))}"
    return f"{name} {verb} {value}"


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
    graph = draw_graph(structure)
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
            picture = Html("") if levels else fan_chart(before[-max(2 * steps, 20) :], paths, variable.name)
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
        lines.append((safe(str(found.index[place])), numeral(row["p_value"], 2), safe("; ".join(said))))
    more = len(lines) - MOST_ALARMS
    note = tag("p", f"And {count(more)} more.", class_="dim") if more > 0 else Html("")
    listed = table(("Row", "Share as unusual", "Because of"), lines[:MOST_ALARMS])
    return view(None, title, verdict_strip(found, unusual, drifting), listed, note)


def _outlook(values: FloatArray, levels: tuple[str, ...]) -> Html:
    """Write what is likely at one step."""
    if levels:
        return levels_of({level: float((values == code).mean()) for code, level in enumerate(levels)})
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return tag("span", f"{number(middle, 3)} ({number(low, 3)} to {number(high, 3)})", class_="num")


def _rate(share: float) -> str:
    return f"1 in {count(round(1.0 / share))}" if share < 0.5 else f"{100 * share:.0f} % of"
