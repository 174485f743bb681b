"""The learning procedures in PyBNesian, the implementation of the paper's authors.

``python -m experiments.peer VARIABLES ROWS ALGORITHM MODEL PATIENCE`` learns in a process of its own,
which can be stopped, and prints the seconds that it took and the number of arcs as JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import pandas as pd

from experiments.models import MODELS
from experiments.procedures import START, Procedure


def learn(procedure: Procedure, frame: pd.DataFrame, graph: list[tuple[str, str]]) -> int:
    """Learn by a procedure and return the number of arcs; `graph` is for the one that only learns types."""
    import pybnesian

    nodes = list(frame.columns)
    if procedure.algorithm.startswith("PC-"):
        test = pybnesian.LinearCorrelation if procedure.algorithm == "PC-PLC" else pybnesian.RCoT
        pdag = pybnesian.PC().estimate(test(frame))
        return len(pdag.arcs()) + len(pdag.edges())
    arcs, types = pybnesian.ArcOperatorSet(), pybnesian.ChangeNodeTypeSet()
    node_type = (
        pybnesian.CKDEType() if START[procedure.model] == "ckde" else pybnesian.LinearGaussianCPDType()
    )
    node_types = [(node, node_type) for node in nodes]
    start: Any
    if procedure.algorithm == "types":
        operators, start = types, pybnesian.SemiparametricBN(nodes, graph, node_types)
    elif procedure.semiparametric:
        operators = pybnesian.OperatorPool([arcs, types])
        start = pybnesian.SemiparametricBN(nodes, node_types)
    elif procedure.model == "KDEBN":
        operators, start = arcs, pybnesian.KDENetwork(nodes)
    else:
        operators, start = arcs, pybnesian.GaussianNetwork(nodes)
    score: Any
    if procedure.algorithm in ("HC-BIC", "HC-BGe"):
        score = (pybnesian.BIC if procedure.algorithm == "HC-BIC" else pybnesian.BGe)(frame)
    else:
        score = pybnesian.ValidatedLikelihood(frame, test_ratio=0.2, k=10, seed=0)
    climbing = pybnesian.GreedyHillClimbing()
    return len(climbing.estimate(operators, score, start, patience=procedure.patience).arcs())


def main(arguments: list[str]) -> None:
    """Learn once on few rows, which compiles, and then on those that count."""
    from experiments.times import best_time

    variables, rows, algorithm, model, patience = arguments
    procedure, truth = Procedure(algorithm, model, int(patience)), MODELS[int(variables)]
    graph = list(truth.structure.arcs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learn(Procedure("types", "SPBN-CKDE"), truth.sample(100), graph)
        frame = truth.sample(int(rows))
        seconds, arcs = best_time(lambda: learn(procedure, frame, graph))
    print(json.dumps({"learning": seconds, "arcs": arcs}))


if __name__ == "__main__":
    main(sys.argv[1:])
