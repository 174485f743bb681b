"""The structure after every step of a search, and its three scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import spbn
from experiments.figures.drawing import STYLE, save
from experiments.page import signed
from spbn.plots import plot_structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NODES = "ABCDE"
COLUMNS = 4


def draw(results: pd.DataFrame, out: Path) -> None:
    """Draw one graph per step; cells beyond the end of the search repeat its last step, and are left out."""
    from matplotlib import pyplot as plt

    steps = results[results["step"] == results["taken"]].sort_values("step")
    lines = -(-len(steps) // COLUMNS)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            lines, COLUMNS, figsize=(2.3 * COLUMNS, 3.0 * lines), layout="constrained", squeeze=False
        )
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, step in zip(axes.flat, steps.itertuples(), strict=False):
            plot_structure(_structure(step), ax)
            name = "start" if step.step == 0 else f"{step.step}. {step.operator}"
            refused = "" if step.accepted else " (refused)"
            ax.set_title(
                f"{name}{refused}\ncross-validation {signed(step.train, 1)}\n"
                f"validation {signed(step.validation, 1)}\ntest {signed(step.test, 1)}",
                fontsize=8,
            )
        _same_scale(list(axes.flat[: len(steps)]))
    save(figure, out / "progress.svg")


def _same_scale(axes: list[Axes]) -> None:
    """Give all graphs room for the largest, so that nodes have the same size."""
    width = max(abs(ax.get_xlim()[1] - ax.get_xlim()[0]) for ax in axes)
    height = max(abs(ax.get_ylim()[1] - ax.get_ylim()[0]) for ax in axes)
    for ax in axes:
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        ax.set_xlim((left + right - width) / 2, (left + right + width) / 2)
        ax.set_ylim(top + height if bottom > top else top - height, top)


def _structure(step: Any) -> spbn.Structure:
    arcs = [] if pd.isna(step.arcs) else [tuple(arc.split(">")) for arc in step.arcs.split()]
    kernels = set() if pd.isna(step.ckde) else set(step.ckde.split())
    return spbn.Structure(NODES, arcs, {node: "ckde" if node in kernels else "lg" for node in NODES})
