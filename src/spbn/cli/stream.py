"""Rows that come line by line: CSV below a line of names, or JSON objects."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import DataError, quoted
from spbn.tables.rows import number_of
from spbn.tables.table import Variable

AT_A_TIME = 1 << 16  # bytes that are read at once, if there are so many
LONGEST_LINE = 1 << 20  # bytes: what is longer is not a row
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-"})
SEPARATORS = (",", "\t", ";")
_NUMBER = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")


class Line(NamedTuple):
    """A line and its number, counted from 1; no text if it cannot be read."""

    number: int
    text: str | None


class Row(NamedTuple):
    """The values of a row, NaN being missing; the number of its line; what it is called; and its keys."""

    values: FloatArray
    line: int
    label: str
    keys: tuple[str, ...] = ()


def lines_of(stream: BinaryIO, *, encoding: str | None = None) -> Iterator[list[Line]]:
    """Yield lines as they come: all that are there already, or else the next one when it is there.

    Parameters
    ----------
    encoding
        UTF-8 if nothing is said. What cannot be decoded makes a line that is not a row.
    """
    number = 0
    rest = b""
    skipping = False  # the rest of a line that is too long
    for chunk in _in_utf8(_chunks(stream), encoding):
        *whole, rest = (rest + chunk).split(b"\n")
        found = []
        for content in whole:
            number += 1
            found.append(Line(number, None if skipping else _text(content, number)))
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = b"", True
        if found:
            yield found
    if rest or skipping:
        yield [Line(number + 1, None if skipping else _text(rest, number + 1))]


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    try:
        descriptor = stream.fileno()
    except (AttributeError, io.UnsupportedOperation):
        yield from iter(stream.readline, b"")
        return
    while chunk := os.read(descriptor, AT_A_TIME):  # waits for the first byte, not for all
        yield chunk


def _in_utf8(chunks: Iterator[bytes], encoding: str | None) -> Iterator[bytes]:
    """Write what comes in another encoding in UTF-8, so that a line ends where it ends in any encoding."""
    if encoding is None or codecs.lookup(encoding).name == "utf-8":
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:
        raise DataError(
            f"the rows are not text in the encoding {encoding!r}: give the right one with --encoding."
        ) from None


def _text(content: bytes, number: int) -> str | None:
    if len(content) > LONGEST_LINE:
        return None
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except UnicodeDecodeError:
        return None


@final
class RowReader:
    """Reads lines as rows of some variables.

    Parameters
    ----------
    label
        A column that says what rows are called.
    keys
        Columns that say which series a row belongs to, and when it was.
    on_absent
        Is told the variables that the stream lacks, when that shows: their values are missing.
    sep, decimal
        What is between the fields of CSV, and before the decimals of a number. The first is recognised in
        the line of names, and the second is a point, if nothing is said.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        *,
        label: str | None = None,
        keys: Sequence[str] = (),
        on_absent: Callable[[int, list[str]], None] = lambda number, names: None,
        sep: str | None = None,
        decimal: str | None = None,
    ) -> None:
        self._variables = variables
        self._label = label
        self._keys = keys
        self._key_places: list[int] = []
        self._on_absent = on_absent
        self._is_json: bool | None = None
        self._given_separator = sep
        self._decimal = decimal or "."
        self._separator = ","
        self._names: list[str] = []
        self._places: list[int | None] = []
        self._label_place: int | None = None
        self._told: set[str] = set()

    def row(self, line: Line) -> Row | None:
        """Return the row of a line; None if it is empty or holds the names.

        Raises
        ------
        DataError
            The line is not a row; the message says why.
        """
        if line.text is None:
            raise DataError(
                "it is too long, or not text in UTF-8: if it is in another encoding, say so, as in "
                "--encoding cp1252"
            )
        text = line.text.strip()
        if not text:
            return None
        if self._is_json is None:
            self._is_json = text.startswith("{")
            if not self._is_json:
                self._read_names(line.number, line.text)
                return None
        if self._is_json:
            return self._from_json(line.number, text)
        try:
            return self._from_csv(line.number, line.text)
        except DataError:
            if not self._has_names(line.text):
                raise
            self._read_names(line.number, line.text)  # again, perhaps in another order
            return None

    def _read_names(self, number: int, text: str) -> None:
        """Find out from the first line which field is which variable, or refuse the stream."""
        wanted = {variable.name for variable in self._variables}

        def names(separator: str) -> list[str]:
            return [name.strip() for name in _fields(text, separator)]

        candidates = SEPARATORS if self._given_separator is None else (self._given_separator,)
        self._separator = max(candidates, key=lambda separator: len(wanted & set(names(separator))))
        found = names(self._separator)
        if not wanted & set(found):
            self._is_json = None
            raise _NamesError(
                f"the first line must hold the names of the columns, or a JSON object: none of "
                f"{quoted(v.name for v in self._variables)} is in {text!r:.80}."
            )
        repeated = sorted({name for name in found if found.count(name) > 1 and name in wanted})
        if repeated:
            raise _NamesError(f"the first line has {quoted(repeated)} more than once.")
        self._names = found
        self._places = [found.index(v.name) if v.name in found else None for v in self._variables]
        if self._label is not None:
            if self._label not in found:
                raise _NamesError(f"--label: the first line has no {self._label!r}. It has {quoted(found)}.")
            self._label_place = found.index(self._label)
        lacking = [key for key in self._keys if key not in found]
        if lacking:
            raise _NamesError(f"the first line has no {quoted(lacking)}, which the model needs.")
        self._key_places = [found.index(key) for key in self._keys]
        self._tell(number, [v.name for v in self._variables if v.name not in found])

    def _has_names(self, text: str) -> bool:
        """Tell whether a line has the names of the columns, as where several tables follow each other."""
        with suppress(DataError):
            return sorted(name.strip() for name in _fields(text, self._separator)) == sorted(self._names)
        return False

    def _from_csv(self, number: int, text: str) -> Row:
        fields = text.split(self._separator) if '"' not in text else _fields(text, self._separator)
        if len(fields) != len(self._names):
            found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            raise DataError(f"it has {found}, and the first line has {len(self._names)} names")
        values = [
            np.nan if place is None else _value(variable, fields[place].strip(), self._decimal)
            for variable, place in zip(self._variables, self._places, strict=True)
        ]
        label = "" if self._label_place is None else fields[self._label_place].strip()
        keys = tuple(fields[place].strip() for place in self._key_places)
        lacking = [name for name, key in zip(self._keys, keys, strict=True) if not key]
        if lacking:
            raise DataError(f"it has no {quoted(lacking)}")
        return Row(np.array(values), number, label, keys)

    def _from_json(self, number: int, text: str) -> Row:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise DataError("it is not a JSON object") from None
        if not isinstance(found, dict):
            raise DataError("it is not a JSON object")
        self._tell(number, [v.name for v in self._variables if v.name not in found])
        values = [number_of(variable, found.get(variable.name)) for variable in self._variables]
        label = "" if self._label is None else str(found.get(self._label, ""))
        lacking = [key for key in self._keys if found.get(key) is None]
        if lacking:
            raise DataError(f"it has no {quoted(lacking)}")
        return Row(np.array(values), number, label, tuple(str(found[key]) for key in self._keys))

    def _tell(self, number: int, absent: list[str]) -> None:
        """Say which variables are absent, each once."""
        new = [name for name in absent if name not in self._told]
        if new:
            self._told.update(new)
            self._on_absent(number, new)


class _NamesError(DataError):
    """The first line makes no sense, and so no other does."""


def is_fatal(error: DataError) -> bool:
    """Tell whether an error of a line makes all others pointless."""
    return isinstance(error, _NamesError)


def _fields(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
    except csv.Error as error:  # a field that is too long, or an end of line within one
        raise DataError(f"it cannot be read as CSV ({error})") from None


def _value(variable: Variable, field: str, decimal: str = ".") -> float:
    """Read a field."""
    if variable.levels:
        known = field in variable.levels
        return number_of(variable, field if known or field.lower() not in MISSING else None)
    if field.lower() in MISSING:
        return np.nan
    other = "," if decimal == "." else "."
    written = field.replace(decimal, ".") if other not in field else ""
    value: Any = None
    if "_" not in written:  # which Python allows in numbers
        with suppress(ValueError):
            value = float(written)
    if value is None:
        has_other = _NUMBER.fullmatch(field.replace(other, ".", 1)) is not None
        remedy = f": if that is a decimal {'comma' if other == ',' else 'point'}, use --decimal {other}"
        raise DataError(f"{variable.name!r} must be a number. Got {field!r:.60}{remedy if has_other else ''}")
    if math.isinf(value):
        raise DataError(f"{variable.name!r} is infinite: leave the field empty if its value is unknown")
    return number_of(variable, value)
