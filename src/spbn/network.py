"""A Bayesian network: a structure, and a fitted density for every node."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn.errors import ArgumentError, FitError, GraphError, quoted
from spbn.graphs.dag import Arc
from spbn.kernels.bandwidth import BandwidthRule
from spbn.nodes.base import CPD, FitSettings, NodeType
from spbn.nodes.families import Family, FamilyBatch
from spbn.nodes.partition import Partition
from spbn.nodes.workbench import Workbench
from spbn.numerics.arrays import FloatArray
from spbn.numerics.random import Seed, generator
from spbn.record import Record, current_versions, plain_settings
from spbn.structure import Structure
from spbn.tables.frames import Missing, as_table, frame_index, require_variation
from spbn.tables.splits import fold_labels, holdout_rows
from spbn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Unusual values are compared with training rows: all, by cross-validation, or some if there are many.
FEW_ROWS, FOLDS, HELD_OUT = 2_000, 10, 500


class BayesianNetwork:
    """The joint density of some variables, as a product of the density of every node given its parents.

    Parameters
    ----------
    structure
        The graph and the types of its nodes.
    cpds
        The fitted density of every node.
    record
        How it was made. If nothing else is known, `search` and `type_search` can be given instead.
    """

    structure: Structure
    record: Record

    def __init__(
        self,
        structure: Structure,
        cpds: Mapping[str, CPD],
        *,
        record: Record | None = None,
        search: Any = None,
        type_search: Any = None,
    ) -> None:
        unknown = [node for node in cpds if node not in structure.nodes]
        if unknown:
            raise GraphError(f"cpds names unknown nodes: {quoted(unknown)}.")
        for family in structure.families():
            if family.node not in cpds:
                raise GraphError(f"there is no density for node {family.node!r}.")
            _require_fit(family, cpds[family.node])
        self.structure = structure
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
        missing: Missing = "error",
        engine: str = "auto",
        search: Any = None,
    ) -> BayesianNetwork:
        """Fit the density of every node to the data.

        Columns that are not nodes are ignored.
        """
        start = time.perf_counter()
        if not isinstance(structure, Structure):
            raise ArgumentError(f"fit takes a Structure. Got {type(structure).__name__}.")
        settings = FitSettings(bandwidth, engine)
        table = as_table(data, names=structure.nodes, missing=missing, min_rows=2)
        require_variation(table)
        cpds = {family.node: _fitted(table, family, settings) for family in structure.families()}
        record = Record(
            settings=plain_settings({"bandwidth": bandwidth, "missing": missing, "engine": engine}),
            versions=current_versions(),
            rows=table.rows,
            columns=table.names,
            data_hash=table.digest,
            typical=typical_logpdf(structure, table, settings),
            seconds=time.perf_counter() - start,
            search=search,
        )
        return cls(structure, cpds, record=record)

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
        """Return what every node contributes to the log-density of every row, one column per node."""
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
        from spbn.files import model

        model.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> BayesianNetwork:
        """Read a ``.spbn`` file. Such a file holds only data: reading it runs no code."""
        from spbn.files import model

        return model.load(path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph; see `spbn.plots.plot_structure`."""
        from spbn.drawing.plots import plot_structure

        return plot_structure(self, ax)

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook, if the packages for that are installed."""
        try:
            from spbn.drawing.pictures import to_svg

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


def fit_what_can_be(
    structure: Structure,
    table: Table,
    settings: FitSettings,
    *,
    required_arcs: Iterable[Arc] = (),
) -> tuple[Structure, dict[str, CPD], list[tuple[Arc, str]]]:
    """Fit every node, leaving out arcs with which it cannot be fitted.

    A search looks at parts of the rows, and PC at no densities at all, so columns may turn out to be
    collinear once all rows are used. Parents are then added one by one, required ones first, and those
    with which the node cannot be fitted are left out.

    Returns
    -------
    The remaining structure, its densities, and the arcs that were left out, each with the reason.
    """
    required = set(required_arcs)
    cpds: dict[str, CPD] = {}
    left_out: list[tuple[Arc, str]] = []
    for family in structure.families():
        try:
            cpds[family.node] = _fitted(table, family, settings)
            continue
        except FitError:
            pass
        kept: list[str] = []
        cpds[family.node] = _fitted(table, family._replace(parents=()), settings)
        for parent in sorted(family.parents, key=lambda name: (name, family.node) not in required):
            arc = (parent, family.node)
            parents = tuple(name for name in family.parents if name in {*kept, parent})
            try:
                cpds[family.node] = _fitted(table, family._replace(parents=parents), settings)
                kept.append(parent)
            except FitError as error:
                if arc in required:
                    raise FitError(
                        f"the required arc {parent} → {family.node} cannot be fitted: {error} "
                        f"Require fewer arcs, or leave out a column."
                    ) from None
                structure = structure.with_dag(structure.dag.without_arc(*arc))
                left_out.append((arc, str(error)))
    return structure, cpds, left_out


def typical_logpdf(structure: Structure, table: Table, settings: FitSettings) -> dict[str, float]:
    """Return the median log-density of every node over rows that its density was not fitted to.

    By cross-validation if there are few rows, otherwise on some held-out rows. Nodes that cannot be fitted
    to part of the rows are left out.
    """
    if table.rows <= FEW_ROWS:
        partition = Partition.folds(table, fold_labels(table.rows, min(FOLDS, table.rows), 0))
    else:
        kept, held_out = holdout_rows(table.rows, HELD_OUT / table.rows, 0)
        partition = Partition.holdout(table.take(kept), table.take(held_out))
    batch = FamilyBatch.named(table.names, structure.families())
    medians = np.median(Workbench(partition, settings).rows(batch), axis=1)
    return {node: float(m) for node, m in zip(structure.nodes, medians, strict=True) if np.isfinite(m)}


def _fitted(table: Table, family: Family, settings: FitSettings) -> CPD:
    return family.type.fit(table, family.node, family.parents, settings)


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
