"""By how much every allowed operator would change the score, kept up to date as the structure changes."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from typing import final

import numpy as np

from spbn.data import BoolArray, FloatArray, IntArray
from spbn.scores.base import Score
from spbn.search.constraints import Constraints
from spbn.search.operators import AddArc, ChangeType, Operator, RemoveArc, ReverseArc
from spbn.structure import Family, NodeType, Structure

#: Rounding may carry a delta by this share of the local scores that it is made of.
ROUNDING = 1e-13


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
        self._retyped[stale] = -np.inf
        # Turning i → j around removes i from the parents of j, and adds j to those of i.
        needed = self._addable | self._removable | self._reversible | self._reversible.T
        targets, sources = np.nonzero((needed & np.isnan(self._toggled)).T)
        current = [structure.family(structure.nodes[j]) for j in stale]
        toggled = self._toggled_families(sources, targets)
        retyped = [
            (j, t, family._replace(type=other))
            for j, family in zip(stale, current, strict=True)
            for t, other in enumerate(self._types)
            if self._constraints.types[j] and other is not family.type
        ]
        scores = self._score.local_many([*current, *toggled, *(family for _, _, family in retyped)])
        cuts = [len(current), len(current) + len(toggled)]
        self.local[stale], toggled_scores, retyped_scores = np.split(scores, cuts)
        self._toggled[sources, targets] = _change(toggled_scores, self.local[targets])
        for (j, t, _), value in zip(retyped, retyped_scores, strict=True):
            self._retyped[j, t] = _change(value, self.local[j])

    def best(self, tabu: Iterable[Operator], epsilon: float) -> tuple[Operator, float] | None:
        """Return the operator with the greatest delta and that delta; None where none exceeds `epsilon`.

        What rounding may decide does not count: neither as an improvement nor as a
        difference. Ties go to the first by kind (add, remove, reverse, change of
        type) and column order.
        """
        deltas = self._by_kind()
        for operator in tabu:
            kind, i, j = self._locate(operator)
            deltas[kind][i, j] = -np.inf
        flat = np.concatenate([kind.ravel() for kind in deltas])
        while True:
            position = int(flat.argmax())
            delta = float(flat[position])
            if not delta > epsilon:
                return None
            noise = self._noise(self._operator(position), delta)
            if delta > epsilon + noise:
                first = int(np.argmax(flat >= delta - noise))
                return self._operator(first), float(flat[first])
            flat[position] = -np.inf

    def _noise(self, operator: Operator, delta: float) -> float:
        """How far rounding may carry the delta of an operator."""
        size = sum(abs(self.local[self._structure.dag.index(node)]) for node in operator.touched)
        return ROUNDING * max(1.0, 2.0 * size + abs(delta)) if np.isfinite(size + delta) else 0.0

    @property
    def total(self) -> float:
        """Score of the structure."""
        return math.fsum(self.local)

    def _by_kind(self) -> list[FloatArray]:
        """Deltas of all operators: arcs to add, to remove, to reverse, and types; -inf where not allowed."""
        with np.errstate(invalid="ignore"):  # -inf + inf: the new family cannot be fitted
            turned = self._toggled + self._toggled.T
        return [
            _masked(self._toggled, self._addable),
            _masked(self._toggled, self._removable),
            _masked(turned, self._reversible),
            self._retyped.copy(),
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

    def _toggled_families(self, sources: IntArray, targets: IntArray) -> list[Family]:
        """Return the family of each target with the source put among its parents, or taken out."""
        nodes, dag = self._structure.nodes, self._structure.dag
        families = []
        make = partial(tuple.__new__, Family)  # a third of the time of Family(...), and there are many
        arcs = zip(targets.tolist(), sources.tolist(), strict=True)
        for j, group in itertools.groupby(arcs, key=itemgetter(0)):
            is_parent = dag.matrix[:, j].tolist()
            parents = [i for i, parent in enumerate(is_parent) if parent]
            names = tuple([nodes[i] for i in parents])
            node, node_type = nodes[j], self._structure.types[nodes[j]]
            if not parents:
                families += [make((node, (nodes[i],), node_type)) for _, i in group]
                continue
            for _, i in group:
                k = bisect.bisect_left(parents, i)
                changed = names[:k] + names[k + 1 :] if is_parent[i] else (*names[:k], nodes[i], *names[k:])
                families.append(make((node, changed, node_type)))
        return families


def _change(new: FloatArray, old: FloatArray) -> FloatArray:
    """Difference of local scores; a family that cannot be fitted is never an improvement."""
    with np.errstate(invalid="ignore"):  # -inf - -inf
        return np.where(new > -np.inf, new - old, -np.inf)


def _masked(deltas: FloatArray, allowed: BoolArray) -> FloatArray:
    return np.where(allowed & ~np.isnan(deltas), deltas, -np.inf)
