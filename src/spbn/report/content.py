"""What a report says: computed here, and drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spbn.diagnostics.data_check import DataCheck, check_data
from spbn.diagnostics.importance import Importance, Strengths, measure_importance
from spbn.diagnostics.search import EarlyStop, explain_early_stop
from spbn.diagnostics.unusual import UnusualRows, find_unusual
from spbn.diagnostics.validation import Evidence, FitCheck, Source, check_fit, gather_rows
from spbn.errors import ArgumentError, quoted
from spbn.learning.stability import Confidence
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType, registered
from spbn.report.explorer import JointSample, joint_sample
from spbn.report.parts import model_name


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that the sections of a report show.

    Attributes
    ----------
    model
        What kind of network it is, in words.
    training_rows
        How many rows it was fitted to, if that is known.
    importance
        Scores and losses, or the reason why there are none.
    checks
        The fit of the nodes that could be checked.
    unusual
        The least likely rows, if rows were given.
    early_stop
        Why the search ended with less than it could have found, if it seems so.
    sample
        Rows drawn from the network, to explore; None if some of its nodes are inputs.
    data
        What the rows look like, before holes were filled; None if there are no rows.
    confidence
        How often replicates of the search agree, if that was computed.
    """

    network: BayesianNetwork
    title: str
    model: str
    evidence: Evidence
    training_rows: int | None
    importance: Importance | str
    checks: dict[str, FitCheck]
    unusual: UnusualRows | None
    early_stop: EarlyStop | None
    sample: JointSample | None
    data: DataCheck | None = None
    confidence: Strengths | None = None

    @property
    def types(self) -> dict[NodeType, int]:
        """How many nodes have a type, for every type that is there, in the order of the registry."""
        found = list(self.network.structure.types.values())
        return {node_type: found.count(node_type) for node_type in registered() if node_type in found}


def describe(
    network: BayesianNetwork,
    *,
    data: Any = None,
    title: str | None = None,
    confidence: Confidence | Strengths | None = None,
) -> Content:
    """Compute everything that the report on a network says."""
    if isinstance(confidence, Confidence):
        confidence = Strengths.of(confidence)
    if confidence is not None and set(confidence.nodes) != set(network.nodes):
        raise ArgumentError(
            f"confidence must be about the nodes of the network, {quoted(network.nodes)}. It is about "
            f"{quoted(confidence.nodes)}."
        )
    checked = None if data is None else check_data(data, network.variables)
    if checked is not None and checked.missing:
        data = network.impute(data, seed=0)
    evidence = gather_rows(network, data)
    if checked is None and evidence.table is not None:
        kept = [v for v in network.variables if v.name in evidence.table.names]
        checked = check_data(evidence.table, kept)
    model = model_name(network)
    return Content(
        network=network,
        title=model if title is None else title,
        model=model,
        evidence=evidence,
        training_rows=_training_rows(network),
        importance=measure_importance(network, evidence),
        checks=check_fit(network, evidence),
        unusual=find_unusual(network, evidence) if evidence.source is Source.GIVEN else None,
        early_stop=explain_early_stop(network, evidence) if evidence.source is Source.GIVEN else None,
        sample=None if network.structure.inputs else joint_sample(network),
        data=checked,
        confidence=confidence,
    )


def _training_rows(network: BayesianNetwork) -> int | None:
    """Return how many rows a network was fitted to, by its record or by what its nodes keep."""
    kept = (cpd.kept_rows for cpd in network.cpds.values())
    return network.record.rows or next((table.rows for table in kept if table is not None), None)
