"""The three steps of PC, one after the other, and their result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray
from spbn.errors import ArgumentError
from spbn.graphs.dag import PDAG, Arc
from spbn.graphs.knowledge import Knowledge
from spbn.graphs.orientation import meek
from spbn.independence.base import IndependenceTest
from spbn.nodes.admission import impossible_arcs, refuse_impossible
from spbn.search.pc_colliders import ColliderRule, judge_triples, orient_colliders
from spbn.search.pc_skeleton import Inquiry, Report, Skeleton, find_skeleton


@dataclass(frozen=True)
class PCResult:
    """What PC found, and how.

    Examples
    --------
    >>> import spbn
    >>> true = spbn.datasets.synthetic_structure()
    >>> found = spbn.pc(spbn.Oracle(true))
    >>> sorted(found.separating_sets[frozenset("AD")])
    ['C']
    """

    #: The graph: arcs where the direction is known, edges where it is not.
    pdag: PDAG
    #: For every pair that a test separated, the condition that makes it independent.
    separating_sets: Mapping[frozenset[str], frozenset[str]]
    #: ``tests_run[k]``: how many tests with k variables in the condition were run.
    tests_run: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "separating_sets", MappingProxyType(dict(self.separating_sets)))

    def __reduce__(self) -> tuple[Any, ...]:
        return PCResult, (self.pdag, dict(self.separating_sets), self.tests_run)


def pc(
    test: IndependenceTest,
    *,
    alpha: float = 0.05,
    max_conditioning: int | None = None,
    orientation: ColliderRule = "majority",
    required_edges: Iterable[Arc] = (),
    forbidden_edges: Iterable[Arc] = (),
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    progress: bool = False,
) -> PCResult:
    """Learn the graph of the variables of a test by PC-stable.

    If the tests are right and the true graph is a DAG without hidden common
    causes, this is its equivalence class. The number of tests grows
    exponentially with the number of neighbours of a node: `max_conditioning`
    limits it, and so does ``orientation="sepset"``, which needs none beyond
    those of the skeleton.

    Parameters
    ----------
    test
        An independence test on the data, such as ``RCoT(data)``.
    alpha
        A pair is independent if its p-value is greater than this.
    max_conditioning
        Maximum number of variables in a condition; no limit by default.
    orientation
        Rule for recognising colliders: see `spbn.search.pc_colliders`.
    required_edges, forbidden_edges
        Pairs that must, or must not, be joined, whatever the tests say.
    required_arcs, forbidden_arcs
        Pairs (parent, child). A forbidden arc still allows the opposite direction.
        No arc goes from a continuous to a discrete variable.
    progress
        Show a progress bar.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> found = spbn.pc(spbn.PartialCorrelation(data), alpha=0.01)
    >>> print(found.pdag)
    5 nodes: A, B, C, D, E
    B — C
    C — D
    """
    _check(test, alpha, max_conditioning, orientation)
    impossible, required = impossible_arcs(test.variables), list(required_arcs)
    refuse_impossible(impossible, required)
    knowledge = Knowledge.of(
        test.names,
        required_edges=required_edges,
        forbidden_edges=forbidden_edges,
        required_arcs=required,
        forbidden_arcs=[*forbidden_arcs, *impossible],
    )
    with _reporting(progress) as report:
        inquiry = Inquiry(test, alpha, max_conditioning, report)
        allowed = ~(knowledge.forbidden_edges | np.eye(len(test.names), dtype=bool))
        skeleton = find_skeleton(inquiry, adjacent=allowed, required=knowledge.required_edges)
        known = knowledge.arcs_among(skeleton.adjacent)
        verdicts = judge_triples(inquiry, skeleton, orientation)
    directed = orient_colliders(known, verdicts.colliders)
    undirected = skeleton.adjacent & ~(directed | directed.T)
    directed, undirected = meek(directed, undirected, ambiguous=verdicts.ambiguous)
    return _result(inquiry, skeleton, directed, undirected)


def _result(inquiry: Inquiry, skeleton: Skeleton, directed: BoolArray, undirected: BoolArray) -> PCResult:
    """Replace numbers by names, and put the nodes in the order of the columns."""
    nodes, names, tests_run = inquiry.test.nodes, inquiry.test.names, inquiry.tests_run
    columns = [names.index(node) for node in nodes]
    shuffle = np.ix_(columns, columns)
    separating_sets = {
        frozenset((names[x], names[y])): frozenset(names[i] for i in separation.given)
        for (x, y), separation in skeleton.separations.items()
    }
    return PCResult(
        PDAG.from_matrices(nodes, directed[shuffle], undirected[shuffle]),
        separating_sets,
        tuple(tests_run[size] for size in range(max(tests_run, default=-1) + 1)),
    )


def _check(test: IndependenceTest, alpha: float, max_conditioning: int | None, orientation: str) -> None:
    if not isinstance(test, IndependenceTest):
        raise ArgumentError(
            f"test must be an independence test on the data, for example RCoT(data). "
            f"Got {type(test).__name__} instead."
        )
    if not isinstance(alpha, float | int) or not 0 < alpha < 1:
        raise ArgumentError(f"alpha must be between 0 and 1. Got {alpha!r} instead.")
    if max_conditioning is not None and (not isinstance(max_conditioning, int) or max_conditioning < 0):
        raise ArgumentError(
            f"max_conditioning must be None or a whole number, 0 or more. Got {max_conditioning!r} instead."
        )
    if orientation not in ("majority", "conservative", "sepset"):
        raise ArgumentError(
            f"orientation must be 'majority', 'conservative' or 'sepset'. Got {orientation!r} instead."
        )


@contextmanager
def _reporting(progress: bool) -> Iterator[Report]:
    """Give the function that the algorithm reports to: it does nothing, or moves a progress bar."""
    if not progress:
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("PC")
        yield lambda what, done, total: bar.update(
            task, description=f"PC: {what}", completed=done, total=total
        )
