"""Populations: densities and ranks of all methods, what a class gains, and how well classes are found."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.figures.drawing import COLOURS, STYLE, save, save_critical_difference
from experiments.page import change, signed, table
from experiments.populations import CLUSTERS, METHODS
from experiments.statistics import mean_ranks

ALONE, HIDDEN = "without a class", "hidden class"
EQUAL = 0.01  # nats per row and variable, within which two methods are as good
FEWEST_TABLES = 3  # for a diagram of ranks


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the mean log-densities with their ranks, what a class gains, and the adjusted Rand indices."""
    values = per_row_and_variable(results)
    complete = values.dropna()
    (out / "populations-densities.md").write_text(_density_table(values, results), "utf-8")
    if len(complete) >= FEWEST_TABLES:
        save_critical_difference(complete, out / "populations-ranks.svg")
    _save_gains(values, out / "populations-gains.svg")
    (out / "populations-rand.md").write_text(_rand_table(results), "utf-8")


def per_row_and_variable(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over test rows and variables, of folds that all methods have: tables × methods."""
    found = results[~results["method"].isin(CLUSTERS)]
    by_fold = found.assign(value=found["loglik"] / found["rows"] / found["nodes"])
    wide = by_fold.pivot_table("value", ["data", "fold"], "method").dropna(subset=[ALONE, HIDDEN])
    means = wide.groupby(level="data").mean()
    return means[[method for method in METHODS if method in means]]


def _density_table(values: pd.DataFrame, results: pd.DataFrame) -> str:
    hidden = results[results["method"] == HIDDEN].groupby("data")["classes"]
    classes = hidden.agg(lambda numbers: ", ".join(map(str, numbers)))
    gains = values[HIDDEN] - values[ALONE]
    rows = []
    for name, found in values.iterrows():
        best = found.max()
        shown = (f"**{signed(v)}**" if v == best else signed(v) for v in found)
        rows.append([name, classes[name], *shown, change(gains[name], 3)])
    ranks = mean_ranks(values.dropna())
    good = int((gains >= -EQUAL).sum())
    rows.append(["*mean rank*", "", *(f"{ranks[method]:.2f}" for method in values), ""])
    rows.append([f"*better, or equal to {EQUAL}: {good} of {len(values)}*", *[""] * (values.shape[1] + 2)])
    return table(["table", "classes, by fold", *values.columns, "difference"], rows)


def _rand_table(results: pd.DataFrame) -> str:
    found = results[results["method"] != ALONE].pivot_table("rand", "data", "method")
    found = found[[method for method in METHODS if method in found]].dropna()
    rows = []
    for name, values in [*found.iterrows(), ("*mean*", found.mean())]:
        shown = (f"**{signed(v)}**" if v == values.max() else signed(v) for v in values)
        rows.append([name, *shown])
    return table(["table", *found.columns], rows)


def _save_gains(values: pd.DataFrame, path: Path) -> None:
    """Draw what a hidden class, and the better mixture, gain over a network without a class."""
    from matplotlib import pyplot as plt

    mixtures = [method for method in values if "mixture" in method]
    gains = (values[HIDDEN] - values[ALONE]).sort_values()
    others = (values[mixtures].max(axis=1) - values[ALONE])[gains.index].clip(lower=-1.0)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7.2, 1.0 + 0.19 * len(gains)))
        places = range(len(gains))
        ax.barh(places, gains, color=COLOURS[0], height=0.7, linewidth=0, label=HIDDEN)
        ax.plot(others, places, "o", color=COLOURS[1], markersize=4, label="best of the mixtures")
        ax.set_yticks(places, gains.index)
        ax.axvline(0.0, color="#22262b", linewidth=0.8)
        ax.set_xlabel("nats for every number in the table, minus the network without a class (at least −1)")
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncol=2)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.margins(y=0.01)
        figure.tight_layout()
    save(figure, path)
