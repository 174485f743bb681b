"""UCI data: log-likelihoods compared with the published ones, ranks, and how many nodes are CKDEs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.figures.drawing import COLOURS, STYLE, grouped_bars, save, save_critical_difference
from experiments.page import change, place, signed, spread, table
from experiments.procedures import Procedure
from experiments.sources import published_uci
from experiments.statistics import friedman, mean_ranks

KEY = ["algorithm", "model", "patience"]
NEAR = 0.05
#: The three models by hill climbing, with the settings that the paper compares.
CLIMBING = {
    "KDEBN": Procedure("HC", "KDEBN", 5),
    "SPBN": Procedure("HC", "SPBN-CKDE", 5),
    "GBN": Procedure("HC-BIC", "GBN"),
}
#: The procedures that the paper ranks.
RANKED = {
    "SPBN HC": Procedure("HC", "SPBN-CKDE", 5),
    "KDEBN HC": Procedure("HC", "KDEBN", 5),
    "GBN BIC": Procedure("HC-BIC", "GBN"),
    "GBN BGe": Procedure("HC-BGe", "GBN"),
    "SPBN PC-PLC": Procedure("PC-PLC", "SPBN-CKDE", 5),
    "SPBN PC-RCoT": Procedure("PC-RCoT", "SPBN-CKDE", 5),
    "KDEBN PC-PLC": Procedure("PC-PLC", "KDEBN"),
    "KDEBN PC-RCoT": Procedure("PC-RCoT", "KDEBN"),
    "GBN PC-PLC": Procedure("PC-PLC", "GBN"),
    "GBN PC-RCoT": Procedure("PC-RCoT", "GBN"),
}
SHARES = {"HC": "SPBN HC", "PC-PLC": "SPBN PC-PLC", "PC-RCoT": "SPBN PC-RCoT"}


def draw(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write all tables and figures."""
    every, results = results, results[results["split"] == 0]
    ours = totals(results)
    published = published_uci(data).reindex(ours.index)[ours.columns]
    folds = results.drop_duplicates(["data", "fold"]).groupby("data")
    values = folds.agg(rows=("rows", "sum"), nodes=("nodes", "first"))
    difference = ours.sub(published).div(values["rows"] * values["nodes"], axis=0)
    (out / "uci-climbing.md").write_text(climbing_table(ours, published, difference, values), "utf-8")
    (out / "uci-procedures.md").write_text(procedure_table(difference), "utf-8")
    (out / "uci-ranks.md").write_text(rank_table(ours, published), "utf-8")
    (out / "uci-splits.md").write_text(split_table(every, published, values), "utf-8")
    ranked = _chosen(ours, RANKED)
    if len(ranked) > 1:
        save_critical_difference(ranked, out / "uci-ranks.svg")
    draw_shares(results, out / "uci-ckde.svg")


def totals(results: pd.DataFrame) -> pd.DataFrame:
    """Return the log-likelihood over all folds: one row per data set, one column per procedure.

    A procedure that lacks a fold of a data set is NaN there.
    """
    folds = results["fold"].nunique()
    wide = results.pivot_table(
        index="data", columns=KEY, values="loglik", aggfunc=lambda x: x.sum() if len(x) == folds else math.nan
    )
    wide.columns = pd.Index([Procedure(a, m, int(p)) for a, m, p in wide.columns])
    return wide.sort_index(key=lambda names: names.str.lower())


def climbing_table(
    ours: pd.DataFrame, published: pd.DataFrame, difference: pd.DataFrame, values: pd.DataFrame
) -> str:
    """Return every data set with the three models by hill climbing."""
    header = ["data set", "rows × variables"]
    header += [f"{model} {what}" for model in CLIMBING for what in ("here", "paper", "Δ")]
    rows = []
    for name in ours.index:
        row = [name, f"{values.rows[name]:,} × {values.nodes[name]}"]
        for procedure in CLIMBING.values():
            here, there, delta = (frame.loc[name, procedure] for frame in (ours, published, difference))
            row += [_number(here), _number(there), _marked(delta)]
        rows.append(row)
    return table(header, rows, left=1)


def procedure_table(difference: pd.DataFrame) -> str:
    """Return for every procedure how many data sets are near the published value or better."""
    rows = []
    for procedure in difference.columns:
        delta = difference[procedure].dropna()
        rows.append(
            [
                procedure.algorithm,
                procedure.model,
                procedure.patience,
                f"{(delta >= -NEAR).sum()} of {len(delta)}",
                (delta > 0).sum(),
                change(delta.median(), 3),
                f"{change(delta.min(), 3)} ({delta.idxmin()})",
                f"{change(delta.max(), 3)} ({delta.idxmax()})",
            ]
        )
    header = [
        "algorithm",
        "model",
        "patience",
        "near or better",
        "better",
        "median Δ",
        "lowest Δ",
        "highest Δ",
    ]
    return table(header, rows, left=2)


def split_table(results: pd.DataFrame, published: pd.DataFrame, values: pd.DataFrame) -> str:
    """Return how much the inner split changes the log-likelihood, and the published value."""
    rows = []
    for name, group in results.groupby("data"):
        if group["split"].max() == 0:
            continue
        logliks = group.groupby([*KEY, "split"])["loglik"]
        sums = logliks.sum()[logliks.count() == group["fold"].nunique()]
        scale = values.rows[name] * values.nodes[name]
        for key, found in sums.groupby(level=KEY):
            if len(found) == 1:
                continue
            procedure = Procedure(*key)
            printed = published.loc[name, procedure]
            rows.append(
                [
                    name,
                    procedure.algorithm,
                    procedure.model,
                    procedure.patience,
                    len(found),
                    spread(found, 1),
                    signed(found.min(), 1),
                    signed(found.max(), 1),
                    signed(printed, 1),
                    place(printed, found.min(), found.max()),
                    f"{(found.max() - found.min()) / scale:.3f}",
                ]
            )
    header = ["data set", "algorithm", "model", "patience", "splits", "log-likelihood", "lowest", "highest"]
    return table([*header, "paper", "paper is", "range per row and variable"], rows, left=3)


def rank_table(ours: pd.DataFrame, published: pd.DataFrame) -> str:
    """Return our mean ranks and the published ones, and the Friedman tests."""
    here = _chosen(ours, RANKED)
    there = _chosen(published.loc[here.index], RANKED)
    ranks, theirs = mean_ranks(here), mean_ranks(there)
    order = sorted(ranks, key=ranks.__getitem__)
    text = table(
        ["procedure", "mean rank here", "mean rank of the published values"],
        [[name, f"{ranks[name]:.2f}", f"{theirs[name]:.2f}"] for name in order],
    )
    if len(here) < 2:
        return text
    tests = [friedman(here), friedman(there)]
    return (
        f"{text}\nFriedman's test over {len(here)} data sets: "
        f"χ² = {tests[0].chi_square:.1f}, p = {tests[0].pvalue:.1e} here; "
        f"χ² = {tests[1].chi_square:.1f}, p = {tests[1].pvalue:.1e} with the published values.\n"
    )


def draw_shares(results: pd.DataFrame, path: Path) -> None:
    """Draw the share of CKDE nodes of every data set."""
    from matplotlib import pyplot as plt

    share = (results["ckde"] / results["nodes"]).groupby([results["data"], *(results[k] for k in KEY)]).mean()
    names = sorted(results["data"].unique(), key=str.lower)
    bars: dict[str, Sequence[float]] = {}
    for label, ranked in SHARES.items():
        procedure = RANKED[ranked]
        key = (procedure.algorithm, procedure.model, procedure.patience)
        bars[label] = [share.get((name, *key), float("nan")) for name in names]
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(9.0, 3.2), layout="constrained")
        grouped_bars(ax, names, bars, colours=dict(zip(bars, COLOURS, strict=False)))
        ax.tick_params(axis="x", rotation=90)
        ax.set_ylabel("share of CKDE nodes")
        ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
    save(figure, path)


def _chosen(frame: pd.DataFrame, procedures: dict[str, Procedure]) -> pd.DataFrame:
    chosen = frame[list(procedures.values())].dropna()
    return chosen.set_axis(list(procedures), axis=1)


def _number(value: float) -> str:
    return "" if pd.isna(value) else signed(value, 1)


def _marked(delta: float) -> str:
    """Write a difference, in bold if it is far below the published value."""
    if pd.isna(delta):
        return ""
    return f"**{change(delta, 3)}**" if delta < -NEAR else change(delta, 3)
