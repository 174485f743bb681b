"""A structure is a DAG and the type of every node: all that learning has to find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from spbn.errors import GraphError, quoted
from spbn.graphs.dag import DAG, Arc, drawn, require_directed
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family

__all__ = ["Family", "NodeType", "Structure"]


class Structure:
    """A directed acyclic graph whose nodes have types.

    Two structures are equal if they have the same nodes, arcs and types, in
    any order.

    Parameters
    ----------
    nodes
        Names of the nodes; their order breaks ties.
    arcs
        Pairs (parent, child).
    types
        One type for all nodes, or a dict with the type of every node.
    """

    dag: DAG

    def __init__(
        self,
        nodes: Iterable[str],
        arcs: Iterable[Arc] = (),
        types: NodeType | str | Mapping[str, NodeType | str] = NodeType.LG,
    ) -> None:
        self.dag = DAG(nodes, arcs)
        self._types = _node_types(self.dag.nodes, types)

    @classmethod
    def from_dag(
        cls, dag: DAG, types: NodeType | str | Mapping[str, NodeType | str] = NodeType.LG
    ) -> Structure:
        """Give types to the nodes of a DAG."""
        return cls._of(dag, _node_types(dag.nodes, types))

    @classmethod
    def _of(cls, dag: DAG, types: dict[str, NodeType]) -> Structure:
        """Combine a DAG and types that are known to fit."""
        structure = cls.__new__(cls)
        structure.dag = dag
        structure._types = types
        return structure

    @property
    def types(self) -> Mapping[str, NodeType]:
        """The type of every node."""
        return MappingProxyType(self._types)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.dag.nodes

    @property
    def arcs(self) -> tuple[Arc, ...]:
        """Pairs (parent, child), by column order."""
        return self.dag.arcs

    def parents(self, node: str) -> tuple[str, ...]:
        """Parents of a node, by column order."""
        return self.dag.parents(node)

    def type(self, node: str) -> NodeType:
        """Return the type of a node."""
        self.dag.index(node)
        return self._types[node]

    def family(self, node: str) -> Family:
        """Return a node with its parents and its type."""
        return Family(node, self.parents(node), self.type(node))

    def families(self) -> tuple[Family, ...]:
        """Return the family of every node, by column order."""
        return tuple(self.family(node) for node in self.nodes)

    def with_dag(self, dag: DAG) -> Structure:
        """Return the same types on another graph of the same nodes."""
        return self._of(dag, self._types) if dag.nodes == self.nodes else Structure.from_dag(dag, self.types)

    def with_type(self, node: str, type: NodeType | str) -> Structure:
        """Return the same graph with another type for one node."""
        self.dag.index(node)
        return self._of(self.dag, {**self._types, node: NodeType.parse(type)})

    def to_networkx(self) -> Any:
        """Return a `networkx.DiGraph` whose nodes have the attribute ``type``."""
        graph = self.dag.to_networkx()
        for node, node_type in self.types.items():
            graph.nodes[node]["type"] = node_type.name
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> Structure:
        """Read a `networkx.DiGraph`; nodes without an attribute ``type`` are LG."""
        require_directed(graph)
        types = {node: graph.nodes[node].get("type", NodeType.LG) for node in graph.nodes}
        return cls(graph.nodes, graph.edges, types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        types = {node: str(node_type) for node, node_type in self.types.items()}
        return f"Structure({list(self.nodes)}, {list(self.arcs)}, {types})"

    def _repr_html_(self) -> str:
        """Show the graph in a notebook."""
        from spbn.report.notebooks import structure_html

        return structure_html(self)

    def __str__(self) -> str:
        nodes = [f"{node} ({node_type})" for node, node_type in self.types.items()]
        return drawn(nodes, [f"{source} → {target}" for source, target in self.arcs])

    @cached_property
    def _key(self) -> tuple[DAG, frozenset[tuple[str, NodeType]]]:
        return self.dag, frozenset(self.types.items())


def _node_types(
    nodes: tuple[str, ...], types: NodeType | str | Mapping[str, NodeType | str]
) -> dict[str, NodeType]:
    if not isinstance(types, Mapping):
        return dict.fromkeys(nodes, NodeType.parse(types))
    unknown = [node for node in types if node not in nodes]
    if unknown:
        raise GraphError(f"types names unknown nodes: {quoted(unknown)}.")
    absent = [node for node in nodes if node not in types]
    if absent:
        raise GraphError(f"types must give the type of every node. It lacks {quoted(absent)}.")
    return {node: NodeType.parse(types[node]) for node in nodes}
