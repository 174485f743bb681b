"""Greedy hill climbing over structures and node types, with patience and tabu."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, final

from spbn._base.checks import at_least_0, seconds, whole
from spbn.errors import ArgumentError, DataError, GraphError, quoted
from spbn.graphs.dag import Arc
from spbn.nodes.base import NodeType
from spbn.scores.base import Score
from spbn.search.operators import ChangeType, Deltas, Operator, constrain
from spbn.structure import Structure

NO_IMPROVEMENT = "no operator improves the score"
OUT_OF_PATIENCE = "patience"
OUT_OF_STEPS = "max_steps"
OUT_OF_TIME = "max_seconds"
INTERRUPTED = "interrupted"
PAPER_TYPES = (NodeType.LG, NodeType.CKDE)


@final
class Trail:
    """The structures that a search went through, from its start on.

    Each is built on demand: keeping all of them would fill the memory if the graph is large.
    """

    def __init__(self, start: Structure) -> None:
        self.start = start
        self._operators: list[Operator] = []
        self._last = (0, start)

    def append(self, operator: Operator) -> None:
        self._operators.append(operator)

    def after(self, steps: int) -> Structure:
        done, structure = self._last if self._last[0] <= steps else (0, self.start)
        for operator in self._operators[done:steps]:
            structure = operator.apply(structure)
        self._last = (steps, structure)
        return structure


@dataclass(frozen=True)
class Step:
    """One step of a search: what was done, by how much the score rose, and where that led.

    `number` counts the steps from 1, and `misses` those since the validation score was last at its best.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> first = spbn.learn(data, model="gbn").search.steps[0]
    >>> print(first.number, first.operator, first.delta > 0)
    1 add C → D True
    """

    operator: Operator
    delta: float
    score: float
    validation_score: float
    misses: int
    number: int
    trail: Trail = field(repr=False, compare=False)

    @property
    def structure(self) -> Structure:
        """The structure after this step."""
        return self.trail.after(self.number)

    def __str__(self) -> str:
        return f"{self.operator}: {self.delta:+.6g}, validation {self.validation_score:.6g}"


@dataclass(frozen=True)
class SearchResult:
    """What a search found, how it went, and why it stopped.

    Attributes
    ----------
    structure
        The structure with the best validation score.
    score, validation_score
        Its scores. If the score has no validation part, both are the score itself.
    steps
        Every step that was taken, including those after the best structure.
    stop_reason
        "no operator improves the score", "patience", "max_steps", "max_seconds" or "interrupted".
    best
        The number of steps after which the structure was found; 0 if it is the start.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> search = spbn.learn(data, model="gbn").search
    >>> print(search.best, "steps;", search.stop_reason)
    3 steps; no operator improves the score
    """

    structure: Structure
    score: float
    validation_score: float
    steps: tuple[Step, ...]
    stop_reason: str
    best: int

    @property
    def start(self) -> Structure:
        """Where the search began."""
        return self.steps[0].trail.start if self.steps else self.structure

    def __str__(self) -> str:
        steps = "\n".join(f"{i:3d}. {step}" for i, step in enumerate(self.steps, 1))
        return f"{steps}\nstopped: {self.stop_reason}\n{self.structure}"


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search; `result` is what it had found by then, with "interrupted" as `stop_reason`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> from spbn.search import SearchInterrupted
    >>> start = spbn.Structure(data.columns, types="lg")
    >>> try:
    ...     found = spbn.search.hill_climb(spbn.scores.BIC(data), start)
    ... except SearchInterrupted as stop:  # Ctrl-C
    ...     found = stop.result
    """

    def __init__(self, result: SearchResult) -> None:
        super().__init__(f"the search was interrupted after {len(result.steps)} steps")
        self.result = result


def hill_climb(
    score: Score,
    start: Structure,
    *,
    operators: Iterable[str] = ("arcs", "types"),
    types: Iterable[NodeType | str] = PAPER_TYPES,
    patience: int = 5,
    epsilon: float = 0.0,
    max_parents: int | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    fixed_types: Iterable[str] | Mapping[str, NodeType | str] = (),
    on_step: Callable[[Step], object] | None = None,
    taken: Sequence[Step] = (),
) -> SearchResult:
    """Climb from a structure to a better one, one operator at a time.

    Every step applies the allowed operator with the greatest delta, if that
    exceeds `epsilon`. If the score has a validation part, a step that does not
    raise it to a new best is a miss: its inverse becomes tabu until the next
    best, and more than `patience` misses in a row end the search. The result is
    the best structure seen.

    Parameters
    ----------
    score
        The score to climb.
    start
        Where to begin; required arcs that it lacks are added.
    max_steps, max_seconds
        Stop after this many steps, or after the first step that ends later than this many seconds: a step
        that has begun is finished.
    operators
        "arcs" (add, remove, reverse), "types", or both.
    types
        The node types to choose from, of those that the score is defined for.
    fixed_types
        Nodes whose type stays what it is in `start`, or a dict of nodes and their types.
    on_step
        Called with every `Step` as it is taken.
    taken
        Steps of an earlier search with the same score, start and settings, which was cut short. The search
        continues after them as the earlier one would have, and they count as its own.

    Raises
    ------
    SearchInterrupted
        A `KeyboardInterrupt` that carries what was found before it.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> start = spbn.Structure(data.columns, types="lg")
    >>> found = spbn.search.hill_climb(spbn.scores.BIC(data), start, operators=["arcs"], max_parents=2)
    >>> print(found.stop_reason)
    no operator improves the score
    """
    began = time.monotonic()
    require_fitting("hill_climb", score, start)
    whole("patience", patience)
    if max_steps is not None:
        whole("max_steps", max_steps, or_none=True)
    at_least_0("epsilon", epsilon)
    seconds("max_seconds", max_seconds)
    structure, constraints = constrain(
        start,
        {variable.name: variable for variable in score.variables},
        operators=operators,
        types=[choice for choice in map(NodeType.parse, types) if choice in score.node_types],
        max_parents=max_parents,
        required_arcs=required_arcs,
        forbidden_arcs=forbidden_arcs,
        fixed_types=fixed_types,
    )
    require_types(score, structure)

    trail, steps = _retaken(structure, taken)
    structure = trail.after(len(steps))
    deltas = Deltas(score, constraints, structure)
    validation = _Validation(score, structure, deltas)
    best = _Best(structure, deltas.total, validation.total, validation.rank, 0)
    if steps:
        best = _best_of(score, trail, steps)
    tabu = {step.operator.inverse for step in steps[best.number :]}

    def result(stop_reason: str) -> SearchResult:
        found = SearchResult(
            best.structure, best.score, best.validation_score, tuple(steps), stop_reason, best.number
        )
        return with_best_types(found, score)

    try:
        while True:
            if steps and steps[-1].misses > patience:
                return result(OUT_OF_PATIENCE)
            if max_steps is not None and len(steps) >= max_steps:
                return result(OUT_OF_STEPS)
            if max_seconds is not None and time.monotonic() - began >= max_seconds:
                return result(OUT_OF_TIME)
            choice = deltas.best(tabu, epsilon)
            if choice is None:
                return result(NO_IMPROVEMENT)
            operator, delta = choice
            structure = operator.apply(structure)
            trail.append(operator)
            deltas.update(structure, operator.touched)
            validation.update(structure, operator.touched)
            number, is_best = len(steps) + 1, validation.rank > best.rank
            misses = 0 if is_best else number - best.number
            step = Step(operator, delta, deltas.total, validation.total, misses, number, trail)
            steps.append(step)  # before `best` moves on to it: an interrupt may come in between
            if is_best:
                best = _Best(structure, deltas.total, validation.total, validation.rank, number)
                tabu.clear()
            else:
                tabu.add(operator.inverse)
            if on_step is not None:
                on_step(step)
    except KeyboardInterrupt:
        raise SearchInterrupted(result(INTERRUPTED)) from None


def _retaken(start: Structure, taken: Iterable[Step]) -> tuple[Trail, list[Step]]:
    trail, steps = Trail(start), list[Step]()
    for step in taken:
        trail.append(step.operator)
        steps.append(replace(step, number=len(steps) + 1, trail=trail))
    try:
        trail.after(len(steps))
    except GraphError as error:
        raise ArgumentError(f"taken has steps that cannot be taken from start: {error}") from error
    return trail, steps


def with_best_types(result: SearchResult, score: Score) -> SearchResult:
    """Give the nodes of what was found the types that the score chose, as further steps without a gain."""
    found, typed = result.structure, score.best_types(result.structure)
    changes = [
        ChangeType(node, found.type(node), typed.type(node))
        for node in found.nodes
        if found.type(node) != typed.type(node)
    ]
    if not changes:
        return result
    trail, steps = _retaken(result.start, result.steps[: result.best])
    for change in changes:
        trail.append(change)
        number = len(steps) + 1
        steps.append(Step(change, 0.0, result.score, result.validation_score, 0, number, trail))
    return replace(result, structure=typed, steps=tuple(steps), best=len(steps))


class _Best(NamedTuple):
    """The best structure so far, what it is compared by, and after how many steps it was found."""

    structure: Structure
    score: float
    validation_score: float
    rank: tuple[int, float]
    number: int


def _best_of(score: Score, trail: Trail, steps: Sequence[Step]) -> _Best:
    """Return the best structure of the steps taken so far: the start if all of them were misses."""
    number = steps[-1].number - steps[-1].misses
    structure = trail.after(number)
    families = structure.families()
    local = dict(zip(structure.nodes, (score.validation or score).local_many(families).tolist(), strict=True))
    if number:
        return _Best(
            structure, steps[number - 1].score, steps[number - 1].validation_score, _rank(local), number
        )
    return _Best(structure, math.fsum(score.local_many(families)), math.fsum(local.values()), _rank(local), 0)


def _rank(local: Mapping[str, float]) -> tuple[int, float]:
    """Return what structures are compared by: a node that cannot be fitted must not hide the others."""
    fitted = [value for value in local.values() if value > -math.inf]
    return len(fitted), math.fsum(fitted)


class _Validation:
    """The validation score of the current structure; the score itself if it has no validation part."""

    def __init__(self, score: Score, structure: Structure, deltas: Deltas) -> None:
        self._score = score
        self._deltas = deltas
        self._local = dict.fromkeys(structure.nodes, -math.inf)
        self.update(structure, structure.nodes)

    def update(self, structure: Structure, touched: Iterable[str]) -> None:
        if self._score.validation is not None:
            nodes = list(touched)
            values = self._score.validation.local_many([structure.family(node) for node in nodes])
            self._local.update(zip(nodes, values.tolist(), strict=True))
        else:
            local = self._deltas.local[: len(structure.nodes)]  # behind them are inputs
            self._local.update(zip(structure.nodes, local.tolist(), strict=True))

    @property
    def total(self) -> float:
        return math.fsum(self._local.values())

    @property
    def rank(self) -> tuple[int, float]:
        return _rank(self._local)


def require_fitting(search: str, score: object, start: object) -> None:
    """Refuse a score that is none, or that lacks nodes of the start."""
    if not isinstance(score, Score) or not isinstance(start, Structure):
        raise ArgumentError(
            f"{search} takes a score and a Structure to start from. "
            f"Got {type(score).__name__} and {type(start).__name__}."
        )
    absent = [node for node in start.dag.nodes if node not in score.nodes]
    if absent:
        raise DataError(
            f"the score's data lacks nodes of start: {quoted(absent)}. It has {quoted(score.nodes)}."
        )


def require_types(score: Score, start: Structure) -> None:
    """Refuse node types that a score is not defined for."""
    wrong = [node for node, node_type in start.types.items() if node_type not in score.node_types]
    if wrong:
        allowed = " or ".join(sorted(map(str, score.node_types)))
        raise ArgumentError(
            f"{type(score).__name__} is defined for nodes of type {allowed} only. start has other types at "
            f"{quoted(wrong)}: choose another score, or other types."
        )
