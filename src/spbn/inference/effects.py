"""Effects: what setting one variable does to another, and which columns to adjust for to see it in rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, starmap
from typing import Any

import numpy as np

from spbn._base.arrays import Seed
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, argument, in_python, quoted
from spbn.graphs.adjustment import adjustment_sets
from spbn.graphs.dag import DAG, Arc
from spbn.graphs.equivalence import equivalent_graphs
from spbn.inference.equivalent import Over, equivalent_networks, open_directions_at, require_over
from spbn.inference.problem import read_interventions
from spbn.inference.query import Posterior, equal_tails, parents_in_words, query
from spbn.joint import Joint


@dataclass(frozen=True, eq=False, repr=False)
class Effect:
    """How the mean of a variable, or the probability of an event, changes if a cause is set.

    Attributes
    ----------
    cause, outcome
        What was asked.
    low, high
        The two values of the cause.
    effect, error
        The change from low to high, and its standard error: 0 if it was computed, and not simulated.
    adjustment_sets
        Sets of columns, the smallest first: among rows that agree in one of these sets, the cause shows its
        effect (the back-door criterion).
    reason
        Why there are none; empty if there are.
    open_directions
        The arcs whose direction is open, and on which the effect depends.
    by_graph
        The effect, its error, the parents of the cause, and how many graphs give it these (NaN if there are
        very many): a row for the network, and others if equivalent graphs were asked.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(500, seed=0)
    >>> network = spbn.learn(data, model="gbn", tiers=[["A", "B"], ["C"], ["D", "E"]])
    >>> print(network.effect("C", "D", low=0.0, high=1.0))
    the mean of D changes by 0.7994 if C goes from 0.0 to 1.0
    rows show it as they are: there is nothing to adjust for
    """

    cause: str
    outcome: str | Mapping[str, object]
    low: object
    high: object
    adjustment_sets: tuple[tuple[str, ...], ...]
    reason: str
    open_directions: tuple[Arc, ...]
    by_graph: pd.DataFrame

    @property
    def effect(self) -> float:
        return float(self.by_graph["effect"].iloc[0])

    @property
    def error(self) -> float:
        return float(self.by_graph["error"].iloc[0])

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return what the effect is between: the error of simulation, over all graphs that were asked."""
        from scipy.special import ndtri

        width = float(ndtri(equal_tails(level)[1])) * self.by_graph["error"]
        return float((self.by_graph["effect"] - width).min()), float((self.by_graph["effect"] + width).max())

    def __str__(self) -> str:
        what = f"the mean of {self.outcome}"
        if not isinstance(self.outcome, str):
            what = f"P({', '.join(starmap(_condition, self.outcome.items()))})"
        low, high = self.interval()
        graphs = f", over {len(self.by_graph)} choices of parents" if len(self.by_graph) > 1 else ""
        within = f" ({low:.4g} to {high:.4g}{graphs})" if low < high else ""
        values = f"{self.cause} goes from {self.low} to {self.high}"
        found = [f"{what} changes by {self.effect:.4g}{within} if {values}"]
        if self.adjustment_sets and not self.adjustment_sets[0]:
            found.append("rows show it as they are: there is nothing to adjust for")
        elif self.adjustment_sets:
            sets = "; or ".join(", ".join(chosen) for chosen in self.adjustment_sets)
            found.append(f"rows show it after adjusting for {sets}")
        else:
            found.append(self.reason)
        if self.open_directions:
            arcs = ", ".join(f"{source} → {target}" for source, target in self.open_directions)
            found.append(f"it depends on directions that are open: {arcs}")
        return "\n".join(found)

    __repr__ = __str__


def effect(
    network: Joint,
    cause: str,
    outcome: str | Mapping[str, object],
    *,
    low: object,
    high: object,
    over: Over = "network",
    data: Any = None,
    n: int = 10_000,
    seed: Seed = 0,
) -> Effect:
    """Return what setting a cause does to an outcome; see `BayesianNetwork.effect`."""
    require_over(over, cause, data)
    name = _require_variables(network, cause, outcome)
    for what, value in (("low", low), ("high", high)):
        read_interventions(network, {cause: value}, what)
    networks: Iterable[tuple[Joint, int | None]] = [(network, None)]
    if over == "equivalent":
        networks = equivalent_networks(network, [cause], data, seed=seed)
    rows = []
    for one, number in networks:
        change, error = 0.0, 0.0
        if name in one.structure.dag.descendants(cause):
            after, before = (query(one, do={cause: value}, n=n, seed=seed) for value in (high, low))
            change, error = _difference(after, before, outcome, name)
        parents = parents_in_words({cause: one.structure.parents(cause)})
        rows.append((parents, math.nan if number is None else number, change, error))
    sets, reason = _adjustment(network, cause, name)
    arcs = _open_directions(network, cause, name)
    by_graph = pd.DataFrame(rows, columns=["parents", "graphs", "effect", "error"])
    return Effect(cause, outcome, low, high, sets, reason, arcs, by_graph)


def _condition(name: str, value: object) -> str:
    """Write a condition on a variable as on the command line."""
    if isinstance(value, tuple):
        low, high = value
        return f"{'' if low is None else f'{low}<'}{name}{'' if high is None else f'<{high}'}"
    if isinstance(value, list | set | frozenset):
        return f"{name} in {','.join(map(str, value))}"
    return f"{name}={value}"


def _require_variables(network: Joint, cause: str, outcome: str | Mapping[str, object]) -> str:
    """Return the variable that the outcome is about; refuse what is unknown, or has no mean."""
    known = {variable.name: variable for variable in network.all_variables}
    names = [outcome] if isinstance(outcome, str) else list(outcome)
    if len(names) != 1:
        raise ArgumentError(f"{argument('outcome')} is about one variable. Got {quoted(names) or 'none'}.")
    for what, name in (("cause", cause), ("outcome", names[0])):
        if name not in known:
            raise ArgumentError(
                f"{argument(what)} names the unknown variable {name!r}. The network has {quoted(known)}."
            )
    if cause == names[0]:
        raise ArgumentError(f"{argument('cause')} and {argument('outcome')} are the same: {cause!r}.")
    variable = known[names[0]]
    if isinstance(outcome, str) and variable.is_discrete:
        event = in_python(repr({outcome: variable.levels[-1]}), f"'{outcome}={variable.levels[-1]}'")
        raise ArgumentError(
            f"{outcome!r} has levels, and no mean: {argument('outcome')} must be an event, such as {event}."
        )
    return names[0]


def _difference(
    after: Posterior, before: Posterior, outcome: str | Mapping[str, object], name: str
) -> tuple[float, float]:
    """Return the change of a mean or a probability, and its standard error.

    Both were drawn with the same random numbers, so that only the difference of the draws counts.
    """
    if isinstance(outcome, str):
        if after.is_exact(name) and before.is_exact(name):
            return float(after.mean()[name] - before.mean()[name]), 0.0
        drawn = [found.draws[name].to_numpy(dtype=np.float64) for found in (after, before)]
    else:
        change = after.probability(outcome) - before.probability(outcome)
        if after.probability_error(outcome) == before.probability_error(outcome) == 0.0:
            return change, 0.0
        drawn = [found.happened(outcome).astype(np.float64) for found in (after, before)]
    differences = drawn[0] - drawn[1]
    return float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(len(differences)))


def _adjustment(network: Joint, cause: str, name: str) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Return sets of columns to adjust for, or why there are none."""
    dag, hidden = network.structure.dag, network.hidden
    if name not in dag.descendants(cause):
        return (), f"no path of arcs leads from {cause} to {name}: setting {cause} does not change it"
    unseen = () if hidden is None else (hidden,)
    if cause == hidden:
        return (), f"no column holds {cause}"
    sets = adjustment_sets(dag, cause, name, unseen=unseen)
    return sets, "" if sets else (
        f"no set of columns to adjust for: {hidden}, which no column holds, is behind both {cause} and {name}"
    )


def _open_directions(network: Joint, cause: str, name: str) -> tuple[Arc, ...]:
    """Return the open directions that an effect depends on.

    Adjusting for the parents of the cause shows its effect. Two sets of parents show the same if what is only
    in one of them tells nothing about the outcome, given the cause and what is in both.
    """
    arcs, open_arcs = open_directions_at(network, [cause]), list(network.open_directions())
    if not arcs:
        return ()
    dag, every = network.structure.dag, equivalent_graphs(network.structure.dag, open_arcs, [cause])
    choices = [frozenset(one.dag.parents(cause)) for one in every]
    differences = [
        one ^ other for one, other in combinations(choices, 2) if not _same(dag, cause, name, one, other)
    ]
    least = [some for some in differences if not any(other < some for other in differences)]
    return tuple(arc for arc in arcs if set(arc) & frozenset[str]().union(*least))


def _same(dag: DAG, cause: str, name: str, one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether an effect is the same for two sets of parents of the cause."""
    both, differ = one & other, one ^ other
    if name in one or name in other:  # then it is 0
        return name in both
    return all(dag.d_separated(node, name, [cause, *both]) for node in differ)
