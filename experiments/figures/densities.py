"""Densities: log-likelihood of test rows by every method, on raw tables and on tables without ties."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.densities import METHODS, VERSIONS
from experiments.figures.drawing import save_critical_difference
from experiments.page import signed, table
from experiments.sources import OUTER_FOLDS, published_uci
from experiments.statistics import mean_ranks

FEWEST_TABLES = 3  # for a diagram of ranks


def draw(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write a table and a diagram of ranks for each version of the tables."""
    published = published_uci(data)
    for version in VERSIONS:
        values = per_row_and_variable(results[results["version"] == version])
        name = version.replace(" ", "-")
        best = published.loc[values.index].max(axis=1) if version == "raw" else None
        (out / f"densities-{name}.md").write_text(_table(values, results, best), "utf-8")
        if len(values) >= FEWEST_TABLES:
            save_critical_difference(values, out / f"densities-{name}.svg")


def per_row_and_variable(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over all test rows and variables; tables on which all folds of all methods have run."""
    by_table = {"index": "data", "columns": "method"}
    logliks = results.pivot_table("loglik", **by_table, aggfunc="sum").reindex(columns=list(METHODS))
    sizes = results.assign(size=results["rows"] * results["nodes"])
    numbers = sizes.pivot_table("size", **by_table, aggfunc="sum").reindex(columns=list(METHODS))
    done = results.pivot_table("fold", **by_table, aggfunc="count").reindex(columns=list(METHODS))
    folds = min(OUTER_FOLDS, int(results["fold"].max()) + 1)
    return (logliks / numbers).loc[(done == folds).all(axis=1)]


def _table(values: pd.DataFrame, results: pd.DataFrame, published: pd.Series | None) -> str:
    sizes = results.groupby(["data", "fold", "method"])["rows"].first().groupby(["data", "method"]).sum()
    rows = []
    for name, found in values.iterrows():
        cells = [f"**{signed(v, 3)}**" if v == found.max() else signed(v, 3) for v in found]
        if published is not None:
            nodes = results.loc[results["data"] == name, "nodes"].iloc[0]
            cells.append(signed(published[name] / (sizes[name].max() * nodes), 3))
        rows.append([name, *cells])
    ranks = mean_ranks(values)
    last = [f"{ranks[method]:.2f}" for method in values.columns]
    rows.append(["*mean rank*", *last, *([""] if published is not None else [])])
    heads = ["table", *values.columns, *(["best published"] if published is not None else [])]
    return table(heads, rows)
