"""Effects and interventions: against closed forms, simulated experiments, and every graph of a class."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from mixed import mixed_frame, mixed_network
from spbn.inference import equivalent
from spbn.nodes import LinearGaussian
from spbn.record import Record

from strategies import arcs_of_dag


def system(rows, seed, x=None):
    """A nonlinear triangle in which a confounds x and y, and leaves every x possible; x may be set."""
    rng = np.random.default_rng(seed)
    a, e, u = rng.normal(size=(3, rows))
    x = np.tanh(1.5 * a) + 0.9 * e if x is None else np.full(rows, x)
    return pd.DataFrame({"a": a, "x": x, "y": 2.0 * np.sin(x) + 1.5 * np.abs(a) * x / 2 + a + 0.3 * u})


@pytest.fixture(scope="module")
def learned():
    data = system(2000, 0)
    return spbn.learn(data, tiers=[["a"], ["x"], ["y"]]), data


@pytest.mark.slow
def test_setting_is_not_seeing_in_a_confounded_triangle(learned):
    network, _ = learned
    assert network.structure.dag == spbn.DAG("axy", [("a", "x"), ("a", "y"), ("x", "y")])
    for value in (-1.0, 0.0, 1.0):
        experiment = system(200_000, 1, x=value)["y"].mean()
        assert network.query(do={"x": value}, n=10_000).mean()["y"] == pytest.approx(experiment, abs=0.1)
    seen = network.query({"x": 1.0}, n=10_000).mean()["y"]
    assert abs(seen - system(200_000, 1, x=1.0)["y"].mean()) > 0.4
    truth = system(200_000, 1, x=1.0)["y"].mean() - system(200_000, 1, x=-1.0)["y"].mean()
    found = network.effect("x", "y", low=-1.0, high=1.0)
    assert found.effect == pytest.approx(truth, abs=0.15)
    assert found.adjustment_sets == (("a",),)
    # The error is that of draws: other seeds give effects that far apart.
    others = [network.effect("x", "y", low=-1.0, high=1.0, seed=seed, n=2000) for seed in range(1, 21)]
    spread = np.std([other.effect for other in others], ddof=1)
    assert 0.5 < others[0].error / spread < 2.0
    low, high = found.interval(0.9)
    assert high - low == pytest.approx(2 * 1.6449 * found.error, rel=1e-3)
    event = network.effect("x", {"y": (1.0, None)}, low=-1.0, high=1.0)
    truth = [(system(200_000, 1, x=value)["y"] > 1.0).mean() for value in (-1.0, 1.0)]
    assert event.effect == pytest.approx(truth[1] - truth[0], abs=0.05)
    assert 0.0 < event.error < 0.01


def linear(nodes, arcs, seed=0):
    rng = np.random.default_rng(seed)
    cpds = {}
    for node in nodes:
        parents = [a for a, b in arcs if b == node]
        slopes = rng.normal(size=len(parents)).tolist()
        cpds[node] = LinearGaussian(node, parents, rng.normal(), slopes, rng.uniform(0.1, 2.0))
    return spbn.BayesianNetwork(spbn.Structure(nodes, arcs), cpds)


@settings(deadline=None)
@given(arcs_of_dag(min_nodes=2), st.integers(0, 99), st.data())
def test_linear_effects_are_sums_over_paths(nodes_and_arcs, seed, data):
    nodes, arcs = nodes_and_arcs
    network = linear(nodes, arcs, seed)
    cause, outcome = data.draw(st.permutations(nodes))[:2]

    def along_paths(node):
        if node == outcome:
            return 1.0
        return sum(
            dict(zip(network.cpds[b].parents, network.cpds[b].coefficients, strict=True))[a] * along_paths(b)
            for a, b in arcs
            if a == node
        )

    found = network.effect(cause, outcome, low=0.5, high=2.5)
    assert found.effect == pytest.approx(2.0 * along_paths(cause), abs=1e-9)
    assert found.error == 0.0
    assert (
        bool(found.adjustment_sets)
        == (not found.reason)
        == network.structure.dag.ancestors(outcome).__contains__(cause)
    )


def graphs_of_class(network, fixed=()):
    """Every graph with the same adjacencies and colliders, and some arcs."""
    arcs = [arc for arc in network.structure.arcs if arc not in fixed]
    cpdag = network.structure.dag.to_cpdag()
    for turned in itertools.product([False, True], repeat=len(arcs)):
        chosen = [arc[::-1] if turn else arc for arc, turn in zip(arcs, turned, strict=True)]
        try:
            dag = spbn.DAG(network.nodes, [*fixed, *chosen])
        except spbn.SpbnError:
            continue
        if dag.to_cpdag() == cpdag:
            yield dag


ARCS = {
    "chain": [("a", "b"), ("b", "c"), ("c", "d")],
    "complete": list(itertools.combinations("abcd", 2)),
    "diamond": [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
    "star": [("b", "a"), ("b", "c"), ("b", "d")],
}


@pytest.mark.parametrize("name", ARCS)
@pytest.mark.parametrize("chosen", ["b", "bc"])
def test_answers_over_equivalent_graphs_are_those_of_all(name, chosen):
    """Fit every graph of the class by itself: the means after setting are those found, and as often."""
    data = linear("abcd", ARCS[name]).sample(300, seed=1)
    network = spbn.BayesianNetwork.fit(spbn.Structure("abcd", ARCS[name]), data)
    do = dict.fromkeys(chosen, 0.7)
    counts = {}
    for dag in graphs_of_class(network):
        fitted = spbn.BayesianNetwork.fit(spbn.Structure.from_dag(dag), data)
        means = tuple(fitted.query(do=do).mean().round(6))
        counts[means] = counts.get(means, 0) + 1
    found = network.query(do=do, over="equivalent", data=data)
    answers = {}
    for one in found.alternatives:
        means = tuple(one.posterior.mean().round(6))
        answers[means] = answers.get(means, 0) + one.graphs
    assert answers == counts
    every = np.array(list(counts))
    np.testing.assert_allclose(found.range()["low"], every.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.range()["high"], every.max(axis=0), atol=1e-6)
    assert found.mean().equals(network.query(do=do).mean())
    table = found.by_graph(0.8)
    assert len(table) == len(found.alternatives) * len(found.variables)
    first = found.alternatives[0].posterior.interval(0.8)
    np.testing.assert_array_equal(table[["low", "high"]][: len(first)], first)


@pytest.mark.parametrize("name", ARCS)
def test_effects_over_equivalent_graphs_are_those_of_all(name):
    data = linear("abcd", ARCS[name]).sample(300, seed=1)
    network = spbn.BayesianNetwork.fit(spbn.Structure("abcd", ARCS[name]), data)
    for cause, outcome in itertools.permutations("abcd", 2):
        found = network.effect(cause, outcome, low=0.0, high=1.0, over="equivalent", data=data)
        every = []
        for dag in graphs_of_class(network):
            fitted = spbn.BayesianNetwork.fit(spbn.Structure.from_dag(dag), data)
            every.append(fitted.effect(cause, outcome, low=0.0, high=1.0).effect)
        assert found.interval() == pytest.approx((min(every), max(every)), abs=1e-8)
        assert found.by_graph["graphs"].sum() == len(every)
        assert bool(found.open_directions) == (max(every) - min(every) > 1e-8)


def test_what_is_decided_stays():
    """The record says that only the direction of a → b is open."""
    network = linear("abc", [("a", "b"), ("b", "c")])
    data = network.sample(200, seed=0)
    some = network.replace(record=Record(open_directions=(("a", "b"),)))
    found = some.query(do={"b": 1.0}, over="equivalent", data=data)
    assert found.open_directions == (("a", "b"),)
    assert [dict(one.parents) for one in found.alternatives] == [{"b": ("a",)}, {"b": ()}]
    assert found.by_graph()["parents"].unique().tolist() == ["a → b", "nothing → b"]
    none = network.replace(record=Record(open_directions=()))
    found = none.query(do={"b": 1.0}, over="equivalent")  # which needs no rows
    assert (found.open_directions, len(found.alternatives)) == ((), 1)
    assert network.query(do={"a": 1.0, "b": 0.0}).open_directions == (("b", "c"),)
    assert network.query({"a": 1.0}).open_directions == ()


def test_only_directions_that_matter_are_named():
    """In b ← x ← a → y with x → y, the direction of x — b says nothing about y."""
    arcs = [("a", "x"), ("a", "y"), ("x", "y"), ("x", "b")]
    network = linear("axyb", arcs)
    assert network.effect("x", "y", low=0.0, high=1.0).open_directions == (("a", "x"), ("x", "y"))
    assert set(network.query(do={"x": 0.0}).open_directions) == {("a", "x"), ("x", "y"), ("x", "b")}


def test_types_of_other_families_are_those_that_predict_best():
    """a → b is a line between two lumps: b has lumps as well, and only kernels tell them apart."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random(600) < 0.5, -3.0, 3.0) + rng.normal(size=600)
    data = pd.DataFrame({"a": a, "b": a + 0.5 * rng.normal(size=600)})
    structure = spbn.Structure("ab", [("a", "b")], {"a": "blend", "b": "lg"})
    network = spbn.BayesianNetwork.fit(structure, data)
    _, (other, number) = equivalent.equivalent_networks(network, ["b"], data)
    assert number == 1
    assert other.structure.arcs == (("b", "a"),)
    assert other.structure.types == {"a": "blend", "b": "blend"}
    assert other.logpdf(data).mean() == pytest.approx(network.logpdf(data).mean(), abs=0.05)


@pytest.mark.parametrize("kind", ["lg", "blend"])
def test_holes_and_levels_come_along(kind):
    data, network = mixed_frame(200, seed=0), mixed_network(kind)
    network = network.replace(record=Record(open_directions=(("town", "size"),)))
    holed = data.mask(np.random.default_rng(0).random(data.shape) < 0.05)
    found = network.query(do={"size": "small"}, over="equivalent", data=holed)
    assert [dict(one.parents) for one in found.alternatives] == [{"size": ("town",)}, {"size": ()}]
    low, high = found.range().loc["town=Leith"]
    assert low == pytest.approx((data["town"] == "Leith").mean(), abs=0.05)
    assert high == pytest.approx((data["town"] == "Leith")[data["size"] == "small"].mean(), abs=0.05)
    again = network.query(do={"size": "small"}, over="equivalent", data=holed)
    pd.testing.assert_frame_equal(again.by_graph(), found.by_graph())


def test_hidden_classes_come_along():
    rng = np.random.default_rng(1)
    group = rng.random(300) < 0.4
    x = rng.normal(np.where(group, 5.0, 0.0))
    rows = pd.DataFrame({"x": x, "y": x + rng.normal(np.where(group, 4.0, 0.0))})
    arcs, types = [("x", "y"), ("class", "x"), ("class", "y")], {"x": "lg", "y": "lg", "class": "discrete"}
    known = rows.assign(**{"class": np.where(group, "1", "2")})
    fitted = spbn.BayesianNetwork.fit(spbn.Structure(types, arcs, types), known)
    turned = spbn.BayesianNetwork.fit(
        spbn.Structure(types, [("y", "x"), ("class", "x"), ("class", "y")], types), known
    )
    record = Record(open_directions=(("x", "y"),))
    network = spbn.BayesianNetwork(fitted.structure, fitted.cpds, hidden="class", record=record)
    found = network.effect("y", "x", low=0.0, high=1.0, over="equivalent", data=rows)
    assert found.by_graph["parents"].tolist() == ["x, class → y", "class → y"]
    assert found.by_graph["effect"].iloc[0] == 0.0
    assert found.by_graph["effect"].iloc[1] == pytest.approx(
        turned.effect("y", "x", low=0.0, high=1.0).effect, abs=0.1
    )
    assert found.reason == "no path of arcs leads from y to x: setting y does not change it"
    behind = network.effect("x", "y", low=0.0, high=1.0)
    assert behind.adjustment_sets == ()
    assert "class, which no column holds, is behind both x and y" in behind.reason
    assert behind.reason in str(behind)
    assert network.effect("class", "y", low="1", high="2").reason == "no column holds class"


def test_levels_can_be_cause_and_outcome():
    network = mixed_network("lg")
    found = network.effect("town", {"size": "small"}, low="Leith", high="Portobello")
    table = network.cpds["size"].given(np.array([[0.0, 1.0]]))
    small = network.cpds["size"].levels.index("small")
    assert found.effect == pytest.approx(table[1, small] - table[0, small], abs=1e-12)
    assert found.error == 0.0
    assert "P(size=small) changes by" in str(found)
    assert "there is nothing to adjust for" in str(found)
    assert "P(0<y<1)" in str(network.effect("x", {"y": (0, 1)}, low=0.0, high=1.0))
    assert "P(size in small)" in str(
        network.effect("town", {"size": ["small"]}, low="Leith", high="Portobello")
    )


def test_what_is_refused():
    network = linear("abc", [("a", "b"), ("b", "c")])
    for arguments, message in (
        ({"over": "equivalent", "do": {"b": 1.0}}, r"pass the training rows, data=\.\.\."),
        ({"do": {"b": 1.0}, "data": {"a": [1.0]}}, "data can only be used with over='equivalent'"),
        ({"over": "equivalent"}, "over='equivalent' is for questions with do"),
        ({"over": "all", "do": {"b": 1.0}}, "over must be one of 'network', 'equivalent'"),
    ):
        with pytest.raises(spbn.SpbnError, match=message):
            network.query(**arguments)
    for names, message in (
        (("a", "a"), "cause and outcome are the same: 'a'"),
        (("a", "w"), "outcome names the unknown variable 'w'"),
        (("w", "a"), "cause names the unknown variable 'w'"),
        (("a", {}), r"outcome is about one variable\. Got none"),
        (("a", {"b": 1.0, "c": 1.0}), r"outcome is about one variable\. Got 'b' and 'c'"),
    ):
        with pytest.raises(spbn.SpbnError, match=message):
            network.effect(*names, low=0.0, high=1.0)
    with pytest.raises(spbn.SpbnError, match="low: 'b' is continuous and takes a number"):
        network.effect("b", "a", low="low", high=1.0)
    with pytest.raises(spbn.SpbnError, match="'size' has levels, and no mean: outcome must be an event"):
        mixed_network("lg").effect("town", "size", low="Leith", high="Portobello")
