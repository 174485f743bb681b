"""Blend: a mixture of kernels at four scales, a line, a curve, tails and local lines, by what predicts best.

This is stacked density estimation (Smyth and Wolpert, 1999) inside a node:

    f(x | pa) = Σ_k w_k f_k(x | pa),

where the components f_k are the CKDE with the bandwidth c·H for c = 1/16, 1/4, 1 and 4, the linear Gaussian,
the curve, tails that ignore the parents, and lines that hold locally. The weights maximise the likelihood of
rows that the components were not fitted to (`numerics.mixture_weights`). A CKDE has one scale and the tails
of one Gaussian; a blend has narrow kernels where rows are dense, a curve where the relation is smooth, lines
where rows are in thin sheets or in lumps, and tails far out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, frozen, relative_weights
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn.errors import FitError, quoted
from spbn.kernels.compressed import CompactKernels, CompactScales
from spbn.kernels.compression import compact_scales
from spbn.kernels.estimates import BandwidthRule, family_matrix
from spbn.kernels.multiscale import SCALES
from spbn.nodes.base import CPD, Appearance, Description, NodeType, ParameterTable, Region
from spbn.nodes.ckde import CKDE, compact_kernels_from_record, compact_kernels_of, require_few_dimensions
from spbn.nodes.ckde import NODE_TYPE as KERNELS
from spbn.nodes.curve import NODE_TYPE as CURVES
from spbn.nodes.curve import Curve, curve_scorer
from spbn.nodes.kde import KDE
from spbn.nodes.linear_gaussian import NODE_TYPE as LG
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.nodes.local_lines import LocalLines, local_scorer
from spbn.nodes.tails import Tails, TailScorer
from spbn.numerics.mixture_weights import mix_logs
from spbn.numerics.spreads import spreads_of, without_far_values
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, Mixtures, RemoteRows, RowStore, TooLargeError
from spbn.tables.reader import Missing, as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

#: What the components are called: the kernels by scale, then the others.
COMPONENTS = (
    *("very narrow kernels", "narrow kernels", "kernels", "wide kernels"),
    *("linear Gaussian", "curve", "tails", "local lines"),
)
LINE, CURVE, TAILS, LOCAL = range(len(SCALES), len(COMPONENTS))
OF_VERSION_2 = LINE + 1  # components of blends in files of version 0.2
LEGEND = (
    "A blend mixes kernels of several widths, a line, a curve, tails and local lines, with the weights that "
    "predict best."
)
FOLDS = 10
FEWEST_TO_BLEND = 4  # rows, for the weights
MOST_WEIGHTS = 1 << 18  # families whose weights are remembered
MOST_WEIGHED = 25_000  # rows that weights are fitted to: they tell eight numbers well enough
LEAST_LOSS = 0.005  # weight of a component, whose loss is worth a warning


@final
@dataclass(frozen=True, repr=False)
class Blend(CPD):
    """The density of a node as a mixture of kernels at several scales, lines, a curve and tails.

    Attributes
    ----------
    node, parents
        The family.
    line
        The linear Gaussian; None if it could not be fitted.
    kernels
        The kernels of all scales: a `KDE` at scale 1, of which the others are multiples, or without rows
        `CompactScales`; None if they could not be fitted.
    mixture
        The weights of `COMPONENTS`; 0 for what could not be fitted.
    curve, tails, local
        The others; None if they could not be fitted.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> node = spbn.learn(data[["A", "C"]], model="blend", patience=0).cpds["A"]
    >>> list(node.weights)[4:]
    ['linear Gaussian', 'curve', 'tails', 'local lines']
    """

    node: str
    parents: tuple[str, ...]
    line: LinearGaussian | None
    kernels: KDE | CompactScales | None
    mixture: tuple[float, ...]
    curve: Curve | None = None
    tails: Tails | None = None
    local: LocalLines | None = None

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
        rows, columns = MemoryRows(partition, settings), tuple(range(len(table.names)))
        weighing = rows
        if table.rows > MOST_WEIGHED:  # evenly spread over the folds, which are one after the other
            weighing = rows.previewing(np.arange(table.rows) % -(-table.rows // MOST_WEIGHED) == 0)
        weights = BlendScorer(weighing).weights(FamilyBatch.single(table.names))[0]
        held = table.with_columns(without_far_values(table.columns, spreads_of(table.columns)))
        parts = cls(
            node,
            tuple(parents),
            line=_or_none(lambda: LinearGaussian.fit(held, node, parents)),
            kernels=_or_none(lambda: _kernels(table, held, settings)),
            mixture=tuple(weights.tolist()),
            curve=_or_none(lambda: curve_scorer(rows).fit(columns)),
            tails=TailScorer(rows).fit(columns[-1]),
            local=local_scorer(rows).fit(columns),
        )
        weights = np.where(parts.there, weights, 0.0)
        if not weights[:TAILS].sum() > 0.0:
            raise _nothing_fits(node, parents)
        return replace(parts, mixture=tuple((weights / weights.sum()).tolist()))

    @property
    def there(self) -> BoolArray:
        """Tell which of `COMPONENTS` there are."""
        kernels = [self.kernels is not None] * len(SCALES)
        if isinstance(self.kernels, CompactScales):
            kernels = [part is not None for part in self.kernels.by_scale]
        others = (self.line, self.curve, self.tails, self.local)
        return np.array([*kernels, *(part is not None for part in others)], dtype=np.bool_)

    @property
    def type(self) -> NodeType:
        return NODE_TYPE

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every component, by its name."""
        return dict(zip(COMPONENTS, self.mixture, strict=True))

    @property
    def joint(self) -> KDE | None:
        """The kernel density estimate of the parents and, last, the node; None if there is none any more."""
        return self.kernels if isinstance(self.kernels, KDE) else None

    @property
    def rows(self) -> int | None:
        """Number of kernels of every scale that sit on rows."""
        return None if self.joint is None else self.joint.rows

    @property
    def outposts(self) -> int | None:
        """How many rows on the outskirts compact kernels have kept, at the scale that has most of them.

        The scales share them, unless workers made the network: then each has its own. None if kernels are
        on rows.
        """
        if not isinstance(self.kernels, CompactScales):
            return None
        return max(
            (kernels.outposts.shape[1] for kernels in self.kernels.by_scale if kernels is not None), default=0
        )

    @property
    def kept_rows(self) -> Table | None:
        """The training rows: one kernel of every scale sits on each; None if kernels are compact."""
        return None if self.joint is None else Table(self.joint.names, self.joint.points)

    def without(self, kernels: IntArray) -> Blend:
        return self if self.joint is None else replace(self, kernels=self.joint.without(kernels))

    def nearest_line(self) -> LinearGaussian | None:
        """Return the line of the blend, or the one through its training rows."""
        if self.line is not None or self.joint is None:
            return self.line
        return self._plain_kernels.nearest_line()

    @property
    def curve_share(self) -> float:
        return self.mixture[CURVE]

    def smooth_mean(self, parents: FloatArray) -> tuple[FloatArray, FloatArray]:
        return super().smooth_mean(parents) if self.curve is None else self.curve.smooth_mean(parents)

    @property
    def _plain_kernels(self) -> CKDE:
        """The kernels at scale 1, on rows."""
        assert self.joint is not None
        return CKDE(self.node, self.parents, self.joint)

    @cached_property
    def components(self) -> dict[int, CKDE | LinearGaussian | Curve | Tails | LocalLines]:
        """The components that have a weight, by their number in `COMPONENTS`."""
        found: dict[int, CKDE | LinearGaussian | Curve | Tails | LocalLines] = {}
        for k in range(len(SCALES)):
            if self.kernels is not None and self.mixture[k] > 0.0:
                found[k] = CKDE(self.node, self.parents, self.kernels.at_scale(k))
        others = {LINE: self.line, CURVE: self.curve, TAILS: self.tails, LOCAL: self.local}
        for k, part in others.items():
            if part is not None and self.mixture[k] > 0.0:
                found[k] = part
        return found

    @cached_property
    def _weights(self) -> FloatArray:
        return frozen(np.array(self.mixture))

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        parts = np.full((len(COMPONENTS), columns.shape[1]), -np.inf)
        if self.kernels is not None:
            parts[:LINE] = self.kernels.conditional_log_density_by_scale(columns)
        for k, part in self.components.items():
            if k >= LINE:
                parts[k] = part.logpdf_of_columns(columns)
        out = np.empty(columns.shape[1])
        mix_logs(parts, self._weights, out)
        return out

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        total = np.zeros(columns.shape[1])
        for k, part in self.components.items():
            total += self.mixture[k] * part.cdf_of_columns(columns)
        return total

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a component by its weight, then a value from it, for every row of the parents."""
        n: int = parents.shape[1]
        chosen, out = rng.choice(len(COMPONENTS), size=n, p=self.mixture), np.empty(n)
        for k, part in self.components.items():
            mine = np.flatnonzero(chosen == k)
            if len(mine):
                out[mine] = part.draw(np.ascontiguousarray(parents[:, mine]), rng)
        return out

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        mixed: FloatArray = np.logaddexp.reduce(self._log_masses(region, parents), axis=0)
        return mixed

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        bounds = np.cumsum(relative_weights(self._log_masses(region, parents), axis=0), axis=0)
        chosen = (rng.random(parents.rows) * bounds[-1] >= bounds).sum(axis=0)
        out = np.empty(parents.rows)
        for k, part in enumerate(self.components.values()):
            mine = np.flatnonzero(chosen == k)
            if len(mine):
                out[mine] = part.draw_within(region, parents.take(mine), rng)
        return out

    def _log_masses(self, region: Region, parents: Table) -> FloatArray:
        """Return what every component adds to the probability of a region, in logs: components × rows."""
        masses = np.stack([part.log_mass(region, parents) for part in self.components.values()])
        weights: FloatArray = np.log([self.mixture[k] for k in self.components])[:, None]
        return masses + weights

    def compact(self, tolerance: float) -> Blend:
        """Replace the rows of the kernels by tables, one for each scale that has a weight."""
        if isinstance(self.kernels, CompactScales):
            return self
        by_scale: list[CompactKernels | None] = [None] * len(SCALES)
        if self.joint is not None:
            require_few_dimensions(self.node, self.parents)
            needed = [k for k in self.components if k < len(SCALES)]
            widths = [math.sqrt(SCALES[k]) for k in needed]
            made = compact_scales(self.joint, widths, tolerance) if needed else []
            for k, kernels in zip(needed, made, strict=True):
                if kernels is None:
                    raise FitError(f"the {COMPONENTS[k]} of {self.node!r} would need too large a table")
                by_scale[k] = kernels
        return replace(self, kernels=CompactScales(tuple(by_scale)))

    def pool(self, others: Sequence[Blend]) -> Blend:
        """Return the blend of the pooled components, with the mean of the weights."""
        cpds = (self, *others)
        lines = [cpd.line for cpd in cpds if cpd.line is not None]
        curves = [cpd.curve for cpd in cpds if cpd.curve is not None]
        tails = [cpd.tails for cpd in cpds if cpd.tails is not None]
        local = [cpd.local for cpd in cpds if cpd.local is not None]
        kernels = [cpd._plain_kernels for cpd in cpds if cpd.joint is not None]
        return replace(
            self,
            line=lines[0].pool(lines[1:]) if lines else None,
            kernels=kernels[0].pool(kernels[1:]).joint if kernels else None,
            mixture=tuple(np.mean([cpd.mixture for cpd in cpds], axis=0).tolist()),
            curve=curves[0].pool(curves[1:]) if curves else None,
            tails=tails[0].pool(tails[1:]) if tails else None,
            local=local[0].pool(local[1:]) if local else None,
        )

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        others = {"line": self.line, "curve": self.curve, "tails": self.tails, "local": self.local}
        record: dict[str, Any] = {"weights": list(self.mixture)}
        for key, part in others.items():
            record[key] = None if part is None else part.to_record(arrays)
        if isinstance(self.kernels, CompactScales):
            written = [None if part is None else part.to_record(arrays) for part in self.kernels.by_scale]
            return {**record, "parts": written}
        return {**record, "kernels": None if self.joint is None else self.joint.to_record(arrays)}

    def describe(self) -> Description:
        """Return the weights, greatest first, and the bandwidth of the kernels."""
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        formula = f"{self.node}{given} ~ {in_words(self.weights)}"
        tables = [ParameterTable("weight", COMPONENTS, ("weight",), tuple((w,) for w in self.mixture))]
        if self.joint is not None:
            tables += self._plain_kernels.describe().tables
        elif isinstance(self.kernels, CompactScales):
            formula += " (compact)"
            for k, part in self.components.items():
                if isinstance(part, CKDE):
                    (table,) = part.describe().tables
                    tables.append(replace(table, title=f"{table.title} of the {COMPONENTS[k]}"))
        return Description(formula, legend=LEGEND, tables=tuple(tables), shares=self.weights)


@final
class BlendScorer:
    """Scores blend families: their components are shared with other families, and their weights remembered.

    In a cross-validation, the weights of a family are fitted to the same rows that are scored, each under
    components that were not fitted to it: with seven numbers only, overfitting is negligible. Elsewhere they
    come from a cross-validation of the training rows (`RowStore.inner`).
    """

    def __init__(self, rows: RowStore) -> None:
        self._rows, self._held = rows, rows.held
        self._others = (curve_scorer(rows), TailScorer(rows), local_scorer(rows))
        self._weights: dict[bytes, FloatArray] = {}

    def totals(self, families: FamilyBatch) -> FloatArray:
        if not self._rows.is_crossed:
            return self.rows(families).sum(axis=1)
        out = np.empty(len(families))
        for chosen, mixtures in self.mixtures(families):
            for f, (weights, total) in zip(chosen, mixtures.best(), strict=True):
                fits = weights[:TAILS].any()
                out[f] = total if fits else -np.inf
                self._remember(families.keys[f], weights if fits else np.zeros_like(weights))
        return out

    def mixtures(self, families: FamilyBatch) -> Iterator[tuple[list[int], Mixtures]]:
        """Yield the numbers of some families at a time, and the mixtures of all components."""
        return self._held.mixtures(families, self._held.scorer(LG), self._others)

    def rows(self, families: FamilyBatch) -> FloatArray:
        out = np.full((len(families), self._rows.pieces), -np.inf)
        few = not self._rows.is_crossed and self._rows.train.counts.min() < FEWEST_TO_BLEND
        inner = None if few else self._rows.inner
        if inner is None:
            return out
        chooser = inner.scorer(NODE_TYPE)
        assert isinstance(chooser, BlendScorer)
        weights = chooser.weights(families)
        for chosen, mixtures in self.mixtures(families):
            out[chosen] = mixtures.values(weights[chosen])
        return out

    def weights(self, families: FamilyBatch) -> FloatArray:
        """Families × components: the weights that predict evaluated rows best; 0 if none can be fitted."""
        unknown = np.array([key not in self._weights for key in families.keys])
        if unknown.any():
            self.totals(families.only(unknown))
        return np.stack([self._weights[key] for key in families.keys])

    def _remember(self, key: bytes, weights: FloatArray) -> None:
        self._weights[key] = weights
        if len(self._weights) > MOST_WEIGHTS:
            self._weights.pop(next(iter(self._weights)))


@final
class BlendType(NodeType):
    """The node type of `Blend`."""

    name = "blend"
    appearance = Appearance(
        label="blend",
        short_label="Blend",
        sentence="A mixture of a straight line, a smooth curve, kernels at four scales, tails and local "
        "lines, with the weights that predict best.",
        colour="#e4d9ee",
        dark_colour="#4a3c58",
    )
    alternative = "ckde"
    most_remote_parents = KERNELS.most_remote_parents

    def fit(self, table: Table, node: str, parents: Sequence[str], settings: FitSettings) -> Blend:
        return Blend.fit(table, node, parents, bandwidth=settings.bandwidth, engine=settings.engine)

    def fit_rows(self, rows: RemoteRows, node: str, parents: Sequence[str], settings: FitSettings) -> Blend:
        """Fit compact components to all rows where they are, and their weights by cross-validation.

        The blend goes without components that cannot be fitted, or whose tables would be too large, and warns
        of the latter if they would have a weight.
        """
        rows = rows.refolded(FOLDS)
        if rows.count < FEWEST_TO_BLEND or not rows.pieces:
            raise FitError(f"a blend needs at least {FEWEST_TO_BLEND} rows. {node!r} has {rows.count}.")
        held, tables, too_large = rows.held, dict[int, CompactKernels](), []
        for k, scale in enumerate(SCALES):
            try:
                tables[k] = compact_kernels_of(held, node, parents, scale)
            except TooLargeError:
                too_large.append(k)
            except FitError:
                pass
        *given, place = rows.columns((*parents, node))
        names = tuple(variable.name for variable in rows.variables)
        family = FamilyBatch(
            names, np.array([place]), np.isin(np.arange(len(names)), given)[None], np.zeros(1, dtype=np.int8)
        )
        parts = Blend(
            node,
            tuple(parents),
            line=_or_none(lambda: LG.fit_rows(held, node, parents, settings)),
            kernels=CompactScales(tuple(tables.get(k) for k in range(len(SCALES)))),
            mixture=(1.0,) * len(COMPONENTS),
            curve=_or_none(lambda: curve_scorer(rows).fit((*given, place))),
            tails=TailScorer(rows).fit(place),
            local=local_scorer(rows).fit((*given, place)),
        )
        scorer = rows.scorer(self)
        assert isinstance(scorer, BlendScorer)
        ((_, mixtures),) = scorer.mixtures(family)
        if too_large:
            ((every, _),) = mixtures.best()
            _warn_of_lost(node, parents, {COMPONENTS[k]: float(every[k]) for k in too_large})
        ((weights, _),) = mixtures.best(parts.there)
        if not weights[:TAILS].sum() > 0.0:
            raise _nothing_fits(node, parents)
        kept = CompactScales(tuple(tables.get(k) if weights[k] > 0.0 else None for k in range(len(SCALES))))
        return replace(parts, kernels=kept, mixture=tuple(weights.tolist()))

    def scorer(self, rows: RowStore) -> BlendScorer:
        """Score from log-densities of sets of columns at all scales, which families share."""
        return BlendScorer(rows)

    def from_record(self, record: Mapping[str, Any], arrays: ArrayReader) -> Blend:
        node, parents = family_of(record)
        written = record.get("weights")
        is_old = isinstance(written, list) and len(written) == OF_VERSION_2
        weights = numbers(record, "weights", (OF_VERSION_2 if is_old else len(COMPONENTS),))
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-9:
            refuse(f"the weights of {node!r} must be positive and sum to 1. Got {weights.tolist()}.")
        mixture = np.zeros(len(COMPONENTS))
        mixture[: len(weights)] = weights
        parts = dict(record)
        if is_old and isinstance(record.get("parts"), list) and len(record["parts"]) == OF_VERSION_2:
            *parts["parts"], parts["line"] = record["parts"]

        def read(key: str, part_type: Any) -> Any:
            part = parts.get(key)
            if part is not None and not isinstance(part, dict):
                refuse(f"{key!r} of {node!r} must be an object or null. Got {part!r:.200}.")
            family = {"node": node, "parents": list(parents)}
            return None if part is None else part_type.from_record({**part, **family}, arrays)

        blend = Blend(
            node,
            parents,
            line=read("line", LG),
            kernels=_kernels_from_record(parts, arrays),
            mixture=tuple(mixture.tolist()),
            curve=read("curve", CURVES),
            tails=read("tails", Tails),
            local=read("local", LocalLines),
        )
        if (mixture[~blend.there] > 0.0).any():
            refuse(f"{node!r} gives weight to a component that it lacks.")
        return blend


NODE_TYPE = BlendType()


def _nothing_fits(node: str, parents: Sequence[str]) -> FitError:
    return FitError(
        f"neither a line nor kernels can be fitted to {node!r} given {quoted(parents) or 'nothing'}: "
        f"its parents are linearly dependent, or determine it. Remove one of them."
    )


def _warn_of_lost(node: str, parents: Sequence[str], weights: Mapping[str, float]) -> None:
    """Warn of components that have a weight in the score of a family, but not in the network."""
    if max(weights.values()) >= LEAST_LOSS:
        warnings.warn(
            f"the blend of {node!r} given {quoted(parents)} is fitted without some of the "
            f"kernels that it is scored with, of which no table fits into memory: {in_words(weights)}. Its "
            f"other components take their share, so its log-densities are a little lower.",
            stacklevel=2,
        )


def _or_none(fit: Callable[[], Any]) -> Any:
    try:
        return fit()
    except FitError:
        return None


def _kernels(table: Table, held: Table, settings: FitSettings) -> KDE:
    """Place kernels on all rows, with the bandwidth of a table without far values."""
    matrix = family_matrix(settings.bandwidth, held.columns)
    kernels = KDE(table.names, table.columns, matrix, settings.engine)
    kernels.whitener  # noqa: B018 -- refuse a singular matrix now, not at the first use
    return kernels


def _kernels_from_record(record: Mapping[str, Any], arrays: ArrayReader) -> KDE | CompactScales | None:
    node, parents = family_of(record)
    family = {"node": node, "parents": list(parents)}
    if "parts" not in record:
        found = record.get("kernels")
        if found is None:
            return None
        if not isinstance(found, dict) or "compact" in found:
            refuse(f"the kernels of {node!r} must be on rows. Got {found!r:.200}.")
        return KERNELS.from_record({**found, **family}, arrays).joint
    written = record["parts"]
    if not isinstance(written, list) or len(written) != len(SCALES):
        refuse(f"{node!r} must have {len(SCALES)} parts. Got {written!r:.200}.")
    if not all(part is None or isinstance(part, dict) for part in written):
        refuse(f"the parts of {node!r} must be objects or null.")
    return CompactScales(
        tuple(
            None if part is None else compact_kernels_from_record({**part, **family}, arrays)
            for part in written
        )
    )


def in_words(weights: Mapping[str, float]) -> str:
    """Write weights as people say them: "61 % narrow kernels, 35 % kernels, 4 % linear Gaussian"."""
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    shown = [f"{100 * weight:.0f} % {name}" for name, weight in ordered if weight >= 0.005]
    return ", ".join(shown)
