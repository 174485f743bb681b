"""What PC found as plain data, for model files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spbn.errors import ModelFileError, SpbnError
from spbn.graphs.dag import PDAG
from spbn.pc.algorithm import PCResult


def to_record(result: PCResult) -> dict[str, Any]:
    """Describe a result as lists, dicts, text and numbers."""
    separations = sorted((sorted(pair), sorted(given)) for pair, given in result.separating_sets.items())
    return {
        "arcs": [list(arc) for arc in result.pdag.arcs],
        "edges": [list(edge) for edge in result.pdag.edges],
        "separating_sets": [{"pair": pair, "given": given} for pair, given in separations],
        "tests_run": list(result.tests_run),
    }


def from_record(record: Any, nodes: Sequence[str]) -> PCResult:
    """Read what `to_record` wrote; anything that does not fit is a `ModelFileError`."""
    try:
        pdag = PDAG(nodes, [(a, b) for a, b in record["arcs"]], [(a, b) for a, b in record["edges"]])
        separations = {}
        for entry in record["separating_sets"]:
            a, b = entry["pair"]
            given = frozenset(entry["given"])
            if a == b or not {a, b, *given} <= set(nodes):
                raise ValueError(f"{entry!r} does not separate two nodes")
            separations[frozenset((a, b))] = given
        return PCResult(pdag, separations, tuple(_count(value) for value in record["tests_run"]))
    except (SpbnError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"its description of PC makes no sense ({error!r:.200}).") from error


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value
