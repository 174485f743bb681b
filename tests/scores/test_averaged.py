import numpy as np
import pytest

import spbn
from spbn.datasets import synthetic
from spbn.scores.base import Averaged


def test_it_is_the_mean_of_the_scores_and_of_their_validation():
    scores = [spbn.scores.ValidatedLikelihood(synthetic(80, seed=seed), folds=3) for seed in range(3)]
    averaged = Averaged(scores)
    for family in (("C", ("A", "B"), "ckde"), ("D", ("C",), "lg"), ("A", (), "blend")):
        assert averaged.local(*family) == pytest.approx(np.mean([s.local(*family) for s in scores]))
        expected = np.mean([s.validation_local(*family) for s in scores])
        assert averaged.validation.local(*family) == pytest.approx(expected)


def test_scores_without_validation_have_none():
    assert Averaged([spbn.scores.BIC(synthetic(50, seed=seed)) for seed in range(2)]).validation is None
