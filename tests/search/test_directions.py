"""Which directions a score leaves open: by brute force, and where it is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn import NodeType, Structure
from spbn.nodes.families import Family
from spbn.scores import CVLikelihood, ValidatedLikelihood
from spbn.scores.likelihood import arc_penalty
from spbn.search import directions, open_directions

import naive
from strategies import NAMES, ScoreOf, arcs_of_dag, nonlinear_frame, random_local

COMPLETE = [(a, b) for i, a in enumerate(NAMES[:10]) for b in NAMES[i + 1 : 10]]


def best_of(types, local):
    """Return the score of a node given its parents, with the best of some types."""
    return lambda node, parents: max(
        local(Family(node, tuple(sorted(parents)), NodeType.parse(name))) for name in types
    )


@settings(max_examples=60, deadline=None)
@given(
    arcs_of_dag(min_nodes=2, max_nodes=5).filter(lambda graph: len(graph[1]) < 10),
    st.sampled_from([0.3, 1.0, 3.0, 100.0]),
    st.sampled_from([["lg"], ["lg", "ckde"]]),
    st.integers(0, 1000),
    st.data(),
)
def test_all_equivalent_graphs_count(graph, cost, types, seed, data):
    nodes, arcs = graph
    pairs = [(a, b) for a in nodes for b in nodes if a != b and (a, b) not in arcs]
    forbidden = data.draw(st.lists(st.sampled_from(pairs), max_size=3)) if pairs else []
    local = random_local(seed)
    found = open_directions(
        ScoreOf(nodes, local), Structure(nodes, arcs), cost, types=types, forbidden_arcs=forbidden
    )
    assert set(found) == naive.open_directions(best_of(types, local), nodes, arcs, cost, forbidden)
    assert list(found) == [arc for arc in Structure(nodes, arcs).arcs if arc in found]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([10, 40]), st.booleans(), st.booleans())
def test_a_score_that_is_always_the_same_decides_nothing(seed, count, is_tree, has_knowledge):
    """Every undecided arc of a large graph is found, though there are too many equivalent graphs for that."""
    rng = np.random.default_rng(seed)
    nodes, parents = [f"x{i}" for i in range(count)], {0: set()}
    for child in range(1, count):
        parent = int(rng.integers(child))
        # Parents that are all joined to each other collide nowhere.
        others = set() if is_tree else {other for other in parents[parent] if rng.random() < 0.8}
        parents[child] = {parent} | others
    arcs = [(nodes[parent], nodes[child]) for child in parents for parent in parents[child]]
    forbidden = [(b, a) for a, b in arcs if has_knowledge and rng.random() < 0.1]
    structure = Structure(nodes, arcs)
    score = ScoreOf(nodes, lambda family: 0.0)
    assert open_directions(score, structure, 1.0, forbidden_arcs=forbidden) == structure.undecided_arcs(
        forbidden
    )
    assert open_directions(score, structure, 0.0) == ()


@settings(max_examples=40, deadline=None)
@given(arcs_of_dag(min_nodes=2, max_nodes=5), st.integers(0, 10), st.floats(0.0, 1.0))
def test_knowledge_by_brute_force(graph, seed, share):
    nodes, arcs = graph
    rng = np.random.default_rng(seed)
    forbidden = [(b, a) for a, b in arcs if rng.random() < 0.5 * share]
    turned = {arc[::-1] for found in naive.equivalent_graphs(nodes, arcs, forbidden) for arc in found}
    expected = {arc for arc in arcs if arc in turned}
    assert set(Structure(nodes, arcs).undecided_arcs(forbidden)) == expected


@pytest.mark.parametrize("model", ["lg", "best"])
def test_a_likelihood_by_brute_force(model):
    """A chain of which one half is straight and the other is not: scores written from their definitions."""
    rng = np.random.default_rng(3)
    a, e1, e2, e3 = rng.normal(size=(4, 150))
    b = a + e1
    c = np.sin(2 * b) + 0.3 * e2
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": 0.8 * c + 0.2 * e3})
    arcs, types = [("a", "b"), ("b", "c"), ("c", "d")], ["lg"] if model == "lg" else ["lg", "ckde"]
    score = CVLikelihood(frame, folds=3, penalty=2.0)

    def local(family):
        return naive.cv_rows(frame, score.folds, family.node, family.parents, family.type).sum()

    found = {}
    for cost in (0.2, 2.0, 10.0):
        found[cost] = set(open_directions(score, Structure("abcd", arcs), cost, types=types))
        assert found[cost] == naive.open_directions(best_of(types, local), "abcd", arcs, cost)
    assert found[0.2] == set(arcs) if model == "lg" else found[0.2] < found[10.0]


def test_types_are_those_of_the_nodes_if_none_are_given():
    local = random_local(5)
    arcs, kinds = [("a", "b"), ("b", "c"), ("a", "c")], {"a": "lg", "b": "ckde", "c": "curve"}
    found = open_directions(ScoreOf("abc", local), Structure("abc", arcs, kinds), 0.5)
    expected = naive.open_directions(
        lambda node, parents: local(Family(node, tuple(sorted(parents)), NodeType.parse(kinds[node]))),
        "abc",
        arcs,
        0.5,
    )
    assert set(found) == expected


def test_families_that_cannot_be_fitted_decide_where_others_can():
    structure = Structure("abcd", [("a", "b"), ("c", "d")])

    def local(family):
        return -np.inf if (family.node == "a" and family.parents) or family.node == "d" else 0.0

    assert open_directions(ScoreOf("abcd", local), structure, 1.0) == (("c", "d"),)


def test_few_families_are_scored():
    scored = []

    def local(family):
        scored.append(family)
        return random_local(1)(family)

    chain = [(f"x{i}", f"x{i + 1}") for i in range(30)]
    nodes = [f"x{i}" for i in range(31)]
    open_directions(ScoreOf(nodes, local), Structure(nodes, chain), 1.0)
    assert len(scored) == 31 + 2 * 30  # alone, and given each neighbour
    scored.clear()
    open_directions(ScoreOf(NAMES[:10], local), Structure(NAMES[:10], COMPLETE), 1.0)
    assert len(scored) < 45 * (directions.FAMILIES_PER_ARC + 8)  # of 5,120


def test_inputs_have_no_parents():
    score = ScoreOf("abu", lambda family: 0.0)
    triangle = Structure("ab", [("u", "a"), ("a", "b"), ("u", "b")], inputs=["u"])
    assert open_directions(score, triangle, 1.0) == (("a", "b"),)
    assert open_directions(score, Structure("ab", [("u", "a"), ("a", "b")], inputs=["u"]), 1.0) == ()


def line(rows, seed=1):
    """A chain of lines: no data can tell its directions."""
    return pd.DataFrame(np.cumsum(np.random.default_rng(seed).normal(size=(4, rows)), axis=0).T).set_axis(
        list("abcd"), axis=1
    )


def curve(rows, seed=1):
    """A cause and an effect, along a curve and with noise that is added."""
    x, noise = np.random.default_rng(seed).normal(size=(2, rows))
    return pd.DataFrame({"y": np.tanh(2 * x) + 0.5 * x**2 + 0.3 * noise, "x": x})


LEARNED = [
    {"model": "auto"},
    {"model": "auto", "algorithm": "hc"},
    {"model": "gbn", "score": "cv"},
    {"model": "gbn", "algorithm": "boss", "score": "cv"},
    {"model": "gbn"},
    {"model": "spbn"},
]


@pytest.mark.parametrize("options", LEARNED, ids=str)
def test_lines_leave_all_directions_open(options):
    network = spbn.learn(line(600), **options)
    assert network.structure.arcs
    assert tuple(network.open_directions()) == network.structure.undecided_arcs() == network.structure.arcs
    assert network.record.open_directions == network.structure.arcs


@pytest.mark.parametrize(
    "options", [*LEARNED[:2], {"model": "blend", "algorithm": "boss", "folds": 4}], ids=str
)
def test_a_curve_decides_the_direction(options):
    network = spbn.learn(curve(600), **options)
    assert network.structure.arcs == (("x", "y"),)
    assert network.structure.undecided_arcs() == (("x", "y"),)
    assert network.open_directions() == {}


def asymmetry(score, node_type):
    """Return by how much the two directions of an arc between a and b differ."""
    ways = [[("a", "b")], [("b", "a")]]
    forwards, backwards = (score.total(Structure("ab", arcs, node_type)) for arcs in ways)
    return abs(forwards - backwards)


def test_the_cost_is_the_penalty():
    frame = nonlinear_frame(80, 2, seed=4)
    differs = asymmetry(CVLikelihood(frame, folds=4), "blend")
    for factor in (0.9, 1.1):
        options = {"folds": 4, "validation": None, "penalty": factor * differs}
        network = spbn.learn(frame, model="blend", **options)
        assert len(network.structure.arcs) == 1
        assert bool(network.open_directions()) == (factor > 1)


def test_without_a_penalty_the_cost_is_what_it_would_be():
    found = set()
    cases = [
        ({}, ValidatedLikelihood),
        ({"validation": None, "penalty": 0}, CVLikelihood),  # 0 does not say what a difference is worth
    ]
    for rows in (60, 120, 1000):
        frame = curve(rows, seed=0).set_axis(["b", "a"], axis=1)
        cost = arc_penalty("auto", rows, 2)
        for options, score in cases:
            network = spbn.learn(frame, model="kdebn", folds=4, **options)
            is_open = bool(network.open_directions())
            if network.structure.arcs:
                assert is_open == (asymmetry(score(frame, folds=4), "ckde") < cost)
                found.add((score, is_open))
    assert len(found) == 4


@pytest.mark.parametrize(
    "options", [{"model": "auto"}, {"model": "gbn"}, {"model": "gbn", "algorithm": "pc"}]
)
def test_what_knowledge_decides_is_not_open(options):
    frame = line(600)
    options = {"test": "plc", **options} if "algorithm" in options else options
    by_tiers = spbn.learn(frame, tiers=[["b", "c", "d"], ["a"]], **options)
    assert ("b", "a") in by_tiers.structure.arcs
    assert ("b", "a") not in by_tiers.open_directions()
    assert set(by_tiers.open_directions()) == set(by_tiers.structure.arcs) - {("b", "a")}
    required = spbn.learn(frame, required_arcs=[("a", "b")], **options)  # b → c and c → d follow
    assert required.open_directions() == {}
    forbidden = spbn.learn(frame, forbidden_arcs=[("a", "b")], **options)
    assert ("b", "a") not in forbidden.open_directions()


def test_levels_come_before_numbers():
    rng = np.random.default_rng(0)
    kind = rng.choice(["p", "q"], size=300)
    frame = pd.DataFrame({"x": rng.normal(size=300) + 3.0 * (kind == "p"), "kind": kind})
    for options in ({"model": "gbn"}, {"model": "auto"}, {"model": "spbn"}):
        network = spbn.learn(frame, **options)
        assert network.structure.arcs == (("kind", "x"),)
        assert network.open_directions() == {}
    fitted = spbn.BayesianNetwork.fit(network.structure, frame)
    assert fitted.record.open_directions is None
    assert fitted.open_directions() == {}


def test_the_other_columns_of_a_row_over_time():
    """Within a row, y depends on x as x on y; what comes from the row before is known to."""
    rng = np.random.default_rng(2)
    x, y = np.zeros(400), np.zeros(400)
    for t in range(1, 400):
        x[t] = 0.6 * x[t - 1] + rng.normal()
        y[t] = 0.9 * x[t] + 0.5 * x[t - 1] + 0.5 * rng.normal()
    network = spbn.learn_dynamic(pd.DataFrame({"x": x, "y": y}), model="gbn")
    assert set(network.transition.structure.arcs) > {("x[t-1]", "x"), ("x[t-1]", "y")}
    assert len(network.transition.open_directions()) == 1
    assert network.static.open_directions()
