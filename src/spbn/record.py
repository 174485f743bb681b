"""How a network was made: saved with it and shown in its report, so that nothing has to be guessed."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from spbn._base.checks import is_number, is_whole
from spbn.errors import ModelFileError
from spbn.graphs.dag import Arc
from spbn.nodes.base import NodeType
from spbn.structure import Structure

#: What the models of `learn` mean.
MODELS = {
    "auto": "continuous nodes have the simplest type that predicts them well: line, curve or blend",
    "spbn": "the paper's, whose continuous nodes are linear Gaussian or CKDE",
    "gbn": "all continuous nodes are linear Gaussian",
    "kdebn": "all continuous nodes are CKDE",
    "blend": "all continuous nodes are blends",
}
#: What their margins mean.
MARGINS = {
    "auto": "columns are transformed where that predicts better",
    "yeo-johnson": "all columns are transformed",
}


@dataclass(frozen=True)
class Record:
    """What is known about how a network was learned or fitted; anything unknown is None or empty.

    Attributes
    ----------
    settings
        The arguments of `learn` or `BayesianNetwork.fit`, as plain data.
    versions
        Those of spbn and of the packages that the numbers depend on.
    rows, columns
        How many rows were learned from, and the names of the columns.
    data_hash
        SHA-256 of the training table: tables with the same rows and columns have the same hash.
    seconds
        How long it took.
    typical
        For every node, the median of its log-density over training rows that its density was not fitted to:
        unusual rows are compared with it.
    search, type_search
        The search for the structure, and the one for the node types of PC's graph.
    rounds
        If missing values were imputed: the score that the search of every round reached.
    left_out
        How many further rows have a value so far out that nothing was learned from them.
    open_directions
        The arcs whose direction neither background knowledge nor the score decides.
    title
        What the table is called, such as the name of its file.
    classes
        If there may be a hidden class: the out-of-fold log-likelihood of a row, less what arcs and classes
        cost, by the number of classes, for all that were tried.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> print(network.record.rows, network.record.settings["seed"])
    200 0
    >>> print(network.record.model)
    gbn: all continuous nodes are linear Gaussian
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    columns: tuple[str, ...] = ()
    data_hash: str | None = None
    seconds: float | None = None
    typical: Mapping[str, float] = field(default_factory=dict)
    search: Any = None
    type_search: Any = None
    rounds: tuple[float, ...] = ()
    left_out: int = 0
    open_directions: tuple[Arc, ...] | None = None
    classes: Mapping[str, float] = field(default_factory=dict)
    title: str | None = None

    @property
    def model(self) -> str | None:
        """The model in words; None if the network was not learned, but fitted to a structure."""
        name, types = self.settings.get("model"), self.settings.get("types")
        if not isinstance(name, str):
            return None
        meaning = MODELS.get(name, "")
        if types:
            among = ", ".join(map(str, types)) if isinstance(types, list | tuple) else str(types)
            meaning = f"continuous nodes have one of the types {among}"
            if name == "auto":
                meaning = f"continuous nodes have the simplest type that predicts them well, of {among}"
        known = filter(None, [meaning, MARGINS.get(str(self.settings.get("margins")), "")])
        return f"{name}: {'; '.join(known)}"

    @property
    def seed(self) -> Any:
        """The seed, if there was one."""
        return self.settings.get("seed")


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as text, numbers, lists and dicts; anything else is described in words."""
    return {name: _plain(value) for name, value in settings.items()}


def current_versions() -> dict[str, str]:
    """Return the versions of everything that the numbers depend on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:  # to look them up takes as long as to learn a small Gaussian network
    from importlib.metadata import version

    import spbn

    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"spbn": spbn.__version__, "python": platform.python_version(), **packages}


def to_plain(record: Record) -> dict[str, Any]:
    """Describe a record, apart from its searches, as plain data."""
    arcs = record.open_directions
    return {
        "settings": dict(record.settings),
        "versions": dict(record.versions),
        "rows": record.rows,
        "columns": list(record.columns),
        "data_hash": record.data_hash,
        "seconds": record.seconds,
        "typical": dict(record.typical),
        **({"rounds": list(record.rounds)} if record.rounds else {}),
        **({"left_out": record.left_out} if record.left_out else {}),
        **({} if arcs is None else {"open_directions": [list(arc) for arc in arcs]}),
        **({"classes": dict(record.classes)} if record.classes else {}),
        **({"title": record.title} if record.title else {}),
    }


def from_plain(document: Any, *, search: Any, type_search: Any) -> Record:
    """Read what `to_plain` wrote; anything else is a `ModelFileError`."""
    expected: dict[str, Callable[[Any], bool]] = {
        "settings": lambda value: isinstance(value, dict),
        "versions": lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
        "rows": lambda value: value is None or is_whole(value, 0),
        "columns": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
        "data_hash": lambda value: value is None or isinstance(value, str),
        "seconds": lambda value: value is None or is_number(value),
        "typical": lambda value: isinstance(value, dict) and all(map(is_number, value.values())),
        "rounds": lambda value: isinstance(value, list) and all(map(is_number, value)),
        "left_out": lambda value: is_whole(value, 0),
        "open_directions": lambda value: value is None or _are_pairs(value),
        "classes": lambda value: isinstance(value, dict) and all(map(is_number, value.values())),
        "title": lambda value: value is None or isinstance(value, str),
    }
    if isinstance(document, dict):
        absent = {"rounds": [], "left_out": 0, "open_directions": None, "classes": {}, "title": None}
        document = {**absent, **document}
    if not isinstance(document, dict) or set(document) != set(expected):
        raise ModelFileError(
            f"its record of learning must have {', '.join(expected)}. Got {document!r:.200}."
        )
    for key, is_right in expected.items():
        if not is_right(document[key]):
            raise ModelFileError(
                f"{key!r} in its record of learning makes no sense. Got {document[key]!r:.200}."
            )
    arcs = document["open_directions"]
    read = {
        "columns": tuple(document["columns"]),
        "rounds": tuple(document["rounds"]),
        "open_directions": None if arcs is None else tuple(map(tuple, arcs)),
    }
    return Record(
        **{**document, **read},
        search=search,
        type_search=type_search,
    )


def _are_pairs(value: Any) -> bool:
    pairs = value if isinstance(value, list) else [value]
    return all(isinstance(p, list) and len(p) == 2 and all(isinstance(n, str) for n in p) for p in pairs)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, NodeType):
        return value.name
    if isinstance(value, Structure):
        return {
            "arcs": [list(arc) for arc in value.arcs],
            "types": {node: node_type.name for node, node_type in value.types.items()},
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return f"<{getattr(value, '__name__', type(value).__name__)}>"
