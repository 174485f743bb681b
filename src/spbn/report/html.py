"""What pages are made of: HTML in which text from users is always escaped, numbers, tables, and the frame."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from spbn._base.files import replacing
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType, registered
from spbn.structure import Structure

#: What XML does not allow: control characters and halves of surrogate pairs.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "input", "meta"})
MINUS = "\N{MINUS SIGN}"
#: What a network is called whose nodes have these types, and no others.
NAMES = {
    frozenset({"lg"}): "Gaussian Bayesian network",
    frozenset({"ckde"}): "KDE Bayesian network",
    frozenset({"blend"}): "Bayesian network of blends",
}
STYLES = ("report.css", "what_if.css")
SCRIPTS = ("graph.js", "report.js", "what_if.js")  # the second tells the first which node is shown


class Html(str):
    """Text that is HTML already; any other text is escaped before it is added to it."""

    __slots__ = ()


#: A cell of a table: its text, or that and its class.
Cell = str | tuple[str, str]


def clean(text: str) -> str:
    """Replace characters that no document can hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def safe(text: str) -> Html:
    """Escape text, unless it is HTML."""
    return text if isinstance(text, Html) else Html(escape(clean(text), quote=True))


def join(*parts: str, between: str = "") -> Html:
    """Put pieces one after the other."""
    return Html(between.join(safe(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | int | float | bool | None) -> Html:
    """Make an element; ``tag("p.small.note", ...)`` gives it two classes.

    In the names of attributes ``_`` stands for ``-``, and a ``_`` at the end is
    dropped. None and False leave an attribute out, True gives it no value.
    """
    name, *classes = name.split(".")
    written = [f' class="{safe(" ".join(classes))}"'] if classes else []
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


def number(value: float, digits: int = 4) -> str:
    """Write a number with `digits` significant digits and thousands separators."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e9:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    else:
        before_point = 0 if size == 0 else math.floor(math.log10(size)) + 1
        text = f"{size:,.{min(6, max(0, digits - before_point))}f}"
    return f"{MINUS}{text}" if value < 0 and float(text.replace(",", "").replace(MINUS, "-")) != 0 else text


def round_width(extent: float, fewest: float) -> tuple[int, int]:
    """Return the largest round number, as a digit and a power of ten, of which enough fit into an extent."""
    power = math.ceil(math.log10(extent / fewest))
    for exponent in (power, power - 1):
        for digit in (5, 2, 1):
            if extent / (digit * 10.0**exponent) >= fewest:
                return digit, exponent
    raise AssertionError(extent)  # one of them fits: 10**(power - 1) does


def plural(n: int, word: str) -> str:
    """Write a count and what is counted."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def percent(share: float) -> str:
    """Write a relative change as a percentage, with its sign."""
    size = abs(share) * 100.0
    sign = MINUS if share < 0 else "+" if share > 0 else ""
    if 0 < size < 0.05:
        return "<0.1 %"
    if size > 999.5:
        return f"{sign}>999 %"
    if 99.5 <= size < 100:
        return f"{sign}>99 %"
    return f"{sign}{size:.1f} %" if size < 10 else f"{sign}{size:.0f} %"


def percentage(share: float, digits: int = 0) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.{digits}f} %"


def capital(text: str) -> str:
    """Begin a text with a capital letter."""
    return text[:1].upper() + text[1:]


def heading(key: str, text: str, hint: str) -> Html:
    """Write the heading of a section, and below it what to look for."""
    return join(tag("h2", text, id=f"{key}-heading"), tag("p.hint", hint))


def card(key: str, text: str, hint: str, *parts: str) -> Html:
    """Write a section of one card: its heading, what to look for, and what is on the card."""
    return join(heading(key, text, hint), tag("div.card", *parts))


def details(summary: str, *parts: str) -> Html:
    """Write something that has to be opened."""
    return tag("details", tag("summary", summary), *parts)


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Write a list of names, each with what it stands for."""
    return tag("dl.facts", *(join(tag("dt", name), tag("dd", value)) for name, value in pairs))


def page_head(title: str, lead: str, numbers: Iterable[tuple[str, str]], *kinds: str) -> Html:
    """Write the head of a page: what it is about, in words and in its main numbers."""
    tiles = tag("dl.tiles", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers))
    return tag("header", tag("h1", title), tag("p.lead", lead), *kinds, tiles)


def counted(number: int, word: str) -> tuple[str, str]:
    """Return a main number that is a count: what is counted, one or several, and how many there are."""
    return word if number == 1 else f"{word}s", f"{number:,}"


def search_box(what: str) -> Html:
    """Write a field for the beginning of a name."""
    return tag("input", type="search", class_="search", placeholder=what, aria_label=what, autocomplete="off")


def button(name: str, text: str, **attributes: str) -> Html:
    """Write a button, which the script finds by its class."""
    return tag("button", text, type="button", class_=name, **attributes)


def node_link(network: BayesianNetwork, node: str) -> Html:
    """Write a node's name as a link to its panel; that of an input, which has none, as it is."""
    if node in network.structure.inputs:
        return tag("span", node)
    number = network.nodes.index(node)
    return tag("a", node, href=f"#node-{number}", data_node=number)


def node_links(network: BayesianNetwork, nodes: Iterable[str], between: str = ", ") -> Html:
    """Write names of nodes as links."""
    return join(*(node_link(network, node) for node in nodes), between=between)


def table(heads: Sequence[Cell], rows: Iterable[Html]) -> Html:
    """Make a table in a box of its own that scrolls."""
    pairs = [head if isinstance(head, tuple) else (head, None) for head in heads]
    cells = [tag("th", text, class_=kind, scope="col") for text, kind in pairs]
    return tag("div.scroll", tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows)))


def table_row(*cells: Cell, class_: str | None = None) -> Html:
    """Make a row of a table."""
    pairs = [cell if isinstance(cell, tuple) else (cell, None) for cell in cells]
    return tag("tr", *(tag("td", text, class_=kind) for text, kind in pairs), class_=class_)


def long_table(heads: Sequence[Cell], rows: Sequence[Html], shown: int) -> Html:
    """Make a table of which all but the first rows have to be opened."""
    rest = rows[shown:]
    more = details(f"{len(rest):,} more", table(heads, rest)) if rest else ""
    return join(table(heads, rows[:shown]), more)


def track(share: float, element: str = "div") -> Html:
    """Draw a share as a bar."""
    return tag(f"{element}.track", tag("i", style=f"width:{100 * share:.1f}%"))


def count_types(structure: Structure) -> dict[NodeType, int]:
    """Return how many nodes have a type, for every type that is there, in the order of the registry."""
    found = list(structure.types.values())
    return {node_type: found.count(node_type) for node_type in registered() if node_type in found}


def type_class(node_type: NodeType) -> str:
    """Return the class of whatever has the colour of a type, as ``--type``."""
    return f"type-{node_type.name}"


def type_key(node_type: NodeType) -> Html:
    """Draw a small node of a type."""
    return tag(f"i.key.{type_class(node_type)}")


def type_badge(node_type: NodeType) -> Html:
    """Write the name of a type on its colour."""
    return tag(f"span.badge.kind.{type_class(node_type)}", node_type.appearance.label)


def type_rules(types: Iterable[NodeType]) -> str:
    """Write the style rules that give the types their colours, in light and dark and on paper."""
    chosen = list(types)
    light = "".join(f".{type_class(t)} {{ --type: {t.appearance.colour}; }}\n" for t in chosen)
    dark = "".join(f"  .{type_class(t)} {{ --type: {t.appearance.dark_colour}; }}\n" for t in chosen)
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def graph_legend(types: Iterable[NodeType], *notes: str) -> Html:
    """Explain the colours of a graph, and in words what else there is to explain."""
    kinds = (tag("span", type_key(node_type), node_type.appearance.label) for node_type in types)
    return tag("p.legend", *kinds, *(tag("span", note) for note in notes))


def model_name(network: BayesianNetwork) -> str:
    """Say what kind of network it is."""
    discrete = {variable.name for variable in network.all_variables if variable.is_discrete}
    kinds = frozenset(kind.name for node, kind in network.structure.types.items() if node not in discrete)
    if not kinds:
        return "Discrete Bayesian network"
    mixed = " with discrete nodes" if discrete else ""
    return NAMES.get(kinds, "Semiparametric Bayesian network") + mixed


def assemble_page(
    title: str, head: Html, sections: Mapping[str, tuple[str, Html]], *, rules: str = ""
) -> str:
    """Put a page together, of sections by their keys: what the navigation calls them, and what they hold.

    Rules are added to the style sheet.
    """
    links = [tag("li", tag("a", name, href=f"#{key}")) for key, (name, _) in sections.items()]
    parts = [
        tag("section", part, id=key, aria_labelledby=f"{key}-heading") for key, (_, part) in sections.items()
    ]
    closing = "Written by spbn. Logarithms are natural. This file works without a connection."
    body = join(
        head,
        tag("nav", tag("ul", *links), aria_label="Sections") if len(links) > 1 else "",
        tag("main", *parts, id="main"),
        tag("footer", tag("p", closing)),
    )
    script = "".join(map(read_resource, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(read_resource("page.html")).substitute(
        title=safe(title),
        css="".join(map(read_resource, STYLES)) + rules,
        js=script,
        # Every block begins a new line, so that the source can be read and compared.
        body=re.sub("<(section|article|nav|main|tr|footer|h2|li)", r"\n<\1", body),
        # Only the script of this file may run, whatever a name may contain.
        script_hash=f"sha256-{digest}",
    )


def read_resource(name: str) -> str:
    """Read a file that is part of the package."""
    return files("spbn.report").joinpath(name).read_text(encoding="utf-8")


def write_page(text: str, path: str | os.PathLike[str]) -> None:
    """Write a page to a file, which appears whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
