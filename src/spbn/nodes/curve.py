"""Curve: a smooth function of the parents, with noise around it.

    x = m(pa) + s(pa) · e

m is a ridge regression on a fixed basis (`numerics.smooth`), e a mixture of a normal and two t distributions,
one of which ignores the parents (`numerics.curves`), and s is constant unless it pays to let it be a curve
too. Penalties, widths and shapes are those that predict rows best that nothing was fitted to. All are found
from sums over rows: no training row is kept, and learning takes time in proportion to the rows.

Odd rows do not decide what is learned. Parents are held within some widths of their median, targets are
pulled to within some widths of the curve, which is then fitted again, and tails have the weight that they
need.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, equal_fields, frozen, remembered
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import FitError, quoted
from spbn.nodes.base import (
    CPD,
    Appearance,
    ComponentMixture,
    Description,
    FoldByFold,
    NodeType,
    ParameterTable,
)
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.numerics import curves
from spbn.numerics.gaussian import SINGULAR
from spbn.numerics.misfit import lead, misfit
from spbn.numerics.smooth import FEW_ROWS, Basis, RidgeFolds, add_folds, leave_one_out_totals
from spbn.numerics.spreads import FAR, Spreads
from spbn.numerics.student import Component, component_log_densities
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import Columns, FitSettings, RemoteRows, RowStore, SumRequest
from spbn.tables.reader import Missing, as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import GREATEST_SPREAD, Table

FOLDS = 10
FEWEST_ROWS = 10  # for a curve
FARTHEST = 6.0  # widths from the median, within which parents are held
BEYOND = 0.25  # widths that a curve goes on for beyond the last training row
PULLS = 2  # times that targets are pulled to the curve, and the curve is fitted again
CUT = 4.0  # standard deviations of the noise, to within which they are
#: The geometric mean of |e| in units of its standard deviation, if e is normal: exp(-(γ + log 2) / 2).
GEOMETRIC = math.exp(-0.5 * (np.euler_gamma + math.log(2.0)))
NINETIETH = 1.2816  # the 90 % quantile of a standard normal variable
LEAST_GAIN = 3.0  # nats, for which noise may depend on the parents
#: Weights of the normal distribution, the t distribution and tails that are tried.
SHAPES = frozen(
    np.array(
        [
            ((1 - t) * (1 - tail), t * (1 - tail), tail)
            for t in (0, 0.3, 0.7, 1)
            for tail in (1e-3, 0.01, 0.05)
        ]
    )
)
NOISE_SHAPES = frozen(np.array([curves.noise_shape(weights) for weights in SHAPES]))
KEPT_BYTES = 1 << 26  # of factors of Gram matrices, by parent set, and of fits, by family
MOST_TARGETS = 64  # of one parent set at a time


@final
@dataclass(frozen=True, repr=False, eq=False)
class Curve(ComponentMixture, CPD):
    """The density of a node that is a smooth function of its parents, with noise around it.

    Attributes
    ----------
    node, parents
        The family.
    transform
        Median and width of every parent, and the range of its standardised values: 4 × parents.
    is_rich
        Whether the curve is made of all functions of `spbn.numerics.smooth`, or of those for few rows.
    target
        Median and width of the node.
    coefficients
        Those of the curve, for the functions of `spbn.numerics.smooth`; the node is standardised.
    variances
        Those of the logarithm of the noise's variance; zeros if it is the same everywhere.
    noise
        The mean of the latter, the standard deviation of the noise and the width of tails.
    mixture
        The weights of normal noise, noise with heavier tails, and tails that ignore the parents.
    explained
        How much of the variance of the node the curve explains, out of sample.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(500, seed=0)
    >>> print(spbn.nodes.Curve.fit(data, "C", ["A", "B"]))
    C follows a smooth curve of A and B, which explains 99 % of its variance; noise ±1.03
    """

    node: str
    parents: tuple[str, ...]
    transform: FloatArray
    is_rich: bool
    target: FloatArray
    coefficients: FloatArray
    variances: FloatArray
    noise: FloatArray
    mixture: tuple[float, ...]
    explained: float

    __eq__ = equal_fields
    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @classmethod
    def fit(cls, data: Any, node: str, parents: Sequence[str] = (), *, missing: Missing = "error") -> Curve:
        """Fit a curve to all rows, with penalties and noise by cross-validation."""
        table = as_table(data, names=[*parents, node], missing=missing)
        _require_rows(node, table.rows)
        for name, column in zip(table.names, table.columns, strict=True):
            if not np.abs(column).max() <= GREATEST_SPREAD:
                raise FitError(f"the numbers of column {name!r} are too large to be squared: rescale it.")
        partition = Partition.folds(table, fold_labels(table.rows, min(FOLDS, table.rows), 0))
        return curve_scorer(MemoryRows(partition)).fit(tuple(range(len(table.names))))

    @property
    def type(self) -> NodeType:
        return NODE_TYPE

    @cached_property
    def basis(self) -> Basis:
        """The functions that the curve is made of."""
        return Basis(self.transform, self.is_rich)

    @cached_property
    def _arguments(self) -> tuple[Any, ...]:
        by_group = (self.coefficients, self.variances, self.noise)
        shared = (self.basis.arrays, frozen(self.target[:, None]), frozen(np.array(self.mixture)))
        return (*(frozen(values[None, :, None]) for values in by_group), *shared)

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        ends = np.array([0, columns.shape[1]])
        return curves.log_densities(frozen(columns), ends, *self._arguments)

    def mean(self, parents: FloatArray) -> FloatArray:
        """Return the curve for every row of the parents, which are parents × rows."""
        return self.target[0] + self.target[1] * (self.coefficients @ self.basis.features(parents))

    def spread(self, parents: FloatArray) -> FloatArray:
        """Return the standard deviation of normal noise around the curve, for every row of the parents."""
        logs = self.variances @ self.basis.features(parents) - self.noise[0]
        held = np.clip(logs, -curves.MOST_LOG_RATIO, curves.MOST_LOG_RATIO)
        return self.target[1] * self.noise[1] * np.exp(0.5 * held)

    @property
    def curve_share(self) -> float:
        return 1.0

    def smooth_mean(self, parents: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.mean(parents), self.spread(parents)

    def effects(self) -> dict[str, float]:
        """Return how much the curve changes as a parent goes from its 10 % to its 90 % quantile.

        The other parents stay at their medians, and the parent is taken to be normal.
        """
        found = {}
        for k, parent in enumerate(self.parents):
            ends = np.repeat(self.transform[0][:, None], 2, axis=1)
            ends[k] += self.transform[1][k] * np.array([-NINETIETH, NINETIETH])
            low, high = self.mean(ends).tolist()
            found[parent] = high - low
        return found

    def _components(self, parents: FloatArray) -> list[Component]:
        mean, spread = self.mean(parents), self.spread(parents)
        around, wide = np.full((2, len(mean)), [[self.target[0]], [self.target[1] * self.noise[2]]])
        return [
            Component(self.mixture[0], None, mean, spread),
            Component(self.mixture[1], 3.0, mean, curves.T_SCALE * spread),
            Component(self.mixture[2], 2.0, around, wide),
        ]

    def to_noise(self, columns: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Return how far every row is from the curve, in the width of its noise there.

        Of a row that tails explain better, return how far it is out in these: then the second number is 1.
        """
        parts = self._components(columns[:-1])
        near, wide, far = component_log_densities(parts, columns[-1])
        is_far = far > np.logaddexp(near, wide)
        centre = np.where(is_far, parts[2].centre, parts[0].centre)
        return np.stack([(columns[-1] - centre) / np.where(is_far, parts[2].width, parts[0].width), is_far])

    def from_noise(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        parts, is_far = self._components(parents), noise[1] == 1.0
        centre = np.where(is_far, parts[2].centre, parts[0].centre)
        return centre + np.where(is_far, parts[2].width, parts[0].width) * noise[0]

    def nearest_line(self) -> LinearGaussian | None:
        """Return the line that is nearest to the curve where its parents are normal."""
        if not self.parents:
            variance = float(self.spread(np.empty((0, 1)))[0] ** 2)
            return LinearGaussian(self.node, (), float(self.mean(np.empty((0, 1)))[0]), (), variance)
        points = np.random.default_rng(0).standard_normal((len(self.parents), 512))
        parents = self.transform[0][:, None] + self.transform[1][:, None] * points
        means = self.mean(parents)
        design = np.vstack([np.ones(points.shape[1]), points])
        solution = np.linalg.lstsq(design.T, means, rcond=None)[0]
        slopes = solution[1:] / self.transform[1]
        variance = float(np.mean((means - solution @ design) ** 2) + np.mean(self.spread(parents) ** 2))
        intercept = float(solution[0] - slopes @ self.transform[0])
        return LinearGaussian(self.node, self.parents, intercept, tuple(slopes.tolist()), variance)

    def pool(self, others: Sequence[Curve]) -> Curve:
        """Return the mean of several curves, with noise that is wider by as much as they differ."""
        if all(cpd == self for cpd in others):
            return self
        cpds = (self, *others)
        points = np.random.default_rng(0).standard_normal((len(self.parents), 20 * self.basis.size))
        parents = self.transform[0][:, None] + self.transform[1][:, None] * points
        means = np.stack([cpd.mean(parents) for cpd in cpds])
        logs = np.log(np.mean([cpd.spread(parents) ** 2 for cpd in cpds], axis=0) + means.var(axis=0))
        features = self.basis.features(parents)
        varies = any(cpd.variances.any() for cpd in cpds)
        standard = (means.mean(axis=0) - self.target[0]) / self.target[1]
        coefficients = _projected(features, standard)
        level = float(logs.mean())
        variances = _projected(features, logs - level) if varies else np.zeros_like(self.variances)
        width = math.exp(0.5 * level) / self.target[1]
        tails = np.mean([cpd.target[1] * cpd.noise[2] for cpd in cpds]) / self.target[1]
        return replace(
            self,
            coefficients=coefficients,
            variances=variances,
            noise=np.array([0.0, width, tails]),
            mixture=tuple(np.mean([cpd.mixture for cpd in cpds], axis=0).tolist()),
            explained=float(np.mean([cpd.explained for cpd in cpds])),
        )

    def describe(self) -> Description:
        """Say how much the curve explains, what each parent does, and how wide the noise is."""
        spread = self.target[1] * self.noise[1]
        noise = f"noise ±{spread:.3g}" + (" on average" if self.variances.any() else "")
        if not self.parents:
            formula = f"{self.node} ~ {self.target[0] + self.target[1] * self.coefficients[0]:.4g}, {noise}"
        else:
            names = " and ".join(
                [", ".join(self.parents[:-1]), self.parents[-1]] if self.parents[1:] else self.parents
            )
            formula = (
                f"{self.node} follows a smooth curve of {names}, which explains "
                f"{100 * max(self.explained, 0.0):.0f} % of its variance; {noise}"
            )
        legend = "Noise is given by its standard deviation"
        legend += ", which depends on the parents." if self.variances.any() else "."
        rows = ("normal noise", "noise with heavier tails", "tails that ignore the parents")
        weights = ParameterTable("noise", rows, ("weight",), tuple((weight,) for weight in self.mixture))
        if not self.parents:
            return Description(formula, legend=legend, tables=(weights,))
        changes = tuple((change,) for change in self.effects().values())
        effects = ParameterTable("effect of parents", self.parents, ("from 10 % to 90 %",), changes)
        return Description(formula, legend=legend, tables=(effects, weights))

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return {
            "transform": self.transform.tolist(),
            "rich": self.is_rich,
            "target": self.target.tolist(),
            "coefficients": [arrays.add(self.coefficients), arrays.add(self.variances)],
            "noise": self.noise.tolist(),
            "mixture": list(self.mixture),
            "explained": self.explained,
        }


def _require_rows(node: str, rows: int) -> None:
    if rows < FEWEST_ROWS:
        raise FitError(f"a curve needs at least {FEWEST_ROWS} rows. {node!r} has {rows}.")


def _projected(features: FloatArray, values: FloatArray) -> FloatArray:
    """Return the coefficients of the smooth function that is nearest to some values."""
    gram = features @ features.T
    ridge = 1e-9 * np.trace(gram) / len(gram)
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), features @ values)


class _Fit(NamedTuple):
    """Curves of several targets of the same parents, in a cross-validation."""

    basis: Basis
    targets: FloatArray  # centres and scales
    #: The curves and those of the logarithm of the noise's variance: folds and, last, all rows × functions ×
    #: targets.
    curves: FloatArray
    variances: FloatArray
    noise: FloatArray  # mean of the latter, standard deviation, and width of tails: the same × 3 × targets
    totals: FloatArray  # log-likelihoods of left-out rows under the best shape: folds × targets
    shapes: IntArray  # the number of that shape, by target
    explained: FloatArray  # share of the variance, by target

    def only(self, place: int) -> _Fit:
        """Return the fit of one target."""
        return _Fit(self.basis, *(values[..., place : place + 1].copy() for values in self[1:]))  # type: ignore[arg-type]  # all of them are arrays

    @property
    def bytes(self) -> int:
        return self.curves.nbytes + self.variances.nbytes + self.noise.nbytes

    def request(self, columns: Columns, place: int, folds: Sequence[int]) -> SumRequest:
        """Return what `curves.log_densities` needs of a target, fitted without folds; -1: to all rows."""
        of_folds = np.array(folds)
        arrays = (self.curves, self.variances, self.noise)
        by_group = tuple(values[of_folds, :, place : place + 1] for values in arrays)
        target = frozen(self.targets[:, place : place + 1])
        return SumRequest(columns, by_group, (self.basis.arrays, target, SHAPES[self.shapes[place]]))


@final
class CurveScorer:
    """Scores families of curves: all targets of the same parents share Gram matrices and their factors."""

    function = staticmethod(curves.log_densities)

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._from_rows = FoldByFold(NODE_TYPE, rows)
        self._prepared: OrderedDict[Columns, tuple[Basis, RidgeFolds]] = OrderedDict()
        #: Fits by family: that of a curve serves its score, its residuals and blends that it is part of.
        self._known: OrderedDict[Columns, _Fit] = OrderedDict()
        self._bytes = 0  # of these

    def totals(self, families: FamilyBatch) -> FloatArray:
        if not self._rows.is_crossed or self._rows.fitted_by is not self._rows:
            return self.rows(families).sum(axis=1)
        out = np.full(len(families), -np.inf)
        for chosen, found in self._fits(families.column_tuples):
            out[chosen] = add_folds(found.totals)
        return out

    def totals_and_misfits(self, families: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Return log-likelihoods, and how much residuals say that a better density might gain."""
        misfits = np.full(len(families), np.inf)
        if not self._rows.is_crossed:
            return self.totals(families), misfits
        totals, members = np.full(len(families), -np.inf), families.column_tuples
        for chosen, found in self._fits(members):
            totals[chosen] = add_folds(found.totals)
            parents, nodes = members[chosen[0]][:-1], [members[number][-1] for number in chosen]
            sums = self._residual_sums(curves.misfit_sums, found, (*parents, *nodes))
            for number, of_node, shape in zip(chosen, sums, found.shapes, strict=True):
                misfits[number] = misfit(of_node, len(parents), NOISE_SHAPES[shape])
        return totals, misfits

    def _residual_sums(
        self, function: Any, found: _Fit, columns: Columns, *further: FloatArray
    ) -> FloatArray:
        """Return sums over the residuals of curves in the folds that these were not fitted to."""
        by_fold = (found.curves[:-1], found.variances[:-1], found.noise[:-1])
        request = SumRequest(columns, by_fold, (found.basis.arrays, found.targets, *further))
        return add_folds(self._rows.sums(function, [request])[0])

    def leads(self, families: FamilyBatch) -> FloatArray:
        out = np.full((len(families), len(self._rows.variables)), np.inf)
        spreads, members = self._rows.spreads, families.column_tuples
        others = np.flatnonzero((spreads.scale > 0.0) & ~self._rows.discrete)
        widths = frozen(np.stack([spreads.centre[others], spreads.scale[others]]))
        for chosen, found in self._fits(members):
            parents, nodes = members[chosen[0]][:-1], [members[number][-1] for number in chosen]
            columns = (*parents, *nodes, *others.tolist())
            sums = self._residual_sums(curves.lead_sums, found, columns, widths)
            for number, of_node in zip(chosen, sums, strict=True):
                out[number, others] = [lead(of_column, len(parents)) for of_column in of_node]
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        if self._rows.inner_folds is None:
            return self._from_rows.rows(families)
        out = np.full((len(families), self._rows.pieces), -np.inf)
        for number, request in self.parameters(families.column_tuples):
            (out[number],) = self._rows.values(curves.log_densities, [request])
        return out

    def parameters(self, families: Sequence[Columns]) -> Iterator[tuple[int, SumRequest]]:
        """Yield the numbers of families, and what `curves.log_densities` needs for them."""
        fitted_by, folds = self._rows.fitted_by, self._rows.inner_folds
        assert fitted_by is not None
        assert folds is not None
        for chosen, found in curve_scorer(fitted_by)._fits(families):
            for place, number in enumerate(chosen):
                yield number, found.request(families[number], place, list(folds))

    def fit(self, columns: Columns) -> Curve:
        """Fit the density of the last of some columns given the others to all rows."""
        names = [self._rows.variables[column].name for column in columns]
        spreads, (*parents, node) = self._rows.spreads, names
        for name, column in zip(names, columns, strict=True):
            if not spreads.scale[column] > 0.0:
                raise FitError(f"column {name!r} is constant, which leaves nothing to fit: drop it.")
        _require_rows(node, int(self._rows.test.counts.sum()))
        for _, found in self._fits([columns]):
            return Curve(
                node=node,
                parents=tuple(parents),
                transform=found.basis.transform,
                is_rich=found.basis.is_rich,
                target=frozen(found.targets[:, 0]),
                coefficients=frozen(found.curves[-1, :, 0]),
                variances=frozen(found.variances[-1, :, 0]),
                noise=frozen(found.noise[-1, :, 0]),
                mixture=tuple(SHAPES[found.shapes[0]].tolist()),
                explained=float(found.explained[0]),
            )
        raise FitError(
            f"{node!r} is a function of its parents {quoted(parents)}, without noise: remove one of them."
        )

    def _fits(self, families: Sequence[Columns]) -> Iterator[tuple[list[int], _Fit]]:
        """Yield the numbers of families with the same parents that can be fitted, and their fits."""
        counts, spreads = self._rows.test.counts, self._rows.spreads
        if (
            len(counts) < 2
            or self._rows.train.counts.min() < FEWEST_ROWS - len(counts)
            or counts.sum() < FEWEST_ROWS
        ):
            return
        together: dict[Columns, list[int]] = {}
        for number, columns in enumerate(families):
            *parents, node = columns
            if columns in self._known:
                self._known.move_to_end(columns)
                yield [number], self._known[columns]
            elif all(spreads.scale[column] > 0.0 for column in (*parents, node)):
                together.setdefault(tuple(parents), []).append(number)
        for parents_of, every in together.items():
            for first in range(0, len(every), MOST_TARGETS):
                some = every[first : first + MOST_TARGETS]
                nodes = tuple(families[number][-1] for number in some)
                found = self._fit(parents_of, nodes)
                deviations, tails = found.noise[:, 1:].min(axis=0)
                usable = (deviations**2 > SINGULAR) & (tails > 0.0)
                if not usable.all():
                    some = [number for number, is_usable in zip(some, usable, strict=True) if is_usable]
                    if not some:
                        continue
                    found = self._fit(parents_of, tuple(families[number][-1] for number in some))
                for place, number in enumerate(some):
                    self._remember(families[number], found.only(place))
                yield some, found

    def _remember(self, columns: Columns, found: _Fit) -> None:
        if columns not in self._known:
            self._known[columns] = found
            self._bytes += found.bytes
            while self._bytes > KEPT_BYTES:
                self._bytes -= self._known.popitem(last=False)[1].bytes

    def _prepare(self, parents: Columns) -> tuple[Basis, RidgeFolds]:
        """Return the functions of some parents, and what all targets share."""

        def found() -> tuple[Basis, RidgeFolds]:
            counts = self._rows.test.counts
            basis = Basis(_transform(self._rows.spreads, parents), bool(counts.sum() >= FEW_ROWS))
            grams = counts.astype(np.float64)[:, None, None]  # of no functions but a constant
            if parents:
                request = SumRequest(parents, (), (basis.arrays, basis.size))
                (grams,) = self._rows.sums(curves.gram_sums, [request])
            return basis, RidgeFolds(grams, basis.penalties)

        size = 8 * Basis(np.zeros((4, len(parents))), True).size ** 2 * 7 * (len(self._rows.test.counts) + 1)
        return remembered(self._prepared, parents, found, limit=max(1, KEPT_BYTES // size))

    def _fit(self, parents: Columns, nodes: Columns) -> _Fit:
        """Fit the curves of some nodes with the same parents."""
        basis, ridge = self._prepare(parents)
        spreads, counts, n = self._rows.spreads, ridge.counts, ridge.counts.sum()
        targets = frozen(np.stack([spreads.centre[list(nodes)], spreads.scale[list(nodes)]]))

        def sums(function: Any, by_fold: Sequence[FloatArray], *shared: object) -> FloatArray:
            request = SumRequest((*parents, *nodes), tuple(by_fold), (basis.arrays, *shared))
            return self._rows.sums(function, [request])[0]

        right = sums(curves.right_sums, (), basis.size, targets)
        tails = _deviations(right[:, -1], counts)
        cuts = np.full(len(nodes), np.inf)
        for pull in range(PULLS + 1):
            curve = ridge.fit(right[:, :-1], right[:, -1])
            references = np.maximum(add_folds(curve.errors) / n, SINGULAR * 1e-3)
            slopes = [curve.coefficients[:-1]]
            found = sums(curves.residual_sums, slopes, targets, frozen(cuts), frozen(references))
            logs, squares, errors = found[:, :-2], found[:, -2], found[:, -1]
            geometric = np.sqrt(references) * np.exp(0.5 * add_folds(logs[:, 0]) / n) / GEOMETRIC
            if pull < PULLS:
                cuts = CUT * geometric
                right = sums(curves.pulled_sums, slopes, targets, frozen(cuts))
        deviations, level = _deviations(errors, counts), add_folds(logs[:, 0]) / n
        variances, gains = _variance(ridge, logs, squares, level)
        slopes.append(variances[:-1])
        if gains.any():
            scaled = sums(curves.scaled_sums, slopes, targets, frozen(cuts), frozen(level))
            deviations = np.where(gains, _deviations(scaled, counts), deviations)
        noise = np.stack([np.broadcast_to(level * gains, deviations.shape), deviations, tails], axis=1)
        found = sums(curves.likelihood_sums, [*slopes, noise[:-1]], targets, SHAPES)
        best = np.argmax(add_folds(found), axis=0)
        totals = found[:, best, np.arange(len(nodes))]
        totals -= self._rows.test.counts[:, None] * np.log(targets[1])
        spread = add_folds(right[:, -1]) / n - (add_folds(right[:, 0]) / n) ** 2
        explained = 1.0 - add_folds(errors) / n / np.maximum(spread, 1e-300)
        return _Fit(basis, targets, curve.coefficients, variances, noise, totals, best, explained)


def _variance(
    ridge: RidgeFolds, logs: FloatArray, squares: FloatArray, level: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit the logarithms of squared residuals; 0 for those that parents say too little about, else 1."""
    fit = ridge.fit(logs, squares)
    alone = add_folds(squares - 2.0 * level * logs[:, 0] + ridge.counts[:, None] * level**2)
    # The logarithm of a squared normal variable has the variance π² / 2.
    gain = (alone - add_folds(fit.errors)) / math.pi**2
    gains = (gain > LEAST_GAIN).astype(np.float64)
    return fit.coefficients * gains, gains


def _deviations(errors: FloatArray, counts: FloatArray) -> FloatArray:
    """Return standard deviations from squared errors: those of all other folds and, last, of all."""
    others = leave_one_out_totals(errors) / leave_one_out_totals(counts)[:, None]
    return np.sqrt(np.vstack([others, add_folds(errors) / counts.sum()]))


def _transform(spreads: Spreads, parents: Columns) -> FloatArray:
    chosen = list(parents)
    centre, scale = spreads.centre[chosen], spreads.scale[chosen]
    low, high = ((bound[chosen] - centre) / scale for bound in spreads.bounds(FAR))
    low, high = np.maximum(low - BEYOND, -FARTHEST), np.minimum(high + BEYOND, FARTHEST)
    return frozen(np.stack([centre, scale, low, high]))


@final
class CurveType(NodeType):
    """The node type of `Curve`."""

    name = "curve"
    appearance = Appearance(
        label="curve",
        short_label="Curve",
        sentence="A smooth curve of its parents, with noise around it.",
        colour="#f6e3bf",
        dark_colour="#5a4a26",
    )

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> Curve:
        return Curve.fit(table, node, parents)

    def fit_rows(self, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings) -> Curve:
        rows = rows.refolded(FOLDS)
        return curve_scorer(rows).fit(rows.columns((*parents, node)))

    def scorer(self, rows: RowStore) -> CurveScorer:
        """Score from sums over rows, which families share."""
        return CurveScorer(rows)

    def from_record(self, record: Mapping[str, Any], arrays: ArrayReader) -> Curve:
        node, parents = family_of(record)
        transform, target = numbers(record, "transform", (4, len(parents))), numbers(record, "target", (2,))
        noise, mixture = numbers(record, "noise", (3,)), numbers(record, "mixture", (3,))
        coefficients, variances = arrays.columns(record, "coefficients", 2)
        if not isinstance(record.get("rich"), bool):
            refuse(f"'rich' of {node!r} must be true or false. Got {record.get('rich')!r:.100}.")
        basis = Basis(transform, record["rich"])
        if len(coefficients) != basis.size:
            wanted = f"a curve of {len(parents)} parents has {basis.size} coefficients"
            refuse(f"{wanted}. {node!r} has {len(coefficients)}.")
        if not (transform[1] > 0.0).all() or not target[1] > 0.0 or not (noise[1:] > 0.0).all():
            refuse(f"the widths of {node!r} and its parents must be positive.")
        if (mixture < 0.0).any() or not mixture[2] > 0.0 or abs(mixture.sum() - 1.0) > 1e-9:
            refuse(f"the weights of {node!r} must be positive and sum to 1. Got {mixture.tolist()}.")
        return Curve(
            node=node,
            parents=parents,
            transform=frozen(transform),
            is_rich=record["rich"],
            target=frozen(target),
            coefficients=frozen(coefficients),
            variances=frozen(variances),
            noise=frozen(noise),
            mixture=tuple(mixture.tolist()),
            explained=float(numbers(record, "explained", ())),
        )


NODE_TYPE = CurveType()


def curve_scorer(rows: RowStore) -> CurveScorer:
    """Return the scorer of curves on some rows."""
    scorer = rows.scorer(NODE_TYPE)
    assert isinstance(scorer, CurveScorer)
    return scorer
