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

Messages speak of arguments, and not every caller writes them as Python does: ``max_parents=2`` is
``--max-parents 2`` on the command line. So a message is written with its arguments marked, by three functions
that return text for an f-string::

    raise ArgumentError(f"{argument('max_parents')} must be 0 or more. Got {value!r} instead.")
    raise DataError(f"{what} is constant: leave it out ({setting('drop', [what])}{in_python(' in learn')}).")

`str(error)` is the message in Python's words: ``drop=['x'] in learn``. `error.render(naming)` is the same in
those of a `Naming`: ``--drop x``. `error.argument` is the first argument that the message speaks of.
Fragments with marks can be put together like any other text; `error.message` keeps the marks for an error
that quotes another one. Warnings that speak of arguments are `SpbnWarning`s, with the same methods.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Protocol

# Marks are control characters, which no other part of a message has: names and values are shown by `repr`.
_BEGIN, _NEXT, _END = "\x01", "\x1f", "\x02"
_MARK = re.compile(
    f"{_BEGIN}(name|setting|python){_NEXT}([^{_BEGIN}{_END}]*?){_NEXT}([^{_BEGIN}{_END}]*){_END}"
)


class Naming(Protocol):
    """How a caller writes the arguments of Python's functions."""

    def name(self, argument: str, /) -> str:
        """Return what an argument is called: ``--max-parents`` for "max_parents"."""

    def setting(self, argument: str, value: object, /) -> str:
        """Return how an argument is given a value: ``--missing drop`` for "missing" and "drop".

        The value is a literal of Python; `...` stands for any.
        """


def argument(name: str) -> str:
    """Mark the name of an argument in a message."""
    return f"{_BEGIN}name{_NEXT}{name}{_NEXT}{_END}"


def setting(name: str, value: object, *, shown: str | None = None) -> str:
    """Mark an argument with a value, ``name=value``, in a message.

    `value`: what `repr` shows of it is what stands in the message. `...` stands for any value.
    `shown`: stands in the message instead.
    """
    shown = ("..." if value is ... else repr(value)) if shown is None else shown
    return f"{_BEGIN}setting{_NEXT}{name}{_NEXT}{shown}{_END}"


def in_python(text: str, elsewhere: str = "") -> str:
    """Mark a part of a message that only makes sense in Python, and say what others read in its place."""
    return f"{_BEGIN}python{_NEXT}{text}{_NEXT}{elsewhere}{_END}"


def render(message: str, naming: Naming | None = None) -> str:
    """Write a message with marks in the words of Python, or in those of another caller."""

    def write(mark: re.Match[str]) -> str:
        kind, first, second = mark.groups()
        if kind == "python":
            return first if naming is None else second
        if kind == "name":
            return first if naming is None else naming.name(first)
        return f"{first}={second}" if naming is None else naming.setting(first, _literal(second))

    found = 1
    while found:  # marks may be within marks: the inner ones are first
        message, found = _MARK.subn(write, message)
    return message


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


class _Worded(Exception):  # noqa: N818  # warnings are exceptions too
    """An exception whose `message` may have marks; its `argument` is the first that is marked, or is said."""

    def __init__(self, message: str = "", *, argument: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        named = re.search(f"{_BEGIN}(?:name|setting){_NEXT}([^{_NEXT}]*)", message)
        self.argument = named[1] if named and argument is None else argument

    def render(self, naming: Naming | None = None) -> str:
        """Return the message in the words of Python, or in those of another caller."""
        return render(self.message, naming)

    def __str__(self) -> str:
        return render(self.message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class SpbnWarning(_Worded, UserWarning):
    """A warning that speaks of arguments."""


class SpbnError(_Worded):
    """Anything that spbn refuses to do.

    Attributes
    ----------
    argument
        The argument that the message speaks of, for example "max_parents"; None if there is none.

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
    ... except spbn.errors.ArgumentError as error:
    ...     print(error)
    model must be one of 'spbn', 'gbn', 'kdebn', 'blend', 'auto'. Got 'gnb' instead.
    """


class DataError(SpbnError, ValueError):
    """A table cannot be used as it is.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.learn({"x": [1.0, None, 3.0]})
    ... except spbn.errors.DataError as error:
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
    ... except spbn.errors.GraphError as error:
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
    ... except spbn.errors.KnowledgeError as error:
    ...     print(error)
    the arc A → B is both required and forbidden: drop one of the two.
    """


class FitError(SpbnError, ValueError):
    """A node cannot be fitted to these rows.

    Examples
    --------
    >>> import spbn
    >>> try:
    ...     spbn.nodes.CKDE.fit({"x": [1.0, 1.0, 1.0]}, "x")
    ... except spbn.errors.FitError as error:
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
    ... except spbn.errors.ModelFileError as error:
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
    ... except spbn.errors.CheckpointError as error:
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
    ... except spbn.errors.PackageError as error:
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
    ... except spbn.errors.ClusterError as error:
    ...     print(error)  # no scheduler answers
    """


def quoted(names: Iterable[str]) -> str:
    """Write names for an error message: 'a', 'b' and 'c'; long lists are cut."""
    parts = [repr(name) for name in names]
    if len(parts) > 12:
        return ", ".join(parts[:10]) + f", ... ({len(parts)} in all)"
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def require_plot_packages() -> None:
    """Refuse to draw if the packages for it are not installed, and say how to install them."""
    for package in ("matplotlib", "igraph"):
        if find_spec(package) is None:
            raise PackageError(f"drawing needs {package}: install it with pip install 'spbn[plot]'.")


def can_place_graphs() -> bool:
    """Tell whether the package that places the nodes of a graph is installed."""
    return find_spec("igraph") is not None
