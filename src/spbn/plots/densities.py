"""Pictures of densities: what a node looks like given its parents."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, frozen
from spbn.inference.batch import with_classes
from spbn.network import BayesianNetwork
from spbn.plots.pictures import FILL, INK, LINES, LONGEST_TITLE, draw_legend, new_axes, short_title
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE_POINTS = 200
MESH_POINTS = 100
FADING = 0.08  # of a parent's range: so far from all training rows the shading begins to fade
SLICES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles of a parent
CLOUD_POINTS = 2_000
LONGEST_LEVEL = 18  # letters of a level
BARS, STACKS = 20, 10  # levels, and configurations of parents, that are drawn
#: Lines of a curve, in standard deviations of the noise: the curve itself is in the middle.
DEVIATIONS = frozen(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
MIDDLE = len(DEVIATIONS) // 2
MOSTLY = 0.5  # of a density that is also something else: from this share on, its curve is drawn
CONTOURS = 6  # lines of equal height, or so
PANELS, MOST_PANELS = 3, 6  # side by side, and in all
GAPS = (0.06, 0.22)  # between panels, as shares of the axes: across and down


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

    A node that follows a curve: with one parent, the curve over the rows, with bands of one and two standard
    deviations of the noise around it. With two: a map of its height with contour lines, where there are rows.
    With more: panels in the axes, for one parent each, with the others at their medians. If there are
    discrete parents, there is a curve for every level of one of them. The curve of a blend is drawn over the
    shading if it has at least half of the weight.

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
    kinds = {v.name: v for v in network.all_variables if v.name in (node, *parents)}
    rows = network.sample(CLOUD_POINTS, seed=0) if data is None else data
    if network.hidden in kinds:  # rows belong to their most probable classes
        rows = with_classes(network, as_table(rows, variables=network.variables))
    table = network.with_marks(as_table(rows, variables=network.columns_of(kinds)))
    columns = dict(zip(table.names, table.columns, strict=True))
    family = _Family(network, kinds[node], parents, columns, dict(table.levels))
    if ax is None:
        ax = new_axes(4.6, 3.4)
    if kinds[node].is_discrete and parents:
        _draw_stacks(ax, family)
    elif kinds[node].is_discrete:
        _draw_bars(ax, family, with_rows=data is not None)
    elif not parents:
        _draw_density(ax, family, with_rows=data is not None or network.cpds[node].kept_rows is not None)
    elif is_drawn_as_curve(network, node):
        _draw_curve(ax, family, points)
    elif len(parents) == 1 and not kinds[parents[0]].is_discrete:
        _draw_shading(ax, family, points)
    else:
        _draw_slices(ax, family)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def is_drawn_as_curve(network: BayesianNetwork, node: str) -> bool:
    """Tell whether a node is noise around a curve of some continuous parent, and nothing else."""
    cpd = network.cpds[node]
    return cpd.curve_share == 1.0 and any(not parent.is_discrete for parent in cpd.variables[:-1])


@dataclass(frozen=True, eq=False)
class _Family:
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

    def curve(self, given: dict[str, FloatArray]) -> FloatArray:
        """Return the curve that the node follows, and lines around it: `DEVIATIONS` × rows."""
        network, cpd = self.network, self.network.cpds[self.variable.name]
        parents = Table(cpd.parents, np.stack([given[parent] for parent in cpd.parents]), self.levels)
        mean, spread = cpd.smooth_mean(network.transformed(parents).columns)
        return network.in_data_units(cpd.node, mean + DEVIATIONS[:, None] * spread)

    def along(self, parent: str, xs: FloatArray, case: dict[str, float]) -> FloatArray:
        """Return the curve along one parent, with others as in a case, and the rest at typical values."""
        given = {p: np.full(len(xs), value) for p, value in {**self.usual, **case}.items()}
        return self.curve({**given, parent: xs})

    def shown(self, name: str, points: int = CURVE_POINTS) -> FloatArray:
        """Return points over the values of a column that are shown: all but far outliers, and some margin."""
        column = self.columns[name]
        low, high = np.quantile(column, [0.002, 0.998])
        if low == high:  # nearly all rows have one value
            low, high = float(column.min()), float(column.max())
        margin = 0.08 * (high - low) if high > low else 0.5 * max(1e-6, abs(low))
        low, high = np.clip([low - margin, high + margin], *self.network.bounds(name)).tolist()
        return np.linspace(low, high, points)

    @cached_property
    def common(self) -> dict[str, IntArray]:
        """The levels of every discrete parent, the most common first."""
        return {
            parent: _most_common(self.columns[parent]) for parent in self.parents if parent in self.levels
        }

    @cached_property
    def usual(self) -> dict[str, float]:
        """A typical value of every parent: its median, or its most common level."""
        common = self.common
        return {p: float(common[p][0] if p in common else np.median(self.columns[p])) for p in self.parents}

    def written(self, parent: str, value: float) -> str:
        """Write a value of a parent."""
        if parent not in self.levels:
            return f"{value:.3g}"
        return short_title(self.levels[parent][int(value)], LONGEST_LEVEL)

    def label(self, name: str, drawn: Collection[str]) -> str:
        """Return the label of an axis: its variable, and where parents are that are not drawn."""
        usual = {parent: value for parent, value in self.usual.items() if parent not in drawn}
        rest = ", ".join(f"{parent} = {self.written(parent, value)}" for parent, value in usual.items())
        name = short_title(name, LONGEST_TITLE // 2)
        return f"{name}   {short_title(f'(at {rest})', LONGEST_TITLE - len(name))}" if rest else name


def _draw_density(ax: Axes, family: _Family, *, with_rows: bool) -> None:
    """Draw the density of a node without parents, over a histogram of rows if these are known."""
    xs = family.shown(family.variable.name)
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
    parents, xs = family.shown(parent, MESH_POINTS), family.shown(node, MESH_POINTS)
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
    _draw_dots(ax, below, values, points)
    if network.cpds[node].curve_share >= MOSTLY:
        ax.plot(parents, family.curve({parent: parents})[MIDDLE], color=LINES[1])
    _frame(ax, parents, xs, (parent, node))


def _draw_dots(ax: Axes, across: FloatArray, up: FloatArray, points: int) -> None:
    """Draw rows, or some of them."""
    if len(up) > 1:
        step = -(-len(up) // points)
        ax.plot(across[::step], up[::step], ".", color=INK, markersize=1.5, alpha=0.35)


def _frame(ax: Axes, across: FloatArray, up: FloatArray, names: tuple[str, str]) -> None:
    """Show what is between the first and the last of some points, and name the axes."""
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    ax.set_xlabel(short_title(names[0]), parse_math=False)
    ax.set_ylabel(short_title(names[1]), parse_math=False)


def _draw_curve(ax: Axes, family: _Family, points: int) -> None:
    """Draw the curve that a node follows, as its parents allow."""
    if family.levels or len(family.parents) > 2:
        _draw_panels(ax, family)
    elif len(family.parents) == 2:
        _draw_map(ax, family, points)
    else:
        _draw_bands(ax, family, points)


def _draw_bands(ax: Axes, family: _Family, points: int) -> None:
    """Draw the curve against the only parent, with bands of its noise, and the rows."""
    (parent,) = family.parents
    xs = family.shown(parent)
    _draw_dots(ax, family.columns[parent], family.column, points)
    _draw_line(ax, xs, family.curve({parent: xs}), LINES[0], (1, 2), label="curve")
    _frame(ax, xs, family.shown(family.variable.name), (parent, family.variable.name))
    draw_legend(ax, "lower right", (1.0, 1.0), 3, handlelength=1.4)


def _draw_line(
    ax: Axes, xs: FloatArray, lines: FloatArray, colour: str, bands: Collection[int], label: str
) -> None:
    """Draw a curve, and bands of so many standard deviations around it."""
    ax.plot(xs, lines[MIDDLE], color=colour, label=label)
    for k in bands:
        ends = (lines[MIDDLE - k], lines[MIDDLE + k])
        ax.fill_between(xs, *ends, color=colour, alpha=0.36 / (1 + k), linewidth=0, label=f"±{k} s.d.")


def _draw_map(ax: Axes, family: _Family, points: int) -> None:
    """Draw the height of the curve over its two parents, wherever rows are near, and the rows."""
    from matplotlib.colors import LinearSegmentedColormap
    from scipy.spatial import KDTree

    rows = np.stack([family.columns[parent] for parent in family.parents], axis=1)
    xs, ys = (family.shown(parent, MESH_POINTS) for parent in family.parents)
    mesh = np.stack([place.ravel() for place in np.meshgrid(xs, ys)], axis=1)
    heights = family.curve(dict(zip(family.parents, mesh.T, strict=True)))[MIDDLE]
    unit = np.array([np.ptp(xs), np.ptp(ys)])
    distances, _ = KDTree(rows / unit).query(mesh / unit)
    heights = np.where(distances <= FADING, heights, np.nan).reshape(len(ys), len(xs))
    # Pale enough for the numbers to be legible, and never transparent: that is where there are no rows.
    shades = LinearSegmentedColormap.from_list("heights", [(LINES[0], 0.06), (LINES[0], 0.7)])
    style: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "bilinear"}
    ax.imshow(heights, cmap=shades, extent=(xs[0], xs[-1], ys[0], ys[-1]), **style)
    _draw_dots(ax, rows[:, 0], rows[:, 1], points)
    contours = ax.contour(xs, ys, heights, CONTOURS, colors=INK, linewidths=0.7, linestyles="solid")
    ax.clabel(contours, fontsize="small")
    _frame(ax, xs, ys, (family.parents[0], family.parents[1]))
    ax.set_title(short_title(family.variable.name), fontsize="medium", parse_math=False)


def _draw_panels(ax: Axes, family: _Family) -> None:
    """Draw the curve against one continuous parent at a time, with the others at typical values.

    There is a line for every level of the discrete parent that changes the curve most, if there is one.
    """
    shown = {p: family.shown(p) for p in family.parents if p not in family.levels}
    cases = _cases(family, shown)
    parts = {parent: [_part(family, parent, case, xs) for case in cases] for parent, xs in shown.items()}
    ascents = {parent: max(np.ptp(lines[MIDDLE]) for _, lines in parts[parent]) for parent in shown}
    steepest = sorted(shown, key=lambda parent: -ascents[parent])[:MOST_PANELS]
    drawn = [parent for parent in shown if parent in steepest]
    panels = _panels(ax, len(drawn))
    chosen, bands = next(iter(cases[0]), ""), (1, 2) if len(cases) == 1 else (1,)
    outermost = [MIDDLE - bands[-1], MIDDLE + bands[-1]]
    heights = np.array([lines[outermost] for parent in drawn for _, lines in parts[parent]])
    for panel, parent in zip(panels, drawn, strict=True):
        for case, part, colour in zip(cases, parts[parent], LINES, strict=False):
            label = family.written(chosen, case[chosen]) if chosen else "curve"
            _draw_line(panel, *part, colour, bands, label=label)
        _frame(panel, shown[parent], np.array([heights.min(), heights.max()]), (parent, ""))
    panels[0].set_ylabel(short_title(family.variable.name), parse_math=False)
    if len(panels) == 1:
        ax.set_xlabel(family.label(drawn[0], [drawn[0], chosen]), parse_math=False)
    if chosen:
        _legend_above(ax, chosen, len(cases), handles=panels[0].get_lines())
    else:
        handles, _ = panels[0].get_legend_handles_labels()
        draw_legend(ax, "lower right", (1.0, 1.0), 3, handlelength=1.4, handles=handles)


def _cases(family: _Family, shown: dict[str, FloatArray]) -> list[dict[str, float]]:
    """Return the common levels of the discrete parent that changes the curve most; one empty case if none."""

    def cases(parent: str) -> list[dict[str, float]]:
        return [{parent: float(level)} for level in np.sort(family.common[parent][: len(LINES)])]

    def change(parent: str) -> float:
        found = [[family.along(p, xs, case)[MIDDLE] for p, xs in shown.items()] for case in cases(parent)]
        return float(np.abs(np.diff(found, axis=0)).sum())

    return cases(max(family.common, key=change)) if family.common else [{}]


def _part(
    family: _Family, parent: str, case: dict[str, float], shown: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return points of a parent over the rows of a case, as far as these are shown, and the curve there."""
    column = family.columns[parent]
    for discrete, level in case.items():  # one at most
        column = column[family.columns[discrete] == level]
    ends = np.clip([column.min(), column.max()], shown[0], shown[-1])
    xs = np.linspace(ends[0], ends[1], CURVE_POINTS)
    return xs, family.along(parent, xs, case)


def _panels(ax: Axes, count: int) -> list[Axes]:
    """Divide axes into panels with the same vertical axis, whose numbers are on the left."""
    if count == 1:
        return [ax]
    ax.set_axis_off()
    rows = math.ceil(count / PANELS)
    columns = math.ceil(count / rows)
    width, height = ((1.0 + gap) / n - gap for n, gap in zip((columns, rows), GAPS, strict=True))
    panels = []
    for k in range(count):
        row, column = divmod(k, columns)
        corner = (column * (width + GAPS[0]), (rows - 1 - row) * (height + GAPS[1]))
        panel = ax.inset_axes((*corner, width, height))
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize="small", labelleft=column == 0)
        panel.locator_params(axis="x", nbins=4)
        panels.append(panel)
    return panels


def _distances(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return how far every point is from the nearest of some values."""
    ordered = np.sort(values)
    after = np.searchsorted(ordered, points).clip(1, max(1, len(ordered) - 1))
    left, right = ordered[after - 1], ordered[np.minimum(after, len(ordered) - 1)]
    return np.minimum(np.abs(points - left), np.abs(points - right))


def _draw_slices(ax: Axes, family: _Family) -> None:
    """Draw the density at some values of the parent that changes it most, the others at typical values.

    These are quantiles and the median, or the most common levels; a discrete parent goes first.
    """
    parents, columns, common, usual = family.parents, family.columns, family.common, family.usual
    values = {
        p: np.sort(common[p][: len(LINES)]) if p in common else np.quantile(columns[p], SLICES)
        for p in parents
    }
    xs = family.shown(family.variable.name)

    def slices(parent: str, xs: FloatArray) -> FloatArray:
        count = len(values[parent])
        row = {name: np.full(count * len(xs), usual[name]) for name in parents}
        row[parent] = np.repeat(values[parent], len(xs))
        return family.density(np.tile(xs, count), row).reshape(count, len(xs))

    def change(parent: str) -> float:
        return float(np.abs(np.diff(slices(parent, xs), axis=0)).sum())

    chosen = max(common or parents, key=change)
    curves = slices(chosen, xs)
    visible = np.flatnonzero((curves > 0.005 * curves.max(axis=1, keepdims=True)).any(axis=0))
    if len(visible) > 1:
        xs = np.linspace(xs[visible[0]], xs[visible[-1]], CURVE_POINTS)
        curves = slices(chosen, xs)
    for value, curve, colour in zip(values[chosen], curves, LINES, strict=False):
        ax.plot(xs, curve, color=colour, label=family.written(chosen, value))
    ax.set_xlabel(family.label(family.variable.name, [chosen]), parse_math=False)
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


def _legend_above(ax: Axes, title: str, columns: int, **options: Any) -> None:
    small: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small"}
    spacing: dict[str, Any] = {"handlelength": 1.2, "columnspacing": 1.2}
    draw_legend(
        ax, "lower center", (0.5, 1.0), columns, title=short_title(title), **small, **spacing, **options
    )


def _most_common(codes: FloatArray, levels: int = 0) -> IntArray:
    """Return the levels that occur, or as many as there are, the most common first."""
    counts = np.bincount(codes.astype(np.int64), minlength=levels)
    order = np.argsort(-counts, kind="stable")
    return order if levels else order[: np.count_nonzero(counts)]
