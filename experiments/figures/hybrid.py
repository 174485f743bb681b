"""Mixed tables: log-likelihood of test rows by every method, ranks, and times."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.figures.drawing import save_critical_difference
from experiments.hybrid import LIMIT, MODELS, PEER, folds_of
from experiments.page import signed, table
from experiments.statistics import mean_ranks

FEWEST_TABLES = 3  # for a diagram of ranks


def draw(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the table of likelihoods with ranks, that of times, and a diagram of ranks."""
    values = per_row(results)
    (out / "hybrid-likelihoods.md").write_text(_likelihoods(values, results), "utf-8")
    (out / "hybrid-times.md").write_text(_times(values, results), "utf-8")
    if len(values) >= FEWEST_TABLES:
        save_critical_difference(values, out / "hybrid.svg")


def per_row(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over all test rows; of our models, on tables on which all folds of all have run."""
    ours = results[results["method"].isin(MODELS)]
    by_table = {"index": "data", "columns": "method"}
    found = ours.pivot_table(["loglik", "rows"], **by_table, aggfunc="sum")
    done = ours.pivot_table("fold", **by_table, aggfunc="count").reindex(columns=list(MODELS))
    quick = results["fold"].max() == 0
    wanted = pd.Series({name: 1 if quick else folds_of(name) for name in done.index})
    return (found["loglik"] / found["rows"])[list(MODELS)][done.eq(wanted, axis=0).all(axis=1)]


def _likelihoods(values: pd.DataFrame, results: pd.DataFrame) -> str:
    rows = []
    for name, found in values.iterrows():
        mine = results[results["data"] == name]
        sizes = mine[mine["method"].isin(MODELS)].groupby("fold")["rows"].first()
        cells = [f"**{signed(v)}**" if v == found.max() else signed(v) for v in found]
        rows.append([name, f"{sizes.sum():,.0f}", *cells, *_peer(mine)])
    ranks = mean_ranks(values)
    rows.append(["*mean rank*", "", *(f"{ranks[method]:.2f}" for method in values.columns), "", ""])
    return table(["table", "test rows", *values.columns, PEER, "rows it cannot score"], rows)


def _peer(results: pd.DataFrame) -> list[str]:
    """Return PyBNesian's mean over the rows that it can score, and how many it cannot."""
    mine = results[results["method"] == PEER]
    if mine.empty:
        return ["", ""]
    good = mine[mine["status"] == "measured"]
    if good.empty:
        return [_in_words(str(mine.sort_values("fold")["status"].iloc[0])), ""]
    scored = good["rows"].sum() - good["unscored"].sum()
    mean = signed(good["loglik"].sum() / scored)
    return [mean, f"{good['unscored'].sum():,.0f} of {good['rows'].sum():,.0f}"]


def _in_words(status: str) -> str:
    return f"more than {LIMIT / 60:.0f} min" if status == "stopped" else status.partition(":")[0]


def _times(values: pd.DataFrame, results: pd.DataFrame) -> str:
    """Return the median seconds of a fold, of all cores together."""
    methods = [*MODELS, PEER]
    measured = results[results["status"] == "measured"]
    seconds = measured.pivot_table("learning", index="data", columns="method", aggfunc="median")
    seconds = seconds.reindex(index=values.index, columns=methods)
    return table(
        ["table", *methods],
        [[name, *("" if pd.isna(v) else f"{v:,.2f}" for v in row)] for name, row in seconds.iterrows()],
    )
