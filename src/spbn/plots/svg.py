"""HTML and SVG in which text from users is always escaped, and graphs drawn with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.graphs.dag import Arc
from spbn.nodes.base import NodeType
from spbn.plots.layout import layered, node_width, short_labels
from spbn.structure import Structure

#: What XML does not allow: control characters and halves of surrogate pairs.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "input", "meta"})


class Html(str):
    """Text that is HTML already; any other text is escaped before it is added to it."""

    __slots__ = ()


def clean(text: str) -> str:
    """Replace characters that no document can hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def safe(text: str) -> Html:
    """Escape text, unless it is HTML."""
    return text if isinstance(text, Html) else Html(escape(clean(text), quote=True))


def join(*parts: str) -> Html:
    """Put pieces one after the other."""
    return Html("".join(safe(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | int | float | bool | None) -> Html:
    """Make an element.

    In the names of attributes ``_`` stands for ``-``, and a ``_`` at the end is
    dropped. None and False leave an attribute out, True gives it no value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {key}")
        else:
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            written.append(f' {key}="{safe(shown)}"')
    opening = f"<{name}{''.join(written)}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


UNIT = np.array([7.2, 82.0])  # pixels per character and per layer of the layout
NODE_HEIGHT = 36.0
MARGIN = 8.0
LONGEST_LABEL = 22
SMALLEST, LARGEST = 0.72, 1.5  # the graph is scaled within these to fit its box; then it scrolls
TALLEST = 620.0  # pixels up to which a small graph grows
THIN, THICK = 1.1, 4.0  # widths of arcs
DASHES = "7 4"
NO_NOTES: Mapping[Arc, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Places in pixels: centres of nodes, and routes of arcs from centre to centre."""

    labels: Mapping[str, str]
    centres: Mapping[str, FloatArray]
    routes: Mapping[Arc, FloatArray]
    width: float
    height: float

    def radii(self, node: str) -> FloatArray:
        """Half of the width and the height of a node."""
        return _radii(self.labels[node])


def graph_svg(
    structure: Structure,
    weights: Mapping[Arc, float],
    *,
    notes: Mapping[Arc, str] = NO_NOTES,
    linked: bool = True,
) -> Html:
    """Draw a structure.

    Parameters
    ----------
    weights
        How much an arc matters, from 0 to 1, where that is known.
    notes
        Why the direction of an arc is open, in words: such arcs are dashed.
    linked
        Whether every node is a link to its panel.
    """
    drawing = _place(structure)
    # Tab goes through the nodes as they are read: layer by layer, from the left.
    order = sorted(_drawn(structure), key=lambda node: tuple(drawing.centres[node][::-1].tolist()))
    grown = min(LARGEST, max(1.0, TALLEST / drawing.height))
    return tag(
        "svg",
        tag(
            "g",
            *(_arc(structure, drawing, arc, weights.get(arc), notes.get(arc)) for arc in structure.arcs),
            aria_hidden="true",
        ),
        tag("g", *(_node_or_input(structure, drawing, node, linked=linked) for node in order)),
        class_="graph",
        viewBox=f"0 0 {drawing.width:.0f} {drawing.height:.0f}",
        style=f"max-width:{grown * drawing.width:.0f}px;min-width:{SMALLEST * drawing.width:.0f}px",
        role="group",
        aria_label=f"Graph of {len(structure.nodes)} nodes and {len(structure.arcs)} arcs",
    )


def legend(types: Iterable[NodeType], *notes: str) -> Html:
    """Explain the colours of the graph, and in words what else there is to explain."""
    return tag(
        "p",
        *(tag("span", type_key(node_type), node_type.appearance.label) for node_type in types),
        *(tag("span", note) for note in notes),
        class_="legend",
    )


def type_key(node_type: NodeType) -> Html:
    """Draw a small node of a type."""
    return tag("i", class_=f"key {type_class(node_type)}")


def type_class(node_type: NodeType) -> str:
    """Return the class of whatever has the colour of a type, as ``--type``."""
    return f"type-{node_type.name}"


def type_rules(types: Iterable[NodeType]) -> str:
    """Write the style rules that give the types their colours, in light and dark and on paper."""
    chosen = list(types)
    light = "".join(f".{type_class(t)} {{ --type: {t.appearance.colour}; }}\n" for t in chosen)
    dark = "".join(f"  .{type_class(t)} {{ --type: {t.appearance.dark_colour}; }}\n" for t in chosen)
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _place(structure: Structure) -> _Drawing:
    labels = short_labels(_drawn(structure), LONGEST_LABEL)
    layout = layered(list(labels.values()), [(labels[a], labels[b]) for a, b in structure.arcs])
    centres = {node: np.array(layout.centres[label]) * UNIT for node, label in labels.items()}
    routes = {(a, b): np.array(layout.routes[labels[a], labels[b]]) * UNIT for a, b in structure.arcs}
    # Curves stay within the hull of their control points.
    corners = [centre + sign * _radii(labels[node]) for node, centre in centres.items() for sign in (-1, 1)]
    corners += [point for route in routes.values() for point in _controls(route)]
    low, high = np.min(corners, axis=0) - MARGIN, np.max(corners, axis=0) + MARGIN
    return _Drawing(
        labels,
        {node: centre - low for node, centre in centres.items()},
        {arc: route - low for arc, route in routes.items()},
        *(high - low).tolist(),
    )


def _drawn(structure: Structure) -> tuple[str, ...]:
    """Return what is drawn: the nodes, and the inputs that they need."""
    return (*structure.nodes, *structure.used_inputs)


def _radii(label: str) -> FloatArray:
    return np.array([0.5 * node_width(label) * UNIT[0], 0.5 * NODE_HEIGHT])


def _node_or_input(structure: Structure, drawing: _Drawing, node: str, *, linked: bool) -> Html:
    x, y = drawing.centres[node].tolist()
    rx, ry = drawing.radii(node).tolist()
    if node in structure.inputs:
        return tag(
            "g",
            tag("title", f"{node} (input)"),
            tag("ellipse", cx=x, cy=y, rx=rx, ry=ry),
            tag("text", drawing.labels[node], x=x, y=y, dy="0.35em"),
            class_="input",
        )
    node_type, parents = structure.type(node), structure.parents(node)
    name = node_type.appearance.label
    given = f"parents: {', '.join(parents)}" if parents else "no parents"
    number = structure.nodes.index(node)
    parts = [
        tag("title", f"{node} ({name})"),
        tag("ellipse", cx=x, cy=y, rx=rx, ry=ry),
        tag("text", drawing.labels[node], x=x, y=y, dy="0.35em"),
    ]
    if not linked:
        return tag("g", *parts, class_=f"node {type_class(node_type)}")
    return tag(
        "a",
        *parts,
        class_=f"node {type_class(node_type)}",
        href=f"#node-{number}",
        data_node=number,
        data_name=node,
        aria_label=f"{node}: {name}, {given}",
    )


def _arc(structure: Structure, drawing: _Drawing, arc: Arc, weight: float | None, note: str | None) -> Html:
    source, target = arc
    route = drawing.routes[arc].copy()
    width = THIN + 0.4 if weight is None else THIN + (THICK - THIN) * weight
    head = 6.0 + 1.6 * width
    route[0] = _boundary(route[0], route[1], drawing.radii(source))
    tip = _boundary(route[-1], route[-2], drawing.radii(target))
    step = tip - route[-2]
    forward = step / max(1e-9, float(np.hypot(*step)))
    aside = 0.42 * head * np.array([-forward[1], forward[0]])
    base = tip - head * forward
    route[-1] = tip - 0.9 * head * forward  # the line ends inside the arrowhead
    return tag(
        "g",
        tag("title", f"{source} → {target}{f' (direction open: {note})' if note else ''}"),
        tag("path", d=_path(route), stroke_width=round(width, 2), stroke_dasharray=DASHES if note else None),
        tag("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, base + aside, base - aside))),
        class_="arc",
        data_from=structure.dag.index(source),
        data_to=structure.dag.index(target),
    )


def _boundary(centre: FloatArray, towards: FloatArray, radii: FloatArray) -> FloatArray:
    """Return where the line from the centre of a node leaves its ellipse, with a small gap."""
    step = towards - centre
    return centre + step / max(1e-9, float(np.hypot(*(step / (radii + 1.5)))))


def _controls(points: FloatArray) -> list[FloatArray]:
    """Return the control points of a smooth curve: three for each of its pieces."""
    tangents = np.gradient(points, axis=0) / 3.0
    return [
        control
        for k in range(len(points) - 1)
        for control in (points[k] + tangents[k], points[k + 1] - tangents[k + 1], points[k + 1])
    ]


def _path(points: FloatArray) -> str:
    start = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    if len(points) == 2:
        return f"{start}L{points[1][0]:.1f} {points[1][1]:.1f}"
    return f"{start}C{' '.join(f'{x:.1f} {y:.1f}' for x, y in _controls(points))}"
