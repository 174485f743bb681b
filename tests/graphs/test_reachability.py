"""Reachability that is carried along arc by arc, against walks through the graph."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spbn.graphs.dag import DAG

from naive import is_acyclic
from strategies import arcs_of_dag


def walked(dag):
    graph = nx.DiGraph()
    graph.add_nodes_from(dag.nodes)
    graph.add_edges_from(dag.arcs)
    below = [nx.descendants(graph, node) for node in dag.nodes]
    return np.array([[other in found for other in dag.nodes] for found in below])


@given(arcs_of_dag(2, 7), st.data())
def test_arcs_that_come_and_go_keep_it_right(graph, data):
    nodes, arcs = graph
    dag = DAG(nodes)
    for source, target in data.draw(st.permutations(arcs)):
        dag = dag.with_arc(source, target)
        np.testing.assert_array_equal(dag.reachability, walked(dag))
    if arcs:
        gone = data.draw(st.sampled_from(arcs))
        np.testing.assert_array_equal(dag.without_arc(*gone).reachability, walked(dag.without_arc(*gone)))
    for i, source in enumerate(nodes):
        for j, target in enumerate(nodes):
            joined = source == target or {(source, target), (target, source)} & set(arcs)
            expected = not joined and is_acyclic(nodes, [*arcs, (source, target)])
            assert dag.addable()[i, j] == expected
