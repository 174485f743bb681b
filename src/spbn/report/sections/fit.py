"""Does every node fit? For each, a histogram that should be flat."""

from __future__ import annotations

from spbn.diagnostics.validation import GOOD, FitCheck
from spbn.plots.svg import Html, join, tag
from spbn.report.charts import uniform_histogram
from spbn.report.content import Content
from spbn.report.format import plural
from spbn.report.parts import heading, node_link, node_links, rows_used


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
        f"{rows_used(content, checks[0][1].rows)}. Rows that the network was fitted to fit a little better "
        "than new ones. "
    )
    unchecked = [node for node in content.network.nodes if node not in content.checks]
    if unchecked:
        note = join(note, "Not checked, because there are no values: ", node_links(content, unchecked), ".")
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
            tag("h3", node_link(content, node)),
            tag("span", f"{check.verdict} {check.distance:.3f}", class_=f"badge {check.verdict}"),
        ),
        uniform_histogram(check, node),
        class_="card",
    )
