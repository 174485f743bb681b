"""Tables in files: CSV, TSV, Parquet and Excel, in and out.

What cannot be read is refused with one line that says where the trouble is. Rows are counted from 1,
without the header; a text file's line is given as well.
"""

from __future__ import annotations

import csv
import math
import os
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn.errors import DataError, PackageError, quoted
from spbn.files.atomic import replacing
from spbn.tables.decimals import comma_columns, with_points
from spbn.tables.excel import require_extent
from spbn.tables.levels import categories, level_of, seems_dated, seems_dressed, seems_named
from spbn.tables.sources import EXCEL, GZIP, MARKS, PARQUET, SEPARATORS, Source, as_source, ending, kind_of

if TYPE_CHECKING:
    import pandas as pd

    from spbn.numerics.arrays import BoolArray
    from spbn.tables.table import Variable

MISSING = "?"  # how missing values are written, beside everything that pandas knows
TEXT_AMONG_NUMBERS = "text among numbers"
MOSTLY = 0.5  # share of numbers from which on text in a column is out of place


def read_table(
    path: str | os.PathLike[str] | Source,
    columns: Sequence[str] | None = None,
    *,
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
    variables: Sequence[Variable] | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read the columns of a file, those named or all, but none in `drop`: numbers, and categories.

    The first line of a text file has the names of the columns. A question mark or an empty field is a missing
    value. The index of the frame counts rows from 1, as the messages and tables of the command line do; the
    index of a Parquet file is left out. From an Excel file, the first sheet is read.

    Parameters
    ----------
    path
        A file that ends in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .xlsx; or ``-``, standard input.
    discrete
        Columns that hold categories, whatever they look like. Other columns of text do too, unless they
        look like something else: dates, names of the rows, or numbers with some text among them.
    variables
        The columns to read, instead of `columns`: those with levels hold some of these, all others numbers.
    sep, decimal, encoding
        The separator between fields of a text file, its decimal point or comma, and its encoding. By default,
        the first two are detected, and the encoding is UTF-8.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.tables.files import read_table, write_table
    >>> write_table(data, "rows.csv.gz")
    >>> read_table("rows.csv.gz", ["A", "B"]).shape
    (200, 2)
    """
    import pandas as pd

    source = as_source(path, sep=sep, decimal=decimal, encoding=encoding)
    source.require_readable()
    levels = {variable.name: variable.levels for variable in variables or () if variable.levels}
    if variables is not None:
        columns = [variable.name for variable in variables]
    discrete = [discrete] if isinstance(discrete, str) else discrete
    frame = _chosen(source, _read(source, levels), columns, drop)
    frame = with_points(frame, comma_columns(source, frame, but=(*discrete, *levels)))
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    if variables is None:
        return _mixed(source, frame, discrete, columns is None)
    return _conforming(source, frame, levels)


def column_names(path: str | os.PathLike[str] | Source) -> list[str]:
    """Return the names of all columns of a file, without warnings: those come when its rows are read."""
    source = as_source(path)
    source.require_readable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [str(name) for name in _read(source, {}).columns]


def read_as_written(path: str | os.PathLike[str] | Source, *, discrete: Collection[str] = ()) -> pd.DataFrame:
    """Read all columns of a file that `read_table` can read, fields of text files as they are written.

    Only decimal commas become points, unless in the columns that are discrete: what is added to the table
    has points as well.
    """
    import pandas as pd

    source = as_source(path)
    source.require_readable()
    read = _read(source, {})
    if not source.is_text:
        return read
    with source.opened() as stream:
        frame = pd.read_csv(
            stream, sep=source.separator, dtype=object, keep_default_na=False, skipinitialspace=True
        )
    frame = frame.set_axis(read.columns, axis=1)
    return with_points(frame, comma_columns(source, read, but=discrete, tolerant=True))


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a file of the kind that its name implies; it is written completely or not at all.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.tables.files import write_table
    >>> write_table(data, "rows.csv")
    """
    target = Path(path)
    kind = require_table_name(target)
    with replacing(target) as temporary:
        if kind == PARQUET:
            _write_parquet(frame, temporary)
        elif kind == EXCEL:
            _write_excel(frame, temporary)
        else:
            # Without the time of writing, so that the same rows give the same file.
            packed = {"method": "gzip", "mtime": 1} if ending(target).lower().endswith(GZIP) else None
            frame.to_csv(temporary, sep=SEPARATORS[kind], index=False, compression=packed)


def present(frame: pd.DataFrame) -> BoolArray:
    """Tell which values of a frame are there: neither missing nor infinite; rows × columns."""
    import numpy as np
    import pandas as pd

    there = [
        np.isfinite(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if pd.api.types.is_numeric_dtype(column)
        else column.notna().to_numpy(dtype=np.bool_)
        for _, column in frame.items()
    ]
    return np.stack(there, axis=1)


def require_complete(source: str | os.PathLike[str] | Source, frame: pd.DataFrame, remedy: str) -> None:
    """Refuse missing and infinite values in a frame of `read_table`, and say where the first one is."""
    import numpy as np

    there = present(frame)
    for number, name in enumerate(frame.columns):
        bad = np.flatnonzero(~there[:, number])
        if len(bad):
            what = "value is" if len(bad) == 1 else "values are"
            first = "in" if len(bad) == 1 else "the first in"
            raise DataError(
                f"{source}: {len(bad)} {what} missing or infinite in column {name!r}, {first} "
                f"{place(source, frame.index[bad[0]])}. {remedy}"
            )


def place(source: str | os.PathLike[str] | Source, row: int) -> str:
    """Say where a row is, counted from 1; for a text file also the line, counted as an editor does."""
    table = as_source(source)
    if not table.is_text:
        return f"row {row}"
    with suppress(csv.Error, StopIteration), table.opened() as stream:
        reader = csv.reader(stream, delimiter=table.separator, skipinitialspace=True)
        # pandas passes over lines that hold nothing.
        lines = (
            reader.line_num for fields in reader if any(field.strip() for field in fields) or len(fields) > 1
        )
        return f"row {row} (line {next(islice(lines, row, None))})"
    return f"row {row}"


def require_table_name(path: Path) -> str:
    """Return the kind of table that a file's name stands for, or refuse it."""
    return kind_of(path)


def is_text(path: str | os.PathLike[str]) -> bool:
    """Tell whether the name of a table stands for a text file."""
    return require_table_name(Path(path)) in SEPARATORS


def _chosen(
    source: Source, frame: pd.DataFrame, columns: Sequence[str] | None, drop: Sequence[str]
) -> pd.DataFrame:
    """Return the named columns, or all, without those to drop."""
    names = list(frame.columns)
    absent = [name for name in (*(columns or ()), *drop) if name not in names]
    if absent:
        what = "no column" if len(absent) == 1 else "no columns"
        raise DataError(f"{source} has {what} {quoted(absent)}. Its columns are {quoted(names)}.")
    if columns is not None:
        if len(columns) == 0:
            raise DataError(f"columns names no column. The columns of {source} are {quoted(names)}.")
        if len(set(columns)) < len(columns):
            raise DataError(f"columns must name every column once. Got {quoted(columns)}.")
        frame = frame[list(columns)]
    if drop:
        frame = frame.loc[:, [name not in drop for name in frame.columns]]
        if frame.shape[1] == 0:
            raise DataError(f"drop names all columns, which leaves none of {source} to use: drop fewer.")
    if "" in frame.columns:
        raise DataError(
            f"{source}: column {names.index('') + 1} has no name. Give it one, or leave it out with "
            f"drop=['']. {_why_nameless(names)}"
        )
    return frame


def _why_nameless(names: Sequence[str]) -> str:
    if names.index("") == len(names) - 1:
        return "(There is one if every line ends with what separates fields.)"
    return "(pandas writes its index like this, unless to_csv is told index=False.)"


def _read(source: Source, levels: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    if source.is_text:
        return _read_text(source, levels)
    return _read_excel(source) if source.kind == EXCEL else _read_parquet(source)


def _read_text(source: Source, levels: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Read a text file; columns that have levels as they are written."""
    import pandas as pd

    try:
        options: dict[str, Any] = {"sep": source.separator, "skipinitialspace": True}
        with source.opened() as stream:
            header = pd.read_csv(stream, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
        names = header.iloc[0].tolist()
        _require_separator(source, names)
        _require_distinct(source, names)
        written: dict[Any, Any] = {names.index(name): str for name in levels if name in names}
        with source.opened() as stream, warnings.catch_warnings():
            # Otherwise surplus fields would become an index.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(stream, low_memory=False, dtype=written, index_col=False, **options)
    except pd.errors.ParserWarning:
        raise DataError(
            f"{source} has rows with more fields than there are column names.{_surplus(source, names)}"
        ) from None
    except pd.errors.EmptyDataError:
        raise DataError(
            f"{source} has no columns: it holds nothing but empty lines. The first line must hold the names."
        ) from None
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        open_quote = _OPEN_QUOTE.fullmatch(reason)
        if open_quote:
            line = int(open_quote[1]) + 1
            raise DataError(
                f"{source} is not a table: a quotation mark that opens in line {line} or so is never closed. "
                f"Close it, or take it out."
            ) from None
        longer = _LONGER.fullmatch(reason)
        if longer:
            width, where, found = longer.groups()
            raise DataError(
                f"{source} is not a table: line {where} has {found} fields, and those above have {width}. "
                f"Take out what is too much, or put a field that contains {_mark(source)} in double quotes."
                f"{_surplus(source, names)}"
            ) from None
        raise DataError(f"{source} is not a table: {reason}.{_surplus(source, names)}") from None
    if _looks_like_data(names):
        shown = ", ".join(names[:3]) + (", ..." if names[3:] else "")
        warnings.warn(
            f"all column names of {source} are numbers ({shown}): is its first line a row of data? "
            f"Then add a line with names above it.",
            stacklevel=4,
        )
    return frame.set_axis(names, axis=1)


_OPEN_QUOTE = re.compile(r"EOF inside string starting at row (\d+)")
_LONGER = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def _surplus(source: Source, names: Sequence[str]) -> str:
    """Say what to do about rows with more fields than there are names."""
    if len(names) == 1:
        return (
            f" The first line must hold the names, and it is {names[0]!r:.60}: if that is a title or a "
            f"comment, delete what is above the names. If the rows have decimal commas, put another mark "
            f"between fields, such as a semicolon."
        )
    if source.separator == ",":
        return " If numbers have decimal commas, put another mark between fields, such as a semicolon."
    return ""


def _mark(source: Source) -> str:
    return "a tab" if source.separator == "\t" else repr(source.separator)


def _require_distinct(source: Source, names: Sequence[str]) -> None:
    """Refuse names that occur more than once, which pandas would change."""
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        twice = list(dict.fromkeys(name for name in given if given.count(name) > 1))
        raise DataError(
            f"{source}: column names must be distinct. Got {quoted(names)} in the first line, "
            f"which must hold the names: rename the columns that are called {quoted(twice)}."
        )


def _looks_like_data(names: Sequence[str]) -> bool:
    """Tell whether a header consists of numbers, other than the 0, 1, 2, ... that pandas gives."""
    if len(names) > 1 and list(names) == [str(i) for i in range(len(names))]:
        return False
    try:
        return all(math.isfinite(float(name)) for name in names)
    except ValueError:
        return False


def _require_separator(source: Source, names: Sequence[str]) -> None:
    """Refuse a table that seems to have one column because its fields are separated by something else."""
    if len(names) == 1:
        other = next((mark for mark in MARKS if mark in names[0]), None)
        if other is not None:
            shown = "a tab" if other == "\t" else repr(other)
            raise DataError(
                f"{source}: the first line has only one name, {names[0]!r:.60}. If its fields are separated "
                f"by {shown}, use sep={'tab' if other == chr(9) else other!r}, and see to it that all rows "
                f"have as many."
            )
        if " " in names[0].strip() and source.sep is None and _has_spaces(source, len(names[0].split())):
            raise DataError(
                f"{source}: the first line has only one name, {names[0]!r:.60}. If its fields are separated "
                f"by spaces, use sep='space'."
            )


def _has_spaces(source: Source, width: int) -> bool:
    """Tell whether the first rows have as many words as the line of names."""
    with source.opened() as stream:
        lines = [line.split() for line in islice(stream, 20) if line.strip()]
    return len(lines) > 1 and all(len(words) == width for words in lines)


_OPENPYXL = "Excel files need the package openpyxl: pip install 'spbn[excel]', or save the table as CSV."


def _require_openpyxl() -> None:
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise PackageError(_OPENPYXL) from None


def _write_excel(frame: pd.DataFrame, target: Path) -> None:
    _require_openpyxl()
    try:
        frame.to_excel(target, index=False, engine="openpyxl")
    except ValueError as error:  # more rows or columns than a sheet can have
        raise DataError(f"the table cannot be an Excel file ({error}): write CSV or Parquet.") from None


def _read_excel(source: Source) -> pd.DataFrame:
    """Read the first sheet; its first row that is not empty has the names."""
    import pandas as pd

    _require_openpyxl()
    try:
        require_extent(source)
        with pd.ExcelFile(source.path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            cells = pd.read_excel(book, header=None, dtype=object)
    except DataError:
        raise
    except Exception as error:  # there is one for every kind of damage
        raise DataError(f"{source} is not an Excel file, or it is damaged ({error}).") from None
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if not cells.size:
        empty = "it is empty" if len(sheets) == 1 else f"its first sheet, {sheets[0]!r}, is empty"
        raise DataError(f"{source} has no table: {empty}. Move the table to the first sheet.")
    if len(sheets) > 1:
        warnings.warn(
            f"{source} has {len(sheets)} sheets: only the first one, {sheets[0]!r}, is read.", stacklevel=4
        )
    names = ["" if pd.isna(name) else str(name).strip() for name in cells.iloc[0]]
    _require_distinct(source, names)
    return cells.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()


_PYARROW = "Parquet files need the package pyarrow: pip install pyarrow."


def _write_parquet(frame: pd.DataFrame, target: Path) -> None:
    try:
        frame.to_parquet(target, index=False)
    except ImportError:
        raise PackageError(_PYARROW) from None


def _read_parquet(source: Source) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(source.path)
    except ImportError:
        raise PackageError(_PYARROW) from None
    except Exception as error:  # each engine has exceptions of its own for a damaged file
        raise DataError(
            f"{source} is not a Parquet file, or it is damaged ({str(error).splitlines()[0]})."
        ) from None


def _without_marks(column: pd.Series[Any]) -> pd.Series[Any]:
    """Take question marks for missing values."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or _is_time(column):
        return column
    marked = column.map(lambda value: isinstance(value, str) and value.strip() == MISSING)
    return column.mask(marked.astype(bool)) if marked.any() else column


def _mixed(source: Source, frame: pd.DataFrame, discrete: Sequence[str], can_drop: bool) -> pd.DataFrame:
    """Return numbers as numbers and categories as they are, or name all columns that are neither."""
    import pandas as pd

    absent = [name for name in discrete if name not in frame.columns]
    if absent:
        raise DataError(
            f"discrete names unknown columns: {quoted(absent)}. Those in use are {quoted(map(str, frame))}."
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
        dropping = (
            f" leave {it} out with drop={names!r}," if can_drop and len(wrong) < len(frame.columns) else ""
        )
        raise DataError(
            f"{source}: {'; '.join(wrong.values())}.{_odd_values(source, where, texts, wrong)} "
            f"Convert {it} to numbers,{dropping} or treat {it} as categories with discrete={names!r}."
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


_TYPESET_MINUS = re.compile("[\u2212\u2013]\\s?[\\d.,].*")


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


def _conforming(source: Source, frame: pd.DataFrame, levels: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
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
