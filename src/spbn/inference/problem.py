"""Cases: rows of which some values are known, and which parts of a network matter for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.joint import Joint
from spbn.nodes.base import CPD
from spbn.nodes.regions import Region
from spbn.tables.table import Table, Variable


@dataclass(frozen=True, eq=False)
class Cases:
    """Rows of values, known and unknown, in the units of a network's densities.

    Nodes are in topological order, and arrays are cases × nodes.

    Attributes
    ----------
    network
        The network.
    given
        What is known; NaN elsewhere.
    regions
        What is known of nodes whose values are not, in all cases.
    fixed
        Nodes whose values were set from outside, so that they say nothing about their causes; and all inputs.
    """

    network: Joint
    given: FloatArray
    regions: Mapping[str, Region] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, and the inputs that they need, in topological order."""
        return self.network.order

    @cached_property
    def place(self) -> dict[str, int]:
        """Where a node is in that order."""
        return {node: k for k, node in enumerate(self.nodes)}

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The nodes, with the levels of the discrete ones."""
        known = {variable.name: variable for variable in self.network.variables}
        return tuple(known[node] for node in self.nodes)

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The parents of every node, in the order of its density; none if its value was set."""
        return tuple(
            () if node in self.fixed else tuple(self.place[parent] for parent in self.cpd(node).parents)
            for node in self.nodes
        )

    @property
    def number(self) -> int:
        """How many cases there are."""
        return len(self.given)

    @cached_property
    def unknown(self) -> BoolArray:
        """Which values are not known."""
        return np.isnan(self.given)

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
            below = [c for c in range(len(self.nodes)) if k in self.parents[c]]
            ends[:, k] = ~self.relevant[:, below].any(axis=1)
        return ends

    def cpd(self, node: str) -> CPD:
        """Return the density of a node."""
        return self.network.cpds[node]

    def only(self, cases: IntArray) -> Cases:
        """Return some of the cases."""
        return Cases(self.network, self.given[cases], self.regions, self.fixed)

    def table(self, columns: Sequence[int], values: FloatArray) -> Table:
        """Return columns × rows of some nodes as a table."""
        chosen = [self.variables[k] for k in columns]
        levels = {variable.name: variable.levels for variable in chosen if variable.is_discrete}
        return Table(tuple(variable.name for variable in chosen), values, levels)


def components(cases: Cases) -> list[tuple[int, ...]]:
    """Split the relevant unknown nodes of one case into groups that are independent given what is known.

    Two are in the same group if they are members of the same family, of a node that has a say. What can be
    drawn afterwards is in none.
    """
    unknown, relevant = cases.unknown[0], cases.relevant[0]
    group = {k: k for k in np.flatnonzero(unknown & relevant & ~cases.ends[0]).tolist()}

    def root(k: int) -> int:
        while group[k] != k:
            k = group[k]
        return k

    for k in np.flatnonzero(relevant).tolist():
        members = [member for member in (*cases.parents[k], k) if member in group]
        for member in members[1:]:
            group[root(member)] = root(members[0])
    found: dict[int, list[int]] = {}
    for k in group:
        found.setdefault(root(k), []).append(k)
    return [tuple(members) for members in found.values()]
