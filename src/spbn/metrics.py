"""How far two graphs, or two structures, are from each other.

All three take DAGs, PDAGs, structures and fitted networks, in any combination that
makes sense, over the same nodes in any order. They are symmetric, and 0 for
equal arguments.

============  =======================================================================
`hmd`         pairs that are joined in one graph and not in the other
`shd`         pairs that are not joined in the same way: absent, →, ← or undirected
`thmd`        nodes that have different types
============  =======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spbn._base.arrays import IntArray
from spbn.errors import ArgumentError, GraphError, quoted
from spbn.graphs.dag import DAG, PDAG
from spbn.structure import Structure


def hmd(a: Any, b: Any) -> int:
    """Return the Hamming distance: how many pairs are joined in one graph and not in the other.

    Examples
    --------
    >>> import spbn
    >>> a = spbn.DAG("ABC", [("A", "B"), ("B", "C")])
    >>> b = spbn.DAG("ABC", [("B", "A")])
    >>> spbn.metrics.hmd(a, b)
    1
    """
    differs = np.not_equal(*((joins | joins.T) > 0 for joins in _joins(a, b)))
    return int(np.triu(differs).sum())


def shd(a: Any, b: Any) -> int:
    """Return the structural Hamming distance: how many pairs are not joined in the same way.

    An arc that is reversed, or that is directed in one graph only, counts once.
    To compare only what data can tell apart, compare equivalence classes:
    ``shd(a.to_cpdag(), b.to_cpdag())``.

    Examples
    --------
    >>> import spbn
    >>> a = spbn.DAG("ABC", [("A", "B"), ("B", "C")])
    >>> b = spbn.DAG("ABC", [("B", "A")])
    >>> spbn.metrics.shd(a, b)
    2
    """
    differs = np.not_equal(*_joins(a, b))
    return int(np.triu(differs | differs.T).sum())


def thmd(a: Any, b: Any) -> int:
    """Return the type Hamming distance: how many nodes have different types.

    Examples
    --------
    >>> import spbn
    >>> a = spbn.Structure("AB", types="lg")
    >>> b = spbn.Structure("AB", types={"A": "lg", "B": "ckde"})
    >>> spbn.metrics.thmd(a, b)
    1
    """
    first, second = _structure(a), _structure(b)
    _require_same_nodes(first.nodes, second.nodes)
    return sum(first.types[node] != second.types[node] for node in first.nodes)


def _structure(value: Any) -> Structure:
    structure = getattr(value, "structure", value)  # a fitted network, or a search result
    if not isinstance(structure, Structure):
        raise ArgumentError(f"thmd takes structures or fitted networks. Got {type(value).__name__}.")
    return structure


def _graph(value: Any) -> DAG | PDAG:
    graph = getattr(value, "structure", value)
    graph = graph.dag if isinstance(graph, Structure) else graph
    if not isinstance(graph, DAG | PDAG):
        raise ArgumentError(
            f"a graph must be a DAG, a PDAG, a Structure or a fitted network. Got {type(value).__name__}."
        )
    return graph


def _joins(a: Any, b: Any) -> tuple[IntArray, IntArray]:
    """Return two graphs as matrices, 1 for arcs and 2 for edges, in the order of the first one's nodes."""
    graphs = _graph(a), _graph(b)
    first, second = (graph.nodes for graph in graphs)
    _require_same_nodes(first, second)
    place = {node: i for i, node in enumerate(second)}
    order = [place[node] for node in first]
    one, other = (
        graph.directed + 2 * graph.undirected if isinstance(graph, PDAG) else graph.matrix.astype(np.int64)
        for graph in graphs
    )
    return one, other[np.ix_(order, order)]


def _require_same_nodes(a: tuple[str, ...], b: tuple[str, ...]) -> None:
    if alone := sorted(set(a) ^ set(b)):
        raise GraphError(
            f"graphs over different nodes cannot be compared. Only one of the two has {quoted(alone)}."
        )
