"""Semiparametric Bayesian networks: learned from data, fitted, evaluated, sampled."""

import sys
from functools import partial
from importlib import import_module
from os import environ

from spbn import _deprecated
from spbn._base import interrupts

# While the command starts, nothing has begun that Ctrl-C would have to tidy up: it ends without a word.
if sys.argv and sys.argv[0].endswith(("/spbn", "\\spbn", "\\spbn.exe")):
    interrupts.end_process()

_deprecated.install()

# While a shell completes a command it waits for names of options only: nothing that computes is needed.
if "_SPBN_COMPLETE" not in environ:
    # First, and from here: deep inside of imports of ours, Python 3.11 takes a quarter of a second longer
    # to import it, as every call then crosses the end of a piece of the interpreter's stack.
    import numba  # noqa: F401

    from spbn import datasets, metrics
    from spbn._base import display
    from spbn.errors import SpbnError
    from spbn.graphs.dag import DAG
    from spbn.learning.learn import learn
    from spbn.learning.stability import confidence
    from spbn.network import BayesianNetwork
    from spbn.nodes import NodeType
    from spbn.search import SearchResult
    from spbn.structure import Structure
    from spbn.tables.preparation import prepare
    from spbn.timeseries.forecast import Forecast
    from spbn.timeseries.learn import learn_dynamic
    from spbn.timeseries.network import DynamicNetwork

    # What draws is above the models, and is imported when something is shown for the first time.
    display.html.set_loader(partial(import_module, "spbn.report.notebooks"))
    display.plot.set_loader(partial(import_module, "spbn.plots"))
    display.svg.set_loader(partial(import_module, "spbn.plots"))

__version__ = "0.3.0"


#: Imported on first use, because they need heavy packages: from which module, and by which name.
_LAZY = {
    "Monitor": ("spbn.monitoring.monitor", "Monitor"),
    "Posterior": ("spbn.inference", "Posterior"),
    "RowScorer": ("spbn.scorer", "RowScorer"),
    "compare_models": ("spbn.learning.comparison", "compare_models"),
    "distributed": ("spbn.learning.distributed", None),
    "exchange": ("spbn.io.exchange", None),
    "explain": ("spbn.diagnostics", None),
    "load_scorer": ("spbn.scorer", "load_scorer"),
    "pgmpy": ("spbn.pgmpy", None),
    "plots": ("spbn.plots", None),
    "report": ("spbn.report", None),
    "sklearn": ("spbn.sklearn", None),
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        module, inner = _LAZY[name]
        found = import_module(module)
        return found if inner is None else getattr(found, inner)
    if name in _deprecated.NAMES:
        return _deprecated.attribute(name)
    raise AttributeError(f"module 'spbn' has no attribute {name!r}")


__all__ = [
    "DAG",
    "BayesianNetwork",
    "DynamicNetwork",
    "Forecast",
    "Monitor",
    "NodeType",
    "Posterior",
    "RowScorer",
    "SearchResult",
    "SpbnError",
    "Structure",
    "compare_models",
    "confidence",
    "datasets",
    "learn",
    "learn_dynamic",
    "load_scorer",
    "metrics",
    "plots",
    "prepare",
    "report",
]
