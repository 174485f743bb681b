"""Sections on how far to trust a network: how it was learned, whether every node fits, and unusual rows."""

from __future__ import annotations

from typing import Any

from spbn.diagnostics.model import GOOD, FitCheck
from spbn.diagnostics.rows import SAMPLED_ROWS, Reason, Scoring, UnusualRow, UnusualRows
from spbn.report.charts import density_histogram, line_chart, uniform_histogram
from spbn.report.content import Content, independence_tests
from spbn.report.html import (
    MINUS,
    Cell,
    Html,
    capital,
    card,
    details,
    heading,
    join,
    node_link,
    node_links,
    number,
    plural,
    table,
    table_row,
    tag,
)
from spbn.search import SearchResult

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
    search, types = content.network.search, content.network.type_search
    title = "How it was learned"
    if isinstance(search, SearchResult):
        hint, curves = _climb(search)
        return join(heading("learning", title, hint), _early_stop(content), curves)
    if not hasattr(search, "pdag"):
        hint = (
            "Not shown: the network has no record of its search. Either its structure was given, or the file "
            "that it was loaded from does not include the search."
        )
        return heading("learning", title, hint)
    hint = (
        "PC removes an edge as soon as a test finds its two ends independent given some other variables. "
        "Directions are known only where the tests imply them; the other edges could as well point the "
        "other way."
    )
    arcs = card("learning", title, hint, *_pc(search))
    if not isinstance(types, SearchResult):
        return arcs
    hint, curves = _climb(types)
    if not types.steps:
        hint = "No node did better with a type other than the one it started with."
    return join(arcs, tag("h3.then", "The node types, for these arcs"), tag("p.hint", hint), curves)


def _early_stop(content: Content) -> Html:
    """Say why the search may have ended with less than it could have found."""
    found = content.early_stop
    if found is None:
        return Html("")
    rows = [join(far.label, " (", node_link(content.network, far.node), ")") for far in found.rows]
    cause = f" A few rows far from all others can cause this: look at row{'s' if len(rows) > 1 else ''} "
    look = join(cause, join(*rows, between=", "), ".") if rows else ""
    return tag("p", capital(found.what), look, f" {found.remedy}", class_="warning", role="note")


def _climb(search: SearchResult) -> tuple[str, Html]:
    """Return what to look for in a search, and a card with its curves and steps."""
    steps = search.steps
    if not steps:
        return "The search took no steps: nothing improved on its start.", Html("")
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
        charts.append(tag("div", tag("h3", f"{name} after every step"), tag("div.scroll", chart)))
    heads: list[Cell] = [("Step", "num"), "Change", ("Gain", "num"), ("Score", "num")]
    heads += [("Validation score", "num")] if validated else []
    rows = []
    for i, step in enumerate(steps, 1):
        numbers = [number(step.delta), number(step.score, 7)]
        numbers += [number(step.validation_score, 7)] if validated else []
        rows.append(table_row((str(i), "num"), str(step.operator), *((text, "num") for text in numbers)))
    every = details(f"All {plural(len(steps), 'step')}", table(heads, rows))
    return hint, tag("div.card", tag("div.pair", *charts), every)


def _pc(search: Any) -> list[Html]:
    """Write what PC found, and how many tests it took."""
    arcs, edges = getattr(search.pdag, "arcs", ()), getattr(search.pdag, "edges", ())
    found = f"{plural(len(arcs), 'arc')} with a known direction, {plural(len(edges), 'edge')} without"
    parts = [tag("p.found", f"Found: {found}.")]
    if edges:
        listed = tag("ul", *(tag("li", f"{a} — {b}") for a, b in edges))
        parts.append(details("Edges without a known direction", listed))
    tests = independence_tests(search)
    if len(tests) > 1:
        rows = [table_row(f"{size:,}", (f"{run:,}", "num")) for size, run in enumerate(tests)]
        parts.append(tag("div.narrow", table(["Variables given", ("Tests", "num")], rows)))
    return parts


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
        f"The number is the Kolmogorov-Smirnov distance from uniform: {_verdicts(checks[0][1])}. Checked on "
        f"{content.rows_used(checks[0][1].rows)}. Rows that the network was fitted to fit a little "
        "better than new ones. "
    )
    unchecked = node_links(content.network, (n for n in content.network.nodes if n not in content.checks))
    if unchecked:
        note = join(note, "Not checked, because there are no values: ", unchecked, ".")
    cards = []
    for node, check in checks:
        badge = tag(f"span.badge.{check.verdict}", f"{check.verdict} {check.distance:.3f}")
        head = tag("header", tag("h3", node_link(content.network, node)), badge)
        cards.append(tag("li.card", head, uniform_histogram(check, node)))
    return join(heading("fit", title, hint), tag("ul.checks", *cards), tag("p.note", note))


def _verdicts(check: FitCheck) -> str:
    """Say what the verdicts mean for this number of rows."""
    good, fair = check.limits
    allowance = ""
    if good > GOOD:
        allowance = f" (with {plural(check.rows, 'row')}, 1 in 20 correct densities is off by more than that)"
    return f"good up to {good:g}{allowance}, fair up to {fair:g}, poor beyond"


def unusual_section(content: Content) -> Html:
    """Show the least likely rows, and the nodes that make them so."""
    found, title = content.unusual, "Most unusual rows"
    if found is None:
        return heading("unusual", title, "Not shown, because no rows were given.")
    is_recorded = bool(content.network.record.typical)
    over = "training rows" if is_recorded else f"{SAMPLED_ROWS:,} rows drawn from the network"
    numbered = " Rows are counted from 0." if content.evidence.labels[:2] == ("0", "1") else ""
    hint = (
        "The rows with the lowest log-density, and the nodes to blame, with their values and how far their "
        f"log-density is below what is typical of the node, its median over {over}. "
        f"{SCORED[found.scoring]} Triangles mark these rows among all "
        f"{content.evidence.rows:,}; the median is {number(found.median)}.{numbered}"
    )
    levels = {f"1 in {round(1 / share):,}": found.alarm(share) for share in ALARMS}
    alarms = {name: level for name, level in levels.items() if level is not None}
    rows = [_unusual_row(content, row) for row in found.rows]
    heads: list[Cell] = ["Row", ("Log-density", "num"), "Because of"]
    picture = density_histogram(found, alarms)
    return card("unusual", title, hint, picture, _alarms(found, alarms), table(heads, rows))


def _alarms(found: UnusualRows, levels: dict[str, float]) -> Html:
    """Say from which log-density on a new row would be reported."""
    if not levels:
        needed = f"{round(1 / ALARMS[0]) - 1:,}"
        return tag("p.note.alarms", f"There are too few rows to set an alarm threshold: it needs {needed}.")
    words = "; ".join(f"{number(level)} ({name})" for name, level in levels.items())
    rows = "these rows, each scored without itself" if found.left_out else "these rows"
    meaning = (
        f"{words}. If new rows are like {rows}, no more than that share of them is below the "
        "threshold, so a row below it deserves a look."
    )
    return tag("p.note.alarms", tag("b", "Alarm threshold: "), meaning)


def _unusual_row(content: Content, row: UnusualRow) -> Html:
    blamed = tag("span.small", "a little of everything")
    if row.reasons:
        blamed = tag("ul.reasons", *(_reason(content, reason) for reason in row.reasons))
    return table_row(row.label, (number(row.logpdf), "num"), blamed)


def _reason(content: Content, reason: Reason) -> Html:
    value = reason.value if isinstance(reason.value, str) else number(reason.value)
    drop = tag("span.drop", f"{MINUS}{number(reason.drop, 3)}")
    return tag("li", node_link(content.network, reason.node), f" = {value} ", drop)
