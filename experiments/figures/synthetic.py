"""The synthetic network: Table 1 with its spread over splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.drawing import COLOURS, STYLE, save
from experiments.page import place, signed, spread, table
from experiments.sources import published

KEY = ["rows", "algorithm", "model", "patience"]
DISTANCES = ["hmd", "shd", "thmd"]
VARIANTS = [("SPBN-LG", 0), ("SPBN-LG", 5), ("SPBN-CKDE", 0), ("SPBN-CKDE", 5)]


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the table and the figure."""
    paper = published("table1").set_index(["rows", "algorithm"])
    (out / "synthetic-table1.md").write_text(spread_table(results, paper), "utf-8")
    draw_spread(results, paper, out / "synthetic-spread.svg")


def spread_table(results: pd.DataFrame, paper: pd.DataFrame) -> str:
    """Return mean and range over the splits, and the published run."""
    rows = []
    for (size, algorithm, model, patience), group in results.groupby(KEY):
        printed = paper.loc[(size, algorithm)]
        loglik = group["loglik"]
        low, high = loglik.min(), loglik.max()
        rows.append(
            [
                f"{size:,}",
                algorithm,
                f"{model.removeprefix('SPBN-')}, {patience}",
                spread(loglik),
                signed(low),
                signed(high),
                signed(printed["loglik"]),
                place(printed["loglik"], low, high),
                *(f"{group[name].mean():.2f} ({printed[name]:.0f})" for name in DISTANCES),
                f"{(group['shd'] == 0).sum()}, {((group['shd'] == 0) & (group['thmd'] == 0)).sum()}",
            ]
        )
    header = ["rows", "algorithm", "start, patience", "log-likelihood", "lowest", "highest"]
    header += ["paper", "paper is", "HMD", "SHD", "THMD", "true"]
    return table(header, rows, left=3)


def draw_spread(results: pd.DataFrame, paper: pd.DataFrame, path: Path) -> None:
    """Draw the log-likelihood of every split, and the published one as a line."""
    from matplotlib import pyplot as plt

    sizes = sorted(results["rows"].unique())
    rng = np.random.default_rng(0)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(sizes), figsize=(3.2 * len(sizes), 3.2), layout="constrained", squeeze=False
        )
        for ax, size in zip(axes[0], sizes, strict=True):
            names = [name for rows, name in paper.index if rows == size]
            for k, name in enumerate(names):
                for v, (model, patience) in enumerate(VARIANTS):
                    chosen = results.query(
                        "rows == @size and algorithm == @name and model == @model and patience == @patience"
                    )
                    at = k + 0.2 * (v - 1.5) + rng.uniform(-0.05, 0.05, len(chosen))
                    label = f"start {model.removeprefix('SPBN-')}, patience {patience}" if k == 0 else None
                    dots = {"color": COLOURS[v], "markersize": 2.5, "alpha": 0.7, "rasterized": True}
                    ax.plot(at, chosen["loglik"], "o", label=label, **dots)
                ax.hlines(
                    paper.loc[(size, name), "loglik"],
                    k - 0.45,
                    k + 0.45,
                    color="black",
                    linewidth=1.2,
                    label="paper" if k == 0 else None,
                )
            ax.set_xticks(range(len(names)), names)
            ax.set_title(f"{size:,} rows", fontsize=9)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].set_ylabel("test log-likelihood")
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(), ncols=5, loc="outside lower center", frameon=False
        )
    save(figure, path)
