"""Grow-shrink trees: the parents that nodes take from those before them in an order, whichever these are.

What a set of parents grows to depends only on which further nodes are allowed. So sets are kept in a table,
each with the nodes that raise its score, the best first, and the set that adding one leads to. Compiled code
walks from set to set, and stops where a score is needed. All questions are walked together, and
what they need next is scored in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain, combinations, pairwise
from typing import Any, final

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.jit import compiled
from spbn.graphs.dag import DAG
from spbn.nodes.base import place_of
from spbn.rows.families import FamilyBatch
from spbn.scores.base import Score
from spbn.search.operators import LARGEST_BATCH, Constraints
from spbn.structure import Structure

UNFIT = -1e12  # stands for the score of a family that cannot be fitted: it must not hide the other families
#: Scores that differ by less, in nats or as a share of the score, are the same.
ROUNDING = 1e-9
ROUNDING_OF_UNFIT = 1e-3  # the same, if a family that cannot be fitted is among them
#: Searches that are worth their time: of nodes with few candidates, of others, and of many nodes.
RESTARTS_OF_FEW, RESTARTS, RESTARTS_OF_LARGE = 25, 5, 2
LARGE = 200  # nodes
LEAST_LEAD = 4.0  # of a node that is worth a try as a further parent, in nats
AT_A_TIME = 2  # leads that are scored together, the best of which is taken if it helps
FEW_CANDIDATES = 5  # of a node, of which all sets are scored: 32, about as many as trees would need
UNKNOWN = -1  # a place in a table, of what has not been asked for yet
AT_END, LACKS_LEADS, LACKS_SCORES, LACKS_SET = range(4)  # why a walk stops

#: A set of parents of a node: its score, its groups of further nodes, and the set that it shrinks to.
SET = np.dtype([("node", "i8"), ("score", "f8"), ("first", "i8"), ("end", "i8"), ("shrunk", "i8")])
#: Nodes that might raise the score of a set, and where those are that do, the best first.
GROUP = np.dtype([("first_member", "i8"), ("end_member", "i8"), ("first", "i8"), ("end", "i8")])
#: A node that raises the score of a set, to how much, and the set with it.
BRANCH = np.dtype([("other", "i8"), ("score", "f8"), ("set", "i8")])


@final
class _Rows:
    """A table to which rows are added."""

    def __init__(self, dtype: npt.DTypeLike, *width: int) -> None:
        self.all: Any = np.empty((256, *width), dtype)
        self.count = 0

    def add(self, count: int) -> Any:
        """Return as many new rows, to be filled."""
        first, self.count = self.count, self.count + count
        if self.count > len(self.all):
            room = np.empty((self.count, *self.all.shape[1:]), self.all.dtype)
            self.all = np.concatenate([self.all, room])
        return self.all[first : self.count]


@compiled()
def _walk(
    at: IntArray,
    limits: IntArray,
    layouts: IntArray,
    places: IntArray,
    tables: tuple[Any, Any, Any, Any],
    stops: IntArray,
) -> None:
    """Walk from sets on, each as far as is known; put in why it stops, and at which set, group or branch."""
    sets, groups, members, branches = tables
    for query in range(len(at)):
        limit, place, on_its_way = limits[query], places[layouts[query]], True
        while on_its_way:
            on_its_way, here = False, at[query]
            stops[query, 0] = AT_END
            if sets[here].first == UNKNOWN:
                stops[query, 0], stops[query, 1] = LACKS_LEADS, here
            for g in range(sets[here].first, sets[here].end):
                if groups[g].first == UNKNOWN:
                    for member in members[groups[g].first_member : groups[g].end_member]:
                        if place[member] < limit:
                            stops[query, 0], stops[query, 1] = LACKS_SCORES, g
                            break
                else:
                    for b in range(groups[g].first, groups[g].end):
                        if place[branches[b].other] < limit:
                            if branches[b].set == UNKNOWN:
                                stops[query, 0], stops[query, 1] = LACKS_SET, b
                            else:
                                at[query], on_its_way = branches[b].set, True
                            break
                if on_its_way or stops[query, 0] != AT_END:
                    break


@compiled()
def _rank_branches(
    bounds: IntArray, others: IntArray, scores: FloatArray, least: FloatArray, branches: Any
) -> IntArray:
    """Put in the nodes of every group whose scores are greater than the least, the best first.

    Returns
    -------
    Where the branches of every group end.
    """
    ends, count = np.empty(len(least), dtype=np.int64), 0
    for g in range(len(least)):
        first = count
        for k in range(bounds[g], bounds[g + 1]):
            if scores[k] > least[g]:
                place = count
                while place > first and branches[place - 1].score < scores[k]:
                    branches[place] = branches[place - 1]
                    place -= 1
                branches[place].other, branches[place].score = others[k], scores[k]
                branches[place].set = UNKNOWN
                count += 1
        ends[g] = count
    return ends


@final
class GrowShrinkTrees:
    """The sets of parents of all nodes that have been asked for, by their places in a table."""

    def __init__(self, score: Score, constraints: Constraints, structure: Structure) -> None:
        names, knowledge = structure.dag.nodes, constraints.knowledge
        n = len(structure.nodes)
        self.score = score
        self._columns = np.array([score.nodes.index(name) for name in names])
        self._types = np.array([place_of(structure.type(node)) for node in structure.nodes], dtype=np.int8)
        self._most = constraints.max_parents
        #: Nodes × others: those that may be parents.
        self._allowed: BoolArray = (~knowledge.forbidden_arcs & ~np.eye(len(names), dtype=bool))[:, :n].T
        self._candidates = [np.flatnonzero(row) for row in self._allowed]
        self._has_few = np.array([len(others) <= FEW_CANDIDATES for others in self._candidates], dtype=bool)
        #: Nodes × parents: those that are required.
        self.required: BoolArray = np.ascontiguousarray(knowledge.required_arcs[:, :n].T)
        reach = DAG.from_matrix(names, knowledge.required_arcs).reachability
        self._reach = reach & ~np.eye(len(names), dtype=bool)
        self._is_bound = np.logical_or(reach.any(axis=0), reach.any(axis=1))
        self._sets, self._groups, self._branches = _Rows(SET), _Rows(GROUP), _Rows(BRANCH)
        self._parents, self._members = _Rows(np.bool_, len(names)), _Rows(np.int64)
        self._places: dict[tuple[int, bytes], int] = {}  # of sets, by node and parents
        self._roots = np.full(n, UNKNOWN)
        #: All sets of parents of nodes with few candidates, the best first, as soon as they are needed.
        self._ranked: dict[int, IntArray] = {}

    @property
    def is_small(self) -> bool:
        """Whether all sets of first nodes can be gone through, and all families of nodes."""
        return len(self._candidates) <= FEW_CANDIDATES + 1 and bool(self._has_few.all())

    @property
    def usual_restarts(self) -> int:
        """How many searches are worth their time: more if all families are known after the first."""
        if self.is_small:
            return 1  # from the best order
        if self._has_few.all():
            return RESTARTS_OF_FEW
        return RESTARTS if len(self._candidates) < LARGE else RESTARTS_OF_LARGE

    def room(self, node: int, order: IntArray) -> tuple[int, int]:
        """Return the first and the last place among others where required arcs allow a node to be."""
        if not self._is_bound[node]:
            return 0, len(order)
        before = np.flatnonzero(self._reach[order, node])
        after = np.flatnonzero(self._reach[node, order])
        return int(before.max(initial=-1)) + 1, int(after.min(initial=len(order)))

    def scores_of(self, sets: IntArray) -> FloatArray:
        """Return the scores of nodes with these sets of parents."""
        scores: FloatArray = self._sets.all["score"][sets]
        return scores

    def parents_of(self, sets: IntArray) -> BoolArray:
        """Return sets × nodes."""
        parents: BoolArray = self._parents.all[sets]
        return parents

    def total(self, parents: BoolArray) -> float:
        """Return the score of a graph: nodes × parents."""
        return math.fsum(self.scores(np.arange(len(parents)), parents))

    def scores(self, nodes: IntArray, parents: BoolArray) -> FloatArray:
        """Return the scores of families; `UNFIT` for those that cannot be fitted."""
        found: FloatArray = np.maximum(self.score.local_batch(self._batch(nodes, parents)), UNFIT)
        return found

    def best(self, nodes: IntArray, limits: IntArray, layouts: IntArray, places: IntArray) -> IntArray:
        """Return the sets of parents that nodes take from those before them.

        `places`: layouts × nodes. In each query, the nodes are allowed whose place in its layout is below its
        limit.
        """
        found, few = np.empty_like(nodes), self._has_few[nodes]
        if few.any():
            self._rank(nodes[few])
            for query in np.flatnonzero(few).tolist():
                ranked = self._ranked[int(nodes[query])]
                is_late = places[layouts[query]] >= limits[query]
                found[query] = ranked[(self.parents_of(ranked) & is_late).any(axis=1).argmin()]
        if not few.all():
            many = ~few
            grown = self._grow(nodes[many], limits[many], layouts[many], places)
            self._shrink(grown)
            found[many] = self._sets.all["shrunk"][grown]
        return found

    def _rank(self, nodes: IntArray) -> None:
        """Score the sets of parents of nodes with few candidates; of equal ones, the smaller comes first."""
        new = [node for node in np.unique(nodes).tolist() if node not in self._ranked]
        every, sets = list[int](), list[BoolArray]()
        for node in new:
            others = self._candidates[node][~self.required[node, self._candidates[node]]]
            most = min(self._most - int(self.required[node].sum()), len(others))
            for chosen in chain.from_iterable(combinations(others, size) for size in range(most + 1)):
                parents = self.required[node].copy()
                parents[list(chosen)] = True
                every.append(node)
                sets.append(parents)
        found, owners = np.array(self._find(every, sets), dtype=np.int64), np.array(every)
        for node in new:
            places = found[owners == node]
            self._ranked[node] = places[np.argsort(-self.scores_of(places), kind="stable")]

    def _find(
        self,
        nodes: Sequence[int],
        parents: Sequence[BoolArray] | BoolArray,
        scores: FloatArray | None = None,
    ) -> list[int]:
        """Return the places of sets in the table; add those that are new."""
        keys = [(node, row.tobytes()) for node, row in zip(nodes, parents, strict=True)]
        new = {key: number for number, key in enumerate(keys) if key not in self._places}
        if new:
            numbers = list(new.values())
            first, added = self._sets.count, self._sets.add(len(new))
            rows, of_nodes = self._parents.add(len(new)), np.array(nodes)[numbers]
            rows[:] = np.array(parents)[numbers]
            added["node"], added["first"], added["end"], added["shrunk"] = of_nodes, UNKNOWN, UNKNOWN, UNKNOWN
            added["score"] = self.scores(of_nodes, rows) if scores is None else scores[numbers]
            self._places.update(zip(new, range(first, self._sets.count), strict=True))
        return [self._places[key] for key in keys]

    def _grow(self, nodes: IntArray, limits: IntArray, layouts: IntArray, places: IntArray) -> IntArray:
        lacking = np.unique(nodes[self._roots[nodes] == UNKNOWN])
        self._roots[lacking] = self._find(lacking.tolist(), self.required[lacking])
        at, stops = self._roots[nodes], np.empty((len(nodes), 2), dtype=np.int64)
        while True:
            tables = self._sets.all, self._groups.all, self._members.all, self._branches.all
            _walk(at, limits, layouts, places, tables, stops)
            why, where = stops[:, 0], stops[:, 1]
            if not why.any():
                return at
            if (why == LACKS_LEADS).any():
                self._find_leads(dict.fromkeys(where[why == LACKS_LEADS].tolist()))
            for reason, find in ((LACKS_SET, self._find_sets), (LACKS_SCORES, self._find_branches)):
                some = why == reason
                if some.any():
                    find(dict(zip(where[some].tolist(), at[some].tolist(), strict=True)))

    def _find_sets(self, branches: dict[int, int]) -> None:
        """Find the sets that branches of other sets lead to."""
        numbers, sets = list(branches), list(branches.values())
        parents, some = self.parents_of(np.array(sets)), self._branches.all[numbers]
        parents[np.arange(len(sets)), some["other"]] = True
        found = self._find(self._sets.all["node"][sets].tolist(), parents, some["score"])
        self._branches.all["set"][numbers] = found
        self._find_leads(place for place in dict.fromkeys(found) if self._sets.all[place]["first"] == UNKNOWN)

    def _find_leads(self, sets: Iterable[int]) -> None:
        """Find out which further parents of sets are worth a try."""
        every = np.fromiter(sets, dtype=np.int64)
        table, nodes, parents = self._sets.all, self._sets.all["node"][every], self.parents_of(every)
        growing = np.flatnonzero(parents.sum(axis=1) < self._most)
        table["first"][every] = table["end"][every] = self._groups.count
        if not len(growing):
            return
        leads = self.score.leads(self._batch(nodes[growing], parents[growing]))
        if leads is None:  # all others are one group
            which, others = np.nonzero(self._allowed[nodes[growing]] & ~parents[growing])
            bounds = self._members.count + np.searchsorted(which, np.arange(len(growing) + 1))
            self._members.add(len(others))[:] = others
            table["first"][every[growing]] = np.arange(len(growing)) + self._groups.count
            table["end"][every[growing]] = table["first"][every[growing]] + 1
            groups = self._groups.add(len(growing))
            groups["first_member"], groups["end_member"], groups["first"] = bounds[:-1], bounds[1:], UNKNOWN
            return
        for number, query in enumerate(growing.tolist()):
            candidates, place = self._candidates[nodes[query]], every[query]
            others = candidates[~parents[query, candidates]]
            of_others = leads[number, self._columns[others]]
            others = others[np.argsort(-of_others, kind="stable")]
            unknown = int(np.count_nonzero(of_others == math.inf))
            judged = int(np.count_nonzero(of_others > LEAST_LEAD))
            edges = sorted({0, *range(unknown, judged, AT_A_TIME), judged})
            before = self._members.count
            self._members.add(judged)[:] = others[:judged]
            table["first"][place] = self._groups.count
            groups = self._groups.add(len(edges) - 1)
            groups["first_member"] = before + np.array(edges[:-1], dtype=np.int64)
            groups["end_member"], groups["first"] = before + np.array(edges[1:], dtype=np.int64), UNKNOWN
            table["end"][place] = self._groups.count

    def _find_branches(self, groups: dict[int, int]) -> None:
        """Find out which nodes of groups raise the scores of the sets that they belong to."""
        at_a_time = max(1, LARGEST_BATCH // (len(self._columns) * len(self.score.nodes)))
        every = np.array(list(groups.items()))
        for start in range(0, len(every), at_a_time):
            some, sets = every[start : start + at_a_time].T
            firsts = self._groups.all["first_member"][some]
            counts = self._groups.all["end_member"][some] - firsts
            bounds = np.concatenate([[0], np.cumsum(counts)])
            others = self._members.all[np.repeat(firsts - bounds[:-1], counts) + np.arange(bounds[-1])]
            found = self._scores_with(sets, np.repeat(np.arange(len(sets)), counts), others)
            least = np.array([score + noise_of(score) for score in self.scores_of(sets).tolist()])
            before, branches = self._branches.count, self._branches.add(len(others))
            ends = before + _rank_branches(bounds, others, found, least, branches)
            self._groups.all["end"][some] = ends
            self._groups.all["first"][some] = np.concatenate([[before], ends[:-1]])
            self._branches.count = int(ends[-1])

    def _scores_with(self, sets: IntArray, which: IntArray, others: IntArray) -> FloatArray:
        """Return the scores of some of the sets, given by number, each with one more parent."""
        nodes, parents = self._sets.all["node"][sets], self.parents_of(sets)
        of_columns = self.score.further(self._batch(nodes, parents))
        if of_columns is not None:
            found: FloatArray = np.maximum(of_columns[which, self._columns[others]], UNFIT)
            return found
        with_others = parents[which]
        with_others[np.arange(len(others)), others] = True
        return self.scores(nodes[which], with_others)

    def _shrink(self, sets: IntArray) -> None:
        """Find out what sets shrink to."""
        at = {place: place for place in sets[self._sets.all["shrunk"][sets] == UNKNOWN].tolist()}
        shrinking = list(at)
        while shrinking:
            now = np.array([at[place] for place in shrinking])
            nodes, parents = self._sets.all["node"][now], self.parents_of(now)
            which, others = np.nonzero(parents & ~self.required[nodes])
            smaller = parents[which]
            smaller[np.arange(len(which)), others] = False
            scores = self.scores(nodes[which], smaller)
            bounds = np.searchsorted(which, np.arange(len(now) + 1))
            better = dict[int, int]()
            for number, (first, end) in enumerate(pairwise(bounds.tolist())):
                score = self._sets.all["score"][now[number]]
                if end > first and scores[first:end].max() >= score - noise_of(score):
                    better[number] = first + int(scores[first:end].argmax())
            chosen = list(better.values())
            found = self._find(nodes[which[chosen]].tolist(), smaller[chosen], scores[chosen])
            shrinking = [shrinking[number] for number in better]
            at |= dict(zip(shrinking, found, strict=True))
        for place, least in at.items():
            self._sets.all["shrunk"][place] = least

    def _batch(self, nodes: IntArray, parents: BoolArray) -> FamilyBatch:
        of_columns = np.zeros((len(nodes), len(self.score.nodes)), dtype=np.bool_)
        of_columns[:, self._columns] = parents
        return FamilyBatch(self.score.nodes, self._columns[nodes], of_columns, self._types[nodes])


def noise_of(score: float) -> float:
    """Return by how much rounding may change a score."""
    return ROUNDING * max(1.0, abs(score)) if score > UNFIT else ROUNDING_OF_UNFIT
