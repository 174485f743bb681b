import inspect

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from spbn import BayesianNetwork, NodeType, Structure
from spbn.errors import ArgumentError, DataError, FitError, GraphError
from spbn.fitting import fit_what_can_be
from spbn.nodes import LinearGaussian
from spbn.rows.store import FitSettings
from spbn.scores import BIC
from spbn.search import hill_climb
from spbn.tables.reader import as_table
from spbn.tables.splits import fold_labels

from naive import cv_rows, logpdf, silverman
from strategies import NAMES, arcs_of_dag, nonlinear_frame


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


def test_parents_are_drawn_before_their_children_wherever_their_columns_are():
    frame = nonlinear_frame(200, 3)
    network = BayesianNetwork.fit(Structure("abc", [("c", "b"), ("b", "a")], "ckde"), frame)
    sample = network.sample(3000, seed=4)
    assert sample.columns.tolist() == ["a", "b", "c"]
    for node in "abc":
        assert stats.kstest(network.cpds[node].cdf(sample), "uniform").pvalue > 0.01


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


FITTED = Structure("abc", [("a", "b")], {"a": "lg", "b": "ckde", "c": "ckde"})


def test_every_argument_of_fit_reaches_the_densities():
    frame = nonlinear_frame(60, 3)
    plain = BayesianNetwork.fit(FITTED, frame)
    wide = BayesianNetwork.fit(FITTED, frame, bandwidth="silverman")
    # In two dimensions, as for b, both rules say the same.
    np.testing.assert_allclose(wide.cpds["c"].bandwidth, silverman(frame[["c"]].to_numpy()), rtol=1e-12)
    assert abs(wide.record.typical["c"] - plain.record.typical["c"]) > 1e-3
    holes = frame.copy()
    holes.loc[[1, 40], "c"] = np.inf
    with pytest.raises(DataError, match="missing='drop'"):
        BayesianNetwork.fit(FITTED, holes)
    assert BayesianNetwork.fit(FITTED, holes, missing="drop") == BayesianNetwork.fit(
        FITTED, frame.drop(index=[1, 40])
    )
    bent = BayesianNetwork.fit(FITTED, frame, margins="yeo-johnson")
    assert set(bent.margins.columns) == set("abc")
    assert bent.loglik(frame) != plain.loglik(frame)
    exact = BayesianNetwork.fit(FITTED, frame, engine="exact")
    assert {exact.cpds[node].joint.engine for node in "bc"} == {"exact"}
    search = hill_climb(BIC(frame), Structure("abc"))
    assert BayesianNetwork.fit(FITTED, frame, search=search).search is search
    coins = {"a": ["heads", "heads", "heads", "tails"]}
    rough = BayesianNetwork.fit(Structure("a", types="discrete"), coins, smoothing=0.0)
    np.testing.assert_array_equal(rough.cpds["a"].probabilities, [[3 / 4, 1 / 4]])
    smooth = BayesianNetwork.fit(Structure("a", types="discrete"), coins, smoothing=2.0)
    np.testing.assert_array_equal(smooth.cpds["a"].probabilities, [[4 / 6, 2 / 6]])
    tested = {"structure", "data", "bandwidth", "margins", "missing", "engine", "search", "smoothing"}
    assert set(inspect.signature(BayesianNetwork.fit).parameters) == tested


def test_what_is_typical_is_the_median_over_rows_that_were_not_fitted():
    frame = nonlinear_frame(50, 3)
    network = BayesianNetwork.fit(FITTED, frame)
    labels = fold_labels(50, 10, 0)
    for node, parents, node_type in FITTED.families():
        expected = np.median(cv_rows(frame, labels, node, list(parents), node_type))
        assert network.record.typical[node] == pytest.approx(expected, rel=1e-9)


def collinear(rng, rows=40):
    a, c, noise = rng.normal(size=(3, rows))
    return pd.DataFrame({"a": a, "b": 2 * a, "c": c, "d": a - c + noise})


@pytest.mark.parametrize("node_type", ["lg", "ckde"])
def test_the_arc_that_cannot_be_fitted_is_left_out_and_an_innocent_one_stays(rng, node_type):
    table = as_table(collinear(rng))
    for order in ("abcd", "cabd", "bcad"):
        structure = Structure(order, [(parent, "d") for parent in "abc"], node_type)
        left, cpds, out = fit_what_can_be(structure, table, FitSettings())
        ((arc, reason),) = out
        kept, dropped = ("b", "a") if order == "bcad" else ("a", "b")
        assert arc == (dropped, "d")
        assert set(left.parents("d")) == {kept, "c"} == set(cpds["d"].parents)
        assert left.types == structure.types
        assert "d" in reason or "linear" in reason


@pytest.mark.parametrize("node_type", ["lg", "ckde"])
def test_a_required_arc_is_kept_at_the_cost_of_others(rng, node_type):
    structure = Structure("abcd", [(parent, "d") for parent in "abc"], node_type)
    left, _, out = fit_what_can_be(
        structure, as_table(collinear(rng)), FitSettings(), required_arcs=[("b", "d")]
    )
    assert [arc for arc, _ in out] == [("a", "d")]
    assert left.parents("d") == ("b", "c")


@pytest.mark.parametrize("node_type", ["lg", "ckde"])
def test_a_required_arc_that_cannot_be_fitted_is_refused_by_name(rng, node_type):
    structure = Structure("abcd", [(parent, "d") for parent in "abc"], node_type)
    with pytest.raises(FitError, match=r"the required arc b → d cannot be fitted: .*Require fewer arcs"):
        fit_what_can_be(
            structure,
            as_table(collinear(rng)),
            FitSettings(),
            required_arcs=[("a", "d"), ("b", "d"), ("c", "d")],
        )
    # Each of the two alone can be had.
    for required in ("a", "b"):
        fit_what_can_be(
            structure, as_table(collinear(rng)), FitSettings(), required_arcs=[(required, "d"), ("c", "d")]
        )


@settings(max_examples=60)
@given(
    weights=st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=3, max_size=4),
    order=st.permutations(range(6)),
    rows=st.sampled_from([4, 6, 40]),
    node_type=st.sampled_from(["lg", "ckde"]),
    data=st.data(),
)
def test_what_is_left_out_cannot_be_put_back(weights, order, rows, node_type, data):
    """Some columns are sums of others; whatever is left out of their child's parents, no more fit in."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(rows, 3))
    columns = np.column_stack([base, base @ np.array(weights).T])
    names = [NAMES[i] for i in order[: columns.shape[1]] if i < columns.shape[1]]
    frame = pd.DataFrame(columns, columns=list(NAMES[: columns.shape[1]]))
    frame = frame.loc[:, frame.max() > frame.min()]
    names = [name for name in names if name in frame]
    *parents, child = names
    required = data.draw(st.lists(st.sampled_from(parents), unique=True)) if parents else []
    structure = Structure(names, [(parent, child) for parent in parents], node_type)
    table, settings_ = as_table(frame), FitSettings()

    def fits(chosen):
        try:
            NodeType.parse(node_type).fit(table, child, [p for p in parents if p in chosen], settings_)
        except FitError:
            return False
        return True

    arcs = [(parent, child) for parent in required]
    if not fits(required):
        named = "|".join(f"required arc {parent} → {child}" for parent in required)
        with pytest.raises(FitError, match=named):
            fit_what_can_be(structure, table, settings_, required_arcs=arcs)
        return
    left, cpds, out = fit_what_can_be(structure, table, settings_, required_arcs=arcs)
    kept = set(left.parents(child))
    assert set(required) <= kept
    assert fits(kept)
    assert set(cpds[child].parents) == kept
    assert {arc for arc, _ in out} == {(parent, child) for parent in set(parents) - kept}
    for (parent, _), _ in out:
        assert not fits(kept | {parent})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("node_type", ["lg", "ckde", "blend"])
def test_a_value_that_cannot_be_squared_has_hardly_a_density_and_no_warning(node_type):
    network = BayesianNetwork.fit(Structure("abc", [("a", "b")], node_type), nonlinear_frame(40, 3, seed=1))
    logpdf = network.logpdf({"a": [0.0, 1e6, 1e300], "b": [0.0, 0.0, 0.0], "c": [0.0, 0.0, 0.0]})
    assert np.isfinite(logpdf[:2]).all()
    assert logpdf[2] == -np.inf if node_type != "blend" else logpdf[2] > -3000
