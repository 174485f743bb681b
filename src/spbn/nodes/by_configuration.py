"""Discrete parents of continuous nodes: one density for every configuration of them.

This works for any node type. Each configuration's density is fitted to the rows that have it. One with too
few rows to fit, or none, uses the density that is fitted to all rows, without the discrete parents: no row
is ever skipped, so no structure gains by being impossible to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.files import ArrayReader, ArrayWriter, family_of, refuse
from spbn.errors import FitError
from spbn.nodes.base import CPD, Description, NodeType, refusal
from spbn.nodes.discrete import read_configurations, write_variables
from spbn.nodes.regions import Region
from spbn.rows.families import Configurations
from spbn.rows.memory import FEWEST_ROWS
from spbn.rows.store import FitSettings, RemoteRows
from spbn.tables.table import Table, Variable

OTHERWISE = "otherwise"


@dataclass(frozen=True, repr=False)
class ByConfiguration(CPD):
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

        def fit_to(part: Table) -> CPD:
            return node_type.fit(part, node, continuous, settings)

        parts = [  # every place occurs
            partial(fit_to, numbers.take(rows)) if len(rows) >= FEWEST_ROWS else None
            for rows in _rows_by_place(places)
        ]
        return cls._of_parts(node, parents, found, parts, partial(fit_to, numbers))

    @classmethod
    def fit_rows(
        cls, node_type: NodeType, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
    ) -> ByConfiguration:
        """Fit a density of a type to the rows of every configuration, which are elsewhere."""
        levels = {variable.name for variable in rows.variables if variable.is_discrete}
        continuous = [parent for parent in parents if parent not in levels]

        def fit_to(part: RemoteRows) -> CPD:
            return node_type.fit_rows(part, node, continuous, settings)

        found, stores = rows.by_configuration(
            rows.columns([parent for parent in parents if parent in levels])
        )
        parts = [partial(fit_to, part) if part.count >= FEWEST_ROWS else None for part in stores]
        return cls._of_parts(node, parents, found, parts, partial(fit_to, rows))

    @classmethod
    def _of_parts(
        cls,
        node: str,
        parents: Sequence[str],
        found: Configurations,
        parts: Sequence[Callable[[], CPD] | None],
        otherwise: Callable[[], CPD],
    ) -> ByConfiguration:
        """Fit the densities of configurations, where that can be done, and otherwise that of all rows."""
        fitted: dict[int, CPD] = {}
        for place, fit in enumerate(parts):
            if fit is not None:
                with suppress(FitError):
                    fitted[place] = fit()
        configurations = found.only(np.array(list(fitted), dtype=np.int64))
        rest = otherwise() if len(configurations) < configurations.possible else None
        return cls(node, tuple(parents), configurations, tuple(fitted.values()), rest)

    @classmethod
    def from_record(
        cls, node_type: NodeType, record: Mapping[str, Any], arrays: ArrayReader
    ) -> ByConfiguration:
        """Read what `to_record` wrote, with node and parents."""
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
        parts = tuple(node_type.from_record({**part, **family}, arrays) for part in densities)
        rest = None if otherwise is None else node_type.from_record({**otherwise, **family}, arrays)
        return cls(node, parents, configurations, parts, rest)

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        """Write the configurations and their densities."""
        return {
            "given": write_variables(self.configurations.variables),
            "configurations": self.configurations.numbers.tolist(),
            "densities": [density.to_record(arrays) for density in self.densities],
            "otherwise": None if self.otherwise is None else self.otherwise.to_record(arrays),
        }

    @property
    def type(self) -> NodeType:
        """The type of the densities."""
        return self.cases[-1].type

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The parents and, last, the node."""
        discrete = {variable.name: variable for variable in self.configurations.variables}
        return (*(discrete.get(parent, Variable(parent)) for parent in self.parents), Variable(self.node))

    @cached_property
    def cases(self) -> tuple[CPD, ...]:
        """The densities of all configurations and, last, that of any other if there is one."""
        return self.densities if self.otherwise is None else (*self.densities, self.otherwise)

    def case(self, parents: Table) -> CPD:
        """Return the density under the configuration that a table's first row has."""
        names = [variable.name for variable in self.configurations.variables]
        return self.cases[self.configurations.places(parents.select(names).columns[:, :1])[0]]

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents, discrete ones as level codes, and, last, the node."""
        discrete, numbers = self._places
        places = self.configurations.places(columns[discrete])
        rows = columns[numbers]
        if len(places) == 1:
            return self._logpdf_by_place[places[0]](rows)
        out = np.empty(len(places))
        for mine in _rows_by_place(places):
            out[mine] = self._logpdf_by_place[places[mine[0]]](np.ascontiguousarray(rows[:, mine]))
        return out

    @cached_property
    def _logpdf_by_place(self) -> tuple[Callable[[FloatArray], FloatArray], ...]:
        """Log-densities of plain columns by the place of a configuration; the last is that of any other."""
        return tuple(density.logpdf_of_columns for density in self.cases)

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where the discrete parents are among the columns, in the order of configurations; and the rest."""
        names = (*self.parents, self.node)
        discrete = [names.index(variable.name) for variable in self.configurations.variables]
        return discrete, [place for place in range(len(names)) if place not in discrete]

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """P(X ≤ x | parents) of every row of the parents and, last, the node."""
        discrete, numbers = self._places
        out = np.empty(columns.shape[1])
        for density, rows in self._split(columns[discrete]):
            out[rows] = density.cdf_of_columns(np.ascontiguousarray(columns[numbers][:, rows]))
        return out

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value for every row of the parents."""
        discrete, numbers = self._places
        out = np.empty(parents.shape[1])
        for density, rows in self._split(parents[discrete]):
            out[rows] = density.draw(np.ascontiguousarray(parents[numbers[:-1]][:, rows]), rng)
        return out

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, for every row of its parents."""
        out = np.empty(parents.rows)
        for density, rows in self._split_table(parents):
            out[rows] = density.log_mass(region, parents.take(rows))
        return out

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        out = np.empty(parents.rows)
        for density, rows in self._split_table(parents):
            out[rows] = density.draw_within(region, parents.take(rows), rng)
        return out

    def compact(self, tolerance: float) -> ByConfiguration:
        """Make every density compact."""
        return self._with_cases([density.compact(tolerance) for density in self.cases])

    def pool(self, others: Sequence[ByConfiguration]) -> ByConfiguration:
        """Pool the densities of every configuration that some of them know."""
        cpds = (self, *others)
        configurations = Configurations.union([cpd.configurations for cpd in cpds])
        densities = []
        for number in configurations.numbers:
            first, *rest = [
                cpd.densities[k] for cpd in cpds for k in np.flatnonzero(cpd.configurations.numbers == number)
            ]
            densities.append(first.pool(rest))
        otherwise = [cpd.otherwise for cpd in cpds if cpd.otherwise is not None]
        return replace(
            self,
            configurations=configurations,
            densities=tuple(densities),
            otherwise=otherwise[0].pool(otherwise[1:]) if otherwise else None,
        )

    @property
    def kernel_rows(self) -> int:
        """How many training rows have a kernel in the density of their configuration."""
        return sum(density.kernel_rows for density in self.densities)

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        """Return, for every row of parents and node (NaN is unknown), the kernels that agree with it.

        Only continuous variables are compared. The kernels of all densities are numbered one after the other.
        """
        numbers = rows[self._places[1]]
        firsts = np.cumsum([0, *(density.kernel_rows for density in self.cases)])
        found: list[IntArray | None] = []
        for by_density in zip(*(density.kernels_on(numbers) for density in self.cases), strict=True):
            pairs = zip(firsts.tolist(), by_density, strict=False)
            there = [first + kernels for first, kernels in pairs if kernels is not None]
            found.append(np.concatenate(there) if there else None)
        return found

    def without(self, kernels: IntArray) -> ByConfiguration:
        """Return the density without some kernels; no density loses all that it has."""
        cases, first = [], 0
        for density in self.cases:
            end = first + density.kernel_rows
            cases.append(density.without(kernels[(kernels >= first) & (kernels < end)] - first))
            first = end
        return self._with_cases(cases)

    def describe(self) -> Description:
        """Describe the density of every configuration."""
        names = " and ".join(variable.name for variable in self.configurations.variables)
        label = self.type.appearance.label
        cases = dict(zip(self.configurations.labels, (d.describe() for d in self.densities), strict=True))
        if self.otherwise is not None:
            cases[OTHERWISE] = self.otherwise.describe()
        return Description(
            f"{self.node} | {', '.join(self.parents)} ~ {label}, by {names}",
            legend=f"There is one density for every combination of levels of {names} with enough rows.",
            cases=cases,
        )

    def _with_cases(self, cases: Sequence[CPD]) -> ByConfiguration:
        otherwise = None if self.otherwise is None else cases[-1]
        return replace(self, densities=tuple(cases[: len(self.densities)]), otherwise=otherwise)

    def _split_table(self, table: Table) -> Iterator[tuple[CPD, IntArray]]:
        names = [variable.name for variable in self.configurations.variables]
        return self._split(table.select(names).columns)

    def _split(self, discrete: FloatArray) -> Iterator[tuple[CPD, IntArray]]:
        """Yield the densities that rows of the discrete parents need, each with its rows."""
        places = self.configurations.places(discrete)
        for rows in _rows_by_place(places):
            yield self.cases[places[rows[0]]], rows


def fit_node(
    node_type: NodeType, rows: Table | RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
) -> CPD:
    """Fit the density of a node: by configuration, if continuous nodes have discrete parents."""
    variables = {variable.name: variable for variable in rows.variables}
    child, given = variables[node], [variables[parent] for parent in parents]
    if not node_type.admits(child, given):
        raise FitError(refusal(node_type, child, given))
    is_divided = not child.is_discrete and any(parent.is_discrete for parent in given)
    if isinstance(rows, Table):
        if is_divided:
            return ByConfiguration.fit(node_type, rows, node, parents, settings)
        return node_type.fit(rows, node, parents, settings)
    if is_divided:
        return ByConfiguration.fit_rows(node_type, rows, node, parents, settings)
    return node_type.fit_rows(rows, node, parents, settings)


def _rows_by_place(places: IntArray) -> list[IntArray]:
    """Return the rows of every place that occurs, each in order."""
    order = np.argsort(places, kind="stable")
    _, starts = np.unique(places[order], return_index=True)
    return np.split(order, starts[1:]) if len(starts) else []
