"""Which arcs to believe: counts by hand, the L1 rule by brute force, and runs that go on where they were."""

import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ecdf

import spbn
from spbn import Structure
from spbn.errors import ArgumentError, CheckpointError
from spbn.learning import stability as replicating
from spbn.learning.learn import learn_network, learn_structure
from spbn.learning.settings import LearnSettings
from spbn.learning.stability import DISPUTED, EQUIVALENT, Confidence, draw_rows, l1_threshold
from spbn.tables.reader import as_table

from strategies import mixed_frame, nonlinear_frame

FRAME = nonlinear_frame(120, 4)
QUICK = {"model": "gbn", "replicates": 7}


def of(*structures, **given):
    return Confidence(structures, given, 10, "")


def graphs(*texts, nodes="abc", types="lg"):
    """Structures from texts such as "ab bc"."""
    return [Structure(nodes, [tuple(arc) for arc in text.split()], types) for text in texts]


def test_strengths_and_directions_are_counted():
    found = of(*graphs("ab bc", "ab cb", "ba", ""))
    expected = pd.DataFrame(
        [("a", "b", 0.75, 2 / 3), ("b", "c", 0.5, 0.5)], columns=["source", "target", "strength", "direction"]
    )
    pd.testing.assert_frame_equal(found.arcs, expected)
    assert found.strengths(0.4) == {("a", "b"): 0.75, ("b", "c"): 0.5}
    assert repr(found) == "Confidence(4 replicates of 3 nodes, 1 arc stronger than 0.50)"


def test_types_are_counted_and_the_most_common_one_is_taken():
    lines = [Structure("ab", [], {"a": "lg", "b": kind}) for kind in ("ckde", "ckde", "lg")]
    found = of(*lines)
    assert found.types.to_numpy().tolist() == [["a", "lg", 1.0], ["b", "ckde", 2 / 3], ["b", "lg", 1 / 3]]
    assert {node: str(kind) for node, kind in found.structure().types.items()} == {"a": "lg", "b": "ckde"}


def test_the_threshold_of_the_worked_example_by_scutari_and_nagarajan():
    joined = np.array([2242, 460, 8935, 3921, 7689, 9439])
    assert l1_threshold(joined, 10_000) == 0.3921
    assert l1_threshold(np.array([0, 0, 10]), 10) == 0.0
    assert l1_threshold(np.array([9, 10]), 10) == 0.0
    assert l1_threshold(np.array([2, 5, 10]), 10) == 0.5
    assert l1_threshold(np.array([], dtype=int), 10) == 0.0


@pytest.mark.slow
@given(st.lists(st.integers(0, 15), min_size=1, max_size=20))
def test_the_threshold_minimises_the_l1_distance(joined):
    """By integrals over a fine grid; 15 replicates, so that no strength is exactly a half."""
    strengths = np.array(joined) / 15
    middle = (np.arange(15_000) + 0.5) / 15_000
    heights = ecdf(strengths).cdf.evaluate(middle)
    candidates = np.linspace(0, 1, 241)
    distances = np.abs(heights[None] - candidates[:, None]).mean(axis=1)
    best = candidates[distances.argmin()]
    threshold = l1_threshold(np.array(joined), 15)
    assert (
        np.abs(heights - np.mean(strengths <= threshold)).mean() <= distances.min() + 1e-9 or threshold == 0
    )
    believed = strengths > threshold
    assert abs((1 - believed.mean()) - best) <= 0.5 / len(joined) + 1 / 240 or threshold == 0


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_the_averaged_network_is_greedy_and_acyclic(data):
    nodes = "abcde"
    drawn = []
    for _ in range(data.draw(st.integers(1, 6))):
        order = data.draw(st.permutations(nodes))
        chosen = data.draw(st.lists(st.sampled_from(list(combinations(order, 2))), unique=True))
        drawn.append(Structure(nodes, chosen))
    found, threshold = of(*drawn), data.draw(st.sampled_from([0.0, 0.3, 0.5, None]))
    least = found.threshold if threshold is None else threshold
    averaged = found.structure(threshold)
    graph = nx.DiGraph(averaged.arcs)
    assert nx.is_directed_acyclic_graph(graph)
    joined = Counter(frozenset(arc) for structure in drawn for arc in structure.arcs)
    directed = Counter(arc for structure in drawn for arc in structure.arcs)
    for pair, count in joined.items():
        a, b = sorted(pair)
        present = [arc for arc in ((a, b), (b, a)) if arc in averaged.arcs]
        if count / len(drawn) <= least:
            assert not present
            continue
        usual = (a, b) if directed[a, b] >= directed[b, a] else (b, a)
        # What is left out would close a cycle of arcs that are as strong, or stronger.
        if not present:
            strong = [arc for arc in averaged.arcs if joined[frozenset(arc)] >= count]
            assert nx.has_path(nx.DiGraph([*strong, usual]), *usual[::-1])
        else:
            assert present == [usual]


def test_the_averaged_network_keeps_to_max_parents():
    structures = graphs("ad", "bd", "cd", "ad bd", nodes="abcd")
    assert of(*structures, max_parents=2).structure(0.0).parents("d") == ("a", "b")
    assert of(*structures, max_parents=None).structure(0.0).parents("d") == ("a", "b", "c")


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "high", True])
def test_thresholds_that_make_no_sense_are_refused(threshold):
    with pytest.raises(ArgumentError, match="threshold must be between 0 and 1"):
        of(*graphs("ab")).structure(threshold)


def test_open_directions_are_named():
    assert of(*graphs("ab bc")).open_directions() == {("a", "b"): EQUIVALENT, ("b", "c"): EQUIVALENT}
    assert of(*graphs("ab cb")).open_directions() == {}
    disputed = of(*graphs("ab cb", "ab cb", "ba cb"))
    assert disputed.open_directions() == {("a", "b"): DISPUTED}
    assert of(*graphs("ab", "ba", "ab")).open_directions() == {("a", "b"): f"{EQUIVALENT}; {DISPUTED}"}
    assert "a → b: strength 1.00, direction 0.67, open: replicates disagree" in str(disputed)


def test_tiers_decide_directions():
    """A chain of lines, of which only the first direction is known: the others follow."""
    frame = pd.DataFrame(
        np.cumsum(np.random.default_rng(1).normal(size=(3, 300)), axis=0).T, columns=[*"abc"]
    )
    every = spbn.confidence(frame, replicates=3, model="gbn")
    assert set(every.open_directions()) == set(every.structure().arcs)
    for options in ({"tiers": [["a"], ["b", "c"]]}, {"required_arcs": [("a", "b")]}):
        found = spbn.confidence(frame, replicates=3, model="gbn", **options)
        assert set(found.structure().arcs) == {("a", "b"), ("b", "c")}
        assert set(found.open_directions().values()) <= {DISPUTED}  # about b → c
        assert ("a", "b") not in found.open_directions()
    last = spbn.confidence(frame, replicates=3, model="auto", forbidden_arcs=[("c", "*")])
    assert ("b", "c") in last.structure().arcs
    assert ("b", "c") not in last.open_directions()
    assert {frozenset(arc) for arc in last.open_directions()} == {frozenset("ab")}


def test_the_score_decides_directions():
    """Replicates agree on the direction of a curve, and so does the score of all rows."""
    x, noise = np.random.default_rng(1).normal(size=(2, 400))
    frame = pd.DataFrame({"y": np.tanh(2 * x) + 0.5 * x**2 + 0.3 * noise, "x": x})
    found = spbn.confidence(frame, replicates=3, model="auto", margins="none")
    assert found.structure().arcs == (("x", "y"),) == found.structure().undecided_arcs()
    assert found.open_directions() == {}
    by_tests = spbn.confidence(frame, replicates=3, algorithm="pc", test="plc", folds=3)
    assert set(by_tests.open_directions()) == set(by_tests.structure().arcs) != set()
    holes = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    imputed = spbn.confidence(holes, replicates=1, model="gbn", score="cv", missing="impute", folds=3)
    assert set(imputed.open_directions()) == set(imputed.structure().arcs) != set()


def test_no_row_is_drawn_twice():
    table = as_table(FRAME)
    for seed in range(20):
        rows = draw_rows(table, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == len(rows) == 60


def test_half_samples_vary_as_much_as_the_data_does():
    """The mean of a sample has the variance s² / n, as that of a bootstrap sample has."""
    table = as_table(nonlinear_frame(100, 1))
    rng = np.random.default_rng(0)
    means = [table.columns[0, draw_rows(table, rng)].mean() for _ in range(4_000)]
    assert np.var(means) == pytest.approx(table.columns[0].var(ddof=1) / 100, rel=0.08)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"seed": 3},
        {"model": "gbn", "required_arcs": [("d", "a")]},
        {"algorithm": "pc", "test": "plc", "alpha": 0.2},
        {"missing": "impute", "model": "gbn"},
    ],
)
def test_a_structure_alone_is_that_of_the_network(settings):
    frame = (
        FRAME.mask(np.random.default_rng(0).random(FRAME.shape) < 0.05) if "missing" in settings else FRAME
    )
    assert learn_structure(frame, LearnSettings(**settings)) == spbn.learn(frame, **settings).structure


def test_what_cannot_be_fitted_is_not_in_a_structure_alone():
    """PC looks at no densities: the sum of two columns depends on both, and cannot be given both."""
    frame = FRAME.assign(d=FRAME["a"] + FRAME["b"])
    with pytest.warns(UserWarning, match="is left out"):
        network = spbn.learn(frame, algorithm="pc", test="plc", model="gbn")
    settings = LearnSettings(algorithm="pc", test="plc", model="gbn")
    assert learn_structure(frame, settings) == network.structure
    required = settings.replace(required_arcs=[("a", "d"), ("b", "d")])
    for way in (learn_network, learn_structure):
        with pytest.raises(spbn.errors.FitError, match="the required arc b → d cannot be fitted"):
            way(frame, required)


def learned_from(monkeypatch, frame, **options):
    """The tables and settings that reach the searches."""
    seen = []

    def recording(table, settings):
        seen.append((table, settings))
        return spbn.learn(table, model="gbn").structure

    monkeypatch.setattr(replicating, "learn_structure", recording)
    spbn.confidence(frame, **options)
    return seen


def test_no_copy_of_a_row_is_on_both_sides_of_a_fold(monkeypatch):
    """There is none at all: every replicate has half of the rows, each once."""
    whole = {tuple(row) for row in FRAME.to_numpy()}
    tables = [table for table, _ in learned_from(monkeypatch, FRAME, replicates=5)]
    for table in tables:
        rows = [tuple(row) for row in table.select(list("abcd")).columns.T]
        assert len(rows) == len(set(rows)) == 60
        assert set(rows) <= whole
    assert len({table.names for table in tables}) > 1  # the order of columns does not always break ties
    assert len({table.columns.tobytes() for table in tables}) == 5


def test_settings_and_labels_reach_every_search(monkeypatch):
    labels, held_out = np.arange(120), nonlinear_frame(30, 4, seed=9)
    given = {"folds": labels, "validation": held_out, "epsilon": 2.0, "required_arcs": iter([("a", "b")])}
    seen = learned_from(monkeypatch, FRAME.assign(e=1.0), replicates=3, drop=["e"], missing="drop", **given)
    for table, own in seen:
        np.testing.assert_array_equal(table.column("a"), FRAME["a"].to_numpy()[own.folds])
        assert own.validation is held_out
        assert (own.epsilon, own.required_arcs) == (2.0, (("a", "b"),))
        assert (own.drop, own.discrete, own.missing) == ((), (), "error")
    assert len({own.seed for _, own in seen}) == 3


def test_a_rare_level_does_not_stop_it():
    frame = mixed_frame(60).assign(u=["rare"] * 2 + ["usual"] * 58)
    found = spbn.confidence(frame, **QUICK)
    assert found.structure().type("u") == "discrete"


def test_holes():
    holes = FRAME.copy()
    holes.loc[:9, "b"] = np.nan
    with pytest.raises(spbn.errors.DataError, match="missing"):
        spbn.confidence(holes, **QUICK)
    dropped = spbn.confidence(holes, missing="drop", **QUICK)
    assert dropped.structures == spbn.confidence(holes.dropna().reset_index(drop=True), **QUICK).structures
    assert dropped.rows == 110
    imputed = spbn.confidence(holes, missing="impute", model="gbn", replicates=2)
    assert imputed.rows == 120


def test_clear_arcs_are_believed_and_no_others():
    """A chain a, b, c, d, all linear, whose directions no data can tell; e is independent of it."""
    e, *noise = np.random.default_rng(1).normal(size=(5, 400))
    a, b, c, d = np.cumsum(noise, axis=0)
    frame = pd.DataFrame({"e": e, "d": d, "c": c, "b": b, "a": a})
    found = spbn.confidence(frame, replicates=21, model="gbn")
    assert {frozenset(arc) for arc in found.structure().arcs} == {frozenset(x) for x in ("ab", "bc", "cd")}
    assert all(reason.startswith(EQUIVALENT) for reason in found.open_directions().values())
    assert set(found.open_directions()) == set(found.structure().arcs)
    network = spbn.BayesianNetwork.fit(found.structure(), frame)
    assert network.structure == found.structure()


def test_ties_are_broken_in_turn():
    """Both directions of a single linear arc score the same, so replicates must not agree on one."""
    a, noise = np.random.default_rng(0).normal(size=(2, 200))
    found = spbn.confidence({"a": a, "b": a + noise}, model="gbn", replicates=40)
    assert found.arcs["strength"].tolist() == [1.0]
    assert found.arcs["direction"][0] < 0.8


EXPECTED = spbn.confidence(FRAME, **QUICK)


def same(found):
    pd.testing.assert_frame_equal(found.arcs, EXPECTED.arcs)
    assert found.structures == EXPECTED.structures
    return True


def test_the_seed_decides():
    assert same(spbn.confidence(FRAME, **QUICK))
    assert spbn.confidence(FRAME, seed=1, **QUICK).structures != EXPECTED.structures
    fewer = spbn.confidence(FRAME, model="gbn", replicates=3)
    assert fewer.structures == EXPECTED.structures[:3]
    by_generator = [spbn.confidence(FRAME, seed=np.random.default_rng(5), **QUICK) for _ in range(2)]
    assert by_generator[0].structures == by_generator[1].structures != EXPECTED.structures


@pytest.mark.cluster
def test_two_processes_find_the_same():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert same(spbn.confidence(FRAME, client=pool, **QUICK))


def counting(monkeypatch):
    """Count the replicates that are learned."""
    learned, original = [], replicating.learn_replicate

    def count(table, number, *rest):
        learned.append(number)
        return original(table, number, *rest)

    monkeypatch.setattr(replicating, "learn_replicate", count)
    return learned


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, 40, 0.5, 0.9, 1.0])
def test_a_run_that_was_killed_goes_on(kept, tmp_path, monkeypatch):
    """The file is cut off anywhere: in its first line, between lines, or within one."""
    path = tmp_path / "run.jsonl"
    assert same(spbn.confidence(FRAME, checkpoint=path, **QUICK))
    whole = path.read_bytes()
    part = whole[: kept if isinstance(kept, int) else round(kept * len(whole))]
    path.write_bytes(part)
    learned = counting(monkeypatch)
    assert same(spbn.confidence(FRAME, checkpoint=path, **QUICK))
    assert len(learned) == 7 - max(0, part.count(b"\n") - 1)
    assert path.read_bytes() == whole
    assert (
        spbn.confidence(FRAME, model="gbn", replicates=3, checkpoint=path).structures
        == EXPECTED.structures[:3]
    )


def test_what_was_found_before_an_interrupt_is_kept(tmp_path, monkeypatch):
    path, original = tmp_path / "run.jsonl", replicating.learn_replicate

    def interrupted(table, number, *rest):
        if number == 4:
            raise KeyboardInterrupt
        return original(table, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(replicating, "learn_replicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            spbn.confidence(FRAME, checkpoint=path, **QUICK)
    learned = counting(monkeypatch)
    assert same(spbn.confidence(FRAME, checkpoint=path, **QUICK))
    assert learned == [4, 5, 6]


def test_names_may_hold_ends_of_lines(tmp_path):
    names = ["a\u2028b", "c\x85", "d\r\n", "e\x1c"]
    frame = FRAME.set_axis([*names, *FRAME.columns[4:]], axis=1)
    path, settings = tmp_path / "run.jsonl", {"model": "gbn", "replicates": 2}
    first = spbn.confidence(frame, checkpoint=path, **settings)
    assert spbn.confidence(frame, checkpoint=path, **settings).structures == first.structures


@pytest.mark.parametrize(
    ("frame", "changed", "message"),
    [
        (FRAME + 1e-9, {}, "it was made from other rows"),
        (FRAME[["b", "a", "c", "d"]], {}, "it was made from the columns"),
        (FRAME, {"max_parents": 1}, "it was made with max_parents=None, and not with max_parents=1"),
        (FRAME, {"seed": 2}, "it was made with seed=0, and not with seed=2"),
        (FRAME, {"model": "spbn", "validation": FRAME[:20]}, "belongs to other work"),
    ],
)
def test_a_checkpoint_of_other_work_is_refused(frame, changed, message, tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.confidence(FRAME, checkpoint=path, **QUICK)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=message):
        spbn.confidence(frame, checkpoint=path, **QUICK | changed)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        {"replicate": "x", "arcs": [], "types": {}},
        {"replicate": 0, "arcs": [["a", "z"]], "types": dict.fromkeys("abcd", "lg")},
        {"replicate": 0, "arcs": [], "types": {}},
        {"arcs": []},
    ],
)
def test_a_damaged_checkpoint_is_refused(line, tmp_path):
    path = tmp_path / "run.jsonl"
    spbn.confidence(FRAME, checkpoint=path, model="gbn", replicates=1)
    path.write_text(path.read_text().splitlines()[0] + "\n" + json.dumps(line) + "\n")
    with pytest.raises(CheckpointError, match="is damaged"):
        spbn.confidence(FRAME, checkpoint=path, model="gbn", replicates=1)


def test_what_makes_no_sense_is_refused(tmp_path):
    for replicates in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="replicates must be"):
            spbn.confidence(FRAME, replicates=replicates)
    with pytest.raises(TypeError, match="'colour'"):
        spbn.confidence(FRAME, colour="red")
    with pytest.raises(ArgumentError, match="max_seconds cannot be given"):
        spbn.confidence(FRAME, max_seconds=3)
    with pytest.raises(ArgumentError, match="missing must be one of"):
        spbn.confidence(FRAME, missing="guess")
    with pytest.raises(ArgumentError, match="seed must be"):
        spbn.confidence(FRAME, seed=-1)
    with pytest.raises(ArgumentError, match="seed that is a whole number"):
        spbn.confidence(FRAME, seed=None, checkpoint=tmp_path / "run.jsonl")
    with pytest.raises(ArgumentError, match=r"folds must be .*replicate 1, with half of the rows"):
        spbn.confidence(FRAME[:20], model="spbn", folds=10)


@pytest.mark.slow
def test_it_is_drawn_with_widths_and_dashes():
    pytest.importorskip("igraph")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from matplotlib.patches import FancyArrowPatch

    found = of(*graphs("ab cb", "ab cb", "ba cb", "ab"))
    ax = found.plot()
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    widths = sorted(arrow.get_linewidth() for arrow in arrows)
    assert len(widths) == 2
    assert widths[0] < widths[1]
    assert {text.get_text() for text in ax.texts} >= {"0.75", "1.00"}
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["wider: stronger"]  # three of four replicates agree on a → b: enough
    assert [text.get_text() for text in of(*graphs("ab")).plot().get_legend().get_texts()] == [
        "wider: stronger",
        "dashed: direction open",
    ]
    pyplot.close("all")
    with pytest.raises(ArgumentError, match="together with compare_to"):
        spbn.plots.plot_structure(found.structure(), compare_to=found.structure(), strengths={})


@pytest.mark.parametrize("name", ["lags", "series", "time"])
def test_rows_that_follow_each_other_are_refused(name):
    with pytest.raises(ArgumentError, match="would tear apart rows that follow each other"):
        spbn.confidence(FRAME, **QUICK, **{name: 2})


def test_what_cannot_learn_elsewhere_is_refused():
    with pytest.raises(ArgumentError, match=r"client must be a dask.distributed.Client, .* Got int"):
        spbn.confidence(FRAME, client=5, **QUICK)
