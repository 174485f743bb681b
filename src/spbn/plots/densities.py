"""Pictures of densities: of a node given its parents, and of variables before and after what is known."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spbn._base import display
from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import require_plot_packages
from spbn.inference.query import Posterior
from spbn.network import BayesianNetwork
from spbn.plots.pictures import (
    FILL,
    INK,
    LINES,
    LONGEST_TITLE,
    chosen_variables,
    draw_legend,
    new_axes,
    short_title,
    shortened,
)
from spbn.tables.columns import as_text
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable

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

BEFORE, AFTER, KNOWN = "#c9ccd1", "#1f6fb2", "#c0392b"  # in the picture of a posterior
BINS, COLUMNS, MOST_LEVELS = 40, 3, 20  # of a histogram, of panels, and of a panel
LONGEST_NAME = 36  # letters of a variable above its panel


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
    def values(self) -> FloatArray:
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
    xs = _shown_range(family.values)
    if with_rows:
        # Bins over the range that is shown: far outliers would otherwise ask for thousands.
        bins = np.linspace(xs[0], xs[-1], 41).tolist()
        ax.hist(family.values, bins=bins, density=True, color=FILL, edgecolor="none")
    ax.plot(xs, family.density(xs, {}), color=LINES[0])
    ax.set_xlabel(short_title(family.variable.name), parse_math=False)
    ax.set_ylabel("density")


def _draw_shading(ax: Axes, family: _Family, points: int) -> None:
    """Draw the density of a node given its only parent as shading, with the rows over it."""
    from matplotlib.colors import LinearSegmentedColormap

    network, node, (parent,) = family.network, family.variable.name, family.parents
    given, values = family.columns[parent], family.values
    # Coarser than a curve, and smoothed: every point costs a sum over the training rows.
    parents, xs = _shown_range(given, MESH_POINTS), _shown_range(values, MESH_POINTS)
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
        ax.plot(given[::step], values[::step], ".", color=INK, markersize=1.5, alpha=0.35)
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
    xs = _shown_range(family.values)

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
    variable, codes = family.variable, family.values
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
    common = np.sort(_most_common(family.values, levels)[: len(LINES)])
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
    columns = min(COLUMNS, len(chosen))
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
