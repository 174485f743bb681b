"""What scores and fits ask of rows, wherever these are.

A `RowStore` is rows in groups: the folds of a cross-validation, or one group that is held out. Each group has
rows that parameters are fitted to and rows that they are evaluated at. A store answers with sums over rows,
for many families at a time, and a scorer that is written against it works on a table in memory
(`rows.memory`) as well as on rows that the workers of a cluster hold (`dask.rowstore`).

Values *by piece* are values of every evaluated row in memory, and of every group where rows are elsewhere;
their sum is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, final, runtime_checkable

import numpy as np

from spbn import kernels
from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.checks import at_least_0, whole
from spbn.errors import FitError
from spbn.kernels import estimates as bandwidths
from spbn.kernels.compressed import CompactKernels
from spbn.kernels.estimates import BandwidthRule
from spbn.numerics.moments import Moments, MomentStack
from spbn.numerics.spreads import Spreads
from spbn.rows.families import Configurations, FamilyBatch
from spbn.tables.table import Table, Variable

#: Columns, by number.
Columns = tuple[int, ...]


@dataclass(frozen=True)
class FitSettings:
    """What a fit depends on besides the data."""

    bandwidth: BandwidthRule = "scott"  # "scott", "silverman", or a function (see `spbn.kernels.estimates`)
    engine: str = "auto"  # how Gaussian sums are computed (see `spbn.kernels`)
    #: How many rows every configuration of a discrete node's parents gets on top of those that it has, spread
    #: evenly over the levels of the node; 0 gives the frequencies themselves.
    smoothing: float = 1.0
    #: On how many training rows kernels sit, at most; None if on all. For scores: networks have all of them.
    centres: int | None = None

    def __post_init__(self) -> None:
        bandwidths.require_rule(self.bandwidth)
        kernels.require_engine(self.engine)
        at_least_0("smoothing", self.smoothing)
        if self.centres is not None:
            whole("centres", self.centres, 2, or_none=True)


class Scorer(Protocol):
    """Log-likelihoods of families of one type on one store of rows: prepared once, asked many times."""

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × pieces, in the store's order; -inf throughout if one cannot be fitted."""


@runtime_checkable
class JudgingScorer(Scorer, Protocol):
    """Can tell from residuals how well families fit."""

    def totals_and_misfits(self, families: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Return log-likelihoods, and roughly how many nats a density of another type might gain."""


@runtime_checkable
class LeadingScorer(Scorer, Protocol):
    """Can tell from residuals which further parents might help."""

    def leads(self, families: FamilyBatch) -> FloatArray:
        """Families × columns: roughly how many nats each might gain as a parent; infinity if unknown."""


class ParametricScorer(Scorer, Protocol):
    """Scores densities whose parameters are found first: `function` needs the rows and those alone."""

    @property
    def function(self) -> Callable[..., FloatArray]:
        """Returns log-densities of rows (see `RowStore.values`)."""

    def parameters(self, families: Sequence[Columns]) -> Iterator[tuple[int, SumRequest]]:
        """Yield the numbers of families that can be fitted, and what `function` needs for them."""


class ScoredType(Protocol):
    """A node type, as far as rows have to know it."""

    @property
    def name(self) -> str:
        """What it is called."""

    def scorer(self, rows: RowStore) -> Scorer:
        """Return the scorer of families of this type."""


class KernelDensities(Protocol):
    """Log-densities of nodes given their parents under kernels, at one scale or several."""

    def conditional_totals(self, families: FamilyBatch) -> FloatArray:
        """Families × scales, of all evaluated rows together; -inf where one cannot be fitted."""

    def conditional_values(self, families: FamilyBatch) -> FloatArray:
        """Families × scales × pieces; -inf throughout where a scale cannot be fitted."""


class SumRequest(NamedTuple):
    """Columns whose rows a function gets, and its other arguments."""

    columns: Columns
    by_group: tuple[FloatArray, ...]  # arguments of every group, along the first axis
    shared: tuple[object, ...]  # those of all groups


class Mixtures(Protocol):
    """Mixtures of kernels at several scales and other densities, one for each of some families."""

    def best(self, usable: BoolArray | None = None) -> list[tuple[FloatArray, float]]:
        """Return the weights that make the evaluated rows most likely, and their log-likelihood.

        A component that cannot be fitted has the weight 0; without any the likelihood is -inf.

        `usable`: the components that may have a weight; all by default.
        """

    def values(self, weights: FloatArray) -> FloatArray:
        """Families × pieces, under known weights, families × components; -inf where there is nothing."""


class FamilyCounts(NamedTuple):
    """How often the levels of a discrete node occur with the configurations of its parents."""

    configurations: Configurations  # those of the parents that occur
    #: Groups × configurations × levels, of training rows and of evaluated rows.
    train: IntArray
    test: IntArray
    #: For every evaluated row, its place among configurations × levels; None where rows are elsewhere.
    cells: IntArray | None


class Part(NamedTuple):
    """Some rows, such as those of one configuration, and which pieces of the whole their pieces are."""

    rows: RowStore
    places: IntArray


@dataclass(frozen=True, eq=False)
class Division:
    """The rows of a store by the configuration of some discrete columns."""

    #: By the number of a configuration, its rows, if there are enough to fit something to.
    parts: Mapping[int, Part]
    starved: BoolArray  # which pieces none of these answers
    columns: BoolArray  # which columns of the store the parts have
    #: Makes a store in which some of the pieces are evaluated, fitted to the rows of all parts.
    rest: Callable[[BoolArray], RowStore]

    def families(self, batch: FamilyBatch) -> FamilyBatch:
        """Return families without discrete parents by the columns of the parts."""
        return batch.among(self.columns)


class RowStore(ABC):
    """Rows in groups, each to be evaluated under parameters that are fitted to other rows."""

    variables: tuple[Variable, ...]  # what the columns are
    settings: FitSettings  # what fits depend on besides the rows
    is_crossed: bool  # whether it is a cross-validation, so that what predicts its rows best is chosen fairly
    pieces: int  # how many values by piece there are
    #: Moments of the training rows and of the evaluated rows of every group.
    train: MomentStack
    test: MomentStack

    def __init__(self, settings: FitSettings | None = None) -> None:
        self.settings = FitSettings() if settings is None else settings
        self._scorers: dict[str, Scorer] = {}

    @final
    def scorer(self, node_type: ScoredType) -> Scorer:
        """Return the scorer of a type on these rows, always the same: it may remember what it finds."""
        if node_type.name not in self._scorers:
            self._scorers[node_type.name] = node_type.scorer(self)
        return self._scorers[node_type.name]

    @property
    def marked_by(self) -> Mapping[str, str]:
        """The columns with atoms, and those that mark these (see `spbn.transforms.Atoms`)."""
        return {}

    def beside_atoms(self, mark: str) -> Part:
        """Return the rows in which a column that has this mark has no atom, with all columns."""
        raise FitError(f"there are no atoms that {mark!r} marks.")

    @cached_property
    def discrete(self) -> BoolArray:
        """Tell which columns are discrete."""
        return np.array([variable.is_discrete for variable in self.variables], dtype=np.bool_)

    @property
    @abstractmethod
    def inner(self) -> RowStore | None:
        """A cross-validation of the training rows, for what is chosen by one: weights, scales.

        That is the store itself if it is a cross-validation; None if there is no such thing.
        """

    @property
    @abstractmethod
    def singles(self) -> Sequence[RowStore]:
        """A store for each of the groups alone."""

    @property
    @abstractmethod
    def densities(self) -> KernelDensities:
        """Kernels with the bandwidth of the settings."""

    @property
    @abstractmethod
    def scaled_densities(self) -> KernelDensities:
        """Kernels at all of `multiscale.SCALES`."""

    @abstractmethod
    def linear_totals(self, families: FamilyBatch) -> tuple[FloatArray, BoolArray]:
        """Return log-likelihoods under linear regressions, and where rows have to be looked at instead."""

    @abstractmethod
    def linear_values(self, columns: IntArray) -> FloatArray | None:
        """Return those of one family by piece: parents and, last, node; None where rows are needed."""

    @abstractmethod
    def counts(self, families: Sequence[Columns]) -> Iterator[tuple[Columns, FamilyCounts]]:
        """Yield different families of discrete columns, the node last, and their counts, in any order.

        Those whose counts do not fit into memory are left out.
        """

    @abstractmethod
    def mixtures(
        self, families: FamilyBatch, line: Scorer, others: Sequence[ParametricScorer]
    ) -> Iterator[tuple[list[int], Mixtures]]:
        """Yield the numbers of some families at a time, and their mixtures of kernels, a line and others."""

    @property
    @abstractmethod
    def held(self) -> RowStore:
        """The same rows with moments that no odd row decides: values far out count as the median."""

    @property
    @abstractmethod
    def spreads(self) -> Spreads:
        """Order statistics of all columns."""

    @abstractmethod
    def sums(self, function: Callable[..., FloatArray], requests: Sequence[SumRequest]) -> list[FloatArray]:
        """Return sums over the evaluated rows of every group, for each request: groups × ...

        `function`: takes columns × rows, the rows in groups, where groups begin and last where they end, and
        the arguments of the request; it returns sums over the rows of each group.
        """

    @abstractmethod
    def values(self, function: Callable[..., FloatArray], requests: Sequence[SumRequest]) -> list[FloatArray]:
        """Return, by piece, what such a function returns for every row."""

    @abstractmethod
    def sample(self, most: int) -> tuple[FloatArray, IntArray]:
        """Return all columns of about so many of the evaluated rows, or of all if there are fewer.

        The rows are in groups; also returns where these begin and, last, where they end.
        """

    @property
    def fitted_by(self) -> RowStore | None:
        """The cross-validation in which parameters of all folds are found from sums over its rows.

        That is `inner`, unless weights are to be chosen by fewer rows.
        """
        return self.inner

    @property
    @abstractmethod
    def inner_folds(self) -> Sequence[int] | None:
        """For every group, the fold of `fitted_by` whose training rows it has; -1 if it has all of its rows.

        None if groups have others.
        """

    @abstractmethod
    def split(self, sets: Sequence[Columns]) -> Iterator[tuple[Columns, Division]]:
        """Yield different sets of discrete columns and the rows by their configurations, in any order.

        Those with more configurations than fit into memory are left out.
        """

    @abstractmethod
    def fold_tables(self, names: Sequence[str], *, centred: bool = False) -> Iterator[tuple[Table, Table]]:
        """Yield the training rows and the evaluated rows of every group, with some of the columns.

        `centred`: subtract a centre from the columns, which saves digits if it makes no difference.
        """

    @abstractmethod
    def by_piece(self, by_group: Sequence[FloatArray]) -> FloatArray:
        """Return values by piece from those of the evaluated rows of every group."""

    @abstractmethod
    def in_data_order(self, pieces: FloatArray) -> FloatArray:
        """Put values by piece, last axis, into the order of the data."""


class TooLargeError(FitError):
    """No table of a density fits into memory."""


class RemoteRows(RowStore):
    """Rows that are not in the memory of this process: what fits get instead of a table."""

    @property
    @abstractmethod
    def held(self) -> RemoteRows: ...

    @property
    @abstractmethod
    def validation(self) -> RemoteRows:
        """The validation rows, under parameters fitted to all others."""

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """The moments of all rows."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.moments.count

    @abstractmethod
    def total_counts(self, columns: Columns) -> tuple[Configurations, IntArray]:
        """Return the configurations of a node's parents, and how often its levels occur with each."""

    @abstractmethod
    def compact_kernels(self, columns: Columns, scale: float) -> CompactKernels | None:
        """Make compact kernels of all rows, of parents and, last, a node; None if a bandwidth is singular.

        Raises a `TooLargeError` if their table does not fit into memory.

        `scale`: multiplies the bandwidth matrix.
        """

    @abstractmethod
    def table(self, names: Sequence[str]) -> Table:
        """Bring columns of all rows here."""

    @abstractmethod
    def by_configuration(self, columns: Columns) -> tuple[Configurations, Sequence[RemoteRows]]:
        """Return the configurations of some discrete columns that occur, and the rows of each."""

    @abstractmethod
    def refolded(self, folds: int) -> RemoteRows:
        """Return the same rows, all of them in one of so many folds."""

    @final
    def columns(self, names: Sequence[str]) -> Columns:
        """Return the numbers of columns."""
        every = [variable.name for variable in self.variables]
        return tuple(every.index(name) for name in names)
