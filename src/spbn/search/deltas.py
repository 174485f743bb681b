"""By how much every allowed operator would change the score, kept up to date as the structure changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import final

import numpy as np

from spbn.data import BoolArray, FloatArray
from spbn.graph import DAG
from spbn.scores.base import Score
from spbn.search.constraints import Constraints
from spbn.search.operators import AddArc, ChangeType, Operator, RemoveArc, ReverseArc
from spbn.structure import Family, NodeType, Structure

#: Deltas closer than this share of the score are equal: rounding must not decide.
TIE = 1e-13


@final
class Deltas:
    """The deltas of one search.

    An arc i → j that is added, removed or turned around changes the families
    of j and perhaps i by one parent, so that all arc operators follow from one
    matrix: ``toggled[i, j]`` is the change of j's local score when i joins or
    leaves its parents. After a step only the columns of the nodes it touched
    are computed again, and only the entries that some allowed operator needs.
    """

    def __init__(self, score: Score, constraints: Constraints, structure: Structure) -> None:
        self._score = score
        self._constraints = constraints
        self._types = [node_type for node_type in NodeType if node_type in score.node_types]
        n = len(structure.nodes)
        self.local = np.full(n, np.nan)
        self._toggled = np.full((n, n), np.nan)
        self._retyped = np.full((n, len(self._types)), np.nan)
        self.update(structure, structure.nodes)

    def update(self, structure: Structure, touched: Iterable[str]) -> None:
        """Take in a new structure whose families differ at the touched nodes; one batch goes to the score."""
        self._structure = structure
        dag = structure.dag
        self._addable = self._constraints.addable(dag)
        self._removable = self._constraints.removable(dag)
        self._reversible = self._constraints.reversible(dag)
        stale = [dag.index(node) for node in touched]
        self.local[stale] = np.nan
        self._toggled[:, stale] = np.nan
        self._retyped[stale] = np.nan
        # Turning i → j around removes i from the parents of j, and adds j to those of i.
        needed = self._addable | self._removable | self._reversible | self._reversible.T
        arcs = np.argwhere((needed & np.isnan(self._toggled)).T)[:, ::-1].tolist()
        types = [(j, t) for j in stale for t in range(len(self._types)) if self._constraints.types[j]]
        parents = self._parents(dag, {*stale, *(j for _, j in arcs)})
        families = [self._family(j, parents[j]) for j in stale]
        families += [self._family(j, parents[j] ^ {i}) for i, j in arcs]
        families += [self._family(j, parents[j], self._types[t]) for j, t in types]
        scores = self._score.local_many(families)
        self.local[stale] = scores[: len(stale)]
        changes = scores[len(stale) :]
        for (i, j), value in zip(arcs, changes[: len(arcs)].tolist(), strict=True):
            self._toggled[i, j] = _change(value, self.local[j])
        for (j, t), value in zip(types, changes[len(arcs) :].tolist(), strict=True):
            self._retyped[j, t] = _change(value, self.local[j])

    def best(self, tabu: Iterable[Operator]) -> tuple[Operator, float] | None:
        """Return the operator with the greatest delta and that delta; None where there is no operator.

        Ties go to the first by kind (add, remove, reverse, change of type) and column order.
        """
        deltas = self._by_kind()
        for operator in tabu:
            kind, i, j = self._locate(operator)
            deltas[kind][i, j] = -np.inf
        flat = np.concatenate([kind.ravel() for kind in deltas])
        greatest = flat.max(initial=-np.inf)
        if greatest == -np.inf:
            return None
        position = int(np.flatnonzero(flat >= greatest - self.noise)[0])
        return self._operator(position), float(flat[position])

    @property
    def total(self) -> float:
        """Score of the structure."""
        return math.fsum(self.local)

    @property
    def noise(self) -> float:
        """How far rounding may carry a delta."""
        finite = self.local[np.isfinite(self.local)]
        return TIE * max(1.0, float(np.abs(finite).sum()))

    def _by_kind(self) -> list[FloatArray]:
        """Deltas of all operators: arcs to add, to remove, to reverse, and types; -inf where not allowed."""
        with np.errstate(invalid="ignore"):  # -inf + inf: the new family cannot be fitted
            turned = self._toggled + self._toggled.T
        current = np.array([self._structure.types[node] for node in self._structure.nodes])
        other = np.stack([current != node_type for node_type in self._types], axis=1)
        return [
            _masked(self._toggled, self._addable),
            _masked(self._toggled, self._removable),
            _masked(turned, self._reversible),
            _masked(self._retyped, other & self._constraints.types[:, None]),
        ]

    def _operator(self, position: int) -> Operator:
        nodes = self._structure.nodes
        n = len(nodes)
        kind, rest = divmod(position, n * n) if position < 3 * n * n else (3, position - 3 * n * n)
        if kind == 3:
            j, t = divmod(rest, len(self._types))
            return ChangeType(nodes[j], self._structure.types[nodes[j]], self._types[t])
        i, j = divmod(rest, n)
        return (AddArc, RemoveArc, ReverseArc)[kind](nodes[i], nodes[j])

    def _locate(self, operator: Operator) -> tuple[int, int, int]:
        index = self._structure.dag.index
        if isinstance(operator, ChangeType):
            return 3, index(operator.node), self._types.index(operator.after)
        kind = (AddArc, RemoveArc, ReverseArc).index(type(operator))
        return kind, index(operator.source), index(operator.target)

    @staticmethod
    def _parents(dag: DAG, nodes: Iterable[int]) -> dict[int, frozenset[int]]:
        return {j: frozenset(np.flatnonzero(dag.matrix[:, j]).tolist()) for j in nodes}

    def _family(self, j: int, parents: frozenset[int], node_type: NodeType | None = None) -> Family:
        nodes = self._structure.nodes
        if node_type is None:
            node_type = self._structure.types[nodes[j]]
        return Family(nodes[j], tuple([nodes[i] for i in sorted(parents)]), node_type)


def _change(new: float, old: float) -> float:
    """Difference of local scores; a family that cannot be fitted is never an improvement."""
    return new - old if new > -np.inf else -np.inf


def _masked(deltas: FloatArray, allowed: BoolArray) -> FloatArray:
    return np.where(allowed & ~np.isnan(deltas), deltas, -np.inf)
