import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spbn.numerics.gaussian import whitener


@given(d=st.integers(1, 8), seed=st.integers(0, 999))
def test_a_whitener_whitens_and_so_does_its_leading_block(d, seed):
    root = np.random.default_rng(seed).normal(size=(d, d + 2))
    matrix = root @ root.T
    w = whitener(matrix)
    np.testing.assert_allclose(w @ matrix @ w.T, np.eye(d), atol=1e-8)
    k = (d + 1) // 2
    np.testing.assert_allclose(w[:k, :k] @ matrix[:k, :k] @ w[:k, :k].T, np.eye(k), atol=1e-8)
    assert (np.triu(w, 1) == 0).all()


@given(d=st.integers(2, 6), seed=st.integers(0, 999), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_singular_matrices_have_none_whatever_their_scale(d, seed, scale):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(d, 50)) * scale
    data[rng.integers(d)] = data.sum(axis=0) / 3
    data[-1] = data[:-1].sum(axis=0)
    assert whitener(np.cov(data)) is None


def test_what_is_no_covariance_has_none():
    assert whitener(np.zeros((1, 1))) is None
    assert whitener(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert whitener(np.array([[np.inf]])) is None
    assert whitener(np.array([[np.nan]])) is None
