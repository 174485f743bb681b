import sys

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn import DAG
from spbn.errors import GraphError, PackageError
from spbn.graphs import PDAG

from naive import is_acyclic
from strategies import arcs_of_dag


def test_a_small_graph():
    dag = DAG("abcd", [("c", "d"), ("a", "c"), ("b", "c")])
    assert dag.arcs == (("a", "c"), ("b", "c"), ("c", "d"))
    assert dag.parents("c") == ("a", "b")
    assert dag.children("c") == ("d",)
    assert dag.ancestors("d") == ("a", "b", "c")
    assert dag.descendants("a") == ("c", "d")
    assert dag.topological_order() == ("a", "b", "c", "d")
    assert str(dag) == "4 nodes: a, b, c, d\na → c\nb → c\nc → d"
    assert eval(repr(dag)) == dag


def test_equality_ignores_order():
    a, b = DAG("abc", [("a", "b"), ("b", "c")]), DAG("cba", [("b", "c"), ("a", "b")])
    assert a == b
    assert hash(a) == hash(b)
    assert a != DAG("abc", [("a", "b")])
    assert a != DAG("abcd", [("a", "b"), ("b", "c")])


@pytest.mark.parametrize(
    ("nodes", "arcs", "message"),
    [
        ("abc", [("a", "b"), ("b", "c"), ("c", "a")], "cycle: .* → .* → .* → "),
        ("ab", [("a", "a")], "join two nodes"),
        ("ab", [("a", "x")], "'x'"),
        ("ab", ["abc"], "pair of nodes"),
        (["a", "a"], [], "distinct"),
        ([], [], "at least one"),
        ([1, 2], [], "text"),
    ],
)
def test_what_is_no_dag_is_refused(nodes, arcs, message):
    with pytest.raises(GraphError, match=message):
        DAG(nodes, arcs)


def test_a_cycle_is_named_in_the_direction_of_its_arcs():
    with pytest.raises(GraphError, match=r"cycle: (b → c → d → b|c → d → b → c|d → b → c → d)"):
        DAG("abcde", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")])


@given(arcs_of_dag())
def test_reachability_and_orders_agree_with_networkx(graph):
    nodes, arcs = graph
    dag, reference = DAG(nodes, arcs), nx.DiGraph(arcs)
    reference.add_nodes_from(nodes)
    for node in nodes:
        assert set(dag.ancestors(node)) == nx.ancestors(reference, node)
        assert set(dag.descendants(node)) == nx.descendants(reference, node)
    order = dag.topological_order()
    assert sorted(order) == sorted(nodes)
    assert all(order.index(a) < order.index(b) for a, b in arcs)


@pytest.mark.slow
@given(arcs_of_dag())
def test_which_arcs_may_be_added_and_reversed(graph):
    nodes, arcs = graph
    dag = DAG(nodes, arcs)
    addable, reversible = dag.addable(), dag.reversible()
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes):
            adjacent = (a, b) in arcs or (b, a) in arcs
            assert addable[i, j] == (a != b and not adjacent and is_acyclic(nodes, [*arcs, (a, b)]))
            turned = [arc for arc in arcs if arc != (a, b)] + [(b, a)]
            assert reversible[i, j] == ((a, b) in arcs and is_acyclic(nodes, turned))


@pytest.mark.slow
@given(arcs_of_dag(min_nodes=2), st.data())
def test_d_separation_agrees_with_networkx(graph, data):
    nodes, arcs = graph
    x, y, *rest = data.draw(st.permutations(nodes))
    condition = data.draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
    reference = nx.DiGraph(arcs)
    reference.add_nodes_from(nodes)
    assert DAG(nodes, arcs).d_separated(x, y, condition) == nx.is_d_separator(
        reference, {x}, {y}, set(condition)
    )


def test_d_separation_refuses_overlaps():
    with pytest.raises(GraphError, match="different nodes"):
        DAG("ab").d_separated("a", "b", ["a"])


def test_changes_give_new_graphs():
    dag = DAG("abc", [("a", "b")])
    assert dag.with_arc("b", "c").arcs == (("a", "b"), ("b", "c"))
    assert dag.without_arc("a", "b").arcs == ()
    assert dag.with_reversed_arc("a", "b").arcs == (("b", "a"),)
    assert dag.arcs == (("a", "b"),)
    with pytest.raises(GraphError, match="cycle"):
        dag.with_arc("b", "a")
    with pytest.raises(GraphError, match="already"):
        dag.with_arc("a", "b")
    with pytest.raises(GraphError, match="no arc"):
        dag.without_arc("b", "c")
    with pytest.raises(GraphError, match="no node 'x'"):
        dag.parents("x")


@given(arcs_of_dag())
def test_networkx_round_trip(graph):
    dag = DAG(*graph)
    assert DAG.from_networkx(dag.to_networkx()) == dag


def test_pdag():
    pdag = PDAG("abcd", [("a", "b")], [("c", "b"), ("c", "d")])
    assert pdag.arcs == (("a", "b"),)
    assert pdag.edges == (("b", "c"), ("c", "d"))
    assert pdag == PDAG("dcba", [("a", "b")], [("b", "c"), ("d", "c")])
    assert PDAG.from_networkx(pdag.to_networkx()) == pdag
    assert eval(repr(pdag)) == pdag
    assert str(pdag) == "4 nodes: a, b, c, d\na → b\nb — c\nc — d"
    with pytest.raises(GraphError, match="more than once"):
        PDAG("ab", [("a", "b")], [("b", "a")])


def test_without_networkx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    for graph in (DAG("ab", [("a", "b")]), PDAG("ab", edges=[("a", "b")])):
        with pytest.raises(PackageError, match=r"spbn\[networkx\]"):
            graph.to_networkx()
