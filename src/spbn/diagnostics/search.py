"""Searches that end with less than they could have found: what happened, and what to try.

A search keeps the structure with the best validation score. The density of a CKDE falls like that of a normal
distribution, so a few validation rows that are far from all others can lose more log-likelihood with an arc
than all other rows win. The search then ends early, sometimes without a single arc.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn.diagnostics.importance import FOLDS
from spbn.diagnostics.unusual import reasons
from spbn.diagnostics.validation import Evidence
from spbn.errors import ArgumentError, Naming, SpbnError, in_python, render, setting
from spbn.learning.settings import MODELS, LearnSettings
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.scores import CVLikelihood
from spbn.search import SearchResult
from spbn.search.hill_climbing import NO_IMPROVEMENT, OUT_OF_PATIENCE
from spbn.tables.table import Table

LEAST_GAIN = 0.1  # of score, for each row, that the validation rows did not confirm
FAR = 20.0  # times the drop that 19 of 20 rows stay below
SHOWN = 3
FEW_ARCS = 0.1  # per node: fewer are hardly a network


@dataclass(frozen=True)
class FarRow:
    """A row, by its number and by what it is called, and the node that is most unlikely there."""

    row: int
    node: str
    label: str


@dataclass(frozen=True)
class EarlyStop:
    """Why a search ended with less than it could have found.

    Attributes
    ----------
    gain
        By how much the steps after the best structure raised the score.
    what
        What happened, in a sentence.
    rows
        The rows that may be the cause; empty if no single row is to blame.
    advice
        What to try, depending on what was tried; with marks, as messages of errors have them.
    """

    gain: float
    what: str
    rows: tuple[FarRow, ...]
    advice: tuple[str, ...]

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
    tried = {**LearnSettings().plain(), **(settings or {})}
    few = _has_few_arcs(search) and tried["max_parents"] != 0
    if not search.steps:
        if not few or search.stop_reason != NO_IMPROVEMENT:
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
    return EarlyStop(gain, _what(search, gain, few=few), rows, (*advice, *_advice(search, tried)))


def explain_early_stop(network: BayesianNetwork, evidence: Evidence) -> EarlyStop | None:
    """Do what `early_stop` says for a network and rows that have been read already."""
    if evidence.table is None:
        return None
    rows = network.transformed(evidence.table)
    return early_stop(network.search, rows, settings=network.record.settings, labels=evidence.labels)


def _has_few_arcs(search: SearchResult) -> bool:
    nodes, arcs = search.structure.nodes, search.structure.arcs
    return len(nodes) > 1 and len(arcs) <= FEW_ARCS * len(nodes)


def _what(search: SearchResult, gain: float, *, few: bool) -> str:
    arcs, steps = len(search.structure.arcs), len(search.steps) - search.best
    ended = ""
    if few:
        found = "no arcs" if arcs == 0 else f"only {arcs} arc{'' if arcs == 1 else 's'}"
        ended = f"the search ended with {found} among {len(search.structure.nodes)} nodes: "
    more = "one more step" if steps == 1 else f"{steps} more steps"
    return (
        f"{ended}{more} raised the score by {gain:,.0f}, but the validation score fell from "
        f"{search.validation_score:,.0f} to {search.steps[-1].validation_score:,.0f}, and the structure "
        f"with the best validation score is kept."
    )


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
            worst = reasons(
                {node: float(table.column(node)[row]) for node in last.nodes},
                dict(zip(last.nodes, by_node[:, row].tolist(), strict=True)),
                dict(zip(last.nodes, usual.tolist(), strict=True)),
                most=1,
            )
            found += [FarRow(row, reason.node, labels[row] if labels else str(row)) for reason in worst]
    return tuple(found)


def _advice(search: SearchResult, tried: Mapping[str, Any]) -> list[str]:
    """Return what to try that was not tried."""
    advice = []
    other = _other_start(tried)
    if other is not None:
        advice.append(f"start from {other.appearance.label} nodes ({_both('start', other.name)})")
    if search.stop_reason == OUT_OF_PATIENCE:
        patience = max(20, 2 * int(tried["patience"]))
        advice.append(f"more patience ({_both('patience', patience)})")
    score = tried["score"] or ("bic" if tried["model"] == "gbn" else "cv")
    if score == "cv" and isinstance(tried["seed"], int) and isinstance(tried["validation"], float):
        seed = tried["seed"] + 1
        advice.append(f"other validation rows ({_both('seed', seed)})")
    if tried["model"] != "gbn":
        advice.append(f"a Gaussian network, which needs no validation rows ({_both('model', 'gbn')})")
    return advice


def _both(name: str, value: object) -> str:
    """Write a setting for Python and for the command line, of which a caller needs one."""
    return in_python(f"{name}={value!r}, --{name} {value}", setting(name, value))


def _other_start(tried: Mapping[str, Any]) -> NodeType | None:
    """Return the type to start from instead, if the search started from the usual one and may have both."""
    usual = LearnSettings().start_type
    if tried["start"] != usual:
        return None
    other = NodeType.parse(usual.alternative)
    try:
        choices = [NodeType.parse(name) for name in tried["types"] or MODELS[tried["model"]]]
    except (ArgumentError, KeyError, TypeError):
        return None
    return other if other in choices and len(choices) > 1 else None
