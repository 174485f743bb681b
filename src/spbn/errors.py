"""The exceptions of spbn.

::

    SpbnError
    ├── ArgumentError    an argument has a value that makes no sense      (also a ValueError)
    ├── DataError        a table cannot be used as it is                  (also a ValueError)
    ├── GraphError       a graph or a structure is not what it has to be  (also a ValueError)
    │   └── KnowledgeError  required and forbidden arcs make no sense     (also an ArgumentError)
    ├── FitError         a node cannot be fitted to these rows            (also a ValueError)
    ├── ModelFileError   a file is not a model, or is damaged             (also a ValueError)
    ├── CheckpointError  a file is not the checkpoint of this work        (also a ValueError)
    ├── PackageError     a package that this needs is not installed       (also an ImportError)
    └── ClusterError     a scheduler or its workers do not do their work  (also a RuntimeError)

Every message says what is wrong, what was given, and what to do about it. A
family that cannot be fitted during a search is not an error: it scores -inf.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec


class SpbnError(Exception):
    """Anything that spbn refuses to do.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.learn({"x": [1.0, 2.0], "y": [1.0, 3.0]})
    ... except spbn.SpbnError as error:
    ...     print(error)
    column 'y' is a rescaled copy of column 'x': leave it out (drop=['y'] in learn).
    """


class ArgumentError(SpbnError, ValueError):
    """An argument has a value that makes no sense.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.learn({"x": [1.0, 2.0]}, model="gnb")
    ... except spbn.ArgumentError as error:
    ...     print(error)
    model must be one of 'spbn', 'gbn', 'kdebn', 'blend'. Got 'gnb' instead.
    """


class DataError(SpbnError, ValueError):
    """A table cannot be used as it is.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.learn({"x": [1.0, None, 3.0]})
    ... except spbn.DataError as error:
    ...     print(error)
    column 'x' has 1 missing value (row 2, counted from 1): ...
    """


class GraphError(SpbnError, ValueError):
    """A graph or a structure is not valid.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.DAG("AB", [("A", "B"), ("B", "A")])
    ... except spbn.GraphError as error:
    ...     print(error)
    the arcs form a cycle: A → B → A. Remove or reverse one of them.
    """


class KnowledgeError(GraphError, ArgumentError):
    """Required and forbidden arcs make no sense, alone or together.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> try:
    ...     spbn.learn(data, required_arcs=[("A", "B")], forbidden_arcs=[("A", "B")])
    ... except spbn.KnowledgeError as error:
    ...     print(error)
    the arc A → B is both required and forbidden: drop one of the two.
    """


class FitError(SpbnError, ValueError):
    """A node cannot be fitted to these rows.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.CKDE.fit({"x": [1.0, 1.0, 1.0]}, "x")
    ... except spbn.FitError as error:
    ...     print(error)
    the bandwidth matrix of 'x' is singular or not positive definite. ...
    """


class ModelFileError(SpbnError, ValueError):
    """A file is not a model, or is damaged.

    Examples
    --------
    >>> import spbn
    >>> with open("table.csv", "w") as file:
    ...     _ = file.write("x,y")
    >>> try:
    ...     spbn.BayesianNetwork.load("table.csv")
    ... except spbn.ModelFileError as error:
    ...     print(error)
    table.csv cannot be read: it is not an .spbn file, or it is damaged (File is not a zip file).
    """


class CheckpointError(SpbnError, ValueError):
    """A file is not the checkpoint of this work, or is damaged.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> data.to_csv("table.csv")
    >>> try:
    ...     spbn.learn(data, model="gbn", checkpoint="table.csv")
    ... except spbn.CheckpointError as error:
    ...     print(error)
    table.csv is not a checkpoint of spbn: give the name of a new file.
    """


class PackageError(SpbnError, ImportError):
    """A package that this needs is not installed.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.plots.plot_structure(spbn.datasets.synthetic_structure())  # doctest: +SKIP
    ... except spbn.PackageError as error:
    ...     print(error)  # matplotlib is not installed
    """


class ClusterError(SpbnError, RuntimeError):
    """A scheduler does not answer, or its workers do not do their work.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     with spbn.distributed.connected("tcp://127.0.0.1:1", timeout=1):  # doctest: +SKIP
    ...         pass
    ... except spbn.ClusterError as error:
    ...     print(error)  # no scheduler answers
    """


def quoted(names: Iterable[str]) -> str:
    """Write names for an error message: 'a', 'b' and 'c'; long lists are cut."""
    parts = [repr(name) for name in names]
    if len(parts) > 12:
        return ", ".join(parts[:10]) + f", ... ({len(parts)} in all)"
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# ----------------------------------------------------------------------------------------------------
# Packages that only parts of spbn need.


def require_plot_packages() -> None:
    """Refuse to draw if the packages for it are not installed, and say how to install them."""
    for package in ("matplotlib", "igraph"):
        if find_spec(package) is None:
            raise PackageError(f"drawing needs {package}: install it with pip install 'spbn[plot]'.")


def can_place_graphs() -> bool:
    """Tell whether the package that places the nodes of a graph is installed."""
    return find_spec("igraph") is not None
