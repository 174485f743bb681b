"""Exact answers: sums over the levels of discrete nodes, and normal distributions given these levels.

Given the levels of their unknown discrete parents, linear Gaussian nodes have a joint normal distribution. So
continuous nodes are eliminated first: each `Block` of them becomes a table over the levels that it depends
on, with the density of what is known there. What a node with a known value says about discrete parents is a
table, too, whatever its density, and so is the probability of a region. Tables are multiplied and summed by
`Elimination`. Nodes that have no say in what is asked are cut before.

An answer is exact or not for every node by itself: where a table or a mixture of normal distributions would
be too large, or where a node is no line, a `Plan` leaves nodes to simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import LOG_2PI, FloatArray, IntArray
from spbn.inference.elimination import Elimination, Order, Scope
from spbn.inference.problem import EvidenceRows
from spbn.nodes.base import Interval, Region
from spbn.tables.table import Table

MOST_CONFIGURATIONS = 4_096  # of the levels that a mixture of normal distributions depends on
MOST_CELLS = 1 << 23  # of all tables together, and of the matrices of a mixture
QUADRATURE = 100  # points at which a transformed normal variable is averaged


@dataclass(frozen=True)
class Block:
    """Unknown continuous nodes that are jointly normal given the levels of some discrete ones."""

    nodes: frozenset[int]
    lines: frozenset[int]  # these, and known nodes that depend on them
    scope: frozenset[int]  # the unknown discrete nodes that any of them depends on


@dataclass(frozen=True)
class Plan:
    """What is answered exactly, and from which tables."""

    solved: frozenset[int]  # unknown nodes
    tables: tuple[tuple[int, Scope], ...]  # nodes whose densities are tables over the levels of others
    blocks: tuple[Block, ...]
    order: Order  # of the tables of these nodes and then of the blocks
    cost: int  # cells, for every case


def is_solvable(cases: EvidenceRows, members: Iterable[int]) -> bool:
    """Tell whether a group of unknown nodes, with all that is known about it, has an exact answer."""
    inside = set(members)
    families = [
        k for k in np.flatnonzero(cases.ever_relevant).tolist() if inside & set(_hidden(cases, k, inside))
    ]
    return all(_is_simple(cases, k, inside) for k in families)


def plan(cases: EvidenceRows, members: Iterable[int], below: Collection[int] = ()) -> Plan | None:
    """Plan the exact answer for unknown nodes, which has to be `is_solvable`; None if it would be too large.

    Unobserved nodes without observed descendants are solved as well, where that is possible: those that
    `below` names, and their ancestors.
    """
    solved, blocks, wanted = set(members), list[Block](), set(below)
    in_order = range(len(cases.nodes))
    for k in reversed(in_order):
        wanted.update(cases.parents[k] if k in wanted else ())
    for k in in_order:
        if cases.ever_relevant[k] and solved & _numbers(cases, k, solved):
            blocks = _with(cases, blocks, k, _hidden(cases, k, {k}))
    if not all(_fits(cases, block) for block in blocks):
        return None
    for k in in_order:
        is_below = cases.ever_unknown[k] and (cases.ends[0, k] or not cases.ever_relevant[k])
        if is_below and k in wanted and _hidden(cases, k, {k}) <= {*solved, k} and _is_simple(cases, k, {k}):
            is_table = cases.variables[k].is_discrete
            more = blocks if is_table else _with(cases, blocks, k, _hidden(cases, k, {k}))
            if more is blocks or _fits(cases, more[-1]):
                solved.add(k)
                blocks = more
    tables = []
    for k in in_order:
        hidden = _hidden(cases, k, solved)
        if (k in solved or cases.ever_relevant[k]) and hidden <= solved and not _numbers(cases, k, solved):
            tables.append((k, tuple(sorted(hidden))))
    scopes = [*(scope for _, scope in tables), *(tuple(sorted(block.scope)) for block in blocks)]
    sizes = {k: len(cases.variables[k].levels) for k in set[int]().union(*scopes)}
    order = Order.of(scopes, sizes)
    arguments = sum(math.prod(sizes[k] for k in scope) * (len(cases.parents[k]) + 1) for k, scope in tables)
    if max(order.cells, arguments) > MOST_CELLS:
        return None
    cost = order.cells + arguments + sum(_size(cases, block) for block in blocks)
    return Plan(frozenset(solved), tuple(tables), tuple(blocks), order, cost)


def blocks_given_the_rest(cases: EvidenceRows, members: Iterable[int]) -> list[Block]:
    """Return the members that are jointly normal once all others are known: lines that only lines depend on.

    What is known of the members has to be the same in all cases.
    """
    relevant = set(np.flatnonzero(cases.ever_relevant).tolist())
    lines = {k for k in relevant if _is_line(cases, k)}
    inside = {k for k in members if k in lines and relevant.intersection(cases.children[k]) <= lines}
    blocks = list[Block]()
    for k in sorted(lines):
        if hidden := inside.intersection((*cases.parents[k], k)):
            blocks = _with(cases, blocks, k, hidden)
    configurations = [
        math.prod(len(cases.cpd(cases.nodes[k]).cases) for k in block.lines) for block in blocks
    ]
    return [
        block
        for block, number in zip(blocks, configurations, strict=True)
        if number * len(block.lines) ** 2 <= MOST_CELLS
    ]


def _hidden(cases: EvidenceRows, k: int, solved: Set[int]) -> set[int]:
    """Return the unknown members of a node's family, without itself where only its region counts."""
    is_end = cases.ends[0, k] and k not in solved
    return {m for m in (*cases.parents[k], k) if cases.ever_unknown[m] and not (is_end and m == k)}


def _numbers(cases: EvidenceRows, k: int, solved: Set[int]) -> set[int]:
    return {m for m in _hidden(cases, k, solved) if not cases.variables[m].is_discrete}


def _is_simple(cases: EvidenceRows, k: int, solved: Set[int]) -> bool:
    """Tell whether a node is a table or a line, given the unknown parents that it has."""
    return not _numbers(cases, k, solved) or _is_line(cases, k)


def _is_line(cases: EvidenceRows, k: int) -> bool:
    node = cases.nodes[k]
    is_free = not cases.variables[k].is_discrete and node not in cases.regions
    return is_free and all(case.as_linear() is not None for case in cases.cpd(node).cases)


def _with(cases: EvidenceRows, blocks: Sequence[Block], k: int, hidden: Set[int]) -> list[Block]:
    """Add a line to the blocks that it connects, which become one: the last."""
    numbers = {m for m in hidden if not cases.variables[m].is_discrete}
    near = [block for block in blocks if not numbers.isdisjoint(block.nodes)]
    joined = Block(
        frozenset(numbers).union(*(block.nodes for block in near)),
        frozenset({k}).union(*(block.lines for block in near)),
        frozenset(hidden - numbers).union(*(block.scope for block in near)),
    )
    return [*(block for block in blocks if block not in near), joined]


def _fits(cases: EvidenceRows, block: Block) -> bool:
    size = _size(cases, block)
    return size <= min(MOST_CELLS, MOST_CONFIGURATIONS * len(block.lines) ** 2)


def _size(cases: EvidenceRows, block: Block) -> int:
    """Return how many numbers the matrices of a block have, at most, for every case."""
    return math.prod(len(cases.variables[k].levels) for k in block.scope) * len(block.lines) ** 2


class Solution:
    """The distribution of the nodes that are solved, in every case.

    The cases may differ in which discrete nodes are known, and not in which continuous ones are.
    """

    def __init__(self, cases: EvidenceRows, plan: Plan) -> None:
        self.plan = plan
        self._cases = cases
        self._mixtures = [Mixture(cases, block) for block in plan.blocks]
        tables = [_table(cases, k, scope, plan.solved) for k, scope in plan.tables]
        self._tables = Elimination(plan.order, [*tables, *(mixture.logs for mixture in self._mixtures)])
        self._place = {k: place for place, (k, _) in enumerate(plan.tables) if k in plan.solved}
        for place, block in enumerate(plan.blocks, start=len(tables)):
            self._place.update(dict.fromkeys(block.nodes, place))
        #: The log-density of everything that is known, but for what depends on nodes that are not solved.
        self.log_evidence = np.broadcast_to(self._tables.log_total, cases.number)
        known = np.flatnonzero(cases.ever_relevant & ~cases.ever_unknown)
        if all(cases.variables[k].is_discrete for k in known):
            self.log_evidence = np.minimum(self.log_evidence, 0.0)  # a probability, but for rounding

    def probabilities(self, k: int) -> FloatArray:
        """Return the probability of every level of a discrete node: cases × levels."""
        place = self._place[k]
        axis = 1 + self.plan.tables[place][1].index(k)
        found = self._tables.marginal(place)
        found = found.sum(axis=tuple(other for other in range(1, found.ndim) if other != axis))
        return np.broadcast_to(
            found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300), (self._cases.number, found.shape[1])
        )

    def normals(self, k: int) -> Normals:
        """Return the distribution of a continuous node."""
        place, mixture = self._place[k], self._mixture_of(k)
        weights = self._tables.marginal(place)
        means, deviations = mixture.means[:, :, mixture.nodes.index(k)], mixture.deviations(k)
        shape = (self._cases.number, means.shape[1])
        return Normals(
            *(np.broadcast_to(part, shape) for part in (weights.reshape(len(weights), -1), means, deviations))
        )

    def covariance(self, nodes: Sequence[int]) -> FloatArray:
        """Return the covariance matrix of continuous nodes in the first case."""
        out = np.zeros((len(self._cases.nodes),) * 2)
        blocks = dict(enumerate(self._mixtures, start=len(self.plan.tables)))
        weights = {place: self._tables.marginal(place)[0].ravel() for place in blocks}
        about = {place: block.means[0] - weights[place] @ block.means[0] for place, block in blocks.items()}
        for place, block in blocks.items():
            for k, mine in zip(block.nodes, about[place].T, strict=True):
                # The mean of a product of means: those of one node become a factor of its table. It has to
                # be positive, which changes nothing, because the others' are 0 on average.
                with np.errstate(divide="ignore"):
                    factor = np.log(mine - mine.min()).reshape(1, *block.logs.shape[1:])
                tilted = self._tables.times({place: factor})
                total = np.exp(tilted.log_total - self._tables.log_total)[0]
                for other, there in blocks.items():
                    out[k, there.nodes] = total * (tilted.marginal(other)[0].ravel() @ about[other])
                out[k, block.nodes] += weights[place] @ block.covariances(k)
        found = out[np.ix_(nodes, nodes)]
        return 0.5 * (found + found.T)

    def probability(self, regions: Mapping[int, Region]) -> float | None:
        """Return the probability that all nodes are in their regions, in the first case.

        None if two of them are in the same block: that has no closed form.
        """
        factors: dict[int, FloatArray] = {}
        for k, region in regions.items():
            place = self._place[k]
            if isinstance(region, Interval):
                if place in factors:
                    return None
                normals = self.normals(k)
                ends = np.array([[region.low], [region.high]])
                below = _below(ends, normals.means[:1], normals.deviations[:1])
                inside = (below[1] - below[0]).reshape(self._mixture_of(k).logs.shape[1:])
            else:
                scope = self.plan.tables[place][1]
                inside = np.zeros(len(self._cases.variables[k].levels))
                inside[list(region.places)] = 1.0
                inside = inside.reshape([-1 if node == k else 1 for node in scope])
            with np.errstate(divide="ignore"):
                factors[place] = np.log(inside)[None]
        return min(1.0, float(np.exp(self._tables.times(factors).log_total - self._tables.log_total)[0]))

    def draw(self, n: int, rng: np.random.Generator) -> dict[int, FloatArray]:
        """Draw values or level codes of every node, n times for every case: cases × n."""
        levels = self._tables.draw(self._cases.number, n, rng)
        out = {k: codes.astype(np.float64) for k, codes in levels.items()}
        for mixture in self._mixtures:
            out.update(mixture.draw(levels, self._cases.number, n, rng))
        return {k: out[k] for k in sorted(self.plan.solved)}

    def _mixture_of(self, k: int) -> Mixture:
        return self._mixtures[self._place[k] - len(self.plan.tables)]


@dataclass(frozen=True, eq=False)
class Normals:
    """Mixtures of normal distributions, one for every case: arrays are cases × components."""

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray

    def points(
        self, in_data_units: Callable[[FloatArray], FloatArray] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return values, and weights that give their means: cases × points.

        They are the means of the components; or, if values are to be transformed before they are averaged,
        points of a quadrature of every component.
        """
        if in_data_units is None:
            return self.means, self.weights
        points, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
        values = in_data_units(self.means[:, :, None] + self.deviations[:, :, None] * points)
        both = self.weights[:, :, None] * (weights / weights.sum())
        return values.reshape(len(values), -1), both.reshape(len(values), -1)

    def mean(self, in_data_units: Callable[[FloatArray], FloatArray] | None = None) -> FloatArray:
        values, weights = self.points(in_data_units)
        return (weights * values).sum(axis=1)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Return P(X ≤ x), for cases × values."""
        below = _below(x[:, :, None], self.means[:, None], self.deviations[:, None])
        return np.minimum((below * self.weights[:, None]).sum(axis=2), 1.0)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return quantiles: cases × q."""
        from scipy.special import ndtri

        ends = self.means[:, :, None] + self.deviations[:, :, None] * ndtri(q)
        low, high = ends.min(axis=1), ends.max(axis=1)
        for _ in range(100 if self.means.shape[1] > 1 else 0):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)


def _below(x: FloatArray, means: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return P(X ≤ x) of normal variables, some of which may not vary."""
    from scipy.special import ndtr

    with np.errstate(divide="ignore", invalid="ignore"):
        z = (x - means) / deviations
    return ndtr(np.where(np.isnan(z), 0.0, z))


class Mixture:
    """The normal distributions of a block, for every case and every combination of levels.

    Nodes are sums of independent standard normal noise, times the rows of a matrix that depends on lines
    alone: many components share it. To condition on known nodes is to project it. That keeps digits which a
    covariance matrix, the product of two such matrices, has lost where noise is small.
    """

    def __init__(self, cases: EvidenceRows, block: Block) -> None:
        self.nodes = sorted(block.nodes)
        self._scope = tuple(sorted(block.scope))
        self._sizes = [len(cases.variables[k].levels) for k in self._scope]
        order = sorted(block.lines)
        family = {m for k in order for m in (*cases.parents[k], k)} - block.nodes
        columns, number = _columns(cases, family, self._scope)
        which, slopes, intercepts, deviations = _lines(cases, order, columns, number)
        at = {k: i for i, k in enumerate(order)}
        mean, noise = np.empty((len(order), number)), np.zeros((len(deviations), len(order), len(order)))
        # Line by line: a parent that is unknown is already among them, and any other is a number.
        for i, k in enumerate(order):
            mean[i], noise[:, i, i] = intercepts[which, i], deviations[:, i]
            for parent, slope in slopes[k].items():
                is_inside = parent in block.nodes
                mean[i] += slope[which] * (mean[at[parent]] if is_inside else columns[parent])
                if is_inside:
                    noise[:, i] += slope[:, None] * noise[:, at[parent]]
        mine, known = [at[k] for k in self.nodes], [k for k in order if k not in block.nodes]
        means, self._noise, logs = mean[mine], noise[:, mine], np.zeros(number)
        if known:
            there = [at[k] for k in known]
            directions, roots = np.linalg.qr(noise[:, there].transpose(0, 2, 1))
            across = self._noise @ directions
            self._noise = self._noise - across @ directions.transpose(0, 2, 1)
            residuals = np.stack([columns[k] for k in known]) - mean[there]
            in_order = np.argsort(which, kind="stable")
            for c, some in enumerate(np.split(in_order, np.cumsum(np.bincount(which))[:-1])):
                whitened = np.linalg.solve(roots[c].T, residuals[:, some])
                means[:, some] += across[c] @ whitened
                with np.errstate(over="ignore"):  # an absurd value has no density
                    squares = (whitened**2).sum(axis=0)
                scale = np.log(np.abs(np.diag(roots[c]))).sum() + 0.5 * len(known) * LOG_2PI
                logs[some] = -0.5 * squares - scale
        cells = math.prod(self._sizes)
        self._which = which.reshape(-1, cells)
        #: The means of the nodes: cases × components × nodes.
        self.means = means.T.reshape(-1, cells, len(mine))
        #: The log-density of what is known: cases × levels.
        self.logs = logs.reshape(-1, *self._sizes)

    def deviations(self, k: int) -> FloatArray:
        """Return the standard deviations of a node: cases × components."""
        return np.linalg.norm(self._noise[:, self.nodes.index(k)], axis=1)[self._which]

    def covariances(self, k: int) -> FloatArray:
        """Return the covariances of a node with all others in the first case: components × nodes."""
        mine = self._noise[:, self.nodes.index(k)]
        return (self._noise @ mine[:, :, None])[self._which[0], :, 0]

    def draw(
        self, levels: Mapping[int, IntArray], cases: int, n: int, rng: np.random.Generator
    ) -> dict[int, FloatArray]:
        """Draw values given the levels that have been drawn: cases × n, by node."""
        component = np.zeros((cases, n), dtype=np.int64)
        for k, size in zip(self._scope, self._sizes, strict=True):
            component = component * size + levels[k]
        case = np.arange(cases)[:, None] if len(self.means) > 1 else 0
        values, which = self.means[case, component], self._which[case, component]
        noise = rng.standard_normal((cases, n, self._noise.shape[2]))
        for number in np.unique(which):
            some = which == number
            values[some] += noise[some] @ self._noise[number].T
        return {k: values[:, :, i] for i, k in enumerate(self.nodes)}


def _columns(cases: EvidenceRows, members: Iterable[int], scope: Scope) -> tuple[dict[int, FloatArray], int]:
    """Return values of known nodes and of `scope` for every case and every combination of levels.

    And their number. Where nothing is known that cases could differ in, there is only one case.
    """
    sizes = [len(cases.variables[k].levels) for k in scope]
    cells = math.prod(sizes)
    codes = np.indices(sizes).reshape(len(scope), cells).astype(np.float64)
    known = [k for k in members if k not in scope]
    rows = cases.known if known else cases.known[:1]
    columns = {k: np.tile(codes[place], len(rows)) for place, k in enumerate(scope)}
    columns.update({k: np.repeat(rows[:, k], cells) for k in known})
    return columns, cells * len(rows)


def _table(cases: EvidenceRows, k: int, scope: Scope, solved: Set[int]) -> FloatArray:
    """Return the log-density of a node, or the log-probability of its region: cases × levels."""
    family, sizes = (*cases.parents[k], k), [len(cases.variables[m].levels) for m in scope]
    is_mass = cases.nodes[k] in cases.regions and k not in solved
    region, cpd = cases.regions.get(cases.nodes[k]), cases.cpd(cases.nodes[k])
    columns, number = _columns(cases, family[:-1] if is_mass else family, scope)
    values = np.array([columns[m] for m in family if m in columns]).reshape(-1, number)
    if region is not None and is_mass:
        logs = cpd.log_mass(region, Table.of([cases.variables[m] for m in family[:-1]], values))
    else:
        with np.errstate(over="ignore"):  # an absurd value has no density
            logs = cpd.logpdf_of_columns(values)
    logs = logs.reshape(-1, *sizes)
    if k not in solved or (region is None and cases.unknown[:, k].all()):
        return logs
    codes = np.arange(len(cases.variables[k].levels), dtype=np.float64)
    possible = cases.unknown[:, [k]] | (cases.known[:, [k]] == codes)
    if region is not None:
        possible &= region.contains(codes)
    shape = [len(codes) if m == k else 1 for m in scope]
    return np.where(possible.reshape(-1, *shape), logs, -np.inf)


def _lines(
    cases: EvidenceRows, order: Sequence[int], columns: Mapping[int, FloatArray], number: int
) -> tuple[IntArray, dict[int, dict[int, FloatArray]], FloatArray, FloatArray]:
    """Return which set of lines every column has; and for each set slopes, by node and parent,
    intercepts and standard deviations: sets × nodes.
    """
    which, nothing, found = np.zeros(number, dtype=np.int64), np.zeros(number), []
    for k in order:
        parents = np.array([columns.get(m, nothing) for m in cases.parents[k]]).reshape(-1, number)
        cpd = cases.cpd(cases.nodes[k])
        found.append(cpd.case_places(parents) % len(cpd.cases))
        if len(cpd.cases) > 1:
            which = np.unique(which * len(cpd.cases) + found[-1], return_inverse=True)[1].ravel()
    _, first = np.unique(which, return_index=True)
    slopes, intercepts, deviations = {}, *np.empty((2, len(first), len(order)))
    for i, k in enumerate(order):
        lines = [line for case in cases.cpd(cases.nodes[k]).cases if (line := case.as_linear()) is not None]
        chosen = found[i][first]
        intercepts[:, i] = np.array([line.intercept for line in lines])[chosen]
        deviations[:, i] = np.sqrt([line.variance for line in lines])[chosen]
        by_parent = [dict(zip(line.parents, line.coefficients, strict=True)) for line in lines]
        slopes[k] = {
            cases.place[parent]: np.array([line[parent] for line in by_parent])[chosen]
            for parent in lines[0].parents
        }
    return which, slopes, intercepts, deviations
