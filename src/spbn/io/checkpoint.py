"""Checkpoints: what long work has found so far, so that it can go on after it was killed.

A checkpoint is text. Its first line says what the work is, and every further line is one result; each is a
JSON object. Lines are only ever added. One that was cut off by the end of the process does not count. Every
result has its number and a hash of the line before it, so that none can be lost or come from elsewhere, and
while work goes on, its checkpoint is locked.

Work of several parts has one checkpoint: every result says which part it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO, final
from weakref import WeakValueDictionary

import numpy as np

from spbn._base.checks import is_whole, whole
from spbn.errors import ArgumentError, CheckpointError, SpbnError, argument, setting
from spbn.kernels.estimates import matrix
from spbn.record import current_versions, plain_settings
from spbn.search import Step, Sweep
from spbn.search.hill_climbing import Trail
from spbn.search.records import step_of, step_record
from spbn.structure import Structure
from spbn.tables.reader import as_table
from spbn.tables.table import Table

FORMAT = "spbn-checkpoint"
VERSION = 2  # version 1 had no numbers and no hashes
BEGINNING = f'{{"format": "{FORMAT}"'.encode()  # of every checkpoint
LARGEST = 256 * 2**20


@final
class Checkpoint:
    """A checkpoint that was opened: what it held by then, and how to add to it.

    A file about other work is refused: `work` is everything that the results depend on, as plain data.
    """

    #: The results that the file held when it was opened.
    found: tuple[dict[str, Any], ...]

    def __init__(self, path: str | os.PathLike[str], work: Mapping[str, Any]) -> None:
        self._path = Path(path)
        self._file = _File.of(self._path)
        self._part: dict[str, str] = {}
        header = json.loads(_line({"format": FORMAT, "version": VERSION, **work}))
        lines = self._whole_lines()
        if not lines:
            self.append(header)
            self.found = ()
            return
        first, *records = (self._parsed(line) for line in lines)
        if first.get("format") != FORMAT:
            raise self._not_a_checkpoint()
        if first != header:
            raise CheckpointError(
                f"{self._path} belongs to other work: {_difference(first, header)}. Give the name of a new "
                f"file."
            )
        for number, (before, record) in enumerate(zip(lines, records, strict=False), 1):
            if (record.pop("line", None), record.pop("after", None)) != (number + 1, _digest(before)):
                raise self.refuse(
                    f"line {number + 1} does not follow the line before it, so some are missing or changed"
                )
        self.found = tuple(records)

    def append(self, result: Mapping[str, Any]) -> None:
        file = self._file
        if os.fstat(file.stream.fileno()).st_size != file.size:
            raise CheckpointError(
                f"{self._path} was changed by another process, so nothing more is written to it. Give the "
                f"name of a new file."
            )
        chain = {"line": file.lines + 1, "after": _digest(file.last)} if file.lines else {}
        line = _line({**self._part, **result, **chain})
        file.stream.write(line.encode())
        file.stream.flush()
        file.grown_by(line)

    def refuse(self, reason: object) -> CheckpointError:
        """Return the error for a file whose results make no sense."""
        return CheckpointError(
            f"{self._path} is damaged: {reason!s:.200}. Give the name of a new file, or delete this one."
        )

    def parts(self, *names: str) -> tuple[Checkpoint, ...]:
        """Return a checkpoint for every part of the work, all in the same file."""
        if any(record.get("part") not in names for record in self.found):
            raise self.refuse(f"it has a result that is not about {' or '.join(names)}")
        return tuple(self._for_part(name) for name in names)

    def _for_part(self, name: str) -> Checkpoint:
        part = copy(self)
        part._part = {"part": name}
        mine = (record for record in self.found if record["part"] == name)
        part.found = tuple({key: value for key, value in record.items() if key != "part"} for record in mine)
        return part

    def _whole_lines(self) -> list[str]:
        """Return the lines of the file, without one that was cut off: new lines begin in its place."""
        stream = self._file.stream
        stream.seek(0)
        content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise self.refuse(f"it has more than {LARGEST >> 20} MB")
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            if not (whole or content.startswith(BEGINNING) or BEGINNING.startswith(content)):
                raise self._not_a_checkpoint()
            stream.truncate(len(whole))
        try:
            lines = whole.decode("utf-8").split("\n")[:-1]  # names may hold other ends of lines
        except UnicodeDecodeError:
            raise self._not_a_checkpoint() from None
        self._file.size, self._file.lines, self._file.last = len(whole), len(lines), (lines or [""])[-1]
        return lines

    def _parsed(self, line: str) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise self._not_a_checkpoint() from None
        if not isinstance(record, dict):
            raise self._not_a_checkpoint()
        return record

    def _not_a_checkpoint(self) -> CheckpointError:
        return CheckpointError(f"{self._path} is not a checkpoint of spbn: give the name of a new file.")


@final
class _File:
    """A checkpoint that this process has locked: one for each file, however often it is opened."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.size = self.lines = 0
        self.last = ""

    @classmethod
    def of(cls, path: Path) -> _File:
        stream = path.open("a+b")
        about = os.fstat(stream.fileno())
        known = _FILES.get((about.st_dev, about.st_ino))
        if known is not None:
            stream.close()
            return known
        if not _locked(stream):
            stream.close()
            raise CheckpointError(
                f"{path} is in use: another process writes its results to it. Wait until it ends, or "
                f"give the name of a new file."
            )
        file = _FILES[about.st_dev, about.st_ino] = cls(stream)
        return file

    def grown_by(self, line: str) -> None:
        self.size += len(line.encode())
        self.lines += 1
        self.last = line[:-1]

    def __del__(self) -> None:
        self.stream.close()


_FILES: WeakValueDictionary[tuple[int, int], _File] = WeakValueDictionary()


def _locked(stream: BinaryIO) -> bool:
    """Lock a file until it is closed; False if another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            stream.seek(1 << 40)  # no other process may read what is locked
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def _difference(found: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Say in what work differs from that of a file: by its settings first, since other rows may follow."""
    kinds = (
        ("work", "it is about"),
        ("spbn", "it was written by version"),
        ("version", "its format is version"),
    )
    for key, words in kinds:
        if found.get(key) != header.get(key):
            return f"{words} {found.get(key)!r:.80}, and not {header.get(key)!r:.80}"
    was, now = (record.get("settings") for record in (found, header))
    if was != now and isinstance(was, dict) and isinstance(now, dict):
        name = next(name for name in {**was, **now} if was.get(name, was) != now.get(name, now))
        before, after = (
            setting(name, record[name], shown=f"{record[name]!r:.80}") if name in record else f"no {name}"
            for record in (was, now)
        )
        return f"it was made with {before}, and not with {after}"
    if found.get("columns") != header.get("columns"):
        return f"it was made from the columns {found.get('columns')!r:.200}"
    return "it was made from other rows"


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, allow_nan=False, ensure_ascii=False) + "\n"


def describe_work(work: str, settings: Mapping[str, object], table: Table) -> dict[str, object]:
    """Describe everything that a result depends on, for its checkpoint: what is done, how, to which rows."""
    seed = settings["seed"]
    if not is_whole(seed):
        raise ArgumentError(
            f"a checkpoint needs a {argument('seed')} that is a whole number, or the work that is resumed "
            f"would not be the same. Got {seed!r}."
        )
    known = dict(settings)
    if "folds" in known and not np.isscalar(known["folds"]):
        known["folds"] = np.asarray(known["folds"]).tolist()
    if "validation" in known and not (known["validation"] is None or np.isscalar(known["validation"])):
        known["validation"] = as_table(known["validation"], variables=table.variables).digest
    rule = known.get("bandwidth")
    if callable(rule):  # whose name does not tell it apart from others, but what it returns does
        names = [variable.name for variable in table.variables if not variable.is_discrete][:2]
        columns = table.select(names).columns
        known["bandwidth"] = [rule, matrix(rule, columns[:, np.isfinite(columns).all(axis=0)]).tolist()]
    return {
        "work": work,
        "spbn": current_versions()["spbn"],
        "data": table.digest,
        "columns": list(table.names),
        "settings": plain_settings(known),
    }


def resume_sweeps(notes: Checkpoint) -> tuple[list[Sweep], Callable[[Sweep], None]]:
    """Return the sweeps of an order search that were noted, and what notes further ones."""
    try:
        sweeps = [
            Sweep(
                whole("restart", entry["restart"], 1),
                whole("number", entry["number"], 1),
                tuple(map(str, entry["order"])),
                float(entry["score"]),
                whole("misses", entry["misses"]),
            )
            for entry in notes.found
        ]
    except (SpbnError, KeyError, TypeError, ValueError) as error:
        raise notes.refuse(error) from error
    return sweeps, lambda sweep: notes.append({**vars(sweep), "order": list(sweep.order)})


def resume(notes: Checkpoint, start: Structure) -> tuple[list[Step], Callable[[Step], None]]:
    """Return the steps of a search that were noted, and what notes further ones."""
    trail = Trail(start)
    try:
        steps = [step_of(entry, number, trail) for number, entry in enumerate(notes.found, 1)]
    except (SpbnError, KeyError, TypeError, ValueError) as error:
        raise notes.refuse(error) from error
    return steps, lambda step: notes.append(step_record(step))
