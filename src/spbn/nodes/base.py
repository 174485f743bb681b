"""What a node type is: how a node's density given its parents is modelled, fitted, scored, saved and shown.

A node type is one final, stateless object with a file of its own in this folder and a line in
`registry`. Code outside `nodes/` never checks which type it is dealing with: it asks the type.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from spbn._base.arrays import FloatArray, Seed, require_count
from spbn._base.files import ArrayReader, ArrayWriter
from spbn.errors import ArgumentError, argument, in_python
from spbn.nodes.regions import Region, invert_cdf, mass_by_cdf, require_interval
from spbn.nodes.scorers import FoldByFold
from spbn.rows.store import FitSettings, RowStore, Scorer
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable


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
    """A density in words and numbers, for terminal, report and notebook.

    Attributes
    ----------
    formula
        The density in one line.
    legend
        What the signs of the formula mean; empty if they need no explanation.
    tables
        Parameters that do not fit into the line.
    shares
        Names and shares of what it is a mixture of, which sum to one; empty if it is not a mixture.
    cases
        The density in each of several cases, by its name: one for every configuration of discrete parents.
    """

    formula: str
    legend: str = ""
    tables: tuple[ParameterTable, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    cases: Mapping[str, Description] = field(default_factory=dict)


class CPD(Protocol):
    """The density of a node given its parents: an immutable value."""

    @property
    def type(self) -> NodeType:
        """The type of the node."""

    @property
    def node(self) -> str:
        """The node."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Its parents, in the order of the parameters."""

    @property
    def kept_rows(self) -> Table | None:
        """The training rows that the density keeps, parents and node; None if it keeps none."""

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, one row for each."""

    def describe(self) -> Description:
        """Say what the density is."""


@runtime_checkable
class HasSteps(Protocol):
    """A density whose distribution function has steps: that of a discrete node."""

    def randomised_cdf(self, data: Any, uniforms: FloatArray) -> FloatArray:
        """Return a random point on the step of the distribution function at every row's value."""


@runtime_checkable
class HasBoth(Protocol):
    """A density that computes density and distribution function quicker together than one by one."""

    def logpdf_and_cdf(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return log-density and P(X ≤ x | parents) of every row."""


@runtime_checkable
class TakesColumns(Protocol):
    """A density that scores plain columns: rows that have been checked need no table."""

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node: variables × rows."""


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
    >>> print(spbn.NodeType.CKDE.label)
    CKDE
    >>> spbn.NodeType.parse("lg") is spbn.NodeType.LG
    True
    """

    LG: ClassVar[NodeType]  #: linear Gaussian: a linear regression with normal noise
    CKDE: ClassVar[NodeType]  #: conditional kernel density estimate
    BLEND: ClassVar[NodeType]  #: mixture of a linear Gaussian and of kernels at several scales
    DISCRETE: ClassVar[NodeType]  #: table of probabilities

    #: What it is called in files and arguments.
    name: ClassVar[str]
    #: ... in running text, and where there is little room.
    label: ClassVar[str]
    short_label: ClassVar[str]
    #: One sentence for people who have never heard of it.
    sentence: ClassVar[str]
    #: The fill of its nodes in pictures, on a light and on a dark background.
    colour: ClassVar[str]
    dark_colour: ClassVar[str]
    #: Name of the type that a report compares it with.
    alternative: ClassVar[str] = "lg"
    #: Whether a family is scored so quickly, however many rows there are, that no search needs an estimate.
    is_quick: ClassVar[bool] = False

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

    def variable_of(self, cpd: Any) -> Variable:
        """Return the variable whose density this is; a continuous one by default."""
        return Variable(cpd.node)

    @abstractmethod
    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> CPD:
        """Fit the density of a node given its parents; raise a `FitError` if these rows do not allow it."""

    def scorer(self, rows: RowStore) -> Scorer:
        """Return the scorer of families of this type; by default they are fitted fold by fold."""
        return FoldByFold(self, rows)

    def log_mass(self, cpd: Any, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in a region, for every row of its parents."""
        low, high = mass_by_cdf(cpd, require_interval(region), parents)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(high - low, 0.0))

    def draw_within(self, cpd: Any, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        """Draw a value within a region for every row of the parents."""
        interval = require_interval(region)
        low, high = mass_by_cdf(cpd, interval, parents)
        return invert_cdf(cpd, interval, parents, low + rng.random(parents.rows) * (high - low))

    def compacted(self, cpd: Any, tolerance: float) -> CPD:
        """Return a density without training rows, within a tolerance of this one in every log-density.

        By default the density itself: most keep no rows. Raises a `FitError` if there is none.
        """
        compact: CPD = cpd
        return compact

    def pooled(self, cpds: Sequence[Any]) -> CPD:
        """Return one density for several of the same family, fitted to different fillings of its holes.

        By default the first of them.
        """
        first: CPD = cpds[0]
        return first

    @abstractmethod
    def write(self, cpd: Any, arrays: ArrayWriter) -> dict[str, Any]:
        """Describe a density of this type as plain data, without its node, type and parents."""

    @abstractmethod
    def read(self, record: Mapping[str, Any], arrays: ArrayReader) -> CPD:
        """Read what `write` wrote, with node and parents; raise a `ModelFileError` if it makes no sense."""

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


def logpdf_of_columns(cpd: CPD) -> Callable[[FloatArray], FloatArray]:
    """Return a function that scores rows that have been checked: the parents and, last, the node."""
    if isinstance(cpd, TakesColumns):
        return cpd.logpdf_of
    names = (*cpd.parents, cpd.node)
    levels = {variable.name: variable.levels for variable in getattr(cpd, "variables", ()) if variable.levels}
    return partial(_through_table, cpd, names, levels)


def _through_table(
    cpd: CPD, names: tuple[str, ...], levels: Mapping[str, tuple[str, ...]], columns: FloatArray
) -> FloatArray:
    return cpd.logpdf(Table(names, columns, levels))


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


def parent_columns(node: str, parents: Sequence[str], n: int, given: Any) -> FloatArray:
    """Return the values of the parents, parents × n, or say what is wrong with them."""
    require_count(n)
    if not parents:
        return np.empty((0, n))
    if given is None:
        raise ArgumentError(f"{node!r} has parents: pass their values, given={{{parents[0]!r}: [...], ...}}.")
    table = as_table(given, names=parents, min_rows=0)
    if table.rows != n:
        raise ArgumentError(f"given must have one row for each of the {n} samples. Got {table.rows} rows.")
    return table.columns
