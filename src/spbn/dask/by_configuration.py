"""Continuous nodes with discrete parents, over rows that workers hold: a density for every configuration.

The counterpart of `nodes.configuration_scorer.ConfigurationScorer`. Where a family cannot be fitted to the
training rows of a configuration, those of one label, it is fitted to all training rows of that label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.blends import HeldBlends
from spbn.dask.densities import HeldDensities
from spbn.dask.groupby import Division, Divisions
from spbn.dask.lru import Columns, fitting_into_memory
from spbn.dask.mapreduce import Where
from spbn.dask.rowstore import Holdings
from spbn.dask.tables import SetTotals, differences
from spbn.nodes.base import NodeType
from spbn.nodes.blend import NODE_TYPE as BLEND
from spbn.nodes.families import of_type
from spbn.nodes.scorers import FEWEST_TO_BLEND as FEWEST_BLENDED
from spbn.numerics.regression import log_likelihoods
from spbn.rows.families import FamilyBatch


@final
class HeldByConfiguration:
    """The scores of such families.

    Parameters
    ----------
    blends
        Those of all rows, if there are any.
    """

    def __init__(self, divisions: Divisions, rule: str = "scott", blends: HeldBlends | None = None) -> None:
        self._divisions = divisions
        self._holdings = divisions.holdings
        self._rule = rule
        self._blends = blends
        self._own: dict[Where, HeldBlends] = {}
        self._sets: dict[tuple[Where, Where], SetTotals] = {}

    def totals(self, families: FamilyBatch, labels: Sequence[int]) -> FloatArray:
        """Log-likelihood of the rows with some labels; -inf where a family cannot be fitted to all rows.

        Parameters
        ----------
        families
            All of one type, each with discrete parents.
        """
        discrete = self._holdings.discrete
        by_set: dict[Columns, list[int]] = {}
        for number, parents in enumerate(families.parents & discrete):
            by_set.setdefault(tuple(np.flatnonzero(parents).tolist()), []).append(number)
        out = np.full(len(families), -np.inf)
        possible = fitting_into_memory(self._holdings, by_set, self._divisions.fits)
        for columns, division in self._divisions.each(possible):
            numbers = by_set[columns]
            batch = families.only(np.array(numbers)).without_parents(discrete)
            score = self._blended if of_type(batch, BLEND).all() else self._of_division
            out[numbers] = score(division, batch, labels)
        out[~np.isfinite(out)] = -np.inf
        return out

    def _of_division(self, division: Division, batch: FamilyBatch, labels: Sequence[int]) -> FloatArray:
        """Score families with the same discrete parents, which have been left out of the batch."""
        out = np.zeros(len(batch))
        for part in division.parts:
            asked = [label for label in labels if part.queried.counts[label]]
            fed = np.isin(asked, part.answerable(asked))
            found = np.full((len(batch), len(asked)), -np.inf)
            if fed.any():
                found[:, fed] = self._by_label(part, part, batch, np.array(asked)[fed])
            lacking = ~np.isfinite(found)
            if lacking.any():
                families, places = lacking.any(axis=1), lacking.any(axis=0)
                rest = self._by_label(self._holdings, part, batch.only(families), np.array(asked)[places])
                chosen = np.ix_(families, places)
                found[chosen] = np.where(lacking[chosen], rest, found[chosen])
            out += found.sum(axis=1)
        return out

    def _blended(self, division: Division, batch: FamilyBatch, labels: Sequence[int]) -> FloatArray:
        """Score blends, whose weights belong to all rows of a configuration.

        So where one cannot be fitted in some fold, all rows of the configuration are answered by what is
        fitted to all rows.
        """
        assert self._blends is not None
        validation = list(labels) == [self._holdings.folds]
        weights = self._blends.weights_of(batch)
        self._blends.let_go()
        out = np.zeros(len(batch))
        for part in division.parts:
            asked = [label for label in labels if part.queried.counts[label]]
            fed = part.answerable(asked)
            found = self._blend(part, batch, validation) if fed else np.full(len(batch), -np.inf)
            unfit = ~np.isfinite(found)
            out += np.where(unfit, 0.0, found)
            starved = [label for label in asked if label not in fed]
            for chosen, rest in ((unfit, asked), (~unfit, starved)):
                if chosen.any() and rest:
                    everything = HeldDensities(self._holdings, self._rule, part)
                    blends = HeldBlends(everything, () if validation else rest)
                    families = [tuple(members.tolist()) for members in batch.only(chosen).each]
                    out[chosen] += blends.totals_under(families, list(weights[chosen]), validation=validation)
        return out

    def _blend(self, part: Holdings, batch: FamilyBatch, validation: bool) -> FloatArray:
        """Log-likelihoods of the rows of a configuration, or of its validation rows, under its own blends."""
        folds = part.answerable(range(part.folds))
        if not folds or (validation and part.training.counts[-1] < FEWEST_BLENDED):
            return np.full(len(batch), -np.inf)
        if part.where not in self._own:
            self._own[part.where] = HeldBlends(HeldDensities(part, self._rule), folds)
        blends = self._own[part.where]
        blends.let_go()
        return blends.validation_totals(batch) if validation else blends.totals(batch)

    def _by_label(
        self, training: Holdings, queries: Holdings, batch: FamilyBatch, labels: IntArray
    ) -> FloatArray:
        """Families × labels: log-likelihoods of some rows, fitted to others; -inf where that fails."""
        if of_type(batch, NodeType.LG).all():
            members, sizes = batch.members, batch.sizes
            groups = [np.array([label]) for label in labels]
            found = [
                log_likelihoods(training.training.only(g), queries.queried.only(g), members, sizes)[0]
                for g in groups
            ]
            return np.stack(found, axis=1)
        joints, parents = batch.sets
        sets = self._totals(training, queries)
        whole, below = np.split(sets.by_label([*joints, *parents], labels.tolist()), 2)
        return differences(whole, below)

    def _totals(self, training: Holdings, queries: Holdings) -> SetTotals:
        key = (training.where, queries.where)
        if key not in self._sets:
            self._sets[key] = SetTotals(training, self._rule, queries)
        return self._sets[key]
