"""Families over workers: a score whose numbers are computed by the workers of a Dask client.

Every worker gets the table once and prepares the same score from it. The families that a step of a search
needs are dealt out so that those of the same variables stay together, and always go to the same worker:
it remembers the densities that they share. Families that are quick to score, such as linear Gaussian
ones, are scored here. The numbers are those of the score itself, to the last bit.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple, final
from uuid import uuid4

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, remembered
from spbn.dask.client import Executor, using_threads
from spbn.errors import ClusterError, quoted
from spbn.nodes.base import registered
from spbn.rows.families import FamilyBatch
from spbn.scores.base import Estimates, Score
from spbn.tables.table import Table

TASKS_A_WORKER = 4  # so that one that is done early can take over from another
MOST_SCORES = 2  # that a worker remembers

#: Prepares a score from a table; it must be known to the workers too.
Recipe = Callable[[Table], Score]


class Commission(NamedTuple):
    """What all workers need."""

    number: str  # tells commissions apart
    table: Table
    recipe: Recipe
    types: tuple[str, ...]  # the node types that are registered here, in order: batches have their places


def spread(client: Any, table: Table, score: Score, recipe: Recipe) -> Score:
    """Return a score with the same numbers, computed by the workers of a client: they have the recipe."""
    names = tuple(node_type.name for node_type in registered())
    executor = Executor(client, Commission(uuid4().hex, table, recipe, names))
    return SpreadScore(score, executor)


@final
class SpreadScore(Score):
    """A score that workers compute."""

    def __init__(self, score: Score, executor: Executor, *, is_validation: bool = False) -> None:
        self._score = score
        self.size = score.size
        self._executor = executor
        self._is_validation = is_validation
        if score.validation is not None:
            self.validation = SpreadScore(score.validation, executor, is_validation=True)
        super().__init__(score.variables, score.node_types)

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        quick = np.array([node_type.is_quick for node_type in registered()])[batch.types]
        out = np.empty(len(batch))
        if quick.any():
            out[quick] = self._score._compute(batch.only(quick))
        slow = np.flatnonzero(~quick)
        for mine, found in _answers(self._executor, _scores, batch.only(slow), (self._is_validation,)):
            out[slow[mine]] = found
        return out

    def judge(self, batch: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        values, misfits = np.empty(len(batch)), np.empty(len(batch))
        for mine, found in _answers(self._executor, _judgements, batch, ()):
            values[mine], misfits[mine] = found
        return values, misfits

    def leads(self, batch: FamilyBatch) -> FloatArray:
        out = np.full((len(batch), len(self.nodes)), np.inf)
        for mine, found in _answers(self._executor, _leads, batch, ()):
            out[mine] = np.inf if found is None else found
        return out

    @cached_property
    def preview(self) -> Estimates | None:
        return None if self._score.preview is None else SpreadEstimates(self._executor)


class SpreadEstimates(NamedTuple):
    """Estimates that workers compute."""

    executor: Executor

    def gains(self, new: FamilyBatch, old: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        gains, errors = np.empty(len(new)), np.empty(len(new))
        for mine, found in _answers(self.executor, _gains, new, (), old):
            gains[mine], errors[mine] = found
        return gains, errors


def _answers(
    executor: Executor,
    function: Callable[..., Any],
    batch: FamilyBatch,
    arguments: tuple[Any, ...],
    *others: FamilyBatch,
) -> Iterator[tuple[IntArray, Any]]:
    """Yield numbers of families and what the workers found for them."""
    if not len(batch):
        return
    addresses = executor.addresses
    shares = list(dealt(batch, len(addresses)))
    tasks = [(batch.only(mine), *(other.only(mine) for other in others), *arguments) for _, mine in shares]
    for number, found in executor.map(function, tasks, [addresses[place] for place, _ in shares]):
        yield shares[number][1], found


def dealt(batch: FamilyBatch, workers: int) -> Iterator[tuple[int, IntArray]]:
    """Deal families to workers: yield the number of a worker and those of some families, many times.

    Families of the same variables stay together, and their worker depends on nothing else.
    """
    members = batch.parents.copy()
    members[np.arange(len(batch)), batch.nodes] = True
    sets = [row.tobytes() for row in np.packbits(members, axis=1)]
    by_home: list[dict[bytes, list[int]]] = [{} for _ in range(workers)]
    for number, variables in enumerate(sets):
        by_home[zlib.crc32(variables) % workers].setdefault(variables, []).append(number)
    for home, of_home in enumerate(by_home):
        together = list(of_home.values())
        step = -(-len(together) // TASKS_A_WORKER)
        for start in range(0, len(together), max(1, step)):
            yield home, np.concatenate(together[start : start + step])


def _scores(commission: Commission, batch: FamilyBatch, is_validation: bool) -> FloatArray:
    with _prepared(commission) as score:
        asked = score.validation if is_validation else score
        assert asked is not None  # or nobody would ask for it
        return asked._compute(batch)


def _judgements(commission: Commission, batch: FamilyBatch) -> tuple[FloatArray, FloatArray]:
    with _prepared(commission) as score:
        return score.judge(batch)


def _leads(commission: Commission, batch: FamilyBatch) -> FloatArray | None:
    with _prepared(commission) as score:
        return score.leads(batch)


def _gains(commission: Commission, new: FamilyBatch, old: FamilyBatch) -> tuple[FloatArray, FloatArray]:
    with _prepared(commission) as score:
        assert score.preview is not None
        return score.preview.gains(new, old)


#: By the address of a worker, of which several may be threads of this process: its scores, those used last.
_SCORES: dict[str, tuple[Lock, OrderedDict[str, Score]]] = {}


@contextmanager
def _prepared(commission: Commission) -> Iterator[Score]:
    """Give a worker's score, prepared on first use; one task at a time has it, with all of its threads."""
    from distributed import get_worker

    known = tuple(node_type.name for node_type in registered())
    if known != commission.types:
        raise ClusterError(
            f"a worker knows the node types {quoted(known)}, and {quoted(commission.types)} are needed: "
            f"import the module that registers the others on every worker (client.run)."
        )
    worker = get_worker()
    lock, scores = _SCORES.setdefault(worker.address, (Lock(), OrderedDict()))
    with lock, using_threads(worker.state.nthreads):
        make = partial(commission.recipe, commission.table)
        yield remembered(scores, commission.number, make, limit=MOST_SCORES)
