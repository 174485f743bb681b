"""A few queries in one call: against sums written out, and against the engines for many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn.kernels import conditional
from spbn.kernels.conditional import PreparedKernels
from spbn.kernels.multiscale import SCALES

import naive


def prepared(d, rows, seed, engine="auto"):
    """Kernels with a bandwidth matrix that is not diagonal, and the rows they sit on."""
    rng = np.random.default_rng(seed)
    points = 50.0 + rng.normal(size=(d, rows)) * np.arange(1, d + 1)[:, None]
    lower = np.tril(0.3 * rng.normal(size=(d, d)), -1) + np.diag(rng.uniform(0.3, 1.0, d))
    return PreparedKernels.of(points, np.linalg.inv(lower), engine), points, lower @ lower.T


def expected(queries, points, bandwidth):
    """Log-densities of the last variable given the others, by the definition of a CKDE."""
    joint = naive.kde_logpdf(queries.T, points.T, bandwidth)
    if len(queries) == 1:
        return joint
    return joint - naive.kde_logpdf(queries[:-1].T, points[:-1].T, bandwidth[:-1, :-1])


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 7), rows=st.integers(1, 600), asked=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_log_densities_are_right(d, rows, asked, seed):
    kernels, points, bandwidth = prepared(d, rows, seed)
    queries = points[:, np.arange(asked) % rows] + 0.2 * np.random.default_rng(seed).normal(size=(d, asked))
    found = kernels._few_log_densities(queries)
    np.testing.assert_allclose(found[0], expected(queries, points, bandwidth), rtol=1e-10, atol=1e-10)
    by_scale = kernels._few_log_densities(queries, by_scale=True)
    if by_scale is None:  # a single row of few is isolated in many dimensions
        assert d > 3
        return
    for scale, row in zip(SCALES, by_scale, strict=True):
        np.testing.assert_allclose(row, expected(queries, points, scale * bandwidth), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_queries_far_out_are_left_to_others(d):
    kernels, points, _ = prepared(d, 200, 0)
    queries = np.stack([points[:, 0], points[:, 1] + 1000.0], axis=1)
    for by_scale in (False, True):
        assert kernels._few_log_densities(queries, by_scale=by_scale) is None
    assert np.isfinite(kernels.conditional_log_density(queries)).all()
    if d > 1:  # the parents alone are far out
        queries = points[:, :1].copy()
        queries[0] += 1000.0
        assert kernels._few_log_densities(queries) is None


def test_many_queries_and_other_engines_go_their_own_way(monkeypatch):
    kernels, points, _ = prepared(2, 300, 1)
    together = kernels.conditional_log_density(points)
    one_by_one = [kernels.conditional_log_density(points[:, [i]])[0] for i in range(300)]
    np.testing.assert_allclose(one_by_one, together, rtol=1e-12, atol=1e-12)

    def refuse(*arguments):
        raise AssertionError("too many queries, or the wrong engine")

    monkeypatch.setattr(conditional, "_quotients", refuse)
    with pytest.raises(AssertionError):
        kernels.conditional_log_density(points[:, :1])
    kernels.conditional_log_density(points)
    spectral, _, _ = prepared(2, 300, 1, "spectral")
    spectral.conditional_log_density(points[:, :1])
    spectral.conditional_log_density_by_scale(points[:, :1])
