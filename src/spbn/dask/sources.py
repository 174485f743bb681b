"""Where the rows are: Parquet files, or the partitions of a Dask DataFrame; read a part at a time.

Only the workers read rows. Whoever asks them to opens the files for their column names and sizes alone.
Columns are arrays of pyarrow or Series of pandas, and are read as numbers, or as codes of the levels that one
pass over the rows finds.
"""

from __future__ import annotations

import glob
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.client import Executor
from spbn.errors import ArgumentError, DataError, PackageError, argument, quoted, setting
from spbn.tables.columns import (
    Categories,
    as_text,
    categories,
    how_to_drop,
    is_categorical,
    require_categories,
)

NUMBERS, CATEGORIES = "numbers", "categories"  # what columns hold
ROWS_AT_A_TIME = 1 << 17  # that are converted to numbers: 20 MB of twenty columns
MOST_VALUES = 10_000  # of a column, that are sent to whoever asks for its levels


@dataclass(frozen=True)
class ParquetChunk:
    """A row group of a Parquet file."""

    path: str
    group: int
    rows: int

    def __str__(self) -> str:
        return self.path

    def batches(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the named columns of some rows at a time."""
        try:
            from pyarrow.parquet import ParquetFile

            with ParquetFile(self.path, pre_buffer=False) as file:
                for batch in file.iter_batches(
                    ROWS_AT_A_TIME, row_groups=[self.group], columns=list(names), use_threads=False
                ):
                    yield [batch.column(batch.schema.get_field_index(name)) for name in names]
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

    def batches(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the named columns of all rows."""
        yield _columns_of(pickle.loads(self.recipe).compute(scheduler="synchronous"), str(self), names)


@dataclass(frozen=True, eq=False)
class HeldChunk:
    """A partition of a Dask DataFrame that some workers hold already: it is fetched wherever it is needed.

    Attributes
    ----------
    future
        Keeps the partition where it is, and lives in the process that asks for rows alone: workers know the
        partition by its key.
    """

    number: int
    key: Any
    future: Any = None
    rows: int | None = None  # that is known once it is fetched

    def __str__(self) -> str:
        return f"partition {self.number}"

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldChunk, (self.number, self.key)

    def batches(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the named columns of all rows."""
        yield _columns_of(self._fetched(), str(self), names)

    def _fetched(self) -> Any:
        dask: Any = import_module("distributed")
        try:
            try:
                worker = dask.get_worker()
            except ValueError:  # nobody's worker
                return self.future.result()
            # A partition may have to be computed again, if its worker died, and needs a thread for that. A
            # task of its own brings it here: a future made of a key alone would never learn of its state.
            with dask.worker_client() as client:
                partition = dask.Future(self.key, client=client)
                return client.submit(_itself, partition, workers=[worker.address], pure=False).result()
        except CancelledError:
            raise DataError(
                f"{self} is no longer held by any worker, and cannot be computed again: persist the data "
                f"frame again, or write it to Parquet files and pass their names."
            ) from None


def _itself(partition: Any) -> Any:
    return partition


Chunk = ParquetChunk | FrameChunk | HeldChunk


def blocks(chunk: Chunk, names: Sequence[str], levels: Mapping[str, Sequence[str]]) -> Iterator[FloatArray]:
    """Yield the named columns of some rows at a time: variables × rows, NaN for what is missing.

    Parameters
    ----------
    levels
        Those of the discrete columns: the places of their values among these are what is returned.
    """
    for batch in chunk.batches(names):
        yield np.stack(
            [
                codes(column, name, str(chunk), levels[name])
                if name in levels
                else numbers(_of_numbers(column, name, str(chunk)))
                for name, column in zip(names, batch, strict=True)
            ]
        )


def _columns_of(frame: Any, where: str, names: Sequence[str]) -> list[Any]:
    """Return columns of a pandas frame."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(f"{where} has no columns {quoted(absent)}: all partitions must have the same.")
    return [frame[name] for name in names]


def _of_numbers(column: Any, name: str, where: str) -> Any:
    """Refuse a column of a partition that does not hold the numbers that it is said to hold."""
    if hasattr(column, "dtype") and column.dtype.kind not in "iuf":
        raise DataError(
            f"column {name!r} of {where} holds {column.dtype}, although the data frame has numbers there: "
            f"convert it, or leave it out with {setting('drop', [name])}."
        )
    return column


@dataclass(frozen=True, eq=False)
class Source:
    """All rows: the names of their columns, and the parts that they come in.

    Attributes
    ----------
    discrete
        The columns of text, truth values and categories, and those that somebody says to be discrete.
    levels
        Those of the discrete columns, once they have been found (see `levels`).
    """

    names: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    discrete: tuple[str, ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def open_source(
    data: Any,
    *,
    drop: Sequence[str] = (),
    only: Sequence[str] | None = None,
    discrete: Sequence[str] = (),
    client: Any = None,
) -> Source:
    """Find the columns and parts of a Dask DataFrame, or of Parquet files given by name.

    Parameters
    ----------
    data
        A Dask DataFrame; or the path of a Parquet file, a pattern such as ``"data/*.parquet"``, a folder of
        Parquet files, or a list of these.
    drop, only
        Columns to leave out, and those to use; all others by default.
    discrete
        Columns of numbers that stand for categories.
    client
        Whose workers are going to read the rows, if any.
    """
    if is_dask_frame(data):
        return _of_frame(data, drop, only, discrete, client)
    given = list(data) if isinstance(data, list | tuple) else [data]
    if given and all(isinstance(path, str | os.PathLike) for path in given):
        return _of_files([path for pattern in given for path in _paths(pattern)], drop, only, discrete)
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


def _of_files(
    paths: Sequence[Path], drop: Sequence[str], only: Sequence[str] | None, discrete: Sequence[str]
) -> Source:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise PackageError('Parquet files need pyarrow: install it with pip install "spbn[dask]".') from None

    found: dict[Path, tuple[Any, list[int]]] = {}
    for path in dict.fromkeys(paths):
        try:
            with ParquetFile(path) as file:
                metadata = file.metadata
                sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
                found[path] = file.schema_arrow, sizes
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{path} is not a Parquet file: {error!s:.200}.") from None
    every = list(dict.fromkeys(name for schema, _ in found.values() for name in schema.names))
    dropped = _dropped("The files have", every, drop)  # wherever they are: a file may lack them

    first: dict[str, Any] = {}
    chunks: list[Chunk] = []
    for path, (schema, sizes) in found.items():
        mine = [name for name in dropped if name in schema.names]
        kinds = {name: schema.field(name).type for name in _kept(str(path), schema.names, mine, only)}
        first = first or kinds
        where = paths[0]
        if set(kinds) != set(first):
            more, fewer = sorted(set(kinds) - set(first)), sorted(set(first) - set(kinds))
            difference = f"has {quoted(more)} too" if more else f"lacks {quoted(fewer)}"
            raise DataError(
                f"all files must have the same columns, but {path} {difference}, unlike {where}: "
                f"{how_to_drop([*more, *fewer])}."
            )
        for name, kind in kinds.items():
            held, before = _held_by_arrow(pa, kind), _held_by_arrow(pa, first[name])
            if held is None:
                raise DataError(_unusable(str(path), name, str(kind)))
            if held != before:
                here, there = _in_words(pa, kind), _in_words(pa, first[name])
                raise DataError(
                    f"column {name!r} holds {there} in {where}, but {here} in {path}: convert it in one of "
                    f"them, or {how_to_drop([name])}."
                )
        absolute = os.path.abspath(path)
        chunks += [ParquetChunk(absolute, group, rows) for group, rows in enumerate(sizes) if rows]
    if not chunks:
        raise DataError(f"{'the files have' if len(paths) > 1 else f'{paths[0]} has'} no rows.")
    categorical = [name for name, kind in first.items() if _held_by_arrow(pa, kind) == CATEGORIES]
    return Source(tuple(first), tuple(chunks), _discrete("The files have", first, categorical, discrete))


def _in_words(pa: Any, kind: Any) -> str:
    """Say what columns of a kind hold, to people."""
    if pa.types.is_dictionary(kind):
        return CATEGORIES
    if pa.types.is_boolean(kind):
        return "truth values"
    return NUMBERS if _held_by_arrow(pa, kind) == NUMBERS else "text"


def _held_by_arrow(pa: Any, kind: Any) -> str | None:
    """Say what columns of a kind hold; None if they are of no use."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind):
        return NUMBERS
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return CATEGORIES if texts or types.is_boolean(kind) or types.is_dictionary(kind) else None


def _held_by_series(kind: Any) -> str | None:
    """Say what columns of a kind hold; None if they are of no use."""
    import pandas as pd

    if getattr(kind, "kind", "O") in "iuf":
        return NUMBERS
    categorical = isinstance(kind, pd.CategoricalDtype)
    texts = pd.api.types.is_string_dtype(kind) or pd.api.types.is_bool_dtype(kind)
    return CATEGORIES if categorical or texts else None


def _discrete(
    what: str, names: Iterable[str], categorical: Sequence[str], named: Sequence[str]
) -> tuple[str, ...]:
    """Return the discrete columns: those that hold categories, and those that are named."""
    wanted = [named] if isinstance(named, str) else list(named)
    absent = [name for name in wanted if name not in names]
    if absent:
        raise DataError(
            f"{argument('discrete')} names unknown columns: {quoted(absent)}. {what} {quoted(names)}."
        )
    return tuple(name for name in names if name in wanted or name in categorical)


def _of_frame(
    frame: Any, drop: Sequence[str], only: Sequence[str] | None, discrete: Sequence[str], client: Any
) -> Source:
    import cloudpickle

    names = _kept("the data frame", [str(name) for name in frame.columns], drop, only)
    kinds = {name: _held_by_series(frame.dtypes[name]) for name in names}
    for name, kind in kinds.items():
        if kind is None:
            raise DataError(_unusable("the data frame", name, str(frame.dtypes[name])))
    categorical = [name for name, kind in kinds.items() if kind == CATEGORIES]
    chosen = _discrete("The data frame has", names, categorical, discrete)
    parts, futures = frame[names].to_delayed(), _futures(frame)
    if futures:
        return Source(tuple(names), _held(parts, futures[0].client, client), chosen)
    chunks = tuple(FrameChunk(number, cloudpickle.dumps(part)) for number, part in enumerate(parts))
    return Source(tuple(names), chunks, chosen)


def _futures(frame: Any) -> list[Any]:
    """Return the futures of what workers hold of a data frame already; none if it is not persisted."""
    if find_spec("distributed") is None:
        return []
    dask: Any = import_module("distributed")
    return list(dask.futures_of(frame))


def _held(parts: Sequence[Any], holder: Any, client: Any) -> tuple[HeldChunk, ...]:
    """Have the workers of the client that persisted a data frame hold all of its parts."""
    if client is not None and client.scheduler.address != holder.scheduler.address:
        raise ArgumentError(
            f"data is persisted on the workers of {holder.scheduler.address}, and client has those of "
            f"{client.scheduler.address}: pass the client that persisted it."
        )
    futures = holder.compute(list(parts))
    return tuple(HeldChunk(number, future.key, future) for number, future in enumerate(futures))


def _dropped(what: str, names: Sequence[str], drop: Sequence[str]) -> list[str]:
    """Return the names of columns to leave out; refuse those that there are not."""
    dropped = [drop] if isinstance(drop, str) else list(drop)
    absent = [name for name in dropped if name not in names]
    if absent:
        raise DataError(
            f"{argument('drop')} names unknown columns: {quoted(absent)}. {what} {quoted(names)}."
        )
    return dropped


def _kept(what: str, names: Sequence[str], drop: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the names of the columns that are not dropped."""
    dropped = _dropped(f"{what} has", names, drop)
    absent = [name for name in only or () if name not in names]
    if absent:
        raise DataError(f"{what} has no columns {quoted(absent)}. Its columns are {quoted(names)}.")
    kept = [name for name in (names if only is None else only) if name not in dropped]
    if not kept:
        raise DataError(
            f"{argument('drop')} names all columns, {quoted(names)}, which leaves none to use: drop fewer."
        )
    if len(set(kept)) < len(kept):
        raise DataError(f"column names must be distinct. {what} has {quoted(names)}.")
    return kept


def _unusable(where: str, name: str, kind: str) -> str:
    return (
        f"column {name!r} of {where} holds {kind}, which is neither numbers nor categories: convert it, or "
        f"leave it out with {setting('drop', [name])}."
    )


class Found(NamedTuple):
    """What a part of the rows has in a column: the distinct values, in order; None if they are too many."""

    distinct: list[Any] | None
    is_ordered: bool


def distinct(source: Source, part: int) -> tuple[int, list[Found]]:
    """Return how many rows a part has, and the values of each of its discrete columns."""
    rows = 0
    values: list[dict[Any, None]] = [{} for _ in source.discrete]
    is_ordered = [True] * len(source.discrete)
    for batch in source.chunks[part].batches(source.discrete):
        rows += len(batch[0])
        for place, column in enumerate(batch):
            if len(values[place]) <= MOST_VALUES:
                found = coded(column)
                values[place].update(dict.fromkeys(found.distinct))
                is_ordered[place] &= found.is_ordered
    few = [list(found) if len(found) <= MOST_VALUES else None for found in values]
    return rows, [Found(*both) for both in zip(few, is_ordered, strict=True)]


def with_levels(source: Source, named: Sequence[str], client: Any = None) -> Source:
    """Find the levels of all discrete columns, as `spbn.learn` does, and refuse text that names the rows.

    Parameters
    ----------
    named
        The columns that are discrete because somebody said so.
    """
    if not source.discrete:
        return source
    seen = dict(Executor(client, source).map(distinct, [(part,) for part in range(len(source.chunks))]))
    parts = [seen[part] for part in sorted(seen) if seen[part][0]]
    rows = sum(count for count, _ in parts)
    levels = {
        name: _levels(name, [found[place] for _, found in parts], rows, is_named=name in named)
        for place, name in enumerate(source.discrete)
    }
    return replace(source, levels=levels)


def _levels(name: str, parts: Sequence[Found], rows: int, *, is_named: bool) -> tuple[str, ...]:
    every: dict[Any, None] = {}
    for part in parts:
        every.update(dict.fromkeys(part.distinct or ()))
    if len(every) > MOST_VALUES or any(part.distinct is None for part in parts):
        raise DataError(
            f"column {name!r} has more than {MOST_VALUES} different values in {rows} rows, which looks like "
            f"names, not categories: {how_to_drop([name])}."
        )
    if all(part.is_ordered for part in parts):
        return tuple(dict.fromkeys(as_text(value) for value in every))
    values = np.empty(len(every), dtype=object)
    values[:] = list(every)
    if not is_named:
        if len(every) and not is_categorical(values):
            kinds = sorted({type(value).__name__ for value in every})
            raise DataError(
                f"column {name!r} holds neither numbers nor categories ({', '.join(kinds)}): "
                f"{how_to_drop([name])}, or convert it."
            )
        found = categories(values)
        places = np.broadcast_to(np.int64(0), (rows,))  # of which only the number matters
        require_categories(name, Categories(found.levels, places, found.is_plain_text))
    return categories(values).levels


class Coded(NamedTuple):
    """A column of categories: its distinct values, and the place of every row among them; -1 is missing.

    `is_ordered` tells columns whose values have an order of their own.
    """

    distinct: list[Any]
    places: IntArray
    is_ordered: bool


def coded(column: Any) -> Coded:
    """Read a column as one of categories."""
    return _coded_array(column) if hasattr(column, "dictionary_encode") else _coded_series(column)


def _coded_array(column: Any) -> Coded:
    is_ordered = hasattr(column, "dictionary")
    encoded = column if is_ordered else column.dictionary_encode()
    places = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return _without_missing(encoded.dictionary.to_pylist(), places, is_ordered)


def _coded_series(column: Any) -> Coded:
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return Coded(list(column.cat.categories), column.cat.codes.to_numpy().astype(np.int64), True)
    places, values = pd.factorize(column, use_na_sentinel=True)
    return _without_missing(list(values), places.astype(np.int64), False)


def _without_missing(values: list[Any], places: IntArray, is_ordered: bool) -> Coded:
    """Leave out what stands for missing values among the distinct ones, such as NaN."""
    there = [value is not None and value == value for value in values]
    if all(there):
        return Coded(values, places, is_ordered)
    moved = np.array([*np.where(there, np.cumsum(there) - 1, -1), -1], dtype=np.int64)
    return Coded(
        [value for value, kept in zip(values, there, strict=True) if kept], moved[places], is_ordered
    )


def codes(column: Any, name: str, where: str, levels: Sequence[str]) -> FloatArray:
    """Return the places of a column's values among its levels; NaN is missing."""
    found = coded(column)
    order = {level: float(place) for place, level in enumerate(levels)}
    texts = [as_text(value) for value in found.distinct]
    unknown = [text for text in texts if text not in order]
    if unknown:
        raise DataError(
            f"column {name!r} of {where} has the level {unknown[0]!r}, which it did not have when its levels "
            f"were looked up: do not change the data while a network is learned from them."
        )
    return np.array([*(order[text] for text in texts), np.nan])[found.places]


def numbers(column: Any) -> FloatArray:
    """Read a column as one of numbers; NaN is missing."""
    if hasattr(column, "dictionary_encode"):
        found: FloatArray = column.to_numpy(zero_copy_only=False)
        return found
    series: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return series
