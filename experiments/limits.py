"""PC with RCoT where large conditions would take too long: what it finds with smaller ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd

from experiments import gaussian
from experiments.procedures import Procedure, Workbench, fit
from experiments.sources import gaussian_test, gaussian_train, outer_folds, uci_table

#: The data on which conditions are limited, and the largest limit tried. For UCI data, the first fold.
CASES = {"Sensor_reading": 4, "Spambase": 3, "ARTH150": 4}
ROWS = max(gaussian.SIZES)
QUICK = {"Iris": 1}


@dataclass(frozen=True)
class Cell:
    """A model on the graph of PC with a maximum number of variables in a condition."""

    data: str
    limit: int
    model: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, small conditions first."""
    cases = QUICK if quick else CASES
    everything = [
        Cell(name, limit, model)
        for name, largest in cases.items()
        for limit in range(largest + 1)
        for model in ("GBN", "KDEBN")
        if model == "GBN" or name not in gaussian.NODES
    ]
    return sorted(everything, key=lambda cell: cell.limit)


def batch(cell: Cell) -> tuple[str, int]:
    """Models share the graph."""
    return cell.data, cell.limit


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn the graph from the training rows, and evaluate the model on the test rows."""
    bench, test = _workbench(data, cell.data, cell.limit)
    network, dropped = fit(bench.structure(Procedure("PC-RCoT", cell.model)), bench.data)
    return {
        "loglik": network.loglik(test),
        "rows": len(test),
        "nodes": len(network.structure.nodes),
        "arcs": len(network.structure.arcs),
        "dropped_arcs": dropped,
    }


@lru_cache(maxsize=1)
def _workbench(data: Path, name: str, limit: int) -> tuple[Workbench, pd.DataFrame]:
    if name in gaussian.NODES:
        train, test = gaussian_train(data, name, ROWS), gaussian_test(data, name)
    else:
        frame = uci_table(data, name)
        train, test = (frame.iloc[rows] for rows in outer_folds(len(frame))[0])
    return Workbench(train, largest_condition=limit), test


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the table."""
    from experiments.figures.limits import limits_table

    (out / "limits.md").write_text(limits_table(results), "utf-8")
