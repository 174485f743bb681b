"""What is known about a graph before the data are used: edges and arcs that must, or must not, be there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import BoolArray
from spbn.errors import GraphError, KnowledgeError, argument, in_python, quoted
from spbn.graphs.dag import DAG, Arc

#: How errors speak of arcs that are required.
REQUIRED_ARCS = in_python("the arcs", elsewhere=f"the required arcs ({argument('required_arcs')})")


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Required and forbidden edges and arcs, as matrices that do not contradict each other."""

    nodes: tuple[str, ...]
    #: Pairs that are joined whatever the data say; symmetric.
    required_edges: BoolArray
    #: Pairs that are not joined; symmetric.
    forbidden_edges: BoolArray
    #: ``required_arcs[i, j]``: there is an arc i → j.
    required_arcs: BoolArray
    #: ``forbidden_arcs[i, j]``: if i and j are joined, then not by i → j.
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

        A required arc requires its edge and forbids the opposite arc. A pair of
        arcs forbidden in both directions forbids the edge, and vice versa.
        """
        names = tuple(nodes)
        wanted = _matrix(names, required_arcs, "required_arcs")
        banned = _matrix(names, forbidden_arcs, "forbidden_arcs")
        required = _matrix(names, required_edges, "required_edges") | wanted
        forbidden = _matrix(names, forbidden_edges, "forbidden_edges") | (banned & banned.T)
        required, forbidden = required | required.T, forbidden | forbidden.T
        DAG.checked(names, wanted, REQUIRED_ARCS)
        _refuse(names, wanted & banned, "the arc {} → {} is both required and forbidden")
        _refuse(names, np.triu(required & forbidden), "the edge {} — {} is both required and forbidden")
        knowledge = cls(names, required, forbidden, wanted, banned | wanted.T | forbidden)
        knowledge.arcs_among(required)  # refuses a cycle
        return knowledge

    def arcs_among(self, adjacent: BoolArray) -> BoolArray:
        """Return the arcs of a skeleton whose direction is known: the opposite one is forbidden."""
        arcs = adjacent & self.forbidden_arcs.T & ~self.forbidden_arcs
        try:
            DAG.checked(self.nodes, arcs)
        except GraphError as error:
            raise KnowledgeError(
                f"the required and forbidden arcs leave no acyclic graph: {error.message}"
            ) from None
        return arcs


def _matrix(nodes: tuple[str, ...], pairs: Iterable[Arc], what: str) -> BoolArray:
    place = {node: i for i, node in enumerate(nodes)}
    matrix = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for pair in pairs:
        try:
            source, target = pair
            i, j = place[source], place[target]
        except (TypeError, ValueError, KeyError):
            raise KnowledgeError(
                f"{argument(what)} must hold pairs (parent, child) of the nodes {quoted(nodes)}. "
                f"Got {pair!r}."
            ) from None
        if i == j:
            raise KnowledgeError(f"{argument(what)} must join two nodes. Got {pair!r}.")
        matrix[i, j] = True
    return matrix


def _refuse(nodes: Sequence[str], contradictions: BoolArray, message: str) -> None:
    for i, j in np.argwhere(contradictions).tolist():
        raise KnowledgeError(f"{message.format(nodes[i], nodes[j])}: drop one of the two.")
