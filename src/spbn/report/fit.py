"""Sections on how far to trust a network: how it was learned, whether every node fits, and unusual rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spbn.diagnostics.model import GOOD, FitCheck
from spbn.diagnostics.rows import SAMPLED_ROWS, Reason, Scoring, UnusualRow, UnusualRows
from spbn.report.charts import density_histogram, line_chart, uniform_histogram
from spbn.report.content import Content, _is_pc, _tests
from spbn.report.html import (
    MINUS,
    Html,
    card,
    count,
    heading,
    join,
    node_link,
    node_links,
    number,
    plural,
    rows_used,
    table,
    table_row,
    tag,
)
from spbn.search import SearchResult, Step

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


def learning_section(content: Content) -> Html:
    """Show the learning curves, or what PC found."""
    search = content.network.search
    if isinstance(search, SearchResult):
        hint, card = _climb(search)
        return join(heading("learning", "How it was learned", hint), _early_stop(content), card)
    if _is_pc(search):
        types = content.network.type_search
        return join(_pc(search), _types(types) if isinstance(types, SearchResult) else "")
    hint = (
        "Not shown: the network has no record of its search. Either its structure was given, or the file "
        "that it was loaded from does not include the search."
    )
    return heading("learning", "How it was learned", hint)


def _types(search: SearchResult) -> Html:
    """Show how the node types were found for the arcs of PC."""
    hint, card = _climb(search)
    if not search.steps:
        hint = "No node did better with a type other than the one it started with."
    return join(
        tag("h3", "The node types, for these arcs", class_="then"), tag("p", hint, class_="hint"), card
    )


def _early_stop(content: Content) -> Html:
    """Say why the search may have ended with less than it could have found."""
    found = content.early_stop
    if found is None:
        return Html("")
    what = found.what[0].upper() + found.what[1:]
    rows = [join(far.label, " (", node_link(content.network, far.node), ")") for far in found.rows]
    look = (
        join(
            " A few rows far from all others can cause this: look at ",
            "rows " if len(rows) > 1 else "row ",
            Html(", ".join(rows)),
            ".",
        )
        if rows
        else ""
    )
    return tag("p", what, look, f" {found.remedy}", class_="warning", role="note")


def _climb(search: SearchResult) -> tuple[str, Html]:
    """Return what to look for in a search, and a card with its curves and steps."""
    if not search.steps:
        return "The search took no steps: nothing improved on its start.", Html("")
    steps = search.steps
    scores = [steps[0].score - steps[0].delta, *(step.score for step in steps)]
    validations = [step.validation_score for step in steps]
    titles = [f"{i}. {step.operator}" for i, step in enumerate(steps, 1)]
    validated = scores[1:] != validations
    hint = (
        "Every step makes the change that raises the cross-validated score most. The validation rows play no "
        "part in that choice: where their score levels off or falls, more structure no longer helps."
        if validated
        else "Every step makes the change that raises the score most, until none does. Where the curve is "
        "flat, the last arcs matter little."
    )
    curves = [("Score", scores, 0, ["start", *titles])]
    curves += [("Validation score", validations, 1, titles)] if validated else []
    charts = []
    for k, (name, values, first, names) in enumerate(curves, 1):
        chart = line_chart(values, first=first, best=search.best, titles=names, name=name, colour=f"c{k}")
        charts.append(tag("div", tag("h3", f"{name} after every step"), tag("div", chart, class_="scroll")))
    return hint, tag(
        "div",
        tag("div", *charts, class_="pair"),
        tag(
            "details",
            tag("summary", f"All {plural(len(steps), 'step')}"),
            _steps(steps, validated=validated),
        ),
        class_="card",
    )


def _steps(steps: Sequence[Step], *, validated: bool) -> Html:
    """Write a table of steps, with their validation scores if they have some."""
    heads = [("Step", "num"), ("Change", ""), ("Gain", "num"), ("Score", "num")]
    heads += [("Validation score", "num")] if validated else []
    rows = []
    for i, step in enumerate(steps, 1):
        validation = [(number(step.validation_score, 7), "num")] if validated else []
        gain, score = (number(step.delta), "num"), (number(step.score, 7), "num")
        rows.append(table_row((str(i), "num"), str(step.operator), gain, score, *validation))
    return table(heads, rows)


def _pc(search: Any) -> Html:
    tests = _tests(search)
    arcs, edges = getattr(search.pdag, "arcs", ()), getattr(search.pdag, "edges", ())
    hint = (
        "PC removes an edge as soon as a test finds its two ends independent given some other variables. "
        "Directions are known only where the tests imply them; the other edges could as well point the "
        "other way."
    )
    rows = [table_row(count(size), (count(run), "num")) for size, run in enumerate(tests)]
    found = f"{plural(len(arcs), 'arc')} with a known direction, {plural(len(edges), 'edge')} without"
    open_edges = [tag("li", f"{a} — {b}") for a, b in edges]
    return card(
        "learning",
        "How it was learned",
        hint,
        tag("p", f"Found: {found}.", class_="found"),
        tag("details", tag("summary", "Edges without a known direction"), tag("ul", *open_edges))
        if open_edges
        else "",
        tag(
            "div",
            table([("Variables given", ""), ("Tests", "num")], rows),
            class_="narrow",
        )
        if len(rows) > 1
        else "",
    )


def fit_section(content: Content) -> Html:
    """Show a histogram for every node, the worst first."""
    checks = sorted(content.checks.items(), key=lambda item: -item[1].distance)
    title = "Does every node fit?"
    if not checks:
        return heading("fit", title, "Not shown, because there are no rows to check.")
    hint = (
        "Where in its predicted distribution does each value fall? Flat bars within the grey band mean that "
        "the density fits; a hump, that it is too wide; a bowl, too narrow; a slope, shifted. Worst first."
    )
    note = (
        f"The number is the Kolmogorov-Smirnov distance from uniform: {_legend(checks[0][1])}. Checked on "
        f"{rows_used(content.evidence, checks[0][1].rows)}. Rows that the network was fitted to fit a little "
        "better than new ones. "
    )
    unchecked = [node for node in content.network.nodes if node not in content.checks]
    if unchecked:
        note = join(
            note, "Not checked, because there are no values: ", node_links(content.network, unchecked), "."
        )
    return join(
        heading("fit", title, hint),
        tag("ul", *(_check(content, node, check) for node, check in checks), class_="checks"),
        tag("p", note, class_="note"),
    )


def _legend(check: FitCheck) -> str:
    """Say what the verdicts mean for this number of rows."""
    good, fair = check.limits
    allowance = (
        f" (with {plural(check.rows, 'row')}, 1 in 20 correct densities is off by more than that)"
        if good > GOOD
        else ""
    )
    return f"good up to {good:g}{allowance}, fair up to {fair:g}, poor beyond"


def _check(content: Content, node: str, check: FitCheck) -> Html:
    return tag(
        "li",
        tag(
            "header",
            tag("h3", node_link(content.network, node)),
            tag("span", f"{check.verdict} {check.distance:.3f}", class_=f"badge {check.verdict}"),
        ),
        uniform_histogram(check, node),
        class_="card",
    )


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
    return card(
        "unusual",
        title,
        hint,
        density_histogram(found, _alarm_lines(found)),
        _alarms(found),
        table(heads, [_row(content, row) for row in found.rows]),
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
    return table_row(row.label, (number(row.logpdf), "num"), reasons)


def _reason(content: Content, reason: Reason) -> Html:
    return tag(
        "li",
        node_link(content.network, reason.node),
        f" = {reason.value if isinstance(reason.value, str) else number(reason.value)} ",
        tag("span", f"{MINUS}{number(reason.drop, 3)}", class_="drop"),
    )
