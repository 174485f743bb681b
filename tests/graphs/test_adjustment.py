import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn.graphs import adjustment_sets

from strategies import arcs_of_dag

nx = pytest.importorskip("networkx")


def satisfies_back_door(graph, cause, outcome, chosen):
    """Pearl's two conditions, as they are written."""
    if set(chosen) & nx.descendants(graph, cause):
        return False
    without = graph.copy()
    without.remove_edges_from(list(graph.out_edges(cause)))
    return nx.is_d_separator(without, {cause}, {outcome}, set(chosen))


def minimal_sets(graph, cause, outcome, unseen):
    """Every set that will do and none of whose subsets does, by trying all."""
    rest = [node for node in graph if node not in (cause, outcome, *unseen)]
    good = [
        set(chosen)
        for size in range(len(rest) + 1)
        for chosen in itertools.combinations(rest, size)
        if satisfies_back_door(graph, cause, outcome, chosen)
    ]
    return [chosen for chosen in good if not any(other < chosen for other in good)]


@given(arcs_of_dag(min_nodes=2, max_nodes=7), st.data())
def test_sets_are_those_of_brute_force(nodes_and_arcs, data):
    nodes, arcs = nodes_and_arcs
    cause, outcome = data.draw(st.permutations(nodes))[:2]
    rest = [node for node in nodes if node not in (cause, outcome)]
    unseen = data.draw(st.lists(st.sampled_from(rest), unique=True, max_size=2)) if rest else []
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(arcs)
    found = adjustment_sets(spbn.DAG(nodes, arcs), cause, outcome, unseen=unseen, most=1000)
    expected = minimal_sets(graph, cause, outcome, unseen)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    assert [len(chosen) for chosen in found] == sorted(len(chosen) for chosen in found)
    assert adjustment_sets(spbn.DAG(nodes, arcs), cause, outcome, unseen=unseen, most=1) == found[:1]


def test_a_large_graph_has_small_sets():
    """Of a ladder with 2^20 minimal sets, one of the smallest is found at once."""
    rungs = [(f"a{k}", f"b{k}") for k in range(20)]
    arcs = [pair for a, b in rungs for pair in ((a, "x"), (a, b), (b, "y"))] + [("u", "x"), ("u", "y")]
    nodes = ["x", "y", "u", *itertools.chain(*rungs)]
    found = adjustment_sets(spbn.DAG(nodes, arcs), "x", "y")
    assert len(found) == 5
    for chosen in found:
        assert len(chosen) == 21
        assert "u" in chosen
        assert all((a in chosen) != (b in chosen) for a, b in rungs)


def test_common_causes_are_joined_however_many_children_they_share():
    children = [f"c{k}" for k in range(256)]
    arcs = [(parent, child) for child in children for parent in "ab"]
    dag = spbn.DAG(["a", "b", *children], arcs)
    assert not dag.d_separated("a", "b", children)
    assert dag.d_separated("a", "b")


def test_one_node_is_refused():
    with pytest.raises(spbn.SpbnError, match=r"must be different nodes\. Got 'a' twice"):
        adjustment_sets(spbn.DAG("ab"), "a", "a")


def test_reachability_is_not_changed():
    dag = spbn.DAG("xya", [("a", "x"), ("a", "y"), ("x", "y")])
    before = dag.reachability.copy()
    assert adjustment_sets(dag, "x", "y") == (("a",),)
    assert adjustment_sets(dag, "x", "y", unseen="a") == ()
    np.testing.assert_array_equal(dag.reachability, before)
