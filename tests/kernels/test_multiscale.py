from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn.kernels import exact, multiscale
from spbn.numerics import cholesky


def problem(d, rows, seed, folds=4):
    """Rows with heavy tails, ties and an outlier, a bandwidth for each fold, and the spans of the folds."""
    rng = np.random.default_rng(seed)
    points = rng.standard_t(2, size=(d, rows))
    points[:, 0] = 1e3
    points[:, 1] = points[:, 2]
    cuts = np.linspace(0, rows, folds + 1).astype(int)
    spans = np.array([[a, b, 0, a, b, rows] for a, b in pairwise(cuts)])
    matrices = [np.atleast_2d(np.cov(rng.normal(size=(d, 30)))) * rng.uniform(0.05, 2.0) for _ in spans]
    whiteners = np.stack([cholesky.whitener(matrix) for matrix in matrices])[None]
    return points, np.arange(d)[None], whiteners, spans


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 7), rows=st.integers(8, 700), seed=st.integers(0, 999))
def test_every_scale_agrees_with_the_kernel_of_one(d, rows, seed):
    points, columns, whiteners, spans = problem(d, rows, seed)
    found = multiscale.log_density(points, columns, whiteners, spans)
    for number, scale in enumerate(multiscale.SCALES):
        expected = exact.log_density(points, columns, whiteners / np.sqrt(scale), spans)
        np.testing.assert_allclose(found[:, number], expected, rtol=1e-12, atol=1e-12)


def test_rows_that_no_span_queries_are_nan():
    points, columns, whiteners, spans = problem(2, 40, 0)
    found = multiscale.log_density(points, columns, whiteners[:, :1], spans[:1])
    assert np.isfinite(found[:, :, : spans[0, 1]]).all()
    assert np.isnan(found[:, :, spans[0, 1] :]).all()


@pytest.mark.parametrize("distance", [1e2, 1e6, 1e9])
def test_far_rows_are_finite_and_right(distance):
    points = np.array([[0.0, 1.0, distance]])
    spans = np.array([[2, 3, 0, 2, 0, 0]])
    found = multiscale.log_density(points, np.array([[0]]), np.ones((1, 1, 1, 1)), spans)[0, :, 2]
    nearest = -0.5 * (distance - 1.0) ** 2 / np.array(multiscale.SCALES)
    expected = nearest - np.log(2) - 0.5 * np.log(2 * np.pi * np.array(multiscale.SCALES))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
