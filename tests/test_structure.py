import copy
import pickle

import networkx as nx
import pytest
from hypothesis import given

from spbn import NodeType, Structure
from spbn.errors import ArgumentError, GraphError
from spbn.nodes import Family

from strategies import arcs_of_dag


def test_types_for_all_or_by_node():
    assert Structure("ab").types == {"a": NodeType.LG, "b": NodeType.LG}
    structure = Structure("abc", [("a", "c"), ("b", "c")], {"c": "ckde", "a": "lg", "b": NodeType.LG})
    assert structure.type("c") is NodeType.CKDE
    assert structure.family("c") == Family("c", ("a", "b"), NodeType.CKDE)
    assert [family.node for family in structure.families()] == ["a", "b", "c"]
    assert str(structure) == "3 nodes: a (lg), b (lg), c (ckde)\na → c\nb → c"
    assert str(structure.family("c")) == "c | a, b (ckde)"
    assert eval(repr(structure)) == structure


@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        ("gaussian", ArgumentError, "a node type must be"),
        ({"a": "lg"}, GraphError, "lacks 'b'"),
        ({"a": "lg", "b": "lg", "c": "lg"}, GraphError, "'c'"),
    ],
)
def test_wrong_types_are_refused(types, error, message):
    with pytest.raises(error, match=message):
        Structure("ab", types=types)


def test_structures_are_values():
    structure = Structure("ab", [("a", "b")])
    other = structure.with_type("b", "ckde")
    assert other.type("b") is NodeType.CKDE
    assert structure.type("b") is NodeType.LG
    assert len({structure, other, Structure("ba", [("a", "b")])}) == 2
    with pytest.raises(TypeError):
        structure.types["a"] = NodeType.CKDE
    with pytest.raises(GraphError, match="no node 'z'"):
        structure.with_type("z", "lg")


@given(arcs_of_dag())
def test_networkx_round_trip(graph):
    nodes, arcs = graph
    structure = Structure(nodes, arcs, {node: "ckde" if i % 2 else "lg" for i, node in enumerate(nodes)})
    assert Structure.from_networkx(structure.to_networkx()) == structure


def test_structures_can_be_copied_and_sent_to_other_processes():
    structure = Structure("ab", [("a", "b")], {"a": "lg", "b": "ckde"})
    assert pickle.loads(pickle.dumps(structure)) == structure
    assert copy.deepcopy(structure) == structure


def test_undirected_graphs_are_refused():
    with pytest.raises(GraphError, match=r"DiGraph is needed\. Got a Graph"):
        Structure.from_networkx(nx.Graph([("a", "b")]))
