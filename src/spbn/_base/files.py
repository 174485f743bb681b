"""Files that are written completely or not at all, and what node types write to model files.

Node types write plain data and columns of numbers. Files come from anywhere, so whatever is read is checked
here; what is wrong raises a `ModelFileError`.

Columns of whole numbers, most of them small, take few bytes. A number is written as 8 bytes, with its sign in
the lowest bit, and the highest bytes of all numbers come first, then the next ones, and so on. What is small
has zeros in all but the last of these, and deflate makes them vanish; floating-point numbers have no such
bytes.

>>> import zlib
>>> import numpy as np
>>> from spbn._base.files import from_bytes, to_bytes
>>> numbers = np.round(100 * np.random.default_rng(0).normal(size=1000))
>>> bool((from_bytes(to_bytes(numbers)) == numbers).all())
True
>>> len(zlib.compress(to_bytes(numbers))) < 1400
True
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.checks import is_whole
from spbn.errors import ModelFileError

NEW_FILE = 0o666  # what `open` requests; the umask takes bits away
LARGEST_INTEGER = 2.0**62
CHUNK = 1 << 16  # integers that are decoded at a time

#: Bytes of memory that reading any file may take, and those for each of its bytes.
ALWAYS, FOR_EACH_BYTE = 1 << 27, 64
#: Bytes of memory that JSON takes at most for each of its bytes, and for each of the marks among them.
JSON_BYTE, JSON_MARKS = 5, {b"[": 120, b"{": 300, b",": 64}


@final
class Budget:
    """The memory that reading a file may take, by its length: a few bytes can ask for a lot of it."""

    def __init__(self, length: int) -> None:
        self._most = self._left = max(ALWAYS, FOR_EACH_BYTE * length)

    def take(self, size: int) -> None:
        """Refuse the file if it takes too much."""
        self._left -= size
        if self._left < 0:
            refuse(f"it would take more than {self._most >> 20} MB of memory, far more than its size.")


def memory_of_marks(text: bytes) -> int:
    """Return how many bytes a JSON document takes at most, once it is parsed, besides those of its text."""
    return sum(size * text.count(mark) for mark, size in JSON_MARKS.items())


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file to write to, in the target's folder; at the end it replaces the target.

    An error or an interrupt leaves everything as it was before. A new file gets the permissions that `open`
    would give it, and one that is replaced keeps its own. A link is followed: the file that it points to is
    replaced. Read-only files, and anything that is not a regular file, are not replaced.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    _require_replaceable(target, mode)
    temporary = _create(target, NEW_FILE if mode is None else stat.S_IMODE(mode))
    try:
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def is_read_only(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file exists that must not be changed: even root is asked to respect that."""
    mode = _mode(Path(path))
    return mode is not None and (not mode & 0o222 or not os.access(path, os.W_OK))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _require_replaceable(target: Path, mode: int | None) -> None:
    if mode is None:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):  # a device would be replaced by a file
        raise OSError(errno.EINVAL, "is not a regular file", str(target))
    if is_read_only(target):
        raise PermissionError(errno.EACCES, "is read-only", str(target))


def _create(target: Path, mode: int) -> Path:
    """Create an empty file of our own; the kernel applies the umask, whatever other threads do."""
    while True:
        path = target.parent / f".{target.stem[:32]}.{secrets.token_hex(6)}.part{target.suffix}"
        with suppress(FileExistsError):
            # Nobody who may not read the target may read this.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode | stat.S_IWUSR))
            return path


@final
class ArrayWriter:
    """Collects columns of numbers, each of which is stored once."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, bool], int] = {}  # by the hash of their bytes
        self.columns: list[FloatArray] = []
        self.integers: set[int] = set()  # the columns of whole numbers, most of them small

    def add(self, column: FloatArray, *, integers: bool = False) -> int:
        """Add a column, and return the number by which it can be found again.

        Integers, most of which should be small, take fewer bytes; those that are too large count as others.
        """
        integers = integers and np.abs(column).max(initial=0.0) < LARGEST_INTEGER
        digest = hashlib.sha256(np.ascontiguousarray(column, dtype="<f8").tobytes()).hexdigest()
        place = self._places.setdefault((digest, integers), len(self.columns))
        if place == len(self.columns):
            self.columns.append(column)
        if integers:
            self.integers.add(place)
        return place


@final
class ArrayReader:
    """Gives out the columns of a file by their numbers."""

    def __init__(self, columns: Sequence[FloatArray], budget: Budget | None = None) -> None:
        self._columns = columns
        self._budget = budget or Budget(8 * sum(map(len, columns)))

    def columns(self, record: Mapping[str, Any], key: str, count: int) -> list[FloatArray]:
        """Return the columns whose numbers a record lists, all of the same length."""
        used = record.get(key)
        known = len(self._columns)
        if (
            not isinstance(used, list)
            or len(used) != count
            or not all(is_whole(i, 0, known - 1) for i in used)
        ):
            refuse(f"{record.get('node')!r} must name {count} of the {known} columns. Got {used!r:.200}.")
        chosen = [self._columns[i] for i in used]
        if len({len(column) for column in chosen}) > 1:
            refuse(f"the columns of {record.get('node')!r} differ in length.")
        self._budget.take(8 * sum(map(len, chosen)))  # nodes that share columns have copies of them
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


def to_bytes(numbers: FloatArray) -> bytes:
    """Return the bytes of whole numbers between -2**62 and 2**62."""
    whole = numbers.astype(np.int64)
    signed = ((whole << 1) ^ (whole >> 63)).astype(">u8")
    return signed.view(np.uint8).reshape(-1, 8).T.tobytes()


def from_bytes(content: bytes) -> FloatArray:
    """Return the numbers that `to_bytes` wrote."""
    planes = np.frombuffer(content, dtype=np.uint8).reshape(8, -1)
    found = np.empty(planes.shape[1])
    for first in range(0, len(found), CHUNK):
        some = slice(first, first + CHUNK)
        signed = np.ascontiguousarray(planes[:, some].T).view(">u8")[:, 0].astype(np.uint64)
        half = (signed >> np.uint64(1)).astype(np.int64)
        found[some] = np.where(signed & np.uint64(1), ~half, half)
    return found
