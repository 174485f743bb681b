"""Linear Gaussian: a linear regression on the parents, with normal noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray, frozen
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import ArgumentError, FitError, quoted
from spbn.nodes.base import CPD, Appearance, Description, FoldByFold, NodeType, Region, require_interval
from spbn.numerics import misfit
from spbn.numerics.gaussian import SINGULAR, draw_between, log_mass_between
from spbn.numerics.moments import ILL_CONDITIONED, Moments, log_likelihoods_with, residual_directions
from spbn.rows.families import FamilyBatch
from spbn.rows.store import FitSettings, RemoteRows, RowStore, SumRequest
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table

AT_A_TIME = 128  # families whose residuals one thread looks at together ...
PARTS = 8  # ... and how many times as many are under way


@dataclass(frozen=True, repr=False)
class LinearGaussian(CPD):
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
        for name, column in zip(table.names, table.columns, strict=True):
            if column.min() == column.max():
                raise FitError(f"column {name!r} is constant, which leaves nothing to fit: drop it.")
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

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        z = self._standardised(columns)
        return -0.5 * (z * z + math.log(2.0 * math.pi * self.variance))

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        from scipy.special import ndtr

        return ndtr(self._standardised(columns))

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        return self._mean(parents) + math.sqrt(self.variance) * rng.standard_normal(parents.shape[1])

    def to_noise(self, columns: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Return how many standard deviations every row is from the line."""
        return self._standardised(columns)[None]

    def from_noise(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        return self._mean(parents) + math.sqrt(self.variance) * noise[0]

    @property
    def type(self) -> NodeType:
        return NODE_TYPE

    def as_linear(self) -> LinearGaussian:
        return self

    def describe(self) -> Description:
        terms = [f"{self.intercept:.4g}"]
        for coefficient, parent in zip(self.coefficients, self.parents, strict=True):
            terms.append(f"{'-' if coefficient < 0 else '+'} {abs(coefficient):.4g}·{parent}")
        return Description(
            f"{self.node} = {' '.join(terms)} + N(0, {self.variance:.4g})",
            legend="N(0, v) is normal noise with variance v.",
        )

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        return log_mass_between(*self._ends(region, parents))

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        drawn = draw_between(*self._ends(region, parents), rng.random(parents.rows))
        mean = self._mean(parents.select(self.parents).columns)
        interval = require_interval(region)
        return np.clip(mean + math.sqrt(self.variance) * drawn, interval.low, interval.high)

    def pool(self, others: Sequence[LinearGaussian]) -> LinearGaussian:
        """Return the mean line, with the mean variance around the single lines."""
        cpds = (self, *others)
        return replace(
            self,
            intercept=float(np.mean([cpd.intercept for cpd in cpds])),
            coefficients=tuple(np.mean([cpd.coefficients for cpd in cpds], axis=0).tolist()),
            variance=float(np.mean([cpd.variance for cpd in cpds])),
        )

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return {
            "intercept": self.intercept,
            "coefficients": list(self.coefficients),
            "variance": self.variance,
        }

    def _ends(self, region: Region, parents: Table) -> tuple[FloatArray, FloatArray]:
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


@final
class LinearScorer:
    """Scores linear Gaussian families from moments, or from the rows where moments lack digits."""

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._from_rows = FoldByFold(NODE_TYPE, rows, centred=True)

    def totals(self, families: FamilyBatch) -> FloatArray:
        totals, inexact = self._rows.linear_totals(families)
        if inexact.any():
            totals[inexact] = self._from_rows.totals(families.only(inexact))
        return totals

    def further(self, families: FamilyBatch) -> FloatArray:
        """Families × columns: log-likelihoods with each column as one more parent."""
        totals, shares = log_likelihoods_with(
            self._rows.train, self._rows.test, families.members, families.sizes
        )
        inexact = np.argwhere((shares < ILL_CONDITIONED) & (totals > -np.inf))
        if len(inexact):
            with_others = families.only(inexact[:, 0])
            with_others.parents[np.arange(len(inexact)), inexact[:, 1]] = True
            totals[tuple(inexact.T)] = self._from_rows.totals(with_others)
        return totals

    def totals_and_misfits(self, families: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Return log-likelihoods, and how much residuals say that a better density might gain."""
        totals, misfits = self.totals(families), np.full(len(families), np.inf)
        moments, (centre, scale, *_) = self._moments, self._rows.spreads
        members, sizes = families.members, families.sizes
        directions = misfit.line_directions(moments.count, moments.scatter, members, sizes)
        vary = ((scale[members] > 0.0) | (members < 0)).all(axis=1)
        known = np.flatnonzero(vary & np.isfinite(directions).all(axis=1))
        spreads = frozen(np.stack([centre, np.where(scale > 0.0, scale, 1.0)]))
        mean, columns = frozen(moments.mean), tuple(range(len(centre)))
        # Families of the same size together, and few at a time: all of their sums are held at once.
        known = known[np.argsort(sizes[known], kind="stable")]
        at_a_time = max(AT_A_TIME, len(centre))  # every part goes over all columns once
        step = at_a_time * PARTS
        for first in range(0, len(known), step):
            some = known[first : first + step]
            parts = np.array_split(some, -(-len(some) // at_a_time))
            requests = [
                SumRequest(
                    columns,
                    (),
                    (*(frozen(each[part]) for each in (members, sizes, directions)), mean, spreads),
                )
                for part in parts
            ]
            for part, sums in zip(parts, self._rows.sums(misfit.line_sums, requests), strict=True):
                for number, of_family in zip(part.tolist(), sums.sum(axis=0), strict=True):
                    misfits[number] = misfit.misfit(of_family, sizes[number] - 1, misfit.NORMAL_SHAPE)
        return totals, misfits

    @cached_property
    def _moments(self) -> Moments:
        """The moments of all rows, as they were given."""
        centres = frozen(self._rows.spreads.centre)
        request = SumRequest(tuple(range(len(centres))), (), (centres,))
        (sums,) = self._rows.sums(misfit.column_sums, [request])
        groups = zip(*self._rows.test, strict=True)
        pooled = reduce(add, (Moments(int(count), mean, scatter) for count, mean, scatter in groups))
        return Moments(pooled.count, centres + sums.sum(axis=0) / pooled.count, pooled.scatter)

    def rows(self, families: FamilyBatch) -> FloatArray:
        out = np.empty((len(families), self._rows.pieces))
        for f, columns in enumerate(families.each):
            values = self._rows.linear_values(columns)
            out[f] = self._from_rows.rows(families.only(np.array([f])))[0] if values is None else values
        return out


@final
class LinearGaussianType(NodeType):
    """The node type of `LinearGaussian`."""

    name = "lg"
    appearance = Appearance(
        label="linear Gaussian",
        short_label="LG",
        sentence="A straight-line relation to its parents with normal noise.",
        colour="#ffffff",
        dark_colour="#1a1e22",
    )
    is_quick = True
    alternative = "ckde"

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> LinearGaussian:
        return LinearGaussian.fit(table, node, parents)

    def fit_weighted(
        self, table: Table, node: str, parents: Sequence[str], weights: FloatArray, settings: FitSettings
    ) -> LinearGaussian:
        """Estimate by weighted least squares; σ² is the mean square of residuals, which makes EM exact."""
        columns, total = table.select([*parents, node]).columns, float(weights.sum())
        if total < len(parents) + 2:
            raise FitError(f"{node!r} with {len(parents)} parents needs a weight of {len(parents) + 2} rows.")
        means = columns @ weights / total
        deviations = np.sqrt(weights) * (columns - means[:, None])
        scale = np.sqrt(np.mean(deviations**2, axis=1))
        if not (scale > 0.0).all():
            raise FitError(f"{node!r} or one of its parents is constant where rows have a weight.")
        x, y = (deviations[:-1] / scale[:-1, None]).T, deviations[-1] / scale[-1]
        solution, _, rank, _ = np.linalg.lstsq(x, y, rcond=math.sqrt(SINGULAR))
        residual = float(np.sum((y - x @ solution) ** 2))
        if rank < len(parents) or residual <= SINGULAR * table.rows:
            raise FitError(f"{node!r} and its parents {quoted(parents)} are linearly dependent.")
        coefficients = solution * scale[-1] / scale[:-1]
        intercept = float(means[-1] - coefficients @ means[:-1])
        variance = residual * float(scale[-1]) ** 2 / total
        return LinearGaussian(node, tuple(parents), intercept, tuple(coefficients.tolist()), variance)

    def fit_rows(
        self, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
    ) -> LinearGaussian:
        moments, places = rows.moments, np.array(rows.columns((*parents, node)))
        directions, variances, share = residual_directions(
            np.array([moments.count]), moments.scatter[None], places
        )
        if share == 0.0:
            raise FitError(
                f"the parents of {node!r} are linearly dependent, or determine it ({quoted(parents)}): "
                f"remove one of them."
            )
        coefficients, means = -directions[0, :-1], moments.mean[places]
        return LinearGaussian(
            node,
            tuple(parents),
            float(means[-1] - coefficients @ means[:-1]),
            tuple(coefficients.tolist()),
            float(variances[0]),
        )

    def scorer(self, rows: RowStore) -> LinearScorer:
        """Score from moments alone wherever they have the digits for it."""
        return LinearScorer(rows)

    def from_record(self, record: Mapping[str, Any], arrays: ArrayReader) -> LinearGaussian:
        node, parents = family_of(record)
        coefficients = numbers(record, "coefficients", (len(parents),))
        intercept, variance = numbers(record, "intercept", ()), numbers(record, "variance", ())
        if not variance > 0:
            refuse(f"the variance of {node!r} must be positive. Got {variance}.")
        return LinearGaussian(node, parents, float(intercept), tuple(coefficients.tolist()), float(variance))


NODE_TYPE = LinearGaussianType()
