"""Samples cut into cells: nothing is lost but fractions of a cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from mixed import mixed_network
from spbn.errors import ArgumentError
from spbn.report.explorer import cut, default_samples, joint_sample, rows_in_time
from time_series import autoregression, mixed


def bounds(axis, codes):
    """The least and the greatest value that every code stands for."""
    edges = np.array([axis.edge(i) for i in range(axis.cells + 1)])
    places = codes.astype(int) - len(axis.low)
    inside = (places >= 0) & (places < axis.cells)
    low, high = np.full(len(codes), -np.inf), np.full(len(codes), np.inf)
    low[inside], high[inside] = edges[places[inside]], edges[places[inside] + 1]
    high[places < 0], low[places >= axis.cells] = edges[0], edges[-1]
    return low, high


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "large and narrow": lambda rng, n: 1e9 + rng.normal(size=n),
    "skewed": lambda rng, n: np.exp(2.5 * rng.normal(size=n)),
    "heavy": lambda rng, n: rng.standard_cauchy(size=n) * 1e-7,
    "spike": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
    "whole": lambda rng, n: rng.poisson(3.0, size=n).astype(float),
    "constant": lambda rng, n: np.full(n, 5.0),
    "tiny": lambda rng, n: 1e-290 * rng.normal(size=n),
    "huge": lambda rng, n: 1e299 * rng.normal(size=n),
}


@given(st.sampled_from(sorted(SHAPES)), st.integers(1, 3000), st.integers(0, 10**6))
def test_every_value_is_in_its_cell(shape, rows, seed):
    values = SHAPES[shape](np.random.default_rng(seed), rows)
    axis, codes = cut(values)
    low, high = bounds(axis, codes)
    assert (low <= values).all()
    assert (values < high).all()
    size = len(axis.low) + axis.cells + len(axis.high)
    assert codes.max() < size <= 256
    assert axis.cells % 5 == 0
    # Edges are written with few digits, and ascend.
    edges = [axis.edge(i) for i in range(axis.cells + 1)]
    assert edges == sorted(set(edges))
    assert all(float(f"{edge:.15g}") == edge for edge in edges)
    # The tails know their means, so that the mean of all values is kept but for a part of a cell.
    means = np.concatenate([axis.low, 0.5 * (np.array(edges[1:]) + edges[:-1]), axis.high])
    width = edges[1] - edges[0]
    spread = np.abs(values).max() * 1e-12
    assert means[codes].mean() == pytest.approx(values.mean(), abs=0.51 * width + spread)


@pytest.mark.parametrize("shape", ["normal", "skewed", "heavy"])
def test_a_few_values_far_away_do_not_squeeze_the_rest(shape):
    values = SHAPES[shape](np.random.default_rng(0), 20_000)
    axis, codes = cut(values)
    middle = (codes >= len(axis.low)) & (codes < len(axis.low) + axis.cells)
    assert middle.mean() > 0.9
    # The axis ends at the first round numbers beyond what it shows.
    shown = np.ptp(np.quantile(values, [0.005, 0.995]))
    assert axis.edge(axis.cells) - axis.edge(0) <= shown * (1 + 2 / 18)
    low, high = np.quantile(values, [0.25, 0.75])
    assert (high - low) / (axis.edge(1) - axis.edge(0)) > 4  # cells within the quartiles


def test_samples_are_those_of_the_network():
    network = mixed_network("ckde", "yeo-johnson")
    sample = joint_sample(network, 500, seed=3)
    frame = network.sample(500, seed=3)
    assert sample.rows == 500
    for sampled in sample.variables:
        column = frame[sampled.variable.name]
        if sampled.axis is None:
            assert [sampled.variable.levels[code] for code in sampled.codes] == column.tolist()
        else:
            low, high = bounds(sampled.axis, sampled.codes)
            assert ((low <= column) & (column < high)).all()


@pytest.mark.slow
def test_rows_in_time_have_the_past_that_rows_have():
    every = [((a, lag), b) for a in "ab" for lag in (1, 2) for b in "ab"]
    frame = autoregression(3000, seed=4)
    dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn", required_arcs=[*every, ("a", "b")])
    drawn, seen = rows_in_time(dynamic, 20_000, 0), dynamic.lagged(frame)
    assert list(drawn) == ["a", "b", "a[t-1]", "b[t-1]", "a[t-2]", "b[t-2]"]
    # Both networks have all arcs that they may have, so the sample has the moments of the table.
    np.testing.assert_allclose(drawn.mean(), seen[list(drawn)].mean(), atol=0.06)
    np.testing.assert_allclose(drawn.corr(), seen[list(drawn)].corr(), atol=0.03)


def test_samples_over_time_are_those_of_the_network():
    dynamic = spbn.learn_dynamic(mixed(80), model="gbn", folds=3)
    sample = joint_sample(dynamic, 300, seed=3)
    frame = rows_in_time(dynamic, 300, 3)
    assert (sample.rows, sample.lags) == (300, 1)
    assert [sampled.variable.name for sampled in sample.variables] == ["mode", "x", "mode[t-1]", "x[t-1]"]
    for sampled in sample.variables:
        column = frame[sampled.variable.name]
        if sampled.axis is None:
            assert [sampled.variable.levels[code] for code in sampled.codes] == column.tolist()
        else:
            low, high = bounds(sampled.axis, sampled.codes)
            assert ((low <= column) & (column < high)).all()


def test_small_pages_by_default():
    assert default_samples(mixed_network()) == 20_000
    names = [f"v{i}" for i in range(60)]
    frame = dict(zip(names, np.random.default_rng(0).normal(size=(60, 20)), strict=True))
    assert default_samples(spbn.BayesianNetwork.fit(spbn.Structure(names), frame)) == 8_000
    many = dict(zip("ab", np.random.default_rng(0).normal(size=(2, 100_000)), strict=True))
    kernels = spbn.BayesianNetwork.fit(spbn.Structure("ab", [("a", "b")], "ckde"), many)
    assert default_samples(kernels) == 4_000  # every sample costs a hundred thousand kernels
    series = dict(zip(names[:20], np.random.default_rng(0).normal(size=(20, 30)), strict=True))
    over_time = spbn.learn_dynamic(series, lags=2, model="gbn", max_parents=0)
    assert default_samples(over_time) == 8_000  # of 20 variables now and before


@pytest.mark.parametrize("samples", [0, -1, 2.5, "7", True, 10**7])
def test_odd_numbers_of_samples_are_refused(samples):
    with pytest.raises(ArgumentError, match="n must be a whole number between 1 and 1,000,000"):
        joint_sample(mixed_network(), samples)
