"""Log-likelihood of CKDE families on a partition.

Under a named bandwidth rule a CKDE needs two set functions: J(S), the
log-density of the variables S with the bandwidth of |S| dimensions, and M(S),
the same with the bandwidth factor of |S| + 1 dimensions:

    score(i | Pa) = J(Pa ∪ {i}) - M(Pa).

Neither depends on which member of S is the child, so i → j and j → i share a
J, and all children of the same parents share an M. Each is computed once.

Where a row's parents lie absurdly far from all training rows, the difference of
the two has no digits left. Such families are computed row by row, and those
rows from the kernels directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import numpy as np

from spbn import bandwidth as bandwidths
from spbn import cholesky, kernels
from spbn.bandwidth import BandwidthRule
from spbn.compiling import compiled
from spbn.data import BoolArray, FloatArray, IntArray
from spbn.kernels.conditional import FAR, conditional_log_density
from spbn.scores.base import forget_older_half
from spbn.scores.partition import Partition
from spbn.structure import Family

_LARGEST_OUTPUT = 1 << 23  # log-densities that are held at a time: 64 MB
_MOST_TOTALS = 1 << 20  # that are remembered


class _VariableSet(NamedTuple):
    """A set of variables, by column number in order, and the dimension whose bandwidth factor it gets."""

    columns: tuple[int, ...]
    dimension: int


class _SetTotal(NamedTuple):
    """The log-density of all rows together, and whether some row is too far out to subtract it."""

    log_density: float
    far: bool


_NOTHING = _SetTotal(0.0, False)  # of no variables


@final
class KernelLikelihood:
    """The log-likelihood of CKDE families: prepared once, asked many times."""

    def __init__(self, partition: Partition, *, bandwidth: BandwidthRule, engine: str) -> None:
        bandwidths.require_rule(bandwidth)
        kernels.require_engine(engine)
        self._partition = partition
        self._position = {name: i for i, name in enumerate(partition.table.names)}
        self._rule = bandwidth
        self._engine = engine
        self._totals: dict[_VariableSet, _SetTotal] = {}

    def totals(self, families: Sequence[Family]) -> FloatArray:
        """Log-likelihood of every family; -inf where it cannot be fitted."""
        if callable(self._rule):
            return np.array([self.rows(family).sum() for family in families])
        pairs = [self._sets(family) for family in families]
        self._require_totals({variables for pair in pairs for variables in pair if variables.columns})
        out = np.empty(len(families))
        for f, (joint, parents) in enumerate(pairs):
            whole, part = self._totals[joint], self._totals.get(parents, _NOTHING)
            if not np.isfinite(whole.log_density):
                out[f] = -np.inf
            elif part.far:
                out[f] = self.rows(families[f]).sum()
            else:
                out[f] = whole.log_density - part.log_density
        return out

    def rows(self, family: Family) -> FloatArray:
        """Log-density of every queried row, in the partition's order; all -inf if it cannot be fitted."""
        whiteners = self._family_whiteners(family)
        if whiteners is None:
            return np.full(len(self._partition.evaluated), -np.inf)
        columns = self._columns(family)
        rows = self._log_density(columns[None], whiteners[None])[0]
        if family.parents:
            block = np.ascontiguousarray(whiteners[:, :-1, :-1])
            parents = self._log_density(columns[None, :-1], block[None])[0]
            far = parents < FAR
            rows = np.where(far, 0.0, rows) - np.where(far, 0.0, parents)
            if far.any():
                rows[far] = self._far_rows(columns, whiteners, far)
        return rows if np.isfinite(rows).all() else np.full(len(rows), -np.inf)

    def _columns(self, family: Family) -> IntArray:
        """Column numbers of a family, parents first."""
        return np.array([self._position[name] for name in (*family.parents, family.node)])

    def _sets(self, family: Family) -> tuple[_VariableSet, _VariableSet]:
        """Return the sets of J and M."""
        parents = sorted(self._position[parent] for parent in family.parents)
        joint = sorted([*parents, self._position[family.node]])
        return _VariableSet(tuple(joint), len(joint)), _VariableSet(tuple(parents), len(joint))

    def _require_totals(self, wanted: Iterable[_VariableSet]) -> None:
        """Compute the totals that are not known yet, sets of one size at a time."""
        asked = set(wanted)
        missing = sorted(asked - self._totals.keys())
        forget_older_half(self._totals, limit=_MOST_TOTALS - len(missing), keep=asked)
        at_a_time = max(1, _LARGEST_OUTPUT // self._partition.table.rows)
        for size in sorted({len(variables.columns) for variables in missing}):
            of_size = [variables for variables in missing if len(variables.columns) == size]
            for start in range(0, len(of_size), at_a_time):
                batch = of_size[start : start + at_a_time]
                densities = self._set_densities(batch)
                for variables, density in zip(batch, densities, strict=True):
                    self._totals[variables] = _SetTotal(float(density.sum()), bool(density.min() < FAR))

    def _set_densities(self, sets: Sequence[_VariableSet]) -> FloatArray:
        """Log-density of every queried row under sets of one size; -inf where a bandwidth is singular."""
        columns = np.array([variables.columns for variables in sets])
        whiteners, regular = self._named_whiteners(columns, [variables.dimension for variables in sets])
        out = np.full((len(sets), len(self._partition.evaluated)), -np.inf)
        if regular.any():
            out[regular] = self._log_density(columns[regular], whiteners[regular])
        return out

    def _named_whiteners(self, columns: IntArray, dimensions: Sequence[int]) -> tuple[FloatArray, BoolArray]:
        """Whiteners of sets under a named rule, for every group, and which sets have them."""
        train, rule = self._partition.train, str(self._rule)
        factors = [[bandwidths.factor(rule, n, d) for n in train.counts.tolist()] for d in dimensions]
        found: tuple[FloatArray, BoolArray] = _whiteners(
            train.scatters, train.counts, columns, np.array(factors)
        )
        return found

    def _family_whiteners(self, family: Family) -> FloatArray | None:
        """Whiteners of a family, parents first, for every group; None if one is singular."""
        columns = self._columns(family)
        if not callable(self._rule):
            whiteners, regular = self._named_whiteners(columns[None], [len(columns)])
            return whiteners[0] if regular[0] else None
        child_first = np.roll(columns, 1)
        found = []
        for group in range(self._partition.groups):
            train = self._partition.table.columns[child_first][:, self._partition.training_rows(group)]
            matrix = bandwidths.matrix(self._rule, train)
            whitener = cholesky.whitener(np.roll(matrix, -1, axis=(0, 1)))
            if whitener is None:
                return None
            found.append(whitener)
        return np.stack(found)

    def _far_rows(self, columns: IntArray, whiteners: FloatArray, far: BoolArray) -> FloatArray:
        """Log-density of rows whose parents are far away, from the kernels directly."""
        partition = self._partition
        first = int(partition.spans[0, 0])
        parts = []
        for group in range(partition.groups):
            queries = partition.query_rows(group)
            chosen = queries[far[queries - first]]
            if len(chosen):
                whitener = whiteners[group]
                train = whitener @ partition.table.columns[columns][:, partition.training_rows(group)]
                asked = whitener @ partition.table.columns[columns][:, chosen]
                parts.append(conditional_log_density(train, asked) + math.log(whitener[-1, -1]))
        return np.concatenate(parts)

    def _log_density(self, columns: IntArray, whiteners: FloatArray) -> FloatArray:
        partition = self._partition
        density = kernels.log_density(
            partition.table.columns, columns, whiteners, partition.spans, engine=self._engine
        )
        return partition.queried(density)


@compiled()
def _whiteners(
    scatters: FloatArray, counts: IntArray, columns: IntArray, factors: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Whitener of every set and group, and whether all groups of a set have one."""
    sets, d = columns.shape
    groups = len(counts)
    whiteners = np.zeros((sets, groups, d, d))
    regular = np.ones(sets, dtype=np.bool_)
    matrix = np.empty((d, d))
    lower = np.empty((d, d))
    for s in range(sets):
        for g in range(groups):
            factor = factors[s, g] / (counts[g] - 1.0)
            for i in range(d):
                for j in range(i + 1):
                    matrix[i, j] = factor * scatters[g, columns[s, i], columns[s, j]]
            if not cholesky.factorise(matrix, lower):
                regular[s] = False
                break
            cholesky.invert(lower, whiteners[s, g])
    return whiteners, regular
