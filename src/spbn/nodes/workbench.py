"""A partition of rows, the settings of a fit, and what all scorers on it share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, remembered
from spbn.kernels.multiscale import SCALES
from spbn.nodes.base import FitSettings, NodeType, Scorer, registered
from spbn.nodes.by_configuration import FEWEST_ROWS
from spbn.nodes.configuration_scorer import ConfigurationScorer
from spbn.nodes.configurations import MOST_BITS, Configurations
from spbn.nodes.densities import KEPT_BYTES, SetDensities
from spbn.nodes.families import FamilyBatch
from spbn.nodes.partition import Partition
from spbn.numerics.regression import MomentStack

MOST_SETS = 64  # of discrete columns whose configurations are remembered
MOST_BYTES = 1 << 29  # that the rows of these may take, if there are more than two
MOST_QUESTIONS = 16  # choices of rows that are remembered
SHARE = 16  # a configuration may remember this part of what its rows would be due


class Part(NamedTuple):
    """Where the families of one configuration are scored, and which of all queries that answers."""

    bench: Workbench
    places: IntArray


class Parts(NamedTuple):
    """The rows of a partition by configuration of some discrete columns.

    Attributes
    ----------
    by_configuration
        By the number of a configuration, where it is scored, if it has rows for that.
    starved
        Which queries none of these answers.
    """

    by_configuration: Mapping[int, Part]
    starved: BoolArray


@final
class Workbench:
    """The place where families are scored: on rows that their parameters were not fitted to.

    A batch is grouped by type, and each type's scorer is asked once.
    """

    def __init__(
        self,
        partition: Partition,
        settings: FitSettings | None = None,
        *,
        inner: Callable[[], Workbench | None] = lambda: None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.partition = partition
        self.settings = FitSettings() if settings is None else settings
        self._inner = inner
        self._kept_bytes = kept_bytes
        self._scorers: dict[tuple[str, bool], Scorer] = {}
        self._configurations: OrderedDict[tuple[int, ...], tuple[Configurations, IntArray]] = OrderedDict()
        self._parts: OrderedDict[tuple[int, ...], Parts] = OrderedDict()
        self._asking: OrderedDict[bytes, Workbench] = OrderedDict()

    @cached_property
    def inner(self) -> Workbench:
        """A cross-validation of the training rows, for what is chosen by one: weights, scales.

        That is the bench itself if it is a cross-validation.
        """
        given = self._inner()
        if given is not None:
            return given
        partition = self.partition.inner
        return self if partition is self.partition else Workbench(partition, self.settings)

    @property
    def moments(self) -> MomentStack:
        """Moments of the training rows of every group."""
        return self.partition.train

    @cached_property
    def densities(self) -> SetDensities:
        """Log-densities of sets of columns."""
        bandwidth, engine = self.settings.bandwidth, self.settings.engine
        return SetDensities(self.partition, bandwidth, engine, kept_bytes=self._kept_bytes)

    @cached_property
    def scaled_densities(self) -> SetDensities:
        """The same at several scales."""
        bandwidth, engine = self.settings.bandwidth, self.settings.engine
        return SetDensities(self.partition, bandwidth, engine, scales=SCALES, kept_bytes=self._kept_bytes)

    def scorer(self, node_type: NodeType, *, by_configuration: bool = False) -> Scorer:
        """Return the scorer of a type, for families with or without discrete parents of continuous nodes."""
        key = (node_type.name, by_configuration)
        if key not in self._scorers:
            scorer = ConfigurationScorer(node_type, self) if by_configuration else node_type.scorer(self)
            self._scorers[key] = scorer
        return self._scorers[key]

    def configurations(self, columns: tuple[int, ...]) -> tuple[Configurations, IntArray]:
        """Return the configurations of some discrete columns, and the place of every row among them."""

        def found() -> tuple[Configurations, IntArray]:
            table = self.partition.table
            variables = [table.variables[i] for i in columns]
            return Configurations.in_columns(variables, table.columns[list(columns)])

        return remembered(self._configurations, columns, found, limit=self._most_sets)

    def parts(self, columns: tuple[int, ...]) -> Parts:
        """Return the benches of the configurations of some discrete columns."""
        return remembered(self._parts, columns, lambda: self._divided(columns), limit=self._most_sets)

    @property
    def _most_sets(self) -> int:
        """How many sets of discrete columns are remembered: fewer of large tables."""
        return min(MOST_SETS, max(2, MOST_BYTES // self.partition.table.columns.nbytes))

    def _divided(self, columns: tuple[int, ...]) -> Parts:
        table = self.partition.table
        configurations, places = self.configurations(columns)
        names = [variable.name for variable in table.variables if not variable.is_discrete]
        numbers = configurations.numbers.tolist()
        parts: dict[int, Part] = {}
        starved = np.ones(self.partition.queries, dtype=np.bool_)
        for place, below, queries in self.partition.divided(places, names, fewest=FEWEST_ROWS):
            number = numbers[place]
            due = self._kept_bytes * below.table.rows // (SHARE * table.rows)
            inner = partial(self._inner_part, columns, number)
            parts[number] = Part(Workbench(below, self.settings, inner=inner, kept_bytes=due), queries)
            starved[queries] = False
        return Parts(parts, starved)

    def _inner_part(self, columns: tuple[int, ...], number: int) -> Workbench | None:
        """Return the cross-validation of a configuration's training rows, if this bench is not one itself."""
        if self.inner is self:
            return None
        part = self.inner.parts(columns).by_configuration.get(number)
        return None if part is None else part.bench

    @cached_property
    def singles(self) -> tuple[Workbench, ...]:
        """A bench for each of the groups alone."""
        groups = range(self.partition.groups)
        return tuple(Workbench(self.partition.single(group), self.settings, kept_bytes=0) for group in groups)

    def asking(self, asked: BoolArray) -> Workbench:
        """Return a bench on which only some of the queries are answered."""

        def found() -> Workbench:
            return Workbench(
                self.partition.asking(asked), self.settings, inner=lambda: self.inner, kept_bytes=0
            )

        return remembered(self._asking, asked.tobytes(), found, limit=MOST_QUESTIONS)

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        out = np.full(len(families), -np.inf)
        for chosen, scorer in self._by_scorer(families):
            out[chosen] = scorer.totals(families.only(chosen))
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × evaluated rows, in the order of the data; -inf throughout where one cannot be fitted."""
        out = np.full((len(families), self.partition.queries), -np.inf)
        for chosen, scorer in self._by_scorer(families):
            out[chosen] = scorer.rows(families.only(chosen))
        return self.partition.in_data_order(out)

    def _by_scorer(self, families: FamilyBatch) -> Iterator[tuple[BoolArray, Scorer]]:
        """Yield families, and what scores them; those that their type does not admit are left out."""
        admitted, divided = self._admitted(families)
        for number in np.unique(families.types):
            for by_configuration in (False, True):
                chosen = (families.types == number) & admitted & (divided == by_configuration)
                if chosen.any():
                    yield chosen, self.scorer(registered()[number], by_configuration=by_configuration)

    def _admitted(self, families: FamilyBatch) -> tuple[BoolArray, BoolArray]:
        """Tell which families their types admit, and which have a continuous node with discrete parents."""
        table, types = self.partition.table, registered()
        variables = np.array([*table.variables, None], dtype=object)[:-1]
        divided = (families.parents & table.discrete).any(axis=1) & ~table.discrete[families.nodes]
        if table.levels:
            admitted = [
                types[number].admits(variables[node], variables[parents].tolist())
                for number, node, parents in zip(
                    families.types, families.nodes, families.parents, strict=True
                )
            ]
            levels = np.array([max(len(variable.levels), 1) for variable in table.variables])
            countable = families.parents @ np.log2(levels) < MOST_BITS
            return np.array(admitted, dtype=np.bool_) & countable, divided
        continuous = [types[number].admits(variables[0], ()) for number in range(len(types))]
        return np.array(continuous)[families.types], divided
