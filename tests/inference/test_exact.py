import itertools

import numpy as np
import pytest
from experiments.sources import gaussian_network
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from inference.questions import chain, joint_normal, mixed
from spbn import BayesianNetwork, Structure
from spbn.nodes import LinearGaussian


def conditioned(network, evidence):
    """Multivariate normal conditioning with plain matrices."""
    order, mean, covariance = joint_normal(network)
    known = [order.index(name) for name in evidence]
    unknown = [i for i in range(len(order)) if i not in known]
    values = np.array(list(evidence.values()))
    gain = covariance[np.ix_(unknown, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    part = covariance[np.ix_(unknown, unknown)] - gain @ covariance[np.ix_(known, unknown)]
    log_density = stats.multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(values)
    return [order[i] for i in unknown], mean[unknown] + gain @ (values - mean[known]), part, log_density


@pytest.mark.parametrize("name", ["ecoli70", "arth150"])
def test_gaussian_networks_are_conditioned_exactly(name):
    pytest.importorskip("pgmpy")
    network = gaussian_network(name)
    rng = np.random.default_rng(len(name))
    for size in (1, 5, 12):
        row = network.sample(1, seed=size).iloc[0]
        evidence = {str(n): float(row[n]) for n in rng.choice(network.nodes, size, replace=False)}
        posterior = network.query(evidence, n=10)
        names, mean, covariance, log_density = conditioned(network, evidence)
        assert posterior.method == "exact"
        np.testing.assert_allclose(posterior.mean()[names], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(posterior.cov().loc[names, names], covariance, rtol=1e-9, atol=1e-9)
        assert posterior.log_evidence == pytest.approx(log_density, abs=1e-9)
        deviations = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(posterior.std()[names], deviations, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            posterior.quantile(0.9)[0.9][names], stats.norm(mean, deviations).ppf(0.9), rtol=1e-9, atol=1e-9
        )


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_random_gaussian_networks(seed, size):
    rng = np.random.default_rng(seed)
    nodes = [f"x{i}" for i in range(size)]
    arcs = [(a, b) for a, b in itertools.combinations(nodes, 2) if rng.random() < 0.5]
    cpds = {}
    for node in nodes:
        parents = tuple(a for a, b in arcs if b == node)
        slopes = tuple(rng.normal(size=len(parents)).tolist())
        cpds[node] = LinearGaussian(node, parents, float(rng.normal()), slopes, float(rng.uniform(0.1, 3)))
    network = BayesianNetwork(Structure(nodes, arcs), cpds)
    evidence = {n: float(rng.normal()) for n in nodes if rng.random() < 0.5} or {nodes[-1]: 0.5}
    if len(evidence) == size:
        return
    posterior = network.query(evidence, n=4)
    names, mean, covariance, log_density = conditioned(network, evidence)
    np.testing.assert_allclose(posterior.mean()[names], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(posterior.cov().loc[names, names], covariance, rtol=1e-9, atol=1e-9)
    assert posterior.log_evidence == pytest.approx(log_density, abs=1e-9)


def test_unknown_levels_are_enumerated():
    """Bayes' rule over all configurations, with the densities of whole rows."""
    network = mixed("lg")
    evidence = {"sales": 12.0}
    posterior = network.query(evidence, n=10)
    assert posterior.method == "exact"
    line = network.cpds["sales"]
    log_joint, means = {}, {}
    for sky, wet in itertools.product(["clear", "cloudy", "rain"], ["False", "True"]):
        levels = {"sky": [sky], "wet": [wet]}
        prior = network.cpds["sky"].logpdf(levels)[0] + network.cpds["wet"].logpdf(levels)[0]
        heat = network.cpds["heat"].densities[["clear", "cloudy", "rain"].index(sky)]
        part = line.densities[["False", "True"].index(wet)]
        (slope,) = part.coefficients
        mean = part.intercept + slope * heat.intercept
        spread = part.variance + slope**2 * heat.variance
        log_joint[sky, wet] = prior + stats.norm(mean, spread**0.5).logpdf(12.0)
        means[sky, wet] = heat.intercept + slope * heat.variance / spread * (12.0 - mean)
    total = np.logaddexp.reduce(list(log_joint.values()))
    assert posterior.log_evidence == pytest.approx(total, abs=1e-9)
    weights = {key: np.exp(value - total) for key, value in log_joint.items()}
    for level in ("clear", "cloudy", "rain"):
        expected = sum(weight for (sky, _), weight in weights.items() if sky == level)
        assert posterior.probabilities("sky")[level] == pytest.approx(expected, abs=1e-9)
    assert posterior.mean()["heat"] == pytest.approx(
        sum(weights[key] * means[key] for key in weights), abs=1e-9
    )
    assert posterior.probability({"wet": "True"}) == pytest.approx(
        sum(weight for (_, wet), weight in weights.items() if wet == "True"), abs=1e-9
    )


def test_an_event_has_its_exact_probability():
    network = chain()
    posterior = network.query({"C": 1.0}, n=10)
    names, mean, covariance, _ = conditioned(network, {"C": 1.0})
    a = names.index("A")
    expected = stats.norm(mean[a], covariance[a, a] ** 0.5)
    assert posterior.probability({"A": (0.5, 2.0)}) == pytest.approx(
        expected.cdf(2.0) - expected.cdf(0.5), abs=1e-12
    )
    assert posterior.probability({"A": (None, 0.0)}) == pytest.approx(expected.cdf(0.0), abs=1e-12)
    low, high = posterior.interval(0.8).loc["A"]
    assert (low, high) == pytest.approx(expected.interval(0.8), abs=1e-9)


def test_what_is_set_from_outside_says_nothing_about_its_causes():
    network = chain()
    posterior = network.query(do={"B": 3.0}, n=10)
    assert posterior.mean()["A"] == pytest.approx(1.0, abs=1e-12)  # as if nothing were known
    assert posterior.mean()["C"] == pytest.approx(6.0, abs=1e-12)
    assert posterior.log_evidence == 0.0
    observed = network.query({"B": 3.0}, n=10)
    assert observed.mean()["A"] != pytest.approx(1.0, abs=0.1)
    both = network.query({"C": 7.0}, do={"B": 3.0}, n=10)
    assert both.mean()["A"] == pytest.approx(1.0, abs=1e-12)
    assert both.log_evidence == pytest.approx(stats.norm(6.0, 3.0).logpdf(7.0), abs=1e-12)
