"""Rows as they come in production: dicts and arrays, read without data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import DataError, quoted
from spbn.tables.frames import as_table, missing_message
from spbn.tables.levels import level_of
from spbn.tables.table import Table, Variable

HOLES = (
    "complete the rows, or score them by what is there: network.logpdf(rows, missing='integrate') of a "
    "BayesianNetwork"
)


@final
class RowParser:
    """Reads complete rows of some variables, again and again."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self._names = tuple(variable.name for variable in variables)
        #: Every variable with its name and the codes of its levels; None if it is continuous.
        self._each = [
            (
                variable.name,
                {level: float(code) for code, level in enumerate(variable.levels)} or None,
                variable,
            )
            for variable in variables
        ]

    def columns(self, rows: Any) -> FloatArray:
        """Return variables × rows, discrete variables as the places of their levels.

        Parameters
        ----------
        rows
            A dict with a value for every variable, or with a column for every variable; a list of dicts; an
            array of rows × variables, or of one row, in which discrete variables are the places of their
            levels; a row of a data frame (a Series); or a data frame. Other values and columns are ignored.
        """
        rows = as_dict(rows)
        if isinstance(rows, Mapping):
            is_row = not any(map(is_column, rows.values()))
            found = self._row(rows)[:, None] if is_row else self._stacked(rows)
        elif isinstance(rows, np.ndarray):
            if rows.dtype.names is not None:
                return self.columns({name: np.atleast_1d(rows[name]) for name in rows.dtype.names})
            found = columns_of_array(rows, self._variables)
        elif isinstance(rows, list | tuple):
            found = self._listed(rows)
        else:
            return as_table(rows, variables=self._variables, min_rows=0).columns
        finite = np.isfinite(found)
        if not finite.all():
            raise DataError(f"{missing_message(Table(self._names, found), finite)}: {HOLES}.")
        return found

    def _row(self, row: Mapping[Any, Any]) -> FloatArray:
        values = []
        try:
            for name, codes, variable in self._each:
                value = row[name]
                if codes is None:
                    values.append(value if isinstance(value, float) else number_of(variable, value))
                else:
                    code = codes.get(value) if isinstance(value, str) else None
                    values.append(number_of(variable, value) if code is None else code)
        except KeyError:
            self._require_names(row)
            raise
        return np.array(values, dtype=np.float64)

    def _listed(self, rows: Sequence[Any]) -> FloatArray:
        if not rows:
            return np.empty((len(self._names), 0))
        if not all(isinstance(row, Mapping) for row in rows):
            try:
                return columns_of_array(np.asarray(rows), self._variables)
            except ValueError as error:  # not all of the same length
                if isinstance(error, DataError):
                    raise
                raise DataError(
                    f"a list must hold dicts, or rows of {len(self._names)} numbers each."
                ) from None
        out = np.empty((len(rows), len(self._names)))
        for place, row in enumerate(rows):
            try:
                out[place] = self._row(row)
            except DataError as error:
                raise DataError(f"row {place + 1}, counted from 1: {error}") from None
        return np.ascontiguousarray(out.T)

    def _stacked(self, data: Mapping[Any, Any]) -> FloatArray:
        self._require_names(data)
        columns = [self._column(variable, data[variable.name]) for variable in self._variables]
        lengths = {name: len(column) for name, column in zip(self._names, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns must have the same length. Got {lengths}.")
        return np.stack(columns)

    def _column(self, variable: Variable, values: Any) -> FloatArray:
        # Among text, NumPy would make text of NaN.
        array = np.asarray(values, dtype=object if variable.levels else None)
        if array.ndim != 1:
            raise DataError(
                f"{variable.name!r} must be a column, as others are: a list or an array of one dimension. "
                f"Got {values!r:.60}."
            )
        if not variable.levels and array.dtype.kind in "biuf":
            return array.astype(np.float64)
        return np.array([number_of(variable, value) for value in array.tolist()])

    def _require_names(self, data: Mapping[Any, Any]) -> None:
        absent = [name for name in self._names if name not in data]
        if absent:
            raise DataError(
                f"there is no value for {quoted(absent)}. The variables are {quoted(self._names)}."
            )


def as_dict(rows: Any) -> Any:
    """Return a row of a data frame, which pandas gives as a Series, as a dict; other rows as they are."""
    is_row = hasattr(rows, "to_dict") and hasattr(rows, "index") and not hasattr(rows, "columns")
    return rows.to_dict() if is_row else rows


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


def columns_of_array(rows: Any, variables: Sequence[Variable]) -> FloatArray:
    """Return variables × rows of an array of rows, or of one; NaN is missing."""
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


def is_column(value: Any) -> bool:
    """Tell columns from single values."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)
