"""Discrete parents of continuous nodes: one density for every configuration of them.

This works for any node type. Each configuration's density is fitted to the rows that have it. One with too
few rows to fit, or none, uses the density that is fitted to all rows, without the discrete parents: no row
is ever skipped, so no structure gains by being impossible to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, generator, require_count
from spbn._base.files import ArrayReader, ArrayWriter, family_of, refuse
from spbn.errors import ArgumentError, FitError
from spbn.nodes.admission import refusal
from spbn.nodes.base import CPD, Description, NodeType, logpdf_of_columns
from spbn.nodes.copies import KeepsRows, joined
from spbn.nodes.discrete import read_configurations, write_variables
from spbn.rows.configurations import Configurations
from spbn.rows.memory import FEWEST_ROWS
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable

OTHERWISE = "otherwise"


@dataclass(frozen=True, repr=False)
class ByConfiguration:
    """The density of a continuous node given parents of which some are discrete.

    Attributes
    ----------
    node, parents
        The family.
    configurations
        The configurations of the discrete parents that have a density of their own.
    densities
        Their densities, given the continuous parents.
    otherwise
        The density under any other configuration; None if there is no other.

    Examples
    --------
    >>> import spbn
    >>> rows = {"sex": ["F", "M"] * 20, "height": [165.0 + 10 * (i % 2) + i % 5 for i in range(40)]}
    >>> types = {"sex": "discrete", "height": "lg"}
    >>> structure = spbn.Structure(["sex", "height"], [("sex", "height")], types)
    >>> network = spbn.BayesianNetwork.fit(structure, rows)
    >>> for name, case in network.cpds["height"].describe().cases.items():
    ...     print(name, "|", case.formula)
    sex = F | height = 167 + N(0, 2.105)
    sex = M | height = 177 + N(0, 2.105)
    """

    node: str
    parents: tuple[str, ...]
    configurations: Configurations
    densities: tuple[CPD, ...]
    otherwise: CPD | None

    @classmethod
    def fit(
        cls, node_type: NodeType, table: Table, node: str, parents: Sequence[str], settings: FitSettings
    ) -> ByConfiguration:
        """Fit a density of a type to the rows of every configuration."""
        discrete = [parent for parent in parents if parent in table.levels]
        continuous = [parent for parent in parents if parent not in table.levels]
        given, numbers = table.select(discrete), table.select([*continuous, node])
        found, places = Configurations.in_columns(given.variables, given.columns)
        fitted: dict[int, CPD] = {}
        for place, rows in enumerate(_rows_by_place(places)):  # every place occurs
            if len(rows) < FEWEST_ROWS:
                continue
            with suppress(FitError):
                fitted[place] = node_type.fit(numbers.take(rows), node, continuous, settings)
        configurations = found.only(np.array(list(fitted), dtype=np.int64))
        otherwise = None
        if len(configurations) < configurations.possible:
            otherwise = node_type.fit(numbers, node, continuous, settings)
        return cls(node, tuple(parents), configurations, tuple(fitted.values()), otherwise)

    @property
    def type(self) -> NodeType:
        """The type of the node."""
        return self._any.type

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The parents and, last, the node."""
        discrete = {variable.name: variable for variable in self.configurations.variables}
        return (*(discrete.get(parent, Variable(parent)) for parent in self.parents), Variable(self.node))

    @property
    def kept_rows(self) -> None:
        """Training rows that are kept are not in the order of the training table."""
        return None

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        """Return, for every row of parents and node (NaN is unknown), the kernels that agree with it.

        Only continuous variables are compared. The kernels of all densities are numbered one after the other.
        """
        discrete = {variable.name for variable in self.configurations.variables}
        numbers = rows[[name not in discrete for name in (*self.parents, self.node)]]
        keeping = self._keeping
        if not keeping:
            return [None] * rows.shape[1]
        return joined([part.kernels_on(numbers) for part in keeping], [_kernels(part) for part in keeping])

    def without(self, kernels: IntArray) -> ByConfiguration:
        """Return the density without some kernels; no part loses all that it has."""
        first = 0
        parts: list[Any] = []
        for part in (*self.densities, self.otherwise):
            if isinstance(part, KeepsRows):
                mine = kernels[(kernels >= first) & (kernels < first + _kernels(part))] - first
                first += _kernels(part)
                part = part.without(mine)
            parts.append(part)
        return replace(self, densities=tuple(parts[:-1]), otherwise=parts[-1])

    @property
    def _keeping(self) -> list[Any]:
        """The densities that have kernels on their rows."""
        return [part for part in (*self.densities, self.otherwise) if isinstance(part, KeepsRows)]

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        return self.logpdf_of(as_table(data, variables=self.variables).columns)

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents, discrete ones as level codes, and, last, the node."""
        discrete, numbers = self._places
        places = self.configurations.places(columns[discrete])
        rows = columns[numbers]
        if len(places) == 1:
            return self._by_place[places[0]](rows)
        out = np.empty(len(places))
        for mine in _rows_by_place(places):
            out[mine] = self._by_place[places[mine[0]]](np.ascontiguousarray(rows[:, mine]))
        return out

    @cached_property
    def _by_place(self) -> tuple[Callable[[FloatArray], FloatArray], ...]:
        """Log-densities of plain columns by the place of a configuration; the last is that of any other."""
        return tuple(logpdf_of_columns(part) for part in parts_of(self))

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where the discrete parents are among the columns, in the order of configurations; and the rest."""
        names = (*self.parents, self.node)
        discrete = [names.index(variable.name) for variable in self.configurations.variables]
        return discrete, [place for place in range(len(names)) if place not in discrete]

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        return self._by_row(data, lambda density, rows: density.cdf(rows))

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, one row for each."""
        require_count(n)
        if given is None:
            raise ArgumentError(
                f"{self.node!r} has parents: pass their values, given={{{self.parents[0]!r}: [...], ...}}."
            )
        table = as_table(given, variables=self.variables[:-1], min_rows=0)
        if table.rows != n:
            raise ArgumentError(
                f"given must have one row for each of the {n} samples. Got {table.rows} rows."
            )
        rng, out = generator(seed), np.empty(n)
        for density, rows in self.parts_of(table):
            parents = table.take(rows).select(density.parents) if density.parents else None
            out[rows] = density.sample(len(rows), given=parents, seed=rng)
        return out

    def describe(self) -> Description:
        """Describe the density of every configuration."""
        names = " and ".join(variable.name for variable in self.configurations.variables)
        label = self.type.label
        cases = dict(zip(self.configurations.labels, (d.describe() for d in self.densities), strict=True))
        if self.otherwise is not None:
            cases[OTHERWISE] = self.otherwise.describe()
        return Description(
            f"{self.node} | {', '.join(self.parents)} ~ {label}, by {names}",
            legend=f"There is one density for every combination of levels of {names} with enough rows.",
            cases=cases,
        )

    def __repr__(self) -> str:
        return self.describe().formula

    @property
    def _any(self) -> CPD:
        return self.densities[0] if self.otherwise is None else self.otherwise

    def _by_row(self, data: Any, value: Callable[[CPD, Table], FloatArray]) -> FloatArray:
        table = as_table(data, variables=self.variables)
        out = np.empty(table.rows)
        for density, rows in self.parts_of(table):
            out[rows] = value(density, table.take(rows).select([*density.parents, self.node]))
        return out

    def parts_of(self, table: Table) -> list[tuple[CPD, IntArray]]:
        """Return the densities that rows need, each with its rows."""
        names = [variable.name for variable in self.configurations.variables]
        places = self.configurations.places(table.select(names).columns)
        parts = []
        for place, rows in zip(np.unique(places).tolist(), _rows_by_place(places), strict=True):
            density = self.otherwise if place < 0 else self.densities[place]
            assert density is not None  # there is no other configuration
            parts.append((density, rows))
        return parts


def fit_node(
    node_type: NodeType, table: Table, node: str, parents: Sequence[str], settings: FitSettings
) -> CPD:
    """Fit the density of a node: by configuration, if continuous nodes have discrete parents."""
    variables = {variable.name: variable for variable in table.variables}
    child, given = variables[node], [variables[parent] for parent in parents]
    if not node_type.admits(child, given):
        raise FitError(refusal(node_type, child, given))
    if not child.is_discrete and any(parent.is_discrete for parent in given):
        return ByConfiguration.fit(node_type, table, node, parents, settings)
    return node_type.fit(table, node, parents, settings)


def parts_of(cpd: CPD) -> tuple[CPD, ...]:
    """Return the densities of all configurations of discrete parents; the density itself if it has none."""
    if not isinstance(cpd, ByConfiguration):
        return (cpd,)
    return cpd.densities if cpd.otherwise is None else (*cpd.densities, cpd.otherwise)


def compact_cpd(cpd: CPD, tolerance: float) -> CPD:
    """Return any density without its training rows; raise a `FitError` if that cannot be done."""
    if not isinstance(cpd, ByConfiguration):
        return cpd.type.compacted(cpd, tolerance)
    densities = tuple(cpd.type.compacted(density, tolerance) for density in cpd.densities)
    otherwise = None if cpd.otherwise is None else cpd.type.compacted(cpd.otherwise, tolerance)
    return replace(cpd, densities=densities, otherwise=otherwise)


def pooled_cpd(cpds: Sequence[CPD]) -> CPD:
    """Return one density for several of the same family, fitted to different fillings of its holes."""
    node_type, several = cpds[0].type, [cpd for cpd in cpds if isinstance(cpd, ByConfiguration)]
    if not several:
        return node_type.pooled(cpds)
    configurations = Configurations.union([cpd.configurations for cpd in several])
    densities = []
    for number in configurations.numbers:
        parts = [
            cpd.densities[k] for cpd in several for k in np.flatnonzero(cpd.configurations.numbers == number)
        ]
        densities.append(node_type.pooled(parts))
    rest = [cpd.otherwise for cpd in several if cpd.otherwise is not None]
    otherwise = node_type.pooled(rest) if rest else None
    return replace(several[0], configurations=configurations, densities=tuple(densities), otherwise=otherwise)


def write_cpd(cpd: CPD, arrays: ArrayWriter) -> dict[str, Any]:
    """Describe any density as plain data."""
    record: dict[str, Any] = {"node": cpd.node, "type": cpd.type.name, "parents": list(cpd.parents)}
    if not isinstance(cpd, ByConfiguration):
        return record | cpd.type.write(cpd, arrays)
    return record | {
        "given": write_variables(cpd.configurations.variables),
        "configurations": cpd.configurations.numbers.tolist(),
        "densities": [cpd.type.write(density, arrays) for density in cpd.densities],
        "otherwise": None if cpd.otherwise is None else cpd.type.write(cpd.otherwise, arrays),
    }


def read_cpd(node_type: NodeType, record: Mapping[str, Any], arrays: ArrayReader) -> CPD:
    """Read what `write_cpd` wrote."""
    if "densities" not in record:
        return node_type.read(record, arrays)
    node, parents = family_of(record)
    configurations = read_configurations(record, parents)
    discrete = {variable.name for variable in configurations.variables}
    family = {"node": node, "parents": [parent for parent in parents if parent not in discrete]}
    densities, otherwise = record.get("densities"), record.get("otherwise")
    if (
        not discrete
        or not isinstance(densities, list)
        or len(densities) != len(configurations)
        or not all(isinstance(part, dict) for part in densities)
        or not (otherwise is None or isinstance(otherwise, dict))
        or (otherwise is None and len(densities) < configurations.possible)
    ):
        refuse(f"{node!r} must have a density for every configuration of its discrete parents.")
    parts = tuple(node_type.read({**part, **family}, arrays) for part in densities)
    rest = None if otherwise is None else node_type.read({**otherwise, **family}, arrays)
    return ByConfiguration(node, parents, configurations, parts, rest)


def _kernels(density: Any) -> int:
    kept = density.kept_rows
    return 0 if kept is None else kept.rows


def _rows_by_place(places: IntArray) -> list[IntArray]:
    """Return the rows of every place that occurs, each in order."""
    order = np.argsort(places, kind="stable")
    _, starts = np.unique(places[order], return_index=True)
    return np.split(order, starts[1:]) if len(starts) else []
