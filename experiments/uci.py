"""28 data sets of the UCI repository: test log-likelihood of every procedure, by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd

from experiments.procedures import Procedure, Workbench, fit, with_patience
from experiments.sources import OUTER_FOLDS, outer_folds, uci_names, uci_table
from spbn.nodes.base import NodeType

GAUSSIAN = [Procedure("HC-BIC", "GBN"), Procedure("HC-BGe", "GBN")]
CLIMBING = with_patience("HC", ["GBN", "KDEBN", "SPBN-CKDE", "SPBN-LG"])
TESTING = [
    [Procedure(pc, "GBN"), Procedure(pc, "KDEBN"), *with_patience(pc, ["SPBN-LG", "SPBN-CKDE"])]
    for pc in ("PC-PLC", "PC-RCoT")
]
#: Procedures that share their work, each group with the cheap ones first.
GROUPS = [GAUSSIAN, CLIMBING, *TESTING]
PROCEDURES = [procedure for group in GROUPS for procedure in group]
#: Procedures that are also run with other inner splits, where rows are few or some lie far outside.
RESPLIT = [Procedure("HC", "KDEBN", 5), Procedure("HC", "SPBN-CKDE", 5)]
FEW_ROWS, OUTLIERS, SPLITS = 250, ("Block",), 10
#: Others: those that are far below the published value with the first split.
IMPATIENT = [Procedure("HC", "KDEBN", 0), Procedure("HC", "SPBN-CKDE", 0)]
FAR_BELOW = {
    "Block": IMPATIENT,
    "Breast_tissue": [*IMPATIENT, Procedure("PC-PLC", "SPBN-LG", 0), Procedure("PC-RCoT", "SPBN-LG", 0)],
    "CPU": [*IMPATIENT, Procedure("HC", "SPBN-LG", 0), *with_patience("PC-PLC", ["SPBN-LG", "SPBN-CKDE"])],
    "Ionosphere": IMPATIENT,
    "Parkinsons": [Procedure("HC", "SPBN-LG", 5)],
    "Spambase": [Procedure("HC", "SPBN-LG", 0)],
    "Wdbc": IMPATIENT,
}
#: Fewer splits where one takes minutes.
FEWER_SPLITS = {"Spambase": 3}
#: Maximum number of variables in a condition of PC with RCoT, where a fold would otherwise take too long.
LARGEST_CONDITION = {"Sensor_reading": 3, "Spambase": 2}
#: What the first algorithm of a group costs, roughly, relative to a search with the likelihood.
RELATIVE_COST = {"HC-BIC": 0.01, "PC-PLC": 0.1, "HC": 1.0, "PC-RCoT": 30.0}
QUICK = ("Iris", "Balance")


@dataclass(frozen=True)
class Cell:
    """One procedure on the training rows of one outer fold.

    `split` is the seed of the validation rows and the inner folds.
    """

    data: str
    fold: int
    algorithm: str
    model: str
    patience: int
    split: int = 0


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, the cheapest first; some data sets also with other inner splits."""
    names, folds, splits = (QUICK, 2, 2) if quick else (uci_names(data), OUTER_FOLDS, SPLITS)
    tasks = [(name, 0, group) for name in names for group in GROUPS]
    tasks += [
        (name, split, again)
        for name in names
        if (again := _run_again(data, name))
        for split in range(1, FEWER_SPLITS.get(name, splits))
    ]
    return [
        Cell(name, fold, procedure.algorithm, procedure.model, procedure.patience, split)
        for name, split, group in sorted(tasks, key=lambda task: _cost(data, task[0], task[2][0].algorithm))
        for fold in range(folds)
        for procedure in group
    ]


def _run_again(data: Path, name: str) -> list[Procedure]:
    """Return the procedures that are run with other inner splits."""
    unsteady = name in OUTLIERS or len(uci_table(data, name)) < FEW_ROWS
    return [*(RESPLIT if unsteady else []), *FAR_BELOW.get(name, [])]


def batch(cell: Cell) -> tuple[str, int, int, int]:
    """Procedures of a group share their scores, searches and graphs."""
    procedure = Procedure(cell.algorithm, cell.model, cell.patience)
    group = next(i for i, group in enumerate(GROUPS) if procedure in group)
    return cell.data, cell.fold, cell.split, group


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn on the training rows, and evaluate on the test rows."""
    bench = _workbench(data, cell.data, cell.fold, cell.split)
    structure = bench.structure(Procedure(cell.algorithm, cell.model, cell.patience))
    network, dropped = fit(structure, bench.data)
    frame = uci_table(data, cell.data)
    test = frame.iloc[outer_folds(len(frame))[cell.fold][1]]
    types = list(network.structure.types.values())
    return {
        "loglik": network.loglik(test),
        "rows": len(test),
        "nodes": len(types),
        "ckde": types.count(NodeType.CKDE),
        "arcs": len(network.structure.arcs),
        "dropped_arcs": dropped,
    }


@lru_cache(maxsize=1)
def _workbench(data: Path, name: str, fold: int, split: int) -> Workbench:
    frame = uci_table(data, name)
    train = frame.iloc[outer_folds(len(frame))[fold][0]]
    return Workbench(train, seed=split, largest_condition=LARGEST_CONDITION.get(name))


def _cost(data: Path, name: str, algorithm: str) -> float:
    rows, columns = uci_table(data, name).shape
    return float(rows**2 * columns**2) * RELATIVE_COST[algorithm]


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.uci import draw

    draw(results, data, out)
