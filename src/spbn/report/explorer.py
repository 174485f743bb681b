"""The "what if" explorer as a page of its own."""

from __future__ import annotations

import os

from spbn._base.arrays import Seed
from spbn._base.files import replacing
from spbn.network import BayesianNetwork
from spbn.plots.svg import tag
from spbn.report.content import model_name
from spbn.report.explorer_data import joint_sample
from spbn.report.explorer_panel import TITLE, what_if_section
from spbn.report.format import count, plural
from spbn.report.page import assembled
from spbn.timeseries.network import DynamicNetwork


def write_explorer(
    network: BayesianNetwork | DynamicNetwork,
    path: str | os.PathLike[str],
    *,
    samples: int | None = None,
    seed: Seed = 0,
    title: str | None = None,
) -> None:
    """Write a page that answers "what if" questions in a browser; it appears whole or not at all.

    The page holds rows drawn from the network. Brushing an interval of a variable, or clicking a level, keeps
    the rows that satisfy it, and the charts of all other variables show how these are distributed. It needs
    no internet connection, and contains no row of the training data.

    Parameters
    ----------
    network
        A network; one over time is shown by rows together with those before them.
    samples
        How many rows to draw. By default as many as a small page holds, and at most 20,000.
    seed
        The same seed gives the same page.
    title
        The heading; by default it names the kind of network.

    Examples
    --------
    >>> import spbn
    >>> network = spbn.learn(spbn.datasets.synthetic(300, seed=0), folds=3)
    >>> spbn.report.write_explorer(network, "explorer.html", title="Synthetic")
    """
    text = render_explorer(network, samples=samples, seed=seed, title=title)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def render_explorer(
    network: BayesianNetwork | DynamicNetwork,
    *,
    samples: int | None = None,
    seed: Seed = 0,
    title: str | None = None,
) -> str:
    """Return the page that `write_explorer` writes as text.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> page = spbn.report.explorer.render_explorer(network, samples=500)
    >>> page[:15]
    '<!doctype html>'
    """
    sample = joint_sample(network, samples, seed=seed)
    kind, size = _described(network)
    name = kind if title is None else title
    lead = f"{kind} of {size}, shown by {count(sample.rows)} rows drawn from it."
    head = tag("header", tag("h1", name), tag("p", lead, class_="lead"))
    return assembled(name, head, {"what-if": (TITLE, what_if_section(sample))})


def _described(network: BayesianNetwork | DynamicNetwork) -> tuple[str, str]:
    """Say what kind of network it is, and how large."""
    variables = plural(len(network.nodes), "variable")
    if isinstance(network, DynamicNetwork):
        before = "row" if network.lags == 1 else f"{network.lags} rows"
        return "Dynamic network", f"{variables} in a row and the {before} before it"
    return model_name(network), f"{variables} and {plural(len(network.structure.arcs), 'arc')}"
