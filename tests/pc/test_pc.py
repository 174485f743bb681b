import json
import pickle
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn.errors import ArgumentError, DataError, GraphError
from spbn.graphs.dag import DAG
from spbn.independence import IndependenceTest, Oracle, PartialCorrelation, RCoT
from spbn.metrics import hmd
from spbn.search import pc
from spbn.search.pc_stable import Conditions

from strategies import NAMES, arcs_of_dag, nonlinear_frame

RULES = ["majority", "conservative", "sepset"]


def random_dag(rng, nodes):
    """A DAG of random density whose columns stand in random order."""
    order = rng.permutation(nodes)
    density = rng.uniform(0.1, 0.5) if nodes < 9 else rng.uniform(0.05, 0.25)
    arcs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if rng.random() < density]
    names = rng.permutation(list(NAMES[:nodes]))
    return DAG(rng.permutation(names).tolist(), [(names[a], names[b]) for a, b in arcs])


def joins(pdag):
    return {frozenset(pair) for pair in (*pdag.arcs, *pdag.edges)}


@pytest.mark.slow
@pytest.mark.parametrize("nodes", range(3, 16))
def test_with_an_oracle_pc_finds_the_class_of_the_true_graph(nodes):
    """276 DAGs, their columns in random order, each with all three rules."""
    rng = np.random.default_rng(nodes)
    for _ in range(24 if nodes < 13 else 12):
        dag = random_dag(rng, nodes)
        truth, oracle = dag.to_cpdag(), Oracle(dag)
        for rule in RULES:
            result = pc(oracle, orientation=rule)
            assert result.pdag == truth
            assert result.pdag.nodes == dag.nodes
        for pair, given_nodes in result.separating_sets.items():
            assert dag.d_separated(*pair, given_nodes)
        assert len(result.separating_sets) + len(joins(truth)) == nodes * (nodes - 1) / 2
        assert result.pdag.to_dag().to_cpdag() == truth


class Recorded(IndependenceTest):
    """Passes questions on, and keeps them."""

    batch_size = 1

    def __init__(self, test):
        super().__init__(test.nodes)
        self.test = test
        self.asked = []

    def answer(self, x, y, given):
        assert (x < y).all()
        assert (np.diff(given, axis=1) > 0).all()
        self.asked += [tuple(row) for row in np.column_stack([x, y, given]).tolist()]
        return self.test.answer(x, y, given)


class Greedy(Recorded):
    batch_size = 10_000


class Hasty(Recorded):
    ask_ahead = 3.0


def naive_skeleton(test, alpha):
    """PC-stable by its definition, one test at a time."""
    nodes = test.nodes
    adjacent = {node: set(nodes) - {node} for node in nodes}
    for size in range(len(nodes) - 1):
        frozen = {node: set(others) for node, others in adjacent.items()}
        for x, y in combinations(nodes, 2):
            candidates = {
                frozenset(chosen)
                for end, other in ((x, y), (y, x))
                for chosen in combinations(sorted(frozen[end] - {other}), size)
            }
            if y in frozen[x] and any(test.pvalue(x, y, given) > alpha for given in candidates):
                adjacent[x].discard(y)
                adjacent[y].discard(x)
    return {frozenset(pair) for pair in combinations(nodes, 2) if pair[1] in adjacent[pair[0]]}


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.01, 0.1, 0.4]))
def test_the_skeleton_is_that_of_the_definition(seed, alpha):
    test = PartialCorrelation(nonlinear_frame(60, 7, seed))
    assert joins(pc(test, alpha=alpha).pdag) == naive_skeleton(test, alpha)


def test_batches_change_nothing_but_how_much_is_asked():
    data = PartialCorrelation(nonlinear_frame(200, 9, seed=6))
    careful, greedy, hasty = Recorded(data), Greedy(data), Hasty(data)
    for rule in RULES:
        assert pc(careful, orientation=rule) == pc(greedy, orientation=rule) == pc(hasty, orientation=rule)
    assert len(careful.asked) < len(hasty.asked) < len(greedy.asked)
    careful.asked.clear()
    result = pc(careful, orientation="sepset")
    asked = Counter(len(question) - 2 for question in careful.asked)
    assert len(set(careful.asked)) == len(careful.asked)  # nothing twice
    assert [asked[size] for size in range(len(result.tests_run))] == list(result.tests_run)  # nothing in vain


@pytest.mark.slow
@pytest.mark.parametrize("make", [PartialCorrelation, RCoT])
@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_columns_changes_nothing(make, rule):
    frame = nonlinear_frame(300, 8, seed=2)
    expected = pc(make(frame), orientation=rule, alpha=0.2)
    for order in ("hgfedcba", "badcfehg"):
        result = pc(make(frame[list(order)]), orientation=rule, alpha=0.2)
        assert result.pdag.nodes == tuple(order)
        assert result == expected
    assert len(joins(expected.pdag)) > 6


class Claims(IndependenceTest):
    """Independent as listed, with these p-values; dependent otherwise."""

    def __init__(self, nodes, independent):
        super().__init__(nodes)
        self.independent = {
            (frozenset(pair), frozenset(given)): p for (pair, given), p in independent.items()
        }

    def answer(self, x, y, given):
        names = np.array(self.names)
        return np.array(
            [
                self.independent.get((frozenset((names[i], names[j])), frozenset(names[k])), 0.0)
                for i, j, k in zip(x, y, given, strict=True)
            ]
        )


# x - z - y, with two more neighbours v and w of x, at which nothing collides.
TREE = {
    ("xy", ""): 0.6,
    ("wz", "x"): 0.6,
    ("vz", "x"): 0.6,
    ("vw", "x"): 0.6,
    ("wy", ""): 0.6,
    ("vy", ""): 0.6,
}


@pytest.mark.parametrize(
    ("further", "verdicts"),
    [
        ([], {"majority": True, "conservative": True, "sepset": True}),
        (["z"], {"majority": False, "conservative": False, "sepset": True}),  # half of the sets
        (["z", "v"], {"majority": True, "conservative": False, "sepset": True}),  # a third
        (["z", "zv", "v"], {"majority": False, "conservative": False, "sepset": True}),  # half
    ],
)
def test_rules_for_colliders(further, verdicts):
    test = Claims("vwxyz", TREE | {("xy", given): 0.5 for given in further})
    for rule, collider in verdicts.items():
        arcs = pc(test, orientation=rule).pdag.arcs
        assert (("x", "z") in arcs) == (("y", "z") in arcs) == collider


def test_ambiguous_triples_stop_the_conservative_rule_only():
    # a → b ← c is sure; a - b - d and c - b - d are undecided: z is in half of the separating sets.
    claims = {("ac", ""): 0.5, ("ad", ""): 0.5, ("ad", "b"): 0.5, ("cd", ""): 0.5, ("cd", "b"): 0.5}
    test = Claims("abcd", claims)
    assert set(pc(test, orientation="majority").pdag.arcs) == {("a", "b"), ("c", "b"), ("b", "d")}
    conservative = pc(test, orientation="conservative").pdag
    assert set(conservative.arcs) == {("a", "b"), ("c", "b")}
    assert conservative.edges == (("b", "d"),)


@pytest.mark.parametrize("first_is_surer", [True, False])
def test_the_surer_of_two_colliders_wins(first_is_surer):
    """a → b ← c and b → c ← d cannot both be: b - c has one direction."""
    sure, less = (0.9, 0.5) if first_is_surer else (0.5, 0.9)
    test = Claims("abcd", {("ac", ""): sure, ("bd", ""): less, ("ad", ""): 0.7})
    pdag = pc(test, orientation="majority").pdag
    assert ("c", "b") in pdag.arcs if first_is_surer else ("b", "c") in pdag.arcs
    assert (("a", "b") in pdag.arcs) == first_is_surer
    assert (("d", "c") in pdag.arcs) == (not first_is_surer)


# Two colliders on a path p - q - r - s that cannot both be: p → q ← r and q → r ← s.
def conflict(path, of_first, of_second):
    """Independences of a path, with those of the pairs of the two colliders."""
    p, q, r, s = path
    return {
        ((p, s), ""): 0.5,
        **{((p, r), given): pvalue for given, pvalue in of_first.items()},
        **{((q, s), given): pvalue for given, pvalue in of_second.items()},
    }


def winner(nodes, claims, path, rule="majority"):
    """Which of the two colliders is oriented: the other must be passed over as a whole."""
    p, q, r, s = path
    arcs = pc(Claims(nodes, claims), orientation=rule).pdag.arcs
    first = {(p, q), (r, q)} <= set(arcs)
    second = {(q, r), (s, r)} <= set(arcs)
    assert first != second
    assert ((p, q) in arcs) == first
    assert ((s, r) in arcs) == second
    return "first" if first else "second"


@pytest.mark.parametrize("nodes", ["abcd", "dcba", "cadb"])
def test_the_greatest_pvalue_of_any_separating_set_decides(nodes):
    """Not the first of them, not the last, and before the share and the names."""
    sure = {"": 0.3, "d": 0.9, "bd": 0.2}
    assert winner(nodes, conflict("abcd", {"": 0.6}, {"": 0.5}), "abcd") == "first"
    assert winner(nodes, conflict("abcd", {"": 0.5}, {"": 0.6}), "abcd") == "second"
    assert winner(nodes, conflict("abcd", sure, {"": 0.6}), "abcd") == "first"
    # b is in a third of the sets, and c in none: the share would have it the other way.
    claims = conflict("abcd", {"": 0.7, "d": 0.1, "b": 0.1}, {"": 0.6})
    assert winner(nodes, claims, "abcd") == "first"
    # The skeleton's own separating sets are all that this rule knows.
    assert winner(nodes, conflict("abcd", sure, {"": 0.6}), "abcd", "sepset") == "second"


@pytest.mark.parametrize("nodes", ["abcd", "dcba", "cadb"])
def test_then_the_smallest_share_of_sets_with_the_middle(nodes):
    third = {"": 0.6, "a": 0.2, "c": 0.2}
    none = {"": 0.6, "b": 0.01}  # b separates nothing
    assert winner(nodes, conflict("abcd", none, third), "abcd") == "first"
    third = {"": 0.6, "d": 0.2, "b": 0.2}
    assert winner(nodes, conflict("abcd", third, {"": 0.6}), "abcd") == "second"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("abcd", "first"),  # (a, b, c) before (b, c, d)
        ("dcba", "second"),
        ("adcb", "first"),  # (a, d, c) before (b, c, d): the ends are compared before the middle
        ("bcda", "second"),
    ],
)
@pytest.mark.parametrize("nodes", ["abcd", "dcba", "cadb"])
def test_then_the_names(nodes, path, expected):
    assert winner(nodes, conflict(path, {"": 0.6}, {"": 0.6}), path) == expected


def test_a_collider_that_would_close_a_cycle_is_passed_over():
    """a → b ← x, b → c ← y and c → a ← z are each possible, but not all three."""
    order = [("a", "b", "x"), ("b", "c", "y"), ("c", "a", "z")]
    nodes = "abcxyz"
    adjacent = {frozenset(p) for p in ("ab", "bc", "ca", "xb", "yc", "za")}
    claims = {}
    for first, second in combinations(nodes, 2):
        if frozenset((first, second)) not in adjacent:
            claims[(first, second), ""] = 0.5
    for number, (x, _, y) in enumerate(order):
        claims[tuple(sorted((x, y))), ""] = 0.9 - 0.1 * number
    arcs = set(pc(Claims(nodes, claims)).pdag.arcs)
    assert {("a", "b"), ("x", "b"), ("b", "c"), ("y", "c")} <= arcs
    assert ("c", "a") not in arcs


def test_a_pvalue_of_alpha_itself_is_a_dependence():
    for pvalue, joined in ((0.05, True), (np.nextafter(0.05, 1.0), False)):
        pdag = pc(Claims("ab", {("ab", ""): pvalue}), alpha=0.05).pdag
        assert bool(joins(pdag)) == joined


def test_seeds_of_a_test_decide():
    frame = nonlinear_frame(100, 4)
    results = [pc(RCoT(frame, seed=seed)) for seed in (0, 0, 1)]
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_results_are_values():
    result = pc(Oracle(DAG("abc", [("a", "b"), ("b", "c")])))
    assert result.separating_sets == {frozenset("ac"): frozenset("b")}
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(TypeError):
        result.separating_sets[frozenset("ab")] = frozenset()


def test_max_conditioning_and_the_count_of_tests():
    dag = DAG("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    oracle = Oracle(dag)
    assert pc(oracle).pdag == dag.to_cpdag()
    limited = pc(oracle, max_conditioning=1)
    assert len(limited.tests_run) == 2
    assert frozenset("ad") in joins(limited.pdag)
    assert pc(oracle, max_conditioning=0).tests_run[0] >= 6
    assert pc(Oracle(DAG("a"))).tests_run == ()


def test_required_and_forbidden():
    chain = Oracle(DAG("abcd", [("a", "b"), ("b", "c")]))
    free = pc(chain).pdag
    assert free.edges == (("a", "b"), ("b", "c"))
    assert pc(chain, required_arcs=[("c", "b")]).pdag.arcs == (("b", "a"), ("c", "b"))
    assert pc(chain, forbidden_arcs=[("b", "c")]).pdag.arcs == (("b", "a"), ("c", "b"))
    assert frozenset("ab") not in joins(pc(chain, forbidden_edges=[("b", "a")]).pdag)
    assert frozenset("ab") not in joins(pc(chain, forbidden_arcs=[("b", "a"), ("a", "b")]).pdag)
    with_d = pc(chain, required_edges=[("d", "a")])
    assert frozenset("ad") in joins(with_d.pdag)
    assert frozenset("ad") not in with_d.separating_sets
    assert ("d", "a") in pc(chain, required_arcs=[("d", "a")]).pdag.arcs


@pytest.mark.slow
@settings(max_examples=60)
@given(arcs_of_dag(3, 7), st.data())
def test_knowledge_that_is_true_keeps_the_true_graph_possible(graph, data):
    dag = DAG(*graph)
    arcs = st.lists(st.sampled_from(dag.arcs), unique=True) if dag.arcs else st.just([])
    required = data.draw(arcs)
    others = [(a, b) for a in dag.nodes for b in dag.nodes if a != b and (a, b) not in dag.arcs]
    forbidden = data.draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    pdag = pc(Oracle(dag), required_arcs=required, forbidden_arcs=forbidden).pdag
    assert joins(pdag) == {frozenset(arc) for arc in dag.arcs}
    assert set(pdag.arcs) <= set(dag.arcs)
    assert set(required) <= set(pdag.arcs)
    assert not set(forbidden) & set(pdag.to_dag().arcs)


@pytest.mark.parametrize(
    ("knowledge", "message"),
    [
        ({"required_edges": ["ab"], "forbidden_edges": ["ba"]}, "edge a — b is both required and forbidden"),
        ({"required_arcs": ["ab"], "forbidden_arcs": ["ab"]}, "arc a → b is both required and forbidden"),
        ({"required_arcs": ["ab"], "forbidden_edges": ["ab"]}, "edge a — b is both required and forbidden"),
        ({"required_edges": ["ab"], "forbidden_arcs": ["ab", "ba"]}, "edge a — b is both"),
        ({"required_arcs": ["ab", "bc", "ca"]}, "cycle"),
        ({"required_arcs": ["ab", "ba"]}, "cycle"),
        ({"required_edges": ["ab", "bc", "ac"], "forbidden_arcs": ["ba", "cb", "ac"]}, "no acyclic graph"),
        ({"required_arcs": ["az"]}, "'z'"),
        ({"forbidden_edges": ["aa"]}, "join two nodes"),
    ],
)
def test_knowledge_that_contradicts_itself(knowledge, message):
    pairs = {name: [tuple(pair) for pair in value] for name, value in knowledge.items()}
    test = Recorded(Oracle(DAG("abc")))
    with pytest.raises(GraphError, match=message):
        pc(test, **pairs)
    assert not test.asked  # refused before the work begins


def test_forbidden_arcs_that_only_the_data_bring_into_a_circle():
    forbidden = [("b", "a"), ("c", "b"), ("a", "c")]
    assert pc(Oracle(DAG("abc", [("a", "b")])), forbidden_arcs=forbidden).pdag.arcs == (("a", "b"),)
    with pytest.raises(GraphError, match="leave no acyclic graph"):
        pc(Oracle(DAG("abc", [("a", "b"), ("b", "c"), ("a", "c")])), forbidden_arcs=forbidden)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1. Got 0.0"),
        ({"alpha": 1}, "alpha must be between 0 and 1"),
        ({"alpha": "0.05"}, "alpha must be between"),
        ({"max_conditioning": -1}, "max_conditioning must be None or a whole number"),
        ({"max_conditioning": 1.5}, "max_conditioning must be None or a whole number"),
        ({"orientation": "mpc"}, "'majority', 'conservative' or 'sepset'. Got 'mpc'"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ArgumentError, match=message):
        pc(Oracle(DAG("abc")), **options)


def test_the_test_must_be_a_test():
    with pytest.raises(ArgumentError, match=r"for example RCoT\(data\). Got DataFrame"):
        pc(nonlinear_frame(10, 3))


def test_more_conditions_than_rows_can_bear(rng):
    frame = pd.DataFrame(rng.normal(size=(6, 1)) + 0.1 * rng.normal(size=(6, 8)), columns=list("abcdefgh"))
    with pytest.raises(DataError, match="max_conditioning in pc"):
        pc(PartialCorrelation(frame), alpha=0.9)
    pc(PartialCorrelation(frame), alpha=0.9, max_conditioning=3)


def test_nothing_is_printed_unless_asked_for(capfd):
    test = PartialCorrelation(nonlinear_frame(50, 4))
    expected = pc(test)
    assert capfd.readouterr() == ("", "")
    assert pc(test, progress=True) == expected
    out, err = capfd.readouterr()
    assert out == ""
    assert "PC: " in err


@pytest.mark.slow
@given(arcs_of_dag(2, 7), st.data())
def test_conditions_are_all_sets_once(graph, data):
    matrix = DAG(*graph).matrix
    adjacent = matrix | matrix.T
    x, y = sorted(data.draw(st.permutations(range(len(matrix))))[:2])
    for size in range(len(matrix)):
        conditions = Conditions(adjacent, x, y, size)
        pools = [[i for i in np.flatnonzero(adjacent[end]) if i != other] for end, other in ((x, y), (y, x))]
        expected = {chosen for pool in pools for chosen in combinations(pool, size)}
        listed = [tuple(row) for row in conditions.take(0, conditions.count).tolist()]
        assert len(listed) == len(set(listed)) == conditions.count
        assert set(listed) == expected
        cut = data.draw(st.integers(0, conditions.count))
        halves = np.concatenate([conditions.take(0, cut), conditions.take(cut, conditions.count + 5)])
        assert [tuple(row) for row in halves.tolist()] == listed


def test_conditions_beyond_counting():
    """A hub with 400 neighbours has more sets of 30 than a machine can number; the first ones can be had."""
    adjacent = np.zeros((402, 402), dtype=bool)
    adjacent[0, 1:] = adjacent[1:, 0] = True
    conditions = Conditions(adjacent, 0, 401, 30)
    assert conditions.take(0, 2).tolist() == [[*range(1, 31)], [*range(1, 30), 31]]
    assert conditions.take(371, 372).tolist() == [[*range(1, 29), 30, 31]]


REFERENCE = [
    "synthetic_200",
    "synthetic_2000",
    "synthetic_10000",
    "ecoli70_200",
    "ecoli70_2000",
    "magic_niab_2000",
    "arth150_2000",
]


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(
    ("table", "degrees"), [(table, "exact") for table in REFERENCE] + [("magic_niab_2000", "pybnesian")]
)
def test_skeletons_are_those_of_the_reference(shared, table, degrees):
    """And so are the orientations, where no colliders contradict each other."""
    published = json.loads((shared / "reference" / "pc_partial_correlation.json").read_text())[table]
    folder = "synthetic" if table.startswith("synthetic") else "GaussianNetworks"
    frame = pd.read_csv(shared / "paper-data" / folder / f"{table}.csv")
    pdag = pc(PartialCorrelation(frame, degrees=degrees)).pdag
    arcs, edges = {tuple(arc) for arc in published["arcs"]}, {frozenset(edge) for edge in published["edges"]}
    assert joins(pdag) == {frozenset(arc) for arc in arcs} | edges
    if not any((b, a) in arcs for a, b in arcs):
        assert set(pdag.arcs) == arcs
        assert {frozenset(edge) for edge in pdag.edges} == edges
    else:
        assert len(set(pdag.arcs) & arcs) > 0.6 * len(pdag.arcs)


@pytest.mark.shared
def test_table_1(shared):
    """RCoT finds the true graph at 10,000 rows; partial correlation misses 3 or 4 adjacencies."""
    truth = DAG("ABCDE", [("A", "C"), ("B", "C"), ("C", "D"), ("D", "E")])
    frames = {
        rows: pd.read_csv(shared / "paper-data" / "synthetic" / f"synthetic_{rows}.csv")[list("ABCDE")]
        for rows in (200, 2000, 10000)
    }
    for seed in range(3):
        assert pc(RCoT(frames[10000], seed=seed)).pdag == truth.to_cpdag()
        assert hmd(pc(RCoT(frames[2000], seed=seed)).pdag, truth) <= 3
    for frame in frames.values():
        assert 3 <= hmd(pc(PartialCorrelation(frame)).pdag, truth) <= 4
