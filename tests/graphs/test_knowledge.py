"""Patterns and tiers against what they say, pair by pair."""

import fnmatch
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn.errors import KnowledgeError
from spbn.graphs.patterns import matching_places
from spbn.graphs.tiers import named_tiers, resolve_arcs

from strategies import NAMES

LABS = ("age", "sex", "lab_1", "lab_2", "lab_10", "x[t-1]", "a*", "outcome")


@st.composite
def tiers_of(draw, nodes):
    """Deal some of the nodes into tiers; the others are in none."""
    count = draw(st.integers(1, 4))
    numbers = draw(st.lists(st.integers(-1, count - 1), min_size=len(nodes), max_size=len(nodes)))
    return tuple(
        tuple(node for node, number in zip(nodes, numbers, strict=True) if number == k) for k in range(count)
    )


def resolve(names, required=(), forbidden=(), tiers=()):
    return resolve_arcs(names, required_arcs=required, forbidden_arcs=forbidden, tiers=tiers)


@given(st.data(), st.integers(1, 8))
def test_tiers_forbid_what_points_back_and_nothing_else(data, count):
    nodes = tuple(NAMES[:count])
    tiers = data.draw(tiers_of(nodes))
    back = {
        (source, target)
        for early, later in ((i, j) for j in range(len(tiers)) for i in range(j))
        for source in tiers[later]
        for target in tiers[early]
    }
    required, forbidden = resolve(nodes, tiers=tiers)
    assert required == ()
    assert set(forbidden) == back
    assert len(forbidden) == len(back)
    shuffled = tuple(data.draw(st.permutations(nodes)))
    assert set(resolve(shuffled, tiers=tiers)[1]) == back


@given(
    st.text("ab*?", min_size=1, max_size=4),
    st.lists(st.text("ab", min_size=1, max_size=3), unique=True, min_size=1, max_size=6),
)
def test_patterns_match_as_in_a_shell(pattern, names):
    expected = [place for place, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
    assert matching_places(pattern, names) == expected


@pytest.mark.parametrize(
    ("arc", "expected"),
    [
        (("*", "age"), [(name, "age") for name in LABS if name != "age"]),
        (("age", "lab_?"), [("age", "lab_1"), ("age", "lab_2")]),
        (("lab_*", "sex"), [("lab_1", "sex"), ("lab_2", "sex"), ("lab_10", "sex")]),
        (("*[t-1]", "sex"), [("x[t-1]", "sex")]),  # brackets mean themselves
        (("a*", "sex"), [("a*", "sex")]),  # a name means itself
        (("lab_1*", "lab_1*"), [("lab_1", "lab_10"), ("lab_10", "lab_1")]),
        (("*", "*"), [(a, b) for a in LABS for b in LABS if a != b]),
    ],
)
def test_patterns_of_arcs(arc, expected):
    assert resolve(LABS, forbidden=[arc])[1] == tuple(expected)
    if arc[0] != arc[1]:
        assert resolve(LABS, required=[arc])[0] == tuple(expected)


def test_tiers_may_have_patterns_for_columns_that_none_has_by_name():
    tiers = (("age", "sex"), ("*",), ("lab_10", "outcome"))
    named = (("age", "sex"), ("lab_1", "lab_2", "x[t-1]", "a*"), ("lab_10", "outcome"))
    assert named_tiers(LABS, tiers) == named
    assert resolve(LABS, tiers=tiers) == resolve(LABS, tiers=named)
    assert named_tiers(LABS, (("lab_*",), (), ("age",))) == (("lab_1", "lab_2", "lab_10"), (), ("age",))


@pytest.mark.parametrize(
    ("knowledge", "argument", "message"),
    [
        (
            {"tiers": (("age", "weight"),)},
            "tiers",
            "tiers names an unknown column: 'weight'. The",
        ),
        ({"tiers": (("age",), ("sex",), ("age",))}, "tiers", "tiers has 'age' in two tiers, 1 and 3"),
        ({"tiers": (("lab_*",), ("*_1",))}, "tiers", "tiers has 'lab_1' in two tiers, 1 and 2"),
        ({"tiers": (("labs_*",), ("age",))}, "tiers", "the pattern 'labs_.*', which matches no column that"),
        ({"tiers": (("labs_*",),)}, "tiers", "the pattern 'labs_.*', which matches no column. The columns"),
        (
            {"tiers": (("age",), ("sex",)), "required": [("sex", "age")]},
            "required_arcs",
            "has sex → age, which points back: 'sex' is in tier 2 of tiers, and 'age' in tier 1",
        ),
        ({"forbidden": [("lab?", "age")]}, "forbidden_arcs", "the pattern 'lab.', which matches none of"),
        ({"forbidden": [("age", "bmi")]}, "forbidden_arcs", "must hold pairs .* Got \\('age', 'bmi'\\)"),
        ({"forbidden": [("ag*", "age")]}, "forbidden_arcs", "must join two nodes. Got \\('ag.', 'age'\\)"),
        ({"required": [("sex", "*"), (1, "age")]}, "required_arcs", "must hold pairs .* Got \\(1, 'age'\\)"),
        ({"required": [("*", ["age"])]}, "required_arcs", "must hold pairs"),
    ],
)
def test_knowledge_that_makes_no_sense(knowledge, argument, message):
    with pytest.raises(KnowledgeError, match=message) as caught:
        resolve(LABS, **knowledge)
    assert caught.value.argument == argument


def test_500_columns_take_no_time():
    names = tuple(f"c{i}" for i in range(500))
    tiers = tuple(names[i : i + 10] for i in range(0, 500, 10))
    began = time.process_time()
    _, forbidden = resolve(names, forbidden=[("*", "c0")], tiers=tiers)
    assert time.process_time() - began < 1.0  # about 0.05
    assert len(forbidden) == 10 * 10 * (50 * 49 // 2) + 9
    matrix = np.zeros((500, 500), dtype=bool)
    for source, target in forbidden:
        matrix[int(source[1:]), int(target[1:])] = True
    numbers = np.arange(500) // 10
    expected = numbers[:, None] > numbers[None, :]
    expected[1:, 0] = True
    np.testing.assert_array_equal(matrix, expected)
