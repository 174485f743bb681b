from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.preprocessing import PowerTransformer

import spbn
from spbn import BayesianNetwork, Structure
from spbn.errors import ArgumentError, DataError, ModelFileError
from spbn.numerics.spreads import LEVELS
from spbn.transforms import (
    FREE,
    Margins,
    YeoJohnson,
    choose_transform,
    from_plain,
    log_density_gain,
    to_plain,
)

from strategies import nonlinear_frame

RNG = np.random.default_rng(0)
SKEWED = pd.DataFrame(
    {
        "a": RNG.lognormal(size=200),
        "b": -RNG.gamma(2.0, size=200),
        "c": RNG.standard_t(3, size=200),
    }
)
SKEWED["c"] += np.log(SKEWED["a"])


@pytest.mark.parametrize("exponent", [0.0, 1e-9, 0.3, 1.0, 1.7, 2.0 - 1e-9, 2.0])
def test_forward_agrees_with_scipy_and_inverse_takes_it_back(exponent):
    transform = YeoJohnson(2.0, 3.0, exponent)
    x = np.concatenate([[2.0], np.random.default_rng(0).normal(2.0, 9.0, 500)])
    np.testing.assert_allclose(transform.forward(x), stats.yeojohnson((x - 2.0) / 3.0, exponent), rtol=1e-7)
    np.testing.assert_allclose(transform.inverse(transform.forward(x)), x, rtol=1e-11, atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(exponent=st.floats(0.0, 2.0), z=st.floats(-50.0, 50.0))
def test_the_slope_is_the_derivative(exponent, z):
    transform = YeoJohnson(1.0, 2.0, exponent)
    step = 1e-6 * (1.0 + abs(z))
    ends = transform.forward(np.array([z - step, z + step]))
    assert transform.log_slope(np.array([z]))[0] == pytest.approx(
        np.log(np.diff(ends)[0] / (2 * step)), abs=1e-5
    )


def test_the_exponent_is_the_most_likely_one_within_its_limits():
    for column in (SKEWED["c"], RNG.normal(size=300), RNG.beta(0.5, 0.8, size=300)):
        column = np.asarray(column)
        z = (column - column.mean()) / column.std()
        reference = PowerTransformer(standardize=False).fit(z[:, None]).lambdas_[0]
        assert 0 < reference < 2
        assert YeoJohnson.fit(column).exponent == pytest.approx(reference, abs=1e-4)
    assert YeoJohnson.fit(RNG.lognormal(0, 2, size=500)).exponent == 0.0
    assert YeoJohnson.fit(-RNG.lognormal(0, 2, size=500)).exponent == 2.0


@pytest.mark.parametrize("node_type", ["lg", "ckde", "blend", "curve"])
def test_it_is_a_density_in_the_units_of_the_data(node_type):
    network = BayesianNetwork.fit(Structure("abc", ["ac"], node_type), SKEWED, margins="yeo-johnson")
    marginal = BayesianNetwork.fit(Structure("a", (), node_type), SKEWED[["a"]], margins="yeo-johnson")
    v = np.linspace(-7.0, 7.0, 60_001)
    u = 0.5 * np.sinh(v)
    xs, slope = np.sinh(u), 0.5 * np.cosh(u) * np.cosh(v)  # as far as tails go
    density = np.exp(marginal.logpdf({"a": xs})) * slope
    assert integrate.simpson(density, x=v) == pytest.approx(1.0, abs=1e-6)
    # A child given its parent, by its own contribution.
    rows = {"a": np.full(len(xs), 1.3), "b": np.full(len(xs), -1.0), "c": xs}
    density = np.exp(network.logpdf_by_node(rows)["c"]) * slope
    assert integrate.simpson(density, x=v) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(network.logpdf_by_node(SKEWED).sum(axis=1), network.logpdf(SKEWED), rtol=1e-12)


@pytest.mark.parametrize("node_type", ["lg", "ckde", "blend"])
def test_samples_are_in_the_units_of_the_data(node_type):
    network = BayesianNetwork.fit(Structure("abc", ["ac"], node_type), SKEWED, margins="yeo-johnson")
    sample = network.sample(4000, seed=0)
    for node in "abc":
        assert stats.ks_2samp(sample[node], SKEWED[node]).pvalue > 1e-3
    assert (sample["a"] > -1.5).mean() > (0.995 if node_type == "blend" else 1 - 1e-9)  # a blend has tails
    pd.testing.assert_frame_equal(sample, network.sample(4000, seed=0))


def test_a_gaussian_network_of_lognormal_columns_is_right():
    """Where the transform is a logarithm, the density is that of a shifted lognormal variable."""
    network = BayesianNetwork.fit(
        Structure("x"), {"x": np.exp(3 * RNG.normal(size=400))}, margins="yeo-johnson"
    )
    margin, cpd = network.margins.columns["x"], network.cpds["x"]
    assert margin.exponent == 0.0
    x = np.array([1.5, 3.0, 0.99 * margin.high]) * margin.scale + margin.centre
    shifted = stats.lognorm(
        np.sqrt(cpd.variance), loc=margin.centre - margin.scale, scale=margin.scale * np.exp(cpd.intercept)
    )
    np.testing.assert_allclose(network.logpdf({"x": x}), shifted.logpdf(x), rtol=1e-10)


@pytest.mark.parametrize("model", ["spbn", "gbn", "kdebn", "blend"])
def test_learn_in_transformed_columns(model, tmp_path):
    network = spbn.learn(SKEWED, model=model, margins="yeo-johnson")
    transformed = {
        name: YeoJohnson.fit(SKEWED[name].to_numpy()).forward(SKEWED[name].to_numpy()) for name in SKEWED
    }
    plain = spbn.learn(transformed, model=model)
    assert network.structure == plain.structure
    slopes = sum(YeoJohnson.fit(SKEWED[n].to_numpy()).log_slope(SKEWED[n].to_numpy()) for n in SKEWED)
    np.testing.assert_allclose(network.logpdf(SKEWED), plain.logpdf(transformed) + slopes, rtol=1e-10)
    assert network.record.settings["margins"] == "yeo-johnson"
    network.save(tmp_path / "model.spbn")
    again = BayesianNetwork.load(tmp_path / "model.spbn")
    assert again == network
    assert again != plain
    np.testing.assert_array_equal(again.logpdf(SKEWED), network.logpdf(SKEWED))


def test_skewed_columns_gain():
    train, test = SKEWED.iloc[:150], SKEWED.iloc[150:]
    gains = [
        spbn.learn(train, model=model, margins="yeo-johnson").loglik(test)
        - spbn.learn(train, model=model).loglik(test)
        for model in ("gbn", "spbn")
    ]
    assert min(gains) > 0


def test_what_makes_no_sense_is_refused():
    frame = nonlinear_frame(50, 2)
    for margins in ("yeojohnson", "", True):
        with pytest.raises(ArgumentError, match="margins must be one of 'none', 'yeo-johnson', 'auto'"):
            spbn.learn(frame, margins=margins)
    for margins in ("yeojohnson", None, True):
        with pytest.raises(ArgumentError, match="margins must be"):
            BayesianNetwork.fit(Structure("ab"), frame, margins=margins)


def test_columns_that_cannot_be_transformed_are_refused():
    frame = nonlinear_frame(50, 2)
    far = frame.assign(b=[*frame["b"][:-1], 1e100])
    with pytest.raises(DataError, match=r"'b' cannot be transformed: .* next to 1e\+100 \(row 50"):
        BayesianNetwork.fit(Structure("ab"), far, margins="yeo-johnson")
    with pytest.warns(UserWarning, match="1 row is left out"):  # learning does by itself what this advises
        spbn.learn(far, margins="yeo-johnson")
    for work in (spbn.learn, lambda data, **options: BayesianNetwork.fit(Structure("ab"), data, **options)):
        with pytest.raises(DataError, match="'b' is constant"):
            work(frame.assign(b=2.0), margins="yeo-johnson")
        with pytest.raises(DataError, match="'b' varies too much"):
            work(frame.assign(b=[*frame["b"][:-1], 1e308]), margins="yeo-johnson")
    half_tied = frame.assign(b=np.where(np.arange(50) < 40, 0.0, frame["b"]))  # ties alone are no obstacle
    assert np.isfinite(spbn.learn(half_tied, margins="yeo-johnson").logpdf(half_tied)).all()


def without_limits(network):
    """The same network with transforms that are bent everywhere."""
    columns = {
        name: replace(column, low=-np.inf, high=np.inf) for name, column in network.margins.columns.items()
    }
    return BayesianNetwork(network.structure, network.cpds, margins=Margins(columns))


def test_margins_of_version_2_are_read():
    network = BayesianNetwork.fit(Structure("a"), SKEWED[["a"]], margins="yeo-johnson")
    document = to_plain(network.margins, ["a"])
    for key in ("low", "high"):
        del document["columns"]["a"][key]
    assert from_plain(document, ["a"]) == without_limits(network).margins
    np.testing.assert_array_equal(without_limits(network).logpdf(SKEWED), network.logpdf(SKEWED))


@settings(max_examples=60, deadline=None)
@given(
    exponent=st.floats(0.0, 2.0), low=st.floats(-100.0, 0.0), high=st.floats(0.0, 100.0),
    beyond=st.floats(0.0, 1e6),
)  # fmt: skip
def test_beyond_its_limits_a_transform_is_the_tangent_of_the_one_of_scipy(exponent, low, high, beyond):
    transform = YeoJohnson(2.0, 3.0, exponent, low, high)
    ends, sides = np.array([low, high]), np.array([-1.0, 1.0])
    x = 2.0 + 3.0 * (ends + beyond * sides)
    slopes = np.array([(1.0 - low) ** (1.0 - exponent), (1.0 + high) ** (exponent - 1.0)])
    expected = stats.yeojohnson(ends, exponent) + beyond * sides * slopes
    np.testing.assert_allclose(transform.forward(x), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(transform.inverse(transform.forward(x)), x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(transform.log_slope(x), np.log(slopes / 3.0), rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 999), st.integers(2, 60), st.floats(-100, 100))
def test_limits_are_coarse_and_twice_as_far_as_the_rows(seed, rows, magnitude):
    column = 10.0**magnitude * np.random.default_rng(seed).standard_t(1, rows)
    transform = YeoJohnson.fit(column)
    z = (column - column.mean()) / column.std()
    for limit, end in ((transform.low, z.min()), (transform.high, z.max())):
        assert 1.0 <= limit / (2.0 * end) <= 1.0 + 1 / 16
        assert (32.0 * np.frexp(limit)[0]) % 1.0 == 0.0


def test_where_a_transform_is_a_logarithm_heavy_tails_leave_a_mean():
    """Without limits, the mean of these draws would be that of a few which are beyond all bounds."""
    frame = pd.DataFrame({"a": np.exp(np.random.default_rng(0).normal(size=200))})
    network = BayesianNetwork.fit(Structure("a", types="blend"), frame, margins="yeo-johnson")
    tails = (*(0.0,) * 6, 1.0, 0.0)
    network = BayesianNetwork(
        network.structure, {"a": replace(network.cpds["a"], mixture=tails)}, margins=network.margins
    )
    assert network.margins.columns["a"].exponent == 0.0
    draws = network.sample(100_000, seed=1)["a"]
    assert draws.mean() == pytest.approx(frame["a"].mean(), abs=4.0 * frame["a"].std())
    assert without_limits(network).sample(100_000, seed=1)["a"].mean() > 1e20


@pytest.mark.parametrize("model", ["gbn", "spbn", "blend"])
def test_values_that_a_transform_without_limits_cannot_bear_are_refused(model):
    """Files of version 0.2 have such transforms; others take whatever a network without margins takes."""
    frame = pd.DataFrame({"a": -np.exp(4 * RNG.random(100)), "b": RNG.normal(size=100)})
    frame["a"] **= 3
    network = spbn.learn(frame, margins="yeo-johnson", model=model)
    assert network.margins.columns["a"].exponent == 2.0
    rows = {"a": [-1.0, 1e308], "b": [0.0, 0.0]}
    plain = spbn.learn(frame, model=model)
    np.testing.assert_array_equal(np.isfinite(network.logpdf(rows)), np.isfinite(plain.logpdf(rows)))
    network = without_limits(network)
    for ask in (network.logpdf, network.logpdf_by_node, network.loglik):
        with pytest.raises(DataError, match=r"'a' .* cannot transform: 1e\+308 \(row 2, counted from 1\)"):
            ask(rows)
    assert np.isfinite(network.logpdf({"a": [-1e308], "b": [0.0]})).all()  # logarithmic on this side


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"columns": {}},
        {"columns": {"a": {"centre": 0.0, "scale": 1.0, "exponent": 3.0}}},
        {"columns": {"a": {"centre": 0.0, "scale": 0.0, "exponent": 1.0}}},
        {"columns": {"a": {"centre": "0", "scale": 1.0, "exponent": 1.0}}},
        {"columns": {"a": {"centre": 0.0, "scale": 1.0}}},
        {"columns": {"a": {"centre": 0.0, "scale": 1.0, "exponent": 1.0, "low": 0.5}}},
        {"columns": {"a": {"centre": 0.0, "scale": 1.0, "exponent": 1.0, "high": -0.5}}},
        {"columns": {"a": {"centre": 0.0, "scale": 1.0, "exponent": 1.0, "high": None}}},
        {"columns": 7},
    ],
)
def test_changed_entries_of_a_file_are_refused(change):
    network = BayesianNetwork.fit(Structure("a"), SKEWED[["a"]], margins="yeo-johnson")
    document = to_plain(network.margins, ["a"])
    assert from_plain(document, ["a"]) == network.margins
    with pytest.raises(ModelFileError, match="margins make no sense"):
        from_plain({**document, **change}, ["a"])


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5, 2.0])
def test_however_far_out_a_draw_is_its_value_is_a_finite_number(exponent):
    with np.errstate(all="raise"):
        found = YeoJohnson(0.0, 1.0, exponent).inverse(np.array([-1e4, 0.0, 1e4]))
    assert np.isfinite(found).all()
    assert found[0] < found[1] == 0.0 < found[2]


def column_of(kind, rows, seed):
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.normal(5.0, 2.0, rows),
        "uniform": lambda: rng.uniform(size=rows),
        "lognormal": lambda: np.exp(rng.normal(size=rows)),
        "gamma": lambda: rng.gamma(3.0, size=rows),
        "negative": lambda: -np.exp(rng.normal(size=rows)),
    }[kind]()


def slow_gain(column, transform):
    """Add up what every row gains, by scipy, from quantiles that numpy finds after the transform."""

    def density(values):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], method="inverted_cdf")
        return stats.norm(middle, (high - low) / 2.563).logpdf(values)

    step = 1e-6
    slopes = np.log((transform.forward(column + step) - transform.forward(column - step)) / (2 * step))
    differences = density(transform.forward(column)) + slopes - density(column)
    return np.clip(differences, -3.0, 3.0).sum()


@pytest.mark.parametrize("kind", ["normal", "lognormal", "gamma", "negative"])
def test_what_a_transform_gains(kind):
    column = column_of(kind, 300, seed=1)
    transform = YeoJohnson.fit(column)
    quantiles = np.quantile(column, LEVELS, method="inverted_cdf")
    found = log_density_gain(column, transform, quantiles)
    np.testing.assert_allclose(found, slow_gain(column, transform), atol=1e-4)
    assert log_density_gain(column, YeoJohnson(2.0, 3.0, 1.0), quantiles) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("rows", [100, 1000])
@pytest.mark.parametrize("odd", [None, 20.0, 1e3, -1e5, 1e100])
@pytest.mark.parametrize(
    ("kind", "is_transformed"),
    [("normal", False), ("uniform", False), ("lognormal", True), ("negative", True)],
)
def test_no_odd_row_decides_which_columns_are_transformed(kind, is_transformed, odd, rows):
    column = column_of(kind, rows, seed=0)
    if odd is not None:
        column = np.append(column, odd)
    assert (choose_transform(column, bounds=FREE) is not None) == is_transformed


def test_columns_that_are_normal_are_seldom_transformed():
    chosen = [choose_transform(column_of("normal", 200, seed)) is not None for seed in range(300)]
    assert np.mean(chosen) <= 0.02


def test_columns_with_few_values_are_not_refused():
    """Nor are values that a transform would take beyond all numbers."""
    far = np.append(column_of("negative", 500, seed=0), 1e200)
    for column in (np.repeat([0.0, 1.0], [99, 1]), np.append(np.zeros(999), 1e9), far):
        found = choose_transform(column)
        assert found is None or np.isfinite(found.forward(column)).all()


MANY = pd.DataFrame({kind: column_of(kind, 300, seed=3) for kind in ("normal", "lognormal", "gamma")})
MANY["sum"] = MANY["normal"] + np.log(MANY["lognormal"]) + np.random.default_rng(9).normal(size=300)


@pytest.mark.parametrize("options", [{"model": "gbn"}, {"folds": 3, "patience": 1}])
def test_margins_for_some_columns(options, tmp_path):
    network = spbn.learn(MANY, margins="auto", **options)
    transforms = {name: choose_transform(MANY[name].to_numpy()) for name in MANY}
    assert network.margins.columns == {name: t for name, t in transforms.items() if t is not None}
    assert set(network.margins.columns) == {"lognormal", "gamma"}
    moved = {name: x if (t := transforms[name]) is None else t.forward(x) for name, x in MANY.items()}
    plain = spbn.learn(pd.DataFrame(moved), **options)
    assert network.structure == plain.structure
    slopes = sum(transforms[name].log_slope(MANY[name].to_numpy()) for name in network.margins.columns)
    np.testing.assert_allclose(network.logpdf(MANY), plain.logpdf(moved) + slopes, rtol=1e-10)
    network.save(tmp_path / "model.spbn")
    again = BayesianNetwork.load(tmp_path / "model.spbn")
    assert again == network
    assert again.record.settings["margins"] == "auto"
    np.testing.assert_array_equal(again.logpdf(MANY), network.logpdf(MANY))
    drawn = network.sample(200, seed=0)
    assert np.isfinite(drawn.to_numpy()).all()
    if options == {"model": "gbn"}:
        found, expected = (made.query({"sum": 7.0}).median() for made in (network, plain))
        for name, transform in transforms.items():
            if name != "sum":
                back = expected[name] if transform is None else transform.inverse(expected[name])
                assert found[name] == pytest.approx(float(back))


def test_no_margins_where_none_pay(tmp_path):
    frame = MANY[["normal"]].assign(other=column_of("normal", 300, seed=8))
    network = spbn.learn(frame, model="gbn", margins="auto")
    assert network.margins is None
    assert network.cpds == spbn.learn(frame, model="gbn").cpds


def test_an_entry_of_a_file_with_some_margins_is_refused_if_it_makes_no_sense():
    margins = Margins({"a": YeoJohnson(0.0, 1.0, 0.5)})
    document = to_plain(margins, ["a", "b"])
    assert document["kind"] == "auto"
    assert document["columns"]["b"] is None
    assert from_plain(document, ["a", "b"]) == margins
    for wrong in (
        {**document, "kind": "yeo-johnson"},
        {**document, "kind": "some"},
        {**document, "columns": {"a": None}},
        {**document, "columns": {"a": 3, "b": None}},
    ):
        with pytest.raises(ModelFileError, match="its margins make no sense"):
            from_plain(wrong, ["a", "b"])


@pytest.mark.parametrize("structure", ["multinet", "augmented"])
def test_classes_choose_their_margins(structure):
    frame = MANY.assign(still=np.where(np.arange(300) % 2, 1.0, MANY["gamma"]))
    labels = np.arange(300) % 2
    model = spbn.sklearn.SPBNClassifier(model="gbn", margins="auto", structure=structure, calibrate=False)
    model.fit(frame, labels)
    assert np.isfinite(model.predict_log_proba(frame)).all()


def test_holes_of_columns_that_are_transformed_if_that_pays():
    holes = MANY.mask(np.random.default_rng(0).random(MANY.shape) < 0.05)
    network = spbn.learn(holes, model="gbn", margins="auto", missing="impute")
    assert set(network.margins.columns) == {"lognormal", "gamma"}


@pytest.mark.parametrize("rows", [200, 2500])
def test_typical_log_densities_are_in_units_of_the_data(rows):
    """Those that rows are compared with, to say which of their values are unusual."""
    rng = np.random.default_rng(0)
    a = rng.lognormal(size=rows)
    frame = pd.DataFrame({"a": a, "b": np.log(a) + rng.normal(size=rows)})
    learned, scaled = (spbn.learn(unit * frame, model="gbn", margins="yeo-johnson") for unit in (1.0, 1000.0))
    assert learned.margins is not None
    for node, by_row in zip(learned.nodes, learned.contributions(frame).T, strict=True):
        typical = learned.record.typical[node]
        assert scaled.record.typical[node] == pytest.approx(typical - np.log(1000.0), abs=1e-6)
        assert typical == pytest.approx(np.median(by_row), abs=0.1)
