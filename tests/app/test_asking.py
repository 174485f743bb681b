"""Questions on the command line: what is printed, what is written, and what is refused."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from mixed import mixed_frame, mixed_network

HOLES = [(2, "town"), (2, "x"), (5, "x"), (7, "size")]


@pytest.fixture
def mixed(folder):
    """A model with discrete nodes, and a table with holes and a column of its own."""
    mixed_network("ckde").save("m.spbn")
    frame = mixed_frame(30, seed=3).round(3)
    frame.insert(1, "house no.", [f"{i:03}" for i in range(30)])
    frame = frame.astype(object)
    for row, name in HOLES:
        frame.loc[row, name] = np.nan
    frame.to_csv("holes.csv", index=False, na_rep="?")
    return frame


def test_levels_are_printed_with_their_probabilities(mixed, run):
    code, out, err = run("query", "m.spbn", "--given", "town in Leith,Portobello", "--given", "x>1")
    assert (code, err) == (0, "")
    posterior = mixed_network("ckde").query({"town": ["Leith", "Portobello"], "x": (1, None)})
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert lines["size"] == [
        "large",
        f"{posterior.probabilities('size')['large']:.3f},",
        "small",
        f"{posterior.probabilities('size')['small']:.3f}",
    ]
    expected = [posterior.mean()["y"], posterior.median()["y"], *posterior.interval(0.9).loc["y"]]
    np.testing.assert_allclose([float(number) for number in lines["y"]], expected, atol=0.01)
    assert lines["mean"] == ["median", "5", "%", "95", "%"]
    size = f"{posterior.effective_size:,.0f}"
    drawn = f"{len(posterior.weights):,} draws (effective sample size {size})"
    assert f"method: {posterior.method}, {drawn}" in out
    assert "\n  exact: town, size\n  forward: x, y, z\n" in out
    assert (
        f"log-evidence: {posterior.log_evidence:.3f}\n" in out
    )  # sums over levels of what each makes of x>1
    beyond = mixed_network("ckde").query({"z": (1, None)})
    error = beyond.log_evidence_error
    out = run("query", "m.spbn", "--given", "z>1")[1]
    assert f"log-evidence: {beyond.log_evidence:.3f} ± {error:.3f}" in out
    printed = json.loads(run("query", "m.spbn", "--given", "x=1", "--json")[1])
    assert printed["methods"] == dict(mixed_network("ckde").query({"x": 1.0}).methods)
    shares = mixed_network("ckde").query({"x": 1.0}).probabilities("town")
    assert printed["variables"]["town"] == {"probabilities": shares.to_dict()}


def test_what_is_exact_has_no_error(folder, run):
    frame = pd.read_csv("data.csv")
    network = spbn.learn(frame, model="gbn")
    network.save("g.spbn")
    out = run("query", "g.spbn", "--given", "a=1", "--event", "b>0")[1]
    posterior = network.query({"a": 1.0})
    assert "method: exact\n" in out
    assert f"log-evidence: {posterior.log_evidence:.3f}\n" in out
    assert out.endswith(f"P(b>0) = {posterior.probability({'b': (0, None)}):.4g}\n")
    assert "log-evidence" not in run("query", "g.spbn")[1]
    # Two conditions together are counted among draws.
    assert " ± " in run("query", "g.spbn", "--given", "a=1", "--event", "b>0", "--event", "c>0")[1]


def test_names_hold_spaces_operators_and_escapes(folder, run):
    names = ["speed <= limit", "limit", "\x1b[31mred"]
    frame = pd.read_csv("data.csv").set_axis(names, axis=1)
    network = spbn.learn(frame, model="gbn")
    network.save("named.spbn")
    code, out, _ = run("query", "named.spbn", "--given", "0<speed <= limit<=1", "--json")
    assert code == 0
    assert json.loads(out)["given"] == {"speed <= limit": [0.0, 1.0]}
    code, out, _ = run("query", "named.spbn", "--given", "limit=1")
    assert code == 0
    assert "\x1b[31m" not in out
    assert "\\x1b[31mred" in out


def test_imputing_changes_nothing_but_the_holes(mixed, run):
    before = pd.read_csv("holes.csv", dtype=str, keep_default_na=False)
    before["x"] = [text if text == "?" else f"{float(text):+.5f}" for text in before["x"]]  # as no float is
    before.to_csv("holes.csv", index=False)
    assert run("impute", "m.spbn", "holes.csv", "--out", "full.tsv")[0] == 0
    after = pd.read_csv("full.tsv", sep="\t", dtype=str, keep_default_na=False)
    changed = {(row, name) for row, name in zip(*np.nonzero((before != after).to_numpy()), strict=True)}
    assert {(row, before.columns[k]) for row, k in changed} == set(HOLES)
    assert after.loc[2, "town"] in mixed_network("ckde").variables[0].levels
    assert np.isfinite(float(after.loc[5, "x"]))


def test_imputing_parquet(mixed, run):
    mixed.to_parquet("holes.parquet")
    assert run("impute", "m.spbn", "holes.parquet", "--out", "full.parquet")[0] == 0
    full = pd.read_parquet("full.parquet")
    assert not full.isna().to_numpy().any()
    kept = mixed.notna()
    assert full["house no."].tolist() == mixed["house no."].tolist()
    for name in mixed:
        assert full.loc[kept[name], name].tolist() == mixed.loc[kept[name], name].tolist()


def test_a_table_without_holes_comes_back(mixed, run):
    mixed_frame(10, seed=1).to_csv("whole.csv", index=False)
    code, out, _ = run("impute", "m.spbn", "whole.csv", "--out", "same.csv")
    assert (code, out) == (0, "no value is missing: nothing was filled in\n10 rows written to same.csv\n")
    assert Path("same.csv").read_text() == Path("whole.csv").read_text()


def test_predictions_say_what_they_do_without(mixed, run):
    rows = mixed_frame(12, seed=4)
    rows[["town", "y"]].to_csv("few.csv", index=False)
    code, out, err = run("predict", "m.spbn", "few.csv", "--target", "size", "--target", "x")
    assert code == 0
    assert err == "spbn: note: few.csv has no column 'z': predicting without it.\n"
    expected = mixed_network("ckde").predict(rows[["town", "y"]], ["size", "x"])
    assert out == expected.to_csv(index=False)


def test_a_column_that_is_predicted_is_not_looked_at(mixed, run):
    rows = mixed_frame(12, seed=4)
    rows.assign(y="unknown").to_csv("odd.csv", index=False)
    code, out, _ = run("predict", "m.spbn", "odd.csv", "--target", "y")
    assert (code, out) == (
        0,
        mixed_network("ckde").predict(rows.drop(columns="y"), ["y"]).to_csv(index=False),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("query m.spbn --given y=1 --do y=2", "'y' is in --given and in --do: it is either observed or set"),
        ("query m.spbn --given 5<=y<=3", "--given: the interval of 'y' is empty: 5 to 3."),
        ("query m.spbn --do y>3", "--do sets variables to values, not to intervals or sets: 'y'."),
        ("query m.spbn --event y=3", "--event: 'y' is continuous, so exactly 3 has probability 0."),
        ("query m.spbn --given y=3 --event y>3", "'y' was observed: ask about "),
        ("query m.spbn --given w=3", "--given 'w=3' does not name a variable of the model."),
        ("query m.spbn --out samples.txt", "the name of a table must end in one of .csv, .tsv, .csv.gz"),
        ("query m.spbn --plot p.dot", "the name of a picture must end in one of .svg, .png, .pdf."),
        ("query m.spbn --out m.spbn", "m.spbn is an input, and writing would destroy it"),
        ("query m.spbn --out a.csv --plot a.csv", "a.csv would be written twice"),
        ("query m.spbn --seed -1", "--seed must be a whole number, 0 or more. Got -1 instead."),
        ("impute m.spbn holes.csv --out holes.csv", "holes.csv is an input, and writing would destroy it"),
        ("impute m.spbn full-2.csv --out full.csv --draws 2", "full-2.csv is an input"),
        ("impute m.spbn holes.csv --out full.csv --draws 0", "--draws must be 1 or more. Got 0."),
        ("impute m.spbn few.csv --out full.csv", "few.csv has no columns 'size', 'x' and 'z'."),
        ("predict m.spbn holes.csv --target w", "--target names unknown variables: 'w'."),
        ("predict m.spbn holes.csv --target y --out holes.csv", "holes.csv is an input"),
        ("predict m.spbn odd.csv --target y", "odd.csv has none of the columns to predict 'y' from."),
        (
            "predict m.spbn holes.csv --target y --statistic mid",
            "'mid' is not one of 'mean'",
        ),
    ],
)
def test_refusals(mixed, run, arguments, message):
    mixed[["town", "y"]].to_csv("few.csv", index=False)
    mixed.to_csv("full-2.csv", index=False)
    mixed[["house no.", "y"]].to_csv("odd.csv", index=False)
    before = {path: path.read_bytes() for path in Path().iterdir()}
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("command", ["query m.spbn --out x.csv", "impute m.spbn holes.csv --out x.csv"])
def test_an_interrupt_leaves_nothing_behind(mixed, run, monkeypatch, command):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = set(os.listdir())
    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupted)
    code, _, err = run(*command.split())
    assert (code, err) == (130, "")
    assert set(os.listdir()) == before


def test_values_far_from_zero_are_printed_with_the_digits_that_vary(folder, run):
    rng = np.random.default_rng(0)
    when = rng.normal(0.0, 5.0, 100)
    spbn.learn({"t": 1.7e9 + when, "x": when + rng.normal(size=100)}, model="gbn").save("g.spbn")
    event = "t>=1700000001.5"
    out = run("query", "g.spbn", "--given", "x=2", "--event", event)[1]
    posterior = spbn.BayesianNetwork.load("g.spbn").query({"x": 2.0})
    expected = [posterior.mean()["t"], posterior.median()["t"], *posterior.interval(0.9).loc["t"]]
    (line,) = [line.split()[1:] for line in out.splitlines() if line.startswith("t ")]
    np.testing.assert_allclose([float(number) for number in line], expected, rtol=0.0, atol=0.01)
    assert f"P({event}) =" in out
    err = run("query", "g.spbn", "--given", "t>1700000002", "--given", "t<1700000001")[2]
    assert "is empty: 1700000002 to 1700000001" in err
