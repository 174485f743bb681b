"""Figures: densities, posteriors, searches, contributions to rows, forecasts, and what monitors found."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, GraphError, quoted, require_plot_packages
from spbn.inference.query import Posterior
from spbn.network import BayesianNetwork
from spbn.plots.pictures import (
    FILL,
    INK,
    LINES,
    LONGEST_LABEL,
    LONGEST_TITLE,
    MISSING,
    chosen_variables,
    draw_legend,
    new_axes,
    short_title,
    shortened,
)
from spbn.search import SearchResult
from spbn.tables.columns import as_text
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable
from spbn.timeseries.forecast import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_POINTS = 200
MESH_POINTS = 100
FADING = 0.08  # of a parent's range: so far from all training rows the shading begins to fade
SLICES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles of a parent
CLOUD_POINTS = 2_000
LONGEST_LEVEL = 18  # letters of a level
BARS, STACKS = 20, 10  # levels, and configurations of parents, that are drawn

BEFORE, AFTER, KNOWN = FILL, LINES[0], MISSING  # in the picture of a posterior
BINS, PANELS, MOST_LEVELS = 40, 3, 20  # of a histogram, side by side, and of a panel
LONGEST_NAME = 36  # letters of a variable above its panel

NAMED_STEPS = 24  # up to which the steps of a search are named below the axis

BANDS = (0.9, 0.5)  # shares of the paths, the widest first
SHOWN_PATHS = 3
STACKED_LEVELS = 8  # of a variable

ALARM_COLUMNS = ("p_value", "alarm", "blame", "drift", "drift_alarm", "drift_blame")
LOWEST_SHARE, LOWEST_DRIFT = 1e-7, 1e-7  # that are drawn: all below look the same
NAMED = 8  # alarms whose variables are named


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
    kinds = {v.name: v for v in network.variables if v.name in (node, *parents)}
    rows = network.sample(CLOUD_POINTS, seed=0) if data is None else data
    table = as_table(rows, variables=list(kinds.values()))
    columns = dict(zip(table.names, table.columns, strict=True))
    family = _Family(network, kinds[node], parents, columns, dict(table.levels))
    if ax is None:
        ax = new_axes(4.6, 3.4)
    if kinds[node].is_discrete and parents:
        _draw_stacks(ax, family)
    elif kinds[node].is_discrete:
        _draw_bars(ax, family, with_rows=data is not None)
    elif not parents:
        _draw_curve(ax, family, with_rows=data is not None or network.cpds[node].kept_rows is not None)
    elif len(parents) == 1 and not kinds[parents[0]].is_discrete:
        _draw_shading(ax, family, points)
    else:
        _draw_slices(ax, family)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


class _Family(NamedTuple):
    """A node and its parents, with rows: columns in the units of the data, discrete ones as level codes."""

    network: BayesianNetwork
    variable: Variable
    parents: tuple[str, ...]
    columns: dict[str, FloatArray]
    levels: dict[str, tuple[str, ...]]

    @property
    def column(self) -> FloatArray:
        return self.columns[self.variable.name]

    def density(self, values: FloatArray, given: dict[str, FloatArray]) -> FloatArray:
        """Return the density, or probability, of values of the node given its parents."""
        rows = {**given, self.variable.name: values}
        table = Table(tuple(rows), np.stack(list(rows.values())), self.levels)
        return np.exp(self.network.node_logpdf(self.variable.name, table))


def _shown_range(column: FloatArray, points: int = CURVE_POINTS) -> FloatArray:
    """Return points over the values of a column that are shown: all but far outliers, and some margin."""
    low, high = np.quantile(column, [0.002, 0.998])
    if low == high:  # nearly all rows have one value
        low, high = float(column.min()), float(column.max())
    margin = 0.08 * (high - low) if high > low else 0.5 * max(1e-6, abs(low))
    return np.linspace(low - margin, high + margin, points)


def _draw_curve(ax: Axes, family: _Family, *, with_rows: bool) -> None:
    """Draw the density of a node without parents, over a histogram of rows if these are known."""
    xs = _shown_range(family.column)
    if with_rows:
        # Bins over the range that is shown: far outliers would otherwise ask for thousands.
        bins = np.linspace(xs[0], xs[-1], 41).tolist()
        ax.hist(family.column, bins=bins, density=True, color=FILL, edgecolor="none")
    ax.plot(xs, family.density(xs, {}), color=LINES[0])
    ax.set_xlabel(short_title(family.variable.name), parse_math=False)
    ax.set_ylabel("density")


def _draw_shading(ax: Axes, family: _Family, points: int) -> None:
    """Draw the density of a node given its only parent as shading, with the rows over it."""
    from matplotlib.colors import LinearSegmentedColormap

    network, node, (parent,) = family.network, family.variable.name, family.parents
    below, values = family.columns[parent], family.column
    # Coarser than a curve, and smoothed: every point costs a sum over the training rows.
    parents, xs = _shown_range(below, MESH_POINTS), _shown_range(values, MESH_POINTS)
    mesh = np.meshgrid(parents, xs)
    density = family.density(mesh[1].ravel(), {parent: mesh[0].ravel()}).reshape(mesh[0].shape)
    kept = network.cpds[node].kept_rows
    if kept is not None:
        # Far from all rows, a conditional density made of kernels is the narrow ridge of the nearest one.
        distance = _distances(parents, network.in_data_units(parent, kept.column(parent))) / np.ptp(parents)
        density *= np.clip(2.0 - distance / FADING, 0.0, 1.0)
    # From transparent to blue, so that any background will do; a few peaks must not fade all the rest.
    shades = LinearSegmentedColormap.from_list("shades", [(LINES[0], 0.0), (LINES[0], 0.9)])
    peaks = density.max(axis=0)
    shown = peaks[peaks > 0.0]
    scale: dict[str, Any] = {"vmin": 0.0, "vmax": float(np.quantile(shown, 0.9)) if len(shown) else 1.0}
    frame = (parents[0], parents[-1], xs[0], xs[-1])
    style: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "bilinear"}
    ax.imshow(density, cmap=shades, extent=frame, **scale, **style)
    if len(values) > 1:
        step = -(-len(values) // points)
        ax.plot(below[::step], values[::step], ".", color=INK, markersize=1.5, alpha=0.35)
    ax.set_xlim(parents[0], parents[-1])
    ax.set_ylim(xs[0], xs[-1])
    ax.set_xlabel(short_title(parent), parse_math=False)
    ax.set_ylabel(short_title(node), parse_math=False)


def _distances(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return how far every point is from the nearest of some values."""
    ordered = np.sort(values)
    after = np.searchsorted(ordered, points).clip(1, max(1, len(ordered) - 1))
    left, right = ordered[after - 1], ordered[np.minimum(after, len(ordered) - 1)]
    nearest: FloatArray = np.minimum(np.abs(points - left), np.abs(points - right))
    return nearest


def _draw_slices(ax: Axes, family: _Family) -> None:
    """Draw the density at some values of the parent that changes it most, the others at typical values.

    These are quantiles and the median, or the most common levels; a discrete parent goes first.
    """
    parents, columns, levels = family.parents, family.columns, family.levels
    common = {parent: _most_common(columns[parent]) for parent in parents if parent in levels}
    usual = {p: float(common[p][0] if p in common else np.median(columns[p])) for p in parents}
    values = {
        p: np.sort(common[p][: len(LINES)]) if p in common else np.quantile(columns[p], SLICES)
        for p in parents
    }
    xs = _shown_range(family.column)

    def slices(parent: str, xs: FloatArray) -> FloatArray:
        count = len(values[parent])
        row = {name: np.full(count * len(xs), usual[name]) for name in parents}
        row[parent] = np.repeat(values[parent], len(xs))
        return family.density(np.tile(xs, count), row).reshape(count, len(xs))

    def change(parent: str) -> float:
        return float(np.abs(np.diff(slices(parent, xs), axis=0)).sum())

    def written(parent: str, value: float) -> str:
        return short_title(levels[parent][int(value)], LONGEST_LEVEL) if parent in levels else f"{value:.3g}"

    chosen = max(common or parents, key=change)
    curves = slices(chosen, xs)
    visible = np.flatnonzero((curves > 0.005 * curves.max(axis=1, keepdims=True)).any(axis=0))
    if len(visible) > 1:
        xs = np.linspace(xs[visible[0]], xs[visible[-1]], CURVE_POINTS)
        curves = slices(chosen, xs)
    for value, curve, colour in zip(values[chosen], curves, LINES, strict=False):
        ax.plot(xs, curve, color=colour, label=written(chosen, value))
    rest = ", ".join(f"{parent} = {written(parent, usual[parent])}" for parent in parents if parent != chosen)
    name = short_title(family.variable.name, LONGEST_TITLE // 2)
    at = f"   {short_title(f'(at {rest})', LONGEST_TITLE - len(name))}" if rest else ""
    ax.set_xlabel(f"{name}{at}", parse_math=False)
    ax.set_ylabel("density")
    _legend_above(ax, chosen, len(values[chosen]))


def _draw_bars(ax: Axes, family: _Family, *, with_rows: bool) -> None:
    """Draw the probabilities of a discrete node's levels."""
    variable, codes = family.variable, family.column
    shown = np.sort(_most_common(codes, len(variable.levels))[:BARS])[::-1]
    places = np.arange(len(shown))
    if with_rows:
        shares = np.bincount(codes.astype(np.int64), minlength=len(variable.levels))
        ax.barh(places, shares[shown] / len(codes), color=FILL, height=0.8)
    ax.barh(places, family.density(shown.astype(float), {}), color=LINES[0], height=0.35)
    ax.set_yticks(places, [short_title(variable.levels[k], LONGEST_LEVEL) for k in shown], parse_math=False)
    ax.set_xlabel("probability")
    ax.set_ylabel(short_title(variable.name), parse_math=False)


def _draw_stacks(ax: Axes, family: _Family) -> None:
    """Draw the probabilities of the levels side by side, for each of the most common configurations."""
    variable, parents, known = family.variable, family.parents, family.levels
    codes = np.stack([family.columns[parent] for parent in parents], axis=1)
    found, counts = np.unique(codes, axis=0, return_counts=True)
    chosen = found[np.sort(np.argsort(-counts, kind="stable")[:STACKS])][::-1]
    levels = len(variable.levels)
    given = {parent: np.repeat(chosen[:, k], levels) for k, parent in enumerate(parents)}
    every = np.tile(np.arange(levels, dtype=np.float64), len(chosen))
    shares = family.density(every, given).reshape(-1, levels)
    common = np.sort(_most_common(family.column, levels)[: len(LINES)])
    places, left = np.arange(len(chosen)), np.zeros(len(chosen))
    for k, colour in zip(common, LINES, strict=False):
        label = short_title(variable.levels[k], LONGEST_LEVEL)
        ax.barh(places, shares[:, k], left=left, color=colour, height=0.7, label=label)
        left = left + shares[:, k]
    if levels > len(common):
        ax.barh(places, 1.0 - left, left=left, color=FILL, height=0.7, label="other")
    names = [", ".join(known[p][int(c)] for p, c in zip(parents, row, strict=True)) for row in chosen]
    ax.set_yticks(places, [short_title(name, LONGEST_LEVEL) for name in names], parse_math=False)
    ax.set_ylabel(short_title(", ".join(parents)), parse_math=False)
    ax.set_xlabel("probability")
    ax.set_xlim(0.0, 1.0)
    _legend_above(ax, variable.name, min(3, len(common) + 1))


def _legend_above(ax: Axes, title: str, columns: int) -> None:
    small: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small"}
    spacing: dict[str, Any] = {"handlelength": 1.2, "columnspacing": 1.2}
    draw_legend(ax, "lower center", (0.5, 1.0), columns, title=short_title(title), **small, **spacing)


def _most_common(codes: FloatArray, levels: int = 0) -> IntArray:
    """Return the levels that occur, or as many as there are, the most common first."""
    counts = np.bincount(codes.astype(np.int64), minlength=levels)
    order = np.argsort(-counts, kind="stable")
    return order if levels else order[: np.count_nonzero(counts)]


@display.plot.register(Posterior)
def plot_posterior(posterior: Posterior, variables: Sequence[str] | None = None) -> Figure:
    """Draw a panel for every variable: in grey what the network expects, in blue what is likely now.

    What is known is marked in red, and what was set from outside (`do`) is named so.
    """
    require_plot_packages()
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    network = posterior.network
    chosen = chosen_variables(variables, network.nodes, "nodes of the network")
    prior = posterior.prior
    columns = min(PANELS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.4 * rows), squeeze=False)
    by_name = {variable.name: variable for variable in network.variables}
    for ax, name in zip(axes.flat, chosen, strict=False):
        mark = posterior.evidence.get(name, posterior.do.get(name))
        if by_name[name].is_discrete:
            _draw_levels(ax, posterior, by_name[name], prior[name], mark)
        else:
            before, after = np.asarray(prior[name], dtype=float), posterior.draws.get(name)
            _draw_numbers(ax, before, after, posterior.weights, mark)
        ax.set_title(shortened(name, LONGEST_NAME), fontsize=9, loc="left")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_yticks([])
        ax.tick_params(labelsize=8)
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    words = {BEFORE: "expected", AFTER: "given what is known", KNOWN: "known"}
    if posterior.do:
        words[KNOWN] = "known, or set" if posterior.evidence else "set"
    patches = [Patch(color=colour, label=label) for colour, label in words.items()]
    figure.legend(handles=patches, loc="upper right", ncols=3, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / (2.4 * rows)))
    return figure


def _draw_numbers(ax: Axes, before: FloatArray, after: Any, weights: FloatArray, mark: Any) -> None:
    values = None if after is None else np.asarray(after, dtype=float)
    low, high = np.quantile(before, [0.002, 0.998])
    if values is not None:
        low = min(low, float(np.quantile(values, 0.002, weights=weights, method="inverted_cdf")))
        high = max(high, float(np.quantile(values, 0.998, weights=weights, method="inverted_cdf")))
    ends = [end for end in (mark if isinstance(mark, tuple | list) else [mark]) if end is not None]
    low, high = min([low, *ends]), max([high, *ends])
    edges = np.linspace(low, high, BINS + 1).tolist()
    ax.hist(before, edges, density=True, color=BEFORE, linewidth=0)
    if values is not None:
        ax.hist(values, edges, weights=weights, density=True, color=AFTER, alpha=0.75, linewidth=0)
    if isinstance(mark, tuple | list):
        ends_in = [low if mark[0] is None else mark[0], high if mark[1] is None else mark[1]]
        ax.axvspan(*ends_in, color=KNOWN, alpha=0.12, linewidth=0)
    elif mark is not None:
        ax.axvline(float(mark), color=KNOWN, linewidth=2)
    ax.set_xlim(low, high)


def _draw_levels(ax: Axes, posterior: Posterior, variable: Variable, before: Any, mark: Any) -> None:
    levels = list(variable.levels)[:MOST_LEVELS]
    shares = np.bincount(before.cat.codes, minlength=len(variable.levels))[: len(levels)] / len(before)
    places = np.arange(len(levels))
    ax.bar(places, shares, 0.8, color=BEFORE)
    if variable.name in posterior.draws:
        after = posterior.probabilities(variable.name).to_numpy()[: len(levels)]
        ax.bar(places, after, 0.5, color=AFTER, alpha=0.75)
    else:
        one = next(iter(mark)) if isinstance(mark, Collection) and not isinstance(mark, str) else mark
        place = variable.levels.index(as_text(one))
        if place < len(levels):
            ax.bar([place], [1.0], 0.5, color=KNOWN, alpha=0.75)
    ax.set_xticks(places, [shortened(level, 10) for level in levels], rotation=45 if len(levels) > 4 else 0)
    ax.tick_params(axis="x", length=0)


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
        place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
        ax.annotate("best", (search.best, 1.0), **place, fontsize=8)
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
    for node, colour in zip(nodes, cycle(LINES)):
        ax.plot(x, contributions[node], color=colour, linewidth=0.9, label="node")
    ax.set_ylabel("log-density")
    legend = draw_legend(ax, "upper center", (0.5, -0.12), min(6, len(nodes) + 1))
    # Put in afterwards: matplotlib leaves out what begins with an underscore.
    for entry, node in zip(legend.get_texts()[1:], nodes, strict=True):
        entry.set_text(short_title(node))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


@display.plot.register(Forecast)
def plot_forecast(
    forecast: Forecast, variables: Sequence[str] | None = None, *, series: str | None = None
) -> Figure:
    """Draw a panel for every variable: the history, then the median, 50 % and 90 % of the paths.

    Some paths are drawn as thin lines: unlike the median, they are as rough as what is to be expected. A
    discrete variable has the probabilities of its levels, stacked.
    """
    require_plot_packages()
    from matplotlib import pyplot as plt

    known = {variable.name: variable for variable in forecast.variables}
    chosen = chosen_variables(variables, list(known), f"variables of the forecast, {quoted(known)}")
    size = (7.2, 2.1 * len(chosen) + 0.5)
    figure, axes = plt.subplots(
        len(chosen), 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )
    history = forecast.history(series)
    first_fan = next((name for name in chosen if not known[name].is_discrete), None)
    for ax, name in zip(axes[:, 0], chosen, strict=True):
        place = list(known).index(name)
        before = history[place, -max(2 * forecast.steps, 20) :]
        paths = forecast.of(name, series=series)
        if known[name].is_discrete:
            _draw_paths_of_levels(ax, before, paths, known[name].levels)
        else:
            _draw_fan(ax, before, paths, explained=name == first_fan)
        ax.axvline(0, color=INK, linewidth=0.6, linestyle=(0, (3, 3)))
        ax.set_title(shortened(name, LONGEST_TITLE), fontsize=9, loc="left", parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    axes[-1, 0].set_xlabel("steps after the last row of the history", fontsize=8)
    return figure


def _draw_fan(ax: Axes, before: FloatArray, paths: FloatArray, *, explained: bool) -> None:
    last = before[-1]
    steps = np.arange(paths.shape[1] + 1)
    for share in BANDS:
        low, high = np.quantile(paths, [0.5 - share / 2, 0.5 + share / 2], axis=0)
        label = f"{100 * share:.0f} % of the paths"
        lower, upper = np.append(last, low), np.append(last, high)
        ax.fill_between(steps, lower, upper, color=LINES[0], alpha=0.22, linewidth=0, label=label)
    for path in paths[:SHOWN_PATHS]:
        ax.plot(steps, np.concatenate([[last], path]), color=LINES[0], linewidth=0.5, alpha=0.8)
    median = np.concatenate([[last], np.median(paths, axis=0)])
    ax.plot(steps, median, color=LINES[0], linewidth=1.6, label="median")
    ax.plot(np.arange(1 - len(before), 1), before, color=INK, linewidth=1.0, label="history")
    if explained:  # once is enough
        draw_legend(ax, "lower right", (1.0, 1.0), 4, handlelength=1.4)


def _draw_paths_of_levels(ax: Axes, before: FloatArray, paths: FloatArray, levels: Sequence[str]) -> None:
    counts = np.stack([(paths == code).mean(axis=0) for code in range(len(levels))])
    past = np.stack([before == code for code in range(len(levels))]).astype(np.float64)
    shares = np.concatenate([past, counts], axis=1)
    shown, names = list(shares[:STACKED_LEVELS]), list(levels[:STACKED_LEVELS])
    if len(levels) > STACKED_LEVELS:
        shown[-1], names[-1] = shares[STACKED_LEVELS - 1 :].sum(axis=0), "others"
    steps = np.arange(1 - len(before), paths.shape[1] + 1)
    bottom = np.zeros(len(steps))
    for k, (share, name) in enumerate(zip(shown, names, strict=True)):
        alpha = 0.75 if k < len(LINES) else 0.4
        style: dict[str, Any] = {"color": LINES[k % len(LINES)], "alpha": alpha, "linewidth": 0}
        ax.bar(steps, share, 1.0, bottom=bottom, **style, label=shortened(name, 18))
        bottom += share
    ax.set_ylim(0, 1)
    ax.set_ylabel("probability", fontsize=8)
    draw_legend(ax, "lower right", (1.0, 1.0), STACKED_LEVELS, handlelength=1)


def plot_verdicts(
    found: pd.DataFrame, axes: tuple[Axes, Axes] | None = None, *, alarm: float | None = None
) -> tuple[Axes, Axes]:
    """Draw what `Monitor.update` returned: shares and alarms above, the drift statistic below.

    Parameters
    ----------
    found
        The frame; its index is the horizontal axis if it holds numbers or times.
    alarm
        The level of an alarm, to be drawn as a line.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> from spbn.plots import plot_verdicts
    >>> monitor = spbn.Monitor(network, data)
    >>> above, below = plot_verdicts(monitor.update(data), alarm=monitor.alarm)
    """
    require_plot_packages()
    found = found.rename(columns={"share": "p_value"})  # as the command line writes them
    absent = [name for name in ALARM_COLUMNS if name not in found]
    if absent:
        raise ArgumentError(f"plot_verdicts takes what Monitor.update returned. It lacks {absent[0]!r}.")
    if axes is None:
        from matplotlib import pyplot as plt

        _, pair = plt.subplots(2, figsize=(7.5, 4.2), layout="constrained", sharex=True, height_ratios=(3, 2))
        axes = (pair[0], pair[1])
    above, below = axes
    index = found.index
    is_measured = pd.api.types.is_numeric_dtype(index) or isinstance(index, pd.DatetimeIndex)
    places = index.to_numpy() if is_measured else np.arange(len(found))
    shares = np.maximum(found["p_value"].to_numpy(), LOWEST_SHARE)
    unusual = found["alarm"].to_numpy(dtype=np.bool_)
    above.plot(places[~unusual], shares[~unusual], ".", color="#9aa0a8", markersize=2.5)
    _mark(above, places, shares, unusual, found["blame"])
    if alarm is not None:
        above.axhline(alarm, color=MISSING, linewidth=0.8, linestyle="--")
    above.set_ylabel("share as unusual")
    drift = np.maximum(found["drift"].to_numpy(), LOWEST_DRIFT)
    below.plot(places, drift, color=LINES[0], linewidth=1.0)
    below.axhline(1.0, color=MISSING, linewidth=0.8, linestyle="--")
    _mark(below, places, drift, found["drift_alarm"].to_numpy(dtype=np.bool_), found["drift_blame"])
    below.set_ylabel("drift statistic")
    below.set_xlabel("row")
    for ax in axes:
        ax.set_yscale("log")
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(x=0.01, y=0.15)
    return axes


def _mark(ax: Axes, places: Any, heights: FloatArray, chosen: BoolArray, blame: pd.Series[Any]) -> None:
    """Mark alarms, and write the variables to blame beside the first alarm that is blamed on them."""
    ax.plot(places[chosen], heights[chosen], "o", color=MISSING, markersize=4)
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": INK, "parse_math": False}
    named: set[str] = set()
    for place, height, text in zip(places[chosen], heights[chosen], blame[chosen], strict=True):
        name = text.split(", ")[0]
        if name not in named and len(named) < NAMED:
            named.add(name)
            ax.annotate(name, (place, height), (5, 3), **style)
