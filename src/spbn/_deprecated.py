"""Names of version 0.2 that version 0.3 still understands, with a warning that says the new ones.

One table says where every name is now. It serves the attributes of `spbn`, modules that have moved, and the
table of docs/migrating.md. Arguments that have another name are declared where they are, by `renamed`.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import ParamSpec, TypeVar, final

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Attributes of `spbn`, by the module that they are in now.
_MOVED = {
    "spbn.errors": "ArgumentError CheckpointError ClusterError DataError FitError GraphError KnowledgeError "
    "ModelFileError PackageError",
    "spbn.nodes": "Blend ByConfiguration CKDE Family KDE LinearGaussian ProbabilityTable Variable",
    "spbn.scores": "BGe BIC CVLikelihood HoldoutLikelihood ValidatedLikelihood",
    "spbn.search": "PCResult hill_climb pc",
    "spbn.independence": "CMIknn Oracle PartialCorrelation RCoT",
    "spbn.graphs": "PDAG",
    "spbn.learning": "Confidence LearningInterrupted",
    "spbn.record": "Record",
    "spbn.sklearn": "SPBNClassifier SPBNDensity",
}

#: ... and the module of each, with its name there if that is another one.
NAMES = {name: module for module, names in _MOVED.items() for name in names.split()} | {
    "CompactBlend": "spbn.nodes:Blend",
    "CompactCKDE": "spbn.nodes:CKDE",
}

#: Modules that users of version 0.2 may import. What is inside a package moves with it.
MODULES = {
    "spbn.app": "spbn.cli",
    "spbn.app.cli": "spbn.cli.main",
    "spbn.app.comparison": "spbn.learning.comparison",
    "spbn.app.progress": "spbn._base.display",
    "spbn.distributed": "spbn.learning.distributed",
    "spbn.distributed.clients": "spbn.dask.client",
    "spbn.distributed.rows": "spbn.learning.distributed",
    "spbn.drawing": "spbn.plots",
    "spbn.drawing.plots": "spbn.plots",
    "spbn.dynamic": "spbn.timeseries",
    "spbn.dynamic.learning": "spbn.timeseries.learn",
    "spbn.dynamic.monitor": "spbn.monitoring.monitor",
    "spbn.explain": "spbn.diagnostics",
    "spbn.explain.calibration": "spbn.diagnostics.model",
    "spbn.explain.early_stops": "spbn.diagnostics.model",
    "spbn.explain.evidence": "spbn.diagnostics.rows",
    "spbn.explain.importance": "spbn.diagnostics.model",
    "spbn.explain.out_of_sample": "spbn.diagnostics.rows",
    "spbn.explain.strengths": "spbn.diagnostics.model",
    "spbn.explain.unusual": "spbn.diagnostics.rows",
    "spbn.files": "spbn.io",
    "spbn.independence.oracle": "spbn.independence.base",
    "spbn.interop": "spbn.sklearn",
    "spbn.interop.classifier": "spbn.sklearn.estimators",
    "spbn.interop.pgmpy": "spbn.pgmpy",
    "spbn.interop.scikit_learn": "spbn.sklearn.estimators",
    "spbn.kernels.bandwidth": "spbn.kernels.estimates",
    "spbn.margins": "spbn.transforms",
    "spbn.nodes.arrays": "spbn._base.files",
    "spbn.nodes.compact": "spbn.nodes.ckde",
    "spbn.nodes.compact_blend": "spbn.nodes.blend",
    "spbn.numerics.cholesky": "spbn.numerics.gaussian",
    "spbn.numerics.compiling": "spbn._base.jit",
    "spbn.numerics.random": "spbn._base.arrays",
    "spbn.report.classification": "spbn.report.pages",
    "spbn.report.confidence": "spbn.report.pages",
    "spbn.tables.files": "spbn.cli.files",
    "spbn.tables.frames": "spbn.tables.reader",
}


def attribute(name: str) -> object:
    """Return an attribute that `spbn` had in version 0.2."""
    module, _, now = NAMES[name].partition(":")
    warn_deprecated(f"spbn.{name}", f"{module}.{now or name}")
    return getattr(importlib.import_module(module), now or name)


def table_function(name: str) -> object:
    """Return a function that `spbn.tables` had in version 0.2."""
    if name in ("read_table", "write_table"):
        warn_deprecated(f"spbn.tables.{name}", f"spbn.cli.files.{name}")
        return getattr(importlib.import_module("spbn.cli.files"), name)
    if name == "training_table":
        warn_deprecated("spbn.tables.training_table", "spbn.tables.as_table with training=True")
        as_table = importlib.import_module("spbn.tables.reader").as_table
        return lambda data, missing, **options: as_table(data, training=True, missing=missing, **options)
    raise AttributeError(f"module 'spbn.tables' has no attribute {name!r}")


def renamed(**names: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Let a function take arguments by their old names: ``@renamed(draws="n")``."""

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            for old, new in names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{function.__name__}() got both {new!r} and {old!r}, its old name")
                    warn_deprecated(f"the argument {old} of {function.__name__}", new, stacklevel=3)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def warn_deprecated(old: str, new: str, *, stacklevel: int = 4) -> None:
    """Say that something has another name."""
    warnings.warn(
        f"{old} is {new} since version 0.3. The old name will be removed in version 0.4.",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


@final
class MovedModules(MetaPathFinder, Loader):
    """Finds modules by the names that they had in version 0.2, and loads them by those that they have now."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module that had this name, or one inside it."""
        if not fullname.startswith("spbn."):
            return None
        package, inner = fullname, ""
        while package not in MODULES:
            package, _, last = package.rpartition(".")
            inner = f".{last}{inner}"
            if not package:
                return None
        now = MODULES[package] + inner
        warn_deprecated(fullname, now, stacklevel=3)
        return ModuleSpec(fullname, self, origin=now, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is, apart from the specification that the import system gave it."""
        module.__spec__ = module.__spec__ and module.__spec__.loader_state


def install() -> None:
    """Make the old names of modules known to the import system."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())  # first: the path of an alias would give its submodules again
