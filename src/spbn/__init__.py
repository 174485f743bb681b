"""Semiparametric Bayesian networks: learned from data, fitted, evaluated, sampled."""

from spbn import datasets
from spbn.cpds import CKDE, LinearGaussian
from spbn.errors import ArgumentError, DataError, FitError, GraphError, ModelFileError, SpbnError
from spbn.graph import DAG, PDAG
from spbn.kde import KDE
from spbn.network import BayesianNetwork
from spbn.structure import Family, NodeType, Structure

__version__ = "0.1.0"

__all__ = [
    "CKDE",
    "DAG",
    "KDE",
    "PDAG",
    "ArgumentError",
    "BayesianNetwork",
    "DataError",
    "Family",
    "FitError",
    "GraphError",
    "LinearGaussian",
    "ModelFileError",
    "NodeType",
    "SpbnError",
    "Structure",
    "datasets",
]
