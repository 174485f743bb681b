"""Named columns of numbers and level codes, which everything else in the package works on; and checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray
from spbn.errors import DataError, quoted
from spbn.numerics.moments import Moments, centre_of
from spbn.tables.columns import how_to_drop, named
from spbn.tables.readings import Reading

#: Deviations from the median whose squares neither vanish nor overflow.
LEAST_SPREAD, GREATEST_SPREAD = 1e-150, 1e150
NEARLY_ONE = 1.0 - 1e-6  # correlations that are looked at closely
COPY = 1e-6  # of a column's spread, which a copy may deviate by


@dataclass(frozen=True)
class Variable:
    """A column's name and, if it is discrete, its levels.

    `reading`: how it is read from a table, where that is not obvious.

    Examples
    --------
    >>> import spbn
    >>> spbn.nodes.Variable("town", ("Leith", "Stockbridge")).is_discrete
    True
    >>> spbn.nodes.Variable("price").is_discrete
    False
    """

    name: str
    levels: tuple[str, ...] = ()
    reading: Reading | None = field(default=None, compare=False, repr=False)

    @property
    def is_discrete(self) -> bool:
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
    #: The columns with atoms, and the discrete ones that say which rows have them (see `spbn.transforms`).
    marked_by: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns.flags.writeable = False

    @classmethod
    def of(cls, variables: Sequence[Variable], columns: FloatArray) -> Table:
        levels = {variable.name: variable.levels for variable in variables if variable.levels}
        return cls(tuple(variable.name for variable in variables), columns, levels)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(Variable(name, self.levels.get(name, ())) for name in self.names)

    @cached_property
    def discrete(self) -> BoolArray:
        return np.array([name in self.levels for name in self.names], dtype=np.bool_)

    @property
    def level_codes(self) -> FloatArray:
        return self.columns[self.discrete]

    @property
    def rows(self) -> int:
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
        try:
            return self.names.index(name)
        except ValueError:
            raise DataError(
                f"the data has no column {name!r}. Its columns are {quoted(self.names)}."
            ) from None

    def column(self, name: str) -> FloatArray:
        return self.columns[self.index(name)]

    def select(self, names: Sequence[str]) -> Table:
        levels = {name: self.levels[name] for name in names if name in self.levels}
        marks = {name: mark for name, mark in self.marked_by.items() if name in names and mark in names}
        return Table(tuple(names), self.columns[[self.index(name) for name in names]], levels, marks)

    def take(self, rows: npt.ArrayLike) -> Table:
        return self.with_columns(np.ascontiguousarray(self.columns[:, np.asarray(rows)]))

    def with_columns(self, columns: FloatArray) -> Table:
        return Table(self.names, columns, self.levels, self.marked_by)


def require_variation(table: Table) -> None:
    """Refuse columns with one value only, or with numbers that cannot be squared: they have no density."""
    centre = centre_of(table.columns)[:, 0]
    require_spread(table.names, table.columns.min(axis=1), table.columns.max(axis=1), centre)


def require_spread(names: Sequence[str], low: FloatArray, high: FloatArray, centre: FloatArray) -> None:
    """Refuse columns like that by their least and greatest values, and what is subtracted from them."""
    constant = [name for name, is_same in zip(names, low == high, strict=True) if is_same]
    if constant:
        raise DataError(
            f"{named(constant)} constant, which leaves nothing to learn: {how_to_drop(constant)}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.maximum(high - centre, centre - low)
    for name, deviation in zip(names, deviations.tolist(), strict=True):
        if not LEAST_SPREAD <= deviation <= GREATEST_SPREAD:
            extent = "little" if deviation < 1 else "much"
            raise DataError(
                f"column {name!r} varies too {extent} (by {deviation:.0e}) for its numbers to be squared: "
                f"rescale it."
            )


def require_distinct(table: Table, *, origin: Mapping[str, str] | None = None) -> None:
    """Refuse columns that are copies of others, or rescaled copies: one says all that the other says.

    If they were made from other columns of the data, `origin` has these, by which to leave them out.
    """
    for second, first, kind in copied_columns(table):
        dropped = second if origin is None else origin[second]
        raise DataError(f"column {second!r} is {kind} of column {first!r}: {how_to_drop([dropped])}.")


def copied_columns(table: Table) -> Iterator[tuple[str, str, str]]:
    """Yield the continuous columns that are copies of an earlier one: both names, and which kind of copy."""
    table = table.select([variable.name for variable in table.variables if not variable.is_discrete])
    if not table.names:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that cannot be squared are no copies
        columns = table.columns - centre_of(table.columns)
        scatter = Moments.of(columns).scatter
    for i, j in correlated_pairs(scatter, NEARLY_ONE):
        # Relative to the bulk of the rows, not all of them: two columns that share an outlier are not copies.
        low, high = np.quantile(columns[j], [0.25, 0.75])
        spread = high - low if high > low else columns[j].std()
        residuals = columns[j] - scatter[i, j] / scatter[i, i] * columns[i]
        if residuals.max() - residuals.min() <= COPY * spread:
            kind = "a copy" if np.array_equal(table.columns[i], table.columns[j]) else "a rescaled copy"
            yield table.names[j], table.names[i], kind


def correlated_pairs(scatter: FloatArray, least: float) -> list[tuple[int, int]]:
    """Return the pairs of columns whose correlation, positive or negative, is greater than some number."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.sqrt(np.diag(scatter))
        correlation = scatter / scale / scale[:, None]
    return [(i, j) for i, j in np.argwhere(np.triu(np.abs(correlation) > least, k=1)).tolist()]


def require_continuous(table: Table, what: str, remedy: str) -> None:
    """Refuse discrete columns where only numbers make sense."""
    wrong = [variable.name for variable in table.variables if variable.is_discrete]
    if wrong:
        are = "is" if len(wrong) == 1 else "are"
        raise DataError(f"{what} takes continuous columns only. {quoted(wrong)} {are} discrete: {remedy}.")
