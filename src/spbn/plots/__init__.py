"""Plots: structures, searches, densities and rows."""

from spbn.plots.plots import plot_contributions, plot_cpd, plot_search, plot_structure

__all__ = ["plot_contributions", "plot_cpd", "plot_search", "plot_structure"]
