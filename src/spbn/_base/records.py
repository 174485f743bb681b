"""What node types write to model files, and how they read it back: plain data and columns of numbers.

Files come from anywhere, so whatever is read is checked here; what is wrong raises a `ModelFileError`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import ModelFileError

#: How many numbers nodes may always have in total, and how often they may use a column on average:
#: nodes that share columns must not turn a small file into gigabytes.
SMALL, MOST_USES = 1 << 24, 256
LARGEST_INTEGER = 2.0**62


@final
class ArrayWriter:
    """Collects columns of numbers, each of which is stored once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}  # by the hash of their bytes
        self.columns: list[FloatArray] = []
        self.integers: set[int] = set()  # the columns of whole numbers, most of them small

    def add(self, column: FloatArray) -> int:
        """Add a column, and return the number by which it can be found again."""
        return self._add(column, "")

    def add_integers(self, column: FloatArray) -> int:
        """Add a column of whole numbers, most of them small: they take fewer bytes."""
        if np.abs(column).max(initial=0.0) >= LARGEST_INTEGER:
            return self.add(column)
        place = self._add(column, "integers")
        self.integers.add(place)
        return place

    def _add(self, column: FloatArray, kind: str) -> int:
        digest = kind + hashlib.sha256(np.ascontiguousarray(column, dtype="<f8").tobytes()).hexdigest()
        if digest not in self._places:
            self._places[digest] = len(self.columns)
            self.columns.append(column)
        return self._places[digest]


@final
class ArrayReader:
    """Gives out the columns of a file by their numbers."""

    def __init__(self, columns: Sequence[FloatArray]) -> None:
        self._columns = columns
        self._budget = max(SMALL, MOST_USES * sum(map(len, columns)))

    def columns(self, record: Mapping[str, Any], key: str, count: int) -> list[FloatArray]:
        """Return the columns whose numbers a record lists, all of the same length."""
        used = record.get(key)
        known = len(self._columns)
        if not isinstance(used, list) or len(used) != count or not all(_is_index(i, known) for i in used):
            refuse(f"{record.get('node')!r} must name {count} of the {known} columns. Got {used!r:.200}.")
        chosen = [self._columns[i] for i in used]
        if len({len(column) for column in chosen}) > 1:
            refuse(f"the columns of {record.get('node')!r} differ in length.")
        self._budget -= sum(map(len, chosen))
        if self._budget < 0:
            refuse(f"its nodes use their columns more than {MOST_USES} times, which would fill the memory.")
        return chosen


def family_of(record: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the node and the parents that a record names."""
    node = record.get("node")
    if not isinstance(node, str):
        refuse(f"the name of a node must be text. Got {node!r:.200}.")
    return node, tuple(list_of(record, "parents", str))


def list_of(record: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    """Return a list whose members are all of one kind."""
    values = record.get(key)
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        refuse(f"{key!r} must be a list of {kind.__name__} values. Got {values!r:.200}.")
    return values


def numbers(record: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    """Return finite numbers of this shape."""
    try:
        found = np.array(record.get(key))
    except ValueError:  # nested lists of different lengths
        found = np.array(None)
    # An empty list has no numbers that could tell its type.
    numeric = found.size == 0 or (found.dtype.kind in "if" and bool(np.isfinite(found).all()))
    if found.shape != shape or not numeric:
        refuse(f"{key!r} must hold numbers of shape {shape}. Got {record.get(key)!r:.200}.")
    return found.astype(np.float64)


def refuse(reason: str) -> NoReturn:
    """Say what is wrong with a file."""
    raise ModelFileError(reason)


def _is_index(value: Any, length: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < length


# ----------------------------------------------------------------------------------------------------
# Columns of whole numbers, most of them small, in few bytes.
#
# A number is written as 8 bytes, with its sign in the lowest bit, and the highest bytes of all numbers come
# first, then the next ones, and so on. What is small has zeros in all but the last of these, and deflate
# makes them vanish; floating-point numbers have no such bytes.
#
# >>> import zlib
# >>> import numpy as np
# >>> from spbn._base.records import from_bytes, to_bytes
# >>> numbers = np.round(100 * np.random.default_rng(0).normal(size=1000))
# >>> bool((from_bytes(to_bytes(numbers)) == numbers).all())
# True
# >>> len(zlib.compress(to_bytes(numbers))) < 1400
# True


def to_bytes(numbers: FloatArray) -> bytes:
    """Return the bytes of whole numbers between -2**62 and 2**62."""
    whole = numbers.astype(np.int64)
    signed = ((whole << 1) ^ (whole >> 63)).astype(">u8")
    return signed.view(np.uint8).reshape(-1, 8).T.tobytes()


def from_bytes(content: bytes) -> FloatArray:
    """Return the numbers that `to_bytes` wrote."""
    planes = np.frombuffer(content, dtype=np.uint8).reshape(8, -1)
    signed = np.ascontiguousarray(planes.T).view(">u8")[:, 0].astype(np.uint64)
    half = (signed >> np.uint64(1)).astype(np.int64)
    whole = np.where(signed & np.uint64(1), ~half, half)
    return whole.astype(np.float64)
