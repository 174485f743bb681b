"""The page: its sections in order, with styles and script included."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from string import Template

from spbn.plots.svg import Html, join, safe, tag, type_rules
from spbn.report.content import Content
from spbn.report.explorer_panel import TITLE, what_if_section
from spbn.report.sections.confidence import confidence_section
from spbn.report.sections.data import data_section
from spbn.report.sections.fit import fit_section
from spbn.report.sections.graph import graph_section
from spbn.report.sections.importance import importance_section
from spbn.report.sections.learning import learning_section
from spbn.report.sections.provenance import provenance_section
from spbn.report.sections.slices import slices_section
from spbn.report.sections.summary import summary
from spbn.report.sections.unusual import unusual_section
from spbn.timeseries.network import DynamicNetwork

STYLES = ("report.css", "what_if.css")
SCRIPTS = ("graph.js", "report.js", "what_if.js")  # the second tells the first which node is shown


def page(content: Content, *, over_time: DynamicNetwork | None = None) -> str:
    """Write the whole report; on the transition network of one over time, if that is given."""
    sections = {
        **({} if over_time is None else {"slices": ("Over time", slices_section(over_time))}),
        "data": ("Data", data_section(content)),
        "graph": ("Graph", graph_section(content)),
        **({} if content.sample is None else {"what-if": (TITLE, what_if_section(content.sample))}),
        "learning": ("Learning", learning_section(content)),
        "importance": ("What matters", importance_section(content)),
        **({"confidence": ("Confidence", confidence_section(content))} if content.confidence else {}),
        "fit": ("Fit", fit_section(content)),
        "unusual": ("Unusual rows", unusual_section(content)),
        "provenance": ("Provenance", provenance_section(content)),
    }
    return assembled(content.title, summary(content), sections, rules=type_rules(content.types))


def assembled(title: str, head: Html, sections: Mapping[str, tuple[str, Html]], *, rules: str = "") -> str:
    """Put a page together.

    Parameters
    ----------
    sections
        By their keys: what the navigation calls them, and what they hold.
    rules
        Rules to add to the style sheet.
    """
    links = [tag("li", tag("a", name, href=f"#{key}")) for key, (name, _) in sections.items()]
    body = join(
        head,
        tag("nav", tag("ul", *links), aria_label="Sections") if len(links) > 1 else "",
        tag(
            "main",
            *(
                tag("section", part, id=key, aria_labelledby=f"{key}-heading")
                for key, (_, part) in sections.items()
            ),
            id="main",
        ),
        tag(
            "footer",
            tag("p", "Written by spbn. Logarithms are natural. This file works without a connection."),
        ),
    )
    script = "".join(map(_resource, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_resource("page.html")).substitute(
        title=safe(title),
        css="".join(map(_resource, STYLES)) + rules,
        js=script,
        body=_with_lines(body),
        # Only the script of this file may run, whatever a name may contain.
        script_hash=f"sha256-{digest}",
    )


def _resource(name: str) -> str:
    return files("spbn.report").joinpath(name).read_text(encoding="utf-8")


def _with_lines(body: Html) -> str:
    """Begin a new line with every block, so that the source can be read and compared."""
    for name in ("<section", "<article", "<nav", "<main", "<tr", "<footer", "<h2", "<li"):
        body = Html(body.replace(name, f"\n{name}"))
    return body
