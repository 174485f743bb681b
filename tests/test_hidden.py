"""Networks with a hidden class: every answer is the sum over it of those of a network that sees it."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax
from scipy.stats import kstest

import spbn
from spbn.errors import ArgumentError, GraphError, ModelFileError

LEVELS = ("1", "2", "3")


def populations(n: int, seed: int = 0, *, labels: bool = True) -> pd.DataFrame:
    """Draw rows of three populations, with a curve, a category, and skew."""
    rng = np.random.default_rng(seed)
    z = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.normal([0.0, 3.0, -2.0], [1.0, 0.5, 0.8], (n, 3))[np.arange(n), z]
    y = np.select([z == 0, z == 1], [x + rng.normal(0, 0.5, n), -x], np.sin(2 * x)) + rng.normal(0, 0.3, n)
    v = np.exp(0.5 * y + rng.normal(0, 0.3, n))
    kind = np.where(rng.random(n) < np.array([0.2, 0.5, 0.9])[z], "a", "b")
    frame = pd.DataFrame({"x": x, "y": y, "v": v, "kind": kind})
    return frame.assign(**{"class": np.array(LEVELS)[z]}) if labels else frame


def hidden_and_seen(
    types: tuple[str, str, str] = ("lg", "curve", "blend"), margins: str = "none", rows: int = 300
) -> tuple[spbn.BayesianNetwork, spbn.BayesianNetwork]:
    """Return a network with a hidden class, and the same with the class as a column."""
    data = populations(rows)
    arcs = [("class", "x"), ("class", "y"), ("class", "kind"), ("x", "y"), ("y", "v"), ("kind", "v")]
    named = dict(zip(("x", "y", "v"), types, strict=True))
    structure = spbn.Structure(data.columns, arcs, {**named, "kind": "discrete", "class": "discrete"})
    seen = spbn.BayesianNetwork.fit(structure, data, margins=margins)
    return (
        spbn.BayesianNetwork(structure, seen.cpds, margins=seen.margins, record=seen.record, hidden="class"),
        seen,
    )


def joint(seen: spbn.BayesianNetwork, data: pd.DataFrame) -> np.ndarray:
    """Return the log-density of rows with every class: rows × classes."""
    return np.stack([seen.logpdf(data.assign(**{"class": level})) for level in LEVELS], axis=1)


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("types", [("lg", "lg", "lg"), ("lg", "curve", "blend"), ("ckde", "ckde", "ckde")])
def test_the_density_is_the_sum_over_classes(types, margins):
    network, seen = hidden_and_seen(types, margins)
    rows = populations(50, 1, labels=False)
    by_class = joint(seen, rows)
    assert np.allclose(network.logpdf(rows), logsumexp(by_class, axis=1), rtol=1e-12, atol=1e-12)
    assert np.allclose(network.classes(rows)[list(LEVELS)], softmax(by_class, axis=1), atol=1e-12)
    assert [variable.name for variable in network.variables] == list(rows.columns)


def test_contributions_are_means_over_classes_and_the_class_costs_what_it_tells():
    network, seen = hidden_and_seen()
    rows = populations(40, 1, labels=False)
    weights = softmax(joint(seen, rows), axis=1)
    by_node = network.logpdf_by_node(rows)
    expected = sum(
        weights[:, [k]] * seen.logpdf_by_node(rows.assign(**{"class": level}))[list(rows.columns)].to_numpy()
        for k, level in enumerate(LEVELS)
    )
    prior = np.log(seen.cpds["class"].probabilities[0])
    cost = -np.sum(weights * (np.log(np.maximum(weights, 1e-300)) - prior), axis=1)
    assert np.allclose(by_node[list(rows.columns)], expected, atol=1e-10)
    assert np.allclose(by_node["class"], cost, atol=1e-9)
    assert np.allclose(by_node.sum(axis=1), network.logpdf(rows), atol=1e-12)


def test_an_impossible_row_has_no_density_and_nothing_is_nan():
    network, _ = hidden_and_seen(("lg", "lg", "lg"))
    cpds = dict(network.cpds)
    impossible = spbn.Structure(["kind", "class"], [("class", "kind")], "discrete")
    data = pd.DataFrame({"kind": ["a", "a", "b", "b"], "class": ["1", "1", "2", "2"]})
    certain = spbn.BayesianNetwork.fit(impossible, data, smoothing=0.0)
    hidden = spbn.BayesianNetwork(impossible, certain.cpds, hidden="class")
    found = hidden.logpdf_by_node({"kind": ["a", "b"]})
    assert np.allclose(found.sum(axis=1), np.log(0.5))
    assert not found.isna().any(axis=None)
    assert cpds


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("node_type", ["lg", "curve", "blend", "ckde"])
def test_the_density_sums_and_integrates_to_one(node_type, margins):
    arcs = [("class", "x"), ("class", "kind")]
    types = {"x": node_type, "kind": "discrete", "class": "discrete"}
    seen = spbn.BayesianNetwork.fit(
        spbn.Structure(list(types), arcs, types), populations(300), margins=margins
    )
    network = spbn.BayesianNetwork(seen.structure, seen.cpds, margins=seen.margins, hidden="class")
    t = np.linspace(-25.0, 25.0, 200_001)  # tails are those of powers
    values, slopes = np.sinh(t), np.cosh(t)
    total = sum(np.exp(network.logpdf({"x": values, "kind": np.full(len(t), kind)})) for kind in ("a", "b"))
    assert np.trapezoid(total * slopes, t) == pytest.approx(1.0, abs=1e-6)
    drawn = network.sample(100, seed=0)
    assert list(drawn.columns) == ["x", "kind"]


def test_pit_values_of_drawn_rows_are_uniform_and_independent():
    network, _ = hidden_and_seen(margins="yeo-johnson")
    rows = network.sample(3000, seed=1)
    columns = spbn.tables.as_table(rows, variables=network.variables).columns
    uniforms = np.random.default_rng(2).random((5, 3000))
    logpdf, pit = network.logpdf_and_cdf_of_columns(columns, uniforms)
    assert np.allclose(logpdf.sum(axis=0), network.logpdf(rows), atol=1e-9)
    assert min(kstest(values, "uniform").pvalue for values in pit) > 1e-3
    correlations = np.corrcoef(pit)[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < 0.07


@pytest.mark.parametrize("types", [("lg", "lg", "lg"), ("lg", "curve", "blend")])
def test_queries_agree_with_brute_force(types):
    network, seen = hidden_and_seen(types)
    drawn = seen.sample(400_000, seed=3)
    near = drawn[(drawn["v"].between(0.95, 1.05)) & (drawn["kind"] == "a")]
    answer = network.query({"v": 1.0, "kind": "a"}, n=4000)
    assert answer.probabilities("class").to_numpy() == pytest.approx(
        near["class"].astype(str).value_counts(normalize=True).reindex(LEVELS).to_numpy(), abs=0.03
    )
    assert answer.mean()["x"] == pytest.approx(near["x"].mean(), abs=0.12)
    interval = network.query({"y": (0.5, 1.0)}, n=4000)
    within = drawn[drawn["y"].between(0.5, 1.0)]
    assert interval.probability({"class": "2"}) == pytest.approx((within["class"] == "2").mean(), abs=0.03)
    assert np.exp(interval.log_evidence) == pytest.approx(len(within) / len(drawn), rel=0.05)


def test_a_query_about_a_complete_row_is_exact_whatever_the_types():
    network, seen = hidden_and_seen()
    row = populations(1, 9, labels=False)
    answer = network.query(row.iloc[0].to_dict(), n=100)
    assert answer.method == "exact"
    assert answer.log_evidence == pytest.approx(network.logpdf(row)[0], abs=1e-12)
    assert answer.probabilities("class").to_numpy() == pytest.approx(softmax(joint(seen, row)[0]), abs=1e-12)


def test_a_query_given_the_class_is_that_of_the_seen_network():
    network, seen = hidden_and_seen(("lg", "lg", "lg"))
    known = {"class": "2", "y": -2.0}
    first, second = network.query(known), seen.query(known)
    assert first.mean().to_numpy() == pytest.approx(second.mean().to_numpy(), abs=1e-12)


@pytest.mark.parametrize("types", [("lg", "lg", "lg"), ("lg", "curve", "blend")])
def test_rows_with_holes_are_integrated_predicted_and_filled(types):
    network, seen = hidden_and_seen(types)
    rows = populations(60, 4, labels=False)
    holed = rows.copy()
    holed.loc[::2, "v"] = np.nan  # below all others: the density is exact
    complete = spbn.BayesianNetwork(
        seen.structure, seen.cpds, hidden="class"
    )  # without margins, v drops out of the product
    by_class = np.stack(
        [
            seen.logpdf_by_node(rows.assign(**{"class": level}))[["x", "y", "kind", "class"]].sum(axis=1)
            for level in LEVELS
        ],
        axis=1,
    )
    expected = logsumexp(by_class, axis=1)
    found = complete.logpdf(holed, missing="integrate")
    assert np.allclose(found[::2], expected[::2], atol=1e-10)
    assert np.allclose(found[1::2], network.logpdf(rows)[1::2], atol=1e-12)
    assert np.allclose(network.classes(holed)[list(LEVELS)][::2], softmax(by_class, axis=1)[::2], atol=1e-10)
    guessed = network.predict(rows, ["class"])["class"].astype(str)
    assert (guessed == network.classes(rows)["class"].astype(str)).all()
    holed.loc[1::2, "y"] = np.nan
    filled = network.impute(holed, seed=0)
    assert not filled.isna().any(axis=None)
    assert list(filled.columns) == list(rows.columns)
    assert network.predict(holed, ["y"]).notna().all(axis=None)


def test_classes_of_rows_with_holes_are_those_of_many_draws():
    network, seen = hidden_and_seen()
    row = pd.DataFrame({"x": [np.nan], "y": [0.2], "v": [1.3], "kind": ["b"]})
    drawn = seen.sample(400_000, seed=5)
    near = drawn[drawn["y"].between(0.15, 0.25) & drawn["v"].between(1.2, 1.4) & (drawn["kind"] == "b")]
    expected = near["class"].astype(str).value_counts(normalize=True).reindex(LEVELS, fill_value=0.0)
    assert network.classes(row)[list(LEVELS)].to_numpy()[0] == pytest.approx(expected.to_numpy(), abs=0.06)


def test_a_file_holds_the_class(tmp_path):
    network, seen = hidden_and_seen(margins="auto")
    network.save(tmp_path / "model.spbn")
    again = spbn.BayesianNetwork.load(tmp_path / "model.spbn")
    assert again == network
    assert again.hidden == "class"
    assert again != seen
    rows = populations(20, 6, labels=False)
    assert np.array_equal(again.logpdf(rows), network.logpdf(rows))
    seen.save(tmp_path / "seen.spbn")
    assert spbn.BayesianNetwork.load(tmp_path / "seen.spbn").hidden is None


def test_a_file_with_a_senseless_class_is_refused(tmp_path):
    import json
    import zipfile

    network, _ = hidden_and_seen(("lg", "lg", "lg"))
    network.save(tmp_path / "model.spbn")
    with zipfile.ZipFile(tmp_path / "model.spbn") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for wrong in (3, "x", "unknown", ["class"]):
        document = {**json.loads(members["network.json"]), "hidden": wrong}
        with zipfile.ZipFile(tmp_path / "wrong.spbn", "w") as archive:
            for name, content in {**members, "network.json": json.dumps(document)}.items():
                archive.writestr(name, content)
        with pytest.raises(ModelFileError):
            spbn.BayesianNetwork.load(tmp_path / "wrong.spbn")


def test_a_compact_network_keeps_the_class():
    network, _ = hidden_and_seen(("blend", "blend", "blend"), rows=400)
    small = network.compact(1e-5, others="keep")
    rows = populations(30, 7, labels=False)
    assert small.hidden == "class"
    assert np.allclose(small.logpdf(rows), network.logpdf(rows), atol=1e-3)


def test_only_the_last_discrete_node_without_parents_can_be_hidden():
    _, seen = hidden_and_seen(("lg", "lg", "lg"))
    for wrong in ("x", "kind", "unknown"):
        with pytest.raises(GraphError, match="hidden node"):
            spbn.BayesianNetwork(seen.structure, seen.cpds, hidden=wrong)
    with pytest.raises(ArgumentError, match="no hidden class"):
        seen.classes(populations(5))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(1, 3),
    st.integers(0, 10_000),
    st.lists(st.floats(-5, 5), min_size=3, max_size=3),
)
def test_small_networks_of_lines_agree_with_enumeration(number, columns, seed, point):
    rng = np.random.default_rng(seed)
    names = [f"x{k}" for k in range(columns)]
    levels = tuple(str(k + 1) for k in range(number))
    z = np.concatenate([np.arange(number)] * 6)
    data = pd.DataFrame(
        rng.normal(size=(len(z), columns)) + z[:, None] * rng.normal(size=columns), columns=names
    )
    data["class"] = np.array(levels)[z]
    pairs = [pair for pair in itertools.combinations([*names], 2) if rng.random() < 0.5]
    arcs = [*pairs, *(("class", name) for name in names if rng.random() < 0.7)]
    types = dict.fromkeys(names, "lg") | {"class": "discrete"}
    seen = spbn.BayesianNetwork.fit(spbn.Structure([*names, "class"], arcs, types), data)
    network = spbn.BayesianNetwork(seen.structure, seen.cpds, hidden="class")
    row = pd.DataFrame([point[:columns]], columns=names)
    by_class = [seen.logpdf(row.assign(**{"class": level}))[0] for level in levels]
    assert network.logpdf(row)[0] == pytest.approx(logsumexp(by_class), rel=1e-12, abs=1e-12)
    assert network.query(row.iloc[0].to_dict(), n=10).probabilities("class").to_numpy() == pytest.approx(
        softmax(by_class), abs=1e-9
    )
