"""What notebooks show of networks, posteriors, forecasts, monitors and other results.

Every view is small, complete in itself, without scripts, and drawn in the colour of the text around it, so
that it follows the theme of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import FloatArray
from spbn._base.lazy import pd
from spbn.diagnostics.blame import Reason
from spbn.diagnostics.rows import UnusualRows
from spbn.errors import can_place_graphs
from spbn.graphs.dag import Arc
from spbn.inference.query import Posterior
from spbn.learning.comparison import Comparison
from spbn.learning.stability import Confidence
from spbn.monitoring.monitor import AlarmFrame, Monitor
from spbn.network import BayesianNetwork, Network
from spbn.report import html as h
from spbn.report.charts import fan_chart, graph_svg, small_histogram, verdict_strip
from spbn.structure import Structure
from spbn.timeseries.forecast import Forecast
from spbn.timeseries.network import DynamicNetwork

MOST_NODES = 80  # of a graph that is drawn
MOST_ROWS = 60  # of a table
MOST_LEVELS = 6
MOST_ALARMS = 12  # that are listed


def view(structure: Structure | None, name: str, words: str, *parts: str) -> str:
    """Put pieces together below a title and what it says, with the style that they need."""
    types = {} if structure is None else h.count_types(structure)
    # The type's light colour in any theme: the names on it are dark.
    colours = "".join(f".spbn-view .{h.type_class(t)} {{ --type: {t.appearance.colour}; }}\n" for t in types)
    style = h.tag("style", h.Html(h.read_resource("notebook.css") + colours))
    return h.tag("div.spbn-view", style, h.tag("p", h.tag("b", name), words), *parts)


def draw_graph(structure: Structure, weights: Mapping[Arc, float], notes: Mapping[Arc, str]) -> h.Html:
    """Draw the graph, if it is not too large and the packages for that are installed."""
    if len(structure.nodes) > MOST_NODES or not can_place_graphs():
        return h.Html("")
    return graph_svg(structure, weights, notes, linked=False)


def table(heads: Sequence[str], lines: Sequence[Sequence[str]], most: int = MOST_ROWS) -> h.Html:
    """Write a table, or its first lines; nothing if it has none."""
    if not lines:
        return h.Html("")
    body = [h.table_row(*line) for line in lines[:most]]
    head = h.tag("tr", *(h.tag("th", head) for head in heads))
    more = len(lines) - most
    note = h.tag("p.dim", f"And {more:,} more.") if more > 0 else ""
    return h.join(h.tag("table", h.tag("thead", head), h.tag("tbody", *body)), note)


def numeral(value: float, digits: int = 4) -> h.Html:
    """Write a number."""
    return h.tag("span.num", h.number(float(value), digits))


def levels_of(shares: Mapping[Any, float]) -> str:
    """Write levels and their probabilities, the most probable first."""
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    shown = [f"{level} {h.percentage(share)}" for level, share in ordered[:MOST_LEVELS]]
    return ", ".join(shown) + (", ..." if len(ordered) > MOST_LEVELS else "")


def size_of(structure: Structure) -> str:
    """Count nodes, by type, and arcs."""
    kinds = [f"{n} {one.appearance.label}" for one, n in h.count_types(structure).items()]
    nodes, arcs = h.plural(len(structure.nodes), "node"), h.plural(len(structure.arcs), "arc")
    return f"{nodes} ({', '.join(kinds)}), {arcs}"


@display.html.register(BayesianNetwork, DynamicNetwork)
def network_html(network: Network) -> str:
    """Show the graph of a network, or how a row depends on those before it, and the density of every node."""
    static = network.row_network
    structure, rows, name, about = static.structure, static.record.rows, h.model_name(static), ""
    if isinstance(network, DynamicNetwork):
        lags = "the row" if network.lags == 1 else f"the {network.lags} rows"
        name, about = "Dynamic network", f"; a row given {lags} before it (dashed)"
    learned = f", from {h.plural(rows, 'row')}" if rows is not None else ""
    lines = [
        (node, structure.type(node).appearance.label, static.cpds[node].describe().formula)
        for node in structure.dag.topological_order()
        if node not in structure.inputs
    ]
    notes = static.open_directions()
    dashed = "; dashed arcs have an open direction" if notes else ""
    graph = draw_graph(structure, {}, notes)
    densities = table(("Node", "Type", "Density"), lines)
    opened = h.tag("details", h.tag("summary", "Densities"), densities, open=not graph)
    return view(structure, name, f": {size_of(structure)}{about}{learned}{dashed}", graph, opened)


@display.html.register(Structure)
def structure_html(structure: Structure) -> str:
    """Show the graph of a structure."""
    graph = draw_graph(structure, {}, {}) or table(("Parent", "Child"), structure.arcs)
    return view(structure, "Structure", f": {size_of(structure)}", graph)


@display.html.register(Posterior)
def posterior_html(posterior: Posterior) -> str:
    """Show what is likely for every unknown variable."""
    known = [_known(name, value, "is") for name, value in posterior.evidence.items()]
    known += [_known(name, value, "is set to") for name, value in posterior.do.items()]
    how = f" ({posterior.method}, effective size {round(posterior.effective_size):,})"
    given = f" given that {' and '.join(known)}" if known else " given nothing"
    means, deviations, intervals = posterior.mean(), posterior.std(), posterior.interval(0.9)
    lines: list[tuple[str, ...]] = []
    for variable in posterior.variables:
        name = variable.name
        if variable.is_discrete:
            lines.append((name, "", "", levels_of(posterior.probabilities(name).to_dict()), ""))
        else:
            ends: FloatArray = intervals.loc[name].to_numpy(dtype=np.float64)
            within = " to ".join(h.number(end) for end in ends)
            bars = small_histogram(posterior.draws[name].to_numpy(dtype=np.float64), posterior.weights, name)
            lines.append((name, numeral(means[name]), numeral(deviations[name]), within, bars))
    heads = ("Variable", "Mean", "Standard deviation", "90 % interval, or probabilities", "")
    arcs = ", ".join(f"{source} → {target}" for source, target in posterior.open_directions)
    depends = f". It depends on directions that are open: {arcs}" if arcs else ""
    words = h.join(given, h.tag("span.dim", how), depends)
    return view(posterior.network.structure, "Posterior", words, table(heads, lines))


def _known(name: str, value: Any, verb: str) -> str:
    if isinstance(value, tuple):
        low, high = value
        if low is None or high is None:
            return f"{name} is at {'most' if low is None else 'least'} {high if low is None else low}"
        return f"{name} is between {low} and {high}"
    if isinstance(value, set | frozenset | list):
        return f"{name} {verb} {' or '.join(sorted(map(str, value)))}"
    return f"{name} {verb} {value}"


@display.html.register(Confidence)
def confidence_html(found: Confidence) -> str:
    """Show the averaged network, and how often replicates agree on its arcs."""
    structure, strengths, notes = found.structure(), found.strengths(), found.open_directions()
    shares = {(a, b): direction for a, b, _, direction in found.arcs.itertuples(index=False)}
    words = (
        f": {h.plural(len(found.structures), 'replicate')}; arcs in more than "
        f"{h.percentage(found.threshold)} of them are believed, {len(strengths):,} of {len(found.arcs):,}"
    )
    lines = []
    for (a, b), strength in strengths.items():
        numbers = [h.tag("span.num", h.percentage(share)) for share in (strength, shares[a, b])]
        lines.append((f"{a} → {b}", h.track(strength, "span"), *numbers, notes.get((a, b), "")))
    listed = table(("Arc", "", "Strength", "Direction", "Open because"), lines)
    return view(structure, "Confidence", words, draw_graph(structure, strengths, notes), listed)


@display.html.register(Comparison)
def comparison_html(rows: Comparison) -> str:
    """Show models with bars of how likely rows are under them that they have not seen."""
    density = rows["log-density"].to_numpy(dtype=np.float64)
    shares = np.exp(np.clip(density - density.max(), -700.0, 0.0)).tolist()
    lines = []
    for place, (_, row) in enumerate(rows.iterrows()):
        behind = (
            f"{h.number(row['difference'], 3)} ± {h.number(row['difference error'], 2)}" if place else "best"
        )
        names = (str(row["model"]), str(row["margins"]))
        costs = (numeral(row["arcs"], 3), numeral(row["seconds"], 3))
        lines.append((*names, numeral(row["log-density"]), behind, h.track(shares[place], "span"), *costs))
    words = (
        ": log-density of a row by networks that were learned without it. Bar: its density, relative to the "
        "best model."
    )
    heads = ("Model", "Margins", "Log-density", "Behind the best", "", "Arcs", "Seconds")
    return view(None, "Comparison", words, table(heads, lines))


@display.html.register(UnusualRows)
def unusual_html(found: UnusualRows) -> str:
    """Show the least likely rows, and the nodes that make them so."""
    words = (
        f": the {len(found.rows):,} least likely of {len(found.logpdf):,}, scored "
        f"{found.scoring.value}; the median log-density is {h.number(found.median)}"
    )
    lines = [
        (row.label, numeral(row.logpdf), "; ".join(map(_reason, row.reasons)) or "no single node")
        for row in found.rows
    ]
    heads = ("Row", "Log-density", "Because of (below what is typical)")
    return view(None, "Unusual rows", words, table(heads, lines))


def _reason(reason: Reason) -> str:
    value = reason.value if isinstance(reason.value, str) else h.number(reason.value)
    return f"{reason.node} = {value} ({h.MINUS}{h.number(reason.drop, 3)})"


@display.html.register(Forecast)
def forecast_html(forecast: Forecast) -> str:
    """Show what may come next: the first and the last step in numbers, and a small fan chart."""
    steps, many = forecast.steps, forecast.series_name is not None
    series = f", {len(forecast.series):,} series" if len(forecast.series) > 1 else ""
    words = (
        f": {h.plural(steps, 'step')}, {h.plural(forecast.n, 'path')}{series}. Median and 90 % interval, or "
        "probabilities"
    )
    lines = []
    for name in forecast.series:
        for place, variable in enumerate(forecast.variables):
            paths = forecast.of(variable.name, series=name)
            before = forecast.history(name)[place]
            levels = variable.levels if variable.is_discrete else ()
            ends = [_outlook(paths[:, step], levels) for step in ((0, -1) if steps > 1 else (0,))]
            now = levels[int(before[-1])] if levels else numeral(before[-1])
            picture = "" if levels else fan_chart(before[-max(2 * steps, 20) :], paths, variable.name)
            lines.append((*([name] if many else []), variable.name, now, *ends, picture))
    heads = [*([forecast.series_name or ""] if many else []), "Variable", "Last row", "Step 1"]
    heads += [f"Step {steps:,}"] if steps > 1 else []
    return view(None, "Forecast", words, table([*heads, ""], lines))


def _outlook(values: FloatArray, levels: tuple[str, ...]) -> str:
    """Write what is likely at one step."""
    if levels:
        return levels_of({level: float((values == code).mean()) for code, level in enumerate(levels)})
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return h.tag("span.num", f"{h.number(middle, 3)} ({h.number(low, 3)} to {h.number(high, 3)})")


@display.html.register(Monitor)
def monitor_html(monitor: Monitor) -> str:
    """Show what a monitor has seen, and what it promises."""
    words = (
        f" of {h.plural(len(monitor.variables), 'variable')}, with {h.plural(monitor.reference_rows, 'row')} "
        "in normal operation to compare with"
    )
    alarms = ("Alarms", f"{monitor.alarms:,}", f"in normal operation: {_rate(monitor.alarm)} rows")
    promise = f"without a drift: at most {_rate(monitor.drift)} rows"
    heads = (f"In {h.plural(monitor.rows, 'row')}", "", "To be expected")
    lines = [alarms, ("Drift alarms", f"{monitor.drift_alarms:,}", promise)]
    return view(None, "Monitor", words, table(heads, lines))


def _rate(share: float) -> str:
    return f"1 in {round(1.0 / share):,}" if share < 0.5 else f"{100 * share:.0f} % of"


@display.html.register(AlarmFrame)
def verdicts_html(found: pd.DataFrame) -> str:
    """Show what a monitor said about rows: a picture of all, and a list of the alarms."""
    unusual, drifting = (found[name].to_numpy(dtype=np.bool_) for name in ("alarm", "drift_alarm"))
    words = f": {h.plural(int(unusual.sum()), 'alarm')}, {h.plural(int(drifting.sum()), 'drift alarm')}"
    lines = []
    for place in np.flatnonzero(unusual | drifting).tolist():
        row = found.iloc[place]
        said = [f"alarm: {row['blame'] or 'no single variable'}"] if unusual[place] else []
        said += [f"drift: {row['drift_blame']}"] if drifting[place] else []
        lines.append((str(found.index[place]), numeral(row["p_value"], 2), "; ".join(said)))
    listed = table(("Row", "Share as unusual", "Because of"), lines, MOST_ALARMS)
    return view(None, h.plural(len(found), "row"), words, verdict_strip(found, unusual, drifting), listed)
