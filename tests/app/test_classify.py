import numpy as np
import pandas as pd
import pytest

from spbn.cli.learn import cross_validated
from spbn.report.pages import render_classification
from spbn.sklearn import SPBNClassifier


def classes_frame(rows=80, seed=0):
    """Three numbers, a text and a class that they depend on."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    return pd.DataFrame(
        {
            "a": rng.normal(label, 1.0),
            "b": rng.normal(size=rows) ** 2 + label,
            "c": rng.integers(1, 4, size=rows) + label,
            "kind": np.array(["ill", "well"])[label],
        }
    )


@pytest.fixture
def tables(folder):
    classes_frame().to_csv("train.csv", index=False)
    classes_frame(30, seed=1).to_csv("test.csv", index=False)
    return folder


@pytest.mark.slow
def test_new_rows_are_predicted_and_assessed(run, tables):
    command = ["classify", "train.csv", "--target", "kind", "--test", "test.csv", "--model", "gbn"]
    code, out, err = run(*command, "--out", "p.csv", "--report", "r.html")
    assert code == 0, err
    train, test = classes_frame(), classes_frame(30, seed=1)
    model = SPBNClassifier(model="gbn").fit(train.drop(columns="kind"), train["kind"])
    features = test.drop(columns="kind")
    written = pd.read_csv("p.csv")
    np.testing.assert_array_equal(written["truth"], test["kind"])
    np.testing.assert_array_equal(written["predicted"], model.predict(features))
    np.testing.assert_allclose(written[["P(ill)", "P(well)"]], model.predict_proba(features))
    assert f"accuracy           {model.score(features, test['kind']):.1%}" in out
    page = (tables / "r.html").read_text()
    assert "Rows of test.csv, predicted by a model learned from 80 rows of train.csv." in page
    assert all(f'id="{key}-heading"' in page for key in ("confusion", "calibration", "wrong", "uncertain"))


def test_without_classes_there_are_predictions_only(run, tables):
    classes_frame(30, seed=1).drop(columns="kind").to_csv("new.csv", index=False)
    command = ["classify", "train.csv", "--target", "kind", "--test", "new.csv", "--model", "gbn"]
    code, out, _ = run(*command, "--out", "p.csv", "--report", "r.html")
    assert code == 0
    assert "accuracy" not in out
    assert "truth" not in pd.read_csv("p.csv")
    assert 'id="confusion-heading"' not in (tables / "r.html").read_text()


def test_classes_that_training_lacks_are_mentioned(run, tables):
    test = classes_frame(30, seed=1)
    test.loc[4, "kind"] = "undead"
    test.to_csv("odd.csv", index=False)
    code, out, err = run(
        "classify", "train.csv", "--target", "kind", "--test", "odd.csv", "--model", "gbn", "--out", "p.csv"
    )
    assert code == 0
    assert "1 rows have a class that no training row has ('undead')" in err
    assert len(pd.read_csv("p.csv")) == 30
    assert "accuracy" in out


@pytest.mark.slow
def test_every_row_is_predicted_by_a_model_that_has_not_seen_it():
    """The class of a row decides nothing about its own prediction: a unique row of a class is never found."""
    frame = classes_frame()
    features, classes = frame.drop(columns="kind"), frame["kind"].to_numpy(dtype=object)
    classes[7] = "lonely"
    found = cross_validated(SPBNClassifier(model="gbn"), features, classes, 4, 0)
    assert found.classes.tolist() == ["ill", "lonely", "well"]
    assert found.probabilities[7, 1] == 0.0
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert found.explanation.index.equals(features.index)
    assert found.assessment.confusion.sum() == 80


@pytest.mark.slow
def test_names_are_escaped_in_the_report():
    frame = classes_frame().rename(columns={"a": "<b>a</b>"})
    features = frame.drop(columns="kind")
    classes = np.where(frame["kind"] == "ill", "<script>", "well").astype(object)
    found = cross_validated(SPBNClassifier(model="gbn"), features, classes, 3, 0)
    page = render_classification(found, title="<i>", how="&")
    assert "&lt;script&gt;" in page
    assert "<b>a</b>" not in page
    assert "<i>" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--target", "nothing"],
            "train.csv has no column 'nothing' to use. Its columns are 'a', 'b', 'c' and 'kind'.",
        ),
        (
            ["--target", "kind", "--drop", "kind"],
            "train.csv has no column 'kind' to use. Its columns are 'a', 'b' and 'c'.",
        ),
        (
            ["--target", "kind", "--independence-test", "t"],
            "--independence-test must be one of 'plc', 'rcot', 'cmiknn'. Got 't' instead.",
        ),
        (["--target", "kind", "--folds", "1"], "--folds must be between 2 and"),
        (["--target", "kind", "--model", "odd"], "--model must be one of"),
        (["--target", "kind", "--discrete", "kind"], "--discrete names the column of the classes"),
        (["--target", "kind", "--out", "train.csv"], "destroy"),
    ],
)
def test_refusals_are_one_line(run, tables, arguments, message):
    code, _, err = run("classify", "train.csv", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("always")  # they are printed
def test_a_peculiarity_of_a_table_is_mentioned_once(run, folder):
    classes_frame().rename(columns={"a": "1.5", "b": "2.5", "c": "3.5", "kind": "4.5"}).to_csv(
        "t.csv", index=False
    )
    code, _, err = run("classify", "t.csv", "--target", "4.5", "--model", "gbn", "--folds", "2")
    assert code == 0, err
    assert err.count("is its first line a row of data?") == 1


@pytest.mark.parametrize("more", [[], ["--test", "test.csv"]])
def test_a_column_of_measurements_has_no_classes(run, tables, more):
    code, _, err = run("classify", "train.csv", "--target", "a", *more)
    assert code == 2
    assert "column 'a' has 80 different values in 80 rows, so these are not classes" in err


@pytest.mark.slow
def test_levels_that_some_folds_lack(run, folder):
    """Cross-validation refused every table with a level that one row has, as unknown in that row's fold."""
    frame = classes_frame()
    frame["town"] = ["Leith", "Kelso"] * 40
    frame.loc[5, "town"] = "Ayr"
    frame["flag"] = np.arange(80) == 7
    frame["code"] = [1, 2] * 40
    frame.loc[9, "code"] = 3
    frame.to_csv("rare.csv", index=False)
    command = ["classify", "rare.csv", "--target", "kind", "--model", "gbn", "--folds", "3"]
    code, _, err = run(*command, "--discrete", "code", "--out", "p.csv")
    assert (code, err) == (0, "")
    written = pd.read_csv("p.csv")
    assert written["probability"].between(0.5, 1.0).all()
    assert (written["predicted"] == frame["kind"]).mean() > 0.6


def test_the_seed_deals_the_rows_to_folds(run, tables, monkeypatch):
    import sklearn.model_selection

    dealt = []

    class Spy(sklearn.model_selection.StratifiedKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                dealt.append(test.tolist())
                yield train, test

    monkeypatch.setattr(sklearn.model_selection, "StratifiedKFold", Spy)
    command = ("classify", "train.csv", "--target", "kind", "--model", "gbn", "--folds", 2, "--seed")
    for seed in (1, 2, 1):
        assert run(*command, seed)[0] == 0
    assert dealt[:2] == dealt[4:]
    assert dealt[:2] != dealt[2:4]
