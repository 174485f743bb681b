"""Pieces of what notebooks show.

Every view is small, complete in itself, without scripts, and drawn in the colour of the text around
it, so that it follows the theme of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import can_place_graphs
from spbn.graphs.dag import Arc
from spbn.network import BayesianNetwork
from spbn.nodes.base import registered
from spbn.plots.svg import NO_NOTES, Html, graph_svg, safe, tag, type_class
from spbn.report.format import count, number, plural
from spbn.structure import Structure

MOST_NODES = 80  # of a graph that is drawn
MOST_ROWS = 60  # of a table
MOST_LEVELS = 6
BINS = 32


def view(structure: Structure | None, *parts: str) -> str:
    """Put pieces together, with the style that they need."""
    types = () if structure is None else set(structure.types.values())
    # The type's light colour in any theme: the names on it are dark.
    colours = "".join(
        f".spbn-view .{type_class(t)} {{ --type: {t.colour}; }}\n" for t in registered() if t in types
    )
    return tag("div", tag("style", Html(_style() + colours)), *parts, class_="spbn-view")


@cache
def _style() -> str:
    return files("spbn.report").joinpath("notebook.css").read_text(encoding="utf-8")


def size_of(structure: Structure) -> str:
    """Count nodes, by type, and arcs."""
    types = list(structure.types.values())
    kinds = [f"{types.count(t)} {t.label}" for t in registered() if t in types]
    return f"{plural(len(types), 'node')} ({', '.join(kinds)}), {plural(len(structure.arcs), 'arc')}"


def drawn(
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
        (node, structure.type(node).label, network.cpds[node].describe().formula)
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


def histogram(values: FloatArray, weights: FloatArray, name: str) -> Html:
    """Draw a small histogram."""
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


def bar(share: float) -> Html:
    """Draw a share."""
    return tag("span", tag("i", style=f"width:{100 * share:.1f}%"), class_="track")


def numeral(value: float, digits: int = 4) -> Html:
    """Write a number."""
    return tag("span", number(float(value), digits), class_="num")


def levels_of(shares: Mapping[Any, float]) -> Html:
    """Write levels and their probabilities, the most probable first."""
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    shown = [f"{level} {100 * share:.0f} %" for level, share in ordered[:MOST_LEVELS]]
    return safe(", ".join(shown) + (", ..." if len(ordered) > MOST_LEVELS else ""))


def percentage(share: float) -> Html:
    """Write a share as a percentage."""
    return tag("span", f"{100 * share:.0f} %", class_="num")
