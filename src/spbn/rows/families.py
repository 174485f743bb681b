"""Many families at once, as arrays, and the configurations of their discrete parents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.errors import FitError, quoted
from spbn.tables.table import Variable


class VariableSet(NamedTuple):
    """A set of variables, by column number in order, and the dimension whose bandwidth factor it gets."""

    columns: tuple[int, ...]
    dimension: int


@dataclass(frozen=True, eq=False)
class FamilyBatch:
    """Families of the columns of a table."""

    columns: tuple[str, ...]  # names of the columns
    nodes: IntArray  # column number of every family's node
    parents: BoolArray  # families × columns: which columns are its parents
    types: npt.NDArray[np.int8]  # type of every node, as a place among the registered types

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

    def of_type(self, place: int) -> FamilyBatch:
        """Return the families with another type: its place among the registered ones."""
        return FamilyBatch(self.columns, self.nodes, self.parents, np.full(len(self), place, dtype=np.int8))

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


MOST = 1 << 62  # combinations that can be numbered
MOST_BITS = 61.9  # the same, in bits, and a little less for rounding


@dataclass(frozen=True, eq=False)
class Configurations:
    """Some combinations of the levels of discrete variables, in ascending order."""

    variables: tuple[Variable, ...]  # the discrete variables
    #: The configurations as numbers in mixed radix, the first variable being the most significant.
    numbers: IntArray

    @classmethod
    def in_columns(
        cls, variables: Sequence[Variable], columns: FloatArray
    ) -> tuple[Configurations, IntArray]:
        """Return the configurations that occur in variables × rows, and the place of every row among them."""
        if number_possible(variables) >= MOST:
            names = quoted(variable.name for variable in variables)
            raise FitError(f"{names} have more combinations of levels than can be counted: use fewer.")
        numbers, places = np.unique(_numbered(variables, columns), return_inverse=True)
        return cls(tuple(variables), numbers), places

    @classmethod
    def union(cls, several: Sequence[Configurations]) -> Configurations:
        """Return the configurations of the same variables that are in any of several."""
        numbers = np.unique(np.concatenate([one.numbers for one in several]))
        return cls(several[0].variables, numbers)

    @property
    def possible(self) -> int:
        """How many combinations of levels there are."""
        return number_possible(self.variables)

    def places(self, columns: FloatArray) -> IntArray:
        """Return the place of every row of variables × rows; -1 where it has another configuration."""
        if not len(self):
            return np.full(columns.shape[1], -1)
        numbers = _numbered(self.variables, columns)
        found = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        return np.where(self.numbers[found] == numbers, found, -1)

    def only(self, chosen: IntArray) -> Configurations:
        """Return some of the configurations."""
        return Configurations(self.variables, self.numbers[chosen])

    @cached_property
    def codes(self) -> IntArray:
        """The levels of every configuration: configurations × variables."""
        codes = np.empty((len(self), len(self.variables)), dtype=np.int64)
        rest = self.numbers
        for k in range(len(self.variables) - 1, -1, -1):
            rest, codes[:, k] = np.divmod(rest, len(self.variables[k].levels))
        return codes

    @property
    def labels(self) -> Iterator[str]:
        """Every configuration in words: "sex = F, smoker = no"."""
        for codes in self.codes.tolist():
            yield ", ".join(f"{v.name} = {v.levels[k]}" for v, k in zip(self.variables, codes, strict=True))

    def __len__(self) -> int:
        return len(self.numbers)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Configurations)
            and self.variables == other.variables
            and np.array_equal(self.numbers, other.numbers)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def number_possible(variables: Sequence[Variable]) -> int:
    """Return how many combinations of levels some variables have."""
    return math.prod(len(variable.levels) for variable in variables)


def _numbered(variables: Sequence[Variable], columns: FloatArray) -> IntArray:
    numbers = np.zeros(columns.shape[1], dtype=np.int64)
    for variable, column in zip(variables, columns, strict=True):
        numbers = numbers * len(variable.levels) + column.astype(np.int64)
    return numbers
