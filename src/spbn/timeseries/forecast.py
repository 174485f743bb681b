"""What may come next: many paths of the future, and what can be read off them.

A path is extended row by row (`simulate`): the transition network draws the next row given the last ones. All
paths are drawn together, node by node, and every value gets noise of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray
from spbn._base.checks import whole
from spbn._base.lazy import pd
from spbn._deprecated import renamed
from spbn.errors import ArgumentError, argument, in_python, quoted, setting
from spbn.inference.problem import read_region, require_truths
from spbn.inference.query import equal_tails, read_quantiles
from spbn.joint import as_columns
from spbn.network import BayesianNetwork
from spbn.tables.lags import SEASON_INPUTS, lag_name
from spbn.tables.table import Variable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 1e150  # beyond, numbers cannot be squared

#: What happens or does not at every step: a dict of intervals and levels, or a function of a frame.
Event = Mapping[str, Any] | Callable[["pd.DataFrame"], Any]


SEASON_NAMES = tuple(variable.name for variable in SEASON_INPUTS)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Possible paths of the rows after a history, drawn independently of each other.

    Where the history has a column that tells series apart, results have a row for every series and step;
    otherwise for every step.

    Attributes
    ----------
    draws
        Variables × series × paths × steps; levels as codes.
    series_name, series
        The column that tells series apart, if there is one, and the series.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> dynamic = spbn.learn_dynamic(data, lags=1, model="gbn")
    >>> ahead = dynamic.forecast(data, 3, n=100, seed=0)
    >>> ahead.mean().shape
    (3, 5)
    """

    variables: tuple[Variable, ...]
    draws: FloatArray
    series_name: str | None
    series: tuple[str, ...]
    _history: tuple[FloatArray, ...] = field(repr=False)  # of every series, variables × rows

    @property
    def steps(self) -> int:
        """How many steps the paths have."""
        return self.draws.shape[3]

    @property
    def n(self) -> int:
        """How many paths every series has."""
        return self.draws.shape[2]

    @cached_property
    def paths(self) -> pd.DataFrame:
        """All paths: a row for every series, path and step, counted from 1.

        The columns "path" and "step" have an underscore after their names if a variable is called so.
        """
        paths, steps = self.n, self.steps
        taken = [variable.name for variable in self.variables] + [self.series_name or ""]
        columns: dict[str, Any] = {
            free_name("path", taken): np.tile(np.repeat(np.arange(1, paths + 1), steps), len(self.series)),
            free_name("step", taken): np.tile(np.arange(1, steps + 1), len(self.series) * paths),
        }
        if self.series_name is not None:
            columns = {self.series_name: np.repeat(np.array(self.series), paths * steps), **columns}
        drawn = self.draws.reshape(len(self.variables), -1)
        return pd.DataFrame({**columns, **as_columns(self.variables, drawn)})

    def mean(self) -> pd.DataFrame:
        """Return the mean of every continuous variable at every step."""
        return self._by_step(lambda values: values.mean(axis=1))

    def std(self) -> pd.DataFrame:
        """Return the standard deviation of every continuous variable at every step."""
        return self._by_step(lambda values: values.std(axis=1))

    def quantile(self, q: float | Sequence[float]) -> pd.DataFrame:
        """Return quantiles of every continuous variable at every step.

        Columns are pairs of a variable and a share: ``forecast.quantile([0.05, 0.95])["x"]`` has two.
        """
        wanted = read_quantiles(q)
        names = [variable.name for variable, _ in self._continuous]
        columns = pd.MultiIndex.from_product([names, wanted.tolist()], names=["variable", "quantile"])
        found = np.empty((len(self._index), len(names), len(wanted)))
        for place, (_, values) in enumerate(self._continuous):
            found[:, place] = np.quantile(values, wanted, axis=1).reshape(len(wanted), -1).T
        return pd.DataFrame(found.reshape(len(found), -1), index=self._index, columns=columns)

    @renamed(share="level")
    def interval(self, level: float = 0.9) -> pd.DataFrame:
        """Return the interval with probability `level` at every step, with equal tails."""
        low, high = equal_tails(level)
        return self.quantile([low, high]).rename(columns={low: "low", high: "high"}, level=1)

    def probabilities(self, variable: str) -> pd.DataFrame:
        """Return the probability of every level of a discrete variable at every step."""
        place = self._place(variable)
        levels = self.variables[place].levels
        if not levels:
            raise ArgumentError(f"{variable!r} is continuous: ask for the probability of an interval.")
        shares = [(self.draws[place] == code).mean(axis=1).reshape(-1) for code in range(len(levels))]
        return pd.DataFrame(np.stack(shares, axis=1), index=self._index, columns=pd.Index(levels))

    def probability(self, event: Event, *, within: int | None = None, series: str | None = None) -> float:
        """Return the probability that an event happens at least once within a number of steps.

        Parameters
        ----------
        event
            A dict of intervals ``(low, high)``, with None for an open end, and levels, which all have to hold
            at the same step: ``{"x": (3, None)}`` means that x is 3 or more. Or a function that takes a frame
            of rows and says for which of them the event is true.
        within
            The horizon, in steps; all by default.
        series
            The series, if there are several.
        """
        horizon = self.steps if within is None else within
        whole("within", horizon, 1, requirement="a number of steps, 1 or more")
        if horizon > self.steps:
            raise ArgumentError(
                f"the forecast has {self.steps} steps only. Got {setting('within', horizon)}."
            )
        return float(self._happens(event, series)[:, :horizon].any(axis=1).mean())

    def first(self, event: Event, *, series: str | None = None) -> FloatArray:
        """Return the step at which an event first happens, for every path; infinite where it does not.

        If the event is a failure, this is how long the machine has left.
        """
        happens = self._happens(event, series)
        return np.where(happens.any(axis=1), happens.argmax(axis=1) + 1.0, np.inf)

    def plot(self, variables: Sequence[str] | None = None, *, series: str | None = None) -> Figure:
        """Draw fan charts: the history, then median, 50 % and 90 % of the paths (`plot_forecast`)."""
        figure: Figure = display.plot(self, variables, series=series)
        return figure

    def history(self, series: str | None = None) -> FloatArray:
        """Return the last rows before the forecast, variables × rows."""
        return self._history[self._series_place(series)]

    def of(self, variable: str, *, series: str | None = None) -> FloatArray:
        """Return the values of a variable, paths × steps; levels as codes."""
        return self.draws[self._place(variable), self._series_place(series)]

    _repr_html_ = display.repr_html

    def __repr__(self) -> str:
        series = f", {len(self.series)} series" if len(self.series) > 1 else ""
        names = quoted(variable.name for variable in self.variables)
        return f"Forecast of {names} ({self.steps} steps, {self.n} paths{series})"

    @property
    def _continuous(self) -> list[tuple[Variable, FloatArray]]:
        pairs = zip(self.variables, self.draws, strict=True)
        return [(variable, values) for variable, values in pairs if not variable.is_discrete]

    @property
    def _index(self) -> pd.Index[Any]:
        name = free_name("step", [self.series_name or ""])
        steps = pd.RangeIndex(1, self.steps + 1, name=name)
        if self.series_name is None:
            return steps
        return pd.MultiIndex.from_product([self.series, steps], names=[self.series_name, name])

    def _by_step(self, summary: Callable[[FloatArray], FloatArray]) -> pd.DataFrame:
        """Return a frame from a function that takes series × paths × steps to series × steps."""
        found = {variable.name: summary(values).reshape(-1) for variable, values in self._continuous}
        return pd.DataFrame(found, index=self._index)

    def _happens(self, event: Event, series: str | None) -> BoolArray:
        """Tell at which steps of which paths an event happens: paths × steps."""
        place = self._series_place(series)
        shape = (self.n, self.steps)
        if callable(event):
            drawn = self.draws[:, place].reshape(len(self.variables), -1)
            found = event(pd.DataFrame(as_columns(self.variables, drawn)))
            return require_truths(found, self.n * self.steps).reshape(shape)
        if not isinstance(event, Mapping) or not event:
            raise ArgumentError(f"an event must be a dict of variables and values. Got {event!r:.100}.")
        happens = np.ones(shape, dtype=np.bool_)
        for name, value in event.items():
            k = self._place(name)
            region = read_region(
                self.variables[k], value, in_python("the event", elsewhere=argument("event"))
            )
            if region is not None:
                happens &= region.contains(self.draws[k, place])
        return happens

    def _place(self, name: str) -> int:
        names = [variable.name for variable in self.variables]
        if name not in names:
            raise ArgumentError(f"the forecast has no variable {name!r}. It has {quoted(names)}.")
        return names.index(name)

    def _series_place(self, series: str | None) -> int:
        if series is None and len(self.series) == 1:
            return 0
        if series is None or str(series) not in self.series:
            got = "" if series is None else f" Got {series!r}."
            raise ArgumentError(
                f"say which series ({setting('series', ...)}): it must be {quoted(self.series)}.{got}"
            )
        return self.series.index(str(series))


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: this one, or one with underscores after it."""
    while name in taken:
        name = f"{name}_"
    return name


def simulate(
    transition: BayesianNetwork,
    past: FloatArray,
    steps: int,
    rng: np.random.Generator,
    classes: FloatArray | None = None,
    season: FloatArray | None = None,
) -> FloatArray:
    """Draw the rows that follow: variables × steps × paths, in the units of the data; levels as codes.

    The past is variables × lags × paths, the oldest row first, in the same units. The variables are the nodes
    of the transition network, in their order. `classes`: the hidden class of every path, if there is one.
    `season`: the phase of the season, 2 × steps × paths, if there is one.
    """
    names, (_, lags, paths) = [n for n in transition.nodes if n != transition.hidden], past.shape
    rows = np.concatenate([past, np.empty((len(names), steps, paths))], axis=1)
    places = lagged_places(names, lags)
    diverged = False
    for now in range(lags, lags + steps):
        inputs = {} if transition.hidden is None or classes is None else {transition.hidden: classes}
        for name in transition.inputs:
            if season is not None and name in SEASON_NAMES:
                phase = season[SEASON_NAMES.index(name), now - lags]
                inputs[name] = transition.in_density_units(name, phase)
                continue
            place, lag = places[name]
            with np.errstate(over="ignore"):
                moved = transition.in_density_units(name, rows[place, now - lag])
            inputs[name] = np.clip(moved, -LARGEST, LARGEST)
        drawn = transition.draw(paths, rng, given=inputs)
        for place, name in enumerate(names):
            values = transition.in_data_units(name, drawn[name])
            diverged |= bool(np.abs(values).max(initial=0.0) > LARGEST)
            rows[place, now] = np.clip(values, -LARGEST, LARGEST)
    if diverged:
        warnings.warn(
            "some paths grow beyond all bounds: the network is unstable, and its forecasts make sense for "
            "fewer steps only.",
            stacklevel=4,
        )
    return rows[:, lags:]


def lagged_places(names: Sequence[str], lags: int) -> dict[str, tuple[int, int]]:
    """Return the number and the lag of every variable in a row and in those before it, by its lagged name."""
    return {lag_name(name, lag): (k, lag) for k, name in enumerate(names) for lag in range(lags + 1)}
