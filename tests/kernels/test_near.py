"""Sums of rows that come in parts: those of all pairs, however rows are divided."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.large import SHAPES, cross_validation, exactly, table
from spbn._base import jit
from spbn.kernels.pairwise_stream import LEAF, QUERIES, Leaves, Sums, arranged


def in_parts(arrays, parts):
    """Log-densities of a cross-validation from rows that come in some parts, in random order."""
    points, _, whiteners, spans = arrays
    rows = points.shape[1]
    labels = np.repeat(np.arange(len(spans)), spans.query_counts)
    shuffled = np.random.default_rng(0).permutation(rows)
    out = np.empty((1, rows))
    for fold, (first, end) in enumerate(spans.queries):
        whitener = whiteners[0, fold]
        queries = points[:, first:end]
        order = arranged(queries, whitener, QUERIES)
        sums = Sums.none(end - first)
        for mine in np.array_split(shuffled, parts):
            mine = mine[arranged(points[:, mine], whiteners[0, 0], LEAF)]
            leaves = Leaves.of(points[:, mine], labels[mine] != fold, whitener)
            sums.add(leaves, queries[:, order], whitener)
        peak = np.log(np.diag(whitener)).sum() - 0.5 * len(points) * np.log(2 * np.pi)
        out[0, first + order] = sums.logarithms + peak - np.log(rows - (end - first))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [0.25, 1.0])
def test_sums_are_those_of_all_pairs(shape, d, width):
    points, columns, whiteners, spans = cross_validation(table(shape, d, 3000), folds=3)
    arrays = points, columns, whiteners / width, spans
    np.testing.assert_allclose(
        in_parts(arrays, 2), exactly(arrays), rtol=1e-12, atol=1e-8
    )  # collinear rows lose digits


@settings(max_examples=30)
@given(
    d=st.integers(1, 3),
    rows=st.integers(6, 400),
    folds=st.integers(2, 5),
    parts=st.integers(2, 9),
    shape=st.sampled_from(SHAPES),
    width=st.floats(0.05, 4),
    seed=st.integers(0, 10_000),
)
def test_parts_make_no_difference(d, rows, folds, parts, shape, width, seed):
    points, columns, whiteners, spans = cross_validation(table(shape, d, rows, seed), folds)
    arrays = points, columns, whiteners / width, spans
    found = in_parts(arrays, parts)
    np.testing.assert_allclose(found, in_parts(arrays, 1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found, exactly(arrays), rtol=1e-9, atol=1e-8)


def test_the_number_of_threads_makes_no_difference(monkeypatch):
    arrays = cross_validation(table("normal", 3, 5000), folds=2)
    monkeypatch.setattr("spbn.kernels.pairwise_stream.GROUPS_A_TASK", 5)
    found = in_parts(arrays, 1)
    monkeypatch.setattr(jit, "thread_count", lambda: 3)
    assert np.array_equal(in_parts(arrays, 1), found)


def test_sums_of_no_rows_are_zero():
    points = np.zeros((2, 5))
    sums = Sums.none(5)
    sums.add(Leaves.of(points, np.zeros(5, dtype=bool), np.eye(2)), points, np.eye(2))
    assert (sums.logarithms == -np.inf).all()
