import ast
import graphlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spbn

SOURCE = Path(spbn.__file__).parent

#: The layers from the bottom to the top. A module imports from its own layer and from those below, never from
#: above, wherever the import is written: at the top of a file, in a function, or for type checkers only.
LAYERS = {
    "foundation": ("errors", "_base", "_deprecated"),
    "mathematics": ("numerics", "graphs", "tables", "kernels"),
    "densities": ("nodes", "rows", "structure", "transforms", "metrics"),
    "models": (
        *("record", "joint", "inference", "fitting", "io", "network", "datasets"),
        *("scores", "independence", "search", "dask"),
    ),
    "learning": ("learning", "timeseries"),
    "analysis": ("diagnostics", "monitoring", "scorer", "sklearn", "pgmpy"),
    "presentation": ("plots", "report", "cli"),
}
RANK = {unit: rank for rank, units in enumerate(LAYERS.values()) for unit in units}


def module_name(path, source):
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def modules_of(source):
    """Return all modules of the package by their names, but the package itself, which is above all layers."""
    return {
        module_name(path, source): path for path in source.rglob("*.py") if path != source / "__init__.py"
    }


def imports_of(path, modules):
    """Modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "spbn":
                    yield alias.name.removeprefix("spbn").removeprefix(".")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spbn":
            module = node.module.removeprefix("spbn").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                yield inner if inner in modules else module


def upward_imports(source):
    """Return what is imported from above, and modules that have no place in any layer."""
    modules = modules_of(source)
    found = []
    for module, path in modules.items():
        rank = RANK.get(module.split(".")[0])
        if rank is None:
            found.append(f"{module} has no place in LAYERS yet")
            continue
        for imported in imports_of(path, modules):
            # The package itself has nothing but what comes from elsewhere, and its version.
            if imported and RANK.get(imported.split(".")[0], -1) > rank:
                found.append(f"{module} imports {imported}, which is above it")
    return found


def cycle(source):
    """Return a cycle of modules that import each other; none if there is none."""
    modules = modules_of(source)
    graph = {module: set(imports_of(path, modules)) - {module, ""} for module, path in modules.items()}
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def test_there_are_at_most_seven_layers():
    assert len(LAYERS) <= 7


def test_imports_point_downwards():
    assert upward_imports(SOURCE) == []


def test_no_module_imports_itself_in_a_circle():
    assert cycle(SOURCE) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "imported"), [("structure", "spbn.learning.learn"), ("kernels/exact", "spbn.network")]
)
def test_an_upward_import_in_a_function_is_found(module, imported, tmp_path):
    copy = tmp_path / "spbn"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / f"{module}.py"
    path.write_text(path.read_text() + f"\n\ndef planted():\n    from {imported} import nothing\n")
    name, target = module.replace("/", "."), imported.removeprefix("spbn.")
    assert upward_imports(copy) == [f"{name} imports {target}, which is above it"]
    assert name in cycle(copy)


def test_a_cycle_within_a_layer_is_found(tmp_path):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs/__init__.py").write_text("")
    (tmp_path / "graphs/a.py").write_text("def f():\n    import spbn.graphs.b\n")
    (tmp_path / "graphs/b.py").write_text("from spbn.graphs import a\n")
    assert upward_imports(tmp_path) == []
    assert set(cycle(tmp_path)) == {"graphs.a", "graphs.b"}


def test_import_is_light():
    """Heavy packages are imported where they are used."""
    code = "import spbn, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"matplotlib", "click", "sklearn", "rich", "pandas", "networkx", "igraph", "scipy.special"}
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
