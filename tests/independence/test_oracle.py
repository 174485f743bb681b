import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn.errors import ArgumentError
from spbn.graphs.dag import DAG
from spbn.independence import Oracle
from spbn.structure import Structure

from strategies import arcs_of_dag


@given(arcs_of_dag(min_nodes=2, max_nodes=7), st.data())
def test_answers_are_d_separation(graph, data):
    nodes, arcs = graph
    x, y, *others = data.draw(st.permutations(nodes))
    given_nodes = others[: data.draw(st.integers(0, len(others)))]
    truth = nx.DiGraph()
    truth.add_nodes_from(nodes)
    truth.add_edges_from(arcs)
    expected = nx.is_d_separator(truth, {x}, {y}, set(given_nodes))
    assert Oracle(DAG(nodes, arcs)).pvalue(x, y, given_nodes) == float(expected)
    assert Oracle(Structure(nodes, arcs)).pvalue(y, x, given_nodes) == float(expected)


def test_needs_a_graph():
    with pytest.raises(ArgumentError, match=r"must be a DAG or a Structure. Got list"):
        Oracle([("a", "b")])
