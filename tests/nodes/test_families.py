from hypothesis import given
from hypothesis import strategies as st

from spbn import NodeType
from spbn.nodes import Family
from spbn.nodes.families import families_of, named_batch, of_type

COLUMNS = tuple("abcdefghijk")  # more than eight, so that parents take more than a byte


@st.composite
def families(draw):
    node = draw(st.sampled_from(COLUMNS))
    parents = draw(st.lists(st.sampled_from([name for name in COLUMNS if name != node]), unique=True))
    return Family(node, tuple(parents), draw(st.sampled_from(list(NodeType))))


def ordered(family):
    return family._replace(parents=tuple(sorted(family.parents)))


@given(st.lists(families(), max_size=8))
def test_families_come_back_with_their_parents_in_order(asked):
    batch = named_batch(COLUMNS, asked)
    expected = [ordered(family) for family in asked]
    assert families_of(batch) == expected
    for f, (node, parents, _) in enumerate(expected):
        assert batch.sizes[f] == len(parents) + 1
        members = batch.members[f].tolist()
        assert [COLUMNS[i] for i in members[: batch.sizes[f]]] == [*parents, node]
        assert set(members[batch.sizes[f] :]) <= {-1}
    kernel = of_type(batch, NodeType.CKDE)
    assert families_of(batch.only(kernel)) == [family for family in expected if family.type == NodeType.CKDE]


@given(families(), families())
def test_keys_tell_families_apart(one, other):
    first, second = named_batch(COLUMNS, [one, other]).keys
    assert (first == second) == (ordered(one) == ordered(other))
    assert named_batch(COLUMNS, [other]).keys == [second]
