"""Anything that holds a table, read as a `Table`: data frames, dicts of columns, and arrays.

Everything else in the package works on a `Table`: whatever the user passed has been checked here, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray
from spbn._base.checks import either
from spbn._base.lazy import nw, pd
from spbn.errors import DataError, quoted, setting
from spbn.tables.columns import (
    Categories,
    as_array,
    categories,
    codes_among,
    columns_of,
    how_to_drop,
    is_categorical,
    is_series,
    known_names,
    name_them,
    named,
    named_by_text,
    not_dropped,
    require_categories,
    require_repetition,
    to_floats,
)
from spbn.tables.readings import raw_values, read_columns
from spbn.tables.table import Table, Variable, require_variation

if TYPE_CHECKING:
    import os

    from narwhals.typing import IntoDataFrame

#: What a table can be given as: a data frame, columns by name, or an array of rows × columns.
TableLike: TypeAlias = "IntoDataFrame | Mapping[str, npt.ArrayLike] | npt.NDArray[np.generic] | Table"
#: What rows to learn from can be given as: a table, or rows elsewhere, by the names of Parquet files.
RowsLike: TypeAlias = "TableLike | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
#: What users may choose for rows with missing values: refuse the table, or leave them out.
Missing = Literal["error", "drop"]


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
        columns = read_columns(columns, {v.name: v.reading for v in variables}, raw_values)
    elif len(drop):
        names = not_dropped(list(data.names if isinstance(data, Table) else columns), drop)
    infers = training or levels == "infer"
    if isinstance(data, Table):
        table = data if names is None or data.names == tuple(names) else data.select(names)
        if not infers:
            table = _conforming(table, variables or [Variable(name) for name in table.names])
    else:
        there = names
        if absent and names is not None:
            there = [name for name in names if name in columns]
            if not there:
                raise DataError(
                    f"the data has none of the columns {quoted(names)}.{name_them(columns, names)}"
                )
        known = None if infers else {v.name: v.levels for v in variables or () if v.levels}
        can_drop = training or missing in ("error", "drop")
        table = _stacked(columns, there, known, discrete, continuous, can_drop=can_drop)
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


def _stacked(
    columns: Mapping[str, Any],
    names: Sequence[str] | None,
    known: Mapping[str, tuple[str, ...]] | None,
    discrete: Sequence[str],
    continuous: Sequence[str],
    *,
    can_drop: bool,
) -> Table:
    """Return the named columns, or all.

    Those of which the levels are known are discrete, and all others hold numbers. If `known` is None, columns
    tell what they are, unless that is said.
    """
    chosen = known_names("discrete", discrete, columns) if known is None and columns else ()
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
    found: dict[str, FloatArray] = {}
    levels: dict[str, tuple[str, ...]] = {}
    for name, column in columns.items():
        values = column if is_series(column) else as_array(name, column)
        if known is not None and name in known:
            found[name], levels[name] = codes_among(name, categories(values), known[name]), known[name]
        elif known is None and name not in continuous and (name in chosen or is_categorical(values)):
            read = categories(values)
            if name not in chosen:
                require_categories(name, read)
            require_repetition(name, len(np.unique(read.places)), len(read.places))
            found[name], levels[name] = read.codes, read.levels
        else:
            found[name] = to_floats(name, values, can_drop=can_drop)
    require_equal_lengths({name: len(column) for name, column in found.items()})
    return Table(tuple(found), np.ascontiguousarray(np.stack(list(found.values()))), levels)


def require_equal_lengths(lengths: dict[str, int]) -> None:
    """Refuse columns of different lengths."""
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


def _conforming(table: Table, expected: Sequence[Variable]) -> Table:
    """Return a table whose discrete columns have the levels that are expected."""
    moved = {}
    for place, variable in enumerate(expected):
        has = table.levels.get(variable.name, ())
        if has == variable.levels:
            continue
        if not (has and variable.levels):
            holds, wanted = ("levels", "numbers") if has else ("numbers", "levels")
            raise DataError(f"column {variable.name!r} holds {holds}, and {wanted} are expected.")
        codes = table.columns[place]
        found = Categories(has, np.where(np.isnan(codes), -1, codes).astype(np.int64), is_plain_text=False)
        moved[place] = codes_among(variable.name, found, variable.levels)
    if not moved:
        return table
    columns = [moved.get(place, column) for place, column in enumerate(table.columns)]
    return Table.of(expected, np.stack(columns))


def has_categories(data: Any) -> bool:
    """Tell whether data is a frame with columns of text, categories or truth values."""
    frame = nw.from_native(
        data if isinstance(data, np.ndarray) else named_by_text(data), eager_only=True, pass_through=True
    )
    return isinstance(frame, nw.DataFrame) and any(is_categorical(frame[name]) for name in frame.columns)


def frame_index(data: Any) -> Any:
    """Return the index of a pandas frame, to carry over to results; None for other data."""
    return data.index if nw.dependencies.is_pandas_dataframe(data) else None


def is_polars(data: Any) -> bool:
    """Tell whether data is a frame of polars, be it a lazy one."""
    return nw.dependencies.is_polars_dataframe(data) or nw.dependencies.is_polars_lazyframe(data)


def frame_like(data: Any, columns: Mapping[str, Any]) -> Any:
    """Return columns of results as a polars frame if the data is one; otherwise as one of pandas."""
    if not is_polars(data):
        return pd.DataFrame(columns, index=frame_index(data))
    plain = {name: c.tolist() if isinstance(c, pd.Categorical) else c for name, c in columns.items()}
    return nw.from_dict(plain, backend="polars").to_native()


def by_row(data: Any, values: FloatArray) -> pd.Series[float] | FloatArray:
    """Return one number per row as a Series of pandas, with its index, or of polars; else as an array."""
    if is_polars(data):
        return nw.new_series("logpdf", values, backend="polars").to_native()
    index = frame_index(data)
    return values if index is None else pd.Series(values, index=index)


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
