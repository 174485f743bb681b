"""Tempered sequential Monte Carlo: particles that are led from forward samples to what is known.

The weights of forward samples are raised to a power β that grows from 0 to 1, as fast as half of the
particles keep their worth. After every step they are drawn anew by their weights, and then moved: by
differences of other particles, at several scales, which follow the shape of the distribution and jump between
its modes; and discrete nodes by drawing their levels given everything else. Each move is accepted by the rule
of Metropolis, so it leaves the distribution of that step as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, relative_weights
from spbn.inference.importance import Particles, Target, effective_size, log_mean, terms

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
JITTER = 0.02  # of the spread, so that particles do not stay on a lattice


def sample_by_tempering(
    part: Target, start: FloatArray, rng: np.random.Generator, *, share: float = 0.0
) -> Particles:
    """Lead forward samples, nodes × cases × particles, to the posterior of every case.

    At the end they are moved until they are worth this share of their number, if that does not take too long.
    """
    cases, n = part.cases, start.shape[2]
    chain = _Chain(part, start, rng)
    beta, log_evidence, clustering = np.zeros(cases.number), np.zeros(cases.number), np.ones(cases.number)
    ancestors = np.tile(np.arange(n), (cases.number, 1))
    families = np.full((cases.number, n), 1.0 / n)  # the weight of what each of the first particles left
    halfway, hopeless = beta, np.zeros(cases.number, dtype=bool)
    for number in range(MOST_STEPS):
        if number == PROBATION // 2:
            halfway = beta
        elif number == PROBATION:
            hopeless = ~_is_enough(halfway, beta)
        going = (beta < 1.0) & np.isfinite(log_evidence) & ~hopeless
        if not going.any():
            break
        step = np.where(going, _next_step(chain.weight, beta), 0.0)
        tilted = step[:, None] * np.where(going[:, None], chain.weight, 0.0)
        tilted = np.where(np.isnan(tilted), -np.inf, tilted)
        log_evidence += log_mean(tilted)
        families = np.where(going[:, None], _family_weights(tilted, ancestors), families)
        beta = np.where(going, np.minimum(beta + step, 1.0), beta)
        chosen = resample(tilted, n, rng)
        copies = np.stack([np.bincount(row, minlength=n) for row in chosen])
        clustering *= (copies**2).sum(axis=1) / n
        ancestors = np.take_along_axis(ancestors, chosen, axis=1)
        chain.take(chosen)
        rounds = LAST_ROUNDS if (beta[going] >= 1.0).any() else ROUNDS
        if (beta[going] >= 1.0).all():
            chain.finish()
        left = chain.move(beta, rounds, going)
        clustering = np.where(going, 1.0 + (clustering - 1.0) * left, clustering)
    reached = beta >= 1.0
    for _ in range(MORE_ROUNDS):
        poor = reached & (share * clustering > 1.0)
        if not poor.any():
            break
        clustering = np.where(poor, 1.0 + (clustering - 1.0) * chain.move(beta, 1, poor), clustering)
    values = chain.values.reshape(len(cases.nodes), cases.number, n)
    return Particles(
        values,
        np.zeros((cases.number, n)),
        np.where(reached, log_evidence, -np.inf),
        np.sqrt(np.maximum((families**2).sum(axis=1) - 1.0 / n, 0.0)),
        np.where(reached, n / clustering, 0.0),
        "smc",
    )


def resample(log_weights: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw n particles of every case by their weights, evenly spread: cases × n."""
    cases, there = log_weights.shape
    bounds = np.cumsum(relative_weights(log_weights), axis=1)
    wanted = (rng.random((cases, 1)) + np.arange(n)) / n * bounds[:, -1:]
    chosen = np.stack([np.searchsorted(b, w, side="right") for b, w in zip(bounds, wanted, strict=True)])
    return np.minimum(chosen, there - 1)


def _family_weights(log_weights: FloatArray, ancestors: IntArray) -> FloatArray:
    """Return the share of the weights that the descendants of every first particle have, in every case.

    The sum of their squares is the relative variance of the evidence (Lee and Whiteley, 2018).
    """
    weights = relative_weights(log_weights)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    n = weights.shape[1]
    return np.stack([np.bincount(a, weights=w, minlength=n) for a, w in zip(ancestors, weights, strict=True)])


class _Chain:
    """The particles of all cases, in a row, with what forward sampling and what is known say about them."""

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
        parents = part.cases.parents
        self._children = [[c for c in range(len(parents)) if k in parents[c]] for k in range(len(parents))]
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
        families = {*nodes, *(child for k in nodes for child in self._children[k])}
        return families | {parent for k in families for parent in self._part.cases.parents[k]}

    def _changed_by(self, nodes: Sequence[int]) -> IntArray:
        """Return the nodes whose densities change with the values of some."""
        return np.array(sorted({*nodes, *(child for k in nodes for child in self._children[k])}))

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
        scale = np.sqrt((x**2).sum(axis=2) * (y**2).sum(axis=2))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = (x * y).sum(axis=2) / scale
        stuck = self._part.active.T & ~(scale > 0.0) & (np.abs(x - y).max(axis=2) == 0.0)
        found = np.where(self._part.active.T, np.where(scale > 0.0, correlation, 0.0), 0.0)
        found = np.where(stuck, 1.0, found)
        return np.clip(found, 0.0, 1.0).max(axis=0) ** 2


def _is_enough(halfway: FloatArray, beta: FloatArray) -> BoolArray:
    """Tell for every case whether β, which grows like a power of the number of steps or faster, can get to 1.

    Parameters
    ----------
    halfway, beta
        β after half of the steps of the probation, and after all.
    """
    power = np.log2(np.maximum(beta, 1e-300) / np.maximum(halfway, 1e-300))
    return np.log(np.maximum(beta, 1e-300)) + (power + 0.5) * np.log(MOST_STEPS / PROBATION) >= 0.0


def _next_step(weight: FloatArray, beta: FloatArray) -> FloatArray:
    """Return by how much β of every case can grow."""
    n = weight.shape[1]
    possible = np.isfinite(weight).sum(axis=1)
    target = np.minimum(KEPT * n, 0.9 * possible)
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
