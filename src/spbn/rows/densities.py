"""Log-densities of sets of columns on a partition: what all kernel families are made of.

Two set functions are enough under a named bandwidth rule: J(S), the log-density of the variables S
with the bandwidth of |S| dimensions, and M(S), the same with the bandwidth factor of |S| + 1
dimensions. Neither depends on which member of S is the child, so i → j and j → i share a J, and
all children of the same parents share an M. Each is computed once.

Both come at one scale, with the bandwidth matrix as it is, or at all of `multiscale.SCALES`, which
multiply it, for little more than the price of one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, final

import numpy as np

from spbn import kernels
from spbn._base.arrays import BoolArray, FloatArray, IntArray, forget_older_half
from spbn._base.jit import compiled
from spbn.kernels import estimates as bandwidths
from spbn.kernels.conditional import FAR, conditional_log_density, quotient
from spbn.kernels.estimates import BandwidthRule
from spbn.numerics import gaussian
from spbn.rows.families import FamilyBatch, VariableSet
from spbn.rows.partition import Partition

LARGEST_OUTPUT = 1 << 23  # log-densities that are computed at a time: 64 MB
MOST_TOTALS = 1 << 20  # that are remembered
KEPT_BYTES = 1 << 28  # of rows, if they are asked for


class _Total(NamedTuple):
    """By scale, the log-density of all rows together, and whether some row is too far out to subtract it."""

    log_density: FloatArray
    far: BoolArray


@final
class SetDensities:
    """The log-densities of sets of columns: prepared once, asked many times."""

    def __init__(
        self,
        partition: Partition,
        bandwidth: BandwidthRule,
        engine: str,
        *,
        scales: Sequence[float] = (1.0,),
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.scales = tuple(scales)
        self._partition = partition
        self._rule = bandwidth
        self._engine = engine
        self._kept_bytes = kept_bytes
        self._totals: dict[VariableSet, _Total] = {}
        self._rows: OrderedDict[VariableSet, FloatArray] = OrderedDict()

    def totals(self, sets: Sequence[VariableSet]) -> tuple[FloatArray, BoolArray]:
        """Return the log-density of all queried rows together, and whether one of them is far out.

        Both are sets × scales; -inf where the bandwidth is singular.
        """
        self._require_totals({variables for variables in sets if variables.columns})
        shape = (len(sets), len(self.scales))
        log_densities, far = np.zeros(shape), np.zeros(shape, dtype=bool)
        for number, variables in enumerate(sets):
            if variables.columns:  # the density of no variables is 1
                log_densities[number], far[number] = self._totals[variables]
        return log_densities, far

    def rows(self, sets: Sequence[VariableSet]) -> FloatArray:
        """Return sets × scales × queried rows; they are kept, as far as `kept_bytes` go."""
        wanted = dict.fromkeys(sets)
        found = {variables: self._rows[variables] for variables in wanted if variables in self._rows}
        for of_size in _by_size([variables for variables in wanted if variables not in found]):
            found.update(zip(of_size, self._computed(of_size), strict=True))
        nothing = np.zeros((len(self.scales), self._partition.queries))
        out = np.stack([found[s] if s.columns else nothing for s in sets])
        for variables, rows in found.items():
            self._rows[variables] = rows
            self._rows.move_to_end(variables)
        while len(self._rows) * nothing.nbytes > self._kept_bytes:
            self._rows.popitem(last=False)
        return out

    def conditional_totals(self, families: FamilyBatch) -> FloatArray:
        """Return the log-density of nodes given parents, of all rows together: families × scales.

        Under a named rule that is J of the members less M of the parents. A bandwidth function may treat the
        child differently from its parents, so nothing can be shared: such families are computed one by one.
        So are those with rows whose parents lie too far out to subtract M.
        """
        if callable(self._rule):
            return self.conditional_values(families).sum(axis=2)
        joints, parents = families.sets
        whole, (part, far) = self.totals(joints)[0], self.totals(parents)
        totals = np.where(np.isfinite(whole), whole - np.where(np.isfinite(part), part, 0.0), -np.inf)
        for f, members in enumerate(families.each):
            if far[f].any() and np.isfinite(whole[f]).any():
                totals[f] = self.family_rows(members).sum(axis=1)
        return totals

    def conditional_values(self, families: FamilyBatch) -> FloatArray:
        """Return the same by row, families × scales × queried rows; -inf throughout where it is in one."""
        if callable(self._rule):
            return np.stack([self.family_rows(members) for members in families.each])
        joints, parents = families.sets
        rows, below = self.rows(joints), self.rows(parents)
        for f, members in enumerate(families.each):
            if (below[f] < FAR).any():
                rows[f] = self.family_rows(members)
            else:
                rows[f] -= below[f]
        rows[~np.isfinite(rows).all(axis=2)] = -np.inf
        return rows

    def family_rows(self, members: IntArray) -> FloatArray:
        """Return the log-density of the last of some columns given the others: scales × queried rows.

        All -inf if it cannot be fitted.
        """
        whiteners = self._family_whiteners(members)
        if whiteners is None:
            return np.full((len(self.scales), self._partition.queries), -np.inf)
        rows = self._log_density(members[None], whiteners[None])[0]
        if len(members) > 1:
            block = np.ascontiguousarray(whiteners[:, :-1, :-1])
            parents = self._log_density(members[None, :-1], block[None])[0]
            for number, scale in enumerate(self.scales):
                narrowed = whiteners / math.sqrt(scale)
                rows[number] = quotient(
                    rows[number], parents[number], partial(self._far_rows, members, narrowed)
                )
        rows[~np.isfinite(rows).all(axis=1)] = -np.inf
        return rows

    def _require_totals(self, asked: set[VariableSet]) -> None:
        """Compute the totals that are not known yet, sets of one size at a time."""
        missing = sorted(asked - self._totals.keys())
        forget_older_half(self._totals, limit=MOST_TOTALS - len(missing), keep=asked)
        at_a_time = max(1, LARGEST_OUTPUT // (len(self.scales) * self._partition.table.rows))
        for of_size in _by_size(missing):
            for start in range(0, len(of_size), at_a_time):
                batch = of_size[start : start + at_a_time]
                for variables, density in zip(batch, self._computed(batch), strict=True):
                    self._totals[variables] = _Total(density.sum(axis=1), density.min(axis=1) < FAR)

    def _computed(self, sets: Sequence[VariableSet]) -> FloatArray:
        """Log-densities under sets of one size, sets × scales × rows; -inf where a bandwidth is singular."""
        columns = np.array([variables.columns for variables in sets])
        whiteners, regular = self._named_whiteners(columns, [variables.dimension for variables in sets])
        out = np.full((len(sets), len(self.scales), self._partition.queries), -np.inf)
        if regular.any():
            out[regular] = self._log_density(columns[regular], whiteners[regular])
        return out

    def _named_whiteners(self, columns: IntArray, dimensions: Sequence[int]) -> tuple[FloatArray, BoolArray]:
        """Whiteners of sets under a named rule, for every group, and which sets have them."""
        train, rule = self._partition.train, str(self._rule)
        counts = train.counts.tolist()
        factors = {d: [bandwidths.factor(rule, n, d) for n in counts] for d in set(dimensions)}
        sets, d = columns.shape
        whiteners, regular = np.zeros((sets, len(counts), d, d)), np.ones(sets, dtype=np.bool_)
        by_set = np.array([factors[d] for d in dimensions])
        _whiteners(train.scatters, train.counts, columns, by_set, whiteners, regular)
        return whiteners, regular

    def _family_whiteners(self, members: IntArray) -> FloatArray | None:
        """Whiteners of a family, parents first, for every group; None if one is singular."""
        if not callable(self._rule):
            whiteners, regular = self._named_whiteners(members[None], [len(members)])
            return whiteners[0] if regular[0] else None
        found = []
        for group in range(self._partition.groups):
            train = self._partition.table.columns[members][:, self._partition.training_rows(group)]
            whitener = gaussian.whitener(bandwidths.family_matrix(self._rule, train))
            if whitener is None:
                return None
            found.append(whitener)
        return np.stack(found)

    def _far_rows(self, members: IntArray, whiteners: FloatArray, far: BoolArray) -> FloatArray:
        """Log-density of rows whose parents are far away, from the kernels directly."""
        partition = self._partition
        columns = partition.table.columns[members]
        parts, first = [], 0
        for group in range(partition.groups):
            queries = partition.query_rows(group)
            chosen = queries[far[first : first + len(queries)]]
            first += len(queries)
            if len(chosen):
                whitener = whiteners[group]
                train = whitener @ columns[:, partition.training_rows(group)]
                asked = whitener @ columns[:, chosen]
                parts.append(conditional_log_density(train, asked) + math.log(whitener[-1, -1]))
        return np.concatenate(parts)

    def _log_density(self, columns: IntArray, whiteners: FloatArray) -> FloatArray:
        points, spans = self._partition.table.columns, self._partition.spans
        if len(self.scales) == 1:
            density = kernels.log_density(points, columns, whiteners, spans, engine=self._engine)[:, None]
        else:
            density = kernels.log_density_by_scale(points, columns, whiteners, spans, engine=self._engine)
        return self._partition.queried(density)


def _by_size(sets: Sequence[VariableSet]) -> list[list[VariableSet]]:
    """Group sets by how many variables they have; the empty set has nothing to compute."""
    sizes = sorted({len(variables.columns) for variables in sets} - {0})
    return [[variables for variables in sets if len(variables.columns) == size] for size in sizes]


@compiled()
def _whiteners(
    scatters: FloatArray,
    counts: IntArray,
    columns: IntArray,
    factors: FloatArray,
    whiteners: FloatArray,
    regular: BoolArray,
) -> None:
    """Put in the whitener of every set and group, and False where a group of a set has none."""
    sets, d = columns.shape
    groups = len(counts)
    matrix = np.empty((d, d))
    lower = np.empty((d, d))
    for s in range(sets):
        for g in range(groups):
            factor = factors[s, g] / (counts[g] - 1.0)
            for i in range(d):
                for j in range(i + 1):
                    matrix[i, j] = factor * scatters[g, columns[s, i], columns[s, j]]
            if not gaussian.factorise(matrix, d, lower):
                regular[s] = False
                break
            gaussian.invert(lower, whiteners[s, g])
