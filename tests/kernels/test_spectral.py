from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.large import SHAPES, cross_validation, exactly, plain, require_promise, scott, table
from spbn._base import jit
from spbn.kernels import spectral
from spbn.kernels.estimates import Spans
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import Field
from spbn.numerics import gaussian

from naive import kde_logpdf

ROWS = 20_000


@pytest.fixture
def exact_rows(monkeypatch):
    """How many rows were left to the exact kernel."""
    counts = []
    original = spectral.exact_rows

    def spy(rows, spans, estimates, wanted):
        counts.append(sum(map(len, wanted)))
        return original(rows, spans, estimates, wanted)

    monkeypatch.setattr(spectral, "exact_rows", spy)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_validation_keeps_the_promise(shape, d, exact_rows, monkeypatch):
    monkeypatch.setattr(spectral, "CHECKED", np.inf)  # even if it does not check itself
    arrays = cross_validation(table(shape, d, ROWS))
    require_promise(spectral.log_density(*arrays), exactly(arrays))
    assert sum(exact_rows) < 0.2 * ROWS


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_plain_queries_keep_the_promise(shape, d, exact_rows):
    queries = table(shape, d, 2000, seed=1)
    queries[:20] *= 3  # some where there is nothing
    arrays = plain(table(shape, d, ROWS), queries)
    require_promise(spectral.log_density(*arrays), exactly(arrays))
    assert sum(exact_rows) < 0.5 * len(queries)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_agrees_with_the_definition(rng, d):
    root = rng.normal(size=(d, d))
    bandwidth = 0.05 * (root @ root.T + 0.1 * np.eye(d))
    train, queries = rng.normal(size=(3000, d)), rng.normal(size=(200, d)) * 1.5
    points = np.ascontiguousarray(np.concatenate([train, queries]).T)
    whitener = gaussian.whitener(bandwidth)[None, None]
    out = spectral.log_density(
        points, np.arange(d)[None], whitener, Spans(np.array([[3000, 3200, 0, 3000, 0, 0]]))
    )
    np.testing.assert_allclose(out[0, 3000:], kde_logpdf(queries, train, bandwidth), rtol=0, atol=1e-6)


@settings(max_examples=40)
@given(
    d=st.integers(1, 3),
    rows=st.integers(20, 1500),
    folds=st.integers(2, 6),
    shape=st.sampled_from(SHAPES),
    width=st.floats(0.4, 4),
    offset=st.floats(-1e4, 1e4),
    seed=st.integers(0, 10_000),
)
def test_small_tables_of_all_shapes(d, rows, folds, shape, width, offset, seed):
    points, columns, whiteners, spans = cross_validation(table(shape, d, rows, seed) + offset, folds)
    arrays = points, columns, whiteners / width, spans
    require_promise(spectral.log_density(*arrays), exactly(arrays))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("near", [0, 3, 4.5, 5.5, 6.5, 7, 8])
def test_the_worst_case_of_the_error_analysis(rng, monkeypatch, d, near):
    """All rows lie at one distance from the queries. Nor may the engine check itself."""
    monkeypatch.setattr(spectral, "CHECKED", np.inf)
    direction = rng.normal(size=(300, d))
    queries = direction / np.linalg.norm(direction, axis=1)[:, None] * rng.normal(near, 0.1, size=(300, 1))
    arrays = plain(np.zeros((50_000, d)), queries, np.eye(d))
    np.testing.assert_allclose(spectral.log_density(*arrays), exactly(arrays), rtol=1e-15, atol=5e-7)


def test_spans_of_every_kind(rng):
    """Rows that are queried twice or trained on by their own span, gaps, and spans without rows."""
    x = rng.normal(size=(4000, 2))
    points = np.ascontiguousarray(x.T)
    spans = Spans(
        np.array([[0, 900, 300, 2000, 2500, 4000], [900, 900, 0, 10, 0, 0], [950, 3000, 950, 3000, 0, 0]])
    )
    whiteners = np.array([[scott(x), scott(x) * 1.1, scott(x) * 5]])
    arrays = points, np.array([[1, 0]]), whiteners, spans
    require_promise(spectral.log_density(*arrays), exactly(arrays))


def test_sets_of_the_same_variables_share_the_grid(monkeypatch):
    arrays = cross_validation(table("bimodal", 2, 5000), widened=(1.0, 1.4))
    fields = []
    original = Field.of.__func__
    monkeypatch.setattr(Field, "of", classmethod(lambda cls, *args: fields.append(1) or original(cls, *args)))
    require_promise(spectral.log_density(*arrays), exactly(arrays))
    assert len(fields) == 1


def test_a_fold_without_the_outlier_gets_a_grid_of_its_own(monkeypatch):
    arrays = cross_validation(table("outlier", 2, 5000))
    spacings = []
    original = gridding.cheapest_grid
    monkeypatch.setattr(
        gridding,
        "cheapest_grid",
        lambda u, *a, **k: spacings.append(u.shape[1]) or original(u, *a, **k),
    )
    require_promise(spectral.log_density(*arrays), exactly(arrays))
    assert sorted(spacings) == [500, 4500]


@pytest.mark.parametrize("d", [2, 3])
def test_bandwidths_that_differ_in_one_direction(d):
    points, columns, whiteners, spans = cross_validation(table("bimodal", d, 5000), folds=3)
    whiteners[:, 1, -1, :] *= 0.6
    arrays = points, columns, whiteners, spans
    require_promise(spectral.log_density(*arrays), exactly(arrays))


def test_rows_below_the_threshold_are_exact():
    arrays = cross_validation(table("student", 2, 5000))
    found, expected = spectral.log_density(*arrays), exactly(arrays)
    least = np.argsort(expected[0])[:20]
    np.testing.assert_array_equal(found[0, least], expected[0, least])


@pytest.mark.parametrize("error", [1e-5, 1e-3])
@pytest.mark.parametrize("wrong_below", [5e-3, 1.0])
def test_it_notices_a_broken_promise(monkeypatch, exact_rows, error, wrong_below):
    """With sums that are wrong where they are small, or everywhere, the results are right all the same."""
    arrays = cross_validation(table("normal", 2, 5000))
    original = Field.sums

    def wrong(self, *args):
        sums = original(self, *args)
        return np.where(sums < wrong_below * 5000, sums * (1 + error), sums)

    monkeypatch.setattr(Field, "sums", wrong)
    require_promise(spectral.log_density(*arrays), exactly(arrays))
    assert len(exact_rows) > 1
    assert (sum(exact_rows) >= 5000) == (wrong_below == 1.0)


def test_a_grid_that_does_not_fit_is_left_to_the_exact_kernel(monkeypatch):
    arrays = cross_validation(table("normal", 3, 1000))
    monkeypatch.setattr(gridding, "MAX_CELLS", 1000)
    np.testing.assert_array_equal(spectral.log_density(*arrays), exactly(arrays))


def test_thrift_leaves_to_the_exact_kernel_what_it_does_sooner():
    arrays = cross_validation(table("normal", 3, 1000))
    np.testing.assert_array_equal(spectral.log_density(*arrays, thrifty=True), exactly(arrays))
    assert (spectral.log_density(*arrays) != exactly(arrays)).any()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch, d):
    arrays = cross_validation(table("bimodal", d, 12_000), folds=3)
    results = []
    for count in (1, 2, 3, 8):
        monkeypatch.setattr(jit, "thread_count", lambda count=count: count)
        results.append(spectral.log_density(*arrays))
        np.testing.assert_array_equal(results[-1], results[0])


def test_the_same_input_gives_the_same_bits():
    arrays = cross_validation(table("lognormal", 2, 5000))
    np.testing.assert_array_equal(spectral.log_density(*arrays), spectral.log_density(*arrays))


def test_rows_that_no_span_queries_are_nan(rng):
    arrays = plain(rng.normal(size=(500, 1)), rng.normal(size=(20, 1)))
    out = spectral.log_density(*arrays)
    assert np.isnan(out[0, :500]).all()
    assert np.isfinite(out[0, 500:]).all()


def test_the_arguments_are_left_alone():
    arrays = cross_validation(table("normal", 2, 1000))
    before = deepcopy(arrays)
    spectral.log_density(*arrays)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(getattr(array, "array", array), getattr(copy, "array", copy))
