"""Pictures of structures, searches, densities and rows.

Every function draws into `ax` (a new figure if there is none) and returns it.
matplotlib, and igraph for the layout, come with the extra ``spbn[plot]``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spbn.drawing.layout import Layout, layered, node_width, one_line, short_labels, shortened
from spbn.drawing.packages import require_plot_packages
from spbn.errors import ArgumentError, GraphError, quoted
from spbn.graphs.dag import Arc
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.search import SearchResult
from spbn.structure import Structure
from spbn.tables.frames import as_table
from spbn.tables.table import Table, Variable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: How a line is drawn, in the words of matplotlib.
Line = Literal["-", "--"] | tuple[float, tuple[float, float]]

INK, FILL = "#22262b", "#c9ccd1"
COMMON, MISSING, ADDED, REVERSED = "#22262b", "#c0392b", "#1f6fb2", "#d68910"
LINES = ("#1f6fb2", "#d68910", "#2e8b57", "#8e44ad", "#c0392b")
CURVE_POINTS = 200
MESH_POINTS = 100
FADING = 0.08  # of a parent's range: so far from all training rows the shading begins to fade
NAMED_STEPS = 24  # up to which the steps of a search are named below the axis
SLICES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles of a parent
CLOUD_POINTS = 2_000
LONGEST_LABEL, LONGEST_TITLE = 32, 48  # letters of a node in a graph, and of the label of an axis
LONGEST_LEVEL = 18  # letters of a level
BARS, STACKS = 20, 10  # levels, and configurations of parents, that are drawn
THIN, THICK = 0.6, 2.4  # widths of arcs, by their strength
BESIDE = 2.4  # characters between an arc and its strength
OPEN: Line = (0, (2.2, 1.6))  # dashes of arcs whose direction is open
NARROWEST, NARROWEST_WITH_LEGEND = 27.0, 42.0  # least width of a graph, in characters


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
        else _arc_styles(found, compare_to)
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
        _draw_arc(ax, layout, (labels[a], labels[b]), colour, line, strength)
    for node, label in labels.items():
        if node in found.inputs:
            _draw_input(ax, label, *layout.centres[label])
            continue
        other = compare_to is not None and compare_to.type(node) is not found.type(node)
        _draw_node(ax, label, *layout.centres[label], found.type(node), MISSING if other else INK)
    legend_styles = _legend_styles(compare_to, strengths, open_directions)
    _frame(ax, layout, NARROWEST_WITH_LEGEND if legend_styles else NARROWEST)
    if legend_styles:
        _draw_legend(ax, legend_styles)
    if made:
        width, height = graph_inches(ax)
        legend = 0.3 if legend_styles else 0.0
        ax.figure.set_size_inches(width, height + legend)  # type: ignore[union-attr]
    return ax


def graph_inches(ax: Axes) -> tuple[float, float]:
    """Return the size that a figure needs for the graph in `ax` to be readable."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return 0.085 * (right - left) + 0.2, 0.8 * (bottom - top) + 0.2


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
        names = [_title(str(step.operator), LONGEST_LABEL) for step in search.steps]
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
    cpd = network.cpds[node]
    parents = network.structure.parents(node)
    columns = _columns_for(network, node, data)
    if ax is None:
        ax = new_axes(4.6, 3.4)
    kinds = {variable.name: variable for variable in network.variables}
    if kinds[node].is_discrete:
        _draw_bars(ax, network, kinds[node], columns, with_rows=data is not None)
        ax.spines[["top", "right"]].set_visible(False)
        return ax
    xs = _range(columns[node])
    if not parents:
        if data is not None or cpd.kept_rows is not None:
            # Bins over the range that is shown: far outliers would otherwise ask for thousands.
            bins = np.linspace(xs[0], xs[-1], 41).tolist()
            ax.hist(columns[node], bins=bins, density=True, color=FILL, edgecolor="none")
        ax.plot(xs, np.exp(network.node_logpdf(node, {node: xs})), color=LINES[0])
        ax.set_xlabel(_title(node), parse_math=False)
        ax.set_ylabel("density")
    elif len(parents) == 1 and not kinds[parents[0]].is_discrete:
        _draw_conditional(ax, network, node, parents[0], columns, xs, points)
    else:
        _draw_slices(ax, network, node, parents, columns, xs)
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
    for node, colour in zip(nodes, _cycle(len(nodes)), strict=True):
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
        entry.set_text(_title(node))
        entry.set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure."""
    require_plot_packages()
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def _arc_styles(found: Structure, other: Structure) -> dict[Arc, tuple[str, Line]]:
    if set(found.nodes) != set(other.nodes) or set(found.inputs) != set(other.inputs):
        raise GraphError("structures can be compared only if they have the same nodes.")
    styles: dict[Arc, tuple[str, Line]] = {}
    for a, b in found.arcs:
        styles[a, b] = (COMMON if (a, b) in other.arcs else REVERSED if (b, a) in other.arcs else ADDED, "-")
    for a, b in other.arcs:
        if (a, b) not in found.arcs and (b, a) not in found.arcs:
            styles[a, b] = (MISSING, "--")
    return styles


def _draw_node(ax: Axes, label: str, x: float, y: float, node_type: NodeType, outline: str) -> None:
    from matplotlib.patches import Ellipse

    fill = node_type.colour
    width = 2.0 if outline != INK else 1.0
    ax.add_patch(
        Ellipse((x, y), node_width(label), 0.5, facecolor=fill, edgecolor=outline, linewidth=width, zorder=3)
    )
    ax.text(x, y, label, parse_math=False, ha="center", va="center", fontsize=9, color=INK, zorder=4)


def _draw_input(ax: Axes, label: str, x: float, y: float) -> None:
    from matplotlib.patches import Ellipse

    outline: dict[str, Any] = {"edgecolor": INK, "linestyle": OPEN, "linewidth": 0.8}
    ax.add_patch(Ellipse((x, y), node_width(label), 0.5, facecolor="none", **outline, zorder=3))
    ax.text(x, y, label, parse_math=False, ha="center", va="center", fontsize=9, color=INK, zorder=4)


def _draw_arc(
    ax: Axes, layout: Layout, arc: Arc, colour: str, line: Line, strength: float | None = None
) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    route = layout.routes[arc]
    start = on_ellipse(route[0], route[1], arc[0])
    end = on_ellipse(route[-1], route[-2], arc[1])
    points = [start, *route[1:-1], end]
    path = Path(points) if len(points) == 2 else _smooth(points)
    ax.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=9 if strength is None else 9 + 4 * strength,
            color=colour,
            linestyle=line,
            linewidth=1.0 if strength is None else THIN + (THICK - THIN) * strength,
            zorder=2,
        )
    )
    if strength is not None:
        x, y = np.mean([start, end] if len(points) == 2 else points[len(points) // 2 :][:1], axis=0).tolist()
        box = {"boxstyle": "round,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        ax.text(
            x + BESIDE,
            y,
            f"{strength:.2f}",
            fontsize=7,
            ha="center",
            va="center",
            color=INK,
            bbox=box,
            zorder=2.5,
        )


def on_ellipse(centre: tuple[float, float], towards: tuple[float, float], node: str) -> tuple[float, float]:
    """Return where the line from the centre of a node leaves its ellipse."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    a, b = 0.5 * node_width(node), 0.26
    scale = 1.0 / max(1e-9, float(np.hypot(dx / a, dy / b)))
    return centre[0] + dx * scale, centre[1] + dy * scale


def _smooth(points: list[tuple[float, float]]) -> Any:
    """Return a curve through points that never swings beyond them: x is a monotone cubic in y."""
    from matplotlib.path import Path
    from scipy.interpolate import PchipInterpolator

    xs, ys = np.array(points).T
    down = 1.0 if ys[-1] > ys[0] else -1.0
    fine = np.linspace(ys[0], ys[-1], 16 * (len(points) - 1) + 1)
    return Path(np.stack([PchipInterpolator(down * ys, xs)(down * fine), fine], axis=1))


def _frame(ax: Axes, layout: Layout, narrowest: float) -> None:
    (left, top), (right, bottom) = layout.corners
    aside = max(1.0, 0.5 * (narrowest - (right - left)))
    ax.set_xlim(left - aside, right + aside)
    ax.set_ylim(bottom + 0.5, top - 0.5)
    ax.set_axis_off()


def _legend_styles(
    compare_to: Structure | None, strengths: Mapping[Arc, float] | None, open_directions: Collection[Arc]
) -> dict[str, tuple[str, Line, float]]:
    """Return what lines mean: the colour, style and width of each."""
    if compare_to is not None:
        colours = {"both": COMMON, "missing": MISSING, "added": ADDED, "reversed": REVERSED}
        return {name: (colour, "--" if name == "missing" else "-", 1.5) for name, colour in colours.items()}
    styles: dict[str, tuple[str, Line, float]] = {"wider: stronger": (INK, "-", THICK)} if strengths else {}
    return styles | ({"dashed: direction open": (INK, OPEN, 1.5)} if open_directions else {})


def _draw_legend(ax: Axes, styles: dict[str, tuple[str, Line, float]]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linestyle=line, linewidth=width, label=name)
        for name, (colour, line, width) in styles.items()
    ]
    ax.legend(
        handles=handles, frameon=False, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 0.0)
    )


def _draw_conditional(
    ax: Axes,
    network: BayesianNetwork,
    node: str,
    parent: str,
    columns: dict[str, FloatArray],
    xs: FloatArray,
    points: int,
) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    # Coarser than a curve, and smoothed: every point costs a sum over the training rows.
    parents, xs = _range(columns[parent], MESH_POINTS), np.linspace(xs[0], xs[-1], MESH_POINTS)
    mesh = np.meshgrid(parents, xs)
    rows = {parent: mesh[0].ravel(), node: mesh[1].ravel()}
    density = np.exp(network.node_logpdf(node, rows)).reshape(mesh[0].shape)
    kept = network.cpds[node].kept_rows
    if kept is not None:
        # Far from all rows, a conditional density made of kernels is the narrow ridge of the nearest one.
        distance = _distances(parents, network.in_data_units(parent, kept.column(parent))) / np.ptp(parents)
        density *= np.clip(2.0 - distance / FADING, 0.0, 1.0)
    # From transparent to blue, so that any background will do; a few peaks must not fade all the rest.
    shades = LinearSegmentedColormap.from_list("shades", [(LINES[0], 0.0), (LINES[0], 0.9)])
    ax.imshow(
        density,
        cmap=shades,
        vmin=0.0,
        vmax=_greatest_shade(density),
        extent=(parents[0], parents[-1], xs[0], xs[-1]),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
    )
    if len(columns[node]) > 1:
        step = -(-len(columns[node]) // points)
        ax.plot(columns[parent][::step], columns[node][::step], ".", color=INK, markersize=1.5, alpha=0.35)
    ax.set_xlim(parents[0], parents[-1])
    ax.set_ylim(xs[0], xs[-1])
    ax.set_xlabel(_title(parent), parse_math=False)
    ax.set_ylabel(_title(node), parse_math=False)


def _distances(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return how far every point is from the nearest of some values."""
    ordered = np.sort(values)
    after = np.searchsorted(ordered, points).clip(1, max(1, len(ordered) - 1))
    left, right = ordered[after - 1], ordered[np.minimum(after, len(ordered) - 1)]
    nearest: FloatArray = np.minimum(np.abs(points - left), np.abs(points - right))
    return nearest


def _greatest_shade(density: FloatArray) -> float:
    peaks = density.max(axis=0)
    shown = peaks[peaks > 0.0]
    return float(np.quantile(shown, 0.9)) if len(shown) else 1.0


def _draw_slices(
    ax: Axes,
    network: BayesianNetwork,
    node: str,
    parents: tuple[str, ...],
    columns: dict[str, FloatArray],
    xs: FloatArray,
) -> None:
    """Draw the density at some values of the parent that changes it most, the others at typical values.

    These are quantiles and the median, or the most common levels; a discrete parent goes first.
    """
    levels = {variable.name: variable.levels for variable in network.variables if variable.is_discrete}
    common = {parent: _most_common(columns[parent]) for parent in parents if parent in levels}
    usual = {p: float(common[p][0] if p in common else np.median(columns[p])) for p in parents}
    values = {
        parent: np.sort(common[parent][: len(LINES)])
        if parent in common
        else np.quantile(columns[parent], SLICES)
        for parent in parents
    }

    def slices(parent: str, xs: FloatArray) -> FloatArray:
        count = len(values[parent])
        row = {name: np.full(count * len(xs), usual[name]) for name in parents}
        row[parent] = np.repeat(values[parent], len(xs))
        row[node] = np.tile(xs, count)
        return np.exp(network.node_logpdf(node, _as_rows(network, row))).reshape(count, len(xs))

    def change(parent: str) -> float:
        return float(np.abs(np.diff(slices(parent, xs), axis=0)).sum())

    def written(parent: str, value: float) -> str:
        return _title(levels[parent][int(value)], LONGEST_LEVEL) if parent in levels else f"{value:.3g}"

    chosen = max(common or parents, key=change)
    curves = slices(chosen, xs)
    visible = np.flatnonzero((curves > 0.005 * curves.max(axis=1, keepdims=True)).any(axis=0))
    if len(visible) > 1:
        xs = np.linspace(xs[visible[0]], xs[visible[-1]], CURVE_POINTS)
        curves = slices(chosen, xs)
    for value, curve, colour in zip(values[chosen], curves, LINES, strict=False):
        ax.plot(xs, curve, color=colour, label=written(chosen, value))
    rest = ", ".join(f"{parent} = {written(parent, usual[parent])}" for parent in parents if parent != chosen)
    name = _title(node, LONGEST_TITLE // 2)
    at = f"   {_title(f'(at {rest})', LONGEST_TITLE - len(name))}" if rest else ""
    ax.set_xlabel(f"{name}{at}", parse_math=False)
    ax.set_ylabel("density")
    _legend_above(ax, chosen, len(values[chosen]))


def _legend_above(ax: Axes, title: str, columns: int) -> None:
    legend = ax.legend(
        title=_title(title),
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        ncols=columns,
        handlelength=1.2,
        columnspacing=1.2,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )
    legend.get_title().set_parse_math(False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _draw_bars(
    ax: Axes, network: BayesianNetwork, variable: Variable, columns: dict[str, FloatArray], *, with_rows: bool
) -> None:
    """Draw the probabilities of a discrete node's levels."""
    parents = network.structure.parents(variable.name)
    if parents:
        _draw_stacks(ax, network, variable, parents, columns)
        return
    shown = np.sort(_most_common(columns[variable.name], len(variable.levels))[:BARS])[::-1]
    places = np.arange(len(shown))
    if with_rows:
        shares = np.bincount(columns[variable.name].astype(np.int64), minlength=len(variable.levels))
        ax.barh(places, shares[shown] / len(columns[variable.name]), color=FILL, height=0.8)
    found = np.exp(
        network.node_logpdf(variable.name, _as_rows(network, {variable.name: shown.astype(float)}))
    )
    ax.barh(places, found, color=LINES[0], height=0.35)
    ax.set_yticks(places, [_title(variable.levels[k], LONGEST_LEVEL) for k in shown], parse_math=False)
    ax.set_xlabel("probability")
    ax.set_ylabel(_title(variable.name), parse_math=False)


def _draw_stacks(
    ax: Axes,
    network: BayesianNetwork,
    variable: Variable,
    parents: tuple[str, ...],
    columns: dict[str, FloatArray],
) -> None:
    """Draw the probabilities of the levels side by side, for each of the most common configurations."""
    known = {other.name: other.levels for other in network.variables}
    codes = np.stack([columns[parent] for parent in parents], axis=1)
    found, counts = np.unique(codes, axis=0, return_counts=True)
    chosen = found[np.sort(np.argsort(-counts, kind="stable")[:STACKS])][::-1]
    levels = len(variable.levels)
    rows = {parent: np.repeat(chosen[:, k], levels) for k, parent in enumerate(parents)}
    rows[variable.name] = np.tile(np.arange(levels, dtype=np.float64), len(chosen))
    shares = np.exp(network.node_logpdf(variable.name, _as_rows(network, rows))).reshape(-1, levels)
    common = np.sort(_most_common(columns[variable.name], levels)[: len(LINES)])
    places, left = np.arange(len(chosen)), np.zeros(len(chosen))
    for k, colour in zip(common, LINES, strict=False):
        label = _title(variable.levels[k], LONGEST_LEVEL)
        ax.barh(places, shares[:, k], left=left, color=colour, height=0.7, label=label)
        left = left + shares[:, k]
    if levels > len(common):
        ax.barh(places, 1.0 - left, left=left, color=FILL, height=0.7, label="other")
    names = [", ".join(known[p][int(c)] for p, c in zip(parents, row, strict=True)) for row in chosen]
    ax.set_yticks(places, [_title(name, LONGEST_LEVEL) for name in names], parse_math=False)
    ax.set_ylabel(_title(", ".join(parents)), parse_math=False)
    ax.set_xlabel("probability")
    ax.set_xlim(0.0, 1.0)
    _legend_above(ax, variable.name, min(3, len(common) + 1))


def _most_common(codes: FloatArray, levels: int = 0) -> IntArray:
    """Return the levels that occur, or as many as there are, the most common first."""
    counts = np.bincount(codes.astype(np.int64), minlength=levels)
    order = np.argsort(-counts, kind="stable")
    return order if levels else order[: np.count_nonzero(counts)]


def _as_rows(network: BayesianNetwork, columns: dict[str, FloatArray]) -> Table:
    """Return columns in the units of the data, discrete ones as level codes, as rows of the network."""
    levels = {v.name: v.levels for v in network.variables if v.is_discrete and v.name in columns}
    return Table(tuple(columns), np.stack(list(columns.values())), levels)


def _columns_for(network: BayesianNetwork, node: str, data: Any) -> dict[str, FloatArray]:
    """Return values of a node and its parents to show: the data, or rows drawn from the network."""
    names = {node, *network.structure.parents(node)}
    variables = [variable for variable in network.variables if variable.name in names]
    rows = network.sample(CLOUD_POINTS, seed=0) if data is None else data
    table = as_table(rows, variables=variables)
    return dict(zip(table.names, table.columns, strict=True))


def _title(text: str, limit: int = LONGEST_TITLE) -> str:
    return shortened(one_line(text), limit)


def _range(column: FloatArray, points: int = CURVE_POINTS) -> FloatArray:
    low, high = np.quantile(column, [0.002, 0.998])
    if low == high:  # nearly all rows have one value
        low, high = float(column.min()), float(column.max())
    margin = 0.08 * (high - low) if high > low else 0.5 * max(1e-6, abs(low))
    return np.linspace(low - margin, high + margin, points)


def _cycle(count: int) -> list[str]:
    return [LINES[k % len(LINES)] for k in range(count)]
