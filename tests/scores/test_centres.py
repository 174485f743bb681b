"""Scores whose kernels sit on some of the training rows."""

import importlib

import numpy as np
import pytest

import spbn
from spbn import NodeType
from spbn.errors import ArgumentError
from spbn.nodes import Family
from spbn.rows.partition import Partition
from spbn.tables.reader import as_table

from naive import kde_logpdf
from strategies import nonlinear_frame

FRAME = nonlinear_frame(120, 3)
LABELS = np.arange(120) % 4
FAMILY = Family("c", ("a", "b"), NodeType.CKDE)
CENTRES = 30


def chosen_rows(frame, labels, most):
    """Return the rows that kernels sit on, for every fold."""
    partition = Partition.folds(as_table(frame), labels).thinned(most)
    columns = partition.original.columns
    return [columns[:, partition.training_rows(fold)].T for fold in range(partition.groups)]


def test_kernels_sit_on_some_training_rows_with_the_covariance_of_all():
    expected = np.empty(len(FRAME))
    for fold, points in enumerate(chosen_rows(FRAME, LABELS, CENTRES)):
        train, test = FRAME[fold != LABELS].to_numpy(), FRAME[fold == LABELS].to_numpy()
        matrix = len(points) ** (-2 / 7) * np.cov(train.T)
        expected[fold == LABELS] = kde_logpdf(test, points, matrix) - kde_logpdf(
            test[:, :2], points[:, :2], matrix[:2, :2]
        )
    score = spbn.scores.CVLikelihood(FRAME, folds=LABELS, centres=CENTRES)
    np.testing.assert_allclose(score.rows(FAMILY), expected, rtol=1e-10)
    assert score.local(*FAMILY) == pytest.approx(expected.sum(), rel=1e-11)


def test_the_rows_are_some_of_those_of_other_folds():
    points = chosen_rows(FRAME, LABELS, CENTRES)
    every = {tuple(row) for row in FRAME.to_numpy()}
    kept = set().union(*({tuple(row) for row in of_fold} for of_fold in points))
    assert len(kept) == CENTRES
    assert kept <= every
    for fold, of_fold in enumerate(points):
        own = {tuple(row) for row in FRAME[fold == LABELS].to_numpy()}
        assert {tuple(row) for row in of_fold} == kept - own


@pytest.mark.parametrize("node_type", ["ckde", "blend"])
def test_a_table_with_fewer_rows_is_scored_in_full(node_type):
    family = ("c", ("a", "b"), node_type)
    full = spbn.scores.CVLikelihood(FRAME, folds=LABELS).local(*family)
    assert spbn.scores.CVLikelihood(FRAME, folds=LABELS, centres=120).local(*family) == full
    assert spbn.scores.CVLikelihood(FRAME, folds=LABELS, centres=119).local(*family) != full


def test_lines_and_curves_do_not_depend_on_kernels():
    for node_type in ("lg", "curve"):
        family = ("c", ("a", "b"), node_type)
        some = spbn.scores.CVLikelihood(FRAME, folds=LABELS, centres=CENTRES)
        assert some.local(*family) == spbn.scores.CVLikelihood(FRAME, folds=LABELS).local(*family)


def test_discrete_parents_have_centres_for_every_configuration():
    frame = FRAME.assign(d=np.where(np.arange(120) % 3 == 0, "yes", "no"))
    score = spbn.scores.CVLikelihood(frame, folds=LABELS, centres=60)
    full = spbn.scores.CVLikelihood(frame, folds=LABELS)
    rows, every = (each.rows(Family("c", ("a", "d"), NodeType.CKDE)) for each in (score, full))
    few = (frame["d"] == "yes").to_numpy()  # 40 rows, all of which are centres
    np.testing.assert_array_equal(rows[few], every[few])
    assert (rows[~few] != every[~few]).all()


def test_searches_for_types_place_kernels_on_some_rows_and_networks_on_all(monkeypatch):
    module = importlib.import_module("spbn.learning.learn")

    frame = spbn.datasets.synthetic(600, seed=0)
    centres, original = [], module.CVLikelihood

    def noting(*arguments, **options):
        centres.append(options.get("centres"))
        return original(*arguments, **options)

    monkeypatch.setattr(module, "CVLikelihood", noting)
    monkeypatch.setattr("spbn.learning.settings.CENTRES", 200)
    network = spbn.learn(frame)
    assert centres == [200]
    assert network.cpds["B"].rows == 600


@pytest.mark.parametrize("centres", [1, 2.5, "all"])
def test_a_number_of_centres_that_makes_no_sense(centres):
    with pytest.raises(ArgumentError, match="centres") as caught:
        spbn.scores.CVLikelihood(FRAME, centres=centres)
    assert caught.value.argument == "centres"
