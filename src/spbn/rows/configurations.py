"""Configurations: the combinations of levels that some discrete columns take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import FitError, quoted
from spbn.tables.table import Variable

MOST = 1 << 62  # combinations that can be numbered
MOST_BITS = 61.9  # the same, in bits, and a little less for rounding


@dataclass(frozen=True, eq=False)
class Configurations:
    """Some combinations of the levels of discrete variables, in ascending order.

    Attributes
    ----------
    variables
        The discrete variables.
    numbers
        The configurations as numbers in mixed radix, the first variable being the most significant.
    """

    variables: tuple[Variable, ...]
    numbers: IntArray

    @classmethod
    def in_columns(
        cls, variables: Sequence[Variable], columns: FloatArray
    ) -> tuple[Configurations, IntArray]:
        """Return the configurations that occur in variables × rows, and the place of every row among them."""
        possible = number_possible(variables)
        if possible >= MOST:
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
