"""CKDE: the conditional density that a kernel density estimate of node and parents implies.

Its kernels sit on the training rows, or are compact: tables and a few rows on the outskirts, which say the
same within a tolerance, and cost the same however many rows they were made of (`kernels.compressed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import FitError, ModelFileError, SpbnError, quoted
from spbn.kernels import estimates as bandwidths
from spbn.kernels.compressed import CompactKernels
from spbn.kernels.compression import compact_kernels
from spbn.kernels.estimates import BandwidthRule
from spbn.kernels.multiscale import SCALES
from spbn.kernels.spectral import DIMENSIONS, THRESHOLD
from spbn.kernels.spectral.coefficients import Coefficients
from spbn.nodes.base import CPD, Appearance, Description, NodeType, ParameterTable, Region, require_interval
from spbn.nodes.kde import KDE
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, RemoteRows, RowStore
from spbn.tables.reader import Missing, as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

MOST_ROWS = 1 << 53  # that can be counted in a double
GRAIN = 2.0**-30  # of outposts in files that do not say
SCALE_FOLDS = 10  # of the cross-validation that chooses a scale
FEWEST_TO_SCALE = 4  # rows, for that
AS_IT_IS = SCALES.index(1.0)  # the bandwidth of the rule


@final
@dataclass(frozen=True, repr=False)
class CKDE(CPD):
    """The conditional kernel density estimate of a node given its parents.

    f(x | pa) = f_H(x, pa) / f_H⁻(pa), where H⁻ is the block of H that belongs
    to the parents: a bandwidth chosen anew for them would give a function of x
    that does not integrate to one.

    Attributes
    ----------
    node, parents
        The family.
    kernels
        The kernels of the parents and, last, the node: a `KDE`, or without rows `CompactKernels`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> node = spbn.nodes.CKDE.fit(data, "C", ["A", "B"])
    >>> print(node)
    C | A, B ~ CKDE (200 rows)
    >>> node.logpdf(data).shape
    (200,)
    >>> print(spbn.nodes.CKDE.fit(data, "B").compact(1e-6))
    B ~ CKDE (200 rows, compact)
    """

    node: str
    parents: tuple[str, ...]
    kernels: KDE | CompactKernels

    @classmethod
    def fit(
        cls,
        data: Any,
        node: str,
        parents: Sequence[str] = (),
        *,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
    ) -> CKDE:
        """Place a kernel on every row."""
        settings = FitSettings(bandwidth, engine)
        table = as_table(data, names=[*parents, node], missing=missing, min_rows=2)
        matrix = bandwidths.family_matrix(settings.bandwidth, table.columns)
        if bandwidth == "cv":
            matrix = matrix * best_scale(table, settings)
        joint = KDE(table.names, table.columns, matrix, engine)
        joint.whitener  # noqa: B018 -- refuse a singular matrix now, not at the first use
        return cls(node, tuple(parents), joint)

    @property
    def type(self) -> NodeType:
        return NODE_TYPE

    @property
    def bandwidth(self) -> FloatArray:
        """The bandwidth matrix H, parents first and the node last."""
        return self.kernels.bandwidth

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.kernels.rows

    @property
    def outposts(self) -> int | None:
        """How many rows on the outskirts compact kernels have kept, rounded; None if kernels are on rows."""
        return self.kernels.outposts.shape[1] if isinstance(self.kernels, CompactKernels) else None

    @property
    def joint(self) -> KDE | None:
        """The kernel density estimate of the parents and, last, the node; None if kernels are compact."""
        return self.kernels if isinstance(self.kernels, KDE) else None

    @property
    def kept_rows(self) -> Table | None:
        """The training rows, one kernel sits on each; None if kernels are compact."""
        return None if self.joint is None else Table(self.joint.names, self.joint.points)

    def without(self, kernels: IntArray) -> CKDE:
        return self if self.joint is None else replace(self, kernels=self.joint.without(kernels))

    def nearest_line(self) -> LinearGaussian | None:
        """Return the line through the training rows; None if they are not kept, or there is none."""
        if self.joint is None:
            return None
        try:
            return LinearGaussian.fit(self.kept_rows, self.node, self.parents)
        except FitError:
            return None

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        return self.kernels.conditional_log_density(columns)

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        return self.kernels.conditional_cdf(columns)

    def logpdf_and_cdf(self, data: Any, uniforms: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return log-density and P(X ≤ x | parents) of every row: quicker together."""
        return self.kernels.conditional_density_and_cdf(as_table(data, variables=self.variables).columns)

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        return self.kernels.draw(parents, rng)

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        interval = require_interval(region)
        return self.kernels.log_mass(parents.select(self.parents).columns, interval.low, interval.high)

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        interval, given = require_interval(region), parents.select(self.parents).columns
        return self.kernels.draw_between(given, interval.low, interval.high, rng)

    def compact(self, tolerance: float) -> CKDE:
        if self.joint is None:
            return self
        require_few_dimensions(self.node, self.parents)
        made = compact_kernels(self.joint, tolerance)
        if made is None:
            raise FitError(f"the table of {self.node!r} would be too large: its rows are too far apart")
        return replace(self, kernels=made)

    def pool(self, others: Sequence[CKDE]) -> CKDE:
        """Return the kernels of all, with their mean bandwidth: as wide as those of one table."""
        found = [cpd.joint for cpd in (self, *others) if cpd.joint is not None]
        points = np.concatenate([joint.points for joint in found], axis=1)
        bandwidth = np.mean([joint.bandwidth for joint in found], axis=0)
        return replace(self, kernels=KDE(found[0].names, points, bandwidth, found[0].engine))

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return self.kernels.to_record(arrays)

    def describe(self) -> Description:
        """Say what the kernels describe, how many there are, and their bandwidth."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        names = (*self.parents, self.node)
        matrix = tuple(tuple(row) for row in self.bandwidth.tolist())
        tables = (ParameterTable("bandwidth", names, names, matrix),)
        if self.outposts is None:
            return Description(f"{self.node}{given} ~ CKDE ({self.rows} rows)", tables=tables)
        return Description(
            f"{self.node}{given} ~ CKDE ({self.rows} rows, compact)",
            legend=f"Of the rows of {self.node}, {self.outposts} on the outskirts are kept.",
            tables=tables,
        )


@final
class KernelScorer:
    """Scores CKDE families from densities of sets of columns that families share.

    Under a named bandwidth rule a CKDE needs two set functions (`rows.memory`): J(S), the
    log-density of the variables S with the bandwidth of |S| dimensions, and M(S), the same with
    that of |S| + 1 dimensions:

        score(i | Pa) = J(Pa ∪ {i}) - M(Pa).

    With "cv" each family has the scale of its bandwidth that predicts best. In a cross-validation that is the
    one with the best score; elsewhere, the one that a cross-validation of the training rows chooses
    (`RowStore.inner`).
    """

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._scaled = rows.settings.bandwidth == "cv"
        self._densities = rows.scaled_densities if self._scaled else rows.densities

    def totals(self, families: FamilyBatch) -> FloatArray:
        totals = self._densities.conditional_totals(families)
        is_best = self._scaled and self._rows.is_crossed
        chosen = _best_scales(totals) if is_best else self._chosen(families)
        return totals[np.arange(len(families)), chosen]

    def rows(self, families: FamilyBatch) -> FloatArray:
        values = self._densities.conditional_values(families)
        return values[np.arange(len(families)), self._chosen(families)]

    def _chosen(self, families: FamilyBatch) -> IntArray:
        """Return which scale every family has; that of the rule if there are too few rows to choose."""
        if not self._scaled:
            return np.zeros(len(families), dtype=np.int64)
        few = not self._rows.is_crossed and self._rows.train.counts.min() < FEWEST_TO_SCALE
        inner = None if few else self._rows.inner
        if inner is None:
            return np.full(len(families), AS_IT_IS)
        return _best_scales(inner.scaled_densities.conditional_totals(families))


def best_scale(table: Table, settings: FitSettings) -> float:
    """Return the scale of a family's bandwidth that predicts best; of parents and, last, the node."""
    if table.rows < FEWEST_TO_SCALE:
        return 1.0
    partition = Partition.folds(table, fold_labels(table.rows, min(SCALE_FOLDS, table.rows), 0))
    densities = MemoryRows(partition, settings).scaled_densities
    return SCALES[_best_scales(densities.conditional_totals(FamilyBatch.single(table.names)))[0]]


def _best_scales(totals: FloatArray) -> IntArray:
    """Return the scale with the greatest of families × scales; that of the rule where none can be fitted."""
    return np.where(np.isfinite(totals).any(axis=1), totals.argmax(axis=1), AS_IT_IS)


@final
class CKDEType(NodeType):
    """The node type of `CKDE`."""

    name = "ckde"
    appearance = Appearance(
        label="CKDE",
        short_label="CKDE",
        sentence="A conditional kernel density estimate (CKDE), free of any assumed shape.",
        colour="#c9ccd1",
        dark_colour="#4b535c",
    )
    most_remote_parents = DIMENSIONS - 1  # of a grid that fits into memory

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> CKDE:
        return CKDE.fit(table, node, parents, bandwidth=settings.bandwidth, engine=settings.engine)

    def fit_rows(self, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings) -> CKDE:
        return CKDE(node, tuple(parents), compact_kernels_of(rows, node, parents))

    def scorer(self, rows: RowStore) -> KernelScorer:
        """Score from log-densities of sets of columns, which families share."""
        return KernelScorer(rows)

    def from_record(self, record: Mapping[str, Any], arrays: ArrayReader) -> CKDE:
        if "compact" in record:
            return CKDE(*family_of(record), compact_kernels_from_record(record, arrays))
        node, parents = family_of(record)
        d = len(parents) + 1
        columns = arrays.columns(record, "columns", d)
        bandwidth = numbers(record, "bandwidth", (d, d))
        if not np.array_equal(bandwidth, bandwidth.T):
            refuse(f"the bandwidth matrix of {node!r} is not symmetric.")
        joint = KDE((*parents, node), np.stack(columns), bandwidth)
        try:
            joint.whitener  # noqa: B018 -- refuse a matrix that cannot be a bandwidth
        except SpbnError as error:
            raise ModelFileError(f"the bandwidth matrix of {node!r} is not positive definite.") from error
        return CKDE(node, parents, joint)


NODE_TYPE = CKDEType()


def require_few_dimensions(node: str, parents: tuple[str, ...]) -> None:
    """Refuse families of more variables than a table can have."""
    if len(parents) + 1 > DIMENSIONS:
        raise FitError(
            f"{node!r} has {len(parents)} continuous parents, and a table has room for {DIMENSIONS - 1}"
        )


def compact_kernels_from_record(record: Mapping[str, Any], arrays: ArrayReader) -> CompactKernels:
    """Read compact kernels, with node and parents."""
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
    joint = _table_from_record(document, "joint", d, rows, arrays)
    below = _table_from_record(document, "parents", d - 1, rows, arrays)
    if (below is None) != (joint is None or d == 1) or (
        joint is not None
        and below is not None
        and not (np.array_equal(joint.low[:-1], below.low) and np.array_equal(joint.high[:-1], below.high))
    ):
        refuse(f"the tables of {node!r} and of its parents must have the same box.")
    if outposts.shape[1] > rows or (joint is None and outposts.shape[1] < rows):
        refuse(f"{node!r} has {rows} rows and no table, or more outposts than rows: {outposts.shape[1]}.")
    return CompactKernels(centre[:, None], whitener, rows, joint, below, outposts, grain)


def _table_from_record(
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
        return Coefficients(low, high, rows, cutoff, values * step, step, threshold).reordered()
    except SpbnError as error:
        refuse(f"the table of {node!r} makes no sense: {error}")


def compact_kernels_of(
    rows: RemoteRows, node: str, parents: Sequence[str], scale: float = 1.0
) -> CompactKernels:
    """Make the compact kernels of a node from rows that are elsewhere.

    `scale`: multiplies the bandwidth matrix.
    """
    made = rows.compact_kernels(rows.columns((*parents, node)), scale)
    if made is None:
        raise FitError(
            f"the bandwidth matrix of {node!r} given {quoted(parents) or 'nothing'} is singular: its parents "
            f"are linearly dependent, or determine it. Remove one of them."
        )
    return made
