"""Orientations, against brute force over every orientation of small graphs."""

import warnings
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn.graphs.dag import DAG, PDAG
from spbn.graphs.orientation import OrientationWarning, cpdag, extension, meek, reaches, unshielded_triples

from naive import is_acyclic
from strategies import arcs_of_dag


def orientations(adjacent):
    """Every acyclic orientation of a skeleton."""
    pairs = [(i, j) for i, j in combinations(range(len(adjacent)), 2) if adjacent[i, j]]
    for turned in product([False, True], repeat=len(pairs)):
        matrix = np.zeros_like(adjacent)
        for (i, j), turn in zip(pairs, turned, strict=True):
            matrix[(j, i) if turn else (i, j)] = True
        if is_acyclic(list(range(len(matrix))), [tuple(arc) for arc in np.argwhere(matrix)]):
            yield matrix


def colliders(directed, adjacent):
    n = len(directed)
    return {
        (min(x, y), z, max(x, y))
        for x, z, y in product(range(n), repeat=3)
        if x != y and directed[x, z] and directed[y, z] and not adjacent[x, y]
    }


def equivalence_class(matrix):
    adjacent = matrix | matrix.T
    wanted = colliders(matrix, adjacent)
    return [other for other in orientations(adjacent) if colliders(other, adjacent) == wanted]


def consistent_extensions(directed, undirected):
    """Every DAG with these adjacencies, arcs and colliders."""
    adjacent = directed | directed.T | undirected
    wanted = colliders(directed, adjacent)
    return [
        other
        for other in orientations(adjacent)
        if (directed <= other).all() and colliders(other, adjacent) == wanted
    ]


@st.composite
def pdags(draw, max_nodes=5):
    n = draw(st.integers(2, max_nodes))
    directed, undirected = np.zeros((n, n), bool), np.zeros((n, n), bool)
    for i, j in combinations(range(n), 2):
        match draw(st.sampled_from(["none", "edge", "arc", "turned"])):
            case "edge":
                undirected[i, j] = undirected[j, i] = True
            case "arc":
                directed[i, j] = True
            case "turned":
                directed[j, i] = True
    return directed, undirected


@pytest.mark.slow
@settings(max_examples=200)
@given(arcs_of_dag(max_nodes=5))
def test_cpdag_holds_the_arcs_that_the_whole_class_shares(graph):
    matrix = DAG(*graph).matrix
    members = equivalence_class(matrix)
    directed, undirected = cpdag(matrix)
    assert (directed == np.logical_and.reduce(members)).all()
    assert (undirected == ((matrix | matrix.T) & ~(directed | directed.T))).all()


@pytest.mark.slow
@settings(max_examples=200)
@given(arcs_of_dag(min_nodes=3, max_nodes=5), st.data())
def test_meek_finds_all_that_follows_from_further_arcs(graph, data):
    """Complete with background knowledge, which is what the fourth rule is for."""
    matrix = DAG(*graph).matrix
    directed, undirected = (part.copy() for part in cpdag(matrix))
    edges = [(i, j) for i, j in np.argwhere(undirected) if matrix[i, j]]
    for i, j in data.draw(st.lists(st.sampled_from(edges), unique=True)) if edges else []:
        directed[i, j] = True
        undirected[i, j] = undirected[j, i] = False
    members = [member for member in equivalence_class(matrix) if (directed <= member).all()]
    found, left = meek(directed, undirected)
    assert (found == np.logical_and.reduce(members)).all()
    assert not (left & (found | found.T)).any()


def test_the_fourth_rule():
    # a - b, a - c, a - d, c → d → b, and c, b are not adjacent: b → a would need d → a and a → c, a cycle.
    pdag = PDAG("abcd", [("c", "d"), ("d", "b")], [("a", "b"), ("a", "c"), ("a", "d")])
    directed, _ = meek(pdag.directed, pdag.undirected)
    assert directed[0, 1]


def test_rule_1_leaves_ambiguous_triples():
    pdag = PDAG("abc", [("a", "b")], [("b", "c")])
    assert meek(pdag.directed, pdag.undirected)[0][1, 2]
    directed, undirected = meek(pdag.directed, pdag.undirected, ambiguous=frozenset({(0, 1, 2)}))
    assert not directed[1, 2]
    assert undirected[1, 2]


@pytest.mark.slow
@settings(max_examples=200)
@given(pdags())
def test_meek_closes_no_cycle(pdag):
    directed, undirected = pdag
    nodes = list(range(len(directed)))
    if is_acyclic(nodes, [tuple(arc) for arc in np.argwhere(directed)]):
        found, left = meek(directed, undirected)
        assert is_acyclic(nodes, [tuple(arc) for arc in np.argwhere(found)])
        assert (directed <= found).all()
        joined = directed | directed.T | undirected
        assert ((found | found.T | left) == joined).all()


@pytest.mark.slow
@settings(max_examples=200)
@given(pdags())
def test_extension_is_consistent_or_warns(pdag):
    directed, undirected = pdag
    possible = consistent_extensions(directed, undirected)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dag = extension(directed, undirected)
    assert is_acyclic(list(range(len(dag))), [tuple(arc) for arc in np.argwhere(dag)])
    assert ((dag | dag.T) == (directed | directed.T | undirected)).all()
    assert bool(caught) == (not possible)
    if possible:
        assert any((dag == member).all() for member in possible)
    elif is_acyclic(list(range(len(dag))), [tuple(arc) for arc in np.argwhere(directed)]):
        assert (directed <= dag).all()  # without a cycle, no arc has to be turned


@pytest.mark.slow
@given(arcs_of_dag(max_nodes=15))
def test_extension_of_a_cpdag_is_a_member_of_the_class(graph):
    whole = DAG(*graph).to_cpdag()
    assert whole.to_dag().to_cpdag() == whole


def test_warning_counts_what_had_to_give():
    with pytest.warns(OrientationWarning, match="1 of its arcs are reversed and 0 pairs"):
        dag = PDAG("abc", [("a", "b"), ("b", "c"), ("c", "a")]).to_dag()
    assert len(dag.arcs) == 3
    # A square without diagonals: some pair must become a collider.
    with pytest.warns(OrientationWarning, match="0 of its arcs are reversed and 1 pairs"):
        PDAG("abcd", edges=[("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]).to_dag()


@pytest.mark.slow
@given(arcs_of_dag(max_nodes=7))
def test_reaches_is_reachability(graph):
    dag = DAG(*graph)
    for i, a in enumerate(dag.nodes):
        for j in range(len(dag.nodes)):
            assert reaches(dag.matrix, i, j) == (dag.nodes[j] in dag.descendants(a))


@pytest.mark.slow
@given(arcs_of_dag(max_nodes=6))
def test_unshielded_triples(graph):
    matrix = DAG(*graph).matrix
    adjacent = matrix | matrix.T
    n = len(adjacent)
    expected = {
        (x, z, y)
        for x, z, y in product(range(n), repeat=3)
        if x < y and adjacent[x, z] and adjacent[y, z] and not adjacent[x, y]
    }
    found = list(unshielded_triples(adjacent))
    assert len(found) == len(set(found))
    assert set(found) == expected
