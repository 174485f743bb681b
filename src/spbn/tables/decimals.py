"""Decimal commas: which columns have them, and what to say if that cannot be told."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from spbn.errors import DataError, quoted
from spbn.tables.sources import EXCEL, PARQUET, Source

if TYPE_CHECKING:
    import pandas as pd

_POWER = r"([eE][-+]?\d+)?"
_PLAIN = re.compile(rf"[-+]?(\d+([.,]\d*)?|[.,]\d+){_POWER}")
_COMMA = re.compile(rf"[-+]?(\d+(,\d*)?|,\d+){_POWER}")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+,\d*|(\.\d{3}){2,})")


def comma_columns(
    source: Source, frame: pd.DataFrame, *, but: Collection[str] = (), tolerant: bool = False
) -> list[str]:
    """Return the columns of numbers with decimal commas; refuse a table if that cannot be told.

    Parameters
    ----------
    but
        Columns that hold categories, whatever they look like.
    tolerant
        Refuse nothing, because the columns that matter were accepted before.
    """
    if source.decimal == "." or source.kind == PARQUET:
        return []
    texts = {
        str(name): found
        for name, column in frame.items()
        if name not in but and (found := _written_with_commas(column))
    }
    found = [name for name, values in texts.items() if all(map(_COMMA.fullmatch, values))]
    certain = [name for name in found if not _is_grouped(texts[name])]
    if tolerant:
        return found if certain or source.decimal else []
    for name, values in texts.items():
        if name not in found:
            both = next((text for text in values if "," in text and "." in text), None)
            if both is not None:
                raise DataError(
                    f"{source}: column {name!r} has marks between thousands, as in {both!r}. Save the table "
                    f"with nothing between thousands, and with one sign for decimals."
                )
            odd = next(text for text in values if not _COMMA.fullmatch(text))
            raise DataError(
                f"{source}: column {name!r} has numbers that are written in different ways, such as {odd!r} "
                f"and {_example(values, but=odd)!r}. Save the table with nothing between thousands, and with "
                f"one sign for decimals."
            )
        if not (certain or source.decimal):
            raise DataError(
                f"{source}: column {name!r} has commas that may group thousands, as in {_example(values)!r}. "
                f"Use decimal=',' if they are decimal commas; otherwise save the table without them."
            )
    pointed = _with_fractions(frame) if found and source.kind != EXCEL else []
    if pointed:
        raise DataError(
            f"{source}: column {found[0]!r} has decimal commas, as in {_example(texts[found[0]])!r}, and "
            f"column {pointed[0]!r} has decimal points. Write all numbers alike. (If {quoted(found)} "
            f"should be categories, use discrete={found!r}.)"
        )
    return found


def with_points(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Turn the decimal commas of columns into points: what is not a number stays as it is."""
    return frame.assign(**{name: frame[name].map(_pointed) for name in columns})


def _pointed(value: Any) -> Any:
    if isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        return value.strip().replace(",", ".")
    return value


def _written_with_commas(column: pd.Series[Any]) -> list[str]:
    """Return the text in a column of numbers some of which have commas; nothing of other columns."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or column.dtype == "category":
        return []
    texts: set[str] = set()
    for value in column.dropna():
        if isinstance(value, str):
            text = value.strip()
            if text not in texts and text != "?":
                if not (_PLAIN.fullmatch(text) or _GROUPED.fullmatch(text)):
                    return []
                texts.add(text)
        elif not isinstance(value, int | float):  # of which a sheet may have some
            return []
    return sorted(texts) if any("," in text for text in texts) else []


def _is_grouped(values: Sequence[str]) -> bool:
    """Tell whether all commas may group thousands."""
    return all(_GROUPED.fullmatch(text) for text in values if "," in text)


def _with_fractions(frame: pd.DataFrame) -> list[str]:
    """Return the columns whose numbers were read with decimal points."""
    import numpy as np
    import pandas as pd

    found = []
    for name, column in frame.items():
        if not pd.api.types.is_float_dtype(column):
            continue
        values = column.to_numpy(dtype=np.float64)
        finite = values[np.isfinite(values)]
        if (finite != np.floor(finite)).any():
            found.append(str(name))
    return found


def _example(values: Sequence[str], *, but: str = "") -> str:
    return next((text for text in values if "," in text and text != but), values[-1])
