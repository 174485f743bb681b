import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from spbn import ArgumentError, BayesianNetwork, DataError, GraphError, LinearGaussian, Structure

from naive import logpdf
from strategies import arcs_of_dag, nonlinear_frame


@given(arcs_of_dag(max_nodes=6), st.integers(0, 99))
def test_all_linear_gaussian_is_the_multivariate_normal(graph, seed):
    nodes, arcs = graph
    rng = np.random.default_rng(seed)
    structure = Structure(nodes, arcs)
    cpds = {
        node: LinearGaussian(
            node,
            structure.parents(node),
            rng.normal(),
            tuple(rng.normal(size=len(structure.parents(node)))),
            rng.uniform(0.5, 2),
        )
        for node in nodes
    }
    # x = b + Wᵀx + e  ⇒  x = (1 - Wᵀ)⁻¹ (b + e)
    n = len(nodes)
    weights, intercepts, variances = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for j, node in enumerate(nodes):
        intercepts[j], variances[j] = cpds[node].intercept, cpds[node].variance
        for parent, coefficient in zip(cpds[node].parents, cpds[node].coefficients, strict=True):
            weights[nodes.index(parent), j] = coefficient
    spread = np.linalg.inv(np.eye(n) - weights.T)
    normal = stats.multivariate_normal(spread @ intercepts, spread @ np.diag(variances) @ spread.T)
    x = rng.normal(size=(20, n)) * 3
    network = BayesianNetwork(structure, cpds)
    np.testing.assert_allclose(
        network.logpdf(pd.DataFrame(x, columns=nodes)), normal.logpdf(x), rtol=1e-9, atol=1e-9
    )


@settings(max_examples=20)
@given(arcs_of_dag(min_nodes=2, max_nodes=4), st.integers(0, 99))
def test_density_is_the_product_over_nodes(graph, seed):
    nodes, arcs = graph
    frame = nonlinear_frame(60, len(nodes), seed)
    structure = Structure(
        nodes, arcs, {node: "ckde" if i % 2 == seed % 2 else "lg" for i, node in enumerate(nodes)}
    )
    network = BayesianNetwork.fit(structure, frame)
    by_node = network.logpdf_by_node(frame)
    assert by_node.columns.tolist() == nodes
    for node, parents, node_type in structure.families():
        np.testing.assert_allclose(
            by_node[node], logpdf(frame, frame, node, list(parents), node_type), rtol=1e-8, atol=1e-8
        )
    np.testing.assert_allclose(network.logpdf(frame), by_node.sum(axis=1), rtol=1e-12)
    assert network.loglik(frame) == pytest.approx(by_node.to_numpy().sum(), rel=1e-12)


def test_results_keep_the_index_and_ignore_other_columns():
    frame = nonlinear_frame(30, 2).set_index(np.arange(100, 130))
    network = BayesianNetwork.fit(Structure("ab"), frame.assign(label="x"))
    assert network.logpdf_by_node(frame.assign(label="y")).index.tolist() == list(range(100, 130))


@pytest.mark.parametrize("types", ["lg", "ckde", {"a": "lg", "b": "ckde", "c": "lg"}])
def test_samples_have_the_density(types):
    """By the probability integral transform: each node given its parents comes out uniform."""
    network = BayesianNetwork.fit(
        Structure("abc", [("a", "b"), ("b", "c"), ("a", "c")], types), nonlinear_frame(200, 3)
    )
    sample = network.sample(3000, seed=2)
    for node in "abc":
        assert stats.kstest(network.cpds[node].cdf(sample), "uniform").pvalue > 0.01
    assert abs(np.corrcoef(*(network.cpds[node].cdf(sample) for node in "ab"))[0, 1]) < 0.05


def test_samples_repeat_with_the_seed():
    network = BayesianNetwork.fit(Structure("ab", [("a", "b")], "ckde"), nonlinear_frame(50, 2))
    pd.testing.assert_frame_equal(network.sample(20, seed=1), network.sample(20, seed=1))
    assert not network.sample(20, seed=1).equals(network.sample(20, seed=2))
    assert network.sample(0).shape == (0, 2)


def test_equality():
    frame = nonlinear_frame(50, 2)
    structure = Structure("ab", [("a", "b")], {"a": "lg", "b": "ckde"})
    assert BayesianNetwork.fit(structure, frame) == BayesianNetwork.fit(structure, frame)
    assert BayesianNetwork.fit(structure, frame) != BayesianNetwork.fit(structure, frame[1:])
    assert BayesianNetwork.fit(structure, frame) != BayesianNetwork.fit(Structure("ab"), frame)


def test_reads_node_by_node():
    network = BayesianNetwork.fit(
        Structure("ab", [("b", "a")], {"a": "ckde", "b": "lg"}), nonlinear_frame(50, 2)
    )
    first, second = str(network).splitlines()
    assert first.startswith("b = ")
    assert second == "a | b ~ CKDE (50 rows)"


def test_refusals():
    frame = nonlinear_frame(30, 2)
    structure = Structure("ab", [("a", "b")])
    network = BayesianNetwork.fit(structure, frame)
    with pytest.raises(DataError, match="lacks column 'b'"):
        network.logpdf(frame[["a"]])
    with pytest.raises(DataError, match=r"missing value.*drop or fill"):
        network.logpdf(frame.assign(b=np.nan))
    with pytest.raises(DataError, match="'b' is constant"):
        BayesianNetwork.fit(structure, frame.assign(b=1.0))
    with pytest.raises(GraphError, match="no density for node 'b'"):
        BayesianNetwork(structure, {"a": network.cpds["a"]})
    with pytest.raises(GraphError, match=r"but the structure says b \| ∅ \(lg\)"):
        BayesianNetwork(Structure("ab"), network.cpds)
    with pytest.raises(ArgumentError, match="engine must be"):
        BayesianNetwork.fit(structure, frame, engine="gpu")
