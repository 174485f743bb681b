"""What a search is, for its checkpoint, and the steps that it took before it was killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from spbn.errors import ArgumentError, SpbnError
from spbn.files.checkpoint import Checkpoint, Notes
from spbn.record import current_versions, plain_settings
from spbn.search import Step
from spbn.search.hill_climbing import Trail
from spbn.search.records import step_of, step_record
from spbn.structure import Structure
from spbn.tables.frames import as_table
from spbn.tables.table import Table

#: Arguments of `learn` that decide when it stops and what it shows, and not what it looks for.
WITHOUT_EFFECT = ("data", "progress", "checkpoint", "max_seconds", "client")


def work_of(given: dict[str, Any], table: Table) -> dict[str, Any]:
    """Describe everything that a result depends on, for its checkpoint, from the arguments of `learn`."""
    seed = given["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ArgumentError(
            f"a checkpoint needs a seed that is a whole number, or the work that is resumed would not be "
            f"the same. Got {seed!r}."
        )
    settings = {name: value for name, value in given.items() if name not in WITHOUT_EFFECT}
    if "folds" in settings and not np.isscalar(settings["folds"]):
        settings["folds"] = np.asarray(settings["folds"]).tolist()
    if "validation" in settings and not np.isscalar(settings["validation"]):
        settings["validation"] = as_table(settings["validation"], variables=table.variables).digest
    versions = current_versions()
    return {
        "spbn": versions["spbn"],
        "data": table.digest,
        "columns": list(table.names),
        "settings": plain_settings(settings),
    }


def noted_steps(
    notes: str | os.PathLike[str] | Notes | None, table: Table, given: dict[str, Any], start: Structure
) -> tuple[list[Step], Callable[[Step], None] | None]:
    """Return the steps that a checkpoint has, and what notes further ones in it."""
    if notes is None:
        return [], None
    if isinstance(notes, str | os.PathLike):
        checkpoint: Notes = Checkpoint(notes, {"work": "search", **work_of(given, table)})
    else:
        checkpoint = notes
    trail = Trail(start)
    try:
        steps = [step_of(entry, number, trail) for number, entry in enumerate(checkpoint.found, 1)]
    except (SpbnError, KeyError, TypeError, ValueError) as error:
        raise checkpoint.refuse(error) from error
    return steps, lambda step: checkpoint.append(step_record(step))
