"""The rows that a network is checked on: those given, or the training rows that its nodes keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.network import BayesianNetwork
from spbn.tables.frames import as_table, frame_index
from spbn.tables.table import Table


class Source(Enum):
    """Where rows come from."""

    GIVEN = "the given rows"
    TRAINING = "the training rows that nodes keep"
    NONE = "no rows"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows, where they come from, and what each is called."""

    source: Source
    table: Table | None
    labels: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  #: nodes without values

    @property
    def rows(self) -> int:
        """Number of rows."""
        return 0 if self.table is None else self.table.rows

    def covers(self, names: Iterable[str]) -> bool:
        """Tell whether there are values of all these nodes."""
        return self.table is not None and set(names) <= set(self.table.names)

    def thinned(self, limit: int) -> Table | None:
        """Return at most `limit` rows, the same ones every time."""
        if self.table is None or self.table.rows <= limit:
            return self.table
        return self.table.take(np.sort(np.random.default_rng(0).permutation(self.table.rows)[:limit]))


def gather(network: BayesianNetwork, data: Any) -> Evidence:
    """Read the data or, without any, collect the rows that the network itself carries."""
    if data is not None:
        table = as_table(data, variables=network.variables)
        index = frame_index(data)
        return Evidence(
            Source.GIVEN, table, tuple(map(str, range(table.rows) if index is None else index.tolist()))
        )
    columns = _training_columns(network)
    absent = tuple(node for node in network.nodes if node not in columns)
    if not columns:
        return Evidence(Source.NONE, None, absent=absent)
    names = tuple(variable.name for variable in network.variables if variable.name in columns)
    return Evidence(Source.TRAINING, Table(names, np.stack([columns[name] for name in names])), absent=absent)


def _training_columns(network: BayesianNetwork) -> dict[str, FloatArray]:
    """Return the columns that nodes keep; none if they were fitted to different rows."""
    columns: dict[str, FloatArray] = {}
    for cpd in network.cpds.values():
        if (kept := cpd.kept_rows) is not None:
            for name, column in zip(kept.names, kept.columns, strict=True):
                if not np.array_equal(columns.setdefault(name, column), column):
                    return {}
    if len({len(column) for column in columns.values()}) != 1:
        return {}
    return {name: network.in_data_units(name, column) for name, column in columns.items()}
