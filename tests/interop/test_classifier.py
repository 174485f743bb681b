import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import spbn
from learning_options import CASES
from spbn.record import plain_settings
from spbn.sklearn import SPBNClassifier
from spbn.sklearn.class_densities import FEWEST_ROWS, Calibration

QUICK = {"model": "gbn", "margins": "none"}


@pytest.mark.slow
@parametrize_with_checks(
    [
        SPBNClassifier(model="gbn"),
        SPBNClassifier(model="gbn", structure="augmented"),
        SPBNClassifier(patience=0, max_parents=1, calibrate=False),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def two_classes(rows, seed=0, columns="abc"):
    """Normal features whose means and covariances the class decides: rows, classes, log f(row, class)."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.3).astype(int)
    factors = rng.normal(size=(2, len(columns), len(columns))) + 2 * np.eye(len(columns))
    means = np.array([np.zeros(len(columns)), np.full(len(columns), 0.8)])
    values = means[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(rows, len(columns))))
    densities = [multivariate_normal(m, f @ f.T) for m, f in zip(means, factors, strict=True)]
    joint = np.stack([d.logpdf(values) for d in densities], axis=1) + np.log([0.7, 0.3])
    return pd.DataFrame(values, columns=list(columns)), labels, joint


def mixed_rows(rows=150, seed=0):
    """A number, a text and a truth value that depend on one of three classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=rows)
    colour = np.where(rng.random(rows) < 0.8, np.array(["red", "green", "blue"])[labels], "grey")
    frame = pd.DataFrame(
        {
            "size": rng.normal(labels * 1.5, 1.0),
            "colour": colour,
            "new": rng.random(rows) < 0.2 + 0.3 * labels,
        }
    )
    return frame, np.array(["p", "q", "r"])[labels]


def regressions(frame):
    """The density of a complete Gaussian network: a regression of every column on those before it."""
    values = frame.to_numpy()

    def logpdf(rows):
        total = np.zeros(len(rows))
        for j in range(values.shape[1]):
            design = np.column_stack([np.ones(len(values)), values[:, :j]])
            beta, *_ = np.linalg.lstsq(design, values[:, j], rcond=None)
            spread = np.sqrt(np.sum((values[:, j] - design @ beta) ** 2) / (len(values) - j - 1))
            total += norm.logpdf(
                rows[:, j], np.column_stack([np.ones(len(rows)), rows[:, :j]]) @ beta, spread
            )
        return total

    return logpdf


@pytest.mark.parametrize("structure", ["multinet", "augmented"])
def test_complete_gaussian_networks_are_bayes_rule_with_regressions(structure):
    frame, labels, _ = two_classes(300)
    arcs = list(itertools.combinations("abc", 2))
    model = SPBNClassifier(**QUICK, structure=structure, required_arcs=arcs, calibrate=False, smoothing=0.0)
    model.fit(frame, labels)
    new, _, _ = two_classes(50, seed=1)
    joint = np.stack(
        [regressions(frame[labels == c])(new.to_numpy()) + np.log(np.mean(labels == c)) for c in (0, 1)],
        axis=1,
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(new), joint, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(new), softmax(joint, axis=1), rtol=1e-9, atol=1e-12)


def test_complete_gaussian_networks_come_close_to_qda():
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    frame, labels, _ = two_classes(20_000)
    arcs = list(itertools.combinations("abc", 2))
    model = SPBNClassifier(**QUICK, required_arcs=arcs, calibrate=False).fit(frame, labels)
    peer = QuadraticDiscriminantAnalysis().fit(frame, labels)
    np.testing.assert_allclose(model.predict_proba(frame), peer.predict_proba(frame), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["multinet", "augmented"])
@pytest.mark.parametrize("calibrate", [True, False])
def test_probabilities(structure, calibrate):
    frame, classes = mixed_rows()
    model = SPBNClassifier(model="gbn", structure=structure, calibrate=calibrate).fit(frame, classes)
    probabilities = model.predict_proba(frame)
    assert probabilities.shape == (150, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(frame))
    np.testing.assert_array_equal(model.predict(frame), model.classes_[probabilities.argmax(axis=1)])
    assert model.score(frame, classes) == np.mean(model.predict(frame) == classes) > 0.7
    if not calibrate:
        assert (model.temperature_, model.doubt_) == (1.0, 0.0)


@pytest.mark.slow
def test_every_class_has_the_network_of_its_rows():
    frame, labels, _ = two_classes(200)
    options = {"model": "blend", "margins": "yeo-johnson", "max_parents": 1, "patience": 1, "seed": 4}
    model = SPBNClassifier(**options).fit(frame, np.where(labels, "yes", "no"))
    for label, name in enumerate(["no", "yes"]):
        rows = frame[labels == label]
        expected = spbn.learn(rows, **options)
        assert model.networks_[name].structure == expected.structure
        np.testing.assert_allclose(
            model.predict_joint_log_proba(frame)[:, label],
            expected.logpdf(frame) + np.log(model.priors_[label]),
        )


def test_augmented_networks_have_the_class_as_a_parent_of_everything():
    frame, classes = mixed_rows()
    frame = frame.rename(columns={"size": "class"})
    model = SPBNClassifier(model="gbn", structure="augmented", max_parents=0).fit(frame, classes)
    network = model.networks_["q"]
    assert set(network.structure.arcs) == {("class_", name) for name in frame.columns}
    assert all(network is other for other in model.networks_.values())
    with_class = frame.assign(class_=np.searchsorted(["p", "q", "r"], classes).astype(str))
    joint = model.predict_joint_log_proba(frame)
    own = joint[np.arange(len(classes)), np.searchsorted(["p", "q", "r"], classes)]
    np.testing.assert_allclose(own, network.logpdf(with_class))


@pytest.mark.slow
def test_priors_are_smoothed_frequencies():
    frame, labels, _ = two_classes(90)
    for smoothing in (1.0, 8.0):
        for structure in ("multinet", "augmented"):
            model = SPBNClassifier(**QUICK, structure=structure, smoothing=smoothing).fit(frame, labels)
            counts = np.bincount(labels)
            np.testing.assert_allclose(model.priors_, (counts + smoothing / 2) / (90 + smoothing))


@pytest.mark.slow
def test_the_true_odds_have_temperature_one_and_no_doubt():
    _, labels, joint = two_classes(30_000)
    log_priors = np.tile(np.log([[0.7], [0.3]]), len(labels))
    found = Calibration.fit(joint.T, log_priors, labels)
    assert found.temperature == pytest.approx(1.0, abs=0.04)
    assert found.doubt < 0.005
    tripled = Calibration.fit(3.0 * joint.T, log_priors, labels)
    assert tripled.temperature == pytest.approx(3.0 * found.temperature, rel=0.01)


@pytest.mark.slow
def test_doubt_is_the_share_of_rows_whose_classes_are_drawn_at_random():
    _, labels, joint = two_classes(30_000)
    rng = np.random.default_rng(1)
    astray = rng.random(len(labels)) < 0.1
    labels = np.where(astray, rng.random(len(labels)) < 0.3, labels).astype(int)
    found = Calibration.fit(joint.T, np.tile(np.log([[0.7], [0.3]]), len(labels)), labels)
    assert found.doubt == pytest.approx(0.1, abs=0.02)
    assert found.temperature == pytest.approx(1.0, abs=0.1)


def test_a_calibrated_probability_by_hand():
    found = Calibration(temperature=2.0, doubt=0.2).log_probabilities(
        np.log([[0.9], [0.1]]), np.log([[0.6], [0.4]])
    )
    tempered = np.sqrt([0.9, 0.1]) / np.sqrt([0.9, 0.1]).sum()
    np.testing.assert_allclose(np.exp(found[:, 0]), 0.8 * tempered + 0.2 * np.array([0.6, 0.4]))


def test_odds_beyond_all_measure_are_no_trouble():
    joint = np.array([[-1e6, 0.0], [0.0, -1e6], [-2e6, -3e6]])
    found = Calibration().log_probabilities(joint, np.log(np.full((3, 1), 1 / 3)))
    np.testing.assert_allclose(np.exp(found).sum(axis=0), 1.0)
    assert np.isfinite(found).all()


@pytest.mark.slow
def test_calibration_uses_rows_that_were_left_out_and_helps():
    """Copied columns count evidence twice: the temperature sees that."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    value = rng.normal(labels, 1.0)
    frame = pd.DataFrame({f"copy{i}": value + 0.1 * rng.normal(size=400) for i in range(6)})
    train, test = slice(0, 200), slice(200, 400)
    options = {"model": "gbn", "max_parents": 0}
    calibrated = SPBNClassifier(**options).fit(frame[train], labels[train])
    plain = SPBNClassifier(**options, calibrate=False).fit(frame[train], labels[train])
    assert calibrated.temperature_ > 2.0
    losses = [log_loss(labels[test], model.predict_proba(frame[test])) for model in (calibrated, plain)]
    assert losses[0] < losses[1] - 0.05


def test_a_single_class_is_certain():
    frame, _, _ = two_classes(30)
    model = SPBNClassifier(**QUICK).fit(frame, ["only"] * 30)
    np.testing.assert_array_equal(model.predict_proba(frame), np.ones((30, 1)))
    assert model.explain(frame)["runner_up"].unique().tolist() == ["only"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gbn", "spbn", "blend"])
@pytest.mark.parametrize("structure", ["multinet", "augmented"])
def test_small_classes_and_constant_columns(model, structure):
    """Classes of 1 to 5 rows; a constant column, one that is constant in a class, and a copy in another."""
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2, 3, 4, 5], [40, 40, 1, 2, 3, 5])
    frame = pd.DataFrame(rng.normal(size=(91, 4)) + labels[:, None], columns=list("abcd"))
    frame["a"] = np.where(labels == 0, 0.0, frame["a"])
    frame["b"] = np.where(labels == 1, 2 * frame["c"] + 1, frame["b"])
    frame["constant"] = 7.0
    classifier = SPBNClassifier(model=model, structure=structure, patience=0, max_parents=1).fit(
        frame, labels
    )
    probabilities = classifier.predict_proba(frame)
    assert np.isfinite(classifier.predict_log_proba(frame)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(classifier.predict(frame) == labels) > 0.7
    far = frame + 1e6
    np.testing.assert_allclose(classifier.predict_proba(far).sum(axis=1), 1.0)
    assert (classifier.explain(frame)["constant"] == 0.0).all()


def test_a_small_class_is_normal_and_shrunk_towards_all_rows():
    frame, _, _ = two_classes(40, columns="ab")
    labels = np.arange(40) < 3
    model = SPBNClassifier(**QUICK, calibrate=False).fit(frame, labels)
    network = model.networks_[True]
    assert FEWEST_ROWS > 3
    assert network.structure.arcs == ()
    for name in "ab":
        few, everything = frame[name][:3].to_numpy(), frame[name].to_numpy()
        mean = (few.sum() + everything.mean()) / 4
        second = (np.sum(few**2) + everything.mean() ** 2 + everything.var()) / 4
        assert network.cpds[name].intercept == pytest.approx(mean)
        assert network.cpds[name].variance == pytest.approx(second - mean**2)


def test_explanations_add_up_to_the_log_odds():
    frame, classes = mixed_rows()
    frame.index = pd.Index([f"row {i}" for i in range(len(frame))])
    model = SPBNClassifier(model="gbn").fit(frame, classes)
    found = model.explain(frame)
    assert list(found.columns) == ["predicted", "probability", "runner_up", "(prior)", *frame.columns]
    assert found.index.equals(frame.index)
    np.testing.assert_array_equal(found["predicted"], model.predict(frame))
    np.testing.assert_allclose(found["probability"], model.predict_proba(frame).max(axis=1))
    second = np.argsort(model.predict_proba(frame), axis=1)[:, -2]
    np.testing.assert_array_equal(found["runner_up"], model.classes_[second])
    joint = pd.DataFrame(model.predict_joint_log_proba(frame), columns=model.classes_)
    odds = [
        row[first] - row[other]
        for (_, row), first, other in zip(
            joint.iterrows(), found["predicted"], found["runner_up"], strict=True
        )
    ]
    np.testing.assert_allclose(found[["(prior)", *frame.columns]].sum(axis=1), odds)


@pytest.mark.slow
def test_same_seed_same_result_and_clone():
    frame, labels, _ = two_classes(120)
    model = SPBNClassifier(patience=0, max_parents=1)
    first, again = model.fit(frame, labels).predict_proba(frame), clone(model).fit(frame, labels)
    np.testing.assert_array_equal(first, again.predict_proba(frame))
    other = SPBNClassifier(patience=0, max_parents=1, seed=1).fit(frame, labels)
    assert not np.allclose(first, other.predict_proba(frame), rtol=1e-3)


@pytest.mark.slow
def test_text_columns_in_cross_validation_and_other_frames():
    polars = pytest.importorskip("polars")
    frame, classes = mixed_rows()
    assert cross_val_score(SPBNClassifier(model="gbn"), frame, classes, cv=3).mean() > 0.7
    model = SPBNClassifier(model="gbn").fit(frame, classes)
    np.testing.assert_array_equal(model.predict_proba(polars.from_pandas(frame)), model.predict_proba(frame))
    assert model.feature_names_in_.tolist() == ["size", "colour", "new"]
    assert model.n_features_in_ == 3


def test_numbers_that_stand_for_categories():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    code = np.where(rng.random(200) < 0.9, np.where(labels, 2, rng.choice([1, 3], 200)), 2)
    frame = pd.DataFrame({"code": code, "noise": rng.normal(size=200)})
    discrete = SPBNClassifier(model="gbn", discrete=["code"]).fit(frame, labels)
    assert discrete.networks_[0].cpds["code"].levels == ("1", "2", "3")
    assert discrete.score(frame, labels) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "violet"}, "has the level 'violet' in row 1"),
        ({"colour": None}, "missing"),
    ],
)
def test_unknown_levels_and_holes_are_refused(change, message):
    frame, classes = mixed_rows()
    model = SPBNClassifier(model="gbn").fit(frame, classes)
    with pytest.raises(spbn.errors.DataError, match=message):
        model.predict(frame[:1].assign(**change))


def test_wrong_parameters_are_refused():
    frame, labels, _ = two_classes(40)
    with pytest.raises(
        spbn.errors.ArgumentError, match=r"structure must be 'multinet' or 'augmented'\. Got 'tree'"
    ):
        SPBNClassifier(structure="tree").fit(frame, labels)
    with pytest.raises(spbn.errors.ArgumentError, match="margins must be"):
        SPBNClassifier(margins="odd").fit(frame, labels)
    with pytest.raises(spbn.errors.ArgumentError, match="model must be one of"):
        SPBNClassifier(model="odd").fit(frame, labels)
    with pytest.raises(spbn.errors.ArgumentError, match="required_arcs names unknown features: 'z'"):
        SPBNClassifier(required_arcs=[("a", "z")]).fit(frame, labels)


def test_classes_that_were_not_seen_are_counted_as_wrong():
    frame, labels, _ = two_classes(60)
    model = SPBNClassifier(**QUICK).fit(frame, labels)
    assert model.score(frame, np.full(60, 9)) == 0.0


#: It learns several networks, so one time limit and one checkpoint would not do.
NOT_TAKEN = {"hidden", "atoms", "max_seconds", "checkpoint"}


def options_of_learn():
    own = {"structure", "calibrate", "engine"}
    return set(inspect.signature(SPBNClassifier).parameters) - own


def test_every_parameter_of_learn_has_a_case():
    cases = set(CASES) - NOT_TAKEN
    assert options_of_learn() == {"score_function" if name == "score" else name for name in cases}


@pytest.mark.parametrize("name", sorted(set(CASES) - {"discrete"} - NOT_TAKEN))
def test_every_parameter_reaches_learn(name, monkeypatch):
    value, others = CASES[name]
    given = {("score_function" if key == "score" else key): v for key, v in {**others, name: value}.items()}
    asked = []

    def learn(table, settings):
        asked.append(settings)
        return spbn.learn(table, model="gbn")

    monkeypatch.setattr("spbn.sklearn.class_densities.learn_network", learn)
    frame, labels, _ = two_classes(80, columns="abcd")
    SPBNClassifier(**{"model": "spbn"} | given, calibrate=False).fit(frame, labels)
    assert len(asked) == 2
    for settings in asked:
        assert settings.plain()[name] == plain_settings({name: value})[name]


def test_the_engine_and_smoothing_reach_learn():
    frame, classes = mixed_rows()
    model = SPBNClassifier(model="gbn", engine="exact", smoothing=3.0).fit(frame, classes)
    settings = model.networks_["p"].record.settings
    assert (settings["engine"], settings["smoothing"]) == ("exact", 3.0)


@pytest.mark.slow
def test_it_is_better_than_chance_out_of_the_box():
    features, classes = load_iris(return_X_y=True, as_frame=True)
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    model = SPBNClassifier(patience=0).fit(features.iloc[train], classes.iloc[train])
    assert log_loss(classes.iloc[test], model.predict_proba(features.iloc[test])) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["multinet", "augmented"])
def test_a_copy_of_a_feature_is_no_further_evidence(structure):
    frame, labels, _ = two_classes(100)
    with_copy = frame.assign(again=3 * frame["a"] - 1)
    model = SPBNClassifier(**QUICK, structure=structure)
    np.testing.assert_allclose(
        clone(model).fit(with_copy, labels).predict_proba(with_copy),
        clone(model).fit(frame, labels).predict_proba(frame),
    )


def test_what_is_not_there_cannot_be_predicted_from():
    frame, labels, _ = two_classes(30)
    with pytest.raises(spbn.errors.DataError, match="no feature varies"):
        SPBNClassifier(**QUICK).fit(0 * frame, labels)


def test_calibration_sees_that_noise_says_nothing():
    """Kernels sit on the rows that they were fitted to, which would look easy to classify."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(160, 6)), columns=list("abcdef"))
    labels = rng.integers(2, size=160)
    options = {"model": "kdebn", "margins": "none", "max_parents": 0, "patience": 0}
    model = SPBNClassifier(**options).fit(frame[:80], labels[:80])
    assert log_loss(labels[80:], model.predict_proba(frame[80:])) < np.log(2) + 0.06


def test_the_runner_up_is_the_next_best_even_if_both_are_all_but_impossible():
    """Calibrated, both had exactly the probability that is left to doubt, and the first name won."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.repeat([0.0, 50.0, 500.0], 30) + rng.normal(size=90)})
    y = np.repeat(["near", "a far", "b middle"], 30)
    y = np.where(y == "a far", "middle", np.where(y == "b middle", "a far", y))
    model = SPBNClassifier(model="gbn").fit(X, y)
    explained = model.explain(X)
    assert (explained["runner_up"][:30] == "middle").all()
    ordered = np.sort(model.predict_joint_log_proba(X), axis=1)
    np.testing.assert_allclose(explained["(prior)"] + explained["x"], ordered[:, -1] - ordered[:, -2])


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("structure", ["multinet", "augmented"])
def test_a_class_of_one_row_without_smoothing(structure):
    """The row that has it says nothing about the calibration; its class was impossible: NaN."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.normal(size=61), "c": rng.choice(["u", "v"], 61)})
    y = np.array(["a", "b"] * 30 + ["once"])
    X["x"] += 3.0 * (y == "b")
    model = SPBNClassifier(model="gbn", structure=structure, smoothing=0.0).fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    without = SPBNClassifier(model="gbn", structure=structure, smoothing=0.0).fit(X[:60], y[:60])
    assert model.temperature_ == pytest.approx(without.temperature_, rel=0.3)


def test_a_row_that_is_impossible_in_every_class_has_the_probabilities_of_the_classes():
    X = pd.DataFrame({"c": pd.Categorical(["u", "v"] * 20, categories=["u", "v", "never"])})
    X["x"] = np.arange(40.0) % 7
    y = np.array(["a"] * 30 + ["b"] * 10)
    model = SPBNClassifier(model="gbn", smoothing=0.0, calibrate=False).fit(X, y)
    row = pd.DataFrame({"c": ["never"], "x": [1.0]})
    np.testing.assert_allclose(model.predict_proba(row), [[0.75, 0.25]])


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["multinet", "augmented"])
@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
def test_a_feature_that_differs_in_a_single_row(structure, margins):
    """Where that row was left out, the feature was constant, and had neither margin nor density."""
    rows, species = load_iris(as_frame=True, return_X_y=True)
    rows["rare"] = 0.0
    rows.loc[3, "rare"] = 1.0
    model = SPBNClassifier(model="gbn", structure=structure, margins=margins).fit(rows, species)
    assert model.score(rows, species) > 0.95


def test_tiny_tables_are_calibrated():
    rows, species = load_iris(as_frame=True, return_X_y=True)
    some = [0, 1, 60, 61]
    model = SPBNClassifier().fit(rows.iloc[some], species.iloc[some])
    assert list(model.predict(rows.iloc[[0, 60]])) == [0, 1]


def test_features_of_an_array_that_stand_for_categories_are_called_as_documented():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 60)
    X = np.column_stack([(y + (rng.random(60) < 0.1)) % 2, rng.normal(size=60)])
    model = SPBNClassifier(model="gbn", discrete=["x0"]).fit(X, y)
    assert model.networks_[0].structure.type("x0") == "discrete"
    assert model.score(X, y) > 0.8


def test_missing_classes_are_named():
    X = pd.DataFrame({"x": np.arange(10.0) % 4, "c": ["u", "v"] * 5})
    with pytest.raises(ValueError, match="contains NaN"):
        SPBNClassifier(model="gbn").fit(X, pd.Series(["a", np.nan] * 5, dtype=object))
