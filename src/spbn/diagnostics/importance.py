"""Which arcs and node types matter: how much score is lost without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.diagnostics.evidence import Evidence
from spbn.diagnostics.settings import settings_of
from spbn.errors import SpbnError
from spbn.graphs.dag import Arc
from spbn.network import BayesianNetwork
from spbn.nodes.base import FitSettings, NodeType
from spbn.nodes.families import Family
from spbn.scores import CVLikelihood

SCORED_ROWS = 5_000
FEWEST_ROWS = 20
FOLDS = 10


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


def measure(network: BayesianNetwork, evidence: Evidence) -> Importance | str:
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
