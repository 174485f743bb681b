"""Forecasts against closed forms, and against what comes."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import spbn
from time_series import autoregression, mixed, threshold


def companion(dynamic):
    """Constant, matrix and covariance of the linear system that a Gaussian dynamic network is."""
    names, lags = dynamic.nodes, dynamic.lags
    d = len(names)
    columns = [f"{name}[t-{lag}]" for lag in range(1, lags + 1) for name in names]
    inside, past = np.zeros((d, d)), np.zeros((d, d * lags))
    constant, variance = np.zeros(d), np.zeros(d)
    for i, name in enumerate(names):
        cpd = dynamic.transition.cpds[name]
        constant[i], variance[i] = cpd.intercept, cpd.variance
        for parent, weight in zip(cpd.parents, cpd.coefficients, strict=True):
            if parent in names:
                inside[i, names.index(parent)] = weight
            else:
                past[i, columns.index(parent)] = weight
    solve = np.linalg.inv(np.eye(d) - inside)
    matrix = np.zeros((d * lags, d * lags))
    matrix[:d] = solve @ past
    matrix[d:, :-d] = np.eye(d * (lags - 1))
    noise = np.zeros_like(matrix)
    noise[:d, :d] = solve @ np.diag(variance) @ solve.T
    offset = np.zeros(d * lags)
    offset[:d] = solve @ constant
    return offset, matrix, noise


def moments(dynamic, frame, steps):
    """Mean and covariance of all steps together, in closed form: steps · variables."""
    offset, matrix, noise = companion(dynamic)
    d = len(dynamic.nodes)
    state = frame[list(dynamic.nodes)].to_numpy()[::-1][: dynamic.lags].ravel()
    means, covariances = [], []
    spread = np.zeros_like(matrix)
    for _ in range(steps):
        state = offset + matrix @ state
        spread = matrix @ spread @ matrix.T + noise
        means.append(state[:d])
        covariances.append(spread)
    whole = np.zeros((steps * d, steps * d))
    for i in range(steps):
        power = np.eye(len(matrix))
        for j in range(i, steps):
            block = (power @ covariances[i])[:d, :d]  # of step j with step i
            whole[j * d : (j + 1) * d, i * d : (i + 1) * d] = block
            whole[i * d : (i + 1) * d, j * d : (j + 1) * d] = block.T
            power = matrix @ power
    return np.concatenate(means), whole


@pytest.mark.parametrize("lags", [1, 2])
def test_a_gaussian_network_has_the_closed_form(lags):
    """Twenty steps, all their variables together: a noise that is used twice would be seen."""
    frame, steps, n = autoregression(300), 20, 20_000
    dynamic = spbn.learn_dynamic(frame, lags=lags, model="gbn")
    assert ("a", "b") in dynamic.transition.structure.arcs or ("b", "a") in dynamic.transition.structure.arcs
    ahead = dynamic.forecast(frame, steps, n=n, seed=1)
    mean, covariance = moments(dynamic, frame, steps)
    paths = ahead.draws[:, 0].transpose(1, 2, 0).reshape(n, -1)
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((paths.mean(axis=0) - mean) / scale).max() < 5.0 / np.sqrt(n)
    found = np.cov(paths.T)
    errors = np.sqrt((covariance**2 + np.outer(scale, scale) ** 2) / n)
    assert np.abs((found - covariance) / errors).max() < 5.5
    np.testing.assert_allclose(ahead.mean()["a"], paths[:, ::2].mean(axis=0))
    np.testing.assert_allclose(ahead.std()["b"], paths[:, 1::2].std(axis=0))


def test_every_noise_is_drawn_independently():
    frame = autoregression(300)
    dynamic = spbn.learn_dynamic(frame, model="gbn", forbidden_arcs=[("a", "b"), ("b", "a")])
    ahead = dynamic.forecast(frame, 4, n=20_000)
    before = np.concatenate(
        [np.tile(frame.to_numpy()[-1][:, None, None], (1, 20_000, 1)), ahead.draws[:, 0]], axis=2
    )
    noises = []
    for step in range(1, 5):
        rows = {f"{name}[t-1]": before[k, :, step - 1] for k, name in enumerate("ab")}
        for k, name in enumerate("ab"):
            cpd = dynamic.transition.cpds[name]
            mean = cpd.intercept + sum(
                w * rows[p] for p, w in zip(cpd.parents, cpd.coefficients, strict=True)
            )
            noises.append((before[k, :, step] - mean) / np.sqrt(cpd.variance))
    np.testing.assert_allclose(np.corrcoef(noises), np.eye(8), atol=5 / np.sqrt(20_000))


def crps(paths, truths):
    """The mean continuous ranked probability score at every step; both are histories × draws × steps."""
    n = paths.shape[1]
    weights = (2 * np.arange(1, n + 1) - n - 1)[None, :, None]
    spread = (weights * np.sort(paths, axis=1)).sum(axis=1) / (n * (n - 1))
    return (np.abs(truths[:, :, None] - paths[:, None]).mean(axis=(1, 2)) - spread).mean(axis=0)


def test_crps_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    draws, truth = rng.standard_normal((1, 200, 1)), np.array([[[0.7]]])
    pairs = np.abs(draws[0] - draws[0].T).sum() / (200 * 199)
    assert crps(draws, truth)[0] == pytest.approx(np.abs(draws - truth).mean() - 0.5 * pairs)


def nonlinear(rows, *, seed):
    """A threshold autoregression of the second lag, and a variable that follows it in a straight line."""
    noise = np.random.default_rng(seed).standard_normal((2, rows + 50))
    x, y = np.zeros((2, rows + 50))
    for t in range(2, rows + 50):
        x[t] = 0.9 * abs(x[t - 2]) + noise[0, t]
        y[t] = 0.8 * x[t - 1] + 0.3 * noise[1, t]
    return pd.DataFrame({"x": x[50:], "y": y[50:]})


def true_paths(past, steps, n, rng):
    """What follows by the law, and the means that it is drawn around: histories × paths × steps."""
    rows = [np.repeat(past[:, [k]], n, axis=1) for k in (-2, -1)]
    means = []
    for _ in range(steps):
        means.append(0.9 * np.abs(rows[-2]))
        rows.append(means[-1] + rng.standard_normal(means[-1].shape))
    return np.stack(rows[2:], axis=2), np.stack(means, axis=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "types"),
    [
        ({"start": "lg"}, {"x": "ckde", "y": "lg"}),
        ({"model": "blend", "max_parents": 2}, {"x": "blend", "y": "blend"}),
    ],
)
def test_a_nonlinear_system(settings, types):
    """From 5,000 rows: true lags and types, intervals that are honest, and a lower CRPS than a line's.

    An interval from the least to the greatest of 19 paths leaves out one value in ten if the law is right.
    What the true law gives it, by an integral over the step before, has a standard error of 0.3 %.
    """
    lags, steps, histories = 2, 5, 400
    train, test = nonlinear(5_000, seed=1), nonlinear(10 * histories, seed=2)
    # A step must gain about what BIC asks of an arc.
    dynamic = spbn.learn_dynamic(train, lags=lags, epsilon=4.0, **settings)
    structure = dynamic.transition.structure
    assert set(structure.arcs) == {("x[t-2]", "x"), ("x[t-1]", "y")}
    assert structure.types == types
    linear = spbn.learn_dynamic(train, lags=lags, model="gbn")
    past = test.to_numpy()[10 * np.arange(histories)[:, None] + np.arange(lags)]
    rows = pd.DataFrame(past.reshape(-1, 2), columns=["x", "y"])
    rows["start"] = np.repeat(np.arange(histories), lags)
    truths, means = true_paths(past[:, :, 0], steps, 100, np.random.default_rng(0))
    paths = {}
    for name, network in (("own", dynamic), ("linear", linear)):
        many = spbn.DynamicNetwork(network.static, network.transition, lags, series="start")
        paths[name] = many.forecast(rows, steps, n=19, seed=0).draws[0]
    low, high = (bound(paths["own"], axis=1, keepdims=True) for bound in (np.min, np.max))
    covered = (ndtr(high - means) - ndtr(low - means)).mean(axis=(0, 1))
    assert ((covered > 0.88) & (covered < 0.92)).all(), covered
    own, line = (crps(paths[name], truths) for name in ("own", "linear"))
    assert (own[:2] < 0.95 * line[:2]).all(), (own, line)
    # Later, both know little more than the long run.
    assert (own < 1.01 * line).all(), (own, line)


def test_samples_have_the_law_of_the_series():
    """The second moments of a stationary autoregression, drawn from its first row on."""
    frame = autoregression(2000)
    dynamic = spbn.learn_dynamic(frame, model="gbn")
    drawn = dynamic.sample(60, n=400, seed=0)
    offset, matrix, noise = companion(dynamic)
    spread = np.linalg.solve(np.eye(4) - np.kron(matrix, matrix), noise.ravel()).reshape(2, 2)
    np.testing.assert_allclose(np.cov(drawn[["a", "b"]].T), spread, rtol=0.08)
    np.testing.assert_allclose(
        drawn[["a", "b"]].mean(), np.linalg.solve(np.eye(2) - matrix, offset), atol=0.1
    )
    assert drawn["series"].value_counts().unique().tolist() == [60]
    assert dynamic.sample(3, seed=5).equals(dynamic.sample(3, seed=5))
    short = spbn.learn_dynamic(frame, lags=3, model="gbn").sample(2, n=4, seed=0)
    assert len(short) == 8


def test_samples_can_be_scored():
    frame = autoregression(40, series=2).assign(t=np.tile(np.arange(40) * 0.5, 2))
    dynamic = spbn.learn_dynamic(frame, series="machine", time="t", model="gbn")
    drawn = dynamic.sample(10, n=3, seed=0)
    assert list(drawn.columns) == ["machine", "t", "a", "b"]
    assert np.isfinite(dynamic.logpdf(drawn)).all()
    assert drawn["t"].tolist()[:3] == [0.0, 0.5, 1.0]


def test_each_series_is_continued():
    frame = autoregression(30, series=3)
    dynamic = spbn.learn_dynamic(frame, series="machine", model="gbn")
    ahead = dynamic.forecast(frame, 4, n=3000, seed=0)
    assert ahead.series == ("m0", "m1", "m2")
    means = ahead.mean()
    assert means.index.names == ["machine", "step"]
    for name in ahead.series:
        expected, _ = moments(dynamic, frame[frame["machine"] == name], 4)
        np.testing.assert_allclose(means.loc[name].to_numpy().ravel(), expected, atol=0.15)
    with pytest.raises(spbn.errors.ArgumentError, match="say which series"):
        ahead.probability({"a": (0, None)})
    assert 0 <= ahead.probability({"a": (0, None)}, series="m1") <= 1
    paths = ahead.paths
    assert len(paths) == 3 * 3000 * 4
    chosen = paths[(paths["machine"] == "m1") & (paths["step"] == 3)]["b"]
    np.testing.assert_array_equal(chosen, ahead.of("b", series="m1")[:, 2])


def test_what_is_read_off_the_paths():
    frame = mixed(300)
    dynamic = spbn.learn_dynamic(frame)
    ahead = dynamic.forecast(frame, 6, n=500, seed=3)
    x, mode = ahead.of("x"), ahead.of("mode")
    np.testing.assert_allclose(ahead.quantile([0.1, 0.9])["x"][0.9], np.quantile(x, 0.9, axis=0))
    np.testing.assert_allclose(ahead.interval(0.8)["x"]["low"], np.quantile(x, 0.1, axis=0))
    np.testing.assert_allclose(ahead.probabilities("mode")["on"], (mode == 1).mean(axis=0))
    over = (x >= 2.0) & (mode == 1)
    event = {"x": (2.0, None), "mode": "on"}
    assert ahead.probability(event) == over.any(axis=1).mean()
    assert ahead.probability(event, within=2) == over[:, :2].any(axis=1).mean()
    by_function = ahead.probability(lambda rows: (rows["x"] >= 2.0) & (rows["mode"] == "on"))
    assert by_function == ahead.probability(event)
    first = ahead.first(event)
    for path in range(0, 500, 50):
        steps = [step + 1 for step in range(6) if over[path, step]]
        assert first[path] == (steps[0] if steps else np.inf)
    assert dynamic.forecast(frame, 6, n=500, seed=3).paths.equals(ahead.paths)
    assert not dynamic.forecast(frame, 6, n=500, seed=4).paths.equals(ahead.paths)
    assert repr(ahead) == "Forecast of 'mode' and 'x' (6 steps, 500 paths)"


@pytest.mark.parametrize("settings", [{"model": "blend"}, {"margins": "yeo-johnson"}, {"model": "kdebn"}])
def test_one_step_ahead_has_the_density_of_the_transition_network(settings):
    """The ranks of the next value are uniform under its own distribution function."""
    frame = np.exp(threshold(150) / 2)
    dynamic = spbn.learn_dynamic(frame, folds=3, max_parents=1, **settings)
    drawn = dynamic.forecast(frame, 1, n=2000, seed=0)
    transition, past = dynamic.transition, frame.iloc[-1]
    rows = pd.DataFrame({f"{name}[t-1]": np.full(2000, past[name]) for name in frame})
    for name in frame:
        rows[name] = drawn.of(name)[:, 0]
    moved = transition.transformed(
        spbn.tables.reader.as_table(rows, names=[v.name for v in transition.variables])
    )
    for name in frame:
        ranks = np.sort(transition.cpds[name].cdf(moved))
        assert np.abs(ranks - np.arange(1, 2001) / 2000).max() < 1.95 / np.sqrt(2000)


def test_paths_that_grow_beyond_all_bounds():
    x = 3.0 ** np.arange(30) * (1 + 0.01 * np.random.default_rng(0).standard_normal(30))
    dynamic = spbn.learn_dynamic({"x": x}, model="gbn", required_arcs=[(("x", 1), "x")])
    with pytest.warns(UserWarning, match="grow beyond all bounds"):
        ahead = dynamic.forecast({"x": x}, 400, n=10)
    assert np.isfinite(ahead.draws).all()


def test_holes_long_ago_do_not_matter():
    frame = autoregression(60, series=2)
    dynamic = spbn.learn_dynamic(frame, lags=2, series="machine", model="gbn")
    holes = frame.copy()
    holes.loc[[5, 57, 80], "a"] = np.nan
    found = dynamic.forecast(holes, 3, n=20, seed=1)
    np.testing.assert_array_equal(found.draws, dynamic.forecast(frame, 3, n=20, seed=1).draws)
    assert "nan" not in found._repr_html_()
    holes.loc[58, "b"] = np.nan
    with pytest.raises(
        spbn.errors.DataError, match="column 'b' has a missing value in row 59, counted from 1"
    ):
        dynamic.forecast(holes, 3)


def test_a_forecast_without_numbers():
    modes = mixed(100)[["mode"]]
    ahead = spbn.learn_dynamic(modes, folds=3).forecast(modes, 4, n=50)
    assert ahead.quantile([0.1, 0.9]).shape == ahead.interval().shape == (4, 0)
    assert ahead.mean().shape == (4, 0)
    assert ahead.probabilities("mode").sum(axis=1).tolist() == [1.0] * 4


def test_variables_may_be_called_as_columns_of_paths_are():
    frame = autoregression(60, names=("step", "path"), series=2).rename(columns={"machine": "step_"})
    dynamic = spbn.learn_dynamic(frame, series="step_", model="gbn")
    ahead = dynamic.forecast(frame, 3, n=5)
    assert list(ahead.paths) == ["step_", "path_", "step__", "step", "path"]
    np.testing.assert_array_equal(ahead.paths["path"], ahead.draws[1].reshape(-1))
    other = spbn.learn_dynamic(frame.set_axis(["step", "a", "b"], axis=1), series="step", model="gbn")
    assert other.forecast(frame.set_axis(["step", "a", "b"], axis=1), 3).mean().index.names == [
        "step",
        "step_",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps must be a whole number, 1 or more"),
        ({"n": 1.5}, "n must be a whole number, 1 or more"),
        ({"history": autoregression(1)}, "the history must end with 2 rows without a gap.*Got 1"),
        ({"history": {"a": [1.0, 2.0]}}, "lacks column 'b'"),
        ({"history": {"a": [1.0, np.nan], "b": [1.0, 2.0]}}, "missing value"),
    ],
)
def test_bad_forecasts(arguments, message):
    frame = autoregression(60)
    dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn")
    with pytest.raises(spbn.SpbnError, match=message):
        dynamic.forecast(**({"history": frame, "steps": 3} | arguments))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: f.probability({"z": (0, 1)}), "no variable 'z'"),
        (lambda f: f.probability({"a": "high"}), "takes a number or an interval"),
        (lambda f: f.probability({}), "an event must be a dict"),
        (lambda f: f.probability(lambda rows: [True]), "true or false for each of 300 rows"),
        (lambda f: f.probability(lambda rows: rows["a"].where(rows["a"] > 0)), "true or false for each"),
        (lambda f: f.probability({"a": (0, 1)}, within=0), "within must be"),
        (lambda f: f.probability({"a": (0, 1)}, within=4), "has 3 steps only"),
        (lambda f: f.quantile(1.5), "between 0 and 1"),
        (lambda f: f.interval(0.0), "between 0 and 1"),
        (lambda f: f.probabilities("a"), "is continuous"),
        (lambda f: f.plot(["z"]), "variables must name variables of the forecast"),
        (lambda f: f.of("a", series="m"), "say which series"),
    ],
)
def test_bad_questions(ask, message):
    frame = autoregression(60)
    ahead = spbn.learn_dynamic(frame, model="gbn").forecast(frame, 3, n=100)
    with pytest.raises(spbn.errors.ArgumentError, match=message):
        ask(ahead)
