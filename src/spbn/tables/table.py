"""Named columns of numbers: what everything else in the package works on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spbn.errors import DataError, quoted
from spbn.numerics.arrays import FloatArray


@dataclass(frozen=True)
class Variable:
    """A column's name and, if it is discrete, its levels."""

    name: str
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of finite numbers, all of the same length.

    `columns[i]` is the contiguous, read-only column of `names[i]`.
    """

    names: tuple[str, ...]
    columns: FloatArray

    def __post_init__(self) -> None:
        self.columns.flags.writeable = False

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What the columns are."""
        return tuple(Variable(name) for name in self.names)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.columns.shape[1]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of names and numbers; the order of the columns does not matter."""
        found = hashlib.sha256(str(self.rows).encode())
        for name, column in sorted(zip(self.names, self.columns, strict=True), key=lambda pair: pair[0]):
            found.update(repr(name).encode())
            found.update(np.ascontiguousarray(column, dtype="<f8").data)
        return found.hexdigest()

    def index(self, name: str) -> int:
        """Position of a column."""
        try:
            return self.names.index(name)
        except ValueError:
            raise DataError(
                f"the data has no column {name!r}. Its columns are {quoted(self.names)}."
            ) from None

    def column(self, name: str) -> FloatArray:
        """One column, by its name."""
        return self.columns[self.index(name)]

    def select(self, names: Sequence[str]) -> Table:
        """Return the named columns, in that order."""
        return Table(tuple(names), self.columns[[self.index(name) for name in names]])

    def take(self, rows: npt.ArrayLike) -> Table:
        """Return the rows with these numbers, in that order."""
        return Table(self.names, np.ascontiguousarray(self.columns[:, np.asarray(rows)]))
