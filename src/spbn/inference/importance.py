"""Particles: weighted draws of what is unknown, many for each of many cases.

They start as forward samples: every unknown node is drawn given its parents, or within its region, and what
is known weighs them (likelihood weighting). Where few carry all the weight, `tempering` takes over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, greatest, relative_weights
from spbn.inference.problem import EvidenceRows
from spbn.nodes.base import Interval
from spbn.numerics.gaussian import draw_between, log_mass_between

WIDER = 2.0  # than what forward samples show: weights must not grow in the tails
FEWEST = 10  # forward samples to learn from

_LOG_SQRT_2PI = 0.5 * LOG_2PI


@dataclass(frozen=True, eq=False)
class Target:
    """What particles are for: some unknown nodes, and the nodes whose densities they have to match.

    Attributes
    ----------
    cases
        What is known.
    active
        Cases × nodes: the unknown nodes that particles stand for.
    weighing
        Cases × nodes: the known nodes, or those with a region, that weigh the particles.
    references
        For nodes that particles stand for, and that lie in an interval: where they begin, if not at
        draws within the interval given their parents.
    """

    cases: EvidenceRows
    active: BoolArray
    weighing: BoolArray
    references: Mapping[int, TruncatedNormal] = field(default_factory=dict)

    @classmethod
    def whole(cls, cases: EvidenceRows) -> Target:
        """Take everything that has a say."""
        active = cases.unknown & cases.relevant & ~cases.ends
        return cls(cases, active, cases.relevant & (~active | _regions(cases)))

    @classmethod
    def of(cls, cases: EvidenceRows, members: tuple[int, ...]) -> Target:
        """Take one group of unknown nodes, and the known ones that depend on them directly."""
        active = np.zeros_like(cases.unknown)
        active[:, list(members)] = True
        dependent = np.array([bool(set(members) & set(parents)) for parents in cases.parents])
        weighing = (~cases.unknown | cases.ends) & cases.relevant & dependent
        return cls(cases, active, weighing | (active & _regions(cases)))

    def with_references(self, states: FloatArray) -> Target:
        """Take intervals whose probabilities take long to compute for what densities alone can weigh.

        `states` are forward samples: nodes × cases × particles.
        """
        found = {}
        for node, region in self.cases.regions.items():
            k = self.cases.place[node]
            if not isinstance(region, Interval) or self.cases.cpd(node).type.is_quick:
                continue
            reference = TruncatedNormal.of(region, states[k]) if self.active[:, k].any() else None
            if reference is not None:
                found[k] = reference
        return replace(self, references=found)


@dataclass(frozen=True, eq=False)
class Particles:
    """Draws of nodes for every case, and their weights.

    Attributes
    ----------
    states
        Nodes × cases × particles; nodes in topological order.
    log_weights
        Cases × particles.
    log_evidence, error
        Of every case: the log-density of what is known, and the standard error of that.
    effective
        How many independent draws the particles of every case are worth.
    method
        How they were made.
    """

    states: FloatArray
    log_weights: FloatArray
    log_evidence: FloatArray
    error: FloatArray
    effective: FloatArray
    method: str = field(default="weighting")


def sample_by_weighting(part: Target, n: int, rng: np.random.Generator) -> Particles:
    """Draw forward samples, n for every case, and weigh them."""
    cases = part.cases
    flat = np.repeat(cases.known.T, n, axis=1)
    in_a_row = np.zeros(cases.number * n)
    for k in range(len(cases.nodes)):
        _draw_node(part, k, flat, in_a_row, n, rng)
    shape = (cases.number, n)
    return _particles_of(flat.reshape(len(cases.nodes), *shape), in_a_row.reshape(shape))


def concatenate(some: Particles, others: Particles) -> Particles:
    """Put weighted forward samples together."""
    values = np.concatenate([some.states, others.states], axis=2)
    return _particles_of(values, np.concatenate([some.log_weights, others.log_weights], axis=1))


def _particles_of(values: FloatArray, log_weights: FloatArray) -> Particles:
    """Say what weighted forward samples are worth."""
    effective = effective_size(log_weights)
    share = 1.0 / np.maximum(effective, 1e-300) - 1.0 / log_weights.shape[1]
    return Particles(values, log_weights, log_mean(log_weights), np.sqrt(np.maximum(share, 0.0)), effective)


def draw_rest(cases: EvidenceRows, values: FloatArray, rng: np.random.Generator) -> None:
    """Draw, in place, whatever is still unknown in nodes × cases × particles, given what is there."""
    flat = values.reshape(len(values), -1)
    for k in range(len(cases.nodes)):
        empty = np.flatnonzero(np.isnan(flat[k]))
        if len(empty):
            flat[k, empty] = cases.draw(k, flat[:, empty], rng)


def terms(
    part: Target, values: FloatArray, nodes: Sequence[int] | None = None, *, apart: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return the log-density that forward sampling gives to particles, and their weights, by node.

    Both are nodes × particles in a row.

    Parameters
    ----------
    values
        Nodes × (cases · particles).
    nodes
        Those that are needed, by number; all by default.
    apart
        Whether each of the two is needed. If only their sum is, the probabilities of regions that particles
        are in are left out of both: they cancel, and take long to compute.
    """
    wanted = range(len(part.cases.nodes)) if nodes is None else nodes
    found = [_terms_of(part, k, values, apart=apart) for k in wanted]
    return np.stack([prior for prior, _ in found]), np.stack([weight for _, weight in found])


def _terms_of(part: Target, k: int, values: FloatArray, *, apart: bool) -> tuple[FloatArray, FloatArray]:
    """Return what one node adds to both."""
    cases, n = part.cases, values.shape[1] // part.cases.number
    prior, weight = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    region = cases.regions.get(cases.nodes[k])
    asked = part.active[:, k] | part.weighing[:, k]
    if not asked.any():
        return prior, weight
    rows = np.flatnonzero(np.repeat(asked, n))
    chosen = values if len(rows) == values.shape[1] else values[:, rows]
    in_region = part.active[:, k].any()
    if region is None:
        density = _changing_density(part, k, chosen, asked, n)
        active = np.repeat(part.active[asked, k], n)
        prior[rows], weight[rows] = np.where(active, density, 0.0), np.where(active, 0.0, density)
    elif k in part.references:
        begun = part.references[k].log_density(chosen[k])
        prior[rows], weight[rows] = begun, cases.log_density(k, chosen) - begun
    elif apart or not in_region:
        weight[rows] = cases.log_mass(k, chosen)
        if in_region:
            prior[rows] = cases.log_density(k, chosen) - weight[rows]
    else:
        prior[rows] = cases.log_density(k, chosen)
    if region is not None and in_region:
        prior[rows[~region.contains(chosen[k])]] = -np.inf
    return prior, weight


def effective_size(log_weights: FloatArray) -> FloatArray:
    """Return how many equal weights the weights of every row are worth; 0 if all are nothing."""
    weights = relative_weights(log_weights)
    total = weights.sum(axis=-1)
    found: FloatArray = np.where(total > 0.0, total**2 / np.maximum((weights**2).sum(axis=-1), 1e-300), 0.0)
    return found


def log_mean(log_weights: FloatArray) -> FloatArray:
    """Return the logarithm of the mean weight of every row."""
    with np.errstate(divide="ignore"):
        relative = np.log(relative_weights(log_weights).mean(axis=-1))
    found: FloatArray = greatest(log_weights)[..., 0] + relative
    return found


def _draw_node(
    part: Target, k: int, flat: FloatArray, log_weights: FloatArray, n: int, rng: np.random.Generator
) -> None:
    """Draw an active node, or weigh the particles by a known one, in all cases in which it is that."""
    cases = part.cases
    region = cases.regions.get(cases.nodes[k])
    rows = np.flatnonzero(np.repeat(part.active[:, k], n))
    if len(rows):
        chosen = flat[:, rows]
        if region is None:
            flat[k, rows] = cases.draw(k, chosen, rng)
        elif k in part.references:
            reference = part.references[k]
            chosen[k] = flat[k, rows] = reference.draw(len(rows), rng)
            log_weights[rows] += cases.log_density(k, chosen) - reference.log_density(chosen[k])
        else:
            log_weights[rows] += cases.log_mass(k, chosen)
            flat[k, rows] = cases.draw(k, chosen, rng)
    asked = part.weighing[:, k] & ~part.active[:, k]
    if asked.any():
        rows = np.flatnonzero(np.repeat(asked, n))
        if region is None:
            log_weights[rows] += _changing_density(part, k, flat[:, rows], asked, n)
        else:
            log_weights[rows] += cases.log_mass(k, flat[:, rows])


def _changing_density(part: Target, k: int, chosen: FloatArray, asked: BoolArray, n: int) -> FloatArray:
    """Log-density of a node; computed once for a case in which its whole family is known."""
    cases = part.cases
    family = [*cases.parents[k], k]
    constant = ~cases.unknown[asked][:, family].any(axis=1)
    if not constant.any():
        return cases.log_density(k, chosen)
    out = np.empty(chosen.shape[1])
    firsts = np.flatnonzero(constant) * n
    out[np.repeat(constant, n)] = np.repeat(cases.log_density(k, chosen[:, firsts]), n)
    rest = np.flatnonzero(np.repeat(~constant, n))
    if len(rest):
        out[rest] = cases.log_density(k, chosen[:, rest])
    return out


def _regions(cases: EvidenceRows) -> BoolArray:
    has = np.array([node in cases.regions for node in cases.nodes])
    return np.broadcast_to(has, cases.unknown.shape)


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal distribution between the ends of an interval, where particles begin.

    Forward samples draw a node in its interval given its parents, and are weighed by the probability of the
    interval, which takes some twenty times as long to compute as a density of kernels. Particles that begin
    at draws from this proposal, which does not depend on the parents, need densities alone.
    """

    mean: float
    deviation: float
    interval: Interval

    @classmethod
    def of(cls, interval: Interval, draws: FloatArray) -> TruncatedNormal | None:
        """Return one that covers draws within the interval; None if these are too few or all the same."""
        there = draws[np.isfinite(draws) & interval.contains(draws)]
        if len(there) < FEWEST or not there.std() > 0.0:
            return None
        return cls(float(there.mean()), WIDER * float(there.std()), interval)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n values."""
        low, high = (np.full(n, end) for end in self._ends)
        drawn = self.mean + self.deviation * draw_between(low, high, rng.random(n))
        return np.clip(drawn, self.interval.low, self.interval.high)

    def log_density(self, values: FloatArray) -> FloatArray:
        """Return the log-density of values within the interval."""
        low, high = (np.array([end]) for end in self._ends)
        scale = math.log(self.deviation) + _LOG_SQRT_2PI + log_mass_between(low, high)[0]
        density: FloatArray = -0.5 * ((values - self.mean) / self.deviation) ** 2 - scale
        return density

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends of the interval in deviations from the mean."""
        return (
            (self.interval.low - self.mean) / self.deviation,
            (self.interval.high - self.mean) / self.deviation,
        )
