"""What every conditional density offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from spbn.data import FloatArray, Seed, as_table, require_count
from spbn.errors import ArgumentError


class CPD(Protocol):
    """The density of a node given its parents: an immutable value."""

    @property
    def node(self) -> str:
        """The node."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Its parents, in the order of the parameters."""

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, a row for each."""


def parent_columns(node: str, parents: Sequence[str], n: int, given: Any) -> FloatArray:
    """Return the values of the parents, parents × n, or refuse what cannot be."""
    require_count(n)
    if not parents:
        return np.empty((0, n))
    if given is None:
        raise ArgumentError(f"{node!r} has parents: pass their values, given={{{parents[0]!r}: [...], ...}}.")
    table = as_table(given, names=parents, min_rows=0)
    if table.rows != n:
        raise ArgumentError(f"given must have one row for each of the {n} samples. Got {table.rows} rows.")
    return table.columns
