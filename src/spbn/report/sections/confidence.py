"""Which arcs to believe: how often replicates of the search find them again."""

from __future__ import annotations

from spbn.diagnostics.importance import Strengths
from spbn.graphs.dag import Arc
from spbn.learning.stability import CLEAR_DIRECTION, DISPUTED, EQUIVALENT
from spbn.plots.svg import Html, join, tag
from spbn.report.content import Content
from spbn.report.format import count, plural
from spbn.report.parts import heading, node_link, table

TITLE = "Which arcs to believe"


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
        f"two nodes. Above {percent(found.threshold)} an arc is believed; {count(believed)} of "
        f"{count(len(arcs))} are. Direction: the share of these in which the arc points this way."
    )
    heads = [("Arc", ""), ("Strength", "num"), ("", "meter"), ("Direction", "num"), ("", "")]
    rows = [_row(content, arc, shares.get(arc, (0.0, 0.0)), found, notes.get(arc, "")) for arc in arcs]
    parts = [table(heads, rows) if rows else tag("p", "The network has no arcs.", class_="hint")]
    if absent:
        others = [_row(content, arc, shares[arc], found, "") for arc in absent]
        parts += [tag("h3", "Believed, but not in this network", class_="then"), table(heads, others)]
    return join(heading("confidence", TITLE, hint), tag("div", *parts, class_="card"))


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


def percent(share: float) -> str:
    """Write a share."""
    return f"{100 * share:.0f} %"


def _row(content: Content, arc: Arc, shares: tuple[float, float], found: Strengths, note: str) -> Html:
    strength, direction = shares
    bar = tag("div", tag("i", style=f"width:{100 * strength:.1f}%"), class_="track")
    return tag(
        "tr",
        tag("td", node_link(content, arc[0]), " → ", node_link(content, arc[1])),
        tag("td", percent(strength), class_="num"),
        tag("td", bar, class_="meter"),
        tag("td", percent(direction) if strength else "–", class_="num"),
        tag("td", f"direction open: {note}" if note else "", class_="small"),
        class_=None if strength > found.threshold else "unclear",
    )
