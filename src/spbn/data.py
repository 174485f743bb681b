"""Frames in, named float64 columns out.

Everything else in the package works on a `Table`: whatever the user passed
has been checked here, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from spbn.errors import ArgumentError, DataError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Seed = int | np.random.Generator | None
Missing = Literal["error", "drop"]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of finite numbers, all of the same length.

    `columns[i]` is the contiguous, read-only column of `names[i]`.
    """

    names: tuple[str, ...]
    columns: FloatArray

    def __post_init__(self) -> None:
        self.columns.flags.writeable = False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.columns.shape[1]

    def index(self, name: str) -> int:
        """Position of a column."""
        try:
            return self.names.index(name)
        except ValueError:
            raise DataError(
                f"the data has no column {name!r}. Its columns are {quoted(self.names)}."
            ) from None

    def column(self, name: str) -> FloatArray:
        """One column, by its name."""
        return self.columns[self.index(name)]

    def select(self, names: Sequence[str]) -> Table:
        """Return the named columns, in that order."""
        return Table(tuple(names), self.columns[[self.index(name) for name in names]])

    def take(self, rows: npt.ArrayLike) -> Table:
        """Return the rows with these numbers, in that order."""
        return Table(self.names, np.ascontiguousarray(self.columns[:, np.asarray(rows)]))


def as_table(
    data: Any, *, names: Sequence[str] | None = None, missing: Missing | None = None, min_rows: int = 1
) -> Table:
    """Read a data frame or a dict of columns, and refuse what cannot be used.

    Parameters
    ----------
    data
        A pandas DataFrame, anything else that narwhals reads (polars, pyarrow,
        ...), or a dict of columns.
    names
        The columns to read, in this order; all of them by default. Other
        columns are not looked at, so they may hold anything.
    missing
        What to do with rows that hold a missing or infinite value: refuse the
        table (``"error"``), or leave them out (``"drop"``). None: refuse, and
        offer no choice, because the caller needs every row.
    min_rows
        Fewest rows that the caller can work with.
    """
    if missing not in ("error", "drop", None):
        raise ArgumentError(f"missing must be 'error' or 'drop'. Got {missing!r} instead.")
    table = data if isinstance(data, Table) else _read(data, names)
    if names is not None and table.names != tuple(names):
        table = table.select(names)
    finite = np.isfinite(table.columns)
    if not finite.all():
        if missing != "drop":
            remedy = "drop them or pass missing='drop'" if missing else "drop or fill those rows"
            raise DataError(f"{_missing_message(table, finite)}: {remedy}.")
        table = table.take(np.flatnonzero(finite.all(axis=0)))
    if table.rows < min_rows:
        raise DataError(f"at least {min_rows} rows are needed. Got {table.rows}.")
    return table


def require_variation(table: Table) -> None:
    """Refuse columns that hold one value only: no density can be fitted to them."""
    constant = [
        name for name, column in zip(table.names, table.columns, strict=True) if column.min() == column.max()
    ]
    if constant:
        raise DataError(
            f"{_columns(constant)} constant, which leaves nothing to learn: drop {_them(constant)}."
        )


def centre_of(columns: FloatArray) -> FloatArray:
    """Return what to take off columns (variables × rows) so that large offsets cost no digits.

    The medians, because an outlier can carry a mean far away from all other rows.
    """
    return np.median(columns, axis=1)[:, None]


def training_table(data: Any, missing: Missing) -> Table:
    """Read data to learn from: columns without spread are refused."""
    table = as_table(data, missing=missing, min_rows=2)
    require_variation(table)
    return table


def require_count(n: object) -> None:
    """Refuse what is no number of rows to draw."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ArgumentError(f"the number of samples must be a whole number, 0 or more. Got {n!r} instead.")


def frame_index(data: Any) -> Any:
    """Return the index of a pandas frame, to carry over to results; None for other data."""
    return data.index if nw.dependencies.is_pandas_dataframe(data) else None


def generator(seed: Seed) -> np.random.Generator:
    """Return the random generator of a seed."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(seed)
    raise ArgumentError(f"seed must be an int, 0 or more, or a numpy.random.Generator. Got {seed!r} instead.")


def quoted(names: Iterable[str]) -> str:
    """Write names for an error message: 'a', 'b' and 'c'; long lists are cut."""
    parts = [repr(name) for name in names]
    if len(parts) > 12:
        return ", ".join(parts[:10]) + f", ... ({len(parts)} in all)"
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _read(data: Any, names: Sequence[str] | None) -> Table:
    series = _series(data)
    if not series or (names is not None and not names):
        raise DataError("the data has no columns." if not series else "no columns are named.")
    if names is not None:
        absent = [name for name in names if name not in series]
        if absent:
            raise DataError(
                f"the data lacks {_columns(absent, verb=False)}. Its columns are {quoted(series)}."
            )
        series = {name: series[name] for name in names}
    columns = [_to_floats(name, values) for name, values in series.items()]
    lengths = {name: len(column) for name, column in zip(series, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns must have the same length. Got {lengths}.")
    return Table(tuple(series), np.ascontiguousarray(np.stack(columns)))


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
            f"column names must be distinct. {quoted(repeated)} stand more than once: rename them."
        )


def _to_floats(name: str, values: Any) -> FloatArray:
    if isinstance(values, nw.Series):
        if not (values.dtype.is_numeric() or values.dtype == nw.Boolean):
            raise DataError(
                f"column {name!r} holds {values.dtype}, not numbers: convert it, or leave it out of the data."
            )
        return values.cast(nw.Float64).to_numpy().astype(np.float64)
    array = _array(name, values)
    if array.ndim != 1:
        raise DataError(f"column {name!r} must have one dimension. Got {array.ndim}.")
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"column {name!r} holds {array.dtype}, not numbers: convert it, or leave it out of the data."
        )
    return array.astype(np.float64)


def _array(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype == object and all(value is None or isinstance(value, int | float) for value in array):
            array = array.astype(np.float64)  # None is a missing number
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} is no list of numbers.") from None
    return array


def _missing_message(table: Table, finite: BoolArray) -> str:
    parts = []
    for name, column, good in zip(table.names, table.columns, finite, strict=True):
        bad = np.flatnonzero(~good)
        if len(bad):
            kind = "missing" if np.isnan(column[bad]).all() else "missing or infinite"
            where = ", ".join(map(str, bad[:3])) + (", ..." if len(bad) > 3 else "")
            count = f"{len(bad)} {kind} value{'s' if len(bad) > 1 else ''}"
            parts.append(f"column {name!r} has {count} (row{'s' if len(bad) > 1 else ''} {where})")
    more = f"; and {len(parts) - 3} more columns" if len(parts) > 3 else ""
    return "; ".join(parts[:3]) + more


def _columns(names: Sequence[str], *, verb: bool = True) -> str:
    plural = len(names) > 1
    return f"column{'s' if plural else ''} {quoted(names)}" + ((" are" if plural else " is") if verb else "")


def _them(names: Sequence[str]) -> str:
    return "them" if len(names) > 1 else "it"
