"""CKDE: the conditional density that a kernel density estimate of node and parents implies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import FitError, ModelFileError, SpbnError
from spbn.kernels import estimates as bandwidths
from spbn.kernels.estimates import BandwidthRule
from spbn.nodes import compact
from spbn.nodes.base import Description, NodeType, ParameterTable, parent_columns
from spbn.nodes.compact import CompactCKDE, require_few_dimensions
from spbn.nodes.copies import agreeing
from spbn.nodes.kde import KDE
from spbn.nodes.regions import Region, require_interval
from spbn.nodes.scorers import KernelScorer, ScaledKernelScorer, best_scale
from spbn.numerics.gaussian import draw_between
from spbn.rows.store import FitSettings, RowStore
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table


@dataclass(frozen=True, repr=False)
class CKDE:
    """The conditional kernel density estimate of a node given its parents.

    f(x | pa) = f_H(x, pa) / f_H⁻(pa), where H⁻ is the block of H that belongs
    to the parents: a bandwidth chosen anew for them would give a function of x
    that does not integrate to one.

    Attributes
    ----------
    node, parents
        The family.
    joint
        The kernel density estimate of the parents and, last, the node.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> node = spbn.nodes.CKDE.fit(data, "C", ["A", "B"])
    >>> print(node)
    C | A, B ~ CKDE (200 rows)
    >>> node.logpdf(data).shape
    (200,)
    """

    node: str
    parents: tuple[str, ...]
    joint: KDE

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
        """The type of the node."""
        return NODE_TYPE

    @property
    def bandwidth(self) -> FloatArray:
        """The bandwidth matrix H, parents first and the node last."""
        return self.joint.bandwidth

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.joint.rows

    @property
    def kept_rows(self) -> Table:
        """The training rows: one kernel sits on each."""
        return Table(self.joint.names, self.joint.points)

    def scaled(self, factor: float) -> CKDE:
        """Return the same kernels with a multiple of the bandwidth matrix."""
        joint = KDE(self.joint.names, self.joint.points, factor * self.bandwidth, self.joint.engine)
        return CKDE(self.node, self.parents, joint)

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        """Return, for every row of parents and node (NaN is unknown), the kernels that agree with it."""
        return agreeing(self.joint.points, rows)

    def without(self, kernels: IntArray) -> CKDE:
        """Return the density without some of its kernels; with all of them if none would be left."""
        points = np.delete(self.joint.points, kernels, axis=1)
        if points.shape[1] == 0:
            return self
        return CKDE(self.node, self.parents, KDE(self.joint.names, points, self.bandwidth, self.joint.engine))

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        return self.logpdf_of(as_table(data, names=self.joint.names).columns)

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        return self.joint.prepared.conditional_log_density(columns)

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        return self.joint.prepared.conditional_cdf(as_table(data, names=self.joint.names).columns)

    def logpdf_and_cdf(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return log-density and P(X ≤ x | parents) of every row: quicker together."""
        columns = as_table(data, names=self.joint.names).columns
        return self.joint.prepared.conditional_density_and_cdf(columns)

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, one row for each.

        A training row is drawn with the weight of its kernel at the parents'
        values, then x from the normal distribution that this kernel gives it.
        """
        parents = parent_columns(self.node, self.parents, n, given)
        rng = generator(seed)
        uniforms, noise = rng.random(n), rng.standard_normal(n)
        if not self.parents:
            rows = (uniforms * self.rows).astype(np.int64)
        else:
            rows = self.joint.prepared.choose_rows(parents, uniforms)
        # The last row of the whitener standardises x - x_j given the parents: solve it for x.
        *slopes, precision = self.joint.whitener[-1]
        shift = np.asarray(slopes) @ (parents - self.joint.points[:-1, rows])
        return self.joint.points[-1, rows] + (noise - shift) / precision

    def within(
        self, region: Region, parents: Table, uniforms: FloatArray
    ) -> tuple[FloatArray, float, FloatArray]:
        """Choose a kernel for every row of the parents, weighted by what it has in an interval.

        Returns the mean of the child under that kernel, its standard deviation, and the log-probability of
        the interval.
        """
        interval, given = require_interval(region), parents.select(self.parents).columns
        prepared = self.joint.prepared
        rows, log_mass = prepared.choose_rows_between(given, interval.low, interval.high, uniforms)
        *slopes, precision = self.joint.whitener[-1]
        shift = np.asarray(slopes) @ (given - self.joint.points[:-1, rows])
        return self.joint.points[-1, rows] - shift / precision, 1.0 / precision, log_mass

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, however far out that is."""
        return self.within(region, parents, np.zeros(parents.rows))[2]

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        mean, deviation, _ = self.within(region, parents, rng.random(parents.rows))
        interval = require_interval(region)
        low, high = (interval.low - mean) / deviation, (interval.high - mean) / deviation
        drawn = mean + deviation * draw_between(low, high, rng.random(parents.rows))
        return np.clip(drawn, interval.low, interval.high)

    def describe(self) -> Description:
        """Say what the kernels describe, how many there are, and their bandwidth."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        names = self.joint.names
        matrix = tuple(tuple(row) for row in self.bandwidth.tolist())
        return Description(
            f"{self.node}{given} ~ CKDE ({self.rows} rows)",
            tables=(ParameterTable("bandwidth", names, names, matrix),),
        )

    def __repr__(self) -> str:
        return self.describe().formula


@final
class CKDEType(NodeType):
    """The node type of `CKDE`."""

    name = "ckde"
    label = "CKDE"
    short_label = "CKDE"
    sentence = "A conditional kernel density estimate (CKDE), free of any assumed shape."
    colour = "#c9ccd1"
    dark_colour = "#4b535c"

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> CKDE:
        """Place a kernel on every row."""
        return CKDE.fit(table, node, parents, bandwidth=settings.bandwidth, engine=settings.engine)

    def scorer(self, rows: RowStore) -> KernelScorer | ScaledKernelScorer:
        """Score from log-densities of sets of columns, which families share."""
        return ScaledKernelScorer(rows) if rows.settings.bandwidth == "cv" else KernelScorer(rows)

    def log_mass(self, cpd: CKDE | CompactCKDE, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, however far out that is."""
        return cpd.log_mass(region, parents)

    def draw_within(
        self, cpd: CKDE | CompactCKDE, region: Region, parents: Table, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        return cpd.draw_within(region, parents, rng)

    def compacted(self, cpd: CKDE | CompactCKDE, tolerance: float) -> CompactCKDE:
        """Replace the rows by tables."""
        if isinstance(cpd, CompactCKDE):
            return cpd
        require_few_dimensions(cpd.node, cpd.parents)
        made = CompactCKDE.of(cpd.node, cpd.parents, cpd.joint.prepared, tolerance)
        if made is None:
            raise FitError(f"the table of {cpd.node!r} would be too large: its rows are too far apart")
        return made

    def pooled(self, cpds: Sequence[CKDE]) -> CKDE:
        """Return the kernels of all, with their mean bandwidth: as wide as those of one table."""
        joint = KDE(
            cpds[0].joint.names,
            np.concatenate([cpd.joint.points for cpd in cpds], axis=1),
            np.mean([cpd.bandwidth for cpd in cpds], axis=0),
            cpds[0].joint.engine,
        )
        return CKDE(cpds[0].node, cpds[0].parents, joint)

    def write(self, cpd: CKDE | CompactCKDE, arrays: ArrayWriter) -> dict[str, Any]:
        """Write the bandwidth and the rows, or the tables."""
        if isinstance(cpd, CompactCKDE):
            return compact.write(cpd, arrays)
        return {
            "bandwidth": cpd.bandwidth.tolist(),
            "columns": [arrays.add(column) for column in cpd.joint.points],
        }

    def read(self, record: Mapping[str, Any], arrays: ArrayReader) -> CKDE | CompactCKDE:
        """Read the bandwidth and the rows, or the tables."""
        if "compact" in record:
            return compact.read(record, arrays)
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
