"""Where a table is, how it is written there, and how much it may hold.

Compression, encoding, separator and decimal commas are recognised, and refused where they may be something
else.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO

from spbn._base.lazy import pd
from spbn.errors import ArgumentError, DataError, SpbnWarning, argument, quoted, setting

SEPARATORS = {".csv": ",", ".tsv": "\t", ".jsonl": ","}
PARQUET, EXCEL, GZIP, JSON_LINES = ".parquet", ".xlsx", ".gz", ".jsonl"
KINDS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", PARQUET, EXCEL, JSON_LINES, f"{JSON_LINES}{GZIP}")
STANDARD = Path("-")  # standard input or output
MARKS = ",;\t|"  # what may separate fields without being asked for
WINDOWS = "cp1252"
LOOKED_AT = 50  # rows from which the separator is recognised
MOST_TITLES = 20  # lines above the names that are recognised
#: How much a packed table may hold: so many times its own size, and some bytes more. Tables of numbers are
#: packed to a half or a tenth; what is packed far better is rather made to fill the memory.
MOST_TIMES, MOST_BYTES = 100, 1 << 26
MOST_CELLS = 50_000_000  # in the rectangle that holds all cells of a sheet: about 10 GB in memory
AT_A_TIME = 1 << 20
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_TAG = re.compile(rb"<(?:\w+:)?(row|c)\b([^>]*)>")
_PLACE = re.compile(rb'\br="([A-Z]{0,3})(\d{1,7})"')
_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
#: Text that is not a table: how it begins, what it is, and what to do.
_OTHER_TEXTS = (
    (
        re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE),
        "a web page, or XML",
        "look at it in an editor, and fetch the table itself",
    ),
    (
        re.compile(rb"\s*(\[\s*[\[{]|\{\s*[\r\n])"),
        "JSON",
        "write it as CSV, for example with pandas.read_json, or with one object per line",
    ),
)
#: What to do about tables whose names end in something else.
_RENAMED = {
    **dict.fromkeys((".xls", ".xlsm", ".xlsb", ".ods"), " Save it as .xlsx."),
    **dict.fromkeys((".txt", ".dat", ".data", ""), " If it is text with a line of names, name it .csv."),
    ".zip": " Unpack it first.",
}
#: Numbers with either decimal sign, with decimal commas, and with marks between thousands.
_POWER = r"([eE][-+]?\d+)?"
_PLAIN = re.compile(rf"[-+]?(\d+([.,]\d*)?|[.,]\d+){_POWER}")
_COMMA = re.compile(rf"[-+]?(\d+(,\d*)?|,\d+){_POWER}")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+,\d*|(\.\d{3}){2,})")
_GZIP_MAGIC, _ZIP_MAGIC, _PARQUET_MAGIC = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"


@dataclass(frozen=True, eq=False)
class Source:
    """A file with a table, or standard input; what is None is recognised."""

    path: Path  # the file; ``-`` is standard input, which must be text
    sep: str | None = None  # what separates the fields of a text file
    decimal: str | None = None  # what separates the digits of a number: ``.`` or ``,``
    #: The encoding of a text file. UTF-8, unless the file begins with the mark of UTF-16.
    encoding: str | None = None
    skip_rows: int | None = None  # lines, or rows of a sheet, above the names
    sheet: str | None = None  # of an Excel file: its name, or its number from 1; by default the first

    def __post_init__(self) -> None:
        if self.skip_rows is not None and self.skip_rows < 0:
            raise ArgumentError(f"{argument('skip_rows')} must be 0 or more. Got {self.skip_rows}.")
        object.__setattr__(self, "path", Path(self.path))
        if self.sep is not None:
            sep = _WORDS.get(self.sep, self.sep)
            if len(sep) != 1 or sep in '"\r\n':
                words = ", ".join(_WORDS)
                raise ArgumentError(
                    f"{argument('sep')} must be one character, or one of {words}. Got {self.sep!r}."
                )
            object.__setattr__(self, "sep", sep)
        if self.decimal not in (None, ".", ","):
            raise ArgumentError(f"{argument('decimal')} must be '.' or ','. Got {self.decimal!r}.")
        if self.encoding is not None:
            try:
                "a".encode(self.encoding)  # some that Python knows are not for text
            except (LookupError, UnicodeError):
                raise ArgumentError(
                    f"{argument('encoding')} must be one that Python knows, such as 'utf-8', 'latin-1' or "
                    f"'cp1252'. Got {self.encoding!r}."
                ) from None

    def __str__(self) -> str:
        return "standard input" if self.is_standard else str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def is_standard(self) -> bool:
        return self.path == STANDARD

    @property
    def name(self) -> str:
        return str(self) if self.is_standard else self.path.name

    @property
    def stem(self) -> str:
        """The name of the file without what says which kind of file it is."""
        return self.name.removesuffix(ending(self.path))

    @property
    def kind(self) -> str:
        """The kind of table that the name stands for, without compression."""
        return kind_of(self.path)

    @property
    def is_text(self) -> bool:
        return self.kind in SEPARATORS

    @cached_property
    def is_json(self) -> bool:
        """Whether it is text with a JSON object on every line."""
        if not self.is_text:
            return False
        with self.opened() as stream:
            return any(line.lstrip()[:1] == "{" for line in islice((x for x in stream if x.strip()), 1))

    @cached_property
    def _names(self) -> tuple[list[str] | None, int]:
        with self.opened() as stream, suppress(csv.Error):
            reader = csv.reader(stream, delimiter=self.separator, skipinitialspace=True)
            return joined_names(list(islice((row for row in reader if any(map(str.strip, row))), 3)))
        return None, 1

    @property
    def joined_names(self) -> list[str] | None:
        """The names of a text file that has them in several lines, as pandas writes several levels."""
        return self._names[0]

    @property
    def name_rows(self) -> int:
        """How many lines of a text file hold the names."""
        return self._names[1]

    def skipping(self, rows: int | None, sheet: str | None = None) -> Source:
        """Return the same table with lines above its names, on a sheet, unless these are known."""
        found = replace(
            self,
            skip_rows=rows if self.skip_rows is None else self.skip_rows,
            sheet=sheet if self.sheet is None else self.sheet,
        )
        for known in ("_standard_input", "_codec"):  # which can be read once, and takes a while
            if known in self.__dict__:
                found.__dict__[known] = self.__dict__[known]
        return found

    @contextmanager
    def opened(self) -> Iterator[TextIO]:
        """Open a text file, below the lines to skip, whatever its compression and encoding."""
        try:
            with self._binary() as stream, io.TextIOWrapper(stream, self._codec, newline="") as text:
                for _ in range(self.skip_rows or 0):
                    text.readline()
                yield text
        except UnicodeError:
            raise DataError(self._about_encoding()) from None

    @cached_property
    def separator(self) -> str:
        """What separates the fields: as given, or the mark with which all of the first rows have as many."""
        if self.sep is not None:
            return self.sep
        usual = SEPARATORS[self.kind]
        with self.opened() as stream:
            lines = list(islice(stream, 4 * LOOKED_AT))
        for mark in (usual, *MARKS.replace(usual, "")):
            if _has_columns(lines, mark):
                return mark
        return usual

    def require_readable(self) -> None:
        """Refuse a file that cannot be a table of the kind that its name stands for."""
        if not self.is_standard:
            if self.path.is_dir():
                raise DataError(f"{self} is a folder, not a table.")
            kind_of(self.path)
            if not self.path.exists():
                raise DataError(f"{self} does not exist.")
            if self.path.stat().st_size == 0:
                raise DataError(f"{self} is empty.")
        if not self.is_text:
            return
        with self._binary() as stream:
            start = stream.read(8192)
        if not start:
            raise DataError(f"{self} is empty.")
        for magic, what, name in (
            (_GZIP_MAGIC, "compressed with gzip", f"{self.stem}{self.kind}.gz"),
            (_ZIP_MAGIC, "an Excel file or another zip archive", f"{self.stem}.xlsx if it is an Excel file"),
            (_PARQUET_MAGIC, "a Parquet file", f"{self.stem}.parquet"),
        ):
            if start.startswith(magic):
                remedy = "write it to a file first" if self.is_standard else f"name it {name}"
                raise DataError(f"{self} is not a text file: it is {what}. Please {remedy}.")
        for pattern, what, remedy in _OTHER_TEXTS:
            if pattern.match(start.removeprefix(codecs.BOM_UTF8)):
                raise DataError(f"{self} is not a table: it holds {what}. Please {remedy}.")
        if b"\x00" in start and not self._codec.startswith("utf-16") and self.encoding is None:
            raise DataError(f"{self} is not a text file: it holds binary data.")

    @cached_property
    def _codec(self) -> str:
        if self.encoding is not None:
            # With or without the mark that some programs put before UTF-8.
            return "utf-8-sig" if codecs.lookup(self.encoding).name == "utf-8" else self.encoding
        with self._binary() as stream:
            if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return "utf-16"
        odd = self._not_utf_8()
        if odd is None or not self._is_text_in(WINDOWS):
            return "utf-8-sig"
        number, line, place = odd
        shown = line[max(place - 12, 0) : place + 12].decode(WINDOWS, errors="replace").strip()
        warnings.warn(
            SpbnWarning(
                f"{self} is not in UTF-8, and is read as Windows-1252, which Excel often writes: line "
                f"{number} reads {shown!r}. If that is wrong, say which with {setting('encoding', ...)}."
            ),
            stacklevel=2,
        )
        return WINDOWS

    def _not_utf_8(self) -> tuple[int, bytes, int] | None:
        """Return the first line that is not in UTF-8: its number, itself, and where it is not."""
        if not self._is_text_in("utf-8"):
            with self._binary() as stream:
                for number, line in enumerate(stream, 1):
                    try:
                        line.decode("utf-8")
                    except UnicodeDecodeError as error:
                        return number, line, error.start
        return None

    def _is_text_in(self, encoding: str) -> bool:
        decoder = codecs.getincrementaldecoder(encoding)()
        with self._binary() as stream:
            try:
                while chunk := stream.read(AT_A_TIME):
                    decoder.decode(chunk)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                return False
        return True

    @cached_property
    def _standard_input(self) -> bytes:
        """Everything that came: it is looked at more than once."""
        return sys.stdin.buffer.read()

    @contextmanager
    def _binary(self) -> Iterator[BinaryIO]:
        """Open a text file as bytes, decompressed."""
        try:
            if self.is_standard:
                content = self._standard_input
                is_packed = content.startswith(_GZIP_MAGIC)
                with io.BytesIO(content) as stream:
                    yield self._unpacked(stream, len(content)) if is_packed else stream
            else:
                with self.path.open("rb") as file:
                    is_packed = self.path.suffix.lower() == GZIP
                    yield self._unpacked(file, self.path.stat().st_size) if is_packed else file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            remedy = ""
            if isinstance(error, gzip.BadGzipFile) and not self.is_standard:
                remedy = f" If it is not compressed, name it {self.stem}{self.kind}."
            raise DataError(f"{self} is not a gzip file, or it is damaged ({error}).{remedy}") from None

    def _unpacked(self, stream: BinaryIO, size: int) -> BinaryIO:
        """Return what reads a packed file, but not without end."""
        remedy = "write what it holds to a file" if self.is_standard else "unpack it first, with gunzip,"
        return io.BufferedReader(_Bounded(gzip.GzipFile(fileobj=stream), most_unpacked(size), self, remedy))

    def _about_encoding(self) -> str:
        """Say which line is not in the encoding, and what to do."""
        if self.encoding is not None:
            return f"{self} is not a text file in the encoding {self.encoding!r}: give the right one."
        if self._codec == "utf-16":
            return f"{self} begins like a text file in UTF-16, but is damaged: save it in UTF-8."
        odd = self._not_utf_8()
        where = f": line {odd[0]} has the byte 0x{odd[1][odd[2]]:02x}" if odd else ""
        return (
            f"{self} is not a text file in UTF-8{where}. Give its encoding with {setting('encoding', ...)}, "
            f"or save the table in UTF-8."
        )


class _Bounded(io.RawIOBase):
    """Reads what another file holds, up to so many bytes."""

    def __init__(self, packed: gzip.GzipFile, most: int, source: Source, remedy: str) -> None:
        self._packed, self._left, self._source, self._remedy = packed, most, source, remedy

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._packed.readinto(buffer)
        self._left -= found
        if self._left < 0:
            raise _too_full(self._source, self._remedy)
        return found


def most_unpacked(size: int) -> int:
    """Return how many bytes a packed table of a size may hold."""
    return MOST_TIMES * size + MOST_BYTES


def _too_full(source: Source, remedy: str) -> DataError:
    return DataError(
        f"{source} holds more than {MOST_TIMES} times its own size, which is unusual for a table. If that is "
        f"right, {remedy} and give that."
    )


def joined_names(rows: Sequence[Sequence[str]]) -> tuple[list[str] | None, int]:
    """Return names in the first two rows, as pandas writes those of two levels, and how many rows there are.

    The index may have its name in a third. None, 1: the first row has all.
    """
    first, second, third = [*rows, [], [], []][:3]
    given = [name for name in first if name.strip()]
    if len(set(given)) == len(given) or len(first) != len(second) or any(map(_PLAIN.fullmatch, second)):
        return None, 1
    pairs = list(zip(first, second, strict=True))
    is_index = [not a.strip() and not b.strip() for a, b in pairs]
    names = ["_".join(part.strip() for part in pair if part.strip()) for pair in pairs]
    has_third = len(third) == len(first) and any(third)
    if has_third and all(bool(name.strip()) <= empty for name, empty in zip(third, is_index, strict=True)):
        names = [name or index.strip() for name, index in zip(names, third, strict=True)]
    else:
        has_third = False
    there = [name for name in names if name]
    return (names, 2 + has_third) if len(set(there)) == len(there) else (None, 1)


def as_source(path: str | os.PathLike[str] | Source, **written: Any) -> Source:
    """Return where a table is, and how it is written; a `Source` is returned as it is."""
    return path if isinstance(path, Source) else Source(Path(path), **written)


def ending(path: Path) -> str:
    """Return what the name of a file ends in, in lower case: .csv, or .csv.gz."""
    suffixes = path.suffixes[-2:]
    count = 2 if len(suffixes) == 2 and suffixes[1].lower() == GZIP else 1
    return "".join(suffixes[-count:])


def kind_of(path: Path) -> str:
    """Return the kind of table that a file's name stands for, without compression, or refuse it."""
    if path == STANDARD:
        return ".csv"
    end = ending(path).lower()
    if end not in KINDS:
        remedy = _RENAMED.get(end, "")
        raise DataError(
            f"the name of a table must end in one of {', '.join(KINDS)}. Got {path.name!r}.{remedy}"
        )
    return end.removesuffix(GZIP)


def place(source: str | os.PathLike[str] | Source, row: int) -> str:
    """Say where a row is, counted from 1; for a text file also the line, counted as an editor does."""
    table = as_source(source)
    if not table.is_text:
        return f"row {row}"
    if table.is_json:
        return f"row {row}"
    with suppress(csv.Error, StopIteration), table.opened() as stream:
        reader = csv.reader(stream, delimiter=table.separator, skipinitialspace=True)
        # pandas passes over lines that hold nothing.
        lines = (
            reader.line_num for fields in reader if any(field.strip() for field in fields) or len(fields) > 1
        )
        at = next(islice(lines, row + table.name_rows - 1, None)) + (table.skip_rows or 0)
        return f"row {row} (line {at})"
    return f"row {row}"


def _has_columns(lines: list[str], mark: str) -> bool:
    """Tell whether all rows have as many fields as the first, two or more."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=mark) if any(field.strip() for field in row)]
    except csv.Error:
        return False
    widths = {len(row) for row in rows[:LOOKED_AT]}
    return len(widths) == 1 and widths.pop() > 1


def title_rows(source: Source) -> int:
    """Return how many lines of a text file, with fewer fields than all others, are above its names."""
    if not source.is_text or source.is_json or source.skip_rows is not None:
        return source.skip_rows or 0
    with source.opened() as stream:
        lines = list(islice(stream, 4 * LOOKED_AT))
    usual = SEPARATORS[source.kind]
    found = []  # lines to skip, and the fields of those below, for marks that may be right
    for mark in (source.sep,) if source.sep is not None else (usual, *MARKS.replace(usual, "")):
        with suppress(csv.Error):
            reader = csv.reader(lines, delimiter=mark)
            rows = [(reader.line_num, row) for row in reader if any(field.strip() for field in row)]
            widths = [len(row) for _, row in rows]
            most = max(widths, default=0)
            first = next((k for k in range(len(widths)) if set(widths[k:]) == {most}), MOST_TITLES + 1)
            # The names are the first line, all of whose fields are there, or all but one for the index.
            if most > 1 and first <= MOST_TITLES and sum(map(bool, rows[first][1])) >= most - 1:
                found.append((rows[first - 1][0] if first else 0, -most))
    return min(found, default=(0, 0))[0]


def require_extent(source: Source) -> None:
    """Refuse an Excel file that holds far more than its size, or a sheet that is far larger than its cells.

    An Excel file is a zip archive of XML. What that unpacks to is in its directory; but a sheet may also have
    one cell in its first row and one in its last row and column, and whoever reads it as a rectangle fills
    the memory with nothing. So the cells are counted first, in the XML as it goes by.
    """
    with zipfile.ZipFile(source.path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
        if unpacked > most_unpacked(source.path.stat().st_size):
            raise _too_full(source, "save the table as CSV")
        for part in archive.infolist():
            if _SHEET.fullmatch(part.filename):
                with archive.open(part) as stream:
                    rows, columns = _extent(stream)
                if rows * columns > MOST_CELLS:
                    raise DataError(
                        f"{source}: a sheet reaches to row {rows:,} and column {columns:,}, which are too "
                        f"many cells. If most are empty, delete the cells far out; otherwise save the table "
                        f"as CSV."
                    )


def _extent(stream: IO[bytes]) -> tuple[int, int]:
    """Return the last row and the last column that have a cell.

    Rows and cells say where they are, or come after the one before.
    """
    from openpyxl.utils import column_index_from_string

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
            elif place:
                row, column = int(place[2]), column_index_from_string(place[1].decode())
            else:
                column += 1
            last_row, last_column = max(last_row, row), max(last_column, column)
    return last_row, last_column


def comma_columns(
    source: Source, frame: pd.DataFrame, *, but: Collection[str] = (), tolerant: bool = False
) -> list[str]:
    """Return the columns of numbers with decimal commas; refuse a table if that cannot be told.

    `but`: columns that hold categories, whatever they look like.
    `tolerant`: refuse nothing, because the columns that matter were accepted before.
    """
    if source.decimal == "." or source.kind == PARQUET:
        return []
    texts = {
        str(name): found
        for name, column in frame.items()
        if name not in but and (found := _written_with_commas(column))
    }
    found = [name for name, values in texts.items() if all(map(_COMMA.fullmatch, values))]
    is_certain = source.decimal is not None or any(
        "," in text and not _GROUPED.fullmatch(text) for name in found for text in texts[name]
    )
    if tolerant:
        return found if is_certain else []
    for name, values in texts.items():
        if name not in found:
            both = next((text for text in values if "," in text and "." in text), None)
            odd = next(text for text in values if not _COMMA.fullmatch(text))
            different = f"written in different ways, such as {odd!r} and {_example(values, but=odd)!r}"
            what = f"marks between thousands, as in {both!r}" if both else f"numbers that are {different}"
            raise DataError(
                f"{source}: column {name!r} has {what}. Save the table with nothing between thousands, and "
                f"with one sign for decimals."
            )
        if not is_certain:
            raise DataError(
                f"{source}: column {name!r} has commas that may group thousands, as in {_example(values)!r}. "
                f"Use {setting('decimal', ',')} if they are decimal commas; otherwise save the table without "
                f"them."
            )
    floats = frame.select_dtypes("float")
    pointed = [str(name) for name, column in floats.items() if (column % 1).fillna(0.0).any()]
    if found and pointed and source.kind != EXCEL:
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
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(column) or column.dtype == "category":
        return []
    values = column.dropna().tolist()
    if not all(isinstance(value, str | int | float) for value in values):  # a sheet may have numbers as well
        return []
    texts = {value.strip() for value in values if isinstance(value, str)} - {"?"}
    are_numbers = all(_PLAIN.fullmatch(text) or _GROUPED.fullmatch(text) for text in texts)
    return sorted(texts) if are_numbers and any("," in text for text in texts) else []


def _example(values: Sequence[str], *, but: str = "") -> str:
    return next((text for text in values if "," in text and text != but), values[-1])
