"""Exact answers where unknown nodes are discrete or linear Gaussian: a mixture of normal distributions.

Given the levels of unknown discrete nodes, linear Gaussian nodes have a joint normal distribution. Its
mean and covariance are built up in topological order; what is known is a condition on it. The answer is the
mixture over the configurations of the unknown discrete nodes, while these are few. A known node whose unknown
parents are all discrete may have any density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import product

import numpy as np

from spbn._base.arrays import LOG_2PI, FloatArray, IntArray
from spbn.inference.problem import EvidenceRows
from spbn.nodes.base import Linear

MOST_CONFIGURATIONS = 4_096
QUADRATURE = 100  # points at which a transformed normal variable is averaged


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """The distribution of some nodes given what is known: a mixture of normal distributions."""

    nodes: tuple[int, ...]  # places of the continuous nodes
    levels: tuple[int, ...]  # and of the discrete ones
    weights: FloatArray  # of the components
    means: FloatArray  # components × nodes
    covariances: FloatArray  # components × nodes × nodes
    codes: IntArray  # components × discrete nodes: their levels
    log_evidence: float  # the log-density of what is known

    @property
    def members(self) -> list[int]:
        """Places of all nodes, the continuous ones first."""
        return [*self.nodes, *self.levels]

    def covariance(self) -> FloatArray:
        deviations = self.means - self.weights @ self.means
        within = np.einsum("c,cij->ij", self.weights, self.covariances)
        between: FloatArray = np.einsum("c,ci,cj->ij", self.weights, deviations, deviations)
        return within + between

    def points(
        self, node: int, in_data_units: Callable[[FloatArray], FloatArray] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return values of one continuous node, and weights that give its mean.

        They are the means of the components; or, if values are to be transformed before they are averaged,
        points of a quadrature of every component.
        """
        k = self.nodes.index(node)
        means = self.means[:, k]
        if in_data_units is None:
            return means, self.weights
        deviations = np.sqrt(self.covariances[:, k, k])
        points, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
        values = in_data_units(means[:, None] + deviations[:, None] * points)
        return values.ravel(), np.outer(self.weights, weights / weights.sum()).ravel()

    def probabilities(self, node: int, levels: int) -> FloatArray:
        found = np.bincount(self.codes[:, self.levels.index(node)], weights=self.weights, minlength=levels)
        return found / found.sum()

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw values or level codes: members × n."""
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        values = np.empty((len(self.nodes), n))
        noise = rng.standard_normal((len(self.nodes), n))
        for c in np.unique(component):
            mine = component == c
            values[:, mine] = self.means[c][:, None] + _root(self.covariances[c]) @ noise[:, mine]
        return np.concatenate([values, self.codes[component].T])

    def cdf(self, node: int, x: FloatArray) -> FloatArray:
        """Return P(X ≤ x) of one continuous node."""
        from scipy.special import ndtr

        k = self.nodes.index(node)
        deviations = np.sqrt(self.covariances[:, k, k])
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (x[:, None] - self.means[:, k]) / deviations
        z = np.where(np.isnan(z), 0.0, z)
        found: FloatArray = ndtr(z) @ self.weights
        return found

    def quantile(self, node: int, q: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        k = self.nodes.index(node)
        means, deviations = self.means[:, k], np.sqrt(self.covariances[:, k, k])
        if len(self.weights) == 1:
            return means[0] + deviations[0] * ndtri(q)
        ends = means[:, None] + deviations[:, None] * ndtri(q)[None]
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(100):
            middle = 0.5 * (low + high)
            below = self.cdf(node, middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)


def is_solvable(cases: EvidenceRows, members: Sequence[int]) -> bool:
    """Tell whether a group of unknown nodes, with all that is known about it, can be answered exactly."""
    inside = set(members)
    for node in cases.regions:
        if inside & {cases.place[node], *cases.parents[cases.place[node]]}:
            return False
    simple = all(_is_simple(cases, k) for k in _involved(cases, members) if not _is_weight(cases, k, inside))
    return simple and _configurations(cases, members) <= MOST_CONFIGURATIONS


def with_unobserved_descendants(cases: EvidenceRows, members: Sequence[int]) -> tuple[int, ...]:
    """Add unknown nodes of which nothing depends that is known, as long as the answer stays exact."""
    unknown, relevant = cases.unknown[0], cases.relevant[0]
    chosen = set(members)
    for k in range(len(cases.nodes)):
        above = all(parent in chosen or not unknown[parent] for parent in cases.parents[k])
        if not unknown[k] or relevant[k] or not above or not _is_simple(cases, k):
            continue
        if _configurations(cases, [*chosen, k]) <= MOST_CONFIGURATIONS:
            chosen.add(k)
    return tuple(sorted(chosen))


def solve(cases: EvidenceRows, members: Sequence[int]) -> list[NormalMixture]:
    """Return the distribution of unknown nodes, `members`, in every case; all have the same ones unknown."""
    discrete = tuple(k for k in members if cases.variables[k].is_discrete)
    continuous = tuple(k for k in members if not cases.variables[k].is_discrete)
    known = [k for k in _involved(cases, members) if k not in members]
    weighing = [k for k in known if _is_weight(cases, k, set(members))]
    normal = [k for k in known if k not in weighing]
    configurations = list(product(*(range(len(cases.variables[k].levels)) for k in discrete)))
    shape = (cases.number, len(configurations), len(continuous))
    log_weights, means, covariances = np.zeros(shape[1::-1]), np.empty(shape), np.empty((*shape, shape[2]))
    for c, levels in enumerate(configurations):
        values = cases.known.copy()
        values[:, list(discrete)] = levels
        for k in (*discrete, *weighing):
            log_weights[c] += cases.log_density(k, values.T)
        for rows, lines in _lines(cases, sorted((*continuous, *normal)), values):
            log_density, mean, covariances[rows, c] = _condition(lines, continuous, normal, values[rows])
            log_weights[c, rows] += log_density
            means[rows, c] = mean.T
    totals = np.logaddexp.reduce(log_weights, axis=0)
    with np.errstate(invalid="ignore"):
        weights = np.ascontiguousarray(np.exp(log_weights - totals).T)
    codes = np.array(configurations, dtype=np.int64).reshape(len(configurations), len(discrete))
    return [
        NormalMixture(continuous, discrete, weights[i], means[i], covariances[i], codes, float(totals[i]))
        for i in range(cases.number)
    ]


def _condition(
    lines: dict[int, tuple[Linear, tuple[int, ...]]],
    unknown: Sequence[int],
    known: Sequence[int],
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Condition normal nodes on known ones, with one line for every node: the same in all cases.

    Returns
    -------
    The log-density of the known nodes, the mean of the unknown ones (nodes × cases) and their covariance.
    """
    order = list(lines)
    at = {k: i for i, k in enumerate(order)}
    inside = set(unknown)
    mean, covariance = np.zeros((len(order), len(values))), np.zeros((len(order), len(order)))
    # Node by node: a parent that is unknown is already among them, and any other is a number.
    for i, k in enumerate(order):
        line, parents = lines[k]
        mean[i] = line.intercept
        for slope, parent in zip(line.coefficients, parents, strict=True):
            if parent in inside:
                mean[i] += slope * mean[at[parent]]
                covariance[i, :i] += slope * covariance[at[parent], :i]
            else:
                mean[i] += slope * values[:, parent]
        covariance[:i, i] = covariance[i, :i]
        covariance[i, i] = line.variance
        for slope, parent in zip(line.coefficients, parents, strict=True):
            if parent in inside:
                covariance[i, i] += slope * covariance[i, at[parent]]
    a, b = [at[k] for k in unknown], [at[k] for k in known]
    if not b:
        return np.zeros(len(values)), mean[a], covariance[np.ix_(a, a)]
    residuals = values[:, list(known)].T - mean[b]
    root = np.linalg.cholesky(covariance[np.ix_(b, b)])
    whitened = np.linalg.solve(root, residuals)
    across = np.linalg.solve(root, covariance[np.ix_(b, a)])
    with np.errstate(over="ignore"):  # an absurd value has no density
        squares = (whitened**2).sum(axis=0)
    log_density = -0.5 * squares - np.log(np.diag(root)).sum() - 0.5 * len(b) * LOG_2PI
    return log_density, mean[a] + across.T @ whitened, covariance[np.ix_(a, a)] - across.T @ across


def _lines(
    cases: EvidenceRows, nodes: Sequence[int], values: FloatArray
) -> Iterator[tuple[IntArray, dict[int, tuple[Linear, tuple[int, ...]]]]]:
    """Yield cases with the same configurations of discrete parents, and the lines of all nodes there."""
    given = sorted({p for k in nodes for p in cases.parents[k] if cases.variables[p].is_discrete})
    _, which = np.unique(values[:, given], axis=0, return_inverse=True)
    for number in range(int(which.max()) + 1):
        rows = np.flatnonzero(which.ravel() == number)
        lines = {}
        for k in nodes:
            table = cases.table(cases.parents[k], values[rows[:1]].T)
            line = cases.cpd(cases.nodes[k]).case(table).as_linear()
            assert line is not None  # or it would not be solvable
            lines[k] = line, tuple(cases.place[parent] for parent in line.parents)
        yield rows, lines


def _involved(cases: EvidenceRows, members: Sequence[int]) -> list[int]:
    """Return unknown nodes and the known ones that depend on them directly."""
    inside = set(members)
    known = [
        k
        for k in range(len(cases.nodes))
        if not cases.unknown[0, k] and cases.nodes[k] not in cases.fixed and inside & set(cases.parents[k])
    ]
    return sorted({*members, *known})


def _is_weight(cases: EvidenceRows, k: int, members: Set[int]) -> bool:
    """Tell whether a node is known, and a number given the levels of unknown nodes, `members`."""
    parents = members & set(cases.parents[k])
    return k not in members and all(cases.variables[parent].is_discrete for parent in parents)


def _is_simple(cases: EvidenceRows, k: int) -> bool:
    cpd = cases.cpd(cases.nodes[k])
    if cases.variables[k].is_discrete:
        return cpd.as_probability_table() is not None
    return all(case.as_linear() is not None for case in cpd.cases)


def _configurations(cases: EvidenceRows, members: Sequence[int]) -> int:
    return math.prod(max(1, len(cases.variables[k].levels)) for k in members)


def _root(covariance: FloatArray) -> FloatArray:
    """Return a matrix whose product with its transpose is a covariance matrix, perhaps a singular one."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
