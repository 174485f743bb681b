"""Monitoring: log-densities of new rows turned into decisions, with reasons.

A monitor can go on after its process has ended. Its file is one JSON object (see docs/file-format.md), which
holds what is known of the reference rows and of the rows since, but not the network: that has a file of its
own, and is recognised by what it says about three rows. Numbers are written with all their digits, so that a
monitor that is loaded goes on exactly as it was.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, final

import numpy as np
import pandas as pd

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray, finite_log_density
from spbn._base.checks import fraction, is_whole, whole
from spbn._base.files import replacing
from spbn._deprecated import warn_deprecated
from spbn.diagnostics.blame import Blame, Reason
from spbn.errors import ArgumentError, DataError, ModelFileError, SpbnError, SpbnWarning, setting
from spbn.monitoring.attribution import WINDOW, Drift, explain_drift
from spbn.monitoring.drift import BINS, DriftTest
from spbn.monitoring.reference import CANDIDATES, MIN_ROWS, Reference, ReferenceScorer, Tail, score_reference
from spbn.network import Network
from spbn.tables.reader import frame_index
from spbn.tables.rows import as_dict, with_nulls
from spbn.tables.table import Table, Variable

ALARM, DRIFT = 0.001, 1e-5
TOO_RARE = 0.1  # times one reference row: p-values that reference rows can hardly tell

FORMAT, VERSION = "spbn-monitor", 1
MAX_BYTES = 256 * 2**20
MOST_ROWS = 1 << 53  # that can be counted in a double
PROBED = (CANDIDATES // 4, CANDIDATES // 2, 3 * CANDIDATES // 4)  # quantiles that a network is recognised by
TOLERANCE = 1e-6  # how far its log-densities may be off, on another machine


@dataclass(frozen=True, eq=False)
class MonitorResult:
    """What a monitor says about some rows."""

    first: int  # the number of the first row, counted from 0 since the monitor was made
    #: Which share of rows in normal operation is as unusual, and whether that is too small; NaN and False if
    #: a row cannot be judged yet.
    p_values: FloatArray
    alarms: BoolArray
    drift: FloatArray  # the statistic of the drift test, relative to that of an alarm
    #: Of every row with an alarm, by its place among these rows: the variables to blame.
    reasons: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    #: The drift alarms, by the place of their rows among these rows.
    drifts: Mapping[int, Drift] = field(default_factory=dict)


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

    network: Network
    reference: Reference
    #: How many of the rows that have been seen raised an alarm.
    alarms: int
    #: How many drift alarms there were.
    drift_alarms: int

    def __init__(
        self,
        network: Network,
        reference: Any,
        *,
        alarm: float = ALARM,
        drift: float = DRIFT,
        trained: bool | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(network, Network):
            raise ArgumentError(
                f"network must be a BayesianNetwork or a DynamicNetwork. Got {type(network).__name__}."
            )
        self.network, self._network = network, network.row_network
        self._alarm = float(fraction("alarm", alarm))
        self._drift = float(fraction("drift", drift))
        self._rng = np.random.default_rng(whole("seed", seed))
        self._buffer = network.row_buffer()
        if not isinstance(reference, Reference):
            reference = score_reference(
                self._network, self._buffer.history(reference), trained=trained, by_node=network.is_dynamic
            )
            _warn_if_too_rare(reference, self.alarm)
        self.reference = reference
        self._scorer = ReferenceScorer(self._network, reference)
        self._test = DriftTest(reference.pit_counts, self.drift)
        self._recent = np.empty((len(self._network.variables), 0))
        self.alarms = self.drift_alarms = 0

    @property
    def alarm(self) -> float:
        """The share of rows in normal operation that may raise an alarm."""
        return self._alarm

    @property
    def drift(self) -> float:
        """The rate of false drift alarms, per row."""
        return self._drift

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that rows must have, in the order of arrays."""
        return self.network.variables

    @property
    def keys(self) -> tuple[str, ...]:
        """Further columns that rows must have: those for series and time, if the network is dynamic."""
        return self._buffer.keys

    @property
    def rows(self) -> int:
        """How many rows have been seen."""
        return self._test.rows

    @property
    def reference_rows(self) -> int:
        """How many rows new ones are compared with."""
        return self.reference.tail.rows

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
        ``p_value``      share of rows in normal operation that are as unusual
        ``alarm``        whether that is too small
        ``blame``        if so, the variables to blame, the worst first
        ``drift``        statistic of the drift test, relative to the one that raises a drift alarm
        ``drift_alarm``  whether the test has found a drift in this row; it then begins again
        ``drift_blame``  if so, the variables that drift
        ===============  ===========================================================================
        """
        rows = as_dict(rows)
        result = self._undo_if_refused(lambda: self.check(self.read(rows)))
        number = range(len(result.p_values))
        index = frame_index(rows)
        return AlarmFrame(
            {
                "p_value": result.p_values,
                "alarm": result.alarms,
                "blame": [", ".join(reason.node for reason in result.reasons.get(k, ())) for k in number],
                "drift": result.drift,
                "drift_alarm": [k in result.drifts for k in number],
                "drift_blame": [
                    ", ".join(result.drifts[k].blame) if k in result.drifts else "" for k in number
                ],
            },
            index=range(result.first, result.first + len(number)) if index is None else index,
        )

    def explain(self, row: Any) -> tuple[Reason, ...]:
        """Return what makes a row unusual: the variables to blame, the worst first.

        These are the fewest variables whose values, if they were different, would make the row usual, as
        `spbn.explain.unusual_rows` says, too. The row is given as for `update`, but it is not counted.
        """
        table = self._buffer.copy().table(as_dict(row))
        if table.rows != 1:
            raise DataError(f"explain takes one row. Got {table.rows}.")
        contributions = self._scorer.score(table, np.full((len(self._network.nodes), 1), 0.5)).contributions
        return self._reasons(table, contributions[:, 0])

    def _reasons(self, row: Table, contributions: FloatArray) -> tuple[Reason, ...]:
        """Explain a row; contributions are NaN where they depend on what is missing."""
        missing = np.isnan(row.columns)
        if not missing.any():
            return self._blame.reasons(row, contributions)
        if not self.network.is_dynamic:  # what is missing is drawn
            return self._blame.reasons(row)
        filled = np.where(missing, self.reference.candidates[:, :1], row.columns)
        return self._blame.reasons(row.with_columns(filled), contributions)

    @cached_property
    def _blame(self) -> Blame:
        network = self._network
        if network.inputs and not set(network.nodes) <= set(network.record.typical):
            return Blame(network, dict(zip(network.nodes, self.reference.medians.tolist(), strict=True)))
        return Blame(network)

    def read(self, rows: Any) -> Table:
        """Read new rows, which come after all that were read before, for `check`."""
        return self._buffer.table(rows)

    def check_columns(self, columns: FloatArray, keys: Mapping[str, Any]) -> MonitorResult:
        """Do what `update` does with variables × rows and, by their names, the columns that are `keys`."""
        return self._undo_if_refused(lambda: self.check(self._buffer.append(columns, keys)))

    def check(self, table: Table) -> MonitorResult:
        """Do what `update` does with rows that have been read already; NaN is missing in them."""
        first, rows = self.rows, table.rows
        if not rows:
            return MonitorResult(first, np.empty(0), np.empty(0, dtype=np.bool_), np.empty(0))
        before = self._rng.bit_generator.state
        # The same numbers, whether rows come one by one or all at once.
        uniforms = self._rng.random((rows, 2, len(self._network.nodes))).transpose(1, 2, 0)
        try:
            scores, pit, contributions = self._scorer.score(table, uniforms[0])
        except DataError:  # as if these rows had never come
            self._rng.bit_generator.state = before
            raise
        known = ~np.isnan(scores)
        p_values = np.full(rows, np.nan)
        p_values[known] = self.reference.tail.p_values(scores[known])
        alarms: BoolArray = p_values <= self.alarm
        drift, changes = self._test.update(self._spaced(pit), uniforms[1])
        recent = np.concatenate([self._recent, table.columns], axis=1)
        reasons = {
            k: self._reasons(table.take([k]), contributions[:, k]) for k in np.flatnonzero(alarms).tolist()
        }
        drifts = {}
        for k, change in changes.items():
            upto = table.with_columns(recent[:, : recent.shape[1] - rows + k + 1])
            drifts[k] = explain_drift(self._network, self.reference, change, upto, first + k)
        self._recent = recent[:, -WINDOW:].copy()
        self.alarms += int(alarms.sum())
        self.drift_alarms += len(drifts)
        return MonitorResult(first, p_values, alarms, drift, reasons, drifts)

    def _spaced(self, pit: FloatArray) -> FloatArray:
        """Leave to the drift test, of every node, rows that are so far apart that they are independent."""
        spacing, numbers = self.reference.spacing[:, None], self.rows + np.arange(pit.shape[1])
        return np.where((spacing > 0) & (numbers % np.maximum(spacing, 1) == 0), pit, np.nan)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file; after `load`, the monitor continues as if nothing had happened."""
        reference, test = self.reference, self._test
        document = {
            "format": FORMAT,
            "version": VERSION,
            "nodes": list(self.network.nodes),
            "past": self._buffer.to_record(),
            "alarm": self.alarm,
            "drift": self.drift,
            "rows": test.rows,
            "alarms": self.alarms,
            "drift_alarms": self.drift_alarms,
            "reference": {
                "scores": reference.tail.ordered.tolist(),
                "medians": reference.medians.tolist(),
                "means": reference.means.tolist(),
                "places": reference.pit_counts.astype(np.int64).tolist(),
                "candidates": with_nulls(reference.candidates),
                "spacing": reference.spacing.tolist(),
                "by_node": None if reference.by_node is None else reference.by_node.tolist(),
            },
            "test": {
                "counts": test.counts.astype(np.int64).tolist(),
                "stakes": test.stakes.tolist(),
                "sums": test.sums.tolist(),
                "starts": test.starts.tolist(),
            },
            "recent": with_nulls(self._recent),
            "generator": self._rng.bit_generator.state,
            "probe": self._probe().tolist(),
        }
        text = json.dumps(document, ensure_ascii=True, allow_nan=False)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="ascii")

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        network: Network,
        *,
        alarm: float | None = None,
        drift: float | None = None,
    ) -> Monitor:
        """Read a saved state of the same network; you may change the levels.

        Such a file holds only data: reading it runs no code.
        """
        levels = {name: level for name, level in (("alarm", alarm), ("drift", drift)) if level is not None}
        for name, level in levels.items():
            fraction(name, level)
        name, document = os.fspath(path), _read_document(path)
        if document.get("nodes") != list(network.nodes):
            raise ModelFileError(f"{name} belongs to another network: its variables are different.")
        try:
            levels = {key: float(fraction(key, document[key])) for key in ("alarm", "drift")} | levels
            reference = _reference(document["reference"], network)
            monitor = cls(network, reference, alarm=levels["alarm"], drift=levels["drift"])
            monitor._restore(document)
            expected = _numbers(document["probe"], (len(PROBED),))
        except (KeyError, TypeError, ValueError, OverflowError, SpbnError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ModelFileError(
                f"{name} is damaged: {reason:.200}. Give the reference rows again, and another file."
            ) from error
        if not np.allclose(monitor._probe(), expected, rtol=TOLERANCE, atol=TOLERANCE):
            raise ModelFileError(f"{name} belongs to another network: its densities are different.")
        return monitor

    def _restore(self, document: Any) -> None:
        """Go on after the rows of a saved state."""
        if self.network.is_dynamic:
            self._buffer.restore(document["past"])
        self.alarms, self.drift_alarms = _count(document["alarms"]), _count(document["drift_alarms"])
        test, saved, shape = self._test, document["test"], self._test.stakes.shape
        test.rows = _count(document["rows"])
        test.counts = _numbers(saved["counts"], test.counts.shape, least=0.0, most=MOST_ROWS)
        test.stakes = _numbers(saved["stakes"], shape, least=0.0)
        test.sums = _numbers(saved["sums"], shape)
        test.starts = _numbers(saved["starts"], shape, least=0.0, most=MOST_ROWS).astype(np.int64)
        self._recent = _numbers(document["recent"], (len(self._recent), None), holes=True)
        state = document["generator"]
        if state["bit_generator"] != "PCG64" or not all(
            isinstance(state["state"][key], int) for key in ("state", "inc")
        ):
            raise ValueError("its generator of random numbers makes no sense.")
        self._rng.bit_generator.state = state

    def _probe(self) -> FloatArray:
        """Return the log-densities of a few rows, by which a network is recognised."""
        candidates = self.reference.candidates
        columns = candidates[:, list(PROBED)]
        columns = np.where(np.isnan(columns), candidates[:, [0]], columns)
        contributions = self._network.contributions(Table.of(self._network.variables, columns))
        return finite_log_density(contributions).sum(axis=1)

    def _undo_if_refused(self, check: Callable[[], MonitorResult]) -> MonitorResult:
        """Check rows; if they are refused, it is as if they had never come."""
        # Only margins refuse rows that have been read.
        before = None if self._network.margins is None else self._buffer.copy()
        try:
            return check()
        except DataError:
            if before is not None:
                self._buffer = before
            raise

    _repr_html_ = display.repr_html

    def __repr__(self) -> str:
        return (
            f"Monitor({len(self.variables)} variables, {self.reference_rows} reference rows, "
            f"alarm={self.alarm:g}, drift={self.drift:g}; {self.rows} rows seen, {self.alarms} alarms, "
            f"{self.drift_alarms} drift alarms)"
        )


def _warn_if_too_rare(reference: Reference, alarm: float) -> None:
    """Say so if the reference rows cannot tell how unusual a row is that may raise an alarm."""
    rows, chosen = reference.tail.rows, setting("alarm", alarm, shown=f"{alarm:g}")
    if not reference.tail.is_extrapolated and alarm * (rows + 1) < 1.0:
        problem = (
            f"no row can raise an alarm: {chosen} is less than one of {rows} reference rows, and their "
            f"log-densities have too few different values for rarer rows to be told apart. Give more "
            f"reference rows, or {setting('alarm', alarm, shown=f'{2.0 / rows:.1g}')}."
        )
    elif alarm * rows < TOO_RARE:
        problem = (
            f"{chosen} is far less than one of {rows} reference rows: how often it is raised may be wrong by "
            f"a factor. Give more reference rows."
        )
    else:
        return
    warnings.warn(SpbnWarning(problem), stacklevel=3)


@final
class AlarmFrame(pd.DataFrame):
    """What `Monitor.update` returns: a data frame in every respect, which notebooks show with its alarms.

    Whatever is taken out of it is an ordinary data frame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __getitem__(self, key: Any) -> Any:
        """Return columns or rows; the p-values by their old name, too."""
        if isinstance(key, str) and key == "share":
            warn_deprecated("the column share of Monitor.update", "p_value", stacklevel=3)
            key = "p_value"
        return super().__getitem__(key)

    _repr_html_ = display.repr_html


def _read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    name = os.fspath(path)
    with open(path, "rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ModelFileError(f"{name} cannot be read: it has more than {MAX_BYTES >> 20} MB.")
    try:
        document = json.loads(content.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{name} is not the state of a monitor: it is not JSON.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not the state of a monitor.")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"{name} is in version {document.get('version')!r:.20} of the format, and this spbn reads "
            f"version {VERSION}: upgrade spbn, or give the reference rows again."
        )
    return document


def _reference(document: Any, network: Network) -> Reference:
    nodes, variables = len(network.nodes), len(network.row_network.variables)
    scores = _numbers(document["scores"], (None,))
    if len(scores) < MIN_ROWS:
        raise ValueError(f"it must have at least {MIN_ROWS} reference rows.")
    return Reference(
        Tail.fit(scores),
        _numbers(document["medians"], (nodes,)),
        _numbers(document["means"], (nodes,)),
        _numbers(document["places"], (nodes, BINS), least=0.0, most=MOST_ROWS),
        _numbers(document["candidates"], (variables, CANDIDATES), holes=True),
        _numbers(document.get("spacing", [1] * nodes), (nodes,), least=0.0).astype(np.int64),
        _numbers(document["by_node"], (nodes, None)) if network.is_dynamic else None,
    )


def _numbers(
    values: Any,
    shape: tuple[int | None, ...],
    *,
    holes: bool = False,
    least: float = -np.inf,
    most: float = np.inf,
) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    right = array.ndim == len(shape) and all(
        size in (None, got) for size, got in zip(shape, array.shape, strict=True)
    )
    if not right or not (np.isfinite(array) | (np.isnan(array) & holes)).all():
        raise ValueError(f"it must have an array of shape {shape}. Got {values!r:.60}.")
    if (array < least).any() or (array > most).any():
        raise ValueError("it has a count or a stake below 0, or a count that no rows can have.")
    return array


def _count(value: Any) -> int:
    if not is_whole(value, 0, MOST_ROWS):
        raise ValueError(f"a count must be 0 or more, and at most {MOST_ROWS}. Got {value!r:.60}.")
    return int(value)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that a state can hold.")
