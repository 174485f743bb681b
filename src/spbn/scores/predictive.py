"""Log-likelihood of rows under parameters that were fitted to other rows.

Cross-validation and hold-out are the same work: groups of rows, each
evaluated under what is fitted to its own training rows.

A CKDE under a named bandwidth rule needs two set functions: J(S), the
log-density of the variables S with the bandwidth of |S| dimensions, and M(S),
the same with the bandwidth factor of |S| + 1 dimensions:

    score(i | Pa) = J(Pa ∪ {i}) - M(Pa).

Neither depends on which member of S is the child, so i → j and j → i share a
J, and all children of the same parents share an M. Each is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from spbn import bandwidth as bandwidths
from spbn import cholesky, kernels
from spbn.bandwidth import BandwidthRule
from spbn.compiling import compiled
from spbn.cpds import LinearGaussian
from spbn.data import BoolArray, FloatArray, IntArray, Table, centred
from spbn.errors import FitError
from spbn.moments import Moments, leave_one_out
from spbn.scores.base import FamilyBatch
from spbn.scores.regression import ILL_CONDITIONED, MomentStack, log_likelihoods
from spbn.structure import Family, NodeType

_LARGEST_OUTPUT = 1 << 23  # log-densities that are held at a time: 64 MB


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows in groups, each to be evaluated under parameters fitted to other rows.

    Attributes
    ----------
    table
        The rows, reordered so that a group is contiguous.
    spans
        Groups × 6: query rows and twice training rows, see `kernels.exact.log_density`.
    evaluated
        For every queried row of `table`, in their order there, its place in results by row.
    train, test
        Moments of the training rows and of the evaluated rows of every group.
    """

    table: Table
    spans: IntArray
    evaluated: IntArray
    train: MomentStack
    test: MomentStack

    @classmethod
    def folds(cls, table: Table, labels: IntArray) -> Partition:
        """Evaluate every fold under parameters fitted to the others."""
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels))
        starts = np.concatenate([[0], ends[:-1]])
        rows = np.full(len(ends), table.rows)
        zeros = np.zeros(len(ends), dtype=np.int64)
        ordered = Table(table.names, centred(table.columns[:, order]))
        parts = [Moments.of(ordered.columns[:, a:b]) for a, b in zip(starts, ends, strict=True)]
        spans = np.stack([starts, ends, zeros, starts, ends, rows], axis=1)
        return cls(ordered, spans, order, MomentStack.of(leave_one_out(parts)), MomentStack.of(parts))

    @classmethod
    def holdout(cls, train: Table, test: Table) -> Partition:
        """Evaluate one table under parameters fitted to another."""
        both = Table(train.names, centred(np.concatenate([train.columns, test.columns], axis=1)))
        moments = [Moments.of(both.columns[:, : train.rows]), Moments.of(both.columns[:, train.rows :])]
        spans = np.array([[train.rows, both.rows, 0, train.rows, 0, 0]])
        return cls(
            both, spans, np.arange(test.rows), MomentStack.of(moments[:1]), MomentStack.of(moments[1:])
        )

    def queried(self, by_row: FloatArray) -> FloatArray:
        """Cut results for all rows of the table down to the queried ones."""
        return by_row[..., self.spans[0, 0] : self.spans[-1, 1]]


class _VariableSet(NamedTuple):
    """A set of variables, by column number in order, and the dimension whose bandwidth factor it gets."""

    columns: tuple[int, ...]
    dimension: int


@final
class PredictiveLikelihood:
    """The log-likelihood of families on a partition: prepared once, asked many times."""

    def __init__(self, partition: Partition, *, bandwidth: BandwidthRule, engine: str) -> None:
        bandwidths.require_rule(bandwidth)
        kernels.require_engine(engine)
        self._partition = partition
        self._position = {name: i for i, name in enumerate(partition.table.names)}
        self._rule = bandwidth
        self._engine = engine
        self._set_totals: dict[_VariableSet, float] = {}

    def totals(self, batch: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where it cannot be fitted."""
        kernel = np.array([family.type == NodeType.CKDE for family in batch.families], dtype=bool)
        out = np.empty(len(kernel))
        out[~kernel] = self._linear_totals(batch.only(~kernel))
        out[kernel] = self._kernel_totals(batch.only(kernel))
        return out

    def rows(self, family: Family) -> FloatArray:
        """Log-density of every evaluated row, in the order of the data; -inf if it cannot be fitted."""
        if family.type == NodeType.LG:
            ordered = self._linear_rows(family)
        elif callable(self._rule):
            ordered = self._custom_kernel_rows(family, self._rule)
        else:
            joint, parents = self._sets(family)
            ordered = self._densities([joint])[0]
            if parents.columns and np.isfinite(ordered[0]):
                ordered = ordered - self._densities([parents])[0]
        out = np.empty_like(ordered)
        out[self._partition.evaluated] = ordered
        return out

    def _linear_totals(self, batch: FamilyBatch) -> FloatArray:
        partition = self._partition
        totals, share = log_likelihoods(partition.train, partition.test, batch.members, batch.sizes)
        for f in np.flatnonzero((share < ILL_CONDITIONED) & (totals > -np.inf)):
            totals[f] = self._linear_rows(batch.families[f]).sum()
        return totals

    def _linear_rows(self, family: Family) -> FloatArray:
        table = self._partition.table
        parts = []
        for first, end, *training in self._partition.spans.tolist():
            train = np.r_[training[0] : training[1], training[2] : training[3]]
            try:
                cpd = LinearGaussian.fit(table.take(train), family.node, family.parents)
            except FitError:
                parts.append(np.full(end - first, -np.inf))
            else:
                parts.append(cpd.logpdf(table.take(np.arange(first, end))))
        rows = np.concatenate(parts)
        return rows if np.isfinite(rows).all() else np.full(len(rows), -np.inf)

    def _kernel_totals(self, batch: FamilyBatch) -> FloatArray:
        if callable(self._rule):
            rows = [self._custom_kernel_rows(family, self._rule) for family in batch.families]
            return np.array([row.sum() for row in rows])
        pairs = [self._sets(family) for family in batch.families]
        self._require_set_totals({variables for pair in pairs for variables in pair if variables.columns})
        totals = [
            self._set_totals[joint] - (self._set_totals[parents] if parents.columns else 0.0)
            for joint, parents in pairs
        ]
        return np.nan_to_num(np.array(totals), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)

    def _sets(self, family: Family) -> tuple[_VariableSet, _VariableSet]:
        """Return the sets of J and M."""
        parents = sorted(self._position[parent] for parent in family.parents)
        joint = sorted([*parents, self._position[family.node]])
        return _VariableSet(tuple(joint), len(joint)), _VariableSet(tuple(parents), len(joint))

    def _require_set_totals(self, wanted: Iterable[_VariableSet]) -> None:
        """Compute the totals that are not known yet, sets of one size at a time."""
        missing = sorted(variables for variables in wanted if variables not in self._set_totals)
        at_a_time = max(1, _LARGEST_OUTPUT // self._partition.table.rows)
        for size in sorted({len(variables.columns) for variables in missing}):
            of_size = [variables for variables in missing if len(variables.columns) == size]
            for start in range(0, len(of_size), at_a_time):
                batch = of_size[start : start + at_a_time]
                totals = self._densities(batch).sum(axis=1)
                self._set_totals.update(zip(batch, totals.tolist(), strict=True))

    def _densities(self, sets: Sequence[_VariableSet]) -> FloatArray:
        """Log-density of every queried row under sets of one size; -inf where a bandwidth is singular."""
        train = self._partition.train
        columns = np.array([variables.columns for variables in sets])
        factors = np.array(
            [
                [bandwidths.factor(str(self._rule), n, s.dimension) for n in train.counts.tolist()]
                for s in sets
            ]
        )
        whiteners, regular = _whiteners(train.scatters, train.counts, columns, factors)
        out = np.full((len(sets), len(self._partition.evaluated)), -np.inf)
        if regular.any():
            out[regular] = self._log_density(columns[regular], whiteners[regular])
        return out

    def _custom_kernel_rows(self, family: Family, rule: BandwidthRule) -> FloatArray:
        """Rows under a bandwidth that may treat the child differently from its parents."""
        columns = [self._position[name] for name in (family.node, *family.parents)]
        table = self._partition.table
        d = len(columns)
        parents_first = [*range(1, d), 0]
        whiteners = []
        for _, _, *training in self._partition.spans.tolist():
            train = np.r_[training[0] : training[1], training[2] : training[3]]
            matrix = bandwidths.matrix(rule, table.columns[columns][:, train])
            whiteners.append(
                cholesky.whitener(np.ascontiguousarray(matrix[np.ix_(parents_first, parents_first)]))
            )
        if any(whitener is None for whitener in whiteners):
            return np.full(len(self._partition.evaluated), -np.inf)
        stacked = np.stack(whiteners)[None]  # type: ignore[arg-type]
        ordered = np.array(columns)[parents_first][None]
        rows = self._log_density(ordered, stacked)[0]
        if d > 1:
            rows = rows - self._log_density(ordered[:, :-1], np.ascontiguousarray(stacked[..., :-1, :-1]))[0]
        return rows

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
            factor = factors[s, g] / (counts[g] - 1.0) if counts[g] > 1 else 0.0
            for i in range(d):
                for j in range(i + 1):
                    matrix[i, j] = factor * scatters[g, columns[s, i], columns[s, j]]
            if not cholesky.factorise(matrix, lower):
                regular[s] = False
                break
            cholesky.invert(lower, whiteners[s, g])
    return whiteners, regular
