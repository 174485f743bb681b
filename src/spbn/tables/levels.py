"""Columns of categories: which levels they have, and their rows as places among these.

Levels are text. A truth value is "False" or "True", and a number is written as short as possible, so
that 1 and 1.0 are the same level, whatever kind of column it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import narwhals.stable.v1 as stable
import numpy as np
import numpy.typing as npt

from spbn.errors import DataError, quoted
from spbn.numerics.arrays import FloatArray, IntArray

#: Text columns with more levels, or with more than this share of the rows, look like names of the rows.
MOST_LEVELS, LARGEST_SHARE = 50, 0.2
WHOLE = 2.0**53  # greater numbers have no digits after the point


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
    if isinstance(values, nw.Series):
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
    if isinstance(values, nw.Series) and values.dtype in (nw.Categorical, nw.Enum):
        native = stable.from_native(values.to_native(), series_only=True)
        levels = [as_text(level) for level in native.cat.get_categories().to_list()]
        places, distinct = _factorised(np.array(values.to_list(), dtype=object))
        order = {level: place for place, level in enumerate(levels)}
        return _relabelled([as_text(value) for value in distinct], places, order, tuple(levels))
    array = values.to_numpy() if isinstance(values, nw.Series) else values
    places, distinct = _factorised(array)
    texts = [as_text(value) for value in distinct]
    is_text = any(isinstance(value, str) for value in distinct)
    key: Callable[[int], Any] = (lambda i: texts[i]) if is_text else (lambda i: distinct[i])
    levels = list(dict.fromkeys(texts[i] for i in sorted(range(len(texts)), key=key)))
    order = {level: place for place, level in enumerate(levels)}
    return _relabelled(texts, places, order, tuple(levels), is_plain_text=is_text)


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
            f"from 1, which is unknown. Its levels are {quoted(levels)}."
        )
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def require_categories(name: str, found: Categories) -> None:
    """Refuse a text column that seems to name the rows instead of saying what kind they are."""
    levels, rows = len(found.levels), len(found.places)
    if found.is_plain_text and (levels > MOST_LEVELS or levels > LARGEST_SHARE * rows):
        raise DataError(
            f"column {name!r} holds text with {levels} different values in {rows} rows, which looks like "
            f"names, not categories: leave it out (drop={[name]!r} in learn), or pass discrete={[name]!r} if "
            f"they are categories."
        )


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
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < WHOLE:
        plain = int(plain)
    return str(plain)


def _holds_only(array: npt.NDArray[Any], kinds: tuple[type, ...]) -> bool:
    """Tell whether all values that are there are of some kinds, and there is one."""
    import pandas as pd

    there = array[~pd.isna(array)]
    return len(there) > 0 and all(isinstance(value, kinds) for value in there)
