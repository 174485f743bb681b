"""Discrete parents of continuous nodes: one density for every configuration of them.

This works for any node type. Each configuration's density is fitted to the rows that have it. One with too
few rows to fit, or none, uses the density that is fitted to all rows, without the discrete parents: no row
is ever skipped, so no structure gains by being impossible to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.files import ArrayReader, ArrayWriter, family_of, refuse
from spbn.errors import FitError
from spbn.nodes.base import CPD, Description, NodeType, Region, refusal
from spbn.nodes.discrete import read_configurations, write_variables
from spbn.rows.families import Configurations, FamilyBatch
from spbn.rows.memory import FEWEST_ROWS
from spbn.rows.store import Columns, Division, FitSettings, Part, RemoteRows, RowStore
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
        cls,
        node_type: NodeType,
        rows: Table | RemoteRows,
        node: str,
        parents: Sequence[str],
        settings: FitSettings,
    ) -> ByConfiguration:
        """Fit a density of a type to the rows of every configuration, where that can be done.

        If some configurations lack one, another density is fitted to all rows.
        """
        levels = {variable.name for variable in rows.variables if variable.is_discrete}
        discrete = [parent for parent in parents if parent in levels]
        continuous = [parent for parent in parents if parent not in levels]
        parts: Sequence[Table | RemoteRows]
        if isinstance(rows, Table):
            given, rows = rows.select(discrete), rows.select([*continuous, node])
            found, places = Configurations.in_columns(given.variables, given.columns)
            parts = [rows.take(mine) for mine in _rows_by_place(places)]  # every place occurs
        else:
            found, parts = rows.by_configuration(rows.columns(discrete))
        fitted: dict[int, CPD] = {}
        for place, part in enumerate(parts):
            if (part.rows if isinstance(part, Table) else part.count) >= FEWEST_ROWS:
                with suppress(FitError):
                    fitted[place] = _fit_plain(node_type, part, node, continuous, settings)
        configurations = found.only(np.array(list(fitted), dtype=np.int64))
        rest = None
        if len(configurations) < configurations.possible:
            rest = _fit_plain(node_type, rows, node, continuous, settings)
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
        return {
            "given": write_variables(self.configurations.variables),
            "configurations": self.configurations.numbers.tolist(),
            "densities": [density.to_record(arrays) for density in self.densities],
            "otherwise": None if self.otherwise is None else self.otherwise.to_record(arrays),
        }

    @property
    def type(self) -> NodeType:
        return self.cases[-1].type

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        discrete = {variable.name: variable for variable in self.configurations.variables}
        return (*(discrete.get(parent, Variable(parent)) for parent in self.parents), Variable(self.node))

    @cached_property
    def cases(self) -> tuple[CPD, ...]:
        """The densities of all configurations and, last, that of any other if there is one."""
        return self.densities if self.otherwise is None else (*self.densities, self.otherwise)

    def case_places(self, parents: FloatArray) -> IntArray:
        return self.configurations.places(parents[self._places[0]])

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents, discrete ones as level codes, and, last, the node."""
        discrete, numbers = self._places
        codes, rows = columns[discrete], columns[numbers]
        if columns.shape[1] == 1:
            return self.cases[self.configurations.places(codes)[0]].logpdf_of_columns(rows)
        return self._by_density(
            codes, lambda density, mine: density.logpdf_of_columns(np.ascontiguousarray(rows[:, mine]))
        )

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where the discrete parents are among the columns, in the order of configurations; and the rest."""
        names = (*self.parents, self.node)
        discrete = [names.index(variable.name) for variable in self.configurations.variables]
        return discrete, [place for place in range(len(names)) if place not in discrete]

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        discrete, numbers = self._places
        return self._by_density(
            columns[discrete],
            lambda density, rows: density.cdf_of_columns(np.ascontiguousarray(columns[numbers][:, rows])),
        )

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        discrete, numbers = self._places
        return self._by_density(
            parents[discrete],
            lambda density, rows: density.draw(np.ascontiguousarray(parents[numbers[:-1]][:, rows]), rng),
        )

    def to_noise(self, columns: FloatArray, uniforms: FloatArray) -> FloatArray:
        discrete, numbers = self._places
        return self._by_density(
            columns[discrete],
            lambda density, rows: density.to_noise(columns[numbers][:, rows], uniforms[rows]),
        )

    def from_noise(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        discrete, numbers = self._places
        return self._by_density(
            parents[discrete],
            lambda density, rows: density.from_noise(
                np.ascontiguousarray(parents[numbers[:-1]][:, rows]), noise[:, rows]
            ),
        )

    @property
    def curve_share(self) -> float:
        """The least share of the curve, over all configurations."""
        return min(density.curve_share for density in self.cases)

    def smooth_mean(self, parents: FloatArray) -> tuple[FloatArray, FloatArray]:
        discrete, numbers = self._places
        codes, given = parents[discrete], parents[numbers[:-1]]
        return (
            self._by_density(codes, lambda density, rows: density.smooth_mean(given[:, rows])[0]),
            self._by_density(codes, lambda density, rows: density.smooth_mean(given[:, rows])[1]),
        )

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        return self._by_density(
            self._codes(parents), lambda density, rows: density.log_mass(region, parents.take(rows))
        )

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        return self._by_density(
            self._codes(parents), lambda density, rows: density.draw_within(region, parents.take(rows), rng)
        )

    def _codes(self, parents: Table) -> FloatArray:
        return parents.select([variable.name for variable in self.configurations.variables]).columns

    def _by_density(self, codes: FloatArray, answer: Callable[[CPD, IntArray], FloatArray]) -> FloatArray:
        """Ask the density of every configuration that rows of the discrete parents have about these rows."""
        places = self.configurations.places(codes)
        out = np.empty(len(places))
        for rows in _rows_by_place(places):
            found = answer(self.cases[places[rows[0]]], rows)
            if out.ndim < found.ndim:
                out = np.empty((len(found), len(places)))
            out[..., rows] = found
        return out

    def compact(self, tolerance: float) -> ByConfiguration:
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
        names = " and ".join(variable.name for variable in self.configurations.variables)
        each = names if len(self.configurations.variables) == 1 else f"combination of {names}"
        label = self.type.appearance.label
        cases = dict(zip(self.configurations.labels, (d.describe() for d in self.densities), strict=True))
        if self.otherwise is not None:
            cases[OTHERWISE] = self.otherwise.describe()
        return Description(
            f"{self.node} | {', '.join(self.parents)} ~ {label}, by {names}",
            legend=f"Fitted separately for each {each} that has enough rows.",
            cases=cases,
        )

    def _with_cases(self, cases: Sequence[CPD]) -> ByConfiguration:
        otherwise = None if self.otherwise is None else cases[-1]
        return replace(self, densities=tuple(cases[: len(self.densities)]), otherwise=otherwise)


def fit_node(
    node_type: NodeType, rows: Table | RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
) -> CPD:
    """Fit the density of a node: by configuration, if continuous nodes have discrete parents."""
    variables = {variable.name: variable for variable in rows.variables}
    child, given = variables[node], [variables[parent] for parent in parents]
    if not node_type.admits(child, given):
        raise FitError(refusal(node_type, child, given))
    is_divided = not child.is_discrete and any(parent.is_discrete for parent in given)
    fit = ByConfiguration.fit if is_divided else _fit_plain
    return fit(node_type, rows, node, parents, settings)


def fit_by_class(
    cpd: CPD, rows: Table, hidden: str, weights: FloatArray, settings: FitSettings
) -> CPD | None:
    """Fit a density again, with the weights of rows in classes, rows × classes, in the place of classes.

    `rows`: the rows, with a column for the class, whose values do not matter.
    `hidden`: the name of that column. None if the type of the node has no use for weights.
    """
    family, number = (*cpd.parents, cpd.node), weights.shape[1]
    if hidden not in family:
        return None
    codes = np.repeat(np.arange(number, dtype=np.float64), rows.rows)
    repeated = np.tile(rows.select(family).columns, number)
    repeated[family.index(hidden)] = codes
    table, flat = rows.select(family).with_columns(repeated), weights.T.ravel()
    if not isinstance(cpd, ByConfiguration):
        return cpd.type.fit_weighted(table, cpd.node, cpd.parents, flat, settings)
    given = table.select([variable.name for variable in cpd.configurations.variables])
    places = cpd.configurations.places(given.columns)
    densities: list[CPD] = []
    for place, old in enumerate(cpd.densities):
        mine = np.flatnonzero(places == place)
        part = table.take(mine).select((*old.parents, old.node))
        with suppress(FitError):
            new = old.type.fit_weighted(part, old.node, old.parents, flat[mine], settings)
            if new is None:
                return None
            old = new
        densities.append(old)
    return replace(cpd, densities=tuple(densities))


def _fit_plain(
    node_type: NodeType, rows: Table | RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
) -> CPD:
    if isinstance(rows, Table):
        return node_type.fit(rows, node, parents, settings)
    return node_type.fit_rows(rows, node, parents, settings)


@final
class ConfigurationScorer:
    """Scores families of one type whose nodes are continuous and have discrete parents.

    Every configuration has rows of its own, whose densities families share. Where a family cannot be fitted
    to a group's training rows of a configuration, it is fitted to all of the group's training rows.
    """

    def __init__(self, node_type: NodeType, rows: RowStore) -> None:
        self._type = node_type
        self._rows = rows

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted even to all rows."""
        out = np.full(len(families), -np.inf)
        for chosen, division, batch in self._by_division(families):
            total = np.zeros(len(batch))
            for some, _, found in self._answers(division, batch, by_piece=False):
                total[some] += found if found.ndim == 1 else found.sum(axis=1)
            out[chosen] = total
        return np.where(np.isfinite(out), out, -np.inf)

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces of the division; a family that cannot be fitted is -inf throughout."""
        out = np.full((len(families), self._rows.pieces), -np.inf)
        for chosen, division, batch in self._by_division(families):
            rows = np.zeros((len(batch), len(division.starved)))
            for some, pieces, found in self._answers(division, batch, by_piece=True):
                rows[np.ix_(some, pieces)] = found
            out[chosen] = rows
        out[~np.isfinite(out).all(axis=1)] = -np.inf
        return out

    def _by_division(self, families: FamilyBatch) -> Iterator[tuple[IntArray, Division, FamilyBatch]]:
        """Yield families with the same discrete parents, the rows by these, and the families without them."""
        discrete = self._rows.discrete
        by_set: dict[Columns, IntArray] = {
            tuple(np.flatnonzero(columns).tolist()): chosen
            for columns, chosen in _alike(families.parents & discrete)
        }
        for columns, division in self._rows.split(list(by_set)):
            chosen = by_set[columns]
            yield chosen, division, families.only(chosen).without_parents(discrete)

    def _answers(
        self, division: Division, batch: FamilyBatch, *, by_piece: bool
    ) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield some families, some pieces, and what they add to the families' scores.

        The families have the same discrete parents, which have been left out of the batch.

        `by_piece`: families × pieces; otherwise, where a configuration's scorer has totals, these.
        """
        narrow, every = division.families(batch), np.arange(len(batch))
        lacking = np.tile(division.starved, (len(batch), 1))  # families × pieces that all rows have to answer
        for part in division.parts.values():
            scorer = part.rows.scorer(self._type)
            found = scorer.rows(narrow) if by_piece else scorer.totals(narrow)
            unfit = np.flatnonzero(~np.isfinite(found).reshape(len(batch), -1).all(axis=1))
            found[unfit] = 0.0
            yield every, part.places, found
            if len(unfit):
                rows = self._group_by_group(part, narrow.only(unfit))
                there = np.isfinite(rows)
                lacking[np.ix_(unfit, part.places)] = ~there
                yield unfit, part.places, np.where(there, rows, 0.0)
        for asked, chosen in _alike(lacking):
            if asked.any():
                rows = division.rest(asked).scorer(self._type).rows(batch.only(chosen))
                yield chosen, np.flatnonzero(asked), rows

    def _group_by_group(self, part: Part, batch: FamilyBatch) -> FloatArray:
        """Families × pieces of a configuration; -inf in groups to which a family cannot be fitted."""
        singles = part.rows.singles
        if len(singles) == 1:
            return np.full((len(batch), len(part.places)), -np.inf)
        return np.concatenate([rows.scorer(self._type).rows(batch) for rows in singles], axis=1)


def _rows_by_place(places: IntArray) -> list[IntArray]:
    """Return the rows of every place that occurs, each in order."""
    order = np.argsort(places, kind="stable")
    _, starts = np.unique(places[order], return_index=True)
    return np.split(order, starts[1:]) if len(starts) else []


def _alike(rows: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield every different row of a matrix, and the numbers of the rows that are like it."""
    found: dict[bytes, list[int]] = {}
    for number, packed in enumerate(np.packbits(rows, axis=1)):
        found.setdefault(packed.tobytes(), []).append(number)
    for numbers in found.values():
        yield rows[numbers[0]], np.array(numbers)
