"""Rows that stop a search early: so far from all others that they outweigh them in the validation score.

The density of a CKDE falls like that of a normal distribution, so one wrong reading among the validation
rows can lose more log-likelihood with an arc than all other rows win. The search then keeps what it had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn.errors import SpbnError
from spbn.scores import CVLikelihood
from spbn.search import SearchResult
from spbn.tables.table import Table

LEAST_GAIN = 0.1  # of score, for each row, that the validation rows did not confirm
SHOWN = 3
FOLDS = 10


@dataclass(frozen=True)
class FarRow:
    """A row, by its number, and the node that is most unlikely there."""

    row: int
    node: str


@dataclass(frozen=True)
class EarlyStop:
    """How much score the steps behind the best one gained, and the rows that may have stood against them."""

    gain: float
    rows: tuple[FarRow, ...]

    def __str__(self) -> str:
        return (
            f"the last steps raised the score by {self.gain:,.0f}, and yet the validation score did not "
            f"rise. A few rows far from all others can do that"
        )


def early_stop(search: Any, table: Table, *, bandwidth: str = "scott") -> EarlyStop | None:
    """Look for rows that kept a search from going on; None where nothing points to such rows."""
    if not isinstance(search, SearchResult) or not search.steps:
        return None
    gain = search.steps[-1].score - search.score
    last = search.steps[-1].structure
    if not LEAST_GAIN * table.rows < gain < math.inf or not set(last.nodes) <= set(table.names):
        return None
    try:
        score = CVLikelihood(table, folds=FOLDS, seed=0, bandwidth=bandwidth)
    except SpbnError:
        return None
    by_node = np.stack([score.rows(family) for family in last.families()])
    drops = np.median(by_node, axis=1)[:, None] - by_node
    drops[~np.isfinite(drops)] = 0.0  # a family that cannot be fitted says nothing about rows
    total = drops.sum(axis=0)
    ordinary = float(np.quantile(total, 0.95))
    far = [
        FarRow(row, last.nodes[int(drops[:, row].argmax())])
        for row in np.argsort(-total, kind="stable")[:SHOWN].tolist()
        if total[row] > max(20.0 * ordinary, 0.1 * gain)
    ]
    return EarlyStop(gain, tuple(far)) if far else None
