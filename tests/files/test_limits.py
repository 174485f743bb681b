"""What a file may ask for, and how files come to be: whole, with the right mode, or not at all."""

import json
import os
import stat
import zipfile

import numpy as np
import pytest

import spbn
from spbn import BayesianNetwork, Structure, io
from spbn._base import files
from spbn._base.files import replacing
from spbn.errors import ModelFileError

from strategies import nonlinear_frame


@pytest.fixture
def network():
    return BayesianNetwork.fit(Structure("ab", [("a", "b")], "ckde"), nonlinear_frame(40, 2))


@pytest.fixture
def path(network, tmp_path):
    network.save(tmp_path / "model.spbn")
    return tmp_path / "model.spbn"


def test_a_document_that_is_too_large_is_not_unpacked(path, monkeypatch):
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("network.json").file_size
    monkeypatch.setattr(io, "LARGEST_DOCUMENT", size)
    BayesianNetwork.load(path)
    monkeypatch.setattr(io, "LARGEST_DOCUMENT", size - 1)
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("was unpacked"))
    with pytest.raises(ModelFileError, match=rf"network\.json is larger than {size - 1} bytes"):
        BayesianNetwork.load(path)


def test_a_network_with_too_many_nodes_is_refused(path, monkeypatch):
    monkeypatch.setattr(io, "MOST_NODES", 1)
    with pytest.raises(ModelFileError, match="declares 2 nodes, and a network has at most 1"):
        BayesianNetwork.load(path)


def test_columns_that_are_used_too_often_are_refused(path, monkeypatch):
    monkeypatch.setattr(files, "SMALL", 0)
    monkeypatch.setattr(files, "MOST_USES", 1)
    with pytest.raises(ModelFileError, match="use their columns more than 1 times"):
        BayesianNetwork.load(path)  # a is a node and a parent
    monkeypatch.setattr(files, "MOST_USES", 2)
    BayesianNetwork.load(path)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_mode_that_the_user_asked_for(network, tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        network.save(tmp_path / "model.spbn")
        after = os.umask(umask)
    finally:
        os.umask(before)
    assert after == umask  # and nothing is changed for others
    assert stat.S_IMODE((tmp_path / "model.spbn").stat().st_mode) == mode


def test_a_file_changes_at_once_or_not_at_all(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("before")
    with replacing(target) as temporary:
        assert temporary.parent == tmp_path  # so that it can be renamed
        assert temporary != target
        temporary.write_text("half")
        assert target.read_text() == "before"
        temporary.write_text("after")
    assert target.read_text() == "after"

    def break_off():
        with replacing(target) as temporary:
            temporary.write_text("broken")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert target.read_text() == "after"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_file_is_on_disk_before_it_takes_the_place_of_another(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("flushed"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("replaced"), replace(*names)))
    with replacing(tmp_path / "file.txt") as temporary:
        temporary.write_text("text")
    assert done == ["flushed", "replaced"]


def test_what_was_learned_and_how_comes_back_whole(tmp_path):
    network = spbn.learn(nonlinear_frame(60, 3), folds=3, seed=5)
    network.save(tmp_path / "model.spbn")
    loaded = BayesianNetwork.load(tmp_path / "model.spbn")
    assert loaded.record == network.record
    assert loaded.record.typical
    assert loaded.record.settings["seed"] == 5
    assert loaded.search.start == network.search.start
    assert [step.structure for step in loaded.search.steps] == [s.structure for s in network.search.steps]
    assert np.isfinite(loaded.record.seconds)
