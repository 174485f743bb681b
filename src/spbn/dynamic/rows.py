"""New rows, however they come: one dict, one array, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from spbn.errors import DataError, quoted
from spbn.numerics.arrays import FloatArray
from spbn.tables.frames import table_with_holes
from spbn.tables.levels import level_of
from spbn.tables.table import Table, Variable


def table_of(rows: Any, variables: Sequence[Variable]) -> Table:
    """Return new rows as a table, in which NaN is missing.

    Parameters
    ----------
    rows
        A dict with the value of every variable, in which None and NaN are missing; an array of values in the
        order of the variables, or of rows of these; or a table.
    """
    if isinstance(rows, Mapping) and not any(_is_column(value) for value in rows.values()):
        return as_table_of(variables, _from_dict(rows, variables)[:, None])
    if isinstance(rows, np.ndarray):
        return as_table_of(variables, _from_array(rows, variables))
    return table_with_holes(rows, variables)


def as_table_of(variables: Sequence[Variable], columns: FloatArray) -> Table:
    """Return variables × rows as a table."""
    levels = {variable.name: variable.levels for variable in variables if variable.levels}
    return Table(tuple(variable.name for variable in variables), columns, levels)


def number_of(variable: Variable, value: Any) -> float:
    """Return a value as a number, or as the place of a level; NaN if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return float("nan")
    if variable.levels:
        level = level_of(value, variable.levels)
        try:
            return float(variable.levels.index(level))
        except ValueError:
            raise DataError(
                f"{variable.name!r} has the level {level!r:.60}, which is unknown. Its levels are "
                f"{quoted(variable.levels)}."
            ) from None
    if not isinstance(value, Real):
        raise DataError(f"{variable.name!r} must be a number. Got {value!r:.60}.")
    number = float(value)
    if number in (np.inf, -np.inf):
        raise DataError(f"{variable.name!r} is infinite: give None if its value is unknown.")
    return number


def _from_dict(row: Mapping[Any, Any], variables: Sequence[Variable]) -> FloatArray:
    absent = [variable.name for variable in variables if variable.name not in row]
    if absent:
        raise DataError(f"the row has no value for {quoted(absent)}: give None where a value is unknown.")
    return np.array([number_of(variable, row[variable.name]) for variable in variables])


def _from_array(rows: Any, variables: Sequence[Variable]) -> FloatArray:
    if rows.dtype.kind not in "biuf":
        raise DataError(f"an array of rows must hold numbers. Got {rows.dtype}: pass a dict or a data frame.")
    values = np.atleast_2d(rows.astype(np.float64))
    if values.ndim != 2 or values.shape[1] != len(variables):
        names = quoted(variable.name for variable in variables)
        raise DataError(
            f"an array must have one value for each of {names}, or rows of these. Got shape {rows.shape}."
        )
    if np.isinf(values).any():
        raise DataError("an array of rows must not hold infinite values: NaN is a missing one.")
    for variable, column in zip(variables, values.T, strict=True):
        if variable.levels:
            there = column[~np.isnan(column)]
            if not ((there >= 0) & (there < len(variable.levels)) & (there == np.floor(there))).all():
                raise DataError(
                    f"in an array, {variable.name!r} is the place of a level, from 0 to "
                    f"{len(variable.levels) - 1}. Got {there.min():g} to {there.max():g}."
                )
    return np.ascontiguousarray(values.T)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)
