"""Blend: a mixture of a linear Gaussian and of kernels at four scales, weighted by what predicts best.

This is stacked density estimation (Smyth and Wolpert, 1999) inside a node:

    f(x | pa) = Σ_k w_k f_k(x | pa),

where the components f_k are the LG and the CKDE with the bandwidth c·H for c = 1/16, 1/4, 1 and 4. The
weights maximise the likelihood of rows that the components were not fitted to (`numerics.mixing`). A
CKDE has one scale and the tails of one Gaussian; a blend has narrow kernels where rows are dense, and
the tails of the LG far out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, relative_weights
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import FitError, quoted
from spbn.kernels.estimates import BandwidthRule
from spbn.kernels.multiscale import SCALES
from spbn.nodes import compact_blend
from spbn.nodes.base import Description, NodeType, ParameterTable
from spbn.nodes.ckde import CKDE
from spbn.nodes.ckde import NODE_TYPE as KERNELS
from spbn.nodes.compact import require_few_dimensions
from spbn.nodes.compact_blend import CompactBlend
from spbn.nodes.linear_gaussian import NODE_TYPE as LG
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.nodes.mixtures import (
    COMPONENTS,
    LEGEND,
    in_words,
    mixed_cdf,
    mixed_log_masses,
    mixed_sample,
)
from spbn.nodes.regions import Region
from spbn.nodes.scorers import FEWEST_TO_BLEND, BlendScorer
from spbn.numerics.mixture_weights import log_mixture
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, RowStore
from spbn.tables.reader import Missing, as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

FOLDS = 10


@dataclass(frozen=True, repr=False)
class Blend:
    """The density of a node as a mixture of a linear Gaussian and of kernels at several scales.

    Attributes
    ----------
    node, parents
        The family.
    line
        The linear Gaussian; None if it could not be fitted.
    kernels
        The kernels at scale 1; None if they could not be fitted.
    mixture
        The weights of `COMPONENTS`; 0 for what could not be fitted.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> node = spbn.learn(data[["A", "C"]], model="blend", patience=0).cpds["A"]
    >>> list(node.weights)
    ['very narrow kernels', 'narrow kernels', 'kernels', 'wide kernels', 'linear Gaussian']
    """

    node: str
    parents: tuple[str, ...]
    line: LinearGaussian | None
    kernels: CKDE | None
    mixture: tuple[float, ...]

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
        folds: int = FOLDS,
    ) -> Blend:
        """Fit the components to all rows, and their weights by cross-validation.

        With "cv" as with "scott" the scales are multiples of Scott's bandwidth: all of them are in the blend.
        """
        bandwidth = "scott" if isinstance(bandwidth, str) and bandwidth == "cv" else bandwidth
        settings = FitSettings(bandwidth, engine)
        table = as_table(data, names=[*parents, node], missing=missing)
        if table.rows < FEWEST_TO_BLEND:
            raise FitError(f"a blend needs at least {FEWEST_TO_BLEND} rows. {node!r} has {table.rows}.")
        partition = Partition.folds(table, fold_labels(table.rows, min(folds, table.rows), 0))
        family = FamilyBatch.single(table.names)
        weights = BlendScorer(NODE_TYPE, LG, MemoryRows(partition, settings)).weights(family)[0]
        line = _or_none(lambda: LinearGaussian.fit(table, node, parents))
        kernels = _or_none(lambda: CKDE.fit(table, node, parents, bandwidth=bandwidth, engine=engine))
        usable = np.array([kernels is not None] * len(SCALES) + [line is not None])
        weights = np.where(usable, weights, 0.0)
        if not weights.sum() > 0.0:
            raise FitError(
                f"neither a line nor kernels can be fitted to {node!r} given {quoted(parents) or 'nothing'}: "
                f"its parents are linearly dependent, or determine it. Remove one of them."
            )
        mixture = tuple((weights / weights.sum()).tolist())
        return cls(node, tuple(parents), line, kernels, mixture)

    @property
    def type(self) -> NodeType:
        """The type of the node."""
        return NODE_TYPE

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every component, by its name."""
        return dict(zip(COMPONENTS, self.mixture, strict=True))

    @property
    def rows(self) -> int | None:
        """Number of kernels."""
        return None if self.kernels is None else self.kernels.rows

    @property
    def kept_rows(self) -> Table | None:
        """The training rows: one kernel of every scale sits on each."""
        return None if self.kernels is None else self.kernels.kept_rows

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        """Return, for every row of parents and node (NaN is unknown), the kernels that agree with it."""
        return [None] * rows.shape[1] if self.kernels is None else self.kernels.kernels_on(rows)

    def without(self, kernels: IntArray) -> Blend:
        """Return the density without some of its kernels; with all of them if none would be left."""
        return self if self.kernels is None else replace(self, kernels=self.kernels.without(kernels))

    @cached_property
    def _scaled(self) -> dict[int, CKDE]:
        """The kernels of every scale that has a weight."""
        if self.kernels is None:
            return {}
        return {k: self.kernels.scaled(c) for k, c in enumerate(SCALES) if self.mixture[k] > 0.0}

    @cached_property
    def parts(self) -> dict[int, CKDE | LinearGaussian]:
        """The components that have a weight, by their number."""
        line = {} if self.line is None or self.mixture[-1] == 0.0 else {len(SCALES): self.line}
        return {**self._scaled, **line}

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        return self.logpdf_of(as_table(data, names=[*self.parents, self.node]).columns)

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        parts = np.full((len(COMPONENTS), columns.shape[1]), -np.inf)
        if self.kernels is not None:
            parts[:-1] = self.kernels.joint.prepared.conditional_log_density_by_scale(columns)
        if self.line is not None:
            parts[-1] = self.line.logpdf_of(columns)
        return log_mixture(parts, np.array(self.mixture))

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        return mixed_cdf(self, data)

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, one row for each."""
        return mixed_sample(self, n, given, seed)

    def log_masses(self, region: Region, parents: Table) -> FloatArray:
        """Return what every one of `parts` adds to the probability of a region, in logs: parts × rows."""
        return mixed_log_masses(self, region, parents)

    def describe(self) -> Description:
        """Return the weights, greatest first, and the bandwidth of the kernels."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        tables = () if self.kernels is None else self.kernels.describe().tables
        weights = ParameterTable("weight", COMPONENTS, ("weight",), tuple((w,) for w in self.mixture))
        return Description(
            f"{self.node}{given} ~ {in_words(self.weights)}",
            legend=LEGEND,
            tables=(weights, *tables),
            shares=self.weights,
        )

    def __repr__(self) -> str:
        return self.describe().formula


@final
class BlendType(NodeType):
    """The node type of `Blend`."""

    name = "blend"
    label = "blend"
    short_label = "Blend"
    sentence = "A mixture of a straight line and kernels at four scales, with the weights that predict best."
    colour = "#e4d9ee"
    dark_colour = "#4a3c58"
    alternative = "ckde"

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> Blend:
        """Fit the components, and their weights by cross-validation."""
        return Blend.fit(table, node, parents, bandwidth=settings.bandwidth, engine=settings.engine)

    def scorer(self, rows: RowStore) -> BlendScorer:
        """Score from log-densities of sets of columns at all scales, which families share."""
        return BlendScorer(self, LG, rows)

    def log_mass(self, cpd: Blend | CompactBlend, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, however far out that is."""
        mixed: FloatArray = np.logaddexp.reduce(cpd.log_masses(region, parents), axis=0)
        return mixed

    def draw_within(
        self, cpd: Blend | CompactBlend, region: Region, parents: Table, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        logs = cpd.log_masses(region, parents)
        bounds = np.cumsum(relative_weights(logs, axis=0), axis=0)
        chosen = (rng.random(parents.rows) * bounds[-1] >= bounds).sum(axis=0)
        out = np.empty(parents.rows)
        for k, part in enumerate(cpd.parts.values()):
            mine = np.flatnonzero(chosen == k)
            if len(mine):
                out[mine] = part.type.draw_within(part, region, parents.take(mine), rng)
        return out

    def compacted(self, cpd: Blend | CompactBlend, tolerance: float) -> CompactBlend:
        """Replace the rows of the kernels by tables."""
        if isinstance(cpd, CompactBlend):
            return cpd
        if cpd.kernels is not None:
            require_few_dimensions(cpd.node, cpd.parents)
        return CompactBlend.of(cpd, tolerance)

    def pooled(self, cpds: Sequence[Blend]) -> Blend:
        """Return the blend of the pooled components, with the mean of the weights."""
        lines = [cpd.line for cpd in cpds if cpd.line is not None]
        kernels = [cpd.kernels for cpd in cpds if cpd.kernels is not None]
        return replace(
            cpds[0],
            line=LG.pooled(lines) if lines else None,
            kernels=KERNELS.pooled(kernels) if kernels else None,
            mixture=tuple(np.mean([cpd.mixture for cpd in cpds], axis=0).tolist()),
        )

    def write(self, cpd: Blend | CompactBlend, arrays: ArrayWriter) -> dict[str, Any]:
        """Write the weights and the components."""
        if isinstance(cpd, CompactBlend):
            parts = [cpd.parts.get(k) for k in range(len(COMPONENTS))]
            written = [None if part is None else part.type.write(part, arrays) for part in parts]
            return {"weights": list(cpd.mixture), "parts": written}
        line = None if cpd.line is None else LG.write(cpd.line, arrays)
        kernels = None if cpd.kernels is None else KERNELS.write(cpd.kernels, arrays)
        return {"weights": list(cpd.mixture), "line": line, "kernels": kernels}

    def read(self, record: Mapping[str, Any], arrays: ArrayReader) -> Blend | CompactBlend:
        """Read the weights and the components."""
        node, parents = family_of(record)
        weights = numbers(record, "weights", (len(COMPONENTS),))
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-9:
            refuse(f"the weights of {node!r} must be positive and sum to 1. Got {weights.tolist()}.")
        family = {"node": node, "parents": list(parents)}
        if "parts" in record:
            return compact_blend.read(record, family, weights, arrays)
        parts: list[Any] = []
        for key, part_type in (("line", LG), ("kernels", KERNELS)):
            part = record.get(key)
            if part is not None and not isinstance(part, dict):
                refuse(f"{key!r} of {node!r} must be an object or null. Got {part!r:.200}.")
            parts.append(None if part is None else part_type.read({**part, **family}, arrays))
        line, kernels = parts
        if (line is None and weights[-1] > 0.0) or (kernels is None and weights[:-1].any()):
            refuse(f"{node!r} gives weight to a component that it lacks.")
        return Blend(node, parents, line, kernels, tuple(weights.tolist()))


NODE_TYPE = BlendType()


def _or_none(fit: Callable[[], Any]) -> Any:
    try:
        return fit()
    except FitError:
        return None
