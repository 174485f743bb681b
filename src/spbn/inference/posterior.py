"""What is likely given what is known: draws of the unknown variables, and what can be read off them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import FloatArray, Seed, generator, require_count
from spbn._deprecated import renamed
from spbn.errors import ArgumentError, argument, in_python, quoted
from spbn.inference.exact import NormalMixture
from spbn.inference.problem import EvidenceRows, read_evidence
from spbn.joint import Joint
from spbn.nodes.base import Interval
from spbn.tables.table import Variable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The distribution of the unknown variables, given what is known.

    Attributes
    ----------
    evidence, do
        What was asked.
    variables
        The unknown variables: those without a value, among them those with an interval.
    method
        How it was computed: "exact", "forward" (plain samples, which the evidence does not affect),
        "weighting" (weighted forward samples), "smc" (tempered sequential Monte Carlo), or several of these
        if the question was split into parts.
    effective_size
        How many independent draws the draws are worth.
    log_evidence, log_evidence_error
        The logarithm of the density or probability of the evidence, and its standard error.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> posterior = network.query({"C": 10.0})
    >>> print(posterior.method, round(posterior.mean()["D"], 1))
    exact 17.9
    """

    evidence: Mapping[str, object]
    do: Mapping[str, object]
    variables: tuple[Variable, ...]
    method: str
    effective_size: float
    log_evidence: float
    log_evidence_error: float
    _cases: EvidenceRows = field(repr=False)
    _values: FloatArray = field(repr=False)  # nodes × draws, in the units of the densities
    _weights: FloatArray = field(repr=False)  # of the draws
    _exact: NormalMixture | None = field(repr=False)

    @cached_property
    def draws(self) -> pd.DataFrame:
        """The draws of all unknown variables, in the units of the data."""
        import pandas as pd

        columns = {v.name: self._in_data_units(v) for v in self.variables}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self._weights)))

    @property
    def network(self) -> Joint:
        """The network that was asked."""
        return self._cases.network

    @cached_property
    def prior(self) -> pd.DataFrame:
        """As many draws of all variables as nothing is known of, but the inputs."""
        n, cases = len(self._weights), self._cases
        inputs = {
            v.name: self.network.as_data(v, np.repeat(cases.known[0, cases.place[v.name]], n))
            for v in self.network.variables
            if v.name in self.network.inputs
        }
        return self.network.sample(n, given=inputs or None, seed=0)

    @property
    def weights(self) -> FloatArray:
        """The weights of the draws, which sum to one."""
        return self._weights

    def mean(self) -> pd.Series[float]:
        """Return the mean of every continuous variable."""
        return self._each(self._mean)

    def std(self) -> pd.Series[float]:
        """Return the standard deviation of every continuous variable."""
        return self._each(lambda v: math.sqrt(self._variance(v)))

    def cov(self) -> pd.DataFrame:
        """Return the covariance matrix of the continuous variables."""
        import pandas as pd

        names = [v.name for v in self._continuous]
        if not names:
            return pd.DataFrame()
        if self._is_plain:
            assert self._exact is not None
            places = [self._exact.nodes.index(self._cases.place[name]) for name in names]
            matrix = self._exact.covariance[np.ix_(places, places)]
        else:
            matrix = np.atleast_2d(
                np.cov(self.draws[names].to_numpy(dtype=float).T, aweights=self._weights, ddof=0)
            )
        return pd.DataFrame(matrix, index=names, columns=names)

    def median(self) -> pd.Series[float]:
        """Return the median of every continuous variable."""
        return self.quantile([0.5])[0.5]

    def quantile(self, q: float | Sequence[float]) -> pd.DataFrame:
        """Return quantiles of every continuous variable: a row for each, a column for each of `q`."""
        import pandas as pd

        wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if wanted.ndim != 1 or not ((wanted >= 0.0) & (wanted <= 1.0)).all():
            raise ArgumentError(f"quantiles are for shares between 0 and 1. Got {q!r}.")
        rows = {v.name: self._quantile(v, wanted) for v in self._continuous}
        return pd.DataFrame.from_dict(rows, orient="index", columns=wanted.tolist())

    @renamed(share="level")
    def interval(self, level: float = 0.9) -> pd.DataFrame:
        """Return the interval with probability `level` for every continuous variable, with equal tails."""
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"{argument('level')} must be between 0 and 1. Got {level!r}.")
        tail = 0.5 * (1.0 - level)
        return self.quantile([tail, 1.0 - tail]).set_axis(["low", "high"], axis=1)

    def probabilities(self, variable: str) -> pd.Series[float]:
        """Return the probability of every level of a discrete variable."""
        import pandas as pd

        found = self._named(variable)
        if not found.is_discrete:
            raise ArgumentError(f"{variable!r} is continuous: ask for the probability of an interval.")
        place = self._cases.place[variable]
        if self._exact is not None and place in self._exact.levels:
            shares = self._exact.shares(place, len(found.levels))
        else:
            codes = self._values[place].astype(np.int64)
            sums = np.bincount(codes, weights=self._weights, minlength=len(found.levels))
            shares = sums / sums.sum()
        return pd.Series(shares, index=pd.Index(found.levels, name=variable), name="probability")

    def probability(self, event: Mapping[str, object] | Callable[[pd.DataFrame], Any]) -> float:
        """Return the probability of an event.

        Parameters
        ----------
        event
            A dict like evidence: intervals and levels that all have to hold. Or a function that takes the
            frame of draws and says for which of them the event is true.
        """
        if callable(event):
            happened = np.asarray(event(self.draws), dtype=bool)
            if happened.shape != self._weights.shape:
                raise ArgumentError(
                    f"an event must be true or false for each of the {len(self._weights)} draws."
                )
            return float(self._weights[happened].sum())
        known = read_evidence(self.network, event, in_python("the event", elsewhere=argument("event")))
        for name in {**known.points, **known.regions}:
            self._named(name)
        exact = self._exact_probability(known.points, known.regions)
        if exact is not None:
            return exact
        happened = np.ones(len(self._weights), dtype=bool)
        for name, region in known.regions.items():
            happened &= region.contains(self._values[self._cases.place[name]])
        for name, value in known.points.items():
            happened &= self._values[self._cases.place[name]] == value
        return float(self._weights[happened].sum())

    def is_exact(self, variable: str) -> bool:
        """Tell whether the distribution of a variable was computed, and not only drawn from."""
        found = self._named(variable)
        if not found.is_discrete:
            return self._is_exact(found)
        return self._exact is not None and self._cases.place[variable] in self._exact.levels

    def sample(self, n: int, *, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows of the unknown variables."""
        require_count(n)
        rows = generator(seed).choice(len(self._weights), size=n, p=self._weights)
        return self.draws.iloc[rows].reset_index(drop=True)

    def plot(self, variables: Sequence[str] | None = None) -> Figure:
        """Draw every variable before and after what is known; see `spbn.plots.plot_posterior`."""
        figure: Figure = display.plot(self, variables)
        return figure

    def _repr_html_(self) -> str:
        """Show what is likely in a notebook."""
        return display.html(self)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.evidence.items())
        return (
            f"Posterior of {quoted(v.name for v in self.variables)} given {given or 'nothing'} "
            f"({self.method}, effective size {self.effective_size:.0f})"
        )

    @property
    def _continuous(self) -> list[Variable]:
        return [variable for variable in self.variables if not variable.is_discrete]

    @property
    def _is_plain(self) -> bool:
        """Whether the distribution of all continuous variables is known in the units of the data."""
        return self.network.margins is None and all(self._is_exact(v) for v in self._continuous)

    def _is_exact(self, variable: Variable) -> bool:
        return self._exact is not None and self._cases.place[variable.name] in self._exact.nodes

    def _named(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise ArgumentError(
            f"{name!r} is not unknown here. Unknown are {quoted(v.name for v in self.variables)}."
        )

    def _each(self, value: Callable[[Variable], float]) -> pd.Series[float]:
        import pandas as pd

        return pd.Series({v.name: value(v) for v in self._continuous}, dtype=float)

    def _mean(self, variable: Variable) -> float:
        values, weights = self._points(variable)
        return float(weights @ values)

    def _variance(self, variable: Variable) -> float:
        """Return the variance about the mean: squares of large values would leave nothing of a small one."""
        values, weights = self._points(variable)
        within = 0.0
        if self._is_exact(variable) and self.network.margins is None:
            assert self._exact is not None
            k = self._exact.nodes.index(self._cases.place[variable.name])
            within = float(weights @ self._exact.covariances[:, k, k])
        return max(within + float(weights @ (values - self._mean(variable)) ** 2), 0.0)

    def _points(self, variable: Variable) -> tuple[FloatArray, FloatArray]:
        """Return values in the units of the data, and weights that give means of them.

        They are draws, or where the answer is exact as few points as will do.
        """
        if not self._is_exact(variable):
            return np.asarray(self._in_data_units(variable), dtype=float), self._weights
        assert self._exact is not None
        units = None if self.network.margins is None else partial(self.network.in_data_units, variable.name)
        return self._exact.points(self._cases.place[variable.name], units)

    def _quantile(self, variable: Variable, q: FloatArray) -> FloatArray:
        place = self._cases.place[variable.name]
        if self._is_exact(variable):
            assert self._exact is not None
            return self.network.in_data_units(variable.name, self._exact.quantile(place, q))
        return np.quantile(
            np.asarray(self._in_data_units(variable), dtype=float),
            q,
            weights=self._weights,
            method="inverted_cdf",
        )

    def _exact_probability(self, points: Mapping[str, float], regions: Mapping[str, Any]) -> float | None:
        """Return the probability of one variable's interval or levels, where the distribution is exact."""
        if len(points) + len(regions) != 1:
            return None
        ((name, what),) = {**points, **regions}.items()
        variable = self._named(name)
        if variable.is_discrete:
            places = [int(what)] if name in points else list(what.places)
            return float(self.probabilities(name).to_numpy()[places].sum())
        if not self._is_exact(variable) or not isinstance(what, Interval):
            return None
        assert self._exact is not None
        low, high = self._exact.cdf(self._cases.place[name], np.array([what.low, what.high]))
        return float(high - low)

    def _in_data_units(self, variable: Variable) -> Any:
        return self.network.as_data(variable, self._values[self._cases.place[variable.name]])
