"""The rows of time side by side, for networks over time."""

from __future__ import annotations

from spbn.plots.svg import Html, join, tag
from spbn.report.figures import slices_figure
from spbn.report.format import plural
from spbn.report.parts import heading
from spbn.timeseries.network import DynamicNetwork


def slices_section(network: DynamicNetwork) -> Html:
    """Draw how a row depends on those before it."""
    rows, have, them = ("row", "has", "it") if network.lags == 1 else (f"{network.lags} rows", "have", "them")
    hint = (
        f"How a row (t) depends on the {rows} before it. Dashed nodes are the past, which is known and has "
        f"no density. Everything below is about a row given its past. The first {rows} of a series {have} no "
        f"such past: a static network with {plural(len(network.static.structure.arcs), 'arc')} judges {them}."
    )
    figure = tag("div", slices_figure(network), class_="scroll")
    return join(heading("slices", "Over time", hint), tag("div", figure, class_="card"))
