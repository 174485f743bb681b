"""What the columns of a file hold: numbers, categories, or something that is neither, which is refused.

Decimal commas are recognised, and refused where they may be something else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

from spbn.cli.sources import EXCEL, PARQUET, Source, place
from spbn.errors import DataError, argument, quoted, setting
from spbn.tables.levels import categories, level_of, seems_dated, seems_dressed, seems_named

if TYPE_CHECKING:
    import pandas as pd

MISSING = "?"  # how missing values are written, beside everything that pandas knows
TEXT_AMONG_NUMBERS = "text among numbers"
MOSTLY = 0.5  # share of numbers from which on text in a column is out of place
_TYPESET_MINUS = re.compile("[\u2212\u2013]\\s?[\\d.,].*")
#: Numbers with either decimal sign, with decimal commas, and with marks between thousands.
_POWER = r"([eE][-+]?\d+)?"
_PLAIN = re.compile(rf"[-+]?(\d+([.,]\d*)?|[.,]\d+){_POWER}")
_COMMA = re.compile(rf"[-+]?(\d+(,\d*)?|,\d+){_POWER}")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+,\d*|(\.\d{3}){2,})")


def numbers_and_categories(
    source: Source, frame: pd.DataFrame, discrete: Sequence[str], can_drop: bool
) -> pd.DataFrame:
    """Return numbers as numbers and categories as they are, or name all columns that are neither."""
    import pandas as pd

    absent = [name for name in discrete if name not in frame.columns]
    if absent:
        raise DataError(
            f"{argument('discrete')} names unknown columns: {quoted(absent)}. Those in use are "
            f"{quoted(map(str, frame))}."
        )
    converted: dict[str, pd.Series[Any]] = {}
    wrong: dict[str, str] = {}  # columns, and what is wrong with them
    where: set[int] = set()  # the rows with what is wrong
    texts: set[str] = set()  # what stands there
    for name, values in frame.items():
        column = _without_marks(values)
        numbers = column if name in discrete or column.dtype == "category" else _numbers(column)
        bad = column.notna() & numbers.isna()
        converted[str(name)] = column if bad.any() else numbers
        trouble = _trouble(column, numbers) if bad.any() else ""
        if trouble:
            row = int(bad.to_numpy().argmax())
            where.update(bad.to_numpy().nonzero()[0].tolist())
            texts.update(str(value).strip() for value in column[bad])
            wrong[str(name)] = (
                f"column {name!r} holds {trouble}: {_shown(column.iloc[row])} in {place(source, row + 1)}"
            )
    if wrong:
        it = "it" if len(wrong) == 1 else "them"
        names = list(wrong)
        is_droppable = can_drop and len(wrong) < len(frame.columns)
        dropping = f" leave {it} out with {setting('drop', names)}," if is_droppable else ""
        raise DataError(
            f"{source}: {'; '.join(wrong.values())}.{_odd_values(source, where, texts, wrong)} "
            f"Convert {it} to numbers,{dropping} or treat {it} as categories with "
            f"{setting('discrete', names)}."
        )
    return pd.DataFrame(converted, index=frame.index)


def _odd_values(
    source: Source, rows: Collection[int], texts: Collection[str], wrong: Mapping[str, str]
) -> str:
    """Say what to do if one row is to blame (names again, units, a sum), or one word, or a minus sign."""
    if all(map(_TYPESET_MINUS.fullmatch, texts)):
        return " The minus sign is a typographic one: write a plain hyphen instead."
    if any(TEXT_AMONG_NUMBERS not in trouble for trouble in wrong.values()):
        return ""
    if len(rows) == 1:
        (row,) = rows
        missing = " If it stands for a missing value, leave the field empty." if len(wrong) == 1 else ""
        return f" If {place(source, row + 1)} is not a row of data, delete it.{missing}"
    return " If it stands for missing values, leave these fields empty." if len(texts) == 1 else ""


def _trouble(column: pd.Series[Any], numbers: pd.Series[Any]) -> str:
    """Say what a column holds that holds neither numbers nor categories; nothing if those are categories."""
    there = column.dropna()
    if _is_time(column) or seems_dated(there):
        return "dates or times"
    odd = next((value for value in there if not isinstance(value, str | bool | Number)), None)
    if odd is not None:
        return f"values of type {type(odd).__name__}"
    if numbers.notna().sum() >= MOSTLY * len(there):
        return TEXT_AMONG_NUMBERS
    dressed = seems_dressed(there)
    if dressed:
        return dressed
    return seems_named(categories(there.to_numpy(dtype=object)))


def conforming(source: Source, frame: pd.DataFrame, levels: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    """Return the columns of a model: some with levels, and all others as numbers."""
    import pandas as pd

    converted: dict[str, Any] = {}
    for name, values in frame.items():
        column = _without_marks(values)
        if name in levels:
            converted[str(name)] = _among(source, column, levels[str(name)])
            continue
        converted[str(name)] = numbers = _numbers(column)
        bad = column.notna() & numbers.isna()
        if bad.any():
            row = int(bad.to_numpy().argmax())
            kind = _kind(column, column.iloc[row])
            raise DataError(
                f"{source}: column {name!r} holds {kind}, not numbers: {_shown(column.iloc[row])} in "
                f"{place(source, row + 1)}. Convert it to numbers."
            )
    return pd.DataFrame(converted, index=frame.index)


def _among(source: Source, column: pd.Series[Any], levels: tuple[str, ...]) -> pd.Categorical:
    """Return a column as levels that are known, or say which is not."""
    import pandas as pd

    found = column.map(lambda value: level_of(value, levels), na_action="ignore").astype(object)
    unknown = (found.notna() & ~found.isin(levels)).to_numpy()
    if unknown.any():
        row = int(unknown.argmax())
        raise DataError(
            f"{source}: column {column.name!r} has the level {_shown(found.iloc[row])} in "
            f"{place(source, row + 1)}, which the model does not know. Its levels are {quoted(levels)}."
        )
    return pd.Categorical(found, categories=pd.Index(levels))


def _shown(value: Any) -> str:
    return f"{repr(value) if isinstance(value, str) else str(value):.60}"


def _kind(column: pd.Series[Any], value: Any) -> str:
    if _is_time(column):
        return "dates or times"
    return "text" if isinstance(value, str) else f"values of type {type(value).__name__}"


def _without_marks(column: pd.Series[Any]) -> pd.Series[Any]:
    """Take question marks for missing values."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or _is_time(column):
        return column
    marked = column.map(lambda value: isinstance(value, str) and value.strip() == MISSING)
    return column.mask(marked.astype(bool)) if marked.any() else column


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as numbers, with holes where its values are something else."""
    import numpy as np
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":  # with holes
        return pd.Series(np.nan, index=column.index)
    if not _is_time(column):  # which pandas would count in nanoseconds
        try:
            return pd.to_numeric(column.astype(object), errors="coerce")
        except TypeError:  # lists and the like
            pass
    return pd.Series(np.nan, index=column.index)


def _is_time(column: pd.Series[Any]) -> bool:
    """Tell whether a column holds dates, times of day or lengths of time."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(column, skipna=True)
    return kind.startswith(("date", "time", "period", "interval"))


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
                f"Use {setting('decimal', ',')} if they are decimal commas; otherwise save the table without "
                f"them."
            )
    pointed = _with_fractions(frame) if found and source.kind != EXCEL else []
    if pointed:
        raise DataError(
            f"{source}: column {found[0]!r} has decimal commas, as in {_example(texts[found[0]])!r}, and "
            f"column {pointed[0]!r} has decimal points. Write all numbers alike. (If {quoted(found)} "
            f"should be categories, use {setting('discrete', found)}.)"
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
