"""The results of an experiment: a CSV file to which finished cells are added, one line each."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class ResultsError(Exception):
    """A results file that cannot be continued."""


class ResultsFile:
    """A CSV file that survives if the process is killed while writing.

    A line that was cut off is removed when the file is opened again.

    Parameters
    ----------
    fields
        Names of the columns that identify a cell; they come first.
    """

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self._path = path
        self._fields = tuple(fields)
        self._columns: tuple[str, ...] = ()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._drop_torn_line()
            self._columns = self._header()

    def key(self, cell: Any) -> tuple[str, ...]:
        """Return what identifies a cell in the file."""
        return tuple(str(getattr(cell, name)) for name in self._fields)

    def done(self) -> set[tuple[str, ...]]:
        """Return the keys of the cells that are there."""
        if not self._columns:
            return set()
        with self._path.open(newline="", encoding="utf-8") as lines:
            return {tuple(row[: len(self._fields)]) for row in list(csv.reader(lines))[1:]}

    def append(self, cell: Any, measured: Mapping[str, Any]) -> None:
        """Add a line, and make sure that it is on disk."""
        columns = (*self._fields, *measured)
        lines = [(*self.key(cell), *measured.values())]
        if not self._columns:
            self._columns = columns
            lines.insert(0, columns)
        if columns != self._columns:
            raise ResultsError(f"{self._path} has the columns {self._columns}, and a cell gave {columns}.")
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        with self._path.open("ab") as file:
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def _drop_torn_line(self) -> None:
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self._path, whole)

    def _header(self) -> tuple[str, ...]:
        with self._path.open(newline="", encoding="utf-8") as lines:
            header = tuple(next(csv.reader(lines), ()))
        if header and header[: len(self._fields)] != self._fields:
            raise ResultsError(
                f"{self._path} has the columns {header}, and its first ones should be {self._fields}: "
                f"it is from another version, so move it away."
            )
        return header
