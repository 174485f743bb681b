"""The moves of a structure search, and which of them are allowed.

Operators are small frozen values. Applied to a structure, an operator gives a new one; its inverse undoes
that.

`Constraints` say what a search may and may not do. They are checked before it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spbn._base.arrays import BoolArray
from spbn._base.checks import refuse, whole
from spbn.errors import ArgumentError, KnowledgeError, argument, in_python, quoted, setting
from spbn.graphs.dag import DAG, Arc
from spbn.graphs.knowledge import REQUIRED_ARCS, Knowledge
from spbn.nodes.base import NodeType, impossible_arcs, refusal, refuse_impossible
from spbn.structure import Structure
from spbn.tables.table import Variable

KINDS = ("arcs", "types")


@dataclass(frozen=True)
class AddArc:
    """Add the arc source → target."""

    source: str
    target: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.target,)

    @property
    def inverse(self) -> RemoveArc:
        """The operator that undoes this one."""
        return RemoveArc(self.source, self.target)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure with the arc."""
        return structure.with_dag(structure.dag.with_arc(self.source, self.target))

    def __str__(self) -> str:
        return f"add {self.source} → {self.target}"


@dataclass(frozen=True)
class RemoveArc:
    """Remove the arc source → target."""

    source: str
    target: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.target,)

    @property
    def inverse(self) -> AddArc:
        """The operator that undoes this one."""
        return AddArc(self.source, self.target)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure without the arc."""
        return structure.with_dag(structure.dag.without_arc(self.source, self.target))

    def __str__(self) -> str:
        return f"remove {self.source} → {self.target}"


@dataclass(frozen=True)
class ReverseArc:
    """Reverse the arc source → target."""

    source: str
    target: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.source, self.target)

    @property
    def inverse(self) -> ReverseArc:
        """The operator that undoes this one."""
        return ReverseArc(self.target, self.source)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure with the arc reversed."""
        return structure.with_dag(structure.dag.with_reversed_arc(self.source, self.target))

    def __str__(self) -> str:
        return f"reverse {self.source} → {self.target}"


@dataclass(frozen=True)
class ChangeType:
    """Change the type of a node."""

    node: str
    before: NodeType
    after: NodeType

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.node,)

    @property
    def inverse(self) -> ChangeType:
        """The operator that undoes this one."""
        return ChangeType(self.node, self.after, self.before)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure with the new type."""
        return structure.with_type(self.node, self.after)

    def __str__(self) -> str:
        return f"{self.node}: {self.before} → {self.after}"


Operator = AddArc | RemoveArc | ReverseArc | ChangeType


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which operators are allowed; matrices are by column order of the structure."""

    arcs: bool
    types: BoolArray  # nodes × choices: the types that nodes may change to
    choices: tuple[NodeType, ...]
    knowledge: Knowledge
    max_parents: int

    def addable(self, dag: DAG) -> BoolArray:
        """``[i, j]``: an arc i → j may be added."""
        return dag.addable() & ~self.knowledge.forbidden_arcs & self._room(dag)[None, :] & self.arcs

    def removable(self, dag: DAG) -> BoolArray:
        """``[i, j]``: the arc i → j may be removed."""
        return dag.matrix & ~self.knowledge.required_arcs & self.arcs

    def reversible(self, dag: DAG) -> BoolArray:
        """``[i, j]``: the arc i → j may be reversed."""
        return dag.reversible() & self._turnable & self._room(dag)[:, None] & self.arcs

    @cached_property
    def _turnable(self) -> BoolArray:
        """``[i, j]``: background knowledge allows an arc i → j to be reversed."""
        turnable: BoolArray = ~self.knowledge.forbidden_arcs.T  # required arcs forbid their opposites
        return turnable

    def _room(self, dag: DAG) -> BoolArray:
        room: BoolArray = dag.matrix.sum(axis=0) < self.max_parents
        return room


def constrain(
    start: Structure,
    variables: Mapping[str, Variable],
    *,
    operators: Iterable[str],
    types: Iterable[NodeType],
    max_parents: int | None,
    required_arcs: Iterable[Arc],
    forbidden_arcs: Iterable[Arc],
    fixed_types: Iterable[str] | Mapping[str, NodeType | str],
) -> tuple[Structure, Constraints]:
    """Check the constraints against each other; return a start that meets them, with the required arcs.

    Arcs that no node type admits are forbidden.
    """
    kinds = (operators,) if isinstance(operators, str) else tuple(operators)
    if not kinds or not set(kinds) <= set(KINDS):
        refuse("operators", f"some of {', '.join(map(repr, KINDS))}", kinds)
    if max_parents is not None:
        whole("max_parents", max_parents, or_none=True)
    choices, required = tuple(types), list(required_arcs)
    names = start.dag.nodes
    impossible = impossible_arcs([variables[node] for node in names])
    refuse_impossible(impossible, [*start.arcs, *required])
    into_inputs = arcs_into(start.inputs, names)
    knowledge = Knowledge.of(
        names, required_arcs=required, forbidden_arcs=[*forbidden_arcs, *impossible, *into_inputs]
    )
    wrong = np.argwhere(start.dag.matrix & knowledge.forbidden_arcs).tolist()
    if wrong:
        named = ", ".join(f"{names[i]} → {names[j]}" for i, j in wrong)
        raise KnowledgeError(f"{argument('start')} has forbidden arcs: {named}.")
    dag = DAG.checked(names, start.dag.matrix | knowledge.required_arcs, REQUIRED_ARCS)
    limit = len(names) if max_parents is None else max_parents
    crowded = [node for node in dag.nodes if len(dag.parents(node)) > limit]
    if crowded:
        raise ArgumentError(
            f"{in_python('start', elsewhere=argument('required_arcs'))} gives more than "
            f"{setting('max_parents', max_parents)} parents to {quoted(crowded)}."
        )
    node_types = dict(start.types)
    fixed = {fixed_types} if isinstance(fixed_types, str) else set(fixed_types)
    for node in fixed:
        start.type(node)  # refuses what is not a node
        if isinstance(fixed_types, Mapping):
            node_types[node] = NodeType.parse(fixed_types[node])
    for node, node_type in node_types.items():
        if not node_type.admits(variables[node], ()):
            raise ArgumentError(refusal(node_type, variables[node], ()))
    changeable = [
        [
            "types" in kinds
            and node in node_types
            and node not in fixed
            and choice.admits(variables[node], ())
            for choice in choices
        ]
        for node in dag.nodes
    ]
    allowed = np.array(changeable, dtype=bool).reshape(len(dag.nodes), len(choices))
    constraints = Constraints("arcs" in kinds, allowed, choices, knowledge, limit)
    return Structure(start.nodes, dag.arcs, node_types, inputs=start.inputs), constraints


def arcs_into(inputs: Iterable[str], names: Iterable[str]) -> list[Arc]:
    """Return all arcs that would point into inputs, which have no parents."""
    everything = list(names)
    return [(source, name) for name in inputs for source in everything if source != name]
