"""Predictive log-likelihoods as scores: cross-validated, hold-out, and both together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, final

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from spbn._base.checks import at_least_0
from spbn.kernels.estimates import BandwidthRule
from spbn.nodes.base import NodeType, place_of, registered
from spbn.nodes.families import Family, FamilyScorer
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, RowStore
from spbn.scores.base import Score
from spbn.structure import Structure
from spbn.tables.reader import Missing, as_table
from spbn.tables.splits import fold_labels, holdout_rows
from spbn.tables.table import Table

Auto = Literal["auto"]


class Likelihood(Score):
    """The log-likelihood of the evaluated rows of a store, under parameters fitted to its training rows."""

    #: What every arc costs, in nats.
    penalty: float

    @classmethod
    def of_rows(
        cls, rows: RowStore, held_out: RowStore | None = None, *, penalty: float | Auto = 0.0
    ) -> Self:
        """Make the score of rows that may be anywhere, perhaps along with that of validation rows."""
        score = cls.__new__(cls)
        score._prepare(rows, held_out, penalty=penalty)
        return score

    def _prepare(
        self, rows: RowStore, held_out: RowStore | None = None, *, penalty: float | Auto = 0.0
    ) -> None:
        self._scorer = FamilyScorer(rows)
        self.size = int(rows.test.counts.sum())
        self.penalty = arc_penalty(penalty, self.size, len(rows.variables))
        if held_out is not None:
            self.validation = HoldoutLikelihood.of_rows(held_out)
        super().__init__(rows.variables, registered())

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        return self._scorer.totals(batch) - self.penalty * (batch.sizes - 1)

    def judge(self, batch: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        totals, misfits = self._scorer.totals_and_misfits(batch)
        return totals - self.penalty * (batch.sizes - 1), misfits

    def leads(self, batch: FamilyBatch) -> FloatArray:
        return self._scorer.leads(batch)

    def further(self, batch: FamilyBatch) -> FloatArray | None:
        totals = self._scorer.further(batch)
        return None if totals is None else totals - self.penalty * batch.sizes[:, None]

    @cached_property
    def preview(self) -> Preview | None:
        return Preview.of(self._scorer.store, self.penalty)

    @final
    def rows(self, family: Family) -> FloatArray:
        """Log-density of every row: under parameters fitted without its fold, or of every held-out row."""
        return self._scorer.rows(self._checked([family]))[0]


@final
class CVLikelihood(Likelihood):
    """The cross-validated log-likelihood: every fold under parameters fitted to the others.

    Parameters
    ----------
    folds
        How many, or a label for every row.
    seed
        Decides which row goes into which fold.
    bandwidth
        "scott", "silverman", or a function (see `spbn.kernels.estimates`).
    engine
        How Gaussian sums are computed (see `spbn.kernels`).
    smoothing
        How many rows are added to every configuration of a discrete node's parents.
    penalty
        What every arc costs, in nats. Where there are no validation rows, the score alone decides, and an
        arc between unrelated columns raises it for one table in six: with a hundred columns there are
        thousands of such arcs. "auto" is ½ log(rows) + ⅔ log(columns). The first term is that of BIC, and the
        second accounts for the number of candidates, as in the extended BIC (Chen and Chen, 2008). Order
        searches on four tables each of 200, 2,000 and 10,000 rows from Gaussian networks with 44 to 64 nodes,
        and of 200 and 2,000 rows from one with 107, have 4 % more errors with it than with the best of ten
        constants for each network and size; with ½ log(rows) they have 40 % more, with log(rows) 5 %.
    centres
        On how many training rows kernels sit, at most, chosen at random; None if on all. The time that scores
        of kernels take then grows in proportion to the rows. It is the likelihood of a density that is a
        little weaker, and as honest.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.CVLikelihood(data, folds=5, seed=0)
    >>> bool(score.local("B", [], "ckde") > score.local("B", [], "lg"))  # B has two modes
    True
    """

    #: Fold of every row.
    folds: IntArray

    def __init__(
        self,
        data: Any,
        *,
        folds: int | npt.ArrayLike = 10,
        seed: Seed = 0,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
        penalty: float | Auto = 0.0,
        centres: int | None = None,
    ) -> None:
        table = as_table(data, training=True, missing=missing)
        self.folds = fold_labels(table.rows, folds, seed, discrete=table.level_codes)
        settings = FitSettings(bandwidth, engine, smoothing, centres)
        self._prepare(MemoryRows(Partition.folds(table, self.folds), settings), penalty=penalty)


@final
class HoldoutLikelihood(Likelihood):
    """The log-likelihood of rows that were held out, under parameters fitted to the rest.

    Parameters
    ----------
    validation
        The fraction to hold out; or a table, in which case all of `data` is for training.
    seed
        Decides which rows are held out.
    bandwidth, engine, smoothing
        As for `CVLikelihood`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.HoldoutLikelihood(data, validation=0.25, seed=0)
    >>> bool(score.local("D", ["C"], "lg") > score.local("D", [], "lg"))
    True
    """

    def __init__(
        self,
        data: Any,
        *,
        validation: Any = 0.2,
        seed: Seed = 0,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
    ) -> None:
        train, test = _split(as_table(data, training=True, missing=missing), validation, seed, missing)
        settings = FitSettings(bandwidth, engine, smoothing)
        self._prepare(MemoryRows(Partition.holdout(train, test), settings))


@final
class ValidatedLikelihood(Likelihood):
    """A cross-validated likelihood on training rows, along with the likelihood of validation rows.

    A search climbs the first and stops by the second.

    Parameters
    ----------
    folds
        How many, or a label for every training row.
    validation
        The fraction of validation rows; or a table, in which case all of `data` is for training.
    seed
        Decides which rows are for validation, and which go into which fold.
    bandwidth, engine, smoothing
        As for `CVLikelihood`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.ValidatedLikelihood(data, folds=5, validation=0.2, seed=0)
    >>> structure = spbn.datasets.synthetic_structure()
    >>> bool(score.total(structure) < score.validation_total(structure))  # of four times as many rows
    True
    """

    #: The likelihood of the validation rows.
    validation: HoldoutLikelihood

    def __init__(
        self,
        data: Any,
        *,
        folds: int | npt.ArrayLike = 10,
        validation: Any = 0.2,
        seed: Seed = 0,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
    ) -> None:
        split_seed, fold_seed = generator(seed).spawn(2)
        train, test = _split(as_table(data, training=True, missing=missing), validation, split_seed, missing)
        labels = fold_labels(train.rows, folds, fold_seed, held_out=test.rows, discrete=train.level_codes)
        settings = FitSettings(bandwidth, engine, smoothing)
        training = MemoryRows(Partition.folds(train, labels), settings)
        # The validation rows choose nothing that the training rows have not chosen.
        held_out = MemoryRows(Partition.holdout(train, test), settings, inner=lambda: training)
        self._prepare(training, held_out)

    def validation_rows(self, family: Family) -> FloatArray:
        """Log-density of every validation row under parameters fitted to the training rows."""
        return self.validation.rows(family)

    def validation_local(
        self, node: str, parents: Iterable[str] = (), type: NodeType | str = NodeType.LG
    ) -> float:
        """Validation log-likelihood of one node given its parents."""
        return self.validation.local(node, parents, type)

    def validation_local_many(
        self, families: Iterable[Family | tuple[str, Iterable[str], NodeType | str]]
    ) -> FloatArray:
        """Validation log-likelihoods of many families."""
        return self.validation.local_many(families)

    def validation_total(self, structure: Structure) -> float:
        """Validation log-likelihood of a structure."""
        return self.validation.total(structure)


def arc_penalty(penalty: float | Auto, rows: int, columns: int) -> float:
    """Return what an arc costs, in nats: as given, or what the table asks for."""
    if penalty == "auto":
        return 0.5 * math.log(max(rows, 1)) + 2.0 / 3.0 * math.log(max(columns, 1))
    return at_least_0("penalty", penalty, '"auto", or a number that is 0 or more')


def _split(table: Table, validation: Any, seed: Seed, missing: Missing) -> tuple[Table, Table]:
    if np.isscalar(validation):
        train, test = holdout_rows(table.rows, validation, seed, discrete=table.level_codes)  # type: ignore[arg-type]
        return table.take(train), table.take(test)
    return table, as_table(validation, variables=table.variables, missing=missing)


# ----------------------------------------------------------------------------------------------------
# What a change of a family would bring, estimated from some of the rows: for tables with very many.
#
# The score of a kernel family is a sum over all rows, and each row costs a sum over kernels. But most
# changes that a search considers are much worse than the best one, which some thousands of rows show as well
# as a million. So a search may ask for estimates first, and compute in full what could be the best
# (`search.operators`).
#
# The rows are a random part of the first fold, and those of all folds that stand out: the greatest and the
# least values of a column, and the greatest departures of a column from its regression on the others. A few
# such rows may decide between families, and a random choice would miss them. They count once; the others
# stand for all rows that were not chosen.


FEWEST_ROWS = 100_000  # of a table for which estimates pay
CHOSEN = 16_000  # rows at random, at most: half of the first fold, if that is less
OUTSTANDING = 256  # rows, among all columns
STANDARD_ERRORS = 6.0  # of an estimate, by which it may be wrong: one in a thousand million is
UNKNOWN = 1e200  # the error of what has to be computed in full
LEAST_ERROR = 1e-9  # of an estimate, as a share of it: none is as good as the sum over all rows


@dataclass(frozen=True, eq=False)
class Preview:
    """Estimates of the changes of a cross-validated score."""

    penalty: float  # of every arc
    some: FamilyScorer  # where some rows of the first fold are scored
    outstanding: FamilyScorer  # where those rows are scored that stand out, in all folds
    standing_for: float  # how many rows each of the first stands for

    @classmethod
    def of(cls, rows: RowStore, penalty: float) -> Preview | None:
        """Choose the rows of a cross-validation to estimate from; None if that is not worthwhile."""
        if not isinstance(rows, MemoryRows) or not rows.is_crossed:
            return None
        partition, settings = rows.partition, rows.settings
        chooses_scales = isinstance(settings.bandwidth, str) and settings.bandwidth == "cv"
        if partition.queries < FEWEST_ROWS or chooses_scales:  # one row may decide which scale it is
            return None
        outstanding = _outstanding(partition)
        usual = np.flatnonzero(~outstanding[: partition.spans.query_counts[0]])
        count = min(CHOSEN, -(-len(usual) // 2))
        chosen = np.zeros(partition.queries, dtype=np.bool_)
        chosen[np.random.default_rng(0).choice(usual, count, replace=False)] = True
        # What is chosen by cross-validation, the weights of a blend for example, is chosen by these rows too.
        some = rows.previewing(chosen)
        others = rows.previewing(outstanding, weighed_by=some)
        standing_for = float(np.count_nonzero(~outstanding)) / count
        return cls(penalty, FamilyScorer(some), FamilyScorer(others), standing_for)

    def gains(self, new: FamilyBatch, old: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        pairs = [
            (scorer.rows(new), old_rows[numbers])
            for scorer in (self.some, self.outstanding)
            for old_rows, numbers in [_rows_of_different(scorer, old)]
        ]
        with np.errstate(invalid="ignore"):  # -inf - -inf: neither can be fitted
            some, outstanding = (after - before for after, before in pairs)
            gains = self.standing_for * some.sum(axis=1) + outstanding.sum(axis=1)
            gains -= self.penalty * (new.sizes - old.sizes)
            errors = STANDARD_ERRORS * self.standing_for * math.sqrt(some.shape[1]) * some.std(axis=1, ddof=1)
        fitted = np.isfinite(pairs[0][0]).all(axis=1) & np.isfinite(pairs[1][0]).all(axis=1)
        gains[~fitted] = -np.inf
        certain = ~np.isfinite(gains)
        errors = np.where(certain, 0.0, np.maximum(errors, LEAST_ERROR * np.maximum(1.0, np.abs(gains))))
        unknown = self._has_curves_by_configuration(new) | self._has_curves_by_configuration(old)
        gains[unknown], errors[unknown] = 0.0, UNKNOWN
        return gains, errors

    def _has_curves_by_configuration(self, families: FamilyBatch) -> BoolArray:
        """Tell which families have a curve for every configuration: these are fitted to all of its rows."""
        is_split = (families.parents & self.some.store.discrete).any(axis=1)
        return is_split & np.isin(families.types, [place_of(NodeType.CURVE), place_of(NodeType.BLEND)])


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
