"""Continuous nodes with discrete parents, against one fit for every configuration and fold."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import spbn
from spbn import BayesianNetwork, NodeType, Structure
from spbn.errors import FitError
from spbn.nodes import Family
from spbn.nodes.by_configuration import ByConfiguration
from spbn.nodes.families import FamilyScorer, named_batch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.tables.reader import as_table

from naive import (
    best_of_scales,
    can_fit,
    configuration_rows,
    cv_rows,
    logpdf,
    scaled_scott,
)
from strategies import mixed_frame

TYPES = ["lg", "ckde", "blend", "curve"]
some_parents = st.sampled_from([[], ["b"], ["c", "b"]])
some_levels = st.sampled_from([["u"], ["v"], ["w", "u"], ["u", "v", "w"]])


def family(node, parents, node_type):
    return Family(node, tuple(parents), NodeType.parse(node_type))


def network_of(frame, node, parents, node_type, **options):
    """A fitted network in which all parents of a node are roots."""
    discrete = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    types = {name: "discrete" if name in discrete else "lg" for name in [*parents, node]}
    structure = Structure([*parents, node], [(p, node) for p in parents], {**types, node: node_type})
    return BayesianNetwork.fit(structure, frame, **options)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "path"), [("abalone", "Abalone/abalone.data"), ("liver", "Liver disorders/bupa.data")]
)
def test_agrees_with_pybnesian(shared, name, path):
    """The reference was made with the normal reference rule, which is Silverman's."""
    reference = json.loads((shared / "reference" / "hybrid.json").read_text())[name]
    frame = pd.read_csv(shared / "hybrid-data" / path)
    frame = frame.astype(dict.fromkeys(reference["categorical"], str))
    labels = 7919 * np.arange(len(frame)) % 5
    score = spbn.scores.CVLikelihood(frame, folds=labels, smoothing=0, bandwidth="silverman")
    for entry in reference["families"]:
        node, node_type = entry["node"], entry["type"]
        parents = [*entry["continuous_parents"], *entry["discrete_parents"]]
        rows = score.rows(family(node, parents, node_type))
        by_fold = [rows[labels == fold].sum() for fold in range(5)]
        np.testing.assert_allclose(by_fold, entry["cv_loglik_by_fold"], rtol=1e-9)
        assert score.local(node, parents, node_type) == pytest.approx(
            sum(entry["cv_loglik_by_fold"]), rel=1e-9
        )
        network = network_of(frame, node, parents, node_type, smoothing=0, bandwidth="silverman")
        fitted = network.node_logpdf(node, frame)
        assert fitted.sum() == pytest.approx(entry["loglik_all_rows"], rel=1e-9)
        np.testing.assert_allclose(fitted[:3], entry["first_three_rows"], rtol=1e-9)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(25, 70),
    rare=st.integers(0, 4),
    folds=st.integers(2, 5),
    parents=some_parents,
    levels=some_levels,
    node_type=st.sampled_from(["lg", "ckde"]),
)
def test_the_score_is_a_fit_for_every_configuration_and_fold(
    seed, rows, rare, folds, parents, levels, node_type
):
    frame = mixed_frame(rows, seed, rare=rare)
    labels = np.random.default_rng(seed).permutation(rows) % folds
    expected = configuration_rows(frame, labels, "a", parents, levels, node_type)
    score = spbn.scores.CVLikelihood(frame, folds=labels)
    assert score.local("a", [*levels, *parents], node_type) == pytest.approx(expected.sum(), rel=1e-7)
    found = score.rows(family("a", [*parents, *levels], node_type))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999), rare=st.integers(0, 4), parents=some_parents, levels=some_levels,
    node_type=st.sampled_from(["lg", "ckde"]),
)  # fmt: skip
def test_held_out_rows_and_fitted_networks(seed, rare, parents, levels, node_type):
    frame = mixed_frame(60, seed, rare=rare)
    train, test = frame.iloc[:45], frame.iloc[45:]
    test = test[test["u"].isin(train["u"])]
    fold = np.where(np.arange(60) < 45, 1, 0)[: 45 + len(test)]
    both = pd.concat([train, test], ignore_index=True)
    expected = configuration_rows(both, fold, "a", parents, levels, node_type)[45:]
    score = spbn.scores.HoldoutLikelihood(train, validation=test)
    assert score.local("a", [*parents, *levels], node_type) == pytest.approx(expected.sum(), rel=1e-7)
    network = network_of(train, "a", [*levels, *parents], node_type)
    np.testing.assert_allclose(network.node_logpdf("a", test), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 999), parents=some_parents, levels=some_levels)
def test_leaving_a_row_out(seed, parents, levels):
    frame = mixed_frame(30, seed, rare=1)
    labels = np.arange(30)
    expected = configuration_rows(frame, labels, "a", parents, levels, "lg")
    bench = FamilyScorer(
        MemoryRows(Partition.leave_one_out(as_table(frame, levels="infer"), np.array([0, 7, 29])))
    )
    batch = named_batch(tuple(frame.columns), [("a", [*parents, *levels], "lg")])
    np.testing.assert_allclose(bench.rows(batch)[0], expected[[0, 7, 29]], rtol=1e-6, atol=1e-6)


def populous(seed, rows=120):
    """Two configurations with many rows, and one with a single row."""
    frame = mixed_frame(rows, seed)[["a", "b", "c", "v"]]
    frame.loc[5, "v"] = "once"
    return frame


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 999), parents=some_parents)
def test_a_blend_has_weights_of_its_own_in_every_configuration(seed, parents):
    frame, labels = populous(seed), np.arange(120) % 4
    expected = np.empty(120)
    for level in ("yes", "no"):
        mine = (frame["v"] == level).to_numpy()
        expected[mine] = cv_rows(frame[mine], labels[mine], "a", parents, "blend")
    expected[5] = cv_rows(frame, labels, "a", parents, "blend")[5]  # as if "v" were no parent
    score = spbn.scores.CVLikelihood(frame, folds=labels)
    np.testing.assert_allclose(
        score.rows(family("a", [*parents, "v"], "blend")), expected, rtol=1e-6, atol=1e-6
    )
    assert score.local("a", ["v", *parents], "blend") == pytest.approx(expected.sum(), rel=1e-7)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 999), parents=some_parents)
def test_a_bandwidth_is_chosen_in_every_configuration(seed, parents):
    frame, labels = populous(seed), np.arange(120) % 4
    expected = np.empty(120)
    for level in ("yes", "no"):
        mine = (frame["v"] == level).to_numpy()
        scale = best_of_scales(frame[mine], labels[mine], "a", parents)
        expected[mine] = cv_rows(
            frame[mine], labels[mine], "a", parents, "ckde", bandwidth=scaled_scott(scale)
        )
    scale = best_of_scales(frame, labels, "a", parents)
    outside = frame[labels != labels[5]]
    expected[5] = logpdf(
        frame.iloc[[5]], outside, "a", parents, "ckde", bandwidth=scaled_scott(scale)
    )[0]  # fmt: skip
    score = spbn.scores.CVLikelihood(frame, folds=labels, bandwidth="cv")
    np.testing.assert_allclose(
        score.rows(family("a", [*parents, "v"], "ckde")), expected, rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    rare=st.integers(0, 3),
    parents=some_parents,
    levels=some_levels,
    node_type=st.sampled_from(TYPES),
    bandwidth=st.sampled_from(["scott", "cv"]),
)
def test_starving_a_configuration_wins_nothing(seed, rare, parents, levels, node_type, bandwidth):
    """Every row has a density; that of a starved one is what the family without discrete parents gives."""
    frame, labels = mixed_frame(40, seed, rare=rare), np.arange(40) % 4
    score = spbn.scores.CVLikelihood(frame, folds=labels, bandwidth=bandwidth)
    rows = score.rows(family("a", [*parents, *levels], node_type))
    assert np.isfinite(rows).all()
    total = score.local("a", [*parents, *levels], node_type)
    assert total == pytest.approx(rows.sum(), rel=1e-8)
    without = score.rows(family("a", parents, node_type))
    places = frame.groupby(levels).ngroup().to_numpy()
    starved = [
        not can_fit(frame[(places == places[row]) & (labels != labels[row])], "a", parents)
        for row in range(40)
    ]
    np.testing.assert_allclose(rows[starved], without[starved], rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("node_type", TYPES)
def test_a_level_that_occurs_once_stops_nothing(node_type, tmp_path):
    frame = mixed_frame(80, 3, rare=1)
    spbn.learn(frame, types=node_type, start=node_type, folds=3)
    network = network_of(frame, "a", ["u", "b"], node_type)
    assert np.isfinite(network.logpdf(frame)).all()
    once = frame["u"] == "rare"
    plain = network_of(frame, "a", ["b"], node_type)
    np.testing.assert_allclose(
        network.node_logpdf("a", frame[once]), plain.node_logpdf("a", frame[once]), rtol=1e-10
    )
    network.save(tmp_path / "model.spbn")
    loaded = BayesianNetwork.load(tmp_path / "model.spbn")
    np.testing.assert_array_equal(loaded.logpdf(frame), network.logpdf(frame))
    samples = network.sample(3000, seed=1)
    assert set(samples["u"]) == set(frame["u"])
    assert np.isfinite(network.logpdf(samples)).all()


def wide_grid(reach=1e7):
    """Values from the far end of one tail to that of the other: close to each other where rows are."""
    far = np.geomspace(30.0, reach, 4001)
    return np.concatenate([-far[:0:-1], np.linspace(-30, 30, 12_001), far[1:]])


@pytest.mark.parametrize("node_type", TYPES)
def test_integrates_to_one_over_levels_and_values(node_type):
    frame = mixed_frame(60, 1, rare=1)
    network, values = network_of(frame, "a", ["u", "v"], node_type), wide_grid()
    total = 0.0
    for u in sorted(set(frame["u"])):
        for v in ("no", "yes"):
            grid = pd.DataFrame({"u": u, "v": v, "a": values})
            total += integrate.simpson(np.exp(network.logpdf(grid)), x=values)
    assert total == pytest.approx(1.0, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("node_type", TYPES)
def test_cdf_is_the_integral_of_each_configuration(node_type):
    frame = mixed_frame(60, 1, rare=1)
    cpd = network_of(frame, "a", ["u", "b"], node_type).cpds["a"]
    assert isinstance(cpd, ByConfiguration)
    values = wide_grid()  # tails have 1e-5 of the mass beyond 40
    for level in sorted(set(frame["u"])):
        at = {"a": values, "b": np.full(len(values), 0.3), "u": [level] * len(values)}
        below = integrate.cumulative_simpson(np.exp(cpd.logpdf(at)), x=values, initial=0)
        np.testing.assert_allclose(cpd.cdf(at), below, atol=1e-6)


def test_what_cannot_be_fitted_even_to_all_rows_is_refused(rng):
    frame = pd.DataFrame({"a": rng.normal(size=30), "u": list("xyz") * 10})
    frame["copy"] = 2 * frame["a"]
    score = spbn.scores.CVLikelihood(frame, folds=3)
    assert score.local("a", ["copy", "u"], "lg") == -np.inf
    with pytest.raises(FitError):
        network_of(frame.assign(u=["x"] * 29 + ["y"]), "a", ["copy", "u"], "lg")


def test_a_discrete_node_takes_no_numbers():
    frame = mixed_frame(40)
    score = spbn.scores.CVLikelihood(frame, folds=3)
    assert score.local("u", ["a"], "discrete") == -np.inf
    with pytest.raises(spbn.SpbnError, match=r"'u' has 'a'"):
        BayesianNetwork.fit(Structure(["a", "u"], [("a", "u")], {"a": "lg", "u": "discrete"}), frame)


def test_more_configurations_than_can_be_numbered_are_not_fitted(rng):
    frame = pd.DataFrame(rng.choice(["no", "yes"], size=(40, 65)), columns=[f"s{i}" for i in range(65)])
    frame["x"] = rng.normal(size=40)
    parents = [f"s{i}" for i in range(1, 65)]
    for score in (spbn.scores.CVLikelihood(frame, folds=3), spbn.scores.BIC(frame)):
        assert score.local("x", parents, "lg") == -np.inf
        assert score.local("s0", parents, "discrete") == -np.inf
        assert np.isfinite(score.local("x", parents[:20], "lg"))
    with pytest.raises(FitError, match="more combinations of levels than can be counted"):
        network_of(frame, "x", parents, "lg")


@pytest.mark.parametrize("node_type", TYPES)
def test_every_configuration_has_noise_of_its_own(node_type):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"s": np.repeat(["u", "v"], 60), "x": rng.normal(size=120)})
    structure = Structure("sx", [("s", "x")], {"s": "discrete", "x": node_type})
    density = BayesianNetwork.fit(structure, frame).cpds["x"]
    drawn = density.draw(np.tile([[0.0, 1.0]], 1000), np.random.default_rng(1))
    ranks = [stats.rankdata(values) for values in (drawn[::2], drawn[1::2])]
    assert abs(np.corrcoef(ranks)[0, 1]) < 0.15


def test_what_is_fitted_to_all_rows_loses_kernels_too():
    """The density of configurations that have too few rows of their own."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"s": ["u"] * 30 + ["v"] * 30 + ["w"], "x": rng.normal(size=61)})
    cpd = network_of(frame, "x", ["s"], "ckde").cpds["x"]
    assert [density.kernel_rows for density in cpd.densities] == [30, 30]
    assert cpd.otherwise.kernel_rows == 61
    left = cpd.without(np.array([3, 60, 70]))  # one of the first, two of those of all rows
    assert [density.kernel_rows for density in left.densities] == [29, 30]
    assert left.otherwise.kernel_rows == 59
    points = cpd.otherwise.joint.points
    np.testing.assert_array_equal(left.otherwise.joint.points, np.delete(points, [0, 10], axis=1))
