"""Discrete: a table with the probability of every level, for each configuration of the parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, frozen
from spbn._base.checks import at_least_0, is_whole
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import ArgumentError, FitError, quoted
from spbn.nodes.base import CPD, Appearance, Description, Levels, NodeType, ParameterTable, Region
from spbn.rows.families import MOST, Configurations, FamilyBatch, number_possible
from spbn.rows.store import FamilyCounts, FitSettings, RemoteRows, RowStore
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table, Variable

SHOWN = 24  # configurations that a description lists


@dataclass(frozen=True, repr=False, eq=False)
class ProbabilityTable(CPD):
    """The probabilities of a discrete node's levels, for every configuration of its parents.

    Attributes
    ----------
    node, parents
        The family; all parents are discrete.
    levels
        The levels of the node.
    configurations
        The configurations of the parents that occurred in the training rows.
    probabilities
        Configurations × levels.
    otherwise
        The probabilities under any other configuration: uniform, or without smoothing those of all rows.

    Examples
    --------
    >>> import spbn
    >>> rows = {"sky": ["clear", "clear", "cloudy", "cloudy"] * 5, "rain": [False, False, True, False] * 5}
    >>> structure = spbn.Structure(["sky", "rain"], [("sky", "rain")], "discrete")
    >>> network = spbn.BayesianNetwork.fit(structure, rows)
    >>> table = network.cpds["rain"]
    >>> print(table.levels, table.probabilities.round(2).tolist())
    ('False', 'True') [[0.95, 0.05], [0.5, 0.5]]
    """

    node: str
    parents: tuple[str, ...]
    levels: tuple[str, ...]
    configurations: Configurations
    probabilities: FloatArray
    otherwise: FloatArray

    def __post_init__(self) -> None:
        for name in ("probabilities", "otherwise"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def fit(
        cls,
        data: Any,
        node: str,
        parents: Sequence[str] = (),
        *,
        smoothing: float = 1.0,
        missing: Missing = "error",
    ) -> ProbabilityTable:
        """Count; `smoothing` is the number of extra rows per configuration, spread evenly over the levels."""
        at_least_0("smoothing", smoothing)
        family = [node, *parents]
        table = as_table(data, levels="infer", names=family, discrete=family, missing=missing)
        return cls._of(table, smoothing)

    @classmethod
    def _of(cls, table: Table, smoothing: float, weights: FloatArray | None = None) -> ProbabilityTable:
        """Count the rows of a table, the node and its parents, each as often as its weight says."""
        variable, *parents = table.variables
        continuous = [parent.name for parent in parents if not parent.is_discrete]
        if not variable.is_discrete or continuous:
            wrong = quoted(continuous or [variable.name])
            raise FitError(f"a discrete node and its parents must be discrete columns. Got {wrong}.")
        found, places = Configurations.in_columns(parents, table.columns[1:])
        shape = (len(found), len(variable.levels))
        cells = places * shape[1] + table.columns[0].astype(np.int64)
        counts = np.bincount(cells, weights, minlength=shape[0] * shape[1]).reshape(shape)
        names = tuple(parent.name for parent in parents)
        return cls(variable.name, names, variable.levels, found, *smoothed(counts, smoothing))

    @classmethod
    def of_configurations(
        cls,
        variable: Variable,
        parents: Sequence[Variable],
        codes: IntArray,
        probabilities: FloatArray,
        otherwise: FloatArray,
    ) -> ProbabilityTable:
        """Make a table of distinct configurations × parents, as level codes, and their probabilities."""
        names = tuple(parent.name for parent in parents)
        found, places = Configurations.in_columns(parents, codes.T.astype(np.float64))
        ordered = np.empty_like(probabilities)
        ordered[places] = probabilities
        return cls(variable.name, names, variable.levels, found, ordered, otherwise)

    def every_configuration(self) -> tuple[IntArray, FloatArray]:
        """Return all configurations × parents as level codes, the last changing fastest, and their rows."""
        sizes = [len(parent.levels) for parent in self.variables[:-1]]
        codes = (
            np.stack([axis.ravel() for axis in np.indices(sizes)], axis=1) if sizes else np.zeros((1, 0), int)
        )
        return codes, self.given(codes.T.astype(np.float64)[self._order])

    @property
    def type(self) -> NodeType:
        return NODE_TYPE

    @property
    def variable(self) -> Variable:
        return Variable(self.node, self.levels)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        known = {variable.name: variable for variable in self.configurations.variables}
        return (*(known[parent] for parent in self.parents), self.variable)

    def given(self, parents: FloatArray) -> FloatArray:
        """Return the probabilities of the levels, rows × levels, for parents × rows of level codes."""
        places = self.configurations.places(parents)
        return np.concatenate([self.probabilities, self.otherwise[None]])[places]

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Log-probability of every row of the parents and, last, the node: level codes."""
        places = self.configurations.places(columns[self._order])
        return self._log_probabilities[places, columns[-1].astype(np.int64)]

    @cached_property
    def _order(self) -> list[int]:
        """The places of the configurations' variables among the parents."""
        return [self.parents.index(variable.name) for variable in self.configurations.variables]

    @cached_property
    def _log_probabilities(self) -> FloatArray:
        """Configurations × levels; the last row is that of any other configuration."""
        with np.errstate(divide="ignore"):  # without smoothing, what has not occurred is impossible
            return np.log(np.concatenate([self.probabilities, self.otherwise[None]]))

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Probability of the node's level and of those before it, for every row."""
        return self._steps(columns)[1]

    def _steps(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of the levels before a row's level, and of these and that level."""
        upper = np.minimum(np.cumsum(self.given(columns[self._order]), axis=1), 1.0)
        upper[:, -1] = 1.0
        codes, rows = columns[-1].astype(np.int64), np.arange(columns.shape[1])
        return np.where(codes > 0, upper[rows, codes - 1], 0.0), upper[rows, codes]

    def randomised_cdf(self, data: Any, uniforms: FloatArray) -> FloatArray:
        """Return a random point on the step of the distribution function at every row's level."""
        return self.to_noise(as_table(data, variables=self.variables).columns, uniforms)[0]

    def logpdf_and_cdf(self, data: Any, uniforms: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return log-probabilities, and points on the steps of the distribution function."""
        return self.logpdf(data), self.cdf(data) if uniforms is None else self.randomised_cdf(data, uniforms)

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a level, as its place among `levels`, for every row of the parents."""
        return self.from_noise(parents, rng.random((1, parents.shape[1])))

    def to_noise(self, columns: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Return a point on the step of the distribution function at every row's level."""
        before, upto = self._steps(columns)
        return (before + uniforms * (upto - before))[None]

    def from_noise(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        bounds = np.cumsum(self.given(parents[self._order]), axis=1)[:, :-1]
        return (bounds <= noise.T).sum(axis=1).astype(np.float64)

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.given(self._codes(parents))[:, _places(region)].sum(axis=1))

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        places = _places(region)
        bounds = np.cumsum(self.given(self._codes(parents))[:, places], axis=1)
        wanted = rng.random(parents.rows) * bounds[:, -1]
        return np.array(places, dtype=np.float64)[(wanted[:, None] >= bounds[:, :-1]).sum(axis=1)]

    def _codes(self, parents: Table) -> FloatArray:
        return parents.select([variable.name for variable in self.configurations.variables]).columns

    def pool(self, others: Sequence[ProbabilityTable]) -> ProbabilityTable:
        """Return the mean probabilities, for every configuration that some of the tables know."""
        cpds = (self, *others)
        configurations = Configurations.union([cpd.configurations for cpd in cpds])
        codes = configurations.codes.T.astype(np.float64)
        return replace(
            self,
            configurations=configurations,
            probabilities=np.mean([cpd.given(codes) for cpd in cpds], axis=0),
            otherwise=np.mean([cpd.otherwise for cpd in cpds], axis=0),
        )

    def describe(self) -> Description:
        """Return the table of probabilities, of the first configurations if there are many."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        rows = tuple(self.configurations.only(np.arange(min(SHOWN, len(self.configurations)))).labels)
        shown = self.probabilities[:SHOWN]
        title = "probability"
        if len(self.probabilities) > SHOWN:
            title += f" (the first {SHOWN} of {len(self.probabilities)} configurations)"
        values = tuple(tuple(row) for row in shown.tolist())
        return Description(
            f"{self.node}{given} ~ {len(self.levels)} levels",
            tables=(
                ParameterTable(title, rows if self.parents else (self.node,), self.levels, values, True),
            ),
        )

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return {
            "levels": list(self.levels),
            "given": write_variables(self.configurations.variables),
            "configurations": self.configurations.numbers.tolist(),
            "probabilities": self.probabilities.tolist(),
            "otherwise": self.otherwise.tolist(),
        }

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ProbabilityTable)
            and (self.node, self.parents, self.levels) == (other.node, other.parents, other.levels)
            and self.configurations == other.configurations
            and np.array_equal(self.probabilities, other.probabilities)
            and np.array_equal(self.otherwise, other.otherwise)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


@final
class CountingScorer:
    """Scores discrete families from the counts of every group."""

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._smoothing = rows.settings.smoothing

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where an impossible level occurs."""
        found: dict[tuple[int, ...], float] = {}
        for columns, counts in self._rows.counts(families.column_tuples):
            logs, occur = self._log_probabilities(counts), counts.test > 0
            found[columns] = float(np.sum(logs[occur] * counts.test[occur]))
        return np.array([found.get(columns, -np.inf) for columns in families.column_tuples])

    def rows(self, families: FamilyBatch) -> FloatArray:
        found: dict[tuple[int, ...], FloatArray] = {}
        for columns, counts in self._rows.counts(families.column_tuples):
            logs = self._log_probabilities(counts)
            if counts.cells is None:
                logs = np.where(counts.test > 0, logs, 0.0)  # 0 times -inf is nothing
                found[columns] = (logs * counts.test).sum(axis=(1, 2))
            else:
                group = np.repeat(np.arange(len(logs)), counts.test.sum(axis=(1, 2)))
                found[columns] = logs.reshape(len(logs), -1)[group, counts.cells]
        nothing = np.full(self._rows.pieces, -np.inf)
        return np.stack([found.get(columns, nothing) for columns in families.column_tuples])

    def _log_probabilities(self, counts: FamilyCounts) -> FloatArray:
        """Groups × configurations × levels."""
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(smoothed(counts.train, self._smoothing)[0])
        return logs


def smoothed(counts: IntArray | FloatArray, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of levels, last axis, under the configurations that occur, and any other."""
    levels = counts.shape[-1]
    rows = counts.sum(axis=-1, keepdims=True)
    overall = counts.sum(axis=-2, keepdims=True)
    if smoothing > 0.0:
        return (counts + smoothing / levels) / (rows + smoothing), np.full(levels, 1.0 / levels)
    total = overall.sum(axis=-1, keepdims=True)
    marginal = np.where(total > 0, overall / np.maximum(total, 1), 1.0 / levels)
    return np.where(rows > 0, counts / np.maximum(rows, 1), marginal), marginal.reshape(-1, levels)[0]


@final
class DiscreteType(NodeType):
    """The node type of `ProbabilityTable`."""

    name = "discrete"
    appearance = Appearance(
        label="discrete",
        short_label="Discrete",
        sentence="A table with the probability of every level, for each combination of its parents' levels.",
        colour="#d6e6d3",
        dark_colour="#36493a",
    )
    is_quick = True
    alternative = "discrete"

    def admits(self, child: Variable, parents: Sequence[Variable]) -> bool:
        return child.is_discrete and all(parent.is_discrete for parent in parents)

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> ProbabilityTable:
        return ProbabilityTable._of(table.select([node, *parents]), settings.smoothing)

    def fit_weighted(
        self, table: Table, node: str, parents: Sequence[str], weights: FloatArray, settings: FitSettings
    ) -> ProbabilityTable:
        return ProbabilityTable._of(table.select([node, *parents]), settings.smoothing, weights)

    def fit_rows(
        self, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
    ) -> ProbabilityTable:
        columns = rows.columns((*parents, node))
        found, counts = rows.total_counts(columns)
        levels = rows.variables[columns[-1]].levels
        return ProbabilityTable(node, tuple(parents), levels, found, *smoothed(counts, settings.smoothing))

    def scorer(self, rows: RowStore) -> CountingScorer:
        return CountingScorer(rows)

    def from_record(self, record: Mapping[str, Any], arrays: ArrayReader) -> ProbabilityTable:
        node, parents = family_of(record)
        levels = read_levels(node, record.get("levels"))
        configurations = read_configurations(record, parents)
        if tuple(variable.name for variable in configurations.variables) != parents:
            refuse(f"all parents of {node!r} must be discrete.")
        probabilities = numbers(record, "probabilities", (len(configurations), len(levels)))
        otherwise = numbers(record, "otherwise", (len(levels),))
        for row in (*probabilities, otherwise):
            if (row < 0.0).any() or abs(row.sum() - 1.0) > 1e-9:
                refuse(
                    f"the probabilities of {node!r} must be positive and sum to 1. Got {row.tolist()!r:.200}."
                )
        return ProbabilityTable(node, parents, levels, configurations, probabilities, otherwise)


NODE_TYPE = DiscreteType()


def _places(region: Region) -> list[int]:
    if not isinstance(region, Levels):
        raise ArgumentError(f"a discrete variable has some of its levels. Got {region!r}.")
    return list(region.places)


def write_variables(variables: Sequence[Variable]) -> list[dict[str, Any]]:
    """Describe discrete parents in plain data."""
    return [{"name": variable.name, "levels": list(variable.levels)} for variable in variables]


def read_levels(name: str, levels: Any) -> tuple[str, ...]:
    """Read the levels of a discrete variable."""
    if not isinstance(levels, list) or not levels or not all(isinstance(level, str) for level in levels):
        refuse(f"the levels of {name!r} must be a list of text. Got {levels!r:.200}.")
    if len(set(levels)) < len(levels):
        refuse(f"the levels of {name!r} must be distinct. Got {levels!r:.200}.")
    return tuple(levels)


def read_configurations(record: Mapping[str, Any], parents: Sequence[str]) -> Configurations:
    """Read the discrete parents of a node, which are among these, and configurations of them."""
    given, listed = record.get("given"), record.get("configurations")
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        refuse(f"'given' must list the discrete parents. Got {given!r:.200}.")
    names = [entry.get("name") for entry in given]
    if len(set(names)) < len(names) or not set(names) <= set(parents):
        refuse(f"'given' must name some of the parents {list(parents)!r:.200}. Got {names!r:.200}.")
    variables = tuple(
        Variable(str(entry["name"]), read_levels(entry["name"], entry.get("levels"))) for entry in given
    )
    possible = number_possible(variables)
    last = min(possible, MOST) - 1
    if not isinstance(listed, list) or not all(is_whole(value, 0, last) for value in listed):
        refuse(f"'configurations' must hold numbers from 0 to {possible - 1}. Got {listed!r:.200}.")
    codes = np.array(listed, dtype=np.int64)
    if (np.diff(codes) <= 0).any():
        refuse("'configurations' must ascend.")
    return Configurations(variables, codes)
