"""Moments to the last digit that there is, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from spbn.numerics.moments import Moments


def test_a_mean_is_right_to_half_a_digit():
    """The sum of these is rounded: the ones are lost against the first number."""
    values = [2.0**53, 1.0, 1.0, 1.0]
    exact = sum(map(Fraction, values)) / 4
    mean = Moments.of(np.array([values])).mean[0]
    assert abs(Fraction(mean) - exact) <= Fraction(np.spacing(mean)) / 2


@pytest.mark.parametrize("value", [0.1, -3.3, 1e9 + 0.1, 1e-300, 0.0])
@pytest.mark.parametrize("rows", [3, 10, 1001])
def test_a_column_of_one_value_has_no_spread_at_all(value, rows):
    rng = np.random.default_rng(0)
    moments = Moments.of(np.array([np.full(rows, value), rng.normal(size=rows)]))
    assert moments.mean[0] == value
    assert moments.scatter[0, 0] == 0.0
    assert moments.scatter[0, 1] == moments.scatter[1, 0] == 0.0
