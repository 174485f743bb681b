import numpy as np
import pytest

import spbn
from spbn.app.comparison import compare_models
from spbn.errors import ArgumentError, DataError
from spbn.tables.splits import fold_labels

from strategies import nonlinear_frame

FRAME = nonlinear_frame(60, 3, seed=2)


def by_hand(frame, folds, seed, **options):
    """Learn from all rows but those of a fold, and score those of the fold."""
    labels = fold_labels(len(frame), folds, np.random.default_rng(seed))
    assert set(labels) == set(range(folds))
    found = {}
    for model in ("spbn", "gbn", "kdebn", "blend"):
        networks = [spbn.learn(frame[labels != f], model=model, seed=seed, **options) for f in range(folds)]
        means = [
            network.loglik(frame[labels == f]) / (labels == f).sum() for f, network in enumerate(networks)
        ]
        arcs = [len(network.structure.arcs) for network in networks]
        kernels = [list(map(str, network.structure.types.values())).count("ckde") / 3 for network in networks]
        found[model] = (np.mean(means), np.std(means, ddof=1) / folds**0.5, np.mean(arcs), np.mean(kernels))
    return found


@pytest.mark.parametrize(("seed", "options"), [(0, {}), (5, {}), (0, {"patience": 0, "max_parents": 1})])
def test_models_are_scored_on_rows_that_they_were_not_learned_from(seed, options):
    table = compare_models(FRAME, folds=3, seed=seed, **options).set_index("model")
    expected = by_hand(FRAME, 3, seed, **options)
    assert set(table.index) == set(expected)
    for model, numbers in expected.items():
        found = table.loc[model, ["log-density", "standard error", "arcs", "CKDE share"]]
        np.testing.assert_allclose(found.astype(float), numbers, rtol=1e-12)
    assert (table["seconds"] > 0).all()
    assert table["log-density"].is_monotonic_decreasing


def test_rows_that_were_learned_from_would_flatter():
    """A kernel on every row makes the rows themselves likely, above all where dimensions are many."""
    noise = nonlinear_frame(40, 3, seed=1).apply(lambda column: np.random.default_rng(0).permutation(column))
    network = spbn.learn(noise, model="kdebn", required_arcs=[("a", "c"), ("b", "c"), ("a", "b")])
    table = compare_models(
        noise, folds=4, required_arcs=iter([("a", "c"), ("b", "c"), ("a", "b")])
    ).set_index("model")
    assert table.loc["kdebn", "log-density"] < network.logpdf(noise).mean() - 0.5
    assert table.loc["kdebn", "arcs"] == 3  # in every fold, though an iterator is read only once


def test_the_seed_reaches_learn(monkeypatch):
    seeds = []

    def learn(*data, seed, **options):
        seeds.append(seed)
        return spbn.learn(*data, seed=seed, **options)

    monkeypatch.setattr("spbn.app.comparison.learn", learn)
    compare_models(FRAME[["a", "b"]], folds=2, seed=7)
    assert seeds == [7] * 8  # four models, two folds


def test_rows_and_columns_to_leave_out():
    holes = FRAME.assign(name="Bob")
    holes.loc[4, "b"] = np.nan
    table = compare_models(holes, folds=2, missing="drop", drop=["name", "c"])
    expected = compare_models(FRAME[["a", "b"]].drop(index=4), folds=2)
    columns = ["model", "log-density", "arcs"]
    assert table[columns].equals(expected[columns])


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ArgumentError, match="compare_models learns every model"):
        compare_models(FRAME, model="gbn")
    with pytest.raises(DataError, match="'d' is a copy of column 'a'"):
        compare_models(FRAME.assign(d=FRAME["a"]))
    with pytest.raises(ArgumentError, match="folds must be between 2 and the number of rows, 60"):
        compare_models(FRAME, folds=61)
