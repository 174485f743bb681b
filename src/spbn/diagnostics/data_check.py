"""What a table looks like to a network: how columns were read, what is missing, what to check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.tables.columns import WHOLE, columns_of
from spbn.tables.preparation import FEW_VALUES, FEWEST_ROWS, missing_codes_of
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable, copied_columns

SPIKE = 0.2  # share of the rows that have one and the same number
RARE = 5  # rows: a level that has fewer is hard to learn about
MANY_MISSING = 0.5


@dataclass(frozen=True)
class ColumnCheck:
    """A column: how it was read, and what looks suspicious.

    Attributes
    ----------
    read_as
        "numbers", "whole numbers" or "levels".
    missing, distinct
        How many values are missing, and how many different ones are there.
    extent
        The smallest number, the median and the largest; None if it has levels.
    commonest
        The level that most rows have, and their share; None if it has numbers.
    notes
        What looks suspicious, in words.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> first = spbn.explain.check_data(data, network.variables).columns[0]
    >>> print(first.name, first.missing)
    A 0
    """

    name: str
    read_as: str
    missing: int
    distinct: int
    extent: tuple[float, float, float] | None
    commonest: tuple[str, float] | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DataCheck:
    """A table.

    Attributes
    ----------
    incomplete
        How many rows have a value missing.
    repeated
        How many complete rows are the same as an earlier one.
    unused
        Columns that the network does not have.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> found = spbn.explain.check_data(data, network.variables)
    >>> print(found.rows, len(found.columns))
    200 5
    """

    rows: int
    incomplete: int
    repeated: int
    columns: tuple[ColumnCheck, ...]
    unused: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return sum(column.missing for column in self.columns)


def check_data(data: Any, variables: Sequence[Variable]) -> DataCheck:
    """Check the columns of some data that a network uses.

    Parameters
    ----------
    data
        A table with these columns, and perhaps others. Values may be missing.
    variables
        The variables of the network, in whose terms the columns are read.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(100, seed=0)
    >>> data["number"] = range(100)
    >>> network = spbn.learn(data, model="gbn")
    >>> found = spbn.explain.check_data(data, network.variables)
    >>> [column.name for column in found.columns if column.notes]
    ['number']
    """
    table = as_table(data, variables=variables, missing="keep")
    names = table.names
    others = () if isinstance(data, Table) else tuple(name for name in columns_of(data) if name not in names)
    there = ~np.isnan(table.columns)
    complete = there.all(axis=0)
    whole = table.take(np.flatnonzero(complete))
    notes: dict[str, list[str]] = {name: [] for name in names}
    for name in identifiers(whole):
        notes[name].append("a different whole number in every row: does it only number the rows?")
    for name in few_valued(whole):
        notes[name].append("few different numbers: are they categories?")
    for name, code in missing_codes(whole).items():
        notes[name].append(f"{code:g} is far from all other values: does it stand for a missing one?")
    if whole.rows >= FEWEST_ROWS:
        varies = (whole.columns != whole.columns[:, :1]).any(axis=1)
        varying = whole.select([name for name, chosen in zip(names, varies, strict=True) if chosen])
        for second, first, kind in copied_columns(varying):
            notes[second].append(f"{kind} of {first}")
    columns = tuple(
        _column(variable, values, present, notes[variable.name])
        for variable, values, present in zip(table.variables, table.columns, there, strict=True)
    )
    repeated = whole.rows - len(np.unique(whole.columns, axis=1).T)
    return DataCheck(table.rows, int((~complete).sum()), repeated, columns, others)


def identifiers(table: Table) -> list[str]:
    """Return the columns with a different whole number in every row: most of them only number the rows."""
    return [
        name
        for name, column in _columns(table)
        if (column == np.rint(column)).all()
        and np.abs(column).max() < WHOLE
        and len(np.unique(column)) == table.rows
    ]


def few_valued(table: Table) -> list[str]:
    """Return the columns with two or three different values: most of them are categories."""
    return [name for name, column in _columns(table) if 1 < len(np.unique(column)) <= FEW_VALUES]


def missing_codes(table: Table) -> dict[str, float]:
    """Return the columns with a number of nines, such as -999, far from all others: it may mean "missing"."""
    return {name: codes[0] for name, column in _columns(table) if (codes := missing_codes_of(column))}


def _columns(table: Table) -> Iterator[tuple[str, FloatArray]]:
    """Yield the continuous columns, if there are enough rows."""
    if table.rows >= FEWEST_ROWS:
        yield from ((n, c) for n, c in zip(table.names, table.columns, strict=True) if n not in table.levels)


def _column(variable: Variable, values: FloatArray, there: BoolArray, found: list[str]) -> ColumnCheck:
    known = values[there]
    distinct, counts = np.unique(known, return_counts=True)
    missing = int((~there).sum())
    notes, read_as = list(found), "levels" if variable.is_discrete else "numbers"
    extent: tuple[float, float, float] | None = None
    commonest: tuple[str, float] | None = None
    if missing > MANY_MISSING * len(values):
        notes.append("more than half of it is missing")
    if len(distinct) == 1:
        notes.append("always the same value")
    if variable.is_discrete:
        rows = dict(zip(distinct.astype(int).tolist(), counts.tolist(), strict=True))
        rare = sum(rows.get(place, 0) < RARE for place in range(len(variable.levels)))
        if rare and len(known) >= FEWEST_ROWS:
            notes.append(f"{rare} level{'s' if rare > 1 else ''} with fewer than {RARE} rows")
        if rows:
            most = max(rows, key=lambda place: rows[place])
            commonest = (variable.levels[most], rows[most] / len(known))
    elif len(known):
        share = counts.max() / len(known)
        if share >= SPIKE and len(known) >= FEWEST_ROWS and len(distinct) > len(known) ** 0.5:
            notes.append(f"{100 * share:.0f} % of the rows are exactly {distinct[counts.argmax()]:g}")
        if (known == np.rint(known)).all():
            read_as = "whole numbers"
        extent = (float(known.min()), float(np.median(known)), float(known.max()))
    return ColumnCheck(variable.name, read_as, missing, len(distinct), extent, commonest, tuple(notes))
