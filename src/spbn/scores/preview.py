"""What a change of a family would bring, estimated from some of the rows: for tables with very many.

The score of a kernel family is a sum over all rows, and each row costs a sum over kernels. But most
changes that a search considers are much worse than the best one, which some thousands of rows show as well
as a million. So a search may ask for estimates first, and compute in full what could be the best
(`search.deltas`).

The rows are a random part of the first fold, and those of all folds that stand out: the greatest and the
least values of a column, and the greatest departures of a column from its regression on the others. A few
such rows may decide between families, and a random choice would miss them. They count once; the others
stand for all rows that were not chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.nodes.family_scorer import FamilyScorer
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import RowStore

FEWEST_ROWS = 100_000  # of a table for which estimates pay
CHOSEN = 16_000  # rows at random, at most: half of the first fold, if that is less
OUTSTANDING = 256  # rows, among all columns
STANDARD_ERRORS = 6.0  # of an estimate, by which it may be wrong: one in a thousand million is
LEAST_ERROR = 1e-9  # of an estimate, as a share of it: none is as good as the sum over all rows


@dataclass(frozen=True, eq=False)
class Preview:
    """Estimates of the changes of a cross-validated score.

    Attributes
    ----------
    some
        Where some rows of the first fold are scored.
    outstanding
        Where those rows are scored that stand out, in all folds.
    standing_for
        How many rows each of the first stands for.
    """

    some: FamilyScorer
    outstanding: FamilyScorer
    standing_for: float

    @classmethod
    def of(cls, rows: RowStore) -> Preview | None:
        """Choose the rows of a cross-validation to estimate from; None if that is not worthwhile."""
        if not isinstance(rows, MemoryRows):
            return None
        partition, settings = rows.partition, rows.settings
        chooses_scales = isinstance(settings.bandwidth, str) and settings.bandwidth == "cv"
        if partition.queries < FEWEST_ROWS or chooses_scales:  # one row may decide which scale it is
            return None
        outstanding = _outstanding(partition)
        usual = np.flatnonzero(~outstanding[: partition.sizes[0]])
        count = min(CHOSEN, -(-len(usual) // 2))
        chosen = np.zeros(partition.queries, dtype=np.bool_)
        chosen[np.random.default_rng(0).choice(usual, count, replace=False)] = True
        # What is chosen by cross-validation, the weights of a blend for example, is chosen by these rows too.
        some = MemoryRows(replace(partition.asking(chosen), is_crossed=True), settings)
        others = MemoryRows(partition.asking(outstanding), settings, inner=lambda: some)
        return cls(FamilyScorer(some), FamilyScorer(others), float(np.count_nonzero(~outstanding)) / count)

    def gains(self, new: FamilyBatch, old: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Return by how much the score of each family exceeds that of an old one, and how wrong that is."""
        pairs = [
            (scorer.rows(new), old_rows[numbers])
            for scorer in (self.some, self.outstanding)
            for old_rows, numbers in [_rows_of_different(scorer, old)]
        ]
        with np.errstate(invalid="ignore"):  # -inf - -inf: neither can be fitted
            some, outstanding = (after - before for after, before in pairs)
            gains = self.standing_for * some.sum(axis=1) + outstanding.sum(axis=1)
            errors = STANDARD_ERRORS * self.standing_for * math.sqrt(some.shape[1]) * some.std(axis=1, ddof=1)
        fitted = np.isfinite(pairs[0][0]).all(axis=1) & np.isfinite(pairs[1][0]).all(axis=1)
        gains[~fitted] = -np.inf
        certain = ~np.isfinite(gains)
        return gains, np.where(certain, 0.0, np.maximum(errors, LEAST_ERROR * np.maximum(1.0, np.abs(gains))))


def _rows_of_different(scorer: FamilyScorer, families: FamilyBatch) -> tuple[FloatArray, list[int]]:
    """Score families of which many are the same: the rows of the different ones, and which is which."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(families.keys))}
    first = {key: place for place, key in reversed(list(enumerate(families.keys)))}
    different = families.only(np.array([first[key] for key in numbers]))
    return scorer.rows(different), [numbers[key] for key in families.keys]


def _outstanding(partition: Partition) -> BoolArray:
    """Tell which queries stand out, by one column or by one column given all others."""
    continuous = np.flatnonzero(~partition.table.discrete)
    rows = partition.queried(partition.table.columns[continuous])
    chosen = np.zeros(rows.shape[1], dtype=np.bool_)
    if not len(continuous):
        return chosen
    rows = rows - rows.mean(axis=1, keepdims=True)
    # The inverse covariance gives departures of columns from their regressions on the others, up to factors.
    residuals = np.linalg.pinv(np.atleast_2d(np.cov(rows))) @ rows
    count = max(1, OUTSTANDING // (2 * len(rows)))
    for values in (*np.abs(rows), *np.abs(residuals)):
        chosen[np.argpartition(values, -count)[-count:]] = True
    return chosen
