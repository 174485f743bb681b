import sys

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn._base.arrays import generator
from spbn.errors import DataError
from spbn.learning import structural_em
from spbn.tables.reader import as_table
from spbn.transforms import MarginsPlan


def holed(frame, rate, seed=0):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < rate)


def fillers():
    """Two ways to fill holes, by name."""
    return {
        "lines": lambda filled, structure: spbn.learn(filled, model="gbn"),
        "kernels": lambda filled, structure: spbn.learn(filled, model="kdebn", patience=0),
    }


def by_networks(learn):
    return structural_em.by_networks(
        learn, lambda filled: spbn.learn(filled, model="gbn"), MarginsPlan("none")
    )


def chosen(frame):
    ways = {name: by_networks(learn) for name, learn in fillers().items()}
    table = as_table(frame, training=True, missing="keep")
    found = structural_em.best_filler(table, list(ways.values()), generator(5))
    return next(name for name, way in ways.items() if way is found)


@pytest.mark.slow
def test_kernels_fill_the_holes_of_a_parabola_and_lines_those_of_a_line():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 300)
    parabola = pd.DataFrame({"x": x, "y": x**2 + rng.normal(0, 0.02, 300)})
    assert chosen(holed(parabola, 0.1)) == "kernels"
    x = rng.normal(size=60)
    line = pd.DataFrame({"x": x, **{f"y{k}": x + rng.normal(0, 0.5, 60) for k in range(4)}})
    assert chosen(holed(line, 0.2)) == "lines"


def test_the_loss_is_that_of_two_loops():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(3, 2, 20), "s": rng.choice(["a", "b", "c"], 20)})
    table = as_table(frame, training=True, missing="keep")
    hidden = rng.random(table.columns.shape) < 0.4
    draws = np.stack([rng.permuted(table.columns, axis=1) for _ in range(4)])
    losses = []
    for k, row in np.argwhere(hidden):
        scale = 1.0 if table.discrete[k] else np.std(table.columns[k])
        found, truth = draws[:, k, row], table.columns[k, row]

        def apart(a, b, k=k, scale=scale):
            return float(a != b) if table.discrete[k] else abs(a - b) / scale

        between = [apart(found[i], found[j]) for i in range(4) for j in range(4) if i != j]
        losses.append(np.mean([apart(value, truth) for value in found]) - np.mean(between) / 2)
    assert structural_em._loss(table, hidden, draws) == pytest.approx(np.mean(losses))


def test_completions_differ_only_in_the_holes():
    frame = holed(spbn.datasets.synthetic(80, seed=0), 0.2)
    table = as_table(frame, training=True, missing="keep")
    lines = by_networks(fillers()["lines"])
    tables, scores = lines(table, generator(0), 2, 3)
    holes = np.isnan(table.columns)
    assert len(tables) == 3
    assert len(scores) == 2
    for one in tables:
        np.testing.assert_array_equal(one.columns[~holes], table.columns[~holes])
    for one, other in ((0, 1), (1, 2)):
        assert (tables[one].columns[holes] != tables[other].columns[holes]).mean() > 0.8


def test_every_round_goes_on_from_the_structure_of_the_last():
    table = as_table(holed(spbn.datasets.synthetic(200, seed=0), 0.1), training=True, missing="keep")
    starts, found = [], []

    def learn(filled, structure):
        starts.append(structure)
        found.append(spbn.learn(filled, model="gbn"))
        return found[-1]

    by_networks(learn)(table, generator(0), 3, 1)
    assert starts == [None, *(network.structure for network in found[:-1])]
    assert len(starts) == 4  # the first of them from the complete rows alone


@pytest.mark.parametrize("model", ["spbn", "auto"])
def test_searches_of_later_rounds_start_from_what_was_found(model, monkeypatch):
    frame = holed(spbn.datasets.synthetic(80, seed=0), 0.2)
    module, starts = sys.modules["spbn.learning.learn"], []
    learn_network = module.learn_network

    def spy(data, settings, *rest):
        starts.append((settings.model_name, settings.start))
        return learn_network(data, settings, *rest)

    monkeypatch.setattr(module, "learn_network", spy)
    spbn.learn(frame, missing="impute", model=model)
    given = [isinstance(start, spbn.Structure) for model, start in starts if model == "spbn"]
    assert given.count(True) >= structural_em.ROUNDS - 1


def test_the_search_averages_over_completions(monkeypatch):
    frame = holed(spbn.datasets.synthetic(60, seed=0), 0.2)
    seen = []
    module = sys.modules["spbn.learning.learn"]
    climb = module.hill_climb

    def spy(score, *args, **kwargs):
        seen.append(type(score).__name__)
        return climb(score, *args, **kwargs)

    monkeypatch.setattr(module, "hill_climb", spy)
    spbn.learn(frame, model="gbn", missing="impute")
    assert seen[-1] == "Averaged"
    assert set(seen[:-1]) == {"BIC"}


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
def test_normal_draws_keep_a_line_of_which_no_row_is_whole(margins):
    rng = np.random.default_rng(2)
    x = rng.normal(size=400)
    frame = pd.DataFrame({f"y{k}": (k + 1) * x + rng.normal(0, 0.01, 400) for k in range(6)})
    frame = frame.mask(np.eye(6, dtype=bool)[np.arange(400) % 6])
    table = as_table(frame, training=True, missing="keep")
    tables, scores = structural_em.by_normal(MarginsPlan(margins))(table, generator(0), 4, 2)
    assert scores == []
    holes = np.isnan(table.columns)
    for one in tables:
        np.testing.assert_array_equal(one.columns[~holes], table.columns[~holes])
        residuals = one.columns / np.arange(1, 7)[:, None] - x
        assert np.abs(residuals).max() < 0.2
    assert (tables[0].columns[holes] != tables[1].columns[holes]).all()


def test_draws_for_counts_are_counts_and_others_are_left_alone():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"count": rng.poisson(2, 200) * 1.0, "number": rng.normal(size=200)})
    frame["zeros"] = np.where(np.arange(200) < 80, 0.0, 5 + rng.random(200))
    table = as_table(holed(frame, 0.2), training=True, missing="keep")
    holes = np.isnan(table.columns)
    drawn = np.where(holes, rng.normal(2, 2, table.columns.shape), table.columns)
    moved = structural_em._like_the_columns(table.with_columns(drawn), holes).columns
    np.testing.assert_array_equal(moved[~holes], drawn[~holes])
    np.testing.assert_array_equal(moved[1], drawn[1])
    counts = frame["count"].unique()
    for before, after in zip(drawn[0, holes[0]], moved[0, holes[0]], strict=True):
        assert abs(after - before) == pytest.approx(np.abs(counts - before).min())
    zeros = moved[2, holes[2]] == 0.0
    known = table.columns[2, ~holes[2]]
    assert zeros.mean() == pytest.approx((known == 0.0).mean(), abs=0.5 / holes[2].sum() + 1e-9)
    distances = np.abs(drawn[2, holes[2]])
    assert distances[zeros].max() <= distances[~zeros].min()


@pytest.mark.slow
def test_the_network_is_fitted_to_all_fillings():
    frame = holed(spbn.datasets.synthetic(60, seed=0), 0.2)
    network = spbn.learn(frame, model="blend", missing="impute", patience=0)
    assert network.record.rows == 60
    for cpd in network.cpds.values():
        kernels = cpd.kept_rows.columns.reshape(-1, structural_em.COMPLETIONS, 60)
        known = (
            network.transformed(as_table(frame, training=True, missing="keep"))
            .select(cpd.kept_rows.names)
            .columns
        )
        for one in kernels.swapaxes(0, 1):
            np.testing.assert_allclose(one[~np.isnan(known)], known[~np.isnan(known)])


@pytest.mark.parametrize(
    "given", [{}, {"model": "gbn"}, {"model": "spbn"}, {"margins": "yeo-johnson"}], ids=str
)
def test_columns_that_are_constant_where_they_are_observed_are_named(given):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    frame["c"] = np.where(rng.random(100) < 0.3, np.nan, 5.0)
    with pytest.raises(
        DataError, match="column 'c' is constant, which leaves nothing to learn: leave it out"
    ):
        spbn.learn(frame, missing="impute", **given)
    levels = frame.assign(c=pd.Series(["x"] * 100).mask(rng.random(100) < 0.3))
    with pytest.raises(DataError, match="column 'c' is constant"):
        spbn.learn(levels, missing="impute", **given)


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
def test_the_normal_distribution_leaves_out_columns_that_do_not_vary(margins):
    """As some may not where values are hidden, or among the rows that it is estimated from."""
    columns = np.random.default_rng(1).normal(size=(3, 50))
    columns[1] = 4.0
    columns[:, ::5] = np.nan
    table = as_table(pd.DataFrame(columns.T), training=True, missing="keep")
    for filled in structural_em._from_normal(table, MarginsPlan(margins), 2, generator(0)):
        assert (filled.columns[1] == 4.0).all()
        np.testing.assert_array_equal(filled.columns[:, 1], columns[:, 1])
        assert len(np.unique(filled.columns[0])) == 50
    alone = structural_em._from_normal(table.select(["1"]), MarginsPlan(margins), 2, generator(0))
    assert all((filled.columns == 4.0).all() for filled in alone)


@pytest.mark.parametrize("model", ["auto", "spbn", "gbn"])
def test_discrete_tables_need_no_complete_rows(model):
    rng = np.random.default_rng(0)
    first = rng.choice(["x", "y"], 200).astype(object)
    frame = pd.DataFrame({"p": first, "q": first, "r": rng.choice(["u", "v"], 200).astype(object)})
    frame.loc[::2, "p"], frame.loc[1::4, "q"], frame.loc[3::4, "r"] = None, None, None
    assert not frame.notna().all(axis=1).any()
    frame.loc[1::8, "q"] = first[1::8]
    network = spbn.learn(frame, missing="impute", model=model, seed=1)
    assert frozenset("pq") in {frozenset(arc) for arc in network.structure.arcs}
    assert np.isfinite(network.logpdf(frame.dropna())).all()


def test_infinite_values_are_holes():
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    frame = pd.DataFrame({"a": a, "b": a + 0.5 * rng.normal(size=80)})
    missing, infinite = frame.copy(), frame.copy()
    missing.loc[[3, 30], "b"] = np.nan
    infinite.loc[[3, 30], "b"] = [np.inf, -np.inf]
    first, second = (spbn.learn(rows, model="gbn", missing="impute", seed=0) for rows in (missing, infinite))
    assert first.cpds == second.cpds
    assert np.isfinite(second.logpdf(frame)).all()
