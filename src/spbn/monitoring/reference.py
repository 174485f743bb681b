"""Reference rows, and p-values: how many of them are as unusual as a new row, also where none of them is.

Among n reference rows and one more like them, every order is equally likely. So the p-value

    (1 + number of reference rows with a log-density as low) / (n + 1)

is at most p with probability p at most. It cannot be smaller than 1 / (n + 1), though, and close to that it
depends on one or two rows. So the lowest tenth of the reference rows is described by a generalised Pareto
distribution of how far below the tenth they lie, which extrapolates p-values. Its two parameters are not
chosen but integrated over: a plug-in estimate raises too many alarms, because it takes the parameters for
known. Where tails are heavier far out than at first, so that half or a quarter of these rows say that a value
is less rare, the greatest p-value counts: a rare row is never taken for rarer than the rows can tell.

Reference rows are scored by parameters that were fitted without them: rows that a network was fitted to are
left out of the fit when they are scored, one by one or a tenth at a time, or all new rows would look unusual
beside them.

The log-density of what is there in a row with holes says nothing beside that of complete rows: it is of other
units. A `ReferenceScorer` returns the log-density of a complete row that is as unusual instead.

- Rows that do not depend on each other: what is missing is integrated out, and the result is compared with
  those of rows drawn from the network in which the same values are missing. Reference rows then say how
  unusual that is: if the network is wrong about complete rows, it is put right in the same way.
- Rows of a dynamic network, where also the past may be missing: the nodes whose own value and whose parents
  are there are compared with the same nodes in the reference rows. So the p-value of such a row is right
  whatever the network gets wrong. What a node with a missing parent says is not used.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from spbn._base.arrays import (
    LOG_ZERO,
    BoolArray,
    FloatArray,
    IntArray,
    finite_log_density,
    remembered,
    same_uniforms,
)
from spbn.diagnostics.rows import ONE_BY_ONE, leave_one_out, out_of_fold, settings_of
from spbn.errors import DataError, FitError, SpbnWarning, in_python, quoted
from spbn.fitting import fitted
from spbn.inference.batch import class_probabilities, impute_table, log_density_of_observed
from spbn.monitoring.drift import bin_counts
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table
from spbn.tables.splits import fold_labels, holdout_rows
from spbn.tables.table import Table

MIN_ROWS = 50
FOLDS = 10
MAX_PIT_ROWS = 2_000  # whose PIT values are computed: they take longer than densities do
MAX_COMPARED_ROWS = 1_000  # that rows with holes are compared with, node by node
#: Autocorrelations beyond so many standard errors mean that rows depend on those before; then those of the
#: drift test are so many autocorrelation times apart, if there are as many.
DEPENDENT, SPACING, WINDOW_TIMES, MIN_SPACED = 4.5, 1.5, 5.0, 20
CANDIDATES = 31  # values of a variable that are tried when it may be to blame
MAX_DROP = 50.0  # nats below the median that count in a mean: a single row must not decide it

TAIL_FRACTION, MIN_TAIL, MAX_TAIL = 0.1, 20, 500  # of the reference rows, that the tail is fitted to
MIN_DISTINCT = 10  # log-densities of the tail: those of discrete variables are steps, and have no tail
IMPOSSIBLE = 0.1 * LOG_ZERO  # log-densities below this are those of impossible rows

TAILS = 3  # of which each has half as many rows as the one before

# The prior of the shape, a Cauchy distribution: log-densities have tails that are about exponential, and
# heavier ones if rows have outliers that the network does not expect: 2 for those of a Cauchy variable. The
# scale has no prior but that of a scale.
SHAPES = np.linspace(-0.95, 3.5, 70)
SHAPE_MEAN, SHAPE_SPREAD = 0.15, 0.4
LOG_SCALES = np.linspace(-6.0, 2.5, 120)  # relative to the mean, which heavy tails make great
NEGLIGIBLE = 1e-12  # weight of a pair of parameters
LOG_DISTANCES = np.linspace(-6.0, 16.0, 300)  # relative to the mean, at which p-values are tabulated

DRAWS = 200  # rows that say how usual a log-density is
PARTICLES = 100  # for a row: their noise is the same on both sides of the comparison
CACHED_PATTERNS = 64  # of holes, each of which has taken a while


@final
@dataclass(frozen=True, eq=False)
class Tail:
    """The distribution of the log-densities of reference rows, with an extrapolated lower tail."""

    ordered: FloatArray  # the log-densities of the reference rows, ascending
    edge: float  # below this the tail is used; -inf if there is none
    log_distances: FloatArray  # distances below the edge, in logs
    log_p_values: FloatArray  # which share of the rows lies as far below, in logs

    @classmethod
    def fit(cls, scores: FloatArray) -> Tail:
        """Describe the log-densities of reference rows."""
        ordered = np.sort(scores)
        n = len(ordered)
        k = min(max(int(TAIL_FRACTION * n), MIN_TAIL), MAX_TAIL, n - 1)
        lowest, edge = ordered[:k], float(ordered[min(k, n - 1)])
        is_impossible, has_steps = lowest[0] < IMPOSSIBLE, len(np.unique(lowest)) < MIN_DISTINCT
        if k < MIN_TAIL or is_impossible or has_steps or lowest[-1] >= edge:
            return cls(ordered, -np.inf, np.zeros(1), np.zeros(1))
        log_distances = LOG_DISTANCES + np.log(np.mean(edge - lowest))
        scores = edge - np.exp(log_distances)
        log_p_values = np.full(len(scores), -np.inf)
        for part in range(TAILS):
            size = k >> part
            beyond = scores < ordered[size]
            if size >= MIN_TAIL // 2 and beyond.any() and ordered[size - 1] < ordered[size]:
                excesses, distances = ordered[size] - ordered[:size], ordered[size] - scores[beyond]
                found = np.log((size + 1) / (n + 1)) + _log_survival(excesses, distances)
                log_p_values[beyond] = np.maximum(log_p_values[beyond], found)
        return cls(ordered, edge, log_distances, np.maximum.accumulate(log_p_values[::-1])[::-1])

    @property
    def rows(self) -> int:
        return len(self.ordered)

    @property
    def is_extrapolated(self) -> bool:
        """Whether p-values may be smaller than one row."""
        return self.edge > -np.inf

    def p_values(self, scores: FloatArray) -> FloatArray:
        """Return which share of rows like the reference rows is as unusual, for every log-density."""
        as_low = np.searchsorted(self.ordered, scores, side="right").astype(np.float64)
        out: FloatArray = (1.0 + as_low) / (self.rows + 1.0)
        low = np.flatnonzero(scores < self.edge)
        if len(low):
            distances = np.log(np.minimum(self.edge - scores[low], -LOG_ZERO))
            out[low] = np.exp(np.interp(distances, self.log_distances, self.log_p_values))
        return out

    def quantiles(self, p_values: FloatArray) -> FloatArray:
        """Return the log-densities that have these p-values: the inverse of `p_values`."""
        ranks = np.clip(np.ceil(p_values * (self.rows + 1.0)).astype(np.int64) - 2, 0, self.rows - 1)
        out: FloatArray = self.ordered[ranks].copy()
        low = np.flatnonzero(np.log(p_values) < self.log_p_values[0])
        if self.is_extrapolated and len(low):
            # Ascending, for interpolation.
            distances = np.interp(np.log(p_values[low]), self.log_p_values[::-1], self.log_distances[::-1])
            out[low] = self.edge - np.exp(distances)
        return out


def _log_survival(excesses: FloatArray, distances: FloatArray) -> FloatArray:
    """Return the log-probability that one more excess is greater than each of some distances.

    That is the mean over the posterior of the parameters, on a grid.
    """
    scales = excesses.mean() * np.exp(LOG_SCALES)
    log_posterior = np.empty((len(SHAPES), len(scales)))
    for i, shape in enumerate(SHAPES):
        hazards = _cumulative_hazard(excesses / scales[:, None], shape).sum(axis=1)
        log_posterior[i] = -len(excesses) * np.log(scales) - (1.0 + shape) * hazards
        log_posterior[i] -= np.log1p(((shape - SHAPE_MEAN) / SHAPE_SPREAD) ** 2)
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()
    survival = np.zeros(len(distances))
    for i, shape in enumerate(SHAPES):
        likely = weights[i] > NEGLIGIBLE
        hazards = _cumulative_hazard(distances / scales[likely, None], shape)
        survival += weights[i, likely] @ np.exp(-hazards)
    return np.log(np.maximum(survival, 1e-300))


def _cumulative_hazard(values: FloatArray, shape: float) -> FloatArray:
    """Return minus the log-probability of greater values under a generalised Pareto distribution of scale 1.

    It is infinite beyond the upper end of the support, where the shape is negative.
    """
    if abs(shape) < 1e-12:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard: FloatArray = np.log1p(np.maximum(shape * values, -1.0)) / shape
    return hazard


@final
@dataclass(frozen=True, eq=False)
class Reference:
    """What is known of reference rows."""

    tail: Tail  # of their log-densities
    medians: FloatArray  # of what every node adds to the log-density, by the order of the nodes
    means: FloatArray
    pit_counts: FloatArray  # how many rows have P(X ≤ x | parents) in every bin: nodes × bins
    candidates: FloatArray  # variables × quantiles of the columns; the levels of a discrete one, and then NaN
    #: Every how many rows a node is tested for drift: until then, it remembers earlier ones; 0: never.
    spacing: IntArray
    #: What every node adds to the log-densities of some rows: nodes × rows. None if rows with holes are not
    #: compared with it.
    by_node: FloatArray | None = None

    def values_of(self, variable: int) -> FloatArray:
        """Return the candidates of a variable, by its number: candidates × 1."""
        values = self.candidates[variable]
        return values[~np.isnan(values), None]


def score_reference(
    network: BayesianNetwork, data: Any, *, trained: bool | None, by_node: bool = False
) -> Reference:
    """Score reference rows; remember what nodes add to the log-densities of some if `by_node` is set.

    `trained` says whether the network was fitted to these rows; None: if they are its training table, by its
    hash.
    """
    table = as_table(data, variables=network.variables, missing="keep")
    whole = np.flatnonzero(np.isfinite(table.columns).all(axis=0))
    complete = table.take(whole)
    if len(whole) < MIN_ROWS:
        holes = f", of which {len(whole)} have no missing value" if len(whole) < table.rows else ""
        raise DataError(
            f"a monitor needs at least {MIN_ROWS} complete reference rows. Got {table.rows}{holes}."
        )
    settings = settings_of(network)
    known = network.record.data_hash
    if trained is None:
        trained = known is not None and known in (table.digest, complete.digest)
    if trained and settings is None:
        warnings.warn(
            "the bandwidth rule of this network is not on record, so its training rows cannot be left out "
            "of the fit when they are scored, and new rows will look more unusual than they are: give "
            "reference rows that it was not fitted to.",
            stacklevel=3,
        )
        trained = False
    if not trained:
        _warn_of_training_rows(network, complete)
    if trained and settings is not None:
        # Rows with holes were left out of the fit, or filled for it.
        if network.inputs or known == complete.digest:
            table, whole = complete, np.arange(complete.rows)
        filled = table
        if not np.isfinite(table.columns).all():
            filled = impute_table(network, table, seed=0)[0]
        left_out = leave_one_out if filled.rows <= ONE_BY_ONE else out_of_fold
        contributions = left_out(network, filled).T[:, whole]
        pit = _pit_out_of_fold(network, filled, whole, settings)
    else:
        contributions = network.contributions(complete).T
        some = complete.take(_some(complete.rows, MAX_PIT_ROWS))
        uniforms = same_uniforms((len(network.nodes), some.rows))
        pit = network.logpdf_and_cdf_of_columns(some.columns, uniforms)[1]
    spacing = _spacing(network, complete)
    _warn_if_never_tested(network, spacing, complete.rows)
    contributions = finite_log_density(contributions)
    return Reference(
        Tail.fit(contributions.sum(axis=0)),
        np.median(contributions, axis=1),
        np.mean(np.maximum(contributions, np.median(contributions, axis=1)[:, None] - MAX_DROP), axis=1),
        np.concatenate(
            [_spaced_counts(row, every / complete.rows) for row, every in zip(pit, spacing, strict=True)]
        ),
        _candidates(complete),
        spacing,
        contributions[:, _some(complete.rows, MAX_COMPARED_ROWS)] if by_node else None,
    )


def _pit_out_of_fold(
    network: BayesianNetwork, table: Table, wanted: IntArray, settings: FitSettings
) -> FloatArray:
    """Return the PIT values of training rows, or of some if there are many; each under a fit without it."""
    discrete = table.level_codes
    if table.rows <= MAX_PIT_ROWS:
        labels = fold_labels(table.rows, min(FOLDS, table.rows), 0, discrete=discrete)
        parts = [(np.flatnonzero(labels != k), np.flatnonzero(labels == k)) for k in range(labels.max() + 1)]
    else:
        parts = [holdout_rows(table.rows, MAX_PIT_ROWS / table.rows, 0, discrete=discrete)]
    rows, uniforms = network.transformed(table), same_uniforms((len(network.nodes), table.rows))
    if network.hidden is not None:
        rows = network.with_class(rows, class_probabilities(network, table).argmax(axis=1))
    found = np.full(uniforms.shape, np.nan)
    for kept, asked in parts:
        train, test, cpds = rows.take(kept), rows.take(asked), dict[str, CPD]()
        for k, family in enumerate(network.structure.families()):
            try:
                cpd = fitted(train, family, settings)
            except FitError:
                cpd = network.cpds[family.node]
            cpds[family.node] = cpd
            if network.hidden is None:
                columns = test.select((*family.parents, family.node))
                found[k, asked] = cpd.logpdf_and_cdf(columns, uniforms[k, asked])[1]
        if network.hidden is not None:
            part = BayesianNetwork(network.structure, cpds, hidden=network.hidden)
            found[:, asked] = part.logpdf_and_cdf_of_columns(test.columns[:-1], uniforms[:, asked])[1]
    return np.clip(found[:, wanted], 0.0, 1.0)


def _spaced_counts(pit: FloatArray, distance: float) -> FloatArray:
    """Count PIT values of a node in bins: those that are some distance apart, as a share of all rows."""
    known = pit[~np.isnan(pit)]
    return bin_counts(known[None, :: max(1, int(np.ceil(distance * len(known))))])


def _spacing(network: BayesianNetwork, table: Table) -> IntArray:
    """Return for every node every how many rows its PIT values are practically independent.

    That is `SPACING` times the integrated autocorrelation time of their normal scores, which is summed up to
    a lag of five times itself (Sokal 1997); 1 if successive rows show no dependence; 0 if there are fewer
    than `MIN_SPACED` rows so far apart.
    """
    from scipy.special import ndtri

    first = max(0, (table.rows - MAX_PIT_ROWS) // 2)
    rows = table.take(np.arange(first, min(first + MAX_PIT_ROWS, table.rows)))
    uniforms = same_uniforms((len(network.nodes), rows.rows))
    scores = ndtri(np.clip(network.logpdf_and_cdf_of_columns(rows.columns, uniforms)[1], 1e-6, 1.0 - 1e-6))
    scores -= scores.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(scores, 2 * rows.rows)) ** 2
    covariances = np.fft.irfft(spectrum)[:, : rows.rows]
    correlations = covariances / np.maximum(covariances[:, :1], 1e-300)
    times = 2.0 * np.cumsum(correlations, axis=1) - 1.0
    ends = (np.arange(rows.rows) >= WINDOW_TIMES * times).argmax(axis=1)
    found = np.maximum(times[np.arange(len(times)), ends], 1.0)
    is_dependent = np.abs(correlations[:, 1:3]).max(axis=1) > DEPENDENT / np.sqrt(rows.rows)
    spacing = np.where(is_dependent, np.ceil(SPACING * found), 1.0).astype(np.int64)
    return np.where(table.rows < MIN_SPACED * spacing, 0, spacing)


def _warn_if_never_tested(network: BayesianNetwork, spacing: IntArray, rows: int) -> None:
    """Say so if nodes change so slowly that reference rows do not tell a drift from their usual course."""
    slow = [node for node, every in zip(network.nodes, spacing, strict=True) if not every]
    if slow:
        change = "they change" if len(slow) > 1 else "it changes"
        warnings.warn(
            SpbnWarning(
                f"no drift of {quoted(slow)} will be found: {change} so slowly from row to row that "
                f"{rows:,} reference rows do not show how far. Learn a network over time "
                f"(spbn.learn_dynamic, or spbn learn --lags 1), which judges a row by the rows before it, "
                f"or give more reference rows."
            ),
            stacklevel=4,
        )


def _some(rows: int, most: int) -> IntArray:
    """Return the numbers of some rows, always the same ones; all if there are not too many."""
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _candidates(table: Table) -> FloatArray:
    out = np.full((len(table.names), CANDIDATES), np.nan)
    for variable, column, values in zip(table.variables, table.columns, out, strict=True):
        if variable.is_discrete:
            count = min(len(variable.levels), CANDIDATES)
            values[:count] = np.arange(count)
        else:
            values[:] = np.quantile(column, (np.arange(CANDIDATES) + 0.5) / CANDIDATES)
    return out


def _warn_of_training_rows(network: BayesianNetwork, table: Table) -> None:
    """Say so if reference rows sit on kernels of their own: they look more likely than new rows do."""
    for cpd in network.cpds.values():
        kept = cpd.kept_rows
        if kept is None:
            continue
        rows = network.transformed(table).select(kept.names)
        known = set(map(bytes, np.ascontiguousarray(kept.columns.T)))
        same = sum(bytes(row) in known for row in np.ascontiguousarray(rows.columns.T))
        if same > 0.5 * table.rows and len(kept.names) > 1:
            warnings.warn(
                SpbnWarning(
                    f"{same} of the {table.rows} reference rows are among the rows that the network was "
                    f"fitted to, so new rows will look more unusual than they are: give other rows or the "
                    f"whole training table, which is recognised"
                    f"{in_python(', or pass trained=True to leave rows out of the fit')}."
                ),
                stacklevel=4,
            )
            return


class Scores(NamedTuple):
    """Scores of rows, and of every node in them: nodes × rows, NaN where that depends on what is missing."""

    rows: FloatArray  # the log-density of every row as if it were complete; NaN if nothing can be said
    pit: FloatArray  # the distribution function of every node at its value, P(X ≤ x | parents)
    contributions: FloatArray  # what every node adds to the log-density


@final
class ReferenceScorer:
    """Scores rows of a network in units that reference rows can be compared with."""

    def __init__(self, network: BayesianNetwork, reference: Reference) -> None:
        self._network = network
        self._reference = reference
        self._tails: OrderedDict[bytes, Tail] = OrderedDict()
        names = [variable.name for variable in network.variables]
        families = [(node, *network.structure.parents(node)) for node in network.nodes]
        # What depends on a hidden class depends on every column that tells about it.
        self._families = [
            list(range(len(names)))
            if network.hidden in family
            else [names.index(network.marks.get(name, name)) for name in family]
            for family in families
        ]

    def score(self, table: Table, uniforms: FloatArray) -> Scores:
        """Score rows, in which NaN is missing.

        Uniforms, nodes × rows, choose points on the steps of discrete nodes.
        """
        has_holes = np.isnan(table.columns).any(axis=0)
        if not has_holes.any():
            contributions, pit = self._network.logpdf_and_cdf_of_columns(table.columns, uniforms)
            return Scores(contributions.sum(axis=0), pit, contributions)
        shape = uniforms.shape
        found = Scores(*(np.full(size, np.nan) for size in (shape[1], shape, shape)))
        for chosen, score in ((~has_holes, self.score), (has_holes, self._score_incomplete)):
            rows = np.flatnonzero(chosen)
            if len(rows):
                part = score(table.take(rows), uniforms[:, rows])
                found.rows[rows], found.pit[:, rows], found.contributions[:, rows] = part
        return found

    def _score_incomplete(self, table: Table, uniforms: FloatArray) -> Scores:
        missing = np.isnan(table.columns)
        typical = self._reference.candidates[:, :1]  # values where any will do
        filled = np.where(missing, typical, table.columns)
        contributions, pit = self._network.logpdf_and_cdf_of_columns(filled, uniforms)
        unknown = np.stack([missing[family].any(axis=0) for family in self._families])
        pit = np.where(unknown, np.nan, pit)
        if self._reference.by_node is None:
            # One by one: what is simulated must not depend on the rows before.
            scores = np.array([self._score_observed(table.take([k])) for k in range(table.rows)])
            return Scores(scores, pit, np.full(pit.shape, np.nan))
        contributions = np.where(unknown, np.nan, contributions)
        return Scores(
            self._score_families(contributions, ~unknown, self._reference.by_node), pit, contributions
        )

    def _score_observed(self, row: Table) -> float:
        """Compare what is there in a row with the same of drawn rows."""
        missing = np.isnan(row.columns[:, 0])
        if missing.all():
            return float(self._complete.ordered[-1])

        def score(rows: Table) -> FloatArray:
            return log_density_of_observed(self._network, rows, n=PARTICLES, seed=0)

        def drawn() -> FloatArray:
            columns = np.where(missing[:, None], np.nan, self._drawn.columns)
            return score(self._drawn.with_columns(columns))

        found = finite_log_density(score(row))
        return float(self._complete.quantiles(self._tail(missing, drawn).p_values(found))[0])

    @cached_property
    def _drawn(self) -> Table:
        network = self._network
        columns = network.draw(DRAWS, seed=0)
        nodes = [n for n in network.nodes if n != network.hidden and n not in network.marks]
        stacked = np.stack([network.in_data_units(node, columns[node]) for node in nodes])
        return Table.of(network.variables[: len(nodes)], stacked)

    @cached_property
    def _complete(self) -> Tail:
        """The log-densities of drawn rows without holes."""
        return Tail.fit(self._network.contributions(self._drawn).sum(axis=1))

    def _score_families(self, contributions: FloatArray, known: BoolArray, by_node: FloatArray) -> FloatArray:
        """Compare the nodes of every row whose families are known with the same nodes of reference rows."""
        scores = np.full(known.shape[1], np.nan)
        patterns, which = np.unique(known, axis=1, return_inverse=True)
        for number, nodes in enumerate(patterns.T):
            rows = np.flatnonzero(which.reshape(-1) == number)
            if nodes.any():
                found = contributions[np.ix_(np.flatnonzero(nodes), rows)].sum(axis=0)
                tail = self._tail(nodes, lambda some=nodes: by_node[some].sum(axis=0))  # type: ignore[misc]
                scores[rows] = self._reference.tail.quantiles(tail.p_values(found))
        return scores

    def _tail(self, pattern: BoolArray, scores: Callable[[], FloatArray]) -> Tail:
        """Return the distribution of log-densities that rows with a pattern of holes are compared with."""
        return remembered(self._tails, pattern.tobytes(), lambda: Tail.fit(scores()), limit=CACHED_PATTERNS)
