"""Anomalies: areas under the curve by every method, their ranks, and reasons for the most unusual rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.anomalies import METHODS, MODELS
from experiments.figures.drawing import save_critical_difference
from experiments.page import table
from experiments.statistics import mean_ranks

FEWEST_TABLES = 3  # for a diagram of ranks
EXPLAINED = "blend"  # the model whose reasons are shown


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the tables and the diagram of ranks."""
    areas = percentages(results)
    (out / "anomalies-areas.md").write_text(_areas_table(areas, results), "utf-8")
    (out / "anomalies-drops.md").write_text(_drops_table(results), "utf-8")
    (out / "anomalies-reasons.md").write_text(_reasons_table(results), "utf-8")
    if len(areas) >= FEWEST_TABLES:
        save_critical_difference(areas, out / "anomalies-ranks.svg")


def percentages(results: pd.DataFrame, what: str = "auc") -> pd.DataFrame:
    """Return the mean area under the curve in percent: one row per table, one column per method."""
    methods = METHODS if what == "auc" else MODELS
    means = results.pivot_table(what, index="data", columns="method").reindex(columns=list(methods))
    return 100 * means.rename(index=_plain).sort_index(key=lambda names: names.str.lower())


def _areas_table(areas: pd.DataFrame, results: pd.DataFrame) -> str:
    sizes = results.assign(data=results["data"].map(_plain)).groupby("data")
    rows = [
        [
            name,
            *(sizes[what].median()[name] for what in ("train", "columns", "tied_columns")),
            *_in_bold(found),
        ]
        for name, found in areas.iterrows()
    ]
    rows = [[name, *(f"{size:.0f}" for size in line[:3]), *line[3:]] for name, *line in rows]
    ranks = mean_ranks(areas)
    rows.append(["*mean*", "", "", "", *_in_bold(areas.mean())])
    rows.append(["*mean rank*", "", "", "", *(f"{ranks[method]:.2f}" for method in areas.columns)])
    return table(["table", "rows", "columns", "tied", *areas.columns], rows)


def _drops_table(results: pd.DataFrame) -> str:
    """Compare the scores of the models, and say how often the most unusual row is an anomaly."""
    whole, dropped = percentages(results), percentages(results, "auc_of_drops")
    worst = results.dropna(subset="is_anomaly").groupby("method")["is_anomaly"]
    rows = [
        [
            method,
            f"{whole[method].mean():.1f}",
            f"{dropped[method].mean():.1f}",
            f"{worst.sum()[method]:.0f} of {worst.count()[method]}",
        ]
        for method in MODELS
    ]
    heads = ["model", "by log-density", "by drops alone", "most unusual row is an anomaly"]
    return table(heads, rows)


def _reasons_table(results: pd.DataFrame) -> str:
    first = results[(results["method"] == EXPLAINED) & (results["half"] == 0)]
    first = first.assign(data=first["data"].map(_plain)).sort_values("data", key=lambda s: s.str.lower())
    rows = [
        [row["data"], f"{row['row']:.0f}", "yes" if row["is_anomaly"] else "no", row["reasons"]]
        for _, row in first.iterrows()
    ]
    return table(["table", "row", "anomaly", "why it is unusual"], rows, left=4)


def _in_bold(areas: pd.Series) -> list[str]:
    return [f"**{area:.1f}**" if area == areas.max() else f"{area:.1f}" for area in areas]


def _plain(name: str) -> str:
    """Return the name of a table without its number in ADBench."""
    return name.partition("_")[2]
