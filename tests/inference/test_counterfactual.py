"""What rows would have been: against closed forms, and simulated systems whose noise is known."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import spbn
from mixed import mixed_frame, mixed_network
from spbn.nodes import LinearGaussian, ProbabilityTable
from spbn.transforms import Margins, YeoJohnson

from strategies import arcs_of_dag


def linear_network(nodes, arcs, rng, margins=None):
    """A network of lines, and its matrix of coefficients: child × parent."""
    matrix, cpds = np.zeros((len(nodes), len(nodes))), {}
    intercepts = rng.normal(size=len(nodes))
    for k, node in enumerate(nodes):
        parents = [a for a, b in arcs if b == node]
        slopes = rng.normal(size=len(parents))
        matrix[k, [nodes.index(parent) for parent in parents]] = slopes
        cpds[node] = LinearGaussian(node, parents, intercepts[k], slopes.tolist(), rng.uniform(0.1, 2.0))
    return spbn.BayesianNetwork(spbn.Structure(nodes, arcs), cpds, margins=margins), matrix


def closed_form(rows, matrix, set_to):
    """x' of x = c + B x + e, with some equations replaced by constants, by one system of equations."""
    constant = rows - rows @ matrix.T  # c + e
    chosen = list(set_to)
    matrix = matrix.copy()
    matrix[chosen] = 0.0
    constant[:, chosen] = [set_to[k] for k in chosen]
    return np.linalg.solve(np.eye(len(matrix)) - matrix, constant.T).T


@settings(deadline=None)
@given(arcs_of_dag(min_nodes=1), st.integers(0, 99), st.data())
def test_linear_networks_are_exact(nodes_and_arcs, seed, data):
    nodes, arcs = nodes_and_arcs
    rng = np.random.default_rng(seed)
    network, matrix = linear_network(nodes, arcs, rng)
    rows = pd.DataFrame(rng.normal(scale=3.0, size=(5, len(nodes))), columns=nodes)
    chosen = data.draw(st.lists(st.sampled_from(nodes), unique=True, min_size=1, max_size=3))
    do = {node: float(rng.normal(scale=3.0)) for node in chosen}
    found = network.counterfactual(rows, do=do)
    expected = closed_form(rows.to_numpy(), matrix, {nodes.index(node): do[node] for node in chosen})
    np.testing.assert_allclose(found.rows, expected, rtol=0, atol=1e-9)
    pd.testing.assert_frame_equal(found.low, found.rows)
    pd.testing.assert_frame_equal(found.high, found.rows)
    below = set().union(*(network.structure.dag.descendants(node) for node in chosen))
    for node in set(nodes) - below - set(chosen):
        assert found.rows[node].tolist() == rows[node].tolist()  # exactly


def test_margins_are_seen_through():
    rng = np.random.default_rng(1)
    nodes, arcs = list("abc"), [("a", "b"), ("b", "c"), ("a", "c")]
    bends = {node: YeoJohnson(1.0, 2.0, exponent) for node, exponent in zip("ac", (0.2, 1.7), strict=True)}
    network, matrix = linear_network(nodes, arcs, rng, Margins(bends))
    rows = pd.DataFrame(rng.normal(scale=2.0, size=(8, 3)), columns=nodes)
    inside = rows.copy()
    for node, bend in bends.items():
        inside[node] = bend.forward(rows[node].to_numpy())
    moved = closed_form(inside.to_numpy(), matrix, {0: bends["a"].forward(np.array([0.7]))[0]})
    found = network.counterfactual(rows, do={"a": 0.7}).rows
    np.testing.assert_allclose(found["a"], 0.7, atol=1e-9)
    np.testing.assert_allclose(found["b"], moved[:, 1], atol=1e-9)
    np.testing.assert_allclose(found["c"], bends["c"].inverse(moved[:, 2]), atol=1e-9)


@pytest.mark.parametrize("node_type", ["lg", "curve", "ckde", "blend"])
def test_what_is_set_to_what_it_is_changes_nothing(node_type):
    network, rows = mixed_network(node_type), mixed_frame(6, seed=5)
    for (place, row), name in itertools.product(rows.iterrows(), ("town", "x", "y")):
        found = network.counterfactual(row.to_dict(), do={name: row[name]}).rows
        for other, value in row.items():
            if isinstance(value, str):
                assert found[other][0] == value
            else:
                assert found[other][0] == pytest.approx(value, abs=1e-9), (place, name, other)


def triangle(rows, seed):
    """A cause, what it confounds, and noise: x depends on a, and y on both, with known noise."""
    rng = np.random.default_rng(seed)
    a, e, u = rng.normal(size=(3, rows))
    x = a + 0.7 * e
    return a, x, u


MECHANISMS = {
    "additive": lambda a, x, u: np.sin(1.5 * x) + 0.5 * a + 0.3 * u,
    "monotone": lambda a, x, u: np.exp(0.5 * x + 0.2 * a + 0.3 * u),
    "scaled": lambda a, x, u: x + 0.3 * a + (0.2 + 0.3 * np.exp(-(x**2))) * u,
}


@pytest.mark.parametrize(
    ("node_type", "mechanism", "rows", "tolerance"),
    [
        ("curve", "additive", 4000, 0.06),
        ("curve", "scaled", 4000, 0.06),
        ("ckde", "additive", 4000, 0.15),
        ("ckde", "monotone", 4000, 0.15),
        ("blend", "monotone", 2000, 0.1),
    ],
)
def test_known_systems(node_type, mechanism, rows, tolerance):
    """The noise of every row is known, and so is what would have been."""
    mechanism = MECHANISMS[mechanism]
    a, x, u = triangle(rows, 0)
    data = pd.DataFrame({"a": a, "x": x, "y": mechanism(a, x, u)})
    structure = spbn.Structure("axy", [("a", "x"), ("a", "y"), ("x", "y")], node_type)
    network = spbn.BayesianNetwork.fit(structure, data)
    new = slice(0, 150)
    found = network.counterfactual(data[new], do={"x": 0.5})
    expected = mechanism(a, 0.5, u)[new]
    factual = data["y"].to_numpy()[new]
    core = (np.abs(x[new]) < 2.0) & (np.abs(a[new]) < 2.0)  # where there are rows
    errors = np.abs(found.rows["y"].to_numpy() - expected)[core]
    assert errors.mean() < tolerance
    assert errors.mean() < 0.2 * np.abs(factual - expected)[core].mean()
    np.testing.assert_array_equal(found.rows["a"], data["a"][new])


def test_a_row_in_the_tails_of_a_curve_owes_nothing_to_its_parents():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    data = pd.DataFrame({"x": x, "y": np.sin(x) + 0.01 * rng.normal(size=2000)})
    data.loc[:20, "y"] = rng.standard_t(2, size=21)
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], "curve"), data)
    assert network.cpds["y"].mixture[2] > 0.0
    found = network.counterfactual({"x": [1.0, 1.0], "y": [np.sin(1.0), 4.0]}, do={"x": 0.0}).rows["y"]
    assert abs(found[0]) < 0.02
    assert found[1] == pytest.approx(4.0, abs=1e-9)


def discrete_network():
    cause = ProbabilityTable.fit({"x": ["no", "yes"] * 10}, "x")
    effect = ProbabilityTable.fit({"x": list("nnnnnnyyyyyy"), "y": list("aabbbcabcccc")}, "y", ["x"])
    effect = ProbabilityTable.fit(
        {"x": ["no"] * 6 + ["yes"] * 6, "y": list("aabbbcabcccc")}, "y", ["x"], smoothing=0.0
    )
    structure = spbn.Structure("xy", [("x", "y")], "discrete")
    return spbn.BayesianNetwork(structure, {"x": cause, "y": effect})


def test_levels_keep_their_place_in_the_distribution():
    """A level is an interval of probabilities, and so are the levels that it meets among other parents."""
    network = discrete_network()
    before, after = np.array([2, 3, 1]) / 6, np.array([1, 1, 4]) / 6
    n = 60
    for k, level in enumerate("abc"):
        found = network.counterfactual({"x": "no", "y": level}, do={"x": "yes"}, n=n)
        low, high = before[:k].sum(), before[: k + 1].sum()
        ends = np.concatenate([[0.0], after.cumsum()])
        overlap = np.clip(np.minimum(high, ends[1:]) - np.maximum(low, ends[:-1]), 0.0, None)
        expected = overlap / (high - low)
        np.testing.assert_allclose(found.probabilities["y"].to_numpy()[0], expected, atol=1.5 / n)
        assert found.rows["y"][0] == "abc"[expected.argmax()]
        assert found.rows["x"][0] == "yes"
    same = network.counterfactual({"x": "no", "y": "b"}, do={"x": "no"})
    assert same.probabilities["y"].to_numpy().tolist() == [[0.0, 1.0, 0.0]]
    assert list(same.to_frame()) == ["x", "y"]
    assert list(found.to_frame()) == ["x", "y"]  # of "c" nothing else can have come
    other = network.counterfactual({"x": "no", "y": "a"}, do={"x": "yes"})
    assert list(other.to_frame()) == ["x", "y", "y probability"]


def test_rows_that_were_drawn_are_then_distributed_as_if_set():
    """Over all rows, what would have been is what follows from setting: for every type, and for levels."""
    network = mixed_network("ckde")
    rows = network.sample(400, seed=3)
    found = network.counterfactual(rows, do={"town": "Leith"}, n=30)
    expected = network.query(do={"town": "Leith"}, n=4000, seed=1)
    shares = found.probabilities["size"].mean()
    for level, share in expected.probabilities("size").items():
        assert shares[level] == pytest.approx(share, abs=0.08)
    for name in ("x", "y", "z"):
        drawn = expected.draws[name].to_numpy()
        error = 4 * drawn.std() * np.sqrt(1 / 400 + 1 / 4000)
        assert found.rows[name].mean() == pytest.approx(drawn.mean(), abs=error)


def populations():
    """Two classes with different lines, and known parameters."""
    by_class = [(0.0, 1.0, 0.5), (3.0, -2.0, 0.8)]
    rng = np.random.default_rng(2)
    codes = np.arange(400) % 2
    x = rng.normal(size=400)
    frame = pd.DataFrame({"x": x, "class": np.where(codes == 0, "1", "2")})
    frame["y"] = [by_class[k][0] + by_class[k][1] * v for k, v in zip(codes, x, strict=True)]
    frame["y"] += rng.normal(size=400) * np.array([by_class[k][2] for k in codes])
    arcs = [("x", "y"), ("class", "y")]
    types = {"x": "lg", "y": "lg", "class": "discrete"}
    fitted = spbn.BayesianNetwork.fit(spbn.Structure(types, arcs, types), frame)
    return spbn.BayesianNetwork(fitted.structure, fitted.cpds, hidden="class")


def test_hidden_classes_count_as_probable_as_they_are():
    network = populations()
    row = {"x": 0.8, "y": 1.2}
    lines = network.cpds["y"].densities
    weights, values = [], []
    for share, line in zip(network.cpds["class"].probabilities[0], lines, strict=True):
        (slope,) = line.coefficients
        mean = line.intercept + slope * row["x"]
        weights.append(share * stats.norm.pdf(row["y"], mean, np.sqrt(line.variance)))
        values.append(row["y"] + slope * (-1.0 - row["x"]))
    found = network.counterfactual(row, do={"x": -1.0})
    assert found.rows["y"][0] == pytest.approx(np.average(values, weights=weights), abs=1e-9)
    assert found.low["y"][0] == pytest.approx(min(values))
    assert found.high["y"][0] == pytest.approx(max(values))
    assert found.probabilities == {}
    (line,) = [line for line in lines if line.coefficients[0] > 0]
    other = lines[1 - lines.index(line)]
    turned = network.counterfactual(row, do={"class": "1" if lines[0] is line else "2"})
    (slope,), (other_slope,) = line.coefficients, other.coefficients
    z = (row["y"] - other.intercept - other_slope * row["x"]) / np.sqrt(other.variance)
    moved = line.intercept + slope * row["x"] + np.sqrt(line.variance) * z
    weight = weights[lines.index(other)] / sum(weights)
    assert turned.rows["y"][0] == pytest.approx(weight * moved + (1 - weight) * row["y"], abs=1e-9)


def test_holes_are_drawn_given_the_rest():
    """With x missing, y' = y + b (x' - x), and x is normal given a and y: in closed form."""
    cpds = {
        "a": LinearGaussian("a", [], 0.0, [], 1.0),
        "x": LinearGaussian("x", ["a"], 0.0, [1.0], 0.5),
        "y": LinearGaussian("y", ["x"], 0.0, [2.0], 0.25),
    }
    network = spbn.BayesianNetwork(spbn.Structure("axy", [("a", "x"), ("x", "y")]), cpds)
    precision = 1 / 0.5 + 4.0 / 0.25
    mean, deviation = (1.0 / 0.5 + 2.0 * 3.0 / 0.25) / precision, precision**-0.5
    rows = pd.DataFrame({"a": [1.0, 1.0], "x": [np.nan, 1.2], "y": [3.0, 3.0]}, index=[7, 9])
    found = network.counterfactual(rows, do={"x": 0.0}, n=4000, level=0.8)
    assert found.rows.index.tolist() == [7, 9]
    error = 4 * 2 * deviation / np.sqrt(4000)
    assert found.rows["y"][7] == pytest.approx(3.0 - 2.0 * mean, abs=error)
    for end, quantile in ((found.low, 0.1), (found.high, 0.9)):
        expected = stats.norm.ppf(quantile, 3.0 - 2.0 * mean, 2 * deviation)
        assert end["y"][7] == pytest.approx(expected, abs=3 * error)
        assert end["y"][9] == 3.0 - 2.0 * 1.2
    assert found.level == 0.8
    assert list(found.to_frame()) == ["a", "x", "y", "y low", "y high"]
    # A column that is not there is missing in every row; what nothing says anything about is as expected.
    short = network.counterfactual({"a": 1.0, "y": 3.0}, do={"x": 0.0}, n=4000)
    assert short.rows["y"][0] == pytest.approx(3.0 - 2.0 * mean, abs=error)
    again = network.counterfactual(rows, do={"x": 0.0}, n=50, seed=1)
    pd.testing.assert_frame_equal(again.rows, network.counterfactual(rows, do={"x": 0.0}, n=50, seed=1).rows)
    assert again.rows["y"][7] != network.counterfactual(rows, do={"x": 0.0}, n=50, seed=2).rows["y"][7]


def test_many_rows_are_answered_in_parts(monkeypatch):
    network, rows = mixed_network("lg"), mixed_frame(40, seed=1)
    expected = network.counterfactual(rows, do={"x": 0.3})
    monkeypatch.setattr("spbn.inference.counterfactual.MOST_AT_ONCE", 500)
    found = network.counterfactual(rows, do={"x": 0.3})
    pd.testing.assert_frame_equal(found.rows, expected.rows)


def test_a_row_of_a_frame_is_a_row():
    network, rows = mixed_network("curve"), mixed_frame(3, seed=5)
    found = network.counterfactual(rows.iloc[1], do={"x": 1.0}).rows
    assert found.equals(network.counterfactual(rows.iloc[1].to_dict(), do={"x": 1.0}).rows)


def test_open_directions_are_named():
    network, _ = linear_network(list("abcd"), [("a", "b"), ("b", "c"), ("d", "c")], np.random.default_rng(0))
    assert tuple(network.open_directions()) == (("a", "b"),)
    row = dict.fromkeys("abcd", 1.0)
    assert network.counterfactual(row, do={"b": 0.0}).open_directions == (("a", "b"),)
    assert network.counterfactual(row, do={"a": 0.0}).open_directions == (("a", "b"),)
    assert network.counterfactual(row, do={"c": 0.0}).open_directions == ()


def test_what_is_refused():
    network = mixed_network("lg")
    row = mixed_frame(1).iloc[0].to_dict()
    for arguments, message in (
        ({"do": {}}, "do must set at least one variable"),
        ({"do": {"x": (0, 1)}}, "do sets variables to values, not to intervals or sets: 'x'"),
        ({"do": {"w": 1}}, "do names the unknown variable 'w'"),
        ({"do": {"town": "Rome"}}, "'town' has no level 'Rome'"),
        ({"do": {"x": 1.0}, "n": 0}, "n must be"),
        ({"do": {"x": 1.0}, "level": 1.0}, "level must be between 0 and 1"),
    ):
        with pytest.raises(spbn.SpbnError, match=message):
            network.counterfactual(row, **arguments)
    with pytest.raises(spbn.SpbnError, match="has none of the columns"):
        network.counterfactual({"w": 1.0}, do={"x": 1.0})
