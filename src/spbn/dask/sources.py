"""Where the rows are: Parquet files, or the partitions of a Dask DataFrame; read a part at a time.

Only the workers read rows. Whoever asks them to opens the files for their column names and sizes alone.
Columns are read as numbers, or as codes of the levels that one pass over the rows finds.
"""

from __future__ import annotations

import glob
import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.lazy import pd
from spbn.dask.client import Executor
from spbn.errors import ArgumentError, DataError, PackageError, quoted, setting
from spbn.tables.columns import (
    as_text,
    categories,
    how_to_drop,
    is_categorical,
    known_names,
    not_dropped,
    require_categories,
    require_repetition,
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

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, pd.Series[Any]]]:
        try:
            from pyarrow.parquet import ParquetFile

            with ParquetFile(self.path, pre_buffer=False) as file:
                for batch in file.iter_batches(
                    ROWS_AT_A_TIME, row_groups=[self.group], columns=list(names), use_threads=False
                ):
                    yield {name: _series(batch.column(name)) for name in names}
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self.path} cannot be read where a worker is: {error!s:.200}. Every worker must be able to "
                f"read all files, under the same names."
            ) from None


def _series(column: Any) -> pd.Series[Any]:
    """Return a column of Arrow; numbers without a copy, which is quicker than Arrow's own way."""
    numeric = str(column.type) == "double" and not column.null_count
    return pd.Series(column.to_numpy(), copy=False) if numeric else column.to_pandas()


@dataclass(frozen=True, eq=False)
class _Partition(ABC):
    """A partition of a Dask DataFrame. How many rows it has is known once it is there."""

    number: int
    rows: ClassVar[int | None] = None

    def __str__(self) -> str:
        return f"partition {self.number}"

    def batches(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        frame = self._fetched()
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise DataError(f"{self} has no columns {quoted(absent)}: all partitions must have the same.")
        yield frame

    @abstractmethod
    def _fetched(self) -> Any: ...


@final
@dataclass(frozen=True, eq=False)
class FrameChunk(_Partition):
    """A partition that is computed wherever it is needed.

    `recipe` is what Dask makes it from, as bytes, so that it does not make it too early.
    """

    recipe: bytes

    def _fetched(self) -> Any:
        return pickle.loads(self.recipe).compute(scheduler="synchronous")


@final
@dataclass(frozen=True, eq=False)
class HeldChunk(_Partition):
    """A partition that some workers hold already: it is fetched wherever it is needed."""

    key: Any  # by which workers know the partition
    future: Any = None  # keeps it where it is, and lives in the process that asks for rows alone

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldChunk, (self.number, self.key)

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

    Of columns that have `levels`, it is the places of their values among these.
    """
    for frame in chunk.batches(names):
        yield np.stack(
            [
                codes(frame[name], name, str(chunk), levels[name])
                if name in levels
                else numbers(frame[name], name, str(chunk))
                for name in names
            ]
        )


@dataclass(frozen=True, eq=False)
class Source:
    """All rows: the names of their columns, and the parts that they come in."""

    names: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    #: The columns of text, truth values and categories, and those that somebody says to be discrete.
    discrete: tuple[str, ...] = ()
    #: Those of the discrete columns, once they have been found (see `with_levels`).
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

    These are the path of a file, a pattern such as ``"data/*.parquet"``, a folder, or a list of these.
    Columns are left out (`drop`), or chosen (`only`). A client whose workers are going to read the rows must
    be the one that persisted them, if anybody has.
    """
    if is_dask_frame(data):
        return _of_frame(data, drop, only, discrete, client)
    require_remote(data)
    given = data if isinstance(data, list | tuple) else [data]
    return _of_files([path for pattern in given for path in _paths(pattern)], drop, only, discrete)


def is_dask_frame(data: object) -> bool:
    """Tell whether something is a Dask DataFrame; Dask is not imported for that."""
    return all(hasattr(data, name) for name in ("to_delayed", "npartitions", "divisions", "columns"))


def is_remote(data: object) -> bool:
    """Tell whether rows are elsewhere: a Dask DataFrame, or the names of files."""
    given = data if isinstance(data, list | tuple) else [data]
    return is_dask_frame(data) or (bool(given) and all(isinstance(path, str | os.PathLike) for path in given))


def require_remote(data: object) -> None:
    """Refuse tables in memory."""
    if not is_remote(data):
        raise ArgumentError(
            f"data must be a Dask DataFrame, or the names of Parquet files. Got {type(data).__name__}: "
            f"use spbn.learn for a table in memory."
        )


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
    dropped = known_names("drop", drop, every, "The files have")  # wherever they are: a file may lack them

    first: dict[str, str] = {}
    chunks: list[Chunk] = []
    for path, (schema, sizes) in found.items():
        mine = [name for name in dropped if name in schema.names]
        types = {name: schema.field(name).type for name in _kept(str(path), schema.names, mine, only)}
        where = paths[0]
        if first and set(types) != set(first):
            more, fewer = sorted(set(types) - set(first)), sorted(set(first) - set(types))
            difference = f"has {quoted(more)} too" if more else f"lacks {quoted(fewer)}"
            raise DataError(
                f"all files must have the same columns, but {path} {difference}, unlike {where}: "
                f"{how_to_drop([*more, *fewer])}."
            )
        kinds = {
            name: _require_usable(str(path), name, kind, _held_by_arrow(pa, kind))
            for name, kind in types.items()
        }
        first = first or kinds
        for name, here in kinds.items():
            there = first[name]
            if NUMBERS in (here, there) and here != there:
                raise DataError(
                    f"column {name!r} holds {there} in {where}, but {here} in {path}: convert it in one of "
                    f"them, or {how_to_drop([name])}."
                )
        absolute = os.path.abspath(path)
        chunks += [ParquetChunk(absolute, group, rows) for group, rows in enumerate(sizes) if rows]
    if not chunks:
        raise DataError(f"{'the files have' if len(paths) > 1 else f'{paths[0]} has'} no rows.")
    return Source(tuple(first), tuple(chunks), _discrete("The files have", first, discrete))


def _held_by_arrow(pa: Any, kind: Any) -> str | None:
    """Say what columns of a kind hold; None if they are of no use."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind):
        return NUMBERS
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return "truth values" if types.is_boolean(kind) else CATEGORIES if types.is_dictionary(kind) else None


def _held_by_series(kind: Any) -> str | None:
    """Say what columns of a kind hold; None if they are of no use."""
    from pandas.api.types import CategoricalDtype, is_bool_dtype, is_string_dtype

    if getattr(kind, "kind", "O") in "iuf":
        return NUMBERS
    is_usable = isinstance(kind, CategoricalDtype) or is_string_dtype(kind) or is_bool_dtype(kind)
    return CATEGORIES if is_usable else None


def _require_usable(where: str, name: str, kind: object, held: str | None) -> str:
    """Refuse a column of a kind that is of no use."""
    if held is None:
        raise DataError(
            f"column {name!r} of {where} holds {kind}, which is neither numbers nor categories: convert it, "
            f"or leave it out with {setting('drop', [name])}."
        )
    return held


def _discrete(what: str, kinds: Mapping[str, str], named: Sequence[str]) -> tuple[str, ...]:
    """Return the discrete columns: those that hold no numbers, and those that are named."""
    wanted = known_names("discrete", named, kinds, what)
    return tuple(name for name, kind in kinds.items() if name in wanted or kind != NUMBERS)


def _of_frame(
    frame: Any, drop: Sequence[str], only: Sequence[str] | None, discrete: Sequence[str], client: Any
) -> Source:
    import cloudpickle

    names = _kept("the data frame", [str(name) for name in frame.columns], drop, only)
    dtypes = {name: frame.dtypes[name] for name in names}
    kinds = {
        n: _require_usable("the data frame", n, kind, _held_by_series(kind)) for n, kind in dtypes.items()
    }
    chosen = _discrete("The data frame has", kinds, discrete)
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


def _kept(what: str, names: Sequence[str], drop: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the names of the columns that are not dropped, which must be distinct."""
    kept = not_dropped(names, drop, only, f"{what} has")
    if len(set(kept)) < len(kept):
        raise DataError(f"column names must be distinct. {what} has {quoted(names)}.")
    return kept


class Found(NamedTuple):
    """What a part of the rows has in a column: the distinct values, in order; None if they are too many."""

    distinct: list[Any] | None
    is_ordered: bool


def distinct(source: Source, part: int) -> tuple[int, list[Found]]:
    """Return how many rows a part has, and the values of each of its discrete columns."""
    rows = 0
    values: list[dict[Any, None]] = [{} for _ in source.discrete]
    is_ordered = [True] * len(source.discrete)
    for frame in source.chunks[part].batches(source.discrete):
        rows += len(frame[source.discrete[0]])
        for place, name in enumerate(source.discrete):
            if len(values[place]) <= MOST_VALUES:
                found = coded(frame[name])
                values[place].update(dict.fromkeys(found.distinct))
                is_ordered[place] &= found.is_ordered
    few = [list(found) if len(found) <= MOST_VALUES else None for found in values]
    return rows, [Found(*both) for both in zip(few, is_ordered, strict=True)]


def with_levels(source: Source, named: Sequence[str], client: Any = None) -> Source:
    """Find the levels of all discrete columns, as `spbn.learn` does, and refuse text that names the rows.

    Columns that are `named` are discrete because somebody said so.
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
    if not is_named and len(every) and not is_categorical(values):
        kinds = sorted({type(value).__name__ for value in every})
        raise DataError(
            f"column {name!r} holds neither numbers nor categories ({', '.join(kinds)}): "
            f"{how_to_drop([name])}, or convert it."
        )
    found = categories(values)
    if not is_named:
        places = np.broadcast_to(np.int64(0), (rows,))  # of which only the number matters
        require_categories(name, found._replace(places=places))
    require_repetition(name, len(found.levels), rows)
    return found.levels


class Coded(NamedTuple):
    """A column of categories: its distinct values, and the place of every row among them; -1 is missing.

    `is_ordered` tells columns whose values have an order of their own.
    """

    distinct: list[Any]
    places: IntArray
    is_ordered: bool


def coded(column: pd.Series[Any]) -> Coded:
    """Read a column as one of categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return Coded(list(column.cat.categories), column.cat.codes.to_numpy().astype(np.int64), True)
    places, values = pd.factorize(column, use_na_sentinel=True)
    return Coded(list(values), places.astype(np.int64), False)


def codes(column: pd.Series[Any], name: str, where: str, levels: Sequence[str]) -> FloatArray:
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


def numbers(column: pd.Series[Any], name: str, where: str) -> FloatArray:
    """Read a column as one of numbers, and refuse it if it does not hold them; NaN is missing."""
    if column.dtype.kind not in "iuf":
        raise DataError(
            f"column {name!r} of {where} holds {column.dtype}, although the data frame has numbers there: "
            f"convert it, or leave it out with {setting('drop', [name])}."
        )
    if column.dtype == np.float64:  # missing values are NaN already
        return column.to_numpy()
    return column.to_numpy(dtype=np.float64, na_value=np.nan)
