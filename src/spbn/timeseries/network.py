"""A network over time: the density of every row given the rows before it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from spbn import io
from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from spbn._base.checks import is_number, is_whole, whole
from spbn._base.files import ArrayReader, ArrayWriter, refuse
from spbn._base.lazy import pd
from spbn._deprecated import renamed
from spbn.errors import ArgumentError, DataError, GraphError, ModelFileError, SpbnError, quoted, setting
from spbn.joint import as_columns, average_over_classes, class_weights
from spbn.learning.hidden import draw_codes
from spbn.network import BayesianNetwork, Network
from spbn.tables.columns import columns_of
from spbn.tables.lags import (
    SEASON_INPUTS,
    SEASONS,
    Runs,
    is_season,
    lag_name,
    lagged_table,
    period_of,
    read_times,
    runs_of,
    season_columns,
    with_season,
)
from spbn.tables.reader import as_table, by_row, frame_index
from spbn.tables.rows import RowBuffer
from spbn.tables.table import Table
from spbn.timeseries.forecast import Forecast, free_name, lagged_places, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LAGS = 1 << 12  # in a file
SHOWN_HISTORY = 200  # rows before a forecast that its picture may show


@final
@dataclass(repr=False)
class DynamicNetwork(Network):
    """The joint density of a series of rows, as a product of the density of every row given those before it.

    The transition network gives the density of a row given the `lags` rows before it. A series has
    no such rows at its beginning: its first `lags` rows have the joint density that the static network
    gives them, in which a row depends on those before it as well, and never on later ones.

    Attributes
    ----------
    static
        The network of the first `lags` rows of a series. Its nodes are the variables in the last of these
        rows, ``x``, and in the rows before that, ``x[t-1]`` and so on.
    transition
        The network of a row, ``x``, given those before it, ``x[t-1]`` and so on, which are its inputs.
    lags
        How many earlier rows a row may depend on.
    series, time
        The columns of data that tell series apart, and that hold the times of rows; None if there are none.
    step
        The interval between the times of rows.
    season
        A season whose phase is an input of the transition network, ``sin(season)`` and ``cos(season)``:
        "year", "week", "day" or "hour" if times are dates, or a number of rows.

    With a hidden class, which both networks have then, a series belongs to one class as a whole. The density
    of a row is that given all rows before it in its series, by which classes become more or less probable:

        f(x_t | past) = Σ_k P(k | past) f(x_t | the last rows, k).

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> dynamic = spbn.learn_dynamic(data, lags=1, model="gbn")
    >>> print(dynamic.lags, len(dynamic.logpdf(data)))
    1 200
    """

    static: BayesianNetwork
    transition: BayesianNetwork
    lags: int
    _: KW_ONLY
    series: str | None = None
    time: str | None = None
    step: float | None = None
    season: str | float | None = None

    def __post_init__(self) -> None:
        self.lags = lags = whole("lags", self.lags, 1)
        hidden, names = self.hidden, tuple(n for n in self.transition.nodes if n != self.hidden)
        allowed = {lag_name(name, lag) for name in names for lag in range(1, lags + 1)}
        levels: dict[str, tuple[str, ...]] = {}
        if self.season is not None:
            if self.time is None or self.step is None or not is_season(self.season):
                raise GraphError(
                    f"a season, one of {quoted(SEASONS)} or a number of rows, needs the column of the times "
                    f"of rows, time, and their step. Got {self.season!r:.60}."
                )
            levels = {variable.name: () for variable in SEASON_INPUTS}
            allowed |= set(levels)
        unknown = [name for name in self.transition.structure.inputs if name not in allowed]
        if unknown:
            raise GraphError(
                f"the inputs of the transition network must be its nodes up to {lags} rows before, such as "
                f"{lag_name(names[0], 1)!r}. Got {quoted(unknown)}."
            )
        if self.static.class_variable != self.transition.class_variable:
            raise GraphError("the networks must have the same hidden class, or none.")
        _require_static(self.static, names, lags, hidden)
        keys = [name for name in (self.series, self.time) if name is not None]
        if set(keys) & set(names) or len(set(keys)) < len(keys):
            raise GraphError(f"series and time must be columns that are not nodes. Got {quoted(keys)}.")
        self.variables = self.transition.variables[: len(names)]  # the nodes, without the inputs
        levels |= {lag_name(v.name, lag): v.levels for v in self.variables for lag in range(lags + 1)}
        for part in self.parts:
            wrong = [v.name for v in part.variables if v.levels != levels[v.name]]
            if wrong:
                raise GraphError(f"the networks do not agree on the levels of {quoted(wrong)}.")

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.transition.nodes

    @property
    def hidden(self) -> str | None:
        """The class of series, a node that no column of data holds; None without one."""
        return self.transition.hidden

    def logpdf(self, data: Any) -> pd.Series[float] | FloatArray:
        """Log-density of every row given the rows before it in its series, in the order of the data.

        Of a pandas frame, it is a Series with its index; of other data, an array.
        """
        return by_row(data, self.contributions(data).sum(axis=1))

    def contributions(self, data: Any) -> FloatArray:
        """Return what every variable contributes to the log-density of every row: rows × variables.

        The first `lags` rows of a series, and after a gap, are judged by the static network, given those
        before them; all others by the transition network. A class of series takes what it costs to tell
        which, given what was known before.
        """
        table, runs = self.read(data)
        if self.hidden is not None:
            terms = self._terms_by_class(table, runs)
            terms[:, -1] = self._log_classes_before(terms, runs)
            return average_over_classes(terms).T
        out = np.empty((len(self.nodes), table.rows))
        windows = runs.windows(self.lags + 1)
        if len(windows):
            rows = self._transition_rows(table, windows, runs.times)
            out[:, windows[:, 0]] = self.transition.contributions(rows).T
        for width in range(1, self.lags + 1):
            first = runs.beginnings(width)
            if len(first):
                out[:, first[:, 0]] = self._initial(table, first)
        return out.T

    def classes(self, data: Any) -> pd.DataFrame:
        """Return which class every series belongs to: the probability of each, and the most probable one.

        There is a row for every series, and the rows of a series may have missing values: they tell nothing,
        and neither do those that look back on them.

        Examples
        --------
        >>> import numpy as np, pandas as pd, spbn
        >>> rng = np.random.default_rng(0)
        >>> walks = rng.standard_normal((20, 50))
        >>> for t in range(1, 50):
        ...     walks[:, t] += np.where(np.arange(20) < 8, 0.9, -0.5) * walks[:, t - 1]
        >>> data = pd.DataFrame({"machine": np.repeat(np.arange(20), 50), "x": walks.ravel()})
        >>> dynamic = spbn.learn_dynamic(data, series="machine", model="gbn", hidden=2)
        >>> dynamic.classes(data)["class"].tolist().count("2")
        8
        """
        if self.transition.class_variable is None:
            raise ArgumentError(
                f"the network has no hidden class: learn one with {setting('hidden', 'auto')}."
            )
        table, runs = self.read(data, holes=True)
        found, variable = self._class_probabilities(table, runs), self.transition.class_variable
        frame = pd.DataFrame(found, columns=list(variable.levels))
        frame.index = pd.Index(runs.names, name=self.series)
        frame[variable.name] = self.transition.as_data(variable, found.argmax(axis=1))
        return frame

    def _class_probabilities(self, table: Table, runs: Runs) -> FloatArray:
        """Return the probability of every class given all rows of a series: series × classes."""
        terms = self._terms_by_class(table, runs)[:, :-1].sum(axis=1)
        return class_weights(self.transition.log_shares, terms, runs.series_of_rows, runs.number)

    def _terms_by_class(self, table: Table, runs: Runs) -> FloatArray:
        """Return the log-density of every variable and every class: classes × nodes × rows; 0 of the class.

        Rows with holes, and those that look back on them, have 0.
        """
        levels = len(self.transition.log_shares)
        out = np.zeros((levels, len(self.nodes), table.rows))
        whole: BoolArray = np.isfinite(table.columns).min(axis=0)
        windows = runs.windows(self.lags + 1)
        windows = windows[whole[windows].all(axis=1)]
        if len(windows):
            rows = self._transition_rows(table, windows, runs.times).columns
            out[:, :-1, windows[:, 0]] = self.transition.terms_by_class(rows)[:, :-1]
        for width in range(1, self.lags + 1):
            first = runs.beginnings(width)
            first = first[whole[first].all(axis=1)]
            for level in range(levels if len(first) else 0):
                out[level][:-1, first[:, 0]] = self._initial(table, first, level)
        return out

    def _log_classes_before(self, terms: FloatArray, runs: Runs) -> FloatArray:
        """Return the log-probability of every class given the rows before in the series: classes × rows."""
        prior, joint = self.transition.log_shares, terms[:, :-1].sum(axis=1)
        out = np.empty_like(joint)
        of_row = runs.series_of_rows[runs.order]
        for rows in np.split(runs.order, np.flatnonzero(np.diff(of_row)) + 1):
            before = np.cumsum(joint[:, rows], axis=1) - joint[:, rows] + prior
            out[:, rows] = before - np.logaddexp.reduce(before, axis=0)
        return out

    def lagged(self, data: Any) -> pd.DataFrame:
        """Return the rows as the transition network sees them: every row together with those before it.

        The first `lags` rows of a series are not among them. The index is that of the data.
        """
        table, runs = self.read(data)
        windows = runs.windows(self.lags + 1)
        found = lagged_table(table, windows, range(self.lags + 1))
        if self._period is not None and runs.times is not None:
            found = with_season(found, runs.times[windows[:, 0]], self._period)
        index = frame_index(data)
        rows = windows[:, 0] if index is None else index[windows[:, 0]]
        return pd.DataFrame(as_columns(found.variables, found.columns), index=rows)

    @renamed(series="n")
    def sample(self, steps: int, *, n: int = 1, seed: Seed = None) -> pd.DataFrame:
        """Draw series of rows: the first from the static network, all others from the transition network.

        Parameters
        ----------
        steps
            How many rows each series has.
        n
            How many series to draw.
        """
        whole("steps", steps, 1)
        whole("n", n, 1)
        rng = generator(seed)
        drawn = self.static.draw(n, rng)
        names = [lag_name(v.name, lag) for v in self.variables for lag in reversed(range(self.lags))]
        first = np.stack([self.static.in_data_units(name, drawn[name]) for name in names])
        past = first.reshape(len(self.variables), self.lags, n)
        first_times: Any = np.zeros(n)
        season = None
        if self._period is not None and self.step is not None:  # as if series began in all seasons alike
            first_times = self.step * rng.integers(0, max(1, round(self._period / self.step)), n)
            season = self._season_ahead(first_times + (self.lags - 1) * self.step, max(0, steps - self.lags))
        classes = drawn.get(self.hidden or "")
        later = simulate(self.transition, past, max(0, steps - self.lags), rng, classes, season)
        rows = np.concatenate([past, later], axis=1)[:, :steps]
        flat = rows.transpose(0, 2, 1).reshape(len(self.variables), -1)
        columns: dict[str, Any] = {}
        if self.series is not None or n > 1:
            columns[self.series or free_name("series", self.nodes)] = np.repeat(np.arange(1, n + 1), steps)
        if self.time is not None:
            columns[self.time] = (first_times[:, None] + np.arange(steps) * (self.step or 1.0)).ravel()
        return pd.DataFrame({**columns, **as_columns(self.variables, flat)})

    def forecast(self, history: Any, steps: int, *, n: int = 1000, seed: Seed = 0) -> Forecast:
        """Draw what may follow the last rows of a history, many times.

        Parameters
        ----------
        history
            Rows of one series or several; each is continued after its last row. Only its last `lags` rows
            matter, and all others only for a class of series; values may be missing in those before.
        steps
            How many rows to look ahead.
        n
            How many paths to draw for each series.

        Examples
        --------
        >>> import numpy as np, pandas as pd, spbn
        >>> rng = np.random.default_rng(0)
        >>> walk = pd.DataFrame({"x": rng.standard_normal(200).cumsum()})
        >>> dynamic = spbn.learn_dynamic(walk, model="gbn")
        >>> ahead = dynamic.forecast(walk, 5)
        >>> ahead.mean().shape
        (5, 1)
        >>> 0.0 <= ahead.probability({"x": (0, None)}, within=3) <= 1.0
        True
        """
        whole("steps", steps, 1)
        whole("n", n, 1)
        table, runs = self.read(history, holes=True)
        last = list({name: k for k, name in enumerate(runs.series)}.values())  # run of every series
        short = [runs.series[k] for k in last if runs.lengths[k] < self.lags]
        if short:
            where = f"series {quoted(short)}" if self.series else "the history"
            raise DataError(
                f"{where} must end with {self.lags} rows without a gap, as many as the network has lags. "
                f"Got {min(int(runs.lengths[k]) for k in last)}."
            )
        recent = [runs.order[runs.ends[k] - self.lags : runs.ends[k]] for k in last]
        _require_complete(table.take(np.concatenate(recent)), np.concatenate(recent))
        past = np.repeat(table.columns[:, np.stack(recent, axis=1)], n, axis=2)
        rng, classes = generator(seed), None
        if self.hidden is not None:
            of_last = runs.series_of_rows[np.stack(recent)[:, 0]]
            weights = self._class_probabilities(table, runs)[of_last]
            classes = draw_codes(np.repeat(weights, n, axis=0), rng).astype(np.float64)
        season = None
        if runs.times is not None:
            season = self._season_ahead(np.repeat(runs.times[np.stack(recent)[:, -1]], n), steps)
        values = simulate(self.transition, past, steps, rng, classes, season)
        shape = (len(self.variables), steps, len(last), n)
        before = [runs.order[max(runs.starts[k], runs.ends[k] - SHOWN_HISTORY) : runs.ends[k]] for k in last]
        return Forecast(
            self.variables,
            values.reshape(shape).transpose(0, 2, 3, 1),
            self.series,
            tuple(runs.series[k] for k in last),
            tuple(table.columns[:, rows] for rows in before),
        )

    def compact(self, tolerance: float = 1e-6, *, others: str = "error") -> DynamicNetwork:
        """Return a network that says the same without its training rows: both of its networks are compact.

        The arguments are those of `BayesianNetwork.compact`.

        Examples
        --------
        >>> import numpy as np, spbn
        >>> walk = {"x": np.random.default_rng(0).standard_normal(1000).cumsum()}
        >>> dynamic = spbn.learn_dynamic(walk, model="kdebn", max_parents=2)
        >>> small = dynamic.compact()
        >>> bool(abs(small.logpdf(walk) - dynamic.logpdf(walk)).max() < 1e-5)
        True
        """
        static, transition = (part.compact(tolerance, others=others) for part in self.parts)
        return replace(self, static=static, transition=transition)

    @property
    def parts(self) -> tuple[BayesianNetwork, ...]:
        return self.static, self.transition

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        own = {"lags": self.lags, "series": self.series, "time": self.time, "step": self.step}
        own |= {} if self.season is None else {"season": self.season}
        return {
            "dynamic": {
                **own,
                "static": self.static.to_record(arrays),
                "transition": self.transition.to_record(arrays),
            }
        }

    @classmethod
    def from_record(cls, record: Any, version: int, arrays: ArrayReader) -> DynamicNetwork:
        """Read what `to_record` wrote below "dynamic"; anything else is a `ModelFileError`."""
        for name in ("static", "transition"):
            if not isinstance(record, dict) or not isinstance(record.get(name), dict):
                refuse(f"its dynamic network must have a {name} network.")
        static, transition = (
            BayesianNetwork.from_record(record[name], version, arrays) for name in ("static", "transition")
        )
        lags, step = record.get("lags"), record.get("step")
        if not is_whole(lags, 1, MOST_LAGS):
            refuse(f"its number of lags makes no sense. Got {lags!r:.100}.")
        for key in ("series", "time"):
            if not (record.get(key) is None or isinstance(record[key], str)):
                refuse(f"{key!r} must be the name of a column. Got {record[key]!r:.100}.")
        if step is not None and not (is_number(step) and step > 0):
            refuse(f"its step of time must be a number greater than 0. Got {step!r:.100}.")
        step, season = None if step is None else float(step), record.get("season")
        if season is not None and not is_season(season):
            refuse(f"its season must be one of {quoted(SEASONS)}, or a number of rows. Got {season!r:.100}.")
        keys = {"series": record.get("series"), "time": record.get("time")}
        try:
            return cls(static, transition, lags, **keys, step=step, season=season)
        except SpbnError as error:
            raise ModelFileError(f"its dynamic network makes no sense: {error}") from error

    def plot(self, ax: Axes | None = None, *, slices: int | None = None) -> Axes:
        """Draw the rows of time side by side, and the arcs between them; see `spbn.plots.plot_slices`."""
        drawn: Axes = display.plot(self, ax, slices=slices)
        return drawn

    def read(self, data: Any, *, holes: bool = False) -> tuple[Table, Runs]:
        """Return the variables of some data, perhaps with holes, and which rows follow each other."""
        table = as_table(data, variables=self.variables, missing="keep" if holes else None)
        if isinstance(data, Table):
            one = np.array([table.rows])
            return table, Runs(np.arange(table.rows), one, ("",))
        runs = runs_of(data, series=self.series, time=self.time, step=self.step)
        if self.season is not None and self.time is not None:
            times = read_times(self.time, columns_of(data)[self.time], in_parts=True)
            runs = replace(runs, times=times)
        return table, runs

    def row_buffer(self) -> RowBuffer:
        if self.hidden is not None:
            raise ArgumentError(
                "the classes of this network are those of whole series, and new rows are judged one by one: "
                "learn a network without, or use its logpdf and classes."
            )
        return RowBuffer(
            self.variables,
            self.lags,
            series=self.series,
            time=self.time,
            step=self.step,
            join=self._transition_rows,
        )

    def _transition_rows(self, table: Table, windows: IntArray, times: FloatArray | None) -> Table:
        """Return the columns that the transition network needs, from windows of rows, the last row first.

        `times`: of all rows of the table, for the season.
        """
        places = lagged_places([variable.name for variable in self.variables], self.lags)
        columns = {name: table.columns[place, windows[:, lag]] for name, (place, lag) in places.items()}
        if self._period is not None and times is not None:
            season = season_columns(times[windows[:, 0]], self._period)
            columns |= dict(zip((v.name for v in SEASON_INPUTS), season, strict=True))
        wanted = self.transition.variables
        return Table.of(wanted, np.stack([columns[variable.name] for variable in wanted]))

    @property
    def _period(self) -> float | None:
        """The length of the season in units of time."""
        return None if self.season is None else period_of(self.season, self.step)

    def _season_ahead(self, times: FloatArray, steps: int) -> FloatArray | None:
        """Return the phase of the season in the rows that follow some times: 2 × steps × times."""
        if self._period is None or self.step is None:
            return None
        return season_columns(times + self.step * np.arange(1, steps + 1)[:, None], self._period)

    def _initial(self, table: Table, windows: IntArray, level: int | None = None) -> FloatArray:
        """Contributions of the last row of windows at the beginning of runs: variables × windows.

        `level`: that of the hidden class.
        """
        lag = self.lags - windows.shape[1]  # of that row, to the last of the rows that the static network has
        rows = lagged_table(table, windows, range(lag, self.lags))
        moved = self.static.transformed(rows)
        if level is not None:
            moved = self.static.with_class(moved, np.full(len(windows), level))
        names = [lag_name(variable.name, lag) for variable in self.variables]
        by_node = np.stack([self.static.cpds[name].logpdf(moved) for name in names])
        return by_node + self.static.log_slopes(rows, names)

    def __repr__(self) -> str:
        return f"DynamicNetwork of {quoted(self.nodes)} ({self.lags} {'lag' if self.lags == 1 else 'lags'})"

    def __str__(self) -> str:
        return str(self.transition)


io.READERS["dynamic"] = DynamicNetwork.from_record


def _require_complete(recent: Table, rows: IntArray) -> None:
    """Refuse holes in the rows that a forecast begins with."""
    for name, column in zip(recent.names, recent.columns, strict=True):
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise DataError(
                f"column {name!r} has a missing value in row {rows[bad[0]] + 1}, counted from 1, which the "
                f"forecast depends on: fill it."
            )


def _require_static(static: BayesianNetwork, names: tuple[str, ...], lags: int, hidden: str | None) -> None:
    """Refuse a static network of other variables, or one in which a row depends on a later one."""
    lag_of = {lag_name(name, lag): lag for lag in range(lags) for name in names}
    if {node for node in static.nodes if node != hidden} != set(lag_of) or static.structure.inputs:
        raise GraphError(
            f"the nodes of the static network must be {quoted(lag_of)}, without inputs. Got "
            f"{quoted(static.nodes)}."
        )
    for source, target in static.structure.arcs:
        if source != hidden and lag_of[source] < lag_of[target]:
            raise GraphError(f"the static network has an arc into the past: {source} → {target}.")
