"""What a search must not do, with scores under which it would gain by doing it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn import NodeType, Structure
from spbn.scores import BIC
from spbn.search import AddArc, ChangeType, RemoveArc, ReverseArc, hill_climb
from spbn.search.hill_climbing import Trail

from naive import climb, is_acyclic, possible_operators
from strategies import ScoreOf, arcs_of_dag, nonlinear_frame, random_local


def by_parents(child, values):
    """Local scores of one node by its parents, as text; 0 wherever nothing is said."""
    return lambda family: values.get("".join(family.parents), 0.0) if family.node == child else 0.0


def operators_of(result):
    return [step.operator for step in result.steps]


def test_a_forbidden_arc_is_not_made_by_a_reversal():
    score = ScoreOf("ab", by_parents("a", {"b": 5.0}), types=["lg"])
    start = Structure("ab", [("a", "b")])
    assert operators_of(hill_climb(score, start)) == [ReverseArc("a", "b")]
    assert operators_of(hill_climb(score, start, forbidden_arcs=[("b", "a")])) == []
    # The other direction alone is forbidden: it says nothing about this one.
    other = Structure("ab", [("b", "a")])
    assert hill_climb(score, other, forbidden_arcs=[("a", "b")]).structure == other


def test_a_forbidden_arc_may_be_turned_away_from():
    score = ScoreOf("abc", by_parents("b", {"a": 5.0, "c": 1.0}), types=["lg"])
    start = Structure("abc", [("b", "a")])
    result = hill_climb(score, start, forbidden_arcs=[("c", "b")])
    assert operators_of(result) == [ReverseArc("b", "a")]


def test_a_reversal_does_not_give_a_node_too_many_parents():
    score = ScoreOf("abc", by_parents("a", {"bc": 5.0}), types=["lg"])
    start = Structure("abc", [("a", "b"), ("c", "a")])
    assert operators_of(hill_climb(score, start, max_parents=1)) == []
    assert operators_of(hill_climb(score, start, max_parents=2)) == [ReverseArc("a", "b")]


def test_adding_does_not_give_a_node_too_many_parents():
    score = ScoreOf("abc", by_parents("a", {"b": 1.0, "bc": 5.0}), types=["lg"])
    assert operators_of(hill_climb(score, Structure("abc"), max_parents=1)) == [AddArc("b", "a")]
    assert hill_climb(score, Structure("abc"), max_parents=2).score == 5.0


def test_a_required_arc_is_neither_reversed_nor_removed():
    start = Structure("ab", [("a", "b")])
    reverses = ScoreOf("ab", by_parents("a", {"b": 5.0}), types=["lg"])
    removes = ScoreOf("ab", by_parents("b", {"a": -5.0}), types=["lg"])
    assert operators_of(hill_climb(removes, start)) == [RemoveArc("a", "b")]
    for score in (reverses, removes):
        assert operators_of(hill_climb(score, start, required_arcs=[("a", "b")])) == []


# One family, climbed arc by arc: b, c, d come in, and with all three there it pays to let b go.
STAIRS = {"b": 3.0, "bc": 4.0, "bcd": 5.0, "cd": 6.0, "c": -9.0, "d": -9.0, "bd": -9.0}
UP = [AddArc("b", "a"), AddArc("c", "a"), AddArc("d", "a")]


def on_the_stairs(validation):
    """Climb them; the validation score goes by the parents of a, too."""
    forbidden = [(x, y) for x in "abcd" for y in "bcd" if x != y]
    score = ScoreOf("abcd", by_parents("a", STAIRS), types=["lg"], validation=by_parents("a", validation))
    return hill_climb(score, Structure("abcd"), forbidden_arcs=forbidden, patience=10)


def test_the_way_back_is_open_after_steps_to_a_new_best():
    result = on_the_stairs({"b": 1.0, "bc": 2.0, "bcd": 3.0, "cd": 4.0})
    assert operators_of(result) == [*UP, RemoveArc("b", "a")]
    assert result.best == 4


def test_the_way_back_from_a_miss_is_tabu():
    result = on_the_stairs({"b": -1.0, "bc": -2.0, "bcd": -3.0, "cd": 4.0})
    assert operators_of(result) == UP
    assert [step.misses for step in result.steps] == [1, 2, 3]
    assert result.best == 0
    assert result.structure == result.start == Structure("abcd")


def test_a_new_best_lifts_the_tabu():
    result = on_the_stairs({"b": -1.0, "bc": -2.0, "bcd": 3.0, "cd": 1.0})
    assert operators_of(result) == [*UP, RemoveArc("b", "a")]
    assert [step.misses for step in result.steps] == [1, 2, 0, 1]
    assert result.best == 3
    assert result.structure == result.steps[2].structure


def test_a_step_that_leaves_the_validation_score_as_it_is_is_a_miss():
    result = on_the_stairs({})
    assert operators_of(result) == UP
    assert [step.misses for step in result.steps] == [1, 2, 3]
    assert (result.best, result.structure) == (0, Structure("abcd"))


@pytest.mark.parametrize(("gain", "steps"), [(1e-11, []), (1e-9, [AddArc("a", "b")])])
def test_what_may_be_rounding_is_no_improvement(gain, steps):
    """Sums of 1,000 have errors of about 1e-10."""
    score = ScoreOf("ab", by_parents("b", {"": -1000.0, "a": -1000.0 + gain}), types=["lg"])
    result = hill_climb(score, Structure("ab"), forbidden_arcs=[("b", "a")])
    assert operators_of(result) == steps


def by_type(values):
    return lambda family: values[family.node, family.type.name]


LIKES_CKDE = {("a", "lg"): 0.0, ("a", "ckde"): 2.0, ("b", "lg"): 0.0, ("b", "ckde"): -1.0}


def test_types_limit_what_is_proposed():
    score = ScoreOf("ab", by_type(LIKES_CKDE))
    assert operators_of(hill_climb(score, Structure("ab"))) == [ChangeType("a", NodeType.LG, NodeType.CKDE)]
    assert operators_of(hill_climb(score, Structure("ab"), types=["lg"])) == []
    # From a type that is not to choose from, there is a way out and none back.
    away = hill_climb(score, Structure("ab", types="ckde"), types=["lg"])
    assert operators_of(away) == [ChangeType("b", NodeType.CKDE, NodeType.LG)]
    assert hill_climb(score, Structure("ab", types="ckde"), types=["ckde"]).steps == ()
    assert hill_climb(score, Structure("ab", types="ckde"), types=[]).steps == ()


def test_a_way_back_that_is_not_to_choose_from_can_be_tabu():
    misses = {key: -value for key, value in LIKES_CKDE.items()}
    score = ScoreOf("ab", by_type(LIKES_CKDE), validation=by_type(misses))
    result = hill_climb(score, Structure("ab"), types=["ckde"], patience=3)
    assert operators_of(result) == [ChangeType("a", NodeType.LG, NodeType.CKDE)]
    assert (result.best, result.stop_reason) == (0, "no operator improves the score")


def test_types_that_a_score_is_not_defined_for_are_not_proposed():
    frame = nonlinear_frame(60, 3)
    assert hill_climb(BIC(frame), Structure("abc"), types=["ckde"]) == hill_climb(
        BIC(frame), Structure("abc")
    )


@st.composite
def searches(draw):
    """A start and constraints that it meets."""
    nodes, arcs = draw(arcs_of_dag(2, 4))
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    required = [arc for arc in arcs if draw(st.booleans())]
    forbidden = draw(st.lists(st.sampled_from([p for p in pairs if p not in arcs]), unique=True))
    start = Structure(nodes, arcs, {node: draw(st.sampled_from(["lg", "ckde"])) for node in nodes})
    crowd = max(len(start.parents(node)) for node in nodes)
    return start, {
        "required": required,
        "forbidden": forbidden,
        "max_parents": draw(st.integers(crowd, 3)) if crowd < 3 else 3,
        "types": draw(st.sampled_from([["lg", "ckde"], ["lg"], ["ckde"]])),
        "fixed": draw(st.lists(st.sampled_from(nodes), unique=True)),
        "patience": draw(st.integers(0, 6)),
        "epsilon": draw(st.sampled_from([0.0, 0.3])),
    }


@pytest.mark.slow
@settings(max_examples=150)
@given(searches(), st.integers(0, 10**6), st.booleans())
def test_every_search_is_the_one_that_was_described(search, seed, validated):
    start, rules = search
    score = ScoreOf(start.nodes, random_local(seed), validation=random_local(seed + 1) if validated else None)
    result = hill_climb(
        score,
        start,
        types=rules["types"],
        patience=rules["patience"],
        epsilon=rules["epsilon"],
        max_parents=rules["max_parents"],
        required_arcs=rules["required"],
        forbidden_arcs=rules["forbidden"],
        fixed_types=rules["fixed"],
    )
    # The arcs that are required forbid their opposites, which the description does not say.
    opposites = [(b, a) for a, b in rules["required"]]
    expected, best = climb(score, start, **rules | {"forbidden": [*rules["forbidden"], *opposites]})
    assert operators_of(result) == expected
    assert result.best == best
    assert result.start == start
    structures = [start]
    for operator in expected:
        structures.append(operator.apply(structures[-1]))
    assert result.structure == structures[best]
    assert all(is_acyclic(structure.nodes, structure.arcs) for structure in structures)


@settings(max_examples=40)
@given(arcs_of_dag(2, 5), st.data())
def test_structures_of_a_trail_are_right_in_any_order(graph, data):
    structures = [Structure(*graph)]
    trail = Trail(structures[0])
    for _ in range(data.draw(st.integers(0, 8))):
        operator = data.draw(st.sampled_from(list(possible_operators(structures[-1]))))
        trail.append(operator)
        structures.append(operator.apply(structures[-1]))
        # Asked for while it grows, as a progress line does.
        if data.draw(st.booleans()):
            assert trail.after(len(structures) - 1) == structures[-1]
    for number in data.draw(st.lists(st.integers(0, len(structures) - 1), max_size=12)):
        assert trail.after(number) == structures[number]


def test_steps_know_their_structures_in_any_order():
    result = on_the_stairs({"b": 1.0, "bc": 2.0, "bcd": 3.0, "cd": 4.0})
    parents = [("b",), ("b", "c"), ("b", "c", "d"), ("c", "d")]
    for number in (3, 0, 2, 2, 1, 3):
        assert result.steps[number].structure.parents("a") == parents[number]
        assert result.steps[number].number == number + 1
    assert result.start == Structure("abcd")


@pytest.mark.parametrize("steps", [0, None])
def test_the_start_of_a_result_has_what_was_required(steps):
    score = ScoreOf("ab", by_type(LIKES_CKDE))
    result = hill_climb(
        score, Structure("ab"), required_arcs=[("b", "a")], fixed_types={"b": "ckde"}, max_steps=steps
    )
    assert result.start == Structure("ab", [("b", "a")], {"a": "lg", "b": "ckde"})
    assert result.best == len(result.steps)
