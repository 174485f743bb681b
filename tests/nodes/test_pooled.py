"""Densities that are fitted to different fillings of a table, as one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.fitting import MOST_POOLED, fitted, pooled_over
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table


def fillings(rows=50, several=3):
    """Tables that differ in some values, all as tables."""
    rng = np.random.default_rng(0)
    frame = spbn.datasets.synthetic(rows, seed=0)[["A", "B", "C"]]
    frames = [frame.mask(rng.random(frame.shape) < 0.1).fillna(frame.mean() + k) for k in range(several)]
    return [as_table(one, training=True, missing="error") for one in frames]


def fits(node_type, tables, parents=("A", "B")):
    return [fitted(table, Family("C", parents, node_type), FitSettings()) for table in tables]


@pytest.mark.parametrize("node_type", [NodeType.LG, NodeType.CKDE, NodeType.BLEND])
def test_the_same_density_again_changes_nothing(node_type):
    table = fillings()[0]
    (cpd,) = fits(node_type, [table])
    np.testing.assert_allclose(cpd.pool([cpd, cpd]).logpdf(table), cpd.logpdf(table), rtol=1e-9)


def test_a_pooled_kernel_density_is_the_mean_over_all_kernels():
    tables = fillings()
    single = fits(NodeType.CKDE, tables)
    pooled = single[0].pool(single[1:])
    bandwidth = sum(cpd.bandwidth for cpd in single) / 3
    points = np.concatenate([table.columns for table in tables], axis=1)
    for row in tables[0].columns.T[:5]:
        joint = stats.multivariate_normal(row, bandwidth).pdf(points.T).mean()
        parents = stats.multivariate_normal(row[:2], bandwidth[:2, :2]).pdf(points[:2].T).mean()
        found = pooled.logpdf(dict(zip("ABC", row[:, None], strict=True)))
        assert found == pytest.approx(np.log(joint / parents))


def test_a_pooled_line_is_the_mean_line():
    tables = fillings()
    single = fits(NodeType.LG, tables)
    pooled = single[0].pool(single[1:])
    parents = {"A": [1.0, 2.0], "B": [0.0, -1.0]}
    means = [np.array(cpd.coefficients) @ np.array(list(parents.values())) + cpd.intercept for cpd in single]
    medians = pooled.cdf({**parents, "C": np.mean(means, axis=0)})
    assert medians == pytest.approx(0.5)
    assert pooled.variance == pytest.approx(np.mean([cpd.variance for cpd in single]))


def test_a_pooled_blend_mixes_pooled_parts():
    tables = fillings()
    single = fits(NodeType.BLEND, tables)
    pooled = single[0].pool(single[1:])
    assert pooled.mixture == pytest.approx(np.mean([cpd.mixture for cpd in single], axis=0))
    assert pooled.kernels.rows == 150
    assert pooled.line == single[0].line.pool([cpd.line for cpd in single[1:]])


def test_pooled_probabilities_know_all_configurations():
    first, second = (
        as_table(pd.DataFrame({"s": [*s], "t": [*t], "u": [*"ppqq" * 10]}), training=True, missing="error")
        for s, t in (("aabb" * 10, "xyxx" * 10), ("abab" * 10, "xyyy" * 10))
    )
    single = [fitted(t, Family("t", ("s", "u"), NodeType.DISCRETE), FitSettings()) for t in (first, second)]
    pooled = single[0].pool(single[1:])
    rows = pd.DataFrame({"s": [*"aabbaabb"], "u": [*"pqpqpqpq"], "t": [*"xxxxyyyy"]})
    expected = np.mean([np.exp(cpd.logpdf(rows)) for cpd in single], axis=0)
    np.testing.assert_allclose(np.exp(pooled.logpdf(rows)), expected)


def test_configurations_are_pooled_one_by_one():
    rng = np.random.default_rng(1)
    frames = []
    for levels in ("aab", "abc"):
        s = np.resize([*levels], 60)
        frames.append(pd.DataFrame({"s": pd.Categorical(s, categories=[*"abc"]), "x": rng.normal(size=60)}))
    single = [
        fitted(as_table(f, training=True, missing="error"), Family("x", ("s",), NodeType.LG), FitSettings())
        for f in frames
    ]
    pooled = single[0].pool(single[1:])
    rows = {level: pd.DataFrame({"s": [level], "x": [0.3]}) for level in "abc"}
    for level in "ab":
        first, second = [
            cpd.densities[list(cpd.configurations.labels).index(f"s = {level}")] for cpd in single
        ]
        expected = first.pool([second]).logpdf({"x": [0.3]})
        assert pooled.logpdf(rows[level]) == pytest.approx(expected)
    assert pooled.logpdf(rows["c"]) == pytest.approx(single[1].logpdf(rows["c"]))  # the first has none


def test_many_rows_need_one_filling_only():
    tables = fillings()
    structure = spbn.Structure("ABC", [("A", "C")], types="ckde")
    network = spbn.BayesianNetwork.fit(structure, dict(zip("ABC", tables[0].columns, strict=True)))
    pooled = pooled_over(tables[1:], structure, network.cpds, FitSettings())
    assert {cpd.rows for cpd in pooled.values()} == {150}
    rows = np.resize(np.arange(50), MOST_POOLED)
    many = [table.take(rows) for table in tables[1:]]
    assert pooled_over(many, structure, network.cpds, FitSettings()) == dict(network.cpds)
