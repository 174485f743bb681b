import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn import Structure
from spbn._base import jit
from spbn.errors import ArgumentError
from spbn.rows import memory
from spbn.search import SearchInterrupted, order_search, orders
from spbn.search import trees as growing
from spbn.search.operators import constrain
from spbn.search.orders import linear_extension
from spbn.search.records import search_from_record, search_to_record
from spbn.search.trees import GrowShrinkTrees

import naive
from strategies import ScoreOf, arcs_of_dag, mixed_frame, nonlinear_frame, random_local


def best_parents(trees, nodes, node, befores):
    """Ask for the parents that a node takes from some others, several times at once, and its score."""
    places = np.array([[0 if other in before else 1 for other in nodes] for before in befores])
    some = np.arange(len(befores))
    found = trees.best(np.full_like(some, nodes.index(node)), np.ones_like(some), some, places)
    sets = [{nodes[place] for place in np.flatnonzero(row)} for row in trees.parents_of(found)]
    return list(zip(sets, trees.scores_of(found).tolist(), strict=True))


def random_network_frame(rows, nodes, seed):
    """Lines with random slopes along the arcs of a random graph."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(rows, nodes))
    for j in range(1, nodes):
        data[:, j] += data[:, :j] @ (rng.normal(size=j) * (rng.random(j) < 0.5))
    order = rng.permutation(nodes)
    return pd.DataFrame(data[:, order], columns=list("abcdef"[:nodes]))


def reaches_the_best(frame, node_type):
    """Tell whether an order search finds a graph with the best score of all, computed by another score."""

    def make_score():
        likelihood = spbn.scores.CVLikelihood(frame, folds=5, penalty="auto")
        if node_type != "best":
            return likelihood
        return spbn.scores.BestType(likelihood, cost=likelihood.penalty)

    first = "lg" if node_type == "best" else node_type  # which stands for all of them
    best = naive.best_graph(make_score(), frame.columns, node_type=first)
    found = order_search(make_score(), Structure(frame.columns, types=first)).score
    assert found <= best + 1e-9 * abs(best)
    return found >= best - 1e-9 * abs(best)


@pytest.mark.slow
def test_reaches_the_best_of_all_graphs_of_lines():
    frames = [random_network_frame(100, 4 + seed % 3, seed) for seed in range(100)]
    assert all(reaches_the_best(frame, "lg") for frame in frames)


@pytest.mark.slow
@pytest.mark.parametrize("node_type", ["curve", "ckde", "best"])
def test_reaches_the_best_of_all_graphs(node_type):
    frames = [nonlinear_frame(150, 4 + seed % 3, seed) for seed in range(20)]
    assert all(reaches_the_best(frame, node_type) for frame in frames)


@given(seed=st.integers(0, 10_000), data=st.data())
def test_of_few_nodes_the_best_graph_is_found(seed, data):
    nodes = "abcdef"[: data.draw(st.integers(1, 6))]
    pairs = [(a, b) for a in nodes for b in nodes if a < b]
    some_pairs = st.lists(st.sampled_from(pairs), unique=True, max_size=4) if pairs else st.just([])
    required = data.draw(some_pairs)
    backwards = [(b, a) for a, b in data.draw(some_pairs)]
    forbidden = {*data.draw(some_pairs), *backwards} - set(required)
    parents_of = {node: {a for a, b in required if b == node} for node in nodes}
    fewest = max(map(len, parents_of.values()))
    most = data.draw(st.one_of(st.none(), st.integers(fewest, 5)))

    def allowed(node, parents):
        is_known = parents_of[node] <= set(parents) and not {(a, node) for a in parents} & forbidden
        return is_known and (most is None or len(parents) <= most)

    score = ScoreOf(nodes, random_local(seed))
    found = order_search(
        score, Structure(nodes), required_arcs=required, forbidden_arcs=forbidden, max_parents=most
    )
    assert found.score == pytest.approx(naive.best_graph(score, nodes, allowed))
    assert set(required) <= set(found.structure.arcs)


@given(seed=st.integers(0, 10_000), data=st.data())
def test_trees_take_the_parents_that_growing_and_shrinking_does(seed, data):
    nodes = "abcdefghi"
    others = nodes[1:]
    score = ScoreOf(nodes, random_local(seed))
    required = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=2))
    forbidden = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=2).map(set)) - set(required)
    most = data.draw(st.one_of(st.none(), st.integers(len(required), 5)))
    variables = {variable.name: variable for variable in score.variables}
    structure, constraints = constrain(
        Structure(nodes),
        variables,
        operators=("arcs",),
        types=(),
        max_parents=most,
        required_arcs=[(other, "a") for other in required],
        forbidden_arcs=[(other, "a") for other in forbidden],
        fixed_types=(),
    )
    trees = GrowShrinkTrees(score, constraints, structure)
    befores = data.draw(st.lists(st.lists(st.sampled_from(others), unique=True), min_size=1, max_size=5))
    befores = [sorted({*before, *required}) for before in befores]
    for before, (members, value) in zip(befores, best_parents(trees, nodes, "a", befores), strict=True):
        candidates = [other for other in before if other not in forbidden]
        expected = naive.grow_and_shrink(score, "a", candidates, required=required, max_parents=most)
        assert members == expected
        assert value == score.local("a", sorted(expected))


@given(seed=st.integers(0, 10_000), data=st.data())
def test_of_few_candidates_the_best_set_is_taken(seed, data):
    nodes = "abcdef"
    score = ScoreOf(nodes, random_local(seed))
    most = data.draw(st.one_of(st.none(), st.integers(0, 5)))
    structure, constraints = constrain(
        Structure(nodes),
        {variable.name: variable for variable in score.variables},
        operators=("arcs",),
        types=(),
        max_parents=most,
        required_arcs=(),
        forbidden_arcs=(),
        fixed_types=(),
    )
    before = data.draw(st.lists(st.sampled_from("bcdef"), unique=True).map(sorted))
    ((_, found),) = best_parents(GrowShrinkTrees(score, constraints, structure), nodes, "a", [before])
    sizes = range(len(before) + 1 if most is None else min(len(before), most) + 1)
    sets = itertools.chain.from_iterable(itertools.combinations(before, size) for size in sizes)
    assert found == max(score.local("a", parents) for parents in sets)


@given(graph=arcs_of_dag(max_nodes=7), seed=st.integers(0, 1000), early=st.booleans())
def test_a_linear_extension_has_parents_first(graph, seed, early):
    nodes, arcs = graph
    parents = np.array([[(a, node) in arcs for a in nodes] for node in nodes], dtype=bool)
    order = linear_extension(parents, np.random.default_rng(seed), early=early).tolist()
    assert sorted(order) == list(range(len(nodes)))
    assert all(order.index(nodes.index(a)) < order.index(nodes.index(b)) for a, b in arcs)


@settings(max_examples=60)
@given(graph=arcs_of_dag(min_nodes=5, max_nodes=5), seed=st.integers(0, 1000), data=st.data())
def test_constraints_are_respected(graph, seed, data):
    nodes, arcs = graph
    required = arcs[: data.draw(st.integers(0, 3))]
    pairs = [(a, b) for a in nodes for b in nodes if a != b and (a, b) not in required]
    forbidden = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8))
    most = max([sum(b == node for _, b in required) for node in nodes]) + data.draw(st.integers(0, 2))
    score = ScoreOf(nodes, random_local(seed))
    found = order_search(
        score,
        Structure(nodes),
        required_arcs=required,
        forbidden_arcs=forbidden,
        max_parents=most,
        restarts=2,
        seed=seed,
    )
    assert set(required) <= set(found.structure.arcs)
    assert not set(forbidden) & set(found.structure.arcs)
    assert all(len(found.structure.parents(node)) <= most for node in nodes)
    assert found.score == pytest.approx(score.total(found.structure), rel=1e-12)


def test_inputs_are_parents_only():
    frame = nonlinear_frame(200, 5)
    score = spbn.scores.CVLikelihood(frame, penalty=1.0)
    found = order_search(score, Structure("abc", inputs="de")).structure
    assert found.inputs == ("d", "e")
    assert any(source in "de" for source, _ in found.arcs)
    assert all(target in "abc" for _, target in found.arcs)


def test_numbers_are_not_parents_of_levels():
    frame = mixed_frame(300)
    score = spbn.scores.CVLikelihood(frame, penalty="auto")
    types = {name: "discrete" if name in "uvw" else "lg" for name in frame}
    found = order_search(score, Structure(types, types=types)).structure
    assert ("u", "v") in found.arcs or ("v", "u") in found.arcs
    assert not any(source in "abc" and target in "uvw" for source, target in found.arcs)


def test_a_start_that_is_better_stays():
    def local(family):  # a and b help c only together: growing finds neither
        return (
            5.0 if family.node == "c" and set(family.parents) == {"a", "b"} else -float(len(family.parents))
        )

    score = ScoreOf("abcdefg", local)
    start = Structure("abcdefg", [("a", "c"), ("b", "c")])
    assert order_search(score, Structure("abcdefg")).structure.arcs == ()
    found = order_search(score, start)
    assert found.structure == start
    assert found.steps == ()
    assert found.score == 5.0


def test_a_family_that_cannot_be_fitted_does_not_hide_the_others():
    def local(family):
        return -math.inf if family.node == "a" else float("b" in family.parents and family.node == "c")

    found = order_search(ScoreOf("abc", local), Structure("abc"))
    assert found.structure.arcs == (("b", "c"),)


def test_steps_lead_from_the_start_to_what_was_found():
    frame = nonlinear_frame(300, 6)
    score = spbn.scores.CVLikelihood(frame, penalty=1.0)
    start = Structure("abcdef", [("f", "a"), ("e", "b")])
    found = order_search(score, start)
    assert found.best == len(found.steps) > 0
    assert found.start == start
    assert found.steps[-1].structure == found.structure
    for before, step in zip([None, *found.steps], found.steps, strict=False):
        assert step.score == pytest.approx(score.total(step.structure), rel=1e-12)
        earlier = score.total(start) if before is None else before.score
        assert step.delta == pytest.approx(step.score - earlier, abs=1e-6)
    again = search_from_record(search_to_record(found), found.structure.nodes)
    assert again == found


@pytest.mark.parametrize("nodes", [5, 9])  # all sets of parents are scored, or trees grow from quicker scores
def test_the_number_of_threads_makes_no_difference(monkeypatch, nodes):
    monkeypatch.setattr(memory, "MANY_ROWS", 0)
    frame, found, used = nonlinear_frame(150, nodes, 3), [], []
    for count in (1, 2, 3):
        monkeypatch.setattr(jit, "thread_count", lambda count=count: used.append(count) or count)
        network = spbn.learn(frame, seed=3)
        found.append((network.search, network.structure, network.logpdf(frame).tolist()))
    assert found[0] == found[1] == found[2]
    assert set(used) == {1, 2, 3}


def test_a_draft_comes_before_the_score_itself(monkeypatch):
    monkeypatch.setattr("spbn.search.orders.FEWEST_TO_DRAFT", 5)
    frame = nonlinear_frame(150, 7, 1)
    likelihood = spbn.scores.CVLikelihood(frame, penalty="auto")
    score = spbn.scores.BestType(likelihood, cost=likelihood.penalty)
    drafted, improve = [], orders._Search.improve
    monkeypatch.setattr(
        orders._Search, "improve", lambda *arguments: drafted.append(improve(*arguments)) or drafted[-1]
    )
    sweeps = []
    whole = order_search(score, Structure(score.nodes), restarts=2, on_sweep=sweeps.append)
    assert len(drafted) == 4  # by lines and then by curves, twice
    assert whole.score == pytest.approx(score.total(Structure(score.nodes, whole.structure.arcs)))
    assert order_search(score, Structure(score.nodes), restarts=2, taken=sweeps[:2]) == whole
    early = order_search(score, Structure(score.nodes), max_seconds=0.0)
    assert early.stop_reason == "max_seconds"


def test_there_is_one_search_where_each_would_take_minutes(monkeypatch):
    """Rows × nodes × those that are not lines in the first graph decide, also where a search goes on."""
    frame = nonlinear_frame(120, 7, 1)
    likelihood = spbn.scores.CVLikelihood(frame, penalty="auto")
    score = spbn.scores.BestType(likelihood, ["lg", "curve"], cost=likelihood.penalty)

    def search(**options):
        sweeps = []
        found = order_search(score, Structure(score.nodes), on_sweep=sweeps.append, **options)
        return found, sweeps

    found, _ = search(restarts=1)
    curves = list(map(str, found.structure.types.values())).count("curve")
    assert curves > 0
    monkeypatch.setattr(orders, "MOST_WORK_TO_RESTART", 120 * 7 * curves)
    assert max(sweep.restart for sweep in search()[1]) == growing.RESTARTS
    monkeypatch.setattr(orders, "MOST_WORK_TO_RESTART", 120 * 7 * curves - 1)
    once, sweeps = search()
    assert (once, {sweep.restart for sweep in sweeps}) == (found, {1})
    assert search(taken=sweeps) == (found, [])
    assert {sweep.restart for sweep in search(restarts=2)[1]} == {1, 2}  # whoever asks for two has them


def sweeps_of(score, **options):
    seen = []
    return order_search(score, Structure("abcdef"), on_sweep=seen.append, **options), seen


def test_a_search_goes_on_after_any_sweep():
    score = ScoreOf("abcdef", random_local(5))
    whole, sweeps = sweeps_of(score, restarts=3)
    assert {sweep.restart for sweep in sweeps} == {1, 2, 3}
    for cut in range(len(sweeps) + 1):
        fresh = ScoreOf("abcdef", random_local(5))
        after, further = sweeps_of(fresh, restarts=3, taken=sweeps[:cut])
        assert after == whole
        assert further == sweeps[cut:]


def test_an_interrupt_brings_along_the_best_so_far():
    score = ScoreOf("abcdef", random_local(5))
    _, sweeps = sweeps_of(score)
    for cut in range(1, len(sweeps) + 1):
        seen = []

        def interrupt(sweep, cut=cut, seen=seen):
            seen.append(sweep)
            if len(seen) == cut:
                raise KeyboardInterrupt

        with pytest.raises(SearchInterrupted) as stop:
            order_search(score, Structure("abcdef"), on_sweep=interrupt)
        result = stop.value.result
        assert result.stop_reason == "interrupted"
        assert result.score == pytest.approx(max(sweep.score for sweep in seen))
        assert result.score == pytest.approx(score.total(result.structure))


def test_time_is_up_after_the_move_that_is_under_way():
    score = ScoreOf("abcdef", random_local(5))
    result = order_search(score, Structure("abcdef"), max_seconds=0.0)
    assert result.stop_reason == "max_seconds"
    assert result.score == pytest.approx(score.total(result.structure))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restarts": 0}, "restarts must be a whole number, 1 or more"),
        ({"patience": -1}, "patience must be a whole number"),
        ({"max_seconds": -1}, "max_seconds must be"),
        ({"taken": [spbn.search.Sweep(1, 1, ("a", "z"), 0.0, 0)]}, "taken has a sweep with other nodes"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        order_search(ScoreOf("abc", random_local(0)), Structure("abc"), **options)


def test_the_seed_decides_on_which_orders_are_tried():
    """What is found is mostly the same; how it was found is not, and only the same seed repeats it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 9)) @ rng.normal(size=(9, 9)), columns=list("abcdefghi"))
    score = spbn.scores.BIC(frame)

    def sweeps(seed):
        seen = []
        spbn.search.order_search(
            score, spbn.Structure(frame.columns, types="lg"), seed=seed, on_sweep=seen.append
        )
        return seen

    first = sweeps(0)
    assert sweeps(0) == first
    assert any(sweeps(seed) != first for seed in (1, 2, 3))


class Leading(ScoreOf):
    """A score that knows which further parents might help, and keeps what it was asked for."""

    def __init__(self, nodes, local, leads):
        super().__init__(nodes, local)
        self._leads, self.asked = leads, set()

    def _compute(self, batch):
        self.asked |= {(family[-1], frozenset(family[:-1])) for family in batch.column_tuples}
        return super()._compute(batch)

    def leads(self, batch):
        return np.tile(np.array(self._leads, dtype=float), (len(batch), 1))


def test_only_leads_are_tried_the_most_promising_first():
    """Of eight nodes, the last takes what is left of it from others: by leads, two at a time."""
    nodes = "abcdefgh"
    gains = {"a": -1.0, "b": 2.0, "c": 1.0, "d": 50.0, "e": 9.0, "f": 3.0, "g": 4.0}
    leads = [30.0, 20.0, 10.0, growing.LEAST_LEAD, 0.0, 9.0, 8.0, 0.0]
    score = Leading(nodes, lambda family: sum(gains.get(parent, 0.0) for parent in family.parents), leads)
    start = Structure(nodes)
    trees = GrowShrinkTrees(score, constrain_nothing(start), start)
    ((members, _),) = best_parents(trees, nodes, "h", [nodes[:7]])
    assert members == {"b", "c", "f", "g"}  # d and e have no lead, and a does not help
    asked = {parents for node, parents in score.asked if node == 7}
    assert {frozenset({0}), frozenset({1})} <= asked  # the two best leads come first
    assert {2} not in asked  # and one of them helps
    assert not any(parents & {3, 4} for parents in asked)


def constrain_nothing(structure):
    return constrain(
        structure,
        {node: spbn.nodes.Variable(node) for node in structure.nodes},
        operators=("arcs",),
        types=(),
        max_parents=None,
        required_arcs=(),
        forbidden_arcs=(),
        fixed_types=(),
    )[1]
