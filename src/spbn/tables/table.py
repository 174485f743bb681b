"""Named columns of numbers and level codes: what everything else in the package works on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray
from spbn.errors import DataError, quoted


@dataclass(frozen=True)
class Variable:
    """A column's name and, if it is discrete, its levels.

    Examples
    --------
    >>> import spbn
    >>> spbn.Variable("town", ("Leith", "Stockbridge")).is_discrete
    True
    >>> spbn.Variable("price").is_discrete
    False
    """

    name: str
    levels: tuple[str, ...] = ()

    @property
    def is_discrete(self) -> bool:
        """Whether it has levels."""
        return bool(self.levels)


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of finite numbers, all of the same length.

    `columns[i]` is the contiguous, read-only column of `names[i]`. Discrete columns hold the places of
    their values among their `levels`: 0.0, 1.0, ...
    """

    names: tuple[str, ...]
    columns: FloatArray
    #: The levels of the discrete columns.
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns.flags.writeable = False

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """What the columns are."""
        return tuple(Variable(name, self.levels.get(name, ())) for name in self.names)

    @cached_property
    def discrete(self) -> BoolArray:
        """Tell which columns are discrete."""
        return np.array([name in self.levels for name in self.names], dtype=np.bool_)

    @property
    def level_codes(self) -> FloatArray:
        """The discrete columns."""
        return self.columns[self.discrete]

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
            if name in self.levels:
                found.update(repr(self.levels[name]).encode())
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
        levels = {name: self.levels[name] for name in names if name in self.levels}
        return Table(tuple(names), self.columns[[self.index(name) for name in names]], levels)

    def take(self, rows: npt.ArrayLike) -> Table:
        """Return the rows with these numbers, in that order."""
        return self.with_columns(np.ascontiguousarray(self.columns[:, np.asarray(rows)]))

    def with_columns(self, columns: FloatArray) -> Table:
        """Return a table of the same variables with other numbers."""
        return Table(self.names, columns, self.levels)
