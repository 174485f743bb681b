"""Rows as they come in production: dicts and arrays, one by one or in batches, read without data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import DataError, quoted
from spbn.tables.levels import level_of
from spbn.tables.reader import as_table, missing_message, require_equal_lengths
from spbn.tables.table import Table, Variable

HOLES = (
    "complete the rows, or score them by what is there: network.logpdf(rows, missing='integrate') of a "
    "BayesianNetwork"
)


@final
class RowParser:
    """Reads rows of some variables, again and again.

    Rows are a dict with a value for every variable; a list of such dicts; a dict with a column for every
    variable; an array of rows × variables, or of one row, in which discrete variables are the positions of
    their levels; a row of a data frame (a Series); or a data frame. Other values and columns are ignored.

    Parameters
    ----------
    missing
        ``"error"``: rows must be complete. ``"keep"``: values that are None or NaN are missing.
    """

    def __init__(self, variables: Sequence[Variable], *, missing: Literal["error", "keep"] = "error") -> None:
        self._variables = tuple(variables)
        self._names = tuple(variable.name for variable in variables)
        self._keeps = missing == "keep"
        #: Every variable with its name and the codes of its levels; None if it is continuous.
        self._each = [
            (
                variable.name,
                {level: float(code) for code, level in enumerate(variable.levels)} or None,
                variable,
            )
            for variable in variables
        ]

    def table(self, rows: Any) -> Table:
        """Return rows as a table, in which NaN is missing."""
        return Table.of(self._variables, self.columns(rows))

    def columns(self, rows: Any) -> FloatArray:
        """Return variables × rows, discrete variables as the positions of their levels."""
        rows = as_dict(rows)
        if isinstance(rows, Mapping) and not any(map(is_column, rows.values())):
            found = self._row(rows)[:, None]
        elif are_dicts(rows):
            found = self._listed(rows)
        elif isinstance(rows, np.ndarray) and (rows.dtype.names is None or self._keeps):
            found = columns_of_array(rows, self._variables)
        elif self._keeps:
            return as_table(rows, variables=self._variables, missing="keep").columns
        elif isinstance(rows, Mapping):
            found = self._stacked(rows)
        elif isinstance(rows, np.ndarray):
            return self.columns({name: np.atleast_1d(rows[name]) for name in rows.dtype.names or ()})
        elif isinstance(rows, list | tuple):
            found = self._array(rows)
        else:
            return as_table(rows, variables=self._variables, min_rows=0).columns
        if not self._keeps:
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
        found = np.array(values, dtype=np.float64)
        if self._keeps and np.isinf(found).any():
            for variable, value in zip(self._variables, values, strict=True):
                if not variable.levels:
                    number_of(variable, value)  # refuses what is infinite
        return found

    def _listed(self, rows: Sequence[Mapping[Any, Any]]) -> FloatArray:
        out = np.empty((len(rows), len(self._names)))
        for place, row in enumerate(rows):
            try:
                out[place] = self._row(row)
            except DataError as error:
                if self._keeps:
                    raise
                raise DataError(f"row {place + 1}, counted from 1: {error}") from None
        return np.ascontiguousarray(out.T)

    def _array(self, rows: Sequence[Any]) -> FloatArray:
        try:
            return columns_of_array(np.asarray(rows), self._variables)
        except ValueError as error:  # not all of the same length
            if isinstance(error, DataError):
                raise
            raise DataError(f"a list must hold dicts, or rows of {len(self._names)} numbers each.") from None

    def _stacked(self, data: Mapping[Any, Any]) -> FloatArray:
        self._require_names(data)
        columns = [self._column(variable, data[variable.name]) for variable in self._variables]
        require_equal_lengths({name: len(column) for name, column in zip(self._names, columns, strict=True)})
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
        if absent and self._keeps:
            raise DataError(f"the row has no value for {quoted(absent)}: give None where a value is unknown.")
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


def are_dicts(rows: Any) -> bool:
    """Tell whether rows are a list of dicts."""
    return isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows)
