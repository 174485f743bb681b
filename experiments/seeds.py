"""How much does the random split inside of learning matter? Blends with margins, learned with twenty seeds.

A prototype of blend nodes was tried on the first two outer folds of some tables. Its values and those of
this library differ by what the seed does, which only several seeds can show.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import spbn
from experiments.densities import COMPARED, MODELS
from experiments.sources import outer_folds, uci_table

FOLDS = (0, 1)
SEEDS = range(20)
QUICK_SEEDS = range(2)
#: What the prototype reached on the two folds: log-density per row and variable.
PROTOTYPE = {
    "Breast_tissue": (-3.936, -3.913),
    "CPU": (-4.865, -4.966),
    "Glass": (1.153, 0.729),
    "Liver": (-3.392, -3.349),
    "Parkinsons": (3.054, 3.070),
    "QSAR Aquatic": (-0.788, -0.859),
    "Vowel": (-0.012, -0.016),
    "Wpbc": (0.780, 0.863),
}
QUICK = "Breast_tissue"


@dataclass(frozen=True)
class Cell:
    """One seed on the training rows of one outer fold of a table."""

    data: str
    fold: int
    seed: int


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, table by table."""
    names, seeds = ([QUICK], QUICK_SEEDS) if quick else (list(PROTOTYPE), SEEDS)
    return [Cell(name, fold, seed) for name in names for fold in FOLDS for seed in seeds]


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn on the training rows, and evaluate on the test rows."""
    frame = uci_table(data, cell.data)
    train, test = (frame.iloc[rows] for rows in outer_folds(len(frame))[cell.fold])
    network = spbn.learn(train, seed=cell.seed, **MODELS[COMPARED])
    return {
        "loglik": float(network.logpdf(test).sum()),
        "rows": len(test),
        "nodes": frame.shape[1],
        "arcs": len(network.structure.arcs),
    }


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the table."""
    from experiments.figures.seeds import draw

    draw(results, out)
