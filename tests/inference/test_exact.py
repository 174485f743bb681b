import itertools
import warnings

import numpy as np
import pytest
from experiments.sources import discrete_network, gaussian_network
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from inference.questions import chain, enumerated, joint_normal, mixed, mixed_frame, random_clg
from spbn import BayesianNetwork, Structure
from spbn.errors import ArgumentError
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


def random_question(network, rng):
    """Evidence that is possible, some of it sets of levels, and an intervention now and then."""
    row = network.sample(1, seed=int(rng.integers(1000))).iloc[0]
    names = [n for n in network.nodes if rng.random() < 0.4]
    do = {names.pop(): None} if names and rng.random() < 0.3 else {}
    evidence = {}
    for name in names:
        value = row[name]
        if isinstance(value, str) and rng.random() < 0.3:
            value = sorted({value, "a"})
        evidence[name] = value
    return evidence, {name: row[name] for name in do}


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_conditional_gaussian_networks_are_summed_over_all_levels(seed):
    rng = np.random.default_rng(seed)
    network = random_clg(rng, *rng.integers(1, 5, 2).tolist())
    evidence, do = random_question(network, rng)
    posterior = network.query(evidence, do=do, n=3)
    every = list(enumerated(network, evidence, do))
    logs = np.array([log_weight for _, log_weight, _, _ in every])
    weights = np.exp(logs - logsumexp(logs))
    assert posterior.method == "exact"
    assert set(posterior.methods.values()) <= {"exact"}
    assert posterior.log_evidence == pytest.approx(logsumexp(logs), abs=1e-10)
    assert posterior.log_evidence_error == 0.0
    event = {}
    for variable in posterior.variables:
        if variable.is_discrete:
            found = posterior.probabilities(variable.name)
            for level in variable.levels:
                p = sum(
                    w
                    for w, (levels, *_) in zip(weights, every, strict=True)
                    if levels[variable.name] == level
                )
                assert found[level] == pytest.approx(p, abs=1e-10)
                assert 0.0 <= found[level] <= 1.0
            event[variable.name] = variable.levels[0]
    together = sum(
        w
        for w, (levels, *_) in zip(weights, every, strict=True)
        if all(levels[k] == v for k, v in event.items())
    )
    assert posterior.probability(event) == pytest.approx(together, abs=1e-10)
    assert posterior.probability_error(event) == 0.0
    names = [v.name for v in posterior.variables if not v.is_discrete]
    if not names:
        return
    means = np.array([mean[names] for _, _, mean, _ in every])
    mean = weights @ means
    scale = 1.0 + np.abs(means).max() ** 2
    np.testing.assert_allclose(posterior.mean()[names], mean, atol=1e-10 * scale)
    covariance = sum(
        w * (part.loc[names, names].to_numpy() + np.outer(m - mean, m - mean))
        for w, m, (*_, part) in zip(weights, means, every, strict=True)
    )
    np.testing.assert_allclose(posterior.cov().loc[names, names], covariance, atol=1e-10 * scale)
    np.testing.assert_allclose(posterior.std()[names] ** 2, np.diag(covariance), atol=1e-10 * scale)
    name, low = names[0], float(mean[0])
    inside = {**event, name: (low, None)}
    expected = sum(
        w * stats.norm(m[0], np.sqrt(part.loc[name, name])).sf(low)
        for w, m, (levels, _, _, part) in zip(weights, means, every, strict=True)
        if all(levels[k] == v for k, v in event.items())
    )
    assert posterior.probability(inside) == pytest.approx(expected, abs=1e-10)
    below = sum(
        w * stats.norm(m[0], np.sqrt(part.loc[name, name])).cdf(posterior.median()[name])
        for w, m, (*_, part) in zip(weights, means, every, strict=True)
    )
    assert below == pytest.approx(0.5, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_odd_questions_are_answered_or_refused(seed):
    """Values far out, intervals, levels, interventions: probabilities are such, and nothing is NaN."""
    rng = np.random.default_rng(seed)
    network = random_clg(rng, *rng.integers(1, 5, 2).tolist())
    evidence, do = {}, {}
    for variable in network.variables:
        if rng.random() < 0.5:
            continue
        if variable.is_discrete:
            some = rng.choice(variable.levels, int(rng.integers(1, 3)), replace=False).tolist()
            value = some if rng.random() < 0.5 else some[0]
        else:
            value = rng.choice([0.0, -3.0, 1e3, 1e8])
            value = value if rng.random() < 0.7 else (None, float(rng.normal()))
        is_set = isinstance(value, str | float) and rng.random() < 0.2
        (do if is_set else evidence)[variable.name] = value
    refused = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            posterior = network.query(evidence, do=do, n=50)
        except ArgumentError as error:
            refused = str(error)
    if refused:
        assert "impossible under the network" in refused
        return
    assert not posterior.draws.isna().any(axis=None)
    assert not posterior.mean().isna().any()
    assert (posterior.std() >= 0.0).all()
    for variable in posterior.variables:
        if variable.is_discrete:
            found = posterior.probabilities(variable.name)
            assert found.between(0.0, 1.0).all()
            assert found.sum() == pytest.approx(1.0, abs=1e-12)
            assert 0.0 <= posterior.probability({variable.name: variable.levels[0]}) <= 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_with_holes_are_answered_like_questions(seed):
    rng = np.random.default_rng(seed)
    network = random_clg(rng, 3, 3)
    rows = network.sample(12, seed=seed)
    holed = rows.mask(rng.random(rows.shape) < 0.4)
    logpdf = network.logpdf(holed, missing="integrate")
    targets = [str(name) for name in rng.choice(network.nodes, 2, replace=False)]
    predicted = {s: network.predict(holed, targets, statistic=s) for s in ("mean", "median")}
    full = network.impute(holed, seed=0)
    assert np.isfinite(network.logpdf(full)).all()
    for k, row in holed.iterrows():
        known = row.dropna().to_dict()
        assert logpdf[k] == pytest.approx(network.query(known, n=1).log_evidence, abs=1e-10)
        posterior = network.query({n: v for n, v in known.items() if n not in targets}, n=1)
        for name in targets:
            if rows[name].dtype == float:
                assert predicted["mean"][name][k] == pytest.approx(posterior.mean()[name], abs=1e-9)
                assert predicted["median"][name][k] == pytest.approx(posterior.median()[name], abs=1e-9)
            else:
                found = posterior.probabilities(name)
                assert found[predicted["mean"][name][k]] == pytest.approx(found.max(), abs=1e-12)


@pytest.mark.parametrize("worth", [0, 10**9])
def test_rows_answered_together_or_by_pattern_are_the_same(monkeypatch, worth):
    network = random_clg(np.random.default_rng(9), 4, 2)
    rows = network.sample(60, seed=1)
    holed = rows.mask(np.random.default_rng(2).random(rows.shape) < 0.4)
    logpdf, predicted = network.logpdf(holed, missing="integrate"), network.predict(holed, ["d1", "x0"])
    monkeypatch.setattr("spbn.inference.batch.WORTH_TOGETHER", worth)
    monkeypatch.setattr("spbn.inference.batch.MOST_AT_ONCE", 7)  # rows are answered in parts
    np.testing.assert_allclose(network.logpdf(holed, missing="integrate"), logpdf, atol=1e-12)
    again = network.predict(holed, ["d1", "x0"])
    np.testing.assert_allclose(again["x0"], predicted["x0"], rtol=1e-10)
    assert (again["d1"] == predicted["d1"]).all()


def test_a_hidden_class_is_a_node_like_others():
    rng = np.random.default_rng(3)
    network = random_clg(rng, 1, 3)
    structure = Structure(
        ["x0", "x1", "x2", "d0"],
        network.structure.arcs,
        {node: network.structure.type(node) for node in network.nodes},
    )
    hidden = BayesianNetwork(structure, network.cpds, hidden="d0")
    seen, told = network.query({"x2": 0.3}, n=1), hidden.query({"x2": 0.3}, n=1)
    assert told.methods == dict.fromkeys(("x0", "x1", "d0"), "exact")
    np.testing.assert_allclose(told.probabilities("d0"), seen.probabilities("d0"), atol=1e-12)
    np.testing.assert_allclose(told.mean()[["x0", "x1"]], seen.mean()[["x0", "x1"]], atol=1e-12)
    rows = hidden.sample(20, seed=0).mask(rng.random((20, 3)) < 0.4)
    np.testing.assert_allclose(
        hidden.logpdf(rows, missing="integrate"),
        network.logpdf(rows.assign(d0=None), missing="integrate"),
        atol=1e-12,
    )


def test_draws_follow_the_exact_distribution():
    network = random_clg(np.random.default_rng(5), 3, 2)
    posterior = network.query({}, n=4000)
    for variable in posterior.variables:
        drawn = posterior.draws[variable.name]
        if variable.is_discrete:
            expected = posterior.probabilities(variable.name)
            counts = drawn.value_counts().reindex(expected.index, fill_value=0)
            there = expected > 0
            assert (counts[~there] == 0).all()
            assert stats.chisquare(counts[there], 4000 * expected[there]).pvalue > 1e-3
        else:
            grid = posterior.quantile([0.1, 0.3, 0.5, 0.7, 0.9]).loc[variable.name]
            assert np.array([(drawn < q).mean() for q in grid]) == pytest.approx(
                [0.1, 0.3, 0.5, 0.7, 0.9], abs=0.03
            )
    assert posterior.cov().to_numpy() == pytest.approx(
        np.cov(posterior.draws.select_dtypes("number").T), rel=0.15, abs=0.15
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sets"), [("asia", 15), ("alarm", 5), ("insurance", 5), ("hailfinder", 2)])
def test_published_networks_agree_with_pgmpy(name, sets):
    pytest.importorskip("pgmpy")
    with warnings.catch_warnings():  # what pgmpy warns about is not for us to fix
        warnings.simplefilter("ignore")
        from pgmpy.inference import VariableElimination

    network, model = discrete_network(name)
    other, rng = VariableElimination(model), np.random.default_rng(0)
    rows = network.sample(sets, seed=1)
    for _, row in rows.iterrows():
        size = int(rng.integers(1, 1 + len(network.nodes) // 3))
        evidence = {str(n): row[n] for n in rng.choice(network.nodes, size, replace=False)}
        posterior = network.query(evidence, n=1)
        assert posterior.method == "exact"
        for variable in posterior.variables:
            found = other.query([variable.name], evidence=evidence, show_progress=False)
            expected = dict(zip(found.state_names[variable.name], found.values, strict=True))
            for level, p in posterior.probabilities(variable.name).items():
                assert p == pytest.approx(expected[level], abs=1e-10)


def test_known_nodes_that_are_nearly_the_same_lose_no_digits():
    """The covariance matrix of what is known is singular in double precision."""
    noise = 1e-9
    cpds = {
        "x": LinearGaussian("x", (), 0.0, (), 1.0),
        "y": LinearGaussian("y", ("x",), 0.0, (1.0,), noise**2),
        "z": LinearGaussian("z", ("x",), 0.0, (1.0,), noise**2),
    }
    network = BayesianNetwork(Structure("xyz", [("x", "y"), ("x", "z")]), cpds)
    posterior = network.query({"y": 0.5, "z": 0.5 + noise}, n=10)
    assert posterior.mean()["x"] == pytest.approx(0.5 + noise / 2, abs=1e-15)
    assert posterior.std()["x"] == pytest.approx(noise / np.sqrt(2), rel=1e-5)
    expected = stats.norm(0.0, 1.0).logpdf(0.5) + stats.norm(0.0, noise * np.sqrt(2)).logpdf(noise)
    assert posterior.log_evidence == pytest.approx(expected, abs=1e-5)


def test_what_would_be_too_large_is_simulated(monkeypatch):
    network = random_clg(np.random.default_rng(8), 4, 3)
    evidence = {"x2": 0.5}
    whole = network.query(evidence, n=4000)
    assert whole.method == "exact"
    monkeypatch.setattr("spbn.inference.exact.MOST_CONFIGURATIONS", 1)
    drawn = network.query(evidence, n=4000)
    assert drawn.method != "exact"
    error = 4.5 * whole.std() / np.sqrt(drawn.effective_size)
    assert (abs(drawn.mean() - whole.mean()) < error).all()
    assert drawn.log_evidence == pytest.approx(whole.log_evidence, abs=4.5 * drawn.log_evidence_error + 1e-9)
    monkeypatch.setattr("spbn.inference.exact.MOST_CELLS", 1)
    nothing = network.query({"d0": whole.network.sample(1, seed=0)["d0"][0]}, n=100)
    assert set(nothing.methods.values()) <= {"forward", "weighting", "smc"}


def test_only_what_is_computed_is_called_exact():
    """A node of kernels below a line is drawn, and everything else is not."""
    types = {"sky": "discrete", "wet": "discrete", "heat": "lg", "sales": "lg", "noise": "ckde"}
    structure = mixed("lg").structure
    network = BayesianNetwork.fit(Structure(structure.nodes, structure.arcs, types), mixed_frame(200))
    posterior = network.query({"heat": 15.0}, n=100)
    assert posterior.methods == {"sky": "exact", "wet": "exact", "sales": "exact", "noise": "forward"}
    assert posterior.method == "exact and forward"
    assert posterior.is_exact("sales")
    assert not posterior.is_exact("noise")
    assert posterior.probability_error({"noise": (0.0, None)}) > 0.0
    known = network.query({"noise": 0.2}, n=500)
    assert known.methods["sales"] in ("weighting", "smc")
    both = network.query({"sales": (10.0, 15.0), "heat": 15.0}, n=100)
    assert both.methods["wet"] == "exact"
    assert both.methods["sales"] == "forward"
    assert both.log_evidence_error == 0.0
