"""Plots: structures, searches, densities, rows, posteriors, forecasts and what monitors found.

Every function draws into `ax`, or into a new figure, and returns it. matplotlib, and igraph for the layout of
graphs, come with the extra ``spbn[plot]``.
"""

from spbn.plots.densities import plot_cpd, plot_posterior
from spbn.plots.graphs import plot_slices, plot_structure
from spbn.plots.timelines import plot_contributions, plot_forecast, plot_search, plot_verdicts

__all__ = [
    "plot_contributions",
    "plot_cpd",
    "plot_forecast",
    "plot_posterior",
    "plot_search",
    "plot_slices",
    "plot_structure",
    "plot_verdicts",
]
