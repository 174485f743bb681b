"""Scores of blend families: their components are shared with other families, and their weights remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.nodes.base import NodeType
from spbn.nodes.families import FamilyBatch
from spbn.nodes.kernel_scorers import family_sets, kernel_rows
from spbn.nodes.linear_gaussian import NODE_TYPE as LG
from spbn.nodes.linear_gaussian import LinearScorer
from spbn.nodes.mixtures import COMPONENTS, log_mixture
from spbn.nodes.workbench import Workbench
from spbn.numerics.mixture_weights import mixing_weights

FEWEST_ROWS = 4
MOST_WEIGHTS = 1 << 18  # families whose weights are remembered
LARGEST_PART = 1 << 23  # log-densities that are held at a time: 64 MB


@final
class BlendScorer:
    """Scores blend families: components from shared densities, weights by `mixing_weights`.

    In a cross-validation, the weights of a family are fitted to the same rows that are scored, each under
    components that were not fitted to it: four numbers, beside which the rows are many. Elsewhere they
    come from a cross-validation of the training rows (`Workbench.inner`).
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._line = LinearScorer(LG, bench)
        self._weights: dict[bytes, FloatArray] = {}

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        if not self._bench.partition.is_crossed:
            return self.rows(families).sum(axis=1)
        out = np.empty(len(families))
        for part, components in self._components(families):
            for f, parts in zip(part, components, strict=True):
                weights, out[f] = mixing_weights(parts)
                self._remember(families.keys[f], weights)
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × queried rows; a family that cannot be fitted is -inf throughout."""
        partition = self._bench.partition
        out = np.full((len(families), partition.queries), -np.inf)
        if not partition.is_crossed and partition.train.counts.min() < FEWEST_ROWS:
            return out
        weights = self._bench.inner.scorer(NodeType.BLEND).weights(families)  # type: ignore[attr-defined]
        for part, components in self._components(families):
            for f, parts in zip(part, components, strict=True):
                usable = np.isfinite(parts).all(axis=1)
                mixture = np.where(usable, weights[f], 0.0)
                if mixture.sum() > 0.0:
                    out[f] = log_mixture(parts, mixture / mixture.sum())
        return out

    def weights(self, families: FamilyBatch) -> FloatArray:
        """Families × components: the weights that predict the queried rows best; 0 if none can be fitted."""
        unknown = np.array([key not in self._weights for key in families.keys])
        if unknown.any():
            self.totals(families.only(unknown))
        return np.stack([self._weights[key] for key in families.keys])

    def _remember(self, key: bytes, weights: FloatArray) -> None:
        self._weights[key] = weights
        if len(self._weights) > MOST_WEIGHTS:
            self._weights.pop(next(iter(self._weights)))

    def _components(self, families: FamilyBatch) -> Iterator[tuple[list[int], FloatArray]]:
        """Yield families, some at a time, and their log-densities: families × components × queried rows.

        Families of the same variables follow one another, because the rows that they share are not
        kept for long if there are very many.
        """
        bench, (joints, _) = self._bench, family_sets(families)
        order = sorted(range(len(families)), key=joints.__getitem__)
        queries = bench.partition.queries
        at_a_time = max(1, LARGEST_PART // (len(COMPONENTS) * queries))
        for start in range(0, len(families), at_a_time):
            part = order[start : start + at_a_time]
            batch = families.only(np.array(part))
            kernels = kernel_rows(bench, bench.scaled_densities, batch)
            yield part, np.concatenate([kernels, self._line.rows(batch)[:, None]], axis=1)
