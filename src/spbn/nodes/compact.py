"""Compact CKDE: the conditional density of kernels whose rows are not kept.

It is a CKDE in all it says about a node, within a tolerance, and costs the same however many rows it was
made of; see `kernels.compact`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, Seed, generator
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import FitError, SpbnError
from spbn.kernels.compressed import CompactKernels, compact_scales
from spbn.kernels.spectral import DIMENSIONS, THRESHOLD
from spbn.kernels.spectral.coefficients import Coefficients
from spbn.kernels.whitened import PreparedKernels
from spbn.nodes.base import Description, NodeType, ParameterTable, parent_columns
from spbn.nodes.regions import Region, require_interval
from spbn.tables.reader import as_table
from spbn.tables.table import Table

MOST_ROWS = 1 << 53  # that can be counted in a double
GRAIN = 2.0**-30  # of outposts in files that do not say


@dataclass(frozen=True, repr=False)
class CompactCKDE:
    """The conditional kernel density estimate of a node given its parents, without the rows.

    Attributes
    ----------
    node, parents
        The family.
    kernels
        Tables of the kernels' sums, and the rows on the outskirts.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> small = network.compact()
    >>> print(small.cpds["B"])
    B ~ CKDE (200 rows, compact)
    """

    node: str
    parents: tuple[str, ...]
    kernels: CompactKernels

    @classmethod
    def of(
        cls, node: str, parents: tuple[str, ...], kernels: PreparedKernels, tolerance: float
    ) -> CompactCKDE | None:
        """Make kernels compact; None if their table would be too large."""
        return cls.of_scales(node, parents, kernels, [1.0], tolerance)[0]

    @classmethod
    def of_scales(
        cls,
        node: str,
        parents: tuple[str, ...],
        kernels: PreparedKernels,
        scales: Sequence[float],
        tolerance: float,
    ) -> list[CompactCKDE | None]:
        """Do the same for several multiples of the bandwidth matrix; the rows that are kept are shared."""
        made = compact_scales(kernels, [math.sqrt(scale) for scale in scales], tolerance)
        return [None if one is None else cls(node, parents, one) for one in made]

    @property
    def type(self) -> NodeType:
        """The type of the node."""
        return NodeType.CKDE

    @property
    def bandwidth(self) -> FloatArray:
        """The bandwidth matrix H, parents first and the node last."""
        lower = np.linalg.inv(self.kernels.whitener)
        return lower @ lower.T

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.kernels.rows

    @property
    def outposts(self) -> int:
        """How many rows on the outskirts are still there, rounded."""
        return self.kernels.outposts.shape[1]

    @property
    def kept_rows(self) -> None:
        """The training rows are not kept."""
        return None

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        return self.logpdf_of(self._columns(data))

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        return self.kernels.conditional_log_density(columns)

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        return self.kernels.conditional_cdf(self._columns(data))

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, one row for each."""
        parents = parent_columns(self.node, self.parents, n, given)
        return self.kernels.draw_between(parents, -np.inf, np.inf, generator(seed))

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, however far out that is."""
        interval = require_interval(region)
        return self.kernels.log_mass(parents.select(self.parents).columns, interval.low, interval.high)

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        interval = require_interval(region)
        given = parents.select(self.parents).columns
        return self.kernels.draw_between(given, interval.low, interval.high, rng)

    def describe(self) -> Description:
        """Say what the kernels describe, how many there were, and their bandwidth."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        names = (*self.parents, self.node)
        matrix = tuple(tuple(row) for row in self.bandwidth.tolist())
        return Description(
            f"{self.node}{given} ~ CKDE ({self.rows} rows, compact)",
            legend=f"Of the rows of {self.node}, {self.outposts} on the outskirts are kept.",
            tables=(ParameterTable("bandwidth", names, names, matrix),),
        )

    def __repr__(self) -> str:
        return self.describe().formula

    def _columns(self, data: Any) -> FloatArray:
        return as_table(data, names=[*self.parents, self.node]).columns


def require_few_dimensions(node: str, parents: tuple[str, ...]) -> None:
    """Refuse families of more variables than a table can have."""
    if len(parents) + 1 > DIMENSIONS:
        raise FitError(
            f"{node!r} has {len(parents)} continuous parents, and a table has room for {DIMENSIONS - 1}"
        )


def write(cpd: CompactCKDE, arrays: ArrayWriter) -> dict[str, Any]:
    """Describe a compact density as plain data."""
    kernels = cpd.kernels
    return {
        "compact": {
            "rows": kernels.rows,
            "centre": kernels.centre[:, 0].tolist(),
            "whitener": kernels.whitener.tolist(),
            "grain": kernels.grain,
            "outposts": [arrays.add_integers(column / kernels.grain) for column in kernels.outposts],
            "joint": _write_table(kernels.joint, arrays),
            "parents": _write_table(kernels.parents, arrays),
        }
    }


def read(record: Mapping[str, Any], arrays: ArrayReader) -> CompactCKDE:
    """Read what `write` wrote, with node and parents."""
    node, parents = family_of(record)
    found = record.get("compact")
    if not isinstance(found, dict):
        refuse(f"'compact' of {node!r} must be an object. Got {found!r:.200}.")
    document = {**found, "node": node}
    d = len(parents) + 1
    rows = document.get("rows")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        refuse(f"'rows' of {node!r} must be a number of rows. Got {rows!r:.100}.")
    centre, whitener = numbers(document, "centre", (d,)), numbers(document, "whitener", (d, d))
    if (np.diagonal(whitener) <= 0.0).any() or np.triu(whitener, 1).any():
        refuse(f"the whitener of {node!r} must be lower triangular, with a positive diagonal.")
    grain = float(numbers({"grain": GRAIN, **document}, "grain", ()))
    if not 0.0 < grain <= 1.0:
        refuse(f"the grain of {node!r} must be positive, and no greater than 1. Got {grain}.")
    outposts = grain * np.stack(arrays.columns(document, "outposts", d))
    joint = _read_table(document, "joint", d, rows, arrays)
    below = _read_table(document, "parents", d - 1, rows, arrays)
    if (below is None) != (joint is None or d == 1) or (
        joint is not None
        and below is not None
        and not (np.array_equal(joint.low[:-1], below.low) and np.array_equal(joint.high[:-1], below.high))
    ):
        refuse(f"the tables of {node!r} and of its parents must have the same box.")
    if outposts.shape[1] > rows or (joint is None and outposts.shape[1] < rows):
        refuse(f"{node!r} has {rows} rows and no table, or more outposts than rows: {outposts.shape[1]}.")
    kernels = CompactKernels(centre[:, None], whitener, rows, joint, below, outposts, grain)
    return CompactCKDE(node, parents, kernels)


def _write_table(table: Coefficients | None, arrays: ArrayWriter) -> dict[str, Any] | None:
    if table is None:
        return None
    return {
        "low": table.low.tolist(),
        "high": table.high.tolist(),
        "cutoff": table.cutoff,
        "step": table.step,
        "threshold": table.threshold,
        "coefficients": [arrays.add_integers(table.integers)],
    }


def _read_table(
    document: Mapping[str, Any], key: str, d: int, rows: int, arrays: ArrayReader
) -> Coefficients | None:
    entry, node = document.get(key), document.get("node")
    if entry is None:
        return None
    if not isinstance(entry, dict) or d == 0:
        refuse(f"{key!r} of {node!r} must be a table or null. Got {entry!r:.200}.")
    low, high = numbers(entry, "low", (d,)), numbers(entry, "high", (d,))
    cutoff, step = float(numbers(entry, "cutoff", ())), float(numbers(entry, "step", ()))
    if not (low <= high).all():
        refuse(f"the box of {node!r} ends before it begins.")
    threshold = float(numbers({"threshold": THRESHOLD * rows, **entry}, "threshold", ()))
    if not (step > 0.0 and threshold > 0.0):
        refuse(f"step and threshold of the table of {node!r} must be positive. Got {step} and {threshold}.")
    values = arrays.columns({**entry, "node": node}, "coefficients", 1)[0]
    try:
        return Coefficients.of_integers(low, high, rows, cutoff, step, threshold, values)
    except SpbnError as error:
        refuse(f"the table of {node!r} makes no sense: {error}")
