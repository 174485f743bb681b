"""Where the rows are: Parquet files, or the partitions of a Dask DataFrame; read a part at a time.

Only the workers read rows. Whoever asks them to opens the files for their column names and sizes alone.
"""

from __future__ import annotations

import glob
import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from spbn.errors import ArgumentError, DataError, PackageError, quoted
from spbn.numerics.arrays import FloatArray

ROWS_AT_A_TIME = 1 << 17  # that are converted to numbers: 20 MB of twenty columns


@dataclass(frozen=True)
class ParquetChunk:
    """A row group of a Parquet file."""

    path: str
    group: int
    rows: int

    def __str__(self) -> str:
        return self.path

    def blocks(self, names: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the named columns of some rows at a time: variables × rows, NaN for what is missing."""
        try:
            from pyarrow.parquet import ParquetFile

            with ParquetFile(self.path, pre_buffer=False) as file:
                for batch in file.iter_batches(
                    ROWS_AT_A_TIME, row_groups=[self.group], columns=list(names), use_threads=False
                ):
                    block = np.empty((len(names), batch.num_rows))
                    for place, name in enumerate(names):
                        column = batch.column(batch.schema.get_field_index(name))
                        block[place] = column.to_numpy(zero_copy_only=False)
                    yield block
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self.path} cannot be read where a worker is: {error!s:.200}. Every worker must be able to "
                f"read all files, under the same names."
            ) from None


@dataclass(frozen=True, eq=False)
class FrameChunk:
    """A partition of a Dask DataFrame, which is computed wherever it is needed.

    `recipe` is what Dask makes it from, as bytes, so that it does not make it too early.
    """

    number: int
    recipe: bytes
    rows: int | None = None  # that is known once it is computed

    def __str__(self) -> str:
        return f"partition {self.number}"

    def blocks(self, names: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the named columns of all rows: variables × rows, NaN for what is missing."""
        yield _columns_of(pickle.loads(self.recipe).compute(scheduler="synchronous"), str(self), names)


Chunk = ParquetChunk | FrameChunk


def _columns_of(frame: Any, where: str, names: Sequence[str]) -> FloatArray:
    """Return columns of a pandas frame: variables × rows, NaN for what is missing."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(f"{where} has no columns {quoted(absent)}: all partitions must have the same.")
    wrong = [name for name in names if frame[name].dtype.kind not in "iuf"]
    if wrong:
        raise DataError(_not_numbers(where, wrong[0], str(frame[wrong[0]].dtype)))
    block = np.empty((len(names), len(frame)))
    for place, name in enumerate(names):
        block[place] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return block


@dataclass(frozen=True, eq=False)
class Source:
    """All rows: the names of their columns, and the parts that they come in."""

    names: tuple[str, ...]
    chunks: tuple[Chunk, ...]


def opened(data: Any, *, drop: Sequence[str] = (), only: Sequence[str] | None = None) -> Source:
    """Find the columns and parts of a Dask DataFrame, or of Parquet files given by name.

    Parameters
    ----------
    data
        A Dask DataFrame; or the path of a Parquet file, a pattern such as ``"data/*.parquet"``, a folder of
        Parquet files, or a list of these.
    drop, only
        Columns to leave out, and those to use; all others by default.
    """
    if is_dask_frame(data):
        return _of_frame(data, drop, only)
    given = list(data) if isinstance(data, list | tuple) else [data]
    if given and all(isinstance(path, str | os.PathLike) for path in given):
        return _of_files([path for pattern in given for path in _paths(pattern)], drop, only)
    raise ArgumentError(
        f"data must be a Dask DataFrame, or the names of Parquet files. Got {type(data).__name__}: "
        f"use spbn.learn for a table in memory."
    )


def is_dask_frame(data: object) -> bool:
    """Tell whether something is a Dask DataFrame; Dask is not imported for that."""
    return all(hasattr(data, name) for name in ("to_delayed", "npartitions", "divisions", "columns"))


def _paths(given: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a name stands for, in order."""
    text = os.fspath(given)
    path = Path(text)
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
        if not found:
            raise DataError(f"the folder {path} has no files whose names end in .parquet.")
        return found
    if path.exists():
        return [path]
    found = sorted(map(Path, glob.glob(text))) if glob.has_magic(text) else []
    if not found:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise DataError(f"{what} {text}.")
    return found


def _of_files(paths: Sequence[Path], drop: Sequence[str], only: Sequence[str] | None) -> Source:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise PackageError('Parquet files need pyarrow: install it with pip install "spbn[dask]".') from None

    first: dict[str, Any] = {}
    chunks: list[Chunk] = []
    for path in dict.fromkeys(paths):
        try:
            with ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{path} is not a Parquet file: {error!s:.200}.") from None
        kinds = {name: schema.field(name).type for name in _kept(str(path), schema.names, drop, only)}
        first = first or kinds
        where = paths[0]
        if set(kinds) != set(first):
            more, fewer = sorted(set(kinds) - set(first)), sorted(set(first) - set(kinds))
            difference = f"has {quoted(more)} too" if more else f"lacks {quoted(fewer)}"
            raise DataError(
                f"all files must have the same columns, but {path} {difference}, unlike {where}. "
                f"Leave columns out with drop=[...]."
            )
        for name, kind in kinds.items():
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                if pa.types.is_integer(first[name]) or pa.types.is_floating(first[name]):
                    raise DataError(f"column {name!r} holds numbers in {where}, but {kind} in {path}.")
                if any(_differs(pa, path_, name) for path_ in paths):
                    other = next(path_ for path_ in paths if _differs(pa, path_, name))
                    raise DataError(f"column {name!r} holds {kind} in {path}, but numbers in {other}.")
                raise DataError(_not_numbers(str(path), name, str(kind)))
        absolute = os.path.abspath(path)
        chunks += [ParquetChunk(absolute, group, rows) for group, rows in enumerate(sizes) if rows]
    if not chunks:
        raise DataError(f"{'the files have' if len(paths) > 1 else f'{paths[0]} has'} no rows.")
    return Source(tuple(first), tuple(chunks))


def _differs(pa: Any, path: Path, name: str) -> bool:
    """Tell whether a column that is not one of numbers is one in another file."""
    from pyarrow.parquet import read_schema

    try:
        kind = read_schema(path).field(name).type
    except (OSError, KeyError, pa.ArrowInvalid):
        return False
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _of_frame(frame: Any, drop: Sequence[str], only: Sequence[str] | None) -> Source:
    import cloudpickle

    names = _kept("the data frame", [str(name) for name in frame.columns], drop, only)
    for name in names:
        kind = frame.dtypes[name]
        if getattr(kind, "kind", "O") not in "iuf":
            raise DataError(_not_numbers("the data frame", name, str(kind)))
    _refuse_persisted(frame)
    parts = frame[names].to_delayed()
    chunks = tuple(FrameChunk(number, cloudpickle.dumps(part)) for number, part in enumerate(parts))
    return Source(tuple(names), chunks)


def _refuse_persisted(frame: Any) -> None:
    """Refuse a frame whose partitions workers hold already: it cannot be made again wherever it is needed."""
    if find_spec("distributed") is None:
        return
    dask: Any = import_module("distributed")
    if dask.futures_of(frame):
        raise ArgumentError(
            "data is persisted, and every worker makes the partitions that it needs by itself: pass the data "
            "frame as it was before persist(), or write it to Parquet files and pass their names."
        )


def _kept(what: str, names: Sequence[str], drop: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the names of the columns that are not dropped."""
    dropped = [drop] if isinstance(drop, str) else list(drop)
    absent = [name for name in dropped if name not in names]
    if absent:
        raise DataError(f"drop names unknown columns: {quoted(absent)}. {what} has {quoted(names)}.")
    absent = [name for name in only or () if name not in names]
    if absent:
        raise DataError(f"{what} has no columns {quoted(absent)}. Its columns are {quoted(names)}.")
    kept = [name for name in (names if only is None else only) if name not in dropped]
    if not kept:
        raise DataError(f"drop names all columns, {quoted(names)}, which leaves none to use: drop fewer.")
    if len(set(kept)) < len(kept):
        raise DataError(f"column names must be distinct. {what} has {quoted(names)}.")
    return kept


def _not_numbers(where: str, name: str, kind: str) -> str:
    return (
        f"column {name!r} of {where} holds {kind}, and learning with rows over workers supports columns of "
        f"numbers only: leave it out with drop={[name]!r}, or use spbn.learn if the table fits into memory."
    )
