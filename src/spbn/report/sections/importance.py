"""Which arcs and node types matter."""

from __future__ import annotations

from math import exp, inf, isfinite

from spbn.diagnostics.importance import Loss, other_type
from spbn.plots.svg import Html, join, tag
from spbn.report.content import Content
from spbn.report.format import number, percent
from spbn.report.parts import heading, node_link, node_links, rows_used, table

SHOWN = 15


def importance_section(content: Content) -> Html:
    """Show the losses as two tables with bars."""
    found = content.importance
    title = "Which arcs and node types matter"
    if isinstance(found, str):
        return heading("importance", title, f"Not shown. {found}")
    hint = (
        "How much the score would fall if one arc were removed, or if one node had another type. Long bars "
        "matter most, grey rows make no clear difference, and changing an orange one would improve the score."
    )
    note = (
        f"Ten-fold cross-validated log-likelihood on {rows_used(content, found.rows)}, refitted with "
        f"{found.bandwidth.title()}'s bandwidth rule. ± 2 s.e.: twice the standard error of the loss. "
        "Density: how much the density of an average row changes. Grey: the loss is less than twice its "
        "standard error. Rows that the structure was learned from favour it a little. "
    )
    if found.left_out:
        note = join(
            note, "Not computed, because there are no values: ", node_links(content, found.left_out), "."
        )
    arcs = sorted(found.arcs.items(), key=lambda item: -item[1].total)
    types = sorted(found.types.items(), key=lambda item: -item[1].total)
    arc_rows = _rows([(_arc_name(content, a, b), loss) for (a, b), loss in arcs])
    type_rows = _rows([(_type_name(content, node), loss) for node, loss in types])
    if not arc_rows and not type_rows and not found.left_out:
        nothing = "Not shown. There are no arcs to remove, and no node could have another type."
        return heading("importance", title, nothing)
    return join(
        heading("importance", title, hint),
        tag(
            "div",
            _card("Arcs", "Arc removed", arc_rows) if arc_rows else "",
            _card("Node types", "Type changed", type_rows) if type_rows else "",
            class_="pair",
        ),
        tag("p", note, class_="note"),
    )


def _card(name: str, first: str, rows: list[Html]) -> Html:
    heads = [(first, ""), ("Score lost", "num"), ("± 2 s.e.", "num"), ("Density", "num"), ("", "meter")]
    shown = table(heads, rows[:SHOWN])
    rest = (
        tag("details", tag("summary", f"{len(rows) - SHOWN} more"), table(heads, rows[SHOWN:]))
        if len(rows) > SHOWN
        else ""
    )
    return tag("div", tag("h3", name), shown, rest, class_="card")


def _arc_name(content: Content, source: str, target: str) -> Html:
    return join(node_link(content, source), " → ", node_link(content, target))


def _type_name(content: Content, node: str) -> Html:
    node_type = content.network.structure.type(node)
    change = f"{node_type.short_label} → {other_type(node_type).short_label}"
    # The space is outside, so that a long name does not keep the change on its line.
    return join(node_link(content, node), " ", tag("span", change, class_="small"))


def _rows(losses: list[tuple[Html, Loss]]) -> list[Html]:
    finite = [abs(loss.total) for _, loss in losses if isfinite(loss.total)]
    longest = max(finite, default=1.0) or 1.0
    return [_row(name, loss, longest) for name, loss in losses]


def _row(name: Html, loss: Loss, longest: float) -> Html:
    share = min(1.0, abs(loss.total) / longest)
    cells = [tag("td", name)]
    if loss.total == inf:
        cells.append(tag("td", "cannot be fitted", class_="num", colspan=3))
    else:
        cells += [
            tag("td", number(loss.total), class_="num"),
            tag("td", number(2.0 * loss.error, 2), class_="num"),
            tag("td", percent(exp(-max(-700.0, loss.per_row)) - 1.0), class_="num"),
        ]
    bar = tag("div", tag("i", style=f"width:{100 * share:.1f}%"), class_="track")
    cells.append(tag("td", bar, class_="meter gain" if loss.is_gain else "meter"))
    kind = "gain" if loss.is_gain else None if loss.is_clear else "unclear"
    return tag("tr", *cells, class_=kind)
