"""A table as people have it: text, truth values, a date, an id, holes, and numbers that are none."""

import re

import numpy as np
import pandas as pd
import pytest

import spbn
from mixed import mixed_frame, mixed_network
from spbn.cli.files import write_table

ROWS = 120


@pytest.fixture
def user_table(folder):
    """Every kind of column, with a few holes written as a question mark."""
    frame = mixed_frame(ROWS)
    frame["id"] = [f"house {i}" for i in range(ROWS)]
    frame["sold"] = pd.date_range("2024-01-31", periods=ROWS).strftime("%d/%m/%Y")
    frame["garden"] = np.resize([True, False, False], ROWS)
    frame["rooms"] = np.resize([1, 2, 3], ROWS)
    frame["price"] = [*np.random.default_rng(1).normal(size=ROWS - 1).round(3), "n. a."]
    frame = frame.astype(object)
    frame.loc[3, "town"] = frame.loc[5, "garden"] = frame.loc[7, "x"] = "?"
    frame.to_csv("user.csv", index=False)
    return frame


def test_every_kind_of_column_is_treated_or_refused_with_the_option_to_pass(user_table, run):
    code, _, err = run("learn", "user.csv")
    assert code == 2
    assert re.search("id +text with 120 different values in 120 rows.* +left out", err)
    assert re.search("sold +dates, such as 31/01/2024 +read as days since 2024-01-31", err)
    assert re.search("rooms +the numbers 1, 2, 3 +read as categories", err)
    assert re.search("price +'n. a.' among numbers +'n. a.' treated as missing", err)
    assert err.endswith("To have all this done: spbn learn user.csv --fix auto\n")
    options = ["--drop", "id,sold,price"]
    code, _, err = run("learn", "user.csv", *options)
    assert code == 2
    assert re.search("3 of 120 rows have missing values +imputed while learning", err)
    assert err.endswith("spbn learn user.csv --drop id,sold,price --fix auto\n")
    options += ["--missing", "drop", "--model", "gbn", "--out", "m.spbn"]
    code, out, err = run("learn", "user.csv", *options)
    assert code == 0
    assert "3 of 120 rows left out" in out
    assert "column 'rooms' has only two or three different values and is treated as a number" in err
    assert "--discrete rooms" in err
    assert run("learn", "user.csv", *options, "--discrete", "rooms")[0] == 0
    variables = {v.name: v.levels for v in spbn.BayesianNetwork.load("m.spbn").variables}
    assert variables == {
        "town": ("Leith", "Portobello", "Stockbridge"),
        "size": ("large", "small"),
        "x": (),
        "y": (),
        "z": (),
        "garden": ("False", "True"),
        "rooms": ("1", "2", "3"),
    }


@pytest.fixture
def mixed_model(folder):
    mixed_network().save("m.spbn")
    return mixed_frame(20, seed=1)


def test_rows_of_a_mixed_network_are_scored(mixed_model, run):
    mixed_model.to_csv("new.csv", index=False)
    code, _, err = run("score", "m.spbn", "new.csv", "--out", "s.csv")
    assert code == 0, err
    np.testing.assert_allclose(pd.read_csv("s.csv")["logpdf"], mixed_network().logpdf(mixed_model))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_unknown_levels_are_named_with_their_place(mixed_model, run, kind):
    frame = mixed_model.assign(town=[*mixed_model["town"][:-1], "Cramond"])
    write_table(frame, f"new.{kind}")
    code, _, err = run("score", "m.spbn", f"new.{kind}")
    line = " (line 21)" if kind == "csv" else ""
    assert code == 2
    assert f"column 'town' has the level 'Cramond' in row 20{line}, which the model does not know" in err
    assert "Its levels are 'Leith', 'Portobello' and 'Stockbridge'" in err


def test_text_in_a_column_of_numbers_of_a_model_is_refused(mixed_model, run):
    mixed_model.astype({"x": object}).assign(x=["much", *mixed_model["x"][1:]]).to_csv("new.csv", index=False)
    code, _, err = run("score", "m.spbn", "new.csv")
    assert code == 2
    assert "column 'x' holds text, not numbers: 'much' in row 1 (line 2)" in err


def test_levels_that_look_like_numbers_are_found_however_they_are_written(folder, run):
    frame = mixed_frame(60)
    codes = np.resize(["01", "2", "x"], 60)
    spbn.learn(frame.assign(code=codes), model="gbn", discrete=["code"]).save("codes.spbn")
    frame.assign(code=np.resize(["01", "2.0"], 60)).to_csv("new.csv", index=False)
    code, _, err = run("score", "codes.spbn", "new.csv")
    assert code == 0, err
    flags = np.resize([True, False], 60)
    spbn.learn(frame.assign(code=flags), model="gbn").save("flags.spbn")
    new = mixed_frame(60, seed=1)
    new.assign(code=np.resize(["TRUE", "false"], 60)).to_csv("new.csv", index=False)
    assert run("score", "flags.spbn", "new.csv", "--out", "s.csv")[0] == 0
    expected = spbn.BayesianNetwork.load("flags.spbn").logpdf(new.assign(code=flags))
    np.testing.assert_allclose(pd.read_csv("s.csv")["logpdf"], expected)


def test_probabilities_and_configurations_are_shown(mixed_model, run):
    code, out, _ = run("show", "m.spbn")
    assert code == 0
    assert "2 discrete" in out
    lines = [line.split() for line in out.splitlines()]
    heads = next(i for i, line in enumerate(lines) if line[:1] == ["probability"])
    assert lines[heads][1:] == ["Leith", "Portobello", "Stockbridge"]
    counts = mixed_frame()["town"].value_counts().sort_index()
    assert [float(value) for value in lines[heads + 1][1:]] == pytest.approx((counts + 1 / 3) / 161, abs=1e-4)
    for town in counts.index:
        x = mixed_network().cpds["x"]
        density = x.densities[list(counts.index).index(town)]
        assert f"town = {town}" in out
        assert density.describe().formula in out


def test_mixed_tables_are_compared(folder, run):
    mixed_frame(90).to_csv("mixed.csv", index=False)
    code, out, err = run("compare", "mixed.csv", "--folds", 2, "--margins", "none")
    assert code == 0, err
    assert all(model in out for model in ("gbn", "spbn", "kdebn", "blend"))
    assert "nan" not in out


def test_levels_of_rows_that_are_left_out_are_known(folder, run):
    """A model learned without incomplete rows could not score them: their levels were unknown."""
    frame = pd.DataFrame({"town": ["Leith", "Kelso"] * 20, "flag": [True, False] * 20, "k": [1, 2] * 20})
    frame["x"] = np.arange(40.0) % 7
    frame.loc[3, ["town", "k", "x"]] = ["Ayr", 3, None]
    frame.to_csv("rare.csv", index=False)
    options = ["--missing", "drop", "--model", "gbn", "--discrete", "k", "--out", "m.spbn"]
    assert run("learn", "rare.csv", *options)[0] == 0
    network = spbn.BayesianNetwork.load("m.spbn")
    assert network == spbn.learn(frame, missing="drop", model="gbn", discrete=["k"])
    assert [v.levels for v in network.variables][:2] == [("Ayr", "Kelso", "Leith"), ("False", "True")]
    assert run("score", "m.spbn", "rare.csv", "--missing", "integrate")[0] == 0
