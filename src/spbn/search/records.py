"""Searches as plain data, for model files: what was done from which start, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spbn.errors import ModelFileError, SpbnError
from spbn.search.hill_climbing import SearchResult, Step
from spbn.search.operators import AddArc, ChangeType, Operator, RemoveArc, ReverseArc
from spbn.structure import NodeType, Structure

_ARC_OPERATORS: dict[str, type[AddArc] | type[RemoveArc] | type[ReverseArc]] = {
    "add": AddArc,
    "remove": RemoveArc,
    "reverse": ReverseArc,
}


def to_record(search: SearchResult) -> dict[str, Any]:
    """Describe a search in lists, dicts, text and numbers."""
    steps = search.steps
    start = steps[0].operator.inverse.apply(steps[0].structure) if steps else search.structure
    visited = [start, *(step.structure for step in steps)]
    return {
        "start": {
            "arcs": [list(arc) for arc in start.arcs],
            "types": {node: node_type.value for node, node_type in start.types.items()},
        },
        "steps": [
            {
                "operator": _operator_record(step.operator),
                "delta": _number_record(step.delta),
                "score": _number_record(step.score),
                "validation_score": _number_record(step.validation_score),
                "misses": step.misses,
            }
            for step in steps
        ],
        "best": max(i for i, structure in enumerate(visited) if structure == search.structure),
        "score": _number_record(search.score),
        "validation_score": _number_record(search.validation_score),
        "stop_reason": search.stop_reason,
    }


def from_record(record: Any, nodes: Sequence[str]) -> SearchResult:
    """Read what `to_record` wrote; whatever does not fit is a `ModelFileError`."""
    try:
        structure = Structure(nodes, map(tuple, record["start"]["arcs"]), record["start"]["types"])
        visited, steps = [structure], []
        for entry in record["steps"]:
            operator = _operator(entry["operator"])
            structure = operator.apply(structure)
            delta, score = _number(entry["delta"]), _number(entry["score"])
            validation = _number(entry["validation_score"])
            steps.append(Step(operator, delta, score, validation, int(entry["misses"]), structure))
            visited.append(structure)
        return SearchResult(
            visited[record["best"]],
            _number(record["score"]),
            _number(record["validation_score"]),
            tuple(steps),
            str(record["stop_reason"]),
        )
    except (SpbnError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"its description of the search makes no sense ({error!r:.200}).") from error


def _operator_record(operator: Operator) -> dict[str, str]:
    if isinstance(operator, ChangeType):
        return {"kind": "type", "node": operator.node, "before": operator.before, "after": operator.after}
    kind = next(kind for kind, cls in _ARC_OPERATORS.items() if isinstance(operator, cls))
    return {"kind": kind, "source": operator.source, "target": operator.target}


def _operator(record: Mapping[str, str]) -> Operator:
    if record["kind"] == "type":
        return ChangeType(record["node"], NodeType.parse(record["before"]), NodeType.parse(record["after"]))
    return _ARC_OPERATORS[record["kind"]](record["source"], record["target"])


def _number_record(number: float) -> float | str:
    """JSON has no infinities: a family that cannot be fitted is written as text."""
    return number if abs(number) < float("inf") else str(number)


def _number(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and value not in ("inf", "-inf"):
        raise ValueError(f"{value!r} is no number")
    return float(value)
