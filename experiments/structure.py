"""How many errors has the graph? Learned from rows whose network is known, beside what others would use.

(a) The four Gaussian networks of the paper. (b) Random networks of 10 to 50 nodes, whose parents act in
straight, smooth, multiplied, distorted or spreading ways. (c) The synthetic network of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from experiments.random_networks import MECHANISMS, NOISES, RandomNetwork
from experiments.sources import gaussian_network
from experiments.structure_peers import LIMITS, PEERS
from spbn.graphs.dag import PDAG
from spbn.metrics import hmd, shd

#: Our methods, by the arguments of `spbn.learn`.
MODELS: dict[str, dict[str, object]] = {
    "auto": {"model": "auto", "margins": "auto"},
    "auto, hill climbing": {"model": "auto", "margins": "auto", "algorithm": "hc"},
    "SPBN": {"model": "spbn"},
    "GBN, BIC": {"model": "gbn"},
    "GBN, order search": {"model": "gbn", "algorithm": "boss"},
    "PC-RCoT": {"model": "gbn", "algorithm": "pc"},
}
AVERAGED = "SPBN, averaged"
METHODS = (*MODELS, AVERAGED, *PEERS)
GAUSSIAN = {"MAGIC-NIAB": 44, "ECOLI70": 46, "MAGIC-IRRI": 64, "ARTH150": 107}
GAUSSIAN_ROWS = (200, 2_000, 10_000)
NODES, DEGREES, RANDOM_ROWS = (10, 20, 50), (2, 4), (500, 2_000)
SYNTHETIC_ROWS = (200, 500, 1_000, 2_000, 5_000)
TABLES = {"gaussian": 10, "random": 10, "synthetic": 20}
#: The most nodes and rows for which our own slower methods end within minutes.
OWN_LIMITS = {
    AVERAGED: (10, 2_000),
    "PC-RCoT": (64, 2_000),
    "auto, hill climbing": (50, 2_000),
}
#: Methods that take minutes on large Gaussian tables: the nodes times rows from which on they learn from few.
SLOW = {"SPBN": 400_000, "PC-RCoT": 80_000, "auto": 600_000, "BOSS, causal-learn": 1_000_000}
FEW_TABLES = 2
LARGE = 3_000_000  # squared nodes times rows
REPLICATES = 30  # of averaged networks
QUICK = [("random", "10 nodes, degree 2", 500), ("synthetic", "synthetic", 200)]
QUICK_METHODS = ("auto", "SPBN", "GBN, BIC")


@dataclass(frozen=True)
class Cell:
    """One method on one table of rows."""

    part: str
    network: str
    rows: int
    table: int
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, the cheapest first, and of large tables one half after the other."""
    found = [
        Cell(part, network, rows, table, method)
        for part, network, rows in (QUICK if quick else _tables())
        for method in (QUICK_METHODS if quick else METHODS)
        for table in range(1 if quick else _table_count(part, network, rows, method))
        if _is_feasible(method, _node_count(part, network), rows)
    ]

    def place(cell: Cell) -> tuple[bool, int]:
        size = _node_count(cell.part, cell.network) ** 2 * cell.rows
        return size >= LARGE and cell.table >= TABLES[cell.part] // 2, size

    return sorted(found, key=place)


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn a graph, and compare it and its equivalence class with the true ones."""
    frame, truth = draw(cell.part, cell.network, cell.rows, cell.table)
    found, lines = _learn(cell.method, frame)
    dag = _dag(found)
    learned, true = (found if dag is None else dag.to_cpdag()), truth.to_cpdag()
    return {
        "shd": shd(found if dag is None else dag, truth),
        "class_shd": shd(learned, true),
        "hmd": hmd(found, truth),
        **precision_and_recall(learned, true),
        "arcs": len(found.arcs) + len(found.edges),
        "true_arcs": len(truth.arcs),
        "lines": lines,
    }


@lru_cache(maxsize=2)
def draw(part: str, network: str, rows: int, table: int) -> tuple[pd.DataFrame, spbn.DAG]:
    """Draw rows from a network, and return them with its graph."""
    if part == "gaussian":
        true = gaussian_network(network)
        return true.sample(rows, seed=1_000 + table), true.structure.dag
    if part == "synthetic":
        return spbn.datasets.synthetic(rows, seed=1_000 + table), spbn.datasets.synthetic_structure().dag
    nodes, degree = (int(word) for word in network.replace(",", "").split() if word.isdigit())
    mechanism = MECHANISMS[table % len(MECHANISMS)]
    noise = list(NOISES)[table % len(NOISES)]
    random = RandomNetwork(nodes, degree, mechanism, noise, seed=table)
    return random.sample(rows), random.dag


def precision_and_recall(learned: PDAG, true: PDAG) -> dict[str, float]:
    """Return how many joined pairs and how many arrowheads are right, and how many of the true are found."""
    joined = [graph.directed | graph.directed.T | graph.undirected for graph in (learned, true)]
    heads = [graph.directed for graph in (learned, true)]
    out = {}
    for name, (ours, theirs) in (("pairs", joined), ("heads", heads)):
        both = float(np.count_nonzero(ours & theirs))
        out[f"{name}_precision"] = both / max(np.count_nonzero(ours), 1)
        out[f"{name}_recall"] = both / max(np.count_nonzero(theirs), 1)
    return out


def _tables() -> list[tuple[str, str, int]]:
    gaussian = [("gaussian", name, rows) for name in GAUSSIAN for rows in GAUSSIAN_ROWS]
    random = [
        ("random", f"{nodes} nodes, degree {degree}", rows)
        for nodes in NODES
        for degree in DEGREES
        for rows in RANDOM_ROWS
    ]
    return [*gaussian, *random, *(("synthetic", "synthetic", rows) for rows in SYNTHETIC_ROWS)]


def _node_count(part: str, network: str) -> int:
    if part == "gaussian":
        return GAUSSIAN[network]
    return 5 if part == "synthetic" else int(network.split()[0])


def _table_count(part: str, network: str, rows: int, method: str) -> int:
    is_slow = part == "gaussian" and _node_count(part, network) * rows >= SLOW.get(method, 1 << 62)
    return FEW_TABLES if is_slow else TABLES[part]


def _is_feasible(method: str, nodes: int, rows: int) -> bool:
    most_nodes, most_rows = {**LIMITS, **OWN_LIMITS}.get(method, (nodes, rows))
    return nodes <= most_nodes and rows <= most_rows


def _learn(method: str, frame: pd.DataFrame) -> tuple[PDAG, float]:
    """Return the graph that a method learns, and the share of its nodes that are lines."""
    if method in PEERS:
        return PEERS[method](frame), float("nan")
    if method == AVERAGED:
        structure = spbn.confidence(frame, model="spbn", replicates=REPLICATES).structure()
    else:
        structure = spbn.learn(frame, **MODELS[method]).structure
    lines = sum(node_type == spbn.NodeType.LG for node_type in structure.types.values())
    return PDAG(structure.nodes, structure.arcs, []), lines / len(structure.nodes)


def _dag(graph: PDAG) -> spbn.DAG | None:
    """Return a graph whose arcs all have a direction as a DAG; None for others, and for one with a cycle."""
    if graph.edges:
        return None
    try:
        return spbn.DAG(graph.nodes, graph.arcs)
    except spbn.errors.GraphError:
        return None


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.structure import draw as draw_all

    draw_all(results, out)
