"""Networks as files: ``.spbn``, a zip of a JSON document and arrays. See docs/file-format.md.

A file is data, never code: arrays are read without pickle, and whatever does
not fit the format is refused with a `ModelFileError`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from spbn._base import files
from spbn._base.arrays import FloatArray
from spbn._base.checks import is_whole
from spbn._base.files import ArrayReader, ArrayWriter, list_of, refuse, replacing
from spbn.errors import ArgumentError, ModelFileError
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.by_configuration import ByConfiguration

VERSION = 2
READABLE = (1, 2)  # version 1 has no record of learning
_DOCUMENT = "network.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same network gives the same bytes

# Limits on what a file may declare: a few bytes can ask for a lot of memory, and files come from anywhere.
LARGEST_DOCUMENT = 256 * 2**20
MOST_NODES = 1 << 12
SMALL_INFLATED, MOST_INFLATED = 1 << 26, 64  # bytes of integers, always, and for each of theirs in the file
INTEGERS = ".integers"


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
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_DOCUMENT, _EPOCH), text, zipfile.ZIP_DEFLATED)
        for name, column in zip(names, arrays.columns, strict=True):
            member = zipfile.ZipInfo(name, _EPOCH)
            if name.endswith(INTEGERS):
                archive.writestr(member, files.to_bytes(column), zipfile.ZIP_DEFLATED)
            else:
                content = np.ascontiguousarray(column, dtype="<f8").tobytes()
                archive.writestr(member, _npy_header(len(column)) + content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a network of any kind."""
    with open(path, "rb") as stream:  # errors about the path itself are raised as they are
        try:
            length = stream.seek(0, os.SEEK_END)
            with zipfile.ZipFile(stream) as archive:
                if any(member.compress_size > length for member in archive.infolist()):
                    refuse("it declares members that are larger than itself.")
                return _read(archive)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)} cannot be read: {error}") from error.__cause__
        except MemoryError:  # the fault of the machine, not of the file
            raise
        except Exception as error:  # a damaged archive makes zipfile raise almost anything
            raise ModelFileError(
                f"{os.fspath(path)} cannot be read: it is not an .spbn file, or it is damaged ({error})."
            ) from error


def _read(archive: zipfile.ZipFile) -> Storable:
    document = _read_document(archive)
    arrays = ArrayReader(_read_columns(archive, document))
    key = next((key for key in READERS if key is not None and document.get(key) is not None), None)
    return READERS[key](document if key is None else document[key], document["version"], arrays)


def _read_document(archive: zipfile.ZipFile) -> dict[str, Any]:
    if _DOCUMENT not in archive.namelist():
        refuse(f"it has no {_DOCUMENT}, so it is not an .spbn file.")
    if archive.getinfo(_DOCUMENT).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse(f"its {_DOCUMENT} is compressed in a way that this format does not allow.")
    if archive.getinfo(_DOCUMENT).file_size > LARGEST_DOCUMENT:
        refuse(f"its {_DOCUMENT} is larger than {LARGEST_DOCUMENT} bytes.")
    try:
        document = json.loads(archive.read(_DOCUMENT).decode(), parse_constant=_no_number)
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


def _read_columns(archive: zipfile.ZipFile, document: Mapping[str, Any]) -> list[FloatArray]:
    entries = list_of(document, "columns", dict)
    names = [_file(i, entry.get("file") == _file(i, True)) for i, entry in enumerate(entries)]
    there = set(archive.namelist())
    unexpected = sorted(there - {_DOCUMENT, *names})
    if unexpected:
        refuse(f"it holds a file that does not belong there: {unexpected[0]!r}.")
    columns = []
    _require_room(archive, [file for file in names if file.endswith(INTEGERS) and file in there])
    for i, (file, entry) in enumerate(zip(names, entries, strict=True)):
        rows = entry.get("rows")
        if entry.get("file") != file or not is_whole(rows, 1):
            refuse(f"the description of column {i} is wrong: {entry!r}.")
        if file not in there:
            refuse(f"it lacks {file}.")
        column = _read_column(archive, file, rows)
        if not np.isfinite(column).all():
            refuse(f"{file} holds missing or infinite numbers.")
        columns.append(column)
    return columns


def _read_column(archive: zipfile.ZipFile, file: str, rows: int) -> FloatArray:
    """Read the only kinds of array that are allowed, byte by byte, without a parser that could be fooled."""
    info = archive.getinfo(file)
    if file.endswith(INTEGERS):
        allowed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if info.compress_type not in allowed or info.file_size != 8 * rows:
            refuse(f"{file} must hold {rows} integers, deflated or not. It has {info.file_size} bytes.")
        return files.from_bytes(archive.read(file))
    header = _npy_header(rows)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != len(header) + 8 * rows:
        refuse(f"{file} must hold {rows} float64 numbers, not compressed. It has {info.file_size} bytes.")
    content = archive.read(file)
    if not content.startswith(header):
        refuse(f"{file} must hold {rows} float64 numbers. Its header says something else.")
    return np.frombuffer(content, dtype="<f8", offset=len(header)).astype(np.float64)


def _require_room(archive: zipfile.ZipFile, files: Sequence[str]) -> None:
    """Refuse members that would take far more memory than their bytes in the file."""
    infos = [archive.getinfo(file) for file in files]
    most = max(SMALL_INFLATED, MOST_INFLATED * sum(info.compress_size for info in infos))
    if sum(info.file_size for info in infos) > most:
        refuse(f"its integers would take more than {most} bytes of memory, which is too much for their file.")


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
    if "densities" in record:
        return ByConfiguration.from_record(node_type, record, arrays)
    return node_type.from_record(record, arrays)


def _file(i: int, integers: bool) -> str:
    return f"columns/{i}{INTEGERS if integers else '.npy'}"


def _npy_header(rows: int) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (rows,)})
    return stream.getvalue()


def _no_number(text: str) -> NoReturn:
    raise ModelFileError(f"{text} is not a number that a model can hold.")
