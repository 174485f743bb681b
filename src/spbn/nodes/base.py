"""What densities and node types are: how a node given its parents is modelled, fitted and scored.

A density (`CPD`) is an immutable value that answers everything about its node: log-densities, draws,
probabilities, its record in a file, its description. A node type (`NodeType`) is one final, stateless object
that makes such densities, from rows or from a file, and scores families (`Scorer`). Each type has a file of
its own in this folder and a line in `spbn.nodes`. Code outside `nodes/` never checks which density or type it
is dealing with: it asks.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed, generator, require_count
from spbn._base.files import ArrayReader, ArrayWriter
from spbn.errors import ArgumentError, FitError, KnowledgeError, argument, in_python, quoted
from spbn.graphs.dag import Arc
from spbn.numerics.roots import invert
from spbn.numerics.student import (
    Component,
    draw_mixture,
    draw_mixture_between,
    log_mass_of_mixture,
    mixture_cdf,
)
from spbn.rows.families import FamilyBatch
from spbn.rows.store import FitSettings, RemoteRows, RowStore, Scorer
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable

LEAST_TAIL = 1e-12  # probability beyond a value: beyond that, distribution functions are 0 or 1


@dataclass(frozen=True)
class ParameterTable:
    """Named rows of numbers, such as a bandwidth matrix.

    `of_probabilities` tells tables whose rows sum to one.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    of_probabilities: bool = False


@dataclass(frozen=True)
class Description:
    """A density in words and numbers, for terminal, report and notebook."""

    formula: str  # the density in one line
    legend: str = ""  # what the signs of the formula mean; empty if they need no explanation
    tables: tuple[ParameterTable, ...] = ()  # parameters that do not fit into the line
    #: Names and shares of what it is a mixture of, which sum to one; empty if it is not a mixture.
    shares: Mapping[str, float] = field(default_factory=dict)
    #: The density in each of several cases, by its name: one for every configuration of discrete parents.
    cases: Mapping[str, Description] = field(default_factory=dict)


@dataclass(frozen=True)
class Interval:
    """Values from `low` to `high`, either of which may be infinite."""

    low: float
    high: float

    def contains(self, values: FloatArray) -> BoolArray:
        """Tell which values are inside."""
        return (values >= self.low) & (values <= self.high)


@dataclass(frozen=True)
class Levels:
    """Some levels, by their places."""

    places: tuple[int, ...]

    def contains(self, values: FloatArray) -> BoolArray:
        """Tell which level codes are among them."""
        return np.isin(values, self.places)


Region = Interval | Levels


def require_interval(region: Region) -> Interval:
    """Refuse levels where the variable is continuous."""
    if not isinstance(region, Interval):
        raise ArgumentError(f"a continuous variable lies in an interval (low, high). Got {region!r}.")
    return region


class Linear(Protocol):
    """A linear function of the parents with normal noise, which is what a `LinearGaussian` is."""

    @property
    def node(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def coefficients(self) -> tuple[float, ...]: ...
    @property
    def variance(self) -> float: ...


class CPD(ABC):
    """The density of a node given its parents: an immutable value.

    A density of one's own has `node`, `parents` and the six abstract methods; everything else has a default
    that it may improve on. Columns of numbers are variables × rows, the parents in their order and, last, the
    node; discrete variables are given by the places of their levels.
    """

    #: The node.
    node: str
    #: Its parents, in the order of the parameters.
    parents: tuple[str, ...]

    @property
    @abstractmethod
    def type(self) -> NodeType:
        """The type of the node."""

    @abstractmethod
    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node; the rows have been checked."""

    @abstractmethod
    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """P(X ≤ x | parents) of every row of the parents and, last, the node."""

    @abstractmethod
    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value for every row of the parents, which are parents × rows."""

    @abstractmethod
    def describe(self) -> Description:
        """Say what the density is."""

    @abstractmethod
    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        """Describe the parameters as plain data, without node, type and parents."""

    @property
    def variable(self) -> Variable:
        """The node with its levels; by default it is continuous."""
        return Variable(self.node)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The parents and, last, the node; by default the parents are continuous."""
        return (*(Variable(parent) for parent in self.parents), self.variable)

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        return self.logpdf_of_columns(as_table(data, variables=self.variables).columns)

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        return self.cdf_of_columns(as_table(data, variables=self.variables).columns)

    def randomised_cdf(self, data: Any, uniforms: FloatArray) -> FloatArray:
        """Return P(X ≤ x | parents); where it has steps, a random point on the step at every row's value."""
        return self.cdf(data)

    def logpdf_and_cdf(self, data: Any, uniforms: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return log-density and P(X ≤ x | parents) of every row.

        If there are random numbers, they choose points on the steps, as in `randomised_cdf`.
        """
        table = as_table(data, variables=self.variables)
        return self.logpdf_of_columns(table.columns), self.cdf_of_columns(table.columns)

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, one row for each."""
        require_count(n)
        if not self.parents:
            return self.draw(np.empty((0, n)), generator(seed))
        if given is None:
            raise ArgumentError(
                f"{self.node!r} has parents: pass their values, given={{{self.parents[0]!r}: [...], ...}}."
            )
        table = as_table(given, variables=self.variables[:-1], min_rows=0)
        if table.rows != n:
            raise ArgumentError(
                f"given must have one row for each of the {n} samples. Got {table.rows} rows."
            )
        return self.draw(table.columns, generator(seed))

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in a region, for every row of its parents."""
        interval = require_interval(region)
        low, high = self._cdf_at(interval.low, parents), self._cdf_at(interval.high, parents)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(high - low, 0.0))

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        """Draw a value within a region for every row of the parents."""
        interval = require_interval(region)
        low, high = self._cdf_at(interval.low, parents), self._cdf_at(interval.high, parents)
        wanted = low + rng.random(parents.rows) * (high - low)
        return self._quantile(wanted, parents, interval)

    def to_noise(self, columns: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Return what every row of the parents and, last, the node owes to noise: numbers × rows.

        By default that is P(X ≤ x | parents). Where it has steps, uniforms choose points on them.
        """
        return np.clip(self.cdf_of_columns(np.ascontiguousarray(columns)), LEAST_TAIL, 1.0 - LEAST_TAIL)[None]

    def from_noise(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the values that some noise leads to, for parents × rows: the inverse of `to_noise`."""
        return self._quantile(noise[0], Table.of(self.variables[:-1], parents), Interval(-np.inf, np.inf))

    def _quantile(self, wanted: FloatArray, parents: Table, within: Interval) -> FloatArray:
        """Return where P(X ≤ x | parents) is what is wanted, for every row of the parents."""
        low = _finite_end(within.low, -1.0, lambda x: self._cdf_at(x, parents) > wanted, parents.rows)
        high = _finite_end(within.high, 1.0, lambda x: self._cdf_at(x, parents) < wanted, parents.rows)
        return invert(lambda x, rows: self._cdf_at(x, parents.take(rows)), wanted, low, high)

    def _cdf_at(self, value: float | FloatArray, parents: Table) -> FloatArray:
        """Return P(X ≤ value | parents) for every row of the parents."""
        values = np.broadcast_to(value, parents.rows)
        if np.isinf(values).all():
            return np.where(values > 0, 1.0, 0.0)
        table = Table((*parents.names, self.node), np.vstack([parents.columns, values]), parents.levels)
        return np.asarray(self.cdf(table))

    def compact(self, tolerance: float) -> CPD:
        """Return a density without training rows, within a tolerance of this one in every log-density.

        By default the density itself: most keep no rows. Raises a `FitError` if there is none.
        """
        return self

    def pool(self, others: Sequence[Any]) -> CPD:
        """Return one density for this and others of the same family, fitted to other fillings of its holes.

        By default this one.
        """
        return self

    def as_linear(self) -> Linear | None:
        """Return the same density as a `LinearGaussian`; None if it is none."""
        return None

    def nearest_line(self) -> Linear | None:
        """Return a `LinearGaussian` that is roughly this density, for proposals; None if there is none."""
        return self.as_linear()

    @property
    def curve_share(self) -> float:
        """How much of the density is noise around a curve of the parents: from 0 to 1, by default 0."""
        return 0.0

    def smooth_mean(self, parents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return that curve and the standard deviation of noise around it, for parents × rows.

        Only a density with a `curve_share` has one.
        """
        raise ArgumentError(f"the density of {self.node!r} has no curve.")

    @property
    def cases(self) -> tuple[CPD, ...]:
        """The densities under all configurations of discrete parents; itself if it has none."""
        return (self,)

    def case_places(self, parents: FloatArray) -> IntArray:
        """Return which of the `cases` every row of parents × rows has; -1 is the last."""
        return np.zeros(parents.shape[1], dtype=np.int64)

    @property
    def kept_rows(self) -> Table | None:
        """The training rows that the density keeps, parents and node; None if it keeps none."""
        return None

    @property
    def kernel_rows(self) -> int:
        """How many training rows have a kernel of their own."""
        return 0 if self.kept_rows is None else self.kept_rows.rows

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        """Return, for every row of parents and node (NaN is unknown), the kernels that agree with it.

        None for a row of which nothing is known, or if there are no kernels.
        """
        return [None] * rows.shape[1] if self.kept_rows is None else agreeing(self.kept_rows.columns, rows)

    def without(self, kernels: IntArray) -> CPD:
        """Return the density without some of its kernels; with all of them if none would be left."""
        return self

    def __repr__(self) -> str:
        return self.describe().formula


class ComponentMixture(ABC):
    """What follows for a density that is a mixture of normal and t distributions, whatever its parameters."""

    parents: tuple[str, ...]

    @abstractmethod
    def _components(self, parents: FloatArray) -> list[Component]:
        """Return what it is a mixture of, for every row of the parents."""

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        return mixture_cdf(self._components(columns[:-1]), columns[-1])

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        return draw_mixture(self._components(parents), rng)

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        interval, given = require_interval(region), parents.select(self.parents).columns
        return log_mass_of_mixture(self._components(given), interval.low, interval.high)

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        interval, given = require_interval(region), parents.select(self.parents).columns
        return draw_mixture_between(self._components(given), interval.low, interval.high, rng)


@dataclass(frozen=True)
class Appearance:
    """What people read and see of a node type."""

    #: What it is called in running text, and where there is little room.
    label: str
    short_label: str
    sentence: str  # one sentence for people who have never heard of it
    #: The fill of its nodes in pictures, on a light and on a dark background.
    colour: str
    dark_colour: str


class _Registered(ABCMeta):
    """Makes the class a collection of the registered types: ``for node_type in NodeType``."""

    def __iter__(cls) -> Iterator[NodeType]:
        return iter(registered())

    def __len__(cls) -> int:
        return len(_REGISTERED)

    def __contains__(cls, value: object) -> bool:
        return value in registered()


class NodeType(ABC, metaclass=_Registered):
    """A way to model the density of a node given its parents.

    `NodeType.LG` and `NodeType.CKDE` are the two from the paper. Wherever a type is expected, its
    name will do, and a type is equal to its name.

    Examples
    --------
    >>> import spbn
    >>> print(spbn.NodeType.CKDE.appearance.label)
    CKDE
    >>> spbn.NodeType.parse("lg") is spbn.NodeType.LG
    True
    """

    LG: ClassVar[NodeType]  #: linear Gaussian: a linear regression with normal noise
    CKDE: ClassVar[NodeType]  #: conditional kernel density estimate
    BLEND: ClassVar[NodeType]  #: mixture of kernels at several scales, a line, a curve and tails
    CURVE: ClassVar[NodeType]  #: smooth function of the parents with noise around it
    DISCRETE: ClassVar[NodeType]  #: table of probabilities

    #: What it is called in files and arguments.
    name: ClassVar[str]
    #: ... and what people read and see of it.
    appearance: ClassVar[Appearance]
    #: Name of the type that a report compares it with.
    alternative: ClassVar[str] = "lg"
    #: Whether a family is scored so quickly, however many rows there are, that no search needs an estimate.
    is_quick: ClassVar[bool] = False
    #: The maximum number of parents where rows are elsewhere; None if there is no limit.
    most_remote_parents: ClassVar[int | None] = None

    @staticmethod
    def parse(value: NodeType | str, given_as: str | None = None) -> NodeType:
        """Return a node type, given as itself or by name, perhaps as an argument that errors speak of."""
        if isinstance(value, NodeType):
            return value
        found = _REGISTERED.get(value) if isinstance(value, str) else None
        if found is None:
            known = [repr(name) for name in _REGISTERED]
            listed = " or ".join([", ".join(known[:-1]), known[-1]])
            what = in_python("a node type", argument(given_as)) if given_as else "a node type"
            raise ArgumentError(f"{what} must be {listed}. Got {value!r} instead.")
        return found

    def admits(self, child: Variable, parents: Sequence[Variable]) -> bool:
        """Tell whether a node of this type can have this variable and these parents.

        By default: a continuous variable with any parents. Discrete ones do not reach the type itself, which
        gets the rows of one configuration of them at a time (see `by_configuration`).
        """
        return not child.is_discrete

    @abstractmethod
    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> CPD:
        """Fit the density of a node given its parents; raise a `FitError` if these rows do not allow it."""

    def fit_weighted(
        self, table: Table, node: str, parents: Sequence[str], weights: FloatArray, settings: FitSettings
    ) -> CPD | None:
        """Fit the density that makes rows most likely, each as often as its weight says.

        By default None: the type has no use for weights, and rows have to be chosen by them.
        """
        return None

    def fit_rows(self, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings) -> CPD:
        """Fit a density to rows that are elsewhere; by default its columns are brought here.

        Types that can do with sums over rows override this.
        """
        return self.fit(rows.table([*parents, node]), node, parents, settings)

    def scorer(self, rows: RowStore) -> Scorer:
        """Return the scorer of families of this type; by default they are fitted fold by fold."""
        return FoldByFold(self, rows)

    @abstractmethod
    def from_record(self, record: Mapping[str, Any], arrays: ArrayReader) -> CPD:
        """Read what `CPD.to_record` wrote, with node and parents.

        Raises a `ModelFileError` if it makes no sense.
        """

    @property
    def value(self) -> str:
        """The name."""
        return self.name

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)

    def __repr__(self) -> str:
        return f"<NodeType {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return NodeType.parse, (self.name,)


_REGISTERED: dict[str, NodeType] = {}


def register(node_type: NodeType) -> NodeType:
    """Make a node type known to structures, scores, searches, files, pictures and reports.

    A type called "laplace" is then `NodeType.LAPLACE` as well.
    """
    if not isinstance(node_type, NodeType):
        raise ArgumentError(f"a node type is an object of a class derived from NodeType. Got {node_type!r}.")
    if not node_type.name.isidentifier():
        raise ArgumentError(f"the name of a node type must be a plain word. Got {node_type.name!r}.")
    known = _REGISTERED.setdefault(node_type.name, node_type)
    if type(known) is not type(node_type):
        raise ArgumentError(
            f"there is already a node type called {node_type.name!r}: choose a different name."
        )
    setattr(NodeType, known.name.upper(), known)
    return known


def registered() -> tuple[NodeType, ...]:
    """Return the node types in the order that breaks ties; arrays hold a type as its place here."""
    return tuple(_REGISTERED.values())


def place_of(node_type: NodeType) -> int:
    """Return the place of a type among those that are registered."""
    return list(_REGISTERED).index(node_type.name)


def refusal(node_type: NodeType, child: Variable, parents: Sequence[Variable]) -> str:
    """Say why a node cannot be of a type."""
    kind = "discrete" if child.is_discrete else "continuous"
    if not node_type.admits(child, ()):
        return f"{child.name!r} is {kind}, and cannot be of type {node_type}."
    wrong = quoted(parent.name for parent in parents if not node_type.admits(child, [parent]))
    return f"a {kind} node of type {node_type} cannot have these parents: {child.name!r} has {wrong}."


def impossible_arcs(variables: Sequence[Variable]) -> list[Arc]:
    """Return the arcs into a node that no registered type admits: those from numbers to levels."""
    if not any(variable.is_discrete for variable in variables):
        return []
    return [
        (parent.name, child.name)
        for child in variables
        for parent in variables
        if parent != child and not any(node_type.admits(child, [parent]) for node_type in NodeType)
    ]


def refuse_impossible(impossible: Collection[Arc], wanted: Iterable[Arc]) -> None:
    """Refuse arcs that no node type admits."""
    wrong = [arc for arc in wanted if tuple(arc) in impossible]
    if wrong:
        named = ", ".join(f"{source} → {target}" for source, target in wrong)
        raise KnowledgeError(f"no arc can go from a continuous to a discrete node. Got {named}: reverse it.")


@final
class FoldByFold:
    """Scores families of any type: they are fitted to the training rows of every group.

    Nothing is shared among them.

    `centred`: subtract the medians from the rows, which saves digits if it makes no difference to the type.
    """

    def __init__(self, node_type: NodeType, rows: RowStore, *, centred: bool = False) -> None:
        self._type = node_type
        self._rows = rows
        self._centred = centred

    def totals(self, families: FamilyBatch) -> FloatArray:
        return self.rows(families).sum(axis=1)

    def rows(self, families: FamilyBatch) -> FloatArray:
        rows = np.empty((len(families), self._rows.pieces))
        for number, members in enumerate(families.column_tuples):
            *parents, node = (families.columns[column] for column in members)
            rows[number] = self._family_rows(node, tuple(parents))
        return rows

    def _family_rows(self, node: str, parents: tuple[str, ...]) -> FloatArray:
        parts = []
        for train, test in self._rows.fold_tables((node, *parents), centred=self._centred):
            try:
                cpd = self._type.fit(train, node, parents, self._rows.settings)
            except FitError:
                return np.full(self._rows.pieces, -np.inf)
            parts.append(cpd.logpdf(test))
        rows = self._rows.by_piece(parts)
        return rows if np.isfinite(rows).all() else np.full(len(rows), -np.inf)


def _finite_end(end: float, sign: float, beyond: Callable[[FloatArray], BoolArray], rows: int) -> FloatArray:
    """Return the end of an interval for every row; a number that is far enough out if it is infinite."""
    if np.isfinite(end):
        return np.full(rows, end)
    out = np.full(rows, sign)
    while (short := beyond(out)).any() and np.abs(out).max() < 1e300:
        out = np.where(short, 4.0 * out, out)
    return out


def agreeing(points: FloatArray, rows: FloatArray) -> list[IntArray | None]:
    """Return, for every row, the points that have the same values wherever the row has one.

    Both are variables × rows. None for a row that has no values.
    """
    known = ~np.isnan(rows)
    out: list[IntArray | None] = [None] * rows.shape[1]
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if not pattern.any():
            continue
        places: dict[bytes, list[int]] = {}
        for place, point in enumerate(_keys(points[pattern])):
            places.setdefault(point, []).append(place)
        chosen = np.flatnonzero(which.ravel() == number)
        for row, key in zip(chosen.tolist(), _keys(rows[np.ix_(pattern, chosen)]), strict=True):
            out[row] = np.array(places.get(key, ()), dtype=np.int64)
    return out


def _keys(columns: FloatArray) -> list[bytes]:
    rows = np.ascontiguousarray(columns.T) + 0.0  # -0.0 and 0.0 are the same number
    return [row.tobytes() for row in rows]
