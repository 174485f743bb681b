from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn.errors import ArgumentError, GraphError
from spbn.graphs.dag import DAG, PDAG
from spbn.metrics import hmd, shd, thmd
from spbn.structure import Structure

from strategies import NAMES, arcs_of_dag


def joins(graph):
    """How every pair is joined, as text."""
    arcs = set(graph.arcs)
    edges = {frozenset(edge) for edge in getattr(graph, "edges", ())}
    return {
        (a, b): "→" * ((a, b) in arcs) + "←" * ((b, a) in arcs) + "-" * (frozenset((a, b)) in edges)
        for a, b in combinations(sorted(graph.nodes), 2)
    }


@given(arcs_of_dag(5, 5), arcs_of_dag(5, 5), st.permutations(NAMES[:5]), st.booleans(), st.booleans())
def test_distances_by_their_definition(a, b, order, class_a, class_b):
    first, second = DAG(*a), DAG(order, b[1])
    first, second = (first.to_cpdag() if class_a else first), (second.to_cpdag() if class_b else second)
    one, other = joins(first), joins(second)
    assert shd(first, second) == shd(second, first) == sum(one[pair] != other[pair] for pair in one)
    assert hmd(first, second) == hmd(second, first) == sum(bool(one[p]) != bool(other[p]) for p in one)
    assert hmd(first, first) == shd(first, first) == 0


def test_a_reversed_arc_counts_once():
    true, found = DAG("abc", [("a", "b"), ("b", "c")]), DAG("abc", [("b", "a"), ("a", "c")])
    assert hmd(true, found) == 2
    assert shd(true, found) == 3
    assert shd(true, DAG("abc", [("b", "a"), ("b", "c")])) == 1
    assert shd(true, PDAG("abc", [("a", "b")], [("b", "c")])) == 1
    assert hmd(true, PDAG("abc", [("a", "b")], [("b", "c")])) == 0


def test_structures_and_what_has_one():
    a = Structure("abc", [("a", "b")], {"a": "lg", "b": "ckde", "c": "lg"})
    b = Structure("cab", [("b", "a")], "ckde")
    fitted = SimpleNamespace(structure=b)
    assert thmd(a, b) == thmd(a, fitted) == thmd(fitted, a) == 2
    assert thmd(b, fitted) == 0
    assert shd(a, fitted) == 1
    assert hmd(a, fitted) == 0
    assert hmd(a, DAG("abc")) == 1


@pytest.mark.parametrize("distance", [hmd, shd, thmd])
def test_different_nodes_are_an_error(distance):
    with pytest.raises(GraphError, match=r"different nodes.*'c' and 'd'"):
        distance(Structure("abc"), Structure(["a", "b", "d"]))


def test_what_has_no_graph_or_no_types():
    with pytest.raises(ArgumentError, match=r"DAG, a PDAG, a Structure or a fitted network. Got str"):
        hmd("abc", DAG("abc"))
    with pytest.raises(ArgumentError, match=r"Got DAG"):
        thmd(DAG("abc"), DAG("abc"))
