"""A table whose holes have been filled in several ways."""

from __future__ import annotations

from dataclasses import dataclass

from spbn.tables.table import Table


@dataclass(frozen=True)
class Completions:
    """The table to fit densities to, and others that differ from it only where values were missing."""

    table: Table
    others: tuple[Table, ...] = ()
