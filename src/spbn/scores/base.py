"""What all scores share: families in, cached numbers out.

A score is a sum over families, and greater is better. The cache is here and
nowhere else; a concrete score only says how families are computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, final

import numpy as np

from spbn.data import BoolArray, FloatArray, IntArray, quoted
from spbn.errors import ArgumentError, GraphError
from spbn.structure import Family, NodeType, Structure

Key = TypeVar("Key", bound=Hashable)
#: What is taken for a family: one, or the like of it.
AnyFamily = Family | tuple[str, Iterable[str], NodeType | str]


@dataclass(frozen=True, eq=False)
class FamilyBatch:
    """Families that have been checked: their parents stand in column order.

    Row f of `members` has the column numbers of family f, parents first and the
    node behind them: ``members[f, : sizes[f]]``.
    """

    families: list[Family]
    members: IntArray
    sizes: IntArray

    def only(self, chosen: BoolArray) -> FamilyBatch:
        """Return some of the families."""
        families = [self.families[f] for f in np.flatnonzero(chosen).tolist()]
        return FamilyBatch(families, self.members[chosen], self.sizes[chosen])


class FamilyCache:
    """Numbers of families, each computed once, many at a time.

    Holds `limit` numbers at most and then forgets the older half.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        types: frozenset[NodeType],
        compute: Callable[[FamilyBatch], FloatArray],
        limit: int = 1 << 20,
    ) -> None:
        self._nodes = tuple(nodes)
        self._position = {node: i for i, node in enumerate(nodes)}
        self._types = types
        self._compute = compute
        self._limit = limit
        self._numbers: dict[Family, float] = {}

    def many(self, families: Iterable[AnyFamily]) -> FloatArray:
        """Return the number of every family; those not known yet are computed in one batch."""
        asked = [family if isinstance(family, Family) else _as_family(*family) for family in families]
        new = [family for family in asked if family not in self._numbers]
        if new:
            forget_older_half(self._numbers, limit=self._limit - len(new), keep=set(asked))
            batch = self._checked(new)
            self._numbers.update(zip(new, self._compute(batch).tolist(), strict=True))
        return np.array([self._numbers[family] for family in asked])

    def _checked(self, families: list[Family]) -> FamilyBatch:
        """Refuse what is no family, and put parents into column order: numbers depend on their set alone."""
        position = self._position
        try:
            flat = [position[name] for node, parents, _ in families for name in (*parents, node)]
        except TypeError:
            raise GraphError(f"a family is (node, parents, type), by name. Got {families!r:.200}.") from None
        except KeyError as error:
            columns = quoted(position)
            raise GraphError(f"the score's data has no column {error.args[0]!r}. It has {columns}.") from None
        if not {family.type for family in families} <= self._types:
            self._refuse_type(next(family for family in families if family.type not in self._types))
        sizes = np.array([len(parents) for _, parents, _ in families], dtype=np.int64) + 1
        members = np.full((len(families), sizes.max(initial=1)), -1, dtype=np.int64)
        members[np.arange(members.shape[1]) < sizes[:, None]] = flat
        if members.shape[1] > 1:
            families = self._ordered(families, members, sizes)
        return FamilyBatch(families, members, sizes)

    def _ordered(self, families: list[Family], members: IntArray, sizes: IntArray) -> list[Family]:
        """Sort the parents of every family, in place in `members`."""
        is_parent = np.arange(members.shape[1]) < sizes[:, None] - 1
        parents = np.where(is_parent, members, len(self._nodes))  # so that what is no parent goes last
        ordered = np.sort(parents, axis=1)
        node = members[np.arange(len(members)), sizes - 1][:, None]
        repeated = (ordered[:, 1:] == ordered[:, :-1]) & is_parent[:, 1:]
        wrong = repeated.any(axis=1) | (ordered == node).any(axis=1)
        if wrong.any():
            name, given, _ = families[int(np.flatnonzero(wrong)[0])]
            raise GraphError(f"the parents of {name!r} must be distinct other nodes. Got {quoted(given)}.")
        members[is_parent] = ordered[is_parent]
        moved = (ordered != parents).any(axis=1)
        if not moved.any():
            return families
        families = families.copy()
        for f in np.flatnonzero(moved).tolist():
            names = tuple([self._nodes[i] for i in members[f, : sizes[f] - 1].tolist()])
            families[f] = families[f]._replace(parents=names)
        return families

    def _refuse_type(self, family: Family) -> NoReturn:
        NodeType.parse(family.type)
        allowed = " or ".join(sorted(self._types))
        raise ArgumentError(f"this score is defined for nodes of type {allowed} only. Got {family}.")

    def checked(self, family: AnyFamily) -> Family:
        """Return one family as the computation gets it."""
        return self._checked([family if isinstance(family, Family) else _as_family(*family)]).families[0]


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
    def _compute(self, batch: FamilyBatch) -> FloatArray:
        """Local score of every family; -inf where one cannot be fitted."""

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


def _as_family(node: str, parents: Iterable[str] = (), node_type: NodeType | str = NodeType.LG) -> Family:
    return Family(node, tuple(parents), NodeType.parse(node_type))


def forget_older_half(cache: dict[Key, Any], *, limit: int, keep: Set[Key]) -> None:
    """Make room in a cache that has grown beyond its limit."""
    if len(cache) > limit:
        for key in list(cache)[: (len(cache) + 1) // 2]:
            if key not in keep:
                del cache[key]
