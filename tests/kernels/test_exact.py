import itertools
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn import kernels
from spbn.kernels.estimates import Spans
from spbn.kernels.inner_loop import LIMIT, exp2_negative
from spbn.numerics import gaussian

from naive import kde_logpdf


def spread(rng, d):
    """A random bandwidth matrix."""
    root = rng.normal(size=(d, d))
    return root @ root.T + 0.1 * np.eye(d)


def plain(train, queries, bandwidth, engine="exact"):
    """Log-density of queries (rows × d) under kernels on train (rows × d)."""
    points = np.ascontiguousarray(np.concatenate([train, queries]).T)
    span = Spans(np.array([[len(train), points.shape[1], 0, len(train), 0, 0]]))
    whiteners = gaussian.whitener(bandwidth)[None, None]
    columns = np.arange(len(points))[None]
    return kernels.log_density(points, columns, whiteners, span, engine=engine)[0, len(train) :]


@given(st.floats(0, LIMIT - 1))
def test_exp2(q):
    assert exp2_negative(q) == pytest.approx(2.0**-q, rel=5e-16, abs=0)


def test_exp2_is_clipped_far_out():
    assert exp2_negative(1e300) == exp2_negative(LIMIT) == 2.0**-LIMIT


@settings(max_examples=150)
@given(
    d=st.integers(1, 8),
    train=st.one_of(st.integers(1, 40), st.integers(250, 800)),
    queries=st.one_of(st.integers(1, 40), st.integers(250, 600)),
    seed=st.integers(0, 10_000),
)
def test_agrees_with_the_definition(d, train, queries, seed):
    rng = np.random.default_rng(seed)
    bandwidth = spread(rng, d)
    x, y = rng.normal(size=(train, d)) * 2, rng.normal(size=(queries, d)) * 2
    chosen = rng.choice(queries, size=min(queries, 25), replace=False)
    np.testing.assert_allclose(
        plain(x, y, bandwidth)[chosen], kde_logpdf(y[chosen], x, bandwidth), rtol=1e-12, atol=1e-13
    )


@pytest.mark.slow
@pytest.mark.parametrize("d", range(1, 9))
def test_five_thousand_rows(rng, d):
    bandwidth = spread(rng, d) * 0.2
    x = rng.normal(size=(5000, d))
    np.testing.assert_allclose(plain(x, x[:50], bandwidth), kde_logpdf(x[:50], x, bandwidth), rtol=1e-12)


@given(d=st.integers(1, 8), distance=st.floats(30, 1e6), seed=st.integers(0, 999))
def test_far_outliers_are_finite_and_right(d, distance, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, d))
    bandwidth = spread(rng, d) * 0.05
    direction = rng.normal(size=d)
    query = (distance * direction / np.linalg.norm(direction))[None]
    np.testing.assert_allclose(plain(x, query, bandwidth), kde_logpdf(query, x, bandwidth), rtol=1e-12)


def test_underflow_takes_over_without_a_step():
    """On both sides of the limit below which a sum is computed anew, the parabola goes on."""
    queries = np.linspace(30, 50, 400)[:, None]
    density = plain(np.zeros((3, 1)), queries, np.eye(1))
    np.testing.assert_allclose(density, -0.5 * queries[:, 0] ** 2 - 0.5 * np.log(2 * np.pi), rtol=1e-14)


def test_duplicated_rows_count_as_often_as_they_stand(rng):
    x = rng.normal(size=(30, 2))
    once, thrice = plain(x, x, np.eye(2)), plain(np.repeat(x, 3, axis=0), x, np.eye(2))
    np.testing.assert_allclose(once, thrice, rtol=1e-14)


def test_many_sets_and_folds_in_one_call(rng):
    points = rng.normal(size=(4, 500))
    columns = np.array([[0, 1], [3, 0], [2, 1]])
    ends = np.array([0, 100, 230, 500])
    spans = Spans(np.array([[a, b, 0, a, b, 500] for a, b in itertools.pairwise(ends)]))
    bandwidths = np.array([[spread(rng, 2) for _ in ends[1:]] for _ in columns])
    whiteners = np.array([[gaussian.whitener(h) for h in row] for row in bandwidths])
    out = kernels.log_density(points, columns, whiteners, spans, engine="exact")
    for s, pair in enumerate(columns):
        for m, (first, end) in enumerate(spans.queries):
            rows = points[pair].T
            train = np.delete(rows, np.arange(first, end), axis=0)
            np.testing.assert_allclose(
                out[s, first:end], kde_logpdf(rows[first:end], train, bandwidths[s, m]), rtol=1e-12
            )


def test_rows_that_no_span_queries_are_nan(rng):
    points = rng.normal(size=(1, 10))
    out = kernels.log_density(
        points, np.array([[0]]), np.ones((1, 1, 1, 1)), Spans(np.array([[7, 10, 0, 7, 0, 0]]))
    )
    assert np.isnan(out[0, :7]).all()
    assert np.isfinite(out[0, 7:]).all()


@pytest.mark.parametrize("d", [1, 3, 6])
def test_results_do_not_depend_on_the_number_of_threads(rng, d):
    import numba

    x = rng.normal(size=(3000, d))
    both = plain(x, x, np.eye(d))
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = plain(x, x, np.eye(d))
    finally:
        numba.set_num_threads(threads)
    np.testing.assert_array_equal(one, both)


def test_work_is_split_so_that_it_can_be_interrupted(rng, monkeypatch):
    from spbn.kernels import exact

    x = rng.normal(size=(700, 2))
    whole = plain(x, x, np.eye(2))
    calls = []
    add_up = exact._add_up
    monkeypatch.setattr(exact, "PAIRS_A_CALL", 1e5)
    monkeypatch.setattr(exact, "FEWEST_PAIRS", 1e5)
    monkeypatch.setattr(exact, "_add_up", lambda *args: (calls.append(args), add_up(*args))[1])
    np.testing.assert_array_equal(plain(x, x, np.eye(2)), whole)
    assert len(calls) > 1


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="sends itself a signal as only POSIX can")
def test_an_interrupt_is_answered_soon(rng):
    x = rng.normal(size=(150_000, 5))  # some ten seconds

    def interrupt(*_):
        raise KeyboardInterrupt

    plain(x[:10], x[:10], np.eye(5))  # so that nothing is left to compile
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            plain(x, x, np.eye(5))
        assert time.perf_counter() - start < 4.0
    finally:
        signal.signal(signal.SIGALRM, before)


def test_several_callers_at_the_same_time(rng):
    x = rng.normal(size=(2000, 3))
    expected = plain(x, x, np.eye(3))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: plain(x, x, np.eye(3)), range(12)):
            np.testing.assert_array_equal(found, expected)


def test_unknown_engines_are_refused():
    with pytest.raises(ValueError, match="engine must be one of"):
        plain(np.zeros((2, 1)), np.zeros((2, 1)), np.eye(1), engine="magic")
