"""What is known of a graph before the data are asked: edges and arcs that must, or must not, be there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spbn.data import BoolArray
from spbn.errors import GraphError
from spbn.graph import DAG, PDAG, Arc


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Required and forbidden edges and arcs, as matrices that do not contradict each other."""

    nodes: tuple[str, ...]
    #: Pairs that are joined whatever the tests say; symmetric.
    required: BoolArray
    #: Pairs that are not joined; symmetric.
    forbidden: BoolArray
    #: ``forbidden_arcs[i, j]``: if i and j are joined, it is not by i → j.
    forbidden_arcs: BoolArray

    @classmethod
    def of(
        cls,
        nodes: Sequence[str],
        *,
        required_edges: Iterable[Arc] = (),
        forbidden_edges: Iterable[Arc] = (),
        required_arcs: Iterable[Arc] = (),
        forbidden_arcs: Iterable[Arc] = (),
    ) -> Knowledge:
        """Read the pairs, add what follows from them, and refuse contradictions.

        A required arc requires its edge and forbids the opposite arc. Two arcs
        that are forbidden in both directions forbid the edge.
        """
        names = tuple(nodes)
        wanted_arcs = DAG(names, required_arcs).matrix  # refuses a cycle
        banned_arcs = np.zeros_like(wanted_arcs)
        for arc in forbidden_arcs:
            banned_arcs |= DAG(names, [arc]).matrix
        required = PDAG(names, edges=required_edges).undirected | wanted_arcs | wanted_arcs.T
        forbidden = PDAG(names, edges=forbidden_edges).undirected | (banned_arcs & banned_arcs.T)
        _refuse(names, wanted_arcs & banned_arcs, "the arc {} → {} is both required and forbidden")
        _refuse(names, np.triu(required & forbidden), "the edge {} — {} is both required and forbidden")
        knowledge = cls(names, required, forbidden, banned_arcs | wanted_arcs.T)
        knowledge.arcs_among(required)  # refuses a cycle
        return knowledge

    def arcs_among(self, adjacent: BoolArray) -> BoolArray:
        """Return the arcs whose direction is known, of a skeleton: the opposite one is forbidden."""
        arcs = adjacent & self.forbidden_arcs.T & ~self.forbidden_arcs
        try:
            DAG(self.nodes, [(self.nodes[i], self.nodes[j]) for i, j in np.argwhere(arcs).tolist()])
        except GraphError as error:
            raise GraphError(f"the required and forbidden arcs leave no acyclic graph: {error}") from None
        return arcs


def _refuse(nodes: Sequence[str], contradictions: BoolArray, message: str) -> None:
    for i, j in np.argwhere(contradictions).tolist():
        raise GraphError(f"{message.format(nodes[i], nodes[j])}: drop one of the two.")
