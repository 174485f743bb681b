"""Pictures of structures, searches, densities and rows.

Every function draws into `ax` (a new figure if there is none) and returns it.
matplotlib, and igraph for the layout, come with the extra ``spbn[plot]``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn.errors import ArgumentError, GraphError, quoted, require_plot_packages
from spbn.graphs.dag import Arc
from spbn.network import BayesianNetwork
from spbn.plots.conditionals import (
    CLOUD_POINTS,
    columns_to_show,
    draw_bars,
    draw_curve,
    draw_shading,
    draw_slices,
)
from spbn.plots.graph_parts import (
    NARROWEST,
    NARROWEST_WITH_LEGEND,
    OPEN,
    arc_styles,
    draw_arc,
    draw_input,
    draw_legend,
    draw_node,
    graph_inches,
    legend_lines,
    set_frame,
)
from spbn.plots.layout import layered, short_labels
from spbn.plots.style import COMMON, INK, LINES, LONGEST_LABEL, MISSING, line_colours, new_axes, short_title
from spbn.search import SearchResult
from spbn.structure import Structure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NAMED_STEPS = 24  # up to which the steps of a search are named below the axis


@display.plot.register(Structure, BayesianNetwork)
def plot_structure(
    structure: Structure | BayesianNetwork,
    ax: Axes | None = None,
    *,
    compare_to: Structure | None = None,
    strengths: Mapping[Arc, float] | None = None,
    open_directions: Collection[Arc] = (),
) -> Axes:
    """Draw the graph in layers, with nodes in the colours of their types.

    Parameters
    ----------
    compare_to
        Another structure on the same nodes. The colour of an arc then says which of the two
        has it, and nodes whose types differ have a coloured outline.
    strengths
        How strong arcs are, from 0 to 1: stronger ones are wider, and the strength is written on each.
    open_directions
        Arcs whose direction is open: they are dashed.

    Examples
    --------
    >>> import spbn
    >>> ax = spbn.plots.plot_structure(spbn.datasets.synthetic_structure())
    >>> ax.figure.savefig("graph.svg")
    """
    if compare_to is not None and (strengths is not None or open_directions):
        raise ArgumentError("strengths and open_directions cannot be drawn together with compare_to.")
    found = structure.structure if isinstance(structure, BayesianNetwork) else structure
    styles = (
        {arc: (COMMON, OPEN if arc in open_directions else "-") for arc in found.arcs}
        if compare_to is None
        else arc_styles(found, compare_to)
    )
    labels = short_labels((*found.nodes, *found.used_inputs), LONGEST_LABEL)
    # Arcs of the structure itself come first: they decide the layers.
    arcs = sorted(styles, key=lambda arc: arc not in found.arcs)
    require_plot_packages()
    layout = layered(list(labels.values()), [(labels[a], labels[b]) for a, b in arcs])
    made = ax is None
    if ax is None:
        ax = new_axes(4.0, 3.0)
    for (a, b), (colour, line) in styles.items():
        strength = None if strengths is None else strengths.get((a, b))
        draw_arc(ax, layout, (labels[a], labels[b]), colour, line, strength)
    for node, label in labels.items():
        if node in found.inputs:
            draw_input(ax, label, *layout.centres[label])
            continue
        other = compare_to is not None and compare_to.type(node) is not found.type(node)
        draw_node(ax, label, *layout.centres[label], found.type(node), MISSING if other else INK)
    legend_styles = legend_lines(compare_to, strengths, open_directions)
    set_frame(ax, layout, NARROWEST_WITH_LEGEND if legend_styles else NARROWEST)
    if legend_styles:
        draw_legend(ax, legend_styles)
    if made:
        width, height = graph_inches(ax)
        legend = 0.3 if legend_styles else 0.0
        ax.figure.set_size_inches(width, height + legend)  # type: ignore[union-attr]
    return ax


def plot_search(search: SearchResult, ax: Axes | None = None) -> Axes:
    """Draw the score and the validation score after every step.

    The steps are named below the axis, or numbered if there are more than 24.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> ax = spbn.plots.plot_search(network.search)
    """
    if not isinstance(search, SearchResult):
        raise ArgumentError(f"search must be a SearchResult. Got {type(search).__name__}.")
    if ax is None:
        count = len(search.steps)
        ax = new_axes(max(5.0, 0.42 * count + 2.5), 4.6) if count <= NAMED_STEPS else new_axes(9.0, 3.8)
    steps = np.arange(1, len(search.steps) + 1)
    scores = np.array([step.score for step in search.steps])
    validations = np.array([step.validation_score for step in search.steps])
    size = 4.0 if len(steps) <= NAMED_STEPS else 2.0
    ax.plot(steps, scores, "o-", color=LINES[0], markersize=size, label="score")
    ax.set_ylabel("score", color=LINES[0])
    if len(steps) <= NAMED_STEPS:
        names = [short_title(str(step.operator), LONGEST_LABEL) for step in search.steps]
        ax.set_xticks(steps, names, rotation=60, ha="right", fontsize=8, parse_math=False)
    else:
        ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        ax.set_xlabel("step")
    ax.spines[["top"]].set_visible(False)
    if not np.array_equal(scores, validations):
        right = ax.twinx()
        right.plot(steps, validations, "s--", color=LINES[1], markersize=size, label="validation score")
        right.set_ylabel("validation score", color=LINES[1])
        right.spines[["top"]].set_visible(False)
    if search.best:
        ax.axvline(search.best, color=INK, linewidth=0.8, linestyle=":")
        ax.annotate(
            "best",
            (search.best, 1.0),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=8,
        )
    return ax


def plot_cpd(
    network: BayesianNetwork,
    node: str,
    ax: Axes | None = None,
    *,
    data: Any = None,
    points: int = CLOUD_POINTS,
) -> Axes:
    """Draw the density of a node given its parents.

    Without parents: its density. With one: the conditional density as shading, with the rows
    over it, and no shading where the training rows of the density are far away. With more: slices at
    quantiles of the parent that changes it most, with the others at their medians. If there are discrete
    parents, the slices are at levels of one of them, with the others at their most common level.

    A discrete node: the probabilities of its levels as bars, with one bar for each of the most common
    configurations of its parents.

    Parameters
    ----------
    data
        Rows to draw, and to take ranges and quantiles from; by default rows drawn from the network.
    points
        The most rows to draw.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> ax = spbn.plots.plot_cpd(network, "E", data=data)
    """
    network.structure.type(node)  # refuses what is not a node
    parents = network.structure.parents(node)
    columns = columns_to_show(network, node, data)
    if ax is None:
        ax = new_axes(4.6, 3.4)
    kinds = {variable.name: variable for variable in network.variables}
    if kinds[node].is_discrete:
        draw_bars(ax, network, kinds[node], columns, with_rows=data is not None)
    elif not parents:
        with_rows = data is not None or network.cpds[node].kept_rows is not None
        draw_curve(ax, network, node, columns[node], with_rows=with_rows)
    elif len(parents) == 1 and not kinds[parents[0]].is_discrete:
        draw_shading(ax, network, node, parents[0], columns, points)
    else:
        draw_slices(ax, network, node, parents, columns)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_contributions(
    contributions: pd.DataFrame,
    ax: Axes | None = None,
    *,
    time: Any = None,
    nodes: Sequence[str] | None = None,
) -> Axes:
    """Draw what nodes contribute to the log-density of every row.

    Parameters
    ----------
    contributions
        From `BayesianNetwork.logpdf_by_node`.
    time
        What to put on the x axis, one value per row; the index of the rows by default.
    nodes
        Which nodes to draw; the five that vary most by default. The sum over all nodes
        is drawn too.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> ax = spbn.plots.plot_contributions(network.logpdf_by_node(data), nodes=["C", "D"])
    """
    import pandas as pd

    if not isinstance(contributions, pd.DataFrame):
        raise ArgumentError(
            f"contributions must be the data frame that network.logpdf_by_node(data) returns. "
            f"Got {type(contributions).__name__}: "
            f"call plot_contributions(network.logpdf_by_node(data))."
        )
    if ax is None:
        ax = new_axes(8.0, 3.6)
    x = np.asarray(contributions.index if time is None else time)
    if len(x) != len(contributions):
        raise ArgumentError(
            f"time must have one value for each of the {len(contributions)} rows. Got {len(x)}."
        )
    if nodes is None:
        spread = (contributions.quantile(0.99) - contributions.quantile(0.01)).sort_values(ascending=False)
        nodes = list(spread.index[: len(LINES)])
    absent = [node for node in nodes if node not in contributions.columns]
    if absent:
        columns = quoted(map(str, contributions.columns))
        raise GraphError(f"contributions has no column {absent[0]!r}. Its columns are {columns}.")
    ax.plot(x, contributions.sum(axis=1), color=INK, linewidth=1.4, label="all nodes")
    for node, colour in zip(nodes, line_colours(len(nodes)), strict=True):
        ax.plot(x, contributions[node], color=colour, linewidth=0.9, label="node")
    ax.set_ylabel("log-density")
    legend = ax.legend(
        frameon=False,
        fontsize=8,
        ncols=min(6, len(nodes) + 1),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
    )
    # Put in afterwards: matplotlib leaves out what begins with an underscore.
    for entry, node in zip(legend.get_texts()[1:], nodes, strict=True):
        entry.set_text(short_title(node))
        entry.set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
