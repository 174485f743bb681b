"""Directed and partially directed acyclic graphs, and what is known about them beforehand: immutable values.

A graph is its nodes, in the order of the columns, and a boolean adjacency
matrix in that order. Reachability is kept as a matrix too, so that a search
can check for every arc at once whether adding or reversing it makes a cycle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import BoolArray
from spbn.errors import GraphError, KnowledgeError, PackageError, argument, in_python, quoted
from spbn.graphs import orientation
from spbn.graphs.patterns import is_pattern, matching_places

Arc = tuple[str, str]
ARROW, EDGE = "→", "—"
#: How errors speak of arcs that are required.
REQUIRED_ARCS = in_python("the arcs", elsewhere=f"the required arcs ({argument('required_arcs')})")


class _Graph(ABC):
    """Nodes, and pairs of them that are joined; equal to others with the same ones, in any order."""

    nodes: tuple[str, ...]

    @property
    @abstractmethod
    def _joins(self) -> dict[str, tuple[Arc, ...]]:
        """The pairs, by the sign that joins them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Graph) and type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[frozenset[Any], ...]:
        edges = frozenset(map(frozenset, self._joins.get(EDGE, ())))
        return frozenset(self.nodes), frozenset(self._joins[ARROW]), edges

    def __repr__(self) -> str:
        parts = (self.nodes, *self._joins.values())
        return f"{type(self).__name__}({', '.join(str(list(part)) for part in parts)})"

    def __str__(self) -> str:
        joins = self._joins.items()
        return drawn(self.nodes, [f"{a} {sign} {b}" for sign, pairs in joins for a, b in pairs])

    def to_networkx(self) -> Any:
        """Return a `networkx.DiGraph`, with an undirected edge as two arcs."""
        try:
            import networkx
        except ImportError:
            raise PackageError("this needs networkx: install it with pip install 'spbn[networkx]'.") from None
        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        for pairs in self._joins.values():
            graph.add_edges_from(pairs)
        graph.add_edges_from((b, a) for a, b in self._joins.get(EDGE, ()))
        return graph


@final
class DAG(_Graph):
    """A directed acyclic graph.

    Two DAGs are equal if they have the same nodes and arcs, in any order.

    Parameters
    ----------
    nodes
        Names of the nodes; their order breaks ties.
    arcs
        Pairs (parent, child).

    Examples
    --------
    >>> import spbn
    >>> dag = spbn.DAG("ABC", [("A", "C"), ("B", "C")])
    >>> dag.d_separated("A", "B"), dag.d_separated("A", "B", ["C"])
    (True, False)
    >>> print(dag.to_cpdag())
    3 nodes: A, B, C
    A → C
    B → C
    """

    #: ``matrix[i, j]``: there is an arc from node i to node j.
    matrix: BoolArray

    def __init__(self, nodes: Iterable[str], arcs: Iterable[Arc] = ()) -> None:
        self.nodes = distinct_nodes(nodes)
        self.matrix = _frozen(_matrix(self.nodes, arcs))
        _refuse_cycle(self.nodes, self.matrix)

    @classmethod
    def checked(cls, nodes: Sequence[str], matrix: BoolArray, arcs: str = "the arcs") -> DAG:
        """Make a DAG from a matrix, and refuse cycles; `arcs` is what errors call the arcs."""
        _refuse_cycle(nodes, matrix, arcs)
        return cls.from_matrix(nodes, matrix)

    @classmethod
    def from_matrix(cls, nodes: Sequence[str], matrix: BoolArray) -> DAG:
        """Make a DAG from a matrix that is known to be acyclic: nothing is checked."""
        dag = cls.__new__(cls)
        dag.nodes = tuple(nodes)
        dag.matrix = _frozen(matrix)
        return dag

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """The arcs (parent, child), by column order."""
        return arc_pairs(self.nodes, self.matrix)

    @cached_property
    def reachability(self) -> BoolArray:
        """``reachability[i, j]``: a path of at least one arc leads from node i to node j."""
        reach = self.matrix.copy()
        for j in reversed(orientation.topological_order(self.matrix)):
            children = self.matrix[j]
            reach[j] |= reach[children].any(axis=0)
        return _frozen(reach)

    def index(self, node: str) -> int:
        """Position of a node."""
        try:
            return self.nodes.index(node)
        except ValueError:
            raise GraphError(f"there is no node {node!r}. The nodes are {quoted(self.nodes)}.") from None

    def parents(self, node: str) -> tuple[str, ...]:
        """Parents of a node, by column order."""
        return self._names(self.matrix[:, self.index(node)])

    def children(self, node: str) -> tuple[str, ...]:
        """Children of a node, by column order."""
        return self._names(self.matrix[self.index(node)])

    def ancestors(self, node: str) -> tuple[str, ...]:
        """Every node from which a path leads to this one."""
        return self._names(self.reachability[:, self.index(node)])

    def descendants(self, node: str) -> tuple[str, ...]:
        """Every node to which a path leads from this one."""
        return self._names(self.reachability[self.index(node)])

    def topological_order(self) -> tuple[str, ...]:
        """Return the nodes with parents before children, otherwise in column order."""
        return tuple(self.nodes[i] for i in orientation.topological_order(self.matrix))

    def addable(self) -> BoolArray:
        """``addable[i, j]``: i and j are not adjacent, and an arc from i to j makes no cycle."""
        addable = ~(self.matrix | self.reachability.T)
        np.fill_diagonal(addable, False)
        return addable

    def reversible(self) -> BoolArray:
        """``reversible[i, j]``: an arc but no other path leads from i to j, so reversing it is safe."""
        reversible = self.matrix.copy()
        sources, targets = np.nonzero(reversible)
        other_path = (self.matrix[sources] & self.reachability[:, targets].T).any(axis=1)
        reversible[sources[other_path], targets[other_path]] = False
        return reversible

    def with_arc(self, source: str, target: str) -> DAG:
        """Return the graph with one more arc."""
        i, j = self.index(source), self.index(target)
        if self.matrix[i, j]:
            raise GraphError(f"there is already an arc {source} → {target}.")
        if i == j or self.reachability[j, i]:
            raise GraphError(
                f"an arc {source} → {target} would make a cycle: there is a path {target} → {source}."
            )
        matrix = self.matrix.copy()
        matrix[i, j] = True
        dag = DAG.from_matrix(self.nodes, matrix)
        # Whatever reaches i now reaches j and what j reaches: no need to walk the graph again.
        above, below = self.reachability[:, i].copy(), self.reachability[j].copy()
        above[i] = below[j] = True
        dag.__dict__["reachability"] = _frozen(self.reachability | np.outer(above, below))
        return dag

    def without_arc(self, source: str, target: str) -> DAG:
        """Return the graph with one arc fewer."""
        i, j = self.index(source), self.index(target)
        if not self.matrix[i, j]:
            raise GraphError(f"there is no arc {source} → {target}.")
        matrix = self.matrix.copy()
        matrix[i, j] = False
        return DAG.from_matrix(self.nodes, matrix)

    def with_reversed_arc(self, source: str, target: str) -> DAG:
        """Return the graph with one arc reversed."""
        return self.without_arc(source, target).with_arc(target, source)

    def d_separated(self, x: str, y: str, given: Iterable[str] = ()) -> bool:
        """Tell whether every path between x and y is blocked by the nodes in `given`."""
        i, j = self.index(x), self.index(y)
        condition = [self.index(node) for node in given]
        if i == j or i in condition or j in condition:
            named = [self.nodes[k] for k in condition]
            raise GraphError(f"x, y and given must be different nodes. Got {x!r}, {y!r} and {named}.")
        # In the moral graph of the ancestors, d-separation is plain separation.
        moral = orientation.moral(self.matrix, [i, j, *condition])
        moral[condition] = False
        moral[:, condition] = False
        return not orientation.reaches(moral, i, j)

    def to_cpdag(self) -> PDAG:
        """Return the graph of the equivalence class: arcs that all members share, edges elsewhere."""
        directed, undirected = orientation.cpdag(self.matrix)
        return PDAG.from_matrices(self.nodes, directed, undirected)

    def undecided_arcs(self, forbidden_arcs: Iterable[Arc] = ()) -> tuple[Arc, ...]:
        """Return the arcs that an equivalent graph without forbidden arcs reverses, by column order.

        If no arc is forbidden, these are the edges of `to_cpdag`.
        """
        forbidden = arc_matrix(self.nodes, forbidden_arcs, "forbidden_arcs")
        _, undirected = orientation.cpdag(self.matrix, forbidden.T)
        return arc_pairs(self.nodes, self.matrix & undirected)

    @classmethod
    def from_networkx(cls, graph: Any) -> DAG:
        """Read a `networkx.DiGraph`."""
        require_directed(graph)
        return cls(graph.nodes, graph.edges)

    @property
    def _joins(self) -> dict[str, tuple[Arc, ...]]:
        return {ARROW: self.arcs}

    def _names(self, mask: BoolArray) -> tuple[str, ...]:
        return tuple(self.nodes[i] for i in np.flatnonzero(mask))


@final
class PDAG(_Graph):
    """A partially directed graph: some pairs are joined by an arc, some by an edge without a direction.

    Parameters
    ----------
    nodes
        Names of the nodes.
    arcs
        Pairs (parent, child).
    edges
        Pairs, each in either order.

    Examples
    --------
    >>> import spbn
    >>> pdag = spbn.graphs.PDAG("ABC", [("A", "C")], [("B", "C")])
    >>> print(pdag.to_dag())
    3 nodes: A, B, C
    A → C
    C → B
    """

    #: ``directed[i, j]``: there is an arc from node i to node j.
    directed: BoolArray
    #: ``undirected[i, j]``: an edge joins nodes i and j; symmetric.
    undirected: BoolArray

    def __init__(self, nodes: Iterable[str], arcs: Iterable[Arc] = (), edges: Iterable[Arc] = ()) -> None:
        self.nodes = distinct_nodes(nodes)
        directed, edge_matrix = _matrix(self.nodes, arcs), _matrix(self.nodes, edges)
        undirected = edge_matrix | edge_matrix.T
        twice = (directed & directed.T) | (directed & undirected)
        if twice.any():
            (i, j), *_ = np.argwhere(twice)
            raise GraphError(f"{self.nodes[i]!r} and {self.nodes[j]!r} are joined more than once.")
        self.directed, self.undirected = _frozen(directed), _frozen(undirected)

    @classmethod
    def from_matrices(cls, nodes: Sequence[str], directed: BoolArray, undirected: BoolArray) -> PDAG:
        """Make a PDAG from matrices that are known to fit together: nothing is checked."""
        pdag = cls.__new__(cls)
        pdag.nodes = tuple(nodes)
        pdag.directed, pdag.undirected = _frozen(directed), _frozen(undirected)
        return pdag

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """The directed arcs (parent, child), by column order."""
        return arc_pairs(self.nodes, self.directed)

    @cached_property
    def edges(self) -> tuple[Arc, ...]:
        """The undirected edges, each once, by column order."""
        return arc_pairs(self.nodes, np.triu(self.undirected))

    def to_dag(self) -> DAG:
        """Return a DAG with the same adjacencies, arcs and colliders (Dor and Tarsi, 1992).

        If there is none, a warning says so and the nearest DAG that this method can find is returned: it has
        the same adjacencies, and its arcs agree with those of the PDAG wherever that makes no cycle.
        """
        return DAG.from_matrix(self.nodes, orientation.extension(self.directed, self.undirected))

    @classmethod
    def from_networkx(cls, graph: Any) -> PDAG:
        """Read a `networkx.DiGraph`, in which two opposite arcs represent an undirected edge."""
        arcs = [(a, b) for a, b in graph.edges if not graph.has_edge(b, a)]
        edges = [(a, b) for a, b in graph.edges if graph.has_edge(b, a)]
        return cls(graph.nodes, arcs, edges)

    @property
    def _joins(self) -> dict[str, tuple[Arc, ...]]:
        return {ARROW: self.arcs, EDGE: self.edges}


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
        arcs forbidden in both directions forbids the edge, and vice versa. Both
        ends of a pair may be patterns, which stand for all nodes that they match.
        """
        names = tuple(nodes)
        wanted = arc_matrix(names, required_arcs, "required_arcs")
        banned = arc_matrix(names, forbidden_arcs, "forbidden_arcs")
        required = arc_matrix(names, required_edges, "required_edges") | wanted
        forbidden = arc_matrix(names, forbidden_edges, "forbidden_edges") | (banned & banned.T)
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


def distinct_nodes(nodes: Iterable[str]) -> tuple[str, ...]:
    """Check the names of nodes: at least one, all text, all different."""
    names = tuple(nodes)
    if not names:
        raise GraphError("a graph needs at least one node.")
    for name in names:
        if not isinstance(name, str):
            raise GraphError(f"names of nodes must be text. Got {name!r} ({type(name).__name__}).")
    if len(set(names)) < len(names):
        raise GraphError(f"names of nodes must be distinct. Got {quoted(names)}.")
    return names


def require_directed(graph: Any) -> None:
    """Refuse networkx graphs whose edges have no direction, or can appear more than once."""
    if not graph.is_directed() or graph.is_multigraph():
        raise GraphError(f"a networkx.DiGraph is needed. Got a {type(graph).__name__}.")


def drawn(nodes: Sequence[str], joins: Sequence[str]) -> str:
    """Write a graph as text: its nodes, then its arcs and edges, one per line."""
    counted = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    return f"{counted}: {', '.join(nodes)}\n" + ("\n".join(joins) if joins else "no arcs")


def _matrix(nodes: Sequence[str], pairs: Iterable[Arc]) -> BoolArray:
    position = {node: i for i, node in enumerate(nodes)}
    matrix = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for pair in pairs:
        try:
            source, target = pair
            hash((source, target))
        except (TypeError, ValueError):
            raise GraphError(f"an arc is a pair of nodes. Got {pair!r}.") from None
        for node in (source, target):
            if node not in position:
                raise GraphError(f"the arc {source!r} → {target!r} names an unknown node: {node!r}.")
        if source == target:
            raise GraphError(f"an arc must join two nodes. Got {source!r} → {target!r}.")
        matrix[position[source], position[target]] = True
    return matrix


def arc_matrix(nodes: Sequence[str], pairs: Iterable[Arc], what: str) -> BoolArray:
    """Return the arcs that pairs (parent, child) of nodes or patterns stand for, as a matrix.

    An arc from a node to itself is not among those that a pattern stands for. `what` is what errors call the
    pairs: an argument.
    """
    place = {node: i for i, node in enumerate(nodes)}
    matrix = np.zeros((len(nodes), len(nodes)), dtype=bool)

    def matching(end: str) -> list[int]:
        if not is_pattern(end):
            raise KeyError(end)
        return matching_places(end, nodes)

    for pair in pairs:
        try:
            source, target = pair
            sources, targets = ([place[end]] if end in place else matching(end) for end in (source, target))
        except (TypeError, ValueError, KeyError):
            raise KnowledgeError(
                f"{argument(what)} must hold pairs (parent, child) of the nodes {quoted(nodes)}. "
                f"Got {pair!r}."
            ) from None
        for end, found in ((source, sources), (target, targets)):
            if not found:
                raise KnowledgeError(
                    f"{argument(what)} has the pattern {end!r}, which matches none of the nodes "
                    f"{quoted(nodes)}: correct it, or leave it out."
                )
        if sources == targets and len(sources) == 1:
            raise KnowledgeError(f"{argument(what)} must join two nodes. Got {pair!r}.")
        if len(sources) == len(targets) == 1:
            matrix[sources[0], targets[0]] = True
        else:
            matrix[np.ix_(sources, targets)] = True
            np.fill_diagonal(matrix, False)
    return matrix


def arc_pairs(nodes: Sequence[str], matrix: BoolArray) -> tuple[Arc, ...]:
    """Return the arcs of a matrix as pairs of nodes, by column order."""
    return tuple((nodes[i], nodes[j]) for i, j in np.argwhere(matrix).tolist())


def _frozen(matrix: BoolArray) -> BoolArray:
    matrix.flags.writeable = False
    return matrix


def _refuse_cycle(nodes: Sequence[str], matrix: BoolArray, arcs: str = "the arcs") -> None:
    rest = np.ones(len(matrix), dtype=bool)
    rest[orientation.topological_order(matrix)] = False
    if not rest.any():
        return
    # Every remaining node has a remaining parent: walking upwards must come back to where it was.
    path = [int(np.flatnonzero(rest)[0])]
    while path[-1] not in path[:-1]:
        path.append(int(np.flatnonzero(matrix[:, path[-1]] & rest)[0]))
    cycle = " → ".join(nodes[i] for i in path[path.index(path[-1]) :][::-1])
    raise GraphError(f"{arcs} form a cycle: {cycle}. Remove or reverse one of them.")


def _refuse(nodes: Sequence[str], contradictions: BoolArray, message: str) -> None:
    for i, j in np.argwhere(contradictions).tolist():
        raise KnowledgeError(f"{message.format(nodes[i], nodes[j])}: drop one of the two.")
