"""A Bayesian network: a structure, and a fitted density for every node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn import kernels
from spbn.bandwidth import BandwidthRule, require_rule
from spbn.cpds import CKDE, CPD, LinearGaussian
from spbn.data import (
    FloatArray,
    Missing,
    Seed,
    Table,
    as_table,
    frame_index,
    generator,
    quoted,
    require_variation,
)
from spbn.errors import ArgumentError, GraphError
from spbn.structure import Family, NodeType, Structure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class BayesianNetwork:
    """The joint density of some variables, as a product of one density a node given its parents.

    Parameters
    ----------
    structure
        The graph and the types of its nodes.
    cpds
        The fitted density of every node.
    search
        How the structure was found, if it was learned: a SearchResult or a PCResult.
    type_search
        How the node types were found, where PC had found the arcs: a SearchResult.
    """

    structure: Structure
    search: Any
    type_search: Any

    def __init__(
        self, structure: Structure, cpds: Mapping[str, CPD], *, search: Any = None, type_search: Any = None
    ) -> None:
        unknown = [node for node in cpds if node not in structure.nodes]
        if unknown:
            raise GraphError(f"cpds names nodes that the structure has not: {quoted(unknown)}.")
        for family in structure.families():
            if family.node not in cpds:
                raise GraphError(f"there is no density for node {family.node!r}.")
            _require_fit(family, cpds[family.node])
        self.structure = structure
        self.search = search
        self.type_search = type_search
        self._cpds = {node: cpds[node] for node in structure.nodes}

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
        missing: Missing = "error",
        engine: str = "auto",
        search: Any = None,
    ) -> BayesianNetwork:
        """Fit the density of every node to the data.

        Columns that are no nodes are not looked at.
        """
        if not isinstance(structure, Structure):
            raise ArgumentError(f"fit takes a Structure. Got {type(structure).__name__}.")
        require_rule(bandwidth)
        kernels.require_engine(engine)
        table = as_table(data, names=structure.nodes, missing=missing, min_rows=2)
        require_variation(table)
        cpds = {
            family.node: fit_cpd(table, family, bandwidth=bandwidth, engine=engine)
            for family in structure.families()
        }
        return cls(structure, cpds, search=search)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.structure.nodes

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of every row."""
        return self._by_node(self._table(data)).sum(axis=0)

    def loglik(self, data: Any) -> float:
        """Log-likelihood: the sum of the rows' log-densities."""
        return float(self.logpdf(data).sum())

    def logpdf_by_node(self, data: Any) -> pd.DataFrame:
        """Return what every node contributes to the log-density of every row, one column a node."""
        import pandas as pd

        by_node = self._by_node(self._table(data))
        return pd.DataFrame(dict(zip(self.nodes, by_node, strict=True)), index=frame_index(data))

    def sample(self, n: int, *, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows, every node after its parents."""
        import pandas as pd

        rng = generator(seed)
        columns: dict[str, FloatArray] = {}
        for node in self.structure.dag.topological_order():
            given = {parent: columns[parent] for parent in self.cpds[node].parents}
            columns[node] = self.cpds[node].sample(n, given=given, seed=rng)
        return pd.DataFrame({node: columns[node] for node in self.nodes})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a ``.spbn`` file."""
        from spbn import io

        io.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> BayesianNetwork:
        """Read a ``.spbn`` file. Such a file holds data only: reading it runs nothing."""
        from spbn import io

        return io.load(path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph; see `spbn.plots.plot_structure`."""
        from spbn.plots import plot_structure

        return plot_structure(self, ax)

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook, where the packages for that are installed."""
        try:
            from spbn.pictures import to_svg

            return to_svg(self.structure)
        except ImportError:
            return None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BayesianNetwork)
            and self.structure == other.structure
            and all(self.cpds[node] == other.cpds[node] for node in self.nodes)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def __repr__(self) -> str:
        return f"BayesianNetwork({self.structure!r})"

    def __str__(self) -> str:
        return "\n".join(str(self.cpds[node]) for node in self.structure.dag.topological_order())

    def _table(self, data: Any) -> Table:
        return as_table(data, names=self.nodes)

    def _by_node(self, table: Table) -> FloatArray:
        return np.stack([self.cpds[node].logpdf(table) for node in self.nodes])


def fit_cpd(table: Table, family: Family, *, bandwidth: BandwidthRule, engine: str) -> CPD:
    """Fit the density of one node."""
    if family.type is NodeType.LG:
        return LinearGaussian.fit(table, family.node, family.parents)
    return CKDE.fit(table, family.node, family.parents, bandwidth=bandwidth, engine=engine)


def _require_fit(family: Family, cpd: CPD) -> None:
    if not isinstance(cpd, LinearGaussian | CKDE):
        raise ArgumentError(
            f"the density of {family.node!r} must be a LinearGaussian or a CKDE. Got {cpd!r}."
        )
    node_type = NodeType.LG if isinstance(cpd, LinearGaussian) else NodeType.CKDE
    if (cpd.node, sorted(cpd.parents), node_type) != (family.node, sorted(family.parents), family.type):
        raise GraphError(
            f"the density given for {family.node!r} is that of {Family(cpd.node, cpd.parents, node_type)}, "
            f"but the structure says {family}."
        )
