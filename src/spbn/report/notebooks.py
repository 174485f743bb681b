"""What notebooks show of networks, structures, posteriors, confidence and comparisons.

Every piece is small, complete in itself, without scripts, and drawn in the colour of the text around
it, so that it follows the theme of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn.confidence import Confidence
from spbn.drawing.graph_svg import NO_NOTES, graph_svg, type_class
from spbn.drawing.markup import Html, safe, tag
from spbn.drawing.packages import can_place_graphs
from spbn.graphs.dag import Arc
from spbn.network import BayesianNetwork
from spbn.nodes.base import registered
from spbn.numerics.arrays import FloatArray
from spbn.report.content import model_name
from spbn.report.numbers import count, number, plural
from spbn.structure import Structure

if TYPE_CHECKING:
    from spbn.inference.posterior import Posterior

MOST_NODES = 80  # of a graph that is drawn
MOST_ROWS = 60  # of a table
MOST_LEVELS = 6
BINS = 32


def network_html(network: BayesianNetwork) -> str:
    """Show the graph of a network, and the density of every node."""
    structure = network.structure
    rows = network.record.rows
    learned = f", from {plural(rows, 'row')}" if rows is not None else ""
    title = tag("p", tag("b", model_name(network)), f": {_size(structure)}{learned}")
    lines = [
        (node, structure.type(node).label, network.cpds[node].describe().formula)
        for node in structure.dag.topological_order()
    ]
    densities = _table(("Node", "Type", "Density"), [tuple(map(safe, line)) for line in lines])
    graph = _graph(structure)
    unfolded = not graph or None
    return _view(
        structure, title, graph, tag("details", tag("summary", "Densities"), densities, open=unfolded)
    )


def structure_html(structure: Structure) -> str:
    """Show the graph of a structure."""
    arcs = [tuple(map(safe, arc)) for arc in structure.arcs]
    graph = _graph(structure) or _table(("Parent", "Child"), arcs)
    return _view(structure, tag("p", tag("b", "Structure"), f": {_size(structure)}"), graph)


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
            shares = posterior.probabilities(name).sort_values(ascending=False)
            shown = [f"{level} {100 * share:.0f} %" for level, share in shares[:MOST_LEVELS].items()]
            more = ", ..." if len(shares) > MOST_LEVELS else ""
            lines.append((safe(name), safe(""), safe(""), safe(", ".join(shown) + more), Html("")))
        else:
            low, high = (float(end) for end in intervals.loc[name].to_numpy(dtype=np.float64))
            bars = _sparkline(posterior.draws[name].to_numpy(dtype=np.float64), posterior.weights, name)
            within = safe(f"{number(low)} to {number(high)}")
            lines.append((safe(name), _number(means[name]), _number(deviations[name]), within, bars))
    heads = ("Variable", "Mean", "Standard deviation", "90 % interval, or probabilities", "")
    return _view(posterior.network.structure, title, _table(heads, lines))


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
            _bar(strength),
            _percent(strength),
            _percent(shares[a, b]),
            safe(notes.get((a, b), "")),
        )
        for (a, b), strength in strengths.items()
    ]
    heads = ("Arc", "", "Strength", "Direction", "Open because")
    return _view(structure, title, _graph(structure, strengths, notes), _table(heads, lines))


def comparison_html(rows: Any) -> str:
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
                _number(row["log-density"]),
                safe(behind),
                _bar(share),
                _number(row["arcs"], 3),
                _number(row["seconds"], 3),
            )
        )
    words = (
        ": log-density of a row by networks that were learned without it. Bar: its density, relative to the "
        "best model."
    )
    title = tag("p", tag("b", "Comparison"), words)
    heads = ("Model", "Margins", "Log-density", "Behind the best", "", "Arcs", "Seconds")
    return _view(None, title, _table(heads, lines))


def _view(structure: Structure | None, *parts: str) -> str:
    types = () if structure is None else set(structure.types.values())
    # The type's light colour in any theme: the names on it are dark.
    colours = "".join(
        f".spbn-view .{type_class(t)} {{ --type: {t.colour}; }}\n" for t in registered() if t in types
    )
    return tag("div", tag("style", Html(_style() + colours)), *parts, class_="spbn-view")


@cache
def _style() -> str:
    return files("spbn.report").joinpath("notebook.css").read_text(encoding="utf-8")


def _size(structure: Structure) -> str:
    types = list(structure.types.values())
    kinds = [f"{types.count(t)} {t.label}" for t in registered() if t in types]
    return f"{plural(len(types), 'node')} ({', '.join(kinds)}), {plural(len(structure.arcs), 'arc')}"


def _graph(
    structure: Structure, weights: Mapping[Arc, float] | None = None, notes: Mapping[Arc, str] = NO_NOTES
) -> Html:
    """Draw the graph, if it is not too large and the packages for that are installed."""
    if len(structure.nodes) > MOST_NODES or not can_place_graphs():
        return Html("")
    return graph_svg(structure, weights or {}, notes=notes, linked=False)


def _table(heads: Sequence[str], lines: Sequence[Sequence[Html]]) -> Html:
    if not lines:
        return Html("")
    body: Iterable[Html] = (tag("tr", *(tag("td", cell) for cell in line)) for line in lines[:MOST_ROWS])
    more = len(lines) - MOST_ROWS
    note = tag("p", f"And {count(more)} more.", class_="dim") if more > 0 else Html("")
    return Html(
        tag("table", tag("thead", tag("tr", *(tag("th", head) for head in heads))), tag("tbody", *body))
        + note
    )


def _known(name: str, value: Any, verb: str) -> str:
    if isinstance(value, tuple):
        low, high = value
        if low is None or high is None:
            return f"{name} is at {'most' if low is None else 'least'} {high if low is None else low}"
        return f"{name} is between {low} and {high}"
    if isinstance(value, set | frozenset | list):
        return f"{name} {verb} {' or '.join(sorted(map(str, value)))}"
    return f"{name} {verb} {value}"


def _sparkline(values: FloatArray, weights: FloatArray, name: str) -> Html:
    low, high = np.quantile(values, [0.002, 0.998], weights=weights, method="inverted_cdf").tolist()
    if not low < high:
        return Html("")
    counts, _ = np.histogram(values, BINS, (low, high), weights=weights)
    heights = (18.0 * counts / counts.max()).tolist()
    path = "".join(f"M{4 * i} 18v{-height:.1f}h3.4v{height:.1f}z" for i, height in enumerate(heights))
    return tag(
        "svg",
        tag("path", d=path, class_="bars"),
        viewBox=f"0 0 {4 * BINS} 18",
        width=4 * BINS,
        height=18,
        role="img",
        aria_label=f"Histogram of {name}",
    )


def _bar(share: float) -> Html:
    return tag("span", tag("i", style=f"width:{100 * share:.1f}%"), class_="track")


def _number(value: float, digits: int = 4) -> Html:
    return tag("span", number(float(value), digits), class_="num")


def _percent(share: float) -> Html:
    return tag("span", f"{100 * share:.0f} %", class_="num")
