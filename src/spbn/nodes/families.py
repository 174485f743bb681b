"""Many families at once, as arrays: what a search asks and a score computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, IntArray
from spbn.errors import GraphError, quoted
from spbn.nodes.base import NodeType, place_of, registered
from spbn.nodes.linear_gaussian import NODE_TYPE as LG_TYPE


class Family(NamedTuple):
    """A node, its parents and its type: all that a local score depends on.

    Examples
    --------
    >>> import spbn
    >>> family = spbn.Family("C", ("A", "B"), spbn.NodeType.CKDE)
    >>> print(family)
    C | A, B (ckde)
    """

    node: str
    parents: tuple[str, ...] = ()
    type: NodeType = LG_TYPE

    def __str__(self) -> str:
        return f"{self.node} | {', '.join(self.parents) or '∅'} ({self.type})"


#: What is accepted as a family: one, or a tuple like it.
AnyFamily = Family | tuple[str, Iterable[str], NodeType | str]


@dataclass(frozen=True, eq=False)
class FamilyBatch:
    """Families of the columns of a table.

    Attributes
    ----------
    columns
        Names of the columns.
    nodes
        Column number of every family's node.
    parents
        Families × columns: which columns are its parents.
    types
        Type of every node, as a place among the `registered` types.
    """

    columns: tuple[str, ...]
    nodes: IntArray
    parents: BoolArray
    types: npt.NDArray[np.int8]

    @classmethod
    def named(cls, columns: tuple[str, ...], families: Sequence[AnyFamily]) -> FamilyBatch:
        """Read families that are given by name, and refuse anything else."""
        place = {name: i for i, name in enumerate(columns)}
        nodes = np.empty(len(families), dtype=np.int64)
        parents = np.zeros((len(families), len(columns)), dtype=bool)
        types = np.empty(len(families), dtype=np.int8)
        for f, family in enumerate(families):
            try:
                node, given, node_type = _completed(*family)
                given = tuple(given)
                nodes[f] = place[node]
                parents[f, [place[name] for name in given]] = True
            except (TypeError, ValueError):
                raise GraphError(
                    f"a family is (node, parents, type), by name. Got {family!r:.200}."
                ) from None
            except KeyError as error:
                raise GraphError(
                    f"the score's data has no column {error.args[0]!r}. It has {quoted(columns)}."
                ) from None
            if parents[f].sum() < len(given) or parents[f, nodes[f]]:
                raise GraphError(
                    f"the parents of {node!r} must be distinct other nodes. Got {quoted(given)}."
                )
            types[f] = place_of(NodeType.parse(node_type))
        return cls(columns, nodes, parents, types)

    def __len__(self) -> int:
        return len(self.nodes)

    def only(self, chosen: BoolArray | IntArray) -> FamilyBatch:
        """Return some of the families: those that are marked, or those with these numbers, in their order."""
        return FamilyBatch(self.columns, self.nodes[chosen], self.parents[chosen], self.types[chosen])

    def without_parents(self, columns: BoolArray) -> FamilyBatch:
        """Return the families without the parents among some columns."""
        return FamilyBatch(self.columns, self.nodes, self.parents & ~columns, self.types)

    def among(self, columns: BoolArray) -> FamilyBatch:
        """Return the same families of a table that has only some of the columns: all that they need."""
        names = tuple(name for name, kept in zip(self.columns, columns, strict=True) if kept)
        nodes: IntArray = np.cumsum(columns)[self.nodes] - 1
        return FamilyBatch(names, nodes, self.parents[:, columns], self.types)

    def of_type(self, node_type: NodeType) -> BoolArray:
        """Tell which families have a node of this type."""
        return self.types == place_of(node_type)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of members of every family: the parents and the node."""
        sizes: IntArray = self.parents.sum(axis=1) + 1
        return sizes

    @cached_property
    def members(self) -> IntArray:
        """Column numbers of every family, parents in order and the node last.

        Family f has ``members[f, : sizes[f]]``; what follows is -1.
        """
        members = np.full((len(self), self.sizes.max(initial=1)), -1, dtype=np.int64)
        parent = np.nonzero(self.parents)[1]
        members[np.arange(members.shape[1]) < self.sizes[:, None] - 1] = parent
        members[np.arange(len(self)), self.sizes - 1] = self.nodes
        return members

    @property
    def each(self) -> Iterator[IntArray]:
        """The column numbers of one family after the other, parents in order and the node last."""
        for members, size in zip(self.members, self.sizes, strict=True):
            yield members[:size]

    @cached_property
    def families(self) -> list[Family]:
        """The families by name, parents in column order."""
        names, sizes, types = self.columns, self.sizes.tolist(), registered()
        return [
            Family(names[member[size - 1]], tuple([names[i] for i in member[: size - 1]]), types[node_type])
            for member, size, node_type in zip(self.members.tolist(), sizes, self.types.tolist(), strict=True)
        ]

    @cached_property
    def keys(self) -> list[bytes]:
        """What tells families apart: a few bytes each, quick to make and to look up."""
        packed = np.packbits(self.parents, axis=1)
        node = self.nodes.astype("<u4")[:, None].view(np.uint8)
        rows = np.concatenate([packed, node, self.types[:, None].view(np.uint8)], axis=1)
        keys: list[bytes] = rows.view(f"V{rows.shape[1]}").ravel().tolist()
        return keys


def _completed(
    node: str, parents: Iterable[str] = (), node_type: NodeType | str = LG_TYPE
) -> tuple[str, Iterable[str], NodeType | str]:
    return node, parents, node_type
