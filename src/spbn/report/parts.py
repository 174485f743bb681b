"""Building blocks of the sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spbn.diagnostics.validation import Source
from spbn.plots.svg import Html, join, tag
from spbn.report.content import Content
from spbn.report.format import count


def heading(key: str, text: str, hint: str) -> Html:
    """Write the heading of a section, and below it what to look for."""
    return join(tag("h2", text, id=f"{key}-heading"), tag("p", hint, class_="hint"))


def tiles(numbers: Iterable[tuple[str, str]]) -> Html:
    """Write the main numbers of a page, each with what it counts."""
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers),
        class_="tiles",
    )


def counted(number: int, word: str) -> tuple[str, str]:
    """Return the tile of a count: what is counted, one or several, and how many there are."""
    return word if number == 1 else f"{word}s", count(number)


def search_box(what: str) -> Html:
    """Write a field for the beginning of a name."""
    return tag("input", type="search", class_="search", placeholder=what, aria_label=what, autocomplete="off")


def node_link(content: Content, node: str) -> Html:
    """Write a node's name as a link to its panel; that of an input, which has none, as it is."""
    if node in content.network.structure.inputs:
        return tag("span", node)
    number = content.network.nodes.index(node)
    return tag("a", node, href=f"#node-{number}", data_node=number)


def node_links(content: Content, nodes: Iterable[str]) -> Html:
    """Write names of nodes as links, with commas between."""
    return Html(", ".join(node_link(content, node) for node in nodes))


def table(heads: Sequence[tuple[str, str]], rows: Iterable[Html]) -> Html:
    """Make a table in a box of its own that scrolls; a head is a text and its class."""
    cells = [tag("th", text, class_=kind or None, scope="col") for text, kind in heads]
    return tag(
        "div",
        tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows)),
        class_="scroll",
    )


def rows_used(content: Content, used: int) -> str:
    """Say which rows something was computed from."""
    source = content.evidence.source
    if used < content.evidence.rows:
        return f"{count(used)} of {source.value} (drawn at random from {count(content.evidence.rows)})"
    return f"{source.value} ({count(used)})" if source is not Source.NONE else source.value
