import numpy as np
import pytest

from spbn import kernels
from spbn.kernels.conditional import PreparedKernels
from spbn.kernels.estimates import Spans
from spbn.numerics import gaussian

from naive import kde_logpdf


def prepared(rng, d, rows=300, engine="auto"):
    root = rng.normal(size=(d, d)) + 2 * np.eye(d)
    points = root @ rng.normal(size=(d, rows)) + 1e3
    bandwidth = 0.1 * root @ root.T
    return points, bandwidth, PreparedKernels.of(points, gaussian.whitener(bandwidth), engine)


@pytest.mark.parametrize("d", range(1, 8))
@pytest.mark.parametrize("asked", [1, 5, 300, 1000])
def test_log_densities_agree_with_the_definition(rng, d, asked):
    points, bandwidth, kernels_of = prepared(rng, d)
    queries = points[:, rng.integers(300, size=asked)] + rng.normal(size=(d, asked))
    found = kernels_of.log_density(queries)
    expected = kde_logpdf(queries.T, points.T, bandwidth)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    if d > 1:
        parents = kde_logpdf(queries[:-1].T, points[:-1].T, bandwidth[:-1, :-1])
        np.testing.assert_allclose(kernels_of.log_density(queries[:-1]), parents, rtol=1e-11)
        conditional = kernels_of.conditional_log_density(queries)
        np.testing.assert_allclose(conditional, expected - parents, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 4, 6])
def test_the_same_numbers_as_the_general_way(rng, d):
    """Training rows and queries in one array, with the identity as whitener."""
    points, _, kernels_of = prepared(rng, d)
    queries = points[:, :40] + rng.normal(size=(d, 40))
    both = np.concatenate([kernels_of.coordinates, kernels_of.whitened(queries)], axis=1)
    span = Spans(np.array([[300, 340, 0, 300, 0, 0]]))
    general = kernels.log_density(both, np.arange(d)[None], np.eye(d)[None, None], span)[0, 300:]
    log_determinant = np.log(np.diag(kernels_of.whitener)).sum()
    np.testing.assert_allclose(kernels_of.log_density(queries), general + log_determinant, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 6])
def test_far_rows_are_finite_and_right(rng, d):
    points, bandwidth, kernels_of = prepared(rng, d)
    queries = points[:, :3] + 1e6 * points.std(axis=1)[:, None] * np.array([1.0, -1.0, 0.0])
    found = kernels_of.log_density(queries)
    np.testing.assert_allclose(found, kde_logpdf(queries.T, points.T, bandwidth), rtol=1e-9)
    assert np.isfinite(kernels_of.conditional_log_density(queries)).all()


def test_a_row_does_not_depend_on_how_many_are_asked(rng):
    points, _, kernels_of = prepared(rng, 1)
    many = kernels_of.log_density(points)
    one_by_one = [kernels_of.log_density(points[:, [i]])[0] for i in range(points.shape[1])]
    np.testing.assert_array_equal(many, one_by_one)


def test_no_rows_asked_none_answered(rng):
    for d in (1, 3):
        _, _, kernels_of = prepared(rng, d)
        assert kernels_of.log_density(np.empty((d, 0))).shape == (0,)
        assert kernels_of.conditional_log_density(np.empty((d, 0))).shape == (0,)


def test_training_rows_are_not_copied(rng):
    import tracemalloc

    _, _, kernels_of = prepared(rng, 4, rows=100_000)
    query = np.full((4, 1), 1e3)
    kernels_of.conditional_log_density(query)
    tracemalloc.start()
    kernels_of.conditional_log_density(query)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("engine", kernels.ENGINES)
@pytest.mark.parametrize("d", [1, 3, 4])
@pytest.mark.parametrize("asked", [1, 500, 100_000])
def test_the_engine_is_that_of_the_general_way(engine, d, asked, monkeypatch):
    spans = Spans(np.array([[1000, 1000 + asked, 0, 1000, 0, 0]]))
    called = []

    def tell(name):
        monkeypatch.setattr(getattr(kernels, name), "log_density", lambda *_, **__: called.append(name))

    for name in ("exact", "spectral", "pruned"):
        tell(name)
    kernels.log_density(np.empty((d, 1)), np.arange(d)[None], np.eye(d)[None, None], spans, engine=engine)
    assert kernels.is_exact(d, asked, 1000, engine) == (called == ["exact"])
