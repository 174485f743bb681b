import io
import json
import os
import pickle
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn import BayesianNetwork, Structure
from spbn.errors import ModelFileError

from strategies import arcs_of_dag, nonlinear_frame


@pytest.fixture
def network():
    return BayesianNetwork.fit(
        Structure("abc", [("a", "b"), ("b", "c"), ("a", "c")], {"a": "lg", "b": "ckde", "c": "ckde"}),
        nonlinear_frame(40, 3),
    )


@pytest.fixture
def path(network, tmp_path):
    network.save(tmp_path / "model.spbn")
    return tmp_path / "model.spbn"


@settings(max_examples=20)
@given(arcs_of_dag(min_nodes=1, max_nodes=5), st.integers(0, 99))
def test_round_trip_to_the_last_bit(tmp_path_factory, graph, seed):
    nodes, arcs = graph
    frame = nonlinear_frame(30, len(nodes), seed)
    types = {node: "ckde" if (i + seed) % 2 else "lg" for i, node in enumerate(nodes)}
    network = BayesianNetwork.fit(Structure(nodes, arcs, types), frame)
    path = tmp_path_factory.mktemp("io") / "model.spbn"
    network.save(path)
    loaded = BayesianNetwork.load(path)
    assert loaded == network
    assert loaded.structure.nodes == network.structure.nodes
    np.testing.assert_array_equal(loaded.logpdf(frame), network.logpdf(frame))
    again = path.with_name("again.spbn")
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_shared_columns_are_stored_once(path):
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == [
            "columns/0.npy",
            "columns/1.npy",
            "columns/2.npy",
            "network.json",
        ]


def test_names_may_be_any_text(tmp_path):
    frame = nonlinear_frame(30, 2).set_axis(["../größe", 'a "b"\n'], axis=1)
    network = BayesianNetwork.fit(Structure(frame.columns, types="ckde"), frame)
    network.save(tmp_path / "m.spbn")
    assert BayesianNetwork.load(tmp_path / "m.spbn") == network


def test_the_search_comes_along(tmp_path):
    frame = nonlinear_frame(120, 3).assign(rare=np.eye(1, 120, 3)[0])  # a column that scores -inf
    for network in (spbn.learn(frame), spbn.learn(frame, max_parents=0, start="lg", patience=0)):
        network.save(tmp_path / "m.spbn")
        assert BayesianNetwork.load(tmp_path / "m.spbn").search == network.search


def test_what_pc_found_comes_along(tmp_path):
    frame = nonlinear_frame(120, 4).assign(alone=np.random.default_rng(9).normal(size=120))
    for model in ("spbn", "gbn"):
        network = spbn.learn(frame, model=model, algorithm="pc", test="plc")
        network.save(tmp_path / "m.spbn")
        loaded = BayesianNetwork.load(tmp_path / "m.spbn")
        assert loaded.search == network.search
        assert loaded.search.separating_sets
        assert loaded.type_search == network.type_search
        assert (network.type_search is None) == (model == "gbn")
        loaded.save(tmp_path / "again.spbn")
        assert (tmp_path / "again.spbn").read_bytes() == (tmp_path / "m.spbn").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(pc=[]),
        lambda d: d["pc"].update(arcs=[["a", "z"]]),
        lambda d: d["pc"].update(edges=[["a"]]),
        lambda d: d["pc"].update(tests_run=[1.5]),
        lambda d: d["pc"].update(tests_run=[-1]),
        lambda d: d["pc"].update(separating_sets=[{"pair": ["a", "a"], "given": []}]),
        lambda d: d["pc"].update(separating_sets=[{"pair": ["a", "b"], "given": ["z"]}]),
        lambda d: d["pc"].pop("edges"),
        lambda d: d.update(type_search={"steps": 3}),
    ],
)
def test_a_pc_that_makes_no_sense_is_refused(tmp_path, change):
    path = tmp_path / "model.spbn"
    spbn.learn(nonlinear_frame(120, 3), algorithm="pc", test="plc").save(path)
    rewritten(path, change)
    with pytest.raises(ModelFileError, match="makes no sense"):
        BayesianNetwork.load(path)


def test_open_directions_come_along(tmp_path):
    path, frame = tmp_path / "model.spbn", nonlinear_frame(200, 3)
    network = spbn.learn(frame, model="gbn", tiers=[["a"], ["b", "c"]])
    decided = set(network.structure.undecided_arcs()) - set(network.open_directions())
    assert decided  # by the tiers
    network.save(path)
    assert BayesianNetwork.load(path).open_directions() == network.open_directions()
    # Files of version 0.2 do not have them, so that the graph decides alone.
    rewritten(path, lambda d: d["record"].pop("open_directions"))
    loaded = BayesianNetwork.load(path)
    assert loaded.record.open_directions is None
    assert tuple(loaded.open_directions()) == network.structure.undecided_arcs()
    rewritten(path, lambda d: d["record"].update(open_directions=[["c", "z"]]))
    with pytest.raises(ModelFileError, match="open directions that are not arcs of the network"):
        BayesianNetwork.load(path)


def test_files_without_a_search_are_read(tmp_path):
    path = tmp_path / "model.spbn"
    network = spbn.learn(nonlinear_frame(120, 3), model="spbn", algorithm="pc", test="plc")
    network.save(path)
    rewritten(path, lambda d: (d.pop("pc"), d.pop("type_search")))
    loaded = BayesianNetwork.load(path)
    assert loaded == network
    assert loaded.search is loaded.type_search is None


def test_a_search_that_makes_no_sense_is_refused(tmp_path):
    path = tmp_path / "model.spbn"
    spbn.learn(nonlinear_frame(120, 3)).save(path)
    for change in (
        lambda d: d.update(search=[]),
        lambda d: d["search"].update(best=99),
        lambda d: d["search"]["steps"][0].update(delta="much"),
        lambda d: d["search"]["steps"][0]["operator"].update(kind="explode"),
        lambda d: d["search"]["steps"].append(d["search"]["steps"][0]),
    ):
        spbn.learn(nonlinear_frame(120, 3)).save(path)
        rewritten(path, change)
        with pytest.raises(ModelFileError, match="description of the search makes no sense"):
            BayesianNetwork.load(path)


def rewritten(path, change=None, members=None):
    """Write the archive again with another document or other members."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    if change is not None:
        document = json.loads(content["network.json"])
        change(document)
        content["network.json"] = json.dumps(document).encode()
    content.update(members or {})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data)


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def bomb(document):
    document["columns"][0]["rows"] = 10**12


@pytest.mark.parametrize(
    ("change", "members", "message"),
    [
        (lambda d: d.update(version=99), None, "version 99"),
        (lambda d: d.update(format="other"), None, "not an .spbn file"),
        (lambda d: d.pop("nodes"), None, "'nodes' must be a list"),
        (lambda d: d.update(arcs=[["a", "b"], ["b", "a"]]), None, "cycle"),
        (lambda d: d.update(arcs=[]), None, "structure says"),
        (lambda d: d["cpds"].pop(), None, "makes no sense"),
        (lambda d: d["cpds"][0].update(variance=-1.0), None, "variance of 'a' must be positive"),
        (lambda d: d["cpds"][0].update(intercept="0"), None, "'intercept' must hold numbers"),
        (lambda d: d["cpds"][0].update(intercept=[1.0]), None, "'intercept' must hold numbers"),
        (lambda d: d["cpds"][0].update(intercept=float("nan")), None, "NaN is not a number"),
        (lambda d: d["cpds"][0].update(type="code"), None, "a node type must be"),
        (lambda d: d["cpds"][1].update(bandwidth=[[1.0]]), None, "'bandwidth' must hold numbers of shape"),
        (lambda d: d["cpds"][1].update(bandwidth=[[1.0, 2.0], [2.0, 1.0]]), None, "not positive definite"),
        (lambda d: d["cpds"][1].update(columns=[0, 7]), None, "must name 2 of the 3 columns"),
        (lambda d: d["columns"][0].update(rows=39), None, "must hold 39 float64"),
        (bomb, None, "must hold 1000000000000 float64"),
        (lambda d: d["cpds"].append(d["cpds"][0]), None, "'a' more than once"),
        (lambda d: d["cpds"][1]["bandwidth"][0].__setitem__(1, 0.01), None, "not symmetric"),
        (
            lambda d: d["cpds"][1].update(parents=["a", "a"], columns=[0, 0, 1]),
            None,
            "bandwidth|structure says",
        ),
        (lambda d: d.update(arcs=[[["a"], "b"]]), None, "cannot be read"),
        (lambda d: d["columns"][0].update(file="../columns/0.npy"), None, "description of column 0"),
        (None, {"columns/0.npy": npy(np.zeros((40, 2)))}, "must hold 40 float64"),
        (None, {"columns/0.npy": npy(np.zeros((20, 2)))}, "must hold 40 float64"),
        (None, {"columns/0.npy": npy(np.zeros(40, dtype="f4"))}, "must hold 40 float64"),
        (None, {"columns/0.npy": npy(np.full(40, np.inf))}, "infinite"),
        (None, {"columns/0.npy": npy(np.array([{}] * 40), allow_pickle=True)}, "must hold 40 float64"),
        (None, {"columns/0.npy": b"\x93NUMPY"}, "must hold 40 float64"),
        (
            None,
            {"columns/0.npy": npy(np.zeros(40)).replace(b"(40,)", b"(((((")},
            "header says something else",
        ),
        (None, {"columns/0.npy": npy(np.zeros(100_000))}, "must hold 40 float64"),
        (None, {"columns/1.npy": None}, "lacks columns/1.npy"),
        (None, {"network.json": None}, "no network.json"),
        (None, {"network.json": b"{"}, "damaged"),
        (None, {"network.json": b"\xff"}, "damaged"),
        (None, {"network.json": b"[" * 100_000}, "damaged"),
        (None, {"network.json": b'{"format": ' + b"9" * 5000 + b"}"}, "damaged"),
        (None, {"../evil.py": b"print('run')"}, r"does not belong there: '\.\./evil\.py'"),
        (None, {"/etc/evil": b""}, "does not belong there"),
    ],
)
def test_a_changed_file_is_refused_and_the_reason_named(path, change, members, message):
    rewritten(path, change, members)
    with pytest.raises(ModelFileError, match=message) as caught:
        BayesianNetwork.load(path)
    assert "model.spbn cannot be read" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK", b"hello"], ids=["empty", "short", "text"])
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "model.spbn").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"not an \.spbn file"):
        BayesianNetwork.load(tmp_path / "model.spbn")


class Dangerous:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    trap = tmp_path / "was-run"
    (tmp_path / "model.spbn").write_bytes(pickle.dumps(Dangerous(str(trap))))
    with pytest.raises(ModelFileError, match=r"not an \.spbn file"):
        BayesianNetwork.load(tmp_path / "model.spbn")
    assert not trap.exists()


@pytest.mark.parametrize("key", ["variance", "settings"])
def test_numbers_that_are_too_large_to_be_numbers_are_refused(path, key):
    """Also where nothing is computed with them: they could not be saved again."""
    with zipfile.ZipFile(path) as archive:
        text = archive.read("network.json").decode()
    document = json.loads(text)
    variance, settings = document["cpds"][0]["variance"], document["record"]["settings"]
    assert settings
    name = next(iter(settings))
    was, now = (
        (repr(variance), "1e999")
        if key == "variance"
        else (f'"{name}": {json.dumps(settings[name])}', f'"{name}": 1e999')
    )
    assert was in text
    rewritten(path, members={"network.json": text.replace(was, now)})
    with pytest.raises(ModelFileError, match="1e999 is not a number that a model can hold"):
        BayesianNetwork.load(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_columns_that_are_compressed_are_refused(path, method):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match="compressed"):
        BayesianNetwork.load(path)


@pytest.mark.slow
@given(st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(tmp_path_factory, share):
    network = BayesianNetwork.fit(Structure("ab", types="ckde"), nonlinear_frame(40, 2))
    path = tmp_path_factory.mktemp("cut") / "model.spbn"
    network.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError):
        BayesianNetwork.load(path)


def test_any_changed_byte_is_refused_or_harmless(tmp_path):
    """Every byte of the headers and the directory, and some of the numbers between them."""
    network = BayesianNetwork.fit(Structure("ab", types="ckde"), nonlinear_frame(40, 2))
    path = tmp_path / "model.spbn"
    network.save(path)
    content = path.read_bytes()
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1 + position % 255
        path.write_bytes(changed)
        with suppress(ModelFileError):
            assert BayesianNetwork.load(path) == network


def test_a_failed_save_leaves_the_old_file_and_no_other(network, path, monkeypatch):
    before = path.read_bytes()

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        network.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model.spbn"]


def test_a_missing_file_is_told_apart_from_a_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        BayesianNetwork.load(tmp_path / "nowhere.spbn")


@pytest.mark.parametrize("options", [{}, {"algorithm": "pc", "test": "plc"}, {"model": "gbn"}])
def test_files_of_version_1_are_still_read(tmp_path, options):
    """They have no record of learning, but the same densities and searches."""
    frame = nonlinear_frame(120, 3)
    network = spbn.learn(frame, **options)
    network.save(tmp_path / "model.spbn")

    def as_written_by_version_1(document):
        document["version"] = 1
        del document["record"]

    rewritten(tmp_path / "model.spbn", as_written_by_version_1)
    old = BayesianNetwork.load(tmp_path / "model.spbn")
    assert old == network
    assert (old.search, old.type_search) == (network.search, network.type_search)
    assert old.record == spbn.record.Record(search=network.search, type_search=network.type_search)
    assert spbn.explain.unusual_rows(old, frame, top=3).rows  # what is typical is drawn from the network
