"""Are node types found better by a score or by a test of normality, for the true graph and for that of PC?

The rows are those of `structure`: Gaussian networks, all of whose nodes are lines, and the synthetic network
of the paper, three of whose nodes are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import spbn
from experiments.structure import GAUSSIAN, GAUSSIAN_ROWS, SYNTHETIC_ROWS, draw
from spbn.learning import types_by_normality
from spbn.scores import BestType, CVLikelihood, ValidatedLikelihood
from spbn.search import hill_climb

#: How types are chosen: by the validated likelihood of the paper, by the penalised one, which prefers simple
#: types, and by the Shapiro-Wilk test.
METHODS = ("score", "penalised score", "normality")
GRAPHS = ("true", "PC")
TABLES = {"gaussian": 3, "synthetic": 20}


@dataclass(frozen=True)
class Cell:
    """The types of the nodes of one graph, chosen in one way."""

    part: str
    network: str
    rows: int
    table: int
    graph: str
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, those with few nodes and rows first."""
    tables = [("synthetic", "synthetic", rows) for rows in (SYNTHETIC_ROWS[:1] if quick else SYNTHETIC_ROWS)]
    if not quick:
        tables += [("gaussian", name, rows) for name in GAUSSIAN for rows in GAUSSIAN_ROWS]
    found = [
        Cell(part, network, rows, table, graph, method)
        for part, network, rows in tables
        for table in range(1 if quick else TABLES[part])
        for graph in GRAPHS
        for method in METHODS
    ]
    return sorted(found, key=lambda cell: GAUSSIAN.get(cell.network, 5) * cell.rows)


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Count the nodes whose type, line or not, is wrong."""
    frame, dag = draw(cell.part, cell.network, cell.rows, cell.table)
    lines = set(dag.nodes)
    if cell.part == "synthetic":
        types = spbn.datasets.synthetic_structure().types
        lines = {node for node in lines if types[node] == spbn.NodeType.LG}
    if cell.graph == "PC":
        test = spbn.independence.PartialCorrelation if cell.part == "gaussian" else spbn.independence.RCoT
        dag = spbn.search.pc(test(frame)).pdag.to_dag()
    found = _types(cell.method, spbn.Structure(dag.nodes, dag.arcs), frame)
    wrong = sum((found.type(node) == spbn.NodeType.LG) != (node in lines) for node in dag.nodes)
    return {"wrong": wrong, "nodes": len(dag.nodes)}


def _types(method: str, graph: spbn.Structure, frame: pd.DataFrame) -> spbn.Structure:
    if method == "normality":
        return types_by_normality(graph, frame)
    if method == "penalised score":
        likelihood = CVLikelihood(frame, penalty="auto")
        return BestType(likelihood, cost=likelihood.penalty).best_types(graph)
    start = spbn.Structure(graph.nodes, graph.arcs, dict.fromkeys(graph.nodes, spbn.NodeType.CKDE))
    return hill_climb(ValidatedLikelihood(frame), start, operators=["types"]).structure


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the table."""
    from experiments.figures.structure import draw_types

    draw_types(results, out)
