"""How long learning takes: seconds against rows, and both libraries side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.figures.drawing import STYLE, save
from experiments.models import MODELS
from experiments.page import table
from experiments.times import LIMIT, OURS, PROCEDURES, ROWS, THEIRS, VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "GBN, BIC": "#7a8088",
    "GBN, BGe": "#b9a06a",
    "GBN, patience 0": "#d68910",
    "KDEBN, patience 0": "#8e44ad",
    "SPBN-LG, patience 0": "#1f6fb2",
    "SPBN-CKDE, patience 0": "#c0392b",
    "PC-PLC, graph": "#22262b",
    "PC-RCoT, graph": "#2e8b57",
    "node types": "#17a2b8",
}
STYLES = {OURS: "-", THEIRS: "--"}


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the figure, a table for each number of variables, and the equations."""
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        save(draw_times(results), out / "times.svg")
    for variables, model in MODELS.items():
        (out / f"times-{variables}.md").write_text(ratio_table(results, variables), encoding="utf-8")
        (out / f"models-{variables}.md").write_text(model.markdown(), encoding="utf-8")


def draw_times(results: pd.DataFrame) -> Figure:
    """Draw one panel for each number of variables; ours solid, PyBNesian dashed."""
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    figure, axes = plt.subplots(1, len(VARIABLES), figsize=(10, 4.6), sharey=True, layout="constrained")
    measured = results[results["status"] == "measured"]
    for ax, variables in zip(axes, VARIABLES, strict=True):
        for (library, name), line in measured[measured["variables"] == variables].groupby(
            ["library", "procedure"]
        ):
            if name in COLOURS:
                line = line.sort_values("rows")
                style = {"color": COLOURS[name], "linestyle": STYLES[library], "markersize": 2.5}
                ax.plot(line["rows"], line["learning"], marker="o", linewidth=1.1, **style)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(ROWS, [f"{rows:,}" for rows in ROWS], fontsize=8)
        ax.minorticks_off()
        ax.set_title(f"{variables} variables", fontsize=10)
        ax.set_xlabel("rows")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds")
    handles = [Line2D([], [], color=colour, label=name) for name, colour in COLOURS.items()]
    handles += [Line2D([], [], color="#22262b", linestyle=s, label=library) for library, s in STYLES.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def ratio_table(results: pd.DataFrame, variables: int) -> str:
    """Return our seconds, and how many times as long PyBNesian takes; in brackets if only predicted."""
    chosen = results[results["variables"] == variables].set_index(["library", "procedure", "rows"])

    def entry(procedure: str, rows: int) -> str:
        if (OURS, procedure, rows) not in chosen.index:
            return ""
        ours = float(chosen.loc[(OURS, procedure, rows), "learning"])
        if (THEIRS, procedure, rows) not in chosen.index:
            return f"{ours:.3g} s"
        theirs = chosen.loc[(THEIRS, procedure, rows)]
        if theirs["status"] == "measured":
            return f"{ours:.3g} s, {_digits(float(theirs['learning']) / ours)}×"
        bound = f"> {_digits(LIMIT / ours)}×"
        return f"{ours:.3g} s, {bound}" if theirs["status"] == "stopped" else f"{ours:.3g} s, ({bound})"

    lines = [(name, *(entry(name, rows) for rows in ROWS)) for name in PROCEDURES]
    return table(["procedure", *(f"{rows:,} rows" for rows in ROWS)], lines)


def _digits(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
