import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.diagnostics.model import FitCheck, Loss, measure_importance
from spbn.diagnostics.rows import Evidence, Source, gather_rows
from spbn.report.charts import binned
from spbn.report.content import describe
from spbn.report.html import model_name

import naive


@pytest.fixture(scope="module")
def content(plain_network, plain_frame):
    return describe(plain_network, data=plain_frame)


def test_losses_are_differences_of_scores(content, plain_frame):
    labels = spbn.scores.CVLikelihood(plain_frame, folds=10, seed=0).folds

    def score(*family):
        return naive.cv_rows(plain_frame, labels, *family).sum()

    importance = content.importance
    before = score("b", ["a"], "ckde")
    assert importance.arcs["a", "b"].total == pytest.approx(before - score("b", [], "ckde"))
    assert importance.types["b"].total == pytest.approx(before - score("b", ["a"], "lg"))
    assert importance.types["a"].total == pytest.approx(score("a", [], "lg") - score("a", [], "ckde"))
    assert importance.scores["b"] == pytest.approx(before / len(plain_frame))
    assert importance.arcs["a", "b"].is_clear


def test_the_error_of_a_loss_is_that_of_a_sum_of_rows():
    """Over many samples, losses vary by about as much as one sample says."""
    structure = spbn.Structure("ab", [("a", "b")])
    losses = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=200)
        frame = pd.DataFrame({"a": a, "b": 0.5 * a + rng.normal(size=200)})
        network = spbn.BayesianNetwork.fit(structure, frame)
        losses.append(measure_importance(network, gather_rows(network, frame)).arcs["a", "b"])
    spread = np.std([loss.total for loss in losses])
    assert 0.6 < np.mean([loss.error for loss in losses]) / spread < 1.6


def test_what_cannot_be_fitted_is_lost_without_end():
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": 2 * a, "c": a + rng.normal(size=60)})
    network = spbn.BayesianNetwork.fit(spbn.Structure("abc", [("a", "c")]), frame)
    both = spbn.Structure("abc", [("a", "c"), ("b", "c")])
    cpds = {**network.cpds, "c": spbn.nodes.LinearGaussian("c", ("a", "b"), 0.0, (1.0, 0.0), 1.0)}
    network = spbn.BayesianNetwork(both, cpds)
    importance = measure_importance(network, gather_rows(network, frame))
    assert importance.arcs["a", "c"].total == -math.inf
    assert importance.arcs["a", "c"].is_gain


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_scores_use_the_bandwidth_of_the_network(plain_frame, rule):
    structure = spbn.Structure("abc", [("a", "b")], "ckde")
    network = spbn.BayesianNetwork.fit(structure, plain_frame, bandwidth=rule)
    importance = measure_importance(network, gather_rows(network, plain_frame))
    score = spbn.scores.CVLikelihood(plain_frame, folds=10, seed=0, bandwidth=rule)
    assert importance.bandwidth == rule
    assert importance.scores["b"] == pytest.approx(score.local("b", ["a"], "ckde") / 120)


def test_a_bandwidth_function_is_replaced_by_scotts_rule(plain_frame):
    def narrow(rows):
        return 0.1 * np.atleast_2d(np.cov(rows.T))

    network = spbn.BayesianNetwork.fit(spbn.Structure("ab", types="ckde"), plain_frame, bandwidth=narrow)
    assert measure_importance(network, gather_rows(network, plain_frame)).bandwidth == "scott"


def test_fit_checks_agree_with_scipy(content, plain_network, plain_frame):
    for node, check in content.checks.items():
        uniform = plain_network.cpds[node].cdf(plain_frame)
        assert check.distance == pytest.approx(stats.kstest(uniform, "uniform").statistic)
        assert sum(check.counts) == len(plain_frame)


@pytest.mark.slow
def test_chance_and_band_hold_what_they_say():
    rng = np.random.default_rng(0)
    within = exceeded = 0
    for _ in range(400):
        uniform = np.sort(rng.random(500))
        counts = np.histogram(uniform, bins=20, range=(0, 1))[0]
        check = FitCheck(tuple(counts.tolist()), stats.kstest(uniform, "uniform").statistic, 500)
        low, high = check.band
        within += np.sum((counts >= low) & (counts <= high))
        exceeded += check.distance > check.chance
    assert 0.92 < within / (400 * 20) < 0.97
    assert 0.02 < exceeded / 400 < 0.09


@pytest.mark.parametrize(
    ("rows", "distance", "verdict"),
    [
        (100_000, 0.01, "good"),
        (100_000, 0.05, "good"),
        (100_000, 0.051, "fair"),
        (100_000, 0.1, "fair"),
        (100_000, 0.101, "poor"),
        (178, 0.101, "good"),
        (178, 0.103, "fair"),
        (178, 0.204, "fair"),
        (178, 0.205, "poor"),
    ],
)
def test_verdicts(rows, distance, verdict):
    """Few rows allow for a greater distance: a tenth is nothing unusual with 178 of them."""
    assert FitCheck((rows // 20,) * 20, distance, rows).verdict == verdict


@pytest.mark.parametrize("rows", [20, 178, 500, 735, 738, 2_000])
def test_verdicts_agree_with_the_limits_as_they_are_written(rows):
    for distance in np.linspace(0.0, 0.7, 2_000):
        check = FitCheck((rows // 10,) * 10, float(distance), rows)
        good, fair = (float(f"{limit:g}") for limit in check.limits)
        shown = float(f"{distance:.3f}")
        assert check.verdict == ("good" if shown <= good else "fair" if shown <= fair else "poor")


def test_a_wrong_node_is_found(plain_frame):
    structure = spbn.Structure("abc")
    network = spbn.BayesianNetwork.fit(structure, plain_frame)
    wrong = {**network.cpds, "c": spbn.nodes.LinearGaussian("c", (), 1.5, (), 1.0)}
    checks = describe(spbn.BayesianNetwork(structure, wrong), data=plain_frame).checks
    assert checks["c"].verdict == "poor"
    assert checks["a"].verdict == "good"


def test_unusual_rows_are_the_ones_of_explain(plain_network, plain_frame, content):
    from spbn.diagnostics import unusual_rows

    frame = plain_frame.assign(c=np.where(plain_frame.index == 17, 40.0, plain_frame["c"]))
    for data in (plain_frame, frame):
        found, expected = describe(plain_network, data=data).unusual, unusual_rows(plain_network, data)
        assert found.rows == expected.rows
        assert found.left_out == (data is plain_frame)


def test_a_few_rows_far_away_do_not_squeeze_the_histogram():
    logpdf = np.random.default_rng(0).normal(size=500)
    logpdf[:3] = -1e6, -500.0, -60.0
    edges, counts = binned(logpdf)
    assert counts.sum() == 500
    assert counts[0] == 3
    assert edges[-1] == logpdf.max()
    assert edges[0] > -20


def test_without_data_the_rows_of_ckde_nodes_are_used(plain_network, plain_frame):
    evidence = gather_rows(plain_network, None)
    assert evidence.source is Source.TRAINING
    assert not evidence.covers(["c"])
    np.testing.assert_array_equal(evidence.table.column("b"), plain_frame["b"])
    content = describe(plain_network)
    assert set(content.checks) == {"a", "b"}
    assert content.importance.left_out == ("c",)
    assert content.unusual is None
    assert content.training_rows == 120


def test_rows_of_different_fits_are_not_mixed(plain_frame):
    structure = spbn.Structure("ab", [("a", "b")], "ckde")
    cpds = {
        "a": spbn.nodes.CKDE.fit(plain_frame[:60], "a"),
        "b": spbn.nodes.CKDE.fit(plain_frame[60:], "b", ["a"]),
    }
    assert gather_rows(spbn.BayesianNetwork(structure, cpds), None).source is Source.NONE


def test_a_network_without_rows(plain_frame):
    content = describe(spbn.BayesianNetwork.fit(spbn.Structure("abc"), plain_frame))
    assert isinstance(content.importance, str)
    assert content.checks == {}


@pytest.mark.parametrize(("rows", "reason"), [(1, "too few"), (19, "too few")])
def test_few_rows_have_a_reason(plain_network, plain_frame, rows, reason):
    assert reason in describe(plain_network, data=plain_frame[:rows]).importance


def test_constant_columns_have_a_reason(plain_network, plain_frame):
    assert "constant" in describe(plain_network, data=plain_frame.assign(c=1.0)).importance


def test_thinning_is_the_same_every_time():
    table = spbn.tables.as_table({"a": np.arange(1000.0)})
    evidence = Evidence(Source.GIVEN, table)
    thinned = evidence.thinned(100)
    assert thinned.rows == 100
    assert (np.diff(thinned.column("a")) > 0).all()
    np.testing.assert_array_equal(thinned.columns, evidence.thinned(100).columns)
    assert evidence.thinned(1000) is table


def test_bad_data_is_refused(plain_network, plain_frame):
    with pytest.raises(spbn.errors.DataError, match="lacks column 'c'"):
        describe(plain_network, data=plain_frame[["a", "b"]])


@pytest.mark.parametrize(
    ("types", "name"), [("lg", "Gaussian"), ("ckde", "KDE"), ({"a": "lg", "b": "ckde"}, "Semiparametric")]
)
def test_kinds_of_networks(plain_frame, types, name):
    network = spbn.BayesianNetwork.fit(spbn.Structure("ab", types=types), plain_frame)
    assert model_name(network) == f"{name} Bayesian network"


def test_losses_know_what_is_clear():
    assert Loss(5.0, 2.0, 10).is_clear
    assert not Loss(5.0, 3.0, 10).is_clear
    assert Loss(-5.0, 2.0, 10).is_gain
    assert Loss(5.0, 2.0, 10).per_row == 0.5


def test_scores_are_computed_with_the_networks_bandwidth(plain_frame):
    """In one dimension the two rules differ, and so does the score of a node without parents."""
    labels = spbn.scores.CVLikelihood(plain_frame, folds=10, seed=0).folds
    for rule in ("scott", "silverman"):
        structure = spbn.Structure(list(plain_frame.columns), types="ckde")
        network = spbn.BayesianNetwork.fit(structure, plain_frame, bandwidth=rule)
        found = measure_importance(network, gather_rows(network, plain_frame)).scores["a"]
        expected = spbn.scores.CVLikelihood(plain_frame, folds=labels, bandwidth=rule).local("a", [], "ckde")
        assert found == pytest.approx(expected / len(plain_frame), rel=1e-9)


def test_the_worst_fit_comes_first(plain_network, plain_frame):
    from spbn.report.content import fit_section

    content = describe(plain_network, data=plain_frame)
    page = fit_section(content)
    ordered = sorted(content.checks, key=lambda node: -content.checks[node].distance)
    places = [page.index(f"distance from uniform {content.checks[node].distance:.3f}") for node in ordered]
    assert places == sorted(places)
    assert content.checks[ordered[0]].distance > content.checks[ordered[-1]].distance


def test_changes_that_would_improve_the_score_are_drawn_as_gains():
    """Node b is a sine of a, so that a linear node would better be a CKDE; the arc itself is a loss."""
    from spbn.report.graph import importance_section

    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    frame = pd.DataFrame({"a": a, "b": np.sin(3 * a) + 0.1 * rng.normal(size=300)})
    network = spbn.BayesianNetwork.fit(spbn.Structure("ab", [("a", "b")], {"a": "lg", "b": "lg"}), frame)
    content = describe(network, data=frame)
    assert content.importance.types["b"].is_gain
    assert importance_section(content).count('class="meter gain"') == sum(
        loss.is_gain for loss in (*content.importance.types.values(), *content.importance.arcs.values())
    )
