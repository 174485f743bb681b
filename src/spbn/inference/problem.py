"""Inference problems: evidence as people write it, and rows of which some values are known.

Evidence is a value, an interval or a set of levels, read into the units of the densities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, argument, quoted
from spbn.joint import Joint
from spbn.nodes.base import CPD, Interval, Levels, Region
from spbn.tables.columns import as_text
from spbn.tables.table import Table, Variable
from spbn.transforms import bounds_in_words


class Evidence(NamedTuple):
    """Evidence in the units of the densities: values, level codes, and regions."""

    points: dict[str, float]
    regions: dict[str, Region]


def read_evidence(network: Joint, evidence: Mapping[str, object] | None, what: str) -> Evidence:
    """Read evidence or interventions, and refuse what makes no sense.

    A number or a level is a value; a pair (low, high), either of which may be None, is an interval; a set
    or a list of levels says that it is one of them.
    """
    if evidence is not None and not isinstance(evidence, Mapping):
        raise ArgumentError(f"{what} must be a dict of variables and values. Got {evidence!r:.100}.")
    variables = {variable.name: variable for variable in network.all_variables}
    known = Evidence({}, {})
    for name, value in (evidence or {}).items():
        if name not in variables:
            raise ArgumentError(
                f"{what} names the unknown variable {name!r}. The network has {quoted(variables)}."
            )
        found = _read(variables[name], value, what)
        if isinstance(found, float):
            known.points[name] = _in_density_units(network, name, found, what)
        elif isinstance(found, Interval):
            margin = network.margin(name)
            low, high = (end if margin is None else margin.outward(end) for end in (found.low, found.high))
            known.regions[name] = Interval(low, high)
        elif found is not None:
            known.regions[name] = found
    return known


def read_interventions(network: Joint, do: Mapping[str, object] | None, what: str = "do") -> dict[str, float]:
    """Read what variables are set to, in the units of the densities; `what` is the argument that says it."""
    found = with_marks(network, read_evidence(network, do, argument(what)), argument(what))
    require_values(found, what)
    return found.points


def with_marks(network: Joint, known: Evidence, what: str) -> Evidence:
    """Add which atoms columns have whose values are known, and refuse what contradicts that."""
    points, regions = dict(known.points), dict(known.regions)
    for name, atoms in network.atoms.items():
        if name not in points:
            continue
        mark = atoms.variable
        code = atoms.codes(network.in_data_units(name, np.array([points[name]])))[0]
        said, among = points.get(mark.name, code), regions.pop(mark.name, Levels((int(code),)))
        if said != code or not among.contains(np.array([code])).all():
            raise ArgumentError(f"{what} contradicts itself: {mark.name!r} is {mark.levels[int(code)]!r}.")
        points[mark.name] = float(code)
    return Evidence(points, regions)


def require_values(set_to: Evidence, what: str = "do") -> None:
    """Refuse to set variables to intervals or sets."""
    if set_to.regions:
        raise ArgumentError(
            f"{argument(what)} sets variables to values, not to intervals or sets: {quoted(set_to.regions)}."
        )


def require_truths(found: Any, rows: int) -> BoolArray:
    """Return for which rows an event is true, as a function says; refuse anything but truths."""
    truths = np.asarray(found)
    if truths.shape != (rows,) or pd.isna(truths).any() or not np.isin(truths, (False, True)).all():
        raise ArgumentError(f"an event must be true or false for each of {rows} rows. Got {found!r:.100}.")
    return truths.astype(np.bool_)


def _in_density_units(network: Joint, name: str, value: float, what: str) -> float:
    margin = network.margin(name)
    if margin is None:
        return value
    if not margin.floor <= value <= margin.ceiling:
        raise ArgumentError(
            f"{what}: {name!r} is {bounds_in_words(margin.bounds)} under the network. Got {value:.12g}."
        )
    return float(margin.forward(np.array([value]))[0])


def read_region(variable: Variable, value: Any, what: str) -> Region | None:
    """Read a value, an interval or levels as a region, in the units of the data; None is everything."""
    found = _read(variable, value, what)
    if isinstance(found, float):
        return Levels((int(found),)) if variable.is_discrete else Interval(found, found)
    return found


def _read(variable: Variable, value: Any, what: str) -> float | Region | None:
    return _levels(variable, value, what) if variable.is_discrete else _numbers(variable, value, what)


def _levels(variable: Variable, value: Any, what: str) -> float | Levels | None:
    several = isinstance(value, Set | list | tuple | np.ndarray)
    wanted = [as_text(level) for level in (value if several else [value])]
    unknown = [level for level in wanted if level not in variable.levels]
    if unknown:
        raise ArgumentError(
            f"{what}: {variable.name!r} has no level {quoted(unknown)}. Its levels are "
            f"{quoted(variable.levels)}."
        )
    places = tuple(sorted({variable.levels.index(level) for level in wanted}))
    if not places:
        raise ArgumentError(f"{what}: the set of levels of {variable.name!r} is empty.")
    if len(places) == len(variable.levels) and several:
        return None  # nothing is said
    return float(places[0]) if len(places) == 1 else Levels(places)


def _numbers(variable: Variable, value: Any, what: str) -> float | Interval | None:
    name = variable.name
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ArgumentError(f"{what}: an interval of {name!r} is a pair (low, high). Got {value!r}.")
        low = -math.inf if value[0] is None else _number(name, value[0], what)
        high = math.inf if value[1] is None else _number(name, value[1], what)
        if not low < high:
            raise ArgumentError(f"{what}: the interval of {name!r} is empty: {low:.12g} to {high:.12g}.")
        if math.isinf(low) and math.isinf(high):
            return None
        return Interval(low, high)
    number = _number(name, value, what)
    if not math.isfinite(number):
        raise ArgumentError(f"{what}: the value of {name!r} must be finite. Got {value!r}.")
    return number


def _number(name: str, value: Any, what: str) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or math.isnan(value):
        raise ArgumentError(
            f"{what}: {name!r} is continuous and takes a number or an interval (low, high). Got {value!r}."
        )
    return float(value)


@dataclass(frozen=True, eq=False)
class EvidenceRows:
    """Rows of values, known and unknown, in the units of a network's densities.

    Nodes are in topological order, and arrays are cases × nodes.
    """

    network: Joint
    known: FloatArray  # the values that are known; NaN elsewhere
    regions: Mapping[str, Region] = field(default_factory=dict)  # of nodes whose values are not, in all cases
    #: Nodes whose values were set from outside, so that they say nothing about their causes; and all inputs.
    fixed: frozenset[str] = frozenset()

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, and the inputs that they need, in topological order."""
        return self.network.order

    @cached_property
    def place(self) -> dict[str, int]:
        return {node: k for k, node in enumerate(self.nodes)}

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        known = {variable.name: variable for variable in self.network.all_variables}
        return tuple(known[node] for node in self.nodes)

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The parents of every node, in the order of its density; none if its value was set."""
        return tuple(
            () if node in self.fixed else tuple(self.place[parent] for parent in self.cpd(node).parents)
            for node in self.nodes
        )

    @cached_property
    def children(self) -> tuple[list[int], ...]:
        nodes = range(len(self.nodes))
        return tuple([child for child in nodes if k in self.parents[child]] for k in nodes)

    @property
    def number(self) -> int:
        return len(self.known)

    @cached_property
    def unknown(self) -> BoolArray:
        return np.isnan(self.known)

    @cached_property
    def ever_unknown(self) -> BoolArray:
        """Which nodes are unknown in some case."""
        return np.any(self.unknown, axis=0)

    @cached_property
    def ever_relevant(self) -> BoolArray:
        """Which nodes have a say in some case."""
        return np.any(self.relevant, axis=0)

    @cached_property
    def relevant(self) -> BoolArray:
        """Which nodes have a say: those of which something is known, and their ancestors.

        Whatever else is unknown hangs below them and can be drawn afterwards.
        """
        relevant = ~self.unknown
        relevant[:, [self.place[node] for node in self.regions]] = True
        for k in range(len(self.nodes) - 1, -1, -1):
            for parent in self.parents[k]:
                relevant[:, parent] |= relevant[:, k]
        relevant[:, [self.place[node] for node in self.fixed]] = False
        return relevant

    @cached_property
    def ends(self) -> BoolArray:
        """Which nodes with a region have nothing below them that is known of.

        They weigh by the probability of the region, and their values can be drawn afterwards.
        """
        ends = np.zeros_like(self.unknown)
        for node in self.regions:
            k = self.place[node]
            ends[:, k] = ~self.relevant[:, self.children[k]].any(axis=1)
        return ends

    def cpd(self, node: str) -> CPD:
        return self.network.cpds[node]

    def only(self, cases: IntArray) -> EvidenceRows:
        return EvidenceRows(self.network, self.known[cases], self.regions, self.fixed)

    @property
    def unknown_class(self) -> int | None:
        """The place of a hidden class that matters and is not known; None if there is none."""
        if self.network.hidden is None:
            return None
        place = self.place[self.network.hidden]
        return place if (self.unknown & self.relevant)[:, place].any() else None

    def by_class(self) -> list[EvidenceRows]:
        """Return the same cases once for every class, as if it were known that they belong to it."""
        assert self.network.class_variable is not None
        place, out = self.place[self.network.class_variable.name], []
        for level in range(len(self.network.class_variable.levels)):
            known = self.known.copy()
            known[:, place] = level
            out.append(EvidenceRows(self.network, known, self.regions, self.fixed))
        return out

    def table(self, columns: Sequence[int], particles: FloatArray) -> Table:
        """Return some of nodes × particles as a table."""
        return Table.of([self.variables[k] for k in columns], particles[list(columns)])

    def log_density(self, k: int, particles: FloatArray) -> FloatArray:
        return self.cpd(self.nodes[k]).logpdf(self.table((*self.parents[k], k), particles))

    def log_mass(self, k: int, particles: FloatArray) -> FloatArray:
        node, wanted = self.nodes[k], particles if self.parents[k] else particles[:, :1]
        found = self.cpd(node).log_mass(self.regions[node], self.table(self.parents[k], wanted))
        return found if self.parents[k] else np.full(particles.shape[1], found[0])

    def draw(self, k: int, particles: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a node's values given its parents, within its region if it has one."""
        cpd, parents = self.cpd(self.nodes[k]), self.table(self.parents[k], particles)
        region = self.regions.get(self.nodes[k])
        if region is None:
            return cpd.sample(particles.shape[1], given=parents, seed=rng)
        return cpd.draw_within(region, parents, rng)

    def log_slopes(self, k: int, values: FloatArray) -> FloatArray:
        """Return what the margin of a node adds to log-densities of values in the units of the densities."""
        margin = self.network.margin(self.nodes[k])
        return np.zeros(values.shape) if margin is None else margin.log_slope(margin.inverse(values))


def components(cases: EvidenceRows) -> list[tuple[int, ...]]:
    """Split the relevant unknown nodes of cases into groups that are independent given what is known.

    Two are in the same group if they are members of the same family, of a node that has a say. What can be
    drawn afterwards is in none.
    """
    unknown, relevant = cases.ever_unknown, cases.ever_relevant
    groups = {k: {k} for k in np.flatnonzero(unknown & relevant & ~cases.ends[0]).tolist()}
    for k in np.flatnonzero(relevant).tolist():
        members = [member for member in (*cases.parents[k], k) if member in groups]
        for member in members[1:]:
            small, large = sorted((groups[members[0]], groups[member]), key=len)
            if small is not large:
                large |= small
                groups.update(dict.fromkeys(small, large))
    distinct = {id(group): group for group in groups.values()}
    return [tuple(sorted(group)) for group in distinct.values()]
