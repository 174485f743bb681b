import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from inference.questions import blended, chain, mixed, mixed_frame, populations, semiparametric
from inference.test_exact import conditioned
from spbn import BayesianNetwork, Structure
from spbn.datasets import synthetic
from spbn.errors import ArgumentError, DataError
from spbn.inference.batch import gibbs_sweeps
from spbn.tables.reader import as_table


def with_holes(frame, rate=0.3, seed=0):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < rate)


@pytest.mark.parametrize("make", [semiparametric, blended, chain], ids=["spbn", "blend", "lines"])
def test_nothing_missing_is_the_log_density_itself(make):
    network = make()
    rows = network.sample(20, seed=1)
    np.testing.assert_allclose(network.logpdf(rows, missing="integrate"), network.logpdf(rows), rtol=1e-12)


def test_holes_of_gaussian_networks_are_integrated_out_exactly():
    network = chain()
    rows = with_holes(network.sample(30, seed=2))
    found = network.logpdf(rows, missing="integrate")
    for value, (_, row) in zip(found, rows.iterrows(), strict=True):
        evidence = row.dropna().to_dict()
        expected = conditioned(network, evidence)[3] if evidence else 0.0
        assert value == pytest.approx(expected, abs=1e-9)


def test_one_column_alone_has_its_marginal_density():
    """A leaf's marginal by numerical integration: one forward sample per point, a great many of them."""
    network = semiparametric(150)
    rows = pd.DataFrame(dict.fromkeys("ABCDE", [np.nan] * 3))
    rows["B"] = [-2.0, 0.0, 2.5]
    # B has no parents, and its children are unknown.
    np.testing.assert_allclose(
        network.logpdf(rows, missing="integrate"), network.cpds["B"].logpdf(rows[["B"]]), rtol=1e-12
    )
    rows = rows.assign(B=np.nan, C=[-8.0, 1.0, 6.0])
    parents = network.sample(20_000, seed=4)
    for value, c in zip(network.logpdf(rows, missing="integrate", seed=1), rows["C"], strict=True):
        density = np.exp(network.node_logpdf("C", parents.assign(C=c)))
        error = density.std() / density.mean() * np.hypot(1 / np.sqrt(20_000), 1 / np.sqrt(500))
        assert value == pytest.approx(np.log(density.mean()), abs=4.5 * error)


def test_a_partition_of_the_range_adds_up():
    network = semiparametric(200)
    pieces = [(None, 5.0), (5.0, 15.0), (15.0, None)]
    found = [network.query({"D": piece, "E": 0.8}, n=2000) for piece in pieces]
    total = np.logaddexp.reduce([posterior.log_evidence for posterior in found])
    alone = network.query({"E": 0.8}, n=2000)
    error = np.sqrt(alone.log_evidence_error**2 + max(p.log_evidence_error for p in found) ** 2)
    assert total == pytest.approx(alone.log_evidence, abs=4.5 * error + 1e-9)


def test_imputed_values_follow_the_exact_conditional():
    network = chain()
    row = pd.DataFrame({"A": [np.nan], "B": [1.0], "C": [4.0]})
    drawn = np.array([frame["A"].iloc[0] for frame in network.imputations(row, n=400, seed=3)])
    _, mean, covariance, _ = conditioned(network, {"B": 1.0, "C": 4.0})
    assert stats.kstest(drawn, stats.norm(mean[0], covariance[0, 0] ** 0.5).cdf).pvalue > 1e-3


def test_only_holes_are_filled():
    network = mixed("ckde", rows=150)
    frame = mixed_frame(40, seed=5)
    frame["kept"] = np.arange(40)
    holes = frame.copy()
    holes.loc[[1, 5], "sky"] = None
    holes.loc[[2, 5, 9], "sales"] = np.nan
    holes["wet"] = holes["wet"].astype(object)
    holes.loc[7, "wet"] = None
    holes.index = pd.Index(range(100, 140))
    filled = network.impute(holes, seed=1)
    assert filled.notna().all().all()
    assert list(filled.columns) == list(holes.columns)
    assert filled.index.equals(holes.index)
    there = holes.notna()
    pd.testing.assert_frame_equal(filled[there].astype(object), holes[there].astype(object))
    assert filled["wet"].iloc[7] in (True, False)
    assert set(filled["sky"]) <= {"clear", "cloudy", "rain"}
    pd.testing.assert_frame_equal(filled, network.impute(holes, seed=1))
    assert filled["sales"].iloc[2] != network.impute(holes, seed=2)["sales"].iloc[2]


def test_imputation_is_calibrated():
    network = semiparametric(200)
    rows = network.sample(40, seed=6)
    holes = with_holes(rows, 0.3, seed=7)
    draws = np.stack([frame.to_numpy() for frame in network.imputations(holes, n=39, seed=8)])
    missing = holes.isna().to_numpy()
    ranks = (draws < rows.to_numpy()).sum(axis=0)[missing]
    counts = np.histogram(ranks, bins=8, range=(0, 40))[0]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_predictions_of_gaussian_networks_are_conditional_means():
    network = chain()
    rows = network.sample(5, seed=9)[["B", "C"]]
    for statistic in ("mean", "median", "mode"):
        found = network.predict(rows, ["A"], statistic=statistic, seed=1)
        for value, (_, row) in zip(found["A"], rows.iterrows(), strict=True):
            assert value == pytest.approx(conditioned(network, row.to_dict())[1][0], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lg", "ckde"])
@pytest.mark.parametrize("statistic", ["mean", "median", "mode"])
def test_predictions_are_what_questions_row_by_row_say(kind, statistic):
    """Exactly where the answer to the question is exact, and otherwise but for the error of the draws."""
    structure = Structure("xyz", [("x", "y"), ("y", "z")], {"x": "lg", "y": "lg", "z": kind})
    rng = np.random.default_rng(4)
    x = rng.gamma(2.0, size=200)
    rows = pd.DataFrame({"x": x, "y": x + rng.normal(size=200), "z": rng.normal(size=200)})
    network = BayesianNetwork.fit(structure, rows, margins="yeo-johnson")
    asked = pd.DataFrame({"y": [0.5, 3.0, np.nan]})  # z says nothing about x
    found = network.predict(asked, ["x"], statistic=statistic)["x"]
    for value, y in zip(found, asked["y"], strict=True):
        posterior = network.query({} if np.isnan(y) else {"y": y})
        if statistic == "mode":  # draws have to show it
            assert abs(value - posterior.median()["x"]) < posterior.std()["x"]
        else:
            assert value == pytest.approx(getattr(posterior, statistic)()["x"], rel=1e-9)


def test_levels_and_numbers_are_predicted_exactly_by_enumeration():
    network = mixed("lg")
    rows = pd.DataFrame({"sales": [12.0, 4.0], "noise": [0.0, np.nan]})
    found = network.predict(rows, ["heat", "wet"])
    for k, evidence in enumerate(({"sales": 12.0, "noise": 0.0}, {"sales": 4.0})):
        posterior = network.query(evidence)
        assert found["heat"][k] == pytest.approx(posterior.mean()["heat"], rel=1e-9)
        assert found["wet"][k] == posterior.probabilities("wet").idxmax()


def test_levels_are_predicted_by_the_most_probable_one():
    network = mixed("lg")
    rows = pd.DataFrame({"heat": [21.0, 8.0], "sales": [21.0, 6.0], "noise": [0.0, 0.0]})
    assert list(network.predict(rows, ["sky", "wet"])["sky"]) == ["clear", "rain"]


def test_bad_requests_are_refused():
    network = chain()
    rows = network.sample(3, seed=1)
    with pytest.raises(ArgumentError, match="targets must name variables"):
        network.predict(rows, ["Z"])
    with pytest.raises(ArgumentError, match="Got none"):
        network.predict(rows, [])
    with pytest.raises(ArgumentError, match="statistic must be one of"):
        network.predict(rows, ["A"], statistic="best")
    with pytest.raises(ArgumentError, match="missing must be 'error' or 'integrate'"):
        network.logpdf(rows, missing="ignore")
    with pytest.raises(ArgumentError, match="n must be a whole number"):
        network.imputations(rows, n=0)
    with pytest.raises(DataError, match="infinite"):
        network.impute(rows.assign(A=np.inf))
    with pytest.raises(DataError, match="lacks column 'A'"):
        network.impute(rows[["B", "C"]])
    with pytest.raises(DataError, match="missing"):
        network.logpdf(rows.assign(A=np.nan))


def test_fresh_draws_leave_the_posterior_as_it_is():
    """Holes filled from the exact posterior still follow it after many sweeps."""
    network = chain()
    n = 600
    known = pd.DataFrame({"A": np.nan, "B": np.nan, "C": np.full(n, 4.0)})
    filled = as_table(network.impute(known, seed=1))
    holes = np.array([[True] * n, [True] * n, [False] * n])
    moved = gibbs_sweeps(network, filled, holes, np.random.default_rng(2), sweeps=10, candidates=3)
    names, mean, covariance, _ = conditioned(network, {"C": 4.0})
    for i, name in enumerate(names):
        column = moved.column(name)
        assert stats.kstest(column, stats.norm(mean[i], covariance[i, i] ** 0.5).cdf).pvalue > 1e-3
        assert (column != filled.column(name)).mean() > 0.5
    np.testing.assert_array_equal(moved.column("C"), 4.0)


@pytest.mark.parametrize("types", ["lg", "ckde", "blend"])
def test_fresh_draws_find_what_a_child_nearly_determines(types):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 1e-3, 300)})
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], types=types), frame)
    filled = as_table(frame.assign(x=rng.permutation(x)))
    holes = np.array([[True] * 300, [False] * 300])
    moved = gibbs_sweeps(network, filled, holes, rng)
    assert np.quantile(np.abs(moved.column("x") - x), 0.9) < 0.02


@pytest.mark.slow
def test_learning_from_holes_is_better_than_dropping_rows():
    frame, test = synthetic(300, seed=3), synthetic(300, seed=4)
    holes = with_holes(frame, 0.3, seed=5)
    learned = spbn.learn(holes, missing="impute")
    assert learned.loglik(test) > spbn.learn(holes, missing="drop").loglik(test)
    assert len(learned.record.rounds) == 4
    assert learned.record.settings["missing"] == "impute"
    assert learned == spbn.learn(holes, missing="impute")
    whole = spbn.learn(frame, missing="impute")
    assert whole.structure == spbn.learn(frame).structure
    assert whole.record.rounds == ()


def test_empty_columns_are_refused_and_sparse_ones_named():
    frame = synthetic(80, seed=1)
    with pytest.raises(DataError, match=r"'B' has no values to learn from: leave it out \(drop=\['B'\]"):
        spbn.learn(frame.assign(B=np.nan), missing="impute", model="gbn")
    sparse = frame.copy()
    sparse.loc[:49, "E"] = np.nan
    with pytest.warns(UserWarning, match="more than half of the values of column 'E' are missing"):
        spbn.learn(sparse, missing="impute", model="gbn")


def test_every_imputation_is_a_draw_in_any_order():
    """Particles are drawn class by class: the first table alone would have had the first class."""
    network = populations()
    rows = network.sample(150, seed=4)
    rows[["w", "x", "y"]] = np.nan  # z lies on a curve of w, which only particles can follow backwards
    tables = network.imputations(rows, n=6, seed=0)
    for name in "wxy":
        drawn = [table[name] for table in tables]
        for one in (0, -1):
            others = np.concatenate([column for column in drawn if column is not drawn[one]])
            assert stats.ks_2samp(drawn[one], others).pvalue > 1e-3
