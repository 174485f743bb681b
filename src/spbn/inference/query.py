"""One question: what is known about some variables, and what that says about the others.

The question is cut to what matters. Unknown nodes that are neither known about nor ancestors of what is
known are drawn at the end. The others fall into groups that are independent given what is known; each is
answered in the simplest way that works: exactly, by weighted forward samples, or by tempered sequential
Monte Carlo. The answer, a `Posterior`, has draws of the unknown variables, and what can be read off them.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from spbn._base import display
from spbn._base.arrays import BoolArray, FloatArray, Seed, generator, require_count
from spbn._base.checks import choice, seconds
from spbn._base.display import Show, working
from spbn._base.lazy import pd
from spbn._deprecated import renamed
from spbn.errors import ArgumentError, SpbnWarning, argument, in_python, quoted
from spbn.graphs.dag import Arc
from spbn.inference import exact, particles
from spbn.inference.exact import Plan, Solution
from spbn.inference.particles import Particles, Target, sample_by_weighting
from spbn.inference.problem import (
    Evidence,
    EvidenceRows,
    components,
    read_evidence,
    require_truths,
    require_values,
    with_marks,
)
from spbn.joint import Joint
from spbn.nodes.base import Interval, Levels, Region
from spbn.tables.table import Variable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["auto", "exact", "weighting", "smc"]
METHODS: tuple[Method, ...] = get_args(Method)
EXACT, FORWARD = "exact", "forward"
EXPLORED = 10  # times as many draws, where the first ones find what is known unlikely
ENOUGH = 0.5  # of the draws, which weighting must be worth
#: If a forward sample is worth this much, more of them cost less than anything else; a few more than needed.
WORTH_MORE, WORTH_MORE_SLOW, MARGIN = 0.04, 0.25, 1.2
FEWEST, FEWEST_SHARE = 50, 0.1  # independent draws that a posterior should be worth, at least one of these
MOST_ERROR = 0.25  # nats, of the log-evidence: it is within twice as much, most of the time
OUT_OF_REACH = 12.0  # standard deviations of a node, from every row that the network draws
FEWEST_MOVED = 2  # draws: each moves by differences of others
FEW_FAR = 200  # draws of what is out of reach, about which more would say no more
NEGLIGIBLE = 1e-15  # of the greatest weight: all draws with less say nothing that has digits
DRAWN = 2000  # rows, to compare evidence with
NINETY = 3.29  # standard deviations of a normal variable, between its quantiles of 5 and 95 %


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The distribution of the unknown variables, given what is known.

    Attributes
    ----------
    evidence, do
        What was asked.
    variables
        The unknown variables: those without a value, among them those with an interval.
    methods
        How each of them was computed: "exact", "forward" (plain samples, which the evidence does not affect),
        "weighting" (weighted forward samples) or "smc" (tempered sequential Monte Carlo).
    effective_size
        How many independent draws the draws are worth.
    log_evidence, log_evidence_error
        The logarithm of the density or probability of the evidence, and its standard error.
    weights
        The weights of the draws, which sum to one.
    open_directions
        The arcs at variables that were set whose direction is open (`BayesianNetwork.open_directions`): the
        answer depends on it.
    alternatives
        The answers of all equivalent graphs, if they were asked for (``over="equivalent"``), its own first.

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
    methods: Mapping[str, str]
    effective_size: float
    log_evidence: float
    log_evidence_error: float
    weights: FloatArray
    _cases: EvidenceRows
    _values: FloatArray  # nodes × draws, in the units of the densities
    _exact: Solution
    open_directions: tuple[Arc, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @property
    def method(self) -> str:
        """How all of it was computed: "exact" if every number was, or the methods of all variables."""
        named = {method for methods in self.methods.values() for method in methods.split(" and ")}
        return " and ".join(sorted(named)) or EXACT

    @cached_property
    def draws(self) -> pd.DataFrame:
        """The draws of all unknown variables, in the units of the data."""
        columns = {v.name: self._in_data_units(v) for v in self.variables}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.weights)))

    @property
    def network(self) -> Joint:
        """The network that was asked."""
        return self._cases.network

    @cached_property
    def prior(self) -> pd.DataFrame:
        """Prior samples, as many as there are posterior samples; inputs are held fixed."""
        n, cases = len(self.weights), self._cases
        inputs = {
            v.name: self.network.as_data(v, np.repeat(cases.known[0, cases.place[v.name]], n))
            for v in self.network.variables
            if v.name in self.network.inputs
        }
        return self.network.sample_with_class(n, given=inputs or None, seed=0)

    def mean(self) -> pd.Series[float]:
        """Return the mean of every continuous variable."""
        return self._each(self._mean)

    def std(self) -> pd.Series[float]:
        """Return the standard deviation of every continuous variable."""
        return self._each(lambda v: math.sqrt(self._variance(v)))

    def cov(self) -> pd.DataFrame:
        """Return the covariance matrix of the continuous variables."""
        names = [v.name for v in self._continuous]
        if not names:
            return pd.DataFrame()
        if self.network.margins is None and all(map(self.is_exact, names)):
            matrix = self._exact.covariance([self._cases.place[name] for name in names])
        else:
            matrix = np.atleast_2d(
                np.cov(self.draws[names].to_numpy(dtype=float).T, aweights=self.weights, ddof=0)
            )
        return pd.DataFrame(matrix, index=names, columns=names)

    def median(self) -> pd.Series[float]:
        """Return the median of every continuous variable."""
        return self.quantile([0.5])[0.5]

    def quantile(self, q: float | Sequence[float]) -> pd.DataFrame:
        """Return quantiles of every continuous variable: a row for each, a column for each of `q`."""
        wanted = read_quantiles(q)
        rows = {v.name: self._quantile(v, wanted) for v in self._continuous}
        return pd.DataFrame.from_dict(rows, orient="index", columns=wanted.tolist())

    @renamed(share="level")
    def interval(self, level: float = 0.9) -> pd.DataFrame:
        """Return the interval with probability `level` for every continuous variable, with equal tails."""
        return self.quantile(equal_tails(level)).set_axis(["low", "high"], axis=1)

    def by_graph(self, level: float = 0.9) -> pd.DataFrame:
        """Return the answers of all graphs that were asked: a row for each variable and choice of parents.

        The columns: the parents of the variables that were set, how many graphs have these (NaN if there are
        very many), the variable, its mean and interval; or a level, such as sex=F, and its probability.
        """
        rows: list[tuple[object, ...]] = []
        for one in self.alternatives or (Alternative({}, 1, self),):
            shared = parents_in_words(one.parents), math.nan if one.graphs is None else one.graphs
            means, ends = one.posterior.mean(), one.posterior.interval(level)
            rows += [(*shared, name, means[name], *ends.loc[name]) for name in means.index]
            for variable in one.posterior.variables:
                if variable.is_discrete:
                    shares = one.posterior.probabilities(variable.name).items()
                    rows += [(*shared, f"{variable.name}={key}", p, math.nan, math.nan) for key, p in shares]
        return pd.DataFrame(rows, columns=["parents", "graphs", "variable", "mean", "low", "high"])

    def range(self) -> pd.DataFrame:
        """Return the least and the greatest mean or probability among all graphs that were asked."""
        found = self.by_graph().groupby("variable", sort=False)["mean"].agg(["min", "max"])
        return found.set_axis(["low", "high"], axis=1)

    def probabilities(self, variable: str) -> pd.Series[float]:
        """Return the probability of every level of a discrete variable."""
        found, place = self._named(variable), self._cases.place[variable]
        if not found.is_discrete:
            raise ArgumentError(f"{variable!r} is continuous: ask for the probability of an interval.")
        if self.is_exact(variable):
            shares = self._exact.probabilities(place)[0]
        else:
            codes = self._values[place].astype(np.int64)
            sums = np.bincount(codes, weights=self.weights, minlength=len(found.levels))
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
            happened = require_truths(event(self.draws), len(self.weights))
            return min(1.0, float(self.weights[happened].sum()))
        exact = self._exact_probability(self._regions(event))
        return exact if exact is not None else min(1.0, float(self.weights[self.happened(event)].sum()))

    def happened(self, event: Mapping[str, object]) -> BoolArray:
        """Tell in which draws an event, a dict like evidence, is true."""
        out = np.ones(len(self.weights), dtype=np.bool_)
        for k, region in self._regions(event).items():
            out &= region.contains(self._values[k])
        return out

    def probability_error(self, event: Mapping[str, object]) -> float:
        """Return the standard error of the probability of an event: 0 if it is exact."""
        if self._exact_probability(self._regions(event)) is not None:
            return 0.0
        found = self.probability(event)
        return math.sqrt(found * (1.0 - found) / max(self.effective_size, 1.0))

    def is_exact(self, variable: str) -> bool:
        """Tell whether the distribution of a variable was computed, and not only drawn from."""
        return self.methods[self._named(variable).name] == EXACT

    def sample(self, n: int, *, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows of the unknown variables."""
        require_count(n)
        rows = generator(seed).choice(len(self.weights), size=n, p=self.weights)
        return self.draws.iloc[rows].reset_index(drop=True)

    def plot(self, variables: Sequence[str] | None = None) -> Figure:
        """Draw every variable before and after what is known; see `spbn.plots.plot_posterior`."""
        return display.plot(self, variables)

    _repr_html_ = display.repr_html

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.evidence.items())
        return (
            f"Posterior of {quoted(v.name for v in self.variables)} given {given or 'nothing'} "
            f"({self.method}, effective size {self.effective_size:.0f})"
        )

    @property
    def _continuous(self) -> list[Variable]:
        return [variable for variable in self.variables if not variable.is_discrete]

    def _named(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name == name:
                return variable
        what = f"{name!r} was observed" if name in self.network.nodes else f"there is no variable {name!r}"
        raise ArgumentError(f"{what}: ask about {quoted(v.name for v in self.variables)}.")

    def _each(self, value: Callable[[Variable], float]) -> pd.Series[float]:
        return pd.Series({v.name: value(v) for v in self._continuous}, dtype=float)

    def _mean(self, variable: Variable) -> float:
        values, weights = self._points(variable)
        return float(weights @ values)

    def _variance(self, variable: Variable) -> float:
        """Return the variance about the mean: squares of large values would leave nothing of a small one."""
        values, weights = self._points(variable)
        within = 0.0
        if self.is_exact(variable.name) and self.network.margins is None:
            normals = self._exact.normals(self._cases.place[variable.name])
            within = float(weights @ normals.deviations[0] ** 2)
        return max(within + float(weights @ (values - self._mean(variable)) ** 2), 0.0)

    def _points(self, variable: Variable) -> tuple[FloatArray, FloatArray]:
        """Return values in the units of the data, and weights that give means of them.

        They are draws, or where the answer is exact as few points as will do.
        """
        if not self.is_exact(variable.name):
            return np.asarray(self._in_data_units(variable), dtype=float), self.weights
        units = None if self.network.margins is None else partial(self.network.in_data_units, variable.name)
        values, weights = self._exact.normals(self._cases.place[variable.name]).points(units)
        return values[0], weights[0]

    def _quantile(self, variable: Variable, q: FloatArray) -> FloatArray:
        if self.is_exact(variable.name):
            found = self._exact.normals(self._cases.place[variable.name]).quantile(q)[0]
            return self.network.in_data_units(variable.name, found)
        values, weights = self._points(variable)
        return np.quantile(values, q, weights=weights, method="inverted_cdf")

    def _regions(self, event: Mapping[str, object]) -> dict[int, Region]:
        """Return the regions of the unknown nodes that an event names."""
        known = read_evidence(self.network, event, in_python("the event", elsewhere=argument("event")))
        found = dict(known.regions)
        for name, value in known.points.items():
            is_level = self._named(name).is_discrete
            found[name] = Levels((int(value),)) if is_level else Interval(value, value)
        return {self._cases.place[self._named(name).name]: region for name, region in found.items()}

    def _exact_probability(self, regions: Mapping[int, Region]) -> float | None:
        """Return the probability of an event, if it can be computed."""
        is_solved = self._exact.plan.solved.issuperset(regions)
        return self._exact.probability(regions) if is_solved else None

    def _in_data_units(self, variable: Variable) -> Any:
        return self.network.as_data(variable, self._values[self._cases.place[variable.name]])


@dataclass(frozen=True, eq=False)
class Alternative:
    """What graphs of an equivalence class answer that give the variables that are set the same parents.

    Attributes
    ----------
    parents
        The parents of every variable that is set.
    graphs
        How many graphs of the class these are; None if there are very many.
    posterior
        Their answer.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(300, seed=0)[["C", "D"]]
    >>> network = spbn.BayesianNetwork.fit(spbn.Structure("CD", [("C", "D")]), data)
    >>> posterior = network.query(do={"C": 0.0}, over="equivalent", data=data)
    >>> for one in posterior.alternatives:
    ...     print(one.parents, one.graphs, round(one.posterior.mean()["D"], 1))
    {'C': ()} 1 10.0
    {'C': ('D',)} 1 10.4
    """

    parents: Mapping[str, tuple[str, ...]]
    graphs: int | None
    posterior: Posterior


def parents_in_words(parents: Mapping[str, Sequence[str]]) -> str:
    """Write the parents of variables: ``a, b → x``."""
    return "; ".join(f"{', '.join(above) or 'nothing'} → {name}" for name, above in parents.items())


def read_quantiles(q: float | Sequence[float]) -> FloatArray:
    """Return the levels of quantiles; refuse what is not between 0 and 1."""
    wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if wanted.ndim != 1 or not ((wanted >= 0.0) & (wanted <= 1.0)).all():
        raise ArgumentError(f"quantiles are for shares between 0 and 1. Got {q!r}.")
    return wanted


def equal_tails(level: float) -> tuple[float, float]:
    """Return the levels of the quantiles between which an interval has this probability."""
    if not 0.0 < level < 1.0:
        raise ArgumentError(f"{argument('level')} must be between 0 and 1. Got {level!r}.")
    tail = 0.5 * (1.0 - level)
    return tail, 1.0 - tail


def query(
    network: Joint,
    evidence: Mapping[str, object] | None = None,
    *,
    do: Mapping[str, object] | None = None,
    n: int = 2000,
    seed: Seed = 0,
    method: Method = "auto",
    max_seconds: float | None = None,
    progress: bool = False,
) -> Posterior:
    """Return what is likely, given evidence and interventions; see `BayesianNetwork.query`."""
    require_count(n)
    seconds("max_seconds", max_seconds)
    if n < 1:
        raise ArgumentError(f"{argument('n')} must be 1 or more, to have draws to answer from. Got {n}.")
    choice("method", method, METHODS)
    known = with_marks(network, read_evidence(network, evidence, argument("evidence")), argument("evidence"))
    set_to = with_marks(network, read_evidence(network, do, argument("do")), argument("do"))
    cases, rng = _cases(network, known, set_to), generator(seed)
    plan, sampled = split_by_method(cases, method)
    if method == "exact" and sampled:
        raise ArgumentError(
            "there is no exact answer: nodes that matter are not linear Gaussian, an interval is given, or "
            "too many discrete nodes depend on each other. Use method='auto'."
        )
    deadline = math.inf if max_seconds is None else time.monotonic() + max_seconds
    with working(progress, "asking the network") as show:
        sampler = _Sampler(cases, n, rng, method, deadline, show)
        found = {group: sampler.sample_group(group) for group in sampled}
    solution = exact.Solution(cases, plan)
    log_evidence, variance, effective = float(solution.log_evidence[0]), 0.0, float(n)
    for part in found.values():
        log_evidence += float(part.log_evidence[0]) if part.effective[0] > 0.0 else -math.inf
        variance += float(part.error[0]) ** 2
        effective = min(effective, float(part.effective[0]))
    if not np.isfinite(log_evidence):  # there is nothing to draw from
        raise ArgumentError(
            f"the evidence is impossible under the network, or too far outside for any method to reach it: "
            f"{dict(evidence or {})!r:.200}. {sampler.reach.in_words} Check its values against the data."
        )
    values, weights = _combine(cases, found, n, rng)
    for k, drawn in solution.draw(len(weights), rng).items():
        values[k] = drawn[0]
    particles.draw_rest(cases, values[:, None], rng)
    if found and (effective < min(FEWEST, FEWEST_SHARE * n) or (n >= FEWEST and variance > MOST_ERROR**2)):
        _warn_of_few_draws(effective, math.sqrt(variance), sampler)
    _warn_of_far_values(cases, values, weights)
    for k, node in enumerate(cases.nodes):
        if not cases.unknown[0, k] and node not in cases.fixed:
            log_evidence += float(cases.log_slopes(k, cases.known[:, k])[0])
    variables = tuple(v for v in cases.network.all_variables if cases.unknown[0, cases.place[v.name]])
    methods = _methods(cases, plan, found)
    return Posterior(
        dict(evidence or {}),
        dict(do or {}),
        variables,
        {v.name: methods[cases.place[v.name]] for v in variables},
        effective,
        log_evidence,
        math.sqrt(variance),
        weights,
        cases,
        values,
        solution,
    )


def _methods(cases: EvidenceRows, plan: Plan, found: Mapping[tuple[int, ...], Particles]) -> dict[int, str]:
    """Say of every unknown node how it was answered: drawn from weighted draws, it has their method."""
    methods = dict.fromkeys(plan.solved, EXACT)
    for group, part in found.items():
        methods.update(dict.fromkeys(group, part.method))
    for k in np.flatnonzero(cases.unknown[0]).tolist():
        above = {methods[p] for p in cases.parents[k] if p in methods} - {EXACT, FORWARD}
        methods.setdefault(k, " and ".join(sorted(above)) or FORWARD)
    return methods


@dataclass(frozen=True)
class Reach:
    """How many standard deviations evidence is away from the nearest row that the network draws."""

    distance: float
    node: str  # in which it is as far as that

    @classmethod
    def of(cls, cases: EvidenceRows) -> Reach:
        fixed = [cases.place[node] for node in cases.fixed]
        values = np.full((len(cases.nodes), DRAWN), np.nan)
        values[fixed] = cases.known[0, fixed, None]
        free = EvidenceRows(cases.network, values.T, fixed=cases.fixed)
        particles.draw_rest(free, values, np.random.default_rng(0))
        distances, nodes = [np.zeros(DRAWN)], [""]
        for k, node in enumerate(cases.nodes):
            region, value = cases.regions.get(node), float(cases.known[0, k])
            if cases.variables[k].is_discrete or node in cases.fixed or (region is None and np.isnan(value)):
                continue
            low, high = (region.low, region.high) if isinstance(region, Interval) else (value, value)
            scale = np.subtract(*np.quantile(values[k], [0.95, 0.05])) / NINETY
            distances.append(np.maximum(low - values[k], values[k] - high) / max(scale, 1e-300))
            nodes.append(node)
        greatest = np.max(distances, axis=0)
        nearest = int(greatest.argmin())
        return cls(float(greatest[nearest]), nodes[int(np.argmax([of[nearest] for of in distances]))])

    @property
    def is_out(self) -> bool:
        return self.distance > OUT_OF_REACH

    @property
    def in_words(self) -> str:
        """Say how far the nearest row is."""
        if not self.is_out:
            return ""
        return (
            f"Of {DRAWN:,} rows that the network draws, none is within {self.distance:.4g} standard "
            f"deviations of it: the nearest differs most in {self.node!r}."
        )


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Answers groups of unknown nodes by particles."""

    cases: EvidenceRows
    n: int
    rng: np.random.Generator
    method: str
    deadline: float
    show: Show

    @cached_property
    def reach(self) -> Reach:
        return Reach.of(self.cases)

    def sample_group(self, group: tuple[int, ...]) -> Particles:
        """Answer a group; under every class by itself, if a hidden one belongs to it."""
        cases, hidden = self.cases, self.cases.unknown_class
        if hidden not in group or len(group) == 1:
            return self._sample(Target.of(cases, group))
        rest, found = tuple(k for k in group if k != hidden), []
        for given in cases.by_class():
            log_evidence = given.log_density(hidden, given.known.T)
            # Particles do not weigh children of which nothing else is unknown.
            for k in cases.children[hidden]:
                if cases.relevant[0, k] and not {k, *cases.parents[k]} & set(rest):
                    log_evidence += (given.log_mass if given.ends[0, k] else given.log_density)(
                        k, given.known.T
                    )
            part = self._sample(Target.of(given, rest))
            part.states[hidden] = given.known[0, hidden]
            found.append(replace(part, log_evidence=part.log_evidence + log_evidence))
        return particles.mix(found)

    def _sample(self, part: Target) -> Particles:
        """Answer a group by forward samples, and by tempering where these are worth little."""
        n, rng, method = max(self.n, FEWEST_MOVED), self.rng, self.method
        found = sample_by_weighting(part, n, rng)
        if method == "auto" and found.effective[0] < ENOUGH * n:
            part = part.without_lines()
            found = particles.weigh(part, found.states, rng) if part.blocks else found
        if method == "auto" and particles.is_surprising(part, found) and not self.reach.is_out:
            more = particles.concatenate(found, sample_by_weighting(part, EXPLORED * n, rng))
            found = more if more.effective[0] < ENOUGH * more.log_weights.shape[1] else found
        there = found.log_weights.shape[1]
        worth = found.effective[0] / there
        if method == "weighting" or (method != "smc" and worth >= ENOUGH * n / there):
            return found
        if method != "smc" and worth >= (WORTH_MORE_SLOW if part.slow_regions else WORTH_MORE):
            further = sample_by_weighting(part, math.ceil(MARGIN * ENOUGH / worth * n) - there, rng)
            found = particles.concatenate(found, further)
            there = found.log_weights.shape[1]
            if found.effective[0] >= 0.5 * ENOUGH * n:  # and not much less than it looked like
                return found
        begun, steps = part.with_references(found.states), count(1)
        start = sample_by_weighting(begun, there, rng) if begun.references else found
        if self.reach.is_out:
            start, n = replace(start, states=start.states[:, :, :FEW_FAR]), min(n, FEW_FAR)

        def is_over() -> bool:
            self.show(f"asking the network: step {next(steps)}")
            return time.monotonic() > self.deadline

        moved = particles.sample_by_tempering(begun, start.states, rng, n=n, share=ENOUGH, is_over=is_over)
        left = EXPLORED * n - there
        is_worth_more = worth * EXPLORED * n > moved.effective[0] and not self.reach.is_out
        if method != "auto" or not is_worth_more or left < 1 or is_over():
            return moved
        # Few of the first draws have left descendants: so many more of them may be worth more.
        found = particles.concatenate(found, sample_by_weighting(part, left, rng))
        return found if found.effective[0] > moved.effective[0] else moved


def _combine(
    cases: EvidenceRows, found: Mapping[tuple[int, ...], Particles], n: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Put draws of groups beside what is known: values, nodes × draws, and the weights of the draws.

    One group keeps the weights of its draws. Several are drawn anew by theirs, to have as many each.
    """
    if len(found) == 1:
        ((group, part),) = found.items()
        weights = np.exp(part.log_weights[0] - part.log_weights[0].max())
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        values = np.repeat(cases.known.T, len(kept), axis=1)
        values[list(group)] = part.states[list(group), 0][:, kept]
        return values, weights[kept] / weights[kept].sum()
    values = np.repeat(cases.known.T, n, axis=1)
    for group, part in found.items():
        values[list(group)] = part.states[list(group), 0][:, particles.resample(part.log_weights, n, rng)[0]]
    return values, np.full(n, 1.0 / n)


def split_by_method(
    cases: EvidenceRows, method: str, below: Collection[int] | None = None
) -> tuple[Plan, list[tuple[int, ...]]]:
    """Return the plan of what is answered exactly, and the groups of unknown nodes that are not.

    Of the nodes that can be drawn afterwards, those that `below` names and their ancestors are answered
    exactly as well where that is possible; by default, all.
    """
    groups, is_asked = components(cases), method in ("auto", EXACT)
    simple = [group for group in groups if is_asked and exact.is_solvable(cases, group)]
    rest = sorted(range(len(cases.nodes)) if below is None else below) if is_asked else []
    found = exact.plan(cases, chain(*simple), rest)
    while found is None and rest:  # the sums are too large: leave nodes out, effects before causes
        rest = rest[: len(rest) // 2]
        found = exact.plan(cases, chain(*simple), rest)
    if found is None:
        simple = [group for group in simple if exact.plan(cases, group) is not None]
        found = exact.plan(cases, chain(*simple)) or exact.plan(cases, ())
    assert found is not None  # without unknown nodes there is nothing to sum over
    return found, [group for group in groups if not found.solved.issuperset(group)]


def _warn_of_few_draws(effective: float, error: float, sampler: _Sampler) -> None:
    remedy = f"Ask for more draws ({argument('n')}), or check the evidence for values outside the data."
    if time.monotonic() > sampler.deadline:
        remedy = f"The time was up: allow more ({argument('max_seconds')})."
    elif sampler.reach.is_out:
        remedy = sampler.reach.in_words
    warnings.warn(
        SpbnWarning(
            f"the answer rests on only {effective:.0f} independent draws, and the error of its log-evidence "
            f"is {error:.2g}: what is known is far from what the network expects. {remedy}"
        ),
        stacklevel=4,
    )


def _warn_of_far_values(cases: EvidenceRows, values: FloatArray, weights: FloatArray) -> None:
    """Warn of what is known if it is far less likely than any row that the network was learned from.

    Half of the draws decide, so that one that has just found where it is likely does not hide all others.
    """
    typical = cases.network.record.typical
    for k, node in enumerate(cases.nodes):
        is_known = not cases.unknown[0, k] or node in cases.regions
        if node in typical and node not in cases.fixed and is_known:
            logs = cases.log_density(k, values) + cases.log_slopes(k, values[k])
            best = float(np.quantile(logs, 0.5, weights=weights, method="inverted_cdf"))
            if best < typical[node] - particles.UNUSUAL:
                what = "interval" if node in cases.regions else "value"
                warnings.warn(
                    f"the {what} of {node!r} is far outside what the network was learned from: its "
                    f"log-density is {best:.0f}, where {typical[node]:.1f} is usual. What follows from it "
                    f"rests on the tails of densities, about which data say little.",
                    stacklevel=4,
                )


def _cases(network: Joint, known: Evidence, set_to: Evidence) -> EvidenceRows:
    require_values(set_to)
    both = [name for name in set_to.points if name in known.points or name in known.regions]
    if both:
        raise ArgumentError(
            f"{quoted(both)} is in {argument('evidence')} and in {argument('do')}: it is either observed or "
            f"set from outside."
        )
    nodes = network.order
    values: FloatArray = np.full((1, len(nodes)), np.nan)
    for name, value in {**known.points, **set_to.points}.items():
        values[0, nodes.index(name)] = value
    absent = [name for name in network.inputs if np.isnan(values[0, nodes.index(name)])]
    if absent:
        raise ArgumentError(
            f"the network says nothing about its inputs, so {argument('evidence')} must have their values. "
            f"It lacks {quoted(absent)}."
        )
    return EvidenceRows(network, values, known.regions, frozenset(set_to.points) | set(network.inputs))
