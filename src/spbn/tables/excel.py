"""Excel files that are small, and yet hold more than memory does: they are refused before they are read.

An Excel file is a zip archive of XML. What that unpacks to is in its directory; but a sheet may also have one
cell in its first row and one in its last row and column, and whoever reads it as a rectangle fills the
memory with nothing. So the cells are counted first, in the XML as it goes by.
"""

from __future__ import annotations

import re
import zipfile
from typing import IO

from spbn.errors import DataError
from spbn.tables.sources import MOST_TIMES, Source, most_unpacked

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
