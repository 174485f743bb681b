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

from collections.abc import Iterable


class SpbnError(Exception):
    """Anything that spbn refuses to do."""


class ArgumentError(SpbnError, ValueError):
    """An argument has a value that makes no sense."""


class DataError(SpbnError, ValueError):
    """A table cannot be used as it is."""


class GraphError(SpbnError, ValueError):
    """A graph or a structure is not what it has to be."""


class KnowledgeError(GraphError, ArgumentError):
    """Required and forbidden arcs make no sense, alone or together."""


class FitError(SpbnError, ValueError):
    """A node cannot be fitted to these rows."""


class ModelFileError(SpbnError, ValueError):
    """A file is not a model, or is damaged."""


class CheckpointError(SpbnError, ValueError):
    """A file is not the checkpoint of this work, or is damaged."""


class PackageError(SpbnError, ImportError):
    """A package that this needs is not installed."""


class ClusterError(SpbnError, RuntimeError):
    """A scheduler does not answer, or its workers do not do their work."""


def quoted(names: Iterable[str]) -> str:
    """Write names for an error message: 'a', 'b' and 'c'; long lists are cut."""
    parts = [repr(name) for name in names]
    if len(parts) > 12:
        return ", ".join(parts[:10]) + f", ... ({len(parts)} in all)"
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
