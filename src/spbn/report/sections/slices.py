"""The rows of time side by side, for networks over time."""

from __future__ import annotations

from spbn.drawing.markup import Html, join, tag
from spbn.dynamic.network import DynamicNetwork
from spbn.report.figures import slices_figure
from spbn.report.numbers import plural
from spbn.report.parts import heading


def slices_section(network: DynamicNetwork) -> Html:
    """Draw how a row depends on those before it."""
    rows = "the row" if network.lags == 1 else f"the {network.lags} rows"
    hint = (
        f"How a row (t) depends on {rows} before it. Dashed nodes are the past, which is known and has no "
        f"density. Everything below is about a row given its past. The first "
        f"{plural(network.lags, 'row')} of a series {'has' if network.lags == 1 else 'have'} no such past: a "
        f"static network with {plural(len(network.static.structure.arcs), 'arc')} judges them."
    )
    figure = tag("div", slices_figure(network), class_="scroll")
    return join(heading("slices", "Over time", hint), tag("div", figure, class_="card"))
