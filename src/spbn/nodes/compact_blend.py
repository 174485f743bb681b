"""Compact blend: a blend whose kernels have no rows any more; see `kernels.compact`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import FloatArray, Seed, frozen
from spbn._base.files import ArrayReader, refuse
from spbn.errors import FitError
from spbn.kernels.multiscale import SCALES
from spbn.nodes.base import Description, NodeType, ParameterTable
from spbn.nodes.compact import CompactCKDE
from spbn.nodes.compact import read as read_kernels
from spbn.nodes.linear_gaussian import NODE_TYPE as LG
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.nodes.mixtures import COMPONENTS, LEGEND, in_words, mixed_cdf, mixed_log_masses, mixed_sample
from spbn.nodes.regions import Region
from spbn.numerics.mixture_weights import mix_logs
from spbn.tables.reader import as_table
from spbn.tables.table import Table

if TYPE_CHECKING:
    from spbn.nodes.blend import Blend


@dataclass(frozen=True, repr=False)
class CompactBlend:
    """A blend whose kernels have no rows any more.

    Attributes
    ----------
    node, parents
        The family.
    parts
        The components that have a weight, by their number in `COMPONENTS`.
    mixture
        The weights of `COMPONENTS`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data[["A", "B"]], model="blend", patience=0)
    >>> type(network.compact().cpds["B"]).__name__
    'CompactBlend'
    """

    node: str
    parents: tuple[str, ...]
    parts: Mapping[int, CompactCKDE | LinearGaussian]
    mixture: tuple[float, ...]

    @classmethod
    def of(cls, blend: Blend, tolerance: float) -> CompactBlend:
        """Replace the rows of a blend's kernels by tables, one for each scale that has a weight."""
        parts: dict[int, CompactCKDE | LinearGaussian] = {}
        weighted = [k for k in blend.parts if k < len(SCALES)]
        if blend.kernels is not None and weighted:
            prepared, scales = blend.kernels.joint.prepared, [SCALES[k] for k in weighted]
            made = CompactCKDE.of_scales(blend.node, blend.parents, prepared, scales, tolerance)
            for k, part in zip(weighted, made, strict=True):
                if part is None:
                    raise FitError(f"the {COMPONENTS[k]} of {blend.node!r} would need too large a table")
                parts[k] = part
        parts |= {k: part for k, part in blend.parts.items() if isinstance(part, LinearGaussian)}
        return cls(blend.node, blend.parents, parts, blend.mixture)

    @property
    def type(self) -> NodeType:
        """The type of the node."""
        return NodeType.BLEND

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every component, by its name."""
        return dict(zip(COMPONENTS, self.mixture, strict=True))

    @property
    def outposts(self) -> int:
        """How many rows on the outskirts are still there, rounded, at the scale that keeps most of them.

        The scales share them, unless workers made the network: then each has its own.
        """
        return max(
            (part.outposts for part in self.parts.values() if isinstance(part, CompactCKDE)), default=0
        )

    @property
    def kept_rows(self) -> None:
        """The training rows are not kept."""
        return None

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        return self.logpdf_of(as_table(data, names=[*self.parents, self.node]).columns)

    def logpdf_of(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        columns, parts = frozen(columns), np.empty((len(self.parts), columns.shape[1]))
        for k, part in enumerate(self.parts.values()):
            parts[k] = part.logpdf_of(columns)
        out = np.empty(columns.shape[1])
        mix_logs(parts, self._weights, out)
        return out

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights of the parts."""
        return frozen(np.array([self.mixture[k] for k in self.parts]))

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
        """Return the weights, greatest first, and the bandwidth of the kernels at every scale."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        weights = ParameterTable("weight", COMPONENTS, ("weight",), tuple((w,) for w in self.mixture))
        tables = [
            replace(table, title=f"{table.title} of the {COMPONENTS[k]}")
            for k, part in self.parts.items()
            if isinstance(part, CompactCKDE)
            for table in part.describe().tables
        ]
        return Description(
            f"{self.node}{given} ~ {in_words(self.weights)} (compact)",
            legend=LEGEND,
            tables=(weights, *tables),
            shares=self.weights,
        )

    def __repr__(self) -> str:
        return self.describe().formula


def read(
    record: Mapping[str, Any], family: Mapping[str, Any], weights: FloatArray, arrays: ArrayReader
) -> CompactBlend:
    """Read the components of a compact blend."""
    node, written = family["node"], record["parts"]
    if not isinstance(written, list) or len(written) != len(COMPONENTS):
        refuse(f"{node!r} must have {len(COMPONENTS)} parts. Got {written!r:.200}.")
    parts: dict[int, CompactCKDE | LinearGaussian] = {}
    for k, (part, weight) in enumerate(zip(written, weights.tolist(), strict=True)):
        if (part is None) != (weight == 0.0) or not (part is None or isinstance(part, dict)):
            refuse(f"{node!r} must have a part for every weight that is not zero, and for no other.")
        if part is not None:
            full = {**part, **family}
            parts[k] = read_kernels(full, arrays) if k < len(SCALES) else LG.read(full, arrays)
    return CompactBlend(node, tuple(family["parents"]), parts, tuple(weights.tolist()))
