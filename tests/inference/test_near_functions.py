"""Evidence below nodes that are nearly functions of a kernel node."""

import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

import spbn
from inference.questions import semiparametric
from spbn.inference.particles import Target, _log_error, sample_by_tempering, sample_by_weighting, terms
from spbn.inference.problem import components, read_evidence
from spbn.inference.query import Reach, _cases
from spbn.nodes import LinearGaussian

SLOPES = (1.2, -0.8, 1.0, 1.1, -0.9, 0.7, 1.3, 1.0, -1.1, 0.95)


def chain_below(kind, noise, *, is_child):
    """K, of two humps, perhaps below R, and ten lines below it: each adds noise, relative to its spread."""
    rng = np.random.default_rng(0)
    k = np.where(rng.random(200) < 0.4, rng.normal(-2, 0.6, 200), rng.normal(1.5, 0.9, 200))
    r = rng.normal(size=200)
    above = pd.DataFrame({"R": r, "K": k + r} if is_child else {"K": k})
    top_arcs = [("R", "K")] if is_child else []
    top = spbn.BayesianNetwork.fit(spbn.Structure(list(above), top_arcs, kind), above)
    cpds, names, spread = dict(top.cpds), [*above, *(f"x{i}" for i in range(1, 11))], above["K"].std()
    for i, slope in enumerate(SLOPES, start=1):
        spread *= abs(slope)
        parent = f"x{i - 1}" if i > 1 else "K"
        cpds[f"x{i}"] = LinearGaussian(f"x{i}", (parent,), 0.3 * i, (slope,), (noise * spread) ** 2)
    arcs = [(parent, node) for node, cpd in cpds.items() for parent in cpd.parents]
    types = {node: "lg" if node.startswith("x") else kind for node in names}
    return spbn.BayesianNetwork(spbn.Structure(names, arcs, types), cpds)


def integrated(network, value):
    """The log-evidence of x10, and mean and deviation of the nodes above it, by integrals over K (and R)."""
    lines = [network.cpds[f"x{i}"] for i in range(1, 11)]
    forms = [(1.0, 0.0, 0.0)]  # every node given K: slope, intercept, variance
    for line in lines:
        slope, intercept, variance = forms[-1]
        (c,) = line.coefficients
        forms.append((slope * c, intercept * c + line.intercept, variance * c * c + line.variance))
    slope, intercept, variance = forms[-1]
    centre, width = (value - intercept) / slope, np.sqrt(variance) / abs(slope)
    k = centre + np.linspace(-12, 12, 4001) * width
    if "R" in network.nodes:
        r = np.linspace(-7, 7, 1401)
        weights = network.cpds["R"].logpdf({"R": r}) + np.log(r[1] - r[0])
        coarse = centre + np.linspace(-12, 12, 41) * width
        found = [weights + network.cpds["K"].logpdf({"R": r, "K": np.full(len(r), x)}) for x in coarse]
        prior = CubicSpline(coarse, logsumexp(found, axis=1))(k)
    else:
        prior = network.cpds["K"].logpdf({"K": k})
    rest = value - slope * k - intercept
    logs = prior - 0.5 * (rest**2 / variance + np.log(2 * np.pi * variance))
    shares = np.exp(logs - logsumexp(logs))
    moments = {}
    for node, (b, a, v) in zip(["K", *(f"x{i}" for i in range(1, 10))], forms, strict=False):
        gain = v * (slope / b) / variance
        given = b * k + a + gain * rest
        mean = shares @ given
        moments[node] = mean, np.sqrt(v - gain * v * slope / b + shares @ (given - mean) ** 2)
    return logsumexp(logs) + np.log(k[1] - k[0]), moments


@pytest.mark.parametrize("is_child", [False, True], ids=["root", "child"])
@pytest.mark.parametrize("kind", ["ckde", "blend"])
@pytest.mark.parametrize("noise", [1e-3, 1e-4])
def test_lines_below_kernels_are_summed_over(kind, noise, is_child):
    """Particles had to walk along a line a ten-thousandth as wide as long, and were lost on the way."""
    network = chain_below(kind, noise, is_child=is_child)
    drawn = network.sample(4000, seed=1)["x10"]
    for sign in (-1, 1):
        value = drawn.mean() + sign * 2.5 * drawn.std()
        log_evidence, moments = integrated(network, value)
        for seed in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                posterior = network.query({"x10": value}, seed=seed)
            mean = posterior.mean()
            errors = [abs(mean[node] - m) / deviation for node, (m, deviation) in moments.items()]
            assert np.mean(errors) < 0.2
            assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.5)
            for node, (_, deviation) in moments.items():
                assert posterior.std()[node] == pytest.approx(deviation, rel=0.25)


def target(network, evidence):
    known = read_evidence(network, evidence, "evidence")
    cases = _cases(network, known, read_evidence(network, None, "do"))
    return Target.of(cases, tuple(np.flatnonzero(cases.unknown[0] & cases.relevant[0]).tolist()))


def forked():
    """K → a → b → c with kernels again at c, and a second line d below a, whose value is known."""
    rng = np.random.default_rng(3)
    k = rng.gamma(2.0, 1.0, 200)
    a = 2.0 * k + rng.normal(0, 0.5, 200)
    b, d = a - 1.0 + rng.normal(0, 0.4, 200), 0.5 * a + rng.normal(0, 0.3, 200)
    frame = pd.DataFrame({"K": k, "a": a, "b": b, "c": np.sin(b) + rng.normal(0, 0.2, 200), "d": d})
    types = {"K": "ckde", "a": "lg", "b": "lg", "c": "ckde", "d": "lg"}
    arcs = [("K", "a"), ("a", "b"), ("b", "c"), ("a", "d")]
    return spbn.BayesianNetwork.fit(spbn.Structure(list(types), arcs, types), frame)


def test_sums_over_lines_are_integrals():
    """a is summed over given K and b, of which a known d and the particle b depend: by quadrature."""
    network = forked()
    part = target(network, {"c": 0.5, "d": 2.0})
    reduced = part.without_lines()
    place = part.cases.place
    (block,) = reduced.blocks
    assert block.nodes == {place["a"]}
    values = sample_by_weighting(part, 20, np.random.default_rng(0)).states[:, 0]
    prior, weight = (by_node.sum(axis=0) for by_node in terms(reduced, values))
    full = terms(reduced, values, apart=False)
    np.testing.assert_allclose(sum(full).sum(axis=0), prior + weight, rtol=1e-9)
    grid = np.linspace(-5, 25, 6001)
    for number in range(20):
        at = {node: np.full(len(grid), values[place[node], number]) for node in network.nodes} | {"a": grid}
        of_a_and_b = sum(network.cpds[node].logpdf(at) for node in "ab")
        of_all = of_a_and_b + network.cpds["d"].logpdf(at)
        rest = {node: network.cpds[node].logpdf(at)[0] for node in "Kc"}
        step = np.log(grid[1] - grid[0])
        assert prior[number] == pytest.approx(rest["K"] + logsumexp(of_a_and_b) + step, abs=1e-6)
        expected = rest["c"] + logsumexp(of_all) - logsumexp(of_a_and_b)
        assert weight[number] == pytest.approx(expected, abs=1e-6)


def test_sums_over_lines_change_nothing():
    network, evidence = forked(), {"c": 0.9, "d": 3.0}
    plain = network.query(evidence, n=20_000, method="weighting")
    reduced = target(network, evidence).without_lines()
    for seed in range(3):
        found = sample_by_weighting(reduced, 4000, np.random.default_rng(seed))
        error = 4 * np.hypot(plain.log_evidence_error, found.error[0])
        assert found.log_evidence[0] == pytest.approx(plain.log_evidence, abs=error)
        weights = np.exp(found.log_weights[0] - found.log_weights[0].max())
        for node in "Kab":
            mean = np.average(found.states[reduced.cases.place[node], 0], weights=weights)
            worth = 1 / plain.effective_size + 1 / found.effective[0]
            assert mean == pytest.approx(plain.mean()[node], abs=4 * plain.std()[node] * np.sqrt(worth))


def test_no_more_independent_draws_than_first_particles_that_left_any():
    """Moves bring copies apart, and not what none of the first particles had found."""
    part = target(semiparametric(), {"A": 4.0, "D": 30.0})
    start = sample_by_weighting(part, 1000, np.random.default_rng(0))
    labels = start.states.copy()
    found = sample_by_tempering(part, labels, np.random.default_rng(1), share=0.5)
    assert 10 < found.effective[0] < 300
    few = sample_by_tempering(part, labels[:, :, :100], np.random.default_rng(1), share=0.5)
    assert few.effective[0] < 60
    assert few.error[0] > found.error[0] > 0.03


def test_the_error_of_the_log_evidence_has_no_cap():
    worth = np.array([1000.0, 100.0, 2.0, 1.1, 1.0])
    error = _log_error(worth, 1000)
    assert error[0] == 0.0
    assert error[1] == pytest.approx(np.sqrt((1 / 100 - 1 / 1000) / 0.99))
    assert (np.diff(error) > 0).all()
    assert error[3] > 3.0
    assert error[4] == np.inf


def test_errors_of_the_log_evidence_are_honest():
    """In repeated runs, log-evidence varies by about as much as they say."""
    network, evidence = semiparametric(), {"A": 4.0, "D": 24.0}
    found = [network.query(evidence, n=400, seed=seed) for seed in range(40)]
    spread = np.std([posterior.log_evidence for posterior in found], ddof=1)
    claimed = np.sqrt(np.mean([posterior.log_evidence_error**2 for posterior in found]))
    assert 0.5 < claimed / spread < 2.0


def test_errors_of_groups_add_up():
    """C and E leave two groups, A with B and D: what both say of the evidence is uncertain."""
    network, evidence = semiparametric(), {"C": 3.0, "E": 2.3}
    cases, rng = target(network, evidence).cases, np.random.default_rng(5)
    parts = [sample_by_weighting(Target.of(cases, group), 300, rng) for group in components(cases)]
    assert len(parts) == 2
    assert min(part.error[0] for part in parts) > 0.001  # enough to show in the root of the sum of squares
    found = network.query(evidence, n=300, seed=5, method="weighting")
    assert found.log_evidence_error == pytest.approx(np.sqrt(sum(part.error[0] ** 2 for part in parts)))
    assert found.effective_size == pytest.approx(min(part.effective[0] for part in parts))


def test_how_far_evidence_is_from_all_rows():
    network = semiparametric()
    drawn = network.sample(50_000, seed=3)["D"]
    low, high = drawn.quantile([0.05, 0.95])
    evidence = read_evidence(network, {"A": 6.0, "D": 500.0}, "evidence")
    reach = Reach.of(_cases(network, evidence, read_evidence(network, None, "do")))
    assert reach.node == "D"
    assert reach.distance == pytest.approx((500.0 - drawn.max()) * 3.29 / (high - low), rel=0.1)
    near = Reach.of(target(network, {"D": (30.0, None)}).cases)
    assert near.distance == 0.0
    assert near.in_words == ""


def test_out_of_reach_is_said_with_the_distance():
    with pytest.raises(spbn.errors.ArgumentError, match=r"none is within 1\.\d+e\+05 standard .* 'E'\."):
        semiparametric().query({"E": 1e5})


def test_what_time_allows():
    """When the time is up, what is left of the way is weighed, and a warning says what that is worth."""
    network, evidence = semiparametric(), {"A": 4.0, "D": 30.0}
    with pytest.warns(UserWarning, match=r"The time was up: allow more \(max_seconds\)"):
        short = network.query(evidence, n=500, max_seconds=0)
    assert short.effective_size < 20
    assert short.log_evidence_error > 0.2
    whole = network.query(evidence, n=500)
    assert network.query(evidence, n=500, max_seconds=1e6).log_evidence == whole.log_evidence
    with pytest.raises(spbn.errors.ArgumentError, match="max_seconds must be a number, 0 or more"):
        network.query(evidence, max_seconds=-1.0)


def test_progress_names_the_steps(monkeypatch):
    network, evidence, shown = semiparametric(), {"A": 4.0, "D": 30.0}, []

    @contextmanager
    def recording(is_shown, title):
        shown.append((is_shown, title))
        yield shown.append

    monkeypatch.setattr(sys.modules["spbn.inference.query"], "working", recording)
    network.query(evidence, n=200, progress=True)
    assert shown[0] == (True, "asking the network")
    assert shown[1:4] == [f"asking the network: step {step}" for step in (1, 2, 3)]


@pytest.mark.parametrize(("kind", "is_child"), [("ckde", False), ("blend", True)])
def test_rows_with_holes_are_summed_over_lines_too(kind, is_child):
    """Rows found no way along a line either, and said so to nobody: log-densities were off by thousands."""
    network = chain_below(kind, 1e-3, is_child=is_child)
    drawn = network.sample(4000, seed=1)["x10"]
    rows = pd.DataFrame({"x10": drawn.mean() + np.array([-2.5, -1.0, 2.5]) * drawn.std()})
    holed = rows.reindex(columns=list(network.nodes))
    holed.loc[3] = network.sample(1, seed=2).iloc[0].drop("x4")  # and rows of other patterns
    logpdf = network.logpdf(holed, missing="integrate")
    predicted, filled = network.predict(rows, ["K"])["K"], network.imputations(holed, n=30)
    for k, value in enumerate(rows["x10"]):
        log_evidence, moments = integrated(network, value)
        mean, deviation = moments["K"]
        assert logpdf[k] == pytest.approx(log_evidence, abs=0.5)
        assert predicted[k] == pytest.approx(mean, abs=0.25 * deviation)
        values = [frame["K"][k] for frame in filled]
        assert np.mean(values) == pytest.approx(mean, abs=0.8 * deviation)
        assert np.std(values) == pytest.approx(deviation, rel=0.5)
    known = holed.loc[3].drop("x4").to_dict()
    assert logpdf[3] == pytest.approx(network.query(known).log_evidence, abs=0.2)


def test_rows_that_no_draw_finds_are_warned_of():
    network = semiparametric()
    rows = pd.DataFrame({"A": [6.0, 4.0, 12.0], "D": [15.0, 10.0, 200.0]})
    with pytest.warns(UserWarning, match=r"answer to row 3 \(counted from 1\) rests on fewer than 10"):
        network.predict(rows, ["C"])
    holed = rows.reindex(columns=list("ABCDE"))
    with pytest.warns(UserWarning, match="row 3"):
        network.logpdf(holed, missing="integrate")
    with pytest.warns(UserWarning, match=r"row 1 \(counted from 1\) and 1 more"):
        network.imputations(holed.loc[[2, 2]], n=2)
    with pytest.warns(UserWarning, match="row 2"):
        network.counterfactual(holed.loc[1:], do={"D": 0.0})
    network.predict(rows[:2], ["C"])  # nothing to warn of


def test_levels_that_no_draw_finds_are_refused_without_a_sound():
    """No particle was left, and nothing was divided by."""
    types = {"a": "discrete", "b": "discrete"}
    frame = pd.DataFrame({"a": ["x"] * 99 + ["y"], "b": ["u"] * 99 + ["v"]})
    structure = spbn.Structure("ab", [("a", "b")], types)
    network = spbn.BayesianNetwork.fit(structure, frame, smoothing=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(spbn.errors.ArgumentError, match="impossible under the network"):
            network.query({"b": "v"}, n=1, method="smc")
