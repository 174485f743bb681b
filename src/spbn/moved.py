"""Where the modules of version 0.1 are now: they can still be imported by their old names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import final

MOVED = {
    "bandwidth": "kernels.bandwidth",
    "cholesky": "numerics.cholesky",
    "cli": "app.cli",
    "comparison": "app.comparison",
    "compiling": "numerics.compiling",
    "converters": "interop.pgmpy",
    "cpds": "nodes",
    "data": "tables",
    "demo": "app.demo",
    "estimators": "interop.scikit_learn",
    "graph": "graphs",
    "io": "files.model",
    "kde": "nodes.kde",
    "layout": "drawing.layout",
    "moments": "numerics.moments",
    "orientation": "graphs.orientation",
    "pictures": "drawing.pictures",
    "plots": "drawing.plots",
    "progress": "app.progress",
    "splits": "tables.splits",
    "terminal": "app.terminal",
}


@final
class _Alias(Loader):
    """Loads a module under another name."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its present name."""
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is, apart from the specification that the import system gave it."""
        module.__spec__ = self._spec


@final
class MovedModules(MetaPathFinder):
    """Finds modules by the names that they had in version 0.1."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module that had this name, or one inside it."""
        package, _, rest = fullname.partition(".")
        old, _, inner = rest.partition(".")
        if package != "spbn" or old not in MOVED:
            return None
        now = ".".join(filter(None, (package, MOVED[old], inner)))
        return ModuleSpec(fullname, _Alias(now))


def install() -> None:
    """Make the old names known to the import system."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())  # first: the path of an alias would give its submodules again
