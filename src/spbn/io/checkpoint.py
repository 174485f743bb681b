"""Checkpoints: what long work has found so far, so that it can go on after it was killed.

A checkpoint is text. Its first line says what the work is, and every further line is one result; each is a
JSON object. Lines are only ever added. One that was cut off by the end of the process does not count.

Work of several parts has one checkpoint: every result says which part it belongs to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, final

import numpy as np

from spbn._base.checks import is_whole, whole
from spbn.errors import ArgumentError, CheckpointError, SpbnError, argument, setting
from spbn.record import current_versions, plain_settings
from spbn.search import Step, Sweep
from spbn.search.hill_climbing import Trail
from spbn.search.records import step_of, step_record
from spbn.structure import Structure
from spbn.tables.reader import as_table
from spbn.tables.table import Table

FORMAT = "spbn-checkpoint"
VERSION = 1
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
        self.found = tuple(records)

    def append(self, result: Mapping[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(_line({**self._part, **result}))

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
        if not self._path.exists():
            return []
        if self._path.stat().st_size > LARGEST:
            raise self.refuse(f"it has more than {LARGEST >> 20} MB")
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            if not (whole or content.startswith(BEGINNING) or BEGINNING.startswith(content)):
                raise self._not_a_checkpoint()
            os.truncate(self._path, len(whole))
        try:
            return whole.decode("utf-8").split("\n")[:-1]  # names may hold other ends of lines
        except UnicodeDecodeError:
            raise self._not_a_checkpoint() from None

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


def _difference(found: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Say in what work differs from that of a file: by its settings first, since other rows may follow."""
    for key, words in (("work", "it is about"), ("spbn", "it was written by version")):
        if found.get(key) != header.get(key):
            return f"{words} {found.get(key)!r:.80}, and not {header.get(key)!r:.80}"
    was, now = (record.get("settings") for record in (found, header))
    if was != now and isinstance(was, dict) and isinstance(now, dict):
        name = next(name for name in {**was, **now} if was.get(name) != now.get(name))
        before, after = (
            setting(name, record.get(name), shown=f"{record.get(name)!r:.80}") for record in (was, now)
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
