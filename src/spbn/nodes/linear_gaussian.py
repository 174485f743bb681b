"""Linear Gaussian: a linear regression on the parents, with normal noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray, Seed, generator
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import ArgumentError, FitError, quoted
from spbn.nodes.base import Description, NodeType, parent_columns
from spbn.nodes.regions import Region, require_interval
from spbn.nodes.scorers import LinearScorer
from spbn.numerics.gaussian import SINGULAR, draw_between, log_mass_between
from spbn.rows.store import FitSettings, RowStore
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table


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

    Examples
    --------
    >>> import spbn
    >>> node = spbn.nodes.LinearGaussian("y", ["x"], 1.0, [2.0], 0.25)
    >>> print(node)
    y = 1 + 2·x + N(0, 0.25)
    >>> node.logpdf({"x": [0.0, 1.0], "y": [1.0, 3.0]}).round(3)
    array([-0.226, -0.226])
    """

    node: str
    parents: tuple[str, ...]
    intercept: float
    coefficients: tuple[float, ...]
    variance: float

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(self.parents):
            raise ArgumentError(
                f"{self.node!r} needs a coefficient for each of its {len(self.parents)} parents."
            )
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
        return self.logpdf_of(as_table(data, names=[*self.parents, self.node]).columns)

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        z = self._standardised(columns)
        return -0.5 * (z * z + math.log(2.0 * math.pi * self.variance))

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        from scipy.special import ndtr

        return ndtr(self._standardised(as_table(data, names=[*self.parents, self.node]).columns))

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, a row for each."""
        mean = self._mean(parent_columns(self.node, self.parents, n, given))
        return mean + math.sqrt(self.variance) * generator(seed).standard_normal(n)

    @property
    def type(self) -> NodeType:
        """The type of the node."""
        return NODE_TYPE

    @property
    def kept_rows(self) -> None:
        """No training rows are kept."""
        return None

    def describe(self) -> Description:
        """Return the equation."""
        terms = [f"{self.intercept:.4g}"]
        for coefficient, parent in zip(self.coefficients, self.parents, strict=True):
            terms.append(f"{'-' if coefficient < 0 else '+'} {abs(coefficient):.4g}·{parent}")
        return Description(
            f"{self.node} = {' '.join(terms)} + N(0, {self.variance:.4g})",
            legend="N(0, v) is normal noise with variance v.",
        )

    def ends(self, region: Region, parents: Table) -> tuple[FloatArray, FloatArray]:
        """Return the ends of an interval in standard deviations from the mean, for every row."""
        interval, mean = require_interval(region), self._mean(parents.select(self.parents).columns)
        deviation = math.sqrt(self.variance)
        return (interval.low - mean) / deviation, (interval.high - mean) / deviation

    def _standardised(self, columns: FloatArray) -> FloatArray:
        return (columns[-1] - self._mean(columns[:-1])) / math.sqrt(self.variance)

    def _mean(self, parents: FloatArray) -> FloatArray:
        return self.intercept + self._slopes @ parents

    @cached_property
    def _slopes(self) -> FloatArray:
        return np.array(self.coefficients, dtype=np.float64)

    def __repr__(self) -> str:
        return self.describe().formula


@final
class LinearGaussianType(NodeType):
    """The node type of `LinearGaussian`."""

    name = "lg"
    label = "linear Gaussian"
    short_label = "LG"
    sentence = "A straight-line relation to its parents with normal noise."
    colour = "#ffffff"
    dark_colour = "#1a1e22"
    is_quick = True
    alternative = "ckde"

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> LinearGaussian:
        """Estimate by ordinary least squares."""
        return LinearGaussian.fit(table, node, parents)

    def scorer(self, rows: RowStore) -> LinearScorer:
        """Score from moments alone wherever they have the digits for it."""
        return LinearScorer(self, rows)

    def log_mass(self, cpd: LinearGaussian, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, however far out that is."""
        return log_mass_between(*cpd.ends(region, parents))

    def draw_within(
        self, cpd: LinearGaussian, region: Region, parents: Table, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        drawn = draw_between(*cpd.ends(region, parents), rng.random(parents.rows))
        mean = cpd._mean(parents.select(cpd.parents).columns)
        interval = require_interval(region)
        return np.clip(mean + math.sqrt(cpd.variance) * drawn, interval.low, interval.high)

    def pooled(self, cpds: Sequence[LinearGaussian]) -> LinearGaussian:
        """Return the mean line, with the mean variance around the single lines."""
        return replace(
            cpds[0],
            intercept=float(np.mean([cpd.intercept for cpd in cpds])),
            coefficients=tuple(np.mean([cpd.coefficients for cpd in cpds], axis=0).tolist()),
            variance=float(np.mean([cpd.variance for cpd in cpds])),
        )

    def write(self, cpd: LinearGaussian, arrays: ArrayWriter) -> dict[str, Any]:
        """Write the parameters."""
        return {
            "intercept": cpd.intercept,
            "coefficients": list(cpd.coefficients),
            "variance": cpd.variance,
        }

    def read(self, record: Mapping[str, Any], arrays: ArrayReader) -> LinearGaussian:
        """Read the parameters."""
        node, parents = family_of(record)
        coefficients = numbers(record, "coefficients", (len(parents),))
        intercept, variance = numbers(record, "intercept", ()), numbers(record, "variance", ())
        if not variance > 0:
            refuse(f"the variance of {node!r} must be positive. Got {variance}.")
        return LinearGaussian(node, parents, float(intercept), tuple(coefficients.tolist()), float(variance))


NODE_TYPE = LinearGaussianType()


def _require_spread(table: Table) -> None:
    for name, column in zip(table.names, table.columns, strict=True):
        if column.min() == column.max():
            raise FitError(f"column {name!r} is constant, which leaves nothing to fit: drop it.")
