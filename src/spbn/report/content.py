"""What a report says, computed and not yet drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spbn.explain import calibration as fit
from spbn.explain import importance, unusual
from spbn.explain.calibration import FitCheck
from spbn.explain.early_stops import EarlyStop, early_stop
from spbn.explain.evidence import Evidence, Source, gather
from spbn.explain.importance import Importance
from spbn.explain.unusual import Unusual
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that the sections of a report show.

    Attributes
    ----------
    model
        What kind of network it is, in words.
    training_rows
        How many rows it was fitted to, where the network tells.
    importance
        Scores and losses, or the reason why there are none.
    checks
        The fit of the nodes that could be checked.
    unusual
        The least likely rows, if rows were given.
    early_stop
        Given rows that kept the search from going on, if there seem to be any.
    """

    network: BayesianNetwork
    title: str
    model: str
    evidence: Evidence
    training_rows: int | None
    importance: Importance | str
    checks: dict[str, FitCheck]
    unusual: Unusual | None
    early_stop: EarlyStop | None

    def count(self, node_type: NodeType) -> int:
        """Return how many nodes have a type."""
        return sum(other is node_type for other in self.network.structure.types.values())


def describe(network: BayesianNetwork, *, data: Any = None, title: str | None = None) -> Content:
    """Compute all that the report on a network says."""
    evidence = gather(network, data)
    model = model_name(network)
    return Content(
        network=network,
        title=model if title is None else title,
        model=model,
        evidence=evidence,
        training_rows=_training_rows(network),
        importance=importance.measure(network, evidence),
        checks=fit.check(network, evidence),
        unusual=unusual.find(network, evidence),
        early_stop=_early_stop(network, evidence),
    )


def _training_rows(network: BayesianNetwork) -> int | None:
    """Return how many rows a network was fitted to, by its record or by what its nodes keep."""
    kept = (cpd.kept_rows for cpd in network.cpds.values())
    return network.record.rows or next((table.rows for table in kept if table is not None), None)


def _early_stop(network: BayesianNetwork, evidence: Evidence) -> EarlyStop | None:
    if evidence.source is not Source.GIVEN or evidence.table is None:
        return None
    return early_stop(network.search, evidence.table, bandwidth=importance.bandwidth_rule(network))


def model_name(network: BayesianNetwork) -> str:
    """Say what kind of network it is."""
    kinds = set(network.structure.types.values())
    if kinds == {NodeType.LG}:
        return "Gaussian Bayesian network"
    return "KDE Bayesian network" if kinds == {NodeType.CKDE} else "Semiparametric Bayesian network"
