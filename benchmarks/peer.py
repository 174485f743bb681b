"""PyBNesian, the implementation of the paper's authors: the same job on the same rows and folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pybnesian

import spbn


@dataclass(frozen=True)
class Split:
    """The rows and folds that PyBNesian drew, for both sides to use."""

    train: pd.DataFrame
    validation: pd.DataFrame
    labels: np.ndarray


def validated_score(frame: pd.DataFrame, *, folds: int = 10, seed: int = 0) -> Any:
    """Return PyBNesian's validated likelihood."""
    return pybnesian.ValidatedLikelihood(frame, test_ratio=0.2, k=folds, seed=seed)


def split_of(score: Any) -> Split:
    """Find out which rows are for validation and which fold each training row is in."""
    train, validation = score.training_data().to_pandas(), score.validation_data().to_pandas()
    labels = np.empty(len(train), dtype=int)
    for fold, (_, test) in enumerate(score.cv_lik.cv.indices()):
        labels[test] = fold
    return Split(train, validation, labels)


def climb(score: Any, nodes: list[str], start: str, patience: int, *, types: bool = True) -> Any:
    """Run PyBNesian's hill climbing over arcs, and over node types unless they stay."""
    node_type = pybnesian.CKDEType() if start == "ckde" else pybnesian.LinearGaussianCPDType()
    network = pybnesian.SemiparametricBN(nodes, [(node, node_type) for node in nodes])
    changes = [pybnesian.ChangeNodeTypeSet()] if types else []
    operators = pybnesian.OperatorPool([pybnesian.ArcOperatorSet(), *changes])
    return pybnesian.GreedyHillClimbing().estimate(operators, score, network, patience=patience)


def climb_gaussian(score: Any, nodes: list[str]) -> Any:
    """Run PyBNesian's hill climbing over arcs of a Gaussian network."""
    return pybnesian.GreedyHillClimbing().estimate(
        pybnesian.ArcOperatorSet(), score, pybnesian.GaussianNetwork(nodes)
    )


def structure_of(network: Any) -> spbn.Structure:
    """Translate a network of PyBNesian."""
    nodes = network.nodes()
    types = {node: "ckde" if network.node_type(node) == pybnesian.CKDEType() else "lg" for node in nodes}
    return spbn.Structure(nodes, network.arcs(), types)
