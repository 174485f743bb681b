"""Learning a hidden class: the populations are found, and nothing else is."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import combine_pvalues, multivariate_normal
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import spbn
from spbn.errors import ArgumentError, DataError
from spbn.learning import hidden
from spbn.nodes.families import FamilyScorer
from spbn.report.explorer import joint_sample
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.scores.by_class import ByClass
from spbn.tables.reader import as_table

WEIGHTS = np.array([0.5, 0.3, 0.2])


def linear_network(rng: np.random.Generator, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the covariance and the slopes of a random linear network: children × parents."""
    order, slopes = rng.permutation(columns), np.zeros((columns, columns))
    for place, child in enumerate(order):
        for parent in order[:place]:
            if rng.random() < 0.5:
                slopes[child, parent] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5)
    root = np.linalg.inv(np.eye(columns) - slopes)
    noise = np.diag(rng.uniform(0.3, 1.0, columns) ** 2)
    return root @ rng.normal(0.0, 1.0, columns), root @ noise @ root.T, slopes


def least_partial_correlation(covariance: np.ndarray, i: int, j: int) -> float:
    """Return the least of all partial correlations: near 0, paths cancel, and no rows show the arc."""
    rest = [k for k in range(len(covariance)) if k not in (i, j)]
    found = []
    for given in itertools.chain(*(itertools.combinations(rest, size) for size in range(len(rest) + 1))):
        chosen = np.ix_([i, j, *given], [i, j, *given])
        precision = np.linalg.inv(covariance[chosen])
        found.append(abs(precision[0, 1]) / np.sqrt(precision[0, 0] * precision[1, 1]))
    return min(found)


def three_networks(n: int, seed: int, columns: int = 5) -> tuple[pd.DataFrame, np.ndarray, float]:
    """Draw rows of three networks: the rows, their networks, and how well the true posterior tells them."""
    rng = np.random.default_rng(seed)
    networks = [linear_network(rng, columns)[:2] for _ in WEIGHTS]
    z = rng.choice(3, n, p=WEIGHTS)
    rows = np.array([rng.multivariate_normal(*networks[k]) for k in z])
    joint = np.stack([multivariate_normal(*each).logpdf(rows) for each in networks], axis=1) + np.log(WEIGHTS)
    names = list("abcdefgh")[:columns]
    return pd.DataFrame(rows, columns=names), z, adjusted_rand_score(z, joint.argmax(axis=1))


@pytest.fixture(scope="module")
def learned() -> tuple[spbn.BayesianNetwork, pd.DataFrame, np.ndarray]:
    data, z, _ = three_networks(600, 3)
    return spbn.learn(data, model="gbn", hidden=3), data, z


@pytest.mark.parametrize(("number", "seed"), [(3, 0), (3, 3), ("auto", 0), ("auto", 2), ("auto", 3)])
def test_three_networks_are_found(number, seed):
    data, z, best = three_networks(3000, seed)
    network = spbn.learn(data, model="auto", margins="auto", hidden=number)
    found = network.classes(data)
    assert network.hidden == "class"
    assert len(network.class_variable.levels) == 3
    assert adjusted_rand_score(z, found["class"]) > best - 0.02
    sizes = network.cpds["class"].probabilities[0]
    assert (np.diff(sizes) <= 0.0).all()
    assert sizes == pytest.approx(np.sort(np.bincount(z) / len(z))[::-1], abs=0.03)
    assert network.record.classes[str(3)] == max(network.record.classes.values())
    joined, rng = {frozenset(arc) for arc in network.structure.arcs}, np.random.default_rng(seed)
    for _ in WEIGHTS:
        _, covariance, slopes = linear_network(rng, 5)
        arcs = [pair for pair in np.argwhere(slopes) if least_partial_correlation(covariance, *pair) > 0.05]
        assert len(arcs) >= 2
        assert {frozenset(data.columns[pair]) for pair in arcs} <= joined


@pytest.mark.slow
def test_one_network_has_one_class():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        mean, covariance, _ = linear_network(rng, 5)
        data = pd.DataFrame(rng.multivariate_normal(mean, covariance, 500), columns=list("abcde"))
        found.append(spbn.learn(data, model="auto", margins="auto", hidden="auto").hidden)
    assert found.count(None) >= 9


@pytest.mark.parametrize("options", [{"model": "auto"}, {"model": "gbn"}, {"model": "spbn", "seed": 3}])
def test_one_class_is_the_network_without(options):
    data = spbn.datasets.synthetic(200, seed=1)
    assert spbn.learn(data, hidden=1, **options) == spbn.learn(data, **options)


@pytest.mark.parametrize("model", ["auto", "gbn", "spbn", "blend", "kdebn"])
def test_the_same_seed_gives_the_same_classes(model):
    data, _, _ = three_networks(200, 5, columns=3)
    first, second = (spbn.learn(data, model=model, hidden=2, seed=4) for _ in range(2))
    assert first == second
    assert first.classes(data).equals(second.classes(data))


def test_categories_and_missing_values(learned):
    rng = np.random.default_rng(0)
    group = rng.random(300) < 0.4
    x = rng.normal(np.where(group, 3.0, 0.0), 1.0)
    kind = np.where(rng.random(300) < np.where(group, 0.9, 0.2), "a", "b")
    data = pd.DataFrame({"x": x, "y": x * np.where(group, -1.0, 1.0) + rng.normal(0, 0.5, 300), "kind": kind})
    network = spbn.learn(data, model="gbn", hidden=2)
    assert adjusted_rand_score(group, network.classes(data)["class"]) > 0.6
    data.loc[::7, "y"] = np.nan
    with_holes = spbn.learn(data, model="gbn", hidden=2, missing="impute")
    assert adjusted_rand_score(group, with_holes.classes(data)["class"]) > 0.5


def test_columns_that_are_all_discrete_have_classes():
    rng = np.random.default_rng(0)
    group = rng.random(600) < 0.4
    columns = {f"q{k}": np.where(rng.random(600) < np.where(group, 0.9, 0.1), "yes", "no") for k in range(6)}
    network = spbn.learn(pd.DataFrame(columns), model="gbn", hidden="auto")
    assert len(network.class_variable.levels) == 2
    assert adjusted_rand_score(group, network.classes(columns)["class"]) > 0.9


def test_a_full_mixture_of_lines_is_a_gaussian_mixture():
    data, _, _ = three_networks(800, 2, columns=2)
    network = spbn.learn(data, model="gbn", hidden=3, required_arcs=[("a", "b")])
    arcs = {("a", "b"), ("class", "a"), ("class", "b")}
    assert set(network.structure.arcs) == arcs
    weights = network.classes(data)[["1", "2", "3"]].to_numpy()
    rows = data.to_numpy()
    means = weights.T @ rows / weights.sum(axis=0)[:, None]
    precisions = [np.linalg.inv(np.cov(rows.T, aweights=w, ddof=0)) for w in weights.T]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = GaussianMixture(
            3, means_init=means, precisions_init=precisions, weights_init=weights.mean(axis=0), reg_covar=0.0
        ).fit(rows)
    assert network.logpdf(data).mean() == pytest.approx(mixture.score(rows), abs=2e-3)
    assert weights == pytest.approx(mixture.predict_proba(rows), abs=0.05)


def test_em_never_makes_rows_less_likely(learned):
    network, data, _ = learned
    rng = np.random.default_rng(0)
    table = network.with_class(as_table(data, variables=network.variables), rng.integers(3, size=len(data)))
    cpds, structure = dict(network.cpds), network.structure
    weights = rng.dirichlet(np.ones(3), len(data))
    settings, totals = FitSettings(smoothing=0.0), []
    for _ in range(30):
        cpds = hidden.refine(structure, cpds, table, weights, settings, steps=1)
        found = spbn.BayesianNetwork(structure, cpds, hidden="class")
        totals.append(found.logpdf(data).sum())
        weights = found.classes(data)[["1", "2", "3"]].to_numpy()
    assert (np.diff(totals) >= -1e-8).all()
    assert totals[-1] > totals[0] + 10.0


def test_rows_are_scored_under_every_class_by_parameters_of_other_folds(learned):
    network, data, _ = learned
    codes = network.classes(data)["class"].cat.codes.to_numpy().astype(np.int64)
    table = as_table(data, training=True)
    score = ByClass(table, codes, folds=5, settings=FitSettings(), penalty=0.0)
    for node_type in ("lg", "ckde"):
        family = spbn.nodes.Family("b", ("a",), spbn.NodeType.parse(node_type))
        found = score.by_class([family])[:, 0]
        for k, fold in ((0, 1), (1, 4), (2, 0)):
            train = table.take(np.flatnonzero((codes == k) & (score.labels != fold)))
            test = np.flatnonzero(score.labels == fold)
            density = family.type.fit(train, "b", ("a",), FitSettings())
            assert found[k, test] == pytest.approx(
                density.logpdf(table.take(test).select(["a", "b"])), rel=1e-9
            )
        own = found[codes, np.arange(len(codes))].sum()
        assert own == pytest.approx(score.local("b", ["a"], node_type), rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.5, 6.0])
def test_probabilities_of_classes_are_those_of_the_other_folds(smoothing):
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(40), 3)  # series, whose rows have one class and one fold
    codes = rng.choice(3, 40, p=WEIGHTS)[units]
    table = as_table({"x": rng.normal(size=120), "y": rng.normal(size=120)})
    score = ByClass(table, codes, folds=5, units=units)
    found = np.exp(score.log_prior(smoothing))
    for unit in range(40):
        others = np.unique(units[score.labels != score.labels[3 * unit]])
        counts = np.bincount(codes[3 * others], minlength=3)
        np.testing.assert_allclose(found[:, unit], (counts + smoothing / 3) / (len(others) + smoothing))


def test_leads_of_classes_are_combined_as_independent_tests_are(learned):
    network, data, _ = learned
    codes, table = network.classes(data)["class"].cat.codes.to_numpy().astype(np.int64), as_table(data)
    score = ByClass(table, codes, folds=5)
    rows = [np.flatnonzero(codes == k) for k in range(3)]
    parts = [FamilyScorer(MemoryRows(Partition.folds(table.take(r), score.labels[r]))) for r in rows]
    batch = score._checked([("b", ["a"], "curve"), ("c", [], "curve"), ("b", [], "lg")])
    pvalues = np.exp(-np.stack([part.leads(batch) for part in parts]))
    found = score.leads(batch)
    assert np.isinf(found[2]).all()  # lines have no leads
    checked = pvalues[:, :2].min(axis=0) > 1e-250
    assert checked.sum() > 3
    for family, column in np.argwhere(checked):
        each = pvalues[:, family, column]
        expected = -np.log(min(combine_pvalues(each).pvalue, 3 * each.min()))
        assert found[family, column] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_family_that_a_class_cannot_fit_is_fitted_to_all_rows():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 30)
    x = rng.normal(size=60)
    x[30:] = 1.5  # constant in the second class
    table = as_table({"x": x, "y": rng.normal(size=60)}, training=True)
    score = ByClass(table, codes, folds=5, penalty=0.0)
    assert np.isfinite(score.local("y", ["x"], "lg"))
    assert np.isfinite(score.by_class([spbn.nodes.Family("y", ("x",))])).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"hidden": 0}, ArgumentError, "hidden must be a whole number, 1 or more, or 'auto'"),
        ({"hidden": "many"}, ArgumentError, "hidden must be a whole number"),
        ({"hidden": 2.5}, ArgumentError, "hidden must be a whole number"),
        ({"hidden": 2, "algorithm": "pc"}, ArgumentError, "not with 'pc'"),
        (
            {"hidden": 2, "model": "gbn", "score": "bic"},
            ArgumentError,
            "score='bic' cannot be given with",
        ),
        ({"hidden": 2, "folds": [0, 1] * 30}, ArgumentError, "folds must be a number with hidden=2"),
        ({"hidden": 2, "validation": 0.3}, ArgumentError, "validation cannot be given with hidden=2"),
        ({"hidden": 2, "max_seconds": 3.0}, ArgumentError, "max_seconds cannot be given with hidden=2"),
        ({"hidden": 4}, DataError, "Ask for at most 3 classes"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_learned(options, error, message):
    data = spbn.datasets.synthetic(60, seed=0)
    with pytest.raises(error, match=message):
        spbn.learn(data, **options)


def test_fewer_classes_than_were_asked_for_are_mentioned():
    data = spbn.datasets.synthetic(101, seed=0)[["A"]]
    expected = (
        "^5 classes of 20 rows or more were not found: the network has [1-4a-z]+ class(es)?. "
        "Ask for fewer, or for 'auto', which finds out how many.$"
    )
    with pytest.warns(UserWarning, match=expected):
        network = spbn.learn(data, model="gbn", hidden=5)
    found = 1 if network.hidden is None else len(network.class_variable.levels)
    assert 1 <= found < 5


def test_a_column_named_like_the_class_is_refused():
    data = spbn.datasets.synthetic(60, seed=0).rename(columns={"A": "class"})
    with pytest.raises(DataError, match="column 'class' has the name of the hidden class"):
        spbn.learn(data, hidden="auto")
    assert spbn.learn(data, model="gbn").hidden is None


def test_a_learned_network_can_be_saved(learned, tmp_path):
    network, *_ = learned
    network.save(tmp_path / "model.spbn")
    again = spbn.BayesianNetwork.load(tmp_path / "model.spbn")
    assert again == network
    assert again.record.classes == network.record.classes
    assert again.search.structure == network.search.structure


def test_a_monitor_knows_the_class(learned):
    network, data, _ = learned
    monitor = spbn.Monitor(network, data)
    odd = data.iloc[:20].copy()
    odd.loc[odd.index[3], "b"] += 40.0
    rows = as_table(odd, variables=network.variables)
    found = monitor.check(rows)
    assert found is not None
    unusual = spbn.explain.unusual_rows(network, odd, top=1)
    assert unusual.rows[0].position == 3
    assert unusual.rows[0].reasons[0].node == "b"
    left_out = spbn.explain.unusual_rows(network, data, top=3)
    assert left_out.left_out
    assert left_out.mean < network.logpdf(data).mean()
    scorer = spbn.RowScorer(network)
    assert scorer.logpdf(data) == pytest.approx(network.logpdf(data).to_numpy(), abs=1e-9)


def test_a_report_and_an_explorer_know_the_class(learned):
    network, data, _ = learned
    page = spbn.report.render(network, data=data)
    section = page[page.index('id="populations-heading"') :]
    for found in spbn.explain.populations(network, data):
        cells = f"class {found.level}</td><td>{100 * found.share:.0f} %</td>"
        assert cells in re.sub(r"<(td|th)[^>]*>", r"<\1>", section).replace("</th>", "</td>")
    assert "&quot;name&quot;:&quot;class&quot;,&quot;levels&quot;" in spbn.report.render_explorer(network)
    assert spbn.plots.plot_cpd(network, "b", data=data) is not None
    spbn.plots.plot_classes(network, data)


def test_the_explorer_conditions_on_the_class(learned):
    network, *_ = learned
    drawn = {each.variable.name: each for each in joint_sample(network, 20_000, seed=0).variables}
    classes, axis = drawn["class"].codes, drawn["b"].axis
    shares = np.bincount(classes, minlength=3) / 20_000
    assert shares == pytest.approx(network.cpds["class"].probabilities[0], abs=0.015)
    middles = [(axis.edge(k) + axis.edge(k + 1)) / 2 for k in range(axis.cells)]
    values = np.array([*axis.low, *middles, *axis.high])[drawn["b"].codes]
    for k, level in enumerate(drawn["class"].variable.levels):
        assert values[classes == k].mean() == pytest.approx(
            network.query({"class": level}).mean()["b"], abs=0.1
        )


def test_the_mixture_of_scikit_learn(learned):
    _, data, z = learned
    mixture = spbn.sklearn.SPBNMixture(model="gbn", margins="none", hidden=3)
    labels = mixture.fit_predict(data)
    assert mixture.n_classes_ == 3
    assert set(mixture.selection_) >= {1, 3}
    assert mixture.predict_proba(data).sum(axis=1) == pytest.approx(np.ones(len(data)))
    assert (mixture.predict(data) == labels).all()
    assert adjusted_rand_score(z, labels) > 0.8
    assert mixture.score_samples(data).shape == (len(data),)
    density = spbn.sklearn.SPBNDensity(model="gbn", hidden=3).fit(data)
    assert density.network_ == mixture.network_
    alone = spbn.sklearn.SPBNMixture(hidden=1).fit(data.to_numpy()[:80])
    assert (alone.predict(data.to_numpy()) == 0).all()


def test_the_mixture_of_scikit_learn_finds_the_number_of_classes_by_itself(learned):
    _, data, z = learned
    mixture = spbn.sklearn.SPBNMixture(model="gbn", margins="none")
    assert mixture.get_params()["hidden"] == "auto"
    assert spbn.sklearn.SPBNDensity().get_params()["hidden"] is None
    labels = mixture.fit_predict(data)
    assert mixture.n_classes_ == 3
    assert adjusted_rand_score(z, labels) > 0.8


def test_confidence_and_comparison_know_the_class(learned):
    _, data, _ = learned
    found = spbn.confidence(data, model="gbn", hidden=2, replicates=3)
    assert found.nodes == (*data.columns, "class")
    assert "class" in set(found.arcs["source"])
    table = spbn.compare_models(data.iloc[:150, :2], folds=2, hidden=2)
    assert len(table) >= 4


def test_kernels_sit_on_few_rows_while_classes_are_found(learned, monkeypatch):
    _, data, _ = learned
    settings = []

    def noting(*arguments, **options):
        settings.append(options["settings"])
        return ByClass(*arguments, **options)

    monkeypatch.setattr(hidden, "ByClass", noting)
    monkeypatch.setattr("spbn.learning.settings.CENTRES", 70)
    network = spbn.learn(data.iloc[:200, :2], model="auto", hidden=2)
    assert settings
    assert all(each.centres == 70 for each in settings)
    assert network.hidden == "class"


def test_a_large_table_is_divided_by_some_of_its_rows(monkeypatch):
    monkeypatch.setattr(hidden, "MOST_ROWS", 300)
    data, z, best = three_networks(2000, 3)
    network = spbn.learn(data, model="gbn", hidden=3)
    assert adjusted_rand_score(z, network.classes(data)["class"]) > best - 0.05
