"""What node types admit, and how to say that they do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from spbn.errors import KnowledgeError, quoted
from spbn.graphs.dag import Arc
from spbn.nodes.base import NodeType
from spbn.tables.table import Variable


def refusal(node_type: NodeType, child: Variable, parents: Sequence[Variable]) -> str:
    """Say why a node cannot be of a type."""
    if not node_type.admits(child, ()):
        kind = "discrete" if child.is_discrete else "continuous"
        return f"{child.name!r} is {kind}, and cannot be of type {node_type}."
    wrong = quoted(parent.name for parent in parents if not node_type.admits(child, [parent]))
    kind = "discrete" if child.is_discrete else "continuous"
    return f"a {kind} node of type {node_type} cannot have these parents: {child.name!r} has {wrong}."


def impossible_arcs(variables: Sequence[Variable]) -> list[Arc]:
    """Return the arcs into a node that no registered type admits: those from numbers to levels."""
    if not any(variable.is_discrete for variable in variables):
        return []
    return [
        (parent.name, child.name)
        for child in variables
        for parent in variables
        if parent != child and not any(node_type.admits(child, [parent]) for node_type in NodeType)
    ]


def refuse_impossible(impossible: Collection[Arc], wanted: Iterable[Arc]) -> None:
    """Refuse arcs that no node type admits."""
    wrong = [arc for arc in wanted if tuple(arc) in impossible]
    if wrong:
        named = ", ".join(f"{source} → {target}" for source, target in wrong)
        raise KnowledgeError(f"no arc can go from a continuous to a discrete node. Got {named}: reverse it.")
