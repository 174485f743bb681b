"""The steps by which rows are divided into classes, each beside the slow and obvious way."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm

import spbn
from spbn.learning import hidden
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family
from spbn.rows.store import FitSettings
from spbn.scores.by_class import ByClass
from spbn.scores.likelihood import arc_penalty
from spbn.search import order_search
from spbn.structure import Structure
from spbn.tables.reader import as_table
from spbn.tables.table import Table
from spbn.transforms import MarginsPlan


def lines(margins: str = "none") -> hidden.Model:
    def search(score, start):
        return order_search(score, start, restarts=1, patience=0).structure

    return hidden.Model((NodeType.LG,), FitSettings(), "auto", 5, MarginsPlan(margins), 0, search)


def populations(rows: int, seed: int, apart: float) -> tuple[Table, np.ndarray]:
    """Draw rows of two populations, so far apart; only x and y differ."""
    rng = np.random.default_rng(seed)
    codes = (rng.random(rows) < 0.4).astype(np.int64)
    x, z = rng.normal(apart * codes), rng.normal(size=rows)
    y = rng.normal(-apart * codes + 0.5 * x)
    return as_table({"x": x, "y": y, "z": z}, training=True), codes


def test_classes_are_drawn_by_their_probabilities():
    wanted = np.array([0.2, 0.0, 0.5, 0.3])
    codes = hidden.draw_codes(np.tile(wanted, (20_000, 1)), np.random.default_rng(0))
    counts = np.bincount(codes, minlength=4)
    low, high = binom.ppf([1e-4, 1 - 1e-4], 20_000, wanted[:, None]).T
    assert ((counts >= low) & (counts <= high)).all()
    certain = np.eye(3)[[2, 0, 1]]
    assert hidden.draw_codes(certain, np.random.default_rng(0)).tolist() == [2, 0, 1]


def test_components_are_merged_where_that_lowers_the_entropy_most():
    rng = np.random.default_rng(1)
    for _ in range(5):
        found = rng.dirichlet(np.full(4, 0.3), 60)
        best = min(
            itertools.combinations(range(4), 2),
            key=lambda pair: (
                -sum(
                    np.sum(p * np.log(p))
                    for p in (found[:, pair].sum(axis=1), *np.delete(found, pair, axis=1).T)
                )
            ),
        )
        rest = np.delete(found, best, axis=1)
        expected = np.column_stack([rest, found[:, best].sum(axis=1)])
        assert hidden.merge(found, 3) == pytest.approx(expected, abs=1e-12)
    assert hidden.merge(found, 1) == pytest.approx(np.ones((60, 1)))


def test_the_share_of_a_class_is_that_of_the_units_outside_the_fold():
    table, codes = populations(90, 0, 3.0)
    score = ByClass(table, codes, folds=4, penalty=0.0)
    found = np.exp(score.log_prior(smoothing=1.0))
    for row in range(table.rows):
        others = codes[score.labels != score.labels[row]]
        expected = (np.bincount(others, minlength=2) + 0.5) / (len(others) + 1.0)
        assert found[:, row] == pytest.approx(expected, rel=1e-12)


def test_other_rows_are_scored_by_all_rows_of_a_class():
    (table, codes), (others, _) = populations(80, 0, 3.0), populations(20, 1, 3.0)
    score = ByClass(table, codes, folds=4, penalty=0.0)
    found = score.of_others([Family("y", ("x",)), Family("z", ())], others)
    for k in range(2):
        mine = table.take(np.flatnonzero(codes == k))
        for place, (node, parents) in enumerate([("y", ("x",)), ("z", ())]):
            density = NodeType.LG.fit(mine, node, parents, FitSettings())
            expected = density.logpdf(others.select([*parents, node]))
            assert found[k, place] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("independent", [(), ("z",), ("x", "y", "z")])
def test_a_division_has_the_log_density_of_rows_in_the_units_of_the_data(independent):
    table, codes = populations(120, 2, 3.0)
    table = table.with_columns(np.exp(table.columns / 3.0))
    margins = MarginsPlan("yeo-johnson").fit(table)
    moved, slopes = margins.transformed(table), margins.log_slopes(table, table.names).sum(axis=0)
    structure = Structure(["x", "y", "z"], [("x", "y")], "lg")
    score = lines().score(hidden.Rows.of(table), codes, margins)
    found = hidden.evaluate(score, structure, hidden.Rows.of(table), margins, independent)
    for fold in range(5):
        test = np.flatnonzero(score.labels == fold)
        for k in range(2):
            expected = score.log_prior()[k, test] + slopes[test]
            for node, parents in (("x", ()), ("y", ("x",)), ("z", ())):
                mine = (score.labels != fold) & ((codes == k) | (node in independent))
                density = NodeType.LG.fit(moved.take(np.flatnonzero(mine)), node, parents, FitSettings())
                expected = expected + density.logpdf(moved.take(test).select([*parents, node]))
            assert found.log_joint[k, test] == pytest.approx(expected, rel=1e-9)
    assert found.logpdf == pytest.approx(logsumexp(found.log_joint, axis=0), rel=1e-12)
    penalty = arc_penalty("auto", 120, 3)  # of an arc between columns, and of a class: three and one more
    assert found.worth == pytest.approx(found.logpdf.sum() - penalty * (1 + 4), rel=1e-12)
    joined = {node for source, node in found.structure_with_class.arcs if source == "class"}
    assert joined == {"x", "y", "z"} - set(independent)


def test_rows_of_a_unit_share_their_class():
    table, _ = populations(100, 3, 2.0)
    units = np.repeat(np.arange(50), 2)
    rows = hidden.Rows.of(table, units + 7)
    terms = np.random.default_rng(0).normal(size=(2, 100))
    assert rows.by_unit(terms) == pytest.approx(terms.reshape(2, 50, 2).sum(axis=2))
    some = rows.only(np.array([3, 9]))
    assert some.number == 2
    assert (some.table.columns == table.columns[:, [6, 7, 18, 19]]).all()


def test_classes_are_confirmed_by_rows_that_had_no_part_in_finding_them():
    def confirmed(apart: float, seed: int) -> bool:
        table, _ = populations(160, seed, apart)
        rows, model, rng = hidden.Rows.of(table), lines(), np.random.default_rng(seed)
        start = Structure(table.names, [("x", "y")], "lg")
        two = hidden.best_division(rows, 2, model, start, rng)
        assert two is not None
        return hidden.is_confirmed(two, hidden.whole(rows, start, model, None), rows, model, rng)

    assert confirmed(4.0, 0)
    assert sum(confirmed(0.0, seed) for seed in range(3)) <= 1


def test_a_variable_that_no_class_helps_does_not_depend_on_it():
    table, _ = populations(300, 4, 5.0)
    network = spbn.learn(pd.DataFrame(dict(zip("xyz", table.columns, strict=True))), model="gbn", hidden=2)
    assert [node for source, node in network.structure.arcs if source == "class"] == ["x", "y"]
    assert "class" not in network.cpds["z"].parents


def test_columns_are_bent_by_what_they_are_like_within_classes():
    rng = np.random.default_rng(0)
    group = rng.random(600) < 0.15
    data = pd.DataFrame({name: rng.normal(np.where(group, 12.0, 0.0)) for name in "ab"})
    assert spbn.learn(data, model="gbn", margins="auto").margins is not None
    network = spbn.learn(data, model="gbn", margins="auto", hidden=2)
    assert network.margins is None
    truth = logsumexp(
        [
            np.log(share) + norm.logpdf(data.to_numpy(), mean).sum(axis=1)
            for share, mean in ((0.85, 0.0), (0.15, 12.0))
        ],
        axis=0,
    )
    assert network.logpdf(data).mean() == pytest.approx(truth.mean(), abs=0.02)


def test_populations_that_only_curves_tell_are_found():
    rng = np.random.default_rng(0)
    group = rng.random(500) < 0.5
    x = rng.uniform(-2, 2, 500)
    y = np.where(group, x**2, 5.0 - x**2) + 0.2 * rng.normal(size=500)
    z = np.where(group, 2.0, -2.0) + rng.normal(size=500)
    data = pd.DataFrame({"x": x, "y": y, "z": z})
    network = spbn.learn(data, hidden=2)
    labels = network.classes(data)["class"] == "1"
    agreement = np.mean(labels == group)
    assert max(agreement, 1 - agreement) > 0.95
    assert network.structure.type("y") != NodeType.LG
