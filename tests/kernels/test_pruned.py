import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.large import SHAPES, cross_validation, exactly, plain, require_promise, scott, table
from spbn._base import jit
from spbn.kernels import pruned
from spbn.kernels.estimates import Spans


@pytest.mark.parametrize("d", [4, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_validation_keeps_the_promise(shape, d):
    arrays = cross_validation(table(shape, d, 8000), folds=3)
    require_promise(pruned.log_density(*arrays), exactly(arrays))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_plain_queries_keep_the_promise(d):
    queries = table("bimodal", d, 1500, seed=1)
    queries[:20] *= 3  # some where there is nothing
    arrays = plain(table("bimodal", d, 8000), queries)
    require_promise(pruned.log_density(*arrays), exactly(arrays))


@settings(max_examples=40)
@given(
    d=st.integers(4, 5),
    rows=st.integers(20, 2000),
    folds=st.integers(2, 5),
    shape=st.sampled_from(SHAPES),
    width=st.floats(0.1, 4),
    seed=st.integers(0, 10_000),
)
def test_small_tables_of_all_shapes(d, rows, folds, shape, width, seed):
    points, columns, whiteners, spans = cross_validation(table(shape, d, rows, seed), folds)
    arrays = points, columns, whiteners / width, spans
    require_promise(pruned.log_density(*arrays), exactly(arrays))


@settings(max_examples=40)
@given(distance=st.floats(3, 9), rows=st.integers(1000, 20_000), few=st.integers(1, 3))
def test_many_rows_at_the_nearest_corner(distance, rows, few):
    """The worst case of what is left out: all rows of all far leaves at the least distance."""
    train = np.zeros((rows + few, 4))
    train[:rows, 0] = distance
    arrays = plain(train, np.zeros((16, 4)), np.eye(4))
    np.testing.assert_allclose(pruned.log_density(*arrays), exactly(arrays), rtol=1e-15, atol=5.1e-7)


def test_a_lonely_query_in_a_dense_group(rng):
    """What is too little to matter for its neighbours is all that it has."""
    train = np.zeros((25_000, 4))
    train[:5000] = rng.normal(size=(5000, 4))
    train[:5000, 0] = 13.2
    queries = np.zeros((16, 4))
    queries[0, 0] = 8.0
    arrays = plain(train, queries, np.eye(4))
    require_promise(pruned.log_density(*arrays), exactly(arrays))


def test_bandwidths_that_differ_in_one_direction():
    points, columns, whiteners, spans = cross_validation(table("bimodal", 4, 5000), folds=3)
    whiteners[:, 1, -1, :] *= 0.6
    arrays = points, columns, whiteners, spans
    require_promise(pruned.log_density(*arrays), exactly(arrays))


def test_pairs_are_left_out(monkeypatch):
    """Two bunches of rows out of each other's reach: each meets its own rows only."""
    rng = np.random.default_rng(0)
    x = 0.1 * rng.normal(size=(6400, 4)) + 30 * rng.integers(2, size=(6400, 1))
    met = []
    original = pruned._add_leaves

    def spy(adder, above, upto, squares, *rest):
        met.append(np.count_nonzero((above < squares) & (squares <= upto)) / len(squares))

    arrays = plain(x, x[:160], np.eye(4))
    require_promise(pruned.log_density(*arrays), exactly(arrays))
    monkeypatch.setattr(jit, "thread_count", lambda: 1)
    monkeypatch.setattr(pruned, "_add_leaves", lambda *args: (spy(*args), original(*args)))
    monkeypatch.setattr(pruned, "_add_some_groups", pruned._add_some_groups.py_func)
    pruned.log_density(*arrays)
    assert np.median(np.add(met[::2], met[1::2])) < 0.6  # one group may lie astride


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    arrays = cross_validation(table("lognormal", 4, 4000), folds=3)
    results = []
    for count in (1, 2, 5):
        monkeypatch.setattr(jit, "thread_count", lambda count=count: count)
        results.append(pruned.log_density(*arrays))
        np.testing.assert_array_equal(results[-1], results[0])


def test_several_sets_and_spans_of_every_kind(rng):
    x = rng.normal(size=(3000, 5))
    points = np.ascontiguousarray(x.T)
    spans = Spans(
        np.array([[0, 900, 300, 2000, 2500, 3000], [900, 900, 0, 10, 0, 0], [950, 2000, 950, 2000, 0, 0]])
    )
    columns = np.array([[1, 0, 4, 2], [3, 2, 1, 0]])
    whiteners = np.array([[scott(x[:, c]), scott(x[:, c]) * 1.1, scott(x[:, c]) * 3] for c in columns])
    arrays = points, columns, whiteners, spans
    require_promise(pruned.log_density(*arrays), exactly(arrays))
