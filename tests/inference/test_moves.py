"""What moves of tempered particles have to leave as it is."""

import numpy as np
import pytest

import spbn
from spbn.inference.evidence import read_evidence
from spbn.inference.particles import Part, terms, weighted
from spbn.inference.query import _cases

from strategies import nonlinear_frame


@pytest.fixture(scope="module")
def network():
    structure = spbn.Structure("abc", [("a", "b"), ("b", "c")], "ckde")
    return spbn.BayesianNetwork.fit(structure, nonlinear_frame(120, 3))


def test_only_the_sum_of_both_terms_counts_at_the_end(network):
    """In one sum the probability of a region cancels, so that it can be left out of both."""
    known = read_evidence(network, {"b": (0.0, 2.0), "c": 0.3}, "evidence")
    part = Part.whole(_cases(network, known, read_evidence(network, None, "do")))
    values = weighted(part, 50, np.random.default_rng(0)).states.reshape(3, -1)
    values[1, :5] = 5.0  # outside the region
    (prior, weight), (plain, rest) = (terms(part, values, apart=apart) for apart in (True, False))
    np.testing.assert_allclose(prior + weight, plain + rest, rtol=1e-9)
    assert np.isneginf(plain[:5]).all()
    assert not np.allclose(weight[5:], rest[5:])


def test_particles_are_moved_until_they_are_worth_enough(network):
    """However many copies the last step made of one, an answer is worth half of the draws."""
    posterior = network.query({"b": (-0.1, 0.1), "c": (1.5, None)}, n=1000, method="smc")
    assert posterior.method == "smc"
    assert posterior.effective_size >= 500
    drawn = network.sample(200_000, seed=5)
    inside = drawn[drawn["b"].between(-0.1, 0.1) & (drawn["c"] > 1.5)]
    error = posterior.std()["a"] * (1 / 500 + 1 / len(inside)) ** 0.5
    assert posterior.mean()["a"] == pytest.approx(inside["a"].mean(), abs=4 * error)
