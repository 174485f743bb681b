"""Tables in files: CSV, TSV and Parquet, in and out.

What cannot be read is refused with one line that says where the trouble is. Rows are counted from 1,
without the header; a text file's line is given as well.
"""

from __future__ import annotations

import csv
import math
import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn.errors import DataError, PackageError, quoted
from spbn.files.atomic import replacing

if TYPE_CHECKING:
    import pandas as pd

    from spbn.numerics.arrays import BoolArray

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
) -> pd.DataFrame:
    """Read the columns of a file, those named or all, but none in `drop`.

    They must hold numbers, apart from those in `discrete`, which are left as they are.

    The first line of a text file has the names of the columns. The index of the frame counts rows from 1,
    as the messages and tables of the command line do; whatever index a Parquet file has is left out.
    """
    import pandas as pd

    source = Path(path)
    if source.is_dir():
        raise DataError(f"{source} is a folder, not a table.")
    suffix = require_table_name(source)
    if not source.exists():
        raise DataError(f"{source} does not exist.")
    if source.stat().st_size == 0:
        raise DataError(f"{source} is empty.")
    if suffix in SEPARATORS and _is_binary(source):
        raise DataError(f"{source} is not a text file: it holds binary data.")
    frame = _read_parquet(source) if suffix == PARQUET else _read_text(source, SEPARATORS[suffix])
    frame = _chosen(source, frame, columns, drop)
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    absent = [name for name in discrete if name not in frame.columns]
    if absent:
        raise DataError(
            f"discrete names unknown columns: {quoted(absent)}. Those in use are {quoted(frame.columns)}."
        )
    return _require_numbers(source, frame, discrete, can_drop=columns is None)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of all columns of a file."""
    source = Path(path)
    suffix = require_table_name(source)
    if not source.is_file():
        return []  # which `read_table` complains about
    frame = _read_parquet(source) if suffix == PARQUET else _read_text(source, SEPARATORS[suffix])
    return [str(name) for name in frame.columns]


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a file of the kind that its name implies; it is written completely or not at all."""
    target = Path(path)
    suffix = require_table_name(target)
    with replacing(target) as temporary:
        if suffix == PARQUET:
            _write_parquet(frame, temporary)
        else:
            frame.to_csv(temporary, sep=SEPARATORS[suffix], index=False)


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


def require_complete(source: str | os.PathLike[str], frame: pd.DataFrame, remedy: str) -> None:
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


def place(source: str | os.PathLike[str], row: int) -> str:
    """Say where a row is, counted from 1; for a text file also the line, counted as an editor does."""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix == PARQUET:
        return f"row {row}"
    with suppress(csv.Error, StopIteration), path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=SEPARATORS[suffix], skipinitialspace=True)
        # pandas passes over lines that hold nothing.
        lines = (
            reader.line_num for fields in reader if any(field.strip() for field in fields) or len(fields) > 1
        )
        return f"row {row} (line {next(islice(lines, row, None))})"
    return f"row {row}"


def require_table_name(path: Path) -> str:
    """Return the kind of table that a file's name stands for, or refuse it."""
    suffix = path.suffix.lower()
    if suffix != PARQUET and suffix not in SEPARATORS:
        known = ", ".join((*SEPARATORS, PARQUET))
        raise DataError(f"the name of a table must end in one of {known}. Got {path.name!r}.")
    return suffix


def _is_binary(source: Path) -> bool:
    with source.open("rb") as stream:
        return b"\x00" in stream.read(8192)


def _chosen(
    source: Path, frame: pd.DataFrame, columns: Sequence[str] | None, drop: Sequence[str]
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
            f"drop=['']. (pandas writes its index like this, unless to_csv is told index=False.)"
        )
    return frame


def _read_text(source: Path, separator: str) -> pd.DataFrame:
    import pandas as pd

    try:
        options: dict[str, Any] = {"sep": separator, "skipinitialspace": True}
        header = pd.read_csv(source, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
        names = header.iloc[0].tolist()
        _require_separator(source, names)
        given = [name for name in names if name]
        if len(set(given)) < len(given):  # pandas would rename them
            raise DataError(
                f"{source}: column names must be distinct. Got {quoted(names)} in the first line, "
                f"which must hold the names."
            )
        frame = pd.read_csv(source, low_memory=False, **options)
    except UnicodeDecodeError:
        raise DataError(f"{source} is not a text file in UTF-8: save it in that encoding.") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{source} has no columns.") from None
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataError(f"{source} is not a table: {reason}.") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{source} has rows with more fields than there are column names.")
    if _looks_like_data(names):
        shown = ", ".join(names[:3]) + (", ..." if names[3:] else "")
        warnings.warn(
            f"all column names of {source} are numbers ({shown}): is its first line a row of data? "
            f"Then add a line with names above it.",
            stacklevel=3,
        )
    return frame.set_axis(names, axis=1)


def _looks_like_data(names: Sequence[str]) -> bool:
    """Tell whether a header consists of numbers, other than the 0, 1, 2, ... that pandas gives."""
    if len(names) > 1 and list(names) == [str(i) for i in range(len(names))]:
        return False
    try:
        return all(math.isfinite(float(name)) for name in names)
    except ValueError:
        return False


def _require_separator(source: Path, names: Sequence[str]) -> None:
    """Refuse a table that seems to have one column because its fields are separated by something else."""
    if len(names) == 1:
        other = next((mark for mark in ";\t,|" if mark in names[0]), None)
        if other is not None:
            expected = "a tab" if source.suffix.lower() == ".tsv" else "','"
            shown = "a tab" if other == "\t" else repr(other)
            raise DataError(
                f"{source}: the first line has only one name, {names[0]!r:.60}. If its fields are separated "
                f"by {shown}, save it with {expected} between fields and points in numbers."
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
        raise DataError(
            f"{source} is not a Parquet file, or it is damaged ({str(error).splitlines()[0]})."
        ) from None


def _require_numbers(
    source: Path, frame: pd.DataFrame, discrete: Sequence[str], *, can_drop: bool
) -> pd.DataFrame:
    """Return the columns as numbers, or name all those that hold something else."""
    import pandas as pd

    converted: dict[str, pd.Series[Any]] = {}
    wrong: dict[str, int] = {}  # columns, and the first row in which they hold something else
    for name in frame.columns:
        converted[name] = frame[name] if name in discrete else _numbers(frame[name])
        bad = frame[name].notna() & converted[name].isna()
        if bad.any():
            wrong[name] = int(bad.to_numpy().argmax())
    if not wrong:
        return pd.DataFrame(converted, index=frame.index)
    if len(wrong) == len(frame.columns):
        raise DataError(f"{source} has no column of numbers. Its columns are {quoted(frame.columns)}.")
    name, row = next(iter(wrong.items()))
    value = frame[name].iloc[row]
    shown = repr(value) if isinstance(value, str) else str(value)
    example = f"{shown:.60} in {place(source, row + 1)}"
    if len(wrong) == 1:
        what, it = f"column {name!r} holds {_kind(frame[name], value)}, not numbers: {example}", "it"
    else:
        what, it = f"columns {quoted(wrong)} do not hold numbers: {name!r} has {example}", "them"
    remedy = f", or leave {it} out with drop={list(wrong)!r}" if can_drop else ""
    raise DataError(f"{source}: {what}. Convert {it} to numbers{remedy}.")


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
