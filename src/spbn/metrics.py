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

from spbn._base.arrays import BoolArray
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
    (directed_a, undirected_a), (directed_b, undirected_b) = _joins(a, b)
    joined_a = directed_a | directed_a.T | undirected_a
    joined_b = directed_b | directed_b.T | undirected_b
    return int(np.triu(joined_a != joined_b).sum())


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
    (directed_a, undirected_a), (directed_b, undirected_b) = _joins(a, b)
    differs = (directed_a != directed_b) | (undirected_a != undirected_b)
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


def _joins(a: Any, b: Any) -> tuple[tuple[BoolArray, BoolArray], tuple[BoolArray, BoolArray]]:
    """Return arcs and edges of two graphs as matrices, in the order of the first one's nodes."""
    first, second = _graph(a), _graph(b)
    _require_same_nodes(first.nodes, second.nodes)
    place = {node: i for i, node in enumerate(second.nodes)}
    order = [place[node] for node in first.nodes]
    shuffle = np.ix_(order, order)
    directed, undirected = _matrices(second)
    return _matrices(first), (directed[shuffle], undirected[shuffle])


def _matrices(graph: DAG | PDAG) -> tuple[BoolArray, BoolArray]:
    if isinstance(graph, PDAG):
        return graph.directed, graph.undirected
    return graph.matrix, np.zeros_like(graph.matrix)


def _require_same_nodes(a: tuple[str, ...], b: tuple[str, ...]) -> None:
    if alone := sorted(set(a) ^ set(b)):
        raise GraphError(
            f"graphs over different nodes cannot be compared. Only one of the two has {quoted(alone)}."
        )
