"""How bearings wear out: conditions over time, the frequency that gives a fault away, a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import spbn
from experiments.bearings import (
    CONDITIONS,
    FAULTY,
    FREQUENCIES,
    REFERENCE,
    ROWS_A_STEP,
    SECONDS_A_ROW,
    WORN,
)
from experiments.figures.drawing import COLOURS, STYLE, save
from experiments.page import table
from spbn.nodes.base import NodeType

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's curves are means of 30 rows.
STEPS_OF_MEAN = 10
STEPS_OF_END = 26


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the figures and tables."""
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        save(draw_conditions(results), out / "bearings-condition.svg")
        save(draw_fault(results), out / "bearings-fault.svg")
        save(draw_network(results, "good"), out / "bearings-network.svg")
    (out / "bearings-networks.md").write_text(network_table(results), encoding="utf-8")
    (out / "bearings-fall.md").write_text(fall_table(results), encoding="utf-8")


def life(results: pd.DataFrame, bearing: str) -> pd.DataFrame:
    """Return the results of one bearing, by seconds since it was new."""
    steps = results[results["subject"] == bearing].sort_values("step")
    return steps.set_index(SECONDS_A_ROW * ROWS_A_STEP * steps["step"]).drop(columns=["subject", "step"])


def smooth(steps: pd.DataFrame | pd.Series) -> Any:
    """Return means over the five minutes up to a step."""
    return steps.rolling(STEPS_OF_MEAN, min_periods=1).mean()


def structure_of(results: pd.DataFrame, name: str) -> spbn.Structure:
    """Return the structure of the network of a condition."""
    (row,) = results[results["subject"] == name].itertuples()
    arcs = [tuple(arc.split(">")) for arc in str(row.arcs).split()]
    nodes = [f"{f}_{k}" if k else f for k in range(7) for f in FREQUENCIES]
    ckde = set(str(row.ckde).split())
    return spbn.Structure(nodes, arcs, {node: "ckde" if node in ckde else "lg" for node in nodes})


def draw_conditions(results: pd.DataFrame) -> Figure:
    """Draw the segmentation of the reference, and the condition of a bearing that wears out."""
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2, figsize=(7.5, 4.6), layout="constrained", height_ratios=(2, 3))
    reference, worn = life(results, REFERENCE), life(results, WORN)
    above.plot(reference.index, reference["segment"].round(), ".", color="#22262b", markersize=2)
    above.set_title(f"{REFERENCE}: states of the hidden Markov model", fontsize=10, loc="left")
    below.plot(worn.index, smooth(worn["condition"]), color=COLOURS[0], linewidth=1.2)
    below.set_title(f"{WORN}: the most likely network, mean of five minutes", fontsize=10, loc="left")
    for ax in (above, below):
        ax.set_yticks(range(len(CONDITIONS)), CONDITIONS)
        ax.set_ylim(-0.15, 2.15)
        ax.spines[["top", "right"]].set_visible(False)
    below.set_xlabel("seconds")
    return figure


def draw_fault(results: pd.DataFrame) -> Figure:
    """Draw the end of the faulty bearing: log-likelihood under the network of good rows, by frequency."""
    from matplotlib import pyplot as plt

    from spbn.plots import plot_contributions

    end = smooth(life(results, FAULTY)[list(FREQUENCIES)]).iloc[-STEPS_OF_END:]
    figure, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    plot_contributions(end, ax, nodes=["BPFI", "BPFO", "BSF", "FTF", "W"])
    ax.set_title(f"{FAULTY}: log-likelihood of a good bearing, mean of five minutes", fontsize=10, loc="left")
    ax.set_xlabel("seconds", loc="right")
    return figure


def draw_network(results: pd.DataFrame, name: str) -> Figure:
    """Draw the graph of the network of a condition."""
    from spbn.plots import plot_structure

    return plot_structure(structure_of(results, name)).figure


def network_table(results: pd.DataFrame) -> str:
    """Return the size of every network."""
    rows = []
    for name in CONDITIONS:
        structure = structure_of(results, name)
        (row,) = results[results["subject"] == name].itertuples()
        types = list(structure.types.values())
        rows.append((name, f"{int(row.rows):,}", len(structure.arcs), types.count(NodeType.CKDE)))
    return table(["network", "rows", "arcs", "CKDE nodes"], rows)


def fall_table(results: pd.DataFrame) -> str:
    """Return how far every frequency falls below what it was in the first half of the bearing's life."""
    steps = life(results, FAULTY)[list(FREQUENCIES)]
    before = steps.iloc[: len(steps) // 2].mean()
    falls = before - smooth(steps).loc[smooth(steps).sum(axis=1).idxmin()]
    rows = [
        (frequency, f"{before[frequency]:.1f}", f"{fall:,.0f}", f"{fall / falls.sum():.0%}")
        for frequency, fall in falls.sort_values(ascending=False).items()
    ]
    return table(["frequency", "log-likelihood before", "fall", "share of the fall"], rows)
