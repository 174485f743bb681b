import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn import NodeType, Structure
from spbn.errors import GraphError
from spbn.search import AddArc, ChangeType, RemoveArc, ReverseArc

from naive import possible_operators
from strategies import arcs_of_dag


@pytest.mark.slow
@given(arcs_of_dag(max_nodes=5), st.data())
def test_the_inverse_takes_an_operator_back(graph, data):
    structure = Structure(*graph)
    operator = data.draw(st.sampled_from(list(possible_operators(structure))))
    changed = operator.apply(structure)
    assert changed != structure
    assert operator.inverse.apply(changed) == structure
    assert operator.inverse.inverse == operator
    different = {n for n in structure.nodes if structure.family(n) != changed.family(n)}
    assert different == set(operator.touched)


def test_they_read_well():
    assert str(AddArc("a", "b")) == "add a → b"
    assert str(RemoveArc("a", "b")) == "remove a → b"
    assert str(ReverseArc("a", "b")) == "reverse a → b"
    assert str(ChangeType("a", NodeType.LG, NodeType.CKDE)) == "a: lg → ckde"


def test_what_cannot_be_done_is_refused():
    structure = Structure("ab", [("a", "b")])
    for operator in (AddArc("b", "a"), AddArc("a", "b"), RemoveArc("b", "a"), ReverseArc("b", "a")):
        with pytest.raises(GraphError):
            operator.apply(structure)
