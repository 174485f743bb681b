"""The levels of discrete columns, found in one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spbn.dask.columns import coded
from spbn.dask.executor import executor_for
from spbn.dask.sources import Source
from spbn.errors import DataError
from spbn.tables.columns import how_to_drop
from spbn.tables.levels import Categories, as_text, categories, is_categorical, require_categories

MOST_VALUES = 10_000  # of a column, that are sent to whoever asks


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
    seen = dict(executor_for(client, source).map(distinct, [(part,) for part in range(len(source.chunks))]))
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
