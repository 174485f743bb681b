"""Particles: weighted draws of what is unknown, many for each of many cases.

They start as forward samples: every unknown node is drawn given its parents, or within its region, and what
is known weighs them (likelihood weighting). Where few carry all the weight, tempered sequential Monte Carlo
leads them on to what is known.

The weights of forward samples are raised to a power β that grows from 0 to 1, as fast as half of the
particles keep their worth. After every step they are drawn anew by their weights, and then moved: by
differences of other particles, at several scales, which follow the shape of the distribution and jump between
its modes; and discrete nodes by drawing their levels given everything else. Each move is accepted by the rule
of Metropolis, so it leaves the distribution of that step as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, IntArray, greatest, relative_weights
from spbn.inference.exact import Block, Mixture, blocks_given_the_rest
from spbn.inference.problem import EvidenceRows
from spbn.nodes.base import Interval
from spbn.numerics.gaussian import draw_between, log_mass_between

WIDER = 2.0  # than what forward samples show: weights must not grow in the tails
UNUSUAL = 6.0  # nats below what is usual of a node
FEWEST, LEARNED = 10, 200  # forward samples to learn from

KEPT = 0.5  # share of the particles' worth that a step keeps
MOST_STEPS = 300
PROBATION = 60  # steps after which it must look as if the others will do
HALVINGS = 50
#: How far moves go, relative to the best scale of a normal distribution; None jumps by a whole difference.
SCALES = (1.0, 0.5, None, 0.25, 0.1)
ROUNDS, LAST_ROUNDS = 1, 2  # of moves, after a step and after the last one
WORTH_A_MOVE = 0.6  # of what the best scale brings
RENEWED = 1.1  # what a scale that is left out is taken for, every round
LARGEST_BLOCK = 4  # nodes that are moved together
MORE_ROUNDS = 20  # at most, until the particles are worth enough
MORE_THAN_SURVIVED = 2.0  # times as many draws as ancestors have survived: further moves would be in vain
JITTER = 0.02  # of the spread, so that particles do not stay on a lattice


@dataclass(frozen=True, eq=False)
class Target:
    """What particles are for: some unknown nodes, and the nodes whose densities they have to match."""

    cases: EvidenceRows
    active: BoolArray  # cases × nodes: the unknown nodes that particles stand for
    weighing: BoolArray  # cases × nodes: the known nodes, or those with a region, that weigh the particles
    #: For nodes that particles stand for, and that lie in an interval: where they begin, if not at draws
    #: within the interval given their parents.
    references: Mapping[int, TruncatedNormal] = field(default_factory=dict)
    #: Unknown nodes that no particles stand for, because the sum over them has a closed form: all cases have
    #: the same holes then.
    blocks: tuple[Block, ...] = ()

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

    def without_lines(self) -> Target:
        """Take no particles for what is jointly normal given the others (Rao-Blackwell).

        Evidence may be next to a function of such nodes: no walk among them would find the way.
        """
        active, weighing = self.active.copy(), self.weighing.copy()
        blocks = blocks_given_the_rest(self.cases, np.flatnonzero(active.any(axis=0)).tolist())
        for block in blocks:
            active[:, list(block.nodes)] = False
            weighing[:, list(block.lines)] = False
        return replace(self, active=active, weighing=weighing, blocks=tuple(blocks))

    @cached_property
    def block_of(self) -> dict[int, Block]:
        """The blocks by the lines that they are made of."""
        return {k: block for block in self.blocks for k in block.lines}

    @cached_property
    def drawn(self) -> BoolArray:
        """Which nodes forward samples need: those of particles, and those in front of them."""
        drawn = self.active.copy()
        drawn[:, [k for block in self.blocks for k in block.nodes]] = True
        return drawn

    def place(self, k: int) -> int:
        """Return the node at which the density of a node is put: the first one of its block."""
        return min(self.block_of[k].lines) if k in self.block_of else k

    def family(self, k: int) -> set[int]:
        """Return the nodes that the density at this place depends on."""
        lines = self.block_of[k].lines if k in self.block_of else {k}
        return {member for line in lines for member in (line, *self.cases.parents[line])}

    def mixture(self, block: Block, values: FloatArray, *, prior: bool = False) -> Mixture:
        """Return the distribution of a block for nodes × particles; as a `prior`, without what is known."""
        given = replace(self.cases, known=values.T)
        lines = {k for k in block.lines if self.cases.ever_unknown[k]} if prior else block.lines
        return Mixture(given, replace(block, lines=frozenset(lines)))

    def with_references(self, states: FloatArray) -> Target:
        """Use a truncated proposal for intervals whose probability is expensive to compute.

        `states` are forward samples: nodes × cases × particles.
        """
        found, active = {}, self.active.copy()
        for k in self.slow_regions:
            node = self.cases.nodes[k]
            draws = states[k]
            if not active[:, k].any():  # which weighs by its probability, and has not been drawn
                some = states.reshape(len(states), -1)[:, :LEARNED]
                draws = self.cases.draw(k, some, np.random.default_rng(0))
            region = self.cases.regions[node]
            reference = TruncatedNormal.of(region, draws) if isinstance(region, Interval) else None
            if reference is not None:
                found[k] = reference
                active[:, k] = True
        return replace(self, references=found, active=active)

    @cached_property
    def slow_regions(self) -> list[int]:
        """The nodes that are in an interval whose probability takes long to compute."""
        places = {self.cases.place[node]: self.cases.cpd(node) for node in self.cases.regions}
        mine = set(np.flatnonzero((self.active | self.weighing).any(axis=0)).tolist())
        return [
            k
            for k, cpd in places.items()
            if k in mine
            and self.cases.parents[k]
            and not cpd.type.is_quick
            and self.cases.nodes[k] not in self.cases.network.atoms
        ]


@dataclass(frozen=True, eq=False)
class Particles:
    """Draws of nodes for every case, and their weights."""

    states: FloatArray  # nodes × cases × particles; nodes in topological order
    log_weights: FloatArray  # cases × particles
    log_evidence: FloatArray  # of every case: the log-density of what is known
    error: FloatArray  # the standard error of that
    effective: FloatArray  # how many independent draws the particles of every case are worth
    method: str = "weighting"


def sample_by_weighting(part: Target, n: int, rng: np.random.Generator) -> Particles:
    """Draw forward samples, n for every case, and weigh them."""
    cases = part.cases
    flat = np.repeat(cases.known.T, n, axis=1)
    for k in range(len(cases.nodes)):
        rows = np.flatnonzero(np.repeat(part.drawn[:, k], n))
        if k in part.references:
            flat[k, rows] = part.references[k].draw(len(rows), rng)
        elif len(rows):
            flat[k, rows] = cases.draw(k, flat[:, rows], rng)
    return weigh(part, flat.reshape(len(flat), cases.number, n), rng)


def weigh(part: Target, states: FloatArray, rng: np.random.Generator) -> Particles:
    """Weigh forward samples, nodes × cases × particles; what lines say is drawn anew, in place."""
    flat = states.reshape(len(states), -1)
    log_weights = np.zeros(flat.shape[1])
    for k in range(len(flat)):
        log_weights += _log_weights(part, k, flat)
    for block in part.blocks:
        log_weights += _terms_of_block(part, block, flat, apart=True)[1]
    _draw_blocks(part, flat, rng)
    return _particles_of(states, log_weights.reshape(states.shape[1:]))


def _draw_blocks(part: Target, flat: FloatArray, rng: np.random.Generator) -> None:
    """Draw the nodes of blocks given all others, in place, in nodes × particles."""
    for block in part.blocks:
        for k, values in part.mixture(block, flat).draw({}, flat.shape[1], 1, rng).items():
            flat[k] = values[:, 0]


def concatenate(some: Particles, others: Particles) -> Particles:
    """Put weighted forward samples together."""
    values = np.concatenate([some.states, others.states], axis=2)
    return _particles_of(values, np.concatenate([some.log_weights, others.log_weights], axis=1))


def mix(parts: Sequence[Particles]) -> Particles:
    """Put particles under several hypotheses together; those of each share the weight of its evidence."""
    log_evidence = np.stack([part.log_evidence for part in parts])
    total: FloatArray = np.logaddexp.reduce(log_evidence, axis=0)
    shares = relative_weights(log_evidence, axis=0)
    shares /= np.maximum(shares.sum(axis=0), 1e-300)
    with np.errstate(invalid="ignore"):
        sums = [log_mean(part.log_weights) + math.log(part.log_weights.shape[1]) for part in parts]
        weights = [
            part.log_weights + (part.log_evidence - of_all)[:, None]
            for part, of_all in zip(parts, sums, strict=True)
        ]
    effective = np.stack([np.maximum(part.effective, 1e-300) for part in parts])
    methods = dict.fromkeys(part.method for part, share in zip(parts, shares, strict=True) if share.any())
    return Particles(
        np.concatenate([part.states for part in parts], axis=2),
        np.nan_to_num(np.concatenate(weights, axis=1), nan=-np.inf, neginf=-np.inf),
        total,
        np.sqrt(sum((w * np.where(w > 0.0, p.error, 0.0)) ** 2 for w, p in zip(shares, parts, strict=True))),
        np.where(np.isfinite(total), 1.0 / np.maximum((shares**2 / effective).sum(axis=0), 1e-300), 0.0),
        " and ".join(methods) or "weighting",
    )


def _particles_of(values: FloatArray, log_weights: FloatArray) -> Particles:
    """Say what weighted forward samples are worth."""
    effective = effective_size(log_weights)
    error = _log_error(effective, log_weights.shape[1])
    return Particles(values, log_weights, log_mean(log_weights), error, effective)


def _log_error(worth: FloatArray, n: int) -> FloatArray:
    """Return the standard error of the logarithm of a mean of n weights that are worth so many equal ones.

    It is infinite if one weight is all there is: nothing tells then what others would have been.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(1.0 / worth - 1.0 / n, 0.0) * worth / (worth - 1.0))
    return np.where(worth > 1.0 + 1e-9, error, np.inf)


def is_surprising(part: Target, found: Particles) -> bool:
    """Tell whether what is known is less likely than usual under all of the best particles.

    These may have missed where it is likely: densities with tails give it some weight everywhere.
    """
    best = np.argsort(found.log_weights[0])[-LEARNED:]
    _, weights = terms(part, np.ascontiguousarray(found.states[:, 0, best]))
    usual = np.array([_usual(part.cases, k) for k in range(len(weights))])
    return bool((weights.max(axis=1) < usual - UNUSUAL)[part.weighing[0]].any())


def _usual(cases: EvidenceRows, k: int) -> float:
    """Return the usual log-density of a node, or the logarithm of a usual probability of its interval."""
    usual = cases.network.record.typical.get(cases.nodes[k], -math.inf)
    region, value = cases.regions.get(cases.nodes[k]), float(cases.known[0, k])
    if cases.variables[k].is_discrete or (region is None and math.isnan(value)):
        return -math.inf
    if isinstance(region, Interval):
        width = region.high - region.low
        if not math.isfinite(width):
            return 0.0
        value, usual = region.low + 0.5 * width, usual + math.log(width)
    slope = float(cases.log_slopes(k, np.array([value]))[0])
    return usual - slope if region is None else min(usual - slope, 0.0)


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

    Values are nodes × (cases · particles), and so are both results, of the nodes that are needed: all by
    default. `apart` tells whether each of the two is needed. If only their sum is, the probabilities of
    regions that particles are in are left out of both: they cancel, and take long to compute.
    """
    wanted = range(len(part.cases.nodes)) if nodes is None else nodes
    zeros = (np.zeros(values.shape[1]),) * 2
    found = [_terms_of(part, k, values, apart=apart) if part.place(k) == k else zeros for k in wanted]
    return np.stack([prior for prior, _ in found]), np.stack([weight for _, weight in found])


def _terms_of(part: Target, k: int, values: FloatArray, *, apart: bool) -> tuple[FloatArray, FloatArray]:
    """Return what one node, or the block that is put there, adds to both."""
    if k in part.block_of:
        return _terms_of_block(part, part.block_of[k], values, apart=apart)
    cases, n = part.cases, values.shape[1] // part.cases.number
    prior, weight = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    region = cases.regions.get(cases.nodes[k])
    rows = np.flatnonzero(np.repeat(part.active[:, k], n))
    if apart or region is None or k in part.references or not len(rows):
        weight = _log_weights(part, k, values)
    if len(rows):
        chosen = values if len(rows) == values.shape[1] else values[:, rows]
        if k in part.references:
            prior[rows] = part.references[k].log_density(chosen[k])
        else:
            prior[rows] = cases.log_density(k, chosen) - weight[rows]
        if region is not None:
            prior[rows[~region.contains(chosen[k])]] = -np.inf
    return prior, weight


def _terms_of_block(
    part: Target, block: Block, values: FloatArray, *, apart: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the same for lines, summed over those that no particles stand for."""
    total = np.broadcast_to(part.mixture(block, values).logs, values.shape[1])
    prior = np.zeros(values.shape[1])
    if apart and part.active[:, list(block.lines)].any():
        prior += part.mixture(block, values, prior=True).logs
    return prior, total - prior


def _log_weights(part: Target, k: int, values: FloatArray) -> FloatArray:
    """Return what a node adds to the log-weights of particles, in all cases in which it weighs them."""
    cases, n = part.cases, values.shape[1] // part.cases.number
    out, asked = np.zeros(values.shape[1]), part.weighing[:, k]
    rows = np.flatnonzero(np.repeat(asked, n))
    if not len(rows):
        return out
    chosen = values if len(rows) == values.shape[1] else values[:, rows]
    if k in part.references:
        out[rows] = cases.log_density(k, chosen) - part.references[k].log_density(chosen[k])
    elif cases.nodes[k] in cases.regions:
        out[rows] = cases.log_mass(k, chosen)
    else:
        out[rows] = _changing_density(part, k, chosen, asked, n)
    return out


def effective_size(log_weights: FloatArray) -> FloatArray:
    """Return how many equal weights the weights of every row are worth; 0 if all are nothing."""
    weights = relative_weights(log_weights)
    total = weights.sum(axis=-1)
    return np.where(total > 0.0, total**2 / np.maximum((weights**2).sum(axis=-1), 1e-300), 0.0)


def log_mean(log_weights: FloatArray) -> FloatArray:
    """Return the logarithm of the mean weight of every row."""
    with np.errstate(divide="ignore"):
        relative = np.log(relative_weights(log_weights).mean(axis=-1))
    return greatest(log_weights)[..., 0] + relative


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
        low, high = (np.full(n, end) for end in self._ends)
        drawn = self.mean + self.deviation * draw_between(low, high, rng.random(n))
        return np.clip(drawn, self.interval.low, self.interval.high)

    def log_density(self, values: FloatArray) -> FloatArray:
        low, high = (np.array([end]) for end in self._ends)
        scale = math.log(self.deviation) + 0.5 * LOG_2PI + log_mass_between(low, high)[0]
        return -0.5 * ((values - self.mean) / self.deviation) ** 2 - scale

    @property
    def _ends(self) -> list[float]:
        """The ends of the interval in deviations from the mean."""
        return [(end - self.mean) / self.deviation for end in (self.interval.low, self.interval.high)]


def sample_by_tempering(
    part: Target,
    start: FloatArray,
    rng: np.random.Generator,
    *,
    n: int | None = None,
    share: float = 0.0,
    is_over: Callable[[], bool] = lambda: False,
) -> Particles:
    """Lead forward samples, nodes × cases × particles, to the posterior of every case.

    The first step may leave only n of them, by default as many as there are. At the end they are moved until
    they are worth this share of their number, if that does not take too long.
    When time `is_over`, which is asked before every step, what is left of the way is weighed.
    """
    cases, begun = part.cases, start.shape[2]
    n = n or begun
    chain = _Chain(part, start, rng)
    beta, log_evidence, clustering = np.zeros(cases.number), np.zeros(cases.number), np.ones(cases.number)
    ancestors = np.tile(np.arange(begun), (cases.number, 1))
    #: The weight of what each of the first particles left.
    families = np.full((cases.number, begun), 1.0 / begun)
    halfway, hopeless, late = beta, *np.zeros((2, cases.number), dtype=bool)
    for number in range(MOST_STEPS):
        if number == PROBATION // 2:
            halfway = beta
        elif number == PROBATION:
            hopeless = ~_is_enough(halfway, beta)
        going = (beta < 1.0) & np.isfinite(log_evidence) & ~hopeless
        if going.any() and is_over():
            late, n = going, chain.weight.shape[1]
        if not going.any() or late.any():
            break
        step = np.where(going, _next_step(chain.weight, beta, KEPT * n), 0.0)
        tilted = step[:, None] * np.where(going[:, None], chain.weight, 0.0)
        tilted = np.where(np.isnan(tilted), -np.inf, tilted)
        log_evidence += log_mean(tilted)
        families = np.where(going[:, None], _family_weights(tilted, ancestors, begun), families)
        beta = np.where(going, np.minimum(beta + step, 1.0), beta)
        chosen = resample(tilted, n, rng)
        copies = np.stack([np.bincount(row, minlength=begun) for row in chosen])
        clustering *= (copies**2).sum(axis=1) / n
        ancestors = np.take_along_axis(ancestors, chosen, axis=1)
        chain.take(chosen)
        rounds = LAST_ROUNDS if (beta[going] >= 1.0).any() else ROUNDS
        if (beta[going] >= 1.0).all():
            chain.finish()
        left = chain.move(beta, rounds, going)
        clustering = np.where(going, 1.0 + (clustering - 1.0) * left, clustering)
    reached, survivors = beta >= 1.0, np.array([len(np.unique(row)) for row in ancestors])
    log_weights = np.where(late[:, None], (1.0 - beta)[:, None] * chain.weight, 0.0)
    log_weights = np.where(np.isnan(log_weights), -np.inf, log_weights)
    if late.any():
        log_evidence += log_mean(log_weights)
        families = np.where(late[:, None], _family_weights(log_weights, ancestors, begun), families)
        clustering *= n / np.maximum(effective_size(log_weights), 1e-300)
        reached |= late & np.isfinite(log_evidence)
    for _ in range(MORE_ROUNDS):
        poor = reached & (n / clustering < np.minimum(share * n, MORE_THAN_SURVIVED * survivors))
        if not poor.any() or is_over():
            break
        clustering = np.where(poor, 1.0 + (clustering - 1.0) * chain.move(beta, 1, poor), clustering)
    _draw_blocks(part, chain.values, rng)
    values = chain.values.reshape(len(cases.nodes), cases.number, n)
    return Particles(
        values,
        log_weights,
        np.where(reached, log_evidence, -np.inf),
        _log_error(1.0 / np.maximum((families**2).sum(axis=1), 1e-300), begun),
        np.where(reached, np.minimum(n / clustering, survivors), 0.0),
        "smc",
    )


def resample(log_weights: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw n particles of every case by their weights, evenly spread: cases × n."""
    cases, there = log_weights.shape
    bounds = np.cumsum(relative_weights(log_weights), axis=1)
    wanted = (rng.random((cases, 1)) + np.arange(n)) / n * bounds[:, -1:]
    chosen = np.stack([np.searchsorted(b, w, side="right") for b, w in zip(bounds, wanted, strict=True)])
    return np.minimum(chosen, there - 1)


def _family_weights(log_weights: FloatArray, ancestors: IntArray, n: int) -> FloatArray:
    """Return the share of the weights that the descendants of each of the n first particles have.

    The sum of their squares is the relative variance of the evidence (Lee and Whiteley, 2018).
    """
    weights = relative_weights(log_weights)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return np.stack([np.bincount(a, weights=w, minlength=n) for a, w in zip(ancestors, weights, strict=True)])


class _Chain:
    """All particles, flattened, with their prior and likelihood terms."""

    def __init__(self, part: Target, values: FloatArray, rng: np.random.Generator) -> None:
        self._part = part
        self._rng = rng
        self._cases, self._n = values.shape[1:]
        self.values = values.reshape(len(values), -1).copy()
        discrete = np.array([variable.is_discrete for variable in part.cases.variables])
        self._moved = part.active & ~discrete
        self._drawn = [k for k in np.flatnonzero(discrete) if part.active[:, k].any()]
        self._apart = True
        self._gains = dict.fromkeys(SCALES, 1.0)  # how much less particles have in common after a move
        self._prior, self._weight = terms(part, self.values)

    @property
    def weight(self) -> FloatArray:
        """The log-weight of every particle: cases × particles."""
        return self._weight.sum(axis=0).reshape(self._cases, self._n)

    def finish(self) -> None:
        """From now on the weights count in full, in all cases."""
        self._apart = False
        self._prior, self._weight = terms(self._part, self.values, apart=False)

    def take(self, chosen: IntArray) -> None:
        """Keep these particles of every case."""
        flat = (chosen + self._n * np.arange(self._cases)[:, None]).ravel()
        self.values = self.values[:, flat]
        self._prior, self._weight = self._prior[:, flat], self._weight[:, flat]
        self._n = chosen.shape[1]

    def move(self, beta: FloatArray, rounds: int, going: BoolArray) -> FloatArray:
        """Move all particles; return how much copies of one still have in common, for every case."""
        before = self.values.copy()
        power = np.repeat(beta, self._n)
        for _ in range(rounds):
            for scale in self._scales():
                if self._moved[going].any():
                    previous = self.values
                    self.values = previous.copy()
                    for block in self._blocks():
                        self._step(scale, power, going, block)
                    self._gains[scale] = float((1.0 - self._in_common(previous)[going]).mean())
            for k in self._drawn:
                self._draw_levels(int(k), power)
        return self._in_common(before)

    def _scales(self) -> list[float | None]:
        """Return how far to move next: scales that bring particles further apart take the place of others.

        What a scale brings changes as β grows, so those that are left out are tried again after a while.
        """
        best = max(SCALES, key=lambda scale: self._gains[scale])
        chosen = [s if self._gains[s] >= WORTH_A_MOVE * self._gains[best] else best for s in SCALES]
        for scale in SCALES:
            if scale not in chosen:
                self._gains[scale] *= RENEWED
        return chosen

    def _blocks(self) -> list[IntArray]:
        """Divide the nodes to move into blocks of neighbours, at random.

        In few dimensions moves can go further, and only the densities that a block is part of change.
        """
        left = set(np.flatnonzero(self._moved.any(axis=0)).tolist())
        if len(left) <= LARGEST_BLOCK:
            return [np.array(sorted(left))]
        blocks = []
        while left:
            block = [int(self._rng.choice(sorted(left)))]
            while len(block) < LARGEST_BLOCK and (near := sorted(self._near(block) & left - set(block))):
                block.append(int(self._rng.choice(near)))
            blocks.append(np.array(sorted(block)))
            left -= set(block)
        return blocks

    def _near(self, nodes: Sequence[int]) -> set[int]:
        """Return parents, children and other parents of children."""
        families = set(self._changed_by(nodes).tolist())
        return set[int]().union(*(self._part.family(k) for k in families))

    def _changed_by(self, nodes: Sequence[int]) -> IntArray:
        """Return the nodes whose densities change with the values of some."""
        children = self._part.cases.children
        changed = {*nodes, *(child for k in nodes for child in children[k])}
        return np.array(sorted({self._part.place(k) for k in changed}))

    def _step(self, scale: float | None, power: FloatArray, going: BoolArray, block: IntArray) -> None:
        """Add differences of one half of the particles to the other half, where that is accepted."""
        n, rng = self._n, self._rng
        moved = self._moved[:, block] & going[:, None]
        dimensions = np.maximum(moved.sum(axis=1), 1)
        length = np.ones(self._cases) if scale is None else scale * 2.38 / np.sqrt(2.0 * dimensions)
        spread = self.values[block].reshape(-1, self._cases, n).std(axis=2)
        first = n * np.arange(self._cases)[:, None]
        halves = [np.arange(n // 2), np.arange(n // 2, n)]
        for mine, others in (halves, halves[::-1]):
            rows = (first + mine).ravel()
            a, b = ((first + rng.choice(others, (self._cases, len(mine)))).ravel() for _ in range(2))
            by_case = [np.repeat(array, len(mine), axis=-1) for array in (length, spread, moved.T)]
            noise = JITTER * by_case[1] * rng.standard_normal((len(block), len(rows)))
            change = by_case[0] * (self.values[np.ix_(block, a)] - self.values[np.ix_(block, b)]) + noise
            proposed = self.values[:, rows]
            proposed[block] += np.where(by_case[2], change, 0.0)
            self._accept(rows, proposed, power[rows], self._changed_by(block.tolist()))

    def _accept(self, rows: IntArray, proposed: FloatArray, power: FloatArray, changed: IntArray) -> None:
        """Put proposed values in the place of some particles, by the rule of Metropolis."""
        prior, weight = terms(self._part, proposed, changed.tolist(), apart=self._apart)
        there = np.ix_(changed, rows)
        with np.errstate(invalid="ignore"):
            gain = (prior - self._prior[there]).sum(axis=0)
            gain += power * (weight - self._weight[there]).sum(axis=0)
        accepted = np.log(self._rng.random(len(gain))) < np.where(np.isnan(gain), -np.inf, gain)
        taken = rows[accepted]
        self.values[:, taken] = proposed[:, accepted]
        self._prior[np.ix_(changed, taken)] = prior[:, accepted]
        self._weight[np.ix_(changed, taken)] = weight[:, accepted]

    def _draw_levels(self, k: int, power: FloatArray) -> None:
        """Draw the levels of a discrete node given everything else."""
        cases = self._part.cases
        rows = np.flatnonzero(np.repeat(self._part.active[:, k], self._n))
        changed = self._changed_by([k])
        values = self.values.copy()
        found = []
        for level in range(len(cases.variables[k].levels)):
            values[k, rows] = level
            found.append(terms(self._part, values, changed.tolist(), apart=self._apart))
        with np.errstate(invalid="ignore"):
            logs = np.stack([prior.sum(axis=0) + power * weight.sum(axis=0) for prior, weight in found])
        logs = np.where(np.isnan(logs), -np.inf, logs)[:, rows]
        bounds = np.cumsum(relative_weights(logs, axis=0), axis=0)
        chosen = np.minimum((self._rng.random(len(rows)) * bounds[-1] >= bounds).sum(axis=0), len(bounds) - 1)
        self.values[k, rows] = chosen
        for target, number in ((self._prior, 0), (self._weight, 1)):
            by_level = np.stack([both[number] for both in found])  # levels × nodes × particles
            target[np.ix_(changed, rows)] = by_level[chosen, :, rows].T

    def _in_common(self, before: FloatArray) -> FloatArray:
        """Return the greatest squared correlation of a node before and after, for every case."""
        shape = (-1, self._cases, self._n)
        x, y = before.reshape(shape), self.values.reshape(shape)
        x, y = x - x.mean(axis=2, keepdims=True), y - y.mean(axis=2, keepdims=True)
        scale = np.sqrt((x**2).sum(axis=2)) * np.sqrt((y**2).sum(axis=2))  # both fit, their squares may not
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = (x * y).sum(axis=2) / scale
        stuck = self._part.active.T & ~(scale > 0.0) & (np.abs(x - y).max(axis=2) == 0.0)
        found = np.where(self._part.active.T, np.where(scale > 0.0, correlation, 0.0), 0.0)
        found = np.where(stuck, 1.0, found)
        return np.clip(found, 0.0, 1.0).max(axis=0) ** 2


def _is_enough(halfway: FloatArray, beta: FloatArray) -> BoolArray:
    """Tell for every case whether β, which grows like a power of the number of steps or faster, can get to 1.

    It is known after half of the steps of the probation, and after all.
    """
    power = np.log2(np.maximum(beta, 1e-300) / np.maximum(halfway, 1e-300))
    return np.log(np.maximum(beta, 1e-300)) + (power + 0.5) * np.log(MOST_STEPS / PROBATION) >= 0.0


def _next_step(weight: FloatArray, beta: FloatArray, kept: float) -> FloatArray:
    """Return by how much β of every case can grow so that particles are worth that many."""
    possible = np.isfinite(weight).sum(axis=1)
    target = np.minimum(kept, 0.9 * possible)
    low, high = np.zeros(len(beta)), 1.0 - beta

    def keeps(step: FloatArray) -> BoolArray:
        tilted = np.where(
            np.isfinite(weight), step[:, None] * np.where(np.isfinite(weight), weight, 0.0), -np.inf
        )
        return effective_size(tilted) >= target

    whole = keeps(high)
    for _ in range(HALVINGS):
        middle = np.where(low > 0.0, np.sqrt(np.maximum(low, 1e-300) * high), high * 2.0**-10)
        enough = keeps(middle)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        if (high <= 1.01 * low).all():
            break
    step = np.where(low > 0.0, low, high)
    return np.where(whole, 1.0 - beta, np.minimum(step, 1.0 - beta))
