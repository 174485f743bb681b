"""Columns of frames, dicts and arrays: by name, as numbers, and as categories.

Levels of categories are text. A truth value is "False" or "True", and a number is written as short as
possible, so that 1 and 1.0 are the same level, whatever kind of column it comes from.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.lazy import nw, pd
from spbn.errors import DataError, argument, in_python, quoted, setting

# What columns hold that do not hold numbers; the keys are numpy's.
DATES, LENGTHS = "dates or times", "lengths of time"
KINDS = {"M": DATES, "m": LENGTHS, "U": "text", "S": "text"}
#: Text columns with more levels, in all and for every row, or with more than this share of the rows, look
#: like names of the rows; few levels do only if there are hardly more rows.
MOST_LEVELS, LEVELS_A_ROW, LARGEST_SHARE, FEWEST_LEVELS = 50, 0.02, 0.2, 10
FEW_ENOUGH = 500  # levels of a discrete column, however few rows there are
WHOLE = 2.0**53  # greater numbers have no digits after the point
#: 2024-01-31, 31/1/24, 31.01.2024, each perhaps with a time of day; 12:30 and 12:30:15.5 alone
_TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*([AaPp][Mm])?"
_DATE = re.compile(rf"\d{{1,4}}([-/.])\d{{1,2}}\1\d{{1,4}}([T ]\s*{_TIME}\S*)?|{_TIME}")
#: A number with signs or a unit around it, such as $5, 12 % or 7.5 kg, or with spaces between digits
_DRESSED = re.compile(
    r"(?P<before>[^\d\s.,+-]{0,3})\s*[-+]?\d[\d.,\s\u00a0\u202f']*(?P<after>([^\d\s.,][^\d]{0,7})?)"
)
_SPACED = re.compile(r"\d[\s\u00a0\u202f']\d{3}\b")


def is_series(values: object) -> TypeGuard[nw.Series[Any]]:
    """Tell whether a column is a narwhals Series: it cannot be one if narwhals has not been imported.

    Arrays and dicts need no data frames, and scoring them in production should not have to import any.
    """
    narwhals = sys.modules.get("narwhals")
    return narwhals is not None and isinstance(values, narwhals.Series)


class Categories(NamedTuple):
    """A column of categories: the levels that it has, and the place of every row among them; -1 is missing.

    `is_plain_text` tells columns that nobody has said to be categories.
    """

    levels: tuple[str, ...]
    places: IntArray
    is_plain_text: bool

    @property
    def codes(self) -> FloatArray:
        """The places as numbers; NaN is missing."""
        return np.where(self.places < 0, np.nan, self.places.astype(np.float64))


def is_categorical(values: Any) -> bool:
    """Tell whether a column, a narwhals Series or an array, holds categories: text or truth values."""
    if is_series(values) and values.dtype != nw.Object:
        return values.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)
    array = values.to_numpy() if is_series(values) else values
    return _holds_only(array, (str, bool, np.bool_)) if array.dtype.kind == "O" else array.dtype.kind in "bUS"


def categories(values: Any) -> Categories:
    """Read a column of categories, or of numbers that stand for some.

    Levels are in the order of a categorical column; otherwise numbers ascend and text is sorted.
    """
    levels: list[str] | None = None
    array = values.to_numpy() if is_series(values) else values
    if is_series(values) and values.dtype in (nw.Categorical, nw.Enum):  # which have levels of their own
        import narwhals.stable.v1 as stable

        native = stable.from_native(values.to_native(), series_only=True)
        levels = [as_text(level) for level in native.cat.get_categories().to_list()]
        array = np.array(values.to_list(), dtype=object)
    try:
        places, found = pd.factorize(np.asarray(array), use_na_sentinel=True)
    except TypeError:  # of what cannot be told apart, such as lists
        odd = next(value for value in array if not isinstance(value, Hashable))
        raise DataError(f"levels must be text, numbers or truth values. Got {odd!r:.100}.") from None
    distinct: list[Any] = list(found)
    texts = [as_text(value) for value in distinct]
    is_plain_text = levels is None and any(isinstance(value, str) for value in distinct)
    if levels is None:
        keys = texts if is_plain_text else distinct
        levels = list(dict.fromkeys(texts[i] for i in sorted(range(len(texts)), key=keys.__getitem__)))
    order = {level: place for place, level in enumerate(levels)}
    moved = np.array([order[text] for text in texts] + [-1], dtype=np.int64)
    return Categories(tuple(levels), moved[places], is_plain_text)


def codes_among(name: str, found: Categories, levels: Sequence[str]) -> FloatArray:
    """Return the places of a column's values among levels that are given, or name the first that is none."""
    order = {level: place for place, level in enumerate(levels)}
    known = np.array([order.get(level, -1) for level in found.levels] + [-1])
    codes = known[found.places]
    unknown = (codes < 0) & (found.places >= 0)
    if unknown.any():
        row = int(unknown.argmax())
        raise DataError(
            f"column {name!r} has the level {found.levels[found.places[row]]!r} in row {row + 1}, counted "
            f"from 1, which is unknown. Its levels are {quoted(levels)}. If it may occur, learn from a "
            f"categorical column that lists it among its categories."
        )
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def require_categories(name: str, found: Categories) -> None:
    """Refuse a text column that seems to hold dates, or to name the rows instead of saying what they are."""
    if not found.is_plain_text:
        return
    what = f"dates or times, such as {found.levels[0]!r}" if seems_dated(found.levels) else seems_named(found)
    if what:
        raise DataError(
            f"column {name!r} holds {what}: leave it out ({setting('drop', [name])}"
            f"{in_python(' in learn')}), or pass {setting('discrete', [name])} if they are categories."
        )


def require_repetition(name: str, levels: int, rows: int) -> None:
    """Refuse a discrete column most of whose values occur once: it was measured, or tells the rows apart."""
    if levels > max(FEW_ENOUGH, 0.5 * rows):
        raise DataError(
            f"column {name!r} has {levels} different values in {rows} rows, too many to be levels: leave it "
            f"out ({setting('drop', [name])}{in_python(' in learn')}), or do not name it in "
            f"{argument('discrete')} if it holds numbers."
        )


def seems_named(found: Categories) -> str:
    """Say that text has too many different values to be categories; nothing if it has few."""
    levels, rows = len(found.levels), len(found.places)
    if levels <= FEWEST_LEVELS:
        most = max(2.0, 0.5 * rows) if rows > levels else 0.0
    else:
        most = min(max(MOST_LEVELS, LEVELS_A_ROW * rows), LARGEST_SHARE * rows)
    if levels <= most:
        return ""
    return f"text with {levels} different values in {rows} rows, which looks like names, not categories"


def seems_dressed(values: Iterable[Any]) -> str:
    """Say that text holds numbers with something around them or between their digits; nothing otherwise.

    With the same sign or unit in every value, and as many different values as numbers have.
    """
    texts = [text.strip() for text in values if isinstance(text, str)]
    found = [_DRESSED.fullmatch(text) for text in texts]
    if not texts or not all(found):
        return ""
    around = {(match["before"], match["after"].strip()) for match in found if match}
    (before, after), *others = around
    if others:
        return ""
    if (before, after) == ("", ""):
        return "numbers with spaces between their digits" if any(map(_SPACED.search, texts)) else ""
    few = len(set(texts)) <= min(MOST_LEVELS, LARGEST_SHARE * len(texts))
    return "" if few else f"numbers with {before or after!r} {'before' if before else 'after'} them"


def seems_dated(values: Iterable[Any]) -> bool:
    """Tell whether text holds dates or times."""
    texts = list(values)
    return bool(texts) and all(isinstance(text, str) and _DATE.fullmatch(text.strip()) for text in texts)


def level_of(value: Any, levels: Sequence[str]) -> str:
    """Return the level that a value of a file stands for: as it is written, or as the number that it is."""
    text = as_text(value)
    if text in levels:
        return text
    if text.lower() in ("true", "false"):
        return text.capitalize()
    try:
        return as_text(float(text))
    except ValueError:
        return text


def values_like(column: pd.Series[Any], levels: Iterable[str]) -> list[Any]:
    """Return levels as a column writes them: as values that it has, or as others of their kind."""
    there = column.dropna().unique().tolist()
    if isinstance(column.dtype, pd.CategoricalDtype):
        there = column.cat.categories.tolist()
    known = {as_text(value): value for value in there}
    if pd.api.types.is_bool_dtype(column.dtype) or (there and _holds_only(np.array(there, object), (bool,))):
        known |= {"False": False, "True": True}
    is_number = pd.api.types.is_numeric_dtype(column.dtype)
    return [known[level] if level in known else _as_number(level) if is_number else level for level in levels]


def _as_number(level: str) -> Any:
    try:
        number = float(level)
    except ValueError:
        return level
    return int(number) if number.is_integer() else number


def as_text(value: Any) -> str:
    """Write a value as a level."""
    if type(value) is str:
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, np.float16 | np.float32):
        value = float(str(value))  # 0.1 is the same level in single and in double precision
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < WHOLE:
        plain = int(plain)
    return str(plain)


def _holds_only(array: npt.NDArray[Any], kinds: tuple[type, ...]) -> bool:
    """Tell whether all values that are there are of some kinds, and there is one."""
    there = array[~pd.isna(array)]
    return len(there) > 0 and all(isinstance(value, kinds) for value in there)


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

    Names of several levels are joined: ("size", "mean") is "size_mean". Other data are returned as they are.
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
        names = [_as_text(name) for name in data]
        _require_names(names)  # before 0 and "0" become one
        return dict(zip(names, data.values(), strict=True))
    if nw.dependencies.is_pandas_dataframe(data) and not all(isinstance(name, str) for name in data.columns):
        if isinstance(data.columns, pd.MultiIndex):
            parts = [[str(part) for part in name if part == part and str(part)] for name in data.columns]
            return data.set_axis(["_".join(name) for name in parts], axis=1)
        return data.set_axis([_as_text(name) for name in data.columns], axis=1)
    return data


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
    objects = None
    if is_series(values):
        if values.dtype.is_numeric() or values.dtype == nw.Boolean:
            return values.cast(nw.Float64).to_numpy().astype(np.float64)
        if values.is_null().all():  # of whatever kind: nothing says so
            return np.full(len(values), np.nan)
        if values.dtype == nw.Object:
            objects = values.to_numpy()
    elif values.dtype.kind in "biuf":
        return values.astype(np.float64)
    elif values.dtype == object:
        objects = values
    numbers = None if objects is None else _numbers(objects)
    if numbers is not None:
        return numbers
    kind = _kind_of_series(values) if is_series(values) else _kind_of_array(values)
    remedy = f", or {how_to_drop([name])}" if can_drop else ""
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


def known_names(
    option: str, given: str | Sequence[str], known: Collection[str], there: str = "The data has"
) -> list[str]:
    """Return the columns that an option names, and refuse unknown ones."""
    wanted = [given] if isinstance(given, str) else list(given)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise DataError(
            f"{argument(option)} names unknown columns: {quoted(unknown)}. {there} {quoted(known)}."
        )
    return wanted


def not_dropped(
    names: Collection[str],
    drop: str | Sequence[str],
    only: Sequence[str] | None = None,
    there: str = "The data has",
) -> list[str]:
    """Return the names of the columns to use: all, or those that are named, without those to drop."""
    dropped = known_names("drop", drop, names, there)
    absent = [name for name in only or () if name not in names]
    if absent:
        raise DataError(f"{there} no columns {quoted(absent)}. Its columns are {quoted(names)}.")
    kept = [name for name in (names if only is None else only) if name not in dropped]
    if not kept:
        raise DataError(
            f"{argument('drop')} names all columns, {quoted(names)}, which leaves none to use: drop fewer."
        )
    return kept


def how_to_drop(names: Sequence[str]) -> str:
    """Say how to leave columns out."""
    how = f"{setting('drop', list(names))}{in_python(' in learn')}"
    return f"leave {'them' if len(names) > 1 else 'it'} out ({how})"
