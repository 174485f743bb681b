import numpy as np
import pandas as pd
import pytest

import spbn
from spbn._base.arrays import generator
from spbn.diagnostics import early_stop
from spbn.search import AddArc, ChangeType, SearchResult, Step
from spbn.search.hill_climbing import NO_IMPROVEMENT, OUT_OF_PATIENCE, OUT_OF_STEPS, Trail
from spbn.tables.reader import as_table
from spbn.tables.splits import holdout_rows


def curve(rows, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.1 * rng.normal(size=rows)})


def validation_rows(rows, seed):
    """The rows that a search with this seed sets aside."""
    return holdout_rows(rows, 0.2, generator(seed).spawn(2)[0])[1]


def search(start, operators, scores, validations, *, best=0, reason=OUT_OF_PATIENCE):
    """A search that took these steps; the first score and validation are those of the start."""
    trail, steps = Trail(start), []
    for number, operator in enumerate(operators, 1):
        trail.append(operator)
        delta = scores[number] - scores[number - 1]
        misses = max(0, number - best)
        steps.append(Step(operator, delta, scores[number], validations[number], misses, number, trail))
    structure = trail.after(best)
    return SearchResult(structure, scores[best], validations[best], tuple(steps), reason, best)


def noise(columns, rows=100, seed=0):
    names = [f"x{i}" for i in range(columns)]
    return as_table(pd.DataFrame(np.random.default_rng(seed).normal(size=(rows, columns)), columns=names))


@pytest.mark.parametrize("seed", range(5))
def test_a_search_on_sound_rows_is_not_blamed_on_any(seed):
    frame = curve(200, seed)
    network = spbn.learn(frame, seed=seed, patience=0)
    assert network.structure.arcs != ()
    assert early_stop(network.search, as_table(frame), settings=network.record.settings) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_reading_among_the_validation_rows_is_found(seed):
    frame = curve(200, seed)
    row = int(validation_rows(200, seed)[3])
    frame.loc[row, "b"] = 25.0
    network = spbn.learn(frame, seed=seed, patience=0)
    assert network.structure.arcs == ()  # for the sake of one row
    table = as_table(frame)
    found = early_stop(network.search, table, settings=network.record.settings)
    assert [(far.row, far.node, far.label) for far in found.rows] == [(row, "b", str(row))]
    assert found.gain > 50
    assert f"look at row {row} (b)." in str(found)
    assert "correct or remove these rows if they are wrong" in str(found)
    named = early_stop(network.search, table, labels=[f"day {i}" for i in range(200)])
    assert f"look at row day {row} (b)." in str(named)


def test_the_row_is_indeed_for_validation():
    """With that row right, the same split finds the arc; and it is no row that was trained on."""
    frame = curve(200, 0)
    row = int(validation_rows(200, 0)[3])
    score = spbn.scores.ValidatedLikelihood(frame, seed=0)
    family = spbn.nodes.Family("b", ("a",), spbn.NodeType.CKDE)
    wrong = frame.copy()
    wrong.loc[row, "b"] = 25.0
    other = spbn.scores.ValidatedLikelihood(wrong, seed=0)
    np.testing.assert_array_equal(score.rows(family), other.rows(family))
    assert (score.validation_rows(family) != other.validation_rows(family)).sum() == 1


def test_other_searches_have_no_such_rows():
    frame = curve(100, 0)
    assert early_stop(None, as_table(frame)) is None
    assert early_stop(spbn.learn(frame, algorithm="pc", test="plc").search, as_table(frame)) is None
    assert early_stop(spbn.learn(frame, model="gbn").search, as_table(frame)) is None
    assert early_stop(spbn.learn(frame, patience=0).search, as_table({"z": [1.0, 2.0]})) is None


TABLE = noise(20)
START = spbn.Structure(TABLE.names, types="ckde")
OPERATORS = [ChangeType("x1", "ckde", "lg"), AddArc("x1", "x2"), AddArc("x3", "x4"), AddArc("x5", "x6")]


def test_no_arcs_although_later_steps_raised_the_score():
    """As on the spambase table: no row stands out, and still the reader must be told."""
    found = early_stop(search(START, OPERATORS, [0, 50, 90, 110, 130], [900, 850, 800, 820, 780]), TABLE)
    assert found.rows == ()
    assert found.gain == 130
    text = str(found)
    assert text.startswith(
        "the search ended with no arcs among 20 nodes: 4 more steps raised the score by 130, "
        "but the validation score fell from 900 to 780"
    )
    assert "far from all others" not in text
    assert "--start lg" in text
    assert "--patience 20" in text
    assert "--seed 1" in text


@pytest.mark.parametrize(
    ("best", "words"), [(2, "only 1 arc among 20 nodes"), (3, "only 2 arcs among 20 nodes")]
)
def test_hardly_any_arcs(best, words):
    found = early_stop(
        search(START, OPERATORS, [0, 50, 90, 110, 130], [0, 1, 2, 3 if best == 3 else 1, 1], best=best), TABLE
    )
    assert words in str(found)


def test_a_search_that_found_arcs_or_gained_little_is_left_alone():
    assert early_stop(search(START, OPERATORS, [0, 5, 6, 7, 8], [9, 8, 8, 8, 8]), TABLE) is None
    validations = [0, 1, 2, 3, 4]
    whole = search(START, OPERATORS, [0, 50, 90, 110, 130], validations, best=4, reason=NO_IMPROVEMENT)
    assert early_stop(whole, TABLE) is None
    small = noise(5)
    start = spbn.Structure(small.names, types="ckde")
    found = search(start, [*OPERATORS[:2], AddArc("x3", "x4")], [0, 50, 90, 150], [0, 1, 2, 1], best=2)
    assert early_stop(found, small) is None


@pytest.mark.parametrize(
    ("settings", "advised", "not_advised"),
    [
        ({"start": "ckde"}, ["--start lg"], ["--start ckde"]),
        ({"start": "lg"}, ["--patience", "--seed"], ["--start"]),
        ({"start": "ckde", "model": "kdebn"}, ["--patience"], ["--start"]),
        ({"types": ["ckde"]}, ["--patience"], ["--start"]),
        ({"patience": 30}, ["--patience 60"], []),
        ({"seed": 7}, ["seed=8, --seed 8"], []),
        ({"seed": None}, ["--start lg"], ["--seed"]),
        ({"validation": [[1.0]]}, ["--start lg"], ["--seed"]),
        ({"model": "gbn"}, ["--patience"], ["--model gbn", "--start", "--seed"]),
        ({"model": "gbn", "score": "cv"}, ["other validation rows (seed=1, --seed 1)"], ["--model gbn"]),
        ({"start": {"arcs": [], "types": {}}}, ["--patience"], ["--start"]),
    ],
)
def test_the_advice_is_something_that_was_not_tried(settings, advised, not_advised):
    stopped = search(START, OPERATORS, [0, 50, 90, 110, 130], [900, 850, 800, 820, 780])
    text = str(early_stop(stopped, TABLE, settings=settings))
    assert all(words in text for words in advised), text
    assert not any(words in text for words in not_advised), text


def test_more_patience_is_no_advice_where_it_did_not_run_out():
    stopped = search(START, OPERATORS, [0, 50, 90, 110, 130], [900] + [800] * 4, reason=NO_IMPROVEMENT)
    assert "--patience" not in str(early_stop(stopped, TABLE))


def test_nothing_improved_the_score():
    found = early_stop(search(START, [], [0], [0], reason=NO_IMPROVEMENT), TABLE)
    assert "no change improved the score" in str(found)
    assert "--start lg" in str(found)
    assert (found.gain, found.rows) == (0.0, ())


def test_independent_columns_are_said_to_be_so():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    network = spbn.learn(frame, model="gbn")
    assert network.search.steps == ()
    found = early_stop(network.search, as_table(frame), settings=network.record.settings)
    assert "no column helps to predict another" in str(found)


def test_a_search_that_was_not_to_find_arcs_is_left_alone():
    stopped = search(START, [], [0], [0], reason=NO_IMPROVEMENT)
    assert early_stop(stopped, TABLE, settings={"max_parents": 0}) is None
    assert early_stop(search(START, [], [0], [0], reason=OUT_OF_STEPS), TABLE) is None
    alone = noise(1)
    one = search(spbn.Structure(alone.names), [], [0], [0], reason=NO_IMPROVEMENT)
    assert early_stop(one, alone) is None
    with_arcs = spbn.Structure(TABLE.names, [("x1", f"x{i}") for i in range(2, 8)])
    assert early_stop(search(with_arcs, [], [0], [0], reason=NO_IMPROVEMENT), TABLE) is None


def test_the_farthest_rows_and_their_worst_nodes_are_named(monkeypatch):
    """By the drop below the median: below its mean, x1 would have less to do with row 3 than x0."""
    by_node = {name: np.zeros(100) for name in TABLE.names}
    by_node["x0"][3] = -1000.0
    by_node["x1"][[1, 2, 3, 7]] = [-3000.0, -2500.0, -1030.0, -800.0]

    class Planned:
        def __init__(self, *_, **__):
            pass

        def rows(self, family):
            return by_node[family.node]

    monkeypatch.setattr("spbn.diagnostics.model.CVLikelihood", Planned)
    stopped = search(START, OPERATORS, [0, 50, 90, 110, 130], [900, 850, 800, 820, 780])
    found = early_stop(stopped, TABLE)
    assert [(far.row, far.node) for far in found.rows] == [(1, "x1"), (2, "x1"), (3, "x1")]
