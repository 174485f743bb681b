import numpy as np
import pytest
from scipy import stats

from spbn.errors import ArgumentError
from spbn.kernels import estimates


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_named_rules_are_those_of_scipy(rng, rule, d):
    columns = rng.normal(size=(d, 300)) * np.arange(1, d + 1)[:, None]
    np.testing.assert_allclose(
        estimates.matrix(rule, columns), stats.gaussian_kde(columns, bw_method=rule).covariance, rtol=1e-12
    )


def test_a_function_gets_rows_by_variables(rng):
    columns = rng.normal(size=(2, 50))

    def rule(data):
        assert data.shape == (50, 2)
        return np.diag([1.0, 2.0])

    np.testing.assert_array_equal(estimates.matrix(rule, columns), [[1, 0], [0, 2]])


@pytest.mark.parametrize("wrong", [np.eye(3), [[1.0, 2.0], [0.0, 1.0]], 1.0])
def test_a_function_that_returns_no_matrix_is_refused(rng, wrong):
    with pytest.raises(ArgumentError, match=r"symmetric matrix of shape \(2, 2\)"):
        estimates.matrix(lambda data: wrong, rng.normal(size=(2, 50)))


def test_unknown_rules_are_refused():
    with pytest.raises(ArgumentError, match="'scott', 'silverman', 'cv' or a function"):
        estimates.require_rule("scot")
