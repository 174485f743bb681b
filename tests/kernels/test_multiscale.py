from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.large import SHAPES, cross_validation, table
from spbn import kernels
from spbn.kernels import exact, multiscale, pruned
from spbn.kernels.estimates import Spans
from spbn.numerics import gaussian


def problem(d, rows, seed, folds=4):
    """Rows with heavy tails, ties and an outlier, a bandwidth for each fold, and the spans of the folds."""
    rng = np.random.default_rng(seed)
    points = rng.standard_t(2, size=(d, rows))
    points[:, 0] = 1e3
    points[:, 1] = points[:, 2]
    cuts = np.linspace(0, rows, folds + 1).astype(int)
    spans = Spans(np.array([[a, b, 0, a, b, rows] for a, b in pairwise(cuts)]))
    matrices = [np.atleast_2d(np.cov(rng.normal(size=(d, 30)))) * rng.uniform(0.05, 2.0) for _ in cuts[1:]]
    whiteners = np.stack([gaussian.whitener(matrix) for matrix in matrices])[None]
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
    found = multiscale.log_density(points, columns, whiteners[:, :1], spans.only([0]))
    assert np.isfinite(found[:, :, : spans.queries[0, 1]]).all()
    assert np.isnan(found[:, :, spans.queries[0, 1] :]).all()


@pytest.mark.parametrize("distance", [1e2, 1e6, 1e9])
def test_far_rows_are_finite_and_right(distance):
    points = np.array([[0.0, 1.0, distance]])
    spans = Spans(np.array([[2, 3, 0, 2, 0, 0]]))
    found = multiscale.log_density(points, np.array([[0]]), np.ones((1, 1, 1, 1)), spans)[0, :, 2]
    nearest = -0.5 * (distance - 1.0) ** 2 / np.array(multiscale.SCALES)
    expected = nearest - np.log(2) - 0.5 * np.log(2 * np.pi * np.array(multiscale.SCALES))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_that_are_isolated_at_scale_one_are_right_at_every_scale(rng):
    """Some near, some in between and some far: the wide kernels reach them, the narrow ones do not."""
    distances = np.geomspace(0.1, 60.0, 200)
    points = np.concatenate([rng.normal(size=500) * 0.1, distances])[None]
    spans = Spans(np.array([[500, 700, 0, 500, 0, 0]]))
    arrays = points, np.array([[0]]), np.ones((1, 1, 1, 1)), spans
    found = multiscale.log_density(*arrays)[0, :, 500:]
    pairs = (points[0, 500:, None] - points[0, None, :500]) ** 2
    for k, scale in enumerate(multiscale.SCALES):
        heights = -0.5 * pairs / scale - 0.5 * np.log(2 * np.pi * scale)
        expected = np.logaddexp.reduce(heights, axis=1) - np.log(500)
        np.testing.assert_allclose(found[k], expected, rtol=1e-12, atol=1e-12)


@pytest.fixture
def large(monkeypatch):
    """Make small tables count as large."""
    monkeypatch.setattr(kernels, "spectral_pays", lambda d, *_: d <= 3)
    monkeypatch.setattr(kernels, "pruning_pays", lambda d, spans: d in (4, 5))
    monkeypatch.setattr(kernels, "NARROW_TRAIN", 1)
    monkeypatch.setattr(kernels, "NARROW_QUERIES", 1)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_engines_for_large_data_keep_their_promise_at_every_scale(large, shape, d):
    arrays = cross_validation(table(shape, d, 1500), folds=3, widened=(1.0, 1.3))
    found = kernels.log_density_by_scale(*arrays)
    np.testing.assert_allclose(found, multiscale.log_density(*arrays), rtol=1e-14, atol=1e-6)


def test_several_sets_share_the_call_but_not_their_numbers(large, rng):
    points = rng.normal(size=(3, 900)) * [[1.0], [3.0], [10.0]]
    _, _, whiteners, spans = cross_validation(points[:2].T, folds=3)
    columns = np.array([[0, 1], [1, 2], [0, 2]])
    arrays = points, columns, np.concatenate([whiteners, 0.5 * whiteners, 0.7 * whiteners]), spans
    found = kernels.log_density_by_scale(*arrays)
    np.testing.assert_allclose(found, multiscale.log_density(*arrays), rtol=1e-14, atol=1e-6)


@pytest.mark.parametrize("d", [3, 4, 5])
def test_narrow_kernels_are_pruned_where_rows_are_many(large, monkeypatch, d):
    asked = []

    def log_density(points, columns, whiteners, spans):
        asked.append(whiteners[0, 0, 0, 0])
        return exact.log_density(points, columns, whiteners, spans)

    monkeypatch.setattr(pruned, "log_density", log_density)
    arrays = cross_validation(table("normal", d, 600), folds=2)
    kernels.log_density_by_scale(*arrays)
    scales = [scale for scale in multiscale.SCALES if scale < 1.0 or (scale == 1.0 and d > 3)]
    np.testing.assert_allclose(asked, arrays[2][0, 0, 0, 0] / np.sqrt(scales))
