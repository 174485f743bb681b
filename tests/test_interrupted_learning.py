"""`learn` that runs out of time, is interrupted or killed: nothing is lost, and it goes on the same way."""

import json
import subprocess
import sys

import numpy as np
import pytest

import spbn
from spbn.errors import ArgumentError, CheckpointError
from spbn.io.checkpoint import Checkpoint

from strategies import nonlinear_frame

FRAME = nonlinear_frame(60, 4, seed=2)
WHOLE = spbn.learn(FRAME)
CLIMBED = spbn.learn(FRAME, model="spbn")


def interrupting(monkeypatch, after):
    """Press Ctrl-C when so many steps have been noted; the first line is no step."""
    original, count = Checkpoint.append, 0

    def append(self, result):
        nonlocal count
        original(self, result)
        count += 1
        if count == after + 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "append", append)


def test_every_step_is_noted_and_a_search_goes_on_after_any(tmp_path):
    path = tmp_path / "run.jsonl"
    assert spbn.learn(FRAME, model="spbn", checkpoint=path) == CLIMBED
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(CLIMBED.search.steps)
    for kept in (0, 1, 2, len(lines) - 1, len(lines)):
        path.write_bytes(b"".join(lines[:kept]) + b'{"oper'[: 6 * (0 < kept < len(lines))])
        network = spbn.learn(FRAME, model="spbn", checkpoint=path)
        assert network == CLIMBED
        assert network.search == CLIMBED.search
        assert network.record.settings == CLIMBED.record.settings
        assert path.read_bytes() == b"".join(lines)


def test_time_that_is_up_and_more_of_it(tmp_path):
    path = tmp_path / "run.jsonl"
    first = spbn.learn(FRAME, model="spbn", max_seconds=0, checkpoint=path)
    assert (first.search.stop_reason, first.structure.arcs) == ("max_seconds", ())
    assert spbn.learn(FRAME, model="spbn", checkpoint=path).search == CLIMBED.search


def test_time_that_is_up_for_an_order_search(tmp_path):
    path = tmp_path / "run.jsonl"
    first = spbn.learn(FRAME, max_seconds=0, checkpoint=path)
    assert first.search.stop_reason == "max_seconds"
    assert first.search.score <= WHOLE.search.score
    assert spbn.learn(FRAME, checkpoint=path).search == WHOLE.search


def test_an_interrupt_offers_the_best_network_so_far(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    interrupting(monkeypatch, after=2)
    with pytest.raises(spbn.learning.LearningInterrupted) as caught:
        spbn.learn(FRAME, model="spbn", checkpoint=path)
    network = caught.value.network()
    assert network.search.stop_reason == "interrupted"
    assert network.search.steps == CLIMBED.search.steps[:2]
    assert network == spbn.BayesianNetwork.fit(network.search.structure, FRAME)
    network.save(tmp_path / "m.spbn")
    loaded = spbn.BayesianNetwork.load(tmp_path / "m.spbn")
    assert loaded.search.stop_reason == "interrupted"
    assert spbn.learn(FRAME, model="spbn", checkpoint=path).search == CLIMBED.search


def test_an_interrupt_while_node_types_are_found_for_pc(monkeypatch):
    module = sys.modules["spbn.learning.learn"]
    original = module.hill_climb

    def interrupted(*arguments, **options):
        def stop(step):
            raise KeyboardInterrupt

        return original(*arguments, **options | {"on_step": stop})

    monkeypatch.setattr(module, "hill_climb", interrupted)
    with pytest.raises(spbn.learning.LearningInterrupted) as caught:
        spbn.learn(FRAME, model="spbn", algorithm="pc", test="plc")
    network = caught.value.network()
    assert network.type_search.stop_reason == "interrupted"
    assert len(network.type_search.steps) == 1
    assert network.search.pdag is not None


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on(tmp_path):
    """In a process of its own, which ends without a word after its third step."""
    path = tmp_path / "run.jsonl"
    FRAME.to_parquet(tmp_path / "frame.parquet")
    code = f"""
import os, pandas as pd, spbn
from spbn.io.checkpoint import Checkpoint
original, count = Checkpoint.append, 0
def append(self, result):
    global count
    original(self, result)
    count += 1
    if count == 4:
        os._exit(9)
Checkpoint.append = append
spbn.learn(pd.read_parquet({str(tmp_path / "frame.parquet")!r}), checkpoint={str(path)!r})
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 9
    assert path.read_bytes().count(b"\n") == 4
    assert spbn.learn(FRAME, checkpoint=path).search == WHOLE.search


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (FRAME * 2, {}, "it was made from other rows"),
        (FRAME[["d", "c", "b", "a"]], {}, "it was made from the columns"),
        (FRAME, {"folds": 3}, "it was made with folds=10, and not with folds=3"),
        (FRAME, {"patience": 1}, "it was made with model='auto', and not with model='spbn'"),
        (FRAME, {"model": "auto", "patience": 1}, "it was made with patience=5, and not with patience=1"),
        (FRAME, {"required_arcs": iter([("a", "b")])}, "it was made with required_arcs="),
        (
            FRAME,
            {"model": "spbn", "validation": nonlinear_frame(9, 4)},
            "it was made with validation=0.2, and not with validation=",
        ),
    ],
)
def test_a_checkpoint_of_other_work_is_refused(frame, options, message, tmp_path):
    path = tmp_path / "run.jsonl"
    model = {name: value for name, value in options.items() if name == "model"}
    spbn.learn(FRAME, max_seconds=0, checkpoint=path, **model)
    with pytest.raises(CheckpointError, match=message):
        spbn.learn(frame, checkpoint=path, **options)


def test_a_checkpoint_of_another_bandwidth_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"

    def rule(factor):
        return lambda rows: factor * np.atleast_2d(np.cov(rows.T))

    given = {"model": "spbn", "max_seconds": 0, "checkpoint": path}
    for bandwidth, other, message in (
        ("scott", "silverman", "bandwidth='scott', and not with bandwidth='silverman'"),
        (rule(0.1), rule(0.9), "it was made with bandwidth="),
        ("scott", rule(0.1), "it was made with bandwidth='scott'"),
    ):
        path.unlink(missing_ok=True)
        spbn.learn(FRAME, bandwidth=bandwidth, **given)
        spbn.learn(FRAME, bandwidth=bandwidth, **given)
        with pytest.raises(CheckpointError, match=message):
            spbn.learn(FRAME, bandwidth=other, **given)


@pytest.mark.parametrize("changed", [{"seed": None}, {"of another version": None}])
def test_settings_that_differ_by_none_are_named(changed, tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn(FRAME, max_seconds=0, checkpoint=path)
    header = json.loads(path.read_text())
    header["settings"] |= changed
    path.write_text(json.dumps(header, ensure_ascii=False) + "\n")
    (name,) = changed
    with pytest.raises(CheckpointError, match=f"belongs to other work: it was made with {name}=None"):
        spbn.learn(FRAME, checkpoint=path)


@pytest.mark.parametrize("missing", ["missing", "twice", "changed", "swapped"])
def test_lines_follow_each_other(missing, tmp_path):
    """A search would go on from other steps, and find another network."""
    path = tmp_path / "run.jsonl"
    spbn.learn(FRAME, model="spbn", checkpoint=path)
    first, second, third, *rest = path.read_text().splitlines(keepends=True)
    changed = {
        "missing": [first, third],
        "twice": [first, second, second, third],
        "changed": [first, second.replace('"misses": 0', '"misses":  0'), third],
        "swapped": [first, third, second],
    }
    path.write_text("".join([*changed[missing], *rest]))
    with pytest.raises(CheckpointError, match="does not follow the line before it"):
        spbn.learn(FRAME, model="spbn", checkpoint=path)


def test_one_run_at_a_time_writes_to_a_checkpoint(tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn(FRAME, max_seconds=0, checkpoint=path)
    before = path.read_bytes()
    code = f"""
import sys
from pathlib import Path
from spbn.io import checkpoint
file = checkpoint._File.of(Path({str(path)!r}))
print("has it", flush=True)
sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, text=True) as other:
        assert other.stdout.readline() == "has it\n"
        with pytest.raises(CheckpointError, match="is in use: another process writes its results to it"):
            spbn.learn(FRAME, checkpoint=path)
        assert path.read_bytes() == before
        other.stdin.close()
    assert spbn.learn(FRAME, checkpoint=path).search == WHOLE.search  # the lock ends with the process


def test_what_another_process_wrote_is_not_overwritten(tmp_path):
    """On a file system without locks."""
    checkpoint = Checkpoint(tmp_path / "run.jsonl", {"work": "search"})
    with (tmp_path / "run.jsonl").open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(CheckpointError, match="was changed by another process"):
        checkpoint.append({"result": 1})


def test_labels_and_validation_rows_are_told_apart(tmp_path):
    given = {"folds": np.arange(60) % 3, "validation": nonlinear_frame(9, 4), "max_seconds": 0}
    for _ in range(2):
        spbn.learn(FRAME, checkpoint=tmp_path / "run.jsonl", **given)
    for other in ({"folds": np.arange(60) % 4}, {"validation": nonlinear_frame(9, 4, seed=1)}):
        with pytest.raises(CheckpointError, match="belongs to other work"):
            spbn.learn(FRAME, checkpoint=tmp_path / "run.jsonl", **given | other)


@pytest.mark.parametrize("step", ["{}", '{"operator": {"kind": "add"}}', "[]", "{"])
def test_a_damaged_checkpoint_is_refused(step, tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn(FRAME, max_seconds=0, checkpoint=path)
    path.write_text(path.read_text() + step + "\n")
    with pytest.raises(CheckpointError, match=r"is damaged|is not a checkpoint"):
        spbn.learn(FRAME, checkpoint=path)


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", b"a,b", b"\xff\xfe\n", b"[1]\n", b'{"format": "other"}\n']
)
def test_other_files_are_left_alone(content, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a checkpoint of spbn"):
        spbn.learn(FRAME, checkpoint=path)
    assert path.read_bytes() == content


def test_where_they_cannot_be_used_they_are_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    for given in ({"checkpoint": path}, {"max_seconds": 1}):
        (name,) = given
        with pytest.raises(ArgumentError, match=f"{name} can be given with algorithm='hc' only"):
            spbn.learn(FRAME, algorithm="pc", test="plc", **given)
        with pytest.raises(ArgumentError, match=f"{name} cannot be given with missing='impute'"):
            spbn.learn(FRAME, missing="impute", **given)
    with pytest.raises(ArgumentError, match="seed that is a whole number"):
        spbn.learn(FRAME, seed=np.random.default_rng(0), checkpoint=path)
    with pytest.raises(ArgumentError, match="max_seconds must be"):
        spbn.learn(FRAME, max_seconds=-1)
    assert not path.exists()
