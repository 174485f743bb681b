"""Columns of a part of the rows, arrays of pyarrow or Series of pandas: as numbers, or as level codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import DataError
from spbn.tables.levels import as_text


class Coded(NamedTuple):
    """A column of categories: its distinct values, and the place of every row among them; -1 is missing.

    `is_ordered` tells columns whose values have an order of their own.
    """

    distinct: list[Any]
    places: IntArray
    is_ordered: bool


def coded(column: Any) -> Coded:
    """Read a column as one of categories."""
    return _coded_array(column) if hasattr(column, "dictionary_encode") else _coded_series(column)


def _coded_array(column: Any) -> Coded:
    is_ordered = hasattr(column, "dictionary")
    encoded = column if is_ordered else column.dictionary_encode()
    places = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return _without_missing(encoded.dictionary.to_pylist(), places, is_ordered)


def _coded_series(column: Any) -> Coded:
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return Coded(list(column.cat.categories), column.cat.codes.to_numpy().astype(np.int64), True)
    places, values = pd.factorize(column, use_na_sentinel=True)
    return _without_missing(list(values), places.astype(np.int64), False)


def _without_missing(values: list[Any], places: IntArray, is_ordered: bool) -> Coded:
    """Leave out what stands for missing values among the distinct ones, such as NaN."""
    there = [value is not None and value == value for value in values]
    if all(there):
        return Coded(values, places, is_ordered)
    moved = np.array([*np.where(there, np.cumsum(there) - 1, -1), -1], dtype=np.int64)
    return Coded(
        [value for value, kept in zip(values, there, strict=True) if kept], moved[places], is_ordered
    )


def codes(column: Any, name: str, where: str, levels: Sequence[str]) -> FloatArray:
    """Return the places of a column's values among its levels; NaN is missing."""
    found = coded(column)
    order = {level: float(place) for place, level in enumerate(levels)}
    texts = [as_text(value) for value in found.distinct]
    unknown = [text for text in texts if text not in order]
    if unknown:
        raise DataError(
            f"column {name!r} of {where} has the level {unknown[0]!r}, which it did not have when its levels "
            f"were looked up: do not change the data while a network is learned from them."
        )
    return np.array([*(order[text] for text in texts), np.nan])[found.places]


def numbers(column: Any) -> FloatArray:
    """Read a column as one of numbers; NaN is missing."""
    if hasattr(column, "dictionary_encode"):
        found: FloatArray = column.to_numpy(zero_copy_only=False)
        return found
    series: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return series
