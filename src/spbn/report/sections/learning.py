"""How the structure was found, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spbn.plots.svg import Html, join, tag
from spbn.report.charts import line_chart
from spbn.report.content import Content
from spbn.report.format import count, number, plural
from spbn.report.parts import heading, node_link, table
from spbn.search import SearchResult, Step

STOPPED = {
    "no operator improves the score": "no further change improved the score",
    "patience": "the validation score had not improved for too many steps in a row",
    "max_steps": "it had reached the maximum number of steps",
    "max_seconds": "its time was up",
    "interrupted": "it was interrupted",
}


def how_learned(content: Content) -> str:
    """Say in a sentence how the structure was found."""
    search = content.network.search
    if isinstance(search, SearchResult):
        why = STOPPED.get(search.stop_reason, search.stop_reason)
        return f"Learned by hill climbing in {plural(len(search.steps), 'step')}; it stopped because {why}."
    if _is_pc(search):
        tests = _tests(search)
        by_tests = f" with {plural(sum(tests), 'independence test')}" if tests else ""
        types = content.network.type_search
        then = (
            f", then its node types by hill climbing in {plural(len(types.steps), 'step')}" if types else ""
        )
        return f"Learned by PC{by_tests}{then}."
    return "How its structure was found is not recorded."


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
    rows = [join(far.label, " (", node_link(content, far.node), ")") for far in found.rows]
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
    charts = [
        _chart(
            "Score",
            line_chart(
                scores, first=0, best=search.best, titles=["start", *titles], name="Score", colour="c1"
            ),
        )
    ]
    if validated:
        charts.append(
            _chart(
                "Validation score",
                line_chart(
                    validations,
                    first=1,
                    best=search.best,
                    titles=titles,
                    name="Validation score",
                    colour="c2",
                ),
            )
        )
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
        cells = [
            tag("td", str(i), class_="num"),
            tag("td", str(step.operator)),
            tag("td", number(step.delta), class_="num"),
            tag("td", number(step.score, 7), class_="num"),
        ]
        if validated:
            cells.append(tag("td", number(step.validation_score, 7), class_="num"))
        rows.append(tag("tr", *cells))
    return table(heads, rows)


def _chart(name: str, chart: Html) -> Html:
    return tag("div", tag("h3", f"{name} after every step"), tag("div", chart, class_="scroll"))


def _is_pc(search: Any) -> bool:
    return hasattr(search, "pdag")


def _tests(search: Any) -> list[int]:
    """Return the number of tests for each number of given variables, or one number, or nothing."""
    run = getattr(search, "tests_run", ())
    try:
        return [int(run)] if isinstance(run, int) else [int(n) for n in run]
    except (TypeError, ValueError):
        return []


def _pc(search: Any) -> Html:
    tests = _tests(search)
    arcs, edges = getattr(search.pdag, "arcs", ()), getattr(search.pdag, "edges", ())
    hint = (
        "PC removes an edge as soon as a test finds its two ends independent given some other variables. "
        "Directions are known only where the tests imply them; the other edges could as well point the "
        "other way."
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
                table([("Variables given", ""), ("Tests", "num")], rows),
                class_="narrow",
            )
            if len(rows) > 1
            else "",
            class_="card",
        ),
    )
