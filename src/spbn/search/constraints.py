"""What a search may and may not do, checked before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from spbn.data import BoolArray, quoted
from spbn.errors import ArgumentError, GraphError
from spbn.graph import DAG, Arc
from spbn.structure import NodeType, Structure

KINDS = ("arcs", "types")


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which operators are allowed; matrices are by column order of the structure."""

    arcs: bool
    types: BoolArray  # the nodes whose type may change
    required: BoolArray
    forbidden: BoolArray
    max_parents: int

    def addable(self, dag: DAG) -> BoolArray:
        """``[i, j]``: an arc i → j may be added."""
        return self._free(dag.addable()) & self._room(dag)[None, :]

    def removable(self, dag: DAG) -> BoolArray:
        """``[i, j]``: the arc i → j may be removed."""
        return dag.matrix & ~self.required & self.arcs

    def reversible(self, dag: DAG) -> BoolArray:
        """``[i, j]``: the arc i → j may be turned around."""
        allowed = dag.reversible() & ~self.required & ~self.forbidden.T & self._room(dag)[:, None]
        return allowed & self.arcs

    def _free(self, candidates: BoolArray) -> BoolArray:
        return candidates & ~self.forbidden & self.arcs

    def _room(self, dag: DAG) -> BoolArray:
        room: BoolArray = dag.matrix.sum(axis=0) < self.max_parents
        return room


def constrain(
    start: Structure,
    *,
    operators: Iterable[str],
    max_parents: int | None,
    required_arcs: Iterable[Arc],
    forbidden_arcs: Iterable[Arc],
    fixed_types: Iterable[str] | Mapping[str, NodeType | str],
) -> tuple[Structure, Constraints]:
    """Check the wishes against each other; return a start that meets them, with the required arcs."""
    kinds = (operators,) if isinstance(operators, str) else tuple(operators)
    if not kinds or not set(kinds) <= set(KINDS):
        raise ArgumentError(
            f"operators must be some of {', '.join(map(repr, KINDS))}. Got {kinds!r} instead."
        )
    require_whole("max_parents", max_parents, least=0, optional=True)
    required = _matrix(start, required_arcs, "required_arcs")
    forbidden = _matrix(start, forbidden_arcs, "forbidden_arcs")
    _refuse_arcs(start, required & forbidden, "required_arcs and forbidden_arcs contradict each other")
    _refuse_arcs(start, start.dag.matrix & forbidden, "start has forbidden arcs")
    DAG.checked(start.nodes, required)
    dag = DAG.checked(start.nodes, start.dag.matrix | required)
    limit = len(start.nodes) if max_parents is None else max_parents
    crowded = [node for node in dag.nodes if len(dag.parents(node)) > limit]
    if crowded:
        raise ArgumentError(f"start gives more than max_parents={max_parents} parents to {quoted(crowded)}.")
    types = dict(start.types)
    fixed = {fixed_types} if isinstance(fixed_types, str) else set(fixed_types)
    for node in fixed:
        start.dag.index(node)
        if isinstance(fixed_types, Mapping):
            types[node] = NodeType.parse(fixed_types[node])
    changeable = np.array(["types" in kinds and node not in fixed for node in dag.nodes], dtype=bool)
    constraints = Constraints("arcs" in kinds, changeable, required, forbidden, limit)
    return Structure.from_dag(dag, types), constraints


def require_whole(name: str, value: object, *, least: int, optional: bool = False) -> None:
    """Refuse a value that is not a whole number of at least `least`."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        alternative = ", or None" if optional else ""
        raise ArgumentError(
            f"{name} must be a whole number, {least} or more{alternative}. Got {value!r} instead."
        )


def _matrix(start: Structure, arcs: Iterable[Arc], what: str) -> BoolArray:
    matrix = np.zeros((len(start.nodes), len(start.nodes)), dtype=bool)
    for arc in arcs:
        try:
            source, target = arc
            i, j = start.dag.index(source), start.dag.index(target)
        except (TypeError, ValueError, GraphError):
            raise ArgumentError(
                f"{what} must hold pairs (parent, child) of the nodes {quoted(start.nodes)}. Got {arc!r}."
            ) from None
        if i == j:
            raise ArgumentError(f"{what} must join different nodes. Got {arc!r}.")
        matrix[i, j] = True
    return matrix


def _refuse_arcs(start: Structure, arcs: BoolArray, problem: str) -> None:
    if arcs.any():
        named = ", ".join(f"{start.nodes[i]} → {start.nodes[j]}" for i, j in np.argwhere(arcs).tolist())
        raise ArgumentError(f"{problem}: {named}.")
