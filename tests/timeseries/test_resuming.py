"""Searches over time that are stopped or killed, and go on: both note their steps in one file."""

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.errors import CheckpointError
from time_series import autoregression, threshold

FRAME = threshold(90)
SETTINGS = {"lags": 2, "folds": 3, "patience": 1}


@pytest.fixture(scope="module")
def whole():
    return spbn.learn_dynamic(FRAME, **SETTINGS)


def same(found, whole):
    assert found == whole
    assert found.transition.search == whole.transition.search
    assert found.static.search == whole.static.search
    return True


def test_both_searches_go_on_after_any_step(tmp_path, whole):
    path = tmp_path / "run.jsonl"
    assert same(spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path), whole)
    lines = path.read_bytes().splitlines(keepends=True)
    steps = [len(network.search.steps) for network in (whole.transition, whole.static)]
    assert len(lines) == 1 + sum(steps)
    assert min(steps) > 1
    first = 1 + steps[0]
    for kept in (1, 2, first, first + 1, len(lines)):
        path.write_bytes(b"".join(lines[:kept]) + b'{"part'[: 6 * (kept < len(lines))])
        assert same(spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path), whole)
        assert path.read_bytes() == b"".join(lines)


def test_steps_are_taken_from_the_file(tmp_path, whole):
    """A finished file leaves no step to search for: no score of a step is noted twice."""
    path = tmp_path / "run.jsonl"
    spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path)
    before = path.read_bytes()
    stopped = spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path, max_seconds=0)
    assert stopped.transition.structure == whole.transition.structure
    assert stopped.static.structure == whole.static.structure
    assert path.read_bytes() == before


def test_time_that_is_up_and_more_of_it(tmp_path, whole):
    path = tmp_path / "run.jsonl"
    stopped = spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path, max_seconds=0)
    assert stopped.transition.structure.arcs == stopped.static.structure.arcs == ()
    assert same(spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path), whole)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (FRAME * 2, {}, "it was made from other rows"),
        (FRAME, {"lags": 1}, "it was made with lags=2, and not with lags=1"),
        (FRAME, {"patience": 2}, "it was made with patience=1, and not with patience=2"),
        (FRAME, {"forbidden_arcs": [(("x", 1), "y")]}, r"it was made with forbidden_arcs=\[\], and not"),
        (FRAME.assign(s=np.repeat(["m", "n"], 45)), {"series": "s"}, "it was made with series=None"),
    ],
)
def test_a_checkpoint_of_other_work_is_refused(frame, options, message, tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path, max_seconds=0)
    with pytest.raises(CheckpointError, match=message):
        spbn.learn_dynamic(frame, **SETTINGS | options, checkpoint=path)


def test_series_that_begin_elsewhere_are_other_work(tmp_path):
    """The rows that have a past are the same, but not those that begin a series."""
    path = tmp_path / "run.jsonl"
    rows = autoregression(60)
    split = [rows.iloc[:30].assign(s=1), rows.iloc[29:].assign(s=2)]
    spbn.learn_dynamic(rows.assign(s=1), series="s", model="gbn", checkpoint=path)
    with pytest.raises(CheckpointError, match="it was made from other rows"):
        spbn.learn_dynamic(pd.concat(split), series="s", model="gbn", checkpoint=path)


@pytest.mark.parametrize("line", ['{"part": "other"}', "{}", '{"part": "static"}', '{"part": "transition"}'])
def test_a_damaged_checkpoint_is_refused(line, tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path, max_seconds=0)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(CheckpointError, match="is damaged"):
        spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path)


def test_what_is_refused_leaves_no_file(tmp_path):
    path = tmp_path / "run.jsonl"
    for options in ({"model": "other"}, {"algorithm": "pc"}, {"seed": None}, {"folds": 60}):
        with pytest.raises(spbn.SpbnError):
            spbn.learn_dynamic(FRAME, **SETTINGS | options, checkpoint=path)
    assert not path.exists()


def test_a_checkpoint_of_single_rows_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.learn(FRAME, checkpoint=path, max_seconds=0)
    with pytest.raises(CheckpointError, match="it is about 'search', and not 'search over time'"):
        spbn.learn_dynamic(FRAME, **SETTINGS, checkpoint=path)
