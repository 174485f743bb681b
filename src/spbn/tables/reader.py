"""Anything that holds rows, read as a `Table`: data frames, dicts of columns, arrays, and rows as dicts.

Everything else in the package works on a `Table`: whatever the user passed has been checked here, once.
`as_table` reads tables. A `RowParser` reads rows as they come in production, one by one or in batches,
without data frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray
from spbn._base.checks import either
from spbn.errors import DataError, argument, quoted, setting
from spbn.tables.columns import as_array, columns_of, how_to_drop, name_them, named, named_by_text, to_floats
from spbn.tables.levels import (
    Categories,
    categories,
    codes_among,
    is_categorical,
    is_series,
    level_of,
    require_categories,
)
from spbn.tables.table import Table, Variable, require_variation

if TYPE_CHECKING:
    import pandas as pd
    from narwhals.typing import IntoDataFrame

#: What a table can be given as: a data frame, columns by name, or an array of rows × columns.
TableLike: TypeAlias = "IntoDataFrame | Mapping[str, npt.ArrayLike] | npt.NDArray[np.generic] | Table"
#: What users may choose for rows with missing values: refuse the table, or leave them out.
Missing = Literal["error", "drop"]
#: Numbers, and the levels that they are positions of; None if they are just numbers.
Column = tuple[FloatArray, tuple[str, ...] | None]

HOLES = (
    "complete the rows, or score them by what is there: network.logpdf(rows, missing='integrate') of a "
    "BayesianNetwork"
)


def as_table(
    data: Any,
    *,
    names: Sequence[str] | None = None,
    variables: Sequence[Variable] | None = None,
    levels: Literal["none", "infer"] = "none",
    discrete: Sequence[str] = (),
    continuous: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: Literal["error", "drop", "keep"] | None = None,
    absent: bool = False,
    min_rows: int = 1,
    training: bool = False,
) -> Table:
    """Read a data frame, a dict of columns or an array, and refuse what cannot be used.

    Parameters
    ----------
    data
        A pandas DataFrame, anything else that narwhals reads (polars, pyarrow, ...), a dict of columns, or a
        numpy array of rows × columns. Columns whose names are whole numbers, and those of an array, are
        called "0", "1" and so on.
    names
        The columns to read, in this order; all of them by default. Other columns are not looked at, so they
        may hold anything.
    variables
        The same, with the levels of the discrete ones.
    levels
        Without `variables`: whether all columns hold numbers, or truth values, which are read as 0 and 1
        (``"none"``), or text, categories and truth values are discrete columns (``"infer"``).
    discrete, continuous
        If levels are inferred: columns that are discrete, or numbers, whatever they hold.
    drop
        Columns to leave out.
    missing
        What to do with rows that hold a missing or infinite value: refuse the table (``"error"``), leave them
        out (``"drop"``), or keep them, with NaN for missing values (``"keep"``). None: refuse, and offer no
        choice, because the caller needs every row.
    absent
        If missing values are kept: whether whole columns may be absent.
    min_rows
        Fewest rows that the caller can work with.
    training
        The table is to be learned from: levels are inferred, two rows are needed, and columns without spread
        are refused. If missing values are kept, infinite ones count as missing, and nothing else is refused.
    """
    if missing not in ("error", "drop", "keep", None):
        either("missing", missing, ("error", "drop"))
    columns = {} if isinstance(data, Table) else columns_of(data)
    if variables is not None:
        names = [variable.name for variable in variables]
    elif len(drop):
        names = _not_dropped(list(data.names if isinstance(data, Table) else columns), drop)
    if isinstance(data, Table):
        table = data if names is None or data.names == tuple(names) else data.select(names)
        if not (training or levels == "infer"):
            table = _conforming(table, table.names if variables is None else variables)
    else:
        there = names
        if absent and names is not None:
            there = [name for name in names if name in columns]
            if not there:
                raise DataError(
                    f"the data has none of the columns {quoted(names)}.{name_them(columns, names)}"
                )
        can_drop = training or missing in ("error", "drop")
        if training or levels == "infer":
            table = _inferred(columns, there, discrete, continuous, can_drop=can_drop)
        else:
            known = {v.name: v.levels for v in variables or () if v.levels}
            table = _of_levels(columns, there, known, can_drop=can_drop)
        if missing == "keep" and not training:
            if np.isinf(table.columns).any():
                raise DataError(
                    f"{missing_message(table, ~np.isinf(table.columns))}: drop or fill those rows."
                )
            if variables is not None:
                table = _with_absent(table, variables)
    if missing == "keep":
        if training:
            return table.with_columns(np.where(np.isfinite(table.columns), table.columns, np.nan))
        return table
    table = _complete(table, missing, max(min_rows, 2) if training else min_rows)
    if training:
        require_variation(table)
    return table


def _inferred(
    columns: Mapping[str, Any],
    names: Sequence[str] | None,
    discrete: Sequence[str],
    continuous: Sequence[str],
    *,
    can_drop: bool,
) -> Table:
    """Read columns which tell whether they are discrete, unless that is said."""
    chosen = [discrete] if isinstance(discrete, str) else list(discrete)
    unknown = [name for name in chosen if name not in columns]
    if unknown and columns:
        raise DataError(
            f"{argument('discrete')} names unknown columns: {quoted(unknown)}. "
            f"The data has {quoted(columns)}."
        )

    def read(name: str, values: Any) -> Column:
        if name in continuous or (name not in chosen and not is_categorical(values)):
            return to_floats(name, values, can_drop=can_drop), None
        found = categories(values)
        if name not in chosen:
            require_categories(name, found)
        return found.codes, found.levels

    return _stacked(columns, names, read)


def _of_levels(
    columns: Mapping[str, Any],
    names: Sequence[str] | None,
    levels: Mapping[str, tuple[str, ...]],
    *,
    can_drop: bool,
) -> Table:
    """Read columns of which the levels of the discrete ones are known; all others hold numbers."""

    def read(name: str, values: Any) -> Column:
        if name not in levels:
            return to_floats(name, values, can_drop=can_drop), None
        return codes_among(name, categories(values), levels[name]), levels[name]

    return _stacked(columns, names, read)


def _stacked(
    columns: Mapping[str, Any], names: Sequence[str] | None, read: Callable[[str, Any], Column]
) -> Table:
    """Return the named columns, or all."""
    if not columns or (names is not None and not names):
        raise DataError("the data has no columns." if not columns else "no columns are named.")
    if names is not None:
        absent = [name for name in names if name not in columns]
        if absent:
            raise DataError(
                f"the data lacks {named(absent, verb=False)}. Its columns are {quoted(columns)}."
                f"{name_them(columns, names)}"
            )
        columns = {name: columns[name] for name in names}
    found = {
        name: read(name, values if is_series(values) else as_array(name, values))
        for name, values in columns.items()
    }
    _require_equal_lengths({name: len(column) for name, (column, _) in found.items()})
    levels = {name: levels for name, (_, levels) in found.items() if levels is not None}
    return Table(tuple(found), np.ascontiguousarray(np.stack([c for c, _ in found.values()])), levels)


def _require_equal_lengths(lengths: dict[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns must have the same length. Got {lengths}.")


def _with_absent(table: Table, variables: Sequence[Variable]) -> Table:
    """Return a table with all of some variables: those that it lacks are missing in every row."""
    rows = np.full((len(variables), table.rows), np.nan)
    for place, variable in enumerate(variables):
        if variable.name in table.names:
            rows[place] = table.column(variable.name)
    return Table.of(variables, rows)


def _complete(table: Table, missing: str | None, min_rows: int) -> Table:
    """Refuse what is not finite or too short; leave rows with holes out if that is asked for."""
    finite = np.isfinite(table.columns)
    if not finite.all():
        empty = [name for name, there in zip(table.names, finite, strict=True) if not there.any()]
        if empty and missing and table.rows:
            has = "has" if len(empty) == 1 else "have"
            raise DataError(
                f"{named(empty, verb=False)} {has} no value in any of the {table.rows} rows: "
                f"{how_to_drop(empty)}."
            )
        if missing != "drop":
            remedy = (
                f"fill them, or pass {setting('missing', 'drop')} to leave such rows out"
                if missing
                else "drop or fill those rows"
            )
            raise DataError(f"{missing_message(table, finite)}: {remedy}.")
        table = table.take(np.flatnonzero(finite.all(axis=0)))
    if table.rows < min_rows:
        needed = "1 row is" if min_rows == 1 else f"{min_rows} rows are"
        raise DataError(f"at least {needed} needed. Got {table.rows}.")
    return table


def _not_dropped(names: list[str], drop: Sequence[str]) -> list[str]:
    """Return the names of the columns that are not dropped."""
    dropped = [drop] if isinstance(drop, str) else list(drop)
    absent = [name for name in dropped if name not in names]
    if absent:
        raise DataError(
            f"{argument('drop')} names unknown columns: {quoted(absent)}. The data has {quoted(names)}."
        )
    kept = [name for name in names if name not in dropped]
    if not kept:
        raise DataError(
            f"{argument('drop')} names all columns, {quoted(names)}, which leaves none to use: drop fewer."
        )
    return kept


def _conforming(table: Table, expected: Sequence[str | Variable]) -> Table:
    """Return a table whose discrete columns have the levels that are expected; none where a name is given."""
    columns = []
    for place, wanted in enumerate(expected):
        variable = wanted if isinstance(wanted, Variable) else Variable(wanted)
        has = table.levels.get(variable.name, ())
        if has == variable.levels:
            continue
        if not (has and variable.levels):
            holds, wanted_kind = ("levels", "numbers") if has else ("numbers", "levels")
            raise DataError(f"column {variable.name!r} holds {holds}, and {wanted_kind} are expected.")
        codes = table.columns[place]
        found = Categories(has, np.where(np.isnan(codes), -1, codes).astype(np.int64), is_plain_text=False)
        columns.append((place, codes_among(variable.name, found, variable.levels)))
    if not columns:
        return table
    moved = table.columns.copy()
    for place, codes in columns:
        moved[place] = codes
    levels = {v.name: v.levels for v in expected if isinstance(v, Variable) and v.levels}
    return Table(table.names, moved, levels)


def has_categories(data: Any) -> bool:
    """Tell whether data is a frame with columns of text, categories or truth values."""
    import narwhals as nw

    frame = nw.from_native(
        data if isinstance(data, np.ndarray) else named_by_text(data), eager_only=True, pass_through=True
    )
    return isinstance(frame, nw.DataFrame) and any(is_categorical(frame[name]) for name in frame.columns)


def frame_index(data: Any) -> Any:
    """Return the index of a pandas frame, to carry over to results; None for other data."""
    import narwhals as nw

    return data.index if nw.dependencies.is_pandas_dataframe(data) else None


def by_row(data: Any, values: FloatArray) -> pd.Series[float] | FloatArray:
    """Return one number per row as a Series with the index of a pandas frame; for other data as it is."""
    index = frame_index(data)
    if index is None:
        return values
    import pandas as pd

    return pd.Series(values, index=index)


def missing_message(table: Table, finite: BoolArray) -> str:
    """Say which columns have values that are not finite, and where."""
    parts: list[str] = []
    for name, column, good in zip(table.names, table.columns, finite, strict=True):
        bad = np.flatnonzero(~good)
        if len(bad):
            kind = "missing" if np.isnan(column[bad]).all() else "missing or infinite"
            where = ", ".join(str(row + 1) for row in bad[:3]) + (", ..." if len(bad) > 3 else "")
            count = f"{len(bad)} {kind} value{'s' if len(bad) > 1 else ''}"
            counted = "" if parts else ", counted from 1"
            parts.append(f"column {name!r} has {count} (row{'s' if len(bad) > 1 else ''} {where}{counted})")
    more = f"; and {len(parts) - 3} more columns" if len(parts) > 3 else ""
    return "; ".join(parts[:3]) + more


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
        _require_equal_lengths({name: len(column) for name, column in zip(self._names, columns, strict=True)})
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
