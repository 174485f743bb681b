"""Classifiers: log loss, accuracy, Brier score and calibration error of every method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.classifiers import METHODS, MODELS
from experiments.figures.drawing import save_critical_difference
from experiments.page import table
from experiments.statistics import mean_ranks

FEWEST_TABLES = 3  # for a diagram of ranks
#: What is averaged over the rows, and what it is called.
MEASURES = {
    "log_loss": "log loss",
    "kinder_log_loss": "log loss, at least 0.001",
    "accuracy": "accuracy",
    "brier": "Brier score",
}


def draw(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write a table by data set, one of means, and a diagram of ranks."""
    losses = per_row(results, "log_loss")
    means = {title: per_row(results, name).loc[losses.index].mean() for name, title in MEASURES.items()}
    means["calibration error"] = calibration_errors(results).loc[losses.index].mean()
    means["mean rank by log loss"] = mean_ranks(-losses)
    uncalibrated = per_row(results[results["method"].isin(MODELS)], "uncalibrated", list(MODELS))
    means["log loss, not calibrated"] = uncalibrated.reindex(losses.index).mean()
    (out / "classifiers-means.md").write_text(_means(means), "utf-8")
    (out / "classifiers-losses.md").write_text(_losses(losses, results), "utf-8")
    if len(losses) >= FEWEST_TABLES:
        save_critical_difference(-losses, out / "classifiers.svg")


def per_row(results: pd.DataFrame, measure: str, methods: list[str] | None = None) -> pd.DataFrame:
    """Return the mean over test rows: tables × methods, for tables on which all have run equally often."""
    columns = list(METHODS) if methods is None else methods
    by_table = {"index": "data", "columns": "method"}
    weighted = results.assign(total=results[measure] * results["rows"])
    totals = weighted.pivot_table("total", **by_table, aggfunc="sum").reindex(columns=columns)
    rows = results.pivot_table("rows", **by_table, aggfunc="sum").reindex(columns=columns)
    return (totals / rows).loc[rows.eq(rows.iloc[:, 0], axis=0).all(axis=1)]


def calibration_errors(results: pd.DataFrame) -> pd.DataFrame:
    """Return the calibration errors over all folds together: tables × methods."""
    joined = results.pivot_table("bins", index="data", columns="method", aggfunc=" ".join)
    return joined.map(_calibration_error, na_action="ignore").reindex(columns=list(METHODS))


def _calibration_error(text: str) -> float:
    """Join the bins of all folds: rows, mean probability and share of correct predictions."""
    bins = np.array([[float(number) for number in part.split(":")] for part in text.split()])
    rows, probability, correct = bins.T
    places = np.minimum((probability * 10).astype(int), 9)
    distances = np.bincount(places, weights=rows * (probability - correct))
    return float(np.abs(distances).sum() / rows.sum())


def _means(means: dict[str, pd.Series]) -> str:
    rows = []
    for method in METHODS:
        values = [series.get(method, np.nan) for series in means.values()]
        cells = [
            "" if np.isnan(v) else f"{v:.1%}" if title == "accuracy" else f"{v:.3f}"
            for title, v in zip(means, values, strict=True)
        ]
        rows.append([method, *cells])
    return table(["method", *means], rows)


def _losses(losses: pd.DataFrame, results: pd.DataFrame) -> str:
    folds = results.groupby("data")["fold"].nunique()
    rows = [
        [str(name), str(folds[name]), *(f"**{v:.3f}**" if v == found.min() else f"{v:.3f}" for v in found)]
        for name, found in losses.iterrows()
    ]
    rows.append(["*mean*", "", *(f"{v:.3f}" for v in losses.mean())])
    return table(["table", "folds", *losses.columns], rows)
