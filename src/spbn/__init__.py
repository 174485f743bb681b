"""Semiparametric Bayesian networks: learned from data, fitted, evaluated, sampled."""

from functools import partial
from importlib import import_module
from os import environ

# While a shell completes a command it waits for names of options only: nothing that computes is needed.
if "_SPBN_COMPLETE" not in environ:
    from spbn import datasets, metrics
    from spbn._base import display
    from spbn.errors import (
        ArgumentError,
        CheckpointError,
        ClusterError,
        DataError,
        FitError,
        GraphError,
        KnowledgeError,
        ModelFileError,
        PackageError,
        SpbnError,
    )
    from spbn.graphs.dag import DAG, PDAG
    from spbn.independence import CMIknn, Oracle, PartialCorrelation, RCoT
    from spbn.learning.learn import LearningInterrupted, learn
    from spbn.learning.stability import Confidence, confidence
    from spbn.network import BayesianNetwork
    from spbn.nodes import (
        CKDE,
        KDE,
        Blend,
        ByConfiguration,
        CompactBlend,
        CompactCKDE,
        Family,
        LinearGaussian,
        NodeType,
        ProbabilityTable,
    )
    from spbn.record import Record
    from spbn.scores import BIC, BGe, CVLikelihood, HoldoutLikelihood, ValidatedLikelihood
    from spbn.search import PCResult, SearchResult, hill_climb, pc
    from spbn.structure import Structure
    from spbn.tables.table import Variable
    from spbn.timeseries.forecast import Forecast
    from spbn.timeseries.learn import learn_dynamic
    from spbn.timeseries.network import DynamicNetwork

    # What draws is above the models, and is imported when something is shown for the first time.
    display.html.set_loader(partial(import_module, "spbn.report.notebooks"))
    display.plot.set_loader(partial(import_module, "spbn.plots"))
    display.svg.set_loader(partial(import_module, "spbn.plots"))

__version__ = "0.2.0"


#: Imported on first use, because they need heavy packages: from which module, and by which name.
_LAZY = {
    "Monitor": ("spbn.monitoring.monitor", "Monitor"),
    "RowScorer": ("spbn.scorer", "RowScorer"),
    "load_scorer": ("spbn.scorer", "load_scorer"),
    "Posterior": ("spbn.inference", "Posterior"),
    "SPBNClassifier": ("spbn.sklearn.classifier", "SPBNClassifier"),
    "SPBNDensity": ("spbn.sklearn.density", "SPBNDensity"),
    "compare_models": ("spbn.learning.comparison", "compare_models"),
    "distributed": ("spbn.dask", None),
    "explain": ("spbn.diagnostics", None),
    "plots": ("spbn.plots", None),
    "report": ("spbn.report", None),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'spbn' has no attribute {name!r}")
    module, inner = _LAZY[name]
    found = import_module(module)
    return found if inner is None else getattr(found, inner)


__all__ = [
    "BIC",
    "CKDE",
    "DAG",
    "KDE",
    "PDAG",
    "ArgumentError",
    "BGe",
    "BayesianNetwork",
    "Blend",
    "ByConfiguration",
    "CMIknn",
    "CVLikelihood",
    "CheckpointError",
    "ClusterError",
    "CompactBlend",
    "CompactCKDE",
    "Confidence",
    "DataError",
    "DynamicNetwork",
    "Family",
    "FitError",
    "Forecast",
    "GraphError",
    "HoldoutLikelihood",
    "KnowledgeError",
    "LearningInterrupted",
    "LinearGaussian",
    "ModelFileError",
    "Monitor",
    "NodeType",
    "Oracle",
    "PCResult",
    "PackageError",
    "PartialCorrelation",
    "Posterior",
    "ProbabilityTable",
    "RCoT",
    "Record",
    "RowScorer",
    "SPBNClassifier",
    "SPBNDensity",
    "SearchResult",
    "SpbnError",
    "Structure",
    "ValidatedLikelihood",
    "Variable",
    "compare_models",
    "confidence",
    "datasets",
    "distributed",
    "explain",
    "hill_climb",
    "learn",
    "learn_dynamic",
    "load_scorer",
    "metrics",
    "pc",
    "plots",
    "report",
]
