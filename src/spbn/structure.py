"""A structure is a DAG and the type of every node: all that learning has to find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from spbn._base import display
from spbn.errors import GraphError, quoted
from spbn.graphs.dag import DAG, Arc, drawn, require_directed
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family

__all__ = ["Family", "NodeType", "Structure"]

INPUT = "input"  # what an input is called where nodes have types


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
    inputs
        Names of further nodes of the graph that have no type, density or parents: values that are known from
        elsewhere, such as those of the row before.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.Structure("ABC", [("A", "C"), ("B", "C")], {"A": "lg", "B": "lg", "C": "ckde"})
    >>> structure.parents("C")
    ('A', 'B')
    >>> print(structure.type("C"))
    ckde
    """

    #: The graph of the nodes and, after them, the inputs.
    dag: DAG
    inputs: tuple[str, ...]

    def __init__(
        self,
        nodes: Iterable[str],
        arcs: Iterable[Arc] = (),
        types: NodeType | str | Mapping[str, NodeType | str] = NodeType.LG,
        *,
        inputs: Iterable[str] = (),
    ) -> None:
        self.inputs = tuple(inputs)
        self.dag = DAG([*nodes, *self.inputs], arcs)
        _require_no_parents(self.dag, self.inputs)
        self._types = _node_types(self.nodes, types)

    @classmethod
    def from_dag(
        cls, dag: DAG, types: NodeType | str | Mapping[str, NodeType | str] = NodeType.LG
    ) -> Structure:
        """Give types to the nodes of a DAG."""
        return cls._of(dag, _node_types(dag.nodes, types))

    @classmethod
    def _of(cls, dag: DAG, types: dict[str, NodeType], inputs: tuple[str, ...] = ()) -> Structure:
        """Combine a DAG and types that are known to fit."""
        structure = cls.__new__(cls)
        structure.dag = dag
        structure.inputs = inputs
        structure._types = types
        return structure

    @property
    def types(self) -> Mapping[str, NodeType]:
        """The type of every node."""
        return MappingProxyType(self._types)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, without the inputs."""
        return self.dag.nodes[: len(self.dag.nodes) - len(self.inputs)]

    @property
    def used_inputs(self) -> tuple[str, ...]:
        """The inputs that some node has as a parent."""
        return tuple(name for name in self.inputs if self.dag.children(name))

    @property
    def arcs(self) -> tuple[Arc, ...]:
        """Pairs (parent, child), by column order."""
        return self.dag.arcs

    def parents(self, node: str) -> tuple[str, ...]:
        """Parents of a node, by column order."""
        return self.dag.parents(node)

    def type(self, node: str) -> NodeType:
        """Return the type of a node."""
        self._require_node(node)
        return self._types[node]

    def family(self, node: str) -> Family:
        """Return a node with its parents and its type."""
        return Family(node, self.parents(node), self.type(node))

    def families(self) -> tuple[Family, ...]:
        """Return the family of every node, by column order."""
        return tuple(self.family(node) for node in self.nodes)

    def with_dag(self, dag: DAG) -> Structure:
        """Return the same types on another graph of the same nodes and inputs."""
        if dag.nodes != self.dag.nodes:
            return Structure(
                [node for node in dag.nodes if node not in self.inputs],
                dag.arcs,
                self.types,
                inputs=self.inputs,
            )
        _require_no_parents(dag, self.inputs)
        return self._of(dag, self._types, self.inputs)

    def with_type(self, node: str, type: NodeType | str) -> Structure:
        """Return the same graph with another type for one node."""
        self._require_node(node)
        return self._of(self.dag, {**self._types, node: NodeType.parse(type)}, self.inputs)

    def _require_node(self, node: str) -> None:
        self.dag.index(node)
        if node not in self._types:
            raise GraphError(f"{node!r} is an input, which has no type.")

    def undecided_arcs(self, forbidden_arcs: Iterable[Arc] = ()) -> tuple[Arc, ...]:
        """Return the arcs that a graph with the same independences and without forbidden arcs reverses.

        None of them comes from an input, since inputs have no parents.
        """
        into_inputs = [(child, name) for name in self.used_inputs for child in self.dag.children(name)]
        return self.dag.undecided_arcs([*forbidden_arcs, *into_inputs])

    def to_networkx(self) -> Any:
        """Return a `networkx.DiGraph` whose nodes have the attribute ``type``: "input" for inputs."""
        graph = self.dag.to_networkx()
        for node, node_type in self.types.items():
            graph.nodes[node]["type"] = node_type.name
        for name in self.inputs:
            graph.nodes[name]["type"] = INPUT
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> Structure:
        """Read a `networkx.DiGraph`; nodes without an attribute ``type`` are LG."""
        require_directed(graph)
        types = {node: graph.nodes[node].get("type", NodeType.LG) for node in graph.nodes}
        inputs = [node for node, node_type in types.items() if node_type == INPUT]
        for name in inputs:
            del types[name]
        return cls(types, graph.edges, types, inputs=inputs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        types = {node: str(node_type) for node, node_type in self.types.items()}
        inputs = f", inputs={list(self.inputs)}" if self.inputs else ""
        return f"Structure({list(self.nodes)}, {list(self.arcs)}, {types}{inputs})"

    _repr_html_ = display.repr_html

    def __str__(self) -> str:
        nodes = [f"{node} ({node_type})" for node, node_type in self.types.items()]
        nodes += [f"{name} ({INPUT})" for name in self.inputs]
        return drawn(nodes, [f"{source} → {target}" for source, target in self.arcs])

    @cached_property
    def _key(self) -> tuple[DAG, frozenset[tuple[str, NodeType]]]:
        return self.dag, frozenset(self.types.items())


def _require_no_parents(dag: DAG, inputs: tuple[str, ...]) -> None:
    for name in inputs:
        if parents := dag.parents(name):
            raise GraphError(f"an input has no parents, but there is an arc {parents[0]} → {name}.")


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
