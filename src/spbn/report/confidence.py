"""A report on which arcs to believe: the averaged network, and how often replicates agree on it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from spbn._base.files import replacing
from spbn.errors import require_plot_packages
from spbn.learning.stability import Confidence
from spbn.nodes.base import NodeType, registered
from spbn.plots.svg import Html, graph_svg, join, legend, tag, type_class, type_rules
from spbn.report.format import count, plural
from spbn.report.page import assembled
from spbn.report.parts import counted, heading, table, tiles
from spbn.structure import Structure

SHOWN = 15  # pairs that are not believed


def write_confidence_report(found: Confidence, path: str | os.PathLike[str], *, title: str) -> None:
    """Write the report to a file, which appears whole or not at all; see `render_confidence`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.report.confidence import write_confidence_report
    >>> found = spbn.confidence(data, replicates=5, model="gbn")
    >>> write_confidence_report(found, "arcs.html", title="Five variables")
    """
    text = render_confidence(found, title=title)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def render_confidence(found: Confidence, *, title: str) -> str:
    """Return the report as the text of an HTML page."""
    require_plot_packages()
    structure = found.structure()
    sections = {
        "graph": ("Graph", _graph(found, structure)),
        "arcs": ("Arcs", _arcs(found, structure)),
        "types": ("Node types", _types(found)),
    }
    types = [t for t in registered() if t.name in set(found.types["type"])]
    return assembled(title, _head(found, structure, title), sections, rules=type_rules(types))


def _head(found: Confidence, structure: Structure, title: str) -> Html:
    replicates = plural(len(found.structures), "replicate")
    lead = (
        f"The search was repeated in {replicates}, each on a different half of the {count(found.rows)} rows. "
        f"An arc is believed if more than {_percent(found.threshold)} of them have it, in either direction."
    )
    numbers = [
        counted(len(structure.nodes), "node"),
        ("arc believed" if len(structure.arcs) == 1 else "arcs believed", count(len(structure.arcs))),
        ("of these with an open direction", count(len(found.open_directions()))),
        ("threshold", _percent(found.threshold)),
    ]
    return tag(
        "header",
        tag("h1", title),
        tag("p", lead, class_="lead"),
        tiles(numbers),
    )


def _graph(found: Confidence, structure: Structure) -> Html:
    notes = found.open_directions()
    hint = (
        "The averaged network: the arcs that are believed, each in its most frequent direction, and the most "
        "frequent type of every node. An arc that would close a cycle with stronger ones is left out."
    )
    types = [t for t in registered() if t in structure.types.values()]
    words = ["wider arcs are in more replicates", *(["dashed: the direction is open"] if notes else [])]
    box = tag("div", graph_svg(structure, found.strengths(), notes=notes), class_="scroll")
    return join(
        heading("graph", "The averaged network", hint), tag("div", box, legend(types, *words), class_="card")
    )


def _arcs(found: Confidence, structure: Structure) -> Html:
    hint = (
        "Strength: the share of replicates that join the two nodes. Direction: the share of these in which "
        "the arc points this way. A direction is open if the reverse arc implies the same independences, "
        "or if replicates disagree."
    )
    heads = [("Arc", ""), ("Strength", "num"), ("", "meter"), ("Direction", "num"), ("Open because", "")]
    believed: list[Html] = []
    others: list[Html] = []
    for arc, row in _rows(found):
        (believed if arc in structure.arcs else others).append(row)
    empty = tag("p", "No arc is believed: half of the rows are too few to show one.", class_="hint")
    rest = tag(
        "details", tag("summary", f"{plural(len(others), 'arc')} not believed"), table(heads, others[:SHOWN])
    )
    return join(
        heading("arcs", "Arcs", hint),
        tag("div", table(heads, believed) if believed else empty, rest if others else "", class_="card"),
    )


def _rows(found: Confidence) -> Iterator[tuple[tuple[str, str], Html]]:
    """Yield every arc, the strongest first, and its line."""
    notes = found.open_directions()
    for source, target, strength, direction in found.arcs.itertuples(index=False):
        bar = tag("div", tag("i", style=f"width:{100 * strength:.1f}%"), class_="track")
        yield (
            (source, target),
            tag(
                "tr",
                tag("td", f"{source} → {target}"),
                tag("td", _percent(strength), class_="num"),
                tag("td", bar, class_="meter"),
                tag("td", _percent(direction), class_="num"),
                tag("td", notes.get((source, target), ""), class_="small"),
            ),
        )


def _types(found: Confidence) -> Html:
    hint = "The share of replicates with each type of a node; the averaged network has the most common one."
    rows = []
    shares = dict(iter(found.types.groupby("node", sort=False)))
    for number, node in enumerate(found.nodes):
        cells = [
            _badge(NodeType.parse(name), share)
            for name, share in shares[node][["type", "share"]].itertuples(index=False)
        ]
        rows.append(tag("tr", tag("td", node), tag("td", *cells), id=f"node-{number}"))
    return join(
        heading("types", "Node types", hint),
        tag("div", table([("Node", ""), ("Types", "")], rows), class_="card"),
    )


def _badge(node_type: NodeType, share: float) -> Html:
    name = tag("span", node_type.label, class_=f"badge kind {type_class(node_type)}")
    return tag("span", name, f" {_percent(share)} ")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
