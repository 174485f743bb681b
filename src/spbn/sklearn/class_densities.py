"""Densities of the features given the class, and how far to believe the odds that follow from them.

There is a network for every class, or one that the class is part of.
Classes may have very few rows, and columns that vary among all rows may be constant within a class. Such a
class or column has no network to be learned: it gets a normal density whose mean and variance are shrunk
towards those of all rows, as if there were one more row that stands for them. So every class has a density,
and a class without any rows has that of all rows.

Densities of many features multiply errors that are not independent, so that the odds between classes come
out too great. Two numbers, fitted to rows that the densities have not seen, set that right:

    P(class | row) = (1 - doubt) · softmax(log(P(class) f(row | class)) / temperature) + doubt · P(class).

All log-odds are divided by the temperature (Guo et al., "On calibration of modern neural networks", 2017).
The doubt is the share of rows that are unlike anything in training: their features say nothing, and the
frequency of the classes is all that is left. Without it a single such row, wrong by hundreds of nats, would
decide the temperature of all others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.errors import DataError, FitError
from spbn.fitting import fit_what_can_be
from spbn.graphs.dag import Arc
from spbn.learning.learn import learn_network
from spbn.learning.settings import LearnSettings
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.rows.store import FitSettings
from spbn.structure import Structure
from spbn.tables.table import Table, copied_columns
from spbn.transforms import Margins, YeoJohnson

#: Fewest rows that a network is learned from, and fewest of them that differ from the most frequent value.
FEWEST_ROWS, FEWEST_DIFFERENT = 10, 5

# Of the calibration.
LOG_TEMPERATURES = (math.log(0.05), math.log(1000.0))
LOG_ODDS_OF_DOUBT = (math.log(1e-9), 0.0)
#: What is assumed before any row is seen, so that a few rows that are all classified correctly do not call
#: for boundless confidence: the spread of the temperature's logarithm, and how many rows are in doubt.
PRIOR_SPREAD, ROWS_IN_DOUBT = 1.0, 1.0
STARTS = ((0.0, -3.0), (1.5, -3.0))
NEAR_BOTTOM = 1e-3  # of the parameters, from where the search for the least loss ends to its exact place
LEAST_LOG_ODDS = -1e300  # instead of -inf, for a class in which a row is impossible


@dataclass(frozen=True, eq=False)
class Multinet:
    """A network for every class."""

    by_class: tuple[BayesianNetwork, ...]
    log_priors: FloatArray

    @classmethod
    def learn(
        cls,
        table: Table,
        labels: IntArray,
        classes: int,
        settings: LearnSettings,
        structures: Sequence[Structure | None] = (),
    ) -> Multinet:
        """Learn every class's network from its rows, or fit its structure to them."""
        margins = settings.margins_plan.fit(table)
        rows = [table.take(np.flatnonzero(labels == label)) for label in range(classes)]
        networks = [
            _class_network(part, table, margins, structure, settings)
            for part, structure in zip(rows, structures or [None] * classes, strict=True)
        ]
        # `smoothing` rows are spread evenly over the classes.
        smoothing, counts = settings.fit_settings.smoothing, np.array([part.rows for part in rows])
        with np.errstate(divide="ignore"):  # without smoothing, a class that no row has is impossible
            log_priors = np.log((counts + smoothing / len(rows)) / (table.rows + smoothing))
        return cls(tuple(networks), log_priors)

    def contributions(self, table: Table) -> FloatArray:
        """Return what every feature contributes to the log-density: classes × features × rows."""
        return np.stack([network.contributions(table).T for network in self.by_class])

    def refit(self, table: Table, labels: IntArray, settings: LearnSettings) -> Multinet:
        """Return the same structures, fitted to other rows."""
        structures = [network.structure for network in self.by_class]
        return self.learn(table, labels, len(structures), settings, structures)


@dataclass(frozen=True, eq=False)
class Augmented:
    """One network in which the class is a parent of every feature."""

    network: BayesianNetwork
    target: str  # the node of the class

    @classmethod
    def learn(cls, table: Table, labels: IntArray, classes: int, settings: LearnSettings) -> Augmented:
        """Learn one network from all rows."""
        target = "class"
        while target in table.names:
            target = f"{target}_"
        names, limit = list(table.names), settings.max_parents
        own = _known_of(names, settings)
        own = own.replace(
            required_arcs=[*own.required_arcs, *((target, name) for name in names)],
            max_parents=None if limit is None else limit + 1,
        )
        return cls(_learn(_with_class(table, target, labels, classes), own), target)

    @property
    def by_class(self) -> tuple[BayesianNetwork, ...]:
        return (self.network,) * len(self._levels)

    @property
    def log_priors(self) -> FloatArray:
        every = np.arange(len(self._levels), dtype=np.float64)[None]
        return self.network.cpds[self.target].logpdf(
            Table((self.target,), every, {self.target: self._levels})
        )

    def contributions(self, table: Table) -> FloatArray:
        classes = len(self._levels)
        every = [_with_class(table, self.target, np.full(table.rows, k), classes) for k in range(classes)]
        return np.stack([self.network.contributions(rows).T[:-1] for rows in every])

    def refit(self, table: Table, labels: IntArray, settings: LearnSettings) -> Augmented:
        rows = _with_class(table, self.target, labels, len(self._levels))
        return Augmented(_refit(self.network.structure, rows, settings), self.target)

    @property
    def _levels(self) -> tuple[str, ...]:
        return self.network.variables[-1].levels


#: Densities of the features given each class, and how frequent the classes are.
ClassDensities = Multinet | Augmented
STRUCTURES: dict[str, type[Multinet] | type[Augmented]] = {"multinet": Multinet, "augmented": Augmented}


def _with_class(table: Table, target: str, labels: IntArray, classes: int) -> Table:
    """Add the class as the last column."""
    levels = {**table.levels, target: tuple(map(str, range(classes)))}
    return Table((*table.names, target), np.vstack([table.columns, labels.astype(np.float64)]), levels)


def _class_network(
    table: Table,
    everything: Table,
    margins: Margins | None,
    structure: Structure | None,
    settings: LearnSettings,
) -> BayesianNetwork:
    """Learn the network of a class from its rows, or fit a structure to them.

    Columns without a network have the margins of the rows of all classes.
    """
    names = informative(table, FEWEST_DIFFERENT) if table.rows >= FEWEST_ROWS else []
    if structure is not None:
        names = [name for name in names if name in structure.nodes]
    network = None
    if names:
        part = table.select(names)
        try:
            if structure is None:
                network = _learn(part, _known_of(names, settings))
            else:
                network = _refit(structure, part, settings)
        except (DataError, FitError):  # what could not be foreseen: there are simpler densities
            pass
    return _complete(network, table, everything, margins, settings.fit_settings)


def _learn(table: Table, settings: LearnSettings) -> BayesianNetwork:
    """Learn from a table; arcs that cannot be fitted to all of its rows are left out without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the arc .* is left out", category=UserWarning)
        return learn_network(table, settings_for(settings, table.rows))


def _refit(structure: Structure, table: Table, settings: LearnSettings) -> BayesianNetwork:
    """Fit the structure of those nodes that a table has."""
    margins = settings.margins_plan.fit(table)
    rows = table if margins is None else margins.transformed(table)
    types = {name: structure.type(name) for name in table.names}
    part = Structure(table.names, _among(table.names, structure.arcs), types)
    part, cpds, _ = fit_what_can_be(part, rows, settings.fit_settings)
    return BayesianNetwork(part, cpds, margins=margins)


def _among(names: Sequence[str], arcs: Any) -> list[Arc]:
    known = set(names)
    return [(source, target) for source, target in arcs if source in known and target in known]


def _known_of(names: Sequence[str], settings: LearnSettings) -> LearnSettings:
    """Return settings with the background knowledge of some columns alone."""
    return settings.replace(
        required_arcs=_among(names, settings.required_arcs),
        forbidden_arcs=_among(names, settings.forbidden_arcs),
        tiers=[[name for name in tier if name in names] for tier in settings.tiers],
    )


def informative(table: Table, fewest_different: int = 1) -> list[str]:
    """Return the columns in which some rows differ from the most frequent value, without copies of others."""
    frequent = [np.unique(column, return_counts=True)[1].max() for column in table.columns]
    varying = [
        n for n, most in zip(table.names, frequent, strict=True) if table.rows - most >= fewest_different
    ]
    copies: set[str] = set()
    for second, first, _ in copied_columns(table.select(varying)):
        if first not in copies:
            copies.add(second)
    return [name for name in varying if name not in copies]


def _complete(
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
    if network is not None:
        transforms = {name: move for name, move in transforms.items() if name not in network.nodes}
        transforms |= {} if network.margins is None else network.margins.columns
    margins = Margins(transforms).or_none
    if margins is not None:
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


@dataclass(frozen=True)
class Calibration:
    """How far the odds that follow from the densities are to be believed."""

    temperature: float = 1.0
    doubt: float = 0.0

    @classmethod
    def fit(cls, joint: FloatArray, log_priors: FloatArray, labels: IntArray) -> Calibration:
        """Return the calibration under which the classes of some rows are most likely.

        `joint` is log P(class) f(row | class), from densities that have not seen the row, and `log_priors` is
        log P(class): classes × rows. The labels are the numbers of the classes.
        """
        from scipy.optimize import minimize, root

        rows = np.arange(len(labels))
        bounds = (LOG_TEMPERATURES, LOG_ODDS_OF_DOUBT)
        lowest, highest = np.transpose(bounds)
        joint = np.maximum(_without_impossible(joint, log_priors), LEAST_LOG_ODDS)

        def loss(parameters: FloatArray) -> float:
            log_temperature, log_odds = parameters.tolist()
            found = cls._at(log_temperature, log_odds)
            likelihood = found.log_probabilities(joint, log_priors)[labels, rows].sum()
            prior = ROWS_IN_DOUBT * math.log(found.doubt) - 0.5 * (log_temperature / PRIOR_SPREAD) ** 2
            return -float(likelihood) - prior

        def slope(parameters: FloatArray) -> FloatArray:
            log_temperature, log_odds = np.clip(parameters, lowest, highest).tolist()
            found = cls._at(log_temperature, log_odds)
            certain = np.exp(cls(found.temperature).log_probabilities(joint, log_priors))
            doubted = np.exp(found.log_probabilities(joint, log_priors)[labels, rows])
            believed = (1.0 - found.doubt) * certain[labels, rows] / doubted
            surprise = (joint[labels, rows] - (certain * joint).sum(axis=0)) / found.temperature
            by_temperature = (believed * surprise).sum() + log_temperature / PRIOR_SPREAD**2
            changed = np.exp(log_priors[labels, rows]) - certain[labels, rows]
            by_doubt = (found.doubt * (changed / doubted).sum() + ROWS_IN_DOUBT) * (1.0 - found.doubt)
            return np.array([by_temperature, -by_doubt])

        # The loss may have two valleys: great doubt, or a high temperature.
        valleys = [minimize(loss, np.array(s), jac=slope, method="L-BFGS-B", bounds=bounds) for s in STARTS]
        best = min(valleys, key=lambda result: float(result.fun)).x
        # Minima are flat: where the slope is zero is known to more digits than where the loss is least.
        if ((best > lowest + NEAR_BOTTOM) & (best < highest - NEAR_BOTTOM)).all():
            bottom = root(slope, best)
            if bottom.success and np.abs(bottom.x - best).max() < NEAR_BOTTOM:
                best = bottom.x
        return cls._at(*best.tolist())

    @classmethod
    def _at(cls, log_temperature: float, log_odds_of_doubt: float) -> Calibration:
        return cls(math.exp(log_temperature), 1.0 / (1.0 + math.exp(-log_odds_of_doubt)))

    def log_probabilities(self, joint: FloatArray, log_priors: FloatArray) -> FloatArray:
        """Return log P(class | row) for log P(class) f(row | class): classes × rows."""
        from scipy.special import logsumexp

        joint = _without_impossible(joint, log_priors)
        tempered = joint / self.temperature
        found = tempered - logsumexp(tempered, axis=0)
        if self.doubt == 0.0:
            return np.asarray(found)
        return np.logaddexp(math.log1p(-self.doubt) + found, math.log(self.doubt) + log_priors)


def _without_impossible(joint: FloatArray, log_priors: FloatArray) -> FloatArray:
    """Let rows that are impossible in every class say nothing about their class."""
    joint = np.where(np.isfinite(joint.max(axis=0)), joint, log_priors)
    return joint - joint.max(axis=0)


def settings_for(settings: LearnSettings, rows: int) -> LearnSettings:
    """Return settings for so many rows: with fewer training rows than folds, every row is a fold."""
    folds, validation = settings.folds, 0.0 if settings.held_out is None else settings.held_out
    if not isinstance(folds, int) or not isinstance(validation, int | float):
        return settings
    return settings.replace(folds=min(folds, rows - round(rows * validation)))
