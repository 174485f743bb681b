import numpy as np
import pytest
from scipy import stats

from spbn.numerics import gaussian
from spbn.numerics.gaussian import Normal, normal_of


def example(rows, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    covariance = root @ root.T + 0.1 * np.eye(4)
    return rng, covariance, rng.multivariate_normal([1.0, -2.0, 0.0, 5.0], covariance, rows).T


def test_without_holes_it_is_the_moments():
    _, _, columns = example(4_000)
    found = normal_of(columns)
    np.testing.assert_allclose(found.mean, columns.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(columns, bias=True), atol=1e-3)


@pytest.mark.slow
def test_the_likelihood_of_what_is_there_has_its_maximum_there(monkeypatch):
    monkeypatch.setattr(gaussian, "SETTLED", 1e-12)
    monkeypatch.setattr(gaussian, "ADDED_ROWS", 0.0)
    monkeypatch.setattr(gaussian, "MOST_ROUNDS", 5_000)
    rng, _, columns = example(60)
    columns[rng.random(columns.shape) < 0.25] = np.nan
    found = normal_of(columns)

    def log_likelihood(mean, covariance):
        total = 0.0
        for row in columns.T:
            there = ~np.isnan(row)
            if there.any():
                part = covariance[np.ix_(there, there)]
                total += stats.multivariate_normal(mean[there], part).logpdf(row[there])
        return total

    best = log_likelihood(found.mean, found.covariance)
    for _ in range(40):
        mean = found.mean + 0.02 * rng.normal(size=4)
        move = 0.02 * rng.normal(size=(4, 4))
        assert log_likelihood(mean, found.covariance) < best
        assert (
            log_likelihood(
                found.mean, found.covariance + move @ found.covariance + (move @ found.covariance).T
            )
            < best
        )


def test_draws_have_the_conditional_moments():
    rng, covariance, columns = example(1)
    mean = np.array([1.0, -2.0, 0.0, 5.0])
    row = columns.copy()
    row[[0, 2]] = np.nan
    drawn = np.stack(Normal(mean, covariance).draw(row, 20_000, rng))[:, :, 0]
    np.testing.assert_array_equal(drawn[:, [1, 3]], np.tile(row[[1, 3], 0], (20_000, 1)))
    precision = np.linalg.inv(covariance)
    inverse = np.linalg.inv(precision[np.ix_([0, 2], [0, 2])])  # by the precision matrix: another way
    there = row[[1, 3], 0] - mean[[1, 3]]
    expected = mean[[0, 2]] - inverse @ precision[np.ix_([0, 2], [1, 3])] @ there
    deviations = np.sqrt(np.diag(inverse))
    assert np.abs((drawn[:, [0, 2]].mean(axis=0) - expected) / deviations).max() < 0.04
    np.testing.assert_allclose(
        np.cov(drawn[:, [0, 2]].T) / np.outer(deviations, deviations),
        inverse / np.outer(deviations, deviations),
        atol=0.05,
    )


def test_a_row_without_values_is_drawn_from_all():
    rng, covariance, _ = example(1)
    drawn = np.stack(Normal(np.ones(4), covariance).draw(np.full((4, 1), np.nan), 5_000, rng))[:, :, 0]
    assert drawn.mean(axis=0) == pytest.approx(np.ones(4), abs=0.2)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.08 * covariance.max())
