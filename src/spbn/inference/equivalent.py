"""Answers over all graphs of an equivalence class, which rows alone do not tell apart.

What setting variables does depends on their parents, and on nothing else that differs between the graphs
(`graphs.equivalence`). So there is one answer for every choice of parents that open directions leave. The
densities of nodes that have other parents than in the network are fitted to the training rows, with the best
of the types that the network has; all others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, final, get_args

import numpy as np

from spbn._base.arrays import Seed, generator
from spbn._base.checks import choice
from spbn.errors import ArgumentError, argument, setting
from spbn.graphs.dag import DAG, Arc
from spbn.graphs.equivalence import equivalent_graphs
from spbn.inference.batch import class_probabilities, impute_table
from spbn.inference.query import Alternative, Posterior
from spbn.joint import Joint
from spbn.nodes.atoms import fit_node
from spbn.nodes.base import CPD, NodeType, registered
from spbn.nodes.families import Family
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.scores.best_type import SIMPLE_FIRST, BestType
from spbn.scores.likelihood import CVLikelihood
from spbn.structure import Structure
from spbn.tables.reader import as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

#: Of the network's own graph, or of all graphs that imply the same independences.
Over = Literal["network", "equivalent"]
OVER: tuple[Over, ...] = get_args(Over)
FOLDS = 10  # of the cross-validation that chooses types
CENTRES = 2_000  # of kernels, where it does


def require_over(over: Over, do: object, data: Any) -> None:
    """Refuse to ask other graphs what all graphs of a class agree on, and rows that nothing needs."""
    choice("over", over, OVER)
    if over == "equivalent" and not do:
        raise ArgumentError(
            f"{setting('over', 'equivalent')} is for questions with {argument('do')}: all graphs of an "
            f"equivalence class have the same answer to others."
        )
    if over == "network" and data is not None:
        raise ArgumentError(f"{argument('data')} can only be used with {setting('over', 'equivalent')}.")


def over_graphs(
    found: Posterior, ask: Callable[[Joint], Posterior], over: Over, data: Any, seed: Seed
) -> Posterior:
    """Return an answer about variables that are set, with the open directions that it depends on.

    Over equivalent graphs, it comes with the answers of all of them: `ask` asks a network the same.
    """
    network = found.network
    arcs = open_directions_at(network, found.do)
    if over == "network":
        return replace(found, open_directions=arcs)
    alternatives = []
    for other, number in equivalent_networks(network, found.do, data, seed=seed):
        parents = {name: other.structure.parents(name) for name in found.do}
        answer = found if other is network else ask(other)
        alternatives.append(Alternative(parents, number, answer))
    return replace(found, open_directions=arcs, alternatives=tuple(alternatives))


def open_directions_at(network: Joint, nodes: Collection[str]) -> tuple[Arc, ...]:
    """Return the open directions that decide what setting nodes does: those between them and other nodes."""
    return tuple(arc for arc in network.open_directions() if len(set(arc) & set(nodes)) == 1)


def equivalent_networks(
    network: Joint, nodes: Collection[str], data: Any, *, seed: Seed = 0
) -> Iterator[tuple[Joint, int | None]]:
    """Yield a network for every choice of parents that some nodes have in equivalent graphs, its own first.

    With each comes the number of graphs that it stands for; None if there are very many.
    """
    arcs = list(network.open_directions())
    graphs = equivalent_graphs(network.structure.dag, arcs, nodes, seed=seed)
    yield network, graphs[0].number
    if len(graphs) == 1:
        return
    if data is None:
        raise ArgumentError(
            f"the answer depends on directions that are open, and {setting('over', 'equivalent')} fits nodes "
            f"to other parents: pass the training rows, {setting('data', ...)}."
        )
    refit = _Refit(network, data, seed)
    for dag, number in graphs[1:]:
        yield refit.network_of(dag), number


@final
class _Refit:
    """Fits the nodes of a network to other parents; what is missing in the rows is drawn once."""

    def __init__(self, network: Joint, data: Any, seed: Seed) -> None:
        self._network = network
        rng = generator(seed)
        table = as_table(data, variables=network.variables, missing="keep")
        if np.isnan(table.columns).any():
            (table,) = impute_table(network, table, seed=rng)
        codes = None
        if network.hidden is not None:
            bounds = class_probabilities(network, table).cumsum(axis=1)[:, :-1]
            codes = (rng.random((table.rows, 1)) >= bounds).sum(axis=1)
        self._rows: Table = network.with_class(network.transformed(table), codes)
        chosen = network.record.settings
        self._settings = FitSettings(
            **{name: chosen[name] for name in ("bandwidth", "engine", "smoothing") if name in chosen}
        )
        self._known: dict[tuple[str, frozenset[str]], CPD] = {}

    def network_of(self, dag: DAG) -> Joint:
        """Return the network with another graph."""
        network = self._network
        cpds = {node: self._cpd(node, dag.parents(node)) for node in network.nodes}
        types = {node: cpd.type for node, cpd in cpds.items()}
        structure = Structure(network.nodes, dag.arcs, types, inputs=network.structure.inputs)
        return type(network)(
            structure, cpds, margins=network.margins, record=network.record, hidden=network.hidden
        )

    def _cpd(self, node: str, parents: tuple[str, ...]) -> CPD:
        own, family = self._network.cpds[node], (node, frozenset(parents))
        if set(own.parents) == set(parents):
            return own
        if family not in self._known:
            node_type = self._best_type(Family(node, parents, own.type))
            self._known[family] = fit_node(node_type, self._rows, node, parents, self._settings)
        return self._known[family]

    def _best_type(self, family: Family) -> NodeType:
        """Return the type that suits a family best, of those that continuous nodes of the network have."""
        if len(self._types) < 2 or family.type not in self._types:
            return family.type
        arcs = [(parent, family.node) for parent in family.parents]
        alone = Structure([family.node], arcs, self._types[0], inputs=family.parents)
        return self._score.best_types(alone).type(family.node)

    @cached_property
    def _types(self) -> list[NodeType]:
        """The types of continuous nodes, simple ones first."""
        network = self._network
        there = {cpd.type for cpd in network.cpds.values() if not cpd.variable.is_discrete}
        ordered = [*map(NodeType.parse, SIMPLE_FIRST), *registered()]
        return [node_type for node_type in dict.fromkeys(ordered) if node_type in there]

    @cached_property
    def _score(self) -> BestType:
        labels = fold_labels(self._rows.rows, min(FOLDS, self._rows.rows), 0, discrete=self._rows.level_codes)
        rows = MemoryRows(Partition.folds(self._rows, labels), replace(self._settings, centres=CENTRES))
        score = CVLikelihood.of_rows(rows, penalty="auto")
        return BestType(score, self._types, cost=score.penalty)
