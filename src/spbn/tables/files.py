"""Tables in files: CSV, TSV and Parquet, in and out.

What cannot be read is refused with one line that says where the trouble is.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn.errors import DataError, PackageError, quoted
from spbn.files.atomic import replacing

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"


def read_table(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the columns of a file, those named or all of them; they must hold numbers.

    The first line of a text file has the names of the columns.
    """
    source = Path(path)
    suffix = require_table_name(source)
    if not source.exists():
        raise DataError(f"{source} does not exist.")
    if source.is_dir():
        raise DataError(f"{source} is a folder, not a file.")
    if source.stat().st_size == 0:
        raise DataError(f"{source} is empty.")
    if suffix in SEPARATORS and _is_binary(source):
        raise DataError(f"{source} is no text, but a binary file.")
    frame = _read_parquet(source) if suffix == PARQUET else _read_text(source, SEPARATORS[suffix])
    if columns is not None:
        absent = [name for name in columns if name not in frame.columns]
        if absent:
            what = "no column" if len(absent) == 1 else "no columns"
            raise DataError(f"{source} has {what} {quoted(absent)}. It has {quoted(frame.columns)}.")
        if len(set(columns)) < len(columns):
            raise DataError(f"columns must be named once each. Got {quoted(columns)}.")
        frame = frame[list(columns)]
    elif "" in frame.columns:
        position = list(frame.columns).index("") + 1
        raise DataError(
            f"{source}: column {position} has no name. Give it one, or leave it out with --columns "
            f"(pandas writes its index so, unless to_csv is told index=False)."
        )
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    remedy = "Correct it, or leave the column out with --columns." if columns is None else "Correct it."
    return _require_numbers(source, frame, remedy)


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a file of the kind that its name says; it appears whole or not at all."""
    target = Path(path)
    suffix = require_table_name(target)
    with replacing(target) as temporary:
        if suffix == PARQUET:
            _write_parquet(frame, temporary)
        else:
            frame.to_csv(temporary, sep=SEPARATORS[suffix], index=False)


def require_complete(source: str | os.PathLike[str], frame: pd.DataFrame, remedy: str) -> None:
    """Refuse missing and infinite values, and say where in the file the first one is."""
    import numpy as np

    for name in frame.columns:
        bad = np.flatnonzero(~np.isfinite(frame[name].to_numpy(dtype=np.float64, na_value=np.nan)))
        if len(bad):
            what = "value is" if len(bad) == 1 else "values are"
            first = "in" if len(bad) == 1 else "the first in"
            raise DataError(
                f"{source}: {len(bad)} {what} missing or infinite in column {name!r}, {first} "
                f"{_place(Path(source), int(bad[0]))}. {remedy}"
            )


def require_table_name(path: Path) -> str:
    """Return the kind of table that a file's name says, or refuse it."""
    suffix = path.suffix.lower()
    if suffix != PARQUET and suffix not in SEPARATORS:
        known = ", ".join((*SEPARATORS, PARQUET))
        raise DataError(f"the name of a table must end in one of {known}. Got {path.name!r}.")
    return suffix


def _is_binary(source: Path) -> bool:
    with source.open("rb") as stream:
        return b"\x00" in stream.read(8192)


def _read_text(source: Path, separator: str) -> pd.DataFrame:
    import pandas as pd

    try:
        options: dict[str, Any] = {"sep": separator, "skipinitialspace": True}
        header = pd.read_csv(source, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
        names = header.iloc[0].tolist()
        _require_separator(source, names)
        given = [name for name in names if name]
        if len(set(given)) < len(given):  # pandas would rename them
            raise DataError(f"{source}: column names must be distinct. Got {quoted(names)}.")
        frame = pd.read_csv(source, **options)
    except UnicodeDecodeError:
        raise DataError(f"{source} is no text (or not in UTF-8).") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{source} has no columns.") from None
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataError(f"{source} is not a table: {reason}.") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{source} has rows with more fields than there are column names.")
    return frame.set_axis(names, axis=1)


def _require_separator(source: Path, names: Sequence[str]) -> None:
    """Refuse a table that seems to be one column because its fields are separated by something else."""
    if len(names) == 1:
        other = next((mark for mark in ";\t,|" if mark in names[0]), None)
        if other is not None:
            expected = "a tab" if source.suffix.lower() == ".tsv" else "','"
            shown = "a tab" if other == "\t" else repr(other)
            raise DataError(
                f"{source}: the first line has one name only, {names[0]!r:.60}. If its fields are separated "
                f"by {shown}, save it with {expected} (and with points in numbers)."
            )


_PYARROW = "Parquet files need the package pyarrow: pip install pyarrow."


def _write_parquet(frame: pd.DataFrame, target: Path) -> None:
    try:
        frame.to_parquet(target, index=False)
    except ImportError:
        raise PackageError(_PYARROW) from None


def _read_parquet(source: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(source)
    except ImportError:
        raise PackageError(_PYARROW) from None
    except Exception as error:  # each engine has exceptions of its own for a damaged file
        raise DataError(f"{source} is no Parquet file, or damaged ({str(error).splitlines()[0]}).") from None


def _require_numbers(source: Path, frame: pd.DataFrame, remedy: str) -> pd.DataFrame:
    import pandas as pd

    text = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if len(text) == len(frame.columns):
        raise DataError(f"{source} has no column of numbers. Its columns are {quoted(frame.columns)}.")
    for name in text:
        bad = frame[name].notna() & pd.to_numeric(frame[name], errors="coerce").isna()
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise DataError(
                f"{source}: column {name!r} holds text, first in {_place(source, row)}: "
                f"{frame[name].iloc[row]!r}. {remedy}"
            )
    return frame.apply(pd.to_numeric)


def _place(source: Path, row: int) -> str:
    """Say where a row is: by its line in a text file, counted as an editor does."""
    suffix = source.suffix.lower()
    if suffix == PARQUET:
        return f"row {row + 1}"
    with source.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=SEPARATORS[suffix], skipinitialspace=True)
        # pandas passes over lines that hold nothing.
        lines = (
            reader.line_num for fields in reader if any(field.strip() for field in fields) or len(fields) > 1
        )
        return f"line {next(islice(lines, row + 1, None))}"
