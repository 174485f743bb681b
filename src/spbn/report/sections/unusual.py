"""The least likely rows."""

from __future__ import annotations

from spbn.drawing.markup import Html, join, tag
from spbn.explain.unusual import Reason, UnusualRow
from spbn.report.charts import density_histogram
from spbn.report.content import Content
from spbn.report.numbers import MINUS, count, number
from spbn.report.parts import heading, node_link, table


def unusual_section(content: Content) -> Html:
    """Show the least likely rows and the nodes that make them so."""
    found = content.unusual
    title = "Most unusual rows"
    if found is None:
        return heading("unusual", title, "Not shown: no rows were given. Give data (--data) to see them.")
    first = content.evidence.labels[:2]
    numbered = " Rows are counted from 0." if first == ("0", "1") else ""
    hint = (
        "The rows with the lowest log-density, and the nodes to blame: the value of a node there, and how "
        "far its log-density lies below that node's median. Triangles mark these rows among all "
        f"{count(content.evidence.rows)}; the median is {number(found.median)}.{numbered}"
    )
    heads = [("Row", ""), ("Log-density", "num"), ("Because of", "")]
    return join(
        heading("unusual", title, hint),
        tag(
            "div",
            density_histogram(found),
            table(heads, [_row(content, row) for row in found.rows]),
            class_="card",
        ),
    )


def _row(content: Content, row: UnusualRow) -> Html:
    reasons = tag("ul", *(_reason(content, reason) for reason in row.reasons), class_="reasons")
    return tag(
        "tr",
        tag("td", row.label),
        tag("td", number(row.logpdf), class_="num"),
        tag("td", reasons),
    )


def _reason(content: Content, reason: Reason) -> Html:
    return tag(
        "li",
        node_link(content, reason.node),
        f" = {number(reason.value)} ",
        tag("span", f"{MINUS}{number(reason.drop, 3)}", class_="drop"),
    )
