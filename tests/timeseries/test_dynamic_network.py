"""Densities of rows given those before them, against tables that pandas shifts and against statsmodels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import ks_2samp, multivariate_normal

import spbn
from spbn import io
from spbn.structure import Structure
from spbn.timeseries.network import DynamicNetwork
from time_series import autoregression, mixed, threshold


def shifted(frame, lags):
    """The lagged table, by pandas."""
    parts = [frame.shift(lag).add_suffix(f"[t-{lag}]" if lag else "") for lag in range(lags + 1)]
    return pd.concat(parts, axis=1).dropna()


CASES = [
    (lambda: autoregression(120), {"model": "gbn"}),
    (lambda: threshold(150), {"model": "spbn"}),
    (lambda: threshold(100), {"model": "blend", "margins": "yeo-johnson", "max_parents": 1}),
    (lambda: mixed(200), {"model": "spbn"}),
]


@pytest.mark.parametrize("lags", [1, 2])
@pytest.mark.parametrize(("make", "settings"), CASES)
def test_densities_are_those_of_the_two_networks(make, settings, lags):
    frame = make()
    dynamic = spbn.learn_dynamic(frame, lags=lags, folds=4, **settings)
    found = dynamic.logpdf_by_node(frame)
    rows = shifted(frame, lags)
    expected = dynamic.transition.logpdf_by_node(rows)
    np.testing.assert_allclose(found.iloc[lags:], expected, rtol=0, atol=1e-12)
    assert list(found.columns) == list(frame.columns)
    assert found.index.equals(frame.index)
    # The first rows have the joint density that the static network gives them.
    first = shifted(frame, lags - 1).iloc[[0]]
    assert found.iloc[:lags].to_numpy().sum() == pytest.approx(
        dynamic.static.logpdf(first).iloc[0], abs=1e-10
    )
    np.testing.assert_allclose(dynamic.logpdf(frame), found.sum(axis=1), atol=1e-12)
    assert dynamic.loglik(frame) == pytest.approx(found.to_numpy().sum())


def test_the_first_rows_depend_on_nothing_later():
    frame = autoregression(60)
    dynamic = spbn.learn_dynamic(frame, lags=3, model="gbn")
    whole = dynamic.logpdf_by_node(frame)
    for length in (1, 2, 3, 4):
        pd.testing.assert_frame_equal(dynamic.logpdf_by_node(frame.iloc[:length]), whole.iloc[:length])


def test_one_series_or_twenty_score_the_same():
    frame = autoregression(30, series=20)
    dynamic = spbn.learn_dynamic(frame, lags=2, series="machine", model="gbn")
    apart = pd.concat([dynamic.logpdf_by_node(part) for _, part in frame.groupby("machine")])
    together = dynamic.logpdf_by_node(frame)
    pd.testing.assert_frame_equal(apart.loc[frame.index], together, rtol=0, atol=1e-12)
    order = np.random.default_rng(0).permutation(20).repeat(30).argsort(kind="stable")
    shuffled = frame.iloc[order]  # series in another order; rows of a series in theirs
    pd.testing.assert_frame_equal(dynamic.logpdf_by_node(shuffled).loc[frame.index], together)
    interleaved = frame.sort_index(key=lambda index: index % 30, kind="stable")
    pd.testing.assert_frame_equal(dynamic.logpdf_by_node(interleaved).loc[frame.index], together)
    alike = spbn.learn_dynamic(interleaved, lags=2, series="machine", model="gbn")
    assert alike.transition.structure == dynamic.transition.structure
    assert alike.transition.search.score == pytest.approx(dynamic.transition.search.score, abs=1e-8)


def test_rows_after_a_gap_begin_anew():
    frame = autoregression(100).assign(t=lambda f: np.arange(100.0) + 5.0 * (f.index >= 40))
    dynamic = spbn.learn_dynamic(frame, time="t", model="gbn")
    assert dynamic.transition.record.rows == 98
    assert dynamic.step == 1.0
    found = dynamic.logpdf(frame)
    np.testing.assert_allclose(found[40], dynamic.static.logpdf(frame.iloc[[40]]).iloc[0])
    np.testing.assert_allclose(found[:40], dynamic.logpdf(frame.iloc[:40]))
    np.testing.assert_allclose(found[40:], dynamic.logpdf(frame.iloc[40:]))
    with pytest.raises(spbn.errors.DataError, match="lacks the column 't'"):
        dynamic.logpdf(frame.drop(columns="t"))


def complete(names, lags):
    """The structure in which every variable depends on the past and on the variables before it."""
    past = [f"{name}[t-{lag}]" for lag in range(1, lags + 1) for name in names]
    arcs = [(source, name) for name in names for source in past]
    arcs += [(a, b) for i, b in enumerate(names) for a in names[:i]]
    return Structure(names, arcs, inputs=past)


def with_likelihood_variances(network):
    """The same network with the mean square of the residuals: LG nodes divide by N - parents - 1."""
    rows = network.record.rows
    cpds = {
        node: replace(cpd, variance=cpd.variance * (rows - len(cpd.parents) - 1) / rows)
        for node, cpd in network.cpds.items()
    }
    return spbn.BayesianNetwork(network.structure, cpds)


@pytest.mark.slow
@pytest.mark.parametrize("lags", [1, 3])
def test_a_gaussian_network_is_the_vector_autoregression(lags):
    api = pytest.importorskip("statsmodels.tsa.api")
    frame = autoregression(200)
    fitted = api.VAR(frame).fit(lags, trend="c")
    transition = spbn.BayesianNetwork.fit(complete(["a", "b"], lags), shifted(frame, lags))
    static = spbn.learn_dynamic(frame, lags=lags, model="gbn").static
    dynamic = DynamicNetwork(static, with_likelihood_variances(transition), lags)
    residuals = fitted.resid.to_numpy()
    covariance = residuals.T @ residuals / len(residuals)
    expected = multivariate_normal([0, 0], covariance).logpdf(residuals)
    np.testing.assert_allclose(dynamic.logpdf(frame)[lags:], expected, rtol=0, atol=1e-9)
    assert dynamic.logpdf(frame)[lags:].sum() == pytest.approx(fitted.llf, abs=1e-7)


@pytest.mark.slow
def test_files(tmp_path):
    for make, settings in CASES:
        frame = make()
        dynamic = spbn.learn_dynamic(frame, lags=2, folds=3, **settings)
        dynamic.save(tmp_path / "m.spbn")
        loaded = DynamicNetwork.load(tmp_path / "m.spbn")
        assert loaded == dynamic
        assert loaded.transition.record == dynamic.transition.record
        np.testing.assert_array_equal(loaded.logpdf(frame), dynamic.logpdf(frame))
    frame = autoregression(40, series=2).assign(t=np.tile(np.arange(40) * 2.0, 2))
    dynamic = spbn.learn_dynamic(frame, series="machine", time="t", model="gbn")
    dynamic.save(tmp_path / "m.spbn")
    loaded = DynamicNetwork.load(tmp_path / "m.spbn")
    assert (loaded.lags, loaded.series, loaded.time, loaded.step) == (1, "machine", "t", 2.0)
    with pytest.raises(spbn.errors.ModelFileError, match=r"holds a dynamic network.*DynamicNetwork\.load"):
        spbn.BayesianNetwork.load(tmp_path / "m.spbn")
    spbn.learn(autoregression(40), model="gbn").save(tmp_path / "s.spbn")
    with pytest.raises(spbn.errors.ModelFileError, match=r"not dynamic.*BayesianNetwork\.load"):
        DynamicNetwork.load(tmp_path / "s.spbn")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lags": 0}, "number of lags makes no sense"),
        ({"lags": 2}, "its dynamic network makes no sense"),
        ({"lags": True}, "number of lags makes no sense"),
        ({"series": 3}, "'series' must be the name of a column"),
        ({"series": "a"}, "series and time must be columns that are not nodes"),
        ({"step": -1.0}, "step of time must be a number greater than 0"),
        ({"step": "1"}, "step of time must be a number greater than 0"),
        ({"static": None}, "must have a static network"),
        ({"transition": []}, "must have a transition network"),
    ],
)
def test_damaged_files(tmp_path, monkeypatch, change, message):
    dynamic = spbn.learn_dynamic(autoregression(40), model="gbn")
    original = io.json.dumps

    def dumps(document, **options):
        return original({**document, "dynamic": {**document["dynamic"], **change}}, **options)

    monkeypatch.setattr(io.json, "dumps", dumps)
    dynamic.save(tmp_path / "m.spbn")
    with pytest.raises(spbn.errors.ModelFileError, match=message):
        DynamicNetwork.load(tmp_path / "m.spbn")


def test_networks_that_do_not_belong_together():
    frame = autoregression(60)
    dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn")
    with pytest.raises(spbn.errors.GraphError, match="inputs of the transition network must be"):
        DynamicNetwork(dynamic.static, dynamic.transition, 1)
    with pytest.raises(spbn.errors.GraphError, match="nodes of the static network must be"):
        DynamicNetwork(spbn.learn(frame, model="gbn"), dynamic.transition, 2)
    rows = shifted(frame, 1)
    wrong = spbn.BayesianNetwork.fit(Structure(rows.columns, [("a", "a[t-1]")]), rows)
    with pytest.raises(spbn.errors.GraphError, match=r"arc into the past: a → a\[t-1\]"):
        DynamicNetwork(wrong, dynamic.transition, 2)
    with pytest.raises(spbn.errors.ArgumentError, match="lags must be a whole number"):
        DynamicNetwork(dynamic.static, dynamic.transition, 0)


def test_other_frames_and_lagged_rows():
    frame = mixed(60)
    dynamic = spbn.learn_dynamic(frame, lags=2, model="gbn")
    np.testing.assert_array_equal(dynamic.logpdf(pl.from_pandas(frame)), dynamic.logpdf(frame))
    lagged = dynamic.lagged(frame.set_axis(range(100, 160)))
    assert lagged.index.tolist() == list(range(102, 160))
    expected = shifted(frame, 2)
    assert lagged["mode[t-2]"].tolist() == expected["mode[t-2]"].tolist()
    np.testing.assert_array_equal(lagged["x[t-1]"], expected["x[t-1]"])
    assert repr(dynamic) == "DynamicNetwork of 'mode' and 'x' (2 lags)"


@pytest.mark.slow
def test_queries_of_a_transition_network():
    """What is likely now, given the row before: exact, as the network is Gaussian."""
    frame = autoregression(300)
    transition = spbn.learn_dynamic(frame, model="gbn").transition
    known = {"a[t-1]": 2.0, "b[t-1]": 1.0}
    posterior = transition.query(known)
    drawn = transition.sample(40_000, given={k: np.full(40_000, v) for k, v in known.items()}, seed=0)
    assert posterior.method == "exact"
    for name in ("a", "b"):
        assert posterior.mean()[name] == pytest.approx(drawn[name].mean(), abs=0.03)
        assert posterior.std()[name] == pytest.approx(drawn[name].std(), rel=0.03)
    # The density of what is known of the present, given the past.
    row = pd.DataFrame([{"a": 1.0, "b": 0.5, **known}])
    assert transition.query({**known, "a": 1.0, "b": 0.5}).log_evidence == pytest.approx(
        transition.logpdf(row)[0]
    )
    holes = row.assign(b=np.nan)
    expected = transition.query({**known, "a": 1.0}).log_evidence
    assert transition.logpdf(holes, missing="integrate")[0] == pytest.approx(expected)
    assert posterior.plot() is not None
    with pytest.raises(
        spbn.errors.ArgumentError, match=r"evidence must have their values. It lacks 'b\[t-1\]'"
    ):
        transition.query({"a[t-1]": 2.0})
    with pytest.raises(spbn.errors.DataError, match=r"column 'a\[t-1\]' is an input"):
        transition.logpdf(row.assign(**{"a[t-1]": np.nan}), missing="integrate")
    with pytest.raises(spbn.errors.ArgumentError, match="the network has the inputs"):
        transition.sample(3)
    with pytest.raises(spbn.errors.ArgumentError, match="one row for each of the 3 samples"):
        transition.sample(3, given={k: [v] for k, v in known.items()})


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"model": "kdebn"}, {"model": "blend", "margins": "yeo-johnson"}])
def test_a_compact_network_says_the_same_without_the_rows(settings, tmp_path):
    frame = threshold(1_000).assign(s=np.repeat(["m", "n"], 500), t=np.tile(np.arange(500) * 2.0, 2))
    structure = {
        "static": Structure(["x", "y", "x[t-1]", "y[t-1]"], [("x[t-1]", "y")]),
        "transition": Structure("xy", [("x[t-2]", "x"), ("x[t-1]", "y")], inputs=["x[t-1]", "x[t-2]"]),
    }
    kind = "ckde" if settings["model"] == "kdebn" else "blend"
    margins = settings.get("margins", "none")
    parts = {}
    for name, graph in structure.items():
        typed = Structure(graph.nodes, graph.arcs, kind, inputs=graph.inputs)
        rows = pd.concat([shifted(part[["x", "y"]], 2) for _, part in frame.groupby("s")])
        parts[name] = spbn.BayesianNetwork.fit(typed, rows, margins=margins)
    dynamic = DynamicNetwork(parts["static"], parts["transition"], 2, series="s", time="t", step=2.0)
    small = dynamic.compact()
    truth = dynamic.logpdf(frame)
    assert (np.abs(small.logpdf(frame) - truth) <= 4e-6 * np.maximum(1.0, np.abs(truth))).all()
    for network in (small.static, small.transition):
        assert all(cpd.kept_rows is None for cpd in network.cpds.values())
    assert (small.lags, small.series, small.time, small.step) == (2, "s", "t", 2.0)
    small.save(tmp_path / "small.spbn")
    assert DynamicNetwork.load(tmp_path / "small.spbn") == small
    # Forecasts have the same law.
    history = frame[frame["s"] == "m"]
    found, exact = (network.forecast(history, 3, n=4_000, seed=1).of("x") for network in (small, dynamic))
    for step in range(3):
        assert ks_2samp(found[:, step], exact[:, step]).pvalue > 1e-4
    # And rows have the same verdicts.
    other = threshold(300, seed=1).assign(s="m", t=np.arange(300) * 2.0)
    shares = [spbn.Monitor(network, other).update(frame[:100])["p_value"] for network in (small, dynamic)]
    np.testing.assert_allclose(*shares, atol=1e-4)


def test_what_cannot_be_compact():
    frame = autoregression(200)
    arcs, past = [("a[t-1]", "a"), ("b[t-1]", "a"), ("b", "a")], ["a[t-1]", "b[t-1]"]
    transition = spbn.BayesianNetwork.fit(Structure("ab", arcs, "ckde", inputs=past), shifted(frame, 1))
    static = spbn.BayesianNetwork.fit(Structure("ab", [], "ckde"), frame)
    dynamic = DynamicNetwork(static, transition, 1)
    with pytest.raises(spbn.errors.FitError, match="some nodes cannot be made compact"):
        dynamic.compact()
    small = dynamic.compact(0.01, others="keep")
    assert small.transition.cpds["a"].kept_rows is not None
    assert small.static == static.compact(0.01)
    assert small.transition.cpds["b"] == dynamic.transition.compact(0.01, others="keep").cpds["b"]
    with pytest.raises(spbn.errors.ArgumentError, match="others must be"):
        dynamic.compact(others="drop")
