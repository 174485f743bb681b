"""Tables in files: CSV, TSV, JSON lines, Parquet and Excel, in and out.

What cannot be read is refused with one line that says where the trouble is, and so is what pandas would
change or guess in silence: names that occur twice, rows that are too long, and a separator that seems to be
another one. Columns hold numbers or categories; one that holds neither is refused, too. Rows are counted from
1, without the header; a text file's line is given as well.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype

from spbn._base.files import replacing
from spbn.cli.sources import (
    EXCEL,
    GZIP,
    JSON_LINES,
    MARKS,
    PARQUET,
    SEPARATORS,
    Source,
    as_source,
    comma_columns,
    ending,
    joined_names,
    kind_of,
    place,
    require_extent,
    title_rows,
    with_points,
)
from spbn.errors import DataError, PackageError, SpbnWarning, argument, quoted, setting
from spbn.tables.columns import (
    as_text,
    categories,
    known_names,
    level_of,
    named,
    named_by_text,
    seems_dated,
    seems_dressed,
    seems_named,
)
from spbn.tables.preparation import code_of, counts_rows
from spbn.tables.readings import prepared_frame, source_of

if TYPE_CHECKING:
    from spbn._base.arrays import BoolArray
    from spbn.tables.readings import Reading
    from spbn.tables.table import Variable

MISSING = "?"  # how missing values are written, beside everything that pandas knows
TEXT_AMONG_NUMBERS = "text among numbers"
MOSTLY = 0.5  # share of numbers from which on text in a column is out of place
_TYPESET_MINUS = re.compile("[\u2212\u2013]\\s?[\\d.,].*")
_OPEN_QUOTE = re.compile(r"EOF inside string starting at row (\d+)")
_DECIMAL_COMMA = re.compile(r"^[^\d,]*(?:\d+|\d{1,3}(?:\.\d{3})+),(?:\d{1,2}|\d{4,})(?:\D|$)")
_LONGER = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
#: What to say if a package is not there.
_NEEDED = {
    EXCEL: "Excel files need the package openpyxl: pip install 'spbn[excel]', or save the table as CSV.",
    PARQUET: "Parquet files need the package pyarrow: pip install pyarrow.",
}


def read_table(
    path: str | os.PathLike[str] | Source,
    columns: Sequence[str] | None = None,
    *,
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
    variables: Sequence[Variable] | None = None,
    keys: Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    na: Sequence[str] = (),
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
    keys
        Columns that come first, as they are written: which series a row belongs to, and when it was.
    na
        What stands for missing values, besides.
    sep, decimal, encoding
        The separator between fields of a text file, its decimal point or comma, and its encoding. By default,
        the first two are detected, and the encoding is UTF-8.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.cli.files import read_table, write_table
    >>> write_table(data, "rows.csv.gz")
    >>> read_table("rows.csv.gz", ["A", "B"]).shape
    (200, 2)
    """
    source = as_source(path, sep=sep, decimal=decimal, encoding=encoding)
    source.require_readable()
    readings = {v.name: v.reading for v in variables or ()}
    if any(readings.values()):
        return _prepared(source, readings, keys)
    levels = {variable.name: variable.levels for variable in variables or () if variable.levels}
    if variables is not None:
        columns = [variable.name for variable in variables]
    discrete = [discrete] if isinstance(discrete, str) else discrete
    everything = _read_frame(source, levels, written=keys)
    frame = _chosen(source, everything, columns, drop if columns is not None else [*drop, *keys])
    if na:
        frame = frame.apply(_without, args=(set(map(code_of, na)),))
    frame = with_points(frame, comma_columns(source, frame, but=(*discrete, *levels)))
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    if variables is None:
        frame = _numbers_and_categories(source, frame, discrete, columns is None)
    else:
        frame = _conforming(source, frame, levels)
    if not keys:
        return frame
    written = everything[list(keys)]
    if source.is_text:
        there = everything.assign(**{name: written[name].mask(written[name] == "") for name in keys})
        commas = comma_columns(source, there, tolerant=True)
        written = with_points(written, [name for name in keys if name in commas])
    return pd.concat([written.set_axis(frame.index), frame], axis=1)


def read_raw(source: Source) -> pd.DataFrame:
    """Read all columns of a file as pandas would, but with rows counted from 1."""
    source.require_readable()
    frame = _read_frame(source, {}, repeated=True)
    if len(frame) == 0:
        raise DataError(f"{source} has column names, but no rows.")
    if source.is_text and not source.is_json:
        frame = _with_points_between_thousands(source, frame)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))


def _with_points_between_thousands(source: Source, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which 1.234 stays text if other columns have decimal commas, as 1.234,5."""
    texts = [column.dropna().astype(str) for _, column in frame.items() if not is_numeric_dtype(column)]
    if source.decimal == "." or not any(text.str.contains(_DECIMAL_COMMA).any() for text in texts):
        return frame
    floats = [place for place, (_, column) in enumerate(frame.items()) if column.dtype.kind == "f"]
    if not floats:
        return frame
    written = _parse(source, usecols=floats, dtype=str).set_axis(frame.columns[floats], axis=1)
    pointed = [
        name
        for name, column in written.items()
        if (there := column.dropna()).str.fullmatch(r"[-+]?\d{1,3}(\.\d{3})*").all()
        and there.str.contains(".", regex=False).any()
    ]
    return frame.assign(**{str(name): written[name] for name in pointed})


def _as_pandas_names(names: Sequence[str]) -> list[str]:
    """Return names as pandas would: those that are missing have their place, and all are distinct."""
    found: list[str] = []
    for number, name in enumerate(names):
        plain = new = name or f"Unnamed: {number}"
        times = 0
        while new in found or (new in names and (times or not name)):
            times += 1
            new = f"{plain}.{times}"
        found.append(new)
    return found


def _prepared(source: Source, readings: Mapping[str, Reading | None], keys: Sequence[str]) -> pd.DataFrame:
    """Read variables of a model that knows how."""
    raw = read_raw(source)
    absent = [name for name, reading in readings.items() if source_of(reading, name, raw) is None]
    absent += [key for key in keys if key not in raw]
    if absent:
        columns = [getattr(readings.get(name), "source", name) for name in absent]
        raise DataError(
            f"{source} lacks the {named(list(dict.fromkeys(columns)), verb=False)}. Its columns are "
            f"{quoted(map(str, raw))}."
        )
    try:
        return pd.concat([raw[list(keys)], prepared_frame(raw, readings)], axis=1)
    except DataError as error:
        raise DataError(f"{source}: {error.message}") from None


def column_names(path: str | os.PathLike[str] | Source) -> list[str]:
    """Return the names of all columns of a file; of a text file, only the first line is read for them."""
    source = as_source(path)
    source.require_readable()
    if source.is_text and not source.is_json:
        return _header(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they come when the rows are read
        return [str(name) for name in _read_frame(source, {}).columns]


def read_as_written(path: str | os.PathLike[str] | Source, *, discrete: Collection[str] = ()) -> pd.DataFrame:
    """Read all columns of a file that `read_table` can read, fields of text files as they are written.

    Only decimal commas become points, unless in the columns that are discrete: what is added to the table
    has points as well.
    """
    source = as_source(path)
    source.require_readable()
    read = _read_frame(source, {})
    if not source.is_text:
        return read
    frame = _parse(source, dtype=object, keep_default_na=False).set_axis(read.columns, axis=1)
    return with_points(frame, comma_columns(source, read, but=discrete, tolerant=True))


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a file of the kind that its name implies; it is written completely or not at all.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.cli.files import write_table
    >>> write_table(data, "rows.csv")
    """
    target = Path(path)
    kind = kind_of(target)
    with replacing(target) as temporary:
        try:
            if kind == PARQUET:
                frame.to_parquet(temporary, index=False)
            elif kind == JSON_LINES:
                packed = {"method": "gzip", "mtime": 1} if ending(target).lower().endswith(GZIP) else None
                frame.to_json(temporary, orient="records", lines=True, compression=packed)
            elif kind == EXCEL:
                _write_excel(frame, temporary)
            else:
                # Without the time of writing, so that the same rows give the same file.
                packed = {"method": "gzip", "mtime": 1} if ending(target).lower().endswith(GZIP) else None
                frame.to_csv(temporary, sep=SEPARATORS[kind], index=False, compression=packed)
        except ImportError:
            raise PackageError(_NEEDED[kind]) from None
        except ValueError as error:
            if kind != EXCEL:
                raise
            # It has more rows or columns than a sheet can have.
            raise DataError(f"the table cannot be an Excel file ({error}): write CSV or Parquet.") from None


def _write_excel(frame: pd.DataFrame, path: Path) -> None:
    """Write a sheet in which text is text, also where it looks like a formula or an error."""
    import openpyxl  # noqa: F401  (or an ImportError)

    with pd.ExcelWriter(path, engine="openpyxl") as book:
        frame.to_excel(book, index=False)
        for row in next(iter(book.sheets.values())).iter_rows():
            for cell in row:
                if cell.data_type in ("f", "e"):
                    cell.data_type, cell.quotePrefix = "s", True  # and stays text when it is edited


def present(frame: pd.DataFrame) -> BoolArray:
    """Tell which values of a frame are there: neither missing nor infinite; rows × columns."""
    return (frame.notna() & ~frame.isin([np.inf, -np.inf])).to_numpy(dtype=np.bool_)


def require_complete(source: str | os.PathLike[str] | Source, frame: pd.DataFrame, remedy: str) -> None:
    """Refuse missing and infinite values in a frame of `read_table`, and say where the first one is."""
    for name, there in zip(frame.columns, present(frame).T, strict=True):
        bad = np.flatnonzero(~there)
        if len(bad):
            what, first = ("value is", "in") if len(bad) == 1 else ("values are", "the first in")
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
            raise DataError(
                f"{argument('columns')} does not name a column. The columns of {source} are {quoted(names)}."
            )
        if len(set(columns)) < len(columns):
            raise DataError(f"{argument('columns')} must name every column once. Got {quoted(columns)}.")
        frame = frame[list(columns)]
    if drop:
        frame = frame.loc[:, [name not in drop for name in frame.columns]]
        if frame.shape[1] == 0:
            raise DataError(
                f"{argument('drop')} names all columns, which leaves none of {source} to use: drop fewer."
            )
    if columns is None and frame.columns[0] == "" and counts_rows(frame[""].to_numpy()):
        warnings.warn(
            f"the first column of {source} has no name and counts the rows, as pandas writes its index: it "
            f"is left out.",
            stacklevel=4,
        )
        frame = frame.drop(columns="")
    if "" in frame.columns:
        nameless = names.index("") + 1
        why = (
            "(There is one if every line ends with what separates fields.)"
            if nameless == len(names)
            else "(pandas writes its index like this, unless to_csv is told index=False.)"
        )
        raise DataError(
            f"{source}: column {nameless} has no name. Give it one, or leave it out with "
            f"{setting('drop', [''])}. {why}"
        )
    return frame


def _read_frame(
    source: Source,
    levels: Mapping[str, Sequence[str]],
    *,
    written: Sequence[str] = (),
    repeated: bool = False,
) -> pd.DataFrame:
    """Read all columns of a file; those of a text file that have levels, or are `written`, as text.

    `repeated`: whether names may be repeated or missing; they are then as pandas has them.
    """
    if source.is_json:
        frame = _read_json_lines(source)
    elif source.is_text:
        frame = _read_text(source, levels, written, repeated=repeated)
    else:
        kind = "an Excel" if source.kind == EXCEL else "a Parquet"
        try:
            if source.kind == EXCEL:
                frame = _read_excel(source, repeated=repeated)
            else:
                frame = named_by_text(pd.read_parquet(source.path))
        except (DataError, Warning):
            raise
        except ImportError:
            raise PackageError(_NEEDED[source.kind]) from None
        except Exception as error:  # there is one for every kind of damage
            reason = str(error).splitlines()[0] if str(error) else ""
            raise DataError(f"{source} is not {kind} file, or it is damaged ({reason}).") from None
    absent = [name for name in written if name not in frame.columns]
    if absent:
        columns = named(absent, verb=False)
        raise DataError(f"{source} lacks the {columns}. Its columns are {quoted(map(str, frame))}.")
    return frame


def _read_excel(source: Source, *, repeated: bool) -> pd.DataFrame:
    """Read a sheet; its first row that is not empty has the names, or the first two."""
    cells, sheets = _cells(source)
    if len(sheets) > 1 and source.sheet is None:
        warnings.warn(
            SpbnWarning(
                f"{source} has {len(sheets)} sheets: only {cells.attrs['sheet']!r} is read. For another one, "
                f"use {setting('sheet', ...)}."
            ),
            stacklevel=5,
        )
    names, count = _sheet_names(cells)
    if repeated:
        names = _as_pandas_names(names)
    else:
        _require_distinct(source, names)
    return cells.iloc[count:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()


def _sheet_names(cells: pd.DataFrame) -> tuple[list[str], int]:
    """Return the names in the first rows of a sheet, and how many rows they take.

    There are two of them if names of the first are in merged cells, and those of the second are repeated.
    """
    rows = [["" if pd.isna(name) else str(name).strip() for name in row] for _, row in cells[:3].iterrows()]
    if len(rows) > 1 and _is_repeated(rows[1]):
        above: list[str] = []
        for name in rows[0]:
            above.append(name or (above[-1] if above else ""))
        joined, count = joined_names([above, *rows[1:]])
        if joined:
            return joined, count
    return rows[0], 1


def _is_repeated(names: Sequence[str]) -> bool:
    there = [name for name in names if name]
    return len(set(there)) < len(there)


def _cells(source: Source) -> tuple[pd.DataFrame, list[str]]:
    """Read the cells of a sheet, and the names of all; the index counts its rows from 0.

    By default, it is the first sheet with a table, which has two columns and two rows at least.
    """
    import openpyxl  # noqa: F401  (or an ImportError before anything is read)

    require_extent(source)
    with pd.ExcelFile(source.path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        for sheet in sheets if source.sheet is None else [_chosen_sheet(source, sheets)]:
            above = source.skip_rows
            cells = pd.read_excel(book, sheet_name=sheet, header=None, dtype=object, skiprows=above)
            cells = cells.dropna(how="all").dropna(how="all", axis=1)
            if min(cells.shape) > 1:
                break
    if not cells.size:
        which = f"its sheet {sheet!r}" if source.sheet is not None and len(sheets) > 1 else "it"
        others = f" Choose another one with {setting('sheet', ...)}: it has {quoted(sheets)}."
        raise DataError(f"{source} has no table: {which} is empty.{others if which != 'it' else ''}")
    cells.attrs["sheet"] = sheet
    return cells, sheets


def _chosen_sheet(source: Source, sheets: Sequence[str]) -> str:
    """Return the name of the sheet to read: the one that is named, or has the number."""
    if source.sheet in sheets:
        return str(source.sheet)
    if source.sheet and source.sheet.isdecimal() and 1 <= int(source.sheet) <= len(sheets):
        return sheets[int(source.sheet) - 1]
    raise DataError(f"{source} has no sheet {source.sheet!r}. Its sheets are {quoted(sheets)}.")


def title_rows_of(source: Source) -> int:
    """Return how many rows of a file are above the names of its columns."""
    if source.kind != EXCEL or source.skip_rows is not None:
        return title_rows(source)
    cells, _ = _cells(source)
    widths = cells.notna().sum(axis=1)
    most = int(widths.max())
    names = widths.index[widths >= max(most - 1, 2)]  # all columns have names, but perhaps that of the index
    above = widths.loc[: names[0] - 1] if len(names) else widths
    if len(above) and _sheet_names(cells.loc[above.index[-1] :])[1] > 1:
        above = above[:-1]
    if not len(names) or not (above <= most / 2).all():
        return 0
    return int(cells.index[len(above)])


def _read_json_lines(source: Source) -> pd.DataFrame:
    """Read a JSON object from every line."""
    rows = []
    with source.opened() as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{source}: line {number} is not a JSON object ({error}).") from None
                if not isinstance(rows[-1], dict):
                    raise DataError(f"{source}: line {number} is not a JSON object.")
    return pd.DataFrame(rows)


def _read_text(
    source: Source, levels: Mapping[str, Sequence[str]], written: Sequence[str], *, repeated: bool
) -> pd.DataFrame:
    """Read a text file; columns that have levels as text, and those that are named as they are written."""
    names = _header(source, repeated=repeated)
    texts: dict[Any, Any] = {names.index(name): str for name in levels if name in names}
    as_written: dict[Any, Any] = {names.index(name): str for name in written if name in names}
    frame = _parse(source, names, low_memory=False, dtype=texts, converters=as_written or None)
    if _looks_like_data(names):
        shown = ", ".join(names[:3]) + (", ..." if names[3:] else "")
        warnings.warn(
            f"all column names of {source} are numbers ({shown}): is its first line a row of data? "
            f"Then add a line with names above it.",
            stacklevel=4,
        )
    return frame.set_axis(names, axis=1)


def _header(source: Source, *, repeated: bool = False) -> list[str]:
    """Read the names in the first line of a text file, or in the first ones."""
    line = _parse(source, header=None, nrows=1, dtype=str, keep_default_na=False)
    names: list[str] = source.joined_names or line.iloc[0].tolist()
    _require_separator(source, names)
    if repeated:
        if _is_repeated(names):
            twice = quoted(list(dict.fromkeys(name for name in names if name and names.count(name) > 1)))
            warnings.warn(
                f"several columns of {source} are called {twice}: a number is added to the later ones.",
                stacklevel=4,
            )
        return _as_pandas_names(names)
    _require_distinct(source, names)
    return names


def _parse(source: Source, names: Sequence[str] = (), **options: Any) -> pd.DataFrame:
    """Parse a text file, or say why it is not a table; `names` are those in the first line, if known."""
    try:
        with source.opened() as stream, warnings.catch_warnings():
            # Otherwise surplus fields would become an index.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            if "header" not in options:
                options["header"] = source.name_rows - 1
            return pd.read_csv(
                stream, sep=source.separator, skipinitialspace=True, index_col=False, **options
            )
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
        mark = "a tab" if source.separator == "\t" else repr(source.separator)
        reason = (
            f"line {where} has {found} fields, and those above have {width}. Remove the extra fields, or "
            f"put a field that contains {mark} in double quotes"
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
    if len(names) != 1:
        return
    other = next((mark for mark in MARKS if mark in names[0]), None)
    if other is not None:
        shown, word = ("a tab", "tab") if other == "\t" else (repr(other), other)
        remedy = f"{shown}, use {setting('sep', word)}, and make sure that all rows have as many."
    elif " " in names[0].strip() and source.sep is None and _has_words(source):
        remedy = f"spaces, use {setting('sep', 'space')}."
    else:
        return
    raise DataError(
        f"{source}: the first line has only one name, {names[0]!r:.60}. If its fields are separated "
        f"by {remedy}"
    )


def _has_words(source: Source) -> bool:
    """Tell whether the first rows have as many words as the line of names."""
    with source.opened() as stream:
        words = [len(line.split()) for line in islice(stream, 20) if line.strip()]
    return len(words) > 1 and len(set(words)) == 1


def _require_distinct(source: Source, names: Sequence[str]) -> None:
    """Refuse names that occur more than once, which pandas would change."""
    twice = list(dict.fromkeys(name for name in names if name and names.count(name) > 1))
    if twice:
        raise DataError(
            f"{source}: column names must be distinct. Got {quoted(names)} in the first line, "
            f"which must hold the names: rename the columns that are called {quoted(twice)}."
        )


def _numbers_and_categories(
    source: Source, frame: pd.DataFrame, discrete: Sequence[str], can_drop: bool
) -> pd.DataFrame:
    """Return numbers as numbers and categories as they are, or name all columns that are neither."""
    known_names("discrete", discrete, list(map(str, frame)), "Those in use are")
    converted: dict[str, pd.Series[Any]] = {}
    wrong: dict[str, str] = {}  # columns, and what is wrong with them
    where: set[int] = set()  # the rows with what is wrong
    texts: set[str] = set()  # what stands there
    for name, values in frame.items():
        column = _without_marks(values)
        numbers = column if name in discrete or column.dtype == "category" else _numbers(column)
        bad = (column.notna() & numbers.isna()).to_numpy()
        converted[str(name)] = column if bad.any() else numbers
        trouble = _trouble(column, numbers) if bad.any() else ""
        if trouble:
            where.update(bad.nonzero()[0].tolist())
            texts.update(str(value).strip() for value in column[bad])
            wrong[str(name)] = f"column {name!r} holds {trouble}: {_first(source, column, bad)}"
    if wrong:
        it = "it" if len(wrong) == 1 else "them"
        names = list(wrong)
        is_droppable = can_drop and len(wrong) < len(frame.columns)
        dropping = f" leave {it} out with {setting('drop', names)}," if is_droppable else ""
        raise DataError(
            f"{source}: {'; '.join(wrong.values())}.{_odd_values(source, where, texts, wrong)} "
            f"Convert {it} to numbers,{dropping} or treat {it} as categories with "
            f"{setting('discrete', names)}."
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
    converted: dict[str, Any] = {}
    for name, values in frame.items():
        column = _without_marks(values)
        if name in levels:
            converted[str(name)] = _among(source, column, levels[str(name)])
            continue
        converted[str(name)] = numbers = _numbers(column)
        bad = (column.notna() & numbers.isna()).to_numpy()
        if bad.any():
            value = column[bad].iloc[0]
            kind = "text" if isinstance(value, str) else f"values of type {type(value).__name__}"
            raise DataError(
                f"{source}: column {name!r} holds {'dates or times' if _is_time(column) else kind}, not "
                f"numbers: {_first(source, column, bad)}. Convert it to numbers."
            )
    return pd.DataFrame(converted, index=frame.index)


def _among(source: Source, column: pd.Series[Any], levels: tuple[str, ...]) -> pd.Categorical:
    """Return a column as levels that are known, or say which is not."""
    found = column.map(lambda value: level_of(value, levels), na_action="ignore").astype(object)
    unknown = (found.notna() & ~found.isin(levels)).to_numpy()
    if unknown.any():
        raise DataError(
            f"{source}: column {column.name!r} has the level {_first(source, found, unknown)}, which the "
            f"model does not know. Its levels are {quoted(levels)}."
        )
    return pd.Categorical(found, categories=pd.Index(levels))


def _first(source: Source, column: pd.Series[Any], bad: BoolArray) -> str:
    """Show the first value that is marked as bad, and say where it is."""
    row = int(bad.argmax())
    value = column.iloc[row]
    return f"{repr(value) if isinstance(value, str) else str(value):.60} in {place(source, row + 1)}"


def _without_marks(column: pd.Series[Any]) -> pd.Series[Any]:
    """Take question marks for missing values."""
    if is_numeric_dtype(column) or _is_time(column):
        return column
    marked = column.map(lambda value: isinstance(value, str) and value.strip() == MISSING)
    return column.mask(marked.astype(bool)) if marked.any() else column


def _without(column: pd.Series[Any], codes: Collection[str]) -> pd.Series[Any]:
    """Take codes for missing values."""
    if is_numeric_dtype(column):
        return column.mask(column.isin([float(code) for code in codes if _is_number(code)]))
    return column.mask(column.map(lambda value: as_text(value).strip() in codes).astype(bool))


def _is_number(text: str) -> bool:
    return pd.notna(pd.to_numeric(text, errors="coerce"))


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as numbers, with holes where its values are something else."""
    if is_numeric_dtype(column):
        return column
    # Truth values with holes are no numbers, and dates are none, which pandas would count in nanoseconds.
    if infer_dtype(column, skipna=True) != "boolean" and not _is_time(column):
        try:
            return pd.to_numeric(column.astype(object), errors="coerce")
        except TypeError:  # lists and the like
            pass
    return pd.Series(np.nan, index=column.index)


def _is_time(column: pd.Series[Any]) -> bool:
    """Tell whether a column holds dates, times of day or lengths of time."""
    return infer_dtype(column, skipna=True).startswith(("date", "time", "period", "interval"))
