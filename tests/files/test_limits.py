"""What a file may ask for, and how files come to be: whole, with the right mode, or not at all."""

import io as io_module
import json
import os
import stat
import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn import BayesianNetwork, Structure, io
from spbn._base import files
from spbn._base.files import replacing
from spbn.errors import ModelFileError
from spbn.graphs.dag import DAG

from strategies import nonlinear_frame


@pytest.fixture
def network():
    return BayesianNetwork.fit(Structure("ab", [("a", "b")], "ckde"), nonlinear_frame(40, 2))


@pytest.fixture
def path(network, tmp_path):
    network.save(tmp_path / "model.spbn")
    return tmp_path / "model.spbn"


def test_a_document_that_is_too_large_is_not_parsed(path, monkeypatch):
    with zipfile.ZipFile(path) as archive:
        content = archive.read("network.json")
    marks = sum(size * content.count(mark) for mark, size in files.JSON_MARKS.items())
    most = files.JSON_BYTE * len(content) + marks + 8 * 40 * 3  # and the columns, of which b uses both
    monkeypatch.setattr(files, "FOR_EACH_BYTE", 0)
    monkeypatch.setattr(files, "ALWAYS", most)
    BayesianNetwork.load(path)
    monkeypatch.setattr(files, "ALWAYS", most - 8 * 40 * 3 - 1)
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("was parsed"))
    with pytest.raises(ModelFileError, match=r"it would take more than 0 MB of memory"):
        BayesianNetwork.load(path)


def document(**more):
    cpd = {"node": "a", "type": "lg", "parents": [], "intercept": 0.0, "coefficients": [], "variance": 1.0}
    return {"format": "spbn", "version": 1, "nodes": ["a"], "arcs": [], "cpds": [cpd], "columns": [], **more}


def write(path, text, members=()):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("network.json", text, zipfile.ZIP_DEFLATED)
        for name, content in members:
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)


def entries(content):
    """The places of all entries of the central directory."""
    place = content.find(b"PK\1\2")
    while place >= 0:
        yield place
        place = content.find(b"PK\1\2", place + 1)


def much_json(piece, times):
    def make(path):
        write(path, json.dumps(document(more=0)).replace('"more": 0', f'"more": [{piece * times}0]'))

    return make


def integers(*rows):
    def make(path):
        names = [f"columns/{i}.integers" for i in range(len(rows))]
        columns = [{"file": name, "rows": n} for name, n in zip(names, rows, strict=True)]
        members = [(name, bytes(8 * n)) for name, n in zip(names, rows, strict=True)]
        write(path, json.dumps(document(columns=columns)), members)

    return make


def declaring(make, field, value):
    """A file whose directory says something else in one of its fields."""

    def changed(path):
        make(path)
        content = bytearray(path.read_bytes())
        for place in entries(content):
            struct.pack_into("<I", content, place + field, value(len(content)))
        path.write_bytes(content)

    return changed


def used_by_all(path):
    """One column that 250 nodes use."""
    names = [f"v{i}" for i in range(250)]
    common = {"type": "ckde", "parents": [], "bandwidth": [[1.0]], "columns": [0]}
    cpds = [{"node": name, **common} for name in names]
    columns = [{"file": "columns/0.npy", "rows": 1 << 17}]
    stream = io_module.BytesIO()
    np.lib.format.write_array(stream, np.linspace(0.0, 1.0, 1 << 17), version=(1, 0))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("network.json", json.dumps(document(nodes=names, cpds=cpds, columns=columns)))
        archive.writestr("columns/0.npy", stream.getvalue())


ATTACKS = {
    "lists": much_json("[],", 12_000_000),
    "lists of lists": much_json("[" * 800 + "]" * 800 + ",", 8_000),
    "objects": much_json('{"a":0},', 3_000_000),
    "texts": much_json('"abc",', 8_000_000),
    "numbers": much_json("1.5,", 10_000_000),
    "integers": integers(30_000_000),
    "many integers": integers(*[4_000_000] * 6),
    "compressed sizes": declaring(integers(*[4_000_000] * 6), 20, lambda length: length - 5),
    "inflated sizes": declaring(integers(40_000_000), 24, lambda _: 80),
    "uses": used_by_all,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_small_file_takes_little_memory_whatever_it_declares(attack, tmp_path):
    path = tmp_path / "model.spbn"
    ATTACKS[attack](path)
    assert path.stat().st_size < 2e6
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            BayesianNetwork.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200e6


def test_members_that_share_bytes_are_refused(tmp_path):
    """One member, the content of which is the next one, with its own header, and so on."""
    path, rows, count = tmp_path / "model.spbn", 1000, 20
    names = [f"columns/{i}.npy" for i in range(count)]
    columns = [{"file": name, "rows": rows} for name in names]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("network.json", json.dumps(document(columns=columns)))
        for name in names:
            archive.writestr(name, io._npy_header(rows) + bytes(8 * rows))
    BayesianNetwork.load(path)
    content = bytearray(path.read_bytes())
    first = list(entries(content))[1]
    size = struct.unpack_from("<I", content, first + 20)[0]
    struct.pack_into("<II", content, first + 20, size + 500, size + 500)  # reaches into the next one
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"'columns/0.npy' is longer than the space that it has"):
        BayesianNetwork.load(path)


def test_what_is_written_can_be_read_however_large_it_is_once_it_is_read(tmp_path, monkeypatch):
    """A document that shrinks a lot is not deflated if it would take too much memory for its size."""
    names = [f"v{i}" for i in range(60)]
    network = BayesianNetwork.fit(
        Structure(names, [(a, b) for j, b in enumerate(names) for a in names[:j]]),
        pd.DataFrame(np.random.default_rng(0).normal(size=(100, 60)), columns=names),
    )
    network.save(tmp_path / "deflated.spbn")
    monkeypatch.setattr(files, "ALWAYS", 1000)
    monkeypatch.setattr(files, "FOR_EACH_BYTE", 40)
    with pytest.raises(ModelFileError, match="it would take more than"):
        BayesianNetwork.load(tmp_path / "deflated.spbn")
    network.save(tmp_path / "stored.spbn")
    assert BayesianNetwork.load(tmp_path / "stored.spbn") == network


def test_long_searches_on_many_nodes_are_read_without_building_every_graph(tmp_path, monkeypatch):
    frame = nonlinear_frame(60, 4)
    network = spbn.learn(frame, model="spbn")
    assert len(network.search.steps) > 2
    network.save(tmp_path / "model.spbn")
    built, original = [], DAG.from_matrix.__func__
    monkeypatch.setattr(DAG, "from_matrix", classmethod(lambda *given: built.append(1) or original(*given)))
    loaded = BayesianNetwork.load(tmp_path / "model.spbn")
    assert not built
    assert loaded.search.structure == network.search.structure
    assert [step.structure for step in loaded.search.steps] == [s.structure for s in network.search.steps]


def test_a_network_with_too_many_nodes_is_refused(path, monkeypatch):
    monkeypatch.setattr(io, "MOST_NODES", 1)
    with pytest.raises(ModelFileError, match="declares 2 nodes, and a network has at most 1"):
        BayesianNetwork.load(path)


def test_columns_that_are_used_too_often_are_refused(path, monkeypatch):
    monkeypatch.setattr(files, "JSON_BYTE", 0)
    monkeypatch.setattr(files, "JSON_MARKS", {})
    monkeypatch.setattr(files, "FOR_EACH_BYTE", 0)
    monkeypatch.setattr(files, "ALWAYS", 8 * 40 * 3 - 1)
    with pytest.raises(ModelFileError, match="it would take more than 0 MB of memory"):
        BayesianNetwork.load(path)  # a is a node and a parent
    monkeypatch.setattr(files, "ALWAYS", 8 * 40 * 3)
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
