"""A report on a network: one HTML file that needs nothing else, to read and to share.

What it says is computed in `content` and drawn by the other modules, so that
each can be read and tested without the other. matplotlib and igraph come with
the extra ``spbn[plot]``.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from spbn.diagnostics.model import Strengths
from spbn.errors import require_plot_packages
from spbn.learning.stability import Confidence
from spbn.network import Network
from spbn.report.content import (
    Content,
    data_section,
    describe,
    fit_section,
    learning_section,
    populations_section,
    provenance_section,
    summary,
    unusual_section,
)
from spbn.report.explorer import TITLE, joint_sample, render_explorer, what_if_section, write_explorer
from spbn.report.graph import graph_section, importance_section, slices_section
from spbn.report.html import assemble_page, type_rules, write_page
from spbn.report.pages import confidence_section
from spbn.timeseries.network import DynamicNetwork

__all__ = ["render", "render_explorer", "write_explorer", "write_report"]


def render(
    network: Network,
    *,
    data: Any = None,
    title: str | None = None,
    confidence: Confidence | Strengths | None = None,
) -> str:
    """Return the report as the text of an HTML page; the same input gives the same text.

    Parameters
    ----------
    network
        A network; of a dynamic one, the report is about a row given those before it.
    data
        Rows to check the network on: those it was learned from, or others. Holes are filled with likely
        values, after the data check. Without rows the report uses the training rows that the nodes keep, and
        leaves out whatever needs more.
    title
        The heading; by default it names the kind of network.
    confidence
        How often replicates of the search agree, from `spbn.confidence` or from the table of arcs that it
        gave (`spbn.explain.Strengths.from_table`): the report then says which arcs to believe.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> page = spbn.report.render(network, data=data)
    >>> page[:15]
    '<!doctype html>'
    """
    require_plot_packages()
    if not isinstance(network, DynamicNetwork):
        return _page(describe(network.row_network, data=data, title=title, confidence=confidence))
    rows = None if data is None else network.lagged(data)
    heading = "Dynamic network" if title is None else title
    content = describe(network.transition, data=rows, title=heading, confidence=confidence)
    return _page(replace(content, sample=joint_sample(network)), over_time=network)


def write_report(
    network: Network,
    path: str | os.PathLike[str],
    *,
    data: Any = None,
    title: str | None = None,
    confidence: Confidence | Strengths | None = None,
) -> None:
    """Write the report to a file, which appears whole or not at all; see `render`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> spbn.report.write_report(network, "report.html", data=data, title="Five variables")
    """
    write_page(render(network, data=data, title=title, confidence=confidence), path)


def _page(content: Content, *, over_time: DynamicNetwork | None = None) -> str:
    """Write the whole report; on the transition network of one over time, if that is given."""
    sample, found, has_class = content.sample, content.confidence, content.network.hidden is not None
    sections = {
        **({} if over_time is None else {"slices": ("Time series", slices_section(over_time))}),
        "data": ("Data", data_section(content)),
        "graph": ("Graph", graph_section(content)),
        **({} if sample is None else {"what-if": (TITLE, what_if_section(sample))}),
        **({} if not has_class else {"populations": ("Populations", populations_section(content))}),
        "learning": ("Learning", learning_section(content)),
        "importance": ("What matters", importance_section(content)),
        **({} if found is None else {"confidence": ("Confidence", confidence_section(content, found))}),
        "fit": ("Fit", fit_section(content)),
        "unusual": ("Unusual rows", unusual_section(content)),
        "provenance": ("Provenance", provenance_section(content)),
    }
    return assemble_page(content.title, summary(content), sections, rules=type_rules(content.types))
