"""How the structure was found, step by step."""

from __future__ import annotations

from typing import Any

from spbn.drawing.markup import Html, join, tag
from spbn.report.charts import line_chart
from spbn.report.content import Content
from spbn.report.numbers import count, number, plural
from spbn.report.parts import heading, node_link, table
from spbn.search import SearchResult

STOPPED = {
    "no operator improves the score": "no further change improved the score",
    "patience": "the validation score had not improved for too many steps in a row",
    "max_steps": "it had reached the greatest number of steps allowed",
}


def how_learned(content: Content) -> str:
    """Say in a sentence how the structure came about."""
    search = content.network.search
    if isinstance(search, SearchResult):
        why = STOPPED.get(search.stop_reason, search.stop_reason)
        return f"Learned by hill climbing in {plural(len(search.steps), 'step')}; it stopped because {why}."
    if _is_pc(search):
        tests = _tests(search)
        by_tests = f" with {plural(sum(tests), 'independence test')}" if tests else ""
        types = content.network.type_search
        then = (
            f", its node types then by hill climbing in {plural(len(types.steps), 'step')}" if types else ""
        )
        return f"Learned by PC{by_tests}{then}."
    return "How its structure was found is not recorded."


def learning_section(content: Content) -> Html:
    """Show the learning curve, or what there is instead."""
    search = content.network.search
    if isinstance(search, SearchResult):
        hint, card = _climb(search)
        return join(heading("learning", "How it was learned", hint), _early_stop(content), card)
    if _is_pc(search):
        types = content.network.type_search
        return join(_pc(search), _types(types) if isinstance(types, SearchResult) else "")
    hint = (
        "Not shown: the network does not carry its search. Its structure was given, or the file that it was "
        "loaded from does not tell."
    )
    return heading("learning", "How it was learned", hint)


def _types(search: SearchResult) -> Html:
    """Show how the node types were found for the arcs of PC."""
    hint, card = _climb(search)
    if not search.steps:
        hint = "No node did better with another type than the one that the search started with."
    return join(
        tag("h3", "The node types, for these arcs", class_="then"), tag("p", hint, class_="hint"), card
    )


def _early_stop(content: Content) -> Html:
    """Warn of rows that outweighed all others in the validation score."""
    found = content.early_stop
    if found is None:
        return Html("")
    rows = [
        join(content.evidence.labels[far.row], " (", node_link(content, far.node), ")") for far in found.rows
    ]
    text = f"{found}, and the search keeps what it had. Look at row{'s' if len(rows) > 1 else ''} "
    return tag("p", text[0].upper() + text[1:], Html(", ".join(rows)), ".", class_="warning", role="note")


def _climb(search: SearchResult) -> tuple[str, Html]:
    """Return what to look for in a search, and its curves and steps."""
    if not search.steps:
        return "The search took no step: nothing improved on its start.", Html("")
    steps = search.steps
    scores = [steps[0].score - steps[0].delta, *(step.score for step in steps)]
    validations = [step.validation_score for step in steps]
    titles = [f"{i}. {step.operator}" for i, step in enumerate(steps, 1)]
    best = max((i for i, step in enumerate(steps, 1) if step.structure == search.structure), default=0)
    validated = scores[1:] != validations
    hint = (
        "Every step applies the change that raises the cross-validated score most. Validation rows have no "
        "part in that choice: where their score levels off or falls, more structure no longer helps."
        if validated
        else "Every step applies the change that raises the score most, until none does. A curve that has "
        "become flat says that the last arcs matter little."
    )
    charts = [
        _chart(
            "Score",
            line_chart(scores, first=0, best=best, titles=["start", *titles], name="Score", colour="c1"),
        )
    ]
    if validated:
        charts.append(
            _chart(
                "Validation score",
                line_chart(
                    validations, first=1, best=best, titles=titles, name="Validation score", colour="c2"
                ),
            )
        )
    heads = [("Step", "num"), ("Change", ""), ("Gain", "num"), ("Score", "num")]
    heads += [("Validation score", "num")] if validated else []
    rows = []
    for i, step in enumerate(steps, 1):
        cells = [
            tag("td", str(i), class_="num"),
            tag("td", str(step.operator)),
            tag("td", number(step.delta), class_="num"),
            tag("td", number(step.score, 7), class_="num"),
        ]
        if validated:
            cells.append(tag("td", number(step.validation_score, 7), class_="num"))
        rows.append(tag("tr", *cells))
    return hint, tag(
        "div",
        tag("div", *charts, class_="pair"),
        tag("details", tag("summary", f"All {plural(len(steps), 'step')}"), table(heads, rows)),
        class_="card",
    )


def _chart(name: str, chart: Html) -> Html:
    return tag("div", tag("h3", f"{name} after every step"), tag("div", chart, class_="scroll"))


def _is_pc(search: Any) -> bool:
    return hasattr(search, "pdag")


def _tests(search: Any) -> list[int]:
    """Return the counts of tests by size of the condition, or one count, or nothing."""
    run = getattr(search, "tests_run", ())
    try:
        return [int(run)] if isinstance(run, int) else [int(n) for n in run]
    except (TypeError, ValueError):
        return []


def _pc(search: Any) -> Html:
    tests = _tests(search)
    arcs, edges = getattr(search.pdag, "arcs", ()), getattr(search.pdag, "edges", ())
    hint = (
        "PC takes an edge away once a test finds a condition that makes its ends independent. Directions are "
        "known only where the tests imply them; for the others, one that fits as well as its opposite was "
        "chosen."
    )
    rows = [
        tag("tr", tag("td", count(size)), tag("td", count(run), class_="num"))
        for size, run in enumerate(tests)
    ]
    found = f"{plural(len(arcs), 'arc')} with a known direction, {plural(len(edges), 'edge')} without"
    open_edges = [tag("li", f"{a} — {b}") for a, b in edges]
    return join(
        heading("learning", "How it was learned", hint),
        tag(
            "div",
            tag("p", f"Found: {found}.", class_="found"),
            tag("details", tag("summary", "Edges without a known direction"), tag("ul", *open_edges))
            if open_edges
            else "",
            tag(
                "div",
                table([("Variables in the condition", ""), ("Tests", "num")], rows),
                class_="narrow",
            )
            if len(rows) > 1
            else "",
            class_="card",
        ),
    )
