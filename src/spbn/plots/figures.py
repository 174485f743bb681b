"""Figures: posteriors, searches, contributions to rows, forecasts, and what monitors found."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray
from spbn._base.lazy import pd
from spbn.diagnostics.populations import most_different, populations
from spbn.errors import ArgumentError, GraphError, quoted, require_plot_packages
from spbn.inference.batch import class_probabilities
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
from spbn.tables.table import Variable
from spbn.timeseries.forecast import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE, AFTER, KNOWN = FILL, LINES[0], MISSING  # in the picture of a posterior
BINS, PANELS, MOST_LEVELS = 40, 3, 20  # of a histogram, side by side, and of a panel
ROW_HEIGHT = 2.4  # inches
LONGEST_NAME = 36  # letters of a variable above its panel

NAMED_STEPS = 24  # up to which the steps of a search are named below the axis

BANDS = (0.9, 0.5)  # shares of the paths, the widest first
SHOWN_PATHS = 3
STACKED_LEVELS = 8  # of a variable

ALARM_COLUMNS = ("p_value", "alarm", "blame", "drift", "drift_alarm", "drift_blame")
LOWEST_SHARE, LOWEST_DRIFT = 1e-7, 1e-7  # that are drawn: all below look the same
NAMED = 8  # alarms whose variables are named


@display.plot.register(Posterior)
def plot_posterior(posterior: Posterior, variables: Sequence[str] | None = None) -> Figure:
    """Draw a panel for every variable: in grey what the network expects, in blue what is likely now.

    What is known is marked in red, and what was set from outside (`do`) is named so.
    """
    require_plot_packages()
    from matplotlib.patches import Patch

    network = posterior.network
    chosen = chosen_variables(variables, network.nodes, "nodes of the network")
    prior = posterior.prior
    figure, panels = _panels(chosen)
    by_name = {variable.name: variable for variable in network.all_variables}
    for ax, name in zip(panels, chosen, strict=True):
        mark = posterior.evidence.get(name, posterior.do.get(name))
        if by_name[name].is_discrete:
            _draw_levels(ax, posterior, by_name[name], prior[name], mark)
        else:
            before, after = np.asarray(prior[name], dtype=float), posterior.draws.get(name)
            _draw_numbers(ax, before, after, posterior.weights, mark)
    words = {BEFORE: "expected", AFTER: "given what is known", KNOWN: "known"}
    if posterior.do:
        words[KNOWN] = "known, or set" if posterior.evidence else "set"
    return _with_legend(figure, [Patch(color=colour) for colour in words], list(words.values()))


def plot_classes(network: BayesianNetwork, data: Any, variables: Sequence[str] | None = None) -> Figure:
    """Draw the variables that tell the classes of a network apart: a line for every class.

    Parameters
    ----------
    data
        Rows of the network's columns, which belong to each class as far as is probable.
    variables
        What to draw; by default the variables that differ most.

    Examples
    --------
    >>> import numpy as np, pandas as pd, spbn
    >>> rng = np.random.default_rng(0)
    >>> group = rng.random(300) < 0.3
    >>> data = pd.DataFrame({"x": rng.normal(np.where(group, 8.0, 0.0)), "y": rng.normal(size=300)})
    >>> network = spbn.learn(data, model="gbn", hidden=2)
    >>> figure = spbn.plots.plot_classes(network, data)
    """
    require_plot_packages()
    table = as_table(data, variables=network.variables)
    found, weights = populations(network, table), class_probabilities(network, table)
    chosen = most_different(found, 2 * PANELS) or list(table.names[:1])
    if variables is not None:
        chosen = chosen_variables(variables, table.names, "columns of the network")
    figure, panels = _panels(chosen)
    for ax, name in zip(panels, chosen, strict=True):
        column, levels = table.column(name), table.levels.get(name, ())
        edges = np.arange(len(levels) + 1) - 0.5
        if not levels:
            low, high = np.quantile(column, [0.002, 0.998]).tolist()
            edges = np.linspace(low, high, BINS + 1)
        for population, weight, colour in zip(found, weights.T, cycle(LINES)):
            label = f"class {population.level} ({population.share:.0%})"
            counts, _ = np.histogram(column, edges, weights=weight)
            ax.stairs(counts, edges, color=colour, label=label, linewidth=1.5)
        if levels:
            ax.set_xticks(range(len(levels)), [shortened(level, LONGEST_LABEL) for level in levels])
    return _with_legend(figure, *panels[0].get_legend_handles_labels())


def _panels(names: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for every variable, some of them side by side."""
    from matplotlib import pyplot as plt

    columns = min(PANELS, len(names))
    rows = math.ceil(len(names) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, ROW_HEIGHT * rows), squeeze=False)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, names, strict=False):
        ax.set_title(shortened(name, LONGEST_NAME), fontsize=9, loc="left")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_yticks([])
        ax.tick_params(labelsize=8)
    return figure, list(axes.flat[: len(names)])


def _with_legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> Figure:
    """Draw a legend above all panels."""
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / figure.get_size_inches()[1]))
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
