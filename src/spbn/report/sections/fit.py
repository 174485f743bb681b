"""Does every node fit? A histogram for each that ought to be flat."""

from __future__ import annotations

from spbn.drawing.markup import Html, join, tag
from spbn.explain.calibration import FAIR, SOUND, FitCheck
from spbn.report.charts import uniform_histogram
from spbn.report.content import Content
from spbn.report.parts import heading, node_link, node_links, rows_used


def fit_section(content: Content) -> Html:
    """Show a histogram for every node, the worst first."""
    checks = sorted(content.checks.items(), key=lambda item: -item[1].distance)
    title = "Does every node fit?"
    if not checks:
        return heading("fit", title, "Not shown. There are no rows to check: give data (--data) to see this.")
    hint = (
        "Where in its predicted distribution does each value fall? Flat bars, within the grey band, say that "
        "the density is right; a hump that it is too wide, a bowl too narrow, a slope shifted. Worst first."
    )
    note = (
        f"The number is the Kolmogorov-Smirnov distance from uniform: up to {SOUND:g} is good, up to "
        f"{FAIR:g} fair. Checked on {rows_used(content, checks[0][1].rows)}. Rows that the network was "
        "fitted to look a little better than new ones. "
    )
    unchecked = [node for node in content.network.nodes if node not in content.checks]
    if unchecked:
        note = join(note, "Not checked, for lack of values: ", node_links(content, unchecked), ".")
    return join(
        heading("fit", title, hint),
        tag("ul", *(_check(content, node, check) for node, check in checks), class_="checks"),
        tag("p", note, class_="note"),
    )


def _check(content: Content, node: str, check: FitCheck) -> Html:
    return tag(
        "li",
        tag(
            "header",
            tag("h3", node_link(content, node)),
            tag("span", f"{check.verdict} {check.distance:.3f}", class_=f"badge {check.verdict}"),
        ),
        uniform_histogram(check, node),
        class_="card",
    )
