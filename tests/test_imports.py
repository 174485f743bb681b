import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import spbn

SOURCE = Path(spbn.__file__).parent

#: Modules and packages from the bottom to the top; each imports only from the layers below its own. A part
#: of a package may have a place of its own.
LAYERS = [
    {"errors", "_base"},
    {"numerics", "graphs", "tables", "kernels"},
    {"rows", "nodes", "structure", "transforms", "metrics"},
    {
        *("fitting", "record", "joint", "inference", "network", "datasets", "io"),
        *("scores", "independence", "pc", "search", "dask"),
    },
    {"learning", "timeseries"},
    {"diagnostics", "monitoring", "scorer", "sklearn", "pgmpy"},
    {"plots", "report", "cli"},
]
RANK = {unit: rank for rank, layer in enumerate(LAYERS) for unit in layer}


def unit_of(module):
    """The longest name in LAYERS that a module is, or is part of."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in RANK), parts[0])


def module_name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"}


def imports_of(path):
    """Modules of the package that are imported together with a file."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("spbn."):
                    yield alias.name.removeprefix("spbn.")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spbn":
            module = node.module.removeprefix("spbn").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                yield inner if inner in MODULES else module


def test_imports_point_downwards():
    for module, path in MODULES.items():
        unit = unit_of(module)
        assert unit in RANK, f"{unit} has no place in LAYERS yet"
        for imported in imports_of(path):
            other = unit_of(imported)
            assert other == unit or RANK[other] < RANK[unit], (
                f"{module} imports {imported}, which is not below it"
            )


def test_no_module_imports_itself_in_a_circle():
    graph = {module: set(imports_of(path)) - {module} for module, path in MODULES.items()}
    list(graphlib.TopologicalSorter(graph).static_order())


def test_import_is_light():
    """Heavy packages are imported where they are used."""
    code = "import spbn, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"matplotlib", "typer", "sklearn", "rich", "pandas", "networkx", "igraph", "scipy.special"}
    heavy |= {"dask", "distributed", "pyarrow"}
    assert not heavy & set(loaded)


def test_public_names_are_one_list_without_repeats():
    assert all(hasattr(spbn, name) for name in spbn.__all__)
    assert len(set(spbn.__all__)) == len(spbn.__all__)


def test_works_where_nothing_can_be_written():
    """Without any folder for compiled code, everything is compiled in memory."""
    code = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
from spbn.numerics.gaussian import whitener
import numpy as np
print(whitener(np.eye(1))[0, 0])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(out) == 1.0
