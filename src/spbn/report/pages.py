"""Which arcs to believe: a section of the report on a network, and a report of its own.

The section is about the arcs of one network; the report, about the average of replicates of the search.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from spbn._base.arrays import IntArray
from spbn.diagnostics.classification import FACTS, Assessment, Predictions
from spbn.diagnostics.model import Strengths
from spbn.errors import require_plot_packages
from spbn.graphs.dag import Arc
from spbn.learning.stability import CLEAR_DIRECTION, DISPUTED, EQUIVALENT, Confidence
from spbn.nodes.base import NodeType, registered
from spbn.report.charts import graph_svg, reliability_diagram
from spbn.report.content import Content
from spbn.report.html import (
    MINUS,
    Html,
    arc_link,
    assemble_page,
    card,
    count,
    counted,
    heading,
    legend,
    number,
    page_head,
    percentage,
    plural,
    safe,
    table,
    table_row,
    tag,
    track,
    type_class,
    type_rules,
    write_page,
)
from spbn.structure import Structure

TITLE = "Which arcs to believe"
SHOWN_PAIRS = 15  # pairs that are not believed


def confidence_section(content: Content) -> Html:
    """List the arcs of the network with their strengths, then strong arcs that it does not have."""
    found, structure = content.confidence, content.network.structure
    if found is None:
        return Html("")
    shares = arc_shares(found)
    arcs = sorted(structure.arcs, key=lambda arc: -shares.get(arc, (0.0, 0.0))[0])
    joined = {frozenset(arc) for arc in structure.arcs}
    absent = [
        (source, target)
        for source, target, strength, _ in found.arcs.itertuples(index=False)
        if strength > found.threshold and frozenset((source, target)) not in joined
    ]
    notes = direction_notes(content)
    believed = sum(shares.get(arc, (0.0, 0.0))[0] > found.threshold for arc in arcs)
    hint = (
        f"The search was repeated on {_replicates(found)}. Strength: the share of replicates that join the "
        f"two nodes. Above {percentage(found.threshold)} an arc is believed; {count(believed)} of "
        f"{count(len(arcs))} are. Direction: the share of these in which the arc points this way."
    )
    heads = [("Arc", ""), ("Strength", "num"), ("", "meter"), ("Direction", "num"), ("", "")]
    rows = [
        _row(
            arc_link(content.network, arc),
            shares.get(arc, (0.0, 0.0)),
            f"direction open: {notes[arc]}" if arc in notes else "",
            is_believed=shares.get(arc, (0.0, 0.0))[0] > found.threshold,
        )
        for arc in arcs
    ]
    parts = [table(heads, rows) if rows else tag("p", "The network has no arcs.", class_="hint")]
    if absent:
        others = [_row(arc_link(content.network, arc), shares[arc], "") for arc in absent]
        parts += [tag("h3", "Believed, but not in this network", class_="then"), table(heads, others)]
    return card("confidence", TITLE, hint, *parts)


def arc_shares(found: Strengths) -> dict[Arc, tuple[float, float]]:
    """Return strength and direction of every arc that a replicate has, in both directions."""
    shares: dict[Arc, tuple[float, float]] = {}
    for source, target, strength, direction in found.arcs.itertuples(index=False):
        shares[source, target] = (float(strength), float(direction))
        shares[target, source] = (float(strength), 1.0 - float(direction))
    return shares


def direction_notes(content: Content) -> dict[Arc, str]:
    """Return the arcs whose direction is open, and why."""
    notes = dict.fromkeys(content.network.structure.undecided_arcs(), EQUIVALENT)
    if content.confidence is not None:
        shares = arc_shares(content.confidence)
        for arc in content.network.structure.arcs:
            if arc in shares and shares[arc][1] < CLEAR_DIRECTION:
                notes[arc] = f"{notes[arc]}; {DISPUTED}" if arc in notes else DISPUTED
    return notes


def _replicates(found: Strengths) -> str:
    """Say how many replicates there were, as far as it is known."""
    if found.replicates is None or found.rows is None:
        return "halves of the rows"
    return f"{plural(found.replicates, 'replicate')}, each with half of the {count(found.rows)} rows"


def _row(name: Html, shares: tuple[float, float], note: str, *, is_believed: bool = True) -> Html:
    strength, direction = shares
    return table_row(
        name,
        (percentage(strength), "num"),
        (track(strength), "meter"),
        (percentage(direction) if strength else "–", "num"),
        (note, "small"),
        class_=None if is_believed else "unclear",
    )


def write_confidence_report(found: Confidence, path: str | os.PathLike[str], *, title: str) -> None:
    """Write the report to a file, which appears whole or not at all; see `render_confidence`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.report.pages import write_confidence_report
    >>> found = spbn.confidence(data, replicates=5, model="gbn")
    >>> write_confidence_report(found, "arcs.html", title="Five variables")
    """
    write_page(render_confidence(found, title=title), path)


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
    return assemble_page(title, _head(found, structure, title), sections, rules=type_rules(types))


def _head(found: Confidence, structure: Structure, title: str) -> Html:
    replicates = plural(len(found.structures), "replicate")
    lead = (
        f"The search was repeated in {replicates}, each on a different half of the {count(found.rows)} rows. "
        f"An arc is believed if more than {percentage(found.threshold)} of them have it, in either direction."
    )
    numbers = [
        counted(len(structure.nodes), "node"),
        ("arc believed" if len(structure.arcs) == 1 else "arcs believed", count(len(structure.arcs))),
        ("of these with an open direction", count(len(found.open_directions()))),
        ("threshold", percentage(found.threshold)),
    ]
    return page_head(title, lead, numbers)


def _graph(found: Confidence, structure: Structure) -> Html:
    notes = found.open_directions()
    hint = (
        "The averaged network: the arcs that are believed, each in its most frequent direction, and the most "
        "frequent type of every node. An arc that would close a cycle with stronger ones is left out."
    )
    types = [t for t in registered() if t in structure.types.values()]
    words = ["wider arcs are in more replicates", *(["dashed: the direction is open"] if notes else [])]
    box = tag("div", graph_svg(structure, found.strengths(), notes=notes), class_="scroll")
    return card("graph", "The averaged network", hint, box, legend(types, *words))


def _arcs(found: Confidence, structure: Structure) -> Html:
    hint = (
        "Strength: the share of replicates that join the two nodes. Direction: the share of these in which "
        "the arc points this way. A direction is open if the reverse arc implies the same independences, "
        "or if replicates disagree."
    )
    heads = [("Arc", ""), ("Strength", "num"), ("", "meter"), ("Direction", "num"), ("Open because", "")]
    believed: list[Html] = []
    others: list[Html] = []
    notes = found.open_directions()
    for source, target, *shares in found.arcs.itertuples(index=False):
        row = _row(safe(f"{source} → {target}"), tuple(shares), notes.get((source, target), ""))
        (believed if (source, target) in structure.arcs else others).append(row)
    empty = tag("p", "No arc is believed: half of the rows are too few to show one.", class_="hint")
    rest = tag(
        "details",
        tag("summary", f"{plural(len(others), 'arc')} not believed"),
        table(heads, others[:SHOWN_PAIRS]),
    )
    return card("arcs", "Arcs", hint, table(heads, believed) if believed else empty, rest if others else "")


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
    return card("types", "Node types", hint, table([("Node", ""), ("Types", "")], rows))


def _badge(node_type: NodeType, share: float) -> Html:
    name = tag("span", node_type.appearance.label, class_=f"badge kind {type_class(node_type)}")
    return tag("span", name, f" {percentage(share)} ")


# ----------------------------------------------------------------------------------------------------
# A report on predictions of classes: how good they are, and which features speak for them.


def write_classification_report(
    found: Predictions, path: str | os.PathLike[str], *, title: str, how: str
) -> None:
    """Write the report to a file, which appears whole or not at all; see `render_classification`."""
    write_page(render_classification(found, title=title, how=how), path)


def render_classification(found: Predictions, *, title: str, how: str) -> str:
    """Return the report as the text of an HTML page.

    Parameters
    ----------
    title, how
        The heading, and a sentence on which rows were predicted and how.
    """
    sections: dict[str, tuple[str, Html]] = {}
    assessment = found.assessment
    if assessment is not None:
        sections["confusion"] = ("Confusion", _confusion(found, assessment))
        sections["calibration"] = ("Calibration", _calibration(assessment))
        sections["wrong"] = ("Wrong", _wrong(found))
    sections["uncertain"] = ("Uncertain", _uncertain(found))
    return assemble_page(title, _head_classification(found, assessment, title, how), sections)


def _head_classification(found: Predictions, assessment: Assessment | None, title: str, how: str) -> Html:
    numbers = [("rows", count(len(found.probabilities))), ("classes", count(len(found.classes)))]
    if assessment is not None:
        numbers += [
            ("accuracy", f"{assessment.accuracy:.1%}".replace("%", " %")),
            ("log loss", number(assessment.log_loss)),
            ("Brier score", number(assessment.brier)),
            ("calibration error", number(assessment.calibration_error, 3)),
        ]
    return page_head(title, how, numbers)


def _confusion(found: Predictions, assessment: Assessment) -> Html:
    names = [str(name) for name in found.classes]
    totals = assessment.confusion.sum(axis=1)
    rows = []
    for place, (name, counts, total) in enumerate(zip(names, assessment.confusion, totals, strict=True)):
        cells = [
            tag(
                "td",
                count(int(n)) if n else "·",
                class_="right" if column == place else None,
                style=f"--share: {n / max(1, total):.3f}",
            )
            for column, n in enumerate(counts)
        ]
        right = f"{counts[place] / total:.0%}".replace("%", " %") if total else "–"
        rows.append(tag("tr", tag("th", name, scope="row"), *cells, tag("th", right)))
    heads = [tag("th", text, scope="col") for text in ("", *names, "right")]
    hint = "One line per true class, one column per prediction. Everything off the diagonal is wrong."
    return card(
        "confusion",
        "Confusion",
        hint,
        tag(
            "div",
            tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="confusion"),
            class_="scroll",
        ),
    )


def _calibration(assessment: Assessment) -> Html:
    hint = (
        "How often predictions are right (vertical), by the probability that they were given (horizontal). "
        "On the dashed line, probabilities mean what they say; below it, they are too confident, and above "
        "it, too cautious. Larger circles stand for more rows."
    )
    return card("calibration", "Calibration", hint, reliability_diagram(assessment))


def _wrong(found: Predictions) -> Html:
    rows = found.wrong_rows()
    if not len(rows):
        return heading("wrong", "Wrong predictions", "There are none.")
    hint = (
        "The wrong predictions that seemed most certain, and what spoke for them: how much each feature "
        "raises (+) or lowers the log-odds of the predicted class against the runner-up."
    )
    return card("wrong", "Wrong predictions", hint, _rows(found, rows))


def _uncertain(found: Predictions) -> Html:
    hint = (
        "The rows whose predicted class has the lowest probability, and what speaks for it (+) and against "
        "it, compared with the runner-up, in log-odds before calibration."
    )
    return card("uncertain", "Most uncertain rows", hint, _rows(found, found.uncertain_rows()))


def _rows(found: Predictions, rows: IntArray) -> Html:
    heads = [("Row", ""), ("True class", ""), ("Predicted", ""), ("Runner-up", ""), ("Because of", "")]
    if found.truth is None:
        del heads[1]
    return table(heads, _lines(found, rows))


def _lines(found: Predictions, rows: IntArray) -> Iterable[Html]:
    explanation = found.explanation
    for row in rows.tolist():
        predicted, share, runner_up = (explanation[name].iloc[row] for name in FACTS)
        probability = f"{share:.1%}".replace("%", " %")
        cells = [tag("td", str(explanation.index[row]))]
        if found.truth is not None:
            cells.append(tag("td", str(found.truth[row])))
        cells.append(tag("td", f"{predicted} ", tag("span", probability, class_="small")))
        cells.append(tag("td", str(runner_up)))
        reasons = [_reason(name, ratio) for name, ratio in found.reasons(row)]
        yield tag("tr", *cells, tag("td", tag("ul", *reasons, class_="reasons")))


def _reason(name: str, ratio: float) -> Html:
    sign, kind = ("+", "speaks") if ratio >= 0 else (MINUS, "drop")
    return tag("li", f"{name} ", tag("span", f"{sign}{number(abs(ratio), 3)}", class_=kind))
