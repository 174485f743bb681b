"""Columns of categories: which levels they have, and their rows as positions among these.

Levels are text. A truth value is "False" or "True", and a number is written as short as possible, so
that 1 and 1.0 are the same level, whatever kind of column it comes from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import DataError, in_python, quoted, setting

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd

#: Text columns with more levels, or with more than this share of the rows, look like names of the rows.
MOST_LEVELS, LARGEST_SHARE = 50, 0.2
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
    if is_series(values):
        import narwhals as nw

        if values.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean):
            return True
        return values.dtype == nw.Object and _holds_only(values.to_numpy(), (str, bool, np.bool_))
    if values.dtype.kind == "O":
        return _holds_only(values, (str, bool, np.bool_))
    return values.dtype.kind in "bUS"


def categories(values: Any) -> Categories:
    """Read a column of categories, or of numbers that stand for some.

    Levels are in the order of a categorical column; otherwise numbers ascend and text is sorted.
    """
    if is_series(values) and _has_categories(values):
        import narwhals.stable.v1 as stable

        native = stable.from_native(values.to_native(), series_only=True)
        levels = [as_text(level) for level in native.cat.get_categories().to_list()]
        places, distinct = _factorised(np.array(values.to_list(), dtype=object))
        order = {level: place for place, level in enumerate(levels)}
        return _relabelled([as_text(value) for value in distinct], places, order, tuple(levels))
    array = values.to_numpy() if is_series(values) else values
    places, distinct = _factorised(array)
    texts = [as_text(value) for value in distinct]
    is_text = any(isinstance(value, str) for value in distinct)
    key: Callable[[int], Any] = (lambda i: texts[i]) if is_text else (lambda i: distinct[i])
    levels = list(dict.fromkeys(texts[i] for i in sorted(range(len(texts)), key=key)))
    order = {level: place for place, level in enumerate(levels)}
    return _relabelled(texts, places, order, tuple(levels), is_plain_text=is_text)


def _has_categories(values: nw.Series[Any]) -> bool:
    """Tell whether a column has an order of levels of its own."""
    import narwhals as nw

    return values.dtype in (nw.Categorical, nw.Enum)


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


def seems_named(found: Categories) -> str:
    """Say that text has too many different values to be categories; nothing if it has few."""
    levels, rows = len(found.levels), len(found.places)
    if levels <= MOST_LEVELS and levels <= LARGEST_SHARE * rows:
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
    import pandas as pd

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


def _relabelled(
    texts: Sequence[str],
    places: IntArray,
    order: dict[str, int],
    levels: tuple[str, ...],
    *,
    is_plain_text: bool = False,
) -> Categories:
    moved = np.array([order[text] for text in texts] + [-1], dtype=np.int64)
    return Categories(levels, moved[places], is_plain_text)


def _factorised(array: npt.NDArray[Any]) -> tuple[IntArray, list[Any]]:
    """Return the place of every value among the distinct ones, -1 for missing ones, and these."""
    import pandas as pd

    places, distinct = pd.factorize(np.asarray(array), use_na_sentinel=True)
    return places.astype(np.int64), list(distinct)


def as_text(value: Any) -> str:
    """Write a value as a level."""
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
    import pandas as pd

    there = array[~pd.isna(array)]
    return len(there) > 0 and all(isinstance(value, kinds) for value in there)
