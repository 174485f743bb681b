"""Plots: structures, searches, densities, rows, posteriors, forecasts and what monitors found.

Every function draws into `ax`, or into a new figure, and returns it. matplotlib, and igraph for the layout of
graphs, come with the extra ``spbn[plot]``.
"""

from spbn.plots.forecasts import plot_forecast
from spbn.plots.plots import plot_contributions, plot_cpd, plot_search, plot_structure
from spbn.plots.posteriors import plot_posterior
from spbn.plots.slices import plot_slices
from spbn.plots.verdicts import plot_verdicts

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
