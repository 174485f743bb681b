"""Networks of curves, and of blends with curves and tails: whatever can be asked of a network."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import spbn
from spbn import BayesianNetwork, Monitor, RowScorer, Structure
from spbn._base import jit
from spbn.nodes import Curve
from spbn.rows import memory
from time_series import threshold

import naive
from strategies import mixed_frame, nonlinear_frame

CURVES = {"types": "curve", "start": "curve"}


def waves(rows, seed=0):
    """A sine with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.3 * rng.standard_normal(rows)})


@cache
def sine():
    """A network of curves of 500 waves."""
    return BayesianNetwork.fit(Structure(["x", "y"], [("x", "y")], "curve"), waves(500))


@cache
def learned(margins, seed):
    """A blend of standardised columns with levels, one cell of which may be odd."""
    frame = mixed_frame(120, seed)[["a", "b", "c", "u", "v"]]
    if seed % 2:
        frame.loc[seed, "b"] = 1e3
    numbers = frame[list("abc")]
    frame[list("abc")] = (numbers - numbers.mean()) / numbers.std()
    arcs = [("u", "a"), ("a", "b"), ("v", "b")]
    return spbn.learn(
        frame, model="blend", margins=margins, folds=3, patience=0, max_parents=3, required_arcs=arcs
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    margins=st.sampled_from(["none", "yeo-johnson"]),
    seed=st.integers(0, 3),
    signs=st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=3, max_size=3),
    powers=st.lists(st.floats(-2.0, 6.0), min_size=3, max_size=3),
    u=st.sampled_from("xyz"),
    v=st.sampled_from(["no", "yes"]),
)
def test_no_row_within_a_million_standard_deviations_loses_a_hundred_nats(margins, seed, signs, powers, u, v):
    network = learned(margins, seed)
    values = np.array(signs) * 10.0 ** np.array(powers)
    row = {name: [value] for name, value in zip("abc", values, strict=True)} | {"u": [u], "v": [v]}
    assert network.logpdf_by_node(row)[["a", "b", "c"]].min(axis=None) > -100.0


@cache
def fitted(node_type, margins, parents, seed):
    """A network in which c is the child of some others, and the same without it."""
    frame = mixed_frame(90, seed, rare=2)[["a", "b", "c", "u", "v"]]
    types = {"a": "lg", "b": "lg", "u": "discrete", "v": "discrete"}
    arcs = [(parent, "c") for parent in parents]
    return (
        BayesianNetwork.fit(Structure("abuvc", arcs, {**types, "c": node_type}), frame, margins=margins),
        BayesianNetwork.fit(Structure("abuv", [], types), frame, margins=margins),
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    node_type=st.sampled_from(["curve", "blend"]),
    margins=st.sampled_from(["none", "yeo-johnson"]),
    parents=st.sampled_from(["a", "u", "ab", "bu", "abv", "auv"]),
    seed=st.integers(0, 2),
    at=st.tuples(*[st.one_of(st.floats(-3.0, 3.0), st.floats(-12.0, 12.0))] * 2),
    u=st.sampled_from(["x", "y", "z", "rare"]),
    v=st.sampled_from(["no", "yes"]),
)
def test_summing_a_child_out_leaves_the_network_of_the_others(node_type, margins, parents, seed, at, u, v):
    network, others = fitted(node_type, margins, tuple(parents), seed)
    t = np.linspace(-7.0, 7.0, 60_001)
    values = np.sinh(0.5 * np.sinh(t))  # as far as tails go
    slopes = np.cosh(0.5 * np.sinh(t)) * 0.5 * np.cosh(t)
    row = {"a": at[0], "b": at[1], "u": u, "v": v}
    rows = pd.DataFrame({name: [value] * len(t) for name, value in row.items()} | {"c": values})
    rest = others.logpdf(pd.DataFrame({name: [value] for name, value in row.items()}))[0]
    total = integrate.simpson(np.exp(network.logpdf(rows) - rest) * slopes, x=t)
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("node_type", ["curve", "blend"])
def test_scores_and_fits_have_the_same_bits_with_any_number_of_threads(monkeypatch, node_type):
    monkeypatch.setattr(memory, "MANY_ROWS", 0)
    frame, found, used = nonlinear_frame(1500, 3), [], []
    for count in (1, 2, 3):
        monkeypatch.setattr(jit, "thread_count", lambda count=count: used.append(count) or count)
        score = spbn.scores.CVLikelihood(frame, folds=5)
        network = BayesianNetwork.fit(Structure("abc", ["ab", "ac", "bc"], node_type), frame)
        scores = [score.local("c", parents, node_type) for parents in ((), ("a",), ("a", "b"))]
        found.append([*scores, *network.logpdf(frame)])
    assert found[0] == found[1] == found[2]
    assert set(used) == {1, 2, 3}


def test_a_row_scorer_gives_the_log_densities():
    rows = waves(50, seed=1)
    found = RowScorer(sine()).logpdf_by_node(rows.to_numpy())
    for place, (node, parents) in enumerate([("x", []), ("y", ["x"])]):
        expected = naive.logpdf(rows, waves(500), node, parents, "curve")
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-7, atol=1e-7)
    one = dict(rows.iloc[3])
    assert RowScorer(sine()).logpdf(one)[0] == pytest.approx(sine().logpdf(rows)[3], rel=1e-12)


@pytest.mark.parametrize(("known", "value", "unknown"), [("x", 0.7, "y"), ("y", 0.9, "x"), ("y", -0.2, "x")])
def test_holes_are_filled_from_the_conditional_distribution(known, value, unknown):
    rows = pd.DataFrame({known: [value] * 3000, unknown: np.nan})[["x", "y"]]
    drawn = np.sort(sine().impute(rows, seed=1)[unknown])
    grid = np.linspace(-30.0, 30.0, 60_001)
    density = np.exp(sine().logpdf(pd.DataFrame({known: value, unknown: grid})[["x", "y"]]))
    below = integrate.cumulative_trapezoid(density, x=grid, initial=0)
    assert stats.kstest(np.interp(drawn, grid, below / below[-1]), "uniform").pvalue > 1e-3


def test_curves_are_learned_from_rows_with_holes():
    frame = waves(400)
    holes = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.15)
    network = spbn.learn(holes, **CURVES, required_arcs=[("x", "y")], missing="impute")
    cpd = network.cpds["y"]
    assert isinstance(cpd, Curve)
    x = np.linspace(-1.5, 1.5, 30)
    np.testing.assert_allclose(cpd.mean(x[None]), np.sin(2 * x), atol=0.2)
    test = waves(2000, seed=2)
    whole = spbn.learn(frame, **CURVES, required_arcs=[("x", "y")])
    assert network.logpdf(test).mean() > whole.logpdf(test).mean() - 0.05


def test_a_dynamic_network_of_curves_forecasts_the_conditional_mean(tmp_path):
    series, test = threshold(800), threshold(800, seed=1)
    network = spbn.learn_dynamic(series, lags=2, **CURVES, max_parents=2)
    lines = spbn.learn_dynamic(series, lags=2, model="gbn")
    assert "curve" in {cpd.type.name for cpd in network.transition.cpds.values()}
    assert network.loglik(test) > lines.loglik(test) + 20.0
    network.save(tmp_path / "series.spbn")
    loaded = spbn.DynamicNetwork.load(tmp_path / "series.spbn")
    assert loaded.loglik(test) == network.loglik(test)
    errors = []
    for row in range(100, 140):
        found = network.forecast(test.iloc[row - 10 : row], steps=1, n=2000, seed=0)
        before = test["x"].iloc[row - 2]
        truth = 0.5 + 0.9 * before if before < 1 else 2.3 - 0.9 * before
        errors.append(found.quantile(0.5)["x"].iloc[0, 0] - truth)
    assert np.sqrt(np.mean(np.square(errors))) < 0.2  # noise has the standard deviation 0.4


def test_a_monitor_of_curves_sounds_at_its_rate_and_blames_what_changed():
    monitor = Monitor(sine(), waves(500), alarm=0.05)
    normal = monitor.update(waves(2000, seed=3))
    assert normal["alarm"].mean() == pytest.approx(0.05, abs=0.02)
    assert not normal["drift_alarm"].any()
    changed = waves(300, seed=4)
    changed["y"] = np.cos(2 * changed["x"]) + 0.3 * np.random.default_rng(5).standard_normal(300)
    found = monitor.update(changed)
    assert found["alarm"].mean() > 0.3
    first = int(np.flatnonzero(found["drift_alarm"])[0])
    assert first < 30
    assert found["drift_blame"].iloc[first].split(", ")[0] == "y"
