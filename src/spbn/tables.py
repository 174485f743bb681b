"""Tables in files: CSV, TSV and Parquet, in and out.

What cannot be read is refused with one line that says where the trouble is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spbn.atomic import replacing
from spbn.data import quoted
from spbn.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"


def read_table(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the columns of a file, those named or all of them; they must hold numbers.

    The first line of a text file has the names of the columns.
    """
    source = Path(path)
    suffix = _suffix(source)
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
            raise DataError(f"{source} has no column {quoted(absent)}. It has {quoted(frame.columns)}.")
        frame = frame[list(columns)]
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    return _require_numbers(source, frame)


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a file of the kind that its name says; it appears whole or not at all."""
    target = Path(path)
    suffix = _suffix(target)
    with replacing(target) as temporary:
        if suffix == PARQUET:
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, sep=SEPARATORS[suffix], index=False)


def _suffix(path: Path) -> str:
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
        header = pd.read_csv(source, sep=separator, skipinitialspace=True, header=None, nrows=1, dtype=str)
        names = header.iloc[0].tolist()
        if len(set(names)) < len(names):  # pandas would rename them
            raise DataError(f"{source}: column names must be distinct. Got {quoted(map(str, names))}.")
        frame = pd.read_csv(source, sep=separator, skipinitialspace=True)
    except UnicodeDecodeError:
        raise DataError(f"{source} is no text (or not in UTF-8).") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{source} has no columns.") from None
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataError(f"{source} is not a table: {reason}.") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{source} has rows with more fields than there are column names.")
    return frame


def _read_parquet(source: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(source)
    except ImportError:
        raise DataError(f"reading {source} needs the package pyarrow: install it.") from None
    except Exception as error:  # each engine has exceptions of its own for a damaged file
        raise DataError(f"{source} is no Parquet file, or damaged ({str(error).splitlines()[0]}).") from None


def _require_numbers(source: Path, frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    text = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if len(text) == len(frame.columns):
        raise DataError(f"{source} has no column of numbers. Its columns are {quoted(frame.columns)}.")
    for name in text:
        bad = frame[name].notna() & pd.to_numeric(frame[name], errors="coerce").isna()
        if bad.any():
            row = int(bad.to_numpy().argmax())
            line = "row" if source.suffix.lower() == PARQUET else "line"
            place = row + 1 if line == "row" else row + 2  # behind the line with the names
            raise DataError(
                f"{source}: column {name!r} holds text, first in {line} {place}: {frame[name].iloc[row]!r}. "
                f"Correct it, or leave the column out with --columns."
            )
    return frame.apply(pd.to_numeric)
