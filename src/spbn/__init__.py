"""Semiparametric Bayesian networks: learned from data, fitted, evaluated, sampled."""

from spbn import datasets, metrics
from spbn.cpds import CKDE, LinearGaussian
from spbn.errors import (
    ArgumentError,
    DataError,
    FitError,
    GraphError,
    ModelFileError,
    PackageError,
    SpbnError,
)
from spbn.graph import DAG, PDAG
from spbn.independence import CMIknn, Oracle, PartialCorrelation, RCoT
from spbn.kde import KDE
from spbn.learn import learn
from spbn.network import BayesianNetwork
from spbn.pc import PCResult, pc
from spbn.scores import BIC, BGe, CVLikelihood, HoldoutLikelihood, ValidatedLikelihood
from spbn.search import SearchResult, hill_climb
from spbn.structure import Family, NodeType, Structure

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import what needs scikit-learn only when it is asked for."""
    if name == "SPBNDensity":
        from spbn.estimators import SPBNDensity

        return SPBNDensity
    raise AttributeError(f"module 'spbn' has no attribute {name!r}")


__all__ = [
    "BIC",
    "CKDE",
    "DAG",
    "KDE",
    "PDAG",
    "ArgumentError",
    "BGe",
    "BayesianNetwork",
    "CMIknn",
    "CVLikelihood",
    "DataError",
    "Family",
    "FitError",
    "GraphError",
    "HoldoutLikelihood",
    "LinearGaussian",
    "ModelFileError",
    "NodeType",
    "Oracle",
    "PCResult",
    "PackageError",
    "PartialCorrelation",
    "RCoT",
    "SPBNDensity",
    "SearchResult",
    "SpbnError",
    "Structure",
    "ValidatedLikelihood",
    "datasets",
    "hill_climb",
    "learn",
    "metrics",
    "pc",
]
