"""Plots: structures, searches, densities, rows, posteriors, forecasts and what monitors found.

Every function draws into `ax`, or into a new figure, and returns it. matplotlib, and igraph for the layout of
graphs, come with the extra ``spbn[plot]``.
"""

from spbn.plots.densities import plot_cpd
from spbn.plots.figures import (
    plot_classes,
    plot_contributions,
    plot_forecast,
    plot_posterior,
    plot_search,
    plot_verdicts,
)
from spbn.plots.graphs import plot_slices, plot_structure

__all__ = [
    "plot_classes",
    "plot_contributions",
    "plot_cpd",
    "plot_forecast",
    "plot_posterior",
    "plot_search",
    "plot_slices",
    "plot_structure",
    "plot_verdicts",
]
