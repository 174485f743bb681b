"""Monitoring: log-densities of new rows turned into decisions, with reasons."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from spbn.dynamic.blame import SHIFTS, culprits
from spbn.dynamic.drift import Change, DriftTest
from spbn.dynamic.network import DynamicNetwork
from spbn.dynamic.past import Past, networks_of
from spbn.dynamic.patterns import Patterns
from spbn.dynamic.reference import Reference, reference_of
from spbn.dynamic.rows import as_table_of, table_of
from spbn.dynamic.scoring import Scorer, contributions_of
from spbn.errors import ArgumentError, DataError
from spbn.explain.unusual import LEAST_DROP, Reason
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import BoolArray, FloatArray
from spbn.tables.frames import frame_index
from spbn.tables.table import Table, Variable

if TYPE_CHECKING:
    import pandas as pd

ALARM, DRIFT = 0.001, 1e-5
WINDOW = 100  # rows before a drift alarm that tell which variable is to blame
LEAST_DRIFT = 0.05  # nats per row that a variable must explain to be blamed for a drift
DRAWS = 20  # of what is missing in a row, to tell what is to blame
TOO_RARE = 0.1  # times one reference row: shares that reference rows can hardly tell


@dataclass(frozen=True)
class Drift:
    """A drift alarm.

    Attributes
    ----------
    row
        The number of the row that raised it, counted from 0.
    since
        The number of the row with which the drift seems to have begun.
    blame
        The variables to blame, the worst first.
    shifts
        By how much each of them has moved, in its own standard deviations given its parents; NaN if it is
        discrete.
    """

    row: int
    since: int
    blame: tuple[str, ...]
    shifts: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What a monitor says about some rows.

    Attributes
    ----------
    first
        The number of the first row, counted from 0 since the monitor was made.
    shares, alarms
        How many rows in normal operation are as unusual, and whether those are too few; NaN and False if
        a row cannot be judged yet.
    drift
        The statistic of the drift test, relative to that of an alarm.
    reasons
        Of every row with an alarm, by its place among these rows: the variables to blame.
    drifts
        The drift alarms, by the place of their rows among these rows.
    """

    first: int
    shares: FloatArray
    alarms: BoolArray
    drift: FloatArray
    reasons: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    drifts: Mapping[int, Drift] = field(default_factory=dict)


@final
class Monitor:
    """Compares new rows with reference rows, and raises an alarm if they are unusual or begin to drift.

    A row raises an **alarm** if the share of rows in normal operation that are as unusual is `alarm` or
    less. The share is that of reference rows, so it does not matter whether the network's densities are
    right. Shares of less than a few reference rows are extrapolated: see `spbn.dynamic.tails`.

    Rows none of which is unusual may still **drift** together. While new rows are exchangeable with the
    reference rows, the probability that a false drift alarm is raised within m rows is m · `drift` at most:
    see `spbn.dynamic.drift`.

    Parameters
    ----------
    network
        A network that was learned from rows in normal operation. A dynamic network judges every row
        by the rows before it, so the first rows of a series are not judged, nor are those at or after
        a missing value.
    reference
        Rows in normal operation: the network's training table, which is then left out of the fit when it
        is scored; or better, rows that the network has not seen.
    alarm
        The share of rows in normal operation that may raise an alarm.
    drift
        The rate of false drift alarms, per row.
    trained
        Whether the network was fitted to the reference rows. By default that is told by the hash of the
        training table.
    seed
        Ties in the drift test are broken at random.

    Examples
    --------
    >>> import spbn
    >>> rows = spbn.datasets.synthetic(500, seed=0)
    >>> network = spbn.learn(rows)
    >>> monitor = spbn.Monitor(network, rows)
    >>> monitor.update({"A": 6.0, "B": 0.4, "C": 2.1, "D": 11.8, "E": 30.0})[["alarm", "blame"]]
       alarm blame
    0   True     E
    """

    def __init__(
        self,
        network: BayesianNetwork | DynamicNetwork,
        reference: Any,
        *,
        alarm: float = ALARM,
        drift: float = DRIFT,
        trained: bool | None = None,
        seed: int = 0,
    ) -> None:
        self._dynamic, self._network = networks_of(network)
        self._alarm, self._drift = _rate("alarm", alarm), _rate("drift", drift)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ArgumentError(f"seed must be a whole number, 0 or more. Got {seed!r} instead.")
        if self._dynamic is not None:
            reference = Past(self._dynamic).lagged(reference)
        self._reference = reference_of(self._network, reference, trained=trained)
        self._rng = np.random.default_rng(int(seed))
        self._begin()
        _warn_if_too_rare(self._reference, self._alarm)

    def _begin(self) -> None:
        """Set up everything that follows from the reference."""
        self._test = DriftTest(self._reference.places, self._drift)
        self._scorer = Scorer(self._network)
        self._patterns = Patterns(self._network)
        self._recent = np.empty((len(self._network.variables), 0))
        self._past = None if self._dynamic is None else Past(self._dynamic)
        self._alarms = self._drift_alarms = 0

    @property
    def network(self) -> BayesianNetwork | DynamicNetwork:
        """The network."""
        return self._network if self._dynamic is None else self._dynamic

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What rows must have, in the order of arrays."""
        return self.network.variables

    @property
    def keys(self) -> tuple[str, ...]:
        """Further columns that rows must have: those of the series and of the time, of a dynamic network."""
        return () if self._past is None else self._past.keys

    @property
    def alarm(self) -> float:
        """The share of rows in normal operation that may raise an alarm."""
        return self._alarm

    @property
    def drift(self) -> float:
        """The rate of false drift alarms, per row."""
        return self._drift

    @property
    def rows(self) -> int:
        """How many rows have been seen."""
        return self._test.rows

    @property
    def alarms(self) -> int:
        """How many of them raised an alarm."""
        return self._alarms

    @property
    def drift_alarms(self) -> int:
        """How many drift alarms there were."""
        return self._drift_alarms

    @property
    def reference_rows(self) -> int:
        """How many rows new ones are compared with."""
        return self._reference.rows

    def update(self, rows: Any) -> pd.DataFrame:
        """Take new rows, in order, and judge each.

        Parameters
        ----------
        rows
            One row as a dict, in which None is a missing value; one row as an array of values in the order of
            the network's nodes, or several; or a data frame. Missing values are integrated out.

        Returns
        -------
        A frame with a row for each and the columns

        ===============  ===========================================================================
        ``share``        share of rows in normal operation that are as unusual
        ``alarm``        whether that is too small
        ``blame``        if so, the variables to blame, the worst first
        ``drift``        statistic of the drift test, relative to the one that raises a drift alarm
        ``drift_alarm``  whether the test has found a drift in this row; it then begins again
        ``drift_blame``  if so, the variables that drift
        ===============  ===========================================================================
        """
        from spbn.dynamic.watched import Watched

        verdicts = self._undone_if_refused(lambda: self.judge(self.table(rows)))
        number = range(len(verdicts.shares))
        index = frame_index(rows)
        return Watched(
            {
                "share": verdicts.shares,
                "alarm": verdicts.alarms,
                "blame": [_listed(r.node for r in verdicts.reasons.get(k, ())) for k in number],
                "drift": verdicts.drift,
                "drift_alarm": [k in verdicts.drifts for k in number],
                "drift_blame": [
                    _listed(verdicts.drifts[k].blame) if k in verdicts.drifts else "" for k in number
                ],
            },
            index=range(verdicts.first, verdicts.first + len(number)) if index is None else index,
        )

    def explain(self, row: Any) -> tuple[Reason, ...]:
        """Return what makes a row unusual: the variables to blame, the worst first.

        These are as few variables as possible whose values, if they were different, would make the row a
        usual one. The row is not counted.

        Parameters
        ----------
        row
            One row, as for `update`.
        """
        past = None if self._past is None else self._past.copy()
        table = table_of(row, self.variables) if past is None else past.table(row)
        if table.rows != 1:
            raise DataError(f"explain takes one row. Got {table.rows}.")
        if past is not None and np.isnan(table.columns).any():
            return ()
        if np.isnan(table.columns).any():
            return self._reasons(table, np.empty(0))
        return self._reasons(table, contributions_of(self._network, table))

    def table(self, rows: Any) -> Table:
        """Read new rows, which come after all that were read before, for `judge`."""
        return table_of(rows, self.variables) if self._past is None else self._past.table(rows)

    def take(self, columns: FloatArray, keys: Mapping[str, Any]) -> Verdicts:
        """Do what `update` does with variables × rows and, by their names, the columns that are `keys`."""
        past = self._past
        if past is None:
            return self.judge(as_table_of(self.variables, columns))
        return self._undone_if_refused(lambda: self.judge(past.follow(columns, keys)))

    def judge(self, table: Table) -> Verdicts:
        """Do what `update` does with rows that have been read already; NaN is missing in them."""
        first, rows = self.rows, table.rows
        before = self._rng.bit_generator.state
        # The same numbers, whether rows come one by one or all at once.
        uniforms = self._rng.random((rows, 2, len(self._network.nodes))).transpose(1, 2, 0)
        try:
            scores, places, contributions = self._scored(table, uniforms[0])
        except DataError:  # as if these rows had never come
            self._rng.bit_generator.state = before
            raise
        known = ~np.isnan(scores)
        shares = np.full(rows, np.nan)
        shares[known] = self._reference.tail.shares(scores[known])
        alarms: BoolArray = shares <= self._alarm
        drift, changes = self._test.update(places, uniforms[1])
        recent = np.concatenate([self._recent, table.columns], axis=1)
        reasons = {
            k: self._reasons(table.take([k]), contributions[:, [k]]) for k in np.flatnonzero(alarms).tolist()
        }
        drifts = {
            k: self._drifted(
                change, table.with_columns(recent[:, : recent.shape[1] - rows + k + 1]), first + k
            )
            for k, change in changes.items()
        }
        self._recent = recent[:, -WINDOW:].copy()
        self._alarms += int(alarms.sum())
        self._drift_alarms += len(drifts)
        return Verdicts(first, shares, alarms, drift, reasons, drifts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, from which `load` goes on as if nothing had happened."""
        from spbn.dynamic.state import save

        save(self, path)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        network: BayesianNetwork | DynamicNetwork,
        *,
        alarm: float | None = None,
        drift: float | None = None,
    ) -> Monitor:
        """Read a state that was saved, of the same network; the levels may be changed.

        Such a file holds only data: reading it runs no code.
        """
        from spbn.dynamic.state import load

        return load(path, network, alarm=alarm, drift=drift)

    def _undone_if_refused(self, judge: Callable[[], Verdicts]) -> Verdicts:
        """Judge rows; if they are refused, it is as if they had never come."""
        # Only margins refuse rows that have been read.
        before = self._past.copy() if self._past and self._network.margins else None
        try:
            return judge()
        except DataError:
            if before is not None:
                self._past = before
            raise

    def _scored(self, table: Table, uniforms: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log-density of every row, as if it were complete, and by node.

        Of every node: where its value lies in its distribution, and what it adds to the log-density. Both are
        NaN where they depend on what is missing.
        """
        holes = np.isnan(table.columns)
        if not holes.any():
            contributions, places = self._scorer.scored(table, uniforms)
            return contributions.sum(axis=0), places, contributions
        shape = uniforms.shape
        scores, places, contributions = (np.full(s, np.nan) for s in (shape[1], shape, shape))
        whole, others = (np.flatnonzero(holes.any(axis=0) == missing) for missing in (False, True))
        if len(whole):
            found = self._scored(table.take(whole), uniforms[:, whole])
            scores[whole], places[:, whole], contributions[:, whole] = found
        for k in (
            others.tolist() if self._dynamic is None else ()
        ):  # one by one: what is simulated must not depend on the rows before
            row = table.take([k])
            scores[k] = self._patterns.score(row)
            places[:, k] = self._places_of_observed(row, uniforms[:, [k]])
        return scores, places, contributions

    def _places_of_observed(self, row: Table, uniforms: FloatArray) -> FloatArray:
        """Return the places of the values whose parents are there; NaN elsewhere."""
        missing = np.isnan(row.columns[:, 0])
        filled = row.with_columns(np.where(missing[:, None], self._typical[:, None], row.columns))
        places = self._scorer.scored(filled, uniforms)[1][:, 0]
        for k, node in enumerate(self._network.nodes):
            family = [row.index(name) for name in (node, *self._network.structure.parents(node))]
            if missing[family].any():
                places[k] = np.nan
        return places

    @property
    def _typical(self) -> FloatArray:
        """A value of every variable, where any will do."""
        return self._reference.candidates[:, 0]

    def _reasons(self, row: Table, contributions: FloatArray) -> tuple[Reason, ...]:
        """Return the variables to blame for a row, from what its nodes add to the log-density."""
        missing = np.isnan(row.columns[:, 0])
        usual, values = self._reference.medians, self._reference.candidates
        if missing.all():
            return ()
        if missing.any():
            from spbn.inference.holes import imputed

            draws = imputed(self._network, row, draws=DRAWS, seed=0)
            contributions = np.stack([contributions_of(self._network, draw)[:, 0] for draw in draws], axis=1)
            contributions[missing] = usual[missing, None]  # nothing to blame there

        def candidates(k: int) -> FloatArray:
            return values[k, ~np.isnan(values[k]), None]

        others = None if missing.any() else candidates
        found = culprits(self._network, row, contributions, usual, others, least=LEAST_DROP)
        reasons = []
        for culprit in found:
            variable, value = row.variables[culprit.variable], float(row.columns[culprit.variable, 0])
            shown = variable.levels[int(value)] if variable.is_discrete else value
            reasons.append(Reason(variable.name, shown, culprit.drop))
        return tuple(reasons)

    def _drifted(self, change: Change, recent: Table, row: int) -> Drift:
        """Say what has changed, by the last rows up to one that raised a drift alarm."""
        since = max(change.since, row + 1 - min(WINDOW, recent.rows))
        rows = recent.columns[:, recent.rows - (row + 1 - since) :]
        window = recent.with_columns(np.ascontiguousarray(rows[:, ~np.isnan(rows).any(axis=0)]))
        if not window.rows:
            names: tuple[str, ...] = (self._network.nodes[change.variable],)
            return Drift(row, change.since, names, (float("nan"),))
        reference = self._reference
        spreads = (
            reference.candidates[:, -6] - reference.candidates[:, 5]
        )  # two standard deviations of a normal one

        def candidates(k: int) -> FloatArray:
            if window.variables[k].is_discrete:
                levels = reference.candidates[k, ~np.isnan(reference.candidates[k]), None]
                return levels + np.zeros(window.rows)
            return window.columns[k] - SHIFTS[:, None] * 0.5 * spreads[k]

        contributions = contributions_of(self._network, window)
        found = culprits(self._network, window, contributions, reference.means, candidates, least=LEAST_DRIFT)
        # The first explains most, whatever the evidence of its own; others must not be there by chance.
        blamed = [c.variable for k, c in enumerate(found) if k == 0 or c.variable in change.certain]
        blamed = blamed or [change.variable]
        shifts = self._shifts(window)
        return Drift(
            row,
            change.since,
            tuple(self._network.nodes[k] for k in blamed),
            tuple(float(shifts[k]) for k in blamed),
        )

    def _shifts(self, window: Table) -> FloatArray:
        """Return the mean normal score of every variable given its parents; NaN if it is discrete."""
        from scipy.special import ndtri

        _, places = self._scorer.scored(window, np.full((len(self._network.nodes), window.rows), 0.5))
        scores: FloatArray = ndtri(np.clip(places, 1e-4, 1.0 - 1e-4)).mean(axis=1)
        return np.where(window.discrete[: len(scores)], np.nan, scores)

    def _repr_html_(self) -> str:
        """Show what has been seen so far in a notebook."""
        from spbn.report.notebooks_over_time import monitor_html

        return monitor_html(self)

    def __repr__(self) -> str:
        return (
            f"Monitor({len(self.variables)} variables, {self.reference_rows} reference rows, "
            f"alarm={self.alarm:g}, drift={self.drift:g}; {self.rows} rows seen, {self.alarms} alarms, "
            f"{self.drift_alarms} drift alarms)"
        )


def _listed(names: Any) -> str:
    return ", ".join(names)


def _rate(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    if not is_number or not 0.0 < value < 1.0:
        raise ArgumentError(f"{name} must be between 0 and 1. Got {value!r} instead.")
    return float(value)


def _warn_if_too_rare(reference: Reference, alarm: float) -> None:
    """Say so if the reference rows cannot tell how unusual a row is that may raise an alarm."""
    rows = reference.rows
    if not reference.tail.is_extrapolated and alarm * (rows + 1) < 1.0:
        warnings.warn(
            f"no row can raise an alarm: alarm={alarm:g} is less than one of {rows} reference rows, and "
            f"their log-densities have too few different values for rarer rows to be told apart. Give "
            f"more reference rows, or alarm={2.0 / rows:.1g}.",
            stacklevel=3,
        )
    elif alarm * rows < TOO_RARE:
        warnings.warn(
            f"alarm={alarm:g} is far less than one of {rows} reference rows: how often it is raised may be "
            f"wrong by a factor. Give more reference rows.",
            stacklevel=3,
        )
