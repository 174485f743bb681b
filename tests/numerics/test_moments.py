from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn.numerics.moments import Moments, leave_one_out


def exact_scatter(columns):
    """In rational numbers."""
    rows = [[Fraction(x) for x in column] for column in columns.tolist()]
    means = [sum(row) / len(row) for row in rows]
    return np.array(
        [
            [
                float(sum((x - mx) * (y - my) for x, y in zip(a, b, strict=True)))
                for b, my in zip(rows, means, strict=True)
            ]
            for a, mx in zip(rows, means, strict=True)
        ]
    )


@pytest.mark.slow
@given(
    rows=st.integers(2, 30),
    variables=st.integers(1, 4),
    offset=st.sampled_from([0.0, 1.0, 1e8]),
    seed=st.integers(0, 99),
)
def test_scatter_equals_exact_arithmetic_whatever_the_offset(rows, variables, offset, seed):
    columns = np.random.default_rng(seed).normal(size=(variables, rows)) + offset
    np.testing.assert_allclose(Moments.of(columns).scatter, exact_scatter(columns), rtol=1e-13, atol=1e-12)


@given(sizes=st.lists(st.integers(1, 9), min_size=2, max_size=6), seed=st.integers(0, 99))
def test_training_moments_are_those_of_the_other_rows(sizes, seed):
    columns = np.random.default_rng(seed).normal(size=(3, sum(sizes)))
    parts = np.split(columns, np.cumsum(sizes)[:-1], axis=1)
    for m, train in enumerate(leave_one_out([Moments.of(part) for part in parts])):
        rest = np.concatenate(parts[:m] + parts[m + 1 :], axis=1)
        assert train.count == rest.shape[1]
        np.testing.assert_allclose(train.mean, rest.mean(axis=1), rtol=1e-12, atol=1e-13)
        centred = rest - rest.mean(axis=1)[:, None]
        np.testing.assert_allclose(train.scatter, centred @ centred.T, rtol=1e-12, atol=1e-12)


def test_an_outlier_in_a_fold_does_not_cost_the_other_folds_their_digits(rng):
    parts = [rng.normal(size=(2, 50)) for _ in range(3)]
    outlier = parts[1].copy()
    outlier[:, 0] = 1e12
    train = leave_one_out([Moments.of(parts[0]), Moments.of(outlier), Moments.of(parts[2])])[1]
    rest = np.concatenate([parts[0], parts[2]], axis=1)
    np.testing.assert_allclose(train.covariance, np.cov(rest), rtol=1e-12)


def test_no_rows():
    empty = Moments.of(np.empty((2, 0)))
    assert (empty + empty).count == 0
    full = Moments.of(np.array([[1.0, 2.0], [3.0, 5.0]]))
    np.testing.assert_array_equal((empty + full).scatter, full.scatter)
    assert (full + empty).mean == pytest.approx([1.5, 4.0])


@given(
    rows=st.integers(1, 300),
    value=st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-12),
    cut=st.integers(0, 300),
)
def test_no_spread_is_no_spread(rows, value, cut):
    """To the last bit, although the mean of equal numbers need not be that number when it is computed."""
    columns = np.stack([np.full(rows, value), np.arange(rows)])
    parts = [Moments.of(columns[:, : min(cut, rows)]), Moments.of(columns[:, min(cut, rows) :])]
    for moments in (Moments.of(columns), Moments.of(np.asfortranarray(columns)), parts[0] + parts[1]):
        assert moments.mean[0] == value or moments.count == 0
        assert (moments.scatter[0] == 0.0).all()
        assert (moments.scatter[:, 0] == 0.0).all()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e8 / 3])
def test_what_rounding_takes_from_a_mean_does_not_become_spread(value):
    """Numbers of rows for which NumPy's mean of equal numbers is another number, if there are any."""
    off = [rows for rows in range(1, 500) if np.full(rows, value).mean() != value]
    assert off, "the test has lost its point: choose other values"
    for rows in off:
        moments = Moments.of(np.full((1, rows), value))
        assert moments.scatter[0, 0] == 0.0
        assert moments.mean[0] == value


def test_digits_that_the_mean_has_no_room_for():
    """At 1e16 floats are 2 apart, and the mean is wrong by up to 1: taken as it is, that counts as spread."""
    columns = 1e16 + np.array([[0.0, 2.0, 2.0, 2.0, 4.0, 8.0, 2.0], [2.0, 4.0, 4.0, 8.0, 0.0, 0.0, 2.0]])
    np.testing.assert_allclose(Moments.of(columns).scatter, exact_scatter(columns), rtol=1e-15)
