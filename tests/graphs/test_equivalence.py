import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn.graphs.equivalence import equivalent_graphs

from strategies import arcs_of_dag


def colliders(nodes, arcs):
    """Unshielded colliders, from the definition."""
    arcs = set(arcs)
    joined = {frozenset(arc) for arc in arcs}
    return {
        (frozenset((a, b)), c)
        for c in nodes
        for a, b in itertools.combinations(nodes, 2)
        if (a, c) in arcs and (b, c) in arcs and frozenset((a, b)) not in joined
    }


def members(nodes, arcs, fixed):
    """All graphs with the same adjacencies and colliders that have some arcs, by trying every direction."""
    free = [arc for arc in arcs if arc not in fixed]
    for turned in itertools.product([False, True], repeat=len(free)):
        directions = [arc[::-1] if turn else arc for arc, turn in zip(free, turned, strict=True)]
        graph = [*fixed, *directions]
        try:
            spbn.DAG(nodes, graph)
        except spbn.SpbnError:
            continue
        if colliders(nodes, graph) == colliders(nodes, arcs):
            yield frozenset(graph)


def parents_of(chosen, arcs):
    return tuple(frozenset(a for a, b in arcs if b == node) for node in chosen)


@settings(deadline=None)
@given(arcs_of_dag(min_nodes=2, max_nodes=6), st.data())
def test_graphs_stand_for_all_of_their_class(nodes_and_arcs, data):
    nodes, arcs = nodes_and_arcs
    fixed = data.draw(st.lists(st.sampled_from(arcs), unique=True)) if arcs else []
    chosen = data.draw(st.lists(st.sampled_from(nodes), unique=True, min_size=1, max_size=2))
    class_ = list(members(nodes, arcs, fixed))
    open_arcs = [arc for arc in arcs if any(arc not in graph for graph in class_)]
    found = equivalent_graphs(spbn.DAG(nodes, arcs), open_arcs, chosen, most=1000)
    assert set(found[0].dag.arcs) == set(arcs)
    counts = {}
    for graph in class_:
        counts[parents_of(chosen, graph)] = counts.get(parents_of(chosen, graph), 0) + 1
    assert {parents_of(chosen, one.dag.arcs): one.number for one in found} == counts
    assert len(found) == len(counts)
    assert all(frozenset(one.dag.arcs) in class_ for one in found)


def test_many_graphs_are_drawn_and_others_counted():
    """Of a complete graph of eight nodes, a node can have any of 128 sets of parents."""
    arcs = list(itertools.combinations("abcdefgh", 2))
    dag = spbn.DAG("abcdefgh", arcs)
    found = equivalent_graphs(dag, arcs, ["a"], most=30, seed=1)
    assert len(found) == 30
    assert found[0].dag == dag
    assert len({one.dag.parents("a") for one in found}) == 30
    again = equivalent_graphs(dag, arcs, ["a"], most=30, seed=1)
    assert [one.dag.arcs for one in again] == [one.dag.arcs for one in found]
    other = equivalent_graphs(dag, arcs, ["a"], most=30, seed=2)
    assert [one.dag.arcs for one in other] != [one.dag.arcs for one in found]
    every = equivalent_graphs(dag, arcs, ["a"], most=200)
    assert len(every) == 128
    for one in every:
        above = len(one.dag.parents("a"))
        assert one.number == math.factorial(above) * math.factorial(7 - above)
    assert np.sum([one.number for one in every]) == math.factorial(8)


def test_chains_are_counted_apart():
    """Two chains of ten nodes each: ten graphs, and ten for every one of these."""
    first, second = ([f"{name}{k}" for k in range(10)] for name in "xy")
    arcs = [*itertools.pairwise(first), *itertools.pairwise(second)]
    dag = spbn.DAG([*first, *second], arcs)
    found = equivalent_graphs(dag, arcs, ["x4"])
    assert {one.dag.parents("x4"): one.number for one in found} == {("x3",): 40, ("x5",): 50, (): 10}
