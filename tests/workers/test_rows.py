"""Rows over workers: the numbers of scores in memory, the same steps, and clear errors."""

import os
import signal
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.dask import kernel_passes
from spbn.dask.client import local_workers
from spbn.dask.densities import standing_for
from spbn.dask.mapreduce import FoldAssignment, Plan
from spbn.dask.rowstore import DaskRows
from spbn.dask.shards import Shards
from spbn.dask.sources import open_source
from spbn.errors import ArgumentError, DataError
from spbn.kernels.spectral.gridding import cheapest_grid
from spbn.learning import learn
from spbn.rows.store import FitSettings

pytestmark = pytest.mark.cluster

ROWS, PARTS = 1500, 7
FRAME = spbn.datasets.synthetic(ROWS, seed=1)
CUTS = np.linspace(0, ROWS, PARTS + 1).astype(int)
DEAL = FoldAssignment(0, 5, 0.2)


def written(folder, frame=FRAME, cuts=CUTS):
    folder.mkdir(exist_ok=True)
    for number, (first, end) in enumerate(pairwise(cuts)):
        frame[first:end].to_parquet(folder / f"{number:02}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("parts") / "data")


def labels_of(deal, cuts=CUTS):
    return np.concatenate([deal.labels(n, end - first) for n, (first, end) in enumerate(pairwise(cuts))])


def in_memory(frame=FRAME, deal=DEAL, cuts=CUTS, **settings):
    """The score of the same rows in the same folds."""
    labels = labels_of(deal, cuts)
    train, test = frame[labels < deal.folds], frame[labels == deal.folds]
    return spbn.scores.ValidatedLikelihood(
        train, folds=labels[labels < deal.folds], validation=test, **settings
    )


def shards_of(data, deal=DEAL, client=None, **limits):
    return replace(Shards.of(open_source(data), deal, client), **limits)


def score_of(shards, rule="scott"):
    rows = DaskRows.folds(shards, FitSettings(rule))
    return spbn.scores.ValidatedLikelihood.of_rows(rows, rows.validation)


def held(data, deal=DEAL, client=None, rule="scott", **limits):
    """The score of rows that workers hold, with other limits of memory than those of workers."""
    return score_of(shards_of(data, deal, client, **limits), rule)


LINES = [("A", [], "lg"), ("C", ["A", "B"], "lg"), ("E", ["A", "B", "C", "D"], "lg")]
KERNELS = [("A", [], "ckde"), ("B", ["A"], "ckde"), ("A", ["B"], "ckde"), ("C", ["A", "B"], "ckde")]


@pytest.mark.parametrize("workers", [False, True])
def test_scores_equal_those_in_memory(folder, client, workers):
    expected = in_memory()
    score = held(folder, client=client if workers else None)
    for ours, theirs in ((score, expected), (score.validation, expected.validation)):
        np.testing.assert_allclose(ours.local_many(LINES), theirs.local_many(LINES), rtol=1e-12)
        count = ROWS if ours is score else 0.2 * ROWS
        differences = np.abs(ours.local_many(KERNELS) - theirs.local_many(KERNELS))
        assert differences.max() <= 1e-6 * count
        assert differences.max() <= 1e-7  # far better than promised


def test_so_do_closed_forms(folder):
    rows = DaskRows.folds(shards_of(folder, FoldAssignment(0, 1, 0.0)), FitSettings(smoothing=0.0))
    bge = spbn.scores.BGe.of_moments(tuple(FRAME.columns), rows.moments)
    np.testing.assert_allclose(
        spbn.scores.BIC.of_rows(rows).local_many(LINES), spbn.scores.BIC(FRAME).local_many(LINES), rtol=1e-12
    )
    np.testing.assert_allclose(bge.local_many(LINES), spbn.scores.BGe(FRAME).local_many(LINES), rtol=1e-12)


def test_isolated_rows_are_added_up_one_by_one(tmp_path):
    """An outlier lies beside every grid; it must count as in memory, however far out it is."""
    frame = FRAME[["A", "B"]].copy()
    frame.iloc[3] = [1e3, -1e3]
    frame.iloc[700] = [40.0, 3.0]
    score, expected = held(written(tmp_path / "data", frame)), in_memory(frame)
    families = [("A", [], "ckde"), ("B", ["A"], "ckde")]
    np.testing.assert_allclose(score.local_many(families), expected.local_many(families), atol=1e-5)
    np.testing.assert_allclose(
        score.validation.local_many(families), expected.validation.local_many(families), atol=1e-5
    )


def test_a_box_never_ends_beyond_the_tails():
    """However much a cell costs: what lies between the tails is not known."""
    learn = np.random.default_rng(0).normal(size=(2, 200_000))
    parts = [np.stack([part, part]) for part in np.array_split(learn, 5, axis=1)]
    both = kernel_passes.join_tails(parts)
    assert np.array_equal(np.sort(both[0]), np.sort(learn)[:, : kernel_passes.TAIL])
    assert np.array_equal(np.sort(both[1]), np.sort(learn)[:, -kernel_passes.TAIL :])
    grid, _ = cheapest_grid(standing_for(both), 1.0, cell_cost=1e9, row_cost=1e-9)
    assert (grid.low <= np.sort(learn)[:, kernel_passes.TAIL - 1]).all()
    assert (grid.high >= np.sort(learn)[:, -kernel_passes.TAIL]).all()


def test_large_grids_are_done_a_fold_at_a_time(folder, monkeypatch):
    score, small = held(folder), held(folder, table_bytes=1000)
    families = [("B", ["A"], "ckde"), ("A", [], "ckde")]
    np.testing.assert_allclose(small.local_many(families), score.local_many(families), rtol=1e-12)
    np.testing.assert_allclose(
        small.validation.local_many(families), score.validation.local_many(families), rtol=1e-12
    )


def test_the_bandwidth_rule_reaches_the_kernels(folder):
    families = [("B", [], "ckde"), ("C", ["A", "B"], "ckde")]
    silverman = held(folder, rule="silverman").local_many(families)
    np.testing.assert_allclose(silverman, in_memory(bandwidth="silverman").local_many(families), atol=1e-7)
    assert (np.abs(silverman - held(folder).local_many(families)) > 0.1).all()


def test_a_search_takes_the_same_steps(folder, client):
    found = spbn.distributed.learn(folder, client=client, model="gbn", score="cv", folds=5)
    start = spbn.Structure(FRAME.columns, types="lg")
    expected = spbn.search.hill_climb(in_memory(), start, operators="arcs", max_parents=2)
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    assert found.structure == expected.structure
    np.testing.assert_allclose(found.search.score, expected.score, rtol=1e-12)
    fit = spbn.BayesianNetwork.fit(expected.structure, FRAME)
    np.testing.assert_allclose(found.logpdf(FRAME[:50]), fit.logpdf(FRAME[:50]), rtol=1e-9)
    assert found.record.rows == ROWS
    assert found.record.settings["folds"] == 5


def test_a_semiparametric_network_is_found_and_compact_from_birth(folder, client):
    names = ["A", "B", "C"]
    found = spbn.distributed.learn(folder, client=client, folds=5, columns=names, patience=1)
    start = spbn.Structure(names, types="ckde")
    expected = spbn.search.hill_climb(in_memory(FRAME[names]), start, max_parents=2, patience=1)
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    np.testing.assert_allclose(found.search.score, expected.score, atol=1e-6)
    np.testing.assert_allclose(found.search.validation_score, expected.validation_score, atol=1e-6)
    exact = spbn.BayesianNetwork.fit(expected.structure, FRAME)
    assert found.structure == exact.structure
    far = pd.DataFrame(np.full((1, 3), 30.0), columns=names)
    queries = pd.concat([FRAME[names][:300], far])
    np.testing.assert_allclose(found.logpdf(queries), exact.logpdf(queries), atol=3e-6)
    assert all(cpd.kept_rows is None for cpd in found.cpds.values())


@pytest.mark.parametrize(
    ("settings", "score"), [({}, spbn.scores.BIC), ({"score": "bge", "max_parents": None}, spbn.scores.BGe)]
)
def test_closed_forms_take_the_same_steps(folder, settings, score):
    found = spbn.distributed.learn(folder, model="gbn", **settings)
    start = spbn.Structure(FRAME.columns, types="lg")
    expected = spbn.search.hill_climb(
        score(FRAME), start, operators="arcs", max_parents=settings.get("max_parents", 2)
    )
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]


@pytest.mark.parametrize("model", ["auto", "gbn"])
def test_an_order_search_finds_the_same_without_validation_rows(folder, model):
    found = spbn.learn(str(folder), model=model, score="cv", algorithm="boss", folds=5)
    deal = FoldAssignment(0, 5, 0.0)
    likelihood = spbn.scores.CVLikelihood(FRAME, folds=labels_of(deal), penalty="auto")
    score = likelihood
    if model == "auto":
        score = spbn.scores.BestType(likelihood, cost=likelihood.penalty)
    expected = spbn.search.order_search(score, spbn.Structure(FRAME.columns), max_parents=2)
    assert found.structure == expected.structure
    assert found.search.score == pytest.approx(expected.score, rel=1e-7)
    assert found.record.settings["validation"] is None
    expected = spbn.search.open_directions(
        score, spbn.Structure(FRAME.columns, found.structure.arcs), likelihood.penalty
    )
    assert tuple(found.open_directions()) == expected


def test_the_default_model_has_the_margins_of_a_table_in_memory(tmp_path, client):
    skewed = FRAME[["A", "B", "C"]].assign(A=np.exp(FRAME["A"] - FRAME["A"].mean()))
    found = spbn.distributed.learn(written(tmp_path / "data", skewed), client=client, folds=5)
    settings = found.record.settings
    assert (settings["model"], settings["margins"], settings["algorithm"]) == ("auto", "auto", "boss")
    in_memory = spbn.learn(skewed, folds=5, max_parents=2)
    assert set(found.margins.columns) == set(in_memory.margins.columns)
    assert "A" in found.margins.columns
    assert found.structure.arcs == in_memory.structure.arcs
    implied = spbn.distributed.learn(tmp_path / "data", folds=2, patience=0, max_parents=0)
    assert (implied.record.settings["model"], implied.margins) == ("spbn", None)


def test_labels_depend_on_the_part_and_the_seed_alone():
    deal = FoldAssignment(3, 4, 0.25)
    labels = deal.labels(5, 1001)
    assert np.array_equal(labels, FoldAssignment(3, 4, 0.25).labels(5, 1001))
    assert not np.array_equal(labels, deal.labels(6, 1001))
    assert not np.array_equal(labels, FoldAssignment(4, 4, 0.25).labels(5, 1001))
    counts = np.bincount(labels)
    assert len(counts) == 5
    assert abs(counts[4] - 250) <= 1
    assert np.ptp(counts[:4]) <= 1
    # Parts of one row: the deal as a whole is fair all the same.
    alone = np.array([deal.labels(part, 1)[0] for part in range(4000)])
    shares = np.bincount(alone, minlength=5) / 4000
    np.testing.assert_allclose(shares, [0.1875] * 4 + [0.25], atol=0.03)


def test_rows_come_in_blocks_and_columns_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("spbn.dask.sources.ROWS_AT_A_TIME", 100)
    FRAME.to_parquet(tmp_path / "one.parquet", index=False, row_group_size=700)
    source = open_source(tmp_path / "one.parquet")
    assert [chunk.rows for chunk in source.chunks] == [700, 700, 100]
    plan = Plan("some", source.names, source.chunks, DEAL, {1: np.array([2, 699])}, 1 << 20)
    for _ in range(2):  # from the file, and from memory
        found = list(plan.rows(1, [0, 3]))
        columns = np.concatenate([block for block, _ in found], axis=1)
        kept = np.delete(np.arange(700), [2, 699])
        assert np.array_equal(columns, FRAME[["A", "D"]].to_numpy()[700:1400][kept].T)
        assert np.array_equal(np.concatenate([mine for _, mine in found]), DEAL.labels(1, 700)[kept])
        monkeypatch.setattr("spbn.dask.sources.ParquetChunk.batches", None)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, when it reads Parquet files
def test_a_dask_frame_gives_what_files_give(folder, client):
    import dask.dataframe as dd

    frame = dd.read_parquet(str(folder))
    assert frame.npartitions == PARTS
    network = spbn.distributed.learn(frame, client=client, model="gbn", score="cv")
    assert network.search == spbn.distributed.learn(folder, model="gbn", score="cv").search
    lazy = dd.from_pandas(FRAME, npartitions=2)
    assert spbn.distributed.learn(lazy, model="gbn", seed=1).record.rows == ROWS


def partitions(frame, count=PARTS):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=count)


def test_a_persisted_frame_gives_what_its_partitions_give(client):
    lazy = partitions(FRAME, 3)
    persisted = client.persist(lazy)
    for frame, derived in ((lazy, persisted), (lazy[["A", "C"]] * 2.0, persisted[["A", "C"]] * 2.0)):
        expected = spbn.distributed.learn(frame, model="kdebn", columns=["A", "C"], folds=3)
        for here in (None, client):
            found = spbn.distributed.learn(derived, client=here, model="kdebn", columns=["A", "C"], folds=3)
            assert found.structure == expected.structure
            np.testing.assert_allclose(found.search.score, expected.search.score, rtol=1e-12)
            queries = FRAME[["A", "C"]][:20]
            np.testing.assert_allclose(found.logpdf(queries), expected.logpdf(queries), rtol=1e-12)


def test_a_persisted_frame_is_held_while_it_is_learned_from(client):
    """By nobody else: the frame itself is gone as soon as its partitions are known."""
    source = open_source(client.persist(partitions(FRAME, 3)), client=client)
    shards = Shards.of(source, DEAL, client)
    assert shards.every.count == ROWS
    keys = [chunk.key for chunk in source.chunks]
    assert all(client.who_has()[key] for key in keys)
    score = score_of(shards)
    del source
    expected = in_memory(cuts=[0, 500, 1000, 1500])
    np.testing.assert_allclose(score.local_many(LINES), expected.local_many(LINES), rtol=1e-12)
    np.testing.assert_allclose(score.local_many(KERNELS), expected.local_many(KERNELS), atol=1e-7)


def test_a_partition_whose_worker_died_is_computed_again(processes):
    persisted = processes.persist(partitions(FRAME, 4))
    shards = Shards.of(open_source(persisted, client=processes), DEAL, processes)
    os.kill(min(processes.run(os.getpid).values()), signal.SIGKILL)
    score = score_of(shards)
    expected = in_memory(cuts=[0, 375, 750, 1125, 1500])
    np.testing.assert_allclose(score.local("B", [], "ckde"), expected.local("B", [], "ckde"), atol=1e-7)


def test_a_persisted_frame_that_cannot_be_had_is_refused(client):
    """Because its workers are others, or lost it."""
    persisted = client.persist(partitions(FRAME, 2))
    message = r"data is persisted on the workers of .*: pass the client that persisted it"
    with local_workers(1, processes=False) as other, pytest.raises(ArgumentError, match=message):
        spbn.distributed.learn(persisted, client=other, model="gbn")
    source = open_source(persisted, client=client)
    client.cancel([chunk.future for chunk in source.chunks], force=True)
    for here in (None, client):
        with pytest.raises(DataError, match=r"partition \d is no longer held by any worker"):
            Shards.of(source, DEAL, here)


def test_patterns_lists_and_folders_of_files(folder, tmp_path):
    names = sorted(folder.glob("*.parquet"))
    for given in (folder, str(folder / "*.parquet"), names, [folder / "0[0-3].parquet", *names[4:]]):
        assert [chunk.path for chunk in open_source(given).chunks] == [str(name) for name in names]
    with pytest.raises(DataError, match=r"no file matches .*/x\*\.parquet"):
        open_source(str(folder / "x*.parquet"))
    with pytest.raises(DataError, match=r"there is no file .*absent.parquet"):
        open_source(folder / "absent.parquet")
    with pytest.raises(DataError, match=r"has no files whose names end in .parquet"):
        open_source(tmp_path)
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"text.parquet is not a Parquet file"):
        open_source(tmp_path / "text.parquet")
    for wrong in (FRAME, 3, []):
        with pytest.raises(ArgumentError, match="data must be a Dask DataFrame, or the names of Parquet"):
            open_source(wrong)


def test_empty_parts_are_passed_over(tmp_path):
    folder = written(tmp_path / "data", FRAME, [0, 700, 700, 1500])
    assert shards_of(folder).every.count == ROWS
    empty = written(tmp_path / "empty", FRAME, [0, 0, 0])
    with pytest.raises(DataError, match="the files have no rows"):
        spbn.distributed.learn(empty)
    import dask.dataframe as dd

    parts = dd.from_pandas(FRAME, npartitions=3)
    some = parts.map_partitions(lambda part: part[part["A"] > np.inf] if part.index[0] == 0 else part)
    with pytest.raises(DataError, match="there are no rows to learn from"):
        spbn.distributed.learn(parts[parts["A"] > np.inf])
    assert 0 < shards_of(some).every.count < ROWS


def test_files_that_do_not_fit_together_are_named(tmp_path):
    folder = written(tmp_path / "data", FRAME, [0, 700, 1500])
    FRAME[:9].drop(columns="C").to_parquet(folder / "02.parquet")
    with pytest.raises(DataError, match=r"but .*02.parquet lacks 'C', unlike .*00.parquet"):
        spbn.distributed.learn(folder)
    FRAME[:9].assign(F=1.0).to_parquet(folder / "02.parquet")
    with pytest.raises(
        DataError, match=r"02.parquet has 'F' too, .*: leave it out \(drop=\['F'\] in learn\)"
    ):
        spbn.distributed.learn(folder)
    assert "F" not in spbn.distributed.learn(folder, model="gbn", drop=["F"]).nodes
    FRAME[:9].assign(C="x").to_parquet(folder / "02.parquet")
    with pytest.raises(
        DataError, match=r"column 'C' holds numbers in .*00.parquet, but text in .*02.parquet: convert it"
    ):
        spbn.distributed.learn(folder)
    FRAME[:9].assign(C="x").to_parquet(folder / "00.parquet")
    (folder / "02.parquet").unlink()
    with pytest.raises(DataError, match=r"'C' holds text in .*00.parquet, but numbers in .*01.parq"):
        spbn.distributed.learn(folder)
    for number in (0, 1):
        FRAME[:9].assign(C=pd.Timestamp("2026-11-17")).to_parquet(folder / f"0{number}.parquet")
    with pytest.raises(DataError, match=r"'C' of .*00.parquet holds timestamp.*neither numbers nor categ"):
        spbn.distributed.learn(folder)
    found = spbn.distributed.learn(written(tmp_path / "more"), drop=["C"], model="gbn")
    assert found.nodes == ("A", "B", "D", "E")


def test_dates_and_unexpected_text_in_a_dask_frame_are_refused():
    import dask.dataframe as dd

    frame = dd.from_pandas(FRAME.assign(F=pd.Timestamp("2026-11-17")), npartitions=2)
    with pytest.raises(DataError, match=r"column 'F' of the data frame holds datetime.*neither numbers nor"):
        spbn.distributed.learn(frame)
    liar = dd.from_pandas(FRAME, npartitions=2).map_partitions(
        lambda part: part.assign(C="x"), meta=FRAME.iloc[:0]
    )
    with pytest.raises(DataError, match="column 'C' of partition 0 holds"):
        spbn.distributed.learn(liar)


@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_whole_and_short_numbers_are_read_in_full(tmp_path, kind):
    """As those of a table in memory are, also if margins transform them."""
    frame = (10 * FRAME).astype(kind)
    folder = written(tmp_path / "data", frame)
    expected = spbn.numerics.moments.Moments.of(frame.to_numpy(dtype=float).T)
    np.testing.assert_allclose(shards_of(folder).every.scatter, expected.scatter, rtol=1e-12)
    found = spbn.distributed.learn(folder, model="gbn", margins="yeo-johnson")
    in_full = spbn.distributed.learn(
        written(tmp_path / "full", frame.astype(float)), model="gbn", margins="yeo-johnson"
    )
    assert found.search == in_full.search


def test_missing_values(tmp_path):
    frame = FRAME.copy()
    frame.loc[[3, 300, 301], "B"] = np.nan
    frame.loc[1400, "E"] = np.inf
    folder = written(tmp_path / "data", frame)
    with pytest.raises(DataError, match=r"00.parquet: 1 value is missing or infinite in column 'B'"):
        spbn.distributed.learn(folder)
    shards = Shards.of(open_source(folder), DEAL, missing="drop")
    whole = frame.replace(np.inf, np.nan).notna().all(axis=1).to_numpy()
    expected = spbn.numerics.moments.Moments.of(frame[whole].to_numpy().T)
    np.testing.assert_allclose(shards.every.scatter, expected.scatter, rtol=1e-12)
    score = score_of(shards)
    labels = labels_of(DEAL)[whole]
    kept = frame[whole]
    memory = spbn.scores.ValidatedLikelihood(
        kept[labels < 5], folds=labels[labels < 5], validation=kept[labels == 5]
    )
    np.testing.assert_allclose(score.local("A", ["C"], "ckde"), memory.local("A", ["C"], "ckde"), atol=1e-7)


def test_columns_without_spread_are_refused(tmp_path):
    with pytest.raises(DataError, match="column 'F' is constant"):
        spbn.distributed.learn(written(tmp_path / "data", FRAME.assign(F=2.0)))
    with pytest.raises(DataError, match=r"column 'F' varies too much .* for its numbers to be squared"):
        spbn.distributed.learn(written(tmp_path / "data", FRAME.assign(F=FRAME["A"] * 1e200)))


def test_copies_are_refused(tmp_path):
    with pytest.raises(DataError, match="column 'F' is a copy of column 'A', perhaps rescaled: leave it out"):
        spbn.distributed.learn(written(tmp_path / "data", FRAME.assign(F=7.0 - 3.0 * FRAME["A"])))


def test_a_worker_that_dies_changes_nothing(folder, processes, monkeypatch):
    """It is killed between two passes, and what it was to do is done by the other."""
    original, killed = Shards.map, []

    def mapped(self, function, *arguments, **options):
        if len(killed) < 1 and kernel_passes.read_table in getattr(function, "args", ()):
            killed.append(min(processes.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)
        return original(self, function, *arguments, **options)

    monkeypatch.setattr(Shards, "map", mapped)
    settings = {"columns": ["A", "B"], "folds": 3, "patience": 0}
    there = spbn.distributed.learn(folder, client=processes, **settings)
    assert killed
    here = spbn.distributed.learn(folder, **settings)
    assert [step.operator for step in there.search.steps] == [step.operator for step in here.search.steps]
    np.testing.assert_allclose(there.search.score, here.search.score, rtol=1e-12)
    np.testing.assert_allclose(there.logpdf(FRAME[:20]), here.logpdf(FRAME[:20]), atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "hybrid"}, "model must be one of 'spbn', 'gbn', 'kdebn', 'blend'"),
        ({"bandwidth": "cv"}, "bandwidth must be one of 'scott', 'silverman'"),
        ({"missing": "impute"}, "missing must be one of 'error', 'drop'"),
        ({"model": "spbn", "score": "bic"}, "score='bic' is for model='gbn' only"),
        ({"max_parents": 3}, "max_parents must be at most 2 where rows are over workers"),
        ({"max_parents": None}, "max_parents must be at most 2"),
        ({"folds": 1}, "folds must be between 2 and 100"),
        ({"validation": 1.0}, "validation must be a fraction between 0 and 1"),
        ({"seed": -1}, "seed must be"),
        ({"model": "gbn", "start": "discrete"}, "start must be a type"),
        ({"client": "tcp://x"}, "client must be a dask.distributed.Client"),
        ({"drop": ["x"]}, "drop names unknown columns: 'x'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(folder, settings, message):
    with pytest.raises((ArgumentError, DataError), match=message):
        spbn.distributed.learn(folder, **settings)


def test_too_few_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="there are too few rows: 6"):
        spbn.distributed.learn(written(tmp_path / "data", FRAME[:6], [0, 3, 6]))


def test_every_setting_reaches_the_search(folder, monkeypatch):
    given = {}

    def climb(score, start, **settings):
        given.update(settings, start=start)
        raise KeyboardInterrupt

    monkeypatch.setattr(learn, "hill_climb", climb)
    settings = {"patience": 3, "epsilon": 0.5, "max_parents": 1, "max_seconds": 1e6}
    arcs = {"required_arcs": [("A", "B")], "forbidden_arcs": [("B", "C")]}
    with pytest.raises(KeyboardInterrupt):
        spbn.distributed.learn(folder, start="lg", **settings, **arcs)
    assert {name: given[name] for name in ("patience", "epsilon", "max_parents")} == {
        name: settings[name] for name in ("patience", "epsilon", "max_parents")
    }
    assert 0 < given["max_seconds"] <= 1e6
    assert list(given["required_arcs"]) == [("A", "B")]
    assert list(given["forbidden_arcs"]) == [("B", "C")]
    assert set(given["start"].types.values()) == {spbn.NodeType.LG}


def test_ctrl_c_brings_along_the_best_network(folder, monkeypatch):
    from spbn.search import hill_climb

    def climb(*arguments, **settings):
        def stop(step):
            raise KeyboardInterrupt

        return hill_climb(*arguments, **(settings | {"on_step": stop}))

    monkeypatch.setattr(learn, "hill_climb", climb)
    with pytest.raises(spbn.learning.LearningInterrupted) as caught:
        spbn.distributed.learn(folder, model="gbn")
    assert len(caught.value.network().structure.arcs) == 1


def test_frames_without_columns_to_keep(folder):
    with pytest.raises(DataError, match="drop names all columns"):
        spbn.distributed.learn(folder, drop=list(FRAME.columns))
    assert isinstance(FRAME, pd.DataFrame)
