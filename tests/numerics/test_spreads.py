"""Order statistics that tell no value: coarse, in order, and on the right side of what they bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spbn.numerics.spreads import FAR_OUT, spreads_of, without_far_values

values = st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, -0.0, 1e-300, 1e-310, 1e300, 0.1, 1e9 + 0.1])


def unit_of(scale):
    """The power of 2 that the scale is at least 1024 times of."""
    return np.ldexp(1.0, np.frexp(scale)[1] - 11)


@settings(max_examples=200, deadline=None)
@given(arrays.arrays(np.float64, st.tuples(st.just(1), st.integers(1, 40)), elements=values))
def test_they_are_near_in_order_and_around_the_rows(columns):
    ((column,), found) = columns, spreads_of(columns)
    (centre,), (scale,), (low,), (high,), (least,), (greatest,) = found
    exact = np.quantile(column, 0.5, method="inverted_cdf")
    assert least <= low <= centre <= high <= greatest
    no_quotient = 1e-300 * scale  # quotients that are less are 0
    assert least <= column.min() + no_quotient
    assert greatest >= column.max() - no_quotient
    assert (scale > 0.0) == (np.ptp(column) > 0.0)
    assert abs(centre - exact) <= scale / 1024
    assert column.min() - least <= scale / 512
    for number in found:
        assert np.isfinite(number).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 999), st.integers(3, 300), st.floats(-280, 280), st.sampled_from([0.0, 1.0, 1e3, -1e6]))
def test_eleven_bits_are_left_of_them(seed, rows, magnitude, shift):
    columns = 10.0**magnitude * (np.random.default_rng(seed).standard_t(2, (3, rows)) + shift)
    found = spreads_of(columns)
    unit = unit_of(found.scale * (1 - 1e-12))  # a width may have been rounded to a power of 2
    for number in found:
        np.testing.assert_array_equal(number / unit, np.rint(number / unit))
        assert not np.isin(number, columns).any()
    assert (found.scale / unit <= 2048).all()


@pytest.mark.parametrize("atom", [0.0, 3.7, -1e6 / 3])
def test_many_rows_with_the_same_value_stay_where_they_are(atom):
    """Bounds that are rounded inwards would leave them out."""
    columns = np.full((1, 200), atom)
    columns[0, :60] += np.random.default_rng(0).normal(size=60)
    columns[0, 0] = atom + 1e9
    held = without_far_values(columns, spreads_of(columns))
    np.testing.assert_array_equal(held[0, 60:], columns[0, 60:])
    assert held[0, 0] == pytest.approx(atom, abs=0.01)
    assert spreads_of(columns).bounds(FAR_OUT)[1][0] < 1e3


def test_the_value_of_a_constant_column_is_its_centre():
    found = spreads_of(np.full((1, 5), 0.1))
    assert found.scale[0] == 0.0
    assert {float(number[0]) for name, number in found._asdict().items() if name != "scale"} == {0.1}
