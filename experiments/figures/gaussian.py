"""Gaussian networks: log-likelihoods compared with Table 3, distances to the true network, and ranks."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from experiments.figures.drawing import COLOURS, STYLE, grouped_bars, save, save_critical_difference
from experiments.page import change, place, signed, table
from experiments.procedures import Procedure
from experiments.sources import published

MODELS = ("SPBN-LG", "SPBN-CKDE")
NETWORKS = ("ECOLI70", "MAGIC-NIAB", "MAGIC-IRRI", "ARTH150")
#: The rows of Table 3, and what they are here.
PRINTED = {
    "GBN BIC": Procedure("HC-BIC", "GBN"),
    "GBN BGe": Procedure("HC-BGe", "GBN"),
    "HC SPBN-LG": Procedure("HC", "SPBN-LG", 5),
    "HC SPBN-CKDE": Procedure("HC", "SPBN-CKDE", 5),
    **{
        f"{pc} {model}": Procedure(pc, model, 0 if model == "GBN" else 5)
        for model in ("GBN", *MODELS)
        for pc in ("PC-PLC", "PC-RCoT")
    },
}
#: Procedures by the distance that they are drawn with: PC finds the same arcs whatever the model.
ARCS = {
    "GBN BIC": "GBN BIC",
    "GBN BGe": "GBN BGe",
    "HC SPBN-LG": "SPBN-LG HC",
    "HC SPBN-CKDE": "SPBN-CKDE HC",
    "PC-PLC GBN": "PC-PLC",
    "PC-RCoT GBN": "PC-RCoT",
}
TYPES = {f"{how} {model}": f"{model} {how}" for how in ("HC", "PC-PLC", "PC-RCoT") for model in MODELS}
ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "fontsize": 8}
PANELS = {"hmd": ARCS, "shd": ARCS, "thmd": TYPES}


def draw(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write all tables and figures."""
    paper = published("table3").set_index(["network", "rows", "algorithm"])["loglik"]
    ours = in_file_order(results)
    for network in results["network"].unique():
        name = f"gaussian-{network.lower()}.md"
        (out / name).write_text(likelihood_table(network, ours["loglik"], paper), "utf-8")
    (out / "gaussian-orders.md").write_text(order_table(results, paper), "utf-8")
    draw_distances(ours, out / "gaussian-distances.svg")
    wide = ours.pivot_table(index=["network", "rows"], columns="algorithm", values="loglik").dropna()
    if len(wide) > 1:
        save_critical_difference(wide[list(PRINTED)], out / "gaussian-ranks.svg")


def in_file_order(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results with the columns in the order of the file, by the names of Table 3."""
    names = {procedure: name for name, procedure in PRINTED.items()}
    frame = results[results["order"] == 0].copy()
    frame["algorithm"] = [
        names.get(Procedure(row.algorithm, row.model, row.patience)) for row in frame.itertuples()
    ]
    return frame.dropna(subset="algorithm").set_index(["network", "rows", "algorithm"])


def likelihood_table(network: str, ours: pd.Series, paper: pd.Series) -> str:
    """Return the log-likelihoods of one network and the published ones."""
    sizes = sorted(ours[network].index.unique("rows"))
    header = [network]
    for size in sizes:
        header += [f"{size:,} rows, here", "paper", "Δ %"]
    rows = []
    for name in PRINTED:
        row = [name]
        for size in sizes:
            key = (network, size, name)
            if key not in ours:
                row += ["", signed(paper[key]), ""]
                continue
            row += [signed(ours[key]), signed(paper[key]), _percent(ours[key], paper[key])]
        rows.append(row)
    return table(header, rows)


def order_table(results: pd.DataFrame, paper: pd.Series) -> str:
    """Return the range over orders of the columns, where the score leaves directions open."""
    rows = []
    for name in ("GBN BIC", "GBN BGe"):
        algorithm = PRINTED[name].algorithm
        chosen = results[results["algorithm"] == algorithm]
        for (network, size), group in chosen.groupby(["network", "rows"], sort=False):
            low, high = group["loglik"].min(), group["loglik"].max()
            printed = paper[(network, size, name)]
            file = group.loc[group["order"] == 0, "loglik"].iloc[0]
            rows.append(
                [
                    name,
                    network,
                    f"{size:,}",
                    signed(file),
                    signed(low),
                    signed(high),
                    f"{100 * (high - low) / abs(printed):.2f}",
                    signed(printed),
                    place(printed, low, high),
                ]
            )
    header = [
        "score",
        "network",
        "rows",
        "as in the file",
        "lowest",
        "highest",
        "range in %",
        "paper",
        "paper is",
    ]
    return table(header, rows, left=2)


def draw_distances(ours: pd.DataFrame, path: Path) -> None:
    """Draw the distances to the true network, one panel each."""
    from matplotlib import pyplot as plt

    cases = sorted({(NETWORKS.index(network), rows) for network, rows, _ in ours.index})
    names = [f"{NETWORKS[k]}\n{rows:,}" for k, rows in cases]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(3, 1, figsize=(9.0, 7.4), layout="constrained")
        for ax, (distance, labels) in zip(axes, PANELS.items(), strict=True):
            values = ours[distance].to_dict()
            bars = {
                label: [values.get((NETWORKS[k], rows, name), math.nan) for k, rows in cases]
                for name, label in labels.items()
            }
            grouped_bars(ax, names, bars, colours=dict(zip(bars, COLOURS, strict=False)))
            ax.set_ylabel(distance.upper())
            ax.tick_params(axis="x", labelsize=7)
            if distance != "shd":
                ax.legend(ncols=6, columnspacing=1.0, handlelength=1.2, **ABOVE)
    save(figure, path)


def _percent(here: float, there: float) -> str:
    """Write by how much a log-likelihood is better than another; in bold if it is more than 1 % worse."""
    percent = 100 * (here - there) / abs(there)
    return f"**{change(percent, 2)}**" if percent < -1.0 else change(percent, 2)
