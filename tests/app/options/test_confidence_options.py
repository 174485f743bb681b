"""Options of ``spbn confidence``."""

import json
from pathlib import Path

import pandas as pd
import pytest

import spbn
from command_options import (
    as_options,
    learning_options,
    option,
    scheduler_address,
)
from learning_options import CASES, FRAME
from spbn.record import plain_settings
from spbn.report.pages import render_confidence

pytestmark = pytest.mark.usefixtures("tables")


def repeated(run, *arguments):
    """Run `spbn confidence`; return the settings that its checkpoint has, and the arcs that it wrote."""
    Path("run.jsonl").unlink(missing_ok=True)
    command = ("confidence", *arguments, "--checkpoint", "run.jsonl", "--out", "arcs.csv")
    code, _, err = run(*command)
    assert code == 0, err
    return json.loads(Path("run.jsonl").read_text().splitlines()[0])["settings"], pd.read_csv("arcs.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", learning_options("confidence", without=["max_seconds", "hidden", "atoms"]))
def test_confidence_setting(name, run):
    """Settings that `spbn.learn` has as well; replicates have as much time as they need."""
    value, others = CASES[name]
    found, arcs = repeated(run, "frame.csv", "--replicates", 1, *as_options(others | {name: value}))
    assert found[name] == plain_settings({name: value})[name]
    expected = spbn.confidence(FRAME, replicates=1, **others, **{name: value})
    pd.testing.assert_frame_equal(arcs, expected.arcs, check_dtype=False)


@pytest.mark.slow
@option("confidence", "--hidden")
def test_confidence_hidden(run):
    """Half of the usual rows are too few for two classes."""
    frame = pd.concat([FRAME, FRAME + 20.0], ignore_index=True)
    frame.to_csv("classes.csv", index=False)
    found, arcs = repeated(run, "classes.csv", "--replicates", 1, "--model", "gbn", "--hidden", 2)
    assert found["hidden"] == 2
    expected = spbn.confidence(frame, replicates=1, model="gbn", hidden=2)
    pd.testing.assert_frame_equal(arcs, expected.arcs, check_dtype=False)


def confidence_of(run, table, *arguments):
    """Return the arcs that the command writes with two quick replicates."""
    return repeated(run, table, "--model", "gbn", "--replicates", 2, *arguments)[1]


def expected_arcs(frame, **settings):
    return spbn.confidence(frame, **{"model": "gbn", "replicates": 2, **settings}).arcs


@option("confidence", "--columns")
def test_confidence_columns(run):
    found = confidence_of(run, "named.csv", "--columns", "d,a,b")
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME[["d", "a", "b"]]))


@option("confidence", "--drop")
def test_confidence_drop(run):
    found = confidence_of(run, "named.csv", "--drop", "name,c")
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME, drop=["c"]))


@option("confidence", "--missing")
def test_confidence_missing(run):
    assert run("confidence", "holes.csv", "--replicates", 2)[0] == 2
    found = confidence_of(run, "holes.csv", "--missing", "drop")
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME.drop(index=3).reset_index(drop=True)))


@option("confidence", "--replicates", "--out")
def test_confidence_replicates_and_out(run):
    found = confidence_of(run, "frame.csv", "--replicates", 5)
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME, replicates=5))
    assert len(Path("run.jsonl").read_text().splitlines()) == 1 + 5


@pytest.mark.cluster
@option("confidence", "--workers")
def test_confidence_workers(run):
    found = confidence_of(run, "frame.csv", "--workers", 2)
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME))
    assert run("confidence", "frame.csv", "--workers", 0)[0] == 2


@pytest.mark.cluster
@option("confidence", "--scheduler")
def test_confidence_scheduler(run):
    with scheduler_address() as address:
        found = confidence_of(run, "frame.csv", "--scheduler", address)
        pd.testing.assert_frame_equal(found, expected_arcs(FRAME))
        assert run("confidence", "frame.csv", "--scheduler", address, "--workers", 2)[0] == 2
    code, _, err = run("confidence", "frame.csv", "named.csv")
    assert (code, "one table can be given. Got 2: 'frame.csv' and 'named.csv'" in err) == (2, True)


@option("confidence", "--checkpoint")
def test_confidence_checkpoint(run):
    spbn.confidence(FRAME, replicates=1, checkpoint="run.jsonl", model="gbn")
    code, _, err = run("confidence", "frame.csv", "--checkpoint", "run.jsonl", "--model", "kdebn")
    assert (code, "it was made with --model gbn, and not with --model kdebn" in err) == (2, True)


@option("confidence", "--report")
def test_confidence_report(run):
    confidence_of(run, "frame.csv", "--report", "r.html")
    found = spbn.confidence(FRAME, model="gbn", replicates=2)
    assert Path("r.html").read_text() == render_confidence(found, title="Which arcs of frame to believe")
