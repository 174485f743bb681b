"""What `learn` is asked to do: its arguments, checked, and the rows, read and transformed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spbn.choices import (
    ALGORITHMS,
    MISSING,
    MODELS,
    TESTS,
    node_types,
    require_choice,
    require_use,
    start_structure,
)
from spbn.margins import Margins, require_kind
from spbn.margins import fitted as fitted_margins
from spbn.nodes.admission import impossible_arcs, refuse_impossible
from spbn.nodes.base import FitSettings, NodeType
from spbn.record import plain_settings
from spbn.search.constraints import require_seconds
from spbn.structure import Structure
from spbn.tables.completions import Completions
from spbn.tables.frames import Missing, require_distinct, training_table
from spbn.tables.splits import Split
from spbn.tables.table import Table


@dataclass(frozen=True)
class Task:
    """What a search needs to know, once all arguments of `learn` have been checked.

    Attributes
    ----------
    given
        The arguments of `learn`, with arcs as lists.
    settings
        The same as plain data, for the record.
    began
        When learning began, by the clock of `time.perf_counter`.
    choices
        The types that nodes may have.
    original, table
        All rows in the units of the data, and transformed by the margins.
    completions
        Other fillings of the holes that the table had, transformed too.
    begin
        Where the search starts.
    climbed
        The rows that a cross-validated search looks at: all, or those of a split that are not for validation.
    likelihood
        The arguments of `ValidatedLikelihood`.
    """

    given: dict[str, Any]
    settings: dict[str, Any]
    began: float
    choices: tuple[NodeType, ...]
    fit_settings: FitSettings
    original: Table
    margins: Margins | None
    table: Table
    completions: tuple[Table, ...]
    begin: Structure
    climbed: Table
    likelihood: dict[str, Any]


def prepared_task(given: dict[str, Any], inputs: Sequence[str] = (), split: Split | None = None) -> Task:
    """Refuse what cannot be learned, and read and transform the rows."""
    began = time.perf_counter()
    settings = settings_of(given)
    require_choice("missing", given["missing"], MISSING)
    require_seconds(given["max_seconds"])
    require_choice("model", given["model"], tuple(MODELS))
    require_choice("algorithm", given["algorithm"], ALGORITHMS)
    require_choice("test", given["test"], tuple(TESTS))
    # Arcs may come from a generator, and are needed more than once.
    given = given | {name: list(given[name]) for name in ("required_arcs", "forbidden_arcs")}
    fit_settings = FitSettings(given["bandwidth"], given["engine"], given["smoothing"])
    require_kind(given["margins"])
    choices = node_types(given["model"], given["types"])
    require_use(given["bandwidth"], choices)
    original, completions = _rows(given)
    margins = fitted_margins(given["margins"], original)
    table = original
    if margins is not None:
        table = margins.transformed(original)
        completions = tuple(map(margins.transformed, completions))
    begin = start_structure(table, given["model"], choices, given["start"], inputs)
    refuse_impossible(impossible_arcs(table.variables), given["required_arcs"])
    shared = ("folds", "validation", "seed", "bandwidth", "engine", "smoothing")
    likelihood = {name: given[name] for name in shared} | {"missing": _for_complete_rows(given)}
    climbed = table
    if split is not None:
        climbed = table.take(split.training)
        likelihood |= {"folds": split.folds, "validation": table.take(split.validation)}
    return Task(
        given=given,
        settings=settings,
        began=began,
        choices=choices,
        fit_settings=fit_settings,
        original=original,
        margins=margins,
        table=table,
        completions=completions,
        begin=begin,
        climbed=climbed,
        likelihood=likelihood,
    )


def _rows(given: dict[str, Any]) -> tuple[Table, tuple[Table, ...]]:
    """Return the table to learn from, and other fillings of its holes."""
    data = given["data"]
    completions = data.others if isinstance(data, Completions) else ()
    data = data.table if isinstance(data, Completions) else data
    table = training_table(data, _for_complete_rows(given), drop=given["drop"], discrete=given["discrete"])
    require_distinct(table)
    return table, completions


def _for_complete_rows(given: dict[str, Any]) -> Missing:
    return "drop" if given["missing"] == "drop" else "error"


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `learn` as plain data, for the record."""
    settings = plain_settings(given | {"data": None})
    del settings["data"], settings["progress"], settings["checkpoint"], settings["client"]
    return settings
