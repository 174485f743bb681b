"""Data sampled from four Gaussian networks: an SPBN should cost nothing where nothing is curved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.procedures import Procedure, Workbench, fit, with_patience
from experiments.sources import gaussian_network, gaussian_test, gaussian_train
from spbn.metrics import hmd, shd, thmd

NODES = {"MAGIC-NIAB": 44, "ECOLI70": 46, "MAGIC-IRRI": 64, "ARTH150": 107}
NETWORKS = tuple(NODES)
SIZES = (200, 2_000, 10_000)
SPBNS = ("SPBN-LG", "SPBN-CKDE")
ORDERS = 11
#: Scores that are the same for all DAGs of an equivalence class.
EQUIVALENT = [Procedure("HC-BIC", "GBN"), Procedure("HC-BGe", "GBN")]
#: Procedures that share their work.
GROUPS = [
    EQUIVALENT,
    [Procedure("PC-PLC", "GBN"), *with_patience("PC-PLC", SPBNS)],
    with_patience("HC", ["SPBN-LG"]),
    with_patience("HC", ["SPBN-CKDE"]),
    [Procedure("PC-RCoT", "GBN"), *with_patience("PC-RCoT", SPBNS)],
]
#: What each group costs, roughly, relative to a search from linear Gaussian nodes.
RELATIVE_COSTS = (0.01, 0.1, 1.0, 3.0, 20.0)
#: Maximum number of variables in a condition of PC with RCoT, where two nodes have 19 neighbours:
#: a million subsets.
LARGEST_CONDITION = {("ARTH150", 10_000): 4}


@dataclass(frozen=True)
class Cell:
    """One procedure on some rows of one network.

    `order` 0 is the order of columns in the file, and others are the seeds of shuffled ones: BIC and BGe
    do not tell the directions of an arc apart, so the order decides where hill climbing begins.
    """

    network: str
    rows: int
    algorithm: str
    model: str
    patience: int
    order: int = 0


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, the cheapest first."""
    networks, sizes = (NETWORKS[:1], SIZES[:1]) if quick else (NETWORKS, SIZES)
    costs = [
        (cost * rows * NODES[network] ** 2, network, rows, group)
        for network in networks
        for rows in sizes
        for group, cost in zip(GROUPS, RELATIVE_COSTS, strict=True)
    ]
    return [
        Cell(network, rows, procedure.algorithm, procedure.model, procedure.patience, order)
        for _, network, rows, group in sorted(costs, key=lambda cost: cost[0])
        for order in range(ORDERS if group is EQUIVALENT else 1)
        for procedure in group
    ]


def batch(cell: Cell) -> tuple[str, int, int, int]:
    """Procedures of a group share their searches and graphs."""
    procedure = Procedure(cell.algorithm, cell.model, cell.patience)
    group = next(i for i, group in enumerate(GROUPS) if procedure in group)
    return cell.network, cell.rows, cell.order, group


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn a network, and compare it with the one that the rows were sampled from."""
    bench = _workbench(data, cell.network, cell.rows, cell.order)
    structure = bench.structure(Procedure(cell.algorithm, cell.model, cell.patience))
    network, dropped = fit(structure, bench.data)
    truth = gaussian_network(cell.network)
    return {
        "loglik": network.loglik(gaussian_test(data, cell.network)),
        "hmd": hmd(network, truth),
        "shd": shd(network, truth),
        "thmd": thmd(network, truth),
        "arcs": len(network.structure.arcs),
        "dropped_arcs": dropped,
    }


@lru_cache(maxsize=1)
def _workbench(data: Path, network: str, rows: int, order: int) -> Workbench:
    frame = gaussian_train(data, network, rows)
    columns = np.random.default_rng(order).permutation(frame.columns) if order else frame.columns
    return Workbench(frame[list(columns)], largest_condition=LARGEST_CONDITION.get((network, rows)))


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.gaussian import draw

    draw(results, data, out)
