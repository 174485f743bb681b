import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from inference.questions import blended, chain, copies, mixed, populations, semiparametric
from inference.test_exact import conditioned
from spbn import BayesianNetwork
from spbn._base.arrays import generator
from spbn.errors import ArgumentError
from spbn.inference.problem import EvidenceRows, components


@pytest.fixture(scope="module")
def paper():
    return semiparametric()


def brute_force(network, evidence, n=20_000, seed=9):
    """Forward samples of the whole network, weighted by what is known: one node after the other."""
    rng = generator(seed)
    columns, log_weights = {}, np.zeros(n)
    for node in network.structure.dag.topological_order():
        cpd = network.cpds[node]
        given = {parent: columns[parent] for parent in cpd.parents} or None
        if node in evidence and not isinstance(evidence[node], tuple):
            columns[node] = np.full(n, evidence[node])
            log_weights += cpd.logpdf(columns)
            continue
        columns[node] = cpd.sample(n, given=given, seed=rng)
        if node in evidence:
            low, high = evidence[node]
            log_weights[(columns[node] < low) | (columns[node] > high)] = -np.inf
    weights = np.exp(log_weights - log_weights.max())
    log_evidence = log_weights.max() + np.log(weights.mean())
    worth = weights.sum() ** 2 / (weights**2).sum()
    means = {node: np.average(column, weights=weights) for node, column in columns.items()}
    spreads = {
        node: np.sqrt(np.average((c - means[node]) ** 2, weights=weights)) for node, c in columns.items()
    }
    return log_evidence, means, spreads, worth


QUESTIONS = [
    {"E": 1.0},  # a leaf
    {"D": 14.0},
    {"C": 5.0},  # between everything
    {"A": 7.0, "C": 8.0},  # one side of a collider
    {"A": 6.5, "B": 1.5, "E": 0.9},  # both sides
    {"D": (8.0, 12.0)},
    {"C": (-3.0, 3.0), "E": 0.5},
    {"B": (1.0, 3.0), "D": 20.0},
    {"E": 2.3},  # in the tail
    {"D": (24.0, 30.0)},
]


@pytest.mark.parametrize("evidence", QUESTIONS, ids=str)
@pytest.mark.parametrize("method", ["auto", "smc"])
def test_answers_agree_with_brute_force(paper, evidence, method):
    log_evidence, means, spreads, worth = brute_force(paper, evidence)
    assert worth > 100
    posterior = paper.query(evidence, n=1000, method=method)
    slack = 4 * np.hypot(posterior.log_evidence_error, 1 / np.sqrt(worth)) + 1e-6
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=slack)
    for node, mean in posterior.mean().items():
        error = 4.5 * spreads[node] * np.sqrt(1 / worth + 1 / posterior.effective_size)
        assert mean == pytest.approx(means[node], abs=error + 1e-9), node


@pytest.mark.parametrize("seed", range(3))
def test_tempering_finds_the_exact_evidence_of_gaussian_networks(seed):
    network = chain()
    evidence = {"C": [2.0, 9.0, 25.0][seed]}
    posterior = network.query(evidence, method="smc", n=1000, seed=seed)
    names, mean, covariance, log_density = conditioned(network, evidence)
    assert posterior.method == "smc"
    assert abs(posterior.log_evidence - log_density) < 3 * posterior.log_evidence_error
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(
        posterior.mean()[names], mean, atol=4 * deviations.max() / np.sqrt(posterior.effective_size)
    )
    np.testing.assert_allclose(posterior.std()[names], deviations, rtol=0.25)


def test_intervals_of_normal_variables():
    network = chain()
    posterior = network.query({"A": (2.0, 5.0)}, n=4000)
    normal = stats.norm(1.0, 2.0)
    assert posterior.log_evidence == pytest.approx(np.log(normal.cdf(5.0) - normal.cdf(2.0)), abs=1e-12)
    cut = stats.truncnorm(0.5, 2.0, loc=1.0, scale=2.0)
    assert posterior.mean()["A"] == pytest.approx(cut.mean(), abs=5 * cut.std() / np.sqrt(4000))
    assert stats.kstest(posterior.draws["A"], cut.cdf).pvalue > 1e-3
    # The middle of three, with what is known below it.
    bottom = stats.norm(-0.5, np.sqrt(0.25 * 4.0 + 1.0))
    posterior = network.query({"B": (0.0, None)}, n=4000)
    error = posterior.log_evidence_error
    assert posterior.log_evidence == pytest.approx(np.log(bottom.sf(0.0)), abs=4 * error)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        semiparametric,
        blended,
        lambda: mixed("ckde"),
        populations,
        lambda: copies(2, "curve"),
        lambda: copies(6, "blend"),
    ],
    ids=["spbn", "blend", "mixed", "hidden class", "curve, 10 nodes", "blend, 30 nodes"],
)
def test_ranks_of_true_values_are_uniform(make):
    """Simulation-based calibration: draw a row, tell some of it, and see where the rest of it falls."""
    network = make()
    rows = network.sample_with_class(60 if len(network.nodes) < 20 else 15, seed=3)
    rng = np.random.default_rng(4)
    ranks = []
    for number in range(len(rows)):
        known = [v.name for v in network.variables if rng.random() < 0.4]
        evidence = {node: rows[node].iloc[number] for node in known}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = network.query(evidence, n=200, seed=number)
        for variable in posterior.variables:
            truth = rows[variable.name].iloc[number]
            if variable.is_discrete:
                shares = posterior.probabilities(variable.name)
                place = list(shares.index).index(truth)
                ranks.append(shares.iloc[:place].sum() + rng.random() * shares.iloc[place])
            else:
                ranks.append(posterior.weights[posterior.draws[variable.name] < truth].sum())
    counts = np.histogram(np.clip(ranks, 0, 1 - 1e-12), bins=10, range=(0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_the_question_is_cut_to_what_matters(paper):
    def groups(evidence):
        nodes = paper.structure.dag.topological_order()
        given = np.array([[evidence.get(node, np.nan) for node in nodes]])
        cases = EvidenceRows(paper, given)
        return {frozenset(cases.nodes[k] for k in group) for group in components(cases)}

    assert groups({}) == set()
    assert groups({"E": 1.0}) == {frozenset("ABCD")}
    assert groups({"A": 1.0}) == set()  # everything else hangs below
    assert groups({"C": 1.0}) == {frozenset("AB")}  # a collider joins its parents
    assert groups({"C": 1.0, "E": 1.0}) == {frozenset("AB"), frozenset("D")}
    assert groups({"A": 1.0, "C": 1.0, "E": 1.0}) == {frozenset("B"), frozenset("D")}


def test_interventions_are_queries_of_the_cut_network(paper):
    without = paper.structure.dag.without_arc("C", "D")
    alone = BayesianNetwork(
        paper.structure.with_dag(without),
        {**paper.cpds, "D": spbn.nodes.LinearGaussian("D", (), 14.0, (), 1.0)},
    )
    done, asked = paper.query({"E": 0.9}, do={"D": 14.0}, n=3000), alone.query({"E": 0.9, "D": 14.0}, n=3000)
    for node in "ABC":
        error = 5 * done.std()[node] / np.sqrt(3000)
        assert done.mean()[node] == pytest.approx(asked.mean()[node], abs=2 * error)
    expected = asked.log_evidence - stats.norm(14.0, 1.0).logpdf(14.0)
    assert done.log_evidence == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_margins_change_the_units_and_nothing_else():
    network = blended()
    evidence = {"D": 12.0}
    posterior = network.query(evidence, n=3000)
    # The density of D alone, by averaging over draws of its parents.
    rows = network.sample(4000, seed=1)
    density = np.exp(network.node_logpdf("D", rows.assign(D=12.0)))
    error = density.std() / density.mean() / np.sqrt(len(rows))
    assert posterior.log_evidence == pytest.approx(np.log(density.mean()), abs=4 * error + 0.1)
    low, high = posterior.interval(0.99).loc["C"]
    assert -10.0 < low < high < 20.0  # D is about 10 + 0.8·C


def test_sets_of_levels():
    network = mixed("ckde")
    posterior = network.query({"sky": {"cloudy", "rain"}}, n=2000)
    shares = network.cpds["sky"].probabilities[0]
    assert posterior.log_evidence == pytest.approx(np.log(shares[1] + shares[2]), abs=1e-12)
    expected = shares[1:] / shares[1:].sum()
    found = posterior.probabilities("sky")
    assert found["clear"] == 0.0
    np.testing.assert_allclose(found[["cloudy", "rain"]], expected, atol=0.05)
    everything = network.query({"sky": ["clear", "cloudy", "rain"]}, n=100)
    assert everything.log_evidence == pytest.approx(0.0, abs=1e-12)


def test_the_same_seed_gives_the_same_answer(paper):
    first, again = (paper.query({"E": 2.3}, n=300, seed=5) for _ in range(2))
    pd.testing.assert_frame_equal(first.draws, again.draws)
    assert first.log_evidence == again.log_evidence
    other = paper.query({"E": 2.3}, n=300, seed=6)
    assert other.log_evidence != first.log_evidence
    pd.testing.assert_frame_equal(first.sample(50, seed=1), first.sample(50, seed=1))


@pytest.mark.parametrize(
    ("evidence", "do", "message"),
    [
        ({"Z": 1.0}, None, "evidence names the unknown variable 'Z'"),
        ({"A": "high"}, None, "'A' is continuous and takes a number or an interval"),
        ({"A": float("nan")}, None, "'A' is continuous"),
        ({"A": float("inf")}, None, "must be finite"),
        ({"A": (3.0, 1.0)}, None, "the interval of 'A' is empty: 3 to 1"),
        ({"A": (1.0, 2.0, 3.0)}, None, "is a pair"),
        ({"A": 1.0}, {"A": 2.0}, "'A' is in evidence and in do"),
        (None, {"A": (1.0, 2.0)}, "do sets variables to values"),
        (["A"], None, "must be a dict"),
    ],
)
def test_bad_questions_are_refused(paper, evidence, do, message):
    with pytest.raises(ArgumentError, match=message):
        paper.query(evidence, do=do)


def test_bad_levels_are_refused():
    network = mixed()
    with pytest.raises(ArgumentError, match=r"'sky' has no level 'snow'\. Its levels are 'clear', 'cloudy'"):
        network.query({"sky": "snow"})
    with pytest.raises(ArgumentError, match="empty"):
        network.query({"sky": set()})


def test_impossible_evidence_is_refused():
    frame = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"]})
    structure = spbn.Structure("ab", [("a", "b")], "discrete")
    network = BayesianNetwork.fit(structure, frame, smoothing=0.0)
    with pytest.raises(ArgumentError, match="impossible"):
        network.query({"a": "x", "b": "v"})
    with pytest.raises(ArgumentError, match="impossible"):
        network.query({"a": "x", "b": "v"}, method="weighting")


def test_evidence_that_is_hard_to_reach_warns(paper):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = paper.query({"D": 30.0, "A": 3.0}, n=200, method="weighting")
    assert posterior.effective_size < 20
    assert any("independent draws" in str(warning.message) for warning in caught)


@pytest.mark.slow
def test_values_far_outside_the_data_warn(paper):
    with (
        pytest.warns(UserWarning, match=r"the value of 'E' is far outside what the network was learned from"),
        pytest.warns(UserWarning, match=r"none is within 30\.66 standard deviations of it.* in 'E'\."),
    ):
        paper.query({"E": 30.0}, n=200)
    with pytest.warns(UserWarning, match="the value of 'A' is far outside"):
        paper.query({"A": 60.0}, n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paper.query({"E": 1.0, "A": 7.5}, n=200)
        paper.query(do={"A": 60.0}, n=200)
