"""Tables in files: CSV, TSV, Parquet and Excel, in and out.

What cannot be read is refused with one line that says where the trouble is. Rows are counted from 1,
without the header; a text file's line is given as well.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spbn._base.files import replacing
from spbn.cli.column_contents import comma_columns, conforming, numbers_and_categories, with_points
from spbn.cli.table_formats import read_frame, write_excel, write_parquet
from spbn.cli.table_sources import EXCEL, GZIP, PARQUET, SEPARATORS, Source, as_source, ending, kind_of, place
from spbn.errors import DataError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import BoolArray
    from spbn.tables.table import Variable


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
    >>> from spbn.cli.table_files import read_table, write_table
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
    frame = _chosen(source, read_frame(source, levels), columns, drop)
    frame = with_points(frame, comma_columns(source, frame, but=(*discrete, *levels)))
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    if variables is None:
        return numbers_and_categories(source, frame, discrete, columns is None)
    return conforming(source, frame, levels)


def column_names(path: str | os.PathLike[str] | Source) -> list[str]:
    """Return the names of all columns of a file, without warnings: those come when its rows are read."""
    source = as_source(path)
    source.require_readable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [str(name) for name in read_frame(source, {}).columns]


def read_as_written(path: str | os.PathLike[str] | Source, *, discrete: Collection[str] = ()) -> pd.DataFrame:
    """Read all columns of a file that `read_table` can read, fields of text files as they are written.

    Only decimal commas become points, unless in the columns that are discrete: what is added to the table
    has points as well.
    """
    import pandas as pd

    source = as_source(path)
    source.require_readable()
    read = read_frame(source, {})
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
    >>> from spbn.cli.table_files import write_table
    >>> write_table(data, "rows.csv")
    """
    target = Path(path)
    kind = kind_of(target)
    with replacing(target) as temporary:
        if kind == PARQUET:
            write_parquet(frame, temporary)
        elif kind == EXCEL:
            write_excel(frame, temporary)
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
