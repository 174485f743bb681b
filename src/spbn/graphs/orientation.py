"""Orders and orientations of graphs given as boolean matrices.

``directed[i, j]`` is an arc from i to j; ``undirected`` is symmetric. Where the
data contradict each other there may be no DAG that fits every arc. Even then
nothing here closes a directed cycle, and wherever there is a choice the lowest
number comes first, so the outcome is the same every time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from spbn._base.arrays import BoolArray

#: Three nodes (x, z, y), x < y, of which x and y are adjacent to z and not to each other.
Triple = tuple[int, int, int]


class OrientationWarning(UserWarning):
    """A partially directed graph has no consistent extension: the DAG is only close to it."""


def topological_order(directed: BoolArray) -> list[int]:
    """Return the nodes with parents before children, otherwise the lowest number first.

    Nodes on a cycle, or below one, are left out.
    """
    waiting = directed.sum(axis=0)
    order: list[int] = []
    ready = sorted(np.flatnonzero(waiting == 0).tolist(), reverse=True)
    while ready:
        i = ready.pop()
        order.append(i)
        waiting = waiting - directed[i]
        freed = np.flatnonzero(directed[i] & (waiting == 0)).tolist()
        if freed:
            ready = sorted(ready + freed, reverse=True)
    return order


def reaches(directed: BoolArray, source: int, target: int) -> bool:
    """Tell whether a path of at least one arc leads from source to target."""
    seen = directed[source].copy()
    frontier = seen
    while frontier.any() and not seen[target]:
        frontier = directed[frontier].any(axis=0) & ~seen
        seen |= frontier
    return bool(seen[target])


def moral(directed: BoolArray, nodes: list[int]) -> BoolArray:
    """Return the moral graph of some nodes and their ancestors: neighbours, and parents of the same child."""
    kept = np.zeros(len(directed), dtype=bool)
    kept[nodes] = True
    above = kept
    while above.any():
        above = directed[:, above].any(axis=1) & ~kept
        kept = kept | above
    arcs = directed & kept[:, None] & kept[None, :]
    joined = arcs | arcs.T | (arcs @ arcs.T)
    np.fill_diagonal(joined, False)
    return joined


def groups(joined: BoolArray) -> list[list[int]]:
    """Return the nodes that edges join, directly or by way of others: a list for every such group."""
    found, left = [], set(np.flatnonzero(joined.any(axis=0)).tolist())
    while left:
        group, new = set[int](), {min(left)}
        while new:
            group |= new
            new = set(np.flatnonzero(joined[sorted(new)].any(axis=0)).tolist()) - group
        found.append(sorted(group))
        left -= group
    return found


def unshielded_triples(adjacent: BoolArray) -> Iterator[Triple]:
    """Yield every unshielded triple (x, z, y), ordered by z, then x, then y."""
    for z, neighbours in enumerate(adjacent):
        members = np.flatnonzero(neighbours)
        apart = np.triu(~adjacent[np.ix_(members, members)], k=1)
        for a, b in np.argwhere(apart).tolist():
            yield int(members[a]), z, int(members[b])


def cpdag(matrix: BoolArray, known: BoolArray | None = None) -> tuple[BoolArray, BoolArray]:
    """Return the arcs that all DAGs of the equivalence class share, and the edges whose direction varies.

    The class is given by adjacencies and colliders (Verma and Pearl, 1990);
    Meek's rules find every arc that follows from those.

    `known`: arcs of the graph whose direction is known, so that only members which have them count.
    """
    adjacent = matrix | matrix.T
    directed = np.zeros_like(matrix) if known is None else matrix & known
    for x, z, y in unshielded_triples(adjacent):
        if matrix[x, z] and matrix[y, z]:
            directed[x, z] = directed[y, z] = True
    return meek(directed, adjacent & ~(directed | directed.T))


def meek(
    directed: BoolArray, undirected: BoolArray, *, ambiguous: frozenset[Triple] = frozenset()
) -> tuple[BoolArray, BoolArray]:
    """Orient every edge whose direction follows from the arcs (Meek, 1995).

    For an edge a - b, the arc a → b follows if

    1. some c → a is not adjacent to b (b → a would be a new collider);
    2. there are a → c → b (b → a would close a cycle);
    3. there are a - c → b and a - d → b, and c, d are not adjacent;
    4. there are a - c, c → d → b with a, d adjacent, and c, b are not adjacent.

    An edge that would close a cycle is left as it is; that happens only where arcs contradict each other.

    `ambiguous`: triples (x, z, y), x < y, for which it is not known whether z is a collider: rule 1 concludes
    nothing from them.
    """
    directed, undirected = directed.copy(), undirected.copy()
    changed = True
    while changed:
        changed = False
        for a, b in np.argwhere(undirected).tolist():
            if (
                undirected[a, b]
                and _follows(directed, undirected, a, b, ambiguous)
                and not reaches(directed, b, a)
            ):
                undirected[a, b] = undirected[b, a] = False
                directed[a, b] = changed = True
    return directed, undirected


def extension(directed: BoolArray, undirected: BoolArray) -> BoolArray:
    """Return a DAG with these adjacencies, arcs and colliders, or the nearest one found.

    Dor and Tarsi (1992): repeatedly take a node that can be a sink of what is left, point its edges at it,
    and remove it. If there is none, take the one that reverses the fewest arcs, then the one that makes the
    fewest new colliders, and warn.
    """
    dag = directed.copy()
    left = np.ones(len(directed), dtype=bool)
    turned = colliders = 0
    while left.any():
        sink, (out, new) = _best_sink(directed, undirected, left)
        turned, colliders = turned + out, colliders + new
        left[sink] = False
        incoming = left & (directed[sink] | directed[:, sink] | undirected[sink])
        dag[incoming, sink] = True
        dag[sink, left] = False
    if turned or colliders:
        warnings.warn(
            f"the partially directed graph has no consistent extension: in the DAG, {turned} of its arcs "
            f"are reversed and {colliders} pairs of parents form a new collider. Tests that contradict "
            f"each other cause this; another alpha or more rows may help.",
            OrientationWarning,
            stacklevel=3,
        )
    return dag


def _follows(
    directed: BoolArray, undirected: BoolArray, a: int, b: int, ambiguous: frozenset[Triple]
) -> bool:
    """Tell whether one of Meek's rules gives a → b."""
    adjacent_to_b = directed[b] | directed[:, b] | undirected[b]
    into_b = directed[:, b]
    if (directed[a] & into_b).any():  # rule 2
        return True
    apart = directed[:, a] & ~adjacent_to_b
    apart[b] = False
    if any((min(c, b), a, max(c, b)) not in ambiguous for c in np.flatnonzero(apart).tolist()):  # rule 1
        return True
    middle = np.flatnonzero(undirected[a] & into_b)  # rule 3
    joined = directed | directed.T | undirected
    if len(middle) > 1 and not (joined[np.ix_(middle, middle)] | np.eye(len(middle), dtype=bool)).all():
        return True
    outer = undirected[a] & ~adjacent_to_b  # rule 4
    outer[b] = False
    return bool((directed[outer].any(axis=0) & into_b & joined[a]).any())


def _best_sink(directed: BoolArray, undirected: BoolArray, left: BoolArray) -> tuple[int, tuple[int, int]]:
    """Return the node that can be made a sink at the least cost, and that cost."""
    best = -1, (len(left) ** 2, 0)
    for i in np.flatnonzero(left).tolist():
        cost = _sink_cost(directed, undirected, left, i)
        if cost < best[1]:
            best = i, cost
        if cost == (0, 0):
            break
    return best


def _sink_cost(directed: BoolArray, undirected: BoolArray, left: BoolArray, sink: int) -> tuple[int, int]:
    """Count the arcs that making a sink reverses, and the pairs of its parents that become a new collider.

    A pair that both point at the sink already, and are not adjacent, is a collider of the graph itself.
    """
    out = directed[sink] & left
    fresh = (undirected[sink] & left) | out
    parents = np.flatnonzero(fresh | (directed[:, sink] & left))
    joined = (directed | directed.T | undirected)[np.ix_(parents, parents)] | np.eye(len(parents), dtype=bool)
    new = ~joined & (fresh[parents][:, None] | fresh[parents][None, :])
    return int(out.sum()), int(new.sum()) // 2
