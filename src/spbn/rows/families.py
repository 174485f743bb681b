"""Many families at once, as arrays: what a search asks and a score computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, IntArray


class VariableSet(NamedTuple):
    """A set of variables, by column number in order, and the dimension whose bandwidth factor it gets."""

    columns: tuple[int, ...]
    dimension: int


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
        Type of every node, as a place among the registered types.
    """

    columns: tuple[str, ...]
    nodes: IntArray
    parents: BoolArray
    types: npt.NDArray[np.int8]

    @classmethod
    def single(cls, columns: tuple[str, ...]) -> FamilyBatch:
        """Return one family of all columns: the last is the node."""
        parents = np.arange(len(columns))[None] < len(columns) - 1
        return cls(columns, np.array([len(columns) - 1]), parents, np.zeros(1, dtype=np.int8))

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
    def column_tuples(self) -> list[tuple[int, ...]]:
        """The column numbers of every family, parents in order and the node last."""
        sizes = self.sizes.tolist()
        return [tuple(member[:size]) for member, size in zip(self.members.tolist(), sizes, strict=True)]

    @cached_property
    def keys(self) -> list[bytes]:
        """What tells families apart: a few bytes each, quick to make and to look up."""
        packed = np.packbits(self.parents, axis=1)
        node = self.nodes.astype("<u4")[:, None].view(np.uint8)
        rows = np.concatenate([packed, node, self.types[:, None].view(np.uint8)], axis=1)
        keys: list[bytes] = rows.view(f"V{rows.shape[1]}").ravel().tolist()
        return keys

    @property
    def sets(self) -> tuple[list[VariableSet], list[VariableSet]]:
        """The members of every family, and its parents, both with the bandwidth of all members."""
        joints, parents = [], []
        for members in self.column_tuples:
            joints.append(VariableSet(tuple(sorted(members)), len(members)))
            parents.append(VariableSet(members[:-1], len(members)))
        return joints, parents
