"""What all scores share: families in, cached numbers out.

A score is a sum over families, and greater is better. The cache is here and
nowhere else; a concrete score only says how families are computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, forget_older_half
from spbn.errors import ArgumentError
from spbn.nodes.base import NodeType, place_of, registered
from spbn.nodes.families import AnyFamily, Family, families_of, named_batch
from spbn.rows.families import FamilyBatch
from spbn.structure import Structure
from spbn.tables.table import Variable


class Estimates(Protocol):
    """What changes of families would bring, roughly and quickly."""

    def gains(self, new: FamilyBatch, old: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Return by how much the score of each family exceeds that of an old one, and how wrong that is."""


class Score(ABC):
    """A decomposable score of structures, prepared once for a table and asked many times.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.BIC(data)
    >>> bool(score.local("D", ["C"], "lg") > score.local("D", [], "lg"))
    True
    """

    #: The columns of the data, and their names.
    variables: tuple[Variable, ...]
    nodes: tuple[str, ...]
    #: The types of nodes that the score is defined for, of those that these columns can have.
    node_types: frozenset[NodeType]
    #: A score of other rows by which a search decides when to stop; None if there is none.
    validation: Score | None = None
    #: Over how many rows families are added up; 0 where their number does not matter.
    size = 0
    #: How many numbers of families are remembered; the older half is forgotten then.
    cache_limit = 1 << 20

    @cached_property
    def preview(self) -> Estimates | None:
        """Estimates from some of the rows; None if there are too few for that to be worthwhile."""
        return None

    def __init__(self, nodes: Sequence[str | Variable], node_types: Iterable[NodeType]) -> None:
        self.variables = tuple(Variable(node) if isinstance(node, str) else node for node in nodes)
        self.nodes = tuple(variable.name for variable in self.variables)
        self.node_types = frozenset(
            node_type for node_type in node_types if any(node_type.admits(v, ()) for v in self.variables)
        )
        self._numbers: dict[bytes, float] = {}

    @abstractmethod
    def _compute(self, batch: FamilyBatch) -> FloatArray:
        """Local score of every family; -inf where one cannot be fitted."""

    def judge(self, batch: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Return local scores, and roughly by how much those of other types might be greater.

        By default that is not known, and may be anything: infinity.
        """
        return self._compute(batch), np.full(len(batch), np.inf)

    def leads(self, batch: FamilyBatch) -> FloatArray | None:
        """Return roughly how much each column might raise the scores of families as a further parent.

        Families × columns; infinity where that is not known, and None if it never is.
        """
        return None

    def further(self, batch: FamilyBatch) -> FloatArray | None:
        """Return the scores of families with each column as one more parent; None if there is no quick way.

        Families × columns; what stands at members of a family means nothing.
        """
        return None

    @final
    def local(self, node: str, parents: Iterable[str] = (), type: NodeType | str = NodeType.LG) -> float:
        """Score of one node given its parents."""
        return float(self.local_many([(node, parents, type)])[0])

    @final
    def local_many(
        self, families: Iterable[Family | tuple[str, Iterable[str], NodeType | str]]
    ) -> FloatArray:
        """Scores of many families, computed in one batch."""
        return self.local_batch(self._checked(families))

    @final
    def local_batch(self, batch: FamilyBatch) -> FloatArray:
        """Scores of many families of the score's columns and types, which are not checked again."""
        known = self._numbers.get
        found = np.array([known(key, np.nan) for key in batch.keys])
        missing = np.isnan(found)
        if missing.any():
            new = batch if missing.all() else batch.only(missing)
            forget_older_half(self._numbers, limit=self.cache_limit - len(new), keep=set(batch.keys))
            found[missing] = self._compute(new)
            self._numbers.update(zip(new.keys, found[missing].tolist(), strict=True))
        return found

    @final
    def known(self, batch: FamilyBatch) -> BoolArray:
        """Tell which families have been scored before, or are quick to score."""
        quick = np.array([node_type.is_quick for node_type in registered()])
        return quick[batch.types] | np.array([key in self._numbers for key in batch.keys], dtype=np.bool_)

    @final
    def total(self, structure: Structure) -> float:
        """Score of a structure: the sum over its families."""
        return float(self.local_many(structure.families()).sum())

    @property
    def draft(self) -> Score | None:
        """A score that is much quicker, for a first idea of what is good; None if there is none."""
        return None

    def best_types(self, structure: Structure) -> Structure:
        """Return a structure with the node types that the score chooses; by default those that it has."""
        return structure

    @final
    def _checked(self, families: Iterable[AnyFamily]) -> FamilyBatch:
        """Return the families to compute; refuse those that the score is not defined for."""
        batch = named_batch(self.nodes, list(families))
        wrong = ~np.isin(batch.types, [place_of(node_type) for node_type in self.node_types])
        if wrong.any():
            allowed = " or ".join(sorted(map(str, self.node_types)))
            raise ArgumentError(
                f"this score is defined for nodes of type {allowed} only. "
                f"Got {families_of(batch.only(wrong))[0]}."
            )
        return batch


@final
class Averaged(Score):
    """The mean of scores of the same columns.

    A search that climbs it does not fall for what one way to fill the holes of a table happens to show.
    """

    def __init__(self, scores: Sequence[Score]) -> None:
        self._scores = tuple(scores)
        self.size = scores[0].size
        super().__init__(scores[0].variables, scores[0].node_types)
        validations = [score.validation for score in scores if score.validation is not None]
        self.validation = Averaged(validations) if validations else None

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        mean: FloatArray = np.mean([score._compute(batch) for score in self._scores], axis=0)
        return mean

    def judge(self, batch: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        values, misfits = zip(*(score.judge(batch) for score in self._scores), strict=True)
        return np.mean(values, axis=0), np.mean(misfits, axis=0)

    def leads(self, batch: FamilyBatch) -> FloatArray | None:
        found = [leads for leads in (score.leads(batch) for score in self._scores) if leads is not None]
        return np.mean(found, axis=0) if len(found) == len(self._scores) else None
