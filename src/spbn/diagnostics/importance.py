"""Which arcs and node types matter, and which arcs to believe.

`measure_importance` says how much score is lost without an arc, or with another type; `Strengths`, how often
replicates of the search have an arc: from a `Confidence`, or from the table of arcs that was saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.diagnostics.validation import Evidence, settings_of
from spbn.errors import DataError, SpbnError, quoted
from spbn.graphs.dag import Arc
from spbn.learning.stability import Confidence
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family
from spbn.rows.store import FitSettings
from spbn.scores import CVLikelihood

if TYPE_CHECKING:
    import pandas as pd


SCORED_ROWS = 5_000
FEWEST_ROWS = 20  # for a score
FOLDS = 10
COLUMNS = ("source", "target", "strength", "direction")


@dataclass(frozen=True)
class Loss:
    """By how much the log-likelihood of all rows falls with a change, and the standard error of that."""

    total: float
    error: float
    rows: int

    @property
    def per_row(self) -> float:
        """The loss of an average row."""
        return self.total / self.rows

    @property
    def is_clear(self) -> bool:
        """Whether the loss is more than what chance alone would give."""
        return self.total > 2.0 * self.error

    @property
    def is_gain(self) -> bool:
        """Whether the change would clearly improve the score."""
        return self.total < -2.0 * self.error


@dataclass(frozen=True)
class Importance:
    """Cross-validated scores of the nodes, and losses of every change.

    Attributes
    ----------
    scores
        Mean log-density of a node in rows that its parameters were not fitted to.
    arcs
        Loss when an arc is removed.
    types
        Loss when a node gets the other type, of nodes that could have another.
    rows
        How many rows were scored.
    bandwidth
        The bandwidth rule of the fits: the network's own, or Scott's where that is unknown or a function.
    left_out
        Nodes that could not be scored because they have no values.
    """

    scores: Mapping[str, float]
    arcs: Mapping[Arc, Loss]
    types: Mapping[str, Loss]
    rows: int
    bandwidth: str
    left_out: tuple[str, ...]


def other_type(node_type: NodeType) -> NodeType:
    """Return the type that a node's type is compared with; itself if there is no other for its variable."""
    return NodeType.parse(node_type.alternative)


def measure_importance(network: BayesianNetwork, evidence: Evidence) -> Importance | str:
    """Score every family, and every change to it, by cross-validation; or say why that cannot be done."""
    structure = network.structure
    families = [f for f in structure.families() if evidence.covers((f.node, *f.parents))]
    table = evidence.thinned(SCORED_ROWS)
    if table is None or not families:
        return "There are no rows to compute scores from: give data to see them."
    if table.rows < FEWEST_ROWS:
        return f"{table.rows} rows are too few for a cross-validated score; {FEWEST_ROWS} are needed."
    settings = settings_of(network) or FitSettings()
    try:
        rows = network.transformed(table)
        score = CVLikelihood(
            rows,
            folds=FOLDS,
            seed=0,
            bandwidth=settings.bandwidth,
            engine=settings.engine,
            smoothing=settings.smoothing,
        )
    except SpbnError as error:
        return f"Scores cannot be computed from these rows: {error}"
    scores: dict[str, float] = {}
    arcs: dict[Arc, Loss] = {}
    types: dict[str, Loss] = {}
    for family in families:
        before = score.rows(family)
        scores[family.node] = float((before + network.log_slopes(table, [family.node])[0]).mean())
        if other_type(family.type) != family.type:
            types[family.node] = _loss(before, score.rows(family._replace(type=other_type(family.type))))
        for parent in family.parents:
            rest = tuple(other for other in family.parents if other != parent)
            arcs[parent, family.node] = _loss(before, score.rows(Family(family.node, rest, family.type)))
    left_out = tuple(node for node in structure.nodes if node not in scores)
    return Importance(scores, arcs, types, table.rows, str(settings.bandwidth), left_out)


def _loss(before: FloatArray, after: FloatArray) -> Loss:
    fitted = bool(np.isfinite(before).all()), bool(np.isfinite(after).all())
    if fitted != (True, True):
        # What cannot be fitted to some fold is worse than anything that can.
        return Loss({(True, False): np.inf, (False, True): -np.inf}.get(fitted, 0.0), 0.0, len(before))
    difference = before - after
    error = float(difference.std(ddof=1) * np.sqrt(len(difference)))
    return Loss(float(difference.sum()), error, len(difference))


@dataclass(frozen=True, eq=False)
class Strengths:
    """How often the replicates of a search find each arc.

    Attributes
    ----------
    nodes
        The nodes that it is about.
    arcs
        As `Confidence.arcs`.
    threshold
        The strength that an arc must exceed to be believed.
    replicates, rows
        How many replicates there were, and rows in the table; None if that is not known.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> found = spbn.confidence(data, model="gbn", replicates=4)
    >>> spbn.explain.Strengths.from_table(found.arcs, found.nodes).threshold == found.threshold
    True
    """

    nodes: tuple[str, ...]
    arcs: pd.DataFrame
    threshold: float
    replicates: int | None = None
    rows: int | None = None

    @classmethod
    def of(cls, found: Confidence) -> Strengths:
        """Return what a report shows of replicates."""
        return cls(found.nodes, found.arcs, found.threshold, len(found.structures), found.rows)

    @classmethod
    def from_table(cls, table: Any, nodes: Sequence[str]) -> Strengths:
        """Read the table that `Confidence.arcs` is, about a network with these nodes."""
        import pandas as pd

        frame = pd.DataFrame(table)
        absent = [name for name in COLUMNS if name not in frame.columns]
        if absent:
            raise DataError(
                f"a table of arcs has the columns {quoted(COLUMNS)}, as spbn confidence --out writes it. "
                f"There is no {quoted(absent)}."
            )
        frame = frame[list(COLUMNS)]
        frame = frame.astype({"source": str, "target": str}).reset_index(drop=True)
        unknown = sorted({*frame["source"], *frame["target"]} - set(nodes))
        if unknown:
            raise DataError(
                f"the arcs are not about this network: it has no {quoted(unknown)}. Its nodes are "
                f"{quoted(nodes)}."
            )
        for name in ("strength", "direction"):
            numbers = pd.to_numeric(frame[name], errors="coerce")
            wrong = np.flatnonzero(~numbers.between(0.0, 1.0))
            if len(wrong):
                value = frame[name].tolist()[wrong[0]]
                raise DataError(
                    f"{name!r} must be a share between 0 and 1. Got {value!r} in row {wrong[0] + 1}."
                )
            frame[name] = numbers.astype(float)
        pairs = [frozenset(pair) for pair in zip(frame["source"], frame["target"], strict=True)]
        if len(set(pairs)) < len(pairs) or any(len(pair) == 1 for pair in pairs):
            raise DataError("every row must be about two nodes of its own: a pair appears more than once.")
        strengths = frame["strength"].to_numpy()
        threshold = strengths[strengths <= 0.5].max(initial=0.0)  # by the rule of `l1_threshold`
        return cls(tuple(nodes), frame, float(threshold))
