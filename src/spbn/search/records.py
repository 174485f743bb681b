"""Searches as plain data, for model files: the steps of a hill climbing and its start, and what PC found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spbn._base.checks import is_whole
from spbn.errors import ModelFileError, SpbnError
from spbn.graphs.dag import PDAG
from spbn.nodes.base import NodeType
from spbn.search.hill_climbing import SearchResult, Step, Trail
from spbn.search.operators import ARC_OPERATORS, ChangeType, Operator
from spbn.search.pc_stable import PCResult
from spbn.structure import Structure

_ARC_OPERATORS = {operator.kind: operator for operator in ARC_OPERATORS}


def search_to_record(search: SearchResult) -> dict[str, Any]:
    """Describe a search as lists, dicts, text and numbers."""
    start = search.start
    return {
        "start": {
            "arcs": [list(arc) for arc in start.arcs],
            "types": {node: node_type.name for node, node_type in start.types.items()},
        },
        "steps": [step_record(step) for step in search.steps],
        "best": search.best,
        "score": _number_record(search.score),
        "validation_score": _number_record(search.validation_score),
        "stop_reason": search.stop_reason,
    }


def search_from_record(record: Any, nodes: Sequence[str], inputs: Sequence[str] = ()) -> SearchResult:
    """Read what `to_record` wrote; anything that does not fit is a `ModelFileError`."""
    try:
        arcs, types = map(tuple, record["start"]["arcs"]), record["start"]["types"]
        trail = Trail(Structure(nodes, arcs, types, inputs=inputs))
        steps, best = [], _count(record["best"], len(record["steps"]))
        # Arcs and types alone: whether they are a network is looked at where one is used.
        found, types = set(trail.start.arcs), dict(trail.start.types)
        structure = trail.start
        for number, entry in enumerate(record["steps"], 1):
            step = step_of(entry, number, trail)
            step.operator.replay(found, types)
            trail.append(step.operator)
            steps.append(step)
            if number in (best, len(record["steps"])):
                last = Structure(nodes, sorted(found), types, inputs=inputs)
                structure = last if number == best else structure
        return SearchResult(
            structure,
            _number(record["score"]),
            _number(record["validation_score"]),
            tuple(steps),
            str(record["stop_reason"]),
            best,
        )
    except (SpbnError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"its description of the search makes no sense ({error!r:.200}).") from error


def step_record(step: Step) -> dict[str, Any]:
    """Describe a step as plain data."""
    return {
        "operator": _operator_record(step.operator),
        "delta": _number_record(step.delta),
        "score": _number_record(step.score),
        "validation_score": _number_record(step.validation_score),
        "misses": step.misses,
    }


def step_of(entry: Mapping[str, Any], number: int, trail: Trail) -> Step:
    """Read what `step_record` wrote."""
    delta, score = _number(entry["delta"]), _number(entry["score"])
    validation, misses = _number(entry["validation_score"]), _count(entry["misses"], number)
    return Step(_operator(entry["operator"], trail.start), delta, score, validation, misses, number, trail)


def _operator_record(operator: Operator) -> dict[str, str]:
    if isinstance(operator, ChangeType):
        before, after = operator.before.name, operator.after.name
        return {"kind": "type", "node": operator.node, "before": before, "after": after}
    return {"kind": operator.kind, "source": operator.source, "target": operator.target}


def _operator(record: Mapping[str, str], start: Structure) -> Operator:
    if record["kind"] == "type":
        return ChangeType(record["node"], NodeType.parse(record["before"]), NodeType.parse(record["after"]))
    for name in (record["source"], record["target"]):
        if name not in start.types and name not in start.inputs:
            raise ValueError(f"there is no node {name!r}")
    return _ARC_OPERATORS[record["kind"]](record["source"], record["target"])


def _number_record(number: float) -> float | str:
    """JSON has no infinities: a family that cannot be fitted is written as text."""
    return number if abs(number) < float("inf") else str(number)


def _count(value: Any, most: int | None = None) -> int:
    if not is_whole(value, 0, most):
        raise ValueError(f"{value!r} is not a count" + ("" if most is None else f" up to {most}"))
    return int(value)


def _number(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and value not in ("inf", "-inf"):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def pc_to_record(result: PCResult) -> dict[str, Any]:
    """Describe a result as lists, dicts, text and numbers."""
    separations = sorted((sorted(pair), sorted(given)) for pair, given in result.separating_sets.items())
    return {
        "arcs": [list(arc) for arc in result.pdag.arcs],
        "edges": [list(edge) for edge in result.pdag.edges],
        "separating_sets": [{"pair": pair, "given": given} for pair, given in separations],
        "tests_run": list(result.tests_run),
    }


def pc_from_record(record: Any, nodes: Sequence[str]) -> PCResult:
    """Read what `to_record` wrote; anything that does not fit is a `ModelFileError`."""
    try:
        pdag = PDAG(nodes, [(a, b) for a, b in record["arcs"]], [(a, b) for a, b in record["edges"]])
        separations, known = {}, set(nodes)
        for entry in record["separating_sets"]:
            a, b = entry["pair"]
            given = frozenset(entry["given"])
            if a == b or not {a, b, *given} <= known:
                raise ValueError(f"{entry!r} does not separate two nodes")
            separations[frozenset((a, b))] = given
        return PCResult(pdag, separations, tuple(_count(value) for value in record["tests_run"]))
    except (SpbnError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"its description of PC makes no sense ({error!r:.200}).") from error
