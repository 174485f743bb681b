"""Margins over workers: those of the table in memory, and networks that have them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn.dask.mapreduce import FoldAssignment
from spbn.dask.shards import fit_margins
from spbn.errors import ArgumentError
from spbn.tables.reader import as_table
from spbn.transforms import MarginsPlan, YeoJohnson
from workers.test_rows import FRAME, labels_of, shards_of, written

pytestmark = pytest.mark.cluster

DEAL = FoldAssignment(0, 1, 0.0)
SKEWED = FRAME.assign(A=np.exp(FRAME["A"]), B=-np.exp(0.5 * FRAME["B"]), E=1e6 + FRAME["E"])


def loss(transform, column):
    """Minus the log-likelihood of the transformed column under the best normal density."""
    moved = transform.forward(column)
    return 0.5 * len(column) * np.log(moved.var()) - transform.log_slope(column).sum()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("parts") / "data", SKEWED)


@pytest.mark.parametrize("workers", [False, True])
def test_transforms_are_those_of_the_table(folder, client, workers):
    found = fit_margins(shards_of(folder, DEAL, client if workers else None))
    expected = MarginsPlan("yeo-johnson").fit(as_table(SKEWED))
    for name, column in expected.columns.items():
        ours = found.columns[name]
        np.testing.assert_allclose([ours.centre, ours.scale], [column.centre, column.scale], rtol=1e-10)
        assert (ours.low, ours.high) == (column.low, column.high)
        np.testing.assert_allclose(ours.exponent, column.exponent, atol=2e-6)  # what is promised in memory
        values = SKEWED[name].to_numpy()
        assert loss(ours, values) <= loss(column, values) + 1e-9  # and no worse


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(-2.0, 2.0), st.floats(0.2, 2.0))
def test_no_other_exponent_is_better(seed, skew, tail):
    rng = np.random.default_rng(seed)
    column = np.sign(rng.normal(size=80)) * np.abs(rng.normal(size=80)) ** tail
    column = np.exp(skew * column / column.std()) if abs(skew) > 0.1 else column
    best = _one_column(column)
    for exponent in np.linspace(0.0, 2.0, 81):
        other = YeoJohnson(best.centre, best.scale, float(exponent))
        assert loss(best, column) <= loss(other, column) + 1e-9 * len(column)


def _one_column(column):
    """Fit a column that is held in two parts, without files."""
    from spbn.numerics.moments import Moments

    class Block:
        def __init__(self, part):
            self.part = part

        def rows(self, columns, labels):
            return self.part[None]

    class Held:
        names, centre, every = ("x",), np.zeros(1), Moments.of(column[None])
        discrete = np.zeros(1, dtype=bool)

        def gather(self, answer, asked, join, needed):
            plan, parts = type("Plan", (), {"assignment": DEAL}), np.array_split(column, [17])
            return [join([answer(plan, Block(part), one) for part in parts]) for one in asked]

    return fit_margins(Held()).columns["x"]


def test_a_network_lives_in_the_transformed_columns(folder, client):
    found = spbn.distributed.learn(
        folder, client=client, model="gbn", score="cv", margins="yeo-johnson", folds=5
    )
    margins = MarginsPlan("yeo-johnson").fit(as_table(SKEWED))
    table = margins.transformed(as_table(SKEWED))
    moved = pd.DataFrame(table.columns.T, columns=table.names)
    labels = labels_of(FoldAssignment(0, 5, 0.2))
    train, test = moved[labels < 5], moved[labels == 5]
    score = spbn.scores.ValidatedLikelihood(train, folds=labels[labels < 5], validation=test)
    start = spbn.Structure(FRAME.columns, types="lg")
    expected = spbn.search.hill_climb(score, start, operators="arcs", max_parents=2)
    assert [step.operator for step in found.search.steps] == [step.operator for step in expected.steps]
    np.testing.assert_allclose(found.search.score, expected.score, atol=1e-6 * len(train) * 5)
    exact = spbn.BayesianNetwork.fit(expected.structure, SKEWED, margins="yeo-johnson")
    np.testing.assert_allclose(found.logpdf(SKEWED[:50]), exact.logpdf(SKEWED[:50]), atol=1e-4)
    assert found.record.settings["margins"] == "yeo-johnson"


@pytest.mark.parametrize(("name", "skew"), [("A", lambda x: np.exp(x)), ("B", lambda x: -np.exp(0.5 * x))])
def test_so_do_blends(folder, name, skew):
    options = {"model": "blend", "columns": [name], "folds": 3, "max_parents": 0}
    found = spbn.distributed.learn(folder, margins="yeo-johnson", **options)
    plain = spbn.distributed.learn(folder, **options)
    fresh = spbn.datasets.synthetic(5000, seed=2)[[name]].map(skew)
    assert found.logpdf(fresh).mean() > plain.logpdf(fresh).mean()
    # In memory, the components are the same; their weights come from other folds.
    structure = spbn.Structure([name], types="blend")
    exact = spbn.BayesianNetwork.fit(structure, SKEWED, margins="yeo-johnson")
    assert exact.logpdf(fresh).mean() == pytest.approx(found.logpdf(fresh).mean(), abs=0.002)
    alike = replace(exact.cpds[name], mixture=found.cpds[name].mixture)
    table = MarginsPlan("yeo-johnson").fit(as_table(SKEWED[[name]])).transformed(as_table(SKEWED[[name]]))
    np.testing.assert_allclose(found.cpds[name].logpdf(table), alike.logpdf(table), rtol=1e-5, atol=1e-5)


def test_unknown_margins_are_refused(folder):
    with pytest.raises(ArgumentError, match="margins must be one of 'none', 'yeo-johnson', 'auto'"):
        spbn.distributed.learn(folder, margins="box-cox")


def test_columns_are_chosen_as_in_memory(folder, client):
    chosen = MarginsPlan("auto", finds_bounds=False).fit(as_table(SKEWED))
    assert len(chosen.columns) > 0
    found = spbn.distributed.learn(folder, client=client, model="gbn", margins="auto")
    assert set(found.margins.columns) == set(chosen.columns)
    for name, transform in chosen.columns.items():
        other = found.margins.columns[name]
        assert other.exponent == pytest.approx(transform.exponent, abs=1e-3)
        assert (other.centre, other.scale) == pytest.approx((transform.centre, transform.scale), rel=1e-9)
    assert found.record.settings["margins"] == "auto"
