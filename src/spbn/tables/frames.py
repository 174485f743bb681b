"""Frames in, named columns of numbers and level codes out.

Everything else in the package works on a `Table`: whatever the user passed
has been checked here, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.errors import ArgumentError, DataError, quoted
from spbn.numerics.moments import Moments, centre_of
from spbn.tables.columns import Reader, columns_of, how_to_drop, name_them, named, named_by_text
from spbn.tables.levels import Categories, codes_among, is_categorical
from spbn.tables.table import Table, Variable

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

#: What a table can be given as: a data frame, columns by name, or an array of rows × columns.
TableLike: TypeAlias = "IntoDataFrame | Mapping[str, npt.ArrayLike] | npt.NDArray[np.generic] | Table"
Missing = Literal["error", "drop"]

#: Deviations from the median whose squares neither vanish nor overflow.
LEAST_SPREAD, GREATEST_SPREAD = 1e-150, 1e150
NEARLY_ONE = 1.0 - 1e-6  # correlations that are looked at closely
COPY = 1e-6  # of a column's spread, which a copy may deviate by


def as_table(
    data: Any,
    *,
    names: Sequence[str] | None = None,
    variables: Sequence[Variable] | None = None,
    missing: Missing | None = None,
    min_rows: int = 1,
) -> Table:
    """Read a data frame or a dict of columns, and refuse what cannot be used.

    Columns must hold numbers, or truth values, which are read as 0 and 1. If `variables` are given, the
    columns of discrete ones hold some of their levels.

    Parameters
    ----------
    data
        A pandas DataFrame, anything else that narwhals reads (polars, pyarrow,
        ...), a dict of columns, or a numpy array of rows × columns. Columns
        whose names are whole numbers, and those of an array, are called "0",
        "1" and so on.
    names
        The columns to read, in this order; all of them by default. Other
        columns are not looked at, so they may hold anything.
    variables
        The same, with the levels of the discrete ones.
    missing
        What to do with rows that hold a missing or infinite value: refuse the
        table (``"error"``), or leave them out (``"drop"``). None: refuse, and
        offer no choice, because the caller needs every row.
    min_rows
        Fewest rows that the caller can work with.
    """
    if variables is not None:
        names = [variable.name for variable in variables]
    if isinstance(data, Table):
        table = data if names is None or data.names == tuple(names) else data.select(names)
        table = _conforming(table, table.names if variables is None else variables)
    else:
        levels = {variable.name: variable.levels for variable in variables or () if variable.levels}
        table = Reader(data, can_drop=missing is not None, levels=levels).table(names)
    return _checked(table, missing, min_rows)


def mixed_table(
    data: Any,
    *,
    names: Sequence[str] | None = None,
    discrete: Sequence[str] = (),
    continuous: Sequence[str] = (),
    missing: Missing | None = None,
    min_rows: int = 1,
) -> Table:
    """Read a table in which text, categories and truth values are discrete columns.

    So are numbers in the columns that `discrete` names, but not those that `continuous` names.
    Everything else is as for `as_table`.
    """
    if isinstance(data, Table):
        table = data if names is None or data.names == tuple(names) else data.select(names)
    else:
        reader = Reader(data, can_drop=missing is not None, discrete=discrete, continuous=continuous)
        table = reader.table(names)
    return _checked(table, missing, min_rows)


def _checked(table: Table, missing: Missing | None, min_rows: int) -> Table:
    """Refuse what is not finite or too short; leave rows with holes out if that is asked for."""
    if missing not in ("error", "drop", None):
        raise ArgumentError(f"missing must be 'error' or 'drop'. Got {missing!r} instead.")
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
                "fill them, or pass missing='drop' to leave such rows out"
                if missing
                else "drop or fill those rows"
            )
            raise DataError(f"{missing_message(table, finite)}: {remedy}.")
        table = table.take(np.flatnonzero(finite.all(axis=0)))
    if table.rows < min_rows:
        needed = "1 row is" if min_rows == 1 else f"{min_rows} rows are"
        raise DataError(f"at least {needed} needed. Got {table.rows}.")
    return table


def table_with_holes(data: Any, variables: Sequence[Variable], *, may_be_absent: bool = False) -> Table:
    """Read a table in which values may be missing, or whole columns if they may be absent: they are NaN."""
    if isinstance(data, Table):
        return _conforming(data.select([variable.name for variable in variables]), variables)
    columns = columns_of(data)
    there = [v for v in variables if not may_be_absent or v.name in columns]
    if not there:
        names = [variable.name for variable in variables]
        raise DataError(f"the data has none of the columns {quoted(names)}.{name_them(columns, names)}")
    levels = {variable.name: variable.levels for variable in variables if variable.levels}
    found = Reader(data, can_drop=False, levels=levels).table([variable.name for variable in there])
    if np.isinf(found.columns).any():
        raise DataError(f"{missing_message(found, ~np.isinf(found.columns))}: drop or fill those rows.")
    rows = np.full((len(variables), found.rows), np.nan)
    for place, variable in enumerate(variables):
        if variable in there:
            rows[place] = found.column(variable.name)
    return Table(tuple(variable.name for variable in variables), rows, levels)


def require_variation(table: Table) -> None:
    """Refuse columns with one value only, or with numbers that cannot be squared: they have no density."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.abs(table.columns - centre_of(table.columns)).max(axis=1)
    constant = [name for name, column in _columns_of(table) if column.min() == column.max()]
    if constant:
        raise DataError(
            f"{named(constant)} constant, which leaves nothing to learn: {how_to_drop(constant)}."
        )
    for name, deviation in zip(table.names, deviations.tolist(), strict=True):
        if not LEAST_SPREAD <= deviation <= GREATEST_SPREAD:
            extent = "little" if deviation < 1 else "much"
            raise DataError(
                f"column {name!r} varies too {extent} (by {deviation:.0e}) for its numbers to be squared: "
                f"rescale it."
            )


def require_distinct(table: Table, *, origin: Mapping[str, str] | None = None) -> None:
    """Refuse columns that are copies of others, or rescaled copies: one says all that the other says.

    Parameters
    ----------
    origin
        The columns of the data that columns were made from, by which to leave them out.
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
        scale = np.sqrt(np.diag(scatter))
        correlation = scatter / scale / scale[:, None]
    for i, j in np.argwhere(np.triu(np.abs(correlation) > NEARLY_ONE, k=1)).tolist():
        # Relative to the bulk of the rows, not all of them: two columns that share an outlier are not copies.
        low, high = np.quantile(columns[j], [0.25, 0.75])
        spread = high - low if high > low else columns[j].std()
        residuals = columns[j] - scatter[i, j] / scatter[i, i] * columns[i]
        if residuals.max() - residuals.min() <= COPY * spread:
            kind = "a copy" if np.array_equal(table.columns[i], table.columns[j]) else "a rescaled copy"
            yield table.names[j], table.names[i], kind


def training_table(
    data: Any, missing: Missing, *, drop: Sequence[str] = (), discrete: Sequence[str] = ()
) -> Table:
    """Read data to learn from: columns without spread are refused, and those named in `drop` left out.

    Text, categories and truth values are discrete columns, as are those named in `discrete`.
    """
    names = _kept(data, drop) if len(drop) else None
    table = mixed_table(data, names=names, discrete=discrete, missing=missing, min_rows=2)
    require_variation(table)
    return table


def training_table_with_holes(data: Any, *, drop: Sequence[str] = (), discrete: Sequence[str] = ()) -> Table:
    """Read data to learn from in which values may be missing or infinite: both become NaN."""
    names = _kept(data, drop) if len(drop) else None
    table = data if isinstance(data, Table) else Reader(data, can_drop=True, discrete=discrete).table(names)
    return table.with_columns(np.where(np.isfinite(table.columns), table.columns, np.nan))


def require_continuous(table: Table, what: str, remedy: str) -> None:
    """Refuse discrete columns where only numbers make sense."""
    wrong = [variable.name for variable in table.variables if variable.is_discrete]
    if wrong:
        are = "is" if len(wrong) == 1 else "are"
        raise DataError(f"{what} takes continuous columns only. {quoted(wrong)} {are} discrete: {remedy}.")


def _kept(data: Any, drop: Sequence[str]) -> list[str]:
    """Return the names of the columns that are not dropped."""
    dropped = [drop] if isinstance(drop, str) else list(drop)
    names = list(data.names if isinstance(data, Table) else columns_of(data))
    absent = [name for name in dropped if name not in names]
    if absent:
        raise DataError(f"drop names unknown columns: {quoted(absent)}. The data has {quoted(names)}.")
    kept = [name for name in names if name not in dropped]
    if not kept:
        raise DataError(f"drop names all columns, {quoted(names)}, which leaves none to use: drop fewer.")
    return kept


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
        found = Categories(has, _places(table.columns[place]), is_plain_text=False)
        columns.append((place, codes_among(variable.name, found, variable.levels)))
    if not columns:
        return table
    moved = table.columns.copy()
    for place, codes in columns:
        moved[place] = codes
    levels = {v.name: v.levels for v in expected if isinstance(v, Variable) and v.levels}
    return Table(table.names, moved, levels)


def _places(codes: FloatArray) -> IntArray:
    return np.where(np.isnan(codes), -1, codes).astype(np.int64)


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


def _columns_of(table: Table) -> Iterator[tuple[str, FloatArray]]:
    return zip(table.names, table.columns, strict=True)
