"""A score that gives every family the type that suits it best."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, forget_older_half
from spbn._base.checks import at_least_0
from spbn.errors import ArgumentError, argument
from spbn.nodes.base import NodeType, place_of, registered
from spbn.nodes.families import named_batch
from spbn.rows.families import FamilyBatch
from spbn.scores.base import Score
from spbn.structure import Structure

SIMPLE_FIRST = ("lg", "curve", "blend")


@final
class BestType(Score):
    """A score under which continuous nodes have the best of several types, simple types first.

    The local score of a family is

        max_k  s_k - k c

    where s_k is its score with the k-th type, from 0 on, and c what a less simple type has to gain.
    A search is then over arcs alone: all continuous nodes have the first type, which stands for any of them,
    and the types of what is found come from `best_types`.

    Less simple types are not computed where they can hardly matter: the second is considered only if the
    residuals of the first suggest that more than c might be gained (`spbn.numerics.misfit`), and a further
    one if the one before it has won, or its residuals suggest the same. That depends on the family alone, so
    its score is always the same. Types that are not judged by residuals, and families with discrete parents,
    are compared in full.

    Parameters
    ----------
    score
        The score of families with a known type, such as a `CVLikelihood` with a penalty.
    types
        The types to choose from, simple ones first.
    cost
        c, in nats.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(1000, seed=0)
    >>> likelihood = spbn.scores.CVLikelihood(data, penalty="auto")
    >>> score = spbn.scores.BestType(likelihood, cost=likelihood.penalty)
    >>> found = spbn.search.order_search(score, spbn.Structure(data.columns))
    >>> print(found.structure)
    5 nodes: A (lg), B (blend), C (curve), D (lg), E (curve)
    A → C
    B → C
    C → D
    D → E
    """

    def __init__(
        self, score: Score, types: Iterable[NodeType | str] = SIMPLE_FIRST, *, cost: float = 0.0
    ) -> None:
        self.types = tuple(dict.fromkeys(map(NodeType.parse, types)))
        self.cost = at_least_0("cost", cost)
        self._score = score
        self.size = score.size
        lacking = [node_type for node_type in self.types if node_type not in score.node_types]
        if not self.types or (lacking and any(not v.is_discrete for v in score.variables)):
            raise ArgumentError(
                f"{argument('types')} must be some of those that the score is defined for: "
                f"{', '.join(sorted(map(str, score.node_types)))}. "
                f"Got {', '.join(map(str, lacking)) or 'none'}."
            )
        discrete = [variable for variable in score.variables if variable.is_discrete]
        kept = [t for t in score.node_types if any(t.admits(variable, ()) for variable in discrete)]
        super().__init__(score.variables, [self.types[0], *kept])
        #: The scores of families for which the first type suffices; drafts know the same.
        self._simple: dict[bytes, float] = {}

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        return self._best(batch)[0]

    def leads(self, batch: FamilyBatch) -> FloatArray | None:
        """Judge by residuals of the second type, unless the first one suffices: it is quick to score."""
        out = np.full((len(batch), len(self.nodes)), np.inf)
        curved = batch.types == place_of(self.types[0])
        curved[curved] = ~self._first(batch.only(curved))[1]
        if curved.any() and len(self.types) > 1:
            leads = self._score.leads(batch.only(curved).of_type(place_of(self.types[1])))
            out[curved] = np.inf if leads is None else leads
        return out

    @property
    def draft(self) -> Score:
        """The score of nodes that have the simpler types."""
        simpler = self.types[:-1]
        if len(simpler) < 2:
            return self._score
        draft = BestType(self._score, simpler, cost=self.cost)
        draft._simple = self._simple
        return draft

    def best_types(self, structure: Structure) -> Structure:
        """Return a structure with the best type of every continuous node, given its parents."""
        _, types = self._best(named_batch(self.nodes, structure.families()))
        names, known = structure.nodes, registered()
        return Structure(
            names,
            structure.arcs,
            {node: known[place] for node, place in zip(names, types.tolist(), strict=True)},
            inputs=structure.inputs,
        )

    def _best(self, batch: FamilyBatch) -> tuple[FloatArray, IntArray]:
        """Return the best score of every family, and the place of its type among those registered."""
        values, types = np.full(len(batch), -np.inf), batch.types.astype(np.int64)
        chosen = batch.types == place_of(self.types[0])
        values[~chosen] = self._score.local_batch(batch.only(~chosen))
        values[chosen], suffices = self._first(batch.only(chosen))
        left = np.zeros(len(batch), dtype=np.bool_)
        left[chosen] = ~suffices
        for number, node_type in enumerate(self.types[1:], 1):
            if not left.any():
                break
            place = place_of(node_type)
            some = batch.only(left).of_type(place)
            if number + 1 < len(self.types):
                found, misfits = self._score.judge(some)
            else:
                found, misfits = self._score._compute(some), np.zeros(len(some))
            at = np.flatnonzero(left)
            better = found - number * self.cost > values[at]
            values[at[better]], types[at[better]] = found[better] - number * self.cost, place
            left = np.zeros(len(batch), dtype=np.bool_)
            # What has beaten a simpler type is not simple, and residuals do not show everything.
            left[at] = (misfits > self.cost) | better | (found == -np.inf)
        return values, types

    def _first(self, batch: FamilyBatch) -> tuple[FloatArray, BoolArray]:
        """Return the scores of families with the first type, and whether it suffices."""
        if len(self.types) == 1:
            return self._score._compute(batch), np.ones(len(batch), dtype=np.bool_)
        values = np.array([self._simple.get(key, np.nan) for key in batch.keys])
        suffices = ~np.isnan(values)
        new = batch.only(~suffices)
        if len(new):
            found, misfits = self._score.judge(new)
            is_simple = (misfits <= self.cost) & (found > -np.inf)
            values[~suffices], suffices[~suffices] = found, is_simple
            forget_older_half(self._simple, limit=self.cache_limit - len(new), keep=set())
            self._simple.update(zip(new.only(is_simple).keys, found[is_simple].tolist(), strict=True))
        return values, suffices
