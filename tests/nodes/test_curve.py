import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import spbn
from spbn.errors import ArgumentError, FitError, ModelFileError
from spbn.nodes import Curve
from spbn.nodes.base import Interval, ParameterTable
from spbn.numerics.smooth import Basis
from spbn.tables.reader import as_table

from naive import curve_cv_rows, curve_features, curve_spread
from strategies import nonlinear_frame

FRAME = nonlinear_frame(400, 4, seed=3)


def waves(rows, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, rows)
    return pd.DataFrame({"x": x, "y": np.sin(3 * x) + noise * rng.standard_normal(rows)})


def fan(rows, seed=0):
    """Noise that grows with the parent."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 3, rows)
    return pd.DataFrame({"x": x, "y": x + np.exp(x - 2) * rng.standard_normal(rows)})


@settings(max_examples=25, deadline=None)
@given(parents=st.integers(1, 5), seed=st.integers(0, 999), far=st.booleans(), is_rich=st.booleans())
def test_functions_of_the_basis_are_cosines_of_angles(parents, seed, far, is_rich):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((30, parents)) * (1e5 if far else 1)
    spreads = [curve_spread(column) for column in rng.standard_normal((parents, 40))]
    expected, _, _ = curve_features(x, spreads, is_rich=is_rich)
    transform = np.array(
        [(c, s, max((low - c) / s - 0.25, -6), min((high - c) / s + 0.25, 6)) for c, s, low, high in spreads]
    ).T
    found = Basis(transform, is_rich).features(np.ascontiguousarray(x.T))
    assert found.shape == expected.T.shape
    order, other = np.lexsort(found[:, :3].T), np.lexsort(expected.T[:, :3].T)
    np.testing.assert_allclose(found[order], expected.T[other], atol=1e-11)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    parents=st.integers(0, 3),
    rows=st.sampled_from([40, 90, 200, 599, 600, 700]),
    seed=st.integers(0, 999),
    folds=st.integers(2, 6),
    kind=st.sampled_from(["smooth", "fan", "odd"]),
)
def test_the_score_is_that_of_rows_left_out_one_fold_after_the_other(parents, rows, seed, folds, kind):
    frame = nonlinear_frame(rows, 4, seed)
    rng = np.random.default_rng(seed)
    if kind == "fan" and parents:
        frame["a"] = frame["b"] + np.exp(frame["b"]) * rng.standard_normal(rows)
    if kind == "odd":
        frame.loc[rng.integers(rows), "a"] = 1e4
        frame.loc[rng.integers(rows), "b"] = -1e5
    names = list("bcd")[:parents]
    labels = rng.permutation(np.arange(rows) % folds)
    expected = curve_cv_rows(frame, labels, "a", names)
    score = spbn.scores.CVLikelihood(frame, folds=labels)
    assert score.local("a", names, "curve") == pytest.approx(expected.sum(), rel=1e-9, abs=1e-7)
    family = spbn.nodes.Family("a", tuple(names), spbn.NodeType.CURVE)
    np.testing.assert_allclose(score.rows(family), expected, rtol=1e-7, atol=1e-7)


def test_targets_of_the_same_parents_are_scored_together_as_alone():
    labels = np.arange(len(FRAME)) % 5
    families = [(node, ("b", "c"), "curve") for node in ("a", "d")]
    together = spbn.scores.CVLikelihood(FRAME, folds=labels).local_many(families)
    alone = [
        spbn.scores.CVLikelihood(FRAME, folds=labels).local(node, ["b", "c"], "curve") for node in ("a", "d")
    ]
    np.testing.assert_array_equal(together, alone)  # workers may share them among themselves


def test_the_order_of_parents_makes_no_difference():
    one, other = (Curve.fit(FRAME, "a", parents).logpdf(FRAME) for parents in (["b", "c"], ["c", "b"]))
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("make", "parents"), [(waves, ["x"]), (fan, ["x"]), (waves, [])])
def test_it_integrates_to_one_and_its_cdf_is_that_integral(make, parents):
    cpd = Curve.fit(make(300), "y", parents)
    grid = np.concatenate([-np.geomspace(1e6, 1e-6, 60001), np.geomspace(1e-6, 1e6, 60001)])
    for value in (-30.0, 0.0, 0.7, 1.5, 100.0):
        frame = pd.DataFrame({"x": value, "y": grid})
        density, cdf = np.exp(cpd.logpdf(frame)), cpd.cdf(frame)
        assert integrate.simpson(density, grid) == pytest.approx(1.0, abs=1e-6)
        between = integrate.cumulative_simpson(density, x=grid, initial=0.0)
        np.testing.assert_allclose(cdf - cdf[0], between, atol=1e-6)


@pytest.mark.parametrize("make", [waves, fan])
def test_samples_have_the_distribution_that_it_says(make):
    cpd = Curve.fit(make(500), "y", ["x"])
    given_rows = make(4000, seed=5)
    drawn = given_rows.assign(y=cpd.sample(4000, given=given_rows[["x"]], seed=1))
    assert stats.kstest(cpd.cdf(drawn), "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 0.5), (0.4, np.inf), (5.0, 6.0), (-np.inf, -50.0), (1e4, 2e4)]
)
def test_masses_and_draws_of_intervals(low, high):
    cpd = Curve.fit(waves(300), "y", ["x"])
    parents = as_table({"x": np.linspace(-2, 2, 5)}, names=["x"])
    mass = cpd.log_mass(Interval(low, high), parents)
    for x, found in zip(parents.columns[0], mass, strict=True):

        def density(y, x=x):
            return np.exp(cpd.logpdf({"x": [x], "y": [y]})[0])

        points = [p for p in (-1.0, 0.0, 1.0) if low < p < high]
        ends = max(low, -1e7), min(high, 1e7)
        if abs(ends[0]) > 1e6 or abs(ends[1]) > 1e6:
            points = sorted({*points, *(p for p in (-1e4, -1e2, 1e2, 1e4) if ends[0] < p < ends[1])})
        expected = sum(
            integrate.quad(density, a, b, limit=400, epsabs=0, epsrel=1e-6)[0]
            for a, b in zip([ends[0], *points], [*points, ends[1]], strict=True)
        )
        assert np.exp(found) == pytest.approx(expected, rel=1e-4)
    drawn = cpd.draw_within(
        Interval(low, high), as_table({"x": np.full(2000, 0.3)}, names=["x"]), np.random.default_rng(0)
    )
    assert ((drawn >= low) & (drawn <= high)).all()
    within = pd.DataFrame({"x": 0.3, "y": drawn})
    edges = [
        cpd.cdf({"x": [0.3], "y": [end]})[0] if np.isfinite(end) else float(end > 0) for end in (low, high)
    ]
    if edges[1] - edges[0] > 1e-6:
        places = (cpd.cdf(within) - edges[0]) / (edges[1] - edges[0])
        assert stats.kstest(places, "uniform").pvalue > 0.001


def test_it_comes_close_to_the_truth_and_says_so():
    cpd = Curve.fit(waves(2000), "y", ["x"])
    x = np.linspace(-1.9, 1.9, 50)
    np.testing.assert_allclose(cpd.mean(x[None]), np.sin(3 * x), atol=0.08)
    np.testing.assert_allclose(cpd.spread(x[None]), 0.3, atol=0.02)
    assert cpd.explained == pytest.approx(1 - 0.09 / waves(2000)["y"].var(), abs=0.02)
    assert repr(cpd) == "y follows a smooth curve of x, which explains 85 % of its variance; noise ±0.301"
    test = waves(5000, seed=9)
    truth = stats.norm.logpdf(test["y"], np.sin(3 * test["x"]), 0.3).mean()
    assert cpd.logpdf(test).mean() > truth - 0.02


def test_noise_depends_on_parents_where_that_pays():
    cpd = Curve.fit(fan(2000), "y", ["x"])
    x = np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(cpd.spread(x[None]), np.exp(x - 2), rtol=0.2)
    assert "on average" in repr(cpd)
    assert not Curve.fit(waves(2000), "y", ["x"]).variances.any()


def test_beyond_the_training_rows_the_curve_stays_where_it_ends():
    cpd = Curve.fit(FRAME, "a", ["b", "c"])
    ends = np.array([[1e3, 1e6, 1e200], [0.0, 0.0, 0.0]])
    assert np.ptp(cpd.mean(ends)) == 0.0
    assert np.abs(cpd.mean(ends) - FRAME["a"].mean()).max() < 10 * FRAME["a"].std()


@pytest.mark.parametrize("parents", [[], ["b"], ["b", "c", "d"]])
def test_no_row_loses_more_than_a_hundred_nats(parents):
    frame = (FRAME - FRAME.mean()) / FRAME.std()
    cpd = Curve.fit(frame, "a", parents)
    far = pd.DataFrame(np.array(np.meshgrid(*[[-1e6, 0.0, 1e6]] * 4)).reshape(4, -1).T, columns=list("abcd"))
    assert cpd.logpdf(far).min() > -100
    assert np.isfinite(cpd.logpdf(far * 1e140)).all()


@pytest.mark.parametrize("column", ["x", "y"])
def test_one_odd_cell_costs_the_other_rows_nothing(column):
    clean, test = waves(300), waves(2000, seed=4)
    odd = pd.concat([clean, pd.DataFrame({"x": [0.0], "y": [0.0], column: [1e6]})], ignore_index=True)
    before, after = (Curve.fit(frame, "y", ["x"]).logpdf(test).mean() for frame in (clean, odd))
    assert after == pytest.approx(before, abs=0.01)


def test_files_hold_all_of_it(tmp_path):
    structure = spbn.Structure(list("abcd"), [("b", "a"), ("c", "a"), ("a", "d")], types="curve")
    network = spbn.BayesianNetwork.fit(structure, FRAME)
    network.save(tmp_path / "m.spbn")
    again = spbn.BayesianNetwork.load(tmp_path / "m.spbn")
    np.testing.assert_array_equal(again.logpdf(FRAME), network.logpdf(FRAME))
    assert again.cpds["a"].describe() == network.cpds["a"].describe()
    by_node = network.logpdf_by_node(FRAME)
    np.testing.assert_allclose(by_node.sum(axis=1), network.logpdf(FRAME), rtol=1e-12)
    scorer = spbn.load_scorer(tmp_path / "m.spbn")
    assert scorer.logpdf(FRAME.iloc[:1].to_dict("records")[0]) == pytest.approx(
        network.logpdf(FRAME)[0], abs=1e-12
    )


@pytest.mark.parametrize(
    "damage",
    [
        {"mixture": [1.0, 0.0, 0.0]},
        {"mixture": [0.5, 0.1, 0.1]},
        {"target": [0.0, 0.0]},
        {"noise": [0.0, -1.0, 1.0]},
        {"transform": [[0.0], [0.0], [-1.0], [1.0]]},
        {"coefficients": [0, 7]},
        {"explained": None},
        {"rich": 1},
        {"rich": True},
    ],
)
def test_damaged_records_are_refused(damage):
    from spbn._base.files import ArrayReader, ArrayWriter

    arrays = ArrayWriter()
    record = Curve.fit(waves(100), "y", ["x"]).to_record(arrays)
    record = {"node": "y", "parents": ["x"], **record, **damage}
    with pytest.raises(ModelFileError):
        spbn.NodeType.CURVE.from_record(record, ArrayReader(arrays.columns))


def test_fewer_or_more_coefficients_than_functions_are_refused():
    from spbn._base.files import ArrayReader, ArrayWriter

    arrays = ArrayWriter()
    record = Curve.fit(FRAME, "a", ["b", "c"]).to_record(arrays)
    record = {**record, "node": "a", "parents": ["b"], "transform": [row[:1] for row in record["transform"]]}
    with pytest.raises(ModelFileError, match="coefficients"):
        spbn.NodeType.CURVE.from_record(record, ArrayReader(arrays.columns))


def test_unusual_tables_are_fitted_or_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(30), "y": rng.standard_normal(30)})
    frame["twice"], frame["two"], frame["same"] = frame["x"], np.arange(30) % 2, 1.0
    frame["large"], frame["too large"] = frame["x"] * 1e149, frame["x"] * 1e299
    for parents in (["x", "twice"], ["two"], ["large"], ["x", "twice", "two", "large"]):
        assert np.isfinite(Curve.fit(frame, "y", parents).logpdf(frame)).all()
    assert np.isfinite(Curve.fit(frame, "large", ["y"]).logpdf(frame)).all()
    assert np.isfinite(Curve.fit(frame, "two", ["x"]).logpdf(frame)).all()
    with pytest.raises(FitError, match="'too large' are too large"):
        Curve.fit(frame, "y", ["too large"])
    with pytest.raises(FitError, match="constant"):
        Curve.fit(frame, "y", ["same"])
    with pytest.raises(FitError, match="constant"):
        Curve.fit(frame, "same", ["y"])
    with pytest.raises(FitError, match="at least 10 rows"):
        Curve.fit(frame.iloc[:9], "y", ["x"])
    with pytest.raises(FitError, match="without noise"):
        Curve.fit(frame.assign(copy=frame["x"]), "copy", ["x"])


def test_the_nearest_line_of_a_line_is_that_line():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(5, 2, 3000)})
    frame["y"] = 1 + 2 * frame["x"] + 0.5 * rng.standard_normal(3000)
    line = Curve.fit(frame, "y", ["x"]).nearest_line()
    assert line.coefficients[0] == pytest.approx(2.0, abs=0.02)
    assert line.variance == pytest.approx(0.25, abs=0.03)
    root = Curve.fit(frame, "x").nearest_line()
    assert (root.intercept, root.variance) == (pytest.approx(5, abs=0.1), pytest.approx(4, abs=0.3))


def test_effects_say_what_a_parent_changes_between_its_quantiles():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"line": rng.normal(5, 2, 3000), "bend": rng.normal(-1, 0.5, 3000)})
    frame["y"] = -3 * frame["line"] + np.exp(frame["bend"]) + 0.5 * rng.standard_normal(3000)
    cpd = Curve.fit(frame, "y", ["line", "bend"])
    low, high = stats.norm(-1, 0.5).ppf([0.1, 0.9])
    expected = {"line": -3 * 2 * (stats.norm.ppf(0.9) * 2), "bend": np.exp(high) - np.exp(low)}
    assert cpd.effects() == {name: pytest.approx(value, rel=0.1) for name, value in expected.items()}
    changes = tuple((effect,) for effect in cpd.effects().values())
    table = ParameterTable("effect of parents", ("line", "bend"), ("from 10 % to 90 %",), changes)
    assert cpd.describe().tables[0] == table
    assert [table.title for table in Curve.fit(frame, "line").describe().tables] == ["noise"]


def test_only_densities_with_a_curve_have_one():
    frame = waves(200).assign(town=np.where(np.arange(200) % 2, "Leith", "Portobello"))
    types = {"x": "lg", "town": "discrete", "y": "curve"}
    structure = spbn.Structure(["x", "town", "y"], [("x", "y"), ("town", "y")], types)
    cpd = spbn.BayesianNetwork.fit(structure, frame).cpds["y"]
    given = np.array([[0.3, 0.3, -1.0], [0.0, 1.0, 1.0]])
    places = [cpd.parents.index(name) for name in ("x", "town")]
    parents = np.empty_like(given)
    parents[places] = given
    mean, spread = cpd.smooth_mean(parents)
    assert cpd.curve_share == 1.0
    for k, (x, town) in enumerate(given.T):
        alone = Curve.fit(frame[frame["town"] == ["Leith", "Portobello"][int(town)]], "y", ["x"])
        assert mean[k] == pytest.approx(alone.mean(np.array([[x]]))[0], abs=1e-9)
        assert spread[k] == pytest.approx(alone.spread(np.array([[x]]))[0], abs=1e-9)
    cpd = spbn.BayesianNetwork.fit(structure.with_type("y", "lg"), frame).cpds["y"]
    assert cpd.curve_share == 0.0
    with pytest.raises(ArgumentError, match="the density of 'y' has no curve"):
        cpd.smooth_mean(parents)


def test_pooling_gives_the_mean_curve_and_adds_their_disagreement():
    fits = [Curve.fit(waves(400, seed=seed), "y", ["x"]) for seed in range(3)]
    pooled = fits[0].pool(fits[1:])
    x = np.linspace(-1.8, 1.8, 30)[None]
    np.testing.assert_allclose(pooled.mean(x), np.mean([cpd.mean(x) for cpd in fits], axis=0), atol=0.01)
    assert pooled.spread(x).mean() > np.mean([cpd.spread(x).mean() for cpd in fits]) - 0.005
    alone = fits[0].pool([fits[0]])
    np.testing.assert_allclose(alone.mean(x), fits[0].mean(x), atol=1e-4)
    np.testing.assert_allclose(alone.logpdf(waves(50)), fits[0].logpdf(waves(50)), atol=0.01)


def test_learning_chooses_curves_where_they_are_better():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(500)})
    frame["line"] = frame["x"] + 0.5 * rng.standard_normal(500)
    frame["curve"] = np.sin(2 * frame["x"]) + 0.2 * rng.standard_normal(500)
    network = spbn.learn(frame, types=("lg", "curve"), start="lg")
    assert network.structure.type("curve") == "curve" or network.structure.type("x") == "curve"
    types = {name: network.structure.type(name).name for name in frame}
    assert set(types.values()) <= {"lg", "curve"}
