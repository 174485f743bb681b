"""Discrete columns of rows over workers: levels, counts, scores and networks as in memory."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn.dask import mapreduce
from spbn.dask.mapreduce import FoldAssignment
from spbn.dask.rowstore import DaskRows
from spbn.dask.shards import Shards
from spbn.dask.sources import open_source, with_levels
from spbn.errors import DataError
from spbn.nodes.families import named_batch
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table

pytestmark = pytest.mark.cluster

ROWS = 1200
CUTS = [0, 100, 350, 351, 800, 1200]
DEAL = FoldAssignment(0, 4, 0.2)


def mixed(rows=ROWS, seed=0):
    """A table with levels that some folds lack, and a column that is constant under one level."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["pear", "apple", "fig", "quince"], rows, p=[0.5, 0.35, 0.145, 0.005])
    flag = rng.random(rows) < np.where(kind == "apple", 0.8, 0.3)
    size = pd.Categorical(
        rng.choice(["small", "large"], rows), categories=["small", "large", "huge"], ordered=True
    )
    a = rng.normal(size=rows) + 2.0 * (kind == "apple")
    b = np.where(flag, a, -a) + rng.gamma(2.0, size=rows)
    c = 1e4 + 0.5 * a + rng.normal(size=rows)
    d = np.where(kind == "fig", 7.0, rng.normal(size=rows))
    number = rng.integers(0, 3, rows)
    return pd.DataFrame(
        {"a": a, "kind": kind, "b": b, "flag": flag, "c": c, "size": size, "d": d, "number": number}
    )


FRAME = mixed()


def written(folder, frame=FRAME, cuts=CUTS):
    folder.mkdir(exist_ok=True)
    for number, (first, end) in enumerate(pairwise(cuts)):
        frame[first:end].to_parquet(folder / f"{number:02}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("mixed") / "data")


def labels_of(deal=DEAL, cuts=CUTS):
    return np.concatenate([deal.labels(n, end - first) for n, (first, end) in enumerate(pairwise(cuts))])


def in_memory(frame=FRAME, discrete=("number",), cuts=CUTS, **settings):
    """The score of the same rows in the same folds."""
    labels = labels_of(cuts=cuts)
    table = as_table(frame, training=True, missing="error", discrete=discrete)
    train, test = (table.take(np.flatnonzero(mine)) for mine in (labels < DEAL.folds, labels == DEAL.folds))
    return spbn.scores.ValidatedLikelihood(
        train, folds=labels[labels < DEAL.folds], validation=test, **settings
    )


def shards_of(data, deal=DEAL, client=None, discrete=("number",), **limits):
    source = with_levels(open_source(data, discrete=discrete), discrete, client)
    return replace(Shards.of(source, deal, client), **limits)


def score_of(shards, smoothing=1.0):
    rows = DaskRows.folds(shards, FitSettings(smoothing=smoothing))
    return spbn.scores.ValidatedLikelihood.of_rows(rows, rows.validation)


def held(data, client=None, smoothing=1.0, **limits):
    """The score of rows that workers hold, with other limits of memory than those of workers."""
    return score_of(shards_of(data, client=client, **limits), smoothing)


TABLES = [
    ("kind", [], "discrete"),
    ("flag", ["kind"], "discrete"),
    ("kind", ["flag", "size", "number"], "discrete"),
]
LINES = [
    ("a", ["kind"], "lg"),
    ("b", ["a", "flag"], "lg"),
    ("c", ["a", "b", "kind", "flag", "size"], "lg"),
    ("d", ["kind"], "lg"),
    ("d", ["a"], "lg"),
]
KERNELS = [("a", ["kind"], "ckde"), ("b", ["a", "flag"], "ckde"), ("d", ["kind"], "ckde"), ("c", [], "ckde")]


def test_some_folds_lack_what_a_configuration_needs():
    """Or the tests below would not see that such rows are scored by what all rows give."""
    labels, kind = labels_of(), FRAME["kind"].to_numpy()
    rare = labels[(kind == "quince") & (labels < DEAL.folds)]
    by_fold = np.bincount(rare, minlength=DEAL.folds)
    assert 2 <= by_fold.sum() <= 6
    assert ((by_fold > 0) & (by_fold.sum() - by_fold < 4)).any()
    assert (kind[labels == DEAL.folds] == "quince").any()


BLENDS = [
    ("a", ["kind"], "blend"),
    ("b", ["a", "flag"], "blend"),
    ("d", ["kind"], "blend"),
    ("c", ["a", "number"], "blend"),
    ("c", ["a", "b", "flag"], "blend"),
]


def test_blends_equal_those_in_memory(folder):
    expected, score = in_memory(), held(folder)
    for ours, theirs in ((score, expected), (score.validation, expected.validation)):
        np.testing.assert_allclose(ours.local_many(BLENDS), theirs.local_many(BLENDS), atol=1e-6)


def starving(seed):
    """A small table with many configurations, most of them starved in some fold: both scores of it."""
    rng = np.random.default_rng(seed)
    group, is_high = rng.choice(list("abcdefghijkl"), 60), rng.random(60) < 0.5
    x = rng.normal(size=60)
    return pd.DataFrame({"group": group, "high": is_high, "x": x, "y": x + rng.normal(size=60)}), [0, 25, 60]


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_starved_configurations_are_scored_as_in_memory(tmp_path, seed):
    frame, cuts = starving(seed)
    score = score_of(shards_of(written(tmp_path / "data", frame, cuts), discrete=("group",)))
    expected = in_memory(frame, ("group",), cuts=cuts)
    for ours, theirs in ((score, expected), (score.validation, expected.validation)):
        for kind, most in (("lg", 1e-8), ("ckde", 1e-5), ("blend", 1e-6)):
            families = [("x", ["group"], kind), ("y", ["high", "group"], kind), ("y", ["x", "group"], kind)]
            chosen = families[: 2 if kind == "blend" else 3]
            np.testing.assert_allclose(ours.local_many(chosen), theirs.local_many(chosen), atol=most)


@pytest.mark.parametrize("seed", [1, 4])
def test_a_blend_that_some_fold_cannot_fit_gives_way_to_that_of_all_rows(tmp_path, seed):
    """In all rows of the configuration; in memory, in the folds in question only."""
    frame, cuts = starving(seed)
    score = score_of(shards_of(written(tmp_path / "data", frame, cuts), discrete=("group",)))
    memory = in_memory(frame, ("group",), cuts=cuts)._scorer.store
    blend = spbn.NodeType.BLEND
    batch = named_batch(tuple(frame.columns), [("y", ["x"], blend)])
    division = memory.division((0,))
    total, lacking, gave_way = 0.0, division.starved.copy(), 0
    for part in division.parts.values():
        (found,) = part.rows.scorer(blend).totals(division.families(batch))
        if np.isfinite(found):
            total += found
        else:
            lacking[part.places], gave_way = True, gave_way + 1
    total += division.rest(lacking).scorer(blend).rows(batch).sum()
    assert gave_way
    np.testing.assert_allclose(score.local("y", ["x", "group"], "blend"), total, atol=1e-6)


def test_families_that_no_type_admits_are_impossible(folder):
    score = held(folder)
    wrong = [
        ("kind", ["a"], "discrete"),
        ("kind", [], "lg"),
        ("a", [], "discrete"),
        ("kind", ["flag"], "ckde"),
    ]
    assert (score.local_many(wrong) == -np.inf).all()
    assert (in_memory().local_many(wrong) == -np.inf).all()


def test_bic_equals_that_in_memory(folder, client):
    rows = DaskRows.folds(shards_of(folder, FoldAssignment(0, 1, 0.0), client), FitSettings(smoothing=0.0))
    expected = spbn.scores.BIC(as_table(FRAME, training=True, missing="error", discrete=["number"]))
    families = [*TABLES, *LINES]
    np.testing.assert_allclose(
        spbn.scores.BIC.of_rows(rows).local_many(families), expected.local_many(families), rtol=1e-9
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 30.0])
def test_tables_are_those_of_counts(folder, smoothing):
    """By hand: (count + s / levels) / (rows + s), of the folds without the one that is scored."""
    labels, score = labels_of(), held(folder, smoothing=smoothing)
    total = 0.0
    for fold in range(DEAL.folds):
        rest = FRAME[(labels != fold) & (labels < DEAL.folds)]
        for (_, row), count in FRAME[labels == fold].groupby(["flag", "size"], observed=True).size().items():
            alike = rest[rest["size"] == row]
            hits = (alike["flag"] == _).sum()
            total += count * np.log((hits + smoothing / 2) / (len(alike) + smoothing))
    np.testing.assert_allclose(score.local("flag", ["size"], "discrete"), total, rtol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=60), st.integers(0, 60))
def test_counts_of_parts_add_up(rows, cut):
    """To those of a plain count, whichever configurations a part lacks."""
    parts = [np.array(part, dtype=np.int64).reshape(-1, 2) for part in (rows[:cut], rows[cut:])]
    found = mapreduce.add_counts([mapreduce.count_labels(part[:, 0], part[:, 1], 3) for part in parts])
    expected = Counter(rows)
    assert found.numbers.tolist() == sorted({number for number, _ in rows})
    for number, counts in zip(found.numbers.tolist(), found.counts.tolist(), strict=True):
        assert counts == [expected[number, label] for label in range(3)]


def test_moments_of_many_configurations_come_in_several_passes(folder):
    score, small = held(folder), held(folder, table_bytes=6 * 5 * 8 * 9 * 8)  # of six configurations
    families = [
        ("b", ["flag"], "lg"),
        ("b", ["kind"], "lg"),
        ("c", ["size"], "lg"),
        ("c", ["flag", "size"], "lg"),
    ]
    for _ in range(2):  # the first ones have been forgotten by then
        np.testing.assert_allclose(small.local_many(families), score.local_many(families), rtol=1e-12)
        small._numbers.clear()
    with pytest.warns(UserWarning, match="'kind' and 'size' have so many combinations of levels"):
        assert small.local("c", ["kind", "size"], "lg") == -np.inf


def test_counts_of_many_families_come_in_several_passes(folder):
    score, small = held(folder), held(folder, table_bytes=8 * 5 * 24)  # of one family with 24 cells
    families = [
        ("flag", ["kind"], "discrete"),
        ("flag", ["size"], "discrete"),
        ("kind", ["flag"], "discrete"),
    ]
    for _ in range(2):
        np.testing.assert_allclose(small.local_many(families), score.local_many(families), rtol=1e-12)
        small._numbers.clear()
    assert np.isfinite(small.local("kind", ["flag", "size"], "discrete"))
    with pytest.warns(UserWarning, match="'flag', 'size', 'number' and 'kind' have so many combinations"):
        assert small.local("kind", ["flag", "size", "number"], "discrete") == -np.inf


def lazy(frame=FRAME, count=4):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=count)


def test_levels_and_codes_are_those_in_memory(folder, client):
    table = as_table(FRAME, training=True, missing="error", discrete=["number"])
    assert table.levels["size"] == ("small", "large", "huge")  # of which the last does not occur
    for data in (folder, lazy(), client.persist(lazy())):
        rows = DaskRows.folds(shards_of(data, client=None if data is folder else client), FitSettings())
        found = rows.table(table.names)
        assert dict(found.levels) == dict(table.levels)
        np.testing.assert_array_equal(found.columns, table.columns)


def test_levels_of_categories_that_differ_between_parts(tmp_path):
    """They follow each other as they come; text is sorted all the same."""
    first = pd.DataFrame({"x": pd.Categorical(["b", "c"] * 5, categories=["c", "b"]), "y": ["v", "u"] * 5})
    then = pd.DataFrame({"x": pd.Categorical(["a", "c"] * 5, categories=["a", "c"]), "y": ["t", None] * 5})
    for number, frame in enumerate((first, then)):
        frame.to_parquet(tmp_path / f"{number}.parquet")
    found = with_levels(open_source(tmp_path), ())
    assert found.levels == {"x": ("c", "b", "a"), "y": ("t", "u", "v")}


def test_numbers_are_levels_only_where_they_are_said_to_be(folder):
    assert "number" not in with_levels(open_source(folder), ()).levels
    found = with_levels(open_source(folder, discrete=["number"]), ["number"])
    assert found.levels["number"] == ("0", "1", "2")
    with pytest.raises(
        DataError, match=r"column 'c' has 1200 different values .* do not name it in discrete"
    ):
        with_levels(open_source(folder, discrete=["number", "c"]), ["number", "c"])
    with pytest.raises(DataError, match=r"discrete names unknown columns: 'x'. The files have 'a'"):
        spbn.distributed.learn(folder, discrete=["x"])
    with pytest.raises(DataError, match=r"discrete names unknown columns: 'x'. The data frame has 'a'"):
        spbn.distributed.learn(lazy(), discrete=["x"])


def test_text_that_names_the_rows_is_refused(tmp_path, monkeypatch):
    named = FRAME.assign(name=[f"n{i}" for i in range(ROWS)], day="2026-11-17")
    for data in (written(tmp_path / "data", named), lazy(named)):
        with pytest.raises(DataError, match="'name' holds text with 1200 different values in 1200 rows"):
            spbn.distributed.learn(data)
        with pytest.raises(DataError, match=r"'day' holds dates or times.*pass discrete=\['day'\]"):
            spbn.distributed.learn(data, drop=["name"])
        with pytest.raises(DataError, match="'name' has 1200 different values in 1200 rows, too many to be"):
            spbn.distributed.learn(data, discrete=["name"], drop=["day"])
        with monkeypatch.context() as patch:
            patch.setattr("spbn.dask.sources.MOST_VALUES", 700)
            for given in (["name"], ()):
                with pytest.raises(DataError, match="'name' has more than 700 different values in 1200 rows"):
                    with_levels(open_source(data, discrete=given, drop=["day"]), given)


def test_text_that_names_two_rows_each_may_be_discrete(tmp_path):
    named = FRAME.assign(name=[f"n{i // 2}" for i in range(ROWS)])
    for data in (written(tmp_path / "data", named), lazy(named)):
        with pytest.raises(DataError, match="'name' holds text with 600 different values in 1200 rows"):
            spbn.distributed.learn(data)
        found = with_levels(open_source(data, discrete=["name"]), ["name"])
        assert len(found.levels["name"]) == ROWS // 2


def test_other_objects_are_refused():
    import dask

    with dask.config.set({"dataframe.convert-string": False}):
        frame = lazy(FRAME.assign(x=pd.Series([(1, 2), "a", "b"] * (ROWS // 3), dtype=object)))
        with pytest.raises(
            DataError, match=r"column 'x' holds neither numbers nor categories \(str, tuple\)"
        ):
            spbn.distributed.learn(frame)


def test_holes_in_discrete_columns(tmp_path):
    frame = FRAME.astype({"flag": object, "number": float})
    frame.loc[[3, 500], "kind"] = None
    frame.loc[[4], "flag"] = None
    frame.loc[[5, 900], "number"] = np.nan
    frame.loc[[6], "size"] = np.nan
    frame["flag"] = frame["flag"].astype("boolean")
    folder = written(tmp_path / "data", frame)
    with pytest.raises(DataError, match=r"00.parquet: 1 value is missing or infinite in column 'kind'"):
        spbn.distributed.learn(folder)
    source = with_levels(open_source(folder, discrete=["number"]), ["number"])
    shards = Shards.of(source, DEAL, missing="drop")
    assert shards.every.count == ROWS - 6
    assert shards.plan.levels["number"] == ("0", "1", "2")
    assert shards.plan.levels["flag"] == ("False", "True")


def test_numbers_that_are_not_there_are_no_level(tmp_path):
    """Other programs than pandas write NaN into Parquet files where nothing is."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    values = np.array([2.0, np.nan, 1.5, 2.0, 1.5] * 10)
    write_table(pa.table({"x": pa.array(values), "y": np.arange(50.0)}), tmp_path / "x.parquet")
    source = with_levels(open_source(tmp_path, discrete=["x"]), ["x"])
    assert source.levels == {"x": ("1.5", "2")}
    assert Shards.of(source, DEAL, missing="drop").every.count == 40


@pytest.mark.parametrize(
    ("settings", "score"),
    [
        ({"model": "gbn"}, "bic"),
        ({"model": "gbn", "score": "cv", "smoothing": 3.0}, "cv"),
        ({"model": "spbn", "columns": ["a", "kind", "b", "flag"], "patience": 1}, "cv"),
    ],
)
def test_a_search_finds_the_network_in_memory(folder, client, settings, score, tmp_path):
    names = settings.get("columns", list(FRAME.columns))
    discrete = ["number"] if "number" in names else []
    smoothing = settings.get("smoothing", 1.0)
    found = spbn.distributed.learn(folder, client=client, folds=4, discrete=discrete, **settings)
    table = as_table(FRAME[names], training=True, missing="error", discrete=discrete)
    memory = (
        in_memory(FRAME[names], discrete, smoothing=smoothing) if score == "cv" else spbn.scores.BIC(table)
    )
    first = spbn.NodeType.LG if settings["model"] == "gbn" else spbn.NodeType.CKDE
    types = {v.name: spbn.NodeType.DISCRETE if v.is_discrete else first for v in table.variables}
    expected = spbn.search.hill_climb(
        memory,
        spbn.Structure(names, types=types),
        operators=("arcs",) if settings["model"] == "gbn" else ("arcs", "types"),
        types=(spbn.NodeType.LG, spbn.NodeType.CKDE)[: 1 + (settings["model"] == "spbn")],
        patience=settings.get("patience", 5),
        max_parents=2,
    )
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    np.testing.assert_allclose(found.search.score, expected.score, rtol=1e-9)
    assert any(arc in found.structure.arcs for arc in (("kind", "a"), ("flag", "b")))
    fits = spbn.fitting.fit_what_can_be(expected.structure, table, FitSettings(smoothing=smoothing))
    exact = spbn.BayesianNetwork(fits[0], fits[1])
    assert found.structure == exact.structure
    rare = FRAME[FRAME["kind"] == "quince"]
    queries = pd.concat([FRAME[:300], rare])[names]
    np.testing.assert_allclose(found.logpdf(queries), exact.logpdf(queries), atol=1e-5)
    assert all(cpd.kept_rows is None for cpd in found.cpds.values())
    found.save(tmp_path / "model.spbn")
    again = spbn.BayesianNetwork.load(tmp_path / "model.spbn")
    np.testing.assert_array_equal(again.logpdf(queries), found.logpdf(queries))


def test_a_network_of_blends_is_the_one_in_memory(folder, monkeypatch):
    names = ["a", "kind", "b"]
    settings = {"max_parents": 2, "patience": 0}
    found = spbn.distributed.learn(folder, model="blend", folds=4, columns=names, **settings)
    types = {"a": "blend", "kind": "discrete", "b": "blend"}
    start = spbn.Structure(names, types=types)
    memory = in_memory(FRAME[names], ())
    expected = spbn.search.hill_climb(memory, start, operators="arcs", types=("blend",), **settings)
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    np.testing.assert_allclose(found.search.score, expected.score, atol=1e-6)
    assert set(found.structure.arcs) == {("kind", "a"), ("a", "b")}
    # The weights are found in other folds than those of a fit in memory.
    labels = labels_of(FoldAssignment(0, 10, 0.0))
    mine = [FRAME["kind"] == level for level in FRAME["kind"].unique()] + [FRAME["kind"] != ""]
    by_count = {int(rows.sum()): np.unique(labels[rows], return_inverse=True)[1] for rows in mine}
    monkeypatch.setattr("spbn.nodes.blend.fold_labels", lambda rows, *_: by_count[rows])
    exact = spbn.BayesianNetwork.fit(expected.structure, FRAME[names])
    queries = pd.concat([FRAME[:300], FRAME[FRAME["kind"] == "quince"]])[names]
    np.testing.assert_allclose(found.logpdf(queries), exact.logpdf(queries), atol=1e-5)
    assert all(cpd.kept_rows is None for cpd in found.cpds.values())


def test_narrow_kernels_of_a_configuration_are_on_its_rows_alone(folder):
    """And those that starved rows need are on all rows: they are added up pair by pair."""
    score, expected = held(folder), in_memory()
    families = [("c", ["a", "b", "kind"], "blend")]
    np.testing.assert_allclose(score.local_many(families), expected.local_many(families), atol=1e-6)


def test_a_network_of_discrete_columns_alone(folder, client):
    names = ["kind", "flag", "size"]
    found = spbn.distributed.learn(folder, client=client, columns=names, margins="yeo-johnson", folds=4)
    assert set(found.structure.types.values()) == {spbn.NodeType.DISCRETE}
    exact = spbn.BayesianNetwork.fit(found.structure, FRAME[names])
    assert all(found.cpds[name] == exact.cpds[name] for name in names)


def test_margins_leave_levels_alone(folder, client):
    names = ["a", "kind", "b"]
    found = spbn.distributed.learn(folder, columns=names, margins="yeo-johnson", model="gbn", client=client)
    expected = spbn.learn(FRAME[names], margins="yeo-johnson", model="gbn", max_parents=2)
    assert set(found.margins.columns) == {"a", "b"}
    assert found.structure == expected.structure
    queries = FRAME[names][:50]
    np.testing.assert_allclose(found.logpdf(queries), expected.logpdf(queries), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model": "gbn", "score": "bge"},
            "BGe takes continuous columns only. 'kind', 'flag' and 'size' are",
        ),
        ({"smoothing": -1.0}, "smoothing must be 0 or more"),
        ({"required_arcs": [("a", "kind")]}, "no arc can go from a continuous to a discrete node"),
    ],
)
def test_what_cannot_be_is_refused(folder, settings, message):
    with pytest.raises(spbn.errors.SpbnError, match=message):
        spbn.distributed.learn(folder, **settings)


def test_a_level_that_appears_later_is_refused(tmp_path):
    folder = written(tmp_path / "data")
    source = with_levels(open_source(folder), ())
    FRAME[:100].assign(kind="kiwi").to_parquet(folder / "00.parquet", index=False)
    with pytest.raises(
        DataError, match=r"'kind' of .*00.parquet has the level 'kiwi', which it did not have"
    ):
        Shards.of(source, DEAL)
