"""What went wrong once."""

import warnings

import numpy as np
import pytest

import spbn

ROWS = {"x": np.linspace(-1.0, 1.0, 40), "y": np.linspace(-1.0, 1.0, 40) ** 3}


@pytest.mark.parametrize("kind", ["lg", "ckde"])
def test_few_draws_that_were_asked_for_are_no_reason_to_warn(kind):
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], kind), ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert network.query({"x": 0.5}, n=20).effective_size == 20
