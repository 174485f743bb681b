"""What notebooks show of networks, structures, posteriors, confidence, comparisons and unusual rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from spbn._base import display
from spbn.diagnostics.unusual import Reason, UnusualRows
from spbn.inference.posterior import Posterior
from spbn.learning.comparison import Comparison
from spbn.learning.stability import Confidence
from spbn.network import BayesianNetwork
from spbn.plots.svg import Html, safe, tag
from spbn.report import notebooks_over_time  # noqa: F401  # registers its views
from spbn.report.content import model_name
from spbn.report.format import MINUS, count, number, plural
from spbn.report.html import (
    bar,
    densities_of,
    drawn,
    histogram,
    levels_of,
    numeral,
    percentage,
    size_of,
    table,
    view,
)
from spbn.structure import Structure


@display.html.register(BayesianNetwork)
def network_html(network: BayesianNetwork) -> str:
    """Show the graph of a network, and the density of every node."""
    structure = network.structure
    rows = network.record.rows
    learned = f", from {plural(rows, 'row')}" if rows is not None else ""
    title = tag("p", tag("b", model_name(network)), f": {size_of(structure)}{learned}")
    graph = drawn(structure)
    return view(structure, title, graph, densities_of(network, unfolded=not graph))


@display.html.register(Structure)
def structure_html(structure: Structure) -> str:
    """Show the graph of a structure."""
    arcs = [tuple(map(safe, arc)) for arc in structure.arcs]
    graph = drawn(structure) or table(("Parent", "Child"), arcs)
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
            bars = histogram(posterior.draws[name].to_numpy(dtype=np.float64), posterior.weights, name)
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
            bar(strength),
            percentage(strength),
            percentage(shares[a, b]),
            safe(notes.get((a, b), "")),
        )
        for (a, b), strength in strengths.items()
    ]
    heads = ("Arc", "", "Strength", "Direction", "Open because")
    return view(structure, title, drawn(structure, strengths, notes), table(heads, lines))


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
                bar(share),
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
