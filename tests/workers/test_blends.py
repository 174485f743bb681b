"""Blends over workers: the numbers of blends in memory, from densities that workers keep."""

import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import spbn
from spbn.dask import densities, kernel_passes, mapreduce, mixtures
from spbn.dask.client import Executor
from spbn.dask.kernel_passes import rows_at_a_time
from spbn.dask.mapreduce import FoldAssignment
from spbn.dask.rowstore import DaskRows
from spbn.dask.shards import Shards
from spbn.errors import ClusterError
from spbn.nodes.blend import NODE_TYPE, BlendScorer
from spbn.numerics.mixture_weights import MixtureSums, WeightSearch, mixing_weights
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table
from workers.test_rows import FRAME, ROWS, held, in_memory, labels_of, score_of, shards_of, written

pytestmark = pytest.mark.cluster

FAMILIES = [("A", [], "blend"), ("B", ["A"], "blend"), ("A", ["B"], "blend"), ("D", ["C"], "blend")]
TWO_PARENTS = [("C", ["A", "B"], "blend"), ("A", ["B", "C"], "blend"), ("E", ["C", "D"], "blend")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("parts") / "data")


def with_cache(shards, cache_bytes):
    """The same rows, of which a process may keep fewer columns in memory."""
    smaller = replace(shards.plan, cache_bytes=cache_bytes)
    return replace(shards, plan=smaller, executor=Executor(None, smaller))


@pytest.mark.parametrize("families", [FAMILIES, TWO_PARENTS])
@pytest.mark.parametrize("workers", [False, True])
def test_scores_equal_those_in_memory(folder, client, workers, families):
    expected, score = in_memory(), held(folder, client=client if workers else None)
    np.testing.assert_allclose(score.local_many(families), expected.local_many(families), atol=1e-6)
    np.testing.assert_allclose(
        score.validation.local_many(families), expected.validation.local_many(families), atol=1e-6
    )


@pytest.mark.parametrize("names", ["AB", "ABC"])
def test_outliers_have_the_density_that_they_have_in_memory(tmp_path, names):
    """No grid reaches them, and the narrowest kernels least of all."""
    frame = FRAME[list(names)].copy()
    frame.iloc[3] = [1e3, -1e3, 1e3][: len(names)]
    frame.iloc[700] = [40.0, 3.0, -50.0][: len(names)]
    score, expected = held(written(tmp_path / "data", frame)), in_memory(frame)
    families = [(names[-1], list(names[:-1]), "blend"), (names[0], list(names[1:-1]), "blend")]
    np.testing.assert_allclose(score.local_many(families), expected.local_many(families), atol=1e-5)
    np.testing.assert_allclose(
        score.validation.local_many(families), expected.validation.local_many(families), atol=1e-5
    )


@pytest.mark.parametrize("families", [FAMILIES, TWO_PARENTS])
def test_little_memory_means_more_passes_and_the_same_numbers(folder, monkeypatch, families):
    rows = shards_of(folder).most_rows
    # That is enough for one family of two columns, and a bit.
    score, small = held(folder), held(folder, table_bytes=8 * rows * 9)
    assert rows_at_a_time(8 * rows * 9) < rows / 1.5  # so that narrow kernels come in two parts
    np.testing.assert_allclose(small.local_many(families), score.local_many(families), rtol=1e-12)
    np.testing.assert_allclose(
        small.validation.local_many(families), score.validation.local_many(families), rtol=1e-12
    )
    small = held(folder, table_bytes=8 * rows * 7)
    with pytest.raises(ClusterError, match=r"blends need 64 bytes for every row .* 1500 rows: use more work"):
        small.local("E", ["A"], "blend")


def test_kernels_that_no_grid_fits_are_added_up_pair_by_pair(folder, monkeypatch):
    """As they are in memory; but not if there are too many pairs, and then with a warning."""
    monkeypatch.setattr("spbn.kernels.spectral.gridding.MAX_CELLS", 5_000)
    families = [("B", ["A"], "blend")]
    np.testing.assert_allclose(held(folder).local_many(families), in_memory().local_many(families), atol=1e-6)
    monkeypatch.setattr(mixtures, "MOST_PAIRS", 1e6)
    score = held(folder)
    with pytest.warns(UserWarning, match=r"'A' and 'B' needs a grid .* without some of their kernels"):
        score.local_many(families)


def test_the_rows_of_others_do_not_take_the_place_of_a_workers_own(folder, monkeypatch):
    """Unless there is room for all of them."""
    asked, original = [], mapreduce.Plan.rows

    def rows(self, part, columns, *, cached=True):
        asked.append(cached)
        return original(self, part, columns, cached=cached)

    monkeypatch.setattr(mapreduce.Plan, "rows", rows)
    held(folder).local("C", ["A", "B"], "blend")
    assert all(asked)
    shards = with_cache(shards_of(folder), 8 * ROWS * len(FRAME.columns) - 1)
    score_of(shards).local("D", ["A", "B"], "blend")
    assert asked.count(False) == len(shards.plan.chunks)
    kept_columns = set(mapreduce._CACHE._columns)
    list(shards.plan.rows(0, [4], cached=False))
    assert set(mapreduce._CACHE._columns) == kept_columns


def test_blocks_are_the_same_from_files_and_from_memory(tmp_path, monkeypatch):
    """Densities are kept by block, and columns may be in memory at one time and not at another."""
    monkeypatch.setattr("spbn.dask.sources.ROWS_AT_A_TIME", 400)
    folder = written(tmp_path / "data", FRAME, [0, ROWS])
    # There is room for all three families, and not for all five columns.
    score = score_of(with_cache(shards_of(folder, table_bytes=8 * ROWS * 20), 8 * ROWS * 4))
    mapreduce._CACHE._columns.clear()
    families = [("B", ["A"], "blend"), ("D", ["C"], "blend"), ("E", [], "blend")]
    expected = in_memory(cuts=[0, ROWS])
    np.testing.assert_allclose(score.local_many(families), expected.local_many(families), atol=1e-6)


@pytest.mark.parametrize("most", [1, 2])
def test_a_network_of_blends_is_found_and_compact_from_birth(folder, client, monkeypatch, most):
    names = ["A", "B", "C"]
    found = spbn.distributed.learn(
        folder, client=client, model="blend", folds=5, columns=names, max_parents=most, patience=1
    )
    start = spbn.Structure(names, types="blend")
    expected = spbn.search.hill_climb(
        in_memory(FRAME[names]), start, operators="arcs", types=("blend",), max_parents=most, patience=1
    )
    assert max(len(found.structure.parents(name)) for name in names) == most
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    np.testing.assert_allclose(found.search.score, expected.score, atol=1e-6)
    # The weights are found in other folds than those of a fit in memory.
    labels = labels_of(FoldAssignment(0, 10, 0.0))
    monkeypatch.setattr("spbn.nodes.blend.fold_labels", lambda *_: labels)
    exact = spbn.BayesianNetwork.fit(expected.structure, FRAME[names])
    far = pd.DataFrame(np.full((1, 3), 30.0), columns=names)
    queries = pd.concat([FRAME[names][:300], far])
    np.testing.assert_allclose(found.logpdf(queries), exact.logpdf(queries), atol=1e-5)
    assert all(cpd.kept_rows is None for cpd in found.cpds.values())
    for name in names:
        mixture = (found.cpds[name].mixture, exact.cpds[name].mixture)
        np.testing.assert_allclose(*mixture, atol=1e-6)


def test_kernels_without_a_table_are_left_out_of_the_network_with_a_warning(folder, monkeypatch):
    """The weights of the others are those that they have without them."""
    names, deal = ("A", "E", "B"), FoldAssignment(1, 3, 0.0)  # two populations, which no curve describes
    monkeypatch.setattr(densities, "FEW_ROWS", 0)
    monkeypatch.setattr(densities, "MAX_CELLS", 2_500_000)
    monkeypatch.setattr("spbn.nodes.blend.FOLDS", deal.folds)
    rows = DaskRows.folds(shards_of(folder, deal), FitSettings())
    with pytest.warns(UserWarning, match=r"'B' given 'A' and 'E' is .* without .*: \d+ % narrow kernels"):
        node = NODE_TYPE.fit_rows(rows, "B", ("A", "E"), FitSettings())
    left = np.array(node.mixture) > 0.0
    assert not left[0]
    memory = MemoryRows(Partition.folds(as_table(FRAME[list(names)]), labels_of(deal)))
    ((_, found),) = BlendScorer(memory).mixtures(FamilyBatch.single(names))
    expected, _ = mixing_weights(found.components[0][left])
    np.testing.assert_allclose(np.array(node.mixture)[left], expected, atol=1e-5)


@pytest.mark.parametrize("at", [kernel_passes.mixture_sums, kernel_passes.cache_pairwise])
def test_workers_that_die_lose_nothing_but_time(folder, processes, monkeypatch, at):
    """What they kept is made again."""
    original, killed = Shards.map, []

    def mapped(self, function, *arguments, **options):
        if not killed and at in (function, *getattr(function, "args", ())):
            killed.append(min(processes.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)
        return original(self, function, *arguments, **options)

    monkeypatch.setattr(Shards, "map", mapped)
    there = held(folder, client=processes)
    families = [("A", [], "blend"), ("C", ["A", "B"], "blend")]
    found = there.local_many(families)
    assert killed
    np.testing.assert_allclose(found, held(folder).local_many(families), rtol=1e-12)


def test_densities_that_are_lost_again_and_again_are_an_error(folder, monkeypatch):
    def mixture_sums(*_):
        raise kernel_passes.LostError

    monkeypatch.setattr(mixtures, "mixture_sums", mixture_sums)
    with pytest.raises(ClusterError, match="workers lost the densities that they should keep 4 times"):
        held(folder).local("A", [], "blend")


@pytest.mark.parametrize("seed", range(5))
def test_weights_from_sums_are_the_best(seed):
    """Against a general optimiser, and the sums of two halves of the rows."""
    rng = np.random.default_rng(seed)
    log_densities = rng.normal(size=(3, 200)) * rng.uniform(0.1, 3.0, size=(3, 1))
    search = WeightSearch(3, 200)
    for _ in range(50):
        halves = [MixtureSums.of(half, search.trial) for half in np.split(log_densities, 2, axis=1)]
        search.update(MixtureSums.add(halves))
        if search.is_done:
            break
    assert search.is_done

    def loss(free):
        weights = np.exp(free - np.logaddexp.reduce(free))
        mixed = np.log(weights @ np.exp(log_densities))
        return -mixed.sum() - np.log(weights).sum() / 3

    found = minimize(loss, np.zeros(3), tol=1e-12)
    best = np.exp(found.x - np.logaddexp.reduce(found.x))
    np.testing.assert_allclose(search.trial, best, atol=1e-4)
    mixed = np.log(search.trial @ np.exp(log_densities)).sum()
    np.testing.assert_allclose(search.total, mixed, rtol=1e-10)


def test_every_row_is_kept_once(folder):
    shards = shards_of(folder)
    score_of(shards).local("B", ["A"], "blend")
    entries = [key for key in kernel_passes._ARRAYS if key[0] == shards.plan.number]
    rows = {}
    for number, part, key in entries:
        arrays = kernel_passes._ARRAYS[number, part, key].values()
        assert all(np.isfinite(array).all() for array in arrays)
        rows[key] = rows.get(key, 0) + sum(map(len, arrays))
    training = ROWS - int((labels_of(FoldAssignment(0, 5, 0.2)) == 5).sum())
    assert set(rows.values()) == {training}
    assert len(rows) == 8
