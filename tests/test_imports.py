import ast
import subprocess
import sys
from pathlib import Path

import spbn

SOURCE = Path(spbn.__file__).parent

#: Modules from the bottom to the top; a module imports only from layers below its own.
LAYERS = [
    {"errors", "compiling"},
    {"data", "kernels.exp2"},
    {
        "orientation",
        "moments",
        "cholesky",
        "kernels.exact",
        "kernels.conditional",
        "kernels.spectral",
        "kernels.pruned",
    },
    {"graph", "kernels", "bandwidth"},
    {"structure", "kde"},
    {"cpds.base"},
    {"cpds.linear_gaussian", "cpds.ckde"},
    {"cpds"},
    {"network", "datasets"},
    {"io", "scores.base", "scores.regression"},
    {"scores.gaussian", "scores.predictive"},
    {"scores.likelihood"},
    {"scores"},
    {"search.operators", "search.constraints"},
    {"search.deltas"},
    {"search.hill_climbing"},
    {"search"},
    {"metrics", "progress"},
    {"learn"},
]
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


def top_level_imports(path):
    """Modules of the package that a file imports when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spbn":
            module = node.module.removeprefix("spbn").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                yield inner if is_module(inner) else module


def is_module(name):
    path = SOURCE / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_imports_point_downwards():
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if module == "__init__":
            continue
        assert module in RANK, f"{module} has no place in LAYERS yet"
        for imported in top_level_imports(path):
            assert RANK[imported] < RANK[module], f"{module} imports {imported}, which is not below it"


def test_import_is_light():
    """Heavy packages are imported where they are used."""
    code = "import spbn, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"matplotlib", "typer", "sklearn", "rich", "pandas", "networkx", "polars", "pyarrow"} & set(
        loaded
    )


def test_public_names_are_one_list_without_repeats():
    assert all(hasattr(spbn, name) for name in spbn.__all__)
    assert len(set(spbn.__all__)) == len(spbn.__all__)


def test_works_where_nothing_can_be_written(tmp_path):
    """Without any folder for compiled code, everything is compiled in memory."""
    code = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import spbn
print(spbn.LinearGaussian.fit({"a": [1.0, 2.0, 4.0]}, "a").variance)
from spbn.cholesky import whitener
import numpy as np
print(whitener(np.eye(1))[0, 0])
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert float(out[1]) == 1.0
