"""Ctrl-C in `spbn learn`: the best network so far is offered, and saved where nobody can be asked."""

from pathlib import Path

import pytest

import spbn
from command_line import answer_questions
from spbn.io.checkpoint import Checkpoint


@pytest.fixture
def interrupted(folder, monkeypatch):
    """A search that is interrupted after its second step; the first line of the checkpoint is none."""
    original, count = Checkpoint.append, 0

    def append(self, result):
        nonlocal count
        original(self, result)
        count += 1
        if count == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "append", append)
    return folder


LEARN = ("learn", "data.csv", "--model", "spbn", "--checkpoint", "run.jsonl")


def test_without_a_terminal_it_is_saved(interrupted, run):
    code, out, _ = run(*LEARN, "--out", "m.spbn")
    assert code == 130
    assert "best network after 2 steps written to m.spbn" in out
    network = spbn.BayesianNetwork.load("m.spbn")
    assert network.search.stop_reason == "interrupted"
    assert len(network.search.steps) == 2
    code, out, _ = run("show", "m.spbn")
    assert "stopped: interrupted" in out


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_it_is_offered(answer, interrupted, run, monkeypatch):
    asked = answer_questions(monkeypatch, answer)
    monkeypatch.setattr("spbn.cli.learn._is_terminal", lambda: True)
    code, out, _ = run(*LEARN, "--out", "m.spbn")
    assert code == 130
    assert len(asked) == 1
    assert "after 2 steps. Save the best network so far to m.spbn?" in asked[0]
    assert Path("m.spbn").exists() == answer
    assert ("written to m.spbn" in out) == answer


def test_without_a_file_to_write_nothing_is_offered(interrupted, run):
    code, out, _ = run(*LEARN)
    assert (code, "written" in out) == (130, False)
    assert Path("run.jsonl").read_text().count("\n") == 3


def test_the_search_goes_on_from_its_checkpoint(interrupted, run):
    run(*LEARN)
    code, _, _ = run(*LEARN, "--out", "m.spbn")
    assert code == 0
    run("learn", "data.csv", "--model", "spbn", "--out", "whole.spbn")
    assert spbn.BayesianNetwork.load("m.spbn").search == spbn.BayesianNetwork.load("whole.spbn").search


def test_a_table_is_not_taken_for_a_checkpoint(folder, run):
    code, _, err = run("learn", "data.csv", "--checkpoint", "data.csv")
    assert (code, "is an input" in err) == (2, True)
    Path("other.csv").write_text("a,b\n1,2\n")
    code, _, err = run("learn", "data.csv", "--checkpoint", "other.csv")
    assert (code, "other.csv is not a checkpoint of spbn" in err) == (2, True)
    assert Path("other.csv").read_text() == "a,b\n1,2\n"


def test_confidence_is_printed_with_words(folder, run):
    code, out, _ = run("confidence", "data.csv", "--replicates", 5, "--model", "gbn")
    assert code == 0
    assert out.startswith("5 replicates, 3 nodes; arcs stronger than ")
    assert "strength  direction" in out
    assert "open: the reverse is equivalent" in out
