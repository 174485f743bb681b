"""What all scores share: families in, cached numbers out.

A score is a sum over families, and greater is better. The cache is here and
nowhere else; a concrete score only says how families are computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import final

import numpy as np

from spbn.data import FloatArray, quoted
from spbn.errors import ArgumentError, GraphError
from spbn.structure import Family, NodeType, Structure


class FamilyCache:
    """Numbers of families, each computed once, many at a time.

    Holds `limit` numbers at most and then forgets the older half.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        types: frozenset[NodeType],
        compute: Callable[[list[Family]], FloatArray],
        limit: int = 1 << 20,
    ) -> None:
        self._position = {node: i for i, node in enumerate(nodes)}
        self._types = types
        self._compute = compute
        self._limit = limit
        self._numbers: dict[Family, float] = {}

    def many(self, families: Iterable[Family | tuple[str, Iterable[str], NodeType | str]]) -> FloatArray:
        """Return the number of every family; those not known yet are computed in one batch."""
        known = self._numbers
        asked = [self._normalised(family) for family in families]
        new = list(dict.fromkeys(family for family in asked if family not in known))
        if new:
            if len(known) + len(new) > self._limit:
                self._forget(keep=set(asked))
            known.update(zip(new, self._compute(new).tolist(), strict=True))
        return np.array([known[family] for family in asked])

    def _normalised(self, family: Family | tuple[str, Iterable[str], NodeType | str]) -> Family:
        """Check a family and put its parents into column order: its number depends on the set alone."""
        node, parents, node_type = family
        try:
            order = [self._position[name] for name in (*parents, node)]
        except KeyError as error:
            columns = quoted(self._position)
            raise GraphError(f"the score's data has no column {error.args[0]!r}. It has {columns}.") from None
        own = order.pop()
        if own in order or len(set(order)) < len(order):
            raise GraphError(f"the parents of {node!r} must be distinct other nodes. Got {quoted(parents)}.")
        if node_type not in self._types:
            NodeType.parse(node_type)
            allowed = " or ".join(sorted(self._types))
            raise ArgumentError(
                f"this score is defined for nodes of type {allowed} only. Got {node!r} as {node_type}."
            )
        if isinstance(family, Family) and isinstance(node_type, NodeType) and order == sorted(order):
            return family
        return Family(node, tuple(sorted(parents, key=self._position.__getitem__)), NodeType(node_type))

    def _forget(self, keep: set[Family]) -> None:
        old = list(self._numbers)[: len(self._numbers) // 2]
        for family in old:
            if family not in keep:
                del self._numbers[family]


class Score(ABC):
    """A decomposable score of structures, prepared once for a table and asked many times."""

    #: The columns of the data.
    nodes: tuple[str, ...]
    #: The types of nodes that the score is defined for.
    node_types: frozenset[NodeType]

    def __init__(self, nodes: Sequence[str], node_types: Iterable[NodeType]) -> None:
        self.nodes = tuple(nodes)
        self.node_types = frozenset(node_types)
        self._cache = FamilyCache(self.nodes, self.node_types, self._compute)

    @abstractmethod
    def _compute(self, families: list[Family]) -> FloatArray:
        """Local scores of distinct families, parents by column order; -inf where one cannot be fitted."""

    @final
    def local(self, node: str, parents: Iterable[str] = (), type: NodeType | str = NodeType.LG) -> float:
        """Score of one node given its parents."""
        return float(self.local_many([Family(node, tuple(parents), NodeType.parse(type))])[0])

    @final
    def local_many(
        self, families: Iterable[Family | tuple[str, Iterable[str], NodeType | str]]
    ) -> FloatArray:
        """Scores of many families, computed in one batch."""
        return self._cache.many(families)

    @final
    def total(self, structure: Structure) -> float:
        """Score of a structure: the sum over its families."""
        return float(self.local_many(structure.families()).sum())
