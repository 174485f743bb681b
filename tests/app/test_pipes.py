"""Tables through pipes: - is standard input, and standard output after --out."""

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

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


def command(*arguments, unbuffered=""):
    """Return what starts a command, with its environment."""
    program = "from spbn.cli.main import main; main()"
    return {
        "args": [sys.executable, "-c", program, *arguments],
        "env": os.environ
        | {"PYTHONPATH": str(Path(spbn.__file__).parents[1]), "PYTHONUNBUFFERED": unbuffered},
    }


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_files_are_written_though_nobody_reads_what_is_printed(model, unbuffered):
    """As in ``spbn score model.spbn data.csv --out scores.csv | head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    score = command("score", "model.spbn", "data.csv", "--out", "scores.csv", unbuffered=unbuffered)
    done = subprocess.run(**score, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(pd.read_csv("scores.csv")) == 150


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("-n", "1"), ("-n", "9", "--json"), ("-n", "20000", "--out", "-")])
def test_a_full_disk_is_an_error(model, arguments, unbuffered):
    with open("/dev/full", "wb") as full:
        sample = command("sample", "model.spbn", *arguments, unbuffered=unbuffered)
        done = subprocess.run(**sample, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, "spbn: No space left on device\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there are no limits of files on Windows")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_fills_up_is_an_error(model, unbuffered):
    """The first write then succeeds in part, which Python does not notice if it does not buffer."""
    import resource
    import signal

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    with open("rows.csv", "wb") as target:
        sample = command("sample", "model.spbn", "-n", "2000", "--out", "-", unbuffered=unbuffered)
        done = subprocess.run(**sample, stdout=target, stderr=subprocess.PIPE, preexec_fn=limit, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, "spbn: File too large\n")
    assert os.path.getsize("rows.csv") == 5000
