"""Densities of the features given the class: a network for every class, or one that the class is part of.

Classes may have very few rows, and columns that vary among all rows may be constant within a class. Such a
class or column has no network to be learned: it gets a normal density whose mean and variance are shrunk
towards those of all rows, as if there were one more row that stands for them. So every class has a density,
and a class without any rows has that of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import DataError, FitError
from spbn.fitting import fit_what_can_be
from spbn.graphs.dag import Arc
from spbn.learning.learn import learn
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.rows.store import FitSettings
from spbn.structure import Structure
from spbn.tables.frames import require_distinct
from spbn.tables.table import Table
from spbn.transforms import Margins, YeoJohnson
from spbn.transforms import fitted as fitted_margins

#: Fewest rows that a network is learned from, and fewest of them that differ from the most frequent value.
FEWEST_ROWS, FEWEST_DIFFERENT = 10, 5


@dataclass(frozen=True)
class Learning:
    """How networks are learned: the arguments of `spbn.learn`."""

    options: Mapping[str, Any]

    @property
    def margins(self) -> str:
        """The kind of margins."""
        return str(self.options["margins"])

    @property
    def fitting(self) -> FitSettings:
        """What is needed to fit a structure."""
        return FitSettings(*(self.options[name] for name in ("bandwidth", "engine", "smoothing")))

    def network(self, table: Table, **changes: Any) -> BayesianNetwork:
        """Learn from a table; with fewer rows than folds, every row is a fold of its own."""
        options = {**self.options, **changes}
        trained_on = table.rows - round(table.rows * options["validation"])
        options["folds"] = min(options["folds"], trained_on)
        with warnings.catch_warnings():
            # Arcs that cannot be fitted to all rows of a class: the network shows what is left.
            warnings.filterwarnings("ignore", message="the arc .* is left out", category=UserWarning)
            return learn(table, **options)


class ClassDensities(Protocol):
    """The densities of the features given each class, and how frequent the classes are."""

    @property
    def log_priors(self) -> FloatArray:
        """Logarithms of the probabilities of the classes."""

    @property
    def by_class(self) -> tuple[BayesianNetwork, ...]:
        """The network of every class; they may share one."""

    def contributions(self, table: Table) -> FloatArray:
        """Return what every feature contributes to the log-density: classes × features × rows."""

    def refitted(self, table: Table, labels: IntArray, learning: Learning) -> ClassDensities:
        """Return the same structures, fitted to other rows."""


@dataclass(frozen=True, eq=False)
class Multinet:
    """A network for every class."""

    by_class: tuple[BayesianNetwork, ...]
    log_priors: FloatArray

    @classmethod
    def learned(cls, table: Table, labels: IntArray, classes: int, learning: Learning) -> Multinet:
        """Learn every class's network from its rows."""
        return cls._of(table, labels, [None] * classes, learning)

    def contributions(self, table: Table) -> FloatArray:
        """Return what every feature contributes to the log-density: classes × features × rows."""
        return np.stack([network.contributions(table) for network in self.by_class])

    def refitted(self, table: Table, labels: IntArray, learning: Learning) -> Multinet:
        """Return the same structures, fitted to other rows."""
        return self._of(table, labels, [network.structure for network in self.by_class], learning)

    @classmethod
    def _of(
        cls,
        table: Table,
        labels: IntArray,
        structures: Sequence[Structure | None],
        learning: Learning,
    ) -> Multinet:
        margins = fitted_margins(learning.margins, table)
        networks = tuple(
            _class_network(table.take(np.flatnonzero(labels == label)), table, margins, structure, learning)
            for label, structure in enumerate(structures)
        )
        return cls(networks, log_priors(labels, len(structures), learning.fitting.smoothing))


@dataclass(frozen=True, eq=False)
class Augmented:
    """One network in which the class is a parent of every feature.

    Attributes
    ----------
    target
        The node of the class.
    """

    network: BayesianNetwork
    target: str

    @classmethod
    def learned(cls, table: Table, labels: IntArray, classes: int, learning: Learning) -> Augmented:
        """Learn one network from all rows."""
        target = "class"
        while target in table.names:
            target = f"{target}_"
        options, names = learning.options, list(table.names)
        limit = options["max_parents"]
        network = learning.network(
            _with_class(table, target, labels, classes),
            required_arcs=[*_among(names, options["required_arcs"]), *((target, name) for name in names)],
            forbidden_arcs=_among(names, options["forbidden_arcs"]),
            max_parents=None if limit is None else limit + 1,
        )
        return cls(network, target)

    @property
    def by_class(self) -> tuple[BayesianNetwork, ...]:
        """The one network, for every class."""
        return (self.network,) * self._classes

    @property
    def log_priors(self) -> FloatArray:
        """Logarithms of the probabilities of the classes."""
        every = Table(
            (self.target,), np.arange(self._classes, dtype=np.float64)[None], {self.target: self._levels}
        )
        return self.network.cpds[self.target].logpdf(every)

    def contributions(self, table: Table) -> FloatArray:
        """Return what every feature contributes to the log-density: classes × features × rows."""
        labels = np.empty(table.rows, dtype=np.int64)
        found = []
        for label in range(self._classes):
            labels[:] = label
            rows = _with_class(table, self.target, labels, self._classes)
            found.append(self.network.contributions(rows)[:-1])
        return np.stack(found)

    def refitted(self, table: Table, labels: IntArray, learning: Learning) -> Augmented:
        """Return the same structure, fitted to other rows."""
        rows = _with_class(table, self.target, labels, self._classes)
        network = _fitted(
            _only(self.network.structure, rows.names), rows, fitted_margins(learning.margins, rows), learning
        )
        return Augmented(network, self.target)

    @property
    def _levels(self) -> tuple[str, ...]:
        return self.network.variables[-1].levels

    @property
    def _classes(self) -> int:
        return len(self._levels)


STRUCTURES: dict[str, type[Multinet] | type[Augmented]] = {"multinet": Multinet, "augmented": Augmented}


def log_priors(labels: IntArray, classes: int, smoothing: float) -> FloatArray:
    """Return the logarithms of the classes' frequencies; `smoothing` rows are spread evenly over them."""
    counts = np.bincount(labels, minlength=classes)
    with np.errstate(divide="ignore"):  # without smoothing, a class that no row has is impossible
        return np.log((counts + smoothing / classes) / (len(labels) + smoothing))


def _with_class(table: Table, target: str, labels: IntArray, classes: int) -> Table:
    """Add the class as the last column."""
    levels = {**table.levels, target: tuple(map(str, range(classes)))}
    return Table((*table.names, target), np.vstack([table.columns, labels.astype(np.float64)]), levels)


def _class_network(
    table: Table, everything: Table, margins: Margins | None, structure: Structure | None, learning: Learning
) -> BayesianNetwork:
    """Learn the network of a class, or fit a structure to its rows.

    Parameters
    ----------
    table, everything
        The rows of the class, and those of all classes.
    margins
        Those of all rows, for columns without a network.
    """
    names = _learnable(table)
    if structure is not None:
        names = [name for name in names if name in structure.nodes]
    network = None
    if names:
        part = table.select(names)
        try:
            if structure is None:
                network = learning.network(
                    part,
                    required_arcs=_among(names, learning.options["required_arcs"]),
                    forbidden_arcs=_among(names, learning.options["forbidden_arcs"]),
                )
            else:
                network = _fitted(
                    _only(structure, names), part, fitted_margins(learning.margins, part), learning
                )
        except (DataError, FitError):  # what could not be foreseen: there are simpler densities
            pass
    return _completed(network, table, everything, margins, learning.fitting)


def _fitted(
    structure: Structure, table: Table, margins: Margins | None, learning: Learning
) -> BayesianNetwork:
    rows = table if margins is None else margins.transformed(table)
    structure, cpds, _ = fit_what_can_be(structure, rows, learning.fitting)
    return BayesianNetwork(structure, cpds, margins=margins)


def _only(structure: Structure, names: Sequence[str]) -> Structure:
    """Return the structure of some of the nodes."""
    return Structure(names, _among(names, structure.arcs), {name: structure.type(name) for name in names})


def _among(names: Sequence[str], arcs: Any) -> list[Arc]:
    return [(source, target) for source, target in arcs if source in names and target in names]


def _learnable(table: Table) -> list[str]:
    """Return the columns that vary enough for a network, without copies of others."""
    if table.rows < FEWEST_ROWS:
        return []
    return informative(table, FEWEST_DIFFERENT)


def informative(table: Table, fewest_different: int = 1) -> list[str]:
    """Return the columns in which some rows differ from the most frequent value, without copies of others."""
    names: list[str] = []
    for name in table.names:
        counts = np.unique(table.column(name), return_counts=True)[1]
        if table.rows - counts.max() < fewest_different:
            continue
        try:
            require_distinct(table.select([*names, name]))
        except DataError:
            continue
        names.append(name)
    return names


def _completed(
    network: BayesianNetwork | None,
    table: Table,
    everything: Table,
    margins: Margins | None,
    settings: FitSettings,
) -> BayesianNetwork:
    """Add the columns that a network lacks, each with a simple density and no parents."""
    if network is not None and network.nodes == table.names:
        return network
    cpds: dict[str, CPD] = {} if network is None else dict(network.cpds)
    arcs = () if network is None else network.structure.arcs
    transforms: dict[str, YeoJohnson] = {} if margins is None else dict(margins.columns)
    if network is not None and network.margins is not None:
        transforms |= network.margins.columns
    if margins is not None:
        margins = Margins(transforms)
        table, everything = margins.transformed(table), margins.transformed(everything)
    for name in table.names:
        if name not in cpds:
            cpds[name] = _simple(table.select([name]), everything.column(name), settings)
    structure = Structure(table.names, arcs, {name: cpds[name].type for name in table.names})
    return BayesianNetwork(structure, cpds, margins=margins)


def _simple(column: Table, everything: FloatArray, settings: FitSettings) -> CPD:
    """Fit a density to one column of few rows, with the help of all rows."""
    (name,), values = column.names, column.columns[0]
    if name in column.levels:
        return NodeType.DISCRETE.fit(column, name, (), settings)
    values = np.append(values, everything.mean())
    variance = values.var() + everything.var() / len(values)
    return LinearGaussian(name, (), float(values.mean()), (), float(variance))
