"""The rows that a network finds least likely, and the nodes that make them so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spbn.explain.evidence import Evidence, Source
from spbn.network import BayesianNetwork

SHOWN_ROWS = 10
SHOWN_NODES = 3
BINS = 48
FAR = 8.0  # times the distance from the median down to the least likely twentieth


@dataclass(frozen=True)
class Reason:
    """A node that makes a row unusual: its value there, and its log-density below the node's median."""

    node: str
    value: float
    drop: float


@dataclass(frozen=True)
class UnusualRow:
    """A row with a low log-density."""

    label: str
    logpdf: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Unusual:
    """The least likely rows, and how the log-densities of all rows are spread."""

    rows: tuple[UnusualRow, ...]
    mean: float
    median: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]


def find(network: BayesianNetwork, evidence: Evidence) -> Unusual | None:
    """Score the given rows; None if there are none."""
    if evidence.source is not Source.GIVEN or evidence.table is None:
        return None
    table = evidence.table
    by_node = np.stack([network.cpds[node].logpdf(table) for node in network.nodes])
    by_node = np.clip(by_node, -1e300, 1e300)
    logpdf = by_node.sum(axis=0)
    drops = np.median(by_node, axis=1)[:, None] - by_node
    rows = []
    for i in np.argsort(logpdf, kind="stable")[:SHOWN_ROWS].tolist():
        worst = np.argsort(-drops[:, i], kind="stable")[:SHOWN_NODES]
        least = 0.1 * drops[worst[0], i]  # a node that adds a tenth of the worst one's share explains nothing
        reasons = [
            Reason(network.nodes[k], float(table.column(network.nodes[k])[i]), float(drops[k, i]))
            for k in worst.tolist()
            if drops[k, i] > 0 and drops[k, i] >= least
        ]
        rows.append(UnusualRow(evidence.labels[i], float(logpdf[i]), tuple(reasons)))
    # A few rows far away must not squeeze all others into one bar: they are drawn at its left end.
    median, low = np.quantile(logpdf, [0.5, 0.05])
    counts, edges = np.histogram(np.maximum(logpdf, median - FAR * (median - low)), bins=BINS)
    return Unusual(
        tuple(rows),
        float(logpdf.mean()),
        float(median),
        tuple(edges.tolist()),
        tuple(counts.tolist()),
    )
