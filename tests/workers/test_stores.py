"""Rows in memory and rows over workers: the same scores for every node type, and the same networks."""

import numpy as np
import pandas as pd
import pytest

import spbn
from nodes.test_registry import laplace  # noqa: F401 -- a fixture
from spbn.dask.rowstore import DaskRows
from spbn.errors import ArgumentError, DataError
from spbn.nodes.by_configuration import fit_node
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table
from workers import test_discrete_rows as mixed_rows
from workers.test_rows import FRAME, written

pytestmark = pytest.mark.cluster

#: By node type: families of the mixed table, and how close they are to those in memory. Sums from moments and
#: counts are the same but for rounding; kernels are read from tables, which promise 1e-6 per row.
CASES = {
    "lg": (mixed_rows.LINES, {"rtol": 1e-9}),
    "lg without discrete parents": ([("a", [], "lg"), ("b", ["a", "c"], "lg")], {"rtol": 1e-12}),
    "discrete": (mixed_rows.TABLES, {"rtol": 1e-12}),
    "ckde": (mixed_rows.KERNELS, {"atol": 1e-6}),
    "blend": (mixed_rows.BLENDS[:3], {"atol": 1e-6}),
    "curve": (
        [
            ("a", [], "curve"),
            ("b", ["a"], "curve"),
            ("c", ["a", "b"], "curve"),
            ("b", ["a", "kind"], "curve"),
        ],
        {"rtol": 1e-9},
    ),
    "laplace": (
        [("a", [], "laplace"), ("b", ["a"], "laplace"), ("b", ["a", "kind"], "laplace")],
        {"rtol": 1e-12},
    ),
}


pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return mixed_rows.written(tmp_path_factory.mktemp("mixed") / "data")


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_every_node_type_has_the_scores_that_it_has_in_memory(folder, client, laplace, workers, name):  # noqa: F811
    families, closeness = CASES[name]
    expected = mixed_rows.in_memory()
    score = mixed_rows.held(folder, client=client if workers else None)
    for ours, theirs in ((score, expected), (score.validation, expected.validation)):
        np.testing.assert_allclose(ours.local_many(families), theirs.local_many(families), **closeness)


def test_a_type_of_ones_own_is_learned_and_fitted_over_workers(folder, client, laplace):  # noqa: F811
    names = ["a", "kind", "b"]
    settings = {"types": ("lg", "laplace"), "max_parents": 2, "patience": 1}
    found = spbn.distributed.learn(folder, client=client, columns=names, start="laplace", folds=4, **settings)
    frame = mixed_rows.FRAME[names]
    start = spbn.Structure(names, types={"a": "laplace", "kind": "discrete", "b": "laplace"})
    expected = spbn.search.hill_climb(mixed_rows.in_memory(frame, ()), start, **settings)
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    exact = spbn.BayesianNetwork.fit(expected.structure, frame)
    np.testing.assert_allclose(found.logpdf(frame[:50]), exact.logpdf(frame[:50]), rtol=1e-9)


def test_it_is_fitted_to_the_rows_of_every_configuration(folder, laplace):  # noqa: F811
    rows = DaskRows.folds(mixed_rows.shards_of(folder), FitSettings())
    table = as_table(mixed_rows.FRAME, training=True, missing="error", discrete=["number"])
    there, here = (fit_node(laplace, some, "b", ("a", "kind"), FitSettings()) for some in (rows, table))
    assert there.configurations == here.configurations
    queries = mixed_rows.FRAME[["a", "b", "kind"]]
    np.testing.assert_allclose(there.logpdf(queries), here.logpdf(queries), rtol=1e-12)


def test_a_sample_is_all_rows_or_some_of_every_part(folder):
    rows = DaskRows.folds(mixed_rows.shards_of(folder), FitSettings())
    every, starts = rows.sample(10**9)
    assert starts[0] == 0
    np.testing.assert_array_equal(np.diff(starts), rows.test.counts)
    first = every[:, starts[1] : starts[2]]
    np.testing.assert_allclose(np.cov(first, bias=True) * first.shape[1], rows.test.scatters[1], atol=1e-6)
    some, starts_of_some = rows.sample(100)
    assert 90 <= some.shape[1] <= 130
    assert starts_of_some[-1] == some.shape[1]
    for group in range(len(starts) - 1):
        known = {tuple(row) for row in every[:, starts[group] : starts[group + 1]].T}
        assert {tuple(row) for row in some[:, starts_of_some[group] : starts_of_some[group + 1]].T} <= known
    np.testing.assert_array_equal(rows.sample(100)[0], some)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, when it reads Parquet files
def test_learn_takes_files_and_dask_frames(tmp_path, client):
    """It is the same function, whatever the rows are in."""
    import dask.dataframe as dd

    folder = written(tmp_path / "data")
    expected = spbn.distributed.learn(folder, model="gbn", score="cv", folds=5, max_parents=None)
    for data in (folder, str(folder / "*.parquet"), sorted(folder.iterdir()), dd.read_parquet(str(folder))):
        found = spbn.learn(data, model="gbn", score="cv", folds=5, client=client if data is folder else None)
        assert [s.operator for s in found.search.steps] == [s.operator for s in expected.search.steps]
        assert found.record.rows == len(FRAME)
        assert found.record.columns == tuple(FRAME.columns)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "pc"}, "algorithm can be given for tables in memory only"),
        ({"hidden": "auto"}, "hidden can be given for tables in memory only: .* pass some of the rows"),
        ({"engine": "exact"}, "engine can be given for tables in memory only"),
        ({"checkpoint": "run.jsonl"}, "checkpoint can be given for tables in memory only"),
        ({"missing": "impute"}, "missing must be one of 'error', 'drop'"),
        ({"max_parents": 3}, "max_parents must be at most 2 where rows are over workers"),
        ({"start": spbn.Structure(["A"])}, "start must be a node type where rows are over workers"),
    ],
)
def test_what_needs_all_rows_in_memory_is_refused(tmp_path, settings, message):
    with pytest.raises(ArgumentError, match=message):
        spbn.learn(written(tmp_path / "data"), **settings)


def test_without_a_limit_there_are_as_many_parents_as_can_be(tmp_path):
    """Two with kernels, whose grids have three dimensions at most, and any number without."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("wxyz"))
    frame["sum"] = frame.sum(axis=1) + 0.1 * rng.normal(size=400)
    folder = written(tmp_path / "data", frame, [0, 200, 400])
    lines = spbn.learn(folder, model="gbn", required_arcs=[(name, "sum") for name in "wxyz"])
    assert len(lines.structure.parents("sum")) == 4
    kernels = spbn.learn(folder, drop=["w", "x", "y"], patience=0, folds=3)
    assert kernels.record.settings["max_parents"] == 2


def test_a_family_that_is_too_large_to_be_collected_is_refused(folder, laplace, monkeypatch):  # noqa: F811
    monkeypatch.setattr("spbn.dask.shards.MOST_COLLECTED_BYTES", 1000)
    score = mixed_rows.held(folder)
    with pytest.raises(DataError, match="more than is collected for a node type that needs all rows"):
        score.local("a", [], "laplace")
