"""A Bayesian network: a structure, and a fitted density for every node."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.random import Seed, generator
from spbn.errors import ArgumentError, FitError, quoted
from spbn.fitting import fitted, typical_logpdf
from spbn.kernels.bandwidth import BandwidthRule
from spbn.kernels.compression import require_tolerance
from spbn.nodes.base import CPD, FitSettings
from spbn.nodes.by_configuration import compact_cpd
from spbn.record import Record, current_versions, plain_settings
from spbn.structure import Structure
from spbn.tables.frames import (
    Missing,
    as_table,
    frame_index,
    mixed_table,
    require_variation,
    table_with_holes,
)
from spbn.tables.table import Table, Variable
from spbn.transforms import Margins, require_kind
from spbn.transforms import fitted as fitted_margins

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from spbn.inference.posterior import Posterior
from spbn.errors import GraphError
from spbn.nodes.admission import refusal
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family


class BayesianNetwork:
    """The joint density of some variables, as the product of the densities of all nodes given their parents.

    Parameters
    ----------
    structure
        The graph and the types of its nodes.
    cpds
        The fitted density of every node.
    margins
        Transforms of the columns; the densities are then those of transformed columns.
    record
        How it was made. If nothing else is known, `search` and `type_search` can be given instead.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> print(network)
    A = 6.015 + N(0, 0.9285)
    B ~ CKDE (200 rows)
    C | A, B ~ CKDE (200 rows)
    D = 9.884 + 0.8·C + N(0, 0.3734)
    E | D ~ CKDE (200 rows)
    >>> network.logpdf(data).round(1)[:3]
    array([-6.9, -6.5, -7.5])
    """

    structure: Structure
    #: The nodes and, after them, the inputs that they need, with the levels of the discrete ones.
    variables: tuple[Variable, ...]
    margins: Margins | None
    record: Record

    def __init__(
        self,
        structure: Structure,
        cpds: Mapping[str, CPD],
        *,
        margins: Margins | None = None,
        record: Record | None = None,
        search: Any = None,
        type_search: Any = None,
    ) -> None:
        self.structure = structure
        self.variables = variables_of(structure, cpds)
        self.margins = margins_of(structure, self.variables, margins)
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

    @classmethod
    def fit(
        cls,
        structure: Structure,
        data: Any,
        *,
        bandwidth: BandwidthRule = "scott",
        margins: str = "none",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
        search: Any = None,
    ) -> BayesianNetwork:
        """Fit the density of every node to the data.

        Columns that are not nodes are ignored. Those of discrete nodes hold categories: text, truth values or
        numbers; `smoothing` is how many rows are added to every configuration of their parents. With
        ``margins="yeo-johnson"`` every other column is transformed first (see `spbn.transforms`).
        """
        start = time.perf_counter()
        if not isinstance(structure, Structure):
            raise ArgumentError(f"fit takes a Structure. Got {type(structure).__name__}.")
        settings = FitSettings(bandwidth, engine, smoothing)
        require_kind(margins)
        continuous = [node for node, kind in structure.types.items() if kind.admits(Variable(node), ())]
        discrete = [node for node in structure.nodes if node not in continuous]
        table = mixed_table(
            data,
            names=(*structure.nodes, *structure.used_inputs),
            discrete=discrete,
            continuous=continuous,
            missing=missing,
            min_rows=2,
        )
        require_variation(table)
        transforms = fitted_margins(margins, table)
        rows = table if transforms is None else transforms.transformed(table)
        cpds = {family.node: fitted(rows, family, settings) for family in structure.families()}
        chosen = {
            "bandwidth": bandwidth,
            "margins": margins,
            "missing": missing,
            "engine": engine,
            "smoothing": smoothing,
        }
        record = Record(
            settings=plain_settings(chosen),
            versions=current_versions(),
            rows=table.rows,
            columns=table.names,
            data_hash=table.digest,
            typical=typical_logpdf(structure, table, settings, transforms),
            seconds=time.perf_counter() - start,
            search=search,
        )
        return cls(structure, cpds, margins=transforms, record=record)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, without the inputs."""
        return self.structure.nodes

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that nodes need: columns that data must have, and that get no density."""
        return self.structure.used_inputs

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes and the inputs that they need, parents before children."""
        needed = {variable.name for variable in self.variables}
        return tuple(name for name in self.structure.dag.topological_order() if name in needed)

    def logpdf(self, data: Any, *, missing: str = "error", seed: Seed = 0) -> FloatArray:
        """Log-density of every row.

        With ``missing="integrate"``, rows may have holes. The result is the log-density of the values that
        are present: exact where nodes are linear Gaussian, and otherwise by simulation with this seed.
        """
        if missing not in ("error", "integrate"):
            raise ArgumentError(f"missing must be 'error' or 'integrate'. Got {missing!r} instead.")
        if missing == "error":
            return self.contributions(self._table(data)).sum(axis=0)
        from spbn.inference.batch import log_density_of_observed

        return log_density_of_observed(self, table_with_holes(data, self.variables), seed=seed)

    def loglik(self, data: Any) -> float:
        """Log-likelihood: the sum of the rows' log-densities."""
        return float(self.logpdf(data).sum())

    def logpdf_by_node(self, data: Any) -> pd.DataFrame:
        """Return what every node contributes to the log-density of every row, one column per node."""
        import pandas as pd

        by_node = self.contributions(self._table(data))
        return pd.DataFrame(dict(zip(self.nodes, by_node, strict=True)), index=frame_index(data))

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows, every node after its parents.

        A network with inputs needs their values: a table with n rows, `given`.
        """
        import pandas as pd

        columns = self.draw(n, seed, given=self._given_inputs(n, given))
        return pd.DataFrame({v.name: self.as_data(v, columns[v.name]) for v in self.variables})

    def draw(
        self, n: int, seed: Seed = None, *, given: Mapping[str, FloatArray] | None = None
    ) -> dict[str, FloatArray]:
        """Draw n rows in the units of the densities, discrete nodes as level codes; columns by node.

        The inputs, in the same units, are `given`.
        """
        rng = generator(seed)
        levels = {variable.name: variable.levels for variable in self.variables if variable.is_discrete}
        columns: dict[str, FloatArray] = dict(given or {})
        for node in self.order:
            if node not in self._cpds:
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
        import pandas as pd

        if variable.is_discrete:
            return pd.Categorical.from_codes(values.astype(np.int64), pd.Index(variable.levels))
        return self.in_data_units(variable.name, values)

    def query(
        self,
        evidence: Mapping[str, Any] | None = None,
        *,
        do: Mapping[str, Any] | None = None,
        n: int = 2000,
        seed: Seed = 0,
        method: str = "auto",
    ) -> Posterior:
        """Return what is likely for all other variables, given what is known about some.

        Parameters
        ----------
        evidence
            By variable: a value, an interval ``(low, high)`` with None for an open end, or a set of levels.
        do
            Variables that are set by intervention, which says nothing about their causes: the arcs into them
            are cut.
        n
            How many draws to make.
        method
            "exact", "weighting", "smc", or "auto": exact where nodes are linear Gaussian, otherwise weighted
            forward samples, and tempered sequential Monte Carlo where few of them carry all the weight.
        """
        from spbn.inference import query

        return query(self, evidence, do=do, n=n, seed=seed, method=method)

    def predict(
        self, data: Any, targets: Sequence[str], *, statistic: str = "mean", seed: Seed = 0
    ) -> pd.DataFrame:
        """Predict columns, row by row, from the other columns of the data.

        Parameters
        ----------
        data
            A table; columns that it lacks and values that are missing are unknown, and so are the targets.
        targets
            The variables to predict.
        statistic
            "mean", "median" or "mode". A discrete variable is predicted by its most probable level.
        """
        from spbn.inference.batch import predict

        return predict(self, data, targets, statistic=statistic, seed=seed)

    def impute(self, data: Any, *, draws: int = 1, seed: Seed = 0) -> Any:
        """Fill holes with random draws, given the rest of the row.

        Returns a frame like the data, or with several `draws` a list of frames: each is filled differently,
        and their differences show how much is unknown.
        """
        from spbn.inference.batch import impute

        return impute(self, data, draws=draws, seed=seed)

    def compact(self, tolerance: float = 1e-6, *, others: str = "error") -> BayesianNetwork:
        """Return a network with the same densities, but without its training rows.

        The rows of CKDE and blend nodes with up to two continuous parents are replaced by tables, so that
        scoring a row takes the same time however many training rows there were, and the file is small. Only
        rows on the outskirts of the data are kept, rounded: see "Compact networks" in the documentation for
        what that means for privacy.

        Parameters
        ----------
        tolerance
            Largest error of the log-density of a node in any row, between 1e-6 and 0.01; relative for
            log-densities greater than 1 in absolute value.
        others
            Nodes that are too large for a table, because they have more parents or narrow kernels on many
            rows: "error", or "keep" them as they are, with their rows.

        Examples
        --------
        >>> import spbn
        >>> data = spbn.datasets.synthetic(2000, seed=0)
        >>> network = spbn.learn(data, max_parents=2)
        >>> small = network.compact()
        >>> bool(abs(small.logpdf(data) - network.logpdf(data)).max() < 1e-6)
        True
        """
        require_tolerance(tolerance)
        if others not in ("error", "keep"):
            raise ArgumentError(f"others must be 'error' or 'keep'. Got {others!r} instead.")
        cpds, refused = {}, []
        for node, cpd in self.cpds.items():
            try:
                cpds[node] = compact_cpd(cpd, tolerance)
            except FitError as error:
                cpds[node] = cpd
                refused.append(str(error))
        if refused and others == "error":
            raise FitError(
                f"some nodes cannot be made compact: {'; '.join(refused)}. Learn with max_parents=2, or pass "
                f"others='keep' to keep the rows of such nodes."
            )
        return BayesianNetwork(self.structure, cpds, margins=self.margins, record=self.record)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a ``.spbn`` file."""
        from spbn.io import model

        model.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> BayesianNetwork:
        """Read a ``.spbn`` file. Such a file holds only data: reading it runs no code."""
        from spbn.io import model

        return model.load(path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph; see `spbn.plots.plot_structure`."""
        from spbn.plots.plots import plot_structure

        return plot_structure(self, ax)

    def _repr_html_(self) -> str:
        """Show the graph and the densities in a notebook."""
        from spbn.report.notebooks import network_html

        return network_html(self)

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook, if the packages for that are installed."""
        try:
            from spbn.plots.pictures import to_svg

            return to_svg(self.structure)
        except ImportError:
            return None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BayesianNetwork)
            and self.structure == other.structure
            and self.margins == other.margins
            and all(self.cpds[node] == other.cpds[node] for node in self.nodes)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def __repr__(self) -> str:
        return f"BayesianNetwork({self.structure!r})"

    def __str__(self) -> str:
        return "\n".join(str(self.cpds[node]) for node in self.order if node in self._cpds)

    def _table(self, data: Any) -> Table:
        return as_table(data, variables=self.variables)

    def node_logpdf(self, node: str, data: Any) -> FloatArray:
        """Log-density of a node given its parents, for every row, in the units of the data."""
        family = (node, *self.structure.parents(node))
        table = as_table(data, variables=[v for v in self.variables if v.name in family])
        return self.cpds[node].logpdf(self.transformed(table)) + self.log_slopes(table, [node])[0]

    def contributions(self, table: Table) -> FloatArray:
        """Return what every node contributes to the log-density of every row: nodes × rows."""
        rows = self.transformed(table)
        with np.errstate(over="ignore"):  # the square of an absurd value
            by_node = np.stack([self.cpds[node].logpdf(rows) for node in self.nodes])
        return by_node + self.log_slopes(table, self.nodes)

    def transformed(self, table: Table) -> Table:
        """Return a table in the units of the densities: transformed by the margins, if there are any."""
        return table if self.margins is None else self.margins.transformed(table)

    def log_slopes(self, table: Table, nodes: Sequence[str]) -> FloatArray:
        """Return what the margins add to the log-densities of nodes: nodes × rows; 0 without margins."""
        if self.margins is None:
            return np.zeros((len(nodes), 1))
        return self.margins.log_slopes(table, nodes)

    def in_data_units(self, node: str, values: FloatArray) -> FloatArray:
        """Take the transform of a node's values back."""
        if self.margins is None or node not in self.margins.columns:
            return values
        return self.margins.columns[node].inverse(values)


# ----------------------------------------------------------------------------------------------------
# Whether the parts of a network go together: a structure, the densities of its nodes, and margins.


def variables_of(structure: Structure, cpds: Mapping[str, CPD]) -> tuple[Variable, ...]:
    """Return the nodes and, after them, the inputs that they need; refuse densities of something else."""
    unknown = [node for node in cpds if node not in structure.nodes]
    if unknown:
        raise GraphError(f"cpds names unknown nodes: {quoted(unknown)}.")
    for family in structure.families():
        if family.node not in cpds:
            raise GraphError(f"there is no density for node {family.node!r}.")
        _require_fit(family, cpds[family.node])
    nodes = tuple(cpds[node].type.variable_of(cpds[node]) for node in structure.nodes)
    variables = (*nodes, *_input_variables(structure, cpds))
    _require_levels(variables, cpds)
    return variables


def margins_of(
    structure: Structure, variables: Sequence[Variable], margins: Margins | None
) -> Margins | None:
    """Return the transforms of a network's continuous variables; refuse others."""
    continuous = {variable.name for variable in variables if not variable.is_discrete}
    if margins is not None and structure.inputs:
        margins = margins.only(continuous)  # no node may need an input that has one
    if margins is not None and set(margins.columns) != continuous:
        raise GraphError("margins must have a transform for every continuous node, and for no other.")
    return margins


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


def _input_variables(structure: Structure, cpds: Mapping[str, CPD]) -> list[Variable]:
    """Return the inputs that nodes need, with the levels that these know of."""
    levels = {
        variable.name: variable.levels
        for cpd in cpds.values()
        for variable in getattr(cpd, "variables", ())
        if variable.levels
    }
    return [Variable(name, levels.get(name, ())) for name in structure.used_inputs]


def _require_levels(variables: Sequence[Variable], cpds: Mapping[str, CPD]) -> None:
    """Refuse densities that do not agree on the levels of their parents."""
    known = {variable.name: variable for variable in variables}
    for variable in variables:
        if variable.name not in cpds:
            continue
        cpd = cpds[variable.name]
        parents = [known[parent] for parent in cpd.parents]
        given = {parent.name: parent for parent in getattr(cpd, "variables", ())}
        differ = [
            parent.name for parent in parents if given.get(parent.name, Variable(parent.name)) != parent
        ]
        if differ:
            raise GraphError(f"the density of {variable.name!r} has other levels of {quoted(differ)}.")
        if not cpd.type.admits(variable, parents):
            raise GraphError(refusal(cpd.type, variable, parents))
