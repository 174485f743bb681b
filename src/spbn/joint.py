"""The joint density of a structure's nodes: what inference, scoring and simulation work on.

`BayesianNetwork` adds what people ask of it: fitting, questions, files and pictures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, finite_log_density, generator, relative_weights
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, GraphError, quoted
from spbn.graphs.dag import Arc
from spbn.nodes.base import CPD, NodeType, impossible_arcs, refusal
from spbn.nodes.families import Family
from spbn.record import Record
from spbn.structure import Structure
from spbn.tables.reader import as_table
from spbn.tables.readings import Preparation
from spbn.tables.table import Table, Variable
from spbn.transforms import FREE, Atoms, Bounds, Margins, YeoJohnson

EQUIVALENT = "the reverse is equivalent: it implies the same independences"  # why a direction is open


class Joint:
    """A structure and the fitted density of every node, perhaps of transformed columns."""

    structure: Structure
    #: The columns of data: the nodes but a hidden one and, after them, the inputs that they need, with the
    #: levels of the discrete ones.
    variables: tuple[Variable, ...]
    #: The same with what marks atoms and, last, the hidden node.
    all_variables: tuple[Variable, ...]
    #: The discrete node that no column of data holds, whose levels are classes of rows; None without one.
    hidden: str | None
    #: The columns with atoms. What marks these are nodes, and not columns of data: it follows from them.
    atoms: Mapping[str, Atoms]
    #: The nodes that mark atoms, and the columns whose atoms these are.
    marks: Mapping[str, str]
    #: Transforms of the columns; the densities are then those of transformed columns.
    margins: Margins | None
    #: How its variables are read from tables as people have them; None if columns hold them as they are.
    preparation: Preparation | None
    #: How it was made.
    record: Record

    def __init__(
        self,
        structure: Structure,
        cpds: Mapping[str, CPD],
        *,
        margins: Margins | None = None,
        record: Record | None = None,
        hidden: str | None = None,
        preparation: Preparation | None = None,
        search: Any = None,
        type_search: Any = None,
    ) -> None:
        self.structure = structure
        self.hidden = hidden
        self.preparation = preparation
        every = _with_readings(_checked_variables(structure, cpds), preparation)
        self.atoms = {} if margins is None else margins.atoms
        self.marks = {atoms.variable.name: name for name, atoms in self.atoms.items()}
        self.variables = tuple(v for v in every if v.name != hidden and v.name not in self.marks)
        self.all_variables = (*self.variables, *(v for v in every if v not in self.variables))
        _require_marks(structure, self.all_variables, self.atoms)
        if hidden is not None:
            _require_hidden(structure, cpds, hidden)
        continuous = {variable.name for variable in self.variables if not variable.is_discrete}
        if margins is not None and structure.inputs:
            margins = margins.only(continuous)  # no node may need an input that has one
        if margins is not None and not set(margins.columns) <= continuous:
            raise GraphError("margins must have transforms of continuous nodes only.")
        self.margins = margins
        self.record = Record(search=search, type_search=type_search) if record is None else record
        self._cpds = {node: cpds[node] for node in structure.nodes}

    @property
    def search(self) -> Any:
        """How the structure was found, if it was learned: a SearchResult or a PCResult."""
        return self.record.search

    @property
    def type_search(self) -> Any:
        """How the node types were found, if PC found the arcs: a SearchResult."""
        return self.record.type_search

    @property
    def cpds(self) -> Mapping[str, CPD]:
        """The fitted density of every node."""
        return MappingProxyType(self._cpds)

    def replace(
        self,
        *,
        cpds: Mapping[str, CPD] | None = None,
        record: Record | None = None,
        preparation: Preparation | None = None,
    ) -> Self:
        """Return the same network with other densities, another record or another preparation."""
        return type(self)(
            self.structure,
            self._cpds if cpds is None else cpds,
            margins=self.margins,
            record=self.record if record is None else record,
            hidden=self.hidden,
            preparation=self.preparation if preparation is None else preparation,
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, without the inputs."""
        return self.structure.nodes

    @property
    def class_variable(self) -> Variable | None:
        """The hidden node and its levels, if there is one."""
        return None if self.hidden is None else self.all_variables[-1]

    @property
    def log_shares(self) -> FloatArray:
        """The log-probability of every hidden class: classes × 1."""
        assert self.class_variable is not None
        levels = np.arange(len(self.class_variable.levels), dtype=np.float64)
        return self.cpds[self.class_variable.name].logpdf_of_columns(levels[None])[:, None]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that nodes need: columns that data must have, and that get no density."""
        return self.structure.used_inputs

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes and the inputs that they need, parents before children."""
        needed = {variable.name for variable in self.all_variables}
        return tuple(name for name in self.structure.dag.topological_order() if name in needed)

    def open_directions(self) -> dict[Arc, str]:
        """Return the arcs whose direction is open, and why.

        It is open if a graph with the arc reversed implies the same independences, agrees with the background
        knowledge, and scores less than an arc costs below the best of these (`spbn.search.open_directions`).
        If the network was not learned by a score that tells such graphs apart, all of them count.
        """
        found = self.record.open_directions
        if found is None:
            found = self.structure.undecided_arcs(impossible_arcs(self.variables))
        return dict.fromkeys((arc for arc in self.structure.arcs if arc in found), EQUIVALENT)

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows, every node after its parents; a hidden class is drawn, but not returned.

        A network with inputs needs their values: a table with n rows, `given`.
        """
        return self._frame(self.variables, n, given, seed)

    def sample_with_class(self, n: int, *, given: Any = None, seed: Seed = None) -> pd.DataFrame:
        """Draw the same rows along with the hidden class, if there is one."""
        return self._frame(self.all_variables, n, given, seed)

    def _frame(self, variables: Sequence[Variable], n: int, given: Any, seed: Seed) -> pd.DataFrame:
        columns = self.draw(n, seed, given=self._given_inputs(n, given))
        return pd.DataFrame({v.name: self.as_data(v, columns[v.name]) for v in variables})

    def draw(
        self, n: int, seed: Seed = None, *, given: Mapping[str, FloatArray] | None = None
    ) -> dict[str, FloatArray]:
        """Draw n rows in the units of the densities, discrete nodes as level codes; columns by node.

        The inputs, in the same units, are `given`; so may be the hidden class.
        """
        rng = generator(seed)
        levels = {variable.name: variable.levels for variable in self.all_variables if variable.is_discrete}
        columns: dict[str, FloatArray] = dict(given or {})
        for node in self.order:
            if node not in self._cpds or node in columns:
                continue
            parents = self.cpds[node].parents
            values = None
            if parents:
                known = {parent: levels[parent] for parent in parents if parent in levels}
                values = Table(parents, np.stack([columns[parent] for parent in parents]), known)
            columns[node] = self.cpds[node].sample(n, given=values, seed=rng)
        return columns

    def _given_inputs(self, n: int, given: Any) -> dict[str, FloatArray]:
        """Return the values of the inputs in the units of the densities."""
        inputs = [variable for variable in self.variables if variable.name in self.inputs]
        if not inputs:
            if given is not None:
                raise ArgumentError("given holds the values of inputs, and this network has none.")
            return {}
        if given is None:
            raise ArgumentError(
                f"the network has the inputs {quoted(self.inputs)}: pass their values, "
                f"given={{{self.inputs[0]!r}: [...], ...}}."
            )
        table = as_table(given, variables=inputs, min_rows=0)
        if table.rows != n:
            raise ArgumentError(
                f"given must have one row for each of the {n} samples. Got {table.rows} rows."
            )
        rows = self.transformed(table)
        return dict(zip(rows.names, rows.columns, strict=True))

    def as_data(self, variable: Variable, values: FloatArray) -> Any:
        """Return drawn values as they are in data: numbers in their units, or categories."""
        return as_data(
            variable, values if variable.is_discrete else self.in_data_units(variable.name, values)
        )

    def node_logpdf(self, node: str, data: Any) -> FloatArray:
        """Log-density of a node given its parents, for every row, in the units of the data.

        If it depends on a hidden class, and the data has no column for it, the data must have all others; it
        is then what the node contributes.
        """
        family = (node, *self.structure.parents(node))
        if self.hidden in family and not (isinstance(data, Table) and self.hidden in data.names):
            return self.contributions(data)[:, self.nodes.index(node)]
        variables = [variable for variable in self.all_variables if variable.name in family]
        if not isinstance(data, Table) or not set(family) <= set(data.names):
            variables = self.columns_of(family)
        table = self.with_marks(as_table(data, variables=variables))
        return self.cpds[node].logpdf(self.transformed(table)) + self.log_slopes(table, [node])[0]

    def columns_of(self, nodes: Collection[str]) -> list[Variable]:
        """Return what data must have for some nodes: what marks atoms follows from their columns."""
        names = {self.marks.get(node, node) for node in nodes}
        return [variable for variable in self.all_variables if variable.name in names]

    def with_marks(self, table: Table) -> Table:
        """Return a table in the units of the data with what marks the atoms of its columns."""
        there = set(table.names)
        found = [a for name, a in self.atoms.items() if name in there and a.variable.name not in there]
        marks = [atoms.codes(table.column(atoms.column)) for atoms in found]
        variables = [*table.variables, *(atoms.variable for atoms in found)]
        return Table.of(variables, np.concatenate([table.columns, marks])) if found else table

    def contributions(self, data: Any) -> FloatArray:
        """Return what every node contributes to the log-density of every row: rows × nodes.

        With a hidden class z, the log-density log Σ_k P(z = k) Π_i f_i(x | k) is the sum of

            Σ_k r_k log f_i(x | k)  for every other node,  and  -Σ_k r_k log(r_k / P(z = k))  for the class,

        where r_k = P(z = k | x): what a node adds is a mean over the classes that the row may have, and the
        class takes what it costs to tell which.
        """
        return self.logpdf_of_columns(as_table(data, variables=self.variables).columns).T

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Return what every node adds to the log-density of `variables` × rows, complete: nodes × rows."""
        out = np.empty((len(self._cpds), columns.shape[1]))
        if not columns.shape[1]:
            return out
        columns, slopes = self._moved(columns)
        if self.hidden is not None:
            out = average_over_classes(self._terms_by_class(columns))
        else:
            with np.errstate(over="ignore"):  # the square of an absurd value
                for k, (cpd, _, family) in enumerate(self._families):
                    out[k] = cpd.logpdf_of_columns(columns[family])
        return out if slopes is None else out + slopes

    def log_joint_of_columns(self, columns: FloatArray) -> FloatArray:
        """Return the joint log-density of rows and of every class, but for what margins add: classes × rows.

        Columns are `variables` × rows, complete, in the units of the data.
        """
        columns, _ = self._moved(columns)
        return self._terms_by_class(columns).sum(axis=1)

    def terms_by_class(self, columns: FloatArray) -> FloatArray:
        """Return the log-density of every node and every class: classes × nodes × rows.

        Columns are `variables` × rows, complete, in the units of the data.
        """
        columns, slopes = self._moved(columns)
        terms = self._terms_by_class(columns)
        return terms if slopes is None else terms + slopes

    def _terms_by_class(self, columns: FloatArray) -> FloatArray:
        """Do the same for moved columns, without what margins add."""
        assert self.class_variable is not None
        number, rows = len(self.class_variable.levels), columns.shape[1]
        out = np.empty((number, len(self._cpds), rows))
        columns = np.concatenate([columns, np.zeros((1, rows))])
        with np.errstate(over="ignore"):
            for k, (cpd, variables, family) in enumerate(self._families):
                if self.class_variable not in variables:
                    out[:, k] = cpd.logpdf_of_columns(columns[family])
                    continue
                for level in range(number):
                    columns[-1] = level
                    out[level, k] = cpd.logpdf_of_columns(columns[family])
        return out

    def logpdf_and_cdf_of_columns(
        self, columns: FloatArray, uniforms: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what nodes add to the log-density, a finite number, and P(X ≤ x | parents): nodes × rows.

        Columns are `variables` × rows, complete. Uniforms, nodes × rows, choose points on the steps of
        discrete nodes. Where the parents include a hidden class, a mean over classes stands for the
        distribution function, by their probabilities given all nodes before it: these are then uniform and
        independent, as others are.
        """
        if self.hidden is not None:
            with np.errstate(over="ignore"):
                return self._logpdf_and_cdf_by_class(columns, uniforms)
        shape = (len(self._cpds), columns.shape[1])
        logpdf, cdf = np.empty(shape), np.empty(shape)
        columns, slopes = self._moved(columns)
        with np.errstate(over="ignore"):
            for k, (cpd, variables, family) in enumerate(self._families):
                rows = Table.of(variables, columns[family])
                logpdf[k], cdf[k] = cpd.logpdf_and_cdf(rows, uniforms[k])
        logpdf = logpdf if slopes is None else logpdf + slopes
        return finite_log_density(logpdf), np.clip(cdf, 0.0, 1.0)

    def _logpdf_and_cdf_by_class(
        self, columns: FloatArray, uniforms: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        logpdf, cdf = self.logpdf_of_columns(columns), uniforms.copy()  # that of the class is any number
        moved, _ = self._moved(columns)
        terms = self._terms_by_class(moved)
        moved = np.concatenate([moved, np.zeros((1, moved.shape[1]))])
        so_far = terms[:, -1].copy()
        for node in self.order:
            if node == self.hidden or node not in self._cpds:
                continue
            k = self.nodes.index(node)
            cpd, variables, family = self._families[k]
            weights = relative_weights(so_far, axis=0)
            found = np.zeros(moved.shape[1])
            for level, weight in enumerate(weights / np.maximum(weights.sum(axis=0), 1e-300)):
                moved[-1] = level
                found += weight * cpd.logpdf_and_cdf(Table.of(variables, moved[family]), uniforms[k])[1]
            cdf[k] = found
            so_far += terms[:, k]
        return finite_log_density(logpdf), np.clip(cdf, 0.0, 1.0)

    @cached_property
    def _families(self) -> list[tuple[CPD, tuple[Variable, ...], IntArray]]:
        """The density of every node, its parents and itself, and where these are in `all_variables`."""
        places = {variable.name: place for place, variable in enumerate(self.all_variables)}
        families = []
        for node, cpd in self._cpds.items():
            columns = [places[name] for name in (*cpd.parents, node)]
            families.append((cpd, tuple(self.all_variables[k] for k in columns), np.array(columns)))
        return families

    def _moved(self, columns: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return columns in the units of the densities, and what that adds to the nodes' log-densities."""
        if self.margins is None:
            return columns, None
        marks = [atoms.codes(columns[self._names.index(name)]) for name, atoms in self.atoms.items()]
        moved, slopes = self.margins.moved(self._names, columns)
        nodes = len(self.variables) - len(self.inputs)
        none = np.zeros((len(self._cpds) - nodes, columns.shape[1]))
        slopes = np.concatenate([slopes[:nodes], none]) if len(none) else slopes[:nodes]
        return np.concatenate([moved, marks]) if marks else moved, slopes

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    def transformed(self, table: Table) -> Table:
        """Return a table in the units of the densities: transformed by the margins, if there are any."""
        return table if self.margins is None else self.margins.transformed(table)

    def with_class(self, table: Table, codes: IntArray | None = None) -> Table:
        """Return a table with a further column for the hidden class, if there is one: NaN, or its codes."""
        if self.class_variable is None:
            return table
        column = np.full(table.rows, np.nan) if codes is None else codes.astype(np.float64)
        columns = np.concatenate([table.columns, column[None]])
        return Table.of((*table.variables, self.class_variable), columns)

    def log_slopes(self, table: Table, nodes: Sequence[str]) -> FloatArray:
        """Return what the margins add to the log-densities of nodes: nodes × rows; 0 without margins."""
        if self.margins is None:
            return np.zeros((len(nodes), 1))
        there = {v.name for v in self.variables}
        slopes = self.margins.log_slopes(table, [node for node in nodes if node in there])
        # What marks atoms and the class are the last.
        return np.concatenate([slopes, np.zeros((len(nodes) - len(slopes), table.rows))])

    def margin(self, node: str) -> YeoJohnson | None:
        """Return the transform of a column, if it has one."""
        return None if self.margins is None else self.margins.columns.get(node)

    def bounds(self, node: str) -> Bounds:
        """Return the least and the greatest possible value of a continuous variable."""
        margin = self.margin(node)
        return FREE if margin is None else margin.bounds

    def in_density_units(self, node: str, values: FloatArray) -> FloatArray:
        margin = self.margin(node)
        return values if margin is None else margin.forward(values)

    def in_data_units(self, node: str, values: FloatArray) -> FloatArray:
        margin = self.margin(node)
        return values if margin is None else margin.inverse(values)


def average_over_classes(terms: FloatArray) -> FloatArray:
    """Return what nodes contribute to the log-density of rows: nodes × rows; see `Joint.contributions`.

    Terms are classes × nodes × rows, and the class is the last node.
    """
    joint = terms.sum(axis=1)
    total: FloatArray = np.logaddexp.reduce(joint, axis=0)
    possible = np.isfinite(total)
    weights = np.where(possible, relative_weights(joint, axis=0), 1.0)
    weights /= weights.sum(axis=0)
    with np.errstate(invalid="ignore"):  # of 0 times -inf, which is nothing
        weighted = np.where(weights[:, None] > 0.0, weights[:, None] * terms, 0.0)
        out: FloatArray = weighted.sum(axis=0)
        out[-1] = np.where(possible, total - out[:-1].sum(axis=0), -np.inf)
    return out


def class_weights(log_shares: FloatArray, terms: FloatArray, units: IntArray, number: int) -> FloatArray:
    """Return the probability of every class given all rows of a unit: units × classes.

    `terms`: what every row says about the classes, classes × rows. `units`: of every row, from 0 to a number.
    """
    logs = np.repeat(log_shares, number, axis=1)
    for total, of_rows in zip(logs, terms, strict=True):
        np.add.at(total, units, of_rows)
    weights = relative_weights(logs, axis=0)
    return np.ascontiguousarray((weights / weights.sum(axis=0)).T)


def as_data(variable: Variable, values: FloatArray) -> Any:
    """Return values as they are in data: numbers, or categories."""
    if not variable.is_discrete:
        return values
    return pd.Categorical.from_codes(values.astype(np.int64), pd.Index(variable.levels))


def as_columns(variables: Sequence[Variable], values: FloatArray) -> dict[str, Any]:
    """Return variables × rows as columns of data, by name."""
    return {v.name: as_data(v, column) for v, column in zip(variables, values, strict=True)}


def _checked_variables(structure: Structure, cpds: Mapping[str, CPD]) -> tuple[Variable, ...]:
    """Return the nodes and, after them, the inputs that they need; refuse densities of something else."""
    unknown = [node for node in cpds if node not in structure.nodes]
    if unknown:
        raise GraphError(f"cpds names unknown nodes: {quoted(unknown)}.")
    for family in structure.families():
        if family.node not in cpds:
            raise GraphError(f"there is no density for node {family.node!r}.")
        _require_fit(family, cpds[family.node])
    levels = {v.name: v.levels for cpd in cpds.values() for v in cpd.variables if v.levels}
    nodes = [cpds[node].variable for node in structure.nodes]
    variables = (*nodes, *(Variable(name, levels.get(name, ())) for name in structure.used_inputs))
    known = {variable.name: variable for variable in variables}
    for variable in nodes:
        cpd = cpds[variable.name]
        parents = [known[parent] for parent in cpd.parents]
        given = {parent.name: parent for parent in cpd.variables}
        differ = [
            parent.name for parent in parents if given.get(parent.name, Variable(parent.name)) != parent
        ]
        if differ:
            raise GraphError(f"the density of {variable.name!r} has other levels of {quoted(differ)}.")
        if not cpd.type.admits(variable, parents):
            raise GraphError(refusal(cpd.type, variable, parents))
    return variables


def _with_readings(variables: tuple[Variable, ...], preparation: Preparation | None) -> tuple[Variable, ...]:
    """Return variables that know how they are read; refuse a preparation of something else."""
    if preparation is None:
        return variables
    readings = preparation.readings
    known = {variable.name: variable.is_discrete for variable in variables}
    wrong = [name for name, reading in readings.items() if known.get(name) is not reading.is_level]
    if wrong:
        raise GraphError(f"the preparation is that of other variables: {quoted(wrong)}.")
    return tuple(replace(variable, reading=readings.get(variable.name)) for variable in variables)


def _require_marks(structure: Structure, variables: Sequence[Variable], atoms: Mapping[str, Atoms]) -> None:
    """Refuse atoms that are not marked by a parent, after all columns."""
    known, last = {variable.name: variable for variable in variables}, len(structure.nodes)
    for name, found in atoms.items():
        mark = found.variable
        if known.get(mark.name) != mark or mark.name not in structure.parents(name):
            raise GraphError(f"the atoms of {name!r} must be marked by its parent {mark.name!r}.")
        last = min(last, structure.nodes.index(mark.name))
    if any(structure.nodes.index(name) > last for name in atoms):
        raise GraphError("nodes that mark atoms must come after all columns.")


def _require_hidden(structure: Structure, cpds: Mapping[str, CPD], hidden: str) -> None:
    """Refuse a hidden node that is not a table of probabilities without parents, the last of several."""
    is_table = hidden in cpds and cpds[hidden].variable.is_discrete
    if not is_table or structure.parents(hidden) or structure.nodes[-1] != hidden or len(structure.nodes) < 2:
        raise GraphError(
            f"the hidden node must be the last of several, discrete, and without parents. Got {hidden!r}."
        )


def _require_fit(family: Family, cpd: CPD) -> None:
    if not isinstance(getattr(cpd, "type", None), NodeType):
        raise ArgumentError(
            f"the density of {family.node!r} must be a fitted density, such as a LinearGaussian or a CKDE. "
            f"Got {cpd!r}."
        )
    if (cpd.node, sorted(cpd.parents), cpd.type) != (family.node, sorted(family.parents), family.type):
        raise GraphError(
            f"the density given for {family.node!r} is that of {Family(cpd.node, cpd.parents, cpd.type)}, "
            f"but the structure says {family}."
        )
