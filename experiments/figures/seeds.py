"""Seeds: what the prototype reached on a fold, and what this library reaches with several seeds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.page import signed, table
from experiments.seeds import PROTOTYPE


def draw(results: pd.DataFrame, out: Path) -> None:
    """Write a line for every fold."""
    (out / "densities-seeds.md").write_text(_table(spreads(results)), "utf-8")


def spreads(results: pd.DataFrame) -> pd.DataFrame:
    """Return the prototype's value of every fold, and ours: with seed 0, and over all seeds."""
    values = results.assign(value=results["loglik"] / (results["rows"] * results["nodes"]))
    rows = [
        {
            "data": name,
            "fold": fold,
            "prototype": PROTOTYPE[name][fold],
            "seed 0": part.loc[part["seed"] == 0, "value"].item(),
            "lowest": part["value"].min(),
            "median": part["value"].median(),
            "highest": part["value"].max(),
        }
        for (name, fold), part in values.groupby(["data", "fold"])
    ]
    return pd.DataFrame(rows)


def _table(found: pd.DataFrame) -> str:
    rows = [
        [row["data"], row["fold"], *(signed(row[name], 3) for name in found.columns[2:])]
        for _, row in found.iterrows()
    ]
    return table(["table", *found.columns[1:]], rows)
