"""What moves of tempered particles have to leave as it is."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.inference import particles
from spbn.inference.particles import (
    Particles,
    Target,
    TruncatedNormal,
    _Chain,
    mix,
    sample_by_weighting,
    terms,
)
from spbn.inference.problem import read_evidence
from spbn.inference.query import _cases
from spbn.nodes.base import Interval

from strategies import nonlinear_frame


@pytest.fixture(scope="module")
def network():
    structure = spbn.Structure("abc", [("a", "b"), ("b", "c")], "ckde")
    return spbn.BayesianNetwork.fit(structure, nonlinear_frame(120, 3))


def _summed(part, values, apart):
    return [by_node.sum(axis=0) for by_node in terms(part, values, apart=apart)]


def test_only_the_sum_of_both_terms_counts_at_the_end(network):
    """In one sum the probability of a region cancels, so that it can be left out of both."""
    known = read_evidence(network, {"b": (0.0, 2.0), "c": 0.3}, "evidence")
    part = Target.whole(_cases(network, known, read_evidence(network, None, "do")))
    values = sample_by_weighting(part, 50, np.random.default_rng(0)).states.reshape(3, -1)
    values[1, :5] = 5.0  # outside the region
    (prior, weight), (plain, rest) = (_summed(part, values, apart) for apart in (True, False))
    np.testing.assert_allclose(prior + weight, plain + rest, rtol=1e-9)
    assert np.isneginf(plain[:5]).all()
    assert not np.allclose(weight[5:], rest[5:])


@pytest.mark.slow
def test_particles_are_moved_until_they_are_worth_enough(network):
    """However many copies the last step made of one, an answer is worth half of the draws."""
    posterior = network.query({"b": (-0.1, 0.1), "c": (1.5, None)}, n=1000, method="smc")
    assert posterior.method == "smc"
    assert posterior.effective_size >= 500
    drawn = network.sample(200_000, seed=5)
    inside = drawn[drawn["b"].between(-0.1, 0.1) & (drawn["c"] > 1.5)]
    error = posterior.std()["a"] * (1 / 500 + 1 / len(inside)) ** 0.5
    assert posterior.mean()["a"] == pytest.approx(inside["a"].mean(), abs=4 * error)


@pytest.mark.parametrize("region", [(None, 1.0), (0.5, None), (-0.5, 0.8)])
def test_a_reference_changes_where_particles_begin_and_not_what_they_weigh_in_all(network, region):
    """Forward samples with and without a reference estimate the same evidence."""
    known = read_evidence(network, {"b": region, "c": 0.3}, "evidence")
    part = Target.whole(_cases(network, known, read_evidence(network, None, "do")))
    found = sample_by_weighting(part, 4000, np.random.default_rng(0))
    begun = part.with_references(found.states)
    other = sample_by_weighting(begun, 4000, np.random.default_rng(1))
    assert list(begun.references) == [1]
    assert known.regions["b"].contains(other.states[1]).all()
    error = np.hypot(found.error[0], other.error[0])
    assert other.log_evidence[0] == pytest.approx(found.log_evidence[0], abs=4.5 * error)
    (prior, weight), (plain, rest) = (_summed(p, other.states.reshape(3, -1), True) for p in (begun, part))
    np.testing.assert_allclose(prior + weight, plain + rest, rtol=1e-9)


def test_a_reference_is_a_density_on_its_interval():
    rng = np.random.default_rng(0)
    for low, high in ((0.0, np.inf), (-np.inf, -1.0), (2.0, 2.1)):
        inside = stats.truncnorm((low - 1) / 2, (high - 1) / 2, 1, 2).rvs(500, random_state=rng)
        reference = TruncatedNormal.of(Interval(low, high), inside)
        mean, deviation = inside.mean(), 2 * inside.std()
        expected = stats.truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
        np.testing.assert_allclose(reference.log_density(inside), expected.logpdf(inside), rtol=1e-9)
        assert stats.kstest(reference.draw(2000, rng), expected.cdf).pvalue > 1e-4
    assert TruncatedNormal.of(Interval(0.0, 1.0), np.full(50, 0.5)) is None
    assert TruncatedNormal.of(Interval(0.0, 1.0), np.array([0.1, 0.2])) is None


def test_blocks_divide_the_nodes_into_neighbours():
    names = [f"x{k}" for k in range(9)]
    chain = spbn.Structure(names, list(pairwise(names)), types="ckde")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 9)).cumsum(axis=1), columns=names)
    network = spbn.BayesianNetwork.fit(chain, rows)
    known = read_evidence(network, {"x8": 1.0}, "evidence")
    part = Target.whole(_cases(network, known, read_evidence(network, None, "do")))
    particles = _Chain(
        part, sample_by_weighting(part, 20, np.random.default_rng(1)).states, np.random.default_rng(2)
    )
    for _ in range(20):
        blocks = particles._blocks()
        assert sorted(np.concatenate(blocks).tolist()) == list(range(8))
        for block in blocks:
            assert len(block) <= 4
            assert (np.diff(block) == 1).all()  # of a chain


def test_moves_stop_where_survivors_are_what_an_answer_is_worth(monkeypatch):
    """Moves bring no ancestor back: further ones would cost time, and an answer would be worth no more."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    y = np.sin(2 * x) + rng.normal(0, 0.3, 150)
    frame = pd.DataFrame({"x": x, "y": y, "z": x * y + rng.normal(0, 0.3, 150)})
    structure = spbn.Structure("xyz", [("x", "y"), ("x", "z"), ("y", "z")], "blend")
    blends, move = spbn.BayesianNetwork.fit(structure, frame), _Chain.move
    found, moves = [], []
    monkeypatch.setattr(_Chain, "move", lambda *given: moves.append(1) or move(*given))
    for limit in (particles.MORE_THAN_SURVIVED, np.inf):
        monkeypatch.setattr(particles, "MORE_THAN_SURVIVED", limit)
        moves.clear()
        worth = blends.query({"z": (1.5, None)}, n=400, method="smc").effective_size
        found.append((len(moves), worth))
    assert found[0][0] < found[1][0]
    assert found[0][1] == found[1][1]


def test_classes_that_are_impossible_add_nothing():
    """Their error is infinite, and their share nought."""
    states, weights = np.zeros((1, 1, 4)), np.zeros((1, 4))
    possible = Particles(states, weights, np.array([-1.0]), np.array([0.2]), np.array([4.0]))
    impossible = Particles(states, weights, np.array([-np.inf]), np.array([np.inf]), np.array([4.0]))
    found = mix([possible, impossible])
    assert found.log_evidence == pytest.approx([-1.0])
    assert found.error == pytest.approx([0.2])
    assert found.effective == pytest.approx([4.0])
