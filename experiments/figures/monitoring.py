"""Bearings that are watched: their lives, with alarms and what is blamed, and when it was noticed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.bearings import FREQUENCIES, SECONDS_A_ROW
from experiments.figures.drawing import COLOURS, STYLE, save
from experiments.monitoring import BEARINGS, NETWORKS, ROWS_A_STEP
from experiments.page import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A bearing is reported when so many of 30 rows raise an alarm: by chance that does not happen in a lifetime.
SUSTAINED = 5
HOURS_A_STEP = ROWS_A_STEP * SECONDS_A_ROW / 3600.0
COLOUR_OF = dict(zip(FREQUENCIES, COLOURS, strict=False))


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write the figure and the table."""
    from matplotlib import pyplot as plt

    results = results.fillna({"blame": "", "drift_blame": ""})
    with plt.rc_context(STYLE):
        save(draw_lives(results), out / "lives.svg")
    (out / "monitoring-alarms.md").write_text(alarm_table(results), encoding="utf-8")


def life_of(results: pd.DataFrame, bearing: str, network: str) -> pd.DataFrame:
    """Return the steps of a bearing under one kind of network."""
    chosen = results[(results["bearing"] == bearing) & (results["network"] == network)]
    return chosen.sort_values("step").reset_index(drop=True)


def reported(life: pd.DataFrame) -> int | None:
    """Return the first step in which the alarms are too many for chance; None if there is none."""
    steps = np.flatnonzero(life["alarms"] >= SUSTAINED)
    return int(steps[0]) if len(steps) else None


def summary(life: pd.DataFrame) -> dict[str, float | str]:
    """Say when a bearing was reported, what came before, and what was blamed from then on."""
    step = reported(life)
    end = len(life) if step is None else step
    before = life[:end]
    after = life[end:]
    drifts = np.flatnonzero(life["drift_alarms"] > 0)
    blame = after.loc[after["alarms"] > 0, "blame"].value_counts()
    return {
        "hours": len(life) * HOURS_A_STEP,
        "watched": int(before["watched"].sum()),
        "false": int(before["alarms"].sum()),
        "reported": np.nan if step is None else step * HOURS_A_STEP,
        "drift": float(drifts[0] * HOURS_A_STEP) if len(drifts) else np.nan,
        "blame": f"{blame.index[0]} ({blame.iloc[0] / blame.sum():.0%})" if len(blame) else "–",
    }


def draw_lives(results: pd.DataFrame) -> Figure:
    """Draw the share of alarms in every step of every bearing, in the colour of the frequency to blame."""
    from matplotlib import pyplot as plt

    bearings = [bearing for bearing in BEARINGS if bearing in set(results["bearing"])]
    networks = [network for network in NETWORKS if network in set(results["network"])]
    figure, axes = plt.subplots(
        len(bearings),
        len(networks),
        figsize=(7.5, 1.0 + 0.95 * len(bearings)),
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    for row, bearing in zip(axes, bearings, strict=True):
        for ax, network in zip(row, networks, strict=True):
            life = life_of(results, bearing, network)
            hours = life["step"] * HOURS_A_STEP
            unwatched = hours[life["watched"] == 0].max()
            ax.axvspan(0.0, unwatched + HOURS_A_STEP, color="#eceef1", linewidth=0)
            share = life["alarms"] / life["watched"].clip(lower=1)
            for frequency, colour in COLOUR_OF.items():
                mine = (life["blame"] == frequency) & (life["alarms"] > 0)
                ax.bar(hours[mine], share[mine], HOURS_A_STEP, align="edge", color=colour, linewidth=0)
            drifts = hours[life["drift_alarms"] > 0] + 0.5 * HOURS_A_STEP
            ax.plot(drifts, np.full(len(drifts), 1.12), "|", color="#22262b", markersize=4)
            step = reported(life)
            if step is not None:
                ax.axvline(step * HOURS_A_STEP, color="#22262b", linewidth=0.8, linestyle="--")
            ax.axvline(len(life) * HOURS_A_STEP, color="#c0392b", linewidth=1.2)
            ax.set_ylim(0.0, 1.25)
            ax.set_yticks([0.0, 1.0], ["0", "1"])
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_title(f"{bearing}, {network} network", fontsize=8, loc="left", pad=2)
    for ax in axes[-1]:
        ax.set_xlabel("hours since the bearing was new")
    bars = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOUR_OF.values()]
    figure.legend(
        bars, list(COLOUR_OF), loc="outside upper right", ncols=len(bars), frameon=False, fontsize=8
    )
    figure.supylabel("share of rows with an alarm", fontsize=9)
    return figure


def alarm_table(results: pd.DataFrame) -> str:
    """Return when every bearing was reported, and what came before."""
    rows = []
    for bearing in BEARINGS:
        for network in NETWORKS:
            life = life_of(results, bearing, network)
            if not len(life):
                continue
            found = summary(life)
            rows.append(
                [
                    bearing,
                    network,
                    f"{found['hours']:.1f} h",
                    _hours(found["drift"]),
                    _hours(found["reported"]),
                    f"{found['false']} of {found['watched']:,}",
                    found["blame"],
                ]
            )
    heads = [
        "bearing",
        "network",
        "life",
        "first drift alarm",
        "reported after",
        "single alarms before",
        "blamed",
    ]
    return table(heads, rows, left=2)


def _hours(value: float | str) -> str:
    return "never" if isinstance(value, float) and np.isnan(value) else f"{value:.1f} h"
