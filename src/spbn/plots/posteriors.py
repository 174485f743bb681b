"""Pictures of posteriors: every variable before and after what is known."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError, quoted, require_plot_packages
from spbn.inference.posterior import Posterior
from spbn.plots.layout import shortened
from spbn.plots.pictures import save_figure
from spbn.tables.levels import as_text
from spbn.tables.table import Variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE, AFTER, KNOWN = "#c9ccd1", "#1f6fb2", "#c0392b"
BINS, COLUMNS, MOST_LEVELS = 40, 3, 20
LONGEST_TITLE = 36


@display.plot.register(Posterior)
def plot_posterior(posterior: Posterior, variables: Sequence[str] | None = None) -> Figure:
    """Draw a panel for every variable: in grey what the network expects, in blue what is likely now.

    What is known is marked in red, and what was set from outside (`do`) is named so.
    """
    require_plot_packages()
    from matplotlib import pyplot as plt

    network = posterior.network
    chosen = list(network.nodes) if variables is None else list(variables)
    unknown = [name for name in chosen if name not in network.nodes]
    if unknown or not chosen:
        raise ArgumentError(f"variables must name nodes of the network. Got {quoted(unknown) or 'none'}.")
    prior = posterior.prior
    columns = min(COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.4 * rows), squeeze=False)
    by_name = {variable.name: variable for variable in network.variables}
    for ax, name in zip(axes.flat, chosen, strict=False):
        _draw_panel(ax, posterior, by_name[name], prior[name])
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    _draw_legend(figure, posterior)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / (2.4 * rows)))
    return figure


def save_posterior(posterior: Posterior, path: Path) -> None:
    """Write a picture of all variables; the ending of the file name says which kind."""
    save_figure(lambda: plot_posterior(posterior), path)


def _draw_panel(ax: Axes, posterior: Posterior, variable: Variable, before: Any) -> None:
    after = posterior.draws.get(variable.name)
    mark = posterior.evidence.get(variable.name, posterior.do.get(variable.name))
    if variable.is_discrete:
        _draw_levels(ax, posterior, variable, before, mark)
    else:
        _draw_numbers(ax, np.asarray(before, dtype=float), after, posterior.weights, mark)
    ax.set_title(shortened(variable.name, LONGEST_TITLE), fontsize=9, loc="left")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_yticks([])
    ax.tick_params(labelsize=8)


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
        ax.bar(
            places,
            posterior.probabilities(variable.name).to_numpy()[: len(levels)],
            0.5,
            color=AFTER,
            alpha=0.75,
        )
    else:
        one = next(iter(mark)) if isinstance(mark, Collection) and not isinstance(mark, str) else mark
        place = variable.levels.index(as_text(one))
        if place < len(levels):
            ax.bar([place], [1.0], 0.5, color=KNOWN, alpha=0.75)
    ax.set_xticks(places, [shortened(level, 10) for level in levels], rotation=45 if len(levels) > 4 else 0)
    ax.tick_params(axis="x", length=0)


def _draw_legend(figure: Figure, posterior: Posterior) -> None:
    from matplotlib.patches import Patch

    words = {BEFORE: "expected", AFTER: "given what is known", KNOWN: "known"}
    if posterior.do:
        words[KNOWN] = "known, or set" if posterior.evidence else "set"
    patches = [Patch(color=colour, label=label) for colour, label in words.items()]
    figure.legend(handles=patches, loc="upper right", ncols=3, fontsize=8, frameon=False)
