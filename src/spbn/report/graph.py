"""Sections on the graph: itself with a panel for every node, over time, and what of it matters.

The figures of panels are drawn by matplotlib, and rewritten to be part of a page: small, without fixed
colours, fonts or identifiers.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from math import exp, inf, isfinite
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from spbn.diagnostics.model import FEWEST_ROWS, Importance, Loss, other_type
from spbn.diagnostics.rows import Source
from spbn.graphs.dag import Arc
from spbn.nodes.base import Description, ParameterTable
from spbn.plots import plot_cpd, plot_slices
from spbn.plots.densities import MOSTLY, is_drawn_as_curve
from spbn.plots.graphs import MANY
from spbn.plots.pictures import FILL, INK, LINES, SETTINGS, graph_inches
from spbn.report import html as h
from spbn.report.charts import graph_svg, quick_view
from spbn.report.content import Content
from spbn.report.pages import direction_notes
from spbn.structure import Structure
from spbn.tables.reader import as_table
from spbn.tables.table import Table
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_SHARE = 0.005  # of a mixture, that is shown
SHOWN_CASES = 60
DRAWN_ROWS = 5_000
SAMPLED_ROWS = 1_000
CLOUD_POINTS = 600
LARGE = 12  # nodes from which on a graph has controls
MOST_DRAWN = 40  # nodes whose densities are drawn; of further ones, what takes no time
SHOWN_LOSSES = 15
PIXELS_PER_INCH, SMALLEST, LARGEST = 96, 0.6, 1.25  # how graphs may be scaled
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
#: Colours of figures, and the variables of the style sheet that replace them.
_VARIABLES = {
    INK: "var(--ink)",
    FILL: "var(--fill)",
    "#ffffff": "var(--card)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(LINES, 1)},
}
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_SETTINGS: dict[Any, Any] = {
    **SETTINGS,
    **dict.fromkeys(_INKED, INK),
    "font.size": 10.5,
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
}


def graph_section(content: Content) -> h.Html:
    """Draw the graph beside the panels of its nodes."""
    structure, found = content.network.structure, content.importance
    # The share of its density that a row loses without an arc.
    losses = found.arcs if isinstance(found, Importance) else {}
    weights = {arc: 1.0 - exp(-max(0.0, loss.per_row)) for arc, loss in losses.items()}
    notes = direction_notes(content)
    hint = (
        "An arc means that the child depends on the parent, given the child's other parents; not that one "
        "causes the other. Select a node to see its density, equation and score; Tab and Enter work too."
    )
    words = ["wider arc = larger loss if removed" if weights else "arcs lead from parents to children"]
    words += ["dashed: the data leave the direction open"] if notes else []
    if len(structure.nodes) > MANY:
        words.append("boxes: columns that depend on each other most; arcs between boxes are faint")
    buttons = (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("fit", "Fit", "Fit all"))
    zoom = [h.button(name, text, aria_label=label) for name, text, label in buttons]
    near = h.button("near", "Neighbourhood", aria_pressed="false")
    tools = h.tag(
        "div.graph-tools.tools", h.search_box("Find a node"), *zoom, near, h.tag("span.matches.small")
    )
    graph = h.tag(
        "div.card",
        tools if len(structure.nodes) >= LARGE else "",
        h.tag("div.scroll", graph_svg(structure, weights, notes)),
        h.graph_legend(content.types, *words),
    )
    first = next((node for node in structure.nodes if structure.parents(node)), structure.nodes[0])
    rows, samples, network = content.evidence.thinned(DRAWN_ROWS), None, content.network
    if not network.inputs and not all(_is_drawn(content, node) for node in network.nodes):
        samples = as_table(network.sample(SAMPLED_ROWS, seed=0), variables=network.variables)
    panels, drawn = [], _most_important(structure, weights, first)
    for place, node in enumerate(structure.nodes):
        shown = rows if _is_drawn(content, node) else samples
        draw = partial(_cpd_figure, place=place) if node in drawn else partial(_quick_figure, weights=weights)
        figure, caption = ("", _caption(content, node)) if shown is None else draw(content, node, shown)
        panels.append(_panel(content, place, node, figure, caption, first=node == first))
    beside = h.tag("div", *panels, class_="panels", aria_live="polite")
    return h.join(h.heading("graph", "The graph", hint), h.tag("div.explorer", graph, beside))


def _most_important(structure: Structure, weights: Mapping[Arc, float], first: str) -> set[str]:
    """Return the nodes whose densities are drawn: where there are many, those with arcs that matter most."""
    importance = dict.fromkeys(structure.nodes, 0.0) | {first: inf}
    for arc in structure.arcs:
        for node in set(arc) & set(importance):
            importance[node] += weights.get(arc, 0.5)
    return set(sorted(importance, key=lambda node: -importance[node])[:MOST_DRAWN])


def _is_drawn(content: Content, node: str) -> bool:
    """Tell whether there are enough rows of a node and its parents to draw its density with."""
    names = {node, *content.network.structure.parents(node)}
    if content.network.hidden in names:  # all columns tell about the class
        names = {variable.name for variable in content.network.variables}
    return content.evidence.rows >= FEWEST_ROWS and content.evidence.covers(names)


def _panel(content: Content, place: int, node: str, figure: str, caption: str, *, first: bool) -> h.Html:
    network = content.network
    described = network.cpds[node].describe()
    return h.tag(
        "article",
        h.tag("header", h.tag("h3", node), h.type_badge(network.structure.type(node))),
        h.tag("code.equation", described.formula),
        _shares(described.shares),
        h.tag("p.caption", described.legend) if described.legend else "",
        figure,
        h.tag("p.caption", caption),
        _facts(content, node),
        *map(_parameters, described.tables),
        _cases(described.cases),
        class_="panel card first" if first else "panel card",
        id=f"node-{place}",
        tabindex="-1",
        aria_label=f"Node {node}",
    )


def _shares(shares: Mapping[str, float]) -> h.Html:
    """Draw what a mixture is made of as one bar, with a legend."""
    shown = {name: share for name, share in shares.items() if share >= LEAST_SHARE}
    if not shown:
        return h.Html("")
    colours = {name: f"s{i}" for i, name in enumerate(shares, 1)}
    words = {name: f"{h.percentage(share)} {name}" for name, share in shown.items()}
    parts = [h.tag(f"i.{colours[n]}", style=f"width:{100 * share:.1f}%") for n, share in shown.items()]
    largest_first = sorted(shown, key=lambda name: -shown[name])
    keys = [h.tag("span", h.tag(f"i.key.{colours[n]}"), words[n]) for n in largest_first]
    label = f"A mixture: {', '.join(words.values())}"
    return h.join(
        h.tag("div", *parts, class_="shares", role="img", aria_label=label), h.tag("p.legend", *keys)
    )


def _parameters(found: ParameterTable) -> h.Html:
    """Write numbers that do not fit into the equation, to be opened; probabilities with a bar below each."""
    heads: list[h.Cell] = ["", *((name, "num") for name in found.columns)]
    rows = []
    for name, values in zip(found.rows, found.values, strict=True):
        texts = (
            h.join(h.number(v, 3), h.track(v)) if found.of_probabilities else h.number(v) for v in values
        )
        rows.append(h.table_row(name, *((text, "num") for text in texts)))
    shown = h.table(heads, rows)
    return h.details(
        h.capital(found.title), h.tag("div.probabilities", shown) if found.of_probabilities else shown
    )


def _cases(cases: Mapping[str, Description]) -> h.Html:
    """Write the density of every configuration, to be opened."""
    if not cases:
        return h.Html("")
    rows = [
        h.table_row(name, h.join(h.tag("code", case.formula), _shares(case.shares)))
        for name, case in islice(cases.items(), SHOWN_CASES)
    ]
    more = len(cases) - len(rows)
    note = h.tag("p.caption", f"And {more:,} more.") if more else ""
    return h.details(h.plural(len(cases), "configuration"), h.table(["Configuration", "Density"], rows), note)


def _caption(content: Content, node: str) -> str:
    parents = content.network.structure.parents(node)
    rows = "the given rows" if content.evidence.source is Source.GIVEN else "training rows"
    if not _is_drawn(content, node):
        if content.network.inputs:
            return "Give rows to see its density: the inputs of the network have no distribution."
        rows = "rows drawn from the model"
    if node in content.discrete:
        if not parents:
            return f"Probability of every level (blue), and its share of {rows} (grey)."
        return f"Probabilities under the most common configurations of its parents; taken from {rows}."
    if is_drawn_as_curve(content.network, node):
        return _caption_of_curve(node, parents, content.discrete, rows)
    if content.discrete & set(parents):
        others = ", with the others at typical values" if len(parents) > 1 else ""
        return f"Density at levels of one parent{others}; taken from {rows}."
    if not parents:
        return f"Density (line) over {rows} (bars)."
    if len(parents) == 1:
        line = ", its curve (line)" if content.network.cpds[node].curve_share >= MOSTLY else ""
        return f"Density given {parents[0]} (shading){line}, with {rows} (dots)."
    return f"Density at five quantiles of one parent, with the others at their medians; taken from {rows}."


def _caption_of_curve(node: str, parents: Sequence[str], discrete: Collection[str], rows: str) -> str:
    levels = [parent for parent in parents if parent in discrete]
    if not levels and len(parents) == 1:
        return f"The curve (line), one and two standard deviations around it (bands), and {rows} (dots)."
    if not levels and len(parents) == 2:
        return f"{node} on the curve, by its parents (lines; the bluer, the higher), with {rows} (dots)."
    lines = "The curve at levels of one parent (lines), with one standard deviation around it (bands)"
    if not levels:
        lines = "The curve (lines), with one and two standard deviations around it (bands)"
    each = ", against one parent at a time" if len(parents) - len(levels) > 1 else ""
    others = ", with the others at typical values" if len(parents) > 2 else ""
    return f"{lines}{each}{others}; taken from {rows}."


def _facts(content: Content, node: str) -> h.Html:
    network, found = content.network, content.importance
    none = h.tag("span.small", "none")
    known: list[tuple[str, str]] = [
        ("Parents", h.node_links(network, network.structure.parents(node)) or none),
        ("Children", h.node_links(network, network.structure.dag.children(node)) or none),
    ]
    if isinstance(found, Importance) and node in found.scores:
        what = "log-probability" if node in content.discrete else "log-density"
        known.append(("Score", f"{h.number(found.scores[node])} per row (cross-validated {what})"))
        if node in found.types:
            other = other_type(network.structure.type(node)).appearance.label
            known.append((f"As {other}", _as_other(found.types[node])))
    if network.margins is not None and node in network.margins.columns:
        known.append(("Margin", f"{network.margins.columns[node]}; the equation is in its units"))
    check = content.checks.get(node)
    if check is not None:
        badge = h.tag(f"span.badge.{check.verdict}", check.verdict)
        known.append(("Fit", h.join(badge, f" distance {check.distance:.3f}")))
    return h.facts(known)


def _as_other(loss: Loss) -> str:
    if loss.total == inf:
        return "cannot be fitted"
    if loss.is_gain:
        return f"score would rise by {h.number(-loss.total)}"
    if not loss.is_clear:
        return f"no clear difference ({h.number(-loss.total, 3)} ± {h.number(2 * loss.error, 2)})"
    return f"score would fall by {h.number(loss.total)}"


def slices_section(network: DynamicNetwork) -> h.Html:
    """Draw how a row depends on those before it."""
    rows, have, them = ("row", "has", "it") if network.lags == 1 else (f"{network.lags} rows", "have", "them")
    arcs = h.plural(len(network.static.structure.arcs), "arc")
    hint = (
        f"How a row (t) depends on the {rows} before it. Dashed nodes are the past, which is known and has "
        f"no density. Everything below is about a row given its past. The first {rows} of a series {have} no "
        f"such past: a static network with {arcs} judges {them}."
    )

    def draw(figure: Figure) -> None:
        figure.set_size_inches(graph_inches(plot_slices(network, figure.subplots())))

    label = f"Graph of {len(network.nodes)} variables over time"
    drawn = _inlined(draw, prefix="slices-", label=label, scaled=False)
    return h.card("slices", "Time series", hint, h.tag("div.scroll", drawn))


def importance_section(content: Content) -> h.Html:
    """Show the losses as two tables with bars."""
    network, found = content.network, content.importance
    title = "Which arcs and node types matter"
    if isinstance(found, str):
        return h.heading("importance", title, f"Not shown. {found}")
    if not found.arcs and not found.types and not found.left_out:
        nothing = "Not shown. There are no arcs to remove, and no node could have another type."
        return h.heading("importance", title, nothing)
    hint = (
        "How much the score would fall if one arc were removed, or if one node had another type. Long bars "
        "matter most, grey rows make no clear difference, and changing an orange one would improve the score."
    )
    note = (
        f"Ten-fold cross-validated log-likelihood on {content.rows_used(found.rows)}, refitted "
        f"with {found.bandwidth.title()}'s bandwidth rule. ± 2 s.e.: twice the standard error of the loss. "
        "Density: how much the density of an average row changes. Grey: the loss is less than twice its "
        "standard error. Rows that the structure was learned from favour it a little. "
    )
    if found.left_out:
        nodes = h.node_links(network, found.left_out)
        note = h.join(note, "Not computed, because there are no values: ", nodes, ".")
    arcs = [(h.node_links(network, arc, " → "), loss) for arc, loss in found.arcs.items()]
    types = []
    for node, loss in found.types.items():
        kinds = (network.structure.type(node), other_type(network.structure.type(node)))
        change = h.tag("span.small", " → ".join(kind.appearance.short_label for kind in kinds))
        # The space is outside, so that a long name does not keep the change on its line.
        types.append((h.join(h.node_link(network, node), " ", change), loss))
    cards = (_losses("Arcs", "Arc removed", arcs), _losses("Node types", "Type changed", types))
    return h.join(h.heading("importance", title, hint), h.tag("div.pair", *cards), h.tag("p.note", note))


def _losses(name: str, first: str, losses: list[tuple[h.Html, Loss]]) -> h.Html:
    """Write a card with a table of losses, the greatest first; nothing if there are none."""
    if not losses:
        return h.Html("")
    finite = [abs(loss.total) for _, loss in losses if isfinite(loss.total)]
    longest = max(finite, default=1.0) or 1.0
    rows = [_loss_row(name, loss, longest) for name, loss in sorted(losses, key=lambda one: -one[1].total)]
    numbers = [(text, "num") for text in ("Score lost", "± 2 s.e.", "Density")]
    shown = h.long_table([first, *numbers, ("", "meter")], rows, SHOWN_LOSSES)
    return h.tag("div.card", h.tag("h3", name), shown)


def _loss_row(name: h.Html, loss: Loss, longest: float) -> h.Html:
    if loss.total == inf:
        cells = [h.tag("td", "cannot be fitted", class_="num", colspan=3)]
    else:
        change = h.percent(exp(-max(-700.0, loss.per_row)) - 1.0)
        texts = (h.number(loss.total), h.number(2.0 * loss.error, 2), change)
        cells = [h.tag("td.num", text) for text in texts]
    bar = h.tag("td.meter.gain" if loss.is_gain else "td.meter", h.track(min(1.0, abs(loss.total) / longest)))
    kind = "gain" if loss.is_gain else None if loss.is_clear else "unclear"
    return h.tag("tr", h.tag("td", name), *cells, bar, class_=kind)


def _quick_figure(
    content: Content, node: str, rows: Table, *, weights: Mapping[Arc, float]
) -> tuple[h.Html, str]:
    """Draw the values of a node, against its most important continuous parent if it has one."""
    parents = [parent for parent in content.network.structure.parents(node) if parent not in content.discrete]
    names = [node, *sorted(parents, key=lambda parent: -weights.get((parent, node), 0.0))[:1]]
    if node in content.discrete:
        names = [node]
    values, *given = (rows.column(name)[:CLOUD_POINTS] for name in names)
    what = f"Its values against {names[1]}" if given else "Its values"
    return (
        quick_view(values, given[0] if given else None, names),
        f"{what}. In so wide a table, densities are drawn for the {MOST_DRAWN} nodes whose arcs matter most; "
        f"spbn.plots.plot_cpd draws any.",
    )


def _cpd_figure(content: Content, node: str, rows: Table, place: int) -> tuple[h.Html, str]:
    """Draw the density of a node given its parents as inline SVG; return it with its caption."""

    def draw(figure: Figure) -> None:
        figure.set_size_inches(4.6, 3.1)
        ax = plot_cpd(content.network, node, figure.subplots(), data=rows, points=CLOUD_POINTS)
        for shading in ax.images:
            shading.set_interpolation("none")  # as computed, a tenth of the size: the browser smooths it

    return _inlined(draw, prefix=f"f{place}-", label=f"Density of {node}"), _caption(content, node)


def _inlined(draw: Callable[[Figure], None], *, prefix: str, label: str, scaled: bool = True) -> h.Html:
    """Draw a figure as part of a page: as wide as there is room, or about as large as it is.

    The identifiers of this figure begin with the prefix, as no others on the page.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # The text is drawn by the browser, in a font of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(layout="constrained")
        draw(figure)
        figure.savefig(stream, format="svg", transparent=True, dpi=100, metadata={"Date": None})
    root = ElementTree.fromstring(stream.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter(f"{_SVG}g"):
        _join_markers(element)
    for element in root.iter():
        _strip(element, prefix)
    root.attrib = {"viewBox": root.get("viewBox", ""), "class": "figure", "role": "img", "aria-label": label}
    if not scaled:  # few nodes would be giants, and many would be too small to read on a phone
        pixels = PIXELS_PER_INCH * figure.get_size_inches()[0]
        least, most = SMALLEST * pixels, LARGEST * pixels
        root.attrib["style"] = f"margin: auto; max-width: {most:.0f}px; min-width: {least:.0f}px"
    return _written(root)


def _join_markers(group: ElementTree.Element) -> None:
    """Turn a cloud of markers into one path of dots: a tenth of the size."""
    points = group.findall(f"{_SVG}use")
    if len(points) < 20:
        return
    path = "".join(f"M{float(p.get('x', 0)):.1f} {float(p.get('y', 0)):.1f}h0" for p in points)
    for unused in (*points, *group.findall(f"{_SVG}defs")):
        group.remove(unused)
    ElementTree.SubElement(group, f"{_SVG}path", {"d": path, "class": "cloud"})


def _strip(element: ElementTree.Element, prefix: str) -> None:
    """Remove namespaces, unused identifiers, fonts and fixed colours."""
    element.tag = element.tag.removeprefix(_SVG)
    attributes = {key.removeprefix(_XLINK): value for key, value in element.attrib.items()}
    if element.tag in ("g", "text"):
        attributes.pop("id", None)
    for key, value in attributes.items():
        attributes[key] = value.replace("url(#", f"url(#{prefix}")
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    if attributes.get("href", "").startswith("#"):
        attributes["href"] = f"#{prefix}{attributes['href'][1:]}"
    if "style" in attributes:
        attributes["style"] = _restyled(attributes["style"])
    if "d" in attributes:
        attributes["d"] = re.sub(r"\s+", " ", re.sub(r"(\d\.\d)\d+", r"\1", attributes["d"])).strip()
    element.attrib = attributes


def _restyled(style: str) -> str:
    declarations = []
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":
            size = re.search(r"[\d.]+px", value)
            declarations.append(f"font-size:{size[0] if size else '9px'}")
        elif key and key not in ("font-family", "image-rendering"):
            declarations.append(f"{key}:{_VARIABLES.get(value, value)}")
    return ";".join(declarations)


def _written(element: ElementTree.Element) -> h.Html:
    """Write elements as HTML, without namespaces and white space between them."""
    attributes = "".join(f' {key}="{h.safe(value)}"' for key, value in element.attrib.items())
    text = element.text or ""
    inner = h.join(text if text.strip() else "", *map(_written, element))
    return h.Html(f"<{element.tag}{attributes}>{inner}</{element.tag}>")
