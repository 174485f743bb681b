"""Options of the commands that learn several networks: compare and classify."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from command_options import (
    as_options,
    labelled_frame,
    learning_options,
    option,
    require_passing,
    scheduler_address,
    workers_as_threads,
)
from learning_options import CASES, FRAME
from spbn.learning.settings import MODELS

pytestmark = pytest.mark.usefixtures("tables")


#: Settings of `learn` that these commands treat in a way of their own.
OWN = ("max_seconds", "model", "folds", "margins", "discrete", "seed", "atoms")


def compared(run, *arguments):
    """Compare models, and return what is printed of each: densities, differences and arcs."""
    code, out, err = run("compare", *arguments)
    assert code == 0, err
    table = [line.replace("±", " ").split() for line in out.splitlines()]
    lines = [words for words in table if words and words[0] in MODELS]
    return [tuple(line[:5] if k == 0 else line[:7]) for k, line in enumerate(lines)]


def comparison(data, **options):
    """Return the same of the function; the best model differs from none."""
    table = spbn.compare_models(data, **options)
    errors = ["log-density", "standard error", "difference", "difference error"]
    found = []
    for k, row in table.iterrows():
        numbers = [f"{row[name]:.4f}" for name in (errors if k else errors[:2])]
        found.append((row["model"], row["margins"], *numbers, f"{row['arcs']:.1f}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", learning_options("compare", without=OWN))
def test_compare_setting(name, run):
    value = CASES[name][0]
    function, command = "spbn.learning.comparison.compare_models", ("compare", "frame.csv")
    require_passing(run, function, command, as_options({name: value}), {name: value})


@pytest.mark.slow
@option("compare", "--folds")
def test_compare_folds(run):
    found = {folds: compared(run, "frame.csv", "--columns", "a,b", "--folds", folds) for folds in (2, 3)}
    assert found == {folds: comparison(FRAME[["a", "b"]], folds=folds) for folds in (2, 3)}
    assert found[2] != found[3]


@pytest.mark.cluster
@option("compare", "--workers")
def test_compare_workers(run):
    with workers_as_threads() as started:
        found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--workers", 2)
        assert len(started) == 1
    assert found == comparison(FRAME[["a", "b"]], folds=2)


@pytest.mark.cluster
@option("compare", "--scheduler")
def test_compare_scheduler(run):
    with scheduler_address() as address:
        found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--scheduler", address)
    assert found == comparison(FRAME[["a", "b"]], folds=2)


@pytest.mark.slow
@option("compare", "--seed")
def test_compare_seed(run):
    found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--seed", 4)
    assert found == comparison(FRAME[["a", "b"]], folds=2, seed=4) != comparison(FRAME[["a", "b"]], folds=2)


@option("compare", "--margins")
def test_compare_margins(run):
    found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--margins", "yeo-johnson")
    assert found == comparison(FRAME[["a", "b"]], folds=2, margins="yeo-johnson")
    assert {line[1] for line in found} == {"yeo-johnson"}


@option("compare", "--models")
def test_compare_models(run):
    options = ("--columns", "a,b", "--folds", 2, "--models", "auto,gbn", "--models", "blend")
    found = compared(run, "frame.csv", *options)
    assert found == comparison(FRAME[["a", "b"]], folds=2, models=["auto", "gbn", "blend"])
    assert sorted(line[0] for line in found) == ["auto", "blend", "blend", "gbn"]
    code, _, err = run("compare", "frame.csv", "--models", "bn")
    assert (code, "--models must be one of 'spbn'" in err) == (2, True)


@option("compare", "--columns")
def test_compare_columns(run):
    found = compared(run, "named.csv", "--folds", 2, "--columns", "b,d")
    assert found == comparison(FRAME[["b", "d"]], folds=2)


@option("compare", "--drop")
def test_compare_drop(run):
    found = compared(run, "named.csv", "--folds", 2, "--drop", "a,c,name")
    assert found == comparison(FRAME[["b", "d"]], folds=2)


@pytest.mark.slow
@option("compare", "--discrete")
def test_compare_discrete(run):
    halves = FRAME[["a", "b"]].round()
    halves.to_csv("whole.csv", index=False)
    found = compared(run, "whole.csv", "--folds", 2, "--discrete", "b")
    assert found == comparison(halves, folds=2, discrete=["b"]) != comparison(halves, folds=2)


@pytest.mark.slow
@option("compare", "--missing")
def test_compare_missing(run):
    assert run("compare", "holes.csv", "--folds", 2)[0] == 2
    found = compared(run, "holes.csv", "--columns", "a,b", "--folds", 2, "--missing", "drop")
    assert found == comparison(FRAME[["a", "b"]].drop(index=3), folds=2)


def classified(run, *arguments, model="gbn"):
    """Return the probabilities that the command writes."""
    labelled_frame().to_csv("labelled.csv", index=False)
    labelled_frame(40, seed=1).to_csv("new.csv", index=False)
    command = ("classify", "labelled.csv", "--target", "kind", "--model", model, "--out", "p.csv")
    code, _, err = run(*command, *arguments)
    assert code == 0, err
    return pd.read_csv("p.csv")[["P(no)", "P(yes)"]].to_numpy()


def expected_classes(columns=("a", "b", "c", "few"), **options):
    train, new = labelled_frame(), labelled_frame(40, seed=1)
    model = spbn.sklearn.SPBNClassifier(**{"model": "gbn", **options}).fit(
        train[list(columns)], train["kind"]
    )
    return model.predict_proba(new[list(columns)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    learning_options(
        "classify", without=[*OWN, "hidden", "max_parents", "patience"], names={"test": "--independence-test"}
    ),
)
def test_classify_setting(name, run):
    """Settings that reach the classifier; --test is a table there."""
    value = CASES[name][0]
    options = ["--independence-test", value] if name == "test" else as_options({name: value})
    command = ("classify", "labelled.csv", "--target", "kind")
    argument = "score_function" if name == "score" else name
    require_passing(run, "spbn.sklearn.estimators.SPBNClassifier", command, options, {argument: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "settings"),
    [
        pytest.param(name, value, settings, id=name, marks=option("classify", name))
        for name, value, settings in [
            ("--model", "spbn", {"model": "spbn"}),
            ("--margins", "yeo-johnson", {"margins": "yeo-johnson"}),
            ("--structure", "augmented", {"structure": "augmented"}),
            ("--max-parents", "0", {"max_parents": 0}),
            ("--patience", "0", {"model": "spbn", "patience": 0}),
            ("--discrete", "few", {"discrete": ["few"]}),
            ("--seed", "3", {"seed": 3}),
            ("--columns", "b,a", {"columns": ("b", "a")}),
            ("--drop", "c,few", {"columns": ("a", "b")}),
        ]
    ],
)
def test_classify_setting_changes_the_probabilities(name, value, settings, run):
    """Settings that the classifier has as well."""
    found = classified(run, "--test", "new.csv", name, value, model=settings.get("model", "gbn"))
    plain = {"model": settings["model"]} if "model" in settings and name != "--model" else {}
    assert not np.allclose(found, expected_classes(**plain), rtol=1e-4), "choose another value"
    np.testing.assert_allclose(found, expected_classes(**settings), rtol=1e-6)


@pytest.mark.slow
@option("classify", "--calibrate")
def test_classify_calibrate(run):
    found = classified(run, "--test", "new.csv", "--no-calibrate")
    np.testing.assert_allclose(found, expected_classes(calibrate=False), rtol=1e-6)
    assert not np.allclose(found, classified(run, "--test", "new.csv", "--calibrate"))


@pytest.mark.slow
@option("classify", "--missing")
def test_classify_missing(run):
    holes = labelled_frame()
    holes.loc[3, "a"] = np.nan
    holes.to_csv("gaps.csv", index=False)
    labelled_frame(40, seed=1).to_csv("new.csv", index=False)
    command = [
        "classify",
        "gaps.csv",
        "--target",
        "kind",
        "--model",
        "gbn",
        "--test",
        "new.csv",
        "--out",
        "p.csv",
    ]
    assert run(*command)[0] == 2
    assert run(*command, "--missing", "drop")[0] == 0
    whole = holes.dropna()
    model = spbn.sklearn.SPBNClassifier(model="gbn").fit(whole.drop(columns="kind"), whole["kind"])
    expected = model.predict_proba(labelled_frame(40, seed=1).drop(columns="kind"))
    np.testing.assert_allclose(pd.read_csv("p.csv")[["P(no)", "P(yes)"]], expected, rtol=1e-6)


@pytest.mark.slow
@option("classify", "--target", "--test", "--out")
def test_classify_target_test_and_out(run):
    np.testing.assert_allclose(classified(run, "--test", "new.csv"), expected_classes(), rtol=1e-6)


@pytest.mark.slow
@option("classify", "--folds")
def test_classify_folds(run):
    first, second = classified(run, "--folds", "2"), classified(run, "--folds", "3")
    assert len(first) == len(second) == 90
    assert not np.allclose(first, second)


@option("classify", "--report")
def test_classify_report(run):
    classified(run, "--test", "new.csv", "--report", "r.html")
    assert "Most uncertain rows" in Path("r.html").read_text()
