"""Monitoring: log-densities of new rows turned into decisions, with reasons."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray
from spbn._base.checks import fraction, whole
from spbn.diagnostics.unusual import Reason
from spbn.errors import DataError, SpbnWarning, setting
from spbn.monitoring.attribution import WINDOW, Verdicts, drift_of, reasons_for
from spbn.monitoring.drift import DriftTest
from spbn.monitoring.reference import Reference, reference_of
from spbn.monitoring.scorer import Judge
from spbn.network import BayesianNetwork
from spbn.tables.reader import as_dict, frame_index, table_of, table_of_columns
from spbn.tables.table import Table, Variable
from spbn.timeseries.lag_buffer import Past, networks_of
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    import pandas as pd
import pandas as pd

ALARM, DRIFT = 0.001, 1e-5
TOO_RARE = 0.1  # times one reference row: shares that reference rows can hardly tell


@final
class Monitor:
    """Compares new rows with reference rows, and raises an alarm if they are unusual or begin to drift.

    A row raises an **alarm** if the share of rows in normal operation that are as unusual is `alarm` or
    less. The share is that of reference rows, so it does not matter whether the network's densities are
    right. Shares of less than a few reference rows are extrapolated: see `spbn.monitoring.reference`.

    Rows may **drift** together although none of them is unusual. While new rows are exchangeable with the
    reference rows, the probability of a false drift alarm within m rows is at most m · `drift`: see
    `spbn.monitoring.drift`.

    Parameters
    ----------
    network
        A network that was learned from rows in normal operation. A dynamic network judges every row by the
        rows before it: a variable is not judged where its value, or one that it depends on, is missing or
        lies before the beginning of the series.
    reference
        Rows in normal operation: the network's training table, which is then left out of the fit when it is
        scored; or, better, rows that the network has not seen.
    alarm
        The share of rows in normal operation that may raise an alarm.
    drift
        The rate of false drift alarms, per row.
    trained
        Whether the network was fitted to the reference rows. By default, the hash of the training table
        decides.
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
        whole("seed", seed)
        if self._dynamic is not None:
            reference = Past(self._dynamic).lagged(reference)
        self._reference = reference_of(
            self._network, reference, trained=trained, by_node=self._dynamic is not None
        )
        self._rng = np.random.default_rng(int(seed))
        self._begin()
        _warn_if_too_rare(self._reference, self._alarm)

    def _begin(self) -> None:
        """Set up everything that follows from the reference."""
        self._test = DriftTest(self._reference.places, self._drift)
        self._judge = Judge(self._network, self._reference)
        self._recent = np.empty((len(self._network.variables), 0))
        self._past = None if self._dynamic is None else Past(self._dynamic)
        self._alarms = self._drift_alarms = 0

    @property
    def network(self) -> BayesianNetwork | DynamicNetwork:
        """The network."""
        return self._network if self._dynamic is None else self._dynamic

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that rows must have, in the order of arrays."""
        return self.network.variables

    @property
    def keys(self) -> tuple[str, ...]:
        """Further columns that rows must have: those for series and time, if the network is dynamic."""
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
            One row as a dict, in which None is a missing value, or as a row of a data frame (a Series); one
            row as an array of values in the order of the network's nodes, or several; a list of dicts; or a
            data frame. Missing values are integrated out.

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
        # gone

        rows = as_dict(rows)
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

        These are the fewest variables whose values, if they were different, would make the row usual. The row
        is not counted.

        Parameters
        ----------
        row
            One row, as for `update`.
        """
        row = as_dict(row)
        past = None if self._past is None else self._past.copy()
        table = table_of(row, self.variables) if past is None else past.table(row)
        if table.rows != 1:
            raise DataError(f"explain takes one row. Got {table.rows}.")
        unknown = np.full((len(self._network.nodes), 1), np.nan)
        if past is None and np.isnan(table.columns).any():
            return reasons_for(self._network, self._reference, table, unknown)
        found = self._judge.scores(table, np.full(unknown.shape, 0.5))
        if np.isnan(found.rows[0]):
            return ()
        return reasons_for(self._network, self._reference, table, found.contributions)

    def table(self, rows: Any) -> Table:
        """Read new rows, which come after all that were read before, for `judge`."""
        return table_of(rows, self.variables) if self._past is None else self._past.table(rows)

    def take(self, columns: FloatArray, keys: Mapping[str, Any]) -> Verdicts:
        """Do what `update` does with variables × rows and, by their names, the columns that are `keys`."""
        past = self._past
        if past is None:
            return self.judge(table_of_columns(self.variables, columns))
        return self._undone_if_refused(lambda: self.judge(past.follow(columns, keys)))

    def judge(self, table: Table) -> Verdicts:
        """Do what `update` does with rows that have been read already; NaN is missing in them."""
        first, rows = self.rows, table.rows
        if not rows:
            return Verdicts(first, np.empty(0), np.empty(0, dtype=np.bool_), np.empty(0), {}, {})
        before = self._rng.bit_generator.state
        # The same numbers, whether rows come one by one or all at once.
        uniforms = self._rng.random((rows, 2, len(self._network.nodes))).transpose(1, 2, 0)
        try:
            scores, places, contributions = self._judge.scores(table, uniforms[0])
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
            k: reasons_for(self._network, self._reference, table.take([k]), contributions[:, [k]])
            for k in np.flatnonzero(alarms).tolist()
        }
        drifts = {
            k: drift_of(
                self._network,
                self._reference,
                self._judge.scorer,
                change,
                table.with_columns(recent[:, : recent.shape[1] - rows + k + 1]),
                first + k,
            )
            for k, change in changes.items()
        }
        self._recent = recent[:, -WINDOW:].copy()
        self._alarms += int(alarms.sum())
        self._drift_alarms += len(drifts)
        return Verdicts(first, shares, alarms, drift, reasons, drifts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file; after `load`, the monitor continues as if nothing had happened."""
        from spbn.monitoring.state import save

        save(self, path)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        network: BayesianNetwork | DynamicNetwork,
        *,
        alarm: float | None = None,
        drift: float | None = None,
    ) -> Monitor:
        """Read a saved state of the same network; you may change the levels.

        Such a file holds only data: reading it runs no code.
        """
        from spbn.monitoring.state import load

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

    def _repr_html_(self) -> str:
        """Show what has been seen so far in a notebook."""
        return display.html(self)

    def __repr__(self) -> str:
        return (
            f"Monitor({len(self.variables)} variables, {self.reference_rows} reference rows, "
            f"alarm={self.alarm:g}, drift={self.drift:g}; {self.rows} rows seen, {self.alarms} alarms, "
            f"{self.drift_alarms} drift alarms)"
        )


def _listed(names: Any) -> str:
    return ", ".join(names)


def _rate(name: str, value: Any) -> float:
    return float(fraction(name, value))


def _warn_if_too_rare(reference: Reference, alarm: float) -> None:
    """Say so if the reference rows cannot tell how unusual a row is that may raise an alarm."""
    rows = reference.rows
    if not reference.tail.is_extrapolated and alarm * (rows + 1) < 1.0:
        warnings.warn(
            SpbnWarning(
                f"no row can raise an alarm: {setting('alarm', alarm, shown=f'{alarm:g}')} is less than one "
                f"of {rows} reference rows, and their log-densities have too few different values for rarer "
                f"rows to be told apart. Give more reference rows, or "
                f"{setting('alarm', alarm, shown=f'{2.0 / rows:.1g}')}."
            ),
            stacklevel=3,
        )
    elif alarm * rows < TOO_RARE:
        warnings.warn(
            SpbnWarning(
                f"{setting('alarm', alarm, shown=f'{alarm:g}')} is far less than one of {rows} reference "
                f"rows: how often it is raised may be wrong by a factor. Give more reference rows."
            ),
            stacklevel=3,
        )


# ----------------------------------------------------------------------------------------------------
# The table that `Monitor.update` returns: a data frame that notebooks show with its alarms.


@final
class Watched(pd.DataFrame):
    """A data frame in every respect; whatever is taken out of it is an ordinary one."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        """Show the rows in a notebook."""
        return display.html(self)
