"""The synthetic network (Table 1): are the structure and the types found, and how good is the density?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd

from experiments.procedures import Procedure, Workbench, fit, with_patience
from spbn.datasets import paper_synthetic, synthetic_structure
from spbn.metrics import hmd, shd, thmd

SIZES = (200, 2_000, 10_000)
SPLITS = 20
ALGORITHMS = ("HC", "PC-PLC", "PC-RCoT")
PROCEDURES = [
    procedure for algorithm in ALGORITHMS for procedure in with_patience(algorithm, ["SPBN-LG", "SPBN-CKDE"])
]


@dataclass(frozen=True)
class Cell:
    """One procedure on the published rows.

    `split` is the seed of the validation rows, the folds, and RCoT's features.
    """

    rows: int
    split: int
    algorithm: str
    model: str
    patience: int


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, few rows first."""
    sizes, splits = (SIZES[:2], 2) if quick else (SIZES, SPLITS)
    return [
        Cell(rows, split, procedure.algorithm, procedure.model, procedure.patience)
        for rows in sizes
        for split in range(splits)
        for procedure in PROCEDURES
    ]


def batch(cell: Cell) -> tuple[int, int]:
    """Procedures on the same split share scores, searches and graphs."""
    return cell.rows, cell.split


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn a network, and compare it with the true one."""
    bench = _workbench(cell.rows, cell.split)
    structure = bench.structure(Procedure(cell.algorithm, cell.model, cell.patience))
    network, _ = fit(structure, bench.data)
    truth = synthetic_structure()
    return {
        "loglik": network.loglik(paper_synthetic("test")),
        "hmd": hmd(network, truth),
        "shd": shd(network, truth),
        "thmd": thmd(network, truth),
    }


@lru_cache(maxsize=1)
def _workbench(rows: int, split: int) -> Workbench:
    return Workbench(paper_synthetic(str(rows)), seed=split)


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.synthetic import draw

    draw(results, out)
