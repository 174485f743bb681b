"""Columns with bounds: whatever a network draws is within them, and its densities are densities there."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import spbn
from spbn import BayesianNetwork
from spbn.errors import ArgumentError, DataError, ModelFileError
from spbn.transforms import FREE, Margins, MarginsPlan, YeoJohnson, choose_transform, from_plain, to_plain

INF = np.inf
BOUNDS = [(0.0, INF), (-INF, 3.0), (0.0, 1.0), (-2.0, 5.0), (1000.0, INF)]


def column_within(bounds, rows=400, seed=0):
    """Draw values near the lower bound, or near the upper if that is the only one."""
    rng = np.random.default_rng(seed)
    low, high = bounds
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * rng.beta(0.8, 2.0, rows)
    return low + rng.gamma(1.5, 2.0, rows) if np.isfinite(low) else high - rng.gamma(1.5, 2.0, rows)


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    price = np.exp(rng.normal(0.0, 1.2, rows))
    share = stats.logistic.cdf(0.8 * np.log(price) + rng.normal(0.0, 1.0, rows))
    return pd.DataFrame({"price": price, "share": share, "free": rng.normal(share, 0.3)})


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("softness", [0.1, 1.0, 40.0])
def test_the_inverse_takes_values_back(bounds, softness):
    column = column_within(bounds)
    transform = YeoJohnson.fit(column, None, bounds, softness)
    np.testing.assert_allclose(transform.inverse(transform.forward(column)), column, rtol=1e-9, atol=1e-9)
    far = transform.inverse(np.linspace(-1e3, 1e3, 2001))
    assert ((far > bounds[0]) & (far < bounds[1])).all()
    assert (np.diff(far) >= -1e-12).all()


@settings(max_examples=40, deadline=None)
@given(
    bounds=st.sampled_from(BOUNDS),
    softness=st.floats(0.05, 50.0),
    exponent=st.floats(0.0, 2.0),
    place=st.floats(0.05, 0.95),
)
def test_the_slope_is_the_derivative(bounds, softness, exponent, place):
    transform = YeoJohnson(0.3, 1.4, exponent, -8.0, 8.0, *bounds, softness)
    x = np.quantile(column_within(bounds), place)
    step = 1e-6 * max(min(x - bounds[0], bounds[1] - x), 1e-3)
    ends = transform.forward(np.array([x - step, x + step]))
    slope = np.log(np.diff(ends)[0] / (2 * step))
    assert transform.log_slope(np.array([x]))[0] == pytest.approx(slope, abs=1e-4)


def test_without_bounds_nothing_changes():
    column = np.random.default_rng(0).gamma(2.0, size=300)
    plain = YeoJohnson.fit(column)
    both = Margins({"a": plain, "b": YeoJohnson.fit(column, None, (0.0, INF), 4.0)})
    moved, slopes = both.moved(("a", "b"), np.stack([column, column]))
    np.testing.assert_array_equal(moved[0], plain.forward(column))
    np.testing.assert_array_equal(slopes[0], plain.log_slope(column))


@pytest.mark.parametrize("node_type", ["lg", "ckde", "blend", "curve"])
@pytest.mark.parametrize("bounds", BOUNDS[:4])
def test_a_density_within_bounds_integrates_to_one(node_type, bounds):
    rng = np.random.default_rng(1)
    column = column_within(bounds)
    frame = pd.DataFrame({"x": column, "y": column + rng.normal(size=len(column))})
    network = spbn.learn(
        frame, model="spbn", types=(node_type,), start=node_type, validation=None, folds=3,
        bounds={"x": bounds}, required_arcs=[("y", "x")],
    )  # fmt: skip
    margin = network.margins.columns["x"]
    z = np.linspace(-40.0, 40.0, 20_001)
    xs = margin.inverse(z)
    inside = (xs - bounds[0] > 1e-9) & (bounds[1] - xs > 1e-9)
    xs = xs[inside]
    for y in (frame["y"].median(), frame["y"].max()):
        rows = {"x": xs, "y": np.full(len(xs), y)}
        density = np.exp(network.logpdf_by_node(rows)["x"])
        # The substitution makes a bound no special place: slopes by differences, not by the transform itself.
        assert integrate.trapezoid(density, x=xs) == pytest.approx(1.0, abs=5e-3)


def test_a_gaussian_network_of_lognormal_columns_is_right():
    """Where a bound is soft and the exponent 1, the density is nearly that of a lognormal variable."""
    x = np.exp(np.random.default_rng(3).normal(size=4000))
    transform = YeoJohnson.fit(x, None, (0.0, INF), 1e6)
    transform = YeoJohnson(transform.centre, transform.scale, 1.0, -9.0, 9.0, 0.0, INF, 1e6)
    logs = np.log(x)
    expected = stats.lognorm(logs.std(), scale=np.exp(logs.mean())).logpdf(x)
    found = stats.norm.logpdf(transform.forward(x)) + transform.log_slope(x)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("model", ["auto", "spbn", "gbn", "blend"])
def test_samples_and_fillings_are_within_bounds(model):
    frame = table()
    network = spbn.learn(frame, model=model, bounds={"price": (0, None), "share": (0, 1)})
    sample = network.sample(20_000, seed=0)
    assert (sample["price"] > 0).all()
    assert ((sample["share"] > 0) & (sample["share"] < 1)).all()
    for name in frame if model != "gbn" else ():
        assert stats.ks_2samp(sample[name][:1000], frame[name]).pvalue > 1e-3
    holes = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    holes = holes[holes.notna().any(axis=1)]
    for filled in (network.impute(holes, seed=0), network.predict(frame[["free"]], ["price", "share"])):
        assert (filled["price"] > 0).all()
        assert filled["share"].between(0, 1).all()


def test_bounds_that_are_evident_are_found():
    frame = table()
    network = spbn.learn(frame)
    assert network.bounds("price") == (0.0, INF)
    assert network.bounds("share") == (0.0, 1.0)
    assert network.bounds("free") == FREE
    assert "price is 0 or more, share is between 0 and 1" in str(network)
    off = spbn.learn(frame, bounds="none")
    assert {off.bounds(name) for name in frame} == {FREE}
    only = spbn.learn(frame, bounds={"share": (None, None)})
    assert only.bounds("price") == (0.0, INF)
    assert only.bounds("share") == FREE


def test_the_paper_has_no_bounds():
    frame = table(200)
    for model in ("spbn", "gbn", "kdebn"):
        network = spbn.learn(frame, model=model)
        assert network.margins is None


def test_columns_that_happen_to_be_positive_are_not_bounded():
    for seed in range(60):
        column = np.random.default_rng(seed).normal(4.0, 1.0, 200)
        found = choose_transform(column[column > 0])
        assert found is None or found.bounds == FREE


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_were_not_learned_from_are_predicted_better(seed):
    frame = table(400, seed)
    train, test = frame[:250], frame[250:]
    found = [spbn.learn(train, bounds=bounds).loglik(test) / 150 for bounds in ("auto", "none")]
    assert found[0] > found[1]


def test_beyond_bounds_nothing_is_possible_and_at_a_bound_much_is():
    frame = table()
    network = spbn.learn(frame)
    rows = pd.DataFrame({"price": [-1.0, 0.0, 1e-300, 1.0, 1e30], "share": 0.5, "free": 0.5})
    found = network.logpdf(rows).to_numpy()
    assert found[0] == -INF
    assert np.isfinite(found[1:]).all()
    assert found[1] < found[3]
    assert network.logpdf(rows.assign(price=1.0, share=[-0.1, 0.0, 1.0, 0.5, 1.1])).isin([-INF]).tolist() == [
        True, False, False, False, True,
    ]  # fmt: skip
    assert np.isfinite(network.logpdf(rows[1:].mask(rows == 0.5), missing="integrate")).all()
    assert network.logpdf(rows.iloc[[0]].assign(share=np.nan), missing="integrate").tolist() == [-INF]
    scorer = spbn.RowScorer(network)
    assert scorer.score(dict(rows.iloc[0])).logpdf == -INF
    np.testing.assert_allclose(scorer.logpdf(rows), found, rtol=1e-12)


def test_questions_know_the_bounds():
    network = spbn.learn(table(), model="gbn", margins="auto")
    posterior = network.query({"free": 0.9})
    assert posterior.probability({"price": (0, None)}) == pytest.approx(1.0, abs=1e-12)
    assert posterior.probability({"share": (-3, 1)}) == pytest.approx(1.0, abs=1e-12)
    assert posterior.quantile([1e-9, 1 - 1e-9]).loc["share"].between(0, 1).all()
    with pytest.raises(ArgumentError, match=r"'price' is 0 or more under the network\. Got -1"):
        network.query({"price": -1.0})
    assert network.query({"share": (-1, 0.5)}).probability({"price": (0, None)}) == pytest.approx(1.0)


def test_files_keep_bounds(tmp_path):
    frame = table()
    network = spbn.learn(frame)
    network.save(tmp_path / "model.spbn")
    again = BayesianNetwork.load(tmp_path / "model.spbn")
    assert again == network
    np.testing.assert_array_equal(again.logpdf(frame), network.logpdf(frame))
    entry = to_plain(network.margins, list(frame))["columns"]["share"]
    assert from_plain(to_plain(network.margins, list(frame)), list(frame)) == network.margins
    for wrong in (
        {"floor": 1.0},
        {"floor": 2.0},
        {"softness": 0.0},
        {"softness": -1.0},
        {"softness": 1e308},
        {"ceiling": "1"},
        {"floor": float("nan")},
        {"ceiling": True},
    ):
        document = {"kind": "auto", "columns": {"share": {**entry, **wrong}}}
        with pytest.raises(ModelFileError, match="margins make no sense"):
            from_plain(document, ["share"])


def test_bounds_can_be_written():
    frame = table(200)
    written = spbn.learn(frame, model="gbn", bounds=" price:0: , share:0:1,free::9")
    meant = spbn.learn(frame, model="gbn", bounds={"price": (0, None), "share": (0, 1), "free": (None, 9.0)})
    assert written == meant
    assert written.record.settings["bounds"] == {
        "price": [0.0, None],
        "share": [0.0, 1.0],
        "free": [None, 9.0],
    }


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ("price", ArgumentError, "'price:0:,share:0:1', or 'none'. Got 'price'"),
        ("price:a:", ArgumentError, "Got 'price:a:'"),
        ({"price": (1, 0)}, ArgumentError, r"those of 'price' must be a pair \(least, greatest\)"),
        ({"price": 0}, ArgumentError, "those of 'price' must be a pair"),
        (["price"], ArgumentError, "bounds must be a dict of pairs"),
        (
            {"prize": (0, None)},
            ArgumentError,
            "bounds must name columns of numbers: 'price', 'share' and 'free'. Got",
        ),
        (
            {"price": (1, None)},
            DataError,
            "column 'price' must be 1 or more. Got .* in row 1, counted from 1",
        ),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds, error, message):
    frame = table(200)
    frame.loc[0, "price"] = 0.5
    with pytest.raises(error, match=message):
        spbn.learn(frame, bounds=bounds)


def test_a_hidden_class_keeps_within_bounds():
    rng = np.random.default_rng(0)
    group = rng.random(300) < 0.4
    frame = pd.DataFrame(
        {"x": np.exp(rng.normal(np.where(group, 2.0, -2.0), 0.6)), "y": rng.normal(group * 5.0)}
    )
    network = spbn.learn(frame, hidden=2, bounds={"x": (0, None)})
    assert (network.sample(5000, seed=0)["x"] > 0).all()
    found = network.logpdf(pd.DataFrame({"x": [-1.0, 0.0, 1.0], "y": 0.0}))
    assert np.isfinite(found).tolist() == [False, True, True]
    assert not np.isnan(network.logpdf_by_node(pd.DataFrame({"x": [-1.0], "y": [0.0]})).to_numpy()).any()


def test_forecasts_are_within_bounds():
    rng = np.random.default_rng(2)
    logs = [0.0]
    while len(logs) < 300:
        logs.append(0.9 * logs[-1] + rng.normal(0, 0.5))
    network = spbn.learn_dynamic(pd.DataFrame({"x": np.exp(logs)}), bounds={"x": (0, None)})
    forecast = network.forecast(pd.DataFrame({"x": np.exp(logs)}), steps=12, n=500, seed=0)
    assert (forecast.of("x") > 0).all()
    assert (network.sample(400, seed=0)["x"] > 0).all()


def test_a_plan_finds_bounds_only_if_it_may():
    from spbn.tables.reader import as_table

    rows = as_table(table())
    assert MarginsPlan("none").fit(rows) is None
    assert MarginsPlan("none", {"price": (0.0, INF)}).fit(rows).columns["price"].bounds == (0.0, INF)
    found = MarginsPlan("auto", finds_bounds=False).fit(rows)
    assert all(column.bounds == FREE for column in found.columns.values())
