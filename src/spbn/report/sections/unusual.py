"""The least likely rows."""

from __future__ import annotations

from spbn.diagnostics.unusual import SAMPLED_ROWS, Reason, Scoring, UnusualRow, UnusualRows
from spbn.plots.svg import Html, join, tag
from spbn.report.charts import density_histogram
from spbn.report.content import Content
from spbn.report.format import MINUS, count, number
from spbn.report.parts import heading, node_link, table

ALARMS = (0.01, 0.001)  # shares of new rows that raise a false alarm
SCORED = {
    Scoring.AS_GIVEN: "The rows are scored as new ones, by the network as it is.",
    Scoring.LEFT_OUT_ALONE: (
        "These are the training rows: each is scored by the network fitted to all other rows."
    ),
    Scoring.LEFT_OUT_BY_FOLD: (
        "These are the training rows: each is scored by the network fitted to nine tenths of the rows, "
        "without it."
    ),
}


def unusual_section(content: Content) -> Html:
    """Show the least likely rows, and the nodes that make them so."""
    found = content.unusual
    title = "Most unusual rows"
    if found is None:
        return heading("unusual", title, "Not shown, because no rows were given.")
    first = content.evidence.labels[:2]
    numbered = " Rows are counted from 0." if first == ("0", "1") else ""
    hint = (
        "The rows with the lowest log-density, and the nodes to blame, with their values and how far their "
        f"log-density is below what is typical of the node, {_typical(content)}. "
        f"{SCORED[found.scoring]} Triangles mark these rows among all "
        f"{count(content.evidence.rows)}; the median is {number(found.median)}.{numbered}"
    )
    heads = [("Row", ""), ("Log-density", "num"), ("Because of", "")]
    return join(
        heading("unusual", title, hint),
        tag(
            "div",
            density_histogram(found, _alarm_lines(found)),
            _alarms(found),
            table(heads, [_row(content, row) for row in found.rows]),
            class_="card",
        ),
    )


def _alarm_lines(found: UnusualRows) -> dict[str, float]:
    """Return the thresholds to draw, by what they are called."""
    levels = {f"1 in {count(round(1 / share))}": found.alarm(share) for share in ALARMS}
    return {name: level for name, level in levels.items() if level is not None}


def _alarms(found: UnusualRows) -> Html:
    """Say from which log-density on a new row would be reported."""
    levels = _alarm_lines(found)
    rows = "these rows, each scored without itself" if found.left_out else "these rows"
    if not levels:
        text = (
            f"There are too few rows to set an alarm threshold: it needs {count(round(1 / ALARMS[0]) - 1)}."
        )
        return tag("p", text, class_="note alarms")
    words = [f"{number(level)} ({name})" for name, level in levels.items()]
    return tag(
        "p",
        tag("b", "Alarm threshold: "),
        f"{'; '.join(words)}. If new rows are like {rows}, no more than that share of them is below the "
        "threshold, so a row below it deserves a look.",
        class_="note alarms",
    )


def _typical(content: Content) -> str:
    """Say what unusual values are measured against."""
    if content.network.record.typical:
        return "its median over training rows"
    return f"its median over {count(SAMPLED_ROWS)} rows drawn from the network"


def _row(content: Content, row: UnusualRow) -> Html:
    reasons = (
        tag("ul", *(_reason(content, reason) for reason in row.reasons), class_="reasons")
        if row.reasons
        else tag("span", "a little of everything", class_="small")
    )
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
        f" = {reason.value if isinstance(reason.value, str) else number(reason.value)} ",
        tag("span", f"{MINUS}{number(reason.drop, 3)}", class_="drop"),
    )
