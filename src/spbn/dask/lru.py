"""What passes over the rows find for sets of columns, as much of it as fits into memory."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, final

from spbn.dask.rowstore import Holdings
from spbn.errors import quoted

#: Discrete columns, by number; of a family they are the parents and, last, the node.
Columns = tuple[int, ...]
Value = TypeVar("Value")


@final
class Remembered(Generic[Value]):
    """Values that belong to sets of columns, found many at a time; those found last are remembered.

    Parameters
    ----------
    size
        Returns how many bytes the value of a set takes, at most.
    find
        Makes one pass over the rows, and returns the values of some sets.
    """

    def __init__(
        self,
        holdings: Holdings,
        size: Callable[[Columns], int],
        find: Callable[[Sequence[Columns]], Iterable[Value]],
    ) -> None:
        self._holdings = holdings
        self._size = size
        self._find = find
        self._known: OrderedDict[Columns, tuple[int, Value]] = OrderedDict()

    def fits(self, columns: Columns) -> bool:
        """Tell whether the value of a set fits into memory."""
        return self._size(columns) <= self._holdings.table_bytes

    def of(self, columns: Columns) -> Value:
        """Return the value of a set."""
        ((_, value),) = self.each([columns])
        return value

    def each(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, Value]]:
        """Yield different sets and their values, in any order: a pass for as many as fit into memory."""
        known = [(columns, self._known.get(columns)) for columns in dict.fromkeys(sets)]
        yield from ((columns, found[1]) for columns, found in known if found is not None)
        together: dict[Columns, int] = {}
        for columns in [columns for columns, found in known if found is None]:
            size = self._size(columns)
            if together and sum(together.values()) + size > self._holdings.table_bytes:
                yield from self._found(together)
                together = {}
            together[columns] = size
        if together:
            yield from self._found(together)

    def _found(self, sizes: dict[Columns, int]) -> Iterator[tuple[Columns, Value]]:
        found = list(zip(sizes, self._find(list(sizes)), strict=True))
        self._known.update((columns, (sizes[columns], value)) for columns, value in found)
        total = sum(size for size, _ in self._known.values())
        while total > self._holdings.table_bytes and len(self._known) > 1:
            total -= self._known.popitem(last=False)[1][0]
        yield from found


def fitting_into_memory(
    holdings: Holdings, sets: Iterable[Columns], fits: Callable[[Columns], bool]
) -> list[Columns]:
    """Return the sets that are not too much for memory; warn of the others."""
    possible = []
    for columns in dict.fromkeys(sets):
        if fits(columns):
            possible.append(columns)
            continue
        warnings.warn(
            f"{quoted(holdings.names[column] for column in columns)} have so many combinations of levels "
            f"that what is needed of each does not fit into memory: families with these are left out.",
            stacklevel=2,
        )
    return possible
