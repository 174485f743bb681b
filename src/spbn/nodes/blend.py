"""Blend: a mixture of a linear Gaussian and of kernels at four scales, weighted by what predicts best.

This is stacked density estimation (Smyth and Wolpert, 1999) inside a node:

    f(x | pa) = Σ_k w_k f_k(x | pa),

where the components f_k are the LG and the CKDE with the bandwidth c·H for c = 1/16, 1/4, 1 and 4. The
weights maximise the likelihood of rows that the components were not fitted to (`numerics.mixing`). A
CKDE has one scale and the tails of one Gaussian; a blend has narrow kernels where rows are dense, and
the tails of the LG far out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn.errors import FitError, quoted
from spbn.kernels.bandwidth import BandwidthRule
from spbn.kernels.multiscale import SCALES
from spbn.nodes.arrays import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.nodes.base import Description, FitSettings, NodeType, ParameterTable, parent_columns
from spbn.nodes.ckde import CKDE, family_sets, kernel_rows
from spbn.nodes.ckde import NODE_TYPE as KERNELS
from spbn.nodes.compact import CompactCKDE, require_few_dimensions
from spbn.nodes.compact import read as read_kernels
from spbn.nodes.families import FamilyBatch
from spbn.nodes.linear_gaussian import NODE_TYPE as LG
from spbn.nodes.linear_gaussian import LinearGaussian, LinearScorer
from spbn.nodes.partition import Partition
from spbn.nodes.regions import Region
from spbn.nodes.workbench import Workbench
from spbn.numerics.arrays import FloatArray, IntArray, frozen
from spbn.numerics.mixing import mix_logs, mixing_weights
from spbn.numerics.random import Seed, generator
from spbn.tables.frames import Missing, as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

#: What the components are called: the kernels by scale, then the line.
COMPONENTS = ("very narrow kernels", "narrow kernels", "kernels", "wide kernels", "linear Gaussian")
FOLDS = 10
FEWEST_ROWS = 4
MOST_WEIGHTS = 1 << 18  # families whose weights are remembered
LARGEST_PART = 1 << 23  # log-densities that are held at a time: 64 MB


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
        if table.rows < FEWEST_ROWS:
            raise FitError(f"a blend needs at least {FEWEST_ROWS} rows. {node!r} has {table.rows}.")
        partition = Partition.folds(table, fold_labels(table.rows, min(folds, table.rows), 0))
        family = FamilyBatch.named(table.names, [(node, parents, NODE_TYPE)])
        weights = BlendScorer(Workbench(partition, settings)).weights(family)[0]
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
            legend="A blend mixes kernels of several widths and a line, with the weights that predict best.",
            tables=(weights, *tables),
            shares=self.weights,
        )

    def __repr__(self) -> str:
        return self.describe().formula


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
        return NODE_TYPE

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
            legend="A blend mixes kernels of several widths and a line, with the weights that predict best.",
            tables=(weights, *tables),
            shares=self.weights,
        )

    def __repr__(self) -> str:
        return self.describe().formula


def mixed_cdf(cpd: Blend | CompactBlend, data: Any) -> FloatArray:
    """Return P(X ≤ x | parents) under a mixture, for every row."""
    table = as_table(data, names=[*cpd.parents, cpd.node])
    total = np.zeros(table.rows)
    for k, part in cpd.parts.items():
        total += cpd.mixture[k] * part.cdf(table)
    return total


def mixed_sample(cpd: Blend | CompactBlend, n: int, given: Any, seed: Seed) -> FloatArray:
    """Draw n values from a mixture: a component by its weight, then a value from it."""
    parents = parent_columns(cpd.node, cpd.parents, n, given)
    rng = generator(seed)
    chosen = rng.choice(len(COMPONENTS), size=n, p=cpd.mixture)
    out = np.empty(n)
    for k, source in cpd.parts.items():
        mine = np.flatnonzero(chosen == k)
        if len(mine):
            values = {name: parents[i, mine] for i, name in enumerate(cpd.parents)}
            out[mine] = source.sample(len(mine), given=values or None, seed=rng)
    return out


def mixed_log_masses(cpd: Blend | CompactBlend, region: Region, parents: Table) -> FloatArray:
    """Return what every part of a mixture adds to the probability of a region, in logs: parts × rows."""
    masses = np.stack([part.type.log_mass(part, region, parents) for part in cpd.parts.values()])
    weights: FloatArray = np.log([cpd.mixture[k] for k in cpd.parts])[:, None]
    return masses + weights


def in_words(weights: Mapping[str, float]) -> str:
    """Write weights as people say them: "61 % narrow kernels, 35 % kernels, 4 % linear Gaussian"."""
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    shown = [f"{100 * weight:.0f} % {name}" for name, weight in ordered if weight >= 0.005]
    return ", ".join(shown)


def log_mixture(log_densities: FloatArray, weights: FloatArray) -> FloatArray:
    """Return log Σ_k w_k f_k for components × rows."""
    out = np.empty(log_densities.shape[1])
    mix_logs(np.ascontiguousarray(log_densities), frozen(weights), out)
    return out


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

    def scorer(self, bench: Workbench) -> BlendScorer:
        """Score from log-densities of sets of columns at all scales, which families share."""
        return BlendScorer(bench)

    def log_mass(self, cpd: Blend | CompactBlend, region: Region, parents: Table) -> FloatArray:
        """Return the log-probability that the node is in an interval, however far out that is."""
        mixed: FloatArray = np.logaddexp.reduce(cpd.log_masses(region, parents), axis=0)
        return mixed

    def draw_within(
        self, cpd: Blend | CompactBlend, region: Region, parents: Table, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value in an interval for every row of the parents."""
        logs = cpd.log_masses(region, parents)
        weights = np.exp(logs - np.maximum(logs.max(axis=0), -1e300))
        bounds = np.cumsum(weights, axis=0)
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
            return _read_compact(record, family, weights, arrays)
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


def _read_compact(
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


NODE_TYPE = BlendType()


@final
class BlendScorer:
    """Scores blend families: components from shared densities, weights by `mixing_weights`.

    In a cross-validation, the weights of a family are fitted to the same rows that are scored, each under
    components that were not fitted to it: four numbers, beside which the rows are many. Elsewhere they
    come from a cross-validation of the training rows (`Workbench.inner`).
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._line = LinearScorer(LG, bench)
        self._weights: dict[bytes, FloatArray] = {}

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of every family; -inf where one cannot be fitted."""
        if not self._bench.partition.is_crossed:
            return self.rows(families).sum(axis=1)
        out = np.empty(len(families))
        for part, components in self._components(families):
            for f, parts in zip(part, components, strict=True):
                weights, out[f] = mixing_weights(parts)
                self._remember(families.keys[f], weights)
        return out

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × queried rows; a family that cannot be fitted is -inf throughout."""
        partition = self._bench.partition
        out = np.full((len(families), partition.queries), -np.inf)
        if not partition.is_crossed and partition.train.counts.min() < FEWEST_ROWS:
            return out
        weights = self._bench.inner.scorer(NODE_TYPE).weights(families)  # type: ignore[attr-defined]
        for part, components in self._components(families):
            for f, parts in zip(part, components, strict=True):
                usable = np.isfinite(parts).all(axis=1)
                mixture = np.where(usable, weights[f], 0.0)
                if mixture.sum() > 0.0:
                    out[f] = log_mixture(parts, mixture / mixture.sum())
        return out

    def weights(self, families: FamilyBatch) -> FloatArray:
        """Families × components: the weights that predict the queried rows best; 0 if none can be fitted."""
        unknown = np.array([key not in self._weights for key in families.keys])
        if unknown.any():
            self.totals(families.only(unknown))
        return np.stack([self._weights[key] for key in families.keys])

    def _remember(self, key: bytes, weights: FloatArray) -> None:
        self._weights[key] = weights
        if len(self._weights) > MOST_WEIGHTS:
            self._weights.pop(next(iter(self._weights)))

    def _components(self, families: FamilyBatch) -> Iterator[tuple[list[int], FloatArray]]:
        """Yield families, some at a time, and their log-densities: families × components × queried rows.

        Families of the same variables follow one another, because the rows that they share are not
        kept for long if there are very many.
        """
        bench, (joints, _) = self._bench, family_sets(families)
        order = sorted(range(len(families)), key=joints.__getitem__)
        queries = bench.partition.queries
        at_a_time = max(1, LARGEST_PART // (len(COMPONENTS) * queries))
        for start in range(0, len(families), at_a_time):
            part = order[start : start + at_a_time]
            batch = families.only(np.array(part))
            kernels = kernel_rows(bench, bench.scaled_densities, batch)
            yield part, np.concatenate([kernels, self._line.rows(batch)[:, None]], axis=1)


def _or_none(fit: Callable[[], Any]) -> Any:
    try:
        return fit()
    except FitError:
        return None
