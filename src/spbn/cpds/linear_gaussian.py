"""Linear Gaussian: a linear regression on the parents, with normal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn.cholesky import SINGULAR
from spbn.cpds.base import parent_columns
from spbn.data import FloatArray, Missing, Seed, Table, as_table, generator, quoted
from spbn.errors import ArgumentError, FitError


@dataclass(frozen=True, repr=False)
class LinearGaussian:
    """The density of a node that is a linear function of its parents and normal noise.

    f(x | pa) = N(x; b_0 + Σ b_k pa_k, σ²)

    Attributes
    ----------
    node, parents
        The family.
    intercept, coefficients
        b_0, and b_k in the order of the parents.
    variance
        σ² = RSS / (N - |parents| - 1).
    """

    node: str
    parents: tuple[str, ...]
    intercept: float
    coefficients: tuple[float, ...]
    variance: float

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(self.parents):
            raise ArgumentError(f"{self.node!r} needs a coefficient for each of {len(self.parents)} parents.")
        if not 0.0 < self.variance < math.inf:
            raise FitError(
                f"the variance of {self.node!r} must be positive and finite. Got {self.variance}: "
                f"rescale the column if its numbers are that large or small."
            )

    @classmethod
    def fit(
        cls, data: Any, node: str, parents: Sequence[str] = (), *, missing: Missing = "error"
    ) -> LinearGaussian:
        """Estimate by ordinary least squares."""
        table = as_table(data, names=[node, *parents], missing=missing)
        if table.rows < len(parents) + 2:
            raise FitError(
                f"{node!r} with {len(parents)} parents needs at least {len(parents) + 2} rows. "
                f"Got {table.rows}."
            )
        _require_spread(table)
        means = table.columns.mean(axis=1)
        deviations = table.columns - means[:, None]
        # The greatest deviation first, so that squares neither overflow nor vanish.
        greatest = np.abs(deviations).max(axis=1)
        scale = greatest * np.sqrt(np.mean((deviations / greatest[:, None]) ** 2, axis=1))
        x, y = (deviations[1:] / scale[1:, None]).T, deviations[0] / scale[0]
        solution, _, rank, _ = np.linalg.lstsq(x, y, rcond=math.sqrt(SINGULAR))
        if rank < len(parents):
            raise FitError(
                f"the parents of {node!r} are linearly dependent ({quoted(parents)}): remove one of them."
            )
        residual = float(np.sum((y - x @ solution) ** 2))
        if residual <= SINGULAR * table.rows:
            raise FitError(
                f"{node!r} is a linear combination of its parents {quoted(parents)}: remove one of them."
            )
        coefficients = solution * scale[0] / scale[1:]
        return cls(
            node=node,
            parents=tuple(parents),
            intercept=float(means[0] - coefficients @ means[1:]),
            coefficients=tuple(coefficients.tolist()),
            variance=float(residual * scale[0] ** 2 / (table.rows - len(parents) - 1)),
        )

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        z = self._standardised(as_table(data, names=[self.node, *self.parents]))
        return -0.5 * (z * z + math.log(2.0 * math.pi * self.variance))

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        from scipy.special import ndtr

        return ndtr(self._standardised(as_table(data, names=[self.node, *self.parents])))

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, a row for each."""
        mean = self._mean(parent_columns(self.node, self.parents, n, given))
        return mean + math.sqrt(self.variance) * generator(seed).standard_normal(n)

    def _standardised(self, table: Table) -> FloatArray:
        return (table.columns[0] - self._mean(table.columns[1:])) / math.sqrt(self.variance)

    def _mean(self, parents: FloatArray) -> FloatArray:
        return self.intercept + np.asarray(self.coefficients) @ parents

    def __repr__(self) -> str:
        terms = [f"{self.intercept:.4g}"]
        for coefficient, parent in zip(self.coefficients, self.parents, strict=True):
            terms.append(f"{'-' if coefficient < 0 else '+'} {abs(coefficient):.4g}·{parent}")
        return f"{self.node} = {' '.join(terms)} + N(0, {self.variance:.4g})"


def _require_spread(table: Table) -> None:
    for name, column in zip(table.names, table.columns, strict=True):
        if column.min() == column.max():
            raise FitError(f"column {name!r} is constant, which leaves nothing to fit: drop it.")
