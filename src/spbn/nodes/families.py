"""Families by name (a node, its parents and its type), and their scores, whatever the type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.errors import GraphError, quoted
from spbn.nodes.base import NodeType, place_of, registered
from spbn.nodes.by_configuration import ConfigurationScorer
from spbn.nodes.linear_gaussian import NODE_TYPE as LG_TYPE
from spbn.nodes.linear_gaussian import LinearScorer
from spbn.rows.families import MOST_BITS, FamilyBatch
from spbn.rows.store import JudgingScorer, LeadingScorer, RowStore, Scorer


class Family(NamedTuple):
    """A node, its parents and its type: all that a local score depends on.

    Examples
    --------
    >>> import spbn
    >>> family = spbn.nodes.Family("C", ("A", "B"), spbn.NodeType.CKDE)
    >>> print(family)
    C | A, B (ckde)
    """

    node: str
    parents: tuple[str, ...] = ()
    type: NodeType = LG_TYPE

    def __str__(self) -> str:
        return f"{self.node} | {', '.join(self.parents) or '∅'} ({self.type})"


#: What is accepted as a family: one, or a tuple like it.
AnyFamily = Family | tuple[str, Iterable[str], NodeType | str]


def named_batch(columns: tuple[str, ...], families: Sequence[AnyFamily]) -> FamilyBatch:
    """Read families of some columns that are given by name, and refuse anything else."""
    place = {name: i for i, name in enumerate(columns)}
    nodes = np.empty(len(families), dtype=np.int64)
    parents = np.zeros((len(families), len(columns)), dtype=bool)
    types = np.empty(len(families), dtype=np.int8)
    for f, family in enumerate(families):
        try:
            node, given, node_type = Family(*family)  # type: ignore[arg-type]  # or what is like one
            given = tuple(given)
            nodes[f] = place[node]
            parents[f, [place[name] for name in given]] = True
        except (TypeError, ValueError):
            raise GraphError(f"a family is (node, parents, type), by name. Got {family!r:.200}.") from None
        except KeyError as error:
            raise GraphError(
                f"the score's data has no column {error.args[0]!r}. It has {quoted(columns)}."
            ) from None
        if parents[f].sum() < len(given) or parents[f, nodes[f]]:
            raise GraphError(f"the parents of {node!r} must be distinct other nodes. Got {quoted(given)}.")
        types[f] = place_of(NodeType.parse(node_type))
    return FamilyBatch(columns, nodes, parents, types)


def families_of(batch: FamilyBatch) -> list[Family]:
    """Return the families of a batch by name, parents in column order."""
    names, types = batch.columns, registered()
    return [
        Family(names[members[-1]], tuple([names[i] for i in members[:-1]]), types[node_type])
        for members, node_type in zip(batch.column_tuples, batch.types.tolist(), strict=True)
    ]


def of_type(batch: FamilyBatch, node_type: NodeType) -> BoolArray:
    """Tell which families of a batch have a node of this type."""
    return batch.types == place_of(node_type)


@final
class FamilyScorer:
    """Scores families on rows that their parameters were not fitted to.

    A batch is grouped by type, and each type's scorer is asked once.
    """

    def __init__(self, rows: RowStore) -> None:
        self.store = rows

    def totals(self, families: FamilyBatch) -> FloatArray:
        out = np.full(len(families), -np.inf)
        for chosen, scorer in self._by_scorer(families):
            out[chosen] = scorer.totals(families.only(chosen))
        return out

    def totals_and_misfits(self, families: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        """Log-likelihoods, and how many nats another type might gain; infinity where that is not known."""
        totals, misfits = np.full(len(families), -np.inf), np.full(len(families), np.inf)
        for chosen, scorer in self._by_scorer(families):
            batch = families.only(chosen)
            if isinstance(scorer, JudgingScorer):
                totals[chosen], misfits[chosen] = scorer.totals_and_misfits(batch)
            else:
                totals[chosen] = scorer.totals(batch)
        return totals, misfits

    def leads(self, families: FamilyBatch) -> FloatArray:
        """Families × columns: how many nats each might gain as a parent; infinity where that is not known."""
        out = np.full((len(families), len(self.store.variables)), np.inf)
        for chosen, scorer in self._by_scorer(families):
            if isinstance(scorer, LeadingScorer):
                out[chosen] = scorer.leads(families.only(chosen))
        return out

    def further(self, families: FamilyBatch) -> FloatArray | None:
        """Families × columns: log-likelihoods with each as one more parent; None unless all are lines."""
        scorer = self.store.scorer(LG_TYPE)
        if self.store.discrete.any() or not of_type(families, LG_TYPE).all():
            return None
        return scorer.further(families) if isinstance(scorer, LinearScorer) else None

    def rows(self, families: FamilyBatch) -> FloatArray:
        """Families × evaluated rows, in the order of the data; -inf throughout where one cannot be fitted."""
        return self.store.in_data_order(self.by_piece(families))

    def by_piece(self, families: FamilyBatch) -> FloatArray:
        """Return the same in the order of the store."""
        out = np.full((len(families), self.store.pieces), -np.inf)
        for chosen, scorer in self._by_scorer(families):
            out[chosen] = scorer.rows(families.only(chosen))
        return out

    def _by_scorer(self, families: FamilyBatch) -> Iterator[tuple[BoolArray, Scorer]]:
        """Yield families, and what scores them; those that their type does not admit are left out."""
        admitted, divided = self._admitted(families)
        for node, mark in self._marks:
            marked = admitted & (families.nodes == node) & families.parents[:, mark]
            if marked.any():
                admitted &= ~marked
                yield marked, AtomScorer(self.store, mark)
        for number in np.unique(families.types):
            node_type = registered()[number]
            for is_divided in (False, True):
                chosen = (families.types == number) & admitted & (divided == is_divided)
                if chosen.any():
                    by_configuration = ConfigurationScorer(node_type, self.store)
                    yield chosen, by_configuration if is_divided else self.store.scorer(node_type)

    @cached_property
    def _marks(self) -> list[tuple[int, int]]:
        """The columns that have atoms, and those that mark these."""
        names = [variable.name for variable in self.store.variables]
        return [(names.index(name), names.index(mark)) for name, mark in self.store.marked_by.items()]

    def _admitted(self, families: FamilyBatch) -> tuple[BoolArray, BoolArray]:
        """Tell which families their types admit, and which have a continuous node with discrete parents."""
        discrete, types = self.store.discrete, registered()
        variables = np.array([*self.store.variables, None], dtype=object)[:-1]
        divided = (families.parents & discrete).any(axis=1) & ~discrete[families.nodes]
        if discrete.any():
            admitted = [
                types[number].admits(variables[node], variables[parents].tolist())
                for number, node, parents in zip(
                    families.types, families.nodes, families.parents, strict=True
                )
            ]
            levels = np.array([max(len(variable.levels), 1) for variable in variables])
            countable = families.parents @ np.log2(levels) < MOST_BITS
            return np.array(admitted, dtype=np.bool_) & countable, divided
        continuous = [types[number].admits(variables[0], ()) for number in range(len(types))]
        return np.array(continuous)[families.types], divided


@final
class AtomScorer:
    """Scores families of a node with atoms, which has the mark of these as a parent.

    What counts is rows without an atom: in all others, the node is certain.
    """

    def __init__(self, rows: RowStore, mark: int) -> None:
        self._pieces, part = rows.pieces, rows.beside_atoms(rows.variables[mark].name)
        self._scorer, self._places = FamilyScorer(part.rows), part.places
        self._is_mark = np.arange(len(rows.variables)) == mark

    def totals(self, families: FamilyBatch) -> FloatArray:
        return self._scorer.totals(families.without_parents(self._is_mark))

    def totals_and_misfits(self, families: FamilyBatch) -> tuple[FloatArray, FloatArray]:
        return self._scorer.totals_and_misfits(families.without_parents(self._is_mark))

    def leads(self, families: FamilyBatch) -> FloatArray:
        return self._scorer.leads(families.without_parents(self._is_mark))

    def rows(self, families: FamilyBatch) -> FloatArray:
        found = self._scorer.by_piece(families.without_parents(self._is_mark))
        out = np.zeros((len(families), self._pieces))
        out[:, self._places] = found
        out[~np.isfinite(found).all(axis=1)] = -np.inf
        return out
