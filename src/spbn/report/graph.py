"""Matplotlib figures prepared for a page: small, without fixed colours, fonts or identifiers."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from spbn.network import BayesianNetwork
from spbn.plots import plot_cpd
from spbn.plots.graphs import plot_slices
from spbn.plots.pictures import FILL, INK, LINES, graph_inches
from spbn.report.html import Html, safe
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from collections.abc import Iterator, Mapping
from itertools import islice
from math import exp, inf, isfinite

from spbn.diagnostics.model import FEWEST_ROWS, Importance, Loss, other_type
from spbn.diagnostics.rows import Source
from spbn.nodes.base import Description, ParameterTable
from spbn.report.charts import graph_svg
from spbn.report.content import Content
from spbn.report.html import (
    arc_link,
    card,
    count,
    heading,
    join,
    legend,
    long_table,
    node_link,
    node_links,
    number,
    percent,
    plural,
    rows_used,
    search_box,
    table,
    table_row,
    tag,
    track,
    type_class,
)
from spbn.report.pages import direction_notes
from spbn.tables.reader import as_table
from spbn.tables.table import Table

CLOUD_POINTS = 600
PIXELS_PER_INCH, SMALLEST, LARGEST = 96, 0.6, 1.25  # how graphs may be scaled
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
#: Colours of figures, and the variables of the style sheet that replace them.
_VARIABLES = {
    INK: "var(--ink)",
    FILL: "var(--fill)",
    "#ffffff": "var(--card)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(LINES, 1)},
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spbn",
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
}


def cpd_figure(network: BayesianNetwork, node: str, data: Any, number: int) -> Html:
    """Draw the density of a node given its parents as inline SVG.

    Parameters
    ----------
    data
        Rows to draw and to take ranges from.
    number
        A number that no other figure on the page has.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # The text is drawn by the browser, in a font of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(4.6, 3.1), layout="constrained")
        ax = figure.subplots()
        plot_cpd(network, node, ax, data=data, points=CLOUD_POINTS)
        for shading in ax.images:
            shading.set_interpolation("none")  # as computed, a tenth of the size: the browser smooths it
        svg = _saved(figure)
    return _inlined(svg, prefix=f"f{number}-", label=f"Density of {node}")


def slices_figure(network: DynamicNetwork) -> Html:
    """Draw the rows of a network over time side by side as inline SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(layout="constrained")
        ax = plot_slices(network, figure.subplots())
        size = graph_inches(ax)
        figure.set_size_inches(size)
        svg = _saved(figure)
    label = f"Graph of {len(network.nodes)} variables over time"
    return _inlined(svg, prefix="slices-", label=label, width=size[0])


def _saved(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", transparent=True, dpi=100, metadata={"Date": None})
    return stream.getvalue()


def _inlined(svg: bytes, *, prefix: str, label: str, width: float | None = None) -> Html:
    """Return a figure as part of a page: as wide as there is room, or about as many inches as are given."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter(f"{_SVG}g"):
        _join_markers(element)
    for element in root.iter():
        _strip(element, prefix)
    box = root.get("viewBox", "")
    root.attrib = {"viewBox": box, "class": "figure", "role": "img", "aria-label": label}
    if width is not None:  # few nodes would be giants, and many would be too small to read on a phone
        pixels = PIXELS_PER_INCH * width
        least, most = SMALLEST * pixels, LARGEST * pixels
        root.attrib["style"] = f"margin: auto; max-width: {most:.0f}px; min-width: {least:.0f}px"
    return Html(_written(root))


def _join_markers(group: ElementTree.Element) -> None:
    """Turn a cloud of markers into one path of dots: a tenth of the size."""
    points = [child for child in group if child.tag == f"{_SVG}use"]
    if len(points) < 20:
        return
    path = "".join(f"M{float(p.get('x', 0)):.1f} {float(p.get('y', 0)):.1f}h0" for p in points)
    for point in points:
        group.remove(point)
    for unused in group.findall(f"{_SVG}defs"):
        group.remove(unused)
    ElementTree.SubElement(group, f"{_SVG}path", {"d": path, "class": "cloud"})


def _strip(element: ElementTree.Element, prefix: str) -> None:
    """Remove namespaces, unused identifiers, fonts and fixed colours."""
    element.tag = element.tag.removeprefix(_SVG)
    attributes = {key.removeprefix(_XLINK): value for key, value in element.attrib.items()}
    if element.tag in ("g", "text"):
        attributes.pop("id", None)
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    if attributes.get("href", "").startswith("#"):
        attributes["href"] = f"#{prefix}{attributes['href'][1:]}"
    for key, value in attributes.items():
        attributes[key] = value.replace("url(#", f"url(#{prefix}")
    if "style" in attributes:
        attributes["style"] = _restyled(attributes["style"])
    if "d" in attributes:
        attributes["d"] = re.sub(r"\s+", " ", re.sub(r"(\d\.\d)\d+", r"\1", attributes["d"])).strip()
    element.attrib = attributes
    if not (element.text or "").strip():
        element.text = None
    element.tail = None


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


def _written(element: ElementTree.Element) -> str:
    """Write elements as HTML, without namespaces."""
    attributes = "".join(f' {key}="{safe(value)}"' for key, value in element.attrib.items())
    inner = safe(element.text or "") + "".join(_written(child) for child in element)
    return f"<{element.tag}{attributes}>{inner}</{element.tag}>"


# ----------------------------------------------------------------------------------------------------
# Sections on the graph: itself with a panel for every node, over time, and what of it matters.


LEAST_SHARE = 0.005  # of a mixture, that is shown
SHOWN_CASES = 60
DRAWN_ROWS = 5_000
SAMPLED_ROWS = 1_000
LARGE = 12  # nodes from which on a graph has controls
SHOWN_LOSSES = 15


def graph_section(content: Content) -> Html:
    """Draw the graph beside the panels of its nodes."""
    structure = content.network.structure
    weights, notes = _weights(content), direction_notes(content)
    hint = (
        "An arc means that the child depends on the parent, given the child's other parents; not that one "
        "causes the other. Select a node to see its density, equation and score; Tab and Enter work too."
    )
    first = next((node for node in structure.nodes if structure.parents(node)), structure.nodes[0])
    rows, samples = content.evidence.thinned(DRAWN_ROWS), _samples(content)
    panels = []
    for number_, node in enumerate(structure.nodes):
        shown = rows if _is_drawn(content, node) else samples
        figure = Html("") if shown is None else cpd_figure(content.network, node, shown, number_)
        panels.append(_panel(content, number_, node, figure, first=node == first))
    box = tag("div", graph_svg(structure, weights, notes=notes), class_="scroll")
    return join(
        heading("graph", "The graph", hint),
        tag(
            "div",
            tag(
                "div",
                _tools() if len(structure.nodes) >= LARGE else "",
                box,
                legend(content.types, *_legend_notes(weighted=bool(weights), dashed=bool(notes))),
                class_="card",
            ),
            tag("div", *panels, class_="panels", aria_live="polite"),
            class_="explorer",
        ),
    )


def _tools() -> Html:
    """Write the controls of a graph that is too large to be seen at once."""
    search = search_box("Find a node")
    buttons = [
        tag("button", text, type="button", class_=name, aria_label=label)
        for name, text, label in (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("fit", "Fit", "Fit all"))
    ]
    near = tag("button", "Neighbourhood", type="button", class_="near", aria_pressed="false")
    return tag("div", search, *buttons, near, tag("span", class_="matches small"), class_="graph-tools tools")


def _legend_notes(*, weighted: bool, dashed: bool) -> Iterator[str]:
    yield "removing a wider arc costs more score" if weighted else "arcs lead from parents to children"
    if dashed:
        yield "dashed: the data leave the direction open"


def _weights(content: Content) -> dict[tuple[str, str], float]:
    """Return how much arcs matter, from 0 to 1: the share of its density that a row loses without them."""
    if not isinstance(content.importance, Importance):
        return {}
    return {arc: 1.0 - exp(-max(0.0, loss.per_row)) for arc, loss in content.importance.arcs.items()}


def _is_drawn(content: Content, node: str) -> bool:
    """Tell whether there are enough rows of a node and its parents to draw its density with."""
    names = (node, *content.network.structure.parents(node))
    return content.evidence.rows >= FEWEST_ROWS and content.evidence.covers(names)


def _samples(content: Content) -> Table | None:
    """Return rows drawn from the network, if a node needs them and they can be drawn."""
    network = content.network
    if all(_is_drawn(content, node) for node in network.nodes) or network.inputs:
        return None
    return as_table(network.sample(SAMPLED_ROWS, seed=0), variables=network.variables)


def _panel(content: Content, number_: int, node: str, figure: Html, *, first: bool) -> Html:
    network = content.network
    node_type, described = network.structure.type(node), network.cpds[node].describe()
    return tag(
        "article",
        tag(
            "header",
            tag("h3", node),
            tag("span", node_type.appearance.label, class_=f"badge kind {type_class(node_type)}"),
        ),
        tag("code", described.formula, class_="equation"),
        _shares(described.shares),
        tag("p", described.legend, class_="caption") if described.legend else "",
        figure,
        tag("p", _caption(content, node), class_="caption"),
        _facts(content, node),
        *map(_parameters, described.tables),
        _cases(described.cases),
        class_="panel card first" if first else "panel card",
        id=f"node-{number_}",
        tabindex="-1",
        aria_label=f"Node {node}",
    )


def _shares(shares: Mapping[str, float]) -> Html:
    """Draw what a mixture is made of as one bar, with a legend."""
    shown = {name: share for name, share in shares.items() if share >= LEAST_SHARE}
    if not shown:
        return Html("")
    colours = {name: f"s{i}" for i, name in enumerate(shares, 1)}
    parts = [tag("i", class_=colours[n], style=f"width:{100 * share:.1f}%") for n, share in shown.items()]
    keys = [
        tag("span", tag("i", class_=f"key {colours[n]}"), f"{100 * share:.0f} % {n}")
        for n, share in sorted(shown.items(), key=lambda item: -item[1])
    ]
    words = ", ".join(f"{100 * share:.0f} % {name}" for name, share in shown.items())
    return join(
        tag("div", *parts, class_="shares", role="img", aria_label=f"A mixture: {words}"),
        tag("p", *keys, class_="legend"),
    )


def _parameters(found: ParameterTable) -> Html:
    """Write numbers that do not fit into the equation, to be opened; probabilities with a bar below each."""
    heads = [("", ""), *((name, "num") for name in found.columns)]
    cell = _probability if found.of_probabilities else number
    rows = [
        table_row(name, *((cell(value), "num") for value in values))
        for name, values in zip(found.rows, found.values, strict=True)
    ]
    shown = table(heads, rows)
    title = tag("summary", found.title[:1].upper() + found.title[1:])
    return tag(
        "details", title, tag("div", shown, class_="probabilities") if found.of_probabilities else shown
    )


def _probability(value: float) -> Html:
    return join(number(value, 3), track(value))


def _cases(cases: Mapping[str, Description]) -> Html:
    """Write the density of every configuration, to be opened."""
    if not cases:
        return Html("")
    rows = [
        table_row(name, join(tag("code", case.formula), _shares(case.shares)))
        for name, case in islice(cases.items(), SHOWN_CASES)
    ]
    more = len(cases) - len(rows)
    note = tag("p", f"And {count(more)} more.", class_="caption") if more else ""
    heads = [("Configuration", ""), ("Density", "")]
    return tag("details", tag("summary", plural(len(cases), "configuration")), table(heads, rows), note)


def _caption(content: Content, node: str) -> str:
    network = content.network
    discrete = {variable.name for variable in network.variables if variable.is_discrete}
    parents = network.structure.parents(node)
    rows = "the given rows" if content.evidence.source is Source.GIVEN else "training rows"
    if not _is_drawn(content, node):
        if network.inputs:
            return "Give rows to see its density: the inputs of the network have no distribution."
        rows = "rows drawn from the model"
    if node in discrete:
        if not parents:
            return f"Probability of every level (blue), and its share of {rows} (grey)."
        return f"Probabilities under the most common configurations of its parents; taken from {rows}."
    if discrete & set(parents):
        others = ", with the others at typical values" if len(parents) > 1 else ""
        return f"Density at levels of one parent{others}; taken from {rows}."
    if not parents:
        return f"Density (line) over {rows} (bars)."
    if len(parents) == 1:
        return f"Density given {parents[0]} (shading), with {rows} (dots)."
    return f"Density at five quantiles of one parent, with the others at their medians; taken from {rows}."


def _facts(content: Content, node: str) -> Html:
    structure = content.network.structure
    none = tag("span", "none", class_="small")
    facts: list[tuple[str, str]] = [
        ("Parents", node_links(content.network, structure.parents(node)) or none),
        ("Children", node_links(content.network, structure.dag.children(node)) or none),
    ]
    if isinstance(content.importance, Importance) and node in content.importance.scores:
        score = content.importance.scores[node]
        other = other_type(structure.type(node)).appearance.label
        discrete = any(
            variable.is_discrete for variable in content.network.variables if variable.name == node
        )
        what = "log-probability" if discrete else "log-density"
        facts.append(("Score", f"{number(score)} per row (cross-validated {what})"))
        if node in content.importance.types:
            facts.append((f"As {other}", _as_other(content.importance.types[node])))
    if content.network.margins is not None and node in content.network.margins.columns:
        facts.append(("Margin", f"{content.network.margins.columns[node]}; the equation is in its units"))
    check = content.checks.get(node)
    if check is not None:
        facts.append(
            (
                "Fit",
                join(
                    tag("span", check.verdict, class_=f"badge {check.verdict}"),
                    f" distance {check.distance:.3f}",
                ),
            )
        )
    return tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts")


def _as_other(loss: Loss) -> str:
    if loss.total == inf:
        return "cannot be fitted"
    if loss.is_gain:
        return f"score would rise by {number(-loss.total)}"
    if not loss.is_clear:
        return f"no clear difference ({number(-loss.total, 3)} ± {number(2 * loss.error, 2)})"
    return f"score would fall by {number(loss.total)}"


def slices_section(network: DynamicNetwork) -> Html:
    """Draw how a row depends on those before it."""
    rows, have, them = ("row", "has", "it") if network.lags == 1 else (f"{network.lags} rows", "have", "them")
    hint = (
        f"How a row (t) depends on the {rows} before it. Dashed nodes are the past, which is known and has "
        f"no density. Everything below is about a row given its past. The first {rows} of a series {have} no "
        f"such past: a static network with {plural(len(network.static.structure.arcs), 'arc')} judges {them}."
    )
    figure = tag("div", slices_figure(network), class_="scroll")
    return card("slices", "Over time", hint, figure)


def importance_section(content: Content) -> Html:
    """Show the losses as two tables with bars."""
    found = content.importance
    title = "Which arcs and node types matter"
    if isinstance(found, str):
        return heading("importance", title, f"Not shown. {found}")
    hint = (
        "How much the score would fall if one arc were removed, or if one node had another type. Long bars "
        "matter most, grey rows make no clear difference, and changing an orange one would improve the score."
    )
    note = (
        f"Ten-fold cross-validated log-likelihood on {rows_used(content.evidence, found.rows)}, refitted "
        f"with {found.bandwidth.title()}'s bandwidth rule. ± 2 s.e.: twice the standard error of the loss. "
        "Density: how much the density of an average row changes. Grey: the loss is less than twice its "
        "standard error. Rows that the structure was learned from favour it a little. "
    )
    if found.left_out:
        note = join(
            note,
            "Not computed, because there are no values: ",
            node_links(content.network, found.left_out),
            ".",
        )
    arcs = sorted(found.arcs.items(), key=lambda item: -item[1].total)
    types = sorted(found.types.items(), key=lambda item: -item[1].total)
    arc_rows = _rows([(arc_link(content.network, arc), loss) for arc, loss in arcs])
    type_rows = _rows([(_type_name(content, node), loss) for node, loss in types])
    if not arc_rows and not type_rows and not found.left_out:
        nothing = "Not shown. There are no arcs to remove, and no node could have another type."
        return heading("importance", title, nothing)
    return join(
        heading("importance", title, hint),
        tag(
            "div",
            _card("Arcs", "Arc removed", arc_rows) if arc_rows else "",
            _card("Node types", "Type changed", type_rows) if type_rows else "",
            class_="pair",
        ),
        tag("p", note, class_="note"),
    )


def _card(name: str, first: str, rows: list[Html]) -> Html:
    heads = [(first, ""), ("Score lost", "num"), ("± 2 s.e.", "num"), ("Density", "num"), ("", "meter")]
    return tag("div", tag("h3", name), long_table(heads, rows, SHOWN_LOSSES), class_="card")


def _type_name(content: Content, node: str) -> Html:
    node_type = content.network.structure.type(node)
    change = f"{node_type.appearance.short_label} → {other_type(node_type).appearance.short_label}"
    # The space is outside, so that a long name does not keep the change on its line.
    return join(node_link(content.network, node), " ", tag("span", change, class_="small"))


def _rows(losses: list[tuple[Html, Loss]]) -> list[Html]:
    finite = [abs(loss.total) for _, loss in losses if isfinite(loss.total)]
    longest = max(finite, default=1.0) or 1.0
    return [_row(name, loss, longest) for name, loss in losses]


def _row(name: Html, loss: Loss, longest: float) -> Html:
    share = min(1.0, abs(loss.total) / longest)
    cells = [tag("td", name)]
    if loss.total == inf:
        cells.append(tag("td", "cannot be fitted", class_="num", colspan=3))
    else:
        cells += [
            tag("td", number(loss.total), class_="num"),
            tag("td", number(2.0 * loss.error, 2), class_="num"),
            tag("td", percent(exp(-max(-700.0, loss.per_row)) - 1.0), class_="num"),
        ]
    bar = track(share)
    cells.append(tag("td", bar, class_="meter gain" if loss.is_gain else "meter"))
    kind = "gain" if loss.is_gain else None if loss.is_clear else "unclear"
    return tag("tr", *cells, class_=kind)
