"""Frames in, named columns of numbers and level codes out.

Everything else in the package works on a `Table`: whatever the user passed
has been checked here, once.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np

from spbn.errors import ArgumentError, DataError, quoted
from spbn.numerics.arrays import BoolArray, FloatArray, IntArray
from spbn.numerics.moments import Moments, centre_of
from spbn.tables.levels import Categories, categories, codes_among, is_categorical, require_categories
from spbn.tables.table import Table, Variable

Missing = Literal["error", "drop"]

#: Deviations from the median whose squares neither vanish nor overflow.
LEAST_SPREAD, GREATEST_SPREAD = 1e-150, 1e150
NEARLY_ONE = 1.0 - 1e-6  # correlations that are looked at closely
COPY = 1e-6  # of a column's spread, which a copy may deviate by

# What columns hold that do not hold numbers; the keys are numpy's.
DATES, LENGTHS = "dates or times", "lengths of time"
KINDS = {"M": DATES, "m": LENGTHS, "U": "text", "S": "text"}


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
        ...), or a dict of columns.
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
        table = _Reader(data, can_drop=missing is not None, levels=levels).table(names)
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
        reader = _Reader(data, can_drop=missing is not None, discrete=discrete, continuous=continuous)
        table = reader.table(names)
    return _checked(table, missing, min_rows)


def _checked(table: Table, missing: Missing | None, min_rows: int) -> Table:
    """Refuse what is not finite or too short; leave rows with holes out if that is asked for."""
    if missing not in ("error", "drop", None):
        raise ArgumentError(f"missing must be 'error' or 'drop'. Got {missing!r} instead.")
    finite = np.isfinite(table.columns)
    if not finite.all():
        if missing != "drop":
            remedy = (
                "fill them, or pass missing='drop' to leave such rows out"
                if missing
                else "drop or fill those rows"
            )
            raise DataError(f"{_missing_message(table, finite)}: {remedy}.")
        table = table.take(np.flatnonzero(finite.all(axis=0)))
    if table.rows < min_rows:
        raise DataError(f"at least {min_rows} rows are needed. Got {table.rows}.")
    return table


def table_with_holes(data: Any, variables: Sequence[Variable], *, may_be_absent: bool = False) -> Table:
    """Read a table in which values may be missing, or whole columns if they may be absent: they are NaN."""
    if isinstance(data, Table):
        return _conforming(data.select([variable.name for variable in variables]), variables)
    columns = _series(data)
    there = [v for v in variables if not may_be_absent or v.name in columns]
    if not there:
        raise DataError(f"the data has none of the columns {quoted(v.name for v in variables)}.")
    levels = {variable.name: variable.levels for variable in variables if variable.levels}
    found = _Reader(data, can_drop=False, levels=levels).table([variable.name for variable in there])
    if np.isinf(found.columns).any():
        raise DataError(f"{_missing_message(found, ~np.isinf(found.columns))}: drop or fill those rows.")
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
            f"{_named(constant)} constant, which leaves nothing to learn: {_drop_them(constant)}."
        )
    for name, deviation in zip(table.names, deviations.tolist(), strict=True):
        if not LEAST_SPREAD <= deviation <= GREATEST_SPREAD:
            extent = "little" if deviation < 1 else "much"
            raise DataError(
                f"column {name!r} varies too {extent} (by {deviation:.0e}) for its numbers to be squared: "
                f"rescale it."
            )


def require_distinct(table: Table) -> None:
    """Refuse columns that are copies of others, or rescaled copies: one says all that the other says."""
    table = table.select([variable.name for variable in table.variables if not variable.is_discrete])
    if not table.names:
        return
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
            first, second = table.names[i], table.names[j]
            raise DataError(f"column {second!r} is {kind} of column {first!r}: {_drop_them([second])}.")


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
    table = data if isinstance(data, Table) else _Reader(data, can_drop=True, discrete=discrete).table(names)
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
    names = list(data.names if isinstance(data, Table) else _series(data))
    absent = [name for name in dropped if name not in names]
    if absent:
        raise DataError(f"drop names unknown columns: {quoted(absent)}. The data has {quoted(names)}.")
    kept = [name for name in names if name not in dropped]
    if not kept:
        raise DataError(f"drop names all columns, {quoted(names)}, which leaves none to use: drop fewer.")
    return kept


def has_categories(data: Any) -> bool:
    """Tell whether data is a frame with columns of text, categories or truth values."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return isinstance(frame, nw.DataFrame) and any(is_categorical(frame[name]) for name in frame.columns)


def frame_index(data: Any) -> Any:
    """Return the index of a pandas frame, to carry over to results; None for other data."""
    return data.index if nw.dependencies.is_pandas_dataframe(data) else None


class _Reader:
    """Reads the columns of some data: numbers, and categories as the places of their levels.

    Parameters
    ----------
    levels
        The levels of the columns that are discrete; all others hold numbers. None: the columns tell.
    discrete, continuous
        If the columns tell: those that are discrete, or numbers, whatever they hold.
    """

    def __init__(
        self,
        data: Any,
        *,
        can_drop: bool,
        levels: Mapping[str, tuple[str, ...]] | None = None,
        discrete: Sequence[str] = (),
        continuous: Sequence[str] = (),
    ) -> None:
        self._series = _series(data)
        self._can_drop = can_drop
        self._levels = levels
        self._discrete = [discrete] if isinstance(discrete, str) else list(discrete)
        self._continuous = set(continuous)

    def table(self, names: Sequence[str] | None) -> Table:
        """Return the named columns, or all."""
        series = self._series
        if not series or (names is not None and not names):
            raise DataError("the data has no columns." if not series else "no columns are named.")
        absent = [name for name in self._discrete if name not in series]
        if absent:
            raise DataError(
                f"discrete names unknown columns: {quoted(absent)}. The data has {quoted(series)}."
            )
        if names is not None:
            absent = [name for name in names if name not in series]
            if absent:
                raise DataError(
                    f"the data lacks {_named(absent, verb=False)}. Its columns are {quoted(series)}."
                )
            series = {name: series[name] for name in names}
        levels: dict[str, tuple[str, ...]] = {}
        columns = [self._column(name, values, levels) for name, values in series.items()]
        lengths = {name: len(column) for name, column in zip(series, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns must have the same length. Got {lengths}.")
        return Table(tuple(series), np.ascontiguousarray(np.stack(columns)), levels)

    def _column(self, name: str, values: Any, levels: dict[str, tuple[str, ...]]) -> FloatArray:
        """Return a column as numbers, and put its levels in if it is discrete."""
        if not isinstance(values, nw.Series):
            values = _array(name, values)
        if self._levels is not None:
            if name not in self._levels:
                return _to_floats(name, values, can_drop=self._can_drop)
            levels[name] = self._levels[name]
            return codes_among(name, categories(values), levels[name])
        if name in self._continuous or (name not in self._discrete and not is_categorical(values)):
            return _to_floats(name, values, can_drop=self._can_drop)
        found = categories(values)
        if name not in self._discrete:
            require_categories(name, found)
        levels[name] = found.levels
        return found.codes


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


def _series(data: Any) -> dict[str, Any]:
    """Return the columns by name, as narwhals Series or, from a dict, as they are."""
    if isinstance(data, Mapping):
        _require_names(list(data))
        return dict(data)
    # Polars sees to it that names are distinct text; these two do not.
    if nw.dependencies.is_pandas_dataframe(data):
        _require_names(list(data.columns))
    elif nw.dependencies.is_pyarrow_table(data):
        _require_names(list(data.column_names))
    try:
        frame: Any = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"data must be a data frame (pandas, polars, pyarrow, ...) or a dict of columns. "
            f"Got {type(data).__name__}: wrap it, for example pandas.DataFrame(data, columns=[...])."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise DataError(f"data must be a table. Got one column ({type(data).__name__}).")
    return {name: frame[name] for name in frame.columns}


def _require_names(names: list[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"column names must be text. Got {name!r} ({type(name).__name__}): rename the columns, "
                f"for example data.columns = data.columns.astype(str)."
            )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"column names must be distinct. {quoted(repeated)} appear more than once: rename them."
        )


def _to_floats(name: str, values: Any, *, can_drop: bool) -> FloatArray:
    if isinstance(values, nw.Series):
        if values.dtype.is_numeric() or values.dtype == nw.Boolean:
            return values.cast(nw.Float64).to_numpy().astype(np.float64)
        kind = _kind_of_series(values)
    else:
        if values.dtype.kind in "biuf":
            return values.astype(np.float64)
        kind = _kind_of_array(values)
    remedy = f", or {_drop_them([name])}" if can_drop else ""
    raise DataError(f"column {name!r} holds {kind}, not numbers: convert it{remedy}.")


def _kind_of_series(values: nw.Series[Any]) -> str:
    """Say what a column holds that does not hold numbers."""
    dtype = values.dtype
    if dtype.is_temporal():
        return f"{LENGTHS if dtype == nw.Duration else DATES} ({dtype})"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return f"text ({dtype})"
    if dtype == nw.Object:
        return _kind_of_array(values.to_numpy())
    native = str(getattr(values.to_native(), "dtype", dtype))  # narwhals does not know pandas's periods
    return f"{DATES} ({native})" if native.startswith("period") else native


def _kind_of_array(array: Any) -> str:
    if array.dtype.kind in KINDS:
        return f"{KINDS[array.dtype.kind]} ({array.dtype})"
    first = next((value for value in array if not (value is None or isinstance(value, float))), None)
    for kinds, words in (
        (str, "text"),
        ((datetime.date, datetime.time), DATES),
        (datetime.timedelta, LENGTHS),
    ):
        if isinstance(first, kinds):
            return f"{words} ({type(first).__name__})"
    return f"objects ({type(first).__name__})"


def _array(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype == object and all(value is None or isinstance(value, int | float) for value in array):
            array = array.astype(np.float64)  # None is a missing number
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} is not a list of numbers.") from None
    if array.ndim != 1:
        raise DataError(f"column {name!r} must have one dimension. Got {array.ndim}.")
    return array


def _missing_message(table: Table, finite: BoolArray) -> str:
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


def _named(names: Sequence[str], *, verb: bool = True) -> str:
    plural = len(names) > 1
    return f"column{'s' if plural else ''} {quoted(names)}" + ((" are" if plural else " is") if verb else "")


def _drop_them(names: Sequence[str]) -> str:
    """Say how to leave columns out."""
    return f"leave {'them' if len(names) > 1 else 'it'} out (drop={list(names)!r} in learn)"


def _columns_of(table: Table) -> Iterator[tuple[str, FloatArray]]:
    return zip(table.names, table.columns, strict=True)
