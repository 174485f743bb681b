"""Errors of graphs: one table for each part, and ranks over all tables of rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.figures.drawing import save_critical_difference
from experiments.node_types import GRAPHS
from experiments.node_types import METHODS as WAYS
from experiments.page import table
from experiments.statistics import mean_ranks
from experiments.structure import METHODS, TABLES

COMPARED = "SPBN"  # the default of version 0.2, which others are measured by
OFTEN = 0.9  # of all tables, which a method has to have run on for its rank


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the mean distance between equivalence classes, by network and rows, and the methods' ranks."""
    for part in TABLES:
        chosen = results[results["part"] == part]
        if len(chosen):
            (out / f"structure-{part}.md").write_text(_table(chosen), "utf-8")
    by_table = results.pivot_table("class_shd", ["part", "network", "rows", "table"], "method")
    by_table = by_table[[method for method in METHODS if method in by_table]].dropna(subset=COMPARED)
    often = by_table.loc[:, by_table.notna().mean() >= OFTEN].dropna()
    if often.shape[1] > 2:
        save_critical_difference(-often, out / "structure-ranks.svg")


def _table(results: pd.DataFrame) -> str:
    means = results.pivot_table("class_shd", ["network", "rows"], "method")
    means = means[[method for method in METHODS if method in means]]
    if COMPARED in means:
        means = means[means[COMPARED].notna()]
    rows = []
    for (network, count), found in means.iterrows():
        best = found.min()
        shown = ("–" if v != v else f"**{v:.1f}**" if v == best else f"{v:.1f}" for v in found)
        rows.append([network, f"{count:,}", *shown])
    complete = means.dropna(axis=1)
    ranks = mean_ranks(-complete)
    rows.append(["*mean rank*", "", *(f"{ranks[m]:.2f}" if m in ranks else "–" for m in means.columns)])
    if COMPARED in complete:
        shares = complete.sum() / complete[COMPARED].sum()
        shown = (f"{shares[m]:.0%}" if m in shares else "–" for m in means)
        rows.append([f"*share of the errors of {COMPARED}*", "", *shown])
    return table(["network", "rows", *means.columns], rows, left=1)


def draw_types(results: pd.DataFrame, out: Path) -> None:
    """Write the share of nodes with a wrong type, by network, rows, graph and method."""
    found = results.pivot_table("wrong", ["network", "rows"], ["graph", "method"])
    found = found[[(graph, method) for graph in GRAPHS for method in WAYS if (graph, method) in found]]
    nodes = results.groupby("network")["nodes"].first()
    rows = []
    for (network, count), wrong in found.iterrows():
        shown = (f"**{v:.1f}**" if v == wrong[graph].min() else f"{v:.1f}" for (graph, _), v in wrong.items())
        rows.append([network, nodes[network], f"{count:,}", *shown])
    header = ["network", "nodes", "rows", *(f"{graph}: {method}" for graph, method in found.columns)]
    (out / "structure-types.md").write_text(table(header, rows, left=1), "utf-8")
