"""Networks as files: ``.spbn``, a zip of a JSON document and arrays. See docs/file-format.md.

A file is data, never code: arrays are read without pickle, and whatever does
not fit the format is refused with a `ModelFileError`.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

import numpy as np

from spbn._base import files
from spbn._base.arrays import FloatArray
from spbn._base.checks import is_whole
from spbn._base.files import (
    ArrayReader,
    ArrayWriter,
    Budget,
    list_of,
    memory_of_marks,
    refuse,
    replacing,
)
from spbn.errors import ArgumentError, ModelFileError
from spbn.nodes.atoms import WithAtoms
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.by_configuration import ByConfiguration

VERSION = 2
READABLE = (1, 2)  # version 1 has no record of learning
_DOCUMENT = "network.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same network gives the same bytes

MOST_NODES = 1 << 12
INTEGERS = ".integers"
INFLATED = 2  # bytes of memory for each byte of integers: as they are in the file, and as numbers


class Storable(Protocol):
    """A network that can be written to a file."""

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]: ...


#: Makes a network of a record, of the version of its file, and of the arrays of the file.
Reader = Callable[[Any, int, ArrayReader], Storable]
#: How networks of every kind are read, by the key of a document that holds them; None: the document itself.
#: The modules of the networks add themselves.
READERS: dict[str | None, Reader] = {}


def save(network: Storable, path: str | os.PathLike[str]) -> None:
    """Write a network; the file is written completely or not at all."""
    arrays = ArrayWriter()
    document = {"format": "spbn", "version": VERSION, **network.to_record(arrays)}
    names = [_file(i, i in arrays.integers) for i in range(len(arrays.columns))]
    document["columns"] = [
        {"file": name, "rows": len(column)} for name, column in zip(names, arrays.columns, strict=True)
    ]
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        text = json.dumps(document, allow_nan=False, indent=1)
    content = text.encode()
    memory = files.JSON_BYTE * len(content) + memory_of_marks(content)
    memory += INFLATED * sum(8 * len(arrays.columns[i]) for i in arrays.integers)
    # What takes more memory than any file may has to be as long as it is.
    method = zipfile.ZIP_DEFLATED if memory < files.ALWAYS // 2 else zipfile.ZIP_STORED
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_DOCUMENT, _EPOCH), content, method)
        for name, column in zip(names, arrays.columns, strict=True):
            member = zipfile.ZipInfo(name, _EPOCH)
            if name.endswith(INTEGERS):
                archive.writestr(member, files.to_bytes(column), method)
            else:
                numbers = np.ascontiguousarray(column, dtype="<f8").tobytes()
                archive.writestr(member, _npy_header(len(column)) + numbers)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a network of any kind."""
    with open(path, "rb") as stream:  # errors about the path itself are raised as they are
        try:
            length = stream.seek(0, os.SEEK_END)
            with zipfile.ZipFile(stream) as archive:
                _require_apart(archive, length)
                return _read(archive, Budget(length))
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)} cannot be read: {error}") from error.__cause__
        except MemoryError:  # the fault of the machine, not of the file
            raise
        except Exception as error:  # a damaged archive makes zipfile raise almost anything
            raise ModelFileError(
                f"{os.fspath(path)} cannot be read: it is not an .spbn file, or it is damaged ({error})."
            ) from error


def _require_apart(archive: zipfile.ZipFile, length: int) -> None:
    """Refuse members that declare more bytes than there are before the next one begins."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    ends = [member.header_offset for member in members[1:]] + [length]
    for member, end in zip(members, ends, strict=True):
        if member.header_offset + len(member.filename) + member.compress_size > end:
            refuse(f"its {member.filename!r:.100} is longer than the space that it has.")


def _read(archive: zipfile.ZipFile, budget: Budget) -> Storable:
    document = _read_document(archive, budget)
    arrays = ArrayReader(_read_columns(archive, document, budget), budget)
    key = next((key for key in READERS if key is not None and document.get(key) is not None), None)
    return READERS[key](document if key is None else document[key], document["version"], arrays)


def _content(archive: zipfile.ZipFile, name: str, budget: Budget, factor: int) -> bytes:
    """Read a member that may be deflated, but not more than it declares, nor more than the budget."""
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse(f"its {name} is compressed in a way that this format does not allow.")
    budget.take(factor * info.file_size)
    with archive.open(info) as stream:
        content = stream.read(info.file_size)
    if len(content) < info.file_size:
        refuse(f"its {name} ends too early.")
    return content


def _read_document(archive: zipfile.ZipFile, budget: Budget) -> dict[str, Any]:
    if _DOCUMENT not in archive.namelist():
        refuse(f"it has no {_DOCUMENT}, so it is not an .spbn file.")
    content = _content(archive, _DOCUMENT, budget, files.JSON_BYTE)
    budget.take(memory_of_marks(content))
    try:
        document = json.loads(content.decode(), parse_constant=_no_number, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {_DOCUMENT} is damaged ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != "spbn":
        refuse(f"its {_DOCUMENT} does not say 'format': 'spbn', so it is not an .spbn file.")
    if document.get("version") not in READABLE or isinstance(document["version"], bool):
        refuse(
            f"it is in version {document.get('version')!r} of the format, "
            f"and this spbn reads versions up to {VERSION}: upgrade spbn, or save the model again."
        )
    return document


def _read_columns(archive: zipfile.ZipFile, document: Mapping[str, Any], budget: Budget) -> list[FloatArray]:
    entries = list_of(document, "columns", dict)
    names = [_file(i, entry.get("file") == _file(i, True)) for i, entry in enumerate(entries)]
    there = set(archive.namelist())
    unexpected = sorted(there - {_DOCUMENT, *names})
    if unexpected:
        refuse(f"it holds a file that does not belong there: {unexpected[0]!r}.")
    columns = []
    for i, (file, entry) in enumerate(zip(names, entries, strict=True)):
        rows = entry.get("rows")
        if entry.get("file") != file or not is_whole(rows, 1):
            refuse(f"the description of column {i} is wrong: {entry!r}.")
        if file not in there:
            refuse(f"it lacks {file}.")
        column = _read_column(archive, file, rows, budget)
        if not np.isfinite(column).all():
            refuse(f"{file} holds missing or infinite numbers.")
        columns.append(column)
    return columns


def _read_column(archive: zipfile.ZipFile, file: str, rows: int, budget: Budget) -> FloatArray:
    """Read the only kinds of array that are allowed, byte by byte, without a parser that could be fooled."""
    info = archive.getinfo(file)
    if file.endswith(INTEGERS):
        if info.file_size != 8 * rows:
            refuse(f"{file} must hold {rows} integers. It has {info.file_size} bytes.")
        return files.from_bytes(_content(archive, file, budget, INFLATED))
    header = _npy_header(rows)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != len(header) + 8 * rows:
        refuse(f"{file} must hold {rows} float64 numbers, not compressed. It has {info.file_size} bytes.")
    content = archive.read(file)
    if not content.startswith(header):
        refuse(f"{file} must hold {rows} float64 numbers. Its header says something else.")
    return np.frombuffer(content, dtype="<f8", offset=len(header)).astype(np.float64)


def cpd_to_record(cpd: CPD, arrays: ArrayWriter) -> dict[str, Any]:
    """Describe any density as plain data."""
    family = {"node": cpd.node, "type": cpd.type.name, "parents": list(cpd.parents)}
    return family | cpd.to_record(arrays)


def cpd_from_record(record: Mapping[str, Any], arrays: ArrayReader) -> CPD:
    """Read what `cpd_to_record` wrote."""
    name = record.get("type")
    try:
        node_type = NodeType.parse(name)  # type: ignore[arg-type]  # from a file it may be anything
    except ArgumentError as error:
        refuse(f"it has a node {record.get('node')!r:.100} of an unknown type: {error}")
    if "mark" in record:
        return WithAtoms.from_record(node_type, record, lambda inner: cpd_from_record(inner, arrays))
    if "densities" in record:
        return ByConfiguration.from_record(node_type, record, arrays)
    return node_type.from_record(record, arrays)


def _file(i: int, integers: bool) -> str:
    return f"columns/{i}{INTEGERS if integers else '.npy'}"


def _npy_header(rows: int) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (rows,)})
    return stream.getvalue()


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ModelFileError(f"{text} is not a number that a model can hold.")
