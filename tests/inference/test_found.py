"""What went wrong once."""

import warnings

import numpy as np
import pytest

import spbn

ROWS = {"x": np.linspace(-1.0, 1.0, 40), "y": np.linspace(-1.0, 1.0, 40) ** 3}


@pytest.mark.parametrize("kind", ["lg", "ckde"])
def test_few_draws_that_were_asked_for_are_no_reason_to_warn(kind):
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], kind), ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert network.query({"x": 0.5}, n=20).effective_size == 20


@pytest.mark.parametrize("kind", ["ckde", "blend"])
@pytest.mark.parametrize("interval", [(None, 0.3), (0.3, None)])
def test_an_open_interval_of_a_kernel_node_with_parents(kind, interval):
    """An infinite end times a zero of the whitener was NaN, and made the evidence impossible."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    network = spbn.BayesianNetwork.fit(
        spbn.Structure("xy", [("x", "y")], kind), {"x": x, "y": x + 0.5 * rng.normal(size=150)}
    )
    posterior = network.query({"y": interval}, n=4000)
    drawn = network.sample(40_000, seed=1)
    low, high = (-np.inf if interval[0] is None else interval[0]), (interval[1] or np.inf)
    inside = drawn[drawn["y"].between(low, high)]
    assert np.exp(posterior.log_evidence) == pytest.approx(len(inside) / len(drawn), abs=0.02)
    assert posterior.mean()["x"] == pytest.approx(inside["x"].mean(), abs=0.07)
    assert posterior.draws["y"].between(low, high).all()
