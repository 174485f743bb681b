"""Columns that can be learned from, but may not be what they seem."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.tables.table import Table

FEWEST_ROWS = 10  # fewer values are often all different, or few, by chance
FEW_VALUES = 3
WHOLE = 2.0**53  # greater numbers have no digits after the point


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
    return {
        name: float(end)
        for name, column in _columns(table)
        for end in (column.min(), column.max())
        if _has_nines_only(end) and _is_far(end, column[column != end])
    }


def _has_nines_only(number: float) -> bool:
    digits = f"{abs(number):.12g}".replace(".", "")
    return len(digits) > 1 and set(digits) == {"9"}


def _is_far(end: float, others: FloatArray) -> bool:
    """Tell whether a number is further from all others than these are from each other."""
    return len(others) > 0 and float(np.abs(others - end).min()) > float(np.ptp(others)) > 0.0


def _columns(table: Table) -> Iterator[tuple[str, FloatArray]]:
    """Yield the continuous columns, if there are enough rows."""
    if table.rows >= FEWEST_ROWS:
        yield from ((n, c) for n, c in zip(table.names, table.columns, strict=True) if n not in table.levels)
