"""Networks as files: ``.spbn``, a zip of a JSON document and arrays. See docs/file-format.md.

A file is data, never code: arrays are read without pickle, and whatever does
not fit the format is refused with a `ModelFileError`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from spbn.atomic import replacing
from spbn.cpds import CKDE, CPD, LinearGaussian
from spbn.data import FloatArray
from spbn.errors import ModelFileError, SpbnError
from spbn.kde import KDE
from spbn.network import BayesianNetwork
from spbn.pc import PCResult
from spbn.pc import records as pc_records
from spbn.search import SearchResult
from spbn.search.records import from_record, to_record
from spbn.structure import NodeType, Structure

VERSION = 1
_DOCUMENT = "network.json"
_LARGEST_DOCUMENT = 256 * 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same network gives the same bytes


def save(network: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write a network; the file appears whole or not at all."""
    columns: dict[str, FloatArray] = {}  # by the hash of their bytes, so that each is stored once
    document = {
        "format": "spbn",
        "version": VERSION,
        "nodes": list(network.nodes),
        "arcs": [list(arc) for arc in network.structure.arcs],
        "cpds": [_describe(network.cpds[node], columns) for node in network.nodes],
    }
    document["columns"] = [{"file": _column_file(i), "rows": len(c)} for i, c in enumerate(columns.values())]
    if isinstance(network.search, SearchResult):
        document["search"] = to_record(network.search)
    elif isinstance(network.search, PCResult):
        document["pc"] = pc_records.to_record(network.search)
    if isinstance(network.type_search, SearchResult):
        document["type_search"] = to_record(network.type_search)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_DOCUMENT, _EPOCH), text, zipfile.ZIP_DEFLATED)
        for i, column in enumerate(columns.values()):
            archive.writestr(zipfile.ZipInfo(_column_file(i), _EPOCH), _npy(column))


def load(path: str | os.PathLike[str]) -> BayesianNetwork:
    """Read a network."""
    with open(path, "rb") as stream:  # what is wrong with the path itself is said as it is
        try:
            with zipfile.ZipFile(stream) as archive:
                return _read(archive)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)} cannot be read: {error}") from error.__cause__
        except Exception as error:  # a damaged archive makes zipfile raise almost anything
            raise ModelFileError(
                f"{os.fspath(path)} cannot be read: it is no .spbn file, or it is damaged ({error})."
            ) from error


def _describe(cpd: CPD, columns: dict[str, FloatArray]) -> dict[str, Any]:
    if isinstance(cpd, LinearGaussian):
        return {
            "node": cpd.node,
            "type": NodeType.LG.value,
            "parents": list(cpd.parents),
            "intercept": cpd.intercept,
            "coefficients": list(cpd.coefficients),
            "variance": cpd.variance,
        }
    if not isinstance(cpd, CKDE):
        raise TypeError(f"there is no file format for {cpd!r}")
    used = []
    for column in cpd.joint.points:
        digest = hashlib.sha256(column.tobytes()).hexdigest()
        columns.setdefault(digest, column)
        used.append(list(columns).index(digest))
    return {
        "node": cpd.node,
        "type": NodeType.CKDE.value,
        "parents": list(cpd.parents),
        "bandwidth": cpd.bandwidth.tolist(),
        "columns": used,
    }


def _read(archive: zipfile.ZipFile) -> BayesianNetwork:
    document = _read_document(archive)
    columns = _read_columns(archive, document)
    nodes = _strings(document, "nodes")
    arcs = [tuple(arc) for arc in _list_of(document, "arcs", list)]
    cpds: dict[str, CPD] = {}
    for description in _list_of(document, "cpds", dict):
        cpd = _read_cpd(description, columns)
        if cpd.node in cpds:
            _refuse(f"it describes {cpd.node!r} more than once.")
        cpds[cpd.node] = cpd
    types = {node: _type_of(cpd) for node, cpd in cpds.items()}
    search: SearchResult | PCResult | None = None
    if "search" in document:
        search = from_record(document["search"], nodes)
    elif "pc" in document:
        search = pc_records.from_record(document["pc"], nodes)
    type_search = from_record(document["type_search"], nodes) if "type_search" in document else None
    try:
        structure = Structure(nodes, arcs, types)
        return BayesianNetwork(structure, cpds, search=search, type_search=type_search)
    except SpbnError as error:
        raise ModelFileError(f"its network makes no sense: {error}") from error


def _read_document(archive: zipfile.ZipFile) -> dict[str, Any]:
    if _DOCUMENT not in archive.namelist():
        _refuse(f"it has no {_DOCUMENT}, so it is no .spbn file.")
    if archive.getinfo(_DOCUMENT).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _refuse(f"its {_DOCUMENT} is compressed in a way that this format does not have.")
    if archive.getinfo(_DOCUMENT).file_size > _LARGEST_DOCUMENT:
        _refuse(f"its {_DOCUMENT} is larger than {_LARGEST_DOCUMENT} bytes.")
    try:
        document = json.loads(archive.read(_DOCUMENT).decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {_DOCUMENT} is damaged ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != "spbn":
        _refuse(f"its {_DOCUMENT} does not say 'format': 'spbn', so it is no .spbn file.")
    if document.get("version") != VERSION:
        _refuse(
            f"it has version {document.get('version')!r} of the format, "
            f"and this library reads version {VERSION}: upgrade spbn, or save the model again."
        )
    return document


def _read_columns(archive: zipfile.ZipFile, document: Mapping[str, Any]) -> list[FloatArray]:
    entries = _list_of(document, "columns", dict)
    expected = {_DOCUMENT, *(_column_file(i) for i in range(len(entries)))}
    unexpected = sorted(set(archive.namelist()) - expected)
    if unexpected:
        _refuse(f"it holds a file that does not belong there: {unexpected[0]!r}.")
    columns = []
    for i, entry in enumerate(entries):
        file, rows = _column_file(i), entry.get("rows")
        if entry.get("file") != file or isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            _refuse(f"the description of column {i} is wrong: {entry!r}.")
        if file not in archive.namelist():
            _refuse(f"it lacks {file}.")
        column = _read_column(archive, file, rows)
        if not np.isfinite(column).all():
            _refuse(f"{file} holds missing or infinite numbers.")
        columns.append(column)
    return columns


def _read_column(archive: zipfile.ZipFile, file: str, rows: int) -> FloatArray:
    """Read the one kind of array that there may be, byte by byte, without a parser that could be fooled."""
    header = _npy_header(rows)
    info = archive.getinfo(file)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != len(header) + 8 * rows:
        _refuse(f"{file} must hold {rows} float64 numbers, not compressed. It has {info.file_size} bytes.")
    content = archive.read(file)
    if not content.startswith(header):
        _refuse(f"{file} must hold {rows} float64 numbers. Its header says something else.")
    return np.frombuffer(content, dtype="<f8", offset=len(header)).astype(np.float64)


def _read_cpd(description: Mapping[str, Any], columns: list[FloatArray]) -> CPD:
    node, parents = description.get("node"), tuple(_strings(description, "parents"))
    if not isinstance(node, str):
        _refuse(f"the name of a node must be text. Got {node!r}.")
    kind = description.get("type")
    if kind == NodeType.LG:
        coefficients = _numbers(description, "coefficients", (len(parents),))
        intercept, variance = _numbers(description, "intercept", ()), _numbers(description, "variance", ())
        if not variance > 0:
            _refuse(f"the variance of {node!r} must be positive. Got {variance}.")
        return LinearGaussian(node, parents, float(intercept), tuple(coefficients.tolist()), float(variance))
    if kind != NodeType.CKDE:
        _refuse(f"the type of {node!r} must be 'lg' or 'ckde'. Got {kind!r}.")
    d = len(parents) + 1
    used = description.get("columns")
    if not isinstance(used, list) or len(used) != d or not all(_is_index(i, len(columns)) for i in used):
        _refuse(f"{node!r} must name {d} of the {len(columns)} columns. Got {used!r}.")
    chosen = [columns[i] for i in used]
    if len({len(column) for column in chosen}) != 1:
        _refuse(f"the columns of {node!r} differ in length.")
    bandwidth = _numbers(description, "bandwidth", (d, d))
    if not np.array_equal(bandwidth, bandwidth.T):
        _refuse(f"the bandwidth matrix of {node!r} is not symmetric.")
    kde = KDE((*parents, node), np.stack(chosen), bandwidth)
    try:
        kde.whitener  # noqa: B018 -- refuse a matrix that is no bandwidth
    except SpbnError as error:
        raise ModelFileError(f"the bandwidth matrix of {node!r} is not positive definite.") from error
    return CKDE(node, parents, kde)


def _type_of(cpd: CPD) -> NodeType:
    return NodeType.LG if isinstance(cpd, LinearGaussian) else NodeType.CKDE


def _list_of(document: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    values = document.get(key)
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        _refuse(f"{key!r} must be a list of {kind.__name__} values. Got {values!r:.200}.")
    return values


def _strings(document: Mapping[str, Any], key: str) -> list[str]:
    return _list_of(document, key, str)


def _numbers(document: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    try:
        numbers = np.array(document.get(key))
    except ValueError:  # nested lists of different lengths
        numbers = np.array(None)
    # An empty list has no numbers that could tell its type.
    numeric = numbers.size == 0 or (numbers.dtype.kind in "if" and bool(np.isfinite(numbers).all()))
    if numbers.shape != shape or not numeric:
        _refuse(f"{key!r} must hold numbers of shape {shape}. Got {document.get(key)!r:.200}.")
    return numbers.astype(np.float64)


def _is_index(value: Any, length: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < length


def _column_file(i: int) -> str:
    return f"columns/{i}.npy"


def _npy_header(rows: int) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (rows,)})
    return stream.getvalue()


def _npy(column: FloatArray) -> bytes:
    return _npy_header(len(column)) + np.ascontiguousarray(column, dtype="<f8").tobytes()


def _no_number(text: str) -> NoReturn:
    raise ModelFileError(f"{text} is no number that a model can have.")


def _refuse(reason: str) -> NoReturn:
    raise ModelFileError(reason)
