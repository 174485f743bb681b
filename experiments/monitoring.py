"""Bearings watched from young to worn out: when alarms are raised, how many before, and what is blamed.

Each bearing is watched by a monitor of its own. A network is learned from the first fifth of the bearing's
life, the next tenth is the reference, and everything after that is watched row by row. No label and no other
bearing is used, and the paper's conditions play no role.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from experiments.bearings import read
from spbn.monitoring.monitor import Monitor, MonitorResult

BEARINGS = tuple(f"Bearing1_{k}" for k in range(1, 8))
NETWORKS = ("static", "dynamic")
LEARNED, REFERENCE = 0.2, 0.1  # of a bearing's life
ROWS_A_STEP = 30  # five minutes
ALARM, DRIFT = 0.001, 1e-5


@dataclass(frozen=True)
class Cell:
    """Five minutes in the life of a bearing, under one kind of network."""

    bearing: str
    network: str
    step: int


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return the bearings, from beginning to end."""
    bearings = ("Bearing1_2",) if quick else BEARINGS
    return [
        Cell(bearing, network, step)
        for bearing in bearings
        for network in NETWORKS
        for step in range(-(-len(read(data, bearing)) // ROWS_A_STEP))
    ]


def batch(cell: Cell) -> tuple[str, str]:
    """The steps of a bearing share its monitor."""
    return cell.bearing, cell.network


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Say what the monitor found in a step; nothing in those that it was made from."""
    life = _life(data, cell.bearing, cell.network)
    step = life.iloc[cell.step * ROWS_A_STEP : (cell.step + 1) * ROWS_A_STEP]
    watched = step[step["watched"]]
    return {
        "rows": len(step),
        "watched": len(watched),
        "share": float(watched["p_value"].median()) if len(watched) else np.nan,
        "alarms": int(watched["alarm"].sum()),
        "drift_alarms": int(watched["drift_alarm"].sum()),
        "blame": most_blamed(watched["blame"]),
        "drift_blame": most_blamed(watched["drift_blame"]),
    }


def most_blamed(blame: pd.Series) -> str:
    """Return the frequency that is most often the first to be blamed, whatever the harmonic."""
    firsts = Counter(text.split(", ")[0].split("_")[0] for text in blame if text)
    return firsts.most_common(1)[0][0] if firsts else ""


def watch(rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """Learn from the first rows of a bearing, compare with the next, and watch all others."""
    learned, compared = round(LEARNED * len(rows)), round((LEARNED + REFERENCE) * len(rows))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="alarm=.* is far less than one of")  # a short life
        monitor = MONITORS[network](rows[:learned], rows[learned:compared])
    found = as_frame(monitor.check(monitor.read(rows[compared:])))
    return found.set_axis(rows.index[compared:]).reindex(rows.index)


def as_frame(result: MonitorResult) -> pd.DataFrame:
    """Return what a monitor said, with the first variable that is blamed."""
    rows = range(len(result.p_values))
    return pd.DataFrame(
        {
            "p_value": result.p_values,
            "alarm": result.alarms,
            "blame": [next((r.node for r in result.reasons.get(k, ())), "") for k in rows],
            "drift_alarm": [k in result.drifts for k in rows],
            "drift_blame": [result.drifts[k].blame[0] if k in result.drifts else "" for k in rows],
            "watched": True,
        }
    )


def static(rows: pd.DataFrame, reference: pd.DataFrame) -> Monitor:
    """Watch with a network of single rows."""
    return Monitor(spbn.learn(rows, model="spbn", seed=0), reference, alarm=ALARM, drift=DRIFT)


def dynamic(rows: pd.DataFrame, reference: pd.DataFrame) -> Monitor:
    """Watch with a network that knows the row before."""
    return Monitor(
        spbn.learn_dynamic(rows, model="spbn", lags=1, seed=0), reference, alarm=ALARM, drift=DRIFT
    )


MONITORS = {"static": static, "dynamic": dynamic}


@cache
def _life(data: Path, bearing: str, network: str) -> pd.DataFrame:
    """Return what a monitor says about every row of a bearing."""
    found = watch(read(data, bearing), network)
    return found.assign(
        watched=found["watched"].eq(True),
        alarm=found["alarm"].eq(True),
        drift_alarm=found["drift_alarm"].eq(True),
        blame=found["blame"].fillna(""),
        drift_blame=found["drift_blame"].fillna(""),
    )


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the table and draw the lives of the bearings."""
    from experiments.figures.monitoring import draw

    draw(results, out)
