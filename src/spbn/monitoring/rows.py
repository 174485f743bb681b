"""New rows, however they come: one dict, one array, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import DataError, quoted
from spbn.tables.frames import table_with_holes
from spbn.tables.rows import columns_of_array, is_column, number_of
from spbn.tables.table import Table, Variable


def table_of(rows: Any, variables: Sequence[Variable]) -> Table:
    """Return new rows as a table, in which NaN is missing.

    Parameters
    ----------
    rows
        A dict with the value of every variable, in which None and NaN are missing; an array of values in the
        order of the variables, or of rows of these; a list of such dicts; or a table.
    """
    if are_dicts(rows):
        found = [_from_dict(row, variables) for row in rows]
        return as_table_of(variables, np.array(found).reshape(-1, len(variables)).T)
    if isinstance(rows, Mapping) and not any(map(is_column, rows.values())):
        return as_table_of(variables, _from_dict(rows, variables)[:, None])
    if isinstance(rows, np.ndarray):
        return as_table_of(variables, columns_of_array(rows, variables))
    return table_with_holes(rows, variables)


def as_table_of(variables: Sequence[Variable], columns: FloatArray) -> Table:
    """Return variables × rows as a table."""
    levels = {variable.name: variable.levels for variable in variables if variable.levels}
    return Table(tuple(variable.name for variable in variables), columns, levels)


def _from_dict(row: Mapping[Any, Any], variables: Sequence[Variable]) -> FloatArray:
    absent = [variable.name for variable in variables if variable.name not in row]
    if absent:
        raise DataError(f"the row has no value for {quoted(absent)}: give None where a value is unknown.")
    return np.array([number_of(variable, row[variable.name]) for variable in variables])


def are_dicts(rows: Any) -> bool:
    """Tell whether rows are a list of dicts."""
    return isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows)
