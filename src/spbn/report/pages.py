"""Which arcs to believe, as a section and as a page; and a page on predictions of classes.

The section is about the arcs of one network; the page, about the average of replicates of the search.
"""

from __future__ import annotations

import os

from spbn._base.arrays import IntArray
from spbn.diagnostics.classification import FACTS, Assessment, Predictions
from spbn.diagnostics.model import Strengths
from spbn.errors import require_plot_packages
from spbn.graphs.dag import Arc
from spbn.learning.stability import CLEAR_DIRECTION, DISPUTED, Confidence
from spbn.nodes.base import NodeType, registered
from spbn.report import html as h
from spbn.report.charts import graph_svg, reliability_diagram
from spbn.report.content import Content
from spbn.structure import Structure

SHOWN_PAIRS = 15  # pairs that are not believed
ARC_HEADS: list[h.Cell] = ["Arc", ("Strength", "num"), ("", "meter"), ("Direction", "num")]


def confidence_section(content: Content, found: Strengths) -> h.Html:
    """List the arcs of the network with their strengths, then strong arcs that it does not have."""
    structure = content.network.structure
    shares = dict.fromkeys(structure.arcs, (0.0, 0.0)) | _arc_shares(found)
    arcs = sorted(structure.arcs, key=lambda arc: -shares[arc][0])
    believed = [arc for arc in arcs if shares[arc][0] > found.threshold]
    joined = {frozenset(arc) for arc in structure.arcs}
    absent = [
        (source, target)
        for source, target, strength, _ in found.arcs.itertuples(index=False)
        if strength > found.threshold and frozenset((source, target)) not in joined
    ]
    replicates = "halves of the rows"
    if found.replicates is not None and found.rows is not None:
        replicates = f"{h.plural(found.replicates, 'replicate')}, each with half of the {found.rows:,} rows"
    hint = (
        f"The search was repeated on {replicates}. Strength: the share of replicates that join the "
        f"two nodes. Above {h.percentage(found.threshold)} an arc is believed; {len(believed):,} of "
        f"{len(arcs):,} are. Direction: the share of these in which the arc points this way."
    )
    notes = {arc: f"direction open: {note}" for arc, note in direction_notes(content).items()}

    def listed(chosen: list[Arc]) -> h.Html:
        rows = []
        for arc in chosen:
            link, is_believed = h.node_links(content.network, arc, " → "), shares[arc][0] > found.threshold
            rows.append(_arc_row(link, shares[arc], notes.get(arc, ""), is_believed=is_believed))
        return h.table([*ARC_HEADS, ""], rows)

    parts = [listed(arcs) if arcs else h.tag("p.hint", "The network has no arcs.")]
    if absent:
        parts += [h.tag("h3.then", "Believed, but not in this network"), listed(absent)]
    return h.card("confidence", "Which arcs to believe", hint, *parts)


def _arc_shares(found: Strengths) -> dict[Arc, tuple[float, float]]:
    """Return strength and direction of every arc that a replicate has, in both directions."""
    shares: dict[Arc, tuple[float, float]] = {}
    for source, target, strength, direction in found.arcs.itertuples(index=False):
        shares[source, target] = (float(strength), float(direction))
        shares[target, source] = (float(strength), 1.0 - float(direction))
    return shares


def direction_notes(content: Content) -> dict[Arc, str]:
    """Return the arcs whose direction is open, and why."""
    notes = content.network.open_directions()
    shares = {} if content.confidence is None else _arc_shares(content.confidence)
    for arc in content.network.structure.arcs:
        if arc in shares and shares[arc][1] < CLEAR_DIRECTION:
            notes[arc] = f"{notes[arc]}; {DISPUTED}" if arc in notes else DISPUTED
    return notes


def _arc_row(name: h.Html, shares: tuple[float, float], note: str, *, is_believed: bool = True) -> h.Html:
    strength, direction = shares
    return h.table_row(
        name,
        (h.percentage(strength), "num"),
        (h.track(strength), "meter"),
        (h.percentage(direction) if strength else "–", "num"),
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
    h.write_page(render_confidence(found, title=title), path)


def render_confidence(found: Confidence, *, title: str) -> str:
    """Return the report as the text of an HTML page."""
    require_plot_packages()
    structure = found.structure()
    lead = (
        f"The search was repeated in {h.plural(len(found.structures), 'replicate')}, each on a different "
        f"half of the {found.rows:,} rows. An arc is believed if more than {h.percentage(found.threshold)} "
        "of them have it, in either direction."
    )
    numbers = [
        h.counted(len(structure.nodes), "node"),
        ("arc believed" if len(structure.arcs) == 1 else "arcs believed", f"{len(structure.arcs):,}"),
        ("of these with an open direction", f"{len(found.open_directions()):,}"),
        ("threshold", h.percentage(found.threshold)),
    ]
    sections = {
        "graph": ("Graph", _averaged_graph(found, structure)),
        "arcs": ("Arcs", _arcs(found, structure)),
        "types": ("Node types", _types(found)),
    }
    types = [t for t in registered() if t.name in set(found.types["type"])]
    return h.assemble_page(title, h.page_head(title, lead, numbers), sections, rules=h.type_rules(types))


def _averaged_graph(found: Confidence, structure: Structure) -> h.Html:
    notes = found.open_directions()
    hint = (
        "The averaged network: the arcs that are believed, each in its most frequent direction, and the most "
        "frequent type of every node. An arc that would close a cycle with stronger ones is left out."
    )
    words = ["wider arc = found in more replicates", *(["dashed: the direction is open"] if notes else [])]
    box = h.tag("div.scroll", graph_svg(structure, found.strengths(), notes))
    return h.card(
        "graph", "The averaged network", hint, box, h.graph_legend(h.count_types(structure), *words)
    )


def _arcs(found: Confidence, structure: Structure) -> h.Html:
    hint = (
        "Strength: the share of replicates that join the two nodes. Direction: the share of these in which "
        "the arc points this way. A direction is open if the reverse arc implies the same independences and "
        "scores nearly as well, or if replicates disagree."
    )
    believed: list[h.Html] = []
    others: list[h.Html] = []
    notes, heads = found.open_directions(), [*ARC_HEADS, "Open because"]
    for source, target, strength, direction in found.arcs.itertuples(index=False):
        note = notes.get((source, target), "")
        row = _arc_row(h.safe(f"{source} → {target}"), (strength, direction), note)
        (believed if (source, target) in structure.arcs else others).append(row)
    first = h.tag("p.hint", "No arc is believed: half of the rows are too few to show one.")
    if believed:
        first = h.table(heads, believed)
    rest = h.details(f"{h.plural(len(others), 'arc')} not believed", h.table(heads, others[:SHOWN_PAIRS]))
    return h.card("arcs", "Arcs", hint, first, rest if others else "")


def _types(found: Confidence) -> h.Html:
    hint = "The share of replicates with each type of a node; the averaged network has the most common one."
    shares = dict(iter(found.types.groupby("node", sort=False)))
    rows = []
    for place, node in enumerate(found.nodes):
        kinds = shares[node][["type", "share"]].itertuples(index=False)
        cells = [
            h.tag("span", h.type_badge(NodeType.parse(n)), f" {h.percentage(share)} ") for n, share in kinds
        ]
        rows.append(h.tag("tr", h.tag("td", node), h.tag("td", *cells), id=f"node-{place}"))
    return h.card("types", "Node types", hint, h.table(["Node", "Types"], rows))


def render_classification(found: Predictions, *, title: str, how: str) -> str:
    """Return the report as the text of an HTML page; `how` says which rows were predicted, and how."""
    numbers = [("rows", f"{len(found.probabilities):,}"), ("classes", f"{len(found.classes):,}")]
    sections: dict[str, tuple[str, h.Html]] = {}
    assessment = found.assessment
    if assessment is not None:
        numbers += [
            ("accuracy", h.percentage(assessment.accuracy, 1)),
            ("log loss", h.number(assessment.log_loss)),
            ("Brier score", h.number(assessment.brier)),
            ("calibration error", h.number(assessment.calibration_error, 3)),
        ]
        sections["confusion"] = ("Confusion", _confusion(found, assessment))
        hint = (
            "How often predictions are right (vertical), by the probability that they were given "
            "(horizontal). On the dashed line, probabilities mean what they say; below it, they are too "
            "confident, and above it, too cautious. Larger circles stand for more rows."
        )
        diagram = h.card("calibration", "Calibration", hint, reliability_diagram(assessment))
        sections["calibration"] = ("Calibration", diagram)
        sections["wrong"] = ("Wrong", _wrong(found))
    hint = (
        "The rows whose predicted class has the lowest probability, and what speaks for it (+) and against "
        "it, compared with the runner-up, in log-odds before calibration."
    )
    uncertain = h.card("uncertain", "Most uncertain rows", hint, _rows(found, found.uncertain_rows()))
    sections["uncertain"] = ("Uncertain", uncertain)
    return h.assemble_page(title, h.page_head(title, how, numbers), sections)


def _confusion(found: Predictions, assessment: Assessment) -> h.Html:
    names = [str(name) for name in found.classes]
    rows = []
    for place, (name, counts) in enumerate(zip(names, assessment.confusion.tolist(), strict=True)):
        total = sum(counts)
        cells = [
            h.tag(
                "td.right" if column == place else "td",
                f"{n:,}" if n else "·",
                style=f"--share: {n / max(1, total):.3f}",
            )
            for column, n in enumerate(counts)
        ]
        right = h.percentage(counts[place] / total) if total else "–"
        rows.append(h.tag("tr", h.tag("th", name, scope="row"), *cells, h.tag("th", right)))
    heads = h.tag("tr", *(h.tag("th", text, scope="col") for text in ("", *names, "right")))
    hint = "One line per true class, one column per prediction. Everything off the diagonal is wrong."
    matrix = h.tag("table", h.tag("thead", heads), h.tag("tbody", *rows), class_="confusion")
    return h.card("confusion", "Confusion", hint, h.tag("div.scroll", matrix))


def _wrong(found: Predictions) -> h.Html:
    rows, title = found.wrong_rows(), "Wrong predictions"
    if not len(rows):
        return h.heading("wrong", title, "There are none.")
    hint = (
        "The wrong predictions that seemed most certain, and what spoke for them: how much each feature "
        "raises (+) or lowers the log-odds of the predicted class against the runner-up."
    )
    return h.card("wrong", title, hint, _rows(found, rows))


def _rows(found: Predictions, rows: IntArray) -> h.Html:
    """List rows with their predictions, and why these were made."""
    truth = [] if found.truth is None else ["True class"]
    lines = []
    for row in rows.tolist():
        predicted, share, runner_up = (found.explanation[name].iloc[row] for name in FACTS)
        true_class = [] if found.truth is None else [str(found.truth[row])]
        reasons = h.tag("ul.reasons", *(_reason(name, ratio) for name, ratio in found.reasons(row)))
        prediction = h.join(f"{predicted} ", h.tag("span.small", h.percentage(share, 1)))
        name = str(found.explanation.index[row])
        lines.append(h.table_row(name, *true_class, prediction, str(runner_up), reasons))
    return h.table(["Row", *truth, "Predicted", "Runner-up", "Because of"], lines)


def _reason(name: str, ratio: float) -> h.Html:
    sign, kind = ("+", "speaks") if ratio >= 0 else (h.MINUS, "drop")
    return h.tag("li", f"{name} ", h.tag(f"span.{kind}", f"{sign}{h.number(abs(ratio), 3)}"))
