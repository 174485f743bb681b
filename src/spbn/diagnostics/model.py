"""What rows say about a network: which arcs and types matter, whether it fits, and what the search missed.

`measure_importance` says how much score is lost without an arc, or with another type; `Strengths`, how often
replicates of the search have an arc: from a `Confidence`, or from the table of arcs that was saved.

A node's density fits if the probability integral transform of its values is uniform (`check_fit`). The
distribution function of a discrete node has steps: a random point on the step of every row is uniform again,
if the probabilities are right.

A search keeps the structure with the best validation score. The density of a CKDE falls like that of a normal
distribution, so a few validation rows that are far from all others can lose more log-likelihood with an arc
than all other rows win. The search then ends early, sometimes without a single arc (`early_stop`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, same_uniforms
from spbn._base.lazy import pd
from spbn.diagnostics.rows import Evidence, settings_of
from spbn.errors import ArgumentError, DataError, Naming, SpbnError, in_python, quoted, render, setting
from spbn.graphs.dag import Arc
from spbn.inference.batch import with_classes
from spbn.learning.settings import MODELS, LearnSettings, Model
from spbn.learning.stability import Confidence
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family
from spbn.rows.store import FitSettings
from spbn.scores import CVLikelihood
from spbn.search import SearchResult
from spbn.search.hill_climbing import NO_IMPROVEMENT, OUT_OF_PATIENCE
from spbn.search.orders import NO_BETTER_ORDER
from spbn.tables.table import Table

SCORED_ROWS = 5_000
FEWEST_ROWS = 20  # for a score
FOLDS = 10
COLUMNS = ("source", "target", "strength", "direction")
CHECKED_ROWS = 2_000  # for the fit
GOOD = 0.05  # distance up to which a fit is good, whatever the number of rows; up to twice that it is fair
LEAST_GAIN = 0.1  # of score, for each row, that the validation rows did not confirm
FAR = 20.0  # times the drop that 19 of 20 rows stay below
SHOWN = 3
FEW_ARCS = 0.1  # per node: fewer are hardly a network


@dataclass(frozen=True)
class Loss:
    """By how much the log-likelihood of all rows falls with a change, and the standard error of that."""

    total: float
    error: float
    rows: int

    @property
    def per_row(self) -> float:
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
    """Cross-validated scores of the nodes, and losses of every change."""

    scores: Mapping[str, float]  # mean log-density of a node in rows that its parameters were not fitted to
    arcs: Mapping[Arc, Loss]  # when an arc is removed
    types: Mapping[str, Loss]  # when a node gets the other type, of nodes that could have another
    rows: int  # that were scored
    bandwidth: str  # the network's own rule, or Scott's where that is unknown or a function
    left_out: tuple[str, ...]  # nodes that could not be scored because they have no values


def other_type(node_type: NodeType) -> NodeType:
    """Return the type that a node's type is compared with; itself if there is no other for its variable."""
    return NodeType.parse(node_type.alternative)


def measure_importance(network: BayesianNetwork, evidence: Evidence) -> Importance | str:
    """Score every family, and every change to it, by cross-validation; or say why that cannot be done."""
    structure = network.structure
    if evidence.table is not None and evidence.covers(variable.name for variable in network.variables):
        evidence = replace(evidence, table=with_classes(network, evidence.table))
    families = [f for f in structure.families() if evidence.covers((f.node, *f.parents))]
    table = evidence.thinned(SCORED_ROWS)
    if table is None or not families:
        return "There are no rows to compute scores from: give data to see them."
    if table.rows < FEWEST_ROWS:
        return f"{table.rows} rows are too few for a cross-validated score; {FEWEST_ROWS} are needed."
    settings = settings_of(network) or FitSettings()
    try:
        score = CVLikelihood(network.transformed(table), folds=FOLDS, seed=0, **asdict(settings))
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


@dataclass(frozen=True)
class FitCheck:
    """The histogram of P(X ≤ x | parents) over rows, and how far it is from uniform."""

    counts: tuple[int, ...]
    distance: float  # of Kolmogorov and Smirnov: the greatest difference of the two distribution functions
    rows: int

    @property
    def chance(self) -> float:
        """The distance that 1 in 20 samples of a correct model would exceed."""
        return 1.358 / math.sqrt(self.rows)

    @property
    def limits(self) -> tuple[float, float]:
        """Up to which distance a fit is good, and up to which it is fair, to three decimals.

        Few rows allow for more: a distance that is likely by chance says nothing against a model.
        """
        good = round(max(GOOD, self.chance), 3)
        return good, 2.0 * good

    @property
    def verdict(self) -> str:
        """One word for the distance: it agrees with the limits as they are written."""
        good, fair = self.limits
        distance = round(self.distance, 3)
        return "good" if distance <= good else "fair" if distance <= fair else "poor"

    @property
    def band(self) -> tuple[float, float]:
        """The counts between which 19 of 20 bars of a correct model lie."""
        share = 1.0 / len(self.counts)
        spread = 1.96 * math.sqrt(self.rows * share * (1.0 - share))
        return max(0.0, self.rows * share - spread), self.rows * share + spread


def check_fit(network: BayesianNetwork, evidence: Evidence) -> dict[str, FitCheck]:
    """Check every node that has values, for itself and for its parents."""
    table = evidence.thinned(CHECKED_ROWS)
    if table is None:
        return {}
    checks = {}
    rows, transformed = table.rows, network.transformed(table)
    summed: FloatArray | None = None  # over the classes
    if network.hidden is not None and evidence.covers(variable.name for variable in network.variables):
        uniforms = np.tile(same_uniforms(rows), (len(network.nodes), 1))
        summed = network.logpdf_and_cdf_of_columns(table.columns, uniforms)[1]
    for place, (node, cpd) in enumerate(network.cpds.items()):
        if evidence.covers((node, *(parent for parent in cpd.parents if parent != network.hidden))):
            # P(X ≤ x | parents) of every row; a point on its step, always the same one, if X has steps.
            transform = (
                cpd.randomised_cdf(transformed, same_uniforms(rows)) if summed is None else summed[place]
            )
            uniform = np.sort(np.clip(transform, 0.0, 1.0))
            steps = np.arange(rows + 1) / rows
            distance = max(np.max(steps[1:] - uniform), np.max(uniform - steps[:-1]))
            counts = np.histogram(uniform, bins=20 if rows >= 400 else 10, range=(0.0, 1.0))[0]
            checks[node] = FitCheck(tuple(counts.tolist()), float(distance), rows)
    return checks


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


@dataclass(frozen=True)
class FarRow:
    """A row, by its number and by what it is called, and the node that is most unlikely there."""

    row: int
    node: str
    label: str


@dataclass(frozen=True)
class EarlyStop:
    """Why a search ended with less than it could have found."""

    gain: float  # by how much the steps after the best structure raised the score
    what: str  # happened, in a sentence
    rows: tuple[FarRow, ...]  # that may be the cause; empty if no single row is to blame
    advice: tuple[str, ...]  # depending on what was tried; with marks, as messages of errors have them

    def __str__(self) -> str:
        far = ", ".join(f"row {far.label} ({far.node})" for far in self.rows)
        look = f" A few rows far from all others can cause this: look at {far}." if far else ""
        return f"{self.what}{look} {self.remedy}".rstrip()

    @property
    def remedy(self) -> str:
        """The advice in a sentence; empty if there is none."""
        return self.remedy_for(None)

    def remedy_for(self, naming: Naming | None) -> str:
        """Return the advice in the words of Python and of the command line, or in those of a caller."""
        *first, last = self.advice or ("",)
        sentence = f"What to try: {', '.join(first)}{', or ' if first else ''}{last}." if last else ""
        return render(sentence, naming)


def early_stop(
    search: Any, table: Table, *, settings: Mapping[str, Any] | None = None, labels: Sequence[str] = ()
) -> EarlyStop | None:
    """Say why a search ended with less than it could have found; None if nothing suggests that it did.

    Parameters
    ----------
    search
        How the structure was found; anything but a `SearchResult` gives None.
    table
        The rows that were learned from.
    settings
        What `learn` was called with, from `network.record.settings`: the advice depends on it.
    labels
        What the rows are called; by default they are counted from 0.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data)
    >>> from spbn.tables import as_table
    >>> print(spbn.explain.early_stop(network.search, as_table(data, training=True, missing="error")))
    None
    """
    if not isinstance(search, SearchResult):
        return None
    last = search.steps[-1].structure if search.steps else search.structure
    if not {*last.nodes, *last.used_inputs} <= set(table.names):
        return None
    # If nothing else is known, hill climbing was for the paper's model, which is what it was made for.
    model: Model = "auto" if search.stop_reason == NO_BETTER_ORDER else "spbn"
    tried = {**LearnSettings(model=model).plain(), **(settings or {})}
    nodes, arcs = len(search.structure.nodes), len(search.structure.arcs)
    few = nodes > 1 and arcs <= FEW_ARCS * nodes and tried["max_parents"] != 0
    if not search.steps:
        if not few or search.stop_reason not in (NO_IMPROVEMENT, NO_BETTER_ORDER):
            return None
        what = (
            "no change improved the score, so the network has no arcs: as far as these rows show, "
            "no column helps to predict another."
        )
        return EarlyStop(0.0, what, (), tuple(_advice(search, tried)))
    gain = search.steps[-1].score - search.score
    if not LEAST_GAIN * table.rows < gain < math.inf:
        return None
    rows = _far_rows(search, table, gain, tried, labels)
    if not rows and not few:
        return None
    advice = ["correct or remove these rows if they are wrong"] if rows else []
    ended = ""
    if few:
        found = "no arcs" if arcs == 0 else f"only {arcs} arc{'' if arcs == 1 else 's'}"
        ended = f"the search ended with {found} among {nodes} nodes: "
    steps = len(search.steps) - search.best
    more = "one more step" if steps == 1 else f"{steps} more steps"
    what = (
        f"{ended}{more} raised the score by {gain:,.0f}, but the validation score fell from "
        f"{search.validation_score:,.0f} to {search.steps[-1].validation_score:,.0f}, and the structure "
        f"with the best validation score is kept."
    )
    return EarlyStop(gain, what, rows, (*advice, *_advice(search, tried)))


def explain_early_stop(network: BayesianNetwork, evidence: Evidence) -> EarlyStop | None:
    """Do what `early_stop` says for a network and rows that have been read already."""
    if evidence.table is None:
        return None
    rows = network.transformed(evidence.table)
    return early_stop(network.search, rows, settings=network.record.settings, labels=evidence.labels)


def _far_rows(
    search: SearchResult, table: Table, gain: float, tried: Mapping[str, Any], labels: Sequence[str]
) -> tuple[FarRow, ...]:
    """Return the rows that are so far out that they can outweigh all others."""
    last = search.steps[-1].structure
    try:
        bandwidth, smoothing = str(tried["bandwidth"]), tried["smoothing"]
        score = CVLikelihood(table, folds=FOLDS, seed=0, bandwidth=bandwidth, smoothing=smoothing)
    except SpbnError:
        return ()
    by_node = np.stack([score.rows(family) for family in last.families()])
    by_node[~np.isfinite(by_node).all(axis=1)] = 0.0  # a family that cannot be fitted says nothing about rows
    usual = np.median(by_node, axis=1)
    drops = (usual[:, None] - by_node).sum(axis=0)
    least = max(FAR * float(np.quantile(drops, 0.95)), 0.1 * gain)
    found = []
    for row in np.argsort(-drops, kind="stable")[:SHOWN].tolist():
        if drops[row] > least:
            node = last.nodes[int((usual - by_node[:, row]).argmax())]
            found.append(FarRow(row, node, labels[row] if labels else str(row)))
    return tuple(found)


def _advice(search: SearchResult, tried: Mapping[str, Any]) -> list[str]:
    """Return what to try that was not tried."""

    def both(name: str, value: object) -> str:
        """Write a setting for Python and for the command line, of which a caller needs one."""
        return in_python(f"{name}={value!r}, --{name} {value}", setting(name, value))

    advice = []
    other = _other_start(tried)
    if other is not None:
        advice.append(f"start from {other.appearance.label} nodes ({both('start', other.name)})")
    if search.stop_reason == OUT_OF_PATIENCE:
        patience = max(20, 2 * int(tried["patience"]))
        advice.append(f"more patience ({both('patience', patience)})")
    score = tried["score"] or ("bic" if tried["model"] == "gbn" else "cv")
    validated = tried["validation"] is not None
    if score == "cv" and isinstance(tried["seed"], int) and isinstance(tried["validation"], float):
        seed = tried["seed"] + 1
        advice.append(f"other validation rows ({both('seed', seed)})")
    if validated and tried["model"] != "gbn":
        advice.append(f"a Gaussian network, which needs no validation rows ({both('model', 'gbn')})")
    return advice


def _other_start(tried: Mapping[str, Any]) -> NodeType | None:
    """Return the type to start from instead, if the search started from the usual one and may have both."""
    usual = LearnSettings(model="spbn").start_type
    if tried["start"] != usual or tried["model"] == "auto":  # whose search has no types to start from
        return None
    other = NodeType.parse(usual.alternative)
    try:
        choices = [NodeType.parse(name) for name in tried["types"] or MODELS[tried["model"]]]
    except (ArgumentError, KeyError, TypeError):
        return None
    return other if other in choices and len(choices) > 1 else None
