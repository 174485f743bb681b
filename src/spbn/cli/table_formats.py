"""How a file becomes a frame, and a frame a file: text, Excel and Parquet.

What pandas would change or guess in silence is refused instead: names that occur twice, rows that are too
long, and a separator that seems to be another one.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn.cli.table_sources import EXCEL, MARKS, Source
from spbn.errors import DataError, PackageError, quoted

if TYPE_CHECKING:
    import pandas as pd
import zipfile
from typing import IO

from spbn.cli.table_sources import MOST_TIMES, most_unpacked

_OPEN_QUOTE = re.compile(r"EOF inside string starting at row (\d+)")
_LONGER = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OPENPYXL = "Excel files need the package openpyxl: pip install 'spbn[excel]', or save the table as CSV."
_PYARROW = "Parquet files need the package pyarrow: pip install pyarrow."


def read_frame(source: Source, levels: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Read all columns of a file; those of a text file that have levels as they are written."""
    if source.is_text:
        return _read_text(source, levels)
    return _read_excel(source) if source.kind == EXCEL else _read_parquet(source)


def _read_text(source: Source, levels: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Read a text file; columns that have levels as they are written."""
    import pandas as pd

    names: list[str] = []
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
        raise DataError(f"{source} is not a table: {_why_no_table(source, names, error)}") from None
    if _looks_like_data(names):
        shown = ", ".join(names[:3]) + (", ..." if names[3:] else "")
        warnings.warn(
            f"all column names of {source} are numbers ({shown}): is its first line a row of data? "
            f"Then add a line with names above it.",
            stacklevel=4,
        )
    return frame.set_axis(names, axis=1)


def _why_no_table(source: Source, names: Sequence[str], error: Exception) -> str:
    """Say in words what the parser of pandas stumbled over, and what to do."""
    reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
    open_quote = _OPEN_QUOTE.fullmatch(reason)
    if open_quote:
        line = int(open_quote[1]) + 1
        return f"a quotation mark that opens in line {line} or so is never closed. Close it, or take it out."
    longer = _LONGER.fullmatch(reason)
    if longer:
        width, where, found = longer.groups()
        return (
            f"line {where} has {found} fields, and those above have {width}. Take out what is too much, or "
            f"put a field that contains {_mark(source)} in double quotes.{_surplus(source, names)}"
        )
    return f"{reason}.{_surplus(source, names)}"


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


def _require_distinct(source: Source, names: Sequence[str]) -> None:
    """Refuse names that occur more than once, which pandas would change."""
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        twice = list(dict.fromkeys(name for name in given if given.count(name) > 1))
        raise DataError(
            f"{source}: column names must be distinct. Got {quoted(names)} in the first line, "
            f"which must hold the names: rename the columns that are called {quoted(twice)}."
        )


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


def write_excel(frame: pd.DataFrame, target: Path) -> None:
    """Write a frame as an Excel file."""
    _require_openpyxl()
    try:
        frame.to_excel(target, index=False, engine="openpyxl")
    except ValueError as error:  # more rows or columns than a sheet can have
        raise DataError(f"the table cannot be an Excel file ({error}): write CSV or Parquet.") from None


def _require_openpyxl() -> None:
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise PackageError(_OPENPYXL) from None


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


def write_parquet(frame: pd.DataFrame, target: Path) -> None:
    """Write a frame as a Parquet file."""
    try:
        frame.to_parquet(target, index=False)
    except ImportError:
        raise PackageError(_PYARROW) from None


# ----------------------------------------------------------------------------------------------------
# Excel files that are small, and yet hold more than memory does: they are refused before they are read.
#
# An Excel file is a zip archive of XML. What that unpacks to is in its directory; but a sheet may also have
# one cell in its first row and one in its last row and column, and whoever reads it as a rectangle fills
# the memory with nothing. So the cells are counted first, in the XML as it goes by.


MOST_CELLS = 50_000_000  # in the rectangle that holds all cells of a sheet: about 10 GB in memory
AT_A_TIME = 1 << 20
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_TAG = re.compile(rb"<(?:\w+:)?(row|c)\b([^>]*)>")
_PLACE = re.compile(rb'\br="([A-Z]{0,3})(\d{1,7})"')


def require_extent(source: Source) -> None:
    """Refuse a file that holds far more than its size, or a sheet that is far larger than its cells."""
    with zipfile.ZipFile(source.path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
        if unpacked > most_unpacked(source.path.stat().st_size):
            raise DataError(
                f"{source} holds more than {MOST_TIMES} times its own size, which tables hardly do. If it is "
                f"meant to, save the table as CSV and give that."
            )
        for part in archive.infolist():
            if _SHEET.fullmatch(part.filename):
                with archive.open(part) as stream:
                    rows, columns = _extent(stream)
                if rows * columns > MOST_CELLS:
                    raise DataError(
                        f"{source}: a sheet reaches to row {rows:,} and column {columns:,}, which are too "
                        f"many cells. If most are empty, delete what lies far out; otherwise save the table "
                        f"as CSV."
                    )


def _extent(stream: IO[bytes]) -> tuple[int, int]:
    """Return the last row and the last column that have a cell.

    Rows and cells say where they are, or come after the one before.
    """
    last_row = last_column = row = column = 0
    rest = b""
    while chunk := stream.read(AT_A_TIME):
        text = rest + chunk
        end = text.rfind(b"<")  # a tag may be cut in two
        text, rest = text[:end], text[end:]
        for kind, attributes in _TAG.findall(text):
            place = _PLACE.search(attributes)
            if kind == b"row":
                row, column = int(place[2]) if place else row + 1, 0
            else:
                row, column = (int(place[2]), _column(place[1])) if place else (row, column + 1)
                last_column = max(last_column, column)
            last_row = max(last_row, row)
    return last_row, last_column


def _column(letters: bytes) -> int:
    """Return the number of a column: A is 1, and AA is 27."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
