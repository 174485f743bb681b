"""Compact networks: the same densities without the rows."""

import re
import zipfile
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from mixed import mixed_frame, mixed_network
from spbn import BayesianNetwork, Structure, io
from spbn._base import files
from spbn._base.files import ArrayReader, ArrayWriter
from spbn.errors import ArgumentError, FitError, ModelFileError
from spbn.io import cpd_from_record, cpd_to_record
from spbn.kernels import compression
from spbn.kernels.multiscale import SCALES
from spbn.kernels.spectral import gridding
from spbn.report import render

from strategies import nonlinear_frame

#: Very narrow kernels in three dimensions are left out: their tables take seconds to make.
ARCS = {
    "ckde": [("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")],
    "blend": [("a", "b"), ("b", "c"), ("c", "d")],
}
DATA = nonlinear_frame(800, 4)
TEST = nonlinear_frame(300, 4, seed=1)
KINDS = ("ckde", "blend")


def exact(kind, margins="none"):
    return fitted(kind, margins)


@cache
def fitted(kind, margins):
    return BayesianNetwork.fit(Structure("abcd", ARCS[kind], kind), DATA, margins=margins)


def small(kind, margins="none"):
    return compacted(kind, margins)


@cache
def compacted(kind, margins):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "FEW_ROWS", 0)  # tables everywhere
        return exact(kind, margins).compact()


def require_tolerance(found, truth, tolerance=1e-6):
    found, truth = np.asarray(found), np.asarray(truth)
    assert (np.abs(found - truth) <= tolerance * np.maximum(1.0, np.abs(truth))).all()


@pytest.mark.slow
@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_the_same_log_density(kind, margins):
    for frame in (DATA, TEST, 5.0 * TEST, 40.0 * TEST):
        found, truth = (
            network.logpdf_by_node(frame) for network in (small(kind, margins), exact(kind, margins))
        )
        require_tolerance(found, truth)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_is_an_ordinary_network(kind):
    network = small(kind)
    assert network.structure == exact(kind).structure
    assert network.record == exact(kind).record
    assert [cpd.kept_rows for cpd in network.cpds.values()] == [None] * 4
    assert all("compact" in str(cpd) for cpd in network.cpds.values())
    assert network.compact() == network
    assert "compact" in render(network, title="Small")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_distribution_functions(kind):
    for node in "abcd":
        found, truth = (network.cpds[node].cdf(TEST) for network in (small(kind), exact(kind)))
        np.testing.assert_allclose(found, truth, rtol=0, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_samples_come_from_the_density(kind):
    """The distribution function of every node at what was drawn is uniform."""
    sample = small(kind).sample(600, seed=5)
    assert sample.equals(small(kind).sample(600, seed=5))
    for node in "abcd":
        assert stats.kstest(exact(kind).cpds[node].cdf(sample), "uniform").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_questions_have_the_same_answers(kind):
    evidence = {"d": (1.0, None), "b": 0.3}
    found, truth = (network.query(evidence, n=1000) for network in (small(kind), exact(kind)))
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=0.2)
    assert (found.mean() - truth.mean()).abs().max() < 0.25


@pytest.mark.slow
def test_holes_are_filled():
    holes = TEST.copy()
    holes.iloc[:20, 2] = np.nan
    filled = small("ckde").impute(holes, seed=1)
    assert filled.notna().all().all()
    assert np.isfinite(small("ckde").logpdf(holes, missing="integrate")).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_brings_back_the_same_network(kind, tmp_path):
    small(kind).save(tmp_path / "small.spbn")
    loaded = BayesianNetwork.load(tmp_path / "small.spbn")
    assert loaded == small(kind)
    np.testing.assert_array_equal(loaded.logpdf(TEST), small(kind).logpdf(TEST))


def members_of(network, folder):
    """What a file holds, decompressed."""
    network.save(folder / "small.spbn")
    with zipfile.ZipFile(folder / "small.spbn") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def floats_in(content):
    """All that eight bytes in a row could stand for, in either order of bytes."""
    found = [np.frombuffer(content[k : k + (len(content) - k) // 8 * 8], dtype="<f8") for k in range(8)]
    there = np.concatenate(found)
    return np.concatenate([there, there.byteswap()])


@pytest.mark.slow
@pytest.mark.parametrize("tabled", [True, False])
def test_the_scales_of_a_blend_share_their_outposts(tabled, monkeypatch):
    monkeypatch.setattr(compression, "FEW_ROWS", 0 if tabled else 5000)
    cpd = exact("blend").compact().cpds["b"]
    scaled = [part for k, part in cpd.components.items() if k < len(SCALES)]
    assert len(scaled) > 1
    arrays = ArrayWriter()
    record = cpd_to_record(cpd, arrays)
    written = [part["compact"]["outposts"] for part in record["parts"][:4] if part is not None]
    assert all(columns == written[0] for columns in written)
    assert [cpd.outposts] * len(scaled) == [part.outposts for part in scaled]
    # They are the same rows of the table.
    places = [
        part.kernels.centre + np.linalg.solve(part.kernels.whitener, part.kernels.outposts) for part in scaled
    ]
    for found in places:
        np.testing.assert_allclose(found, places[0], rtol=0, atol=1e-8)
        distances = np.abs(found[:, :, None] - DATA[["a", "b"]].to_numpy().T[:, None]).max(axis=0).min(axis=1)
        assert distances.max() < 1e-8


@pytest.mark.slow
def test_wide_kernels_share_outposts_with_narrow_ones():
    """Of many rows, wide kernels need more of them."""
    frame = nonlinear_frame(20_000, 2)
    kernels = spbn.nodes.CKDE.fit(frame, "b", ["a"]).joint
    blend = spbn.nodes.Blend("b", ("a",), None, kernels, (0.3, 0.2, 0.2, 0.3, 0.0))
    made = blend.compact(1e-6)
    assert made.outposts < 15_000
    for part, scale in ((made.components[0], 1 / 16), (made.components[3], 4.0)):
        scaled = spbn.nodes.CKDE("b", ("a",), kernels.scaled(scale))
        for rows in (frame[:500], 1.7 * frame[:500], 3.0 * frame[:500]):
            require_tolerance(part.logpdf(rows), scaled.logpdf(rows))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [800, 801])  # the median of an odd number of values is one of them
@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tabled", [True, False])
def test_no_training_value_is_in_the_file(kind, margins, rows, tabled, tmp_path, monkeypatch):
    """Neither as bytes, wherever they begin, nor as text; in the units of the table or transformed."""
    monkeypatch.setattr(compression, "FEW_ROWS", 0 if tabled else 5000)
    frame = nonlinear_frame(rows, 3)
    structure = Structure("abc", [("a", "b"), ("b", "c")], kind)
    network = BayesianNetwork.fit(structure, frame, margins=margins)
    values = frame.to_numpy().ravel()
    if network.margins is not None:
        transformed = [network.margins.columns[name].forward(frame[name].to_numpy()) for name in "abc"]
        values = np.concatenate([values, *transformed])
    assert any(
        np.isin(values, floats_in(content)).any() for content in members_of(network, tmp_path).values()
    )
    members = members_of(network.compact(), tmp_path)
    for content in members.values():
        assert not np.isin(values, floats_in(content)).any()
    text = members["network.json"].decode()
    written = np.array([float(number) for number in re.findall(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?", text)])
    assert len(written) > 50
    # Nor almost: with all digits but the last three.
    distances = np.abs(written[:, None] - values) / np.abs(values)
    assert distances.min() > 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lg", *KINDS])
def test_mixed_tables(kind, tmp_path):
    network = mixed_network(kind)
    made = network.compact()
    frame = mixed_frame()
    require_tolerance(made.logpdf_by_node(frame), network.logpdf_by_node(frame))
    made.save(tmp_path / "small.spbn")
    assert BayesianNetwork.load(tmp_path / "small.spbn") == made
    assert [cpd.kept_rows for cpd in made.cpds.values()] == [None] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_with_too_many_parents(kind):
    structure = Structure("abcd", [("a", "d"), ("b", "d"), ("c", "d")], kind)
    network = BayesianNetwork.fit(structure, DATA)
    with pytest.raises(FitError, match=r"'d' has 3 continuous parents.*max_parents=2, or pass others='keep'"):
        network.compact()
    made = network.compact(others="keep")
    assert made.cpds["d"] == network.cpds["d"]
    assert made.cpds["a"].kept_rows is None
    require_tolerance(made.logpdf(TEST), network.logpdf(TEST))


def test_tables_that_are_too_large(monkeypatch):
    monkeypatch.setattr(gridding, "MAX_CELLS", 200)
    monkeypatch.setattr(compression, "FEW_ROWS", 500)
    with pytest.raises(FitError, match=r"table of 'b' would be too large.*table of 'd'"):
        exact("ckde").compact()
    with pytest.raises(FitError, match="narrow kernels of 'b' would need too large a table"):
        exact("blend").compact()


def test_refuses_arguments_that_make_no_sense():
    with pytest.raises(ArgumentError, match=r"others must be 'error' or 'keep'\. Got 'drop' instead"):
        exact("ckde").compact(others="drop")
    with pytest.raises(ArgumentError, match="tolerance must be between"):
        exact("ckde").compact(1e-12)


@pytest.mark.slow
def test_the_tolerance_reaches_the_tables(monkeypatch):
    monkeypatch.setattr(compression, "FEW_ROWS", 0)
    monkeypatch.setattr(compression, "SMALL", np.inf)  # no table is made smaller for the sake of its bytes
    loose, tight = exact("ckde").compact(1e-2), exact("ckde").compact()
    sizes = [sum(cpd.kernels.joint.numbers.size for cpd in made.cpds.values()) for made in (loose, tight)]
    assert sizes[0] < sizes[1]
    require_tolerance(loose.logpdf_by_node(TEST), exact("ckde").logpdf_by_node(TEST), 1e-2)


def record_of(kind, node):
    arrays = ArrayWriter()
    return cpd_to_record(small(kind).cpds[node], arrays), arrays.columns


def test_a_record_that_makes_sense_is_read():
    for kind in KINDS:
        record, columns = record_of(kind, "d")
        assert cpd_from_record(record, ArrayReader(columns)) == small(kind).cpds["d"]


def test_a_record_without_grain_and_thresholds_has_the_first_ones():
    """Such as were written before there was a choice."""
    record, columns = record_of("ckde", "a")
    whole = record["compact"]
    assert whole.pop("grain") == 2.0**-30
    assert whole["joint"].pop("threshold") == 800 * 1e-7
    assert cpd_from_record(record, ArrayReader(columns)) == small("ckde").cpds["a"]


DAMAGE = {
    "no object": {"compact": 3},
    "no rows": {"rows": 0},
    "rows that are true": {"rows": True},
    "more outposts than rows": {"rows": 5},
    "a centre of another size": {"centre": [0.0]},
    "a whitener that is not triangular": {"whitener": [[1.0, 1.0, 1.0]] * 3},
    "a whitener with a negative diagonal": {"whitener": (-np.eye(3)).tolist()},
    "outposts that are not there": {"outposts": [0, 1, 999]},
    "too few outposts": {"outposts": [0, 1]},
    "no table of the parents": {"parents": None},
    "no table": {"joint": None},
    "a table that is a number": {"joint": 3},
    "a box that ends before it begins": {"joint": {"low": [1.0, 1.0, 1.0], "high": [0.0, 0.0, 0.0]}},
    "a box of another size": {"joint": {"high": [1.0]}},
    "a box that needs other coefficients": {"joint": {"cutoff": 5.0}},
    "a box that is huge": {"joint": {"high": [1e9, 1e9, 1e9]}},
    "a cutoff that is too small": {"joint": {"cutoff": 0.1}},
    "a cutoff that is text": {"joint": {"cutoff": "7"}},
    "a step of nothing": {"joint": {"step": 0.0}},
    "a step that is negative": {"joint": {"step": -1e-9}},
    "a threshold of nothing": {"joint": {"threshold": 0.0}},
    "a threshold that is text": {"parents": {"threshold": "1"}},
    "a grain of nothing": {"grain": 0.0},
    "a grain that is negative": {"grain": -1e-9},
    "a grain that is huge": {"grain": 1e308},
    "coefficients that are not there": {"joint": {"coefficients": [999]}},
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damaged_tables_are_refused(change):
    record, columns = record_of("ckde", "d")
    for key, value in change.items():
        whole = record if key == "compact" else record["compact"]
        whole[key] = {**whole[key], **value} if isinstance(value, dict) else value
    with pytest.raises(ModelFileError):
        cpd_from_record(record, ArrayReader(columns))


@pytest.mark.parametrize(
    "change", [{"parts": 3}, {"parts": []}, {"parts": [None] * 5}, {"parts": [3] * 5}], ids=str
)
def test_damaged_blends_are_refused(change):
    record, columns = record_of("blend", "d")
    with pytest.raises(ModelFileError):
        cpd_from_record(record | change, ArrayReader(columns))


def test_a_damaged_file_is_refused(tmp_path):
    small("ckde").save(tmp_path / "small.spbn")
    with zipfile.ZipFile(tmp_path / "small.spbn") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["network.json"] = members["network.json"].replace(b'"cutoff": 7', b'"cutoff": 6')
    with zipfile.ZipFile(tmp_path / "damaged.spbn", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match=r"table of .* makes no sense: the box needs \d+ numbers"):
        io.load(tmp_path / "damaged.spbn")


def test_integers_that_would_fill_the_memory_are_refused(tmp_path, monkeypatch):
    small("ckde").save(tmp_path / "small.spbn")
    with zipfile.ZipFile(tmp_path / "small.spbn") as archive:
        inflated = sum(info.file_size for info in archive.infolist() if info.filename.endswith(".integers"))
    monkeypatch.setattr(files, "ALWAYS", 1000)
    assert io.load(tmp_path / "small.spbn") == small("ckde")  # they shrink to a third, not to a hundredth
    monkeypatch.setattr(files, "FOR_EACH_BYTE", 1)
    with pytest.raises(ModelFileError, match=r"it would take more than \d+ MB of memory"):
        io.load(tmp_path / "small.spbn")
    # They count even if nothing else does.
    monkeypatch.setattr(files, "JSON_BYTE", 0)
    monkeypatch.setattr(files, "JSON_MARKS", {})
    monkeypatch.setattr(files, "FOR_EACH_BYTE", 0)
    monkeypatch.setattr(files, "ALWAYS", io.INFLATED * inflated - 1)
    with pytest.raises(ModelFileError, match=r"it would take more than \d+ MB of memory"):
        io.load(tmp_path / "small.spbn")


def test_numbers_take_few_bytes(tmp_path):
    """Coefficients are many and small, and deflate finds that out."""
    small("blend").save(tmp_path / "small.spbn")
    with zipfile.ZipFile(tmp_path / "small.spbn") as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".integers")]
    shrunk, whole = sum(info.compress_size for info in members), sum(info.file_size for info in members)
    assert shrunk < 0.45 * whole


def test_outposts_at_any_distance_come_back(tmp_path):
    """Beyond 2^32 widths of a kernel, multiples of 2^-30 are no integers of 64 bits."""
    frame = DATA[["a"]].copy()
    frame.iloc[0] = 1e13
    made = BayesianNetwork.fit(Structure("a", [], "ckde"), frame).compact()
    made.save(tmp_path / "small.spbn")
    loaded = BayesianNetwork.load(tmp_path / "small.spbn")
    assert loaded == made
    np.testing.assert_array_equal(loaded.logpdf(frame), made.logpdf(frame))


@pytest.mark.slow
@pytest.mark.shared
def test_families_of_vowel(shared, monkeypatch):
    """Real columns, rounded and in clusters: all families of one, two and some of three variables."""
    monkeypatch.setattr(compression, "FEW_ROWS", 0)
    (path,) = (shared / "paper-data" / "UCI data" / "data" / "Vowel").glob("*.csv")
    frame = pd.read_csv(path).select_dtypes("number").iloc[:, :5]
    train, test = frame.iloc[::2], frame.iloc[1::2]
    far = test + 10.0 * frame.std()
    families = [family for size in (1, 2) for family in combinations(frame.columns, size)]
    for *parents, node in [*families, tuple(frame.columns[:3])]:
        structure = Structure([*parents, node], [(parent, node) for parent in parents], "ckde")
        network = BayesianNetwork.fit(structure, train)
        made = network.compact()
        for rows in (train, test, far):
            require_tolerance(made.node_logpdf(node, rows), network.node_logpdf(node, rows))
