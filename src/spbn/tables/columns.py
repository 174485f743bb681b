"""Columns of frames, dicts and arrays, by name, and as numbers."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import DataError, in_python, quoted, setting
from spbn.tables.levels import is_series

if TYPE_CHECKING:
    import narwhals as nw

# What columns hold that do not hold numbers; the keys are numpy's.
DATES, LENGTHS = "dates or times", "lengths of time"
KINDS = {"M": DATES, "m": LENGTHS, "U": "text", "S": "text"}


def name_them(found: Iterable[str], names: Sequence[str]) -> str:
    """Say how to give names to columns that have none, if that is the case: those of an array."""
    numbered = list(found)
    if numbered != [str(place) for place in range(len(numbered))]:
        return ""
    are = f"columns={list(names)!r}" if len(numbered) == len(names) <= 12 else "columns=[...]"
    return f" An array has no names: pass pandas.DataFrame(array, {are})."


def columns_of(data: Any) -> dict[str, Any]:
    """Return the columns by name, as narwhals Series or, from a dict or an array, as they are."""
    data = named_by_text(data)
    if isinstance(data, Mapping):
        _require_names(list(data))
        return dict(data)
    import narwhals as nw

    # Polars sees to it that names are distinct text; these two do not.
    if nw.dependencies.is_pandas_dataframe(data):
        _require_names(list(data.columns))
    elif nw.dependencies.is_pyarrow_table(data):
        _require_names(list(data.column_names))
    try:
        frame: Any = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"data must be a data frame (pandas, polars, pyarrow, ...), a dict of columns, or a numpy array "
            f"of rows × columns. Got {type(data).__name__}: wrap it, for example pandas.DataFrame(data, "
            f"columns=[...])."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise DataError(f"data must be a table. Got one column ({type(data).__name__}).")
    return {name: frame[name] for name in frame.columns}


def named_by_text(data: Any) -> Any:
    """Return data whose columns have numbers for names, or none, with their numbers as text: "0", "1", ...

    Other data are returned as they are.
    """
    if isinstance(data, np.ndarray):
        if data.dtype.names is not None and data.ndim == 1:
            return {name: data[name] for name in data.dtype.names}
        if data.ndim != 2:
            raise DataError(
                f"an array must have two dimensions, rows × columns. Got the shape {data.shape}"
                f"{': for one column, use data.reshape(-1, 1).' if data.ndim == 1 else '.'}"
            )
        return {str(place): column for place, column in enumerate(data.T)}
    if isinstance(data, Mapping):
        return _renamed(data)
    import narwhals as nw

    if nw.dependencies.is_pandas_dataframe(data) and not _all_texts(data.columns):
        return data.set_axis([_as_text(name) for name in data.columns], axis=1)
    return data


def _renamed(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
    names = [_as_text(name) for name in data]
    _require_names(names)  # before 0 and "0" become one
    return dict(zip(names, data.values(), strict=True))


def _all_texts(names: Iterable[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _as_text(name: Any) -> Any:
    return str(name) if isinstance(name, int | np.integer) and not isinstance(name, bool) else name


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


def to_floats(name: str, values: Any, *, can_drop: bool) -> FloatArray:
    """Return a column, a Series or an array, as numbers; refuse one that holds something else."""
    if is_series(values):
        import narwhals as nw

        if values.dtype.is_numeric() or values.dtype == nw.Boolean:
            return values.cast(nw.Float64).to_numpy().astype(np.float64)
        if values.is_null().all():  # of whatever kind: nothing says so
            return np.full(len(values), np.nan)
        numbers = _numbers(values.to_numpy()) if values.dtype == nw.Object else None
        kind = _kind_of_series(values) if numbers is None else ""
    else:
        if values.dtype.kind in "biuf":
            return values.astype(np.float64)
        numbers = _numbers(values) if values.dtype == object else None
        kind = _kind_of_array(values) if numbers is None else ""
    if numbers is not None:
        return numbers
    remedy = f", or {how_to_drop([name])}" if can_drop else ""
    raise DataError(f"column {name!r} holds {kind}, not numbers: convert it{remedy}.")


def _kind_of_series(values: nw.Series[Any]) -> str:
    """Say what a column holds that does not hold numbers."""
    import narwhals as nw

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


def as_array(name: str, values: Any) -> Any:
    """Return a column of a dict as an array of one dimension, in which NaN is missing."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "OM" and isinstance(values, list | tuple) and _is_mixed(array, values):
            array = np.array(values, dtype=object)
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} is not a list of numbers.") from None
    if array.ndim != 1:
        raise DataError(f"column {name!r} must have one dimension. Got {array.ndim}.")
    return array


def _is_mixed(array: Any, values: Sequence[Any]) -> bool:
    """Tell whether an array has changed values of a list to be of one kind: NaN to text, truth to numbers."""
    if array.dtype.kind in "US":
        return not all(isinstance(value, str | bytes) for value in values)
    return array.dtype.kind == "f" and any(isinstance(value, bool | np.bool_) for value in values)


def _numbers(array: Any) -> FloatArray | None:
    """Return objects that are numbers, truth values or missing as numbers; None if others are among them."""
    import pandas as pd

    missing = pd.isna(array)
    if not all(isinstance(value, Real) for value in array[~missing]):
        return None
    out = np.full(len(array), np.nan)
    out[~missing] = array[~missing]
    return out


def named(names: Sequence[str], *, verb: bool = True) -> str:
    """Name columns at the beginning of a message."""
    plural = len(names) > 1
    return f"column{'s' if plural else ''} {quoted(names)}" + ((" are" if plural else " is") if verb else "")


def how_to_drop(names: Sequence[str]) -> str:
    """Say how to leave columns out."""
    how = f"{setting('drop', list(names))}{in_python(' in learn')}"
    return f"leave {'them' if len(names) > 1 else 'it'} out ({how})"
