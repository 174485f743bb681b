"""Tables through pipes: - is standard input, and standard output after --out."""

import gzip
import io
import sys

import pandas as pd
import pytest

import spbn

from strategies import nonlinear_frame

FRAME = nonlinear_frame(150, 3)


@pytest.fixture
def piped(run, monkeypatch):
    """Run a command with a table on standard input."""

    def call(content, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run(*arguments)

    return call


def test_rows_come_and_go_through_pipes(model, piped):
    network = spbn.BayesianNetwork.load("model.spbn")
    text = FRAME.to_csv(index=False).encode()
    german = FRAME.to_csv(index=False, sep=";", decimal=",").encode()
    for content in (text, german, gzip.compress(text)):
        code, out, err = piped(content, "score", "model.spbn", "-", "--out", "-")
        assert code == 0, err
        found = pd.read_csv(io.StringIO(out))["logpdf"]
        assert found.mean() == pytest.approx(network.logpdf(FRAME).mean(), rel=0.2)
        assert len(found) == len(FRAME)
        assert "nodes to blame" in err
        assert "scores written to standard output" in err


def test_a_network_is_learned_from_a_pipe(folder, piped):
    code, _, err = piped(FRAME.to_csv(index=False).encode(), "learn", "-", "--out", "m.spbn")
    assert code == 0, err
    assert spbn.BayesianNetwork.load("m.spbn") == spbn.learn(FRAME)


def test_holes_are_filled_in_a_pipe(model, piped):
    holes = FRAME.copy()
    holes.loc[3, "a"] = None
    content = holes.to_csv(index=False, sep=";", decimal=",").encode()
    code, out, err = piped(content, "impute", "model.spbn", "-", "--out", "-")
    assert code == 0, err
    full = pd.read_csv(io.StringIO(out))
    pd.testing.assert_frame_equal(full.drop(index=3), FRAME.drop(index=3))
    assert full.notna().all(axis=None)
    assert "1 missing value in 1 row filled in" in err


def test_draws_go_to_standard_output_alone(model, run):
    code, out, err = run("query", "model.spbn", "--given", "a=0", "-n", 5, "--out", "-")
    assert code == 0
    assert len(pd.read_csv(io.StringIO(out))) == 5
    assert "method: " in err


def test_numbered_packed_tables_keep_their_endings(model, run):
    assert run("impute", "model.spbn", "data.csv", "--draws", 2, "--out", "full.csv.gz")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("full-2.csv.gz"), FRAME)
