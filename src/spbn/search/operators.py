"""The moves of a structure search: which of them are allowed, and by how much each would change the score.

Operators are small frozen values. Applied to a structure, an operator gives a new one; its inverse undoes
that.

`Constraints` say what a search may and may not do. They are checked before it starts.

`Deltas` are kept up to date as the structure changes. Where a score can estimate changes from some of the
rows (`scores.likelihood.Preview`), a delta begins as an estimate with a margin, and is computed in full only
if it might be the greatest.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.checks import refuse, whole
from spbn.errors import ArgumentError, GraphError, KnowledgeError, argument, in_python, quoted, setting
from spbn.graphs.dag import DAG, REQUIRED_ARCS, Arc, Knowledge
from spbn.nodes.base import NodeType, impossible_arcs, place_of, refusal, refuse_impossible, registered
from spbn.rows.families import FamilyBatch
from spbn.scores.base import Score
from spbn.structure import Structure
from spbn.tables.table import Variable

KINDS = ("arcs", "types")
#: Rounding may change a delta by this share of the local scores that it is made of.
ROUNDING = 1e-13
#: Size of the parents' matrix of the families that are scored together: 64 MB.
LARGEST_BATCH = 1 << 26


@dataclass(frozen=True)
class _ArcOperator(ABC):
    """What is done with the arc source → target."""

    source: str
    target: str

    kind: ClassVar[str]

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.source, self.target) if self.kind == "reverse" else (self.target,)

    def replay(self, arcs: set[Arc], types: dict[str, NodeType]) -> None:
        """Do to arcs and types, in place, what `apply` does, without looking for cycles."""
        arc = self.source, self.target
        if (arc in arcs) == (self.kind == "add"):
            raise GraphError(f"{self} is impossible after the steps before it.")
        arcs.symmetric_difference_update((arc, arc[::-1]) if self.kind == "reverse" else (arc,))

    def __str__(self) -> str:
        return f"{self.kind} {self.source} → {self.target}"


@dataclass(frozen=True)
class AddArc(_ArcOperator):
    """Add the arc source → target."""

    kind = "add"

    @property
    def inverse(self) -> RemoveArc:
        return RemoveArc(self.source, self.target)

    def apply(self, structure: Structure) -> Structure:
        return structure.with_dag(structure.dag.with_arc(self.source, self.target))


@dataclass(frozen=True)
class RemoveArc(_ArcOperator):
    """Remove the arc source → target."""

    kind = "remove"

    @property
    def inverse(self) -> AddArc:
        return AddArc(self.source, self.target)

    def apply(self, structure: Structure) -> Structure:
        return structure.with_dag(structure.dag.without_arc(self.source, self.target))


@dataclass(frozen=True)
class ReverseArc(_ArcOperator):
    """Reverse the arc source → target."""

    kind = "reverse"

    @property
    def inverse(self) -> ReverseArc:
        return ReverseArc(self.target, self.source)

    def apply(self, structure: Structure) -> Structure:
        return structure.with_dag(structure.dag.with_reversed_arc(self.source, self.target))


@dataclass(frozen=True)
class ChangeType:
    """Change the type of a node."""

    node: str
    before: NodeType
    after: NodeType

    @property
    def touched(self) -> tuple[str, ...]:
        return (self.node,)

    @property
    def inverse(self) -> ChangeType:
        return ChangeType(self.node, self.after, self.before)

    def apply(self, structure: Structure) -> Structure:
        return structure.with_type(self.node, self.after)

    def replay(self, arcs: set[Arc], types: dict[str, NodeType]) -> None:
        """Do to types, in place, what `apply` does."""
        if self.node not in types:
            raise GraphError(f"{self.node!r} has no type that could change.")
        types[self.node] = self.after

    def __str__(self) -> str:
        return f"{self.node}: {self.before} → {self.after}"


ARC_OPERATORS = (AddArc, RemoveArc, ReverseArc)
Operator = AddArc | RemoveArc | ReverseArc | ChangeType


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which operators are allowed; matrices are by column order of the structure."""

    arcs: bool
    types: BoolArray  # nodes × choices: the types that nodes may change to
    choices: tuple[NodeType, ...]
    knowledge: Knowledge
    max_parents: int

    def addable(self, dag: DAG) -> BoolArray:
        """``[i, j]``: an arc i → j may be added."""
        return dag.addable() & ~self.knowledge.forbidden_arcs & self._room(dag)[None, :] & self.arcs

    def removable(self, dag: DAG) -> BoolArray:
        """``[i, j]``: the arc i → j may be removed."""
        return dag.matrix & ~self.knowledge.required_arcs & self.arcs

    def reversible(self, dag: DAG) -> BoolArray:
        """``[i, j]``: the arc i → j may be reversed."""
        turnable = ~self.knowledge.forbidden_arcs.T  # required arcs forbid their opposites
        return dag.reversible() & turnable & self._room(dag)[:, None] & self.arcs

    def _room(self, dag: DAG) -> BoolArray:
        return dag.matrix.sum(axis=0) < self.max_parents


def constrain(
    start: Structure,
    variables: Mapping[str, Variable],
    *,
    operators: Iterable[str],
    types: Iterable[NodeType],
    max_parents: int | None,
    required_arcs: Iterable[Arc],
    forbidden_arcs: Iterable[Arc],
    fixed_types: Iterable[str] | Mapping[str, NodeType | str],
) -> tuple[Structure, Constraints]:
    """Check the constraints against each other; return a start that meets them, with the required arcs.

    Arcs that no node type admits are forbidden.
    """
    kinds = (operators,) if isinstance(operators, str) else tuple(operators)
    if not kinds or not set(kinds) <= set(KINDS):
        refuse("operators", f"some of {', '.join(map(repr, KINDS))}", kinds)
    if max_parents is not None:
        whole("max_parents", max_parents, or_none=True)
    choices, required = tuple(types), list(required_arcs)
    names = start.dag.nodes
    impossible = impossible_arcs([variables[node] for node in names])
    refuse_impossible(impossible, [*start.arcs, *required])
    into_inputs = arcs_into(start.inputs, names)
    knowledge = Knowledge.of(
        names, required_arcs=required, forbidden_arcs=[*forbidden_arcs, *impossible, *into_inputs]
    )
    wrong = np.argwhere(start.dag.matrix & knowledge.forbidden_arcs).tolist()
    if wrong:
        named = ", ".join(f"{names[i]} → {names[j]}" for i, j in wrong)
        raise KnowledgeError(f"{argument('start')} has forbidden arcs: {named}.")
    dag = DAG.checked(names, start.dag.matrix | knowledge.required_arcs, REQUIRED_ARCS)
    limit = len(names) if max_parents is None else max_parents
    crowded = [node for node in dag.nodes if len(dag.parents(node)) > limit]
    if crowded:
        raise ArgumentError(
            f"{in_python('start', elsewhere=argument('required_arcs'))} gives more than "
            f"{setting('max_parents', max_parents)} parents to {quoted(crowded)}."
        )
    node_types = dict(start.types)
    fixed = {fixed_types} if isinstance(fixed_types, str) else set(fixed_types)
    for node in fixed:
        start.type(node)  # refuses what is not a node
        if isinstance(fixed_types, Mapping):
            node_types[node] = NodeType.parse(fixed_types[node])
    for node, node_type in node_types.items():
        if not node_type.admits(variables[node], ()):
            raise ArgumentError(refusal(node_type, variables[node], ()))
    changeable = [
        [
            "types" in kinds
            and node in node_types
            and node not in fixed
            and choice.admits(variables[node], ())
            for choice in choices
        ]
        for node in dag.nodes
    ]
    allowed = np.array(changeable, dtype=bool).reshape(len(dag.nodes), len(choices))
    constraints = Constraints("arcs" in kinds, allowed, choices, knowledge, limit)
    return Structure(start.nodes, dag.arcs, node_types, inputs=start.inputs), constraints


def arcs_into(inputs: Iterable[str], names: Iterable[str]) -> list[Arc]:
    """Return all arcs that would point into inputs, which have no parents."""
    everything = list(names)
    return [(source, name) for name in inputs for source in everything if source != name]


@final
class Deltas:
    """The deltas of one search.

    Adding, removing or reversing an arc i → j changes the families of j and
    perhaps i by one parent, so all arc operators follow from one
    matrix: ``toggled[i, j]`` is the change of j's local score when i joins or
    leaves its parents. After a step only the columns of the nodes it touched
    are recomputed, and only the entries that some allowed operator needs.
    """

    def __init__(self, score: Score, constraints: Constraints, structure: Structure) -> None:
        self._score = score
        self._constraints = constraints
        self._columns = np.array([score.nodes.index(node) for node in structure.dag.nodes])
        places = np.array([place_of(choice) for choice in constraints.choices], dtype=np.int64)
        order = np.argsort(places)
        self._choices, self._retypable = places[order], constraints.types[:, order]
        n = len(structure.dag.nodes)
        #: Local scores; those of inputs, which come last, are 0.
        self.local = np.zeros(n)
        self._types = np.zeros(n, dtype=np.int8)
        self._toggled = np.full((n, n), np.nan)
        self._retyped = np.full((n, len(self._choices)), -np.inf)
        #: How much greater the deltas may be: 0 where they are computed in full.
        self._toggled_margin = np.zeros((n, n))
        self._retyped_margin = np.zeros((n, len(self._choices)))
        self.update(structure, structure.nodes)

    def update(self, structure: Structure, touched: Iterable[str]) -> None:
        """Move to a structure whose families differ at the touched nodes; the score gets one batch."""
        self._structure = structure
        dag = structure.dag
        self._addable = self._constraints.addable(dag)
        self._removable = self._constraints.removable(dag)
        self._reversible = self._constraints.reversible(dag)
        stale = np.array([dag.index(node) for node in touched])
        self._toggled[:, stale] = np.nan
        self._retyped[stale] = -np.inf
        # Reversing i → j removes i from the parents of j, and adds j to those of i.
        needed = self._addable | self._removable | self._reversible | self._reversible.T
        sources, targets = np.nonzero(needed & np.isnan(self._toggled))
        self._types[stale] = [place_of(structure.type(structure.nodes[j])) for j in stale]
        other = self._retypable[stale] & (self._choices != self._types[stale, None])
        place, choice = np.nonzero(other)
        retyped = stale[place]

        # One list of families: as they are, with one parent more or fewer, and of another type.
        nodes = np.concatenate([stale, targets, retyped])
        cuts = [len(stale), len(stale) + len(targets)]
        toggles = np.full(len(nodes), -1)
        toggles[cuts[0] : cuts[1]] = sources
        types = self._types[nodes]
        types[cuts[1] :] = self._choices[choice]
        changes, margins = self._changes(nodes, toggles, types, unchanged=len(stale))
        _, self._toggled[sources, targets], self._retyped[retyped, choice] = np.split(changes, cuts)
        _, self._toggled_margin[sources, targets], self._retyped_margin[retyped, choice] = np.split(
            margins, cuts
        )

    def best(self, tabu: Iterable[Operator], epsilon: float) -> tuple[Operator, float] | None:
        """Return the operator with the greatest delta and that delta; None where none exceeds `epsilon`.

        Anything within rounding counts neither as an improvement nor as a
        difference. Ties go to the first by kind (add, remove, reverse, change of
        type) and column order.
        """
        tabu = list(tabu)
        while True:
            choice, least = self._best_known(tabu, epsilon)
            if self._score.preview is None:  # all are known
                return choice
            most = self._flat(tabu, margins=1.0)
            most[self._flat(tabu, margins=0.0) == most] = -np.inf
            position = int(most.argmax())
            if not most[position] > least:
                return choice
            self._settle(self._operator(position))

    def _best_known(
        self, tabu: Sequence[Operator], epsilon: float
    ) -> tuple[tuple[Operator, float] | None, float]:
        """Return the best of the operators whose deltas are known in full, and what another must exceed."""
        flat = self._flat(tabu, margins=-np.inf)
        while True:
            position = int(flat.argmax())
            delta = float(flat[position])
            if not delta > epsilon:
                return None, epsilon
            noise = self._noise(self._operator(position), delta)
            if delta > epsilon + noise:
                first = int(np.argmax(flat >= delta - noise))
                return (self._operator(first), float(flat[first])), max(epsilon, delta - noise)
            flat[position] = -np.inf

    def _flat(self, tabu: Sequence[Operator], *, margins: float) -> FloatArray:
        """Deltas of all operators in one list, each with some of its margin added; -inf where one is tabu."""
        deltas = self._by_kind(margins)
        for operator in tabu:
            if (place := self._locate(operator)) is not None:
                kind, i, j = place
                deltas[kind][i, j] = -np.inf
        return np.concatenate([kind.ravel() for kind in deltas])

    def _settle(self, operator: Operator) -> None:
        kind, i, j = self._locate(operator)  # type: ignore[misc]
        if kind == 3:
            retyped = np.array([i])
            scores = self._family_scores(retyped, np.array([-1]), self._choices[[j]].astype(np.int8))
            self._retyped[i, j], self._retyped_margin[i, j] = _change(scores, self.local[retyped])[0], 0.0
            return
        sources, targets = np.array([(i, j), (j, i)] if kind == 2 else [(i, j)]).T
        scores = self._family_scores(targets, sources, self._types[targets])
        self._toggled[sources, targets] = _change(scores, self.local[targets])
        self._toggled_margin[sources, targets] = 0.0

    def _noise(self, operator: Operator, delta: float) -> float:
        """By how much rounding may change the delta of an operator."""
        size = sum(abs(self.local[self._structure.dag.index(node)]) for node in operator.touched)
        return ROUNDING * max(1.0, 2.0 * size + abs(delta)) if np.isfinite(size + delta) else 0.0

    @property
    def total(self) -> float:
        return math.fsum(self.local)

    def _by_kind(self, margins: float) -> list[FloatArray]:
        """Deltas of all operators: arcs to add, to remove, to reverse, and types; -inf where not allowed."""
        toggled = _raised(self._toggled, self._toggled_margin, margins)
        with np.errstate(invalid="ignore"):  # -inf + inf: the new family cannot be fitted
            turned = toggled + toggled.T
        return [
            _masked(toggled, self._addable),
            _masked(toggled, self._removable),
            _masked(turned, self._reversible),
            _raised(self._retyped, self._retyped_margin, margins),
        ]

    def _operator(self, position: int) -> Operator:
        nodes = self._structure.dag.nodes
        n = len(nodes)
        kind, rest = divmod(position, n * n) if position < 3 * n * n else (3, position - 3 * n * n)
        if kind == 3:
            j, t = divmod(rest, len(self._choices))
            types = registered()
            return ChangeType(nodes[j], types[self._types[j]], types[self._choices[t]])
        i, j = divmod(rest, n)
        return ARC_OPERATORS[kind](nodes[i], nodes[j])

    def _locate(self, operator: Operator) -> tuple[int, int, int] | None:
        """Return the place of an operator's delta; None if it leads to a type that is never proposed."""
        index = self._structure.dag.index
        if isinstance(operator, ChangeType):
            (choice,) = np.nonzero(self._choices == place_of(operator.after))
            return (3, index(operator.node), int(choice[0])) if len(choice) else None
        kind = ARC_OPERATORS.index(type(operator))
        return kind, index(operator.source), index(operator.target)

    def _changes(
        self, nodes: IntArray, toggles: IntArray, types: npt.NDArray[np.int8], *, unchanged: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return by how much families differ from the present ones of their nodes, and the margins of that.

        The first of them are the present ones, whose scores are kept.
        """
        preview = self._score.preview
        if preview is None:
            scores = self._family_scores(nodes, toggles, types)
            self.local[nodes[:unchanged]] = scores[:unchanged]
            return _change(scores, self.local[nodes]), np.zeros(len(nodes))
        present = self._families(nodes, np.full_like(toggles, -1), self._types[nodes])
        self.local[nodes[:unchanged]] = self._score.local_batch(present.only(np.arange(unchanged)))
        changes, margins = np.zeros(len(nodes)), np.zeros(len(nodes))
        families = self._families(nodes, toggles, types)
        known = self._score.known(families)
        changes[known] = _change(self._score.local_batch(families.only(known)), self.local[nodes[known]])
        if not known.all():
            changes[~known], margins[~known] = preview.gains(families.only(~known), present.only(~known))
        return changes, margins

    def _family_scores(self, nodes: IntArray, toggles: IntArray, types: npt.NDArray[np.int8]) -> FloatArray:
        """Scores of families of some types, with the parent in `toggles` added or removed unless it is -1."""
        scores = np.empty(len(nodes))
        step = max(1, LARGEST_BATCH // len(self._score.nodes))
        for start in range(0, len(nodes), step):
            part = slice(start, start + step)
            scores[part] = self._score.local_batch(self._families(nodes[part], toggles[part], types[part]))
        return scores

    def _families(self, nodes: IntArray, toggles: IntArray, types: npt.NDArray[np.int8]) -> FamilyBatch:
        parents = self._structure.dag.matrix.T[nodes]
        toggled = np.flatnonzero(toggles >= 0)
        parents[toggled, toggles[toggled]] ^= True
        of_columns = np.zeros((len(nodes), len(self._score.nodes)), dtype=bool)
        of_columns[:, self._columns] = parents
        return FamilyBatch(self._score.nodes, self._columns[nodes], of_columns, types)


def _change(new: FloatArray, old: FloatArray) -> FloatArray:
    """Difference of local scores; a family that cannot be fitted is never an improvement."""
    with np.errstate(invalid="ignore"):  # -inf - -inf
        return np.where(new > -np.inf, new - old, -np.inf)


def _raised(deltas: FloatArray, margins: FloatArray, factor: float) -> FloatArray:
    """Return `deltas + factor * margins`: -inf where the factor is -inf and the margin is positive."""
    return deltas + np.where(margins > 0.0, factor * np.maximum(margins, np.finfo(float).tiny), 0.0)


def _masked(deltas: FloatArray, allowed: BoolArray) -> FloatArray:
    return np.where(allowed & ~np.isnan(deltas), deltas, -np.inf)
